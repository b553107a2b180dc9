// Texture objects over arrays, linear and pitched memory, surfaces, 3D copies.
#include "check.h"

#include <vector>

__global__ void sample(cudaTextureObject_t texture, float* out, int width, int height) {
  const int x = threadIdx.x, y = blockIdx.x;
  if (x < width && y < height) out[y * width + x] = tex2D<float>(texture, x + 1.0f, y + 0.5f);
}

__global__ void fetch(cudaTextureObject_t texture, int* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    const int2 pair = tex1Dfetch<int2>(texture, i);
    out[i] = pair.x - pair.y;
  }
}

__global__ void turn(cudaSurfaceObject_t from, cudaSurfaceObject_t to, int width, int height) {
  const int x = threadIdx.x, y = blockIdx.x;
  if (x >= width || y >= height) return;
  float value;
  surf2Dread(&value, from, x * sizeof(float), y);
  surf2Dwrite(-value, to, (width - 1 - x) * sizeof(float), y);
}

__global__ void volume(cudaTextureObject_t texture, float* out) {
  out[threadIdx.z * 12 + threadIdx.y * 4 + threadIdx.x] =
      tex3D<float>(texture, threadIdx.x + 0.5f, threadIdx.y + 0.5f, threadIdx.z + 0.5f);
}

// A texture of `resource` with linear filtering shows the host's rows.
static void expect_rows(const cudaResourceDesc& resource, const std::vector<float>& host, int width, int height) {
  cudaTextureDesc description{};
  description.addressMode[0] = description.addressMode[1] = cudaAddressModeClamp;
  description.filterMode = cudaFilterModeLinear;
  cudaTextureObject_t texture;
  CALL(cudaCreateTextureObject(&texture, &resource, &description, nullptr));
  float* out;
  CALL(cudaMalloc(&out, width * height * sizeof(float)));
  sample<<<height, width>>>(texture, out, width, height);
  std::vector<float> back(width * height);
  CALL(cudaMemcpy(back.data(), out, width * height * sizeof(float), cudaMemcpyDeviceToHost));
  // x + 1 is halfway between the centres of texels x and x + 1; the last one is clamped.
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {
      const float left = host[y * width + x], right = host[y * width + (x + 1 < width ? x + 1 : x)];
      EXPECT(back[y * width + x] == (left + right) / 2);
    }
  CALL(cudaDestroyTextureObject(texture));
}

static void planes() {
  const int width = 64, height = 8;
  std::vector<float> host(width * height), back(width * height);
  for (int i = 0; i < width * height; ++i)
    host[i] = static_cast<float>(i * i % 97);
  const cudaChannelFormatDesc floats = cudaCreateChannelDesc<float>();
  cudaArray_t array, other;
  CALL(cudaMallocArray(&array, &floats, width, height, cudaArraySurfaceLoadStore));
  CALL(cudaMallocArray(&other, &floats, width, height, cudaArraySurfaceLoadStore));
  CALL(cudaMemcpy2DToArray(array, 0, 0, host.data(), width * 4, width * 4, height, cudaMemcpyHostToDevice));
  cudaResourceDesc resource{};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  expect_rows(resource, host, width, height);
  cudaSurfaceObject_t from, to;
  CALL(cudaCreateSurfaceObject(&from, &resource));
  resource.res.array.array = other;
  CALL(cudaCreateSurfaceObject(&to, &resource));
  turn<<<height, width>>>(from, to, width, height);
  CALL(cudaMemcpy2DFromArray(back.data(), width * 4, other, 0, 0, width * 4, height, cudaMemcpyDeviceToHost));
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      EXPECT(back[y * width + x] == -host[y * width + width - 1 - x]);
  CALL(cudaDestroySurfaceObject(from));
  CALL(cudaDestroySurfaceObject(to));
  CALL(cudaFreeArray(array));
  CALL(cudaFreeArray(other));
}

