// The launch functions from before CUDA 4: block shape, shared memory and arguments are set one by one, then the grid
// is launched.
#include "cuda/context/graphs/kernel_action.h"
#include "cuda/driver_api/entry.h"

#include <cstring>
#include <map>

namespace ptxrewrite::cuda::driver {
namespace {

struct Steps {
  emulator::Dimensions block{};
  uint64_t dynamic_shared = 0;
  std::vector<std::byte> arguments;
};

Steps& steps_of(const Kernel* kernel) {
  static auto* all = new std::map<const Kernel*, Steps>;
  return (*all)[kernel];
}

template <class Body> int with_kernel(const char* name, Kernel* kernel, Body&& body) {
  return entry(name, [&](Context& context) { return kernel ? body(context, steps_of(kernel)) : Code::invalid_handle; });
}

int set_argument(const char* name, Kernel* kernel, int offset, const void* value, size_t bytes) {
  return with_kernel(name, kernel, [&](Context&, Steps& steps) {
    if (offset < 0 || !value) return Code::invalid_value;
    const size_t end = static_cast<size_t>(offset) + bytes;
    if (steps.arguments.size() < end) steps.arguments.resize(end);
    std::memcpy(steps.arguments.data() + offset, value, bytes);
    return Code::success;
  });
}

} // namespace

DRIVER_API int cuFuncSetBlockShape(Kernel* kernel, int x, int y, int z) {
  return with_kernel("cuFuncSetBlockShape", kernel, [&](Context&, Steps& steps) {
    if (x <= 0 || y <= 0 || z <= 0) return Code::invalid_value;
    steps.block = {static_cast<uint32_t>(x), static_cast<uint32_t>(y), static_cast<uint32_t>(z)};
    return Code::success;
  });
}

DRIVER_API int cuFuncSetSharedSize(Kernel* kernel, unsigned bytes) {
  return with_kernel("cuFuncSetSharedSize", kernel, [&](Context&, Steps& steps) {
    steps.dynamic_shared = bytes;
    return Code::success;
  });
}

DRIVER_API int cuParamSetSize(Kernel* kernel, unsigned bytes) {
  return with_kernel("cuParamSetSize", kernel, [&](Context&, Steps& steps) {
    steps.arguments.resize(bytes);
    return Code::success;
  });
}

DRIVER_API int cuParamSeti(Kernel* kernel, int offset, unsigned value) {
  return set_argument("cuParamSeti", kernel, offset, &value, sizeof value);
}

DRIVER_API int cuParamSetf(Kernel* kernel, int offset, float value) {
  return set_argument("cuParamSetf", kernel, offset, &value, sizeof value);
}

DRIVER_API int cuParamSetv(Kernel* kernel, int offset, const void* value, unsigned bytes) {
  return set_argument("cuParamSetv", kernel, offset, value, bytes);
}

DRIVER_API int cuLaunchGridAsync(Kernel* kernel, int width, int height, void* handle) {
  return with_kernel("cuLaunchGrid", kernel, [&](Context& context, const Steps& steps) {
    if (width <= 0 || height <= 0) return Code::invalid_value;
    Stream* stream = nullptr;
    if (const Code code = stream_of(context, handle, stream); code != Code::success) return code;
    const LaunchShape shape{
        {static_cast<uint32_t>(width), static_cast<uint32_t>(height), 1}, steps.block, steps.dynamic_shared};
    std::vector<std::byte> arguments = steps.arguments;
    if (arguments.size() < kernel->signature.bytes) return Code::invalid_value;
    arguments.resize(kernel->signature.bytes);
    return context.submit(stream, NodeType::kernel, KernelAction(context, *kernel, shape, std::move(arguments)));
  });
}

DRIVER_API int cuLaunchGrid(Kernel* kernel, int width, int height) {
  return cuLaunchGridAsync(kernel, width, height, nullptr);
}

DRIVER_API int cuLaunch(Kernel* kernel) {
  return cuLaunchGrid(kernel, 1, 1);
}

} // namespace ptxrewrite::cuda::driver
