// targets: >=75
// Half and bfloat16, single and packed: arithmetic, fused, comparison, conversion, minimum with NaN, tanh, ex2.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

extern "C" __global__ void half_scalar(__half *out, const __half *in, float *f, int *n) {
    const __half a = in[0], b = in[1], c = in[2];
    out[0] = __hadd(a, b);
    out[1] = __hsub(a, b);
    out[2] = __hmul(a, b);
    out[3] = __hfma(a, b, c);
    out[4] = __hdiv(a, b);
    out[5] = __hneg(a);
    out[6] = __habs(b);
    out[7] = __hadd_sat(a, b);
    out[8] = __hfma_sat(a, b, c);
    out[9] = hsqrt(a);
    out[10] = hrsqrt(b);
    out[11] = hrcp(c);
    out[12] = hexp(a);
    out[13] = hexp2(b);
    out[14] = hlog(c);
    out[15] = hsin(a);
    out[16] = hcos(b);
    out[17] = hfloor(a);
    out[18] = hceil(b);
    out[19] = hrint(c);
    out[20] = htrunc(a);
    out[21] = __hmax(a, b);
    out[22] = __hmin(a, b);
    f[0] = __half2float(a);
    out[23] = __float2half_rz(f[1]);
    out[24] = __float2half_ru(f[1]);
    out[25] = __float2half_rd(f[1]);
    out[26] = __int2half_rn(n[0]);
    n[1] = __half2int_rz(b);
    n[2] = __heq(a, b) + __hlt(a, c) * 2 + __hgeu(b, c) * 4 + __hisnan(a) * 8;
}

extern "C" __global__ void half_packed(__half2 *out, const __half2 *in, float2 *f, unsigned *n) {
    const __half2 a = in[0], b = in[1], c = in[2];
    out[0] = __hadd2(a, b);
    out[1] = __hsub2(a, b);
    out[2] = __hmul2(a, b);
    out[3] = __hfma2(a, b, c);
    out[4] = __h2div(a, b);
    out[5] = __hneg2(a);
    out[6] = __habs2(b);
    out[7] = __hmax2(a, b);
    out[8] = __hmin2(a, b);
    out[9] = __hadd2_sat(a, b);
    out[10] = h2sqrt(a);
    out[11] = h2exp2(b);
    out[12] = __lows2half2(a, b);
    out[13] = __highs2half2(a, b);
    out[14] = __lowhigh2highlow(c);
    out[15] = __half2half2(__low2half(a));
    out[16] = __heq2(a, b);
    out[17] = __hltu2(a, c);
    n[0] = __hbeq2(a, b) + __hbgt2(b, c);
    n[1] = __heq2_mask(a, b);
    f[0] = __half22float2(a);
    out[18] = __float22half2_rn(f[1]);
}

#if __CUDA_ARCH__ >= 800
extern "C" __global__ void bfloat_scalar(__nv_bfloat16 *out, const __nv_bfloat16 *in, float *f) {
    const __nv_bfloat16 a = in[0], b = in[1], c = in[2];
    out[0] = __hadd(a, b);
    out[1] = __hsub(a, b);
    out[2] = __hmul(a, b);
    out[3] = __hfma(a, b, c);
    out[4] = __hdiv(a, b);
    out[5] = __hneg(a);
    out[6] = __habs(b);
    out[7] = __hmax(a, b);
    out[8] = hexp2(a);
    out[9] = __float2bfloat16_rn(f[1]);
    out[10] = __float2bfloat16_rz(f[1]);
    f[0] = __bfloat162float(c);
    f[2] = __hlt(a, b) ? 1.0f : 2.0f;
}

extern "C" __global__ void bfloat_packed(__nv_bfloat162 *out, const __nv_bfloat162 *in, float2 *f) {
    const __nv_bfloat162 a = in[0], b = in[1], c = in[2];
    out[0] = __hadd2(a, b);
    out[1] = __hmul2(a, b);
    out[2] = __hfma2(a, b, c);
    out[3] = __hmax2(a, b);
    out[4] = __hmin2(a, b);
    out[5] = __hneg2(c);
    out[6] = __floats2bfloat162_rn(f[1].x, f[1].y);
    f[0] = __bfloat1622float2(a);
    out[7] = __heq2(a, b);
}

extern "C" __global__ void half_newer(__half *out, const __half *in, __half2 *out2, const __half2 *in2) {
    out[0] = __hmax_nan(in[0], in[1]);
    out[1] = __hmin_nan(in[0], in[1]);
    out[2] = __hfma_relu(in[0], in[1], in[2]);
    out2[0] = __hfma2_relu(in2[0], in2[1], in2[2]);
    out2[1] = __hmax2_nan(in2[0], in2[1]);
    unsigned short tanh_of;
    asm("tanh.approx.f16 %0, %1;" : "=h"(tanh_of) : "h"(__half_as_ushort(in[3])));
    out[3] = __ushort_as_half(tanh_of);
    unsigned exponential;
    asm("ex2.approx.f16x2 %0, %1;" : "=r"(exponential) : "r"(*(const unsigned *)(in2 + 4)));
    *(unsigned *)(out2 + 2) = exponential;
}
#endif

extern "C" __global__ void half_atomics(__half *h, __half2 *h2, __nv_bfloat16 *b, __nv_bfloat162 *b2) {
    atomicAdd(h, h[1]);
    atomicAdd(h2, h2[1]);
    atomicAdd(b, b[1]);
    atomicAdd(b2, b2[1]);
    h[2] = __ldg(h + 3);
    h[4] = __shfl_down_sync(0xffffffffu, h[5], 2);
    h2[4] = __shfl_xor_sync(0xffffffffu, h2[5], 4);
}