// Rows of 200 bytes, which cudaMallocPitch spreads.
static void pitched() {
  const int width = 50, height = 7;
  std::vector<float> host(width * height);
  for (int i = 0; i < width * height; ++i)
    host[i] = static_cast<float>(i * i % 89);
  float* memory;
  size_t pitch = 0;
  CALL(cudaMallocPitch(&memory, &pitch, width * sizeof(float), height));
  EXPECT(pitch > width * sizeof(float));
  CALL(cudaMemset(memory, 0xff, pitch * height));
  CALL(cudaMemcpy2D(memory, pitch, host.data(), width * 4, width * 4, height, cudaMemcpyHostToDevice));
  cudaResourceDesc resource{};
  resource.resType = cudaResourceTypePitch2D;
  resource.res.pitch2D.devPtr = memory;
  resource.res.pitch2D.desc = cudaCreateChannelDesc<float>();
  resource.res.pitch2D.width = width;
  resource.res.pitch2D.height = height;
  resource.res.pitch2D.pitchInBytes = pitch;
  expect_rows(resource, host, width, height);
  resource.res.pitch2D.pitchInBytes = 96;
  cudaTextureDesc description{};
  cudaTextureObject_t texture;
  EXPECT(cudaCreateTextureObject(&texture, &resource, &description, nullptr) == cudaErrorInvalidValue);
  CALL(cudaFree(memory));
}

static void linear() {
  const int n = 300;
  std::vector<int2> pairs(n);
  for (int i = 0; i < n; ++i)
    pairs[i] = {5 * i, 2 * i};
  int2* memory;
  int* out;
  CALL(cudaMalloc(&memory, n * sizeof(int2)));
  CALL(cudaMalloc(&out, n * sizeof(int)));
  CALL(cudaMemcpy(memory, pairs.data(), n * sizeof(int2), cudaMemcpyHostToDevice));
  cudaResourceDesc resource{};
  resource.resType = cudaResourceTypeLinear;
  resource.res.linear.devPtr = memory;
  resource.res.linear.desc = cudaCreateChannelDesc<int2>();
  resource.res.linear.sizeInBytes = n * sizeof(int2);
  cudaTextureDesc description{};
  cudaTextureObject_t texture;
  CALL(cudaCreateTextureObject(&texture, &resource, &description, nullptr));
  fetch<<<2, 256>>>(texture, out, n);
  std::vector<int> back(n);
  CALL(cudaMemcpy(back.data(), out, n * sizeof(int), cudaMemcpyDeviceToHost));
  for (int i = 0; i < n; ++i)
    EXPECT(back[i] == 3 * i);
}

static void box() {
  std::vector<float> host(24), back(24);
  for (int i = 0; i < 24; ++i)
    host[i] = 0.25f * static_cast<float>(i);
  const cudaChannelFormatDesc floats = cudaCreateChannelDesc<float>();
  cudaArray_t array;
  CALL(cudaMalloc3DArray(&array, &floats, make_cudaExtent(4, 3, 2)));
  cudaMemcpy3DParms copy{};
  copy.srcPtr = make_cudaPitchedPtr(host.data(), 4 * sizeof(float), 4, 3);
  copy.dstArray = array;
  copy.extent = make_cudaExtent(4, 3, 2);
  copy.kind = cudaMemcpyHostToDevice;
  CALL(cudaMemcpy3D(&copy));
  cudaResourceDesc resource{};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  cudaTextureDesc description{};
  cudaTextureObject_t texture;
  CALL(cudaCreateTextureObject(&texture, &resource, &description, nullptr));
  float* out;
  CALL(cudaMalloc(&out, 24 * sizeof(float)));
  volume<<<1, dim3(4, 3, 2)>>>(texture, out);
  CALL(cudaMemcpy(back.data(), out, 24 * sizeof(float), cudaMemcpyDeviceToHost));
  EXPECT(back == host);
}

int main() {
  planes();
  pitched();
  linear();
  box();
  std::puts("right");
}
