// y = A^T * (A * x): a product along the rows of A, then one along its columns.
// Stands for atax of PolyBench (R2D2: ATA), written for this project from the algorithm.
// One row (then one column) a thread. Blocks have 32x8 threads but only x chooses the row, as in the benchmark: the
// eight warps of a block compute the same sums and store the same values. The benchmark sums in memory, which such
// blocks would race on; here the sum is kept in a register.

extern "C" __global__ void atax_rows(int rows, int columns, const float *a, const float *x, float *product) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows) {
        float sum = 0.0f;
        for (int column = 0; column < columns; ++column) {
            sum += a[row * columns + column] * x[column];
        }
        product[row] = sum;
    }
}

extern "C" __global__ void atax_columns(int rows, int columns, const float *a, const float *product, float *y) {
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (column < columns) {
        float sum = 0.0f;
        for (int row = 0; row < rows; ++row) {
            sum += a[row * columns + column] * product[row];
        }
        y[column] = sum;
    }
}
