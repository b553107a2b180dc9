// A convolution of a 4096 x 4096 image by 15 x 15 weights, with the choices that set D was measured with as macros:
// BLOCK_X, BLOCK_Y threads of a block; TILE_X, TILE_Y results per thread, a block's width or height apart; READ_ONLY:
// loads through the read-only path; STAGED: a block's input goes through shared memory; PADDED: rows there are
// padded if that keeps the lanes of a warp that spans rows in different banks. Weights are in constant memory,
// all loops are unrolled. Written for this project.

constexpr int SIDE = 4096;
constexpr int FILTER = 15;
constexpr int BORDER = FILTER - 1;
constexpr int INPUT = SIDE + BORDER;
constexpr int WIDTH = BLOCK_X * TILE_X, HEIGHT = BLOCK_Y * TILE_Y; // of a block's results
constexpr bool EVEN = SIDE % WIDTH == 0 && SIDE % HEIGHT == 0;     // no block extends beyond the image

__constant__ float weights[FILTER * FILTER];

constexpr int UNPADDED = WIDTH + BORDER;
constexpr bool PADS = PADDED && BLOCK_X % 32 != 0 && (UNPADDED - BLOCK_X) % 32 != 0;
[[maybe_unused]] constexpr int STAGED_WIDTH = UNPADDED + (PADS ? (32 - (UNPADDED - BLOCK_X)) & 31 : 0);

__device__ __forceinline__ float load(const float *address) {
    return READ_ONLY ? __ldg(address) : *address;
}

extern "C" __global__ void convolution(float *results, float *image) {
    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int left = blockIdx.x * WIDTH;
    const int top = blockIdx.y * HEIGHT;

#if STAGED
    __shared__ float staged[HEIGHT + BORDER][STAGED_WIDTH];
#pragma unroll
    for (int row = ty; row < HEIGHT + BORDER; row += BLOCK_Y) {
#pragma unroll
        for (int column = tx; column < WIDTH + BORDER; column += BLOCK_X) {
            const bool inside = EVEN || (top + row < INPUT && left + column < INPUT);
            staged[row][column] = inside ? load(&image[(top + row) * INPUT + left + column]) : 0.0f;
        }
    }
    __syncthreads();
#endif

    float sums[TILE_Y][TILE_X] = {};
#pragma unroll
    for (int i = 0; i < FILTER; ++i) {
#pragma unroll
        for (int j = 0; j < FILTER; ++j) {
#pragma unroll
            for (int y = 0; y < TILE_Y; ++y) {
#pragma unroll
                for (int x = 0; x < TILE_X; ++x) {
                    const int row = ty + y * BLOCK_Y, column = tx + x * BLOCK_X;
#if STAGED
                    const float value = staged[row + i][column + j];
#else
                    const bool inside = EVEN || (top + row < INPUT && left + column < INPUT);
                    const float value = inside ? load(&image[(top + row + i) * INPUT + left + column + j]) : 0.0f;
#endif
                    sums[y][x] += value * weights[i * FILTER + j];
                }
            }
        }
    }

#pragma unroll
    for (int y = 0; y < TILE_Y; ++y) {
#pragma unroll
        for (int x = 0; x < TILE_X; ++x) {
            const int row = top + ty + y * BLOCK_Y, column = left + tx + x * BLOCK_X;
            if (EVEN || (row < SIDE && column < SIDE)) results[row * SIDE + column] = sums[y][x];
        }
    }
}
