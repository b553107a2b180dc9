// Idioms on bytes (pass `composite`): four bytes in a word, processed one by one in common source code.
typedef unsigned u32;
typedef unsigned char u8;
typedef signed char s8;

__device__ int byte_of(u32 word, int k) {
  return word >> 8 * k & 255;
}
__device__ u32 four_differences(u32 a, u32 b) {
  u32 result;
  asm("vabsdiff4.u32.u32.u32 %0, %1, %2, %3;" : "=r"(result) : "r"(a), "r"(b), "r"(0));
  return result;
}

extern "C" __global__ void sum_of_differences__plain(const u32* left, const u32* right, int* out) {
  int i = threadIdx.x, sum = 0;
  u32 a = left[i], b = right[i];
  for (int k = 0; k < 4; ++k)
    sum += abs(byte_of(a, k) - byte_of(b, k));
  out[i] += sum;
}
extern "C" __global__ void sum_of_differences__hand(const u32* left, const u32* right, int* out) {
  int i = threadIdx.x;
  u32 sum;
  asm("vabsdiff4.u32.u32.u32.add %0, %1, %2, %3;" : "=r"(sum) : "r"(left[i]), "r"(right[i]), "r"(out[i]));
  out[i] = sum;
}

extern "C" __global__ void sum_of_squares__plain(const u32* left, const u32* right, int* out) {
  int i = threadIdx.x, sum = 0;
  u32 a = left[i], b = right[i];
  for (int k = 0; k < 4; ++k) {
    int difference = byte_of(a, k) - byte_of(b, k);
    sum += difference * difference;
  }
  out[i] = sum;
}
extern "C" __global__ void sum_of_squares__hand(const u32* left, const u32* right, int* out) {
  int i = threadIdx.x;
  u32 differences = four_differences(left[i], right[i]);
  out[i] = __dp4a(differences, differences, 0u);
}

extern "C" __global__ void sum_of_bytes__plain(const u32* in, u32* out) {
  int i = threadIdx.x;
  u32 word = in[i], sum = out[i];
  for (int k = 0; k < 4; ++k)
    sum += byte_of(word, k);
  out[i] = sum;
}
extern "C" __global__ void sum_of_bytes__hand(const u32* in, u32* out) {
  int i = threadIdx.x;
  out[i] = __dp4a(in[i], 0x01010101u, out[i]);
}

extern "C" __global__ void sixteen_bytes__plain(const u8* in, u32* out) {
  int i = threadIdx.x;
  u32 sum = 0;
  for (int k = 0; k < 16; ++k)
    sum += in[16 * i + k];
  out[i] = sum;
}
extern "C" __global__ void sixteen_bytes__hand(const uint4* in, u32* out) {
  uint4 v = in[threadIdx.x];
  u32 sum = __dp4a(v.x, 0x01010101u, 0u);
  sum = __dp4a(v.y, 0x01010101u, sum);
  sum = __dp4a(v.z, 0x01010101u, sum);
  out[threadIdx.x] = __dp4a(v.w, 0x01010101u, sum);
}

extern "C" __global__ void averages__plain(const uchar4* left, const uchar4* right, uchar4* out) {
  uchar4 a = left[threadIdx.x], b = right[threadIdx.x];
  out[threadIdx.x] = make_uchar4((a.x + b.x + 1) / 2, (a.y + b.y + 1) / 2, (a.z + b.z + 1) / 2, (a.w + b.w + 1) / 2);
}
extern "C" __global__ void averages__hand(const u32* left, const u32* right, u32* out) {
  u32 a = left[threadIdx.x], b = right[threadIdx.x];
  out[threadIdx.x] = (a | b) - ((a ^ b) >> 1 & 0x7f7f7f7f);
}

extern "C" __global__ void smaller_bytes__plain(const uchar4* left, const uchar4* right, uchar4* out) {
  uchar4 a = left[threadIdx.x], b = right[threadIdx.x];
  out[threadIdx.x] = make_uchar4(min(a.x, b.x), min(a.y, b.y), min(a.z, b.z), min(a.w, b.w));
}
extern "C" __global__ void smaller_bytes__hand(const u32* left, const u32* right, u32* out) {
  out[threadIdx.x] = __vminu4(left[threadIdx.x], right[threadIdx.x]);
}

extern "C" __global__ void byte_sums__plain(const uchar4* left, const uchar4* right, uchar4* out) {
  uchar4 a = left[threadIdx.x], b = right[threadIdx.x];
  out[threadIdx.x] = make_uchar4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}
extern "C" __global__ void byte_sums__hand(const u32* left, const u32* right, u32* out) {
  out[threadIdx.x] = __vadd4(left[threadIdx.x], right[threadIdx.x]);
}

extern "C" __global__ void saturating_sums__plain(const uchar4* left, const uchar4* right, uchar4* out) {
  uchar4 a = left[threadIdx.x], b = right[threadIdx.x];
  out[threadIdx.x] = make_uchar4(min(a.x + b.x, 255), min(a.y + b.y, 255), min(a.z + b.z, 255), min(a.w + b.w, 255));
}
extern "C" __global__ void saturating_sums__hand(const u32* left, const u32* right, u32* out) {
  out[threadIdx.x] = __vaddus4(left[threadIdx.x], right[threadIdx.x]);
}

__device__ u32 clamped(int v) {
  return max(0, min(v, 255));
}
__device__ u32 packed(int first, int second, u32 rest) {
  u32 result;
  asm("cvt.pack.sat.u8.s32.b32 %0, %1, %2, %3;" : "=r"(result) : "r"(second), "r"(first), "r"(rest));
  return result;
}
extern "C" __global__ void clamp_and_pack__plain(const int4* in, u32* out) {
  int4 v = in[threadIdx.x];
  out[threadIdx.x] = clamped(v.x) | clamped(v.y) << 8 | clamped(v.z) << 16 | clamped(v.w) << 24;
}
extern "C" __global__ void clamp_and_pack__hand(const int4* in, u32* out) {
  int4 v = in[threadIdx.x];
  out[threadIdx.x] = packed(v.x, v.y, packed(v.z, v.w, 0));
}

extern "C" __global__ void float_pixels__plain(const float4* in, u32* out) {
  float4 v = in[threadIdx.x];
  u32 red = (u32)fminf(fmaxf(v.x, 0.0f), 255.0f), green = (u32)fminf(fmaxf(v.y, 0.0f), 255.0f),
      blue = (u32)fminf(fmaxf(v.z, 0.0f), 255.0f), alpha = (u32)fminf(fmaxf(v.w, 0.0f), 255.0f);
  out[threadIdx.x] = red | green << 8 | blue << 16 | alpha << 24;
}
extern "C" __global__ void float_pixels__hand(const float4* in, u32* out) {
  float4 v = in[threadIdx.x];
  out[threadIdx.x] = packed((int)v.x, (int)v.y, packed((int)v.z, (int)v.w, 0));
}

extern "C" __global__ void byte_products__plain(const s8* left, const s8* right, int* out) {
  int i = threadIdx.x, sum = 0;
  for (int k = 0; k < 4; ++k)
    sum += left[4 * i + k] * right[4 * i + k];
  out[i] = sum;
}
extern "C" __global__ void byte_products__hand(const int* left, const int* right, int* out) {
  out[threadIdx.x] = __dp4a(left[threadIdx.x], right[threadIdx.x], 0);
}
