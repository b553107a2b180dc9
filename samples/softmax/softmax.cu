// Softmax of the rows of a matrix: exponentials over their sum, with the row's maximum taken off first.
// Stands for today's attention and classifier layers (no paper's benchmark).
// One row a block of 256 threads, any number of columns: the row is read three times. Maximum and sum go through a
// shuffle tree in every warp, then through shared memory and the same tree in the first warp.

constexpr int WARP = 32;
constexpr unsigned ALL_LANES = 0xffffffffu;

struct Maximum {
    __device__ __forceinline__ float operator()(float a, float b) const { return fmaxf(a, b); }
};

struct Sum {
    __device__ __forceinline__ float operator()(float a, float b) const { return a + b; }
};

// Combines one value of every thread of the block; every thread gets the result.
template <class Combine> __device__ __forceinline__ float of_block(float value, float neutral, Combine combine) {
    __shared__ float of_warp[WARP];

    const int lane = threadIdx.x % WARP;
    const int warp = threadIdx.x / WARP;
    for (int distance = WARP / 2; distance > 0; distance /= 2) {
        value = combine(value, __shfl_xor_sync(ALL_LANES, value, distance));
    }
    if (lane == 0) {
        of_warp[warp] = value;
    }
    __syncthreads();
    if (warp == 0) {
        value = lane < blockDim.x / WARP ? of_warp[lane] : neutral;
        for (int distance = WARP / 2; distance > 0; distance /= 2) {
            value = combine(value, __shfl_xor_sync(ALL_LANES, value, distance));
        }
        if (lane == 0) {
            of_warp[0] = value;
        }
    }
    __syncthreads();
    value = of_warp[0];
    __syncthreads();
    return value;
}

extern "C" __global__ void softmax(const float *__restrict__ logits, float *__restrict__ probabilities, int columns) {
    const float *row = logits + blockIdx.x * columns;
    float *result = probabilities + blockIdx.x * columns;

    float largest = -INFINITY;
    for (int i = threadIdx.x; i < columns; i += blockDim.x) {
        largest = fmaxf(largest, row[i]);
    }
    largest = of_block(largest, -INFINITY, Maximum());

    float sum = 0.0f;
    for (int i = threadIdx.x; i < columns; i += blockDim.x) {
        sum += expf(row[i] - largest);
    }
    sum = of_block(sum, 0.0f, Sum());

    const float scale = 1.0f / sum;
    for (int i = threadIdx.x; i < columns; i += blockDim.x) {
        result[i] = expf(row[i] - largest) * scale;
    }
}
