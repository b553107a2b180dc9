// A greatest fixed point: every value starts at the most precise class and is lowered when one of its operands is.
#include "transforms/warp/warp_lanes.h"

#include "ir/analysis/linear/relation.h"
#include "ir/core/kernel_parameters.h"

#include <algorithm>

namespace ptxrewrite::transforms::warp {

namespace {

using ir::BlockId;
using ir::InstructionId;
using ir::InstructionKind;
using ir::Modifier;
using ir::Opcode;
using ir::Operand;
using ir::OperandKind;
using ir::SpecialRegister;
using ir::ValueId;

constexpr int64_t warp_size = 32;
constexpr int64_t lane_bits = warp_size - 1;
constexpr int64_t log_warp_size = 5;

bool is_same_in_all_lanes(LaneValue value) {
  return value == LaneValue::uniform || value == LaneValue::aligned;
}

// The most precise class that includes both.
LaneValue meet(LaneValue a, LaneValue b) {
  if (a == b || b == LaneValue::unknown) return a;
  if (a == LaneValue::unknown) return b;
  if (is_same_in_all_lanes(a) && is_same_in_all_lanes(b)) return LaneValue::uniform;
  if (std::max(a, b) == LaneValue::row && std::min(a, b) == LaneValue::lane) return LaneValue::row;
  return LaneValue::varying;
}

LaneValue of_literal(int64_t number) {
  return number % warp_size == 0 ? LaneValue::aligned : LaneValue::uniform;
}

bool is_whole_number(ir::ScalarType type) {
  return (ir::is_integer(type) || ir::is_bit_type(type)) && (ir::bit_width(type) == 32 || ir::bit_width(type) == 64);
}

bool is_equality(ir::Comparison comparison) {
  return comparison == ir::Comparison::equal || comparison == ir::Comparison::not_equal;
}
bool includes_equality(ir::Comparison comparison) {
  return comparison == ir::Comparison::less_equal_signed || comparison == ir::Comparison::less_equal_unsigned;
}

// The class of a value shifted right by at least five bits.
LaneValue without_lane(LaneValue value) {
  return value == LaneValue::varying || value == LaneValue::unknown ? value : LaneValue::uniform;
}

// a + b, if there is no carry out of the five low bits.
LaneValue sum(LaneValue a, LaneValue b) {
  if (a == LaneValue::unknown || b == LaneValue::unknown) return LaneValue::unknown;
  if (a == LaneValue::aligned && b == LaneValue::aligned) return LaneValue::aligned;
  if (is_same_in_all_lanes(a) && is_same_in_all_lanes(b)) return LaneValue::uniform;
  const auto numbers_lanes = [](LaneValue value) { return value == LaneValue::lane || value == LaneValue::row; };
  if ((a == LaneValue::aligned && numbers_lanes(b)) || (b == LaneValue::aligned && numbers_lanes(a)))
    return LaneValue::row;
  return LaneValue::varying;
}

LaneValue product(LaneValue a, LaneValue b) {
  if (a == LaneValue::unknown || b == LaneValue::unknown) return LaneValue::unknown;
  if (!is_same_in_all_lanes(a) || !is_same_in_all_lanes(b)) return LaneValue::varying;
  return a == LaneValue::aligned || b == LaneValue::aligned ? LaneValue::aligned : LaneValue::uniform;
}

LaneValue masked(LaneValue value, int64_t mask) {
  if (is_same_in_all_lanes(value)) return (mask & lane_bits) == 0 ? LaneValue::aligned : LaneValue::uniform;
  if (value != LaneValue::lane && value != LaneValue::row) return value;
  if ((mask & lane_bits) == 0) return LaneValue::aligned;
  if ((mask & lane_bits) != lane_bits) return LaneValue::varying;
  return mask == lane_bits ? LaneValue::lane : value;
}

// Does the instruction give all lanes the same result for any operands, if all lanes of the warp take part?
bool gathers_lanes(const ir::Form& form) {
  return form.has(Modifier::sync) && (form.opcode == Opcode::vote || form.opcode == Opcode::redux);
}

bool names_all_lanes(const Operand& mask) {
  return mask.is(OperandKind::integer) && static_cast<uint32_t>(mask.immediate) == UINT32_MAX;
}

} // namespace

WarpLanes::WarpLanes(const ir::Function& function, const ir::DefUse& def_use, BlockShape shape)
    : function_(function), def_use_(def_use), shape_(shape), flow_(function), dominators_(function, flow_),
      post_dominators_(function, flow_), values_(function.values.size(), LaneValue::unknown),
      partial_(function.blocks.size(), !function.is_entry), joins_(function.blocks.size()),
      followed_(function.blocks.size()) {
  // The value of a register that no path has written is arbitrary.
  for (uint32_t i = 0; i < function.values.size(); ++i)
    if (function.values[ValueId(i)].is_undefined) values_[i] = LaneValue::varying;
  while (step()) {
  }
}

LaneValue WarpLanes::of(const Operand& operand) const {
  if (operand.is(OperandKind::value))
    return operand.has(ir::OperandFlag::negated) && !is_uniform(operand.as_value()) ? LaneValue::varying
                                                                                    : of(operand.as_value());
  if (operand.is(OperandKind::integer)) return of_literal(operand.immediate);
  if (operand.is(OperandKind::special_register)) return of_special(operand);
  return operand.is_group() ? LaneValue::varying : LaneValue::uniform; // other literals and symbols
}

LaneValue WarpLanes::of_special(const Operand& operand) const {
  const auto special = static_cast<SpecialRegister>(operand.id);
  if (special == SpecialRegister::laneid) return LaneValue::lane;
  if (special == SpecialRegister::tid) {
    if (shape_ == BlockShape::any || operand.selector == ir::no_selector) return LaneValue::varying;
    return operand.selector == ir::component_selector(0) ? LaneValue::row : LaneValue::uniform;
  }
  if (special == SpecialRegister::ntid && shape_ == BlockShape::full_rows &&
      operand.selector == ir::component_selector(0))
    return LaneValue::aligned;
  const ir::SpecialRegisterInfo& known = ir::info(special);
  return known.is_volatile || known.uniformity > ir::Uniformity::block ? LaneValue::varying : LaneValue::uniform;
}

bool WarpLanes::lower(ValueId value, LaneValue to) {
  const LaneValue now = meet(values_[value.index()], to);
  if (now == values_[value.index()]) return false;
  values_[value.index()] = now;
  return true;
}

std::optional<int64_t> WarpLanes::literal(const Operand& operand) const {
  if (operand.is(OperandKind::integer)) return operand.immediate;
  if (!operand.is(OperandKind::value)) return std::nullopt;
  const InstructionId id = def_use_.definition(operand.as_value()).instruction;
  if (!id || !function_.is_opcode(id, Opcode::mov) || function_.keeps_old_values(id)) return std::nullopt;
  const std::span<const Operand> operands = function_.operands_of(id);
  if (operands.size() != 2 || !operands[1].is(OperandKind::integer)) return std::nullopt;
  return operands[1].immediate;
}

// The bits above the low five are the same in all lanes: if the bound separates two warps' numbers, all lanes compare
// alike.
LaneValue WarpLanes::of_comparison(const ir::Form& form, const Operand& a, const Operand& b) const {
  const LaneValue left = of(a), right = of(b);
  if (left == LaneValue::unknown || right == LaneValue::unknown) return LaneValue::unknown;
  if (is_same_in_all_lanes(left) && is_same_in_all_lanes(right)) return LaneValue::uniform;
  const std::optional<ir::Relation> relation = ir::relation_of(form);
  if (!relation || form.types.size() != 1 || !is_whole_number(form.type())) return LaneValue::varying;
  if (is_equality(relation->comparison)) return LaneValue::varying;
  const bool row_is_left = is_same_in_all_lanes(right);
  const LaneValue numbered = row_is_left ? left : right;
  if (numbered != LaneValue::lane && numbered != LaneValue::row) return LaneValue::varying;
  // `x < y` or `x <= y` with the row on one side: for `row <= bound` and `bound < row` the bound must be just below a
  // warp's first number, for the others it must be that number.
  const bool row_is_x = row_is_left != relation->reversed;
  const bool asks_for_last = row_is_x == includes_equality(relation->comparison);
  if (!asks_for_last)
    return (row_is_left ? right : left) == LaneValue::aligned ? LaneValue::uniform : LaneValue::varying;
  const std::optional<int64_t> last = literal(row_is_left ? b : a);
  return last && (*last & lane_bits) == lane_bits ? LaneValue::uniform : LaneValue::varying;
}

LaneValue WarpLanes::of_computation(InstructionId id) const {
  const ir::Form& form = function_.form_of(id);
  const std::span<const Operand> sources = function_.operands_of(id).subspan(1);
  if (std::ranges::any_of(sources, [](const Operand& source) { return source.is_group(); })) return LaneValue::varying;
  if (form.operation == ir::Operation::compare)
    return sources.size() == 2 ? of_comparison(form, sources[0], sources[1]) : LaneValue::varying;
  if (form.has(Modifier::sat) || form.has(Modifier::hi) || form.types.empty() || !is_whole_number(form.type(0)) ||
      !is_whole_number(form.types.back()))
    return LaneValue::varying;
  const auto source = [&](size_t i) { return of(sources[i]); };
  const auto number = [&](size_t i) { return literal(sources[i]); };
  const bool is_unsigned_by_warp_size = sources.size() == 2 && ir::is_unsigned(form.type()) && number(1) == warp_size;
  switch (form.operation) {
  case ir::Operation::copy:
  case ir::Operation::convert:
    return source(0);
  case ir::Operation::add:
  case ir::Operation::bit_or:
  case ir::Operation::bit_xor:
    return sum(source(0), source(1));
  case ir::Operation::subtract:
    return source(1) == LaneValue::lane || source(1) == LaneValue::row ? LaneValue::varying : sum(source(0), source(1));
  case ir::Operation::multiply:
    return product(source(0), source(1));
  case ir::Operation::multiply_add:
    return sum(product(source(0), source(1)), source(2));
  case ir::Operation::shift_left:
    return is_same_in_all_lanes(source(0)) && number(1).value_or(0) >= log_warp_size ? LaneValue::aligned
                                                                                     : LaneValue::varying;
  case ir::Operation::shift_right:
    return number(1).value_or(0) < log_warp_size ? LaneValue::varying : without_lane(source(0));
  case ir::Operation::bit_and:
    if (number(1)) return masked(source(0), *number(1));
    return number(0) ? masked(source(1), *number(0)) : LaneValue::varying;
  case ir::Operation::remainder:
    return is_unsigned_by_warp_size ? masked(source(0), lane_bits) : LaneValue::varying;
  case ir::Operation::divide:
    return is_unsigned_by_warp_size ? without_lane(source(0)) : LaneValue::varying;
  // For all other operations, only uniformity of the operands carries over to the result.
  case ir::Operation::none:
  case ir::Operation::convert_address:
  case ir::Operation::negate:
  case ir::Operation::absolute:
  case ir::Operation::multiply_24:
  case ir::Operation::multiply_add_24:
  case ir::Operation::minimum:
  case ir::Operation::maximum:
  case ir::Operation::complement:
  case ir::Operation::logic_of_three:
  case ir::Operation::compare:
  case ir::Operation::select:
    break;
  }
  return LaneValue::varying;
}

LaneValue WarpLanes::result(InstructionId id) const {
  const ir::Instruction& instruction = function_.instructions[id];
  if (instruction.kind != InstructionKind::real) return LaneValue::varying;
  const ir::Form& form = function_.form_of(id);
  const std::span<const Operand> operands = function_.operands_of(id);
  if (gathers_lanes(form) && !instruction.guard && names_all_lanes(operands.back()))
    return partial_[instruction.block.index()] ? LaneValue::varying : LaneValue::uniform;
  const bool loads_parameter = ir::loads_kernel_parameter(function_, id);
  if (form.opaque || !(form.effects.pure() || loads_parameter)) return LaneValue::varying;
  bool is_uniform_all = true, is_unknown = false;
  for (const Operand& operand : operands) {
    if (operand.is_definition() || operand.is_group()) continue;
    const LaneValue value = of(operand);
    is_unknown |= value == LaneValue::unknown;
    is_uniform_all &= value == LaneValue::unknown || is_same_in_all_lanes(value);
  }
  if (instruction.guard) is_uniform_all &= is_uniform(instruction.guard) || of(instruction.guard) == LaneValue::unknown;
  const bool is_plain = !instruction.guard && form.definitions == 1 && !loads_parameter && !operands[0].is_group() &&
                        !function_.keeps_old_values(id);
  if (is_unknown && is_uniform_all) return LaneValue::unknown;
  const LaneValue known = is_plain ? of_computation(id) : LaneValue::varying;
  if (known != LaneValue::varying) return known;
  return is_uniform_all ? LaneValue::uniform : LaneValue::varying;
}

void WarpLanes::visit(InstructionId id) {
  ir::for_each_definition(function_, id, [&](ValueId value) {
    if (values_[value.index()] != LaneValue::varying) lower(value, result(id));
  });
}

bool WarpLanes::branch_is_uniform(BlockId block) const {
  const InstructionId last = function_.terminator(block);
  if (!last) return true;
  const auto is_same = [&](ValueId value) { return of(value) == LaneValue::unknown || is_uniform(value); };
  const ValueId guard = function_.instructions[last].guard;
  if (guard && !is_same(guard)) return false;
  if (!function_.is_opcode(last, Opcode::brx)) return true;
  return std::ranges::all_of(function_.operands_of(last), [&](const Operand& operand) {
    return !operand.is(OperandKind::value) || is_same(operand.as_value());
  });
}

// Lanes that diverge at the end of a block are apart until their reconvergence point; if an exit or a call is on one of
// the paths, they may never reconverge. Returns true if a pass that has come to this block has to be repeated.
bool WarpLanes::follow_divergence(BlockId block) {
  if (followed_[block.index()]) return false;
  bool leaves = false;
  for (InstructionId id : function_.instructions_in(block)) {
    if (function_.instructions[id].kind != InstructionKind::real) continue;
    const ir::Form& form = function_.form_of(id);
    const ValueId guard = function_.instructions[id].guard;
    leaves |= form.effects.call || form.opaque || form.extension ||
              (form.effects.terminates && guard && of(guard) != LaneValue::unknown && !is_uniform(guard));
  }
  if (!leaves && (function_.successors(block).size() < 2 || branch_is_uniform(block))) return false;
  followed_[block.index()] = true;
  const BlockId end = leaves ? BlockId() : post_dominators_.immediate_post_dominator(block);
  bool again = leaves && !partial_[block.index()];
  if (leaves) partial_[block.index()] = true;
  std::vector<BlockId> work;
  std::vector<bool> seen(function_.blocks.size());
  for (ir::EdgeId edge : function_.successors(block))
    work.push_back(function_.edges[edge].to);
  while (!work.empty()) {
    const BlockId now = work.back();
    work.pop_back();
    if (seen[now.index()]) continue;
    seen[now.index()] = true;
    // Two paths from the branch to here are disjoint if the immediate dominator of this block precedes the branch.
    const BlockId before = dominators_.immediate_dominator(now);
    if ((!before || dominators_.dominates(before, block)) && !joins_[now.index()]) {
      joins_[now.index()] = true;
      again |= std::ranges::any_of(flow_.predecessors(now), [&](ir::EdgeId edge) {
        return flow_.position(function_.edges[edge].from) < flow_.position(block);
      });
    }
    if (now == end) continue;
    again |= !partial_[now.index()] && flow_.position(now) <= flow_.position(block);
    partial_[now.index()] = true;
    for (ir::EdgeId edge : function_.successors(now))
      work.push_back(function_.edges[edge].to);
  }
  return again;
}

// One pass in reverse post-order; returns true if it has to be repeated. It visits a definition before the uses, so
// that only what it learns of blocks that it has passed asks for another one.
bool WarpLanes::step() {
  bool again = false;
  for (BlockId block : flow_.reverse_postorder()) {
    for (InstructionId id : function_.instructions_in(block))
      visit(id);
    again |= follow_divergence(block);
    for (ir::EdgeId edge : function_.successors(block)) {
      const BlockId to = function_.edges[edge].to;
      const std::span<const ValueId> parameters = function_.parameters(to), arguments = function_.arguments(edge);
      for (size_t i = 0; i < parameters.size() && i < arguments.size(); ++i) {
        const LaneValue arrives = of(arguments[i]);
        // Lanes on different paths may bring different values; the lane ID itself is the same on all paths.
        const bool may_differ = joins_[to.index()] && arrives != LaneValue::lane && arrives != LaneValue::unknown;
        if (lower(parameters[i], may_differ ? LaneValue::varying : arrives))
          again |= flow_.position(to) <= flow_.position(block);
      }
    }
  }
  return again;
}

bool WarpLanes::names_lane_zero(ValueId predicate, bool wanted, unsigned depth) const {
  const InstructionId id = def_use_.definition(predicate).instruction;
  if (!id || depth == 0 || function_.instructions[id].kind != InstructionKind::real || function_.instructions[id].guard)
    return false;
  const ir::Form& form = function_.form_of(id);
  const std::span<const Operand> operands = function_.operands_of(id);
  const auto names = [&](size_t i, bool holds) {
    const Operand& operand = operands[i];
    return operand.is(OperandKind::value) &&
           names_lane_zero(operand.as_value(), holds != operand.has(ir::OperandFlag::negated), depth - 1);
  };
  if (form.opcode == Opcode::setp && operands.size() == 3 && form.types.size() == 1 && is_whole_number(form.type())) {
    const LaneValue tested = of(operands[1]);
    const bool tests_zero = operands[2].is(OperandKind::integer) && operands[2].immediate == 0;
    return tests_zero && (tested == LaneValue::lane || tested == LaneValue::row) &&
           form.has(wanted ? Modifier::eq : Modifier::ne);
  }
  if (form.type() != ir::ScalarType::pred || operands.size() < 2) return false;
  if (form.opcode == Opcode::not_) return names(1, !wanted);
  const bool needs_one = (form.opcode == Opcode::and_ && wanted) || (form.opcode == Opcode::or_ && !wanted);
  return needs_one && operands.size() == 3 && (names(1, wanted) || names(2, wanted));
}

} // namespace ptxrewrite::transforms::warp
