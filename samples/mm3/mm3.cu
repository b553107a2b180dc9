// G = (A * B) * (C * D) by three matrix products.
// Stands for 3mm of PolyBench (R2D2: 3MM), written for this project from the algorithm.
// A is ni x nk, B nk x nj, C nj x nm, D nm x nl, all row-major; one element of a product a thread, blocks of 32x8
// threads, x along its rows. Sums are kept in memory, as the benchmark does.

extern "C" __global__ void mm3_first(int ni, int nj, int nk, const float *a, const float *b, float *e) {
    const int j = blockIdx.x * blockDim.x + threadIdx.x;
    const int i = blockIdx.y * blockDim.y + threadIdx.y;

    if (i < ni && j < nj) {
        e[i * nj + j] = 0.0f;
        for (int k = 0; k < nk; ++k) {
            e[i * nj + j] += a[i * nk + k] * b[k * nj + j];
        }
    }
}

extern "C" __global__ void mm3_second(int nj, int nl, int nm, const float *c, const float *d, float *f) {
    const int l = blockIdx.x * blockDim.x + threadIdx.x;
    const int j = blockIdx.y * blockDim.y + threadIdx.y;

    if (j < nj && l < nl) {
        f[j * nl + l] = 0.0f;
        for (int m = 0; m < nm; ++m) {
            f[j * nl + l] += c[j * nm + m] * d[m * nl + l];
        }
    }
}

extern "C" __global__ void mm3_third(int ni, int nl, int nj, const float *e, const float *f, float *g) {
    const int l = blockIdx.x * blockDim.x + threadIdx.x;
    const int i = blockIdx.y * blockDim.y + threadIdx.y;

    if (i < ni && l < nl) {
        g[i * nl + l] = 0.0f;
        for (int j = 0; j < nj; ++j) {
            g[i * nl + l] += e[i * nj + j] * f[j * nl + l];
        }
    }
}
