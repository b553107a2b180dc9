// targets: >=75
// The mathematical library: long straight-line code, tables in constant memory, slow paths with calls and local arrays.
#include <cmath>

extern "C" __global__ void library_f32(float *out, const float *in) {
    const int i = threadIdx.x;
    const float x = in[i], y = in[i + 1];
    float s, c;
    sincosf(x, &s, &c);
    out[16 * i] = sinf(x) + cosf(y) * tanf(x) + s * c;
    out[16 * i + 1] = asinf(x) + acosf(y) + atanf(x) + atan2f(x, y);
    out[16 * i + 2] = expf(x) + exp2f(y) + expm1f(x) + logf(y) + log2f(x) + log1pf(y);
    out[16 * i + 3] = sinhf(x) + coshf(y) + tanhf(x) + asinhf(y) + acoshf(x) + atanhf(y);
    out[16 * i + 4] = erff(x) + erfcf(y) + erfinvf(x) + normcdff(y);
    out[16 * i + 5] = tgammaf(x) + lgammaf(y);
    out[16 * i + 6] = powf(x, y) + cbrtf(x) + hypotf(x, y) + rcbrtf(y);
    out[16 * i + 7] = j0f(x) + j1f(y) + y0f(x) + y1f(y) + jnf(3, x);
    int exponent = 0;
    const float mantissa = frexpf(x, &exponent);
    out[16 * i + 8] = mantissa + ldexpf(y, exponent) + ilogbf(x) + logbf(y);
    out[16 * i + 9] = norm3df(x, y, s) + rnorm4df(x, y, s, c);
}

extern "C" __global__ void library_f64(double *out, const double *in) {
    const int i = threadIdx.x;
    const double x = in[i], y = in[i + 1];
    double s, c;
    sincos(x, &s, &c);
    out[16 * i] = sin(x) + cos(y) * tan(x) + s * c;
    out[16 * i + 1] = asin(x) + acos(y) + atan(x) + atan2(x, y);
    out[16 * i + 2] = exp(x) + exp2(y) + expm1(x) + log(y) + log2(x) + log10(y) + log1p(y);
    out[16 * i + 3] = sinh(x) + cosh(y) + tanh(x) + asinh(y) + acosh(x) + atanh(y);
    out[16 * i + 4] = erf(x) + erfc(y) + erfinv(x) + normcdf(y);
    out[16 * i + 5] = tgamma(x) + lgamma(y);
    out[16 * i + 6] = pow(x, y) + hypot(x, y) + fmod(x, y) + remainder(x, y);
    out[16 * i + 7] = j0(x) + y1(y);
}
