// Pass `schedule`: reorders the instructions within blocks, to reduce registers and to issue loads of global memory
// long before their readers (ir/machine/registers/schedule.h).
//
// This is RegLess's scheduled code (§4.1, §4.2): regions are larger if fewer registers are live, and if loads are
// further from their first use. On existing GPUs fewer registers allow more warps. ptxas schedules by itself, starting
// from the order in the text, so a new order is kept only if it needs fewer registers, by ptxas if it may be used and
// otherwise by our own allocation, and costs nothing: no more instructions, no spills, no fewer warps.
#include "ir/machine/registers/schedule.h"

#include "ir/core/module.h"
#include "ir/machine/figures/machine.h"
#include "ir/machine/figures/occupancy.h"
#include "ir/machine/figures/target.h"
#include "ir/machine/registers/allocation.h"
#include "transforms/common/choice.h"
#include "transforms/manager/pass.h"

#include <algorithm>
#include <optional>

namespace ptxrewrite::transforms {

namespace {

using namespace ir;

// Sections run on separate threads; queues and slots must be read in order.
bool is_of_hardware_form(const Function& function) {
  if (function.affine_stream) return true;
  for (const Value& value : function.values)
    if (value.register_class != RegisterClass::general) return true;
  return std::ranges::any_of(function.instructions, [](const Instruction& instruction) {
    if (!instruction.block) return false;
    if (instruction.kind == InstructionKind::real) return form(instruction.form).extension;
    return instruction.kind == InstructionKind::section_begin || instruction.kind == InstructionKind::linear_row;
  });
}

// The cost of an order by the model, without ptxas.
struct ModelCost {
  uint32_t registers = 0;
  uint32_t instructions = 0; // including copies on edges
};

std::optional<ModelCost> model_cost(const Function& function, uint32_t capability) {
  Result<Allocation> allocation =
      allocate_registers(function, {.compute_capability = capability, .predicate_limit = 255});
  if (!allocation) return std::nullopt;
  const uint32_t instructions = lower(function, capability).static_instructions();
  return ModelCost{allocation->registers, instructions + static_cast<uint32_t>(allocation->moves.size())};
}

struct Candidate {
  Function function;
  uint32_t live = 0; // registers, by the lowering of the original order
  std::optional<ModelCost> model;
  std::optional<legal::KernelCost> assembled; // empty figures if ptxas is not used
};

class ScheduleChoice {
public:
  ScheduleChoice(Function& function, PassContext& context)
      : function_(function), context_(context), goal_(context.options.text("goal", "both")),
        capability_(target_capability(function.module())), scheduler_(function, capability_) {}

  Change run() {
    architectures_ = legal::architectures_to_ask(function_.module(), context_);
    if (!function_.is_entry) architectures_.clear();
    const bool force = context_.options.flag("force");
    make_candidates(force);
    if (force && candidates_.empty()) return Change::unchanged;
    if (force) return take(candidates_.back());
    // If no fewer registers are live, our allocation needs no fewer: a quick check.
    if (architectures_.empty())
      std::erase_if(candidates_, [&](const Candidate& candidate) { return candidate.live >= scheduler_.most_live(); });
    if (candidates_.empty()) return Change::unchanged;
    Candidate before = weigh(function_);
    if (!before.model || !before.assembled) return Change::unchanged;
    const Candidate* best = nullptr;
    for (Candidate& candidate : candidates_) {
      candidate = weigh(std::move(candidate.function));
      if (!wins(candidate, before)) continue;
      if (!best || registers_of(candidate) < registers_of(*best)) best = &candidate;
    }
    if (!best) return Change::unchanged;
    context_.remarks.push_back(Remark("in another order: " + comparison(*best, before), function_.header_range));
    return take(*best);
  }

private:
  // Creates the candidates that differ from the function. If one is to be kept regardless of cost, the last one
  // combines both goals.
  void make_candidates(bool force) {
    const uint32_t few = add_candidate({.goal = ScheduleGoal::few_registers}, goal_ != "loads");
    if (goal_ != "both" && goal_ != "loads") return;
    ScheduleOptions options{.goal = ScheduleGoal::early_loads};
    options.live_limit = limit_for_loads(std::min(scheduler_.most_live(), few));
    add_candidate(options, true);
    options.live_limit = 255; // ptxas sometimes finds a better limit by itself
    if (!force && !architectures_.empty()) add_candidate(options, true);
  }
  // Adds the function in that order, unless it has that order. Returns the registers that are live then.
  uint32_t add_candidate(const ScheduleOptions& options, bool wanted) {
    std::vector<std::vector<InstructionId>> orders; // by place in the layout
    for (BlockId block : function_.layout)
      orders.push_back(scheduler_.order_of(block, options));
    Function scheduled = function_;
    bool moved = false;
    for (size_t i = 0; i < orders.size(); ++i)
      moved |= reorder(scheduled, scheduled.layout[i], orders[i]);
    if (!moved) return scheduler_.most_live();
    const uint32_t live = Scheduler(scheduled, scheduler_.lowering()).most_live();
    if (wanted) candidates_.push_back({std::move(scheduled), live, {}, {}});
    return live;
  }
  // The live limit: the number of registers that are live anyway, unless the option sets it.
  uint32_t limit_for_loads(uint32_t live) const {
    const int64_t given = context_.options.number("live", 0);
    return given > 0 ? static_cast<uint32_t>(std::min<int64_t>(given, 255)) : live;
  }

