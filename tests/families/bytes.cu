// Bytes with equal computations, for tests/families: `composite` computes four of them at once; and similar code that
// it must not change.
typedef unsigned char byte;
typedef unsigned u32;

#define ALL_FOUR(of) make_uchar4(of(a.x, b.x), of(a.y, b.y), of(a.z, b.z), of(a.w, b.w))
__device__ int average(int a, int b) { return (a + b + 1) >> 1; }
__device__ int average_down(int a, int b) { return (a + b) >> 1; }
__device__ int sum(int a, int b) { return a + b; }
__device__ int saturated(int a, int b) { return min(a + b, 255); }
__device__ int difference(int a, int b) { return abs(a - b); }
__device__ int nearly_average(int a, int b) { return (a + b + 2) >> 1; }
__device__ int nearly_saturated(int a, int b) { return min(a + b, 254); }

extern "C" __global__ void alike(const uchar4 *x, const uchar4 *y, uchar4 *out) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    uchar4 a = x[t], b = y[t], *q = out + 10 * t;
    q[0] = ALL_FOUR(average);
    q[1] = ALL_FOUR(average_down);
    q[2] = ALL_FOUR(min);
    q[3] = ALL_FOUR(max);
    q[4] = ALL_FOUR(sum);
    q[5] = ALL_FOUR(saturated);
    q[6] = ALL_FOUR(difference);
    q[7] = ALL_FOUR(nearly_average);
    q[8] = ALL_FOUR(nearly_saturated);
    q[9] = make_uchar4(average(a.x, b.x), average(a.z, b.z), average(a.y, b.y), average(a.w, b.w));
}

extern "C" __global__ void one_alone(const uchar4 *x, const uchar4 *y, uchar4 *out) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    uchar4 a = x[t], b = y[t];
    out[t] = ALL_FOUR(average);
}
extern "C" __global__ void least(const uchar4 *x, const uchar4 *y, uchar4 *out) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    uchar4 a = x[t], b = y[t];
    out[t] = ALL_FOUR(min);
}
extern "C" __global__ void summed(const uchar4 *x, const uchar4 *y, uchar4 *out) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    uchar4 a = x[t], b = y[t];
    out[t] = ALL_FOUR(saturated);
}

__device__ int clamped(int x) { return min(max(x, 0), 255); }
extern "C" __global__ void packed(const int4 *x, u32 *out) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    int4 v = x[t];
    out[t] = clamped(v.x) | clamped(v.y) << 8 | clamped(v.z) << 16 | clamped(v.w) << 24;
}
__device__ u32 cut(float x) { return (u32)fminf(fmaxf(x, 0.0f), 255.0f); }
__device__ u32 cut_otherwise(float x) { return (u32)fmaxf(fminf(x, 255.0f), 0.0f); } // NaN: 255
extern "C" __global__ void packed_floats(const float4 *x, u32 *out) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    float4 v = x[t];
    out[2 * t] = cut(v.x) | cut(v.y) << 8 | cut(v.z) << 16 | cut(v.w) << 24;
    out[2 * t + 1] = cut_otherwise(v.x) | cut_otherwise(v.y) << 8 | cut_otherwise(v.z) << 16 | cut_otherwise(v.w) << 24;
}

extern "C" __global__ void differences(const u32 *x, const u32 *y, u32 *out) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    u32 a = x[t], b = y[t], absolute = t, squared = 0, mixed = 0, sum = b;
    for (int i = 0; i < 4; ++i) {
        int d = (int)(a >> 8 * i & 255) - (int)(b >> 8 * i & 255);
        absolute += abs(d);
        squared += d * d;
        mixed += abs((int)(a >> 8 * i & 255) - (int)(b >> 8 * (3 - i) & 255)); // not the same bytes
        sum += a >> 8 * i & 255;
    }
    out[4 * t] = absolute;
    out[4 * t + 1] = squared;
    out[4 * t + 2] = mixed;
    out[4 * t + 3] = sum;
}
