// C = alpha * A * B + beta * C for row-major matrices, one element of C a thread.
// Stands for gemm of PolyBench (R2D2: GEM), written for this project from the algorithm.
// Blocks of 32x8 threads, x along the rows of C. The sum is kept in C itself, as the benchmark does: the matrices
// could overlap as far as the compiler knows, so every turn of the loop loads and stores C.

extern "C" __global__ void gemm(int ni, int nj, int nk, float alpha, float beta, const float *a, const float *b,
                                float *c) {
    const int j = blockIdx.x * blockDim.x + threadIdx.x;
    const int i = blockIdx.y * blockDim.y + threadIdx.y;

    if (i < ni && j < nj) {
        c[i * nj + j] *= beta;
        for (int k = 0; k < nk; ++k) {
            c[i * nj + j] += alpha * a[i * nk + k] * b[k * nj + j];
        }
    }
}
