// The GPU behind the Device interface.
#include "cli/device.h"
#include "cli/driver/gpu.h"
#include "ir/print.h"

#include <fmt/format.h>

namespace ptxrewrite::cli {
namespace {

class CudaDevice final : public Device {
public:
  explicit CudaDevice(std::unique_ptr<driver::Gpu> gpu) : gpu_(std::move(gpu)) {}

  Result<uint64_t> allocate(uint64_t bytes, std::string_view name) override {
    Result<driver::DevicePointer> address = gpu_->allocate(bytes, name);
    if (!address) return address.error();
    return uint64_t(*address);
  }
  Status release(uint64_t address) override { return gpu_->release(address); }
  Status write(uint64_t address, std::span<const std::byte> bytes) override { return gpu_->write(address, bytes); }
  Status read(uint64_t address, std::span<std::byte> bytes) override { return gpu_->read(address, bytes); }

  // What the driver gets is the module's text as it prints: a rewritten module has no other.
  Status load(const ir::Module& module) override {
    module_.reset();
    std::string text;
    ir::print(module, text);
    SourceFile source(module.source.name(), std::move(text));
    Diagnostics diagnostics;
    auto loaded = gpu_->load(source, diagnostics);
    if (!loaded) {
      std::string message = loaded.error().message;
      if (!loaded.error().range.empty())
        message += fmt::format(" (line {} of the printed module: {})", source.locate(loaded.error().range.begin).line,
                               source.text(loaded.error().range));
      return Error{message, {}};
    }
    module_ = std::move(*loaded);
    return {};
  }

  Status write_variable(std::string_view name, std::span<const std::byte> bytes) override {
    auto place = find_variable(name);
    if (!place) return place.error();
    if (bytes.size() > place->second)
      return Error{fmt::format("{} bytes for variable '{}', which has {}", bytes.size(), name, place->second), {}};
    return gpu_->write(place->first, bytes);
  }

  Result<std::vector<std::byte>> read_variable(std::string_view name) override {
    auto place = find_variable(name);
    if (!place) return place.error();
    std::vector<std::byte> bytes(place->second);
    if (Status status = gpu_->read(place->first, bytes); !status) return status.error();
    return bytes;
  }

  Result<uint64_t> bind_texture(const launch::Texture& texture, ir::ScalarType, uint64_t) override {
    return Error{fmt::format("texture '{}': textures are not bound on a GPU yet", texture.name), texture.range};
  }

  Result<KernelRun> launch(const KernelLaunch& launch) override {
    if (!module_) return Error{"no module is loaded", {}};
    driver::Gpu::Timer timer(*gpu_);
    if (Status status = timer.start(); !status) return status.error();
    if (Status status =
            gpu_->start(*module_, launch.kernel, launch.grid, launch.block, launch.dynamic_shared, launch.parameters);
        !status)
      return status.error();
    if (Status status = timer.stop(); !status) return status.error();
    KernelRun run;
    if (Status status = gpu_->finish(); !status) {
      emulator::Failure failure;
      failure.message = status.error().message;
      failure.kernel = failure.function = launch.kernel;
      run.failure = std::move(failure);
      return run;
    }
    Result<double> seconds = timer.seconds();
    if (!seconds) return seconds.error();
    run.seconds = *seconds;
    return run;
  }

private:
  Result<std::pair<driver::DevicePointer, uint64_t>> find_variable(std::string_view name) const {
    if (!module_) return Error{"no module is loaded", {}};
    return module_->variable(name);
  }

  std::unique_ptr<driver::Gpu> gpu_;
  std::unique_ptr<driver::GpuModule> module_; // goes before the GPU
};

} // namespace

Result<std::unique_ptr<Device>> make_cuda_device(const std::string& library_path) {
  Result<std::unique_ptr<driver::Gpu>> gpu = driver::Gpu::open(library_path);
  if (!gpu) return gpu.error();
  return std::unique_ptr<Device>(std::make_unique<CudaDevice>(std::move(*gpu)));
}

} // namespace ptxrewrite::cli
