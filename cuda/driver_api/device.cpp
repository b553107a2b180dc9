// Initialisation, errors, the device and its context.
#include "cuda/context/device_attributes.h"
#include "cuda/driver_api/entry.h"

#include <algorithm>
#include <cstring>

namespace ptxrewrite::cuda::driver {
namespace {

constexpr ErrorRow rows[] = {
#define DRIVER_ERROR(NUMBER, NAME, TEXT) {NUMBER, #NAME, TEXT},
#include "cuda/driver_api/errors.def"
#undef DRIVER_ERROR
};

const ErrorRow* row_of(int number) {
  return find_error(rows, number);
}

void* the_context() {
  return &Context::get();
}

Code check_device(int device) {
  return device == 0 ? Code::success : Code::invalid_device;
}

int set_current(void* context) {
  std::vector<void*>& current = Context::current();
  if (!current.empty()) current.pop_back();
  if (context) current.push_back(context);
  return 0;
}

} // namespace

int finish(Code code) {
  switch (code) {
  case Code::invalid_configuration:
  case Code::invalid_pitch:
  case Code::invalid_device_pointer:
  case Code::invalid_texture:
  case Code::invalid_channel_descriptor:
  case Code::invalid_copy_direction:
  case Code::missing_configuration:
    code = Code::invalid_value;
    break;
  case Code::invalid_symbol:
    code = Code::not_found;
    break;
  case Code::invalid_device_function:
    code = Code::invalid_handle;
    break;
  default: // common to both APIs
    break;
  }
  if (code != Code::success && is_logged(LogLevel::info))
    if (const ErrorRow* row = row_of(static_cast<int>(code))) log_text(LogLevel::info, fmt::format("-> {}", row->name));
  return static_cast<int>(code);
}

DRIVER_API int cuGetErrorString(int error, const char** text) {
  const ErrorRow* row = row_of(error);
  *text = row ? row->text : nullptr;
  return row ? 0 : static_cast<int>(Code::invalid_value);
}

DRIVER_API int cuGetErrorName(int error, const char** text) {
  const ErrorRow* row = row_of(error);
  *text = row ? row->name : nullptr;
  return row ? 0 : static_cast<int>(Code::invalid_value);
}

DRIVER_API int cuInit(unsigned flags) {
  if (flags != 0) return finish(Code::invalid_value);
  Context::get().initialise();
  return 0;
}

DRIVER_API int cuDriverGetVersion(int* version) {
  *version = cuda_version;
  return 0;
}

DRIVER_API int cuDeviceGetCount(int* count) {
  return Entry("cuDeviceGetCount").at_once([&](Context&) {
    *count = 1;
    return Code::success;
  });
}

DRIVER_API int cuDeviceGet(int* device, int ordinal) {
  return Entry("cuDeviceGet").at_once([&](Context&) {
    *device = ordinal;
    return check_device(ordinal);
  });
}

DRIVER_API int cuDeviceGetName(char* name, int length, int device) {
  return Entry("cuDeviceGetName").at_once([&](Context& context) {
    if (!name || length <= 0) return Code::invalid_value;
    const std::string full = device_name(*context.settings().machine);
    const size_t copied = std::min(full.size(), static_cast<size_t>(length) - 1);
    std::memcpy(name, full.data(), copied);
    name[copied] = '\0';
    return check_device(device);
  });
}

DRIVER_API int cuDeviceGetUuid_v2(char* uuid, int device) {
  return Entry("cuDeviceGetUuid").at_once([&](Context&) {
    std::memcpy(uuid, device_uuid, 16);
    return check_device(device);
  });
}

DRIVER_API int cuDeviceTotalMem_v2(size_t* bytes, int device) {
  return Entry("cuDeviceTotalMem").at_once([&](Context& context) {
    *bytes = context.total_bytes();
    return check_device(device);
  });
}

DRIVER_API int cuDeviceGetAttribute(int* value, int attribute, int device) {
  return Entry("cuDeviceGetAttribute").at_once([&](Context& context) {
    if (!value) return Code::invalid_value;
    if (const Code code = check_device(device); code != Code::success) return code;
    return device_attribute(*context.settings().machine, attribute, *value) ? Code::success : Code::invalid_value;
  });
}

DRIVER_API int cuDeviceComputeCapability(int* major, int* minor, int device) {
  return Entry("cuDeviceComputeCapability").at_once([&](Context& context) {
    *major = static_cast<int>(context.settings().machine->compute_capability / 10);
    *minor = static_cast<int>(context.settings().machine->compute_capability % 10);
    return check_device(device);
  });
}

DRIVER_API int cuDeviceGetPCIBusId(char* text, int length, int device) {
  return Entry("cuDeviceGetPCIBusId").at_once([&](Context&) {
    if (!text || length < 13) return Code::invalid_value;
    std::memcpy(text, pci_bus_id, std::strlen(pci_bus_id) + 1);
    return check_device(device);
  });
}

DRIVER_API int cuDeviceGetByPCIBusId(int* device, const char* text) {
  return Entry("cuDeviceGetByPCIBusId").at_once([&](Context&) {
    *device = 0;
    return text && std::strcmp(text, pci_bus_id) == 0 ? Code::success : Code::invalid_device;
  });
}

DRIVER_API int cuDeviceCanAccessPeer(int* can, int, int) {
  *can = 0;
  return 0;
}

DRIVER_API int cuCtxEnablePeerAccess(void*, unsigned) {
  return finish(Code::invalid_context); // it is the only context, which is no peer of itself
}

DRIVER_API int cuCtxDisablePeerAccess(void*) {
  return finish(Code::peer_access_not_enabled);
}

DRIVER_API int cuDevicePrimaryCtxRetain(void** context, int device) {
  return Entry("cuDevicePrimaryCtxRetain").at_once([&](Context&) {
    *context = the_context();
    return check_device(device);
  });
}

DRIVER_API int cuDevicePrimaryCtxRelease_v2(int device) {
  return Entry("cuDevicePrimaryCtxRelease").at_once([&](Context&) { return check_device(device); });
}

DRIVER_API int cuDevicePrimaryCtxSetFlags_v2(int device, unsigned) {
  return entry("cuDevicePrimaryCtxSetFlags", [&](Context&) { return check_device(device); });
}

DRIVER_API int cuDevicePrimaryCtxGetState(int device, unsigned* flags, int* active) {
  return Entry("cuDevicePrimaryCtxGetState").at_once([&](Context&) {
    *flags = 0;
    *active = 1;
    return check_device(device);
  });
}

DRIVER_API int cuDevicePrimaryCtxReset_v2(int) {
  Context& context = Context::get();
  const Context::Lock lock = context.lock_idle();
  context.reset();
  return 0;
}

DRIVER_API int cuCtxCreate_v2(void** made, unsigned, int device) {
  return entry("cuCtxCreate", [&](Context&) {
    *made = the_context();
    Context::current().push_back(*made);
    return check_device(device);
  });
}

DRIVER_API int cuCtxCreate_v3(void** made, void*, int, unsigned flags, int device) {
  return cuCtxCreate_v2(made, flags, device);
}

DRIVER_API int cuCtxCreate_v4(void** made, void*, unsigned flags, int device) {
  return cuCtxCreate_v2(made, flags, device);
}

DRIVER_API int cuCtxDestroy_v2(void*) {
  Context& context = Context::get();
  const Context::Lock lock = context.lock_idle();
  context.flush_printed();
  if (!Context::current().empty()) Context::current().pop_back();
  return 0;
}

DRIVER_API int cuCtxAttach(void** context, unsigned) {
  if (!context || Context::current().empty()) return finish(Code::invalid_context);
  *context = Context::current().back();
  return 0;
}

DRIVER_API int cuCtxDetach(void* context) {
  return cuCtxDestroy_v2(context);
}

DRIVER_API int cuCtxPushCurrent_v2(void* context) {
  Context::current().push_back(context);
  return 0;
}

DRIVER_API int cuCtxPopCurrent_v2(void** context) {
  if (Context::current().empty()) return finish(Code::invalid_context);
  if (context) *context = Context::current().back();
  Context::current().pop_back();
  return 0;
}

DRIVER_API int cuCtxSetCurrent(void* context) {
  return set_current(context);
}

DRIVER_API int cuCtxGetCurrent(void** context) {
  *context = Context::current().empty() ? nullptr : Context::current().back();
  return 0;
}

DRIVER_API int cuCtxGetDevice(int* device) {
  *device = 0;
  return Context::current().empty() ? finish(Code::invalid_context) : 0;
}

DRIVER_API int cuCtxGetFlags(unsigned* flags) {
  *flags = 0;
  return 0;
}

DRIVER_API int cuCtxGetApiVersion(void*, unsigned* version) {
  *version = 3020;
  return 0;
}

DRIVER_API int cuCtxSynchronize() {
  return entry("cuCtxSynchronize", [](Context& context) {
    context.flush_printed();
    return Code::success;
  });
}

DRIVER_API int cuCtxSetLimit(int limit, size_t value) {
  return entry("cuCtxSetLimit", [&](Context& context) { return context.set_limit(limit, value); });
}

DRIVER_API int cuCtxGetLimit(size_t* value, int limit) {
  return entry("cuCtxGetLimit", [&](Context& context) {
    uint64_t found = 0;
    const Code code = context.limit(limit, found);
    if (code == Code::success) *value = found;
    return code;
  });
}

DRIVER_API int cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  if (least) *least = 0;
  if (greatest) *greatest = -5;
  return 0;
}

