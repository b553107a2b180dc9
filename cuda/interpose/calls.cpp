// The entry points that the interposed driver implements: modules, their kernels, and launches. All others are
// forwarded by forward.cpp.
#include "cuda/context/image.h"
#include "cuda/context/log.h"
#include "cuda/interpose/programs.h"
#include "cuda/interpose/real_driver.h"
#include "cuda/interpose/timing.h"

#include <cstring>
#include <exception>
#include <string_view>

#define INTERPOSED extern "C" __attribute__((visibility("default")))

namespace ptxrewrite::cuda::interpose {
namespace {

// CUlaunchAttributeID.
constexpr int cooperative_attribute = 2, cluster_attribute = 4;
// cuGetProcAddress: return functions for per-thread default streams.
constexpr uint64_t per_thread_default_stream = 2;
constexpr uint32_t launch_attribute_bytes = 72;

// CUlaunchConfig.
struct LaunchConfiguration {
  uint32_t grid[3], block[3];
  uint32_t dynamic_shared;
  void* stream;
  const std::byte* attributes; // launch_attribute_bytes each, beginning with the identifier
  uint32_t attribute_count;
};

// A file that a program loads as a module; has no data if the file cannot be read, which the driver then reports.
class FileImage {
public:
  explicit FileImage(const char* path) {
    if (!path || !Programs::get().settings().changes_kernels()) return;
    if (Result<std::string> bytes = read_image(path)) bytes_ = *std::move(bytes);
  }
  const void* data() const { return bytes_.empty() ? nullptr : bytes_.c_str(); }

private:
  std::string bytes_;
};

LaunchConfiguration with_shape(LaunchConfiguration configuration, const LaunchShape& shape) {
  const launch::Dim3 &grid = shape.grid, &block = shape.block;
  configuration.grid[0] = grid.x, configuration.grid[1] = grid.y, configuration.grid[2] = grid.z;
  configuration.block[0] = block.x, configuration.block[1] = block.y, configuration.block[2] = block.z;
  return configuration;
}

// Executes a launch: `start(function, shape, arguments, extra)` passes it to the driver. C++ exceptions must not reach
// a C program.
template <class Start>
int launch(void* function, const LaunchShape& shape, void** arguments, void** extra, const Start& start) {
  Programs& programs = Programs::get();
  InterposedKernel* const kernel = programs.find_kernel(function);
  if (!kernel) return start(function, shape, arguments, extra);
  try {
    if (!kernel->has_variants && !programs.settings().specialise) {
      programs.count(*kernel, kernel->program->code.changed.contains(kernel->name), "the passes do not change it");
      return start(function, shape, arguments, extra);
    }
    if (const auto variant = programs.variant_for(*kernel, shape, arguments, extra)) {
      LaunchTimer timer(programs, *kernel, *variant, shape);
      if (timer.runs_original()) {
        programs.count(*kernel, false, timer.reason());
        const int status = start(function, shape, arguments, extra);
        timer.finish(status);
        return status;
      }
      LaunchShape its = variant->shape;
      its.stream = shape.stream;
      const int status = start(variant->function, its, variant->arguments.data(), nullptr);
      timer.finish(status);
      programs.count(*kernel, status == success, "the driver does not start the variant");
      if (status == success && variant->is_specialised) programs.count_specialised(*kernel);
      if (status == success) return status;
    }
  } catch (const std::exception& error) {
    log(LogLevel::warn, "a launch of {} runs the original: {}", kernel->name, error.what());
  }
  return start(function, shape, arguments, extra);
}

int launch_plain(decltype(RealDriver::launch) real, void* function, const LaunchShape& shape, void** arguments,
                 void** extra) {
  return launch(function, shape, arguments, extra,
                [&](void* started, const LaunchShape& its, void** its_arguments, void** its_extra) {
                  return real(started, its.grid.x, its.grid.y, its.grid.z, its.block.x, its.block.y, its.block.z,
                              its.dynamic_shared, its.stream, its_arguments, its_extra);
                });
}

int launch_cooperative(decltype(RealDriver::launch_cooperative) real, void* function, const LaunchShape& shape,
                       void** arguments) {
  return launch(function, shape, arguments, nullptr,
                [&](void* started, const LaunchShape& its, void** its_arguments, void**) {
                  return real(started, its.grid.x, its.grid.y, its.grid.z, its.block.x, its.block.y, its.block.z,
                              its.dynamic_shared, its.stream, its_arguments);
                });
}

int launch_ex(decltype(RealDriver::launch_ex) real, const LaunchConfiguration* given, void* function, void** arguments,
              void** extra) {
  if (!given) return real(given, function, arguments, extra);
  LaunchShape shape{{given->grid[0], given->grid[1], given->grid[2]},
                    {given->block[0], given->block[1], given->block[2]},
                    given->dynamic_shared,
                    given->stream};
  for (uint32_t i = 0; given->attributes && i < given->attribute_count; ++i) {
    int identifier = 0;
    std::memcpy(&identifier, given->attributes + size_t(i) * launch_attribute_bytes, sizeof identifier);
    shape.keeps_shape |= identifier == cooperative_attribute || identifier == cluster_attribute;
  }
  return launch(function, shape, arguments, extra,
                [&](void* started, const LaunchShape& its, void** its_arguments, void** its_extra) {
                  const LaunchConfiguration configuration = with_shape(*given, its);
                  return real(&configuration, started, its_arguments, its_extra);
                });
}

} // namespace

INTERPOSED int cuModuleLoadData(void** module, const void* image) {
  return Programs::get().load(image, module, false,
                              [&](const void* text) { return RealDriver::get().module_load_data(module, text); });
}

INTERPOSED int cuModuleLoadDataEx(void** module, const void* image, unsigned count, int* options, void** values) {
  return Programs::get().load(image, module, false, [&](const void* text) {
    return RealDriver::get().module_load_data_ex(module, text, count, options, values);
  });
}

INTERPOSED int cuModuleLoadFatBinary(void** module, const void* image) {
  return Programs::get().load(image, module, false, [&](const void* text) {
    return text == image ? RealDriver::get().module_load_fat_binary(module, text)
                         : RealDriver::get().module_load_data(module, text);
  });
}

INTERPOSED int cuModuleLoad(void** module, const char* path) {
  const FileImage file(path);
  return Programs::get().load(file.data(), module, false, [&](const void* text) {
    return text == file.data() ? RealDriver::get().module_load(module, path)
                               : RealDriver::get().module_load_data(module, text);
  });
}

INTERPOSED int cuModuleUnload(void* module) {
  Programs::get().forget(module);
  return RealDriver::get().module_unload(module);
}

INTERPOSED int cuModuleGetFunction(void** function, void* module, const char* name) {
  const int status = RealDriver::get().module_function(function, module, name);
  if (status == success) Programs::get().found_kernel(module, name, *function);
  return status;
}

INTERPOSED int cuLibraryLoadData(void** library, const void* image, int* options, void** values, unsigned count,
                                 int* library_options, void** library_values, unsigned library_count) {
  return Programs::get().load(image, library, true, [&](const void* text) {
    return RealDriver::get().load_library_data(library, text, options, values, count, library_options, library_values,
                                               library_count);
  });
}

INTERPOSED int cuLibraryLoadFromFile(void** library, const char* path, int* options, void** values, unsigned count,
                                     int* library_options, void** library_values, unsigned library_count) {
  const FileImage file(path);
  return Programs::get().load(file.data(), library, true, [&](const void* text) {
    const RealDriver& driver = RealDriver::get();
    return text == file.data() ? driver.load_library_file(library, path, options, values, count, library_options,
                                                          library_values, library_count)
                               : driver.load_library_data(library, text, options, values, count, library_options,
                                                          library_values, library_count);
  });
}

INTERPOSED int cuLibraryUnload(void* library) {
  Programs::get().forget(library);
  return RealDriver::get().unload_library(library);
}

INTERPOSED int cuLibraryGetKernel(void** kernel, void* library, const char* name) {
  const int status = RealDriver::get().kernel_of_library(kernel, library, name);
  if (status == success) Programs::get().found_kernel(library, name, *kernel);
  return status;
}

INTERPOSED int cuLibraryGetModule(void** module, void* library) {
  const int status = RealDriver::get().module_of_library(module, library);
  if (status == success) Programs::get().alias_program(library, *module);
  return status;
}

INTERPOSED int cuKernelGetFunction(void** function, void* kernel) {
  const int status = RealDriver::get().kernel_function(function, kernel);
  if (status == success) Programs::get().alias(kernel, *function);
  return status;
}

INTERPOSED int cuFuncSetAttribute(void* function, int attribute, int value) {
  const int status = RealDriver::get().set_function_attribute(function, attribute, value);
  if (status == success) Programs::get().set_attribute(function, attribute, value);
  return status;
}

INTERPOSED int cuKernelSetAttribute(int attribute, int value, void* kernel, int device) {
  const int status = RealDriver::get().set_kernel_attribute(attribute, value, kernel, device);
  if (status == success) Programs::get().set_attribute(kernel, attribute, value);
  return status;
}

INTERPOSED int cuLaunchKernel(void* function, uint32_t grid_x, uint32_t grid_y, uint32_t grid_z, uint32_t block_x,
                              uint32_t block_y, uint32_t block_z, uint32_t shared, void* stream, void** arguments,
                              void** extra) {
  return launch_plain(RealDriver::get().launch, function,
                      {{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared, stream}, arguments, extra);
}

INTERPOSED int cuLaunchKernel_ptsz(void* function, uint32_t grid_x, uint32_t grid_y, uint32_t grid_z, uint32_t block_x,
                                   uint32_t block_y, uint32_t block_z, uint32_t shared, void* stream, void** arguments,
                                   void** extra) {
  return launch_plain(RealDriver::get().launch_ptsz, function,
                      {{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared, stream}, arguments, extra);
}

INTERPOSED int cuLaunchCooperativeKernel(void* function, uint32_t grid_x, uint32_t grid_y, uint32_t grid_z,
                                         uint32_t block_x, uint32_t block_y, uint32_t block_z, uint32_t shared,
                                         void* stream, void** arguments) {
  return launch_cooperative(RealDriver::get().launch_cooperative, function,
                            {{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared, stream, true}, arguments);
}

INTERPOSED int cuLaunchCooperativeKernel_ptsz(void* function, uint32_t grid_x, uint32_t grid_y, uint32_t grid_z,
                                              uint32_t block_x, uint32_t block_y, uint32_t block_z, uint32_t shared,
                                              void* stream, void** arguments) {
  return launch_cooperative(RealDriver::get().launch_cooperative_ptsz, function,
                            {{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared, stream, true}, arguments);
}

INTERPOSED int cuLaunchKernelEx(const LaunchConfiguration* configuration, void* function, void** arguments,
                                void** extra) {
  return launch_ex(RealDriver::get().launch_ex, configuration, function, arguments, extra);
}

INTERPOSED int cuLaunchKernelEx_ptsz(const LaunchConfiguration* configuration, void* function, void** arguments,
                                     void** extra) {
  return launch_ex(RealDriver::get().launch_ex_ptsz, configuration, function, arguments, extra);
}

INTERPOSED int cuGetProcAddress(const char* name, void** function, int version, uint64_t flags);
INTERPOSED int cuGetProcAddress_v2(const char* name, void** function, int version, uint64_t flags, int* result);

namespace {

struct InterposedEntry {
  std::string_view name;
  void* function;
  void* for_own_default_stream; // for per-thread default streams; nullptr: the same function
};

#define PTXREWRITE_SAME(NAME)                                                                                          \
  { #NAME, reinterpret_cast < void*>(&NAME), nullptr }
#define PTXREWRITE_TWO(NAME)                                                                                           \
  { #NAME, reinterpret_cast < void*>(&NAME), reinterpret_cast < void*>(&NAME##_ptsz) }
// Returns nullptr if the driver's own function is to be used.
void* interposed_entry(std::string_view name, bool own_default_stream) {
  static const InterposedEntry rows[] = {PTXREWRITE_SAME(cuModuleLoad),
                                         PTXREWRITE_SAME(cuModuleLoadData),
                                         PTXREWRITE_SAME(cuModuleLoadDataEx),
                                         PTXREWRITE_SAME(cuModuleLoadFatBinary),
                                         PTXREWRITE_SAME(cuModuleUnload),
                                         PTXREWRITE_SAME(cuModuleGetFunction),
                                         PTXREWRITE_SAME(cuLibraryLoadData),
                                         PTXREWRITE_SAME(cuLibraryLoadFromFile),
                                         PTXREWRITE_SAME(cuLibraryUnload),
                                         PTXREWRITE_SAME(cuLibraryGetKernel),
                                         PTXREWRITE_SAME(cuLibraryGetModule),
                                         PTXREWRITE_SAME(cuKernelGetFunction),
                                         PTXREWRITE_SAME(cuFuncSetAttribute),
                                         PTXREWRITE_SAME(cuKernelSetAttribute),
                                         PTXREWRITE_TWO(cuLaunchKernel),
                                         PTXREWRITE_TWO(cuLaunchKernelEx),
                                         PTXREWRITE_TWO(cuLaunchCooperativeKernel)};
  for (const InterposedEntry& row : rows)
    if (row.name == name)
      return own_default_stream && row.for_own_default_stream ? row.for_own_default_stream : row.function;
  return nullptr;
}
#undef PTXREWRITE_SAME
#undef PTXREWRITE_TWO

} // namespace

INTERPOSED int cuGetProcAddress_v2(const char* name, void** function, int version, uint64_t flags, int* result) {
  const int status = RealDriver::get().get_proc_address(name, function, version, flags, result);
  if (status != success || !name || !function || !*function) return status;
  if (std::string_view(name) == "cuGetProcAddress") // its second version was introduced by CUDA 12
    *function =
        version < 12000 ? reinterpret_cast<void*>(&cuGetProcAddress) : reinterpret_cast<void*>(&cuGetProcAddress_v2);
  if (void* const ours = interposed_entry(name, (flags & per_thread_default_stream) != 0)) *function = ours;
  return status;
}

INTERPOSED int cuGetProcAddress(const char* name, void** function, int version, uint64_t flags) {
  return cuGetProcAddress_v2(name, function, version, flags, nullptr);
}

} // namespace ptxrewrite::cuda::interpose
