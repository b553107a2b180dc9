// Idioms of the family `narrow`: sizes and indices in 64 bits, and signed ones, that fit 32 unsigned bits.
typedef unsigned long long u64;
typedef long long s64;

extern "C" __global__ void wide_division__plain(const int* rows, int* columns, u64 width) {
  u64 i = u64(blockIdx.x) * blockDim.x + threadIdx.x;
  columns[i % width] = rows[i / width];
}
extern "C" __global__ void wide_division__hand(const int* rows, int* columns, unsigned width) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  columns[i % width] = rows[i / width];
}

// A transposition with checked size.
extern "C" __global__ void checked_matrix__plain(const double* in, double* out, s64 rows, s64 columns) {
  s64 i = s64(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < rows * columns) out[i % columns * rows + i / columns] = in[i];
}
extern "C" __global__ void checked_matrix__hand(const double* in, double* out, unsigned rows, unsigned columns) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < rows * columns) out[i % columns * rows + i / columns] = in[i];
}

extern "C" __global__ void two_dimensions__plain(const float* in, float* out, s64 width, s64 height, s64 pitch) {
  s64 x = s64(blockIdx.x) * blockDim.x + threadIdx.x, y = s64(blockIdx.y) * blockDim.y + threadIdx.y;
  if (x < width && y < height) out[y * pitch + x] = in[y * pitch + x] - in[(y + 1) * pitch + x];
}
extern "C" __global__ void two_dimensions__hand(const float* in, float* out, int width, int height, int pitch) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < width && y < height) out[y * pitch + x] = in[y * pitch + x] - in[(y + 1) * pitch + x];
}

// A grid-stride loop, counted in size_t.
extern "C" __global__ void wide_counter__plain(const float* in, float* out, size_t count, size_t lag) {
  float sum = 0.0f;
#pragma unroll 1
  for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += size_t(gridDim.x) * blockDim.x)
    sum += in[i % lag];
  out[threadIdx.x] = sum;
}
extern "C" __global__ void wide_counter__hand(const float* in, float* out, unsigned count, unsigned lag) {
  float sum = 0.0f;
#pragma unroll 1
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
    sum += in[i % lag];
  out[threadIdx.x] = sum;
}

extern "C" __global__ void wide_walk__plain(const int* in, int* out, size_t count, size_t step) {
  int sum = 0;
#pragma unroll 1
  for (size_t i = threadIdx.x; i < count; i += step)
    sum ^= in[i] + (int)(i * 5);
  out[threadIdx.x] = sum;
}
extern "C" __global__ void wide_walk__hand(const int* in, int* out, unsigned count, unsigned step) {
  int sum = 0;
#pragma unroll 1
  for (unsigned i = threadIdx.x; i < count; i += step)
    sum ^= in[i] + (int)(i * 5);
  out[threadIdx.x] = sum;
}

// Lane and warp of a signed thread number.
extern "C" __global__ void lane_and_warp__plain(const int* in, int* out) {
  int thread = threadIdx.x;
  out[thread] = in[thread / 32 * 40 + thread % 32];
}
extern "C" __global__ void lane_and_warp__hand(const int* in, int* out) {
  unsigned thread = threadIdx.x;
  out[thread] = in[thread / 32 * 40 + thread % 32];
}

extern "C" __global__ void eighths__plain(const int* in, int* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i / 8] = in[i % 8];
}
extern "C" __global__ void eighths__hand(const int* in, int* out) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i / 8] = in[i % 8];
}

extern "C" __global__ void sevenths__plain(const int* in, int* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i / 7] = in[i % 7];
}
extern "C" __global__ void sevenths__hand(const int* in, int* out) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i / 7] = in[i % 7];
}

extern "C" __global__ void signed_division__plain(const int* in, int* out, int width, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) out[i] = in[i / width] - in[i % width];
}
extern "C" __global__ void signed_division__hand(const int* in, int* out, int width, int count) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if ((int)i < count) out[i] = in[i / (unsigned)width] - in[i % (unsigned)width];
}
