// Vector addition: managed memory, a managed variable, mapped and registered host memory.
#include "check.h"

#include <vector>

__managed__ int additions = 7;

__global__ void add(const float* a, const float* b, float* c, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  c[i] = a[i] + b[i];
  atomicAdd(&additions, 1);
}

int main() {
  const int n = 10000;
  float *a, *b, *c;
  CALL(cudaMallocManaged(&a, n * sizeof(float)));
  CALL(cudaHostAlloc(&b, n * sizeof(float), cudaHostAllocMapped));
  std::vector<float> own(n, -1.0f);
  CALL(cudaHostRegister(own.data(), n * sizeof(float), cudaHostRegisterMapped));
  CALL(cudaHostGetDevicePointer(&c, own.data(), 0));
  for (int i = 0; i < n; ++i) {
    a[i] = static_cast<float>(i);
    b[i] = static_cast<float>(2 * i);
  }
  EXPECT(additions == 7);
  additions = 0;
  add<<<(n + 255) / 256, 256>>>(a, b, c, n);
  CALL(cudaGetLastError());
  CALL(cudaDeviceSynchronize());
  EXPECT(additions == n);
  for (int i = 0; i < n; ++i)
    EXPECT(own[i] == static_cast<float>(3 * i));

  cudaPointerAttributes attributes;
  CALL(cudaPointerGetAttributes(&attributes, a + 5));
  EXPECT(attributes.type == cudaMemoryTypeManaged && attributes.devicePointer == a + 5);
  CALL(cudaPointerGetAttributes(&attributes, b));
  EXPECT(attributes.type == cudaMemoryTypeHost && attributes.hostPointer == b);
  CALL(cudaPointerGetAttributes(&attributes, &n));
  EXPECT(attributes.type == cudaMemoryTypeUnregistered);

  CALL(cudaHostUnregister(own.data()));
  EXPECT(cudaHostUnregister(own.data()) == cudaErrorHostMemoryNotRegistered);
  EXPECT(cudaGetLastError() == cudaErrorHostMemoryNotRegistered && cudaGetLastError() == cudaSuccess);
  CALL(cudaFree(a));
  CALL(cudaFreeHost(b));
  std::puts("right");
}
