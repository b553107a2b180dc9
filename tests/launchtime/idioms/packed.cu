// Idioms of the family `packed`: adjacent halves.
#include <cuda_fp16.h>

extern "C" __global__ void half_pairs__plain(const __half* left, const __half* right, __half* out) {
  int i = threadIdx.x;
  __half a = left[2 * i], b = left[2 * i + 1], c = right[2 * i], d = right[2 * i + 1];
  out[2 * i] = __hfma(a, c, a);
  out[2 * i + 1] = __hfma(b, d, b);
}
extern "C" __global__ void half_pairs__hand(const __half2* left, const __half2* right, __half2* out) {
  __half2 a = left[threadIdx.x], b = right[threadIdx.x];
  out[threadIdx.x] = __hfma2(a, b, a);
}

extern "C" __global__ void half_chain__plain(const __half* in, __half* out, __half factor) {
  int i = threadIdx.x;
  for (int k = 0; k < 2; ++k) {
    __half v = in[2 * i + k];
    out[2 * i + k] = __hfma(__hfma(v, factor, v), v, factor);
  }
}
extern "C" __global__ void half_chain__hand(const __half2* in, __half2* out, __half factor) {
  __half2 v = in[threadIdx.x], both = __half2half2(factor);
  out[threadIdx.x] = __hfma2(__hfma2(v, both, v), v, both);
}

extern "C" __global__ void half_maxima__plain(const __half* in, __half* out) {
  int i = threadIdx.x;
  out[2 * i] = __hmax(in[2 * i], in[2 * i + 512]);
  out[2 * i + 1] = __hmax(in[2 * i + 1], in[2 * i + 513]);
}
extern "C" __global__ void half_maxima__hand(const __half2* in, __half2* out) {
  out[threadIdx.x] = __hmax2(in[threadIdx.x], in[threadIdx.x + 256]);
}

// Halves that are multiplied as floats.
extern "C" __global__ void through_float__plain(const __half2* left, const __half2* right, __half2* out) {
  float2 a = __half22float2(left[threadIdx.x]), b = __half22float2(right[threadIdx.x]);
  out[threadIdx.x] = __floats2half2_rn(a.x * b.x, a.y * b.y);
}
extern "C" __global__ void through_float__hand(const __half2* left, const __half2* right, __half2* out) {
  out[threadIdx.x] = __hmul2(left[threadIdx.x], right[threadIdx.x]);
}
