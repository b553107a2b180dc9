// LU decomposition in place, without pivoting, by blocks of 16 x 16: the tile on the diagonal, then the strips right
// of it and below it, then everything that is left. Stands for lud of Rodinia (R2D2, DAC, RegLess).
// Written for this project from the algorithm. Three kernels a step with very different shapes: half a warp in one
// block; a warp whose halves work on different strips; 256 threads a tile. Grids shrink from step to step.

constexpr int TILE = 16;

// Decomposes the tile at (offset, offset): thread t owns column t of U and row t of L.
extern "C" __global__ void lud_diagonal(float *matrix, int size, int offset) {
    __shared__ float tile[TILE][TILE];
    const int tx = threadIdx.x;

    int index = offset * size + offset;
    for (int row = 0; row < TILE; ++row) {
        tile[row][tx] = matrix[index + tx];
        index += size;
    }
    __syncthreads();

    for (int pivot = 0; pivot < TILE - 1; ++pivot) {
        if (tx > pivot) {
            for (int k = 0; k < pivot; ++k) {
                tile[tx][pivot] -= tile[tx][k] * tile[k][pivot];
            }
            tile[tx][pivot] /= tile[pivot][pivot];
        }
        __syncthreads();
        if (tx > pivot) {
            for (int k = 0; k < pivot + 1; ++k) {
                tile[pivot + 1][tx] -= tile[pivot + 1][k] * tile[k][tx];
            }
        }
        __syncthreads();
    }

    // Row 0 is as it was.
    index = (offset + 1) * size + offset;
    for (int row = 1; row < TILE; ++row) {
        matrix[index + tx] = tile[row][tx];
        index += size;
    }
}

// Block b solves for tile b + 1 of the strip right of the diagonal tile (threads 0..15, a column each) and of the
// strip below it (threads 16..31, a row each).
extern "C" __global__ void lud_perimeter(float *matrix, int size, int offset) {
    __shared__ float diagonal[TILE][TILE];
    __shared__ float right[TILE][TILE];
    __shared__ float below[TILE][TILE];

    const int distance = (blockIdx.x + 1) * TILE;
    const bool first_half = threadIdx.x < TILE;
    const int lane = first_half ? threadIdx.x : threadIdx.x - TILE;

    // Each half loads half of the diagonal tile and one of the other tiles.
    const int diagonal_start = first_half ? 0 : TILE / 2;
    int index = (offset + diagonal_start) * size + offset;
    for (int row = diagonal_start; row < diagonal_start + TILE / 2; ++row) {
        diagonal[row][lane] = matrix[index + lane];
        index += size;
    }
    if (first_half) {
        index = offset * size + offset + distance;
        for (int row = 0; row < TILE; ++row) {
            right[row][lane] = matrix[index + lane];
            index += size;
        }
    } else {
        index = (offset + distance) * size + offset;
        for (int row = 0; row < TILE; ++row) {
            below[row][lane] = matrix[index + lane];
            index += size;
        }
    }
    __syncthreads();

    if (first_half) {
        for (int row = 1; row < TILE; ++row) {
            for (int k = 0; k < row; ++k) {
                right[row][lane] -= diagonal[row][k] * right[k][lane];
            }
        }
    } else {
        for (int column = 0; column < TILE; ++column) {
            for (int k = 0; k < column; ++k) {
                below[lane][column] -= below[lane][k] * diagonal[k][column];
            }
            below[lane][column] /= diagonal[column][column];
        }
    }
    __syncthreads();

    if (first_half) {
        index = (offset + 1) * size + offset + distance;
        for (int row = 1; row < TILE; ++row) {
            matrix[index + lane] = right[row][lane];
            index += size;
        }
    } else {
        index = (offset + distance) * size + offset;
        for (int row = 0; row < TILE; ++row) {
            matrix[index + lane] = below[row][lane];
            index += size;
        }
    }
}

// Subtracts from every tile that is left the product of its tiles in the two strips.
extern "C" __global__ void lud_internal(float *matrix, int size, int offset) {
    __shared__ float right[TILE][TILE];
    __shared__ float below[TILE][TILE];

    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int row = offset + (blockIdx.y + 1) * TILE;
    const int column = offset + (blockIdx.x + 1) * TILE;

    right[ty][tx] = matrix[(offset + ty) * size + column + tx];
    below[ty][tx] = matrix[(row + ty) * size + offset + tx];
    __syncthreads();

    float sum = 0.0f;
    for (int k = 0; k < TILE; ++k) {
        sum += below[ty][k] * right[k][tx];
    }
    matrix[(row + ty) * size + column + tx] -= sum;
}
