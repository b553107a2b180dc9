// Sums of absolute differences between the blocks of a video frame and displaced blocks of another frame, for motion
// estimation: all displacements up to 16 pixels, for all block sizes from 4x4 to 16x16.
// Stands for sad of Parboil (R2D2, Composite).
// Written for this project from the algorithm. 4x4 blocks: 61 threads, the last warp partly filled, take 18 of the
// 1089 displacements each, with coordinates clamped at the frame's border (the benchmark lets a texture do that).
// Larger blocks: sums of smaller ones, two displacements at a time in 16-bit halves.

constexpr int REACH = 16;
constexpr int SIDE = 2 * REACH + 1;
constexpr int PLACES = SIDE * SIDE; // displacements of a block
constexpr int PLACES_PADDED = 1096; // so far apart lie the results of two blocks
constexpr int PLACES_PER_THREAD = 18;
constexpr int PAIRS = (PLACES + 1) / 2;
constexpr int PAIRS_PADDED = PLACES_PADDED / 2;

using Pixel = unsigned short;
using Sad = unsigned short;

// Results of one macroblock of 16x16 pixels for each size: 16 blocks of 4x4, 8 each of 4 wide and 8 high and of
// 8 wide and 4 high, and so on. Blocks of 8x8 are numbered row by row, those of 4x4 row by row within them.
extern "C" __global__ void sad_4x4(const Pixel *current, const Pixel *reference, Sad *sads, int width, int height) {
    __shared__ Pixel block[16];
    extern __shared__ Sad staged[];

    const int tx = threadIdx.x;
    const int left = 4 * blockIdx.x;
    const int top = 4 * blockIdx.y;
    if (tx < 16) {
        block[tx] = current[(top + tx / 4) * width + left + tx % 4];
    }
    __syncthreads();

    const int end = min((tx + 1) * PLACES_PER_THREAD, PLACES);
    for (int place = tx * PLACES_PER_THREAD; place < end; ++place) {
        const int first_row = top + place / SIDE - REACH;
        const int first_column = left + place % SIDE - REACH;
        int sum = 0;
        for (int y = 0; y < 4; ++y) {
            const int row = min(max(first_row + y, 0), height - 1);
            for (int x = 0; x < 4; ++x) {
                const int column = min(max(first_column + x, 0), width - 1);
                sum += abs(static_cast<int>(block[4 * y + x]) - static_cast<int>(reference[row * width + column]));
            }
        }
        staged[place] = static_cast<Sad>(sum);
    }
    __syncthreads();

    const int macroblock = (blockIdx.y / 4) * (width / 16) + blockIdx.x / 4;
    const int quarter = (blockIdx.y / 2 % 2) * 2 + blockIdx.x / 2 % 2;
    const int in_quarter = (blockIdx.y % 2) * 2 + blockIdx.x % 2;
    Sad *const out = sads + (macroblock * 16 + quarter * 4 + in_quarter) * PLACES_PADDED;
    for (int place = tx; place < PLACES; place += blockDim.x) {
        out[place] = staged[place];
    }
}

__device__ __forceinline__ ushort2 operator+(ushort2 a, ushort2 b) {
    return {static_cast<Sad>(a.x + b.x), static_cast<Sad>(a.y + b.y)};
}

// A block of 32 x 4 threads for a macroblock, a row of threads for each of its 8x8 blocks. Arrays of pairs: `small`
// has 16 blocks a macroblock, `wide` (8x4) and `high` (4x8) have 8, `square` (8x8) has 4.
extern "C" __global__ void sad_8x8(const ushort2 *small, ushort2 *wide, ushort2 *high, ushort2 *square) {
    const int macroblock = blockIdx.y * gridDim.x + blockIdx.x;
    const int quarter = threadIdx.y;
    const ushort2 *const in = small + (macroblock * 16 + quarter * 4) * PAIRS_PADDED;
    ushort2 *const to_wide = wide + (macroblock * 8 + quarter * 2) * PAIRS_PADDED;
    ushort2 *const to_high = high + (macroblock * 8 + quarter * 2) * PAIRS_PADDED;
    ushort2 *const to_square = square + (macroblock * 4 + quarter) * PAIRS_PADDED;

    for (int pair = threadIdx.x; pair < PAIRS; pair += 32) {
        const ushort2 upper_left = in[pair];
        const ushort2 upper_right = in[PAIRS_PADDED + pair];
        const ushort2 lower_left = in[2 * PAIRS_PADDED + pair];
        const ushort2 lower_right = in[3 * PAIRS_PADDED + pair];
        const ushort2 upper = upper_left + upper_right;
        const ushort2 lower = lower_left + lower_right;
        to_wide[pair] = upper;
        to_wide[PAIRS_PADDED + pair] = lower;
        to_high[pair] = upper_left + lower_left;
        to_high[PAIRS_PADDED + pair] = upper_right + lower_right;
        to_square[pair] = upper + lower;
    }
}

// One warp for a macroblock: from 8x8 to 16 wide and 8 high, 8 wide and 16 high, and 16x16.
extern "C" __global__ void sad_16x16(const ushort2 *square, ushort2 *wide, ushort2 *high, ushort2 *whole) {
    const int macroblock = blockIdx.y * gridDim.x + blockIdx.x;
    const ushort2 *const in = square + macroblock * 4 * PAIRS_PADDED;
    ushort2 *const to_wide = wide + macroblock * 2 * PAIRS_PADDED;
    ushort2 *const to_high = high + macroblock * 2 * PAIRS_PADDED;
    ushort2 *const to_whole = whole + macroblock * PAIRS_PADDED;

    for (int pair = threadIdx.x; pair < PAIRS; pair += 32) {
        const ushort2 upper_left = in[pair];
        const ushort2 upper_right = in[PAIRS_PADDED + pair];
        const ushort2 lower_left = in[2 * PAIRS_PADDED + pair];
        const ushort2 lower_right = in[3 * PAIRS_PADDED + pair];
        const ushort2 upper = upper_left + upper_right;
        const ushort2 lower = lower_left + lower_right;
        to_wide[pair] = upper;
        to_wide[PAIRS_PADDED + pair] = lower;
        to_high[pair] = upper_left + lower_left;
        to_high[PAIRS_PADDED + pair] = upper_right + lower_right;
        to_whole[pair] = upper + lower;
    }
}
