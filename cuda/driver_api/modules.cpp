// Modules, libraries, kernels and functions. A kernel has the same handle in all of them.
#include "cuda/context/image.h"
#include "cuda/driver_api/entry.h"
#include "cuda/driver_api/jit_logs.h"

#include <algorithm>

namespace ptxrewrite::cuda::driver {
namespace {

Code load_image(Context& context, std::span<const std::byte> image, JitLogs logs, void** made) {
  static uint64_t number = 0;
  Module& module = context.add_module(fmt::format("loaded module {}", ++number), image);
  const Code code = module.load();
  logs.write(code, module.complaints());
  if (code == Code::success) *made = &module;
  return code;
}

Code load_memory(Context& context, const void* image, JitLogs logs, void** made) {
  if (!image || !made) return Code::invalid_value;
  Result<std::span<const std::byte>> bytes = image_at(image);
  if (bytes) return load_image(context, *bytes, logs, made);
  log(LogLevel::warn, "{}", bytes.error().message);
  return Code::invalid_image;
}

Code load_file(Context& context, const char* path, JitLogs logs, void** made) {
  if (!path || !made) return Code::invalid_value;
  Result<std::string> bytes = read_image(path);
  if (bytes) return load_image(context, std::as_bytes(std::span(*bytes)), logs, made);
  log(LogLevel::warn, "{}", bytes.error().message);
  return Code::file_not_found;
}

Code find_kernel(void* module, const char* name, void** kernel) {
  if (!module || !name || !kernel) return Code::invalid_value;
  *kernel = static_cast<Module*>(module)->find_kernel(name);
  return *kernel ? Code::success : Code::not_found;
}

Code find_global(Context& context, void* module, const char* name, DevicePointer* address, size_t* bytes) {
  if (!module || !name) return Code::invalid_value;
  const Symbol symbol = static_cast<Module*>(module)->find_symbol(name);
  if (!symbol.address) return Code::not_found;
  context.remember_constant(symbol);
  if (address) *address = symbol.address;
  if (bytes) *bytes = symbol.bytes.size();
  return Code::success;
}

Code list_kernels(void* module, void** kernels, unsigned room) {
  if (!module || !kernels) return Code::invalid_value;
  const std::vector<Kernel*> all = static_cast<Module*>(module)->every_kernel();
  std::copy_n(all.begin(), std::min<size_t>(room, all.size()), kernels);
  return Code::success;
}

Code attribute_of(const Context& context, const Kernel& kernel, int attribute, int& value) {
  switch (attribute) {
  case 0: // maximum threads per block
    value = static_cast<int>(kernel.most_threads);
    return Code::success;
  case 1: // static shared memory
    value = static_cast<int>(kernel.static_shared);
    return Code::success;
  case 3: // local memory
    value = static_cast<int>(kernel.local_bytes);
    return Code::success;
  case 4: // registers
    value = static_cast<int>(kernel.registers());
    return Code::success;
  case 5: // target of the PTX
    value = static_cast<int>(kernel.ptx_target);
    return Code::success;
  case 6: // target of the machine code
    value = static_cast<int>(context.settings().machine->compute_capability);
    return Code::success;
  case 8: // dynamic shared memory
    value = static_cast<int>(kernel.dynamic_shared_limit);
    return Code::success;
  case 9: // carve-out
    value = -1;
    return Code::success;
  default:
    value = 0;
    return attribute > 0 && attribute <= 15 ? Code::success : Code::invalid_value;
  }
}

} // namespace

DRIVER_API int cuModuleLoadData(void** module, const void* image) {
  return entry("cuModuleLoadData", [&](Context& context) { return load_memory(context, image, {}, module); });
}

DRIVER_API int cuModuleLoadDataEx(void** module, const void* image, unsigned count, const int* options, void** values) {
  return entry("cuModuleLoadDataEx",
               [&](Context& context) { return load_memory(context, image, JitLogs(count, options, values), module); });
}

DRIVER_API int cuModuleLoadFatBinary(void** module, const void* image) {
  return cuModuleLoadData(module, image);
}

DRIVER_API int cuModuleLoad(void** module, const char* path) {
  return entry("cuModuleLoad", [&](Context& context) { return load_file(context, path, {}, module); });
}

DRIVER_API int cuModuleUnload(void* module) {
  return entry("cuModuleUnload", [&](Context&) { return module ? Code::success : Code::invalid_handle; });
}

DRIVER_API int cuModuleGetLoadingMode(int* mode) {
  *mode = 2; // lazy
  return 0;
}

DRIVER_API int cuModuleGetFunction(void** kernel, void* module, const char* name) {
  return entry("cuModuleGetFunction", [&](Context&) { return find_kernel(module, name, kernel); });
}

DRIVER_API int cuModuleGetGlobal_v2(DevicePointer* address, size_t* bytes, void* module, const char* name) {
  return entry("cuModuleGetGlobal",
               [&](Context& context) { return find_global(context, module, name, address, bytes); });
}

DRIVER_API int cuLibraryLoadData(void** library, const void* image, const int* options, void** values, unsigned count,
                                 const int*, void**, unsigned) {
  return entry("cuLibraryLoadData",
               [&](Context& context) { return load_memory(context, image, JitLogs(count, options, values), library); });
}

DRIVER_API int cuLibraryLoadFromFile(void** library, const char* path, const int* options, void** values,
                                     unsigned count, const int*, void**, unsigned) {
  return entry("cuLibraryLoadFromFile",
               [&](Context& context) { return load_file(context, path, JitLogs(count, options, values), library); });
}

DRIVER_API int cuLibraryUnload(void* library) {
  return cuModuleUnload(library);
}

DRIVER_API int cuLibraryGetKernel(void** kernel, void* library, const char* name) {
  return entry("cuLibraryGetKernel", [&](Context&) { return find_kernel(library, name, kernel); });
}

DRIVER_API int cuLibraryGetModule(void** module, void* library) {
  *module = library;
  return 0;
}

DRIVER_API int cuLibraryGetGlobal(DevicePointer* address, size_t* bytes, void* library, const char* name) {
  return cuModuleGetGlobal_v2(address, bytes, library, name);
}

DRIVER_API int cuModuleGetFunctionCount(unsigned* count, void* module) {
  return entry("cuModuleGetFunctionCount", [&](Context&) {
    if (!count || !module) return Code::invalid_value;
    *count = static_cast<unsigned>(static_cast<Module*>(module)->every_kernel().size());
    return Code::success;
  });
}

DRIVER_API int cuModuleEnumerateFunctions(void** kernels, unsigned room, void* module) {
  return entry("cuModuleEnumerateFunctions", [&](Context&) { return list_kernels(module, kernels, room); });
}

DRIVER_API int cuLibraryEnumerateKernels(void** kernels, unsigned room, void* library) {
  return entry("cuLibraryEnumerateKernels", [&](Context&) { return list_kernels(library, kernels, room); });
}

DRIVER_API int cuKernelGetFunction(void** function, void* kernel) {
  *function = kernel;
  return 0;
}

DRIVER_API int cuFuncGetModule(void** module, void* function) {
  return entry("cuFuncGetModule", [&](Context&) {
    if (!function) return Code::invalid_handle;
    *module = static_cast<Kernel*>(function)->module;
    return Code::success;
  });
}

DRIVER_API int cuFuncGetName(const char** name, void* function) {
  return entry("cuFuncGetName", [&](Context&) {
    if (!function) return Code::invalid_handle;
    *name = static_cast<Kernel*>(function)->name.c_str();
    return Code::success;
  });
}

DRIVER_API int cuFuncGetParamInfo(void* function, size_t index, size_t* offset, size_t* bytes) {
  return entry("cuFuncGetParamInfo", [&](Context&) {
    if (!function) return Code::invalid_handle;
    const auto& parameters = static_cast<Kernel*>(function)->signature.parameters;
    if (index >= parameters.size()) return Code::invalid_value;
    if (offset) *offset = parameters[index].offset;
    if (bytes) *bytes = parameters[index].bytes;
    return Code::success;
  });
}

DRIVER_API int cuFuncGetAttribute(int* value, int attribute, void* function) {
  return entry("cuFuncGetAttribute", [&](Context& context) {
    if (!function) return Code::invalid_handle;
    return attribute_of(context, *static_cast<Kernel*>(function), attribute, *value);
  });
}

DRIVER_API int cuFuncSetAttribute(void* function, int attribute, int value) {
  return entry("cuFuncSetAttribute", [&](Context& context) {
    constexpr int max_dynamic_shared = 8, count = 16; // CU_FUNC_ATTRIBUTE_MAX of CUDA 13.0
    if (!function) return Code::invalid_handle;
    // Programs query newer attributes to find out whether they exist, for example for larger shared memory, which
    // attribute 8 also reports.
    if (attribute < 0 || attribute >= count) return Code::invalid_value;
    if (attribute != max_dynamic_shared) return Code::success;
    return context.allow_dynamic_shared(*static_cast<Kernel*>(function), value);
  });
}

DRIVER_API int cuKernelGetAttribute(int* value, int attribute, void* kernel, int) {
  return cuFuncGetAttribute(value, attribute, kernel);
}

DRIVER_API int cuKernelSetAttribute(int attribute, int value, void* kernel, int) {
  return cuFuncSetAttribute(kernel, attribute, value);
}

DRIVER_API int cuFuncSetCacheConfig(void*, int) {
  return 0;
}

DRIVER_API int cuKernelSetCacheConfig(void*, int, int) {
  return 0;
}

DRIVER_API int cuFuncSetSharedMemConfig(void*, int) {
  return 0;
}

DRIVER_API int cuFuncLoad(void*) {
  return 0;
}

DRIVER_API int cuFuncIsLoaded(int* state, void*) {
  *state = 1;
  return 0;
}

DRIVER_ALIAS(cuKernelGetName, cuFuncGetName)
DRIVER_ALIAS(cuLibraryGetKernelCount, cuModuleGetFunctionCount)
DRIVER_ALIAS(cuLibraryGetManaged, cuLibraryGetGlobal)
DRIVER_ALIAS(cuKernelGetLibrary, cuFuncGetModule)
DRIVER_ALIAS(cuKernelGetParamInfo, cuFuncGetParamInfo)

} // namespace ptxrewrite::cuda::driver
