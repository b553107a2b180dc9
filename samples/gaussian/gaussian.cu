// Gaussian elimination without pivoting: makes a system of linear equations upper triangular, one column each pair of
// launches. Stands for gaussian of Rodinia (R2D2, RegLess).
// Written for this project from the algorithm. Every launch covers the whole matrix and most of it does nothing as the
// elimination goes on; the second kernel has blocks of 4 x 4 threads, half a warp each.

// The factor of every row below the pivot.
extern "C" __global__ void gaussian_factors(float *factors, const float *matrix, int size, int step) {
    const int below = blockIdx.x * blockDim.x + threadIdx.x;
    if (below >= size - 1 - step) {
        return;
    }
    const int row = step + 1 + below;
    factors[size * row + step] = matrix[size * row + step] / matrix[size * step + step];
}

// Subtracts the pivot row from the rows below, right-hand side included. x runs over rows, y over columns.
extern "C" __global__ void gaussian_eliminate(const float *factors, float *matrix, float *right_side, int size,
                                              int step) {
    const int below = blockIdx.x * blockDim.x + threadIdx.x;
    const int beyond = blockIdx.y * blockDim.y + threadIdx.y;
    if (below >= size - 1 - step || beyond >= size - step) {
        return;
    }
    const int row = step + 1 + below;
    const int column = step + beyond;
    matrix[size * row + column] -= factors[size * row + step] * matrix[size * step + column];
    if (beyond == 0) {
        right_side[row] -= factors[size * row + step] * right_side[step];
    }
}
