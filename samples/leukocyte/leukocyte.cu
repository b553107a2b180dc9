// Finds white blood cells in a frame of a film, then computes the field that their outlines are tracked in.
// Stands for leukocyte of Rodinia (RegLess).
// Written for this project from the algorithm. A block a column of pixels samples the gradient along seven circles
// (their scores are mean^2 / variance), a thread a pixel takes the greatest score within a disc, and a block of 320
// threads a cell diffuses the edge map of its surroundings in shared memory, with eight arc tangents a pixel, partly
// in double precision as the benchmark's constants make it, until the mean change is small. The benchmark reads
// gradients and scores through textures; here they are read-only loads.

constexpr int SAMPLES = 150; // on a circle
constexpr int CIRCLES = 7;
constexpr int MARGIN = 22; // no circle leaves the frame further inside
constexpr int DISC = 25;   // side of the square around the disc
constexpr int THREADS = 320;
constexpr int FOLD = 256; // the greatest power of two below
constexpr int MOST_PIXELS = 41 * 81;

__constant__ float sines[SAMPLES];
__constant__ float cosines[SAMPLES];
__constant__ int circle_x[CIRCLES * SAMPLES];
__constant__ int circle_y[CIRCLES * SAMPLES];
__constant__ float disc[DISC * DISC]; // 1 inside, 0 outside

// The best score of a circle around each pixel; frames are stored by columns of `rows` pixels.
extern "C" __global__ void leukocyte_score(const float *__restrict__ gradient_x, const float *__restrict__ gradient_y,
                                           float *scores, int rows) {
    const int column = blockIdx.x + MARGIN;
    const int row = threadIdx.x + MARGIN;
    float best = 0.0f;
    for (int circle = 0; circle < CIRCLES; ++circle) {
        float sum = 0.0f;
        float mean = 0.0f;
        float squares = 0.0f; // of deviations, by Welford's recurrence
        for (int sample = 0; sample < SAMPLES; ++sample) {
            const int x = column + circle_x[circle * SAMPLES + sample];
            const int y = row + circle_y[circle * SAMPLES + sample];
            const int here = x * rows + y;
            const float outward = gradient_x[here] * cosines[sample] + gradient_y[here] * sines[sample];
            sum += outward;
            const float deviation = outward - mean;
            mean += deviation / (sample + 1);
            squares += deviation * (outward - mean);
        }
        mean = sum / SAMPLES;
        const float variance = squares / (SAMPLES - 1);
        best = fmaxf(best, mean * mean / variance);
    }
    scores[column * rows + row] = best;
}

// The greatest score in the disc around each pixel, stored by rows.
extern "C" __global__ void leukocyte_dilate(const float *__restrict__ scores, float *dilated, int rows, int columns) {
    const int pixel = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = pixel % rows;
    const int column = pixel / rows;
    float greatest = 0.0f;
    for (int i = 0; i < DISC; ++i) {
        const int y = row + i - DISC / 2;
        if (y < 0 || y >= rows) {
            continue;
        }
        for (int j = 0; j < DISC; ++j) {
            const int x = column + j - DISC / 2;
            if (x >= 0 && x < columns && disc[i * DISC + j] != 0.0f) {
                const float score = scores[x * rows + y];
                if (score > greatest) {
                    greatest = score;
                }
            }
        }
    }
    dilated[row * columns + column] = greatest;
}

// A step function whose edge is smooth. Its constants are of double precision, as in the benchmark.
__device__ __forceinline__ float step(float x) { return atanf(x) * 0.318309886183790672 + 0.5; }

