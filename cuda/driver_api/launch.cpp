// Launches and occupancy.
#include "cuda/driver_api/launch.h"
#include "cuda/context/graphs/kernel_action.h"
#include "cuda/driver_api/entry.h"

#include <cstring>

namespace ptxrewrite::cuda::driver {
namespace {

// CU_LAUNCH_PARAM_*, for arguments passed as one block of bytes.
constexpr uintptr_t extra_end = 0, extra_pointer = 1, extra_size = 2;

// CUlaunchAttributeID.
constexpr int cooperative_attribute = 2, cluster_attribute = 4;

struct LaunchAttribute {
  int id;
  int padding;
  union {
    char bytes[64];
    int cooperative;
    uint32_t cluster[3];
  };
};

struct LaunchConfiguration {
  uint32_t grid[3], block[3];
  uint32_t dynamic_shared;
  void* stream;
  const LaunchAttribute* attributes;
  uint32_t attribute_count;
};

LaunchShape shape_of(const LaunchConfiguration& given) {
  LaunchShape shape{{given.grid[0], given.grid[1], given.grid[2]},
                    {given.block[0], given.block[1], given.block[2]},
                    given.dynamic_shared};
  for (uint32_t i = 0; i < given.attribute_count; ++i) {
    const LaunchAttribute& attribute = given.attributes[i];
    if (attribute.id == cooperative_attribute) shape.cooperative = attribute.cooperative != 0;
    if (attribute.id == cluster_attribute)
      shape.cluster = emulator::Dimensions{attribute.cluster[0], attribute.cluster[1], attribute.cluster[2]};
  }
  return shape;
}

int launch(const char* name, void* function, const LaunchShape& shape, void* handle, void** arguments, void** extra) {
  return Entry(name).at_once([&](Context& context) {
    auto* kernel = static_cast<Kernel*>(function);
    if (!kernel) return Code::invalid_handle;
    Stream* stream = nullptr;
    if (const Code code = stream_of(context, handle, stream); code != Code::success) return code;
    if (const Code code = context.check_launch(*kernel, shape); code != Code::success) return code;
    std::vector<std::byte> bytes;
    if (const Code code = pack_arguments(*kernel, arguments, extra, bytes); code != Code::success) return code;
    return context.submit(stream, NodeType::kernel, KernelAction(context, *kernel, shape, std::move(bytes)));
  });
}

} // namespace

Code pack_arguments(const Kernel& kernel, void** arguments, void** extra, std::vector<std::byte>& bytes) {
  bytes.resize(kernel.signature.bytes);
  if (arguments) {
    for (size_t i = 0; i < kernel.signature.parameters.size(); ++i) {
      const launch::Parameter& parameter = kernel.signature.parameters[i];
      std::memcpy(bytes.data() + parameter.offset, arguments[i], parameter.bytes);
    }
    return Code::success;
  }
  if (!extra) return kernel.signature.parameters.empty() ? Code::success : Code::invalid_value;
  const void* given = nullptr;
  size_t size = 0;
  for (; reinterpret_cast<uintptr_t>(*extra) != extra_end; extra += 2) {
    if (reinterpret_cast<uintptr_t>(*extra) == extra_pointer) given = extra[1];
    if (reinterpret_cast<uintptr_t>(*extra) == extra_size) size = *static_cast<const size_t*>(extra[1]);
  }
  if (!given) return bytes.empty() ? Code::success : Code::invalid_value;
  // Driver 580 on an H100 rejects a block longer than the kernel's parameters, and accepts a shorter one. Parameters
  // that a shorter block does not contain are zero in the emulator.
  if (size > bytes.size()) return Code::launch_out_of_resources;
  std::memcpy(bytes.data(), given, size);
  return Code::success;
}

DRIVER_API int cuLaunchKernel(void* function, uint32_t grid_x, uint32_t grid_y, uint32_t grid_z, uint32_t block_x,
                              uint32_t block_y, uint32_t block_z, uint32_t shared, void* stream, void** arguments,
                              void** extra) {
  return launch("cuLaunchKernel", function, {{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared}, stream,
                arguments, extra);
}

DRIVER_API int cuLaunchCooperativeKernel(void* function, uint32_t grid_x, uint32_t grid_y, uint32_t grid_z,
                                         uint32_t block_x, uint32_t block_y, uint32_t block_z, uint32_t shared,
                                         void* stream, void** arguments) {
  return launch("cuLaunchCooperativeKernel", function,
                {{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared, true}, stream, arguments, nullptr);
}

DRIVER_API int cuLaunchKernelEx(const LaunchConfiguration* given, void* function, void** arguments, void** extra) {
  if (!given) return finish(Code::invalid_value);
  return launch("cuLaunchKernelEx", function, shape_of(*given), given->stream, arguments, extra);
}

DRIVER_API int cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, void* function, int threads,
                                                                    size_t shared, unsigned) {
  return entry("cuOccupancyMaxActiveBlocksPerMultiprocessor", [&](Context& context) {
    if (!function) return Code::invalid_handle;
    if (!blocks || threads <= 0) return Code::invalid_value;
    *blocks = static_cast<int>(
        context.resident_blocks(*static_cast<Kernel*>(function), static_cast<uint32_t>(threads), shared));
    return Code::success;
  });
}

DRIVER_API int cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, void* function, int threads, size_t shared) {
  return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, threads, shared, 0);
}

