// y = A^T * (A * x): a product along the rows of A, then one along its columns.
// Stands for atax of PolyBench/GPU 1.0 (R2D2: ATA), written for this project from the algorithm.
// One row (then one column) a thread, blocks of 256 threads. Sums are kept in memory, as the benchmark does. A later
// revision of the benchmark has blocks of 32x8, whose eight warps all add to the same elements: a race.

extern "C" __global__ void atax_rows(int rows, int columns, const float *a, const float *x, float *product) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows) {
        product[row] = 0.0f;
        for (int column = 0; column < columns; ++column) {
            product[row] += a[row * columns + column] * x[column];
        }
    }
}

extern "C" __global__ void atax_columns(int rows, int columns, const float *a, const float *product, float *y) {
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (column < columns) {
        y[column] = 0.0f;
        for (int row = 0; row < rows; ++row) {
            y[column] += a[row * columns + column] * product[row];
        }
    }
}
