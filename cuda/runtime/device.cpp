// The device: properties, attributes, limits, versions.
#include "cuda/context/device_attributes.h"
#include "cuda/runtime/entry.h"
#include "cuda/runtime/types.h"

#include <algorithm>
#include <cstring>

namespace ptxrewrite::cuda::runtime {
namespace {

using A = DeviceAttribute;

void set_texture_limits(const ir::Machine& machine, abi::DeviceProperties& out) {
  const auto set = [&](int* field, std::initializer_list<A> attributes) {
    for (A attribute : attributes)
      *field++ = device_attribute(machine, attribute);
  };
  set(&out.max_texture_1d, {A::texture_1d_width});
  set(&out.max_texture_1d_mipmap, {A::texture_1d_mipmap_width});
  set(out.max_texture_2d, {A::texture_2d_width, A::texture_2d_height});
  set(out.max_texture_2d_mipmap, {A::texture_2d_mipmap_width, A::texture_2d_mipmap_height});
  set(out.max_texture_2d_linear, {A::texture_2d_linear_width, A::texture_2d_linear_height, A::texture_2d_linear_pitch});
  set(out.max_texture_2d_gather, {A::texture_2d_gather_width, A::texture_2d_gather_height});
  set(out.max_texture_3d, {A::texture_3d_width, A::texture_3d_height, A::texture_3d_depth});
  set(out.max_texture_3d_alternate,
      {A::texture_3d_width_alternate, A::texture_3d_height_alternate, A::texture_3d_depth_alternate});
  set(&out.max_texture_cubemap, {A::texture_cubemap_width});
  set(out.max_texture_1d_layered, {A::texture_1d_layered_width, A::texture_1d_layers});
  set(out.max_texture_2d_layered, {A::texture_2d_layered_width, A::texture_2d_layered_height, A::texture_2d_layers});
  set(out.max_texture_cubemap_layered, {A::texture_cubemap_layered_width, A::texture_cubemap_layers});
  set(&out.max_surface_1d, {A::surface_1d_width});
  set(out.max_surface_2d, {A::surface_2d_width, A::surface_2d_height});
  set(out.max_surface_3d, {A::surface_3d_width, A::surface_3d_height, A::surface_3d_depth});
  set(out.max_surface_1d_layered, {A::surface_1d_layered_width, A::surface_1d_layers});
  set(out.max_surface_2d_layered, {A::surface_2d_layered_width, A::surface_2d_layered_height, A::surface_2d_layers});
  set(&out.max_surface_cubemap, {A::surface_cubemap_width});
  set(out.max_surface_cubemap_layered, {A::surface_cubemap_layered_width, A::surface_cubemap_layers});
}

void set_properties(const ir::Machine& machine, uint64_t memory, abi::DeviceProperties& out) {
  const auto of = [&](A attribute) { return device_attribute(machine, attribute); };
  const auto size = [&](A attribute) { return static_cast<size_t>(device_attribute(machine, attribute)); };
  std::memset(&out, 0, sizeof out);
  const std::string name = device_name(machine);
  std::copy_n(name.begin(), std::min(name.size(), sizeof out.name - 1), out.name);
  std::memcpy(out.uuid.bytes, device_uuid, sizeof out.uuid.bytes);
  out.total_global_memory = memory;
  out.shared_per_block = size(A::shared_per_block);
  out.registers_per_block = of(A::registers_per_block);
  out.warp_size = of(A::warp_size);
  out.memory_pitch = size(A::max_pitch);
  out.max_threads_per_block = of(A::max_threads_per_block);
  out.max_block[0] = of(A::max_block_x), out.max_block[1] = of(A::max_block_y), out.max_block[2] = of(A::max_block_z);
  out.max_grid[0] = of(A::max_grid_x), out.max_grid[1] = of(A::max_grid_y), out.max_grid[2] = of(A::max_grid_z);
  out.total_constant_memory = size(A::constant_bytes);
  out.major = of(A::major);
  out.minor = of(A::minor);
  out.texture_alignment = size(A::texture_alignment);
  out.texture_pitch_alignment = size(A::texture_pitch_alignment);
  out.multiprocessors = of(A::multiprocessors);
  out.can_map_host_memory = of(A::can_map_host_memory);
  set_texture_limits(machine, out);
  out.surface_alignment = size(A::surface_alignment);
  out.concurrent_kernels = of(A::concurrent_kernels);
  out.pci_bus = of(A::pci_bus);
  out.async_engines = of(A::async_engines);
  out.unified_addressing = of(A::unified_addressing);
  out.memory_bus_width = of(A::memory_bus_bits);
  out.l2_bytes = of(A::l2_bytes);
  out.max_threads_per_multiprocessor = of(A::threads_per_multiprocessor);
  out.stream_priorities = of(A::stream_priorities);
  out.global_l1_cache = of(A::global_l1_cache);
  out.local_l1_cache = of(A::local_l1_cache);
  out.shared_per_multiprocessor = size(A::shared_per_multiprocessor);
  out.registers_per_multiprocessor = of(A::registers_per_multiprocessor);
  out.managed_memory = of(A::managed_memory);
  out.concurrent_managed_access = of(A::concurrent_managed_access);
  out.compute_preemption = of(A::compute_preemption);
  out.host_pointer_for_registered_memory = of(A::host_pointer_for_registered_memory);
  out.cooperative_launch = of(A::cooperative_launch);
  out.shared_per_block_optin = size(A::shared_per_block_optin);
  out.max_blocks_per_multiprocessor = of(A::blocks_per_multiprocessor);
  out.reserved_shared_per_block = size(A::reserved_shared_per_block);
  out.host_register = of(A::host_register);
  out.memory_pools = of(A::memory_pools);
  out.device_numa_id = out.host_numa_id = -1;
}

thread_local unsigned device_flags = 0;

} // namespace

RUNTIME_API int cudaGetDeviceCount(int* count) {
  return entry("cudaGetDeviceCount", [&](Context&) {
    if (!count) return Code::invalid_value;
    *count = 1;
    return Code::success;
  });
}

RUNTIME_API int cudaGetDevice(int* device) {
  return entry("cudaGetDevice", [&](Context&) {
    if (!device) return Code::invalid_value;
    *device = 0;
    return Code::success;
  });
}

RUNTIME_API int cudaSetDevice(int device) {
  return entry("cudaSetDevice", [&](Context&) { return device == 0 ? Code::success : Code::invalid_device; });
}

RUNTIME_API int cudaInitDevice(int device, unsigned, unsigned) {
  return cudaSetDevice(device);
}

RUNTIME_API int cudaSetValidDevices(int* devices, int count) {
  return entry("cudaSetValidDevices", [&](Context&) {
    for (int i = 0; i < count; ++i)
      if (devices[i] != 0) return Code::invalid_device;
    return Code::success;
  });
}

RUNTIME_API int cudaChooseDevice(int* device, const void*) {
  return cudaGetDevice(device);
}

RUNTIME_API int cudaSetDeviceFlags(unsigned flags) {
  device_flags = flags;
  return 0;
}

RUNTIME_API int cudaGetDeviceFlags(unsigned* flags) {
  *flags = device_flags;
  return 0;
}

RUNTIME_API int cudaGetDeviceProperties(abi::DeviceProperties* properties, int device) {
  return entry("cudaGetDeviceProperties", [&](Context& context) {
    if (!properties) return Code::invalid_value;
    if (device != 0) return Code::invalid_device;
    set_properties(*context.settings().machine, context.total_bytes(), *properties);
    return Code::success;
  });
}

RUNTIME_API int cudaDeviceGetAttribute(int* value, int attribute, int device) {
  return entry("cudaDeviceGetAttribute", [&](Context& context) {
    if (!value) return Code::invalid_value;
    if (device != 0) return Code::invalid_device;
    return device_attribute(*context.settings().machine, attribute, *value) ? Code::success : Code::invalid_value;
  });
}

RUNTIME_API int cudaDeviceReset() {
  Context& context = Context::get();
  std::lock_guard lock(context.mutex());
  context.reset();
  return 0;
}

RUNTIME_API int cudaDeviceGetPCIBusId(char* text, int length, int device) {
  return entry("cudaDeviceGetPCIBusId", [&](Context&) {
    if (!text || length < 13) return Code::invalid_value;
    if (device != 0) return Code::invalid_device;
    std::strcpy(text, pci_bus_id);
    return Code::success;
  });
}

RUNTIME_API int cudaDeviceGetByPCIBusId(int* device, const char* text) {
  return entry("cudaDeviceGetByPCIBusId", [&](Context&) {
    if (!text || std::strcmp(text, pci_bus_id) != 0) return Code::invalid_device;
    *device = 0;
    return Code::success;
  });
}

RUNTIME_API int cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  if (least) *least = 0;
  if (greatest) *greatest = -5;
  return 0;
}

