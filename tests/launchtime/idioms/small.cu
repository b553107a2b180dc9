// Small idioms.
typedef unsigned u32;

extern "C" __global__ void inside__plain(const float* in, float* out, int dx, int dy, int width, int height) {
  int x = threadIdx.x + dx, y = threadIdx.y + dy;
  if (x >= 0 && x < width && y >= 0 && y < height) out[threadIdx.x] = in[y * width + x];
}
extern "C" __global__ void inside__hand(const float* in, float* out, int dx, int dy, u32 width, u32 height) {
  u32 x = threadIdx.x + dx, y = threadIdx.y + dy;
  if (x < width && y < height) out[threadIdx.x] = in[(int)(y * width + x)];
}

extern "C" __global__ void rank_in_warp__plain(const u32* in, int* out) {
  int lane = threadIdx.x & 31;
  out[threadIdx.x] = __popc(in[threadIdx.x] & ((1u << lane) - 1));
}
extern "C" __global__ void rank_in_warp__hand(const u32* in, int* out) {
  u32 below;
  asm("mov.u32 %0, %%lanemask_lt;" : "=r"(below));
  out[threadIdx.x] = __popc(in[threadIdx.x] & below);
}

extern "C" __global__ void funnel__plain(const u32* in, const u32* distances, u32* out) {
  u32 high = in[2 * threadIdx.x], low = in[2 * threadIdx.x + 1], distance = distances[threadIdx.x] & 31;
  out[threadIdx.x] = distance == 0 ? high : high << distance | low >> (32 - distance);
}
extern "C" __global__ void funnel__hand(const u32* in, const u32* distances, u32* out) {
  uint2 words = ((const uint2*)in)[threadIdx.x];
  out[threadIdx.x] = __funnelshift_l(words.y, words.x, distances[threadIdx.x]);
}

extern "C" __global__ void low_bits__plain(const u32* in, int* out) {
  u32 v = in[threadIdx.x];
  int count = 0;
  for (int k = 0; k < 4; ++k)
    count += v >> k & 1;
  out[threadIdx.x] = count;
}
extern "C" __global__ void low_bits__hand(const u32* in, int* out) {
  out[threadIdx.x] = __popc(in[threadIdx.x] & 15);
}
