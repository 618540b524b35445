/* explicit heat equation on an NX x NX grid */
#include <stdio.h>
#include <stdlib.h>
#include <math.h>
#include "heat.h"

int main(int argc, char **argv)
{
    long n = argc > 1 ? atol(argv[1]) : 512;
    int nt = argc > 2 ? atoi(argv[2]) : 100;
    real *u = grid_alloc(n), *v = grid_alloc(n);
    for (long i = 0; i < n; i++)
        for (long j = 0; j < n; j++)
            u[i * n + j] = exp(-0.001 * ((i - n / 2) * (i - n / 2) + (j - n / 2) * (j - n / 2)));
    for (int t = 0; t < nt; t++) {
        step(u, v, n, 0.2);
        real *tmp = u; u = v; v = tmp;
        if (t % 20 == 0) { printf("t=%d max=%g\n", t, (double)grid_max(u, n)); fflush(stdout); }
    }
    printf("final sum %g\n", (double)grid_sum(u, n));
    return 0;
}
