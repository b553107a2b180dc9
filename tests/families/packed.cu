// Code for the pass `packed`, for tests/families: halves converted to floats, and adjacent numbers.
#include <cuda_fp16.h>

// Every half with each of a few others, and edge cases: zeros, subnormal halves, infinities, NaNs.
extern "C" __global__ void by_way_of_floats(const unsigned short *x, unsigned short *out, int n) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= n * n) return;
    float a = __half2float(__ushort_as_half(x[t / n])), b = __half2float(__ushort_as_half(x[t % n]));
    unsigned short *q = out + 7 * t;
    q[0] = __half_as_ushort(__float2half_rn(__fadd_rn(a, b)));
    q[1] = __half_as_ushort(__float2half_rn(__fsub_rn(a, b)));
    q[2] = __half_as_ushort(__float2half_rn(__fmul_rn(a, b)));
    q[3] = __half_as_ushort(__float2half_rn(fminf(a, b)));
    q[4] = __half_as_ushort(__float2half_rn(fmaxf(a, b)));
    q[5] = __half_as_ushort(__float2half_rn(fmaxf(a, 0.0f)));
    q[6] = __half_as_ushort(__float2half_rn(__fmul_rn(b, 0.5f)));
}

extern "C" __global__ void both_halves(const __half2 *x, const __half2 *y, __half2 *out) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    float2 a = __half22float2(x[t]), b = __half22float2(y[t]);
    out[2 * t] = __floats2half2_rn(a.x * b.x, a.y * b.y);
    out[2 * t + 1] = __floats2half2_rn(a.x - b.y, a.y - b.x);
}

// A product and a sum are rounded twice: these are not changed.
extern "C" __global__ void rounded_twice(const __half *x, const __half *y, __half *out) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    float a = __half2float(x[t]), b = __half2float(y[t]);
    out[2 * t] = __float2half_rn(__fmaf_rn(a, b, a));
    out[2 * t + 1] = __float2half_rn(__fadd_rn(__fmul_rn(a, b), a));
}
