// Determined by assembling one to five instructions of double precision, with 0 to 16 others between them, and one to
// three of each expansion, for sm_100 (none) and sm_103, 110, 120, 121 (all alike): see double_spacing.h.
#include "ir/machine/select/double_spacing.h"

#include "ir/machine/figures/heuristics.h"

#include <algorithm>
#include <set>

namespace ptxrewrite::ir {

namespace {

// No-operations in the code of an expansion.
struct Expansion {
  Opcode opcode;
  uint16_t inside;     // at each place
  uint16_t subroutine; // in the slow path, once a kernel
};
constexpr Expansion expansions[] = {
    {Opcode::div, 24, 42}, {Opcode::rcp, 12, 60}, {Opcode::sqrt, 24, 41}, {Opcode::rsqrt, 12, 27}};

class DoubleSpacing {
public:
  DoubleSpacing(LoweringContext& context, std::map<InstructionId, uint16_t>& idle)
      : context_(context), idle_(idle), spacing_(heuristic(context.capability, Heuristic::double_spacing)) {}

  uint32_t run() {
    if (spacing_ == 0) return 0;
    for (BlockId block : context_.function.layout) {
      bool is_first = true;
      uint32_t clocks = 0; // since the last one
      for (InstructionId id : context_.function.instructions_in(block)) {
        const Form* form = context_.form(id);
        const InstructionCost cost = context_.costs[id.index()];
        if (!form || cost.weight + cost.uniform == 0) continue;
        if (is_double(*form, cost)) {
          const uint32_t before = is_first ? 0 : between(clocks);
          add(id, before + inside(*form));
          is_first = false;
          clocks = clocks_behind(*form, cost);
        } else {
          clocks += clocks_of_other * (cost.weight + cost.uniform);
        }
      }
    }
    return in_subroutines_;
  }

private:
  static constexpr uint32_t clocks_of_other = 2, clocks_of_idle = 16;

  // Signs are modifiers of operands.
  static bool is_double(const Form& form, const InstructionCost& cost) {
    if (form.opcode == Opcode::neg || form.opcode == Opcode::abs) return false;
    const bool converts = form.kind == InstructionClass::conversion && cost.pipe == Pipe::special &&
                          std::ranges::find(form.types, ScalarType::f64) != form.types.end();
    return converts || cost.pipe == Pipe::fp64;
  }

  // The comparison of a minimum or maximum runs on the double-precision unit, the selections after it do not. Other
  // expansions end with a double-precision instruction.
  static uint32_t clocks_behind(const Form& form, const InstructionCost& cost) {
    const bool selects = form.opcode == Opcode::min || form.opcode == Opcode::max;
    return selects ? clocks_of_other * (cost.weight - 1u) : 0;
  }

  uint32_t between(uint32_t clocks) const {
    return clocks >= spacing_ ? 0 : (spacing_ - clocks + clocks_of_idle / 2) / clocks_of_idle;
  }

  uint16_t inside(const Form& form) {
    const auto found = std::ranges::find(expansions, form.opcode, &Expansion::opcode);
    if (found == std::end(expansions)) return 0;
    if (appended_.insert(form.opcode).second) in_subroutines_ += found->subroutine;
    return found->inside;
  }

  void add(InstructionId id, uint32_t count) {
    if (count == 0) return;
    context_.costs[id.index()].weight = static_cast<uint16_t>(context_.costs[id.index()].weight + count);
    idle_[id] = static_cast<uint16_t>(count);
  }

  LoweringContext& context_;
  std::map<InstructionId, uint16_t>& idle_;
  uint32_t spacing_; // clocks from one to the next; 0: those of the pipe
  std::set<Opcode> appended_;
  uint32_t in_subroutines_ = 0;
};

} // namespace

uint32_t weigh_double_spacing(LoweringContext& context, std::map<InstructionId, uint16_t>& idle) {
  return DoubleSpacing(context, idle).run();
}

} // namespace ptxrewrite::ir
