#include <stdio.h>
#include <stdlib.h>
#include <math.h>
#ifndef N
#define N 1000
#endif
#ifndef STEPS
#define STEPS 10
#endif
static double x[N][3], v[N][3], a[N][3], m[N];

static double frand(void) { return rand() / (double)RAND_MAX - 0.5; }

int main(void)
{
    double dt = 1e-3, eps2 = 1e-4;
    for (int i = 0; i < N; i++) { m[i] = 1.0 / N; for (int k = 0; k < 3; k++) { x[i][k] = frand(); v[i][k] = 0.1 * frand(); } }
    for (int s = 0; s < STEPS; s++) {
        double pot = 0;
        for (int i = 0; i < N; i++) {
            double ax = 0, ay = 0, az = 0;
            for (int j = 0; j < N; j++) {
                double dx = x[j][0] - x[i][0], dy = x[j][1] - x[i][1], dz = x[j][2] - x[i][2];
                double r2 = dx * dx + dy * dy + dz * dz + eps2, ir = 1 / sqrt(r2), f = m[j] * ir * ir * ir;
                ax += f * dx; ay += f * dy; az += f * dz; pot -= m[i] * m[j] * ir;
            }
            a[i][0] = ax; a[i][1] = ay; a[i][2] = az;
        }
        for (int i = 0; i < N; i++) for (int k = 0; k < 3; k++) { v[i][k] += dt * a[i][k]; x[i][k] += dt * v[i][k]; }
        printf("%d %.6f\n", s, pot / 2);
#ifdef SNAPSHOTS
        static double *hist; hist = realloc(hist, (s + 1L) * N * 6 * sizeof(double));
        for (int i = 0; i < N; i++) for (int k = 0; k < 3; k++) { hist[(s * (long)N + i) * 6 + k] = x[i][k]; hist[(s * (long)N + i) * 6 + 3 + k] = v[i][k]; }
#endif
    }
    return 0;
}
