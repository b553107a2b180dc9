// C = A * B for square row-major matrices, one element of C a thread: from global memory, and by tiles of 16x16 (or
// 32x32) in shared memory. Stands for matrixMul of the CUDA SDK (DARSIE and the composite paper: MM), written for
// this project from the algorithm. The width need not be a multiple of the tile: threads outside load zeros and store
// nothing.

// Blocks of 16x16 threads, a tile of C each; so many threads load an element that the caches see most of the traffic.
extern "C" __global__ void matmul_naive(const float *a, const float *b, float *c, int width) {
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < width && column < width) {
        float sum = 0.0f;
        for (int k = 0; k < width; ++k) {
            sum += a[row * width + k] * b[k * width + column];
        }
        c[row * width + column] = sum;
    }
}

// One tile of C a block, tiles of A and B in shared memory.
template <int TILE> __device__ __forceinline__ void multiply_tiles(const float *a, const float *b, float *c, int width) {
    __shared__ float tile_a[TILE][TILE];
    __shared__ float tile_b[TILE][TILE];

    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int row = blockIdx.y * TILE + ty;
    const int column = blockIdx.x * TILE + tx;

    float sum = 0.0f;
    for (int start = 0; start < width; start += TILE) {
        const bool a_inside = row < width && start + tx < width;
        const bool b_inside = start + ty < width && column < width;
        tile_a[ty][tx] = a_inside ? a[row * width + start + tx] : 0.0f;
        tile_b[ty][tx] = b_inside ? b[(start + ty) * width + column] : 0.0f;
        __syncthreads();

        for (int k = 0; k < TILE; ++k) {
            sum += tile_a[ty][k] * tile_b[k][tx];
        }
        __syncthreads();
    }

    if (row < width && column < width) {
        c[row * width + column] = sum;
    }
}

extern "C" __global__ void matmul_tiled(const float *a, const float *b, float *c, int width) {
    multiply_tiles<16>(a, b, c, width);
}

extern "C" __global__ void matmul_tiled32(const float *a, const float *b, float *c, int width) {
    multiply_tiles<32>(a, b, c, width);
}
