// targets: >=75
// Floating-point arithmetic with every rounding, approximate functions, comparisons, constants and special values.
#include <cmath>
#include <math_constants.h>

extern "C" __global__ void rounded_f32(float *out, const float *in) {
    const float a = in[0], b = in[1], c = in[2];
    float *o = out + threadIdx.x;
    o[0] = __fadd_rn(a, b);
    o[1] = __fadd_rz(a, b);
    o[2] = __fadd_ru(a, b);
    o[3] = __fadd_rd(a, b);
    o[4] = __fsub_rn(a, b);
    o[5] = __fsub_rz(a, b);
    o[6] = __fmul_rn(a, b);
    o[7] = __fmul_rz(a, b);
    o[8] = __fmul_ru(a, b);
    o[9] = __fmul_rd(a, b);
    o[10] = __fmaf_rn(a, b, c);
    o[11] = __fmaf_rz(a, b, c);
    o[12] = __fmaf_ru(a, b, c);
    o[13] = __fmaf_rd(a, b, c);
    o[14] = __fdiv_rn(a, b);
    o[15] = __fdiv_rz(a, b);
    o[16] = __fdiv_ru(a, b);
    o[17] = __fdiv_rd(a, b);
    o[18] = __frcp_rn(a);
    o[19] = __frcp_rz(a);
    o[20] = __frcp_ru(a);
    o[21] = __frcp_rd(a);
    o[22] = __fsqrt_rn(a);
    o[23] = __fsqrt_rz(a);
    o[24] = __fsqrt_ru(a);
    o[25] = __fsqrt_rd(a);
    o[26] = __frsqrt_rn(a);
    o[27] = __fdividef(a, b);
    o[28] = __saturatef(a);
    o[29] = __sinf(a) + __cosf(b) + __tanf(c);
    o[30] = __expf(a) + __exp10f(b) + __logf(c);
    o[31] = __log2f(a) + __log10f(b) + __powf(b, c);
    o[32] = fminf(a, b) + fmaxf(b, c);
    o[33] = fabsf(a) - copysignf(b, c);
    o[34] = floorf(a) + ceilf(b) + truncf(c) + rintf(a) + roundf(b) + nearbyintf(c);
    o[35] = fmodf(a, b) + remainderf(b, c);
}

extern "C" __global__ void rounded_f64(double *out, const double *in) {
    const double a = in[0], b = in[1], c = in[2];
    double *o = out + threadIdx.x;
    o[0] = __dadd_rn(a, b);
    o[1] = __dadd_rz(a, b);
    o[2] = __dadd_ru(a, b);
    o[3] = __dadd_rd(a, b);
    o[4] = __dmul_rn(a, b);
    o[5] = __dmul_rz(a, b);
    o[6] = __dmul_ru(a, b);
    o[7] = __dmul_rd(a, b);
    o[8] = __fma_rn(a, b, c);
    o[9] = __fma_rz(a, b, c);
    o[10] = __fma_ru(a, b, c);
    o[11] = __fma_rd(a, b, c);
    o[12] = __ddiv_rn(a, b);
    o[13] = __ddiv_rz(a, b);
    o[14] = __ddiv_ru(a, b);
    o[15] = __ddiv_rd(a, b);
    o[16] = __drcp_rn(a);
    o[17] = __drcp_rz(a);
    o[18] = __dsqrt_rn(a);
    o[19] = __dsqrt_rd(a);
    o[20] = fmin(a, b) + fmax(b, c);
    o[21] = fabs(a) - copysign(b, c);
    o[22] = floor(a) + ceil(b) + trunc(c) + rint(a) + round(b);
    o[23] = rsqrt(a) + cbrt(b);
}

extern "C" __global__ void special_values(float *f, double *d, const float *x) {
    f[0] = CUDART_INF_F;
    f[1] = -CUDART_INF_F;
    f[2] = CUDART_NAN_F;
    f[3] = -0.0f;
    f[4] = 1e-45f;
    f[5] = 3.4028235e38f;
    d[0] = CUDART_INF;
    d[1] = CUDART_NAN;
    d[2] = 4.9e-324;
    d[3] = CUDART_PI;
    f[6] = isnan(x[0]) ? 1.0f : x[1];
    f[7] = isinf(x[1]) ? 2.0f : x[2];
    f[8] = isfinite(x[2]) ? 3.0f : x[3];
    f[9] = signbit(x[3]) ? 4.0f : x[4];
    f[10] = (x[0] < x[1]) + (x[1] <= x[2]) * 2 + (x[2] == x[3]) * 4 + (x[3] != x[4]) * 8 + !(x[0] < x[2]) * 16;
    f[11] = !(x[5] >= x[6]) + 2 * !(x[6] <= x[7]) + 4 * !(x[7] == x[8]) + 8 * !(x[8] > x[9]);
}

extern "C" __global__ void conversions(int *i, unsigned *u, long long *l, unsigned long long *ul, float *f,
                                       double *d, short *s, signed char *c) {
    i[0] = __float2int_rn(f[0]);
    i[1] = __float2int_rz(f[0]);
    i[2] = __float2int_ru(f[0]);
    i[3] = __float2int_rd(f[0]);
    u[0] = __float2uint_rn(f[0]);
    u[1] = __float2uint_rd(f[0]);
    l[0] = __float2ll_rn(f[0]);
    ul[0] = __float2ull_rz(f[0]);
    i[4] = __double2int_rn(d[0]);
    u[2] = __double2uint_ru(d[0]);
    l[1] = __double2ll_rd(d[0]);
    ul[1] = __double2ull_rz(d[0]);
    f[1] = __int2float_rn(i[5]);
    f[2] = __int2float_rz(i[5]);
    f[3] = __uint2float_ru(u[3]);
    f[4] = __ll2float_rd(l[2]);
    f[5] = __ull2float_rn(ul[2]);
    d[1] = __int2double_rn(i[5]);
    d[2] = __uint2double_rn(u[3]);
    d[3] = __ll2double_rz(l[2]);
    d[4] = __ull2double_ru(ul[2]);
    f[6] = __double2float_rn(d[5]);
    f[7] = __double2float_rz(d[5]);
    f[8] = __double2float_ru(d[5]);
    f[9] = __double2float_rd(d[5]);
    d[6] = f[10];
    i[6] = __float_as_int(f[11]);
    f[12] = __int_as_float(i[7]);
    l[3] = __double_as_longlong(d[7]);
    d[8] = __longlong_as_double(l[4]);
    i[8] = __double2hiint(d[9]);
    i[9] = __double2loint(d[9]);
    d[10] = __hiloint2double(i[10], i[11]);
    s[0] = (short)f[13];
    c[0] = (signed char)f[14];
    f[15] = s[1];
    f[16] = c[1];
    s[2] = (short)i[12];
    c[2] = (signed char)l[5];
    l[6] = c[3];
    ul[3] = (unsigned char)c[4];
}
