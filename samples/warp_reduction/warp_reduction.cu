// Sums a vector to one value a block: a grid-stride loop, a warp reduction by shuffles, then the first warp
// reduces what each warp left in shared memory. The block must hold a whole number of warps.

constexpr int WARP = 32;
constexpr unsigned ALL_LANES = 0xffffffffu;

__device__ __forceinline__ float sum_of_warp(float value) {
    for (int distance = WARP / 2; distance > 0; distance /= 2) {
        value += __shfl_down_sync(ALL_LANES, value, distance);
    }
    return value;
}

extern "C" __global__ void reduce_sum(const float *values, float *block_sums, int n) {
    __shared__ float warp_sums[WARP];

    const int lane = threadIdx.x % WARP;
    const int warp = threadIdx.x / WARP;

    float sum = 0.0f;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        sum += values[i];
    }

    sum = sum_of_warp(sum);
    if (lane == 0) {
        warp_sums[warp] = sum;
    }
    __syncthreads();

    if (warp == 0) {
        sum = lane < blockDim.x / WARP ? warp_sums[lane] : 0.0f;
        sum = sum_of_warp(sum);
        if (lane == 0) {
            block_sums[blockIdx.x] = sum;
        }
    }
}
