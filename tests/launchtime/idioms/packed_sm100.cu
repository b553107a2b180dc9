// arch: sm_100
// Pairs of floats: f32x2 is native from sm_100 on.
typedef unsigned long long u64;

__device__ u64 fused(u64 a, u64 b, u64 c) {
  u64 result;
  asm("fma.rn.f32x2 %0, %1, %2, %3;" : "=l"(result) : "l"(a), "l"(b), "l"(c));
  return result;
}

extern "C" __global__ void float_pairs__plain(const float4* left, const float4* right, float4* out) {
  float4 a = left[threadIdx.x], b = right[threadIdx.x], v = b;
  for (int k = 0; k < 8; ++k)
    v = make_float4(fmaf(v.x, a.x, b.x), fmaf(v.y, a.y, b.y), fmaf(v.z, a.z, b.z), fmaf(v.w, a.w, b.w));
  out[threadIdx.x] = v;
}
extern "C" __global__ void float_pairs__hand(const ulonglong2* left, const ulonglong2* right, ulonglong2* out) {
  ulonglong2 a = left[threadIdx.x], b = right[threadIdx.x], v = b;
  for (int k = 0; k < 8; ++k)
    v = make_ulonglong2(fused(v.x, a.x, b.x), fused(v.y, a.y, b.y));
  out[threadIdx.x] = v;
}
