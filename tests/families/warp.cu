// Common source code for reductions and masks of a warp, which the pass `warp` rewrites, for tests/families.
typedef unsigned u32;
constexpr u32 every_lane = 0xffffffffu;

// Each thread's value, and the result for all lanes of its warp.
extern "C" __global__ void butterflies(const int *x, int *out) {
    int t = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * blockIdx.x);
    int add = x[t], least = add, most = add;
    u32 least_u = add, most_u = add, both = add, any = add, odd = add;
    for (int o = 16; o; o >>= 1) add += __shfl_xor_sync(every_lane, add, o);
    for (int o = 1; o < 32; o <<= 1) least = min(least, __shfl_xor_sync(every_lane, least, o));
    for (int o = 16; o; o >>= 1) most = max(most, __shfl_xor_sync(every_lane, most, o));
    for (int o = 16; o; o >>= 1) least_u = min(least_u, __shfl_xor_sync(every_lane, least_u, o));
    for (int o = 16; o; o >>= 1) most_u = max(most_u, __shfl_xor_sync(every_lane, most_u, o));
    for (int o = 16; o; o >>= 1) both &= __shfl_xor_sync(every_lane, both, o);
    for (int o = 16; o; o >>= 1) any |= __shfl_xor_sync(every_lane, any, o);
    for (int o = 16; o; o >>= 1) odd ^= __shfl_xor_sync(every_lane, odd, o);
    int *q = out + 8 * t;
    q[0] = add; q[1] = least; q[2] = most; q[3] = least_u; q[4] = most_u; q[5] = both; q[6] = any; q[7] = odd;
}

extern "C" __global__ void votes(const int *x, int *out, int bound) {
    int t = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * blockIdx.x);
    int count = x[t] > bound, any = x[t] < -bound, every = x[t] != bound;
    for (int o = 16; o; o >>= 1) count += __shfl_xor_sync(every_lane, count, o);
    for (int o = 16; o; o >>= 1) any |= __shfl_xor_sync(every_lane, any, o);
    for (int o = 16; o; o >>= 1) every &= __shfl_xor_sync(every_lane, every, o);
    out[3 * t] = count; out[3 * t + 1] = any; out[3 * t + 2] = every;
}

// One sum per block: in warps, then in the first warp.
extern "C" __global__ void block_sum(const int *x, int *out, int n) {
    __shared__ int sums[32];
    int t = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    int sum = t < n ? x[t] : 0;
    for (int o = 16; o; o >>= 1) sum += __shfl_down_sync(every_lane, sum, o);
    if (lane == 0) sums[warp] = sum;
    __syncthreads();
    sum = threadIdx.x < blockDim.x / 32 ? sums[lane] : 0;
    if (warp == 0) {
        for (int o = 16; o; o >>= 1) sum += __shfl_down_sync(every_lane, sum, o);
        if (lane == 0) out[blockIdx.x] = sum;
    }
}

// One row of the matrix per warp; warps without a row exit.
extern "C" __global__ void row_largest(const int *x, int *out, int rows, int columns) {
    int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    int most = -2147483647 - 1;
    for (int i = lane; i < columns; i += 32) most = max(most, x[row * columns + i]);
    for (int o = 16; o; o >>= 1) most = max(most, __shfl_down_sync(every_lane, most, o));
    most = __shfl_sync(every_lane, most, 0);
    if (lane == 0) out[row] = most;
}

extern "C" __global__ void ranks(const int *x, int *out) {
    int t = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * blockIdx.x);
    u32 lane = threadIdx.x & 31, bits = x[t];
    int *q = out + 5 * t;
    q[0] = __popc(bits & ((1u << lane) - 1));
    q[1] = __popc(bits & (every_lane >> (31 - lane)));
    q[2] = __popc(bits & (every_lane << lane));
    q[3] = __popc(bits & (0xfffffffeu << lane));
    q[4] = (bits & (1u << lane)) != 0;
}

extern "C" __global__ void __launch_bounds__(32) reversed(const int *x, int *out) {
    __shared__ int values[32];
    values[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = values[31 - threadIdx.x];
}

// As a loop, which nvcc does not unroll: it does not assume that warpSize is 32.
extern "C" __global__ void looped(const int *x, int *out) {
    int t = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * blockIdx.x);
    int sum = x[t], most = sum;
    for (int o = warpSize / 2; o > 0; o /= 2) sum += __shfl_xor_sync(every_lane, sum, o);
    for (int o = warpSize / 2; o > 0; o >>= 1) most = max(most, __shfl_down_sync(every_lane, most, o));
    out[t] = sum;
    if (threadIdx.x % warpSize == 0) out[t] ^= most;
}
