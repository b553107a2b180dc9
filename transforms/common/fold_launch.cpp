#include "transforms/common/fold_launch.h"

#include "ir/analysis/linear/linear.h"
#include "ir/core/insertion.h"
#include "ir/core/module.h"
#include "ir/edit/dead_code.h"
#include "ir/edit/fold_control.h"

#include <algorithm>
#include <optional>

namespace ptxrewrite::transforms {

namespace {

using ir::BlockId;
using ir::ExpressionId;
using ir::InstructionId;
using ir::InstructionKind;
using ir::Int128;
using ir::Interval;
using ir::LinearForm;
using ir::Modifier;
using ir::Operand;
using ir::OperandKind;
using ir::ValueId;

// Is there an atom in the expression for which `is_meant` holds?
template <class Test> bool mentions(const ir::ExpressionPool& pool, ExpressionId id, const Test& is_meant) {
  const ir::Expression& row = pool[id];
  if (row.kind == ir::ExpressionKind::sum)
    return std::ranges::any_of(pool.terms(id), [&](const ir::ExpressionTerm& term) {
      return std::ranges::any_of(pool.factors(term.monomial),
                                 [&](ExpressionId factor) { return mentions(pool, factor, is_meant); });
    });
  return is_meant(row) || std::ranges::any_of(pool.operands(id),
                                              [&](ExpressionId operand) { return mentions(pool, operand, is_meant); });
}

// Does the value of the expression depend on the number of blocks?
bool mentions_grid(const ir::ExpressionPool& pool, ExpressionId id) {
  return mentions(pool, id, [](const ir::Expression& atom) {
    return atom.kind == ir::ExpressionKind::special && ir::SpecialRegister(atom.payload) != ir::SpecialRegister::ntid;
  });
}

// Does it contain a value that has no expression itself?
bool mentions_value(const ir::ExpressionPool& pool, ExpressionId id) {
  return !pool[id].evaluable &&
         mentions(pool, id, [](const ir::Expression& atom) { return atom.kind == ir::ExpressionKind::value; });
}

const char* move_mnemonic(unsigned bits) {
  return bits == 16 ? "mov.b16" : bits == 32 ? "mov.b32" : bits == 64 ? "mov.b64" : nullptr;
}

// One pass over the function: finds the values that the launch determines and substitutes them.
class Round {
public:
  Round(ir::Function& function, const KnownLaunch& known)
      : function_(function), known_(known), forms_(function), thread_() {}

  // Returns true if another round may find more values.
  bool run(FoldCounts& counts) {
    find_values();
    decide_comparisons();
    place_literals(counts);
    ir::Replacements replacements;
    place_parameters(replacements, counts);
    bool further = !placed_.empty() && (reaches_unknown_form() || may_combine_predicates());
    further |= choose(replacements);
    counts.conditions += predicates_.size();
    further |= ir::fold_guards(function_, predicates_, replacements);
    further |= replace(function_, replacements);
    return further;
  }

private:
  // ---- known values

  bool is_certain(const LinearForm& form) const {
    if (known_.grid_known) return true;
    const ir::ExpressionPool& pool = forms_.expressions();
    for (ExpressionId id : form.coefficients)
      if (id && mentions_grid(pool, id)) return false;
    for (const ir::LoopOffset& offset : form.loops()) {
      const ir::TripBound& bound = forms_.trip_bound(offset.loop);
      if (mentions_grid(pool, offset.step) ||
          (bound.known && (mentions_grid(pool, bound.limit) || mentions_grid(pool, bound.step) ||
                           !is_certain(forms_.form(bound.tested)))))
        return false;
    }
    for (ExpressionId id : {form.divisor, form.multiplier, form.addend})
      if (id && mentions_grid(pool, id)) return false;
    if (form.dividend && !is_certain(forms_.form(form.dividend))) return false;
    return std::ranges::all_of(form.alternatives,
                               [&](ir::LinearFormId id) { return !id || is_certain(forms_.form(id)); });
  }

  bool holds(ir::ObligationId id) const {
    const ir::RangeObligation& obligation = forms_.obligation(id);
    if (obligation.proved) return true;
    const bool certain = obligation.kind == ir::RangeObligation::Kind::form_range
                             ? is_certain(forms_.form(obligation.form))
                             : known_.grid_known || !mentions_grid(forms_.expressions(), obligation.expression);
    return certain && forms_.evaluate(id, known_.launch);
  }

