#include "evaluate/exec/rewriting.h"

#include "cuda/context/context.h"
#include "cuda/context/log.h"
#include "evaluate/common/rewrite.h"
#include "ir/core/print.h"
#include "launch/persistent_grid.h"
#include "support/text/json_text.h"
#include "support/text/table.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace ptxrewrite::cli {
namespace {

// Passes do not run the assembler: another process, started within the user's, could meet handlers of the program's.
transforms::RunOptions run_options(std::vector<std::string> excluded) {
  transforms::RunOptions options;
  options.excluded = std::move(excluded);
  options.verify_each = true;
  return options;
}

std::map<std::string, std::string> texts_of(const ir::Module& module) {
  std::map<std::string, std::string> texts;
  for (const auto& function : module.functions)
    if (function->is_entry && function->has_body) ir::print(*function, texts[std::string(module.text(function->name))]);
  return texts;
}

// Kernels of both whose text differs. `before` has gone into SSA form and out of it, too: that alone renames values.
std::set<std::string> changed_kernels(const ir::Module& before, const ir::Module& after) {
  std::set<std::string> changed;
  const std::map<std::string, std::string> old_texts = texts_of(before);
  for (const auto& [name, text] : texts_of(after))
    if (const auto old = old_texts.find(name); old != old_texts.end() && old->second != text) changed.insert(name);
  return changed;
}

// Of `kernels`, those that the emulator has not all instructions for.
std::vector<std::string> refused_kernels(const ir::Module& module, const std::set<std::string>& kernels) {
  emulator::DeviceMemory memory;
  std::vector<std::string> refused;
  Result<std::unique_ptr<emulator::Program>> program = emulator::Program::load(module, memory);
  for (const std::string& name : kernels)
    if (!program || !(*program)->check_supported(name)) refused.push_back(name);
  return refused;
}

uint64_t resident_blocks(cuda::LaunchCall& call, const std::string& entry, uint32_t threads) {
  cuda::Kernel* kernel = call.kernel.module->find_kernel(entry);
  if (!kernel) return 1;
  const uint64_t of_sm = call.context.resident_blocks(*kernel, threads, call.request.shared_bytes);
  return std::max<uint64_t>(of_sm, 1) * call.context.settings().machine->sms;
}

// Why the launch cannot be as the variant wants it; "" if it can.
std::string objection_to(const cuda::LaunchCall& call, const launch::Choice& choice) {
  const emulator::Dimensions& block = call.request.block;
  const launch::Dim3 given{block.x, block.y, block.z};
  if (call.cooperative && (choice.grid != launch::GridMode::same || choice.block != given))
    return "a cooperative launch keeps its shape";
  if (choice.block.count() > launch::max_block_threads)
    return fmt::format("it would have {} threads in a block", choice.block.count());
  return {};
}

void take_variant(cuda::LaunchCall& call, const std::string& entry, launch::Choice choice) {
  emulator::LaunchRequest& request = call.request;
  request.kernel = entry;
  request.parameters = std::move(choice.parameter_block);
  request.block = {choice.block.x, choice.block.y, choice.block.z};
  if (choice.grid == launch::GridMode::persistent) {
    const launch::Dim3 grid =
        launch::persistent_grid({request.grid.x, request.grid.y, request.grid.z},
                                resident_blocks(call, entry, static_cast<uint32_t>(choice.block.count())));
    request.grid = {grid.x, grid.y, grid.z};
    request.cluster.reset(); // its code does not know of clusters: transforms/r2d2/persistent_check.cpp
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

std::string beginning(const std::string& text) {
  constexpr size_t limit = 100;
  return text.size() <= limit ? text : text.substr(0, limit) + "...";
}

Result<RewrittenModule> rewrite_for_program(const ir::Module& original, const std::string& passes) {
  const auto run = [&](const std::string& pipeline, std::vector<std::string> excluded) {
    return rewrite(original, pipeline, transforms::OutputForm::legal, run_options(std::move(excluded)));
  };
  Result<Rewritten> made = run(passes, {});
  if (!made) return made.error();
  if (!made->module) return RewrittenModule();
  Result<Rewritten> unchanged = run("", {});
  if (!unchanged) return unchanged.error();
  RewrittenModule result{std::move(made->module), {}};
  result.changed = changed_kernels(*unchanged->module, *result.module);
  const std::vector<std::string> refused = refused_kernels(*result.module, result.changed);
  if (refused.empty()) return result;
  made = run(passes, refused);
  if (!made) return made.error();
  result.module = std::move(made->module);
  for (const std::string& name : refused)
    result.changed.erase(name);
  return result;
}

std::unique_ptr<ir::Module> RewritingHook::replacement(const ir::Module& original) {
  KnownModule& known = modules_[&original];
  known.reason = "the passes failed"; // unless they come to an end
  Result<RewrittenModule> made = rewrite_for_program(original, passes_);
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
  Result<launch::Choice> choice =
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
  KernelCounts& counts = counts_[place->second];
  ++(call.rewritten ? counts.rewritten : counts.original);
  if (!call.rewritten) ++counts.reasons[call.reason];
}

cuda::ReportPart RewritingHook::report() {
  TextTable table{{{"kernel"}, {"rewritten", true}, {"original", true}, {"why the original ran"}}, {}};
  nlohmann::ordered_json kernels = nlohmann::ordered_json::array();
  for (const KernelCounts& counts : counts_) {
    std::vector<std::string> row{counts.name, std::to_string(counts.rewritten), std::to_string(counts.original)};
    nlohmann::ordered_json reasons = nlohmann::ordered_json::array();
    for (const auto& [reason, launches] : counts.reasons) {
      row.push_back(beginning(reason));
      table.rows.push_back(std::move(row));
      row = {"", "", ""};
      reasons.push_back({{"reason", reason}, {"launches", launches}});
    }
    if (counts.reasons.empty()) table.rows.push_back(std::move(row));
    kernels.push_back({{"kernel", counts.name},
                       {"rewritten_launches", counts.rewritten},
                       {"original_launches", counts.original},
                       {"reasons", std::move(reasons)}});
  }
  const nlohmann::ordered_json document = {{"passes", passes_}, {"kernels", std::move(kernels)}};
  return {"passes: " + passes_ + "\n" + table.text(), "rewriting", json_text(document)};
}

} // namespace ptxrewrite::cli
