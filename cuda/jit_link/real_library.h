// NVIDIA's nvJitLink, which compiles LTO-IR to PTX without a GPU: by the functions that are used of it.
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

// Found in PTXREWRITE_NVJITLINK, beside Python packages that this process has loaded, or in a CUDA toolkit; null:
// nowhere.
const RealLibrary* real_library();

} // namespace ptxrewrite::jit_link
