// Blurs an image by a recursive filter of second order that comes close to a Gaussian (Deriche): down every column
// and up again, with a transposition between the two directions of the image.
// Stands for recursiveGaussian of the CUDA SDK (composite paper: RGS), written for this project from the algorithm.
// The filter has a column a thread, blocks of 64 threads; the transposition goes through padded shared tiles of
// 16x16. Pixels are four packed bytes.

constexpr int TILE = 16;

struct Filter {
    float a0, a1, a2, a3; // weights of inputs, forward then backward
    float b1, b2;         // weights of earlier outputs
    float forward_start;  // output over input for a constant image
    float backward_start;
};

__device__ __forceinline__ float4 unpacked(unsigned pixel) {
    return make_float4(pixel & 0xff, pixel >> 8 & 0xff, pixel >> 16 & 0xff, pixel >> 24);
}

__device__ __forceinline__ unsigned packed_channel(float value, int place) {
    return (unsigned)fminf(fmaxf(value + 0.5f, 0.0f), 255.0f) << place;
}

__device__ __forceinline__ unsigned packed(float4 colour) {
    return packed_channel(colour.x, 0) | packed_channel(colour.y, 8) | packed_channel(colour.z, 16) |
           packed_channel(colour.w, 24);
}

__device__ __forceinline__ float4 operator*(float4 colour, float factor) {
    return make_float4(colour.x * factor, colour.y * factor, colour.z * factor, colour.w * factor);
}

__device__ __forceinline__ float4 operator+(float4 a, float4 b) {
    return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

// Leaves the forward pass as floats in `forward`, and the sum of both passes in `result`.
extern "C" __global__ void recursive_gaussian(const unsigned *image, float4 *forward, unsigned *result, int width,
                                              int height, Filter filter) {
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (column >= width) {
        return;
    }
    image += column;
    forward += column;
    result += column;

    float4 input_before = unpacked(image[0]);
    float4 output_before = input_before * filter.forward_start;
    float4 output_before_that = output_before;
    for (int row = 0; row < height; ++row) {
        const float4 input = unpacked(image[row * width]);
        const float4 output = input * filter.a0 + input_before * filter.a1 + output_before * -filter.b1 +
                              output_before_that * -filter.b2;
        forward[row * width] = output;
        input_before = input;
        output_before_that = output_before;
        output_before = output;
    }

    // The way back sees the two inputs below the pixel.
    float4 input_below = unpacked(image[(height - 1) * width]);
    float4 input_below_that = input_below;
    output_before = input_below * filter.backward_start;
    output_before_that = output_before;
    for (int row = height - 1; row >= 0; --row) {
        const float4 output = input_below * filter.a2 + input_below_that * filter.a3 + output_before * -filter.b1 +
                              output_before_that * -filter.b2;
        input_below_that = input_below;
        input_below = unpacked(image[row * width]);
        output_before_that = output_before;
        output_before = output;
        result[row * width] = packed(forward[row * width] + output);
    }
}

// Blocks of 16x16 threads.
extern "C" __global__ void transpose(const unsigned *image, unsigned *result, int width, int height) {
    __shared__ unsigned tile[TILE][TILE + 1];

    int x = blockIdx.x * TILE + threadIdx.x;
    int y = blockIdx.y * TILE + threadIdx.y;
    if (x < width && y < height) {
        tile[threadIdx.y][threadIdx.x] = image[y * width + x];
    }
    __syncthreads();

    x = blockIdx.y * TILE + threadIdx.x;
    y = blockIdx.x * TILE + threadIdx.y;
    if (x < height && y < width) {
        result[y * height + x] = tile[threadIdx.x][threadIdx.y];
    }
}
