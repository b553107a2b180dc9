// Idioms of the family `memory`: NAME__plain is common source code, NAME__hand is code that relies on pointers that
// are aligned and point to different buffers.
struct Body {
  float x, y, z, mass;
};

// The second load waits for the first store.
extern "C" __global__ void two_outputs__plain(const float* in, float* twice, float* square) {
  int i = threadIdx.x;
  twice[i] = 2.0f * in[i];
  square[i] = in[i] * in[i];
}
extern "C" __global__ void two_outputs__hand(const float* __restrict__ in, float* __restrict__ twice,
                                             float* __restrict__ square) {
  int i = threadIdx.x;
  float value = in[i];
  twice[i] = 2.0f * value;
  square[i] = value * value;
}

// The factor is loaded in every iteration.
extern "C" __global__ void scale_in_loop__plain(const float* factor, const float* in, float* out, int rows, int pitch) {
  for (int row = 0; row < rows; ++row)
    out[row * pitch + threadIdx.x] = in[row * pitch + threadIdx.x] * *factor;
}
extern "C" __global__ void scale_in_loop__hand(const float* __restrict__ factor, const float* __restrict__ in,
                                               float* __restrict__ out, int rows, int pitch) {
  for (int row = 0; row < rows; ++row)
    out[row * pitch + threadIdx.x] = in[row * pitch + threadIdx.x] * *factor;
}

// A matrix times a vector, accumulated in memory.
extern "C" __global__ void sum_in_memory__plain(const float* matrix, const float* vector, float* out, int columns) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  for (int column = 0; column < columns; ++column)
    out[row] += matrix[row * columns + column] * vector[column];
}
extern "C" __global__ void sum_in_memory__hand(const float* __restrict__ matrix, const float* __restrict__ vector,
                                               float* __restrict__ out, int columns) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (columns <= 0) return;
  float sum = out[row];
  for (int column = 0; column < columns; ++column)
    sum += matrix[row * columns + column] * vector[column];
  out[row] = sum;
}

// A stencil over planes, unrolled: loads of the next plane wait for the store of this one.
extern "C" __global__ void planes__plain(const float* in, float* out, int pitch) {
#pragma unroll
  for (int plane = 1; plane < 5; ++plane) {
    int at = plane * pitch + threadIdx.x;
    out[at] = in[at - pitch] + in[at] + in[at + pitch];
  }
}
extern "C" __global__ void planes__hand(const float* __restrict__ in, float* __restrict__ out, int pitch) {
#pragma unroll
  for (int plane = 1; plane < 5; ++plane) {
    int at = plane * pitch + threadIdx.x;
    out[at] = in[at - pitch] + in[at] + in[at + pitch];
  }
}

// A store that the next store overwrites.
extern "C" __global__ void cleared_first__plain(const float* in, float* out) {
  int i = threadIdx.x;
  out[i] = 0.0f;
  out[i] += in[i] * in[i + 128];
}
extern "C" __global__ void cleared_first__hand(const float* __restrict__ in, float* __restrict__ out) {
  int i = threadIdx.x;
  out[i] = 0.0f + in[i] * in[i + 128];
}

// A structure of four floats.
extern "C" __global__ void structure__plain(const Body* in, Body* out) {
  Body body = in[threadIdx.x];
  body.x *= body.mass;
  body.y *= body.mass;
  body.z *= body.mass;
  out[threadIdx.x] = body;
}
extern "C" __global__ void structure__hand(const float4* __restrict__ in, float4* __restrict__ out) {
  float4 body = in[threadIdx.x];
  out[threadIdx.x] = make_float4(body.x * body.w, body.y * body.w, body.z * body.w, body.w);
}

extern "C" __global__ void four_loads__plain(const float* in, float* out) {
  int i = threadIdx.x;
  out[i] = fmaxf(fmaxf(in[4 * i], in[4 * i + 1]), fmaxf(in[4 * i + 2], in[4 * i + 3]));
}
extern "C" __global__ void four_loads__hand(const float4* __restrict__ in, float* __restrict__ out) {
  float4 v = in[threadIdx.x];
  out[threadIdx.x] = fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w));
}

extern "C" __global__ void four_stores__plain(const int* in, int* out) {
  int i = threadIdx.x, v = in[i];
#pragma unroll
  for (int k = 0; k < 4; ++k)
    out[4 * i + k] = v ^ (k << 8);
}
extern "C" __global__ void four_stores__hand(const int* __restrict__ in, int4* __restrict__ out) {
  int v = in[threadIdx.x];
  out[threadIdx.x] = make_int4(v, v ^ 256, v ^ 512, v ^ 768);
}

extern "C" __global__ void four_byte_stores__plain(const unsigned* in, unsigned char* out) {
  int i = threadIdx.x;
  unsigned v = in[i];
  out[4 * i] = v >> 24;
  out[4 * i + 1] = v >> 16;
  out[4 * i + 2] = v >> 8;
  out[4 * i + 3] = v;
}
extern "C" __global__ void four_byte_stores__hand(const unsigned* __restrict__ in, unsigned* __restrict__ out) {
  out[threadIdx.x] = __byte_perm(in[threadIdx.x], 0, 0x0123);
}

// Rows of a matrix, four columns per iteration.
extern "C" __global__ void row_in_fours__plain(const float* matrix, const float* vector, float* out, int columns) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0.0f;
#pragma unroll 1
  for (int column = 0; column < columns; column += 4)
#pragma unroll
    for (int k = 0; k < 4; ++k)
      sum += matrix[row * columns + column + k] * vector[column + k];
  out[row] = sum;
}
extern "C" __global__ void row_in_fours__hand(const float4* __restrict__ matrix, const float4* __restrict__ vector,
                                              float* __restrict__ out, int columns) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0.0f;
#pragma unroll 1
  for (int column = 0; column < columns / 4; ++column) {
    float4 a = matrix[row * (columns / 4) + column], b = vector[column];
    sum += a.x * b.x;
    sum += a.y * b.y;
    sum += a.z * b.z;
    sum += a.w * b.w;
  }
  out[row] = sum;
}
