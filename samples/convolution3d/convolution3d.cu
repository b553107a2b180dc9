// Convolution of a volume with a fixed 3x3x3 mask of fifteen taps, one plane a launch; the border is left alone.
// Stands for 3DConvolution of PolyBench (R2D2: 3DC), written for this project from the algorithm.
// One cell of plane `plane` a thread, blocks of 32x8 threads, x along the rows; depth - 2 launches.

extern "C" __global__ void convolution3d(int depth, int rows, int columns, const float *volume, float *result,
                                         int plane) {
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;

    const float c11 = +2.0f, c21 = +5.0f, c31 = -8.0f;
    const float c12 = -3.0f, c22 = +6.0f, c32 = -9.0f;
    const float c13 = +4.0f, c23 = +7.0f, c33 = +10.0f;

    if (plane < depth - 1 && row < rows - 1 && column < columns - 1 && plane > 0 && row > 0 && column > 0) {
        const int slice = rows * columns;
        result[plane * slice + row * columns + column] =
            c11 * volume[(plane - 1) * slice + (row - 1) * columns + (column - 1)] +
            c13 * volume[(plane + 1) * slice + (row - 1) * columns + (column - 1)] +
            c21 * volume[(plane - 1) * slice + (row - 1) * columns + (column - 1)] +
            c23 * volume[(plane + 1) * slice + (row - 1) * columns + (column - 1)] +
            c31 * volume[(plane - 1) * slice + (row - 1) * columns + (column - 1)] +
            c33 * volume[(plane + 1) * slice + (row - 1) * columns + (column - 1)] +
            c12 * volume[(plane + 0) * slice + (row - 1) * columns + (column + 0)] +
            c22 * volume[(plane + 0) * slice + (row + 0) * columns + (column + 0)] +
            c32 * volume[(plane + 0) * slice + (row + 1) * columns + (column + 0)] +
            c11 * volume[(plane - 1) * slice + (row - 1) * columns + (column + 1)] +
            c13 * volume[(plane + 1) * slice + (row - 1) * columns + (column + 1)] +
            c21 * volume[(plane - 1) * slice + (row + 0) * columns + (column + 1)] +
            c23 * volume[(plane + 1) * slice + (row + 0) * columns + (column + 1)] +
            c31 * volume[(plane - 1) * slice + (row + 1) * columns + (column + 1)] +
            c33 * volume[(plane + 1) * slice + (row + 1) * columns + (column + 1)];
    }
}
