// Launches: cudaLaunchKernel and related functions, call configurations, attributes and occupancy of kernels.
#include "cuda/runtime/launch.h"

#include "cuda/context/graphs/kernel_action.h"
#include "cuda/runtime/entry.h"
#include "cuda/runtime/types.h"

#include "ir/machine/figures/occupancy.h"

#include <algorithm>
#include <cstring>

namespace ptxrewrite::cuda::runtime {
namespace {

struct CallConfiguration {
  abi::Dim3 grid, block;
  size_t shared = 0;
  void* stream = nullptr;
};

thread_local std::vector<CallConfiguration> call_configurations;

emulator::Dimensions dimensions(const abi::Dim3& given) {
  return {given.x, given.y, given.z};
}

} // namespace

LaunchShape shape_of(const abi::Dim3& grid, const abi::Dim3& block, uint64_t dynamic_shared, bool cooperative) {
  return {dimensions(grid), dimensions(block), dynamic_shared, cooperative};
}

static LaunchShape shape_of(const abi::LaunchConfiguration& configuration) {
  LaunchShape shape = shape_of(configuration.grid, configuration.block, configuration.dynamic_shared);
  for (unsigned i = 0; i < configuration.attribute_count; ++i) {
    const abi::LaunchAttribute& attribute = configuration.attributes[i];
    if (attribute.id == abi::launch_attribute_cooperative) shape.cooperative = attribute.value.cooperative != 0;
    if (attribute.id == abi::launch_attribute_cluster) shape.cluster = dimensions(attribute.value.cluster);
  }
  return shape;
}

static Code launch_kernel(Context& context, const void* function, const LaunchShape& shape, void** arguments,
                          void* stream_handle) {
  Code code = Code::success;
  Kernel* kernel = kernel_of(function, code);
  if (!kernel) return code;
  Stream* stream = nullptr;
  if (code = stream_of(context, stream_handle, stream); code != Code::success) return code;
  if (code = context.check_launch(*kernel, shape); code != Code::success) return code;
  return context.submit(stream, NodeType::kernel,
                        KernelAction(context, *kernel, shape, pack_arguments(*kernel, arguments)));
}

// Hooks that rewrite a module when it is read must not do that while they observe a launch.
template <class Body> static int with_kernel(const char* name, const void* function, Body&& body) {
  if (!Context::get().has_hooks()) return Entry(name).at_once(std::forward<Body>(body));
  const auto may_be_at_once = [&](const Context&) { return is_known_kernel(function); };
  return Entry(name).at_once_if(may_be_at_once, std::forward<Body>(body));
}

RUNTIME_API unsigned __cudaPushCallConfiguration(abi::Dim3 grid, abi::Dim3 block, size_t shared, void* stream) {
  call_configurations.push_back({grid, block, shared, stream});
  return 0;
}

RUNTIME_API int __cudaPopCallConfiguration(abi::Dim3* grid, abi::Dim3* block, size_t* shared, void* stream) {
  if (call_configurations.empty()) return finish(Code::missing_configuration);
  const CallConfiguration last = call_configurations.back();
  call_configurations.pop_back();
  *grid = last.grid;
  *block = last.block;
  *shared = last.shared;
  *static_cast<void**>(stream) = last.stream;
  return 0;
}

RUNTIME_API int __cudaGetKernel(void** kernel, const void* function) {
  return with_kernel("__cudaGetKernel", function, [&](Context&) {
    Code code = Code::success;
    Kernel* found = kernel_of(function, code);
    // If there is none, the following launch reports the error, because it gets the function itself.
    *kernel = found ? found : const_cast<void*>(function);
    return found ? Code::success : code;
  });
}

RUNTIME_API int cudaLaunchKernel(const void* function, abi::Dim3 grid, abi::Dim3 block, void** arguments, size_t shared,
                                 void* stream) {
  return with_kernel("cudaLaunchKernel", function, [&](Context& context) {
    return launch_kernel(context, function, shape_of(grid, block, shared), arguments, stream);
  });
}

RUNTIME_API int cudaLaunchCooperativeKernel(const void* function, abi::Dim3 grid, abi::Dim3 block, void** arguments,
                                            size_t shared, void* stream) {
  return with_kernel("cudaLaunchCooperativeKernel", function, [&](Context& context) {
    return launch_kernel(context, function, shape_of(grid, block, shared, true), arguments, stream);
  });
}

RUNTIME_API int cudaLaunchKernelExC(const abi::LaunchConfiguration* configuration, const void* function,
                                    void** arguments) {
  return with_kernel("cudaLaunchKernelExC", function, [&](Context& context) {
    if (!configuration) return Code::invalid_value;
    return launch_kernel(context, function, shape_of(*configuration), arguments, configuration->stream);
  });
}

RUNTIME_ALIAS(__cudaLaunchKernel, cudaLaunchKernel)
RUNTIME_ALIAS(__cudaLaunchKernel_ptsz, cudaLaunchKernel)
RUNTIME_ALIAS(cudaLaunchKernel_ptsz, cudaLaunchKernel)
RUNTIME_ALIAS(cudaLaunchCooperativeKernel_ptsz, cudaLaunchCooperativeKernel)
RUNTIME_ALIAS(cudaLaunchKernelExC_ptsz, cudaLaunchKernelExC)
RUNTIME_ALIAS(cudaGetKernel, __cudaGetKernel)
RUNTIME_ALIAS(cudaGetFuncBySymbol, __cudaGetKernel)

RUNTIME_API int cudaFuncGetAttributes(abi::FunctionAttributes* attributes, const void* function) {
  return entry("cudaFuncGetAttributes", [&](Context& context) {
    Code code = Code::success;
    const Kernel* kernel = kernel_of(function, code);
    if (!kernel) return code;
    const int capability = static_cast<int>(context.settings().machine->compute_capability);
    std::memset(attributes, 0, sizeof *attributes);
    attributes->shared_bytes = kernel->static_shared;
    attributes->local_bytes = kernel->local_bytes;
    attributes->max_threads_per_block = static_cast<int>(kernel->most_threads);
    attributes->registers = static_cast<int>(kernel->registers());
    attributes->ptx_version = static_cast<int>(kernel->ptx_target);
    attributes->binary_version = capability;
    attributes->max_dynamic_shared_bytes = static_cast<int>(kernel->dynamic_shared_limit);
    attributes->preferred_carveout = -1;
    return Code::success;
  });
}

RUNTIME_API int cudaFuncSetAttribute(const void* function, int attribute, int value) {
  return entry("cudaFuncSetAttribute", [&](const Context& context) {
    constexpr int max_dynamic_shared = 8;
    Code code = Code::success;
    Kernel* kernel = kernel_of(function, code);
    if (!kernel) return code;
    return attribute == max_dynamic_shared ? context.allow_dynamic_shared(*kernel, value) : Code::success;
  });
}

RUNTIME_API int cudaFuncSetCacheConfig(const void*, int) {
  return 0;
}

RUNTIME_API int cudaFuncSetSharedMemConfig(const void*, int) {
  return 0;
}

RUNTIME_API int cudaFuncGetName(const char** name, const void* function) {
  return entry("cudaFuncGetName", [&](Context&) {
    Code code = Code::success;
    const Kernel* kernel = kernel_of(function, code);
    if (!kernel) return code;
    *name = kernel->name.c_str();
    return Code::success;
  });
}

RUNTIME_API int cudaFuncGetParamInfo(const void* function, size_t index, size_t* offset, size_t* bytes) {
  return entry("cudaFuncGetParamInfo", [&](Context&) {
    Code code = Code::success;
    const Kernel* kernel = kernel_of(function, code);
    if (!kernel) return code;
    if (index >= kernel->signature.parameters.size()) return Code::invalid_value;
    *offset = kernel->signature.parameters[index].offset;
    if (bytes) *bytes = kernel->signature.parameters[index].bytes;
    return Code::success;
  });
}

RUNTIME_API int cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* function, int threads,
                                                                       size_t shared, unsigned) {
  return entry("cudaOccupancyMaxActiveBlocksPerMultiprocessor", [&](Context& context) {
    Code code = Code::success;
    const Kernel* kernel = kernel_of(function, code);
    if (!kernel) return code;
    if (threads <= 0) return Code::invalid_value;
    *blocks = static_cast<int>(context.resident_blocks(*kernel, static_cast<uint32_t>(threads), shared));
    return Code::success;
  });
}

