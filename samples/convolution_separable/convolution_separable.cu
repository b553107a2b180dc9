// Convolution of an image with a separable filter of 17 taps: along the rows, then along the columns.
// Stands for convolutionSeparable of the CUDA SDK (DAC: CS), written for this project from the algorithm.
// A thread makes eight pixels, one block's width (or height) apart; the block's stretch of the image and a halo of
// one more step on both sides lie in shared memory, zeros where the image ends. The filter is in constant memory.

constexpr int RADIUS = 8;
constexpr int STEPS = 8; // pixels a thread
constexpr int ROWS_X = 16, ROWS_Y = 4;
constexpr int COLUMNS_X = 16, COLUMNS_Y = 8;

__constant__ float filter[2 * RADIUS + 1];

// Blocks of 16x4 threads, grid {width / 128, height / 4}.
extern "C" __global__ void convolution_rows(float *result, const float *image, int width, int height) {
    __shared__ float tile[ROWS_Y][(STEPS + 2) * ROWS_X];

    const int x = (blockIdx.x * STEPS - 1) * ROWS_X + threadIdx.x;
    const int y = blockIdx.y * ROWS_Y + threadIdx.y;
    image += y * width + x;
    result += y * width + x;

#pragma unroll
    for (int i = 1; i < 1 + STEPS; ++i) {
        tile[threadIdx.y][threadIdx.x + i * ROWS_X] = image[i * ROWS_X];
    }
    tile[threadIdx.y][threadIdx.x] = x >= 0 ? image[0] : 0.0f;
    tile[threadIdx.y][threadIdx.x + (STEPS + 1) * ROWS_X] =
        width - x > (STEPS + 1) * ROWS_X ? image[(STEPS + 1) * ROWS_X] : 0.0f;
    __syncthreads();

#pragma unroll
    for (int i = 1; i < 1 + STEPS; ++i) {
        float sum = 0.0f;
#pragma unroll
        for (int tap = -RADIUS; tap <= RADIUS; ++tap) {
            sum += filter[RADIUS - tap] * tile[threadIdx.y][threadIdx.x + i * ROWS_X + tap];
        }
        result[i * ROWS_X] = sum;
    }
}

// Blocks of 16x8 threads, grid {width / 16, height / 64}. The tile lies on its side, with a padded row.
extern "C" __global__ void convolution_columns(float *result, const float *image, int width, int height) {
    __shared__ float tile[COLUMNS_X][(STEPS + 2) * COLUMNS_Y + 1];

    const int x = blockIdx.x * COLUMNS_X + threadIdx.x;
    const int y = (blockIdx.y * STEPS - 1) * COLUMNS_Y + threadIdx.y;
    image += y * width + x;
    result += y * width + x;

#pragma unroll
    for (int i = 1; i < 1 + STEPS; ++i) {
        tile[threadIdx.x][threadIdx.y + i * COLUMNS_Y] = image[i * COLUMNS_Y * width];
    }
    tile[threadIdx.x][threadIdx.y] = y >= 0 ? image[0] : 0.0f;
    tile[threadIdx.x][threadIdx.y + (STEPS + 1) * COLUMNS_Y] =
        height - y > (STEPS + 1) * COLUMNS_Y ? image[(STEPS + 1) * COLUMNS_Y * width] : 0.0f;
    __syncthreads();

#pragma unroll
    for (int i = 1; i < 1 + STEPS; ++i) {
        float sum = 0.0f;
#pragma unroll
        for (int tap = -RADIUS; tap <= RADIUS; ++tap) {
            sum += filter[RADIUS - tap] * tile[threadIdx.x][threadIdx.y + i * COLUMNS_Y + tap];
        }
        result[i * COLUMNS_Y * width] = sum;
    }
}
