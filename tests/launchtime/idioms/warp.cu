// Idioms of the family `warp`: joint computations of a warp; `exchange` is launched with blocks of 32 threads.
typedef unsigned u32;
constexpr u32 everyone = 0xffffffff;

extern "C" __global__ void sum__plain(const int* in, int* out) {
  int sum = in[threadIdx.x];
  for (int distance = 16; distance > 0; distance /= 2)
    sum += __shfl_xor_sync(everyone, sum, distance);
  out[threadIdx.x] = sum;
}
extern "C" __global__ void sum__hand(const int* in, int* out) {
  out[threadIdx.x] = __reduce_add_sync(everyone, in[threadIdx.x]);
}

extern "C" __global__ void greatest__plain(const int* in, int* out) {
  int most = in[threadIdx.x];
  for (int distance = 16; distance > 0; distance /= 2)
    most = max(most, __shfl_down_sync(everyone, most, distance));
  if (threadIdx.x == 0) *out = most;
}
extern "C" __global__ void greatest__hand(const int* in, int* out) {
  int most = __reduce_max_sync(everyone, in[threadIdx.x]);
  if (threadIdx.x == 0) *out = most;
}

extern "C" __global__ void common_bits__plain(const u32* in, u32* out) {
  u32 bits = in[threadIdx.x];
  for (int distance = 1; distance < 32; distance *= 2)
    bits &= __shfl_xor_sync(everyone, bits, distance);
  out[threadIdx.x] = bits;
}
extern "C" __global__ void common_bits__hand(const u32* in, u32* out) {
  out[threadIdx.x] = __reduce_and_sync(everyone, in[threadIdx.x]);
}

extern "C" __global__ void count__plain(const int* in, int* out, int bound) {
  int count = in[threadIdx.x] < bound;
  for (int distance = 16; distance > 0; distance /= 2)
    count += __shfl_xor_sync(everyone, count, distance);
  out[threadIdx.x] = count;
}
extern "C" __global__ void count__hand(const int* in, int* out, int bound) {
  out[threadIdx.x] = __popc(__ballot_sync(everyone, in[threadIdx.x] < bound));
}

extern "C" __global__ void any__plain(const int* in, int* out, int bound) {
  int any = in[threadIdx.x] < bound;
  for (int distance = 16; distance > 0; distance /= 2)
    any |= __shfl_xor_sync(everyone, any, distance);
  out[threadIdx.x] = any;
}
extern "C" __global__ void any__hand(const int* in, int* out, int bound) {
  out[threadIdx.x] = __any_sync(everyone, in[threadIdx.x] < bound);
}

extern "C" __global__ void exchange__plain(const int* in, int* out) {
  __shared__ int values[32];
  values[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = values[31 - threadIdx.x];
}
extern "C" __global__ void exchange__hand(const int* in, int* out) {
  __shared__ int values[32];
  values[threadIdx.x] = in[threadIdx.x];
  __syncwarp();
  out[threadIdx.x] = values[31 - threadIdx.x];
}
