// Nine-point convolution of an image with a fixed 3x3 mask; the border is left alone.
// Stands for 2DConvolution of PolyBench (R2D2: 2DC), written for this project from the algorithm.
// One pixel a thread, blocks of 32x8 threads, x along the rows; the grid covers the image, so its last blocks are
// partly idle and every thread on the border stores nothing.

extern "C" __global__ void convolution2d(int rows, int columns, const float *image, float *result) {
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;

    const float c11 = +0.2f, c21 = +0.5f, c31 = -0.8f;
    const float c12 = -0.3f, c22 = +0.6f, c32 = -0.9f;
    const float c13 = +0.4f, c23 = +0.7f, c33 = +0.1f;

    if (row > 0 && row < rows - 1 && column > 0 && column < columns - 1) {
        result[row * columns + column] = c11 * image[(row - 1) * columns + (column - 1)] +
                                         c12 * image[(row + 0) * columns + (column - 1)] +
                                         c13 * image[(row + 1) * columns + (column - 1)] +
                                         c21 * image[(row - 1) * columns + (column + 0)] +
                                         c22 * image[(row + 0) * columns + (column + 0)] +
                                         c23 * image[(row + 1) * columns + (column + 0)] +
                                         c31 * image[(row - 1) * columns + (column + 1)] +
                                         c32 * image[(row + 0) * columns + (column + 1)] +
                                         c33 * image[(row + 1) * columns + (column + 1)];
    }
}