  Candidate weigh(Function function) const {
    Candidate result{std::move(function), 0, {}, {}};
    result.model = model_cost(result.function, capability_);
    if (Result<legal::KernelCost> assembled = legal::cost_of(result.function, architectures_, context_))
      result.assembled = *std::move(assembled);
    return result;
  }
  uint64_t registers_of(const Candidate& candidate) const {
    if (architectures_.empty() || candidate.assembled->figures.empty()) return candidate.model->registers;
    uint64_t sum = 0;
    for (const auto& [architecture, figures] : candidate.assembled->figures)
      sum += figures.registers;
    return sum;
  }
  uint32_t warps_by_model(const Candidate& candidate) const {
    return occupancy(machine_for(capability_), {.threads_per_block = 128, .registers = candidate.model->registers})
        .warps;
  }
  bool wins(const Candidate& after, const Candidate& before) const {
    if (!after.model || !after.assembled) return false;
    if (architectures_.empty()) {
      if (after.model->instructions > before.model->instructions) return false;
      if (warps_by_model(after) < warps_by_model(before)) return false;
    } else if (legal::loses(*after.assembled, *before.assembled)) {
      return false;
    }
    return registers_of(after) < registers_of(before);
  }
  std::string comparison(const Candidate& after, const Candidate& before) const {
    if (!architectures_.empty()) return legal::comparison(*after.assembled, *before.assembled);
    return "by the model, " + std::to_string(before.model->registers) + " to " +
           std::to_string(after.model->registers) + " registers";
  }
  Change take(const Candidate& candidate) {
    function_ = candidate.function;
    function_.changed();
    ++context_.statistics["schedule.functions"];
    return Change::changed;
  }

  Function& function_;
  PassContext& context_;
  std::string goal_;
  uint32_t capability_;
  Scheduler scheduler_;                    // of the original order
  std::vector<std::string> architectures_; // for which ptxas is used
  std::vector<Candidate> candidates_;
};

Change run(Function& function, PassContext& context) {
  if (!function.has_body || is_of_hardware_form(function)) return Change::unchanged;
  return ScheduleChoice(function, context).run();
}

const RegisterPass registration(
    {"schedule",
     "reorder instructions inside of blocks: fewer registers, loads far in front of their readers",
     run,
     {{"goal", "registers, loads, or both (default): which orders are tried"},
      {"live", "registers up to which loads go first (as many as are live anyway)", PassOptionKind::number},
      {"force", "keep the new order whatever it costs", PassOptionKind::flag},
      legal::cost_option(),
      legal::architectures_option()}});

} // namespace
} // namespace ptxrewrite::transforms
