// A sparse matrix times a vector, the matrix in jagged diagonal storage: rows sorted by length, then stored column by
// column. Stands for spmv of Parboil (R2D2, DAC).
// Written for this project from the algorithm. One thread a row, blocks of 192 threads; the 32 rows of a warp have the
// same (padded) length, so warps do not diverge but differ from one another. Starts of diagonals and lengths are in
// constant memory; the vector is gathered.
// nvcc: --use_fast_math

constexpr int MOST_DIAGONALS = 1024;
constexpr int MOST_GROUPS = 1024;
constexpr int GROUP = 32;

__constant__ int diagonal_starts[MOST_DIAGONALS];
__constant__ int group_lengths[MOST_GROUPS];

extern "C" __global__ void spmv_jds(float *result, const float *values, const int *columns, const int *row_numbers,
                                    const float *vector, int rows) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows) {
        const int length = group_lengths[row / GROUP];
        float sum = 0.0f;
        for (int k = 0; k < length; ++k) {
            const int element = diagonal_starts[k] + row;
            sum += values[element] * vector[columns[element]];
        }
        result[row_numbers[row]] = sum;
    }
}