  bool is_right(ValueId value) const {
    return std::ranges::all_of(forms_.obligations(value), [&](ir::ObligationId id) { return holds(id); });
  }

  static bool may_be_constant(const LinearForm& form) {
    return form.kind <= ir::ValueClass::launch_uniform && !form.varies;
  }

  // Returns the bits of a form that have the same value in every thread.
  std::optional<uint64_t> constant(const LinearForm& form) const {
    if (!may_be_constant(form) || !is_certain(form)) return std::nullopt;
    return forms_.evaluate(form, known_.launch, thread_);
  }

  void find_values() {
    for (BlockId block : function_.layout) {
      for (ValueId parameter : function_.parameters(block))
        find_value(parameter);
      for (InstructionId id : function_.instructions_in(block))
        ir::for_each_definition(function_, id, [&](ValueId value) { find_value(value); });
    }
  }

  void find_value(ValueId value) {
    const LinearForm& form = forms_.form(value);
    if (!may_be_constant(form) || !is_right(value)) return;
    const std::optional<uint64_t> bits = constant(form);
    if (!bits) return;
    if (function_.values[value].type == ir::ScalarType::pred)
      predicates_[value] = *bits != 0;
    else
      literals_[value] = *bits;
  }

  // ---- comparisons

  struct Side {
    LinearForm form; // a copy, because the next query may reallocate the table
    std::optional<uint64_t> bits;
  };

  std::optional<Side> side(InstructionId id, const Operand& operand) const {
    if (operand.is(OperandKind::value) && !is_right(operand.as_value())) return std::nullopt;
    if (!operand.is(OperandKind::value) && !operand.is(OperandKind::integer)) return std::nullopt;
    const LinearForm& form = forms_.operand_form(id, operand);
    if (form.kind == ir::ValueClass::any || !is_certain(form)) return std::nullopt;
    return Side{form, constant(form)};
  }

  bool lies(const LinearForm& form, Interval range, InstructionId id) {
    if (range.low > range.high) return false;
    return forms_.evaluate(forms_.require_range(form, range, id), known_.launch);
  }

  void decide_comparisons() {
    for (BlockId block : function_.layout)
      for (InstructionId id : function_.instructions_in(block))
        if (function_.is_opcode(id, ir::Opcode::setp)) decide(id);
  }

  void decide(InstructionId id) {
    const ir::Form& form = function_.form_of(id);
    const std::span<const Operand> operands = function_.operands_of(id);
    const bool integer = ir::is_integer(form.type()) || ir::is_bit_type(form.type());
    if (!integer || operands.size() != 3 || function_.instructions[id].guard || !operands[0].is(OperandKind::value))
      return;
    if (predicates_.contains(operands[0].as_value())) return;
    const auto left = side(id, operands[1]), right = side(id, operands[2]);
    if (!left || !right || (!left->bits && !right->bits)) return;
    const bool mirrored = !right->bits; // the known side is the left one
    const unsigned width = ir::bit_width(form.type());
    const bool is_signed = ir::is_signed(form.type()) && !form.has(Modifier::lo) && !form.has(Modifier::ls) &&
                           !form.has(Modifier::hi) && !form.has(Modifier::hs);
    const Side& known = mirrored ? *left : *right;
    const LinearForm& unknown = mirrored ? right->form : left->form;
    if (unknown.width != width || known.form.width != width) return;
    const Interval all = is_signed ? ir::signed_range(width) : ir::unsigned_range(width);
    Int128 limit = static_cast<Int128>(*known.bits);
    if (is_signed && width <= 64 && (*known.bits >> (width - 1) & 1)) limit -= Int128(1) << width;
    const auto below = [&] { return lies(unknown, {all.low, limit - 1}, id); };
    const auto above = [&] { return lies(unknown, {limit + 1, all.high}, id); };
    const auto at = [&] { return lies(unknown, {limit, limit}, id); };
    const auto apart = [&] { return below() || above(); };
    const auto at_most = [&] { return lies(unknown, {all.low, limit}, id); };
    const auto at_least = [&] { return lies(unknown, {limit, all.high}, id); };
    // Normalizes to `unknown REL literal`; the literal may be on the left.
    auto is = [&](Modifier one, Modifier two, Modifier mirror_one, Modifier mirror_two) {
      return mirrored ? form.has(mirror_one) || form.has(mirror_two) : form.has(one) || form.has(two);
    };
    std::optional<bool> outcome;
    auto settle = [&](auto&& is_true, auto&& is_false) {
      if (is_true())
        outcome = true;
      else if (is_false())
        outcome = false;
    };
    if (form.has(Modifier::eq))
      settle(at, apart);
    else if (form.has(Modifier::ne))
      settle(apart, at);
    else if (is(Modifier::lt, Modifier::lo, Modifier::gt, Modifier::hi))
      settle(below, at_least);
    else if (is(Modifier::le, Modifier::ls, Modifier::ge, Modifier::hs))
      settle(at_most, above);
    else if (is(Modifier::gt, Modifier::hi, Modifier::lt, Modifier::lo))
      settle(above, at_most);
    else if (is(Modifier::ge, Modifier::hs, Modifier::le, Modifier::ls))
      settle(at_least, below);
    if (outcome) predicates_[operands[0].as_value()] = *outcome;
  }

