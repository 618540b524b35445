#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    long n = argc > 1 ? atol(argv[1]) : 1000;
    int iters = argc > 2 ? atoi(argv[2]) : 50;
    long rows = n / size + (rank < n % size);
    double *a = calloc((rows + 2) * n, sizeof(double));
    double *b = calloc((rows + 2) * n, sizeof(double));
    if (rank == 0) for (long j = 0; j < n; j++) a[j] = b[j] = 1.0;
    for (long i = 0; i < (rows + 2) * n; i++) { a[i] += 1e-9 * i; b[i] = a[i]; }
    int up = rank ? rank - 1 : MPI_PROC_NULL, down = rank < size - 1 ? rank + 1 : MPI_PROC_NULL;
    double diff = 0, all = 0;
    for (int it = 0; it < iters; it++) {
        MPI_Sendrecv(a + n, n, MPI_DOUBLE, up, 0, a + (rows + 1) * n, n, MPI_DOUBLE, down, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Sendrecv(a + rows * n, n, MPI_DOUBLE, down, 1, a, n, MPI_DOUBLE, up, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        diff = 0;
        for (long i = 1; i <= rows; i++)
            for (long j = 1; j < n - 1; j++) {
                double v = 0.25 * (a[(i - 1) * n + j] + a[(i + 1) * n + j] + a[i * n + j - 1] + a[i * n + j + 1]);
                double d = v - a[i * n + j];
                diff += d * d;
                b[i * n + j] = v;
            }
        double *t = a; a = b; b = t;
    }
    MPI_Allreduce(&diff, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) printf("ranks %d n %ld iters %d residual %g\n", size, n, iters, all);
    MPI_Finalize();
    return 0;
}
