// targets: >=75
// Eight-, six- and four-bit floating-point types: conversions, by instruction where the target has them.
#include <cuda_fp4.h>
#include <cuda_fp6.h>
#include <cuda_fp8.h>

extern "C" __global__ void eight_bits(__nv_fp8_e4m3 *a, __nv_fp8_e5m2 *b, __nv_fp8x2_e4m3 *a2, __nv_fp8x4_e5m2 *b4, float *f, half *h) {
    a[0] = __nv_fp8_e4m3(f[0]);
    b[0] = __nv_fp8_e5m2(f[1]);
    f[2] = float(a[1]);
    h[0] = half(b[1]);
    a2[0] = __nv_fp8x2_e4m3(make_float2(f[3], f[4]));
    b4[0] = __nv_fp8x4_e5m2(make_float4(f[5], f[6], f[7], f[8]));
    const float4 all = float4(b4[1]);
    f[9] = all.x + all.w;
    b[2] = __nv_fp8_e5m2(h[1]);
}
#if __CUDA_ARCH__ >= 890
extern "C" __global__ void small_bits(__nv_fp6_e2m3 *a, __nv_fp6_e3m2 *b, __nv_fp4_e2m1 *c, __nv_fp4x2_e2m1 *c2, float *f) {
    a[0] = __nv_fp6_e2m3(f[0]);
    b[0] = __nv_fp6_e3m2(f[1]);
    c[0] = __nv_fp4_e2m1(f[2]);
    c2[0] = __nv_fp4x2_e2m1(make_float2(f[3], f[4]));
    f[5] = float(a[1]) + float(b[1]) + float(c[1]);
}
#endif