DRIVER_API int cuCtxSetCacheConfig(int) {
  return 0;
}

DRIVER_API int cuCtxSetSharedMemConfig(int) {
  return 0;
}

DRIVER_API int cuCtxSynchronize_v2(void*) {
  return cuCtxSynchronize();
}

DRIVER_API int cuCtxGetDevice_v2(int* device, void*) {
  *device = 0;
  return 0;
}

DRIVER_API int cuCtxGetId(void*, unsigned long long* id) {
  *id = 1;
  return 0;
}

DRIVER_API int cuCtxSetFlags(unsigned) {
  return 0;
}

DRIVER_API int cuCtxGetCacheConfig(int* configuration) {
  *configuration = 0;
  return 0;
}

DRIVER_API int cuCtxGetSharedMemConfig(int* configuration) {
  *configuration = 1; // four-byte banks
  return 0;
}

DRIVER_API int cuCtxResetPersistingL2Cache() {
  return 0;
}

DRIVER_API int cuProfilerStart() {
  return 0;
}

DRIVER_API int cuProfilerStop() {
  return 0;
}

DRIVER_ALIAS(cuDeviceGetUuid, cuDeviceGetUuid_v2)
DRIVER_ALIAS(cuCtxDestroy, cuCtxDestroy_v2)
DRIVER_ALIAS(cuCtxPopCurrent, cuCtxPopCurrent_v2)
DRIVER_ALIAS(cuCtxPushCurrent, cuCtxPushCurrent_v2)
DRIVER_ALIAS(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2)
DRIVER_ALIAS(cuDevicePrimaryCtxSetFlags, cuDevicePrimaryCtxSetFlags_v2)
DRIVER_ALIAS(cuDevicePrimaryCtxReset, cuDevicePrimaryCtxReset_v2)

} // namespace ptxrewrite::cuda::driver
