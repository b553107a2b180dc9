// Memory that a copy of a launch cannot contain: registered and inaccessible since, and mapped at two addresses,
// through which the kernel writes and reads the same bytes.
#include "check.h"

#include <cuda.h>
#include <sys/mman.h>

__global__ void add_through(int* to, const int* from, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    to[i] = from[i] + 1;
}

template <class Function> static Function driver(const char* name) {
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult found;
  CALL(cudaGetDriverEntryPointByVersion(name, &entry, 12000, cudaEnableDefault, &found));
  EXPECT(found == cudaDriverEntryPointSuccess);
  return reinterpret_cast<Function>(entry);
}
#define DRIVER_BY_NAME(NAME, ...) EXPECT(driver<decltype(&NAME)>(#NAME)(__VA_ARGS__) == CUDA_SUCCESS)

static const int n = 256;

static void check(const int* from, int* to, int expected) {
  add_through<<<2, 128>>>(to, from, n);
  CALL(cudaDeviceSynchronize());
  int got[n];
  CALL(cudaMemcpy(got, to, sizeof got, cudaMemcpyDefault));
  for (int value : got)
    EXPECT(value == expected);
}

static void registered_and_gone() {
  const size_t page = 1 << 16;
  void* memory = mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CALL(cudaHostRegister(memory, page, cudaHostRegisterMapped));
  mprotect(memory, page, PROT_NONE); // like unmapped memory, but the range stays reserved
}

static void mapped_twice() {
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  const size_t page = 2 << 20;
  CUmemGenericAllocationHandle memory;
  DRIVER_BY_NAME(cuMemCreate, &memory, page, &properties, 0);
  CUdeviceptr ranges[2];
  const CUmemAccessDesc access = {properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  for (CUdeviceptr& range : ranges) {
    DRIVER_BY_NAME(cuMemAddressReserve, &range, page, 0, 0, 0);
    DRIVER_BY_NAME(cuMemMap, range, page, 0, memory, 0);
    DRIVER_BY_NAME(cuMemSetAccess, range, page, &access, 1);
  }
  check(reinterpret_cast<int*>(ranges[1]), reinterpret_cast<int*>(ranges[0]), 1);
}

int main(int count, char** words) {
  CALL(cudaFree(nullptr));
  int *from, *to;
  CALL(cudaMalloc(&from, n * sizeof(int)));
  CALL(cudaMalloc(&to, n * sizeof(int)));
  CALL(cudaMemset(from, 0, n * sizeof(int)));
  if (count > 1 && words[1][0] == 'g') registered_and_gone();
  if (count > 1 && words[1][0] == 't') mapped_twice();
  check(from, to, 1);
  std::puts("right");
}
