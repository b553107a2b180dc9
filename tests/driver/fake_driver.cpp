// A libcuda for tests: the entry points that cli/driver uses, executed by the emulator.
//
// Built as a shared library that does not contain the emulator: the program that opens it exports one.
//
// PTXREWRITE_FAKE_DRIVER lists faults to inject, separated by commas:
//   cuMemAlloc_v2=2@3   the third call (default: the first) of that entry point returns status 2
//   no_device           the driver has no device
// PTXREWRITE_FAKE_DRIVER_LOG is the compiler's log if loading a module is to fail.
// PTXREWRITE_FAKE_DRIVER_VERSION=12040 simulates a driver of CUDA 12.4, which supports PTX up to 8.4.
// PTXREWRITE_FAKE_DRIVER_CLOCK=instructions makes events report emulated warp instructions as nanoseconds: times that
// are the same in every run. PTXREWRITE_FAKE_DRIVER_TRACE names a file that gets a line for each launch.
// PTXREWRITE_FAKE_DRIVER_BUS_ID is its address on the PCI bus, by default 0000:3B:00.0.
// Built with PTXREWRITE_OLD_DRIVER it lacks an entry point, without fake_textures.cpp those of textures, without
// PTXREWRITE_NEWER_DRIVER those of clusters and tensor maps.
// PTXREWRITE_FAKE_DRIVER_REPORT names a file that gets a line with the objects not freed when the context ends.
#include "emulator/tensor_copies/tensor_map_object.h"
#include "grammar/reader.h"
#include "ir/isa/tensor_map.h"
#include "launch/signature.h"
#include "tests/driver/fake_gpu.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace {

using namespace ptxrewrite;
using namespace ptxrewrite::driver;