  // ---- substitution

  static bool is_literal_move(const ir::Function& function, InstructionId id) {
    const std::span<const Operand> operands = function.operands_of(id);
    return function.is_opcode(id, ir::Opcode::mov) && operands.size() == 2 && operands[1].is_constant();
  }

  const char* mover(ValueId value) const {
    const ir::ScalarType type = function_.values[value].type;
    const bool whole =
        ir::is_integer(type) || ir::is_bit_type(type) || type == ir::ScalarType::f32 || type == ir::ScalarType::f64;
    return whole && function_.values[value].register_class == ir::RegisterClass::general
               ? move_mnemonic(ir::bit_width(type))
               : nullptr;
  }

  Operand literal(ValueId value, uint64_t bits) const {
    const unsigned width = ir::bit_width(function_.values[value].type);
    const unsigned unused = 64 - width;
    return Operand::integer(static_cast<int64_t>(bits << unused) >> unused);
  }

  void place_literals(FoldCounts& counts) {
    for (BlockId block : function_.layout)
      for (InstructionId id : function_.instructions_in(block)) {
        if (function_.instructions[id].kind != InstructionKind::real || is_literal_move(function_, id)) continue;
        if (!ir::removable_when_unused(function_, id)) continue;
        const Operand result = function_.operands_of(id)[0];
        unsigned definitions = 0;
        ir::for_each_definition(function_, id, [&](ValueId) { ++definitions; });
        if (definitions != 1 || !result.is(OperandKind::value)) continue;
        auto found = literals_.find(result.as_value());
        const char* mnemonic = mover(result.as_value());
        if (found == literals_.end() || !mnemonic) continue;
        ir::Builder(function_).before(id).standing_for(id).emit(
            mnemonic, {Operand::definition(result.as_value()), literal(result.as_value(), found->second)});
        function_.remove(id);
        placed_.push_back(result.as_value());
        ++counts.literals;
      }
  }

  void place_parameters(ir::Replacements& replacements, FoldCounts& counts) {
    for (BlockId block : function_.layout)
      for (ValueId parameter : function_.parameters(block)) {
        auto found = literals_.find(parameter);
        const char* mnemonic = mover(parameter);
        if (found == literals_.end() || !mnemonic) continue;
        if (forms_.def_use().uses(parameter).empty()) continue;
        ir::Builder builder = ir::builder_at_start(function_, block);
        ir::Value copy = function_.values[parameter];
        const ValueId value = function_.add_value(copy);
        builder.emit(mnemonic, {Operand::definition(value), literal(parameter, found->second)});
        replacements[parameter] = value;
        placed_.push_back(parameter);
        ++counts.literals;
      }
  }

