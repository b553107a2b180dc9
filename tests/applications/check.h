// Shared by all programs here, also those without CUDA headers (EXPECT): a CUDA call that must succeed, and a condition
// that must be true.
#pragma once

#include <cstdio>
#include <cstdlib>

#define CALL(EXPRESSION)                                                                                               \
  do {                                                                                                                 \
    const cudaError_t code = (EXPRESSION);                                                                             \
    if (code != cudaSuccess) {                                                                                         \
      std::printf("%s:%d: %s: %s\n", __FILE__, __LINE__, #EXPRESSION, cudaGetErrorString(code));                       \
      std::exit(1);                                                                                                    \
    }                                                                                                                  \
  } while (false)

// The same of the driver API.
#define DRIVER(EXPRESSION)                                                                                             \
  do {                                                                                                                 \
    const CUresult result = (EXPRESSION);                                                                              \
    if (result != CUDA_SUCCESS) {                                                                                      \
      const char* name = nullptr;                                                                                      \
      cuGetErrorName(result, &name);                                                                                   \
      std::printf("%s:%d: %s: %s\n", __FILE__, __LINE__, #EXPRESSION, name);                                           \
      std::exit(1);                                                                                                    \
    }                                                                                                                  \
  } while (false)

#define EXPECT(CONDITION)                                                                                              \
  do {                                                                                                                 \
    if (!(CONDITION)) {                                                                                                \
      std::printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #CONDITION);                                              \
      std::exit(1);                                                                                                    \
    }                                                                                                                  \
  } while (false)
