// y = alpha * A * x + beta * B * x for square row-major matrices.
// Stands for gesummv of PolyBench (R2D2: GSM), written for this project from the algorithm.
// One row a thread, blocks of 256 threads. Both sums are kept in memory, as the benchmark does.

extern "C" __global__ void gesummv(int n, float alpha, float beta, const float *a, const float *b, float *product,
                                   const float *x, float *y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        product[i] = 0.0f;
        y[i] = 0.0f;
        for (int j = 0; j < n; ++j) {
            product[i] += a[i * n + j] * x[j];
            y[i] += b[i * n + j] * x[j];
        }
        y[i] = alpha * product[i] + beta * y[i];
    }
}
