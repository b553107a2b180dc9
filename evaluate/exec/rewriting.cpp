#include "evaluate/exec/rewriting.h"

#include "cuda/context/context.h"
#include "cuda/context/log.h"
#include "launch/persistent_grid.h"

#include <fmt/format.h>

#include <algorithm>

namespace ptxrewrite::evaluate {
namespace {

uint64_t resident_blocks(cuda::LaunchCall& call, const std::string& entry, uint32_t threads) {
  cuda::Kernel* kernel = call.kernel.module->find_kernel(entry);
  if (!kernel) return 1;
  const uint64_t of_sm = call.context.resident_blocks(*kernel, threads, call.request.shared_bytes);
  return std::max<uint64_t>(of_sm, 1) * call.context.settings().machine->sms;
}

// Why the variant's launch is not possible; "" if it is.
std::string objection_to(const cuda::LaunchCall& call, const launch::VariantChoice& choice) {
  const emulator::Dimensions& block = call.request.block;
  const launch::Dim3 given{block.x, block.y, block.z};
  if (call.cooperative && (choice.grid != launch::GridMode::same || choice.block != given))
    return "a cooperative launch keeps its shape";
  if (choice.block.count() > launch::max_block_threads)
    return fmt::format("it would have {} threads in a block", choice.block.count());
  return {};
}

void take_variant(cuda::LaunchCall& call, const std::string& entry, launch::VariantChoice choice) {
  emulator::LaunchRequest& request = call.request;
  request.kernel = entry;
  request.parameters = std::move(choice.parameter_block);
  request.block = {choice.block.x, choice.block.y, choice.block.z};
  if (choice.grid == launch::GridMode::persistent) {
    const launch::Dim3 grid =
        launch::persistent_grid({request.grid.x, request.grid.y, request.grid.z},
                                resident_blocks(call, entry, static_cast<uint32_t>(choice.block.count())));
    request.grid = {grid.x, grid.y, grid.z};
    request.cluster.reset(); // its code does not use clusters: transforms/r2d2/persistent_check.cpp
  }
  call.rewritten = true;
}

std::string joined(const std::vector<std::string>& reasons) {
  std::string text;
  for (const std::string& reason : reasons)
    text += (text.empty() ? "" : "; ") + reason;
  return text;
}

} // namespace

std::vector<std::string> kernels_not_emulated(const ir::Module& module, const std::set<std::string>& kernels) {
  emulator::DeviceMemory memory;
  std::vector<std::string> refused;
  Result<std::unique_ptr<emulator::Program>> program = emulator::Program::load(module, memory);
  for (const std::string& name : kernels)
    if (!program || !(*program)->check_supported(name)) refused.push_back(name);
  return refused;
}

std::unique_ptr<ir::Module> RewritingHook::replacement(const ir::Module& original) {
  KnownModule& known = modules_[&original];
  known.reason = "the passes failed"; // replaced if they succeed
  Result<RewrittenModule> made = rewrite_for_program(original, passes_, kernels_not_emulated);
  if (!made) {
    known.reason = made.error().message;
    cuda::log(cuda::LogLevel::warn, "{} is not rewritten: {}", original.source.name(), known.reason);
    return nullptr;
  }
  if (!made->module) {
    known.reason = "the passes change nothing";
    return nullptr;
  }
  Result<launch::Variants> variants = launch::Variants::of(*made->module, nullptr);
  if (!variants) {
    known.reason = variants.error().message;
    return nullptr;
  }
  known.reason.clear();
  known.variants = *std::move(variants);
  known.changed = std::move(made->changed);
  return std::move(made->module);
}

void RewritingHook::before(cuda::LaunchCall& call) {
  if (call.rewritten) return; // a kernel for this launch
  const cuda::Module& module = *call.kernel.module;
  const KnownModule& known = modules_[&module.original()];
  if (&module.ir() == &module.original()) {
    call.reason = known.reason.empty() ? "its module could not be loaded after the passes" : known.reason;
    return;
  }
  if (known.changed.contains(call.kernel.name)) {
    call.rewritten = true;
    return;
  }
  if (!known.variants || known.variants->of_kernel(call.kernel.name).empty()) {
    call.reason = "the passes do not change it";
    return;
  }
  const emulator::LaunchRequest& request = call.request;
  Result<launch::VariantChoice> choice =
      known.variants->choose(call.kernel.name, request.parameters, {request.grid.x, request.grid.y, request.grid.z},
                             {request.block.x, request.block.y, request.block.z});
  if (!choice) {
    call.reason = choice.error().message;
    return;
  }
  call.reason = joined(choice->reasons);
  if (choice->is_original) return;
  const std::string entry(module.ir().text(choice->entry->name));
  if (const std::string why = objection_to(call, *choice); !why.empty())
    call.reason = entry + ": " + why;
  else
    take_variant(call, entry, *std::move(choice));
}

void RewritingHook::after(const cuda::LaunchCall& call, const emulator::LaunchResult&) {
  const auto [place, is_new] = places_.try_emplace(&call.kernel, counts_.size());
  if (is_new) counts_.push_back({call.kernel.name, 0, 0, {}});
  LaunchCounts& counts = counts_[place->second];
  ++(call.rewritten ? counts.rewritten : counts.original);
  if (!call.rewritten) ++counts.reasons[call.reason];
}

cuda::ReportPart RewritingHook::report() {
  return {launch_counts_text(passes_, counts_), "rewriting", launch_counts_json(passes_, counts_)};
}

} // namespace ptxrewrite::evaluate
