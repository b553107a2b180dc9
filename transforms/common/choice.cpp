// Computes costs of kernels: with ptxas, or with the machine model if ptxas is not used or has not answered yet.
#include "transforms/common/choice.h"

#include "ir/flow/loops.h"
#include "ir/machine/prepare/equalities.h"
#include "support/ptxas.h"
#include "transforms/common/address_forms.h"
#include "transforms/common/cost.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace ptxrewrite::transforms::legal {

namespace {

unsigned number_of(std::string_view architecture) {
  unsigned number = 0;
  if (architecture.starts_with("sm_")) std::from_chars(architecture.data() + 3, &architecture.back() + 1, number);
  return number;
}

// Number of warps per SM that the register file allows: 65,536 registers, allocated in steps of 8 per thread.
unsigned warps_by_registers(uint32_t registers) {
  unsigned step = std::max(registers + 7, 8u) / 8 * 8;
  return std::min(65536u / (step * 32), 64u);
}

// Do both have figures of ptxas?
bool are_assembled(const KernelCost& a, const KernelCost& b) {
  return !a.figures.empty() && !b.figures.empty();
}

double ratio(const KernelCost& after, const KernelCost& before, uint32_t ir::MachineFigures::*which) {
  double sum = 0;
  for (size_t i = 0; i < after.figures.size(); ++i)
    sum += double(after.figures[i].second.*which) / std::max(1.0, double(before.figures[i].second.*which));
  return sum;
}

std::shared_ptr<const ir::Lowering> add_costs(ModelCost& cost, const ir::Function& text, const ir::LoopForest& loops,
                                              ir::LoweringStore& lowerings) {
  const std::shared_ptr<const ir::Lowering> lowering = lowerings.of(text, weighed_capability(text.module()));
  const InstructionCosts costs(text, loops, lowering);
  cost.by_instruction.assign(text.instructions.size(), 0);
  cost.executions.assign(text.blocks.size(), 0);
  for (ir::BlockId block : text.layout) {
    cost.executions[block.index()] = execution_weight(loops, block);
    for (ir::InstructionId id : text.instructions_in(block))
      cost.weighted += cost.by_instruction[id.index()] = costs.of(id);
  }
  cost.instructions = lowering->static_instructions();
  return lowering;
}

// As printf's %.*f, which takes ten times as long.
std::string fixed(double number, int digits) {
  std::array<char, 400> text; // the largest number has 309 digits
  const auto end = std::to_chars(text.begin(), text.end(), number, std::chars_format::fixed, digits).ptr;
  return {text.begin(), end};
}

// Returns what ptxas answers, or that the answer is pending. Errors are answers, too.
Assemblies::Answer ask(const ir::Function& function, const std::vector<std::string>& architectures,
                       const PassContext& context) {
  using enum Assemblies::Answer::State;
  if (architectures.empty()) return {known, {}, {}};
  if (context.assemblies) return context.assemblies->figures(function, architectures);
  Result<FiguresByArchitecture> figures = assemble_alone(function, architectures);
  if (!figures) return {refused, {}, figures.error().message};
  return {known, *std::move(figures), {}};
}

} // namespace

ModelCost::ModelCost(const ir::Function& function, ir::LoweringStore& lowerings) {
  // As ptxas reads it: after a branch that compares an index with a number, the index is replaced by that number, but
  // not if a rewritten kernel computes with it before the branch.
  const ir::ControlFlow flow(function);
  const ir::DominatorTree dominators(function, flow);
  const ir::LoopForest loops(function, flow, dominators);
  if (!ir::has_equalities(function, flow, dominators)) {
    lowering = add_costs(*this, function, loops, lowerings);
    return;
  }
  ir::Function text(function);
  ir::use_equalities(text, flow, dominators);
  add_costs(*this, text, loops, lowerings);
}

KernelCost model_cost_of(const ir::Function& function) {
  ir::LoweringStore lowerings;
  return ModelCost(function, lowerings);
}

Result<KernelCost> cost_of(const ir::Function& function, const std::vector<std::string>& architectures,
                           PassContext& context) {
  Assemblies::Answer answer = ask(function, architectures, context);
  if (!answer.why.empty()) return Error{std::move(answer.why), {}};
  KernelCost cost = ModelCost(function, context.analyses.lowerings());
  cost.figures = std::move(answer.figures);
  return cost;
}

std::optional<KernelCost> cost_of_original(const ir::Function& function, std::vector<std::string>& architectures,
                                           PassContext& context) {
  Assemblies::Answer answer = ask(function, architectures, context);
  const bool is_left_out = answer.state == Assemblies::Answer::State::left_out;
  if (!answer.why.empty())
    context.remarks.emplace_back((is_left_out ? "left as it is: " : "weighed by the model: ") + answer.why,
                                 function.header_range);
  if (is_left_out) return std::nullopt;
  if (!answer.why.empty()) architectures.clear();
  KernelCost cost = context.analyses.of<ModelCost>(function);
  cost.figures = std::move(answer.figures);
  return cost;
}

bool loses(const KernelCost& after, const KernelCost& before) {
  if (!are_assembled(after, before)) return after.weighted > before.weighted;
  for (size_t i = 0; i < after.figures.size(); ++i) {
    const ir::MachineFigures &now = after.figures[i].second, &then = before.figures[i].second;
    if (now.spilled_bytes > then.spilled_bytes || now.instructions > then.instructions ||
        warps_by_registers(now.registers) < warps_by_registers(then.registers))
      return true;
  }
  return false;
}

double needed_saving(const KernelCost& before, bool is_variant, double least_gain) {
  return is_variant ? std::max(4.0, before.weighted / 20) : before.weighted * least_gain;
}

bool wins(const KernelCost& after, const KernelCost& before, bool is_variant, double least_gain) {
  if (!are_assembled(after, before)) {
    if (after.instructions > before.instructions) return false;
    const double saved = before.weighted - after.weighted;
    return saved > 0 && saved >= needed_saving(before, is_variant, least_gain);
  }
  if (loses(after, before)) return false;
  bool fewer = false;
  for (size_t i = 0; i < after.figures.size(); ++i)
    fewer |= after.figures[i].second.instructions < before.figures[i].second.instructions;
  return fewer;
}

bool is_better(const KernelCost& a, const KernelCost& b, const KernelCost& before) {
  if (!are_assembled(a, b) || !are_assembled(a, before)) return a.weighted < b.weighted;
  double first = ratio(a, before, &ir::MachineFigures::instructions);
  double second = ratio(b, before, &ir::MachineFigures::instructions);
  if (first != second) return first < second;
  return ratio(a, before, &ir::MachineFigures::registers) < ratio(b, before, &ir::MachineFigures::registers);
}

std::string too_small_gain(double needed, const KernelCost& before) {
  return "cannot save " + fixed(needed, 1) + " of " + fixed(before.weighted, 0) +
         " machine instructions, weighted by loop depth, by the model";
}

std::string comparison(const KernelCost& after, const KernelCost& before) {
  if (!are_assembled(after, before)) {
    std::string comparison = "by the model, " + fixed(before.weighted, 0) + " to " + fixed(after.weighted, 0) +
                             " machine instructions, weighted by loop depth";
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
  // sm_90a, sm_100f and the like run on these machines only.
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
