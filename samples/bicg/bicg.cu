// The two products of the biconjugate gradient method: s = A^T * r and q = A * p.
// Stands for bicg of PolyBench (R2D2: BIC), written for this project from the algorithm.
// One column (then one row) a thread, blocks of 256 threads. Sums are kept in memory, as the benchmark does.

extern "C" __global__ void bicg_columns(int rows, int columns, const float *a, const float *r, float *s) {
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (column < columns) {
        s[column] = 0.0f;
        for (int row = 0; row < rows; ++row) {
            s[column] += r[row] * a[row * columns + column];
        }
    }
}

extern "C" __global__ void bicg_rows(int rows, int columns, const float *a, const float *p, float *q) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows) {
        q[row] = 0.0f;
        for (int column = 0; column < columns; ++column) {
            q[row] += a[row * columns + column] * p[column];
        }
    }
}