DRIVER_API int cuOccupancyMaxActiveClusters(int* clusters, void* function, const LaunchConfiguration* given) {
  return entry("cuOccupancyMaxActiveClusters", [&](Context& context) {
    if (!clusters || !function || !given) return Code::invalid_value;
    return context.active_clusters(*static_cast<Kernel*>(function), shape_of(*given), clusters);
  });
}

DRIVER_API int cuOccupancyMaxPotentialClusterSize(int* size, void* function, const LaunchConfiguration* given) {
  return entry("cuOccupancyMaxPotentialClusterSize", [&](Context&) {
    if (!size || !function || !given) return Code::invalid_value;
    *size = portable_cluster_size;
    return Code::success;
  });
}

// Returns the block size with the most resident threads; the largest on a tie.
DRIVER_API int cuOccupancyMaxPotentialBlockSize(int* grid, int* block, void* function, size_t (*shared_of)(int),
                                                size_t shared, int limit) {
  return entry("cuOccupancyMaxPotentialBlockSize", [&](Context& context) {
    if (!function || !grid || !block) return Code::invalid_value;
    const Kernel& kernel = *static_cast<Kernel*>(function);
    uint32_t best = 0;
    const uint32_t most =
        limit > 0 ? std::min<uint32_t>(kernel.most_threads, static_cast<uint32_t>(limit)) : kernel.most_threads;
    for (uint32_t threads = most / 32 * 32; threads >= 32; threads -= 32) {
      const size_t dynamic = shared_of ? shared_of(static_cast<int>(threads)) : shared;
      const uint32_t blocks = context.resident_blocks(kernel, threads, dynamic);
      if (blocks * threads <= best) continue;
      best = blocks * threads;
      *block = static_cast<int>(threads);
      *grid = static_cast<int>(blocks * context.settings().machine->sms);
    }
    return best ? Code::success : Code::invalid_value;
  });
}

DRIVER_ALIAS(cuLaunchKernel_ptsz, cuLaunchKernel)
DRIVER_ALIAS(cuLaunchCooperativeKernel_ptsz, cuLaunchCooperativeKernel)
DRIVER_ALIAS(cuLaunchKernelEx_ptsz, cuLaunchKernelEx)
DRIVER_ALIAS(cuOccupancyMaxPotentialBlockSizeWithFlags, cuOccupancyMaxPotentialBlockSize)

} // namespace ptxrewrite::cuda::driver
