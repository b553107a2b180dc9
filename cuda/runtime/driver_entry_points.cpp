// cudaGetDriverEntryPoint: functions of libcuda by name, for programs that are not linked with it
// (cuTensorMapEncodeTiled of CUTLASS, cuMemMap ...). They come from the libcuda next to this library, which is loaded
// on the first call.
#include "cuda/runtime/entry.h"

#include <dlfcn.h>
#include <filesystem>

RUNTIME_API int cudaRuntimeGetVersion(int* version); // device.cpp

namespace ptxrewrite::cuda::runtime {
namespace {

using FindDriverFunction = int (*)(const char* name, void** function, int cuda_version, uint64_t flags, int* status);

// cudaDriverEntryPointQueryResult.
enum QueryResult : int { found = 0, symbol_not_found = 1 };

FindDriverFunction load_driver() {
  Dl_info own;
  if (!dladdr(reinterpret_cast<void*>(&load_driver), &own)) return nullptr;
  const std::string path = (std::filesystem::path(own.dli_fname).parent_path() / "libcuda.so.1").string();
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL); // never closed, because programs keep its functions
  return library ? reinterpret_cast<FindDriverFunction>(dlsym(library, "cuGetProcAddress_v2")) : nullptr;
}

int find_driver_function(const char* call, const char* name, void** function, unsigned cuda_version, uint64_t flags,
                         int* status) {
  return entry(call, [&](Context&) {
    if (!name || !function) return Code::invalid_value;
    *function = nullptr;
    static const FindDriverFunction find = load_driver();
    if (!find) return Code::not_supported;
    int search = symbol_not_found;
    const int code = find(name, function, static_cast<int>(cuda_version), flags, &search);
    if (status) *status = code == 0 ? found : symbol_not_found;
    return code == 0 || status ? Code::success : Code::not_found;
  });
}

unsigned own_version() {
  int version = 0;
  (void)cudaRuntimeGetVersion(&version); // cannot fail
  return static_cast<unsigned>(version);
}

} // namespace

#if PTXREWRITE_CUDART_MAJOR == 11
RUNTIME_API int cudaGetDriverEntryPoint(const char* name, void** function, uint64_t flags) {
  return find_driver_function("cudaGetDriverEntryPoint", name, function, own_version(), flags, nullptr);
}
#else
RUNTIME_API int cudaGetDriverEntryPoint(const char* name, void** function, uint64_t flags, int* status) {
  return find_driver_function("cudaGetDriverEntryPoint", name, function, own_version(), flags, status);
}

RUNTIME_API int cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned cuda_version,
                                                 uint64_t flags, int* status) {
  return find_driver_function("cudaGetDriverEntryPointByVersion", name, function, cuda_version, flags, status);
}
RUNTIME_ALIAS(cudaGetDriverEntryPointByVersion_ptsz, cudaGetDriverEntryPointByVersion)
#endif
RUNTIME_ALIAS(cudaGetDriverEntryPoint_ptsz, cudaGetDriverEntryPoint)

} // namespace ptxrewrite::cuda::runtime
