// cuGetProcAddress: functions by name and version.
#include "cuda/driver_api/entry.h"

namespace ptxrewrite::cuda::driver {
namespace {

// The newest version of a function that a program of this CUDA version can mean. Newer signatures came with these
// versions; all others of cuda.h are older than CUDA 11.
bool is_too_new(const std::string& name, int cuda_version) {
  struct Since {
    std::string_view name;
    int version;
  };
  constexpr Since all[] = {{"cuCtxCreate_v4", 12050},
                           {"cuCtxCreate_v3", 11040},
                           {"cuEventElapsedTime_v2", 12080},
                           {"cuGraphInstantiate_v2", 11000},
                           {"cuGetProcAddress_v2", 12000},
                           {"cuGraphKernelNodeGetParams_v2", 12000},
                           {"cuGraphKernelNodeSetParams_v2", 12000},
                           {"cuGraphExecKernelNodeSetParams_v2", 12000},
                           {"cuGraphAddKernelNode_v2", 12000},
                           {"cuStreamGetCaptureInfo_v3", 12030},
                           {"cuMemPrefetchAsync_v2", 12020},
                           {"cuMemAdvise_v2", 12020},
                           {"cuCtxGetDevice_v2", 13000},
                           {"cuCtxSynchronize_v2", 13000},
                           {"cuStreamGetCtx_v2", 12050}};
  for (const Since& since : all)
    if (since.name == name) return cuda_version < since.version;
  return false;
}

} // namespace

DRIVER_API int cuGetProcAddress_v2(const char* name, void** function, int cuda_version, uint64_t, int* status) {
  if (!name || !function) return finish(Code::invalid_value);
  *function = nullptr;
  for (const char* suffix : {"_v4", "_v3", "_v2", ""}) {
    const std::string full = name + std::string(suffix);
    if (is_too_new(full, cuda_version)) continue;
    if ((*function = find_entry_point(full))) break;
  }
  if (status) *status = *function ? 0 : 1; // found, not found
  return *function ? 0 : finish(Code::not_found);
}

DRIVER_API int cuGetProcAddress(const char* name, void** function, int cuda_version, uint64_t flags) {
  return cuGetProcAddress_v2(name, function, cuda_version, flags, nullptr);
}

// What NVIDIA's own libraries talk to the driver with. It is not public.
DRIVER_API int cuGetExportTable(const void** table, const void*) {
  if (table) *table = nullptr;
  log_once(LogLevel::error, "this program is linked with the static CUDA runtime, or with a library of NVIDIA's that "
                            "needs NVIDIA's driver; link it with -cudart shared");
  return finish(Code::not_found);
}

} // namespace ptxrewrite::cuda::driver
