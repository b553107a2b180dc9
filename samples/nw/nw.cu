// Needleman-Wunsch alignment of two sequences: fills the table of best scores by diagonals of 16 x 16 tiles.
// Stands for nw of Rodinia (Composite, RegLess).
// Written for this project from the algorithm. One launch a diagonal of tiles, first growing, then shrinking; a block
// of 16 threads, half a warp, moves over its tile in shared memory along anti-diagonals, so 1, 2, .. 16, .. 2, 1 of
// them work. Row 0 and column 0 of the table hold the penalties of leading gaps.

constexpr int TILE = 16;

// Fills the tile whose first inner cell is (row, column) of the table.
__device__ __forceinline__ void fill_tile(const int *reference, int *scores, int columns, int penalty, int row,
                                          int column) {
    __shared__ int score[TILE + 1][TILE + 1];
    __shared__ int match[TILE][TILE];

    const int tx = threadIdx.x;
    const int inner = columns * row + column + tx;

    for (int ty = 0; ty < TILE; ++ty) {
        match[ty][tx] = reference[inner + columns * ty];
    }
    // What the neighbours above, left and on the corner left.
    if (tx == 0) {
        score[0][0] = scores[inner - columns - 1];
    }
    score[tx + 1][0] = scores[columns * (row + tx) + column - 1];
    score[0][tx + 1] = scores[inner - columns];
    __syncthreads();

    for (int diagonal = 0; diagonal < TILE; ++diagonal) {
        if (tx <= diagonal) {
            const int x = tx + 1;
            const int y = diagonal - tx + 1;
            score[y][x] = max(score[y - 1][x - 1] + match[y - 1][x - 1],
                              max(score[y][x - 1] - penalty, score[y - 1][x] - penalty));
        }
        __syncthreads();
    }
    for (int diagonal = TILE - 2; diagonal >= 0; --diagonal) {
        if (tx <= diagonal) {
            const int x = tx + TILE - diagonal;
            const int y = TILE - tx;
            score[y][x] = max(score[y - 1][x - 1] + match[y - 1][x - 1],
                              max(score[y][x - 1] - penalty, score[y - 1][x] - penalty));
        }
        __syncthreads();
    }

    for (int ty = 0; ty < TILE; ++ty) {
        scores[inner + columns * ty] = score[ty + 1][tx + 1];
    }
}

// Diagonal number `diagonal` (1 = the tile in the corner) of the upper left half: one block a tile.
extern "C" __global__ void nw_upper_left(const int *reference, int *scores, int columns, int penalty, int diagonal) {
    const int tile_column = blockIdx.x;
    const int tile_row = diagonal - 1 - blockIdx.x;
    fill_tile(reference, scores, columns, penalty, 1 + TILE * tile_row, 1 + TILE * tile_column);
}

// The lower right half; its diagonal number 1 is the last tile.
extern "C" __global__ void nw_lower_right(const int *reference, int *scores, int columns, int penalty, int diagonal,
                                          int tiles) {
    const int tile_column = blockIdx.x + tiles - diagonal;
    const int tile_row = tiles - 1 - blockIdx.x;
    fill_tile(reference, scores, columns, penalty, 1 + TILE * tile_row, 1 + TILE * tile_column);
}
