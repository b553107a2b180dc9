// The real driver below the interposed one: loaded by its path, because the usual name refers to the interposed
// library.
#pragma once

#include <cstddef>
#include <cstdint>

// The entry points that the interposed driver itself calls: member, entry point, parameters. Handles are void *.
#define PTXREWRITE_REAL_ENTRY_POINTS(ROW)                                                                              \
  ROW(get_proc_address, cuGetProcAddress_v2, (const char*, void**, int, uint64_t, int*))                               \
  ROW(context_device, cuCtxGetDevice, (int*))                                                                          \
  ROW(device_attribute, cuDeviceGetAttribute, (int*, int, int))                                                        \
  ROW(resident_blocks, cuOccupancyMaxActiveBlocksPerMultiprocessor, (int*, void*, int, size_t))                        \
  ROW(stream_is_capturing, cuStreamIsCapturing, (void*, int*))                                                         \
  ROW(exchange_capture_mode, cuThreadExchangeStreamCaptureMode, (int*))                                                \
  ROW(module_load, cuModuleLoad, (void**, const char*))                                                                \
  ROW(module_load_data, cuModuleLoadData, (void**, const void*))                                                       \
  ROW(module_load_data_ex, cuModuleLoadDataEx, (void**, const void*, unsigned, int*, void**))                          \
  ROW(module_load_fat_binary, cuModuleLoadFatBinary, (void**, const void*))                                            \
  ROW(module_unload, cuModuleUnload, (void*))                                                                          \
  ROW(module_function, cuModuleGetFunction, (void**, void*, const char*))                                              \
  ROW(load_library_data, cuLibraryLoadData, (void**, const void*, int*, void**, unsigned, int*, void**, unsigned))     \
  ROW(load_library_file, cuLibraryLoadFromFile, (void**, const char*, int*, void**, unsigned, int*, void**, unsigned)) \
  ROW(unload_library, cuLibraryUnload, (void*))                                                                        \
  ROW(kernel_of_library, cuLibraryGetKernel, (void**, void*, const char*))                                             \
  ROW(module_of_library, cuLibraryGetModule, (void**, void*))                                                          \
  ROW(kernel_function, cuKernelGetFunction, (void**, void*))                                                           \
  ROW(set_function_attribute, cuFuncSetAttribute, (void*, int, int))                                                   \
  ROW(set_kernel_attribute, cuKernelSetAttribute, (int, int, void*, int))                                              \
  ROW(launch, cuLaunchKernel,                                                                                          \
      (void*, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, void*, void**, void**))            \
  ROW(launch_ptsz, cuLaunchKernel_ptsz,                                                                                \
      (void*, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, void*, void**, void**))            \
  ROW(launch_cooperative, cuLaunchCooperativeKernel,                                                                   \
      (void*, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, void*, void**))                    \
  ROW(launch_cooperative_ptsz, cuLaunchCooperativeKernel_ptsz,                                                         \
      (void*, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, void*, void**))                    \
  ROW(launch_ex, cuLaunchKernelEx, (const void*, void*, void**, void**))                                               \
  ROW(launch_ex_ptsz, cuLaunchKernelEx_ptsz, (const void*, void*, void**, void**))                                     \
  ROW(event_create, cuEventCreate, (void**, unsigned))                                                                 \
  ROW(event_destroy, cuEventDestroy_v2, (void*))                                                                       \
  ROW(event_record, cuEventRecord, (void*, void*))                                                                     \
  ROW(event_query, cuEventQuery, (void*))                                                                              \
  ROW(event_elapsed, cuEventElapsedTime, (float*, void*, void*))

namespace ptxrewrite::cuda::interpose {

constexpr int success = 0;
constexpr int error_no_device = 100;     // CUDA_ERROR_NO_DEVICE
constexpr int error_not_supported = 801; // CUDA_ERROR_NOT_SUPPORTED

struct RealDriver {
  // Loaded by the first call; PTXREWRITE_LIBCUDA has its path. If loading fails, `handle` is null and every entry point
  // fails with error_no_device.
  static RealDriver& get();
  // Returns a function that fails with error_not_supported if the driver lacks the symbol.
  void* symbol_or_refusal(const char* name) const;

  void* handle = nullptr;
#define PTXREWRITE_MEMBER(member, name, parameters) int(*member) parameters = nullptr;
  PTXREWRITE_REAL_ENTRY_POINTS(PTXREWRITE_MEMBER)
#undef PTXREWRITE_MEMBER
};

} // namespace ptxrewrite::cuda::interpose
