// Compares a candidate with its original, instruction by instruction; see gain_bound.h.
#include "transforms/common/gain_bound.h"

#include "ir/analysis/linear/linear.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

namespace ptxrewrite::transforms::legal {

static const ir::DefUse& def_use_of(const ir::Function& function, AnalysisCache& analyses,
                                    std::optional<ir::DefUse>& own) {
  if (const ir::LinearForms* forms = analyses.known<ir::LinearForms>(function)) return forms->def_use();
  return own.emplace(function);
}

GainBound::GainBound(const ir::Function& original, AnalysisCache& analyses)
    : original_(original), def_use_(def_use_of(original, analyses, own_def_use_)),
      costs_(analyses.of<ModelCost>(original)) {}

// Finds the instructions of the original whose cost a candidate may save.
class GainBound::Comparison {
public:
  Comparison(const GainBound& bound, const ir::Function& candidate)
      : original_(bound.original_), def_use_(bound.def_use_), costs_(bound.costs_), candidate_(candidate),
        unchanged_(bound.original_.instructions.size()), unneeded_(bound.original_.instructions.size()),
        may_be_saved_(bound.original_.instructions.size()) {
    compare_instructions();
    compare_edges();
    for (auto block = original_.layout.rbegin(); block != original_.layout.rend(); ++block)
      for (ir::InstructionId id = original_.blocks[*block].last; id; id = original_.instructions[id].previous)
        if (!unchanged_[id.index()] || is_dead(id)) mark_unneeded(id);
  }

  double cost_of_changes() const {
    double sum = 0;
    for (size_t i = 0; i < may_be_saved_.size(); ++i)
      if (may_be_saved_[i]) sum += costs_.by_instruction[i];
    return sum;
  }

  // See GainBalance.
  double balance(double new_share) const {
    double sum = 0;
    for (size_t i = 0; i < unneeded_.size(); ++i)
      if (unneeded_[i]) sum += costs_.by_instruction[i];
    for (ir::BlockId block : candidate_.layout)
      for (ir::InstructionId id : candidate_.instructions_in(block))
        if (id.index() >= unneeded_.size())
          sum -= is_parameter_load(id) ? 0 : new_share * costs_.executions[block.index()];
        else if (unneeded_[id.index()] && !unchanged_[id.index()] && is_access(id))
          sum -= (1 - access_share) * costs_.by_instruction[id.index()];
    return sum;
  }

private:
  static constexpr double access_share = 0.25;

  bool is_parameter_load(ir::InstructionId id) const {
    return candidate_.is_opcode(id, ir::Opcode::ld) && candidate_.form_of(id).space == ir::StateSpace::param;
  }
  bool is_access(ir::InstructionId id) const {
    return std::ranges::any_of(candidate_.operands_of(id),
                               [](const ir::Operand& operand) { return operand.is(ir::OperandKind::address); });
  }

  bool is_unchanged(ir::InstructionId id) const {
    const ir::Instruction &before = original_.instructions[id], &after = candidate_.instructions[id];
    static_assert(std::has_unique_object_representations_v<ir::Operand>);
    return before.block == after.block && before.kind == after.kind && before.form == after.form &&
           before.guard == after.guard && before.guard_negated == after.guard_negated &&
           before.operands.count == after.operands.count &&
           (before.operands.count == 0 ||
            std::memcmp(original_.operands_of(id).data(), candidate_.operands_of(id).data(),
                        before.operands.count * sizeof(ir::Operand)) == 0);
  }

  // The sources of new and rewritten instructions may be combined with them.
  void compare_instructions() {
    for (ir::BlockId block : candidate_.layout)
      for (ir::InstructionId id : candidate_.instructions_in(block)) {
        const bool is_new = id.index() >= unchanged_.size();
        if (!is_new && is_unchanged(id))
          unchanged_[id.index()] = true;
        else
          mark_sources(candidate_, id);
      }
  }

  void compare_edges() {
    for (ir::EdgeId edge : original_.edges.ids())
      if (!std::ranges::equal(original_.arguments(edge), candidate_.arguments(edge)))
        for (ir::ValueId argument : original_.arguments(edge))
          mark_definition(argument);
  }

  // Is every reader of its results unneeded? The walk is backwards, so that readers are visited first; an argument of
  // an edge counts as a reader that stays.
  bool is_dead(ir::InstructionId id) const {
    bool has_readers = false;
    for (const ir::Operand& operand : original_.operands_of(id)) {
      if (!operand.is(ir::OperandKind::value) || !operand.is_definition()) continue;
      for (const ir::Use& use : def_use_.uses(operand.as_value())) {
        if (!use.instruction || !unneeded_[use.instruction.index()]) return false;
        has_readers = true;
      }
    }
    return has_readers;
  }

  void mark_unneeded(ir::InstructionId id) {
    unneeded_[id.index()] = may_be_saved_[id.index()] = true;
    mark_sources(original_, id);
    ir::for_each_definition(original_, id, [&](ir::ValueId value) {
      for (const ir::Use& use : def_use_.uses(value))
        if (use.instruction) may_be_saved_[use.instruction.index()] = true;
    });
  }

  void mark_sources(const ir::Function& function, ir::InstructionId id) {
    ir::for_each_use(function, id, [&](ir::ValueId value) { mark_definition(value); });
  }

  void mark_definition(ir::ValueId value) {
    if (value.index() >= original_.values.size()) return; // added by the candidate
    if (const ir::InstructionId id = def_use_.definition(value).instruction) may_be_saved_[id.index()] = true;
  }

  const ir::Function& original_;
  const ir::DefUse& def_use_;
  const ModelCost& costs_;
  const ir::Function& candidate_;
  std::vector<bool> unchanged_, unneeded_, may_be_saved_; // by InstructionId of the original
};

GainBound::Bounds GainBound::bounds(const ir::Function& candidate, double slack, const GainBalance& balance) const {
  // A candidate with other control flow may save any part.
  constexpr double any = std::numeric_limits<double>::infinity();
  if (candidate.layout != original_.layout || candidate.edges.size() != original_.edges.size()) return {any, any};
  const Comparison comparison(*this, candidate);
  return {slack * comparison.cost_of_changes(), balance.slack * comparison.balance(balance.new_share)};
}

} // namespace ptxrewrite::transforms::legal
