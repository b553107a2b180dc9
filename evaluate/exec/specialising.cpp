#include "evaluate/exec/specialising.h"

#include "cuda/context/context.h"
#include "evaluate/exec/rewriting.h"

namespace ptxrewrite::evaluate {

// Drops kernels of an unloaded module whose address the new one has.
std::unique_ptr<ir::Module> SpecialisingHook::replacement(const ir::Module& original) {
  modules_.erase(&original);
  return nullptr;
}

SpecialisingHook::Kernel* SpecialisingHook::kernel_of(const cuda::LaunchCall& call) {
  const ir::Module& module = call.kernel.module->original();
  auto& kernels = modules_[&module];
  auto known = kernels.find(call.kernel.name);
  if (known == kernels.end()) {
    const ir::Function* function = launch::find_kernel(module, call.kernel.name);
    if (!function) return nullptr;
    known = kernels.emplace(call.kernel.name, Kernel(module, *function)).first;
    known->second.place = counts_.size();
    counts_.push_back({call.kernel.name, 0, 0, 0, {}});
  }
  return &known->second;
}

void SpecialisingHook::make(cuda::LaunchCall& call, Kernel& kernel, const std::string& key) {
  SpecialisedCounts& counts = counts_[kernel.place];
  Result<SpecialisedKernel> code = specialised_kernel(call.kernel.module->original(), call.kernel.name, key, passes_);
  if (!code) {
    counts.reasons.insert(code.error().message);
    return;
  }
  const std::string entry = code->variants.of_kernel(call.kernel.name).front().entry;
  if (!kernels_not_emulated(*code->module, {entry}).empty()) {
    counts.reasons.insert("the emulator does not support it");
    return;
  }
  Result<std::unique_ptr<emulator::Program>> program = emulator::Program::load(*code->module, call.context.memory());
  if (!program) {
    counts.reasons.insert(program.error().message);
    return;
  }
  ++counts.made;
  kernel.made.emplace(key, Made{*std::move(code), *std::move(program)});
}

void SpecialisingHook::before(cuda::LaunchCall& call) {
  Kernel* kernel = kernel_of(call);
  if (!kernel) return;
  ++counts_[kernel->place].launches;
  emulator::LaunchRequest& request = call.request;
  if (request.cluster) return; // keys have no cluster size
  const launch::Dim3 grid{request.grid.x, request.grid.y, request.grid.z};
  const launch::Dim3 block{request.block.x, request.block.y, request.block.z};
  const std::string key = kernel->keys.of(grid, block, request.parameters);
  if (kernel->repeated.is_due(key, times_)) make(call, *kernel, key);
  const auto made = kernel->made.find(key);
  if (made == kernel->made.end()) return;
  const SpecialisedKernel& code = made->second.code;
  Result<launch::VariantChoice> choice = code.variants.choose(call.kernel.name, request.parameters, grid, block);
  if (!choice || choice->is_original || choice->grid != launch::GridMode::same || choice->block != block) return;
  request.kernel = code.module->text(choice->entry->name);
  request.parameters = std::move(choice->parameter_block);
  call.program = made->second.program.get();
  call.code = code.module.get();
  call.rewritten = true;
}

void SpecialisingHook::after(const cuda::LaunchCall& call, const emulator::LaunchResult&) {
  const Kernel* kernel = kernel_of(call);
  if (kernel && call.code != &call.kernel.module->ir()) ++counts_[kernel->place].specialised;
}

cuda::ReportPart SpecialisingHook::report() {
  return {specialised_counts_text(times_, counts_), "specialising", specialised_counts_json(times_, counts_)};
}

} // namespace ptxrewrite::evaluate
