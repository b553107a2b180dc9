// Bytes that are loaded and added one by one, for tests/families: rewritten by `memory` and `composite`
// together.
typedef unsigned char u8;
typedef signed char s8;
typedef unsigned u32;

extern "C" __global__ void sums(const u8 *in, u32 *out) {
    const int t = blockIdx.x * blockDim.x + threadIdx.x;
    u32 sum = 0;
    for (int k = 0; k < 16; ++k) sum += in[16 * t + k];
    out[t] = sum;
}

extern "C" __global__ void products(const s8 *x, const s8 *y, int *out) {
    const int t = blockIdx.x * blockDim.x + threadIdx.x;
    int sum = 0;
    for (int k = 0; k < 4; ++k) sum += x[4 * t + k] * y[4 * t + k];
    out[t] = sum;
}

extern "C" __global__ void mixed_products(const s8 *x, const u8 *y, int *out) {
    const int t = blockIdx.x * blockDim.x + threadIdx.x;
    int sum = out[t];
    for (int k = 0; k < 8; ++k) sum += x[8 * t + k] * y[8 * t + 7 - k];
    out[t] = sum;
}

// 16-bit values, extended from eight bits.
extern "C" __global__ void halves(const s8 *x, short *out) {
    const int t = blockIdx.x * blockDim.x + threadIdx.x;
    short least = 999;
    for (int k = 0; k < 8; ++k) least = min(least, (short)(x[8 * t + k] * (k + 3)));
    out[t] = least;
}

extern "C" __global__ void low_bits(const u32 *in, int *out) {
    const int t = blockIdx.x * blockDim.x + threadIdx.x;
    const u32 v = in[t];
    int count = 0;
    for (int k = 0; k < 6; ++k) count += v >> k & 1;
    count += (v >> 30 & 1) + (v >> 17 & 1);
    out[t] = count;
}

// The last value is a bit that counts twice.
extern "C" __global__ void bits_twice(const u32 *in, int *out) {
    const int t = blockIdx.x * blockDim.x + threadIdx.x;
    const u32 v = in[t], w = v ^ v >> 5;
    out[t] = (w & 1) + (w >> 1 & 1) + (w >> 7 & 1) + (w >> 1 & 1);
}

__device__ int clamped(int x) { return max(0, min(x, 255)); }
extern "C" __global__ void packed(const int4 *in, u32 *out) {
    const int t = blockIdx.x * blockDim.x + threadIdx.x;
    const int4 v = in[t];
    out[t] = clamped(v.x) | clamped(v.y) << 8 | clamped(v.z) << 16 | clamped(v.w) << 24;
}

// One of the clamps has a larger bound, one another signedness.
__device__ int below(int x, int most, int least) { return max(least, min(x, most)); }
extern "C" __global__ void not_packed(const int4 *in, u32 *out) {
    const int t = blockIdx.x * blockDim.x + threadIdx.x;
    const int4 v = in[t];
    out[2 * t] = below(v.x, 256, 0) | below(v.y, 255, 0) << 8 | below(v.z, 255, 0) << 16 | below(v.w, 255, 0) << 24;
    out[2 * t + 1] = below(v.x, 255, -1) | below(v.y, 255, 0) << 8 | below(v.z, 255, 0) << 16 | below(v.w, 255, 0) << 24;
}
