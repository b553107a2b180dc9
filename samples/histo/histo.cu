// A histogram of 64 rows of 1024 bins whose counts stop at 255, of an image whose values gather around the middle.
// Stands for histo of Parboil (R2D2, DAC).
// Written for this project from the algorithm. Four kernels: estimate which rows of the histogram are busy; bring the
// image into an order of (row, bin) codes; count busy rows in shared memory, one row of blocks each, and whatever
// falls outside by atomics in global memory; add everything up. Counting is by atomic additions on addresses from data.

constexpr int THREADS = 512;
constexpr int BINS = 1024; // in a row of the histogram
constexpr int ROWS = 64;
constexpr int UNROLL = 16; // image rows of a block of histo_intermediates
constexpr unsigned MOST = 255;

// Mean and deviation of each block's part of the image; the busy rows are those within ten deviations for any of them.
extern "C" __global__ void histo_prescan(const unsigned *image, int size, unsigned *least_row, unsigned *most_row) {
    __shared__ float sums[THREADS];
    __shared__ float square_sums[THREADS];

    const int stride = size / gridDim.x;
    const int first = blockIdx.x * stride;
    const int end = min(first + stride, size);
    float sum = 0.0f;
    for (int pixel = first + threadIdx.x; pixel < end; pixel += THREADS) {
        sum += image[pixel];
    }
    sums[threadIdx.x] = sum;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) {
            sums[threadIdx.x] += sums[threadIdx.x + half];
        }
        __syncthreads();
    }
    const float mean = sums[0] / stride;

    float square_sum = 0.0f;
    for (int pixel = first + threadIdx.x; pixel < end; pixel += THREADS) {
        const float difference = image[pixel] - mean;
        square_sum += difference * difference;
    }
    square_sums[threadIdx.x] = square_sum;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) {
            square_sums[threadIdx.x] += square_sums[threadIdx.x + half];
        }
        __syncthreads();
    }

    if (threadIdx.x == 0) {
        const float reach = 10.0f * sqrtf(square_sums[0] / stride);
        const int least = static_cast<int>(mean - reach) / BINS;
        const int most = static_cast<int>(mean + reach) / BINS;
        atomicMin(least_row, static_cast<unsigned>(max(least, 0)));
        atomicMax(most_row, static_cast<unsigned>(min(most, ROWS - 1)));
    }
}

// Codes of two pixels a thread and row: bin in the low 16 bits, row of the histogram above.
extern "C" __global__ void histo_intermediates(const uint2 *image, int height, int pitch, uint2 *codes) {
    const int pairs = blockDim.x;
    int row = UNROLL * blockIdx.x;
#pragma unroll
    for (int step = 0; step < UNROLL; ++step) {
        if (row < height) {
            const uint2 pair = image[row * pitch + threadIdx.x];
            uint2 code;
            code.x = (pair.x / BINS) << 16 | pair.x % BINS;
            code.y = (pair.y / BINS) << 16 | pair.y % BINS;
            codes[row * pairs + threadIdx.x] = code;
        }
        ++row;
    }
}

// Block (x, 0) counts its share of what lies outside the busy rows; block (x, y) its share of busy row y - 1.
extern "C" __global__ void histo_main(const uint2 *codes, int pairs, const unsigned *least_row,
                                      const unsigned *most_row, unsigned *block_counts, unsigned *global_counts) {
    extern __shared__ unsigned counts[];

    const unsigned least = *least_row;
    const unsigned most = *most_row;
    const int stride = gridDim.x * blockDim.x;
    const int start = blockIdx.x * blockDim.x + threadIdx.x;

    if (blockIdx.y == 0) {
        for (int index = start; index < pairs; index += stride) {
            const uint2 code = codes[index];
            const unsigned row_x = code.x >> 16;
            const unsigned row_y = code.y >> 16;
            if (row_x < least || row_x > most) {
                atomicAdd(&global_counts[row_x * BINS + (code.x & 0xffff)], 1u);
            }
            if (row_y < least || row_y > most) {
                atomicAdd(&global_counts[row_y * BINS + (code.y & 0xffff)], 1u);
            }
        }
        return;
    }

    const unsigned row = least + blockIdx.y - 1;
    if (row > most) {
        return;
    }
    for (int bin = threadIdx.x; bin < BINS; bin += blockDim.x) {
        counts[bin] = 0;
    }
    __syncthreads();
    for (int index = start; index < pairs; index += stride) {
        const uint2 code = codes[index];
        if (code.x >> 16 == row) {
            atomicAdd(&counts[code.x & 0xffff], 1u);
        }
        if (code.y >> 16 == row) {
            atomicAdd(&counts[code.y & 0xffff], 1u);
        }
    }
    __syncthreads();
    for (int bin = threadIdx.x; bin < BINS; bin += blockDim.x) {
        block_counts[(blockIdx.x * ROWS + row) * BINS + bin] = counts[bin];
    }
}

// Adds up what the blocks counted, four bins a thread, and stops at 255. Leaves zeros in what was added.
extern "C" __global__ void histo_final(const unsigned *least_row, const unsigned *most_row, uint4 *block_counts,
                                       int blocks, uint4 *global_counts, uchar4 *histogram) {
    constexpr int QUADS = ROWS * BINS / 4;
    const unsigned least = *least_row;
    const unsigned most = *most_row;
    for (int quad = blockIdx.x * blockDim.x + threadIdx.x; quad < QUADS; quad += gridDim.x * blockDim.x) {
        uint4 sum = global_counts[quad];
        global_counts[quad] = {0, 0, 0, 0};
        const unsigned row = quad / (BINS / 4);
        if (row >= least && row <= most) {
            for (int block = 0; block < blocks; ++block) {
                const uint4 part = block_counts[block * QUADS + quad];
                block_counts[block * QUADS + quad] = {0, 0, 0, 0};
                sum.x += part.x;
                sum.y += part.y;
                sum.z += part.z;
                sum.w += part.w;
            }
        }
        uchar4 stopped;
        stopped.x = min(sum.x, MOST);
        stopped.y = min(sum.y, MOST);
        stopped.z = min(sum.z, MOST);
        stopped.w = min(sum.w, MOST);
        histogram[quad] = stopped;
    }
}
