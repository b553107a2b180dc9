// Idioms of the family `divisor`: divisions by values that are constant in a launch. By hand the host passes the divisor's
// reciprocal: floor(n / d) = (n * multiplier >> 32) >> shift, exact for the indices that occur.
typedef unsigned u32;

__device__ u32 quotient(u32 n, u32 multiplier, u32 shift) {
  return __umulhi(n, multiplier) >> shift;
}
// For all n: the multiplier has 33 bits, and the highest one is implicit.
__device__ u32 any_quotient(u32 n, u32 multiplier, u32 shift) {
  u32 high = __umulhi(n, multiplier);
  return (((n - high) >> 1) + high) >> shift;
}

// From the order NCHW to NHWC.
extern "C" __global__ void image_order__plain(const float* in, float* out, int count, int channels, int height,
                                              int width) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  int x = i % width, y = i / width % height, channel = i / (width * height) % channels,
      image = i / (width * height * channels);
  out[((image * height + y) * width + x) * channels + channel] = in[i];
}
extern "C" __global__ void image_order__hand(const float* __restrict__ in, float* __restrict__ out, u32 count,
                                             u32 channels, u32 height, u32 width, u32 by_width, u32 width_shift,
                                             u32 by_height, u32 height_shift, u32 by_channels, u32 channels_shift) {
  u32 i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  u32 row = quotient(i, by_width, width_shift), plane = quotient(row, by_height, height_shift),
      image = quotient(plane, by_channels, channels_shift);
  u32 x = i - row * width, y = row - plane * height, channel = plane - image * channels;
  out[((image * height + y) * width + x) * channels + channel] = in[i];
}

extern "C" __global__ void row_and_column__plain(const float* in, float* out, int width, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) out[i] = in[i / width] * in[i % width];
}
extern "C" __global__ void row_and_column__hand(const float* __restrict__ in, float* __restrict__ out, u32 width,
                                                int count, u32 multiplier, u32 shift) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  u32 row = quotient(i, multiplier, shift);
  out[i] = in[row] * in[i - row * width];
}

// Data, with any values.
extern "C" __global__ void two_quotients__plain(const u32* in, u32* out, u32 divisor) {
  int i = threadIdx.x;
  out[i] = in[i] / divisor ^ in[i + 256] / divisor;
}
extern "C" __global__ void two_quotients__hand(const u32* __restrict__ in, u32* __restrict__ out, u32 multiplier,
                                               u32 shift) {
  int i = threadIdx.x;
  out[i] = any_quotient(in[i], multiplier, shift) ^ any_quotient(in[i + 256], multiplier, shift);
}

extern "C" __global__ void ring__plain(const u32* in, u32* out, u32 size) {
  int i = threadIdx.x;
  out[i] = (in[i] + 1) % size;
}
extern "C" __global__ void ring__hand(const u32* __restrict__ in, u32* __restrict__ out, u32 size, u32 multiplier,
                                      u32 shift) {
  int i = threadIdx.x;
  u32 next = in[i] + 1;
  out[i] = next - any_quotient(next, multiplier, shift) * size;
}

extern "C" __global__ void histogram_bins__plain(const u32* in, u32* out, u32 width, int count) {
  u32 sum = 0;
#pragma unroll 1
  for (int i = threadIdx.x; i < count; i += 64)
    sum += in[i] / width;
  out[threadIdx.x] = sum;
}
extern "C" __global__ void histogram_bins__hand(const u32* __restrict__ in, u32* __restrict__ out, u32 multiplier,
                                                u32 shift, int count) {
  u32 sum = 0;
#pragma unroll 1
  for (int i = threadIdx.x; i < count; i += 64)
    sum += any_quotient(in[i], multiplier, shift);
  out[threadIdx.x] = sum;
}

// f32 by three: product with the rounded reciprocal, corrected by its exact remainder; an infinity is unchanged.
extern "C" __global__ void thirds__plain(const float* in, float* out) {
  out[threadIdx.x] = in[threadIdx.x] / 3.0f;
}
extern "C" __global__ void thirds__hand(const float* __restrict__ in, float* __restrict__ out) {
  float v = in[threadIdx.x], reciprocal = 1.0f / 3.0f;
  float first = __fmul_rn(v, reciprocal);
  float better = __fmaf_rn(__fmaf_rn(first, -3.0f, v), reciprocal, first);
  out[threadIdx.x] = isinf(first) ? first : better;
}
