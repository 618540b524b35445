#include <stdio.h>
#include <stdlib.h>
#include <math.h>
#include <stdint.h>
static uint64_t st = 88172645463325252ULL;
static double rnd(void) { st ^= st << 13; st ^= st >> 7; st ^= st << 17; return (st >> 11) * (1.0 / 9007199254740992.0); }
int main(int argc, char **argv)
{
    if (argc < 4) { fprintf(stderr, "usage: %s L T sweeps\n", argv[0]); return 1; }
    int L = atoi(argv[1]), n = atoi(argv[3]);
    double T = atof(argv[2]), w[5];
    for (int k = 0; k < 5; k++) w[k] = exp(-2.0 * (2 * k - 4) / T);
    int *s = malloc(sizeof(int) * L * L);
    for (int i = 0; i < L * L; i++) s[i] = 1;
    double M = 0;
    for (int sw = 0; sw < n; sw++) {
        for (int q = 0; q < L * L; q++) {
            int i = rnd() * L, j = rnd() * L;
            int nb = s[((i + 1) % L) * L + j] + s[((i + L - 1) % L) * L + j] + s[i * L + (j + 1) % L] + s[i * L + (j + L - 1) % L];
            int k = (nb * s[i * L + j] + 4) / 2;
            if (rnd() < w[k]) s[i * L + j] = -s[i * L + j];
        }
        long m = 0; for (int i = 0; i < L * L; i++) m += s[i];
        if (sw > n / 4) M += fabs((double)m) / (L * L);
    }
    printf("L=%d T=%.3f |m|=%.4f\n", L, T, M / (n - n / 4));
    return 0;
}
