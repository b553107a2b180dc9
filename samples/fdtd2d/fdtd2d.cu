// Finite-difference time-domain solution of Maxwell's equations in two dimensions: three kernels a time step, for
// the two components of the electric field and for the magnetic field.
// Stands for fdtd2d of PolyBench (R2D2: FDT), written for this project from the algorithm.
// Fields are nx rows of ny columns; one cell a thread, blocks of 32x8 threads, x along the rows. In every step the
// first row of ey is driven by `source[step]`.

extern "C" __global__ void fdtd2d_ey(int nx, int ny, const float *source, float *ey, const float *hz, int step) {
    const int j = blockIdx.x * blockDim.x + threadIdx.x;
    const int i = blockIdx.y * blockDim.y + threadIdx.y;

    if (i < nx && j < ny) {
        if (i == 0) {
            ey[i * ny + j] = source[step];
        } else {
            ey[i * ny + j] = ey[i * ny + j] - 0.5f * (hz[i * ny + j] - hz[(i - 1) * ny + j]);
        }
    }
}

extern "C" __global__ void fdtd2d_ex(int nx, int ny, float *ex, const float *hz) {
    const int j = blockIdx.x * blockDim.x + threadIdx.x;
    const int i = blockIdx.y * blockDim.y + threadIdx.y;

    if (i < nx && j < ny && j > 0) {
        ex[i * ny + j] = ex[i * ny + j] - 0.5f * (hz[i * ny + j] - hz[i * ny + (j - 1)]);
    }
}

extern "C" __global__ void fdtd2d_hz(int nx, int ny, const float *ex, const float *ey, float *hz) {
    const int j = blockIdx.x * blockDim.x + threadIdx.x;
    const int i = blockIdx.y * blockDim.y + threadIdx.y;

    if (i < nx - 1 && j < ny - 1) {
        hz[i * ny + j] = hz[i * ny + j] - 0.7f * (ex[i * ny + (j + 1)] - ex[i * ny + j] + ey[(i + 1) * ny + j] -
                                                  ey[i * ny + j]);
    }
}
