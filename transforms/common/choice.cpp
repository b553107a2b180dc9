// Weighs kernels: assembles each form of a kernel in a text that holds no other kernel.
#include "transforms/common/choice.h"

#include "ir/core/print.h"
#include "ir/flow/loops.h"
#include "ir/machine/prepare/equalities.h"
#include "ir/ssa/ssa.h"
#include "support/ptxas.h"
#include "transforms/common/cost.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <memory>

namespace ptxrewrite::transforms::legal {

namespace {

// The module's text with `kernel` in the place of the function of its name, and without the other kernels.
std::string text_with(std::unique_ptr<ir::Function> kernel) {
  ir::Module& module = kernel->module();
  auto is_other_kernel = [&](const ir::Item& item) {
    if (item.kind != ir::ItemKind::function) return false;
    const ir::Function& function = *module.functions[item.id];
    return function.is_entry && function.name != kernel->name;
  };
  std::vector<ir::Item> items = module.items;
  std::erase_if(module.items, is_other_kernel);
  auto place = std::ranges::find_if(
      module.functions, [&](const auto& function) { return function->name == kernel->name && function->has_body; });
  // The original that a pass has set aside is not in the module yet.
  const bool is_set_aside = place == module.functions.end();
  if (is_set_aside) {
    module.items.push_back({ir::ItemKind::function, static_cast<uint32_t>(module.functions.size()), {}, {}});
    module.functions.push_back(nullptr);
    place = module.functions.end() - 1;
  }
  std::string text;
  std::swap(*place, kernel);
  ir::print(module, text);
  std::swap(*place, kernel);
  if (is_set_aside) module.functions.pop_back();
  module.items = std::move(items);
  return text;
}

unsigned number_of(std::string_view architecture) {
  unsigned number = 0;
  if (architecture.starts_with("sm_")) std::from_chars(architecture.data() + 3, &architecture.back() + 1, number);
  return number;
}

// Warps that registers leave room for on an SM: allocated in steps of 8 per thread, 65,536 there.
unsigned warps_by_registers(uint32_t registers) {
  unsigned step = std::max(registers + 7, 8u) / 8 * 8;
  return std::min(65536u / (step * 32), 64u);
}

double ratio(const KernelCost& after, const KernelCost& before, uint32_t ir::MachineFigures::*which) {
  double sum = 0;
  for (size_t i = 0; i < after.figures.size(); ++i)
    sum += double(after.figures[i].second.*which) / std::max(1.0, double(before.figures[i].second.*which));
  return sum;
}

// By the model alone.
struct ModelCost : KernelCost {
  explicit ModelCost(const ir::Function& function) {
    // As ptxas reads it: an index that a branch compares with a number is that number behind it, but not where a
    // rewriting computes in front of the branch.
    ir::Function text(function);
    ir::use_equalities(text);
    ir::ControlFlow flow(text);
    ir::DominatorTree dominators(text, flow);
    ir::LoopForest loops(text, flow, dominators);
    InstructionCosts costs(text, loops);
    for (ir::BlockId block : text.layout)
      for (ir::InstructionId id : text.instructions_in(block))
        weighted += costs.of(id);
    instructions = costs.static_instructions();
  }
};

// Asks ptxas, where there are architectures.
Result<KernelCost> assembled(KernelCost cost, const ir::Function& function,
                             const std::vector<std::string>& architectures) {
  if (architectures.empty()) return cost;
  auto copy = std::make_unique<ir::Function>(function);
  ir::destruct_ssa(*copy);
  const std::string text = text_with(std::move(copy));
  for (const std::string& architecture : architectures) {
    Result<ir::FiguresByFunction> figures = ir::machine_figures(text, architecture);
    if (!figures) return Error{architecture + ": " + figures.error().message, {}};
    auto row = figures->find(function.module().text(function.name));
    if (row == figures->end()) return Error{architecture + ": ptxas has left the kernel out", {}};
    cost.figures.emplace_back(architecture, row->second);
  }
  return cost;
}

} // namespace

Result<KernelCost> cost_of(const ir::Function& function, const std::vector<std::string>& architectures) {
  return assembled(ModelCost(function), function, architectures);
}

Result<KernelCost> cost_of(const ir::Function& function, const std::vector<std::string>& architectures,
                           AnalysisCache& analyses) {
  return assembled(analyses.of<ModelCost>(function), function, architectures);
}

bool loses(const KernelCost& after, const KernelCost& before) {
  if (after.figures.empty()) return after.weighted > before.weighted;
  for (size_t i = 0; i < after.figures.size(); ++i) {
    const ir::MachineFigures &now = after.figures[i].second, &then = before.figures[i].second;
    if (now.spilled_bytes > then.spilled_bytes || now.instructions > then.instructions ||
        warps_by_registers(now.registers) < warps_by_registers(then.registers))
      return true;
  }
  return false;
}

bool wins(const KernelCost& after, const KernelCost& before, bool is_variant) {
  if (after.figures.empty()) {
    if (after.instructions > before.instructions) return false;
    double saved = before.weighted - after.weighted;
    return is_variant ? saved >= std::max(4.0, before.weighted / 20) : saved > 0;
  }
  if (loses(after, before)) return false;
  bool fewer = false;
  for (size_t i = 0; i < after.figures.size(); ++i)
    fewer |= after.figures[i].second.instructions < before.figures[i].second.instructions;
  return fewer;
}

bool is_better(const KernelCost& a, const KernelCost& b, const KernelCost& before) {
  if (a.figures.empty()) return a.weighted < b.weighted;
  double first = ratio(a, before, &ir::MachineFigures::instructions);
  double second = ratio(b, before, &ir::MachineFigures::instructions);
  if (first != second) return first < second;
  return ratio(a, before, &ir::MachineFigures::registers) < ratio(b, before, &ir::MachineFigures::registers);
}

std::string comparison(const KernelCost& after, const KernelCost& before) {
  if (after.figures.empty()) {
    char text[160];
    std::snprintf(text, sizeof text, "by the model, %.0f to %.0f machine instructions, weighted by loop depth",
                  before.weighted, after.weighted);
    std::string comparison = text;
    if (after.instructions > before.instructions)
      comparison +=
          "; unweighted, " + std::to_string(before.instructions) + " to " + std::to_string(after.instructions);
    return comparison;
  }
  std::string text;
  for (size_t i = 0; i < after.figures.size(); ++i) {
    const auto& [architecture, now] = after.figures[i];
    const ir::MachineFigures& then = before.figures[i].second;
    text += (i ? "; " : "") + architecture + ": " + std::to_string(then.instructions) + " to " +
            std::to_string(now.instructions) + " instructions, " + std::to_string(then.registers) + " to " +
            std::to_string(now.registers) + " registers";
  }
  return text;
}

std::vector<std::string> default_architectures(const ir::Module& module) {
  std::vector<std::string> list;
  if (module.targets.empty()) return list;
  list.emplace_back(module.text(module.targets.front()));
  unsigned own = number_of(list.front());
  // sm_90a and sm_100f are for those machines alone.
  if (own != 0 && own < 90 && std::isdigit(static_cast<unsigned char>(list.front().back()))) list.push_back("sm_90");
  return list;
}

std::vector<std::string> split_words(std::string_view text) {
  std::vector<std::string> words;
  for (size_t start = 0; start <= text.size();) {
    size_t end = std::min(text.find('+', start), text.size());
    if (end > start) words.emplace_back(text.substr(start, end - start));
    start = end + 1;
  }
  return words;
}

std::vector<std::string> architectures_to_ask(const ir::Module& module, const PassContext& context) {
  std::string_view cost = context.options.text("cost", "auto");
  if (cost == "model" || (cost == "auto" && (!context.may_run_ptxas || !find_ptxas()))) return {};
  std::string_view listed = context.options.text("architectures", "");
  return listed.empty() ? default_architectures(module) : split_words(listed);
}

PassOptionDescription cost_option() {
  return {"cost", "how the legal form is chosen: ptxas, model, or auto, ptxas where it may be run (default)"};
}

PassOptionDescription architectures_option() {
  return {"architectures", "for which GPUs ptxas is asked: sm_80+sm_90 (default: the file's own target, and sm_90)"};
}

} // namespace ptxrewrite::transforms::legal
