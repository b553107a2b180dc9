// D = alpha * A * B * C + beta * D by two matrix products, the first into T = alpha * A * B.
// Stands for 2mm of PolyBench (R2D2: 2MM), written for this project from the algorithm.
// A is ni x nk, B nk x nj, C nj x nl, D ni x nl, all row-major; one element of the product a thread, blocks of 32x8
// threads, x along its rows. Sums are kept in memory, as the benchmark does.

extern "C" __global__ void mm2_first(int ni, int nj, int nk, float alpha, float *t, const float *a, const float *b) {
    const int j = blockIdx.x * blockDim.x + threadIdx.x;
    const int i = blockIdx.y * blockDim.y + threadIdx.y;

    if (i < ni && j < nj) {
        t[i * nj + j] = 0.0f;
        for (int k = 0; k < nk; ++k) {
            t[i * nj + j] += alpha * a[i * nk + k] * b[k * nj + j];
        }
    }
}

extern "C" __global__ void mm2_second(int ni, int nl, int nj, float beta, const float *t, const float *c, float *d) {
    const int l = blockIdx.x * blockDim.x + threadIdx.x;
    const int i = blockIdx.y * blockDim.y + threadIdx.y;

    if (i < ni && l < nl) {
        d[i * nl + l] *= beta;
        for (int j = 0; j < nj; ++j) {
            d[i * nl + l] += t[i * nj + j] * c[j * nl + l];
        }
    }
}