RUNTIME_API int cudaDeviceGetCacheConfig(int* configuration) {
  *configuration = 0;
  return 0;
}

RUNTIME_API int cudaDeviceSetCacheConfig(int) {
  return 0;
}

RUNTIME_API int cudaDeviceGetSharedMemConfig(int* configuration) {
  *configuration = 1; // banks of four bytes
  return 0;
}

RUNTIME_API int cudaDeviceSetSharedMemConfig(int) {
  return 0;
}

RUNTIME_API int cudaDeviceCanAccessPeer(int* can, int, int) {
  return entry("cudaDeviceCanAccessPeer", [&](Context&) {
    *can = 0;
    return Code::success;
  });
}

RUNTIME_API int cudaDeviceSetLimit(int limit, size_t value) {
  return entry("cudaDeviceSetLimit", [&](Context& context) { return context.set_limit(limit, value); });
}

RUNTIME_API int cudaDeviceGetLimit(size_t* value, int limit) {
  return entry("cudaDeviceGetLimit", [&](Context& context) {
    uint64_t found = 0;
    const Code code = context.limit(limit, found);
    if (code == Code::success) *value = found;
    return code;
  });
}

RUNTIME_API int cudaDriverGetVersion(int* version) {
  *version = cuda_version;
  return 0;
}

RUNTIME_API int cudaRuntimeGetVersion(int* version) {
  *version = cuda_version;
  return 0;
}

RUNTIME_API int cudaProfilerStart() {
  return 0;
}

RUNTIME_API int cudaProfilerStop() {
  return 0;
}

RUNTIME_API int cudaCtxResetPersistingL2Cache() {
  return 0;
}

} // namespace ptxrewrite::cuda::runtime