  // May its form be another one if an operand is a literal instead of an expression with the same number? Forms that
  // consist of indices, parameters and extents are known already. Values from memory, floating-point values and
  // predicates do not depend on how the form of an operand is written.
  bool may_be_refined(ValueId value) const {
    const LinearForm& form = forms_.form(value);
    if (form.varies || form.kind > ir::ValueClass::linear_loop || !form.has_coefficients()) return true;
    const ir::ExpressionPool& pool = forms_.expressions();
    return std::ranges::any_of(form.coefficients, [&](ExpressionId id) { return mentions_value(pool, id); }) ||
           std::ranges::any_of(form.loops(), [&](const auto& loop) { return mentions_value(pool, loop.step); });
  }

  bool carries_form(ValueId value) const {
    const ir::ScalarType type = function_.values[value].type;
    return type != ir::ScalarType::pred && !ir::is_float(type);
  }

  // Does a value that is computed from a new literal have a form that the literal may refine? The other forms are known
  // already: the number was in them as an expression, which the launch determines.
  bool reaches_unknown_form() const {
    std::vector<ValueId> work = placed_;
    std::vector<bool> seen(function_.values.size());
    bool found = false;
    const auto visit = [&](ValueId value) {
      if (!carries_form(value) || seen[value.index()]) return;
      seen[value.index()] = true;
      found |= may_be_refined(value);
      work.push_back(value);
    };
    while (!found && !work.empty()) {
      const ValueId value = work.back();
      work.pop_back();
      for (const ir::Use& use : forms_.def_use().uses(value)) {
        if (use.edge)
          visit(function_.parameters(function_.edges[use.edge].to)[use.index]);
        else if (computes(use.instruction))
          ir::for_each_definition(function_, use.instruction, visit);
      }
    }
    return found;
  }

  // Is an unknown predicate computed from one that was decided by its bounds? The analysis knows the latter by its form
  // once the sides of the comparison are literals.
  bool may_combine_predicates() const {
    return std::ranges::any_of(predicates_, [&](const auto& known) {
      return std::ranges::any_of(forms_.def_use().uses(known.first), [&](const ir::Use& use) {
        bool unknown = use.edge.valid();
        if (use.instruction && use.index != ir::Use::guard_index && computes(use.instruction))
          ir::for_each_definition(function_, use.instruction,
                                  [&](ValueId value) { unknown |= !predicates_.contains(value); });
        return unknown;
      });
    });
  }

  bool computes(InstructionId id) const {
    return function_.instructions[id].kind == InstructionKind::real && function_.form_of(id).effects.pure();
  }

  // Replaces selp with a known predicate.
  bool choose(ir::Replacements& replacements) {
    bool changed = false;
    for (BlockId block : function_.layout)
      for (InstructionId id : function_.instructions_in(block)) {
        if (!function_.is_opcode(id, ir::Opcode::selp) || function_.instructions[id].guard) continue;
        const std::span<const Operand> operands = function_.operands_of(id);
        if (operands.size() != 4 || !operands[3].is(OperandKind::value)) continue;
        auto found = predicates_.find(operands[3].as_value());
        if (found == predicates_.end()) continue;
        const Operand chosen = operands[found->second ? 1 : 2];
        const ValueId result = operands[0].as_value();
        if (!chosen.is(OperandKind::value) || function_.values[chosen.as_value()].type != function_.values[result].type)
          continue;
        replacements[result] = chosen.as_value();
        function_.remove(id);
        changed = true;
      }
    return changed;
  }

  ir::Function& function_;
  const KnownLaunch& known_;
  ir::LinearForms forms_;
  ir::ThreadPosition thread_;
  std::vector<ValueId> placed_; // values that a literal replaces
  std::map<ValueId, uint64_t> literals_;
  ir::KnownPredicates predicates_;
};

} // namespace

FoldCounts fold_for_launch(ir::Function& function, const KnownLaunch& known) {
  FoldCounts counts;
  for (bool further = true; further;) {
    FoldCounts round;
    further = Round(function, known).run(round);
    counts.literals += round.literals;
    counts.conditions = std::max(counts.conditions, round.conditions);
    const size_t unreachable = ir::remove_unreachable_blocks(function);
    counts.blocks += unreachable;
    ir::Replacements replacements;
    ir::find_needless_parameters(function, replacements);
    further |= replace(function, replacements) || unreachable != 0;
    ir::remove_needless_jumps(function);
    ir::remove_dead_code(function);
  }
  return counts;
}

} // namespace ptxrewrite::transforms
