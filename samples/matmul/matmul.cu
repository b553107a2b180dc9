// C = A * B for square row-major matrices, one 16x16 tile of C a block, tiles of A and B in shared memory.
// The width need not be a multiple of the tile: threads outside load zeros and store nothing.

constexpr int TILE = 16;

extern "C" __global__ void matmul_tiled(const float *a, const float *b, float *c, int width) {
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
