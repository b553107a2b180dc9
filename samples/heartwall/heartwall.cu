// Follows points on a moving wall through the frames of a film: looks for each point's template around its last place
// by normalised cross-correlation. Stands for heartwall of Rodinia (R2D2, RegLess).
// Written for this project from the algorithm, smaller in its sides. A block of 256 threads owns a point and goes
// through a dozen phases between barriers: strided loops over cells whose rows and columns come from divisions,
// running sums with one thread a column or row, a search for the maximum that ends in one thread.

constexpr int THREADS = 256;
constexpr int REACH = 8;                  // the template goes so far from its centre
constexpr int SIDE = 2 * REACH + 1;       // of the template
constexpr int SEARCH = 8;                 // so far may a point move between two frames
constexpr int OFFSETS = 2 * SEARCH + 1;   // places to try along an axis
constexpr int WINDOW = SIDE + 2 * SEARCH; // side of what is looked at
constexpr float CELLS = 1.0f * SIDE * SIDE;

struct Film {
    int rows;
    int columns;
    float memory; // how much of its template a point keeps from frame to frame
};
__constant__ Film film_layout;

// What a block writes down while it works, in global memory.
struct Scratch {
    float window[WINDOW * WINDOW];
    float sums[WINDOW * WINDOW];
    float square_sums[WINDOW * WINDOW];
    float boxes[OFFSETS * WINDOW];
    float square_boxes[OFFSETS * WINDOW];
};

// Sums of SIDE cells below one another, from running sums along columns; one row for each row offset.
__device__ __forceinline__ float column_box(const float *running, int row, int column) {
    const float upper = row == 0 ? 0.0f : running[(row - 1) * WINDOW + column];
    return running[(row + SIDE - 1) * WINDOW + column] - upper;
}

// Sums of SIDE by SIDE cells, from running sums along rows of the above.
__device__ __forceinline__ float square_box(const float *running, int row, int column) {
    const float left = column == 0 ? 0.0f : running[row * WINDOW + column - 1];
    return running[row * WINDOW + column + SIDE - 1] - left;
}

// Cuts out the templates around the points' places in the first frame.
extern "C" __global__ void heartwall_start(const float *frame, const int *point_rows, const int *point_columns,
                                           float *templates) {
    const int point = blockIdx.x;
    const int top = point_rows[point] - REACH;
    const int left = point_columns[point] - REACH;
    for (int cell = threadIdx.x; cell < SIDE * SIDE; cell += THREADS) {
        const int row = cell / SIDE;
        const int column = cell % SIDE;
        templates[point * SIDE * SIDE + cell] = frame[(top + row) * film_layout.columns + left + column];
    }
}

