// x1 += A * y1 and x2 += A^T * y2 for a square row-major matrix.
// Stands for mvt of PolyBench/GPU 1.0 (R2D2: MVT), written for this project from the algorithm.
// One row (then one column) a thread, blocks of 256 threads. Sums are kept in memory, as the benchmark does. A later
// revision of the benchmark has blocks of 32x8, whose eight warps all add to the same elements: a race.

extern "C" __global__ void mvt_rows(int n, const float *a, float *x1, const float *y1) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        for (int j = 0; j < n; ++j) {
            x1[i] += a[i * n + j] * y1[j];
        }
    }
}

extern "C" __global__ void mvt_columns(int n, const float *a, float *x2, const float *y2) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        for (int j = 0; j < n; ++j) {
            x2[i] += a[j * n + i] * y2[j];
        }
    }
}
