// Convolution of an image with a separable filter of 17 taps, the image read through a texture: along the rows, then
// along the columns.
// Stands for convolutionTexture of the CUDA SDK (DARSIE: CONVTEX, the composite paper: CT), written for this project
// from the algorithm. One pixel a thread, blocks of 16x12 threads; beyond the image the texture repeats its edge. The
// filter is in constant memory.

constexpr int RADIUS = 8;

__constant__ float filter[2 * RADIUS + 1];

extern "C" __global__ void texture_rows(float *result, int width, int height, cudaTextureObject_t image) {
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (column >= width || row >= height) {
        return;
    }

    const float x = column + 0.5f;
    const float y = row + 0.5f;
    float sum = 0.0f;
    for (int tap = -RADIUS; tap <= RADIUS; ++tap) {
        sum += tex2D<float>(image, x + tap, y) * filter[RADIUS - tap];
    }
    result[row * width + column] = sum;
}

extern "C" __global__ void texture_columns(float *result, int width, int height, cudaTextureObject_t image) {
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (column >= width || row >= height) {
        return;
    }

    const float x = column + 0.5f;
    const float y = row + 0.5f;
    float sum = 0.0f;
    for (int tap = -RADIUS; tap <= RADIUS; ++tap) {
        sum += tex2D<float>(image, x, y + tap) * filter[RADIUS - tap];
    }
    result[row * width + column] = sum;
}
