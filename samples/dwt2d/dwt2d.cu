// Forward wavelet transform of an image (the reversible 5/3 wavelet of JPEG 2000), after taking its pixels apart into
// colours. Stands for dwt2d of Rodinia (R2D2, Composite, RegLess).
// Written for this project from the algorithm. A block of 64 threads goes down a strip of 64 columns in windows of
// eight rows: rows are transformed in shared memory by all threads together, items being dealt out by division; then
// each thread transforms a column of the window. Three rows stay for the next window. Four bands are written one
// after the other: low-low, high-low (high along x), low-high, high-high.

constexpr int WIDTH = 64;                // of a strip; also the threads of a block
constexpr int STEP = 8;                  // rows by which a window moves
constexpr int KEPT = 3;                  // rows left over from the window above
constexpr int BEFORE = 2;                // columns needed left of a strip
constexpr int LINE = BEFORE + WIDTH + 1; // and one right of it
constexpr int LINES = KEPT + STEP;
constexpr int PIXELS = 256; // of a block that takes pixels apart

// Interleaved bytes to three planes of signed numbers. Bytes go through shared memory, so that global memory is read
// in order.
extern "C" __global__ void dwt_split(const unsigned char *pixels, int *red, int *green, int *blue, int count) {
    __shared__ unsigned char staged[3 * PIXELS];
    const int tx = threadIdx.x;
    const int first = 3 * PIXELS * blockIdx.x;
    for (int part = 0; part < 3; ++part) {
        const int byte = first + part * PIXELS + tx;
        if (byte < 3 * count) {
            staged[part * PIXELS + tx] = pixels[byte];
        }
    }
    __syncthreads();
    const int pixel = blockIdx.x * PIXELS + tx;
    if (pixel < count) {
        red[pixel] = static_cast<int>(staged[3 * tx + 0]) - 128;
        green[pixel] = static_cast<int>(staged[3 * tx + 1]) - 128;
        blue[pixel] = static_cast<int>(staged[3 * tx + 2]) - 128;
    }
}

// An image goes on beyond its border as its mirror image.
__device__ __forceinline__ int mirrored(int index, int size) {
    index = index < 0 ? -index : index;
    index = index >= size ? 2 * (size - 1) - index : index;
    return max(index, 0);
}

// What a neighbour on each side predicts of a high coefficient, and what two high ones add to a low one.
__device__ __forceinline__ int predicted(int before, int after) {
    return (before + after) >> 1;
}
__device__ __forceinline__ int updated(int before, int after) {
    return (before + after + 2) >> 2;
}

// Loads `count` rows of the strip from `first_row` on into lines from `first_line` on, and transforms them along x.
// Even columns of a line end up low, odd ones high.
__device__ __forceinline__ void load_rows(int lines[LINES][LINE], const int *image, int width, int height,
                                          int first_row, int first_line, int count) {
    const int tx = threadIdx.x;
    const int first_column = blockIdx.x * WIDTH - BEFORE;
    for (int item = tx; item < count * LINE; item += WIDTH) {
        const int line = item / LINE;
        const int place = item % LINE;
        const int row = mirrored(first_row + line, height);
        const int column = mirrored(first_column + place, width);
        lines[first_line + line][place] = image[row * width + column];
    }
    __syncthreads();
    for (int item = tx; item < count * (WIDTH / 2 + 1); item += WIDTH) {
        const int line = first_line + item / (WIDTH / 2 + 1);
        const int odd = 2 * (item % (WIDTH / 2 + 1)) + 1;
        lines[line][odd] -= predicted(lines[line][odd - 1], lines[line][odd + 1]);
    }
    __syncthreads();
    for (int item = tx; item < count * (WIDTH / 2); item += WIDTH) {
        const int line = first_line + item / (WIDTH / 2);
        const int even = 2 * (item % (WIDTH / 2)) + 2;
        lines[line][even] += updated(lines[line][even - 1], lines[line][even + 1]);
    }
    __syncthreads();
}

// A block's strip begins at row blockIdx.y * 8 * steps.
extern "C" __global__ void dwt_forward53(const int *image, int *bands, int width, int height, int steps) {
    __shared__ int lines[LINES][LINE];

    const int tx = threadIdx.x;
    const int column = blockIdx.x * WIDTH + tx;
    const int place = BEFORE + tx;
    const int low_width = (width + 1) / 2;
    const int low_height = (height + 1) / 2;
    const int high_width = width / 2;

    // Where this thread's column goes: its low and its high rows.
    const bool high_column = column % 2 == 1;
    int *low_rows = high_column ? bands + low_width * low_height : bands;
    const int band_width = high_column ? high_width : low_width;
    int *high_rows = bands + width * low_height + (high_column ? low_width * (height / 2) : 0);
    low_rows += column / 2;
    high_rows += column / 2;

    // Line 0 is to hold the high row above the strip, lines 1 and 2 the strip's first two rows as they are.
    int row = blockIdx.y * STEP * steps;
    load_rows(lines, image, width, height, row - 2, 0, 4);
    const int above = lines[1][place] - predicted(lines[0][place], lines[2][place]);
    const int first = lines[2][place];
    const int second = lines[3][place];
    lines[0][place] = above;
    lines[1][place] = first;
    lines[2][place] = second;
    __syncthreads();

    for (int step = 0; step < steps && row < height; ++step) {
        load_rows(lines, image, width, height, row + 2, KEPT, STEP);
        for (int line = 2; line < LINES - 1; line += 2) {
            lines[line][place] -= predicted(lines[line - 1][place], lines[line + 1][place]);
        }
        for (int line = 1; line < LINES - 2; line += 2) {
            lines[line][place] += updated(lines[line - 1][place], lines[line + 1][place]);
        }

        if (column < width) {
            for (int pair = 0; pair < STEP / 2; ++pair) {
                const int band_row = row / 2 + pair;
                if (2 * band_row < height) {
                    low_rows[band_row * band_width] = lines[1 + 2 * pair][place];
                }
                if (2 * band_row + 1 < height) {
                    high_rows[band_row * band_width] = lines[2 + 2 * pair][place];
                }
            }
        }

        lines[0][place] = lines[LINES - 3][place];
        lines[1][place] = lines[LINES - 2][place];
        lines[2][place] = lines[LINES - 1][place];
        row += STEP;
        __syncthreads();
    }
}
