// arch: sm_100a
// The largest float of a warp: redux of f32 is in sm_100a and its family.
__device__ float largest(float value) {
  float result;
  asm volatile("redux.sync.max.f32 %0, %1, 0xffffffff;" : "=f"(result) : "f"(value));
  return result;
}

extern "C" __global__ void largest_float__plain(const float* in, float* out) {
  float value = in[threadIdx.x];
  for (int distance = 16; distance > 0; distance /= 2)
    value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, distance));
  out[threadIdx.x] = value;
}
extern "C" __global__ void largest_float__hand(const float* in, float* out) {
  out[threadIdx.x] = largest(in[threadIdx.x]);
}
