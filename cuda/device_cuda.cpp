// Implements the Device interface with a GPU.
#include "cuda/device.h"
#include "cuda/driver/gpu.h"
#include "cuda/driver/tensor_map.h"
#include "cuda/driver/texture.h"
#include "cuda/texture_use.h"
#include "launch/signature.h"

#include <fmt/format.h>

#include <algorithm>
namespace ptxrewrite::cuda {
namespace {

class CudaDevice final : public Device {
public:
  explicit CudaDevice(std::unique_ptr<driver::Gpu> gpu) : gpu_(std::move(gpu)) {}

  DeviceInfo info() const override {
    const driver::GpuInfo& gpu = gpu_->info();
    return {gpu.name, gpu.bus_id, gpu.compute_capability, gpu.driver_version, gpu.multiprocessors, gpu.l2_bytes};
  }

  Result<uint64_t> allocate(uint64_t bytes, std::string_view name) override {
    Result<driver::DevicePointer> address = gpu_->allocate(bytes, name);
    if (!address) return address.error();
    return uint64_t(*address);
  }
  Status release(uint64_t address) override {
    std::erase_if(textures_, [&](const auto& texture) { return texture->buffer() == address; });
    return gpu_->release(address);
  }
  Status write(uint64_t address, std::span<const std::byte> bytes) override { return gpu_->write(address, bytes); }
  Status read(uint64_t address, std::span<std::byte> bytes) override { return gpu_->read(address, bytes); }

  Status fill(uint64_t address, std::byte value, uint64_t bytes) override {
    return gpu_->fill(address, static_cast<unsigned char>(value), bytes);
  }

  Status set_heap_bytes(uint64_t bytes) override { return gpu_->set_heap_bytes(bytes); }

  Status load(const ir::Module& module) override {
    module_ = nullptr;
    modules_.clear();
    Result<size_t> number = load_beside(module);
    return number ? Status() : Status(number.error());
  }

  Result<size_t> load_beside(const ir::Module& module) override {
    auto loaded = gpu_->load(module);
    if (!loaded) return loaded.error();
    modules_.push_back({std::move(*loaded), &module});
    use_module(modules_.size() - 1);
    return modules_.size() - 1;
  }
  void use_module(size_t number) override {
    module_ = modules_[number].on_gpu.get();
    source_ = modules_[number].source;
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

  Result<TextureHandles> bind_texture(const launch::Texture& texture, ir::ScalarType element,
                                      uint64_t buffer_address) override {
    if (!module_) return Error{"no module is loaded", {}};
    if (texture.offset || texture.handle)
      return Error{"texture '" + texture.name + "': offset and handle are for the emulator", texture.range};
    auto known = std::ranges::find_if(
        textures_, [&](const auto& one) { return one->buffer() == buffer_address && one->name() == texture.name; });
    if (known == textures_.end()) {
      auto made = driver::GpuTexture::make(*gpu_, texture, element, buffer_address, texel_store(texture));
      if (!made) return made.error();
      textures_.push_back(std::move(*made));
      known = textures_.end() - 1;
    }
    for (const ir::Variable& variable : source_->variables) {
      if (source_->text(variable.name) != texture.name) continue;
      Status status;
      if (variable.type == ir::ScalarType::texref) status = (*known)->bind_reference(*module_, texture.name);
      if (variable.type == ir::ScalarType::surfref) status = (*known)->bind_surface_reference(*module_, texture.name);
      if (!status) return Error{"texture '" + texture.name + "': " + status.error().message, texture.range};
    }
    return TextureHandles{(*known)->texture(), (*known)->surface()};
  }

  Result<std::array<std::byte, ir::tensor_map_bytes>> encode_tensor_map(const ir::TensorMap& map) override {
    return driver::encode_tensor_map(gpu_->driver(), map);
  }

  Result<KernelRun> launch(const KernelLaunch& launch) override {
    if (!module_) return Error{"no module is loaded", {}};
    for (const auto& texture : textures_)
      if (Status status = texture->take_from_buffer(); !status) return status.error();
    driver::Gpu::Timer timer(*gpu_);
    if (Status status = timer.start(); !status) return status.error();
    if (Status status = gpu_->start(*module_, launch.kernel, launch.grid, launch.block, launch.dynamic_shared,
                                    launch.parameters, {launch.cooperative, launch.cluster, offsets_of(launch.kernel)});
        !status)
      return status.error();
    const Status stopped = timer.stop(); // also fails if the kernel has faulted by now
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
    for (const auto& texture : textures_)
      if (std::ranges::find(launch.surfaces, texture->name()) != launch.surfaces.end())
        if (Status status = texture->give_to_buffer(); !status) return status.error();
    return run;
  }

  Result<uint64_t> resident_blocks(const KernelLaunch& launch) override {
    if (!module_) return Error{"no module is loaded", {}};
    return gpu_->resident_blocks(*module_, launch.kernel, launch.block, launch.dynamic_shared);
  }

private:
  std::vector<size_t> offsets_of(std::string_view kernel) const {
    std::vector<size_t> offsets;
    if (const ir::Function* function = launch::find_kernel(*source_, kernel))
      for (const launch::Parameter& parameter : launch::signature_of(*function).parameters)
        offsets.push_back(parameter.offset);
    return offsets;
  }

  Result<std::pair<driver::DevicePointer, uint64_t>> find_variable(std::string_view name) const {
    if (!module_) return Error{"no module is loaded", {}};
    return module_->variable(name);
  }

  // The use of a texture by the module determines where its texels are stored.
  driver::TexelStore texel_store(const launch::Texture& texture) const {
    bool has_surfaces = false, numbers = false, elements = false;
    for (const auto& function : source_->functions) {
      if (!function->has_body) continue;
      const TextureUse use = texture_use_of(*function);
      has_surfaces |= !use.surface_references.empty() || std::ranges::find(use.surfaces, true) != use.surfaces.end();
      numbers |= use.samples_numbers_1d;
      elements |= use.samples_elements_1d;
    }
    for (const ir::Variable& variable : source_->variables)
      has_surfaces |= variable.type == ir::ScalarType::surfref && source_->text(variable.name) == texture.name;
    if (texture.height == 0 && !texture.layered && elements && !numbers && !has_surfaces)
      return driver::TexelStore::buffer;
    return has_surfaces ? driver::TexelStore::surface_array : driver::TexelStore::array;
  }

  struct LoadedModule {
    std::unique_ptr<driver::GpuModule> on_gpu;
    const ir::Module* source;
  };

  std::unique_ptr<driver::Gpu> gpu_;
  std::vector<std::unique_ptr<driver::GpuTexture>> textures_; // destroyed before the GPU, like the modules
  std::vector<LoadedModule> modules_;
  driver::GpuModule* module_ = nullptr; // in use
  const ir::Module* source_ = nullptr;  // its IR
};

} // namespace

Result<std::unique_ptr<Device>> make_cuda_device(const std::string& library_path) {
  Result<std::unique_ptr<driver::Gpu>> gpu = driver::Gpu::open(library_path);
  if (!gpu) return gpu.error();
  return std::unique_ptr<Device>(std::make_unique<CudaDevice>(std::move(*gpu)));
}

} // namespace ptxrewrite::cuda