RUNTIME_API int cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* function, int threads,
                                                              size_t shared) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, threads, shared, 0);
}

RUNTIME_API int cudaOccupancyMaxActiveClusters(int* clusters, const void* function,
                                               const abi::LaunchConfiguration* configuration) {
  return entry("cudaOccupancyMaxActiveClusters", [&](Context& context) {
    Code code = Code::success;
    const Kernel* kernel = kernel_of(function, code);
    if (!kernel) return code;
    if (!clusters || !configuration) return Code::invalid_value;
    return context.active_clusters(*kernel, shape_of(*configuration), clusters);
  });
}

RUNTIME_API int cudaOccupancyMaxPotentialClusterSize(int* size, const void* function, const abi::LaunchConfiguration*) {
  return entry("cudaOccupancyMaxPotentialClusterSize", [&](Context&) {
    Code code = Code::success;
    if (!kernel_of(function, code)) return code;
    if (!size) return Code::invalid_value;
    *size = portable_cluster_size;
    return Code::success;
  });
}

RUNTIME_API int cudaOccupancyAvailableDynamicSMemPerBlock(size_t* shared, const void* function, int blocks,
                                                          int threads) {
  return entry("cudaOccupancyAvailableDynamicSMemPerBlock", [&](Context& context) {
    Code code = Code::success;
    const Kernel* kernel = kernel_of(function, code);
    if (!kernel) return code;
    if (blocks <= 0 || threads <= 0) return Code::invalid_value;
    // Finds the largest size with which this many blocks still fit on an SM.
    uint64_t least = 0, most = context.settings().machine->occupancy.max_shared_bytes_per_block;
    while (least < most) {
      const uint64_t middle = (least + most + 1) / 2;
      if (context.resident_blocks(*kernel, static_cast<uint32_t>(threads), middle) >= static_cast<uint32_t>(blocks))
        least = middle;
      else
        most = middle - 1;
    }
    *shared = least;
    return Code::success;
  });
}

} // namespace ptxrewrite::cuda::runtime
