// Kernels for `exec` with passes: one whose rewriting is valid for some launches only, and one that passes
// do not change or rewrite for all launches.
#include "check.h"

#include <vector>

// Sums every stride-th byte from the thread's own byte on. A stride of 2^31 wraps, which rewritten addresses do not.
__global__ void walk(const unsigned char* in, unsigned* out, unsigned stride, int rows, unsigned n) {
  unsigned i = threadIdx.x, sum = 0;
  for (int r = 0; r < rows; ++r) {
    if (i < n) sum += in[i];
    i += stride;
  }
  out[threadIdx.x] = sum;
}

__global__ void columns(const float* in, float* out, int stride, int rows) {
  const int i = threadIdx.x + blockIdx.x * blockDim.x;
  float sum = 0;
  for (int r = 0; r < rows; ++r)
    sum += in[r * stride + i];
  out[i] = sum;
}

// The same sums, with the time that each took, which depends on the code.
__global__ void timed_columns(const float* in, float* out, long long* times, int stride, int rows) {
  const long long begin = clock64();
  const int i = threadIdx.x + blockIdx.x * blockDim.x;
  float sum = 0;
  for (int r = 0; r < rows; ++r)
    sum += in[r * stride + i];
  out[i] = sum;
  times[i] = clock64() - begin;
}

static void check_walk(const unsigned char* in, unsigned* out, unsigned stride, int rows, unsigned n) {
  const int threads = 32;
  walk<<<1, threads>>>(in, out, stride, rows, n);
  unsigned sums[threads];
  CALL(cudaMemcpy(sums, out, sizeof sums, cudaMemcpyDefault));
  for (unsigned t = 0; t < threads; ++t) {
    unsigned expected = 0;
    for (unsigned r = 0, i = t; r < static_cast<unsigned>(rows); ++r, i += stride)
      if (i < n) expected += i % 251;
    EXPECT(sums[t] == expected);
  }
}

int main() {
  // CUB and Thrust use the tuning for the architecture that a kernel was compiled for, and none for others.
  cudaFuncAttributes attributes;
  CALL(cudaFuncGetAttributes(&attributes, columns));
  EXPECT(attributes.ptxVersion == 80 && attributes.binaryVersion == 90);

  const unsigned n = 1024;
  std::vector<unsigned char> bytes(n);
  for (unsigned i = 0; i < n; ++i)
    bytes[i] = static_cast<unsigned char>(i % 251);
  unsigned char* in;
  unsigned* out;
  CALL(cudaMalloc(&in, n));
  CALL(cudaMalloc(&out, 32 * sizeof(unsigned)));
  CALL(cudaMemcpy(in, bytes.data(), n, cudaMemcpyDefault));
  check_walk(in, out, 4, 8, n);
  check_walk(in, out, 16, 16, n);
  check_walk(in, out, 0x80000000u, 8, n);

  const int stride = 64 * 100, rows = 7;
  std::vector<float> values(stride * rows), sums(stride);
  for (int i = 0; i < stride * rows; ++i)
    values[i] = static_cast<float>(i % 17);
  float *matrix, *totals;
  CALL(cudaMalloc(&matrix, values.size() * sizeof(float)));
  CALL(cudaMallocManaged(&totals, sums.size() * sizeof(float)));
  CALL(cudaMemcpy(matrix, values.data(), values.size() * sizeof(float), cudaMemcpyDefault));
  long long* times;
  CALL(cudaMallocManaged(&times, sums.size() * sizeof(long long)));
  for (const bool is_timed : {false, true}) {
    if (is_timed)
      timed_columns<<<stride / 64, 64>>>(matrix, totals, times, stride, rows);
    else
      columns<<<stride / 64, 64>>>(matrix, totals, stride, rows);
    CALL(cudaDeviceSynchronize());
    for (int i = 0; i < stride; ++i) {
      float expected = 0;
      for (int r = 0; r < rows; ++r)
        expected += values[r * stride + i];
      EXPECT(totals[i] == expected);
      if (is_timed) EXPECT(times[i] > 0);
      totals[i] = 0;
    }
  }
  std::puts("right");
}
