#include "cuda/driver/gpu.h"

#include "ir/core/print.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

namespace ptxrewrite::driver {
namespace {

constexpr size_t log_bytes = 64 << 10;
constexpr uint64_t portable_cluster_blocks = 8; // CUDA C++ Programming Guide, "Thread Block Clusters"

SourceRange range_of_line(const SourceFile& source, uint32_t line) {
  std::string_view text = source.line(line);
  if (text.data() == nullptr || text.empty()) return {};
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t'))
    text.remove_prefix(1);
  const auto begin = static_cast<uint32_t>(text.data() - source.text().data());
  return {begin, begin + static_cast<uint32_t>(text.size())};
}

// Compilers emit the newest PTX version that they support, regardless of the features used. A driver that does not
// support this version may still compile the text under its own highest version: CUDA 11.y has PTX 7.y, 12.y has 8.y,
// 13.y has 9.y. Returns false if the text's version is not newer than that.
bool lower_version(std::string& text, int driver_version) {
  const int major = driver_version / 1000 - 4, minor = driver_version % 1000 / 10;
  const size_t at = text.find(".version ");
  if (at == text.npos || major < 7) return false;
  const size_t number = at + std::string_view(".version ").size(), end = text.find_first_of(" \t\r\n", number);
  const std::string known = std::to_string(major) + '.' + std::to_string(minor);
  if (end == text.npos || text.compare(number, end - number, known) == 0) return false;
  text.replace(number, end - number, known);
  return true;
}

} // namespace

void read_jit_log(std::string_view log, const SourceFile& source, Diagnostics& diagnostics) {
  while (!log.empty()) {
    std::string_view line = log.substr(0, log.find('\n'));
    log.remove_prefix(std::min(line.size() + 1, log.size()));
    while (!line.empty() && (line.back() == '\0' || line.back() == '\r' || line.back() == ' '))
      line.remove_suffix(1);
    const bool is_error = line.find("error") != std::string_view::npos || line.find("fatal") != std::string_view::npos;
    if (line.empty() || line.find("Compilation terminated") != std::string_view::npos) continue;
    SourceRange range;
    if (const size_t at = line.find(", line "); at != std::string_view::npos) {
      uint32_t number = 0;
      std::from_chars(line.data() + at + 7, line.data() + line.size(), number);
      range = range_of_line(source, number);
    }
    // The message follows the last " : ".
    const size_t colon = line.find(" : ");
    const std::string message =
        "driver's compiler: " + std::string(colon == std::string_view::npos ? line : line.substr(colon + 3));
    if (is_error)
      diagnostics.error(range, message);
    else
      diagnostics.warning(range, message);
  }
}

Result<std::unique_ptr<Gpu>> Gpu::open(const std::string& library_path, int ordinal) {
  Result<std::unique_ptr<Library>> library = Library::open(library_path);
  if (!library) return library.error();
  std::unique_ptr<Gpu> gpu(new Gpu);
  gpu->driver_ = std::move(*library);
  const Library& driver = *gpu->driver_;
  if (auto status = gpu->check("cuDeviceGet", driver.device(&gpu->device_, ordinal)); !status) return status.error();
  if (auto status = gpu->check("cuDevicePrimaryCtxRetain", driver.retain_context(&gpu->context_, gpu->device_));
      !status)
    return status.error();
  if (auto status = gpu->check("cuCtxSetCurrent", driver.set_context(gpu->context_)); !status) return status.error();
  char name[256] = {};
  driver.device_name(name, sizeof name - 1, gpu->device_);
  gpu->info_.name = name;
  char bus_id[32] = {};
  driver.bus_id(bus_id, sizeof bus_id - 1, gpu->device_);
  gpu->info_.bus_id = bus_id;
  auto attribute = [&](DeviceAttribute which) {
    int value = 0;
    driver.device_attribute(&value, which, gpu->device_);
    return value;
  };
  gpu->info_.compute_capability =
      attribute(DeviceAttribute::compute_capability_major) * 10 + attribute(DeviceAttribute::compute_capability_minor);
  gpu->info_.multiprocessors = attribute(DeviceAttribute::multiprocessor_count);
  gpu->info_.clock_khz = attribute(DeviceAttribute::clock_rate);
  gpu->info_.l2_bytes = static_cast<uint64_t>(attribute(DeviceAttribute::l2_cache_size));
  gpu->info_.shared_bytes = static_cast<uint64_t>(attribute(DeviceAttribute::max_shared_memory_optin));
  gpu->info_.driver_version = driver.version();
  return gpu;
}

Gpu::~Gpu() {
  if (context_) driver_->release_context(device_);
}

Status Gpu::check(const char* what, ResultCode status) {
  if (status == success) return {};
  if (status >= error_illegal_address && status <= error_launch_failed && status != error_out_of_resources)
    lost_ = true;
  return driver_->error(what, status);
}

Result<DevicePointer> Gpu::allocate(uint64_t bytes, std::string_view name) {
  DevicePointer address = 0;
  ResultCode status = driver_->allocate(&address, std::max<uint64_t>(bytes, 1));
  if (status != success)
    return Error{"no memory for '" + std::string(name) + "' (" + std::to_string(bytes) +
                     " bytes): " + driver_->error("cuMemAlloc", status).message,
                 {}};
  if (auto filled = fill(address, 0, std::max<uint64_t>(bytes, 1)); !filled) {
    driver_->release(address);
    return filled.error();
  }
  return address;
}

Status Gpu::release(DevicePointer address) {
  return check("cuMemFree", driver_->release(address));
}
Status Gpu::write(DevicePointer address, std::span<const std::byte> bytes) {
  return bytes.empty() ? Status() : check("cuMemcpyHtoD", driver_->copy_to_device(address, bytes.data(), bytes.size()));
}
Status Gpu::read(DevicePointer address, std::span<std::byte> bytes) {
  return bytes.empty() ? Status()
                       : check("cuMemcpyDtoH", driver_->copy_from_device(bytes.data(), address, bytes.size()));
}
Status Gpu::fill(DevicePointer address, unsigned char value, uint64_t bytes) {
  return check("cuMemsetD8", driver_->fill_bytes(address, value, bytes));
}

Status Gpu::set_heap_bytes(uint64_t bytes) {
  return check("cuCtxSetLimit", driver_->set_limit(ContextLimit::malloc_heap_bytes, bytes));
}

Result<std::unique_ptr<GpuModule>> Gpu::load(const SourceFile& source, Diagnostics& diagnostics) {
  std::string text(source.text()); // the driver needs a terminating zero
  std::string errors(log_bytes, '\0'), notes(log_bytes, '\0');
  JitOption options[] = {JitOption::error_log_buffer, JitOption::error_log_buffer_bytes, JitOption::info_log_buffer,
                         JitOption::info_log_buffer_bytes};
  void* values[] = {errors.data(), reinterpret_cast<void*>(uintptr_t(errors.size() - 1)), notes.data(),
                    reinterpret_cast<void*>(uintptr_t(notes.size() - 1))};
  ModuleHandle handle = nullptr;
  ResultCode status = driver_->load_module(&handle, text.c_str(), 4, options, values);
  if (status == error_unsupported_ptx_version && lower_version(text, info_.driver_version)) {
    std::ranges::fill(errors, '\0');
    status = driver_->load_module(&handle, text.c_str(), 4, options, values);
  }
  const size_t errors_before = diagnostics.error_count();
  read_jit_log(std::string_view(errors.c_str()), source, diagnostics);
  if (status == success) return std::make_unique<GpuModule>(*this, handle);
  if (diagnostics.error_count() > errors_before)
    for (const Diagnostic& diagnostic : diagnostics.list())
      if (diagnostic.severity == Severity::error) return Error{diagnostic.message, diagnostic.range};
  return driver_->error("cuModuleLoadDataEx", status);
}

// The driver gets the printed text of the module, because a rewritten module has no source text.
Result<std::unique_ptr<GpuModule>> Gpu::load(const ir::Module& module) {
  const SourceFile source(module.source.name(), ir::print(module));
  Diagnostics diagnostics;
  auto loaded = load(source, diagnostics);
  if (loaded || loaded.error().range.empty()) return loaded;
  const SourceRange range = loaded.error().range;
  return Error{loaded.error().message + " (line " + std::to_string(source.locate(range.begin).line) +
                   " of the printed module: " + std::string(source.text(range)) + ")",
               {}};
}

Status Gpu::start(GpuModule& module, std::string_view kernel, const launch::Dim3& grid, const launch::Dim3& block,
                  uint32_t dynamic_shared, std::span<const std::byte> parameters, const LaunchTraits& traits) {
  Result<FunctionHandle> function = module.function(kernel);
  if (!function) return function.error();
  if (dynamic_shared > (48u << 10))
    if (auto status = check("cuFuncSetAttribute",
                            driver_->set_function_attribute(*function, FunctionAttribute::max_dynamic_shared_bytes,
                                                            static_cast<int>(dynamic_shared)));
        !status)
      return status;
  size_t bytes = parameters.size();
  void* block_of_bytes[] = {launch_parameters_pointer, const_cast<std::byte*>(parameters.data()),
                            launch_parameters_size, &bytes, launch_parameters_end};
  std::vector<void*> one_by_one;
  for (size_t offset : traits.parameter_offsets)
    one_by_one.push_back(const_cast<std::byte*>(parameters.data() + offset));
  void** extra = bytes && one_by_one.empty() ? block_of_bytes : nullptr;
  void** pointers = one_by_one.empty() ? nullptr : one_by_one.data();
  if (traits.cooperative || traits.cluster)
    return start_with(traits, *function, grid, block, dynamic_shared, pointers, extra);
  return check("cuLaunchKernel", driver_->launch(*function, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                                 dynamic_shared, nullptr, pointers, extra));
}

Status Gpu::start_with(const LaunchTraits& traits, FunctionHandle function, const launch::Dim3& grid,
                       const launch::Dim3& block, uint32_t dynamic_shared, void** parameters, void** extra) {
  if (!driver_->launch_with_attributes)
    return Error{"launches in clusters and cooperative ones need cuLaunchKernelEx, which this driver lacks", {}};
  std::array<LaunchAttribute, 2> attributes{};
  LaunchConfiguration configuration{grid.x,  grid.y,         grid.z,  block.x,           block.y,
                                    block.z, dynamic_shared, nullptr, attributes.data(), 0};
  if (traits.cooperative) {
    LaunchAttribute& attribute = attributes[configuration.attribute_count++];
    attribute.id = LaunchAttributeId::cooperative;
    attribute.cooperative = 1;
  }
  if (traits.cluster) {
    if (traits.cluster->count() > portable_cluster_blocks)
      if (auto status = check("cuFuncSetAttribute", driver_->set_function_attribute(
                                                        function, FunctionAttribute::non_portable_cluster_allowed, 1));
          !status)
        return status;
    LaunchAttribute& attribute = attributes[configuration.attribute_count++];
    attribute.id = LaunchAttributeId::cluster_dimension;
    const std::array<unsigned, 3> blocks{traits.cluster->x, traits.cluster->y, traits.cluster->z};
    std::ranges::copy(blocks, attribute.cluster_blocks);
  }
  return check("cuLaunchKernelEx", driver_->launch_with_attributes(&configuration, function, parameters, extra));
}

Status Gpu::finish() {
  return check("cuCtxSynchronize", driver_->synchronise());
}

Result<int> Gpu::occupancy(GpuModule& module, std::string_view kernel, const launch::Dim3& block,
                           uint32_t dynamic_shared) {
  Result<FunctionHandle> function = module.function(kernel);
  if (!function) return function.error();
  int blocks = 0;
  if (auto status = check(
          "cuOccupancyMaxActiveBlocksPerMultiprocessor",
          driver_->blocks_per_multiprocessor(&blocks, *function, static_cast<int>(block.count()), dynamic_shared));
      !status)
    return status.error();
  return blocks;
}

Result<uint64_t> Gpu::resident_blocks(GpuModule& module, std::string_view kernel, const launch::Dim3& block,
                                      uint32_t dynamic_shared) {
  Result<int> blocks = occupancy(module, kernel, block, dynamic_shared);
  if (!blocks) return blocks.error();
  return static_cast<uint64_t>(std::max(*blocks, 1)) * static_cast<uint64_t>(std::max(info_.multiprocessors, 1));
}

GpuModule::~GpuModule() {
  if (handle_) gpu_->driver().unload_module(handle_);
}

Result<FunctionHandle> GpuModule::function(std::string_view name) {
  auto known = functions_.find(std::string(name));
  if (known != functions_.end()) return known->second;
  FunctionHandle handle = nullptr;
  const ResultCode status = gpu_->driver().function(&handle, handle_, std::string(name).c_str());
  if (status == error_not_found) return Error{"the driver's module has no kernel '" + std::string(name) + "'", {}};
  if (status != success) return gpu_->driver().error("cuModuleGetFunction", status);
  functions_.emplace(name, handle);
  return handle;
}

Result<FunctionInfo> GpuModule::function_info(std::string_view name) {
  Result<FunctionHandle> handle = function(name);
  if (!handle) return handle.error();
  auto attribute = [&](FunctionAttribute which) {
    int value = 0;
    gpu_->driver().function_attribute(&value, which, *handle);
    return value;
  };
  return FunctionInfo{attribute(FunctionAttribute::registers),
                      static_cast<uint64_t>(attribute(FunctionAttribute::static_shared_bytes)),
                      static_cast<uint64_t>(attribute(FunctionAttribute::local_bytes))};
}

Result<std::pair<DevicePointer, uint64_t>> GpuModule::variable(std::string_view name) const {
  DevicePointer address = 0;
  size_t bytes = 0;
  const ResultCode status = gpu_->driver().global(&address, &bytes, handle_, std::string(name).c_str());
  if (status == error_not_found) return Error{"the module has no variable '" + std::string(name) + "'", {}};
  if (status != success) return gpu_->driver().error("cuModuleGetGlobal", status);
  return std::pair<DevicePointer, uint64_t>(address, bytes);
}

Gpu::Timer::Timer(Gpu& gpu) : gpu_(gpu) {
  state_ = gpu.driver_->create_event(&first_, 0);
  if (state_ == success) state_ = gpu.driver_->create_event(&last_, 0);
}
Gpu::Timer::~Timer() {
  if (first_) gpu_.driver_->destroy_event(first_);
  if (last_) gpu_.driver_->destroy_event(last_);
}
Status Gpu::Timer::start() {
  if (state_ != success) return gpu_.driver_->error("cuEventCreate", state_);
  return gpu_.check("cuEventRecord", gpu_.driver_->record_event(first_, nullptr));
}
Status Gpu::Timer::stop() {
  if (state_ != success) return gpu_.driver_->error("cuEventCreate", state_);
  return gpu_.check("cuEventRecord", gpu_.driver_->record_event(last_, nullptr));
}
Result<double> Gpu::Timer::seconds() {
  if (auto status = gpu_.check("cuEventSynchronize", gpu_.driver_->synchronise_event(last_)); !status)
    return status.error();
  float milliseconds = 0;
  if (auto status = gpu_.check("cuEventElapsedTime", gpu_.driver_->elapsed(&milliseconds, first_, last_)); !status)
    return status.error();
  return static_cast<double>(milliseconds) * 1e-3;
}

} // namespace ptxrewrite::driver
