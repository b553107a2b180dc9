// cuGetProcAddress: functions by name and version.
#include "cuda/driver_api/entry.h"

#include <cstdio>
#include <dlfcn.h>
#include <sys/auxv.h>
#include <unistd.h>

namespace ptxrewrite::cuda::driver {
namespace {

// Program headers follow the file header, in its first page.
constexpr uintptr_t largest_header_offset = 4096;

// Is the function version newer than a program of this CUDA version can expect? The listed signatures came with these
// versions; all others of cuda.h are older than CUDA 11.
bool is_too_new(const std::string& name, int cuda_version) {
  struct Since {
    std::string_view name;
    int version;
  };
  // clang-format off
  constexpr Since all[] = {
      {"cuCtxCreate_v3", 11040},
      {"cuCtxCreate_v4", 12050},
      {"cuCtxGetDevice_v2", 13000},
      {"cuCtxSynchronize_v2", 13000},
      {"cuDeviceGetUuid_v2", 11040},
      {"cuEventElapsedTime_v2", 12080},
      {"cuGetProcAddress_v2", 12000},
      {"cuGraphAddDependencies_v2", 12030},
      {"cuGraphAddKernelNode_v2", 12000},
      {"cuGraphAddNode_v2", 12030},
      {"cuGraphExecKernelNodeSetParams_v2", 12000},
      {"cuGraphExecUpdate_v2", 12000},
      {"cuGraphGetEdges_v2", 12030},
      {"cuGraphKernelNodeGetParams_v2", 12000},
      {"cuGraphKernelNodeSetParams_v2", 12000},
      {"cuGraphNodeGetDependencies_v2", 12030},
      {"cuGraphNodeGetDependentNodes_v2", 12030},
      {"cuGraphRemoveDependencies_v2", 12030},
      {"cuMemAdvise_v2", 12020},
      {"cuMemPrefetchAsync_v2", 12020},
      {"cuMemcpy3DBatchAsync_v2", 13000},
      {"cuMemcpyBatchAsync_v2", 13000},
      {"cuStreamBatchMemOp_v2", 11070},
      {"cuStreamGetCaptureInfo_v2", 11030},
      {"cuStreamGetCaptureInfo_v3", 12030},
      {"cuStreamGetCtx_v2", 12050},
      {"cuStreamUpdateCaptureDependencies_v2", 12030},
      {"cuStreamWaitValue32_v2", 11070},
      {"cuStreamWaitValue64_v2", 11070},
      {"cuStreamWriteValue32_v2", 11070},
      {"cuStreamWriteValue64_v2", 11070},
  };
  // clang-format on
  for (const Since& since : all)
    if (since.name == name) return cuda_version < since.version;
  return false;
}

// Is the object a library rather than the program itself?
bool is_library(const Dl_info& object) {
  return getauxval(AT_PHDR) - reinterpret_cast<uintptr_t>(object.dli_fbase) > largest_header_offset;
}

// NVIDIA's compilers compile without a CUDA runtime.
bool is_compiler(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  return name.starts_with("libnvrtc") || name.starts_with("libnvJitLink");
}

} // namespace

DRIVER_API int cuGetProcAddress_v2(const char* name, void** function, int cuda_version, uint64_t, int* status) {
  if (!name || !function) return finish(Code::invalid_value);
  *function = nullptr;
  for (const char* suffix : {"_v4", "_v3", "_v2", ""}) {
    const std::string full = name + std::string(suffix);
    if (is_too_new(full, cuda_version)) continue;
    *function = find_entry_point(full);
    if (*function) break;
  }
  if (status) *status = *function ? 0 : 1; // found, not found
  return *function ? 0 : finish(Code::not_found);
}

DRIVER_API int cuGetProcAddress(const char* name, void** function, int cuda_version, uint64_t flags) {
  return cuGetProcAddress_v2(name, function, cuda_version, flags, nullptr);
}

// Private interface of NVIDIA's own libraries to the driver, undocumented. The static runtime cannot do without it: all
// its calls would fail, and a program that ignores errors would end with wrong results and exit code 0. Libraries of a
// program may contain the static runtime, too; whether the program depends on their results is unknown.
DRIVER_API int cuGetExportTable(const void** table, const void*) {
  if (table) *table = nullptr;
  if (Dl_info caller; dladdr(__builtin_return_address(0), &caller) && is_library(caller)) {
    log_once(is_compiler(caller.dli_fname) ? LogLevel::info : LogLevel::error,
             fmt::format("{} contains the static CUDA runtime, which is not emulated: its calls of CUDA fail. Link it "
                         "with the shared one: nvcc -cudart shared",
                         caller.dli_fname));
    return finish(Code::not_found);
  }
  log_text(LogLevel::error,
           "this program contains the static CUDA runtime, which is not emulated: link it with the shared "
           "one: nvcc -cudart shared (CMake: CUDA_RUNTIME_LIBRARY Shared)");
  std::fflush(nullptr);
  _exit(1); // exit handlers would wait for locks that the static runtime holds
}

} // namespace ptxrewrite::cuda::driver
