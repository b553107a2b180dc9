// NVIDIA's nvJitLink, which compiles LTO-IR to PTX without a GPU: the functions that are used.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ptxrewrite::jit_link {

struct RealLibrary {
  int (*create)(void** handle, uint32_t count, const char** options);
  int (*destroy)(void** handle);
  int (*add_data)(void* handle, int type, const void* data, size_t bytes, const char* name);
  int (*add_file)(void* handle, int type, const char* path);
  int (*complete)(void* handle);
  int (*ptx_size)(void* handle, size_t* bytes);
  int (*ptx)(void* handle, char* text);
  int (*error_size)(void* handle, size_t* bytes);
  int (*error)(void* handle, char* text);
  int (*info_size)(void* handle, size_t* bytes);
  int (*info)(void* handle, char* text);
  int (*version)(unsigned* major, unsigned* minor);
};

// Loaded from PTXREWRITE_NVJITLINK, from Python packages that this process has loaded, or from a CUDA toolkit; nullptr
// if there is none.
const RealLibrary* real_library();

} // namespace ptxrewrite::jit_link
