// Cheapest path from the top to the bottom of a grid of costs, moving straight or diagonally down: several rows
// in one launch. Written for this project from the algorithm of Rodinia's pathfinder. A block of 256 threads
// (1024 in DARSIE's Table 1) keeps one row of running sums in shared memory with a halo of `rows` cells on each side;
// each row it steps spoils one more cell of the halo.

template <int BLOCK>
__device__ __forceinline__ void cheapest_sums(int rows, const int *wall, const int *source, int *results, int columns,
                                              int first_row, int halo) {
    __shared__ int previous[BLOCK];
    __shared__ int result[BLOCK];

    const int tx = threadIdx.x;
    const int inner = BLOCK - 2 * halo;
    const int first_column = inner * blockIdx.x - halo;
    const int column = first_column + tx;
    const bool inside = column >= 0 && column < columns;

    const int leftmost = max(0, -first_column);
    const int rightmost = min(BLOCK - 1, columns - 1 - first_column);
    const int left = max(tx - 1, leftmost);
    const int right = min(tx + 1, rightmost);

    if (inside) {
        previous[tx] = source[column];
    }
    __syncthreads();

    bool computed = false;
    for (int step = 0; step < rows; ++step) {
        computed = tx > step && tx < BLOCK - 1 - step && inside;
        if (computed) {
            const int cheapest = min(min(previous[left], previous[tx]), previous[right]);
            result[tx] = cheapest + wall[columns * (first_row + step) + column];
        }
        __syncthreads();
        if (step == rows - 1) {
            break;
        }
        if (computed) {
            previous[tx] = result[tx];
        }
        __syncthreads();
    }

    if (computed) {
        results[column] = result[tx];
    }
}

extern "C" __global__ void pathfinder(int rows, const int *wall, const int *source, int *results, int columns,
                                      int first_row, int halo) {
    cheapest_sums<256>(rows, wall, source, results, columns, first_row, halo);
}

extern "C" __global__ void pathfinder_1024(int rows, const int *wall, const int *source, int *results, int columns,
                                           int first_row, int halo) {
    cheapest_sums<1024>(rows, wall, source, results, columns, first_row, halo);
}