// Finds every point in the next frame, moves it there and lets its template follow.
// Long: the phases share a dozen shared variables, and the benchmark has them in one kernel.
extern "C" __global__ void heartwall_track(const float *frame, int *point_rows, int *point_columns, float *templates,
                                           Scratch *scratch) {
    __shared__ float pattern[SIDE * SIDE];
    __shared__ float pattern_sums[SIDE];
    __shared__ float pattern_square_sums[SIDE];
    __shared__ float best_values[THREADS];
    __shared__ int best_offsets[THREADS];
    __shared__ float mean;
    __shared__ float deviation;
    __shared__ int new_row;
    __shared__ int new_column;

    const int tx = threadIdx.x;
    const int point = blockIdx.x;
    Scratch &own = scratch[point];
    const int old_row = point_rows[point];
    const int old_column = point_columns[point];
    const int top = old_row - REACH - SEARCH;
    const int left = old_column - REACH - SEARCH;

    // The template and the part of the frame that it is looked for in.
    for (int cell = tx; cell < SIDE * SIDE; cell += THREADS) {
        pattern[cell] = templates[point * SIDE * SIDE + cell];
    }
    for (int cell = tx; cell < WINDOW * WINDOW; cell += THREADS) {
        const int row = min(max(top + cell / WINDOW, 0), film_layout.rows - 1);
        const int column = min(max(left + cell % WINDOW, 0), film_layout.columns - 1);
        const float value = frame[row * film_layout.columns + column];
        own.window[cell] = value;
        own.sums[cell] = value;
        own.square_sums[cell] = value * value;
    }
    __syncthreads();

    // The template's mean and deviation.
    if (tx < SIDE) {
        float sum = 0.0f;
        float square_sum = 0.0f;
        for (int row = 0; row < SIDE; ++row) {
            const float value = pattern[row * SIDE + tx];
            sum += value;
            square_sum += value * value;
        }
        pattern_sums[tx] = sum;
        pattern_square_sums[tx] = square_sum;
    }
    __syncthreads();
    if (tx == 0) {
        float sum = 0.0f;
        float square_sum = 0.0f;
        for (int column = 0; column < SIDE; ++column) {
            sum += pattern_sums[column];
            square_sum += pattern_square_sums[column];
        }
        mean = sum / CELLS;
        deviation = sqrtf(square_sum - sum * mean);
    }

    // Running sums down the columns, then boxes of SIDE rows.
    if (tx < WINDOW) {
        for (int row = 1; row < WINDOW; ++row) {
            own.sums[row * WINDOW + tx] += own.sums[(row - 1) * WINDOW + tx];
            own.square_sums[row * WINDOW + tx] += own.square_sums[(row - 1) * WINDOW + tx];
        }
    }
    __syncthreads();
    for (int cell = tx; cell < OFFSETS * WINDOW; cell += THREADS) {
        const int row = cell / WINDOW;
        const int column = cell % WINDOW;
        own.boxes[cell] = column_box(own.sums, row, column);
        own.square_boxes[cell] = column_box(own.square_sums, row, column);
    }
    __syncthreads();

    // Running sums along the rows of those.
    if (tx < OFFSETS) {
        for (int column = 1; column < WINDOW; ++column) {
            own.boxes[tx * WINDOW + column] += own.boxes[tx * WINDOW + column - 1];
            own.square_boxes[tx * WINDOW + column] += own.square_boxes[tx * WINDOW + column - 1];
        }
    }
    __syncthreads();

    // The correlation at every offset; each thread remembers the best of its own.
    float best_value = -2.0f;
    int best_offset = 0;
    for (int offset = tx; offset < OFFSETS * OFFSETS; offset += THREADS) {
        const int row = offset / OFFSETS;
        const int column = offset % OFFSETS;
        float product_sum = 0.0f;
        for (int y = 0; y < SIDE; ++y) {
            for (int x = 0; x < SIDE; ++x) {
                product_sum += pattern[y * SIDE + x] * own.window[(row + y) * WINDOW + column + x];
            }
        }
        const float sum = square_box(own.boxes, row, column);
        const float square_sum = square_box(own.square_boxes, row, column);
        const float numerator = product_sum - mean * sum;
        const float denominator = sqrtf(square_sum - sum * sum / CELLS) * deviation;
        const float correlation = numerator / denominator;
        if (correlation > best_value) {
            best_value = correlation;
            best_offset = offset;
        }
    }
    best_values[tx] = best_value;
    best_offsets[tx] = best_offset;
    __syncthreads();

    if (tx == 0) {
        int best = 0;
        for (int thread = 1; thread < THREADS; ++thread) {
            if (best_values[thread] > best_values[best]) {
                best = thread;
            }
        }
        new_row = old_row + best_offsets[best] / OFFSETS - SEARCH;
        new_column = old_column + best_offsets[best] % OFFSETS - SEARCH;
        point_rows[point] = new_row;
        point_columns[point] = new_column;
    }
    __syncthreads();

    for (int cell = tx; cell < SIDE * SIDE; cell += THREADS) {
        const int row = min(max(new_row - REACH + cell / SIDE, 0), film_layout.rows - 1);
        const int column = min(max(new_column - REACH + cell % SIDE, 0), film_layout.columns - 1);
        templates[point * SIDE * SIDE + cell] = film_layout.memory * pattern[cell] +
                                                (1.0f - film_layout.memory) * frame[row * film_layout.columns + column];
    }
}
