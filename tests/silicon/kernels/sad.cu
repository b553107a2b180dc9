// Set A: sums of absolute differences of 4x4 blocks as in Parboil's sad: three neighbouring displacements at a
// time, so that a pixel of the other frame is fetched once for all three, from a texture, and the block's pixel from
// shared memory; 16-bit sums are written from shared memory eight bytes at a time. Written for this project.

constexpr int REACH = 16;
constexpr int SIDE = 2 * REACH + 1;
constexpr int PLACES = SIDE * SIDE; // displacements of a block
constexpr int PLACES_PADDED = 1096; // distance between the results of two blocks
constexpr int PLACES_PER_THREAD = 18;
constexpr int THREADS_OF_BLOCK = (PLACES + PLACES_PER_THREAD - 1) / PLACES_PER_THREAD;

extern "C" __global__ void sad_4x4(unsigned short *sads, const unsigned short *current, int macroblocks_across,
                                   int macroblocks_down, cudaTextureObject_t reference) {
    __shared__ unsigned short block[16];
    extern __shared__ ushort4 staged_quads[];
    unsigned short *const staged = reinterpret_cast<unsigned short *>(staged_quads);

    const int left = 4 * blockIdx.x;
    const int top = 4 * blockIdx.y;
    const bool inside = left / 16 < macroblocks_across && top / 16 < macroblocks_down;
    if (threadIdx.x < 16 && inside) {
        const int pixel = threadIdx.x & 15;
        block[pixel] = current[(top + (pixel >> 2)) * macroblocks_across * 16 + left + (pixel & 3)];
    }
    __syncthreads();

    if (inside) {
        int place = (threadIdx.x % THREADS_OF_BLOCK) * PLACES_PER_THREAD;
        const int end = min(place + PLACES_PER_THREAD, PLACES);
        int down = top - REACH + place / SIDE;
        int right = place - place / SIDE * SIDE;
        for (; place < end; place += 3) {
            unsigned short first = 0, second = 0, third = 0;
            const int column = left - REACH + right;
            for (int y = 0; y < 4; ++y) {
#pragma unroll
                for (int x = 0; x < 6; ++x) {
                    const int pixel = tex2D<unsigned short>(reference, column + x, down + y);
                    if (x < 4) {
                        first += abs(pixel - block[4 * y + x]);
                    }
                    if (x > 0 && x < 5) {
                        second += abs(pixel - block[4 * y + x - 1]);
                    }
                    if (x > 1) {
                        third += abs(pixel - block[4 * y + x - 2]);
                    }
                }
            }
            staged[place] = first;
            staged[place + 1] = second;
            staged[place + 2] = third;
            right += 3;
            if (right >= SIDE) {
                right -= SIDE;
                ++down;
            }
        }
    }
    __syncthreads();

    if (threadIdx.x < 32 && inside) {
        const int macroblock = (blockIdx.y / 4) * macroblocks_across + blockIdx.x / 4;
        const int in_macroblock = 4 * (blockIdx.y & 3) + (blockIdx.x & 3);
        ushort4 *const out = reinterpret_cast<ushort4 *>(sads + (macroblock * 16 + in_macroblock) * PLACES_PADDED);
        for (int quad = threadIdx.x; quad < PLACES_PADDED / 4; quad += 32) {
            out[quad] = staged_quads[quad];
        }
    }
}