// One round of diffusion at a pixel: each of eight neighbours pulls by its difference, more so along the motion.
__device__ __forceinline__ float diffused(const float *field, float edge, int row, int column, int rows, int columns,
                                          float vx, float vy, float sharpness) {
    const int above = row == 0 ? 0 : row - 1;
    const int below = row == rows - 1 ? rows - 1 : row + 1;
    const int left = column == 0 ? 0 : column - 1;
    const int right = column == columns - 1 ? columns - 1 : column + 1;

    const float old = field[row * columns + column];
    const float up = field[above * columns + column] - old;
    const float down = field[below * columns + column] - old;
    const float west = field[row * columns + left] - old;
    const float east = field[row * columns + right] - old;
    const float up_east = field[above * columns + right] - old;
    const float down_east = field[below * columns + right] - old;
    const float up_west = field[above * columns + left] - old;
    const float down_west = field[below * columns + left] - old;

    const float pull = step(up * -vy * sharpness) * up + step(down * vy * sharpness) * down +
                       step(west * -vx * sharpness) * west + step(east * vx * sharpness) * east +
                       step(up_east * (vx - vy) * sharpness) * up_east +
                       step(down_east * (vx + vy) * sharpness) * down_east +
                       step(up_west * (-vx - vy) * sharpness) * up_west +
                       step(down_west * (-vx + vy) * sharpness) * down_west;
    float value = old + (0.5 / 5.0) * pull;
    value -= (1.0 / 5.0) * edge * (value - edge);
    return value;
}

// The sum of a number of each thread, for all of them.
__device__ __forceinline__ float block_sum(float *buffer, float value) {
    const int thread = threadIdx.x;
    buffer[thread] = value;
    __syncthreads();
    if (thread >= FOLD) {
        buffer[thread - FOLD] += buffer[thread];
    }
    __syncthreads();
    for (int half = FOLD / 2; half > 0; half /= 2) {
        if (thread < half) {
            buffer[thread] += buffer[thread + half];
        }
        __syncthreads();
    }
    return buffer[0];
}

__device__ __forceinline__ void copy_pixels(const float *from, float *to, int pixels, int columns) {
    for (int pixel = threadIdx.x; pixel < pixels; pixel += THREADS) {
        const int row = pixel / columns;
        const int column = pixel % columns;
        to[row * columns + column] = from[row * columns + column];
    }
}

// The field of each cell, a block each. `cells` has three numbers a cell: where its pixels start, rows, columns.
extern "C" __global__ void leukocyte_track(float *fields, const float *edges, const int *cells, float vx, float vy,
                                           float smoothness, int most_rounds, float enough, int *rounds) {
    __shared__ float field[MOST_PIXELS];
    __shared__ float buffer[THREADS];
    __shared__ int converged;

    const int thread = threadIdx.x;
    const int rows = cells[3 * blockIdx.x + 1];
    const int columns = cells[3 * blockIdx.x + 2];
    float *own_field = fields + cells[3 * blockIdx.x];
    const float *edge = edges + cells[3 * blockIdx.x];
    const int turns = (rows * columns + THREADS - 1) / THREADS;

    copy_pixels(own_field, field, rows * columns, columns);
    if (thread == 0) {
        converged = 0;
    }
    __syncthreads();

    // Rows by a product and columns by a running remainder, since divisions would take longer than the rest.
    const float one_column = 1.0f / columns;
    const int first_column = thread % columns;
    const int columns_a_turn = THREADS % columns;
    const float sharpness = 1.0 / smoothness;
    int round = 0;
    while (!converged && round < most_rounds) {
        float change = 0.0f;
        int row = 0;
        int column = first_column - columns_a_turn;
        for (int turn = 0; turn < turns; ++turn) {
            const int old_row = row;
            const int old_column = column;
            row = (thread + turn * THREADS + 0.5f) * one_column;
            column += columns_a_turn;
            if (column >= columns) {
                column -= columns;
            }
            float value = 0.0f;
            float before = 0.0f;
            if (row < rows) {
                before = field[row * columns + column];
                value = diffused(field, edge[row * columns + column], row, column, rows, columns, vx, vy, sharpness);
            }
            // A turn's values wait until no thread needs the old ones; the benchmark omits this barrier.
            __syncthreads();
            if (turn > 0 && old_row < rows) {
                field[old_row * columns + old_column] = buffer[thread];
            }
            if (turn < turns - 1) {
                buffer[thread] = value;
            } else if (row < rows) {
                field[row * columns + column] = value;
            }
            change += fabsf(value - before);
            __syncthreads();
        }

        const float sum = block_sum(buffer, change);
        if (thread == 0 && sum / (rows * columns) < enough) {
            converged = 1;
        }
        __syncthreads();
        ++round;
    }

    copy_pixels(field, own_field, rows * columns, columns);
    if (thread == 0) {
        rounds[blockIdx.x] = round;
    }
}