std::string setting(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

double now() {
  if (setting("PTXREWRITE_FAKE_DRIVER_CLOCK") == "instructions")
    return static_cast<double>(gpu().warp_instructions) * 1e-9;
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

int driver_version() {
  const std::string wanted = setting("PTXREWRITE_FAKE_DRIVER_VERSION");
  return wanted.empty() ? 13000 : std::atoi(wanted.c_str());
}

// Writes a log in the way of the driver's compiler.
void write_log(std::string text, unsigned count, JitOption* options, void** values) {
  char* buffer = nullptr;
  size_t bytes = 0;
  for (unsigned i = 0; i < count; ++i) {
    if (options[i] == JitOption::error_log_buffer) buffer = static_cast<char*>(values[i]);
    if (options[i] == JitOption::error_log_buffer_bytes) bytes = reinterpret_cast<uintptr_t>(values[i]);
  }
  if (!buffer || bytes == 0) return;
  std::strncpy(buffer, text.c_str(), bytes - 1);
  buffer[bytes - 1] = '\0';
}

ResultCode status_of(const emulator::Failure& failure) {
  if (failure.message.find("out of bounds") != std::string::npos) return error_illegal_address;
  if (failure.message.find("not a multiple") != std::string::npos) return error_misaligned_address;
  return error_launch_failed;
}

// Address of a variable for copies. In the emulator the constants of all programs have the same addresses; on a GPU
// each module has its own.
DevicePointer host_address(const ModuleTag& module, const ir::Variable& variable) {
  const DevicePointer address = module.program->variable_address(module.module->text(variable.name));
  return variable.space == ir::StateSpace::constant ? address + (module.number << 40) : address;
}

// All textures that a module's kernels can access: objects, and bound references.
emulator::TextureTable bound_textures(const ModuleTag& module) {
  emulator::TextureTable textures = gpu().textures;
  for (const auto& [name, reference] : module.texture_references)
    if (reference->binding.address) textures[module.program->variable_address(name)] = reference->binding;
  for (const auto& [name, reference] : module.surface_references)
    if (reference->binding.address) textures[module.program->variable_address(name)] = reference->binding;
  return textures;
}

// The parameters of a launch, which are given one by one or as one block of bytes, laid out as the kernel reads them.
std::vector<std::byte> parameters_of(const FunctionTag& function, void** parameters, void** extra) {
  const ir::Function* kernel = launch::find_kernel(*function.module->module, function.name);
  std::vector<std::byte> block;
  if (parameters && kernel) {
    const launch::Signature signature = launch::signature_of(*kernel);
    block.resize(signature.bytes);
    for (const launch::Parameter& parameter : signature.parameters)
      std::memcpy(block.data() + parameter.offset, *parameters++, parameter.bytes);
    return block;
  }
  const std::byte* bytes = nullptr;
  size_t size = 0;
  for (void** entry = extra; entry && *entry != launch_parameters_end; entry += 2) {
    if (*entry == launch_parameters_pointer) bytes = static_cast<const std::byte*>(entry[1]);
    if (*entry == launch_parameters_size) size = *static_cast<const size_t*>(entry[1]);
  }
  if (bytes) block.assign(bytes, bytes + size);
  return block;
}

ResultCode run_kernel(const FunctionTag& function, emulator::LaunchRequest& request, void** parameters, void** extra) {
  if (static_cast<int>(request.shared_bytes) > function.dynamic_shared_limit) return invalid_value;
  request.kernel = function.name;
  request.parameters = parameters_of(function, parameters, extra);
  function.module->program->set_textures(bound_textures(*function.module));
  auto result = function.module->program->launch(request);
  if (!result) return result.error().message.find("not emulated") != std::string::npos ? not_supported : invalid_value;
  std::fputs(result->printed.c_str(), stdout);
  gpu().warp_instructions += result->counters.warp_instructions;
  if (const std::string trace = setting("PTXREWRITE_FAKE_DRIVER_TRACE"); !trace.empty())
    std::ofstream(trace, std::ios::app) << fmt::format("{} {}x{}x{}\n", function.name, request.grid.x, request.grid.y,
                                                       request.grid.z);
  if (result->failure) gpu().lost = status_of(*result->failure); // reported by the next call, as on a GPU
  return success;
}

#ifdef PTXREWRITE_NEWER_DRIVER
// What both kinds of tensor maps have.
struct MapArguments {
  void* object;
  int element;
  uint32_t rank;
  void* address;
  const uint64_t *dims, *strides;
  const uint32_t* element_strides;
  int interleave, swizzle, l2_promotion, fill;
};
ResultCode encode(ir::TensorMap map, const MapArguments& arguments) {
  const auto element = ir::tensor_element_of_cuda(arguments.element);
  const auto swizzle = ir::tensor_swizzle_of_cuda(arguments.swizzle);
  if (!element || !swizzle || arguments.rank < 1 || arguments.rank > ir::most_tensor_dimensions) return invalid_value;
  map.element = *element;
  map.swizzle = swizzle->span;
  map.atom = swizzle->atom;
  map.rank = arguments.rank;
  map.address = reinterpret_cast<uintptr_t>(arguments.address);
  std::copy_n(arguments.dims, map.rank, map.dims.begin());
  std::copy_n(arguments.strides, map.rank - 1, map.strides.begin() + 1);
  std::copy_n(arguments.element_strides, map.rank, map.element_strides.begin());
  map.interleave = static_cast<ir::TensorInterleave>(arguments.interleave);
  map.l2_promotion = static_cast<uint8_t>(arguments.l2_promotion);
  map.fill = static_cast<ir::TensorFill>(arguments.fill);
  if (!ir::find_fault(map).empty()) return invalid_value;
  const emulator::TensorMapObject object = emulator::encode_tensor_map(map);
  std::memcpy(arguments.object, object.data(), object.size());
  return success;
}

// The barrier of cooperative groups: zeros behind the size of the memory it lies in.
uint64_t cooperative_workspace() {
  constexpr uint64_t workspace_bytes = 4096;
  static const uint64_t address = [] {
    Result<uint64_t> made = gpu().memory.allocate(workspace_bytes, "workspace of cooperative launches");
    return made ? *made : 0;
  }();
  return address;
}
#endif

} // namespace

namespace ptxrewrite::driver {

FakeGpu& gpu() {
  static FakeGpu fake;
  return fake;
}

ResultCode injected(const char* symbol) {
  const int call = ++gpu().calls[symbol];
  std::string all = setting("PTXREWRITE_FAKE_DRIVER");
  while (!all.empty()) {
    const size_t comma = std::min(all.find(','), all.size());
    const std::string one = all.substr(0, comma);
    all.erase(0, comma + 1);
    const size_t equal = one.find('=');
    if (equal == std::string::npos || one.substr(0, equal) != symbol) continue;
    const size_t at = one.find('@');
    const int wanted = at == std::string::npos ? 1 : std::atoi(one.c_str() + at + 1);
    if (wanted == call) return std::atoi(one.c_str() + equal + 1);
  }
  return gpu().lost;
}

} // namespace ptxrewrite::driver

extern "C" {

ResultCode cuInit(unsigned) {
  INJECT(cuInit);
  return setting("PTXREWRITE_FAKE_DRIVER") == "no_device" ? error_no_device : success;
}
ResultCode cuDriverGetVersion(int* version) {
  INJECT(cuDriverGetVersion);
  *version = driver_version();
  return success;
}
ResultCode cuDeviceGetCount(int* count) {
  INJECT(cuDeviceGetCount);
  *count = 1;
  return success;
}
ResultCode cuDeviceGet(DeviceNumber* device, int ordinal) {
  INJECT(cuDeviceGet);
  *device = ordinal;
  return ordinal == 0 ? success : 101;
}
ResultCode cuDeviceGetName(char* name, int length, DeviceNumber) {
  std::strncpy(name, "fake GPU on the emulator", static_cast<size_t>(length));
  return success;
}
ResultCode cuDeviceGetPCIBusId(char* id, int length, DeviceNumber) {
  INJECT(cuDeviceGetPCIBusId);
  const std::string wanted = setting("PTXREWRITE_FAKE_DRIVER_BUS_ID");
  std::strncpy(id, wanted.empty() ? "0000:3B:00.0" : wanted.c_str(), static_cast<size_t>(length));
  return success;
}
ResultCode cuDeviceGetAttribute(int* value, DeviceAttribute attribute, DeviceNumber) {
  switch (attribute) {
  case DeviceAttribute::clock_rate:
    *value = 1'000'000;
    return success;
  case DeviceAttribute::multiprocessor_count:
    *value = 4;
    return success;
  case DeviceAttribute::l2_cache_size:
    *value = 1 << 20;
    return success;
  case DeviceAttribute::compute_capability_major:
    *value = 9;
    return success;
  case DeviceAttribute::compute_capability_minor:
    *value = 0;
    return success;
  case DeviceAttribute::max_shared_memory_optin:
    *value = 232448;
    return success;
  }
  return invalid_value;
}
ResultCode cuDevicePrimaryCtxRetain(ContextHandle* context, DeviceNumber) {
  INJECT(cuDevicePrimaryCtxRetain);
  *context = reinterpret_cast<ContextHandle>(&gpu());
  return success;
}
ResultCode cuDevicePrimaryCtxRelease_v2(DeviceNumber) {
  const std::string report = setting("PTXREWRITE_FAKE_DRIVER_REPORT");
  if (!report.empty())
    std::ofstream(report) << fmt::format(
        "never given back: {} allocations, {} modules, {} events, {} arrays, {} textures\n", gpu().allocations.size(),
        gpu().modules.size(), gpu().events.size(), gpu().arrays.size(), gpu().textures.size());
  for (ModuleTag* module : gpu().modules) // their unloading failed
    delete module;
  gpu().modules.clear();
  return success;
}
ResultCode cuCtxSetCurrent(ContextHandle) {
  INJECT(cuCtxSetCurrent);
  return success;
}
ResultCode cuCtxSynchronize() {
  INJECT(cuCtxSynchronize);
  return success;
}

ResultCode cuModuleLoadDataEx(ModuleHandle* module, const void* image, unsigned count, JitOption* options,
                              void** values) {
  if (ResultCode wanted = injected("cuModuleLoadDataEx"); wanted != success) {
    write_log(setting("PTXREWRITE_FAKE_DRIVER_LOG"), count, options, values);
    return wanted;
  }
  SourceFile source("ptx input", static_cast<const char*>(image));
  Diagnostics diagnostics;
  auto loaded = std::make_unique<ModuleTag>();
  loaded->module = grammar::read_module(source, diagnostics);
  std::string log;
  for (const Diagnostic& diagnostic : diagnostics.list())
    log += fmt::format("ptxas application ptx input, line {}; {}   : {}\n", source.locate(diagnostic.range.begin).line,
                       diagnostic.severity == Severity::error ? "error" : "warning", diagnostic.message);
  if (!loaded->module) log += "ptxas fatal   : Ptx assembly aborted due to errors\n";
  write_log(log, count, options, values);
  if (!loaded->module) return error_invalid_ptx;
  if (loaded->module->version_major * 10 + loaded->module->version_minor >
      (driver_version() / 1000 - 4) * 10 + driver_version() % 1000 / 10)
    return error_unsupported_ptx_version;
  auto program = emulator::Program::load(*loaded->module, gpu().memory);
  if (!program) return error_out_of_memory;
  loaded->program = std::move(*program);
  loaded->number = ++gpu().loaded;
  *module = loaded.release();
  gpu().modules.insert(*module);
  return success;
}
ResultCode cuModuleUnload(ModuleHandle module) {
  // A GPU whose context is lost still frees its objects when the context ends.
  if (ResultCode wanted = injected("cuModuleUnload"); wanted != gpu().lost) return wanted;
  if (gpu().modules.erase(module) == 0) return invalid_handle;
  delete module;
  return success;
}
ResultCode cuModuleGetFunction(FunctionHandle* function, ModuleHandle module, const char* name) {
  INJECT(cuModuleGetFunction);
  bool found = false;
  for (const auto& candidate : module->module->functions)
    found |= candidate->is_entry && module->module->text(candidate->name) == name;
  if (!found) return error_not_found;
  auto& handle = module->functions[name];
  if (!handle) {
    handle = std::make_unique<FunctionTag>();
    handle->module = module;
    handle->name = name;
  }
  *function = handle.get();
  return success;
}
ResultCode cuModuleGetGlobal_v2(DevicePointer* address, size_t* bytes, ModuleHandle module, const char* name) {
  INJECT(cuModuleGetGlobal_v2);
  std::span<std::byte> variable = module->program->variable(name);
  if (variable.empty()) return error_not_found;
  for (const ir::Variable& one : module->module->variables)
    if (module->module->text(one.name) == name) *address = host_address(*module, one);
  *bytes = variable.size();
  return success;
}
ResultCode cuFuncGetAttribute(int* value, FunctionAttribute attribute, FunctionHandle) {
  *value = attribute == FunctionAttribute::registers ? 32 : 0;
  return success;
}
ResultCode cuFuncSetAttribute(FunctionHandle function, FunctionAttribute attribute, int value) {
  INJECT(cuFuncSetAttribute);
  if (attribute == FunctionAttribute::max_dynamic_shared_bytes) function->dynamic_shared_limit = value;
  return success;
}
#ifndef PTXREWRITE_OLD_DRIVER
ResultCode cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, FunctionHandle, int threads, size_t) {
  INJECT(cuOccupancyMaxActiveBlocksPerMultiprocessor);
  *blocks = threads > 0 ? 2048 / threads : 0;
  return success;
}
#endif

ResultCode cuCtxSetLimit(ContextLimit limit, size_t value) {
  INJECT(cuCtxSetLimit);
  if (limit != ContextLimit::malloc_heap_bytes) return invalid_value;
  gpu().memory.set_heap_bytes(value);
  return success;
}
ResultCode cuMemAlloc_v2(DevicePointer* address, size_t bytes) {
  INJECT(cuMemAlloc_v2);
  Result<uint64_t> made = gpu().memory.allocate(bytes, "fake driver");
  if (!made) return error_out_of_memory;
  *address = *made;
  gpu().allocations.insert(*address);
  return success;
}
ResultCode cuMemFree_v2(DevicePointer address) {
  if (gpu().allocations.erase(address) == 0) return invalid_value;
  return gpu().memory.release(address).ok() ? success : invalid_value;
}
ResultCode cuMemcpyHtoD_v2(DevicePointer to, const void* from, size_t bytes) {
  INJECT(cuMemcpyHtoD_v2);
  // Constants have generic addresses, which copies in the emulator do not support.
  for (ModuleTag* module : gpu().modules)
    for (const ir::Variable& variable : module->module->variables) {
      const std::string name(module->module->text(variable.name));
      std::span<std::byte> place = module->program->variable(name);
      const uint64_t start = host_address(*module, variable);
      if (place.empty() || to < start || to + bytes > start + place.size()) continue;
      std::memcpy(place.data() + (to - start), from, bytes);
      return success;
    }
  return gpu().memory.write(to, {static_cast<const std::byte*>(from), bytes}).ok() ? success : invalid_value;
}
ResultCode cuMemcpyDtoH_v2(void* to, DevicePointer from, size_t bytes) {
  INJECT(cuMemcpyDtoH_v2);
  for (ModuleTag* module : gpu().modules)
    for (const ir::Variable& variable : module->module->variables) {
      const std::string name(module->module->text(variable.name));
      std::span<std::byte> place = module->program->variable(name);
      const uint64_t start = host_address(*module, variable);
      if (place.empty() || from < start || from + bytes > start + place.size()) continue;
      std::memcpy(to, place.data() + (from - start), bytes);
      return success;
    }
  return gpu().memory.read(from, {static_cast<std::byte*>(to), bytes}).ok() ? success : invalid_value;
}
ResultCode cuMemsetD8_v2(DevicePointer address, unsigned char value, size_t bytes) {
  INJECT(cuMemsetD8_v2);
  const std::vector<std::byte> filled(bytes, std::byte(value));
  return gpu().memory.write(address, filled).ok() ? success : invalid_value;
}

ResultCode cuLaunchKernel(FunctionHandle function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                          unsigned block_y, unsigned block_z, unsigned shared, StreamHandle, void** parameters,
                          void** extra) {
  INJECT(cuLaunchKernel);
  emulator::LaunchRequest request;
  request.grid = {grid_x, grid_y, grid_z};
  request.block = {block_x, block_y, block_z};
  request.shared_bytes = shared;
  return run_kernel(*function, request, parameters, extra);
}

#ifdef PTXREWRITE_NEWER_DRIVER
ResultCode cuLaunchKernelEx(const LaunchConfiguration* configuration, FunctionHandle function, void** parameters,
                            void** extra) {
  INJECT(cuLaunchKernelEx);
  emulator::LaunchRequest request;
  request.grid = {configuration->grid_x, configuration->grid_y, configuration->grid_z};
  request.block = {configuration->block_x, configuration->block_y, configuration->block_z};
  request.shared_bytes = configuration->shared_bytes;
  for (const LaunchAttribute& attribute : std::span(configuration->attributes, configuration->attribute_count)) {
    const unsigned* blocks = attribute.cluster_blocks;
    if (attribute.id == LaunchAttributeId::cluster_dimension) request.cluster = {{blocks[0], blocks[1], blocks[2]}};
    if (attribute.id == LaunchAttributeId::cooperative && attribute.cooperative)
      request.grid_workspace = cooperative_workspace();
  }
  return run_kernel(*function, request, parameters, extra);
}

ResultCode cuTensorMapEncodeTiled(void* map, int element, uint32_t rank, void* address, const uint64_t* dims,
                                  const uint64_t* strides, const uint32_t* box, const uint32_t* element_strides,
                                  int interleave, int swizzle, int l2_promotion, int fill) {
  INJECT(cuTensorMapEncodeTiled);
  ir::TensorMap tiled;
  std::copy_n(box, std::min(rank, ir::most_tensor_dimensions), tiled.box.begin());
  return encode(tiled,
                {map, element, rank, address, dims, strides, element_strides, interleave, swizzle, l2_promotion, fill});
}

ResultCode cuTensorMapEncodeIm2col(void* map, int element, uint32_t rank, void* address, const uint64_t* dims,
                                   const uint64_t* strides, const int* lower_corner, const int* upper_corner,
                                   uint32_t channels, uint32_t pixels, const uint32_t* element_strides, int interleave,
                                   int swizzle, int l2_promotion, int fill) {
  INJECT(cuTensorMapEncodeIm2col);
  ir::TensorMap im2col;
  im2col.access = ir::TensorAccess::im2col;
  if (rank < 3 || rank > ir::most_tensor_dimensions) return invalid_value;
  std::copy_n(lower_corner, rank - 2, im2col.lower_corner.begin());
  std::copy_n(upper_corner, rank - 2, im2col.upper_corner.begin());
  im2col.channels = channels;
  im2col.pixels = pixels;
  return encode(im2col,
                {map, element, rank, address, dims, strides, element_strides, interleave, swizzle, l2_promotion, fill});
}
#endif

ResultCode cuEventCreate(EventHandle* event, unsigned) {
  INJECT(cuEventCreate);
  *event = new EventTag;
  gpu().events.insert(*event);
  return success;
}
ResultCode cuEventRecord(EventHandle event, StreamHandle) {
  INJECT(cuEventRecord);
  event->seconds = now();
  return success;
}
ResultCode cuEventSynchronize(EventHandle) {
  INJECT(cuEventSynchronize);
  return success;
}
ResultCode cuEventElapsedTime(float* milliseconds, EventHandle start, EventHandle end) {
  INJECT(cuEventElapsedTime);
  if (start->seconds < 0 || end->seconds < 0) return invalid_handle;
  *milliseconds = static_cast<float>((end->seconds - start->seconds) * 1e3);
  return success;
}
ResultCode cuEventDestroy_v2(EventHandle event) {
  if (gpu().events.erase(event) == 0) return invalid_handle;
  delete event;
  return success;
}
ResultCode cuGetErrorName(ResultCode status, const char** name) {
  static const std::map<ResultCode, const char*> names = {
      {0, "CUDA_SUCCESS"},
      {1, "CUDA_ERROR_INVALID_VALUE"},
      {2, "CUDA_ERROR_OUT_OF_MEMORY"},
      {100, "CUDA_ERROR_NO_DEVICE"},
      {218, "CUDA_ERROR_INVALID_PTX"},
      {222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"},
      {500, "CUDA_ERROR_NOT_FOUND"},
      {700, "CUDA_ERROR_ILLEGAL_ADDRESS"},
      {701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"},
      {716, "CUDA_ERROR_MISALIGNED_ADDRESS"},
      {719, "CUDA_ERROR_LAUNCH_FAILED"},
      {801, "CUDA_ERROR_NOT_SUPPORTED"},
  };
  auto found = names.find(status);
  *name = found == names.end() ? "CUDA_ERROR_UNKNOWN" : found->second;
  return success;
}
ResultCode cuGetErrorString(Status, const char** text) {
  *text = "said by the fake driver";
  return success;
}

} // extern "C"
