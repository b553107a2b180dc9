// The device: properties, attributes, limits, versions.
#include "cuda/context/device_attributes.h"
#include "cuda/runtime/entry.h"
#include "cuda/runtime/types.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

namespace ptxrewrite::cuda::runtime {
namespace {

template <class Field>
void set(const ir::Machine& machine, Field& field, std::initializer_list<DeviceAttribute> attributes) {
  if constexpr (std::is_array_v<Field>) {
    auto* element = &field[0];
    for (DeviceAttribute attribute : attributes)
      set(machine, *element++, {attribute});
  } else if constexpr (std::is_arithmetic_v<Field>) {
    for (DeviceAttribute attribute : attributes)
      field = static_cast<Field>(device_attribute(machine, attribute));
  }
}

abi::DeviceProperties properties_of(const ir::Machine& machine, uint64_t memory) {
  using enum DeviceAttribute;
  abi::DeviceProperties out{};
#define FIELD(TYPE, NAME, COUNT, ...) set(machine, out.NAME, {__VA_ARGS__});
#include "cuda/runtime/device_properties.inc"
#undef FIELD
  const std::string name = device_name(machine);
  std::copy_n(name.begin(), std::min(name.size(), sizeof out.name - 1), out.name);
  std::memcpy(out.uuid.bytes, device_uuid, sizeof out.uuid.bytes);
  out.total_global_memory = memory;
  return out;
}

// `bytes`: the size of the program's version of the structure.
int get_properties(const char* name, void* properties, int device, size_t bytes) {
  return Entry(name).at_once([&](Context& context) {
    if (!properties) return Code::invalid_value;
    if (device != 0) return Code::invalid_device;
    const abi::DeviceProperties all = properties_of(*context.settings().machine, context.total_bytes());
    std::memcpy(properties, &all, bytes);
    return Code::success;
  });
}

thread_local unsigned device_flags = 0;

} // namespace

RUNTIME_API int cudaGetDeviceCount(int* count) {
  return Entry("cudaGetDeviceCount").at_once([&](Context&) {
    if (!count) return Code::invalid_value;
    *count = 1;
    return Code::success;
  });
}

RUNTIME_API int cudaGetDevice(int* device) {
  return Entry("cudaGetDevice").at_once([&](Context&) {
    if (!device) return Code::invalid_value;
    *device = 0;
    return Code::success;
  });
}

RUNTIME_API int cudaSetDevice(int device) {
  return Entry("cudaSetDevice").at_once([&](Context&) { return device == 0 ? Code::success : Code::invalid_device; });
}

RUNTIME_API int cudaInitDevice(int device, unsigned, unsigned) {
  return cudaSetDevice(device);
}

RUNTIME_API int cudaSetValidDevices(int* devices, int count) {
  return Entry("cudaSetValidDevices").at_once([&](Context&) {
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

// CUDA 12 introduced its structure under a second name.
#if PTXREWRITE_CUDART_MAJOR >= 13
RUNTIME_API int cudaGetDeviceProperties(abi::DeviceProperties* properties, int device) {
  return get_properties("cudaGetDeviceProperties", properties, device, sizeof *properties);
}
#else
RUNTIME_API int cudaGetDeviceProperties(void* properties, int device) {
  return get_properties("cudaGetDeviceProperties", properties, device, abi::device_properties_of_11);
}

RUNTIME_API int cudaGetDeviceProperties_v2(abi::DeviceProperties* properties, int device) {
  return get_properties("cudaGetDeviceProperties", properties, device, sizeof *properties);
}
#endif

RUNTIME_API int cudaDeviceGetAttribute(int* value, int attribute, int device) {
  return Entry("cudaDeviceGetAttribute").at_once([&](Context& context) {
    if (!value) return Code::invalid_value;
    if (device != 0) return Code::invalid_device;
    return device_attribute(*context.settings().machine, attribute, *value) ? Code::success : Code::invalid_value;
  });
}

RUNTIME_API int cudaDeviceReset() {
  Context& context = Context::get();
  const Context::Lock lock = context.lock_idle();
  context.reset();
  return 0;
}

RUNTIME_API int cudaDeviceGetPCIBusId(char* text, int length, int device) {
  return Entry("cudaDeviceGetPCIBusId").at_once([&](Context&) {
    if (!text || length < 13) return Code::invalid_value;
    if (device != 0) return Code::invalid_device;
    std::memcpy(text, pci_bus_id, std::strlen(pci_bus_id) + 1);
    return Code::success;
  });
}

RUNTIME_API int cudaDeviceGetByPCIBusId(int* device, const char* text) {
  return Entry("cudaDeviceGetByPCIBusId").at_once([&](Context&) {
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
  *configuration = 1; // four-byte banks
  return 0;
}

RUNTIME_API int cudaDeviceSetSharedMemConfig(int) {
  return 0;
}

RUNTIME_API int cudaDeviceCanAccessPeer(int* can, int, int) {
  return Entry("cudaDeviceCanAccessPeer").at_once([&](Context&) {
    *can = 0;
    return Code::success;
  });
}

// There is one device, which is no peer of itself.
RUNTIME_API int cudaDeviceEnablePeerAccess(int, unsigned) {
  return Entry("cudaDeviceEnablePeerAccess").at_once([](Context&) { return Code::invalid_device; });
}

RUNTIME_API int cudaDeviceDisablePeerAccess(int device) {
  return Entry("cudaDeviceDisablePeerAccess").at_once([&](Context&) {
    return device == 0 ? Code::peer_access_not_enabled : Code::invalid_device;
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
  // The last minor version of each major version, so that programs built for any of its minor versions run.
  constexpr int newest = PTXREWRITE_CUDART_MAJOR == 11 ? 11080 : PTXREWRITE_CUDART_MAJOR == 12 ? 12090 : cuda_version;
  *version = newest;
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
