// The GPU behind the Device interface.
#include "cli/device.h"
#include "cli/driver/gpu.h"

#include <fmt/format.h>

namespace ptxrewrite::cli {
namespace {

class CudaDevice final : public Device {
public:
  explicit CudaDevice(std::unique_ptr<driver::Gpu> gpu) : gpu_(std::move(gpu)) {}

  DeviceInfo info() const override {
    const driver::GpuInfo& gpu = gpu_->info();
    return {gpu.name, gpu.compute_capability, gpu.driver_version, gpu.multiprocessors, gpu.l2_bytes};
  }

  Result<uint64_t> allocate(uint64_t bytes, std::string_view name) override {
    Result<driver::DevicePointer> address = gpu_->allocate(bytes, name);
    if (!address) return address.error();
    return uint64_t(*address);
  }
  Status release(uint64_t address) override { return gpu_->release(address); }
  Status write(uint64_t address, std::span<const std::byte> bytes) override { return gpu_->write(address, bytes); }
  Status read(uint64_t address, std::span<std::byte> bytes) override { return gpu_->read(address, bytes); }

  Status fill(uint64_t address, std::byte value, uint64_t bytes) override {
    return gpu_->fill(address, static_cast<unsigned char>(value), bytes);
  }

  Status load(const ir::Module& module) override {
    module_ = nullptr;
    modules_.clear();
    Result<size_t> number = load_beside(module);
    return number ? Status() : Status(number.error());
  }

  Result<size_t> load_beside(const ir::Module& module) override {
    auto loaded = gpu_->load(module);
    if (!loaded) return loaded.error();
    modules_.push_back(std::move(*loaded));
    use_module(modules_.size() - 1);
    return modules_.size() - 1;
  }
  void use_module(size_t number) override { module_ = modules_[number].get(); }

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
    const Status stopped = timer.stop(); // fails, too, when the kernel has faulted by now
    KernelRun run;
    if (Status status = gpu_->finish(); !status) {
      emulator::Failure failure;
      failure.message = fmt::format("kernel '{}': {}", launch.kernel, status.error().message);
      run.failure = std::move(failure);
      return run;
    }
    if (!stopped) return stopped.error();
    Result<double> seconds = timer.seconds();
    if (!seconds) return seconds.error();
    run.seconds = *seconds;
    return run;
  }

  Result<uint64_t> resident_blocks(const KernelLaunch& launch) override {
    if (!module_) return Error{"no module is loaded", {}};
    return gpu_->resident_blocks(*module_, launch.kernel, launch.block, launch.dynamic_shared);
  }

private:
  Result<std::pair<driver::DevicePointer, uint64_t>> find_variable(std::string_view name) const {
    if (!module_) return Error{"no module is loaded", {}};
    return module_->variable(name);
  }

  std::unique_ptr<driver::Gpu> gpu_;
  std::vector<std::unique_ptr<driver::GpuModule>> modules_; // go before the GPU
  driver::GpuModule* module_ = nullptr;                     // in use
};

} // namespace

Result<std::unique_ptr<Device>> make_cuda_device(const std::string& library_path) {
  Result<std::unique_ptr<driver::Gpu>> gpu = driver::Gpu::open(library_path);
  if (!gpu) return gpu.error();
  return std::unique_ptr<Device>(std::make_unique<CudaDevice>(std::move(*gpu)));
}

} // namespace ptxrewrite::cli
