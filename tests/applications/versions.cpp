// A program of CUDA 11, 12 or 13 without its headers: the library of its version fills its structures exactly to their
// last byte. Sizes and offsets are those of the headers of CUDA 11.8, 12.9 and 13.0.
#include "tests/applications/check.h"

#include <cstdio>
#include <cstring>

#if MAJOR == 12
#define PROPERTIES cudaGetDeviceProperties_v2
#else
#define PROPERTIES cudaGetDeviceProperties
#endif
extern "C" {
int PROPERTIES(void* properties, int device);
int cudaGetDeviceProperties(void* properties, int device);
int cudaRuntimeGetVersion(int* version);
int cudaMalloc(void** pointer, size_t bytes);
int cudaMemset(void* pointer, int value, size_t bytes);
int cudaMemcpy(void* to, const void* from, size_t bytes, int kind);
int cudaPointerGetAttributes(void* attributes, const void* pointer);
#if MAJOR < 13
int cudaThreadSynchronize();
#endif
}

struct Layout {
  size_t bytes, major, multiprocessors, shared_optin, pointer_bytes;
};
#if MAJOR == 11
constexpr Layout own = {728, 360, 388, 696, 24};
#elif MAJOR == 12
constexpr Layout own = {1032, 360, 388, 696, 24}, older = {728, 360, 388, 696, 24};
#else
constexpr Layout own = {1008, 360, 384, 672, 88};
#endif
constexpr int guard = 0xab;

static int number_at(const unsigned char* bytes, size_t offset) {
  int value = 0;
  std::memcpy(&value, bytes + offset, sizeof value);
  return value;
}

static void check_properties(int (*get)(void*, int), const Layout& layout) {
  unsigned char bytes[2048];
  std::memset(bytes, guard, sizeof bytes);
  EXPECT(get(bytes, 0) == 0);
  EXPECT(std::strstr(reinterpret_cast<char*>(bytes), "H100"));
  EXPECT(number_at(bytes, layout.major) == 9 && number_at(bytes, layout.major + 4) == 0);
  EXPECT(number_at(bytes, layout.multiprocessors) > 100);
  EXPECT(number_at(bytes, layout.shared_optin) == 232448);
  EXPECT(bytes[layout.bytes] == guard && bytes[layout.bytes - 1] != guard);
}

int main() {
  int version = 0;
  EXPECT(cudaRuntimeGetVersion(&version) == 0 && version / 1000 == MAJOR);
  check_properties(PROPERTIES, own);
#if MAJOR == 12
  check_properties(cudaGetDeviceProperties, older); // its name in CUDA 11
#endif
  void* data = nullptr;
  EXPECT(cudaMalloc(&data, 64) == 0 && cudaMemset(data, 7, 64) == 0);
  unsigned char byte = 0, attributes[256];
  EXPECT(cudaMemcpy(&byte, static_cast<char*>(data) + 63, 1, 2) == 0 && byte == 7);
  std::memset(attributes, guard, sizeof attributes);
  EXPECT(cudaPointerGetAttributes(attributes, data) == 0);
  EXPECT(number_at(attributes, 0) == 2 && attributes[own.pointer_bytes] == guard);
#if MAJOR < 13
  EXPECT(cudaThreadSynchronize() == 0);
#endif
  std::puts("right");
}
