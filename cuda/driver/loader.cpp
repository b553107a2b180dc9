#include "cuda/driver/loader.h"

#include "launch/persistent_grid.h"
#include "launch/signature.h"

#include <cstring>

namespace ptxrewrite::driver {

Result<Loader> Loader::load(Gpu& gpu, const ir::Module& module, const launch::SideFile* side_file) {
  Result<launch::Variants> variants = launch::Variants::of(module, side_file);
  if (!variants) return variants.error();
  Result<std::unique_ptr<GpuModule>> on_gpu = gpu.load(module);
  if (!on_gpu) return on_gpu.error();
  return Loader(gpu, module, std::move(*variants), std::move(*on_gpu));
}

Result<Launched> Loader::launch(std::string_view kernel, const launch::Dim3& grid, const launch::Dim3& block,
                                std::initializer_list<const void*> arguments, uint32_t dynamic_shared) {
  const ir::Function* original = launch::find_kernel(*module_, kernel);
  if (!original) return Error{"the module has no kernel '" + std::string(kernel) + "'", {}};
  const launch::Signature signature = launch::signature_of(*original);
  if (arguments.size() != signature.parameters.size())
    return Error{"kernel '" + std::string(kernel) + "' has " + std::to_string(signature.parameters.size()) +
                     " parameters; " + std::to_string(arguments.size()) + " arguments are given",
                 {}};
  std::vector<std::byte> parameters(signature.bytes);
  auto parameter = signature.parameters.begin();
  for (const void* argument : arguments) {
    std::memcpy(parameters.data() + parameter->offset, argument, parameter->bytes);
    ++parameter;
  }
  return launch_packed(kernel, grid, block, parameters, dynamic_shared);
}

Result<Launched> Loader::launch_packed(std::string_view kernel, const launch::Dim3& grid, const launch::Dim3& block,
                                       std::span<const std::byte> parameters, uint32_t dynamic_shared) {
  Result<launch::VariantChoice> choice = variants_.choose(kernel, parameters, grid, block);
  if (!choice) return choice.error();
  Launched launched{std::string(module_->text(choice->entry->name)), grid, choice->is_original,
                    std::move(choice->reasons)};
  if (choice->grid == launch::GridMode::persistent) {
    Result<uint64_t> resident = gpu_->resident_blocks(*on_gpu_, launched.entry, choice->block, dynamic_shared);
    if (!resident) return resident.error();
    launched.grid = launch::persistent_grid(grid, *resident);
  }
  LaunchTraits traits;
  for (const launch::Parameter& parameter : launch::signature_of(*choice->entry).parameters)
    traits.parameter_offsets.push_back(parameter.offset);
  if (Status status = gpu_->start(*on_gpu_, launched.entry, launched.grid, choice->block, dynamic_shared,
                                  choice->parameter_block, traits);
      !status)
    return status.error();
  return launched;
}

} // namespace ptxrewrite::driver
