// Computes classes of values by rounds over the blocks in reverse post-order, to a fixed point. Every step is monotone:
// kinds, sets of conditions and the set of nonuniform branches only grow.
#include "transforms/dac/dac_classes.h"

#include "ir/edit/dead_code.h"
#include "ir/forms/dac.h"

#include <algorithm>

namespace ptxrewrite::transforms::dac {

using ir::BlockId;
using ir::EdgeId;
using ir::InstructionId;
using ir::InstructionKind;
using ir::LoopId;
using ir::Opcode;
using ir::Operand;
using ir::OperandKind;
using ir::Operation;
using ir::ScalarType;
using ir::SpecialRegister;
using ir::ValueId;

namespace {

constexpr std::string_view data_reason = "loaded or computed data";
constexpr std::string_view condition_reason = "more than two divergent conditions";
constexpr std::string_view carried_reason = "divergent tuples carried from trip to trip";
constexpr std::string_view trips_reason = "threads leave the loop after different numbers of trips";
constexpr std::string_view later_trip_reason = "the sides of a branch in the loop meet in a later trip only";

uint64_t condition_of(BlockId join) {
  return uint64_t(1) << 32 | join.index();
}
uint64_t condition_of(InstructionId choice) {
  return choice.index();
}

bool is_predicate(const ir::Function& function, ValueId value) {
  return function.values[value].type == ScalarType::pred;
}

// The widths that tuples support.
bool has_tuple_width(ScalarType type) {
  const unsigned bits = ir::bit_width(type);
  return type != ScalarType::pred && (bits == 16 || bits == 32 || bits == 64);
}

bool is_whole_number(ScalarType type) {
  return (ir::is_integer(type) || ir::is_bit_type(type)) && has_tuple_width(type);
}

// A literal 2^k - 1, whose `and` is a remainder by 2^k.
bool is_low_mask(const Operand& operand) {
  if (!operand.is(OperandKind::integer) || operand.immediate <= 0) return false;
  const auto mask = static_cast<uint64_t>(operand.immediate);
  return (mask & (mask + 1)) == 0 && mask < (uint64_t(1) << 31);
}

} // namespace

std::string_view spelling(TupleClass tuple_class) {
  switch (tuple_class) {
  case TupleClass::unknown:
    return "unknown";
  case TupleClass::scalar:
    return "scalar";
  case TupleClass::block_scalar:
    return "block scalar";
  case TupleClass::affine:
    return "affine";
  case TupleClass::none:
    return "not affine";
  }
  return "";
}

bool AffineClasses::is_mask(const ir::Function& function, InstructionId id) {
  if (!function.is_opcode(id, Opcode::and_) || ir::bit_width(function.form_of(id).type()) != 32) return false;
  std::span<const Operand> operands = function.operands_of(id);
  return operands.size() >= 3 && operands[1].is(OperandKind::value) && is_low_mask(operands[2]);
}

AffineClasses::AffineClasses(ir::LinearForms& forms, const ClassOptions& options)
    : forms_(forms), function_(forms.function()), options_(options), post_dominators_(function_, forms.control_flow()),
      classes_(function_.values.size()), deciding_(function_.blocks.size()),
      desynchronised_(forms.loops().loops().size()), obligations_(function_.instructions.size()) {
  find_joins();
  for (ValueId value : function_.values.ids())
    if (function_.values[value].is_undefined)
      classes_[value.index()].kind =
          ir::is_queue(function_.values[value].register_class) ? TupleClass::none : TupleClass::scalar;
  bool changed = true;
  while (changed) {
    find_desynchronised_loops();
    changed = false;
    for (BlockId block : forms_.control_flow().reverse_postorder())
      changed |= update_block(block);
  }
  // Values that no round has visited are not computed at all.
  for (AffineClass& row : classes_)
    if (row.kind == TupleClass::unknown) row = none(data_reason, {});
}

void AffineClasses::find_joins() {
  ir::DivergentJoins joins(function_, forms_.control_flow());
  for (BlockId block : forms_.control_flow().reverse_postorder())
    if (function_.successors(block).size() > 1)
      for (BlockId join : joins.of(block))
        deciding_[join.index()].push_back(block);
}

// Do threads on one side of the branch reach the join of the sides in a later trip than those on the other side?
bool AffineClasses::meets_in_later_trip(BlockId branch, const ir::Loop& loop, LoopId id) const {
  const BlockId meeting = post_dominators_.immediate_post_dominator(branch);
  if (!meeting || meeting == loop.header || !forms_.loops().contains(id, meeting)) return false;
  std::vector<bool> seen(function_.blocks.size());
  std::vector<BlockId> work{branch};
  while (!work.empty()) {
    const BlockId block = work.back();
    work.pop_back();
    for (EdgeId edge : function_.successors(block)) {
      const BlockId next = function_.edges[edge].to;
      if (next == meeting || seen[next.index()] || !forms_.loops().contains(id, next)) continue;
      if (next == loop.header) return true;
      seen[next.index()] = true;
      work.push_back(next);
    }
  }
  return false;
}

void AffineClasses::find_desynchronised_loops() {
  const ir::LoopForest& loops = forms_.loops();
  for (LoopId id : loops.loops().ids()) {
    const ir::Loop& loop = loops.loops()[id];
    if (desynchronised_[id.index()]) continue;
    desynchronised_[id.index()] = std::ranges::any_of(
        loop.blocks, [&](BlockId block) { return !branch_is_uniform(block) && meets_in_later_trip(block, loop, id); });
  }
}

bool AffineClasses::branch_is_uniform(BlockId block) const {
  const InstructionId last = function_.terminator(block);
  if (!last || function_.successors(block).size() < 2) return true;
  const ValueId guard = function_.instructions[last].guard;
  if (!guard) return false; // brx
  const AffineClass& row = at(guard, block);
  return row.kind == TupleClass::unknown || row.is_uniform();
}

bool AffineClasses::branch_is_block_uniform(BlockId block) const {
  if (branch_is_uniform(block)) return true;
  const ValueId guard = function_.instructions[function_.terminator(block)].guard;
  return guard && at(guard, block).kind == TupleClass::block_scalar;
}

bool AffineClasses::exits_are_uniform(LoopId loop) const {
  return std::ranges::all_of(forms_.loops().loops()[loop].exits,
                             [&](EdgeId exit) { return branch_is_uniform(function_.edges[exit].from); });
}

bool AffineClasses::joins_divergent_ways(BlockId block) const {
  return std::ranges::any_of(deciding_[block.index()], [&](BlockId branch) { return !branch_is_uniform(branch); });
}

// ---------------------------------------------------------------- the lattice

AffineClass AffineClasses::none(std::string_view reason, InstructionId culprit) const {
  AffineClass row;
  row.kind = TupleClass::none;
  row.reason = reason;
  row.culprit = culprit;
  return row;
}

AffineClass AffineClasses::with_condition(AffineClass row, uint64_t condition, InstructionId where) const {
  if (!row.is_affine()) return row;
  auto begin = row.conditions.begin(), end = begin + row.condition_count;
  if (std::find(begin, end, condition) != end) return row;
  if (row.condition_count == condition_limit) return none(condition_reason, where);
  row.conditions[row.condition_count++] = condition;
  if (row.condition_count == 2 && row.conditions[0] > row.conditions[1]) // at most two
    std::swap(row.conditions[0], row.conditions[1]);
  return row;
}

AffineClass AffineClasses::join(const AffineClass& a, const AffineClass& b, InstructionId where) const {
  if (a.kind == TupleClass::unknown || b.kind == TupleClass::none) return b;
  if (b.kind == TupleClass::unknown || a.kind == TupleClass::none) return a;
  AffineClass result = a;
  result.kind = std::max(a.kind, b.kind);
  result.modulo |= b.modulo;
  const auto depth = [&](LoopId loop) { return loop ? forms_.loops().loops()[loop].depth : 0; };
  if (depth(b.varies_in) > depth(a.varies_in)) result.varies_in = b.varies_in;
  for (unsigned i = 0; i < b.condition_count; ++i)
    result = with_condition(result, b.conditions[i], where);
  return result;
}

AffineClass AffineClasses::at(ValueId value, BlockId block) const {
  AffineClass row = of(value);
  if (!row.is_affine()) return row;
  while (row.varies_in && !forms_.loops().contains(row.varies_in, block)) {
    if (!exits_are_uniform(row.varies_in)) {
      // A predicate is one bit per thread, whichever trip wrote it.
      if (!is_predicate(function_, value)) return none(trips_reason, forms_.def_use().definition(value).instruction);
      row.kind = TupleClass::affine;
    }
    row.varies_in = forms_.loops().loops()[row.varies_in].parent;
  }
  return row;
}

AffineClass AffineClasses::of_operand(const Operand& operand, BlockId block) const {
  AffineClass row;
  row.kind = TupleClass::scalar;
  switch (operand.kind) {
  case OperandKind::value:
    if (operand.selector != ir::no_selector) return none("a part of a register", {});
    return at(operand.as_value(), block);
  case OperandKind::integer:
  case OperandKind::float32:
  case OperandKind::float64:
    return row;
  case OperandKind::symbol:
    if (operand.as_symbol().kind() == ir::SymbolRef::Kind::function) return none("a function's address", {});
    return row;
  case OperandKind::special_register:
    switch (static_cast<SpecialRegister>(operand.id)) {
    case SpecialRegister::ntid:
    case SpecialRegister::nctaid:
      break;
    case SpecialRegister::ctaid:
      row.kind = TupleClass::block_scalar;
      break;
    case SpecialRegister::tid:
      row.kind = TupleClass::affine;
      break;
    default:
      return none("a special register that is no index", {});
    }
    return operand.selector == ir::no_selector ? none("a vector of indices", {}) : row;
  default:
    return none("an operand of several parts", {});
  }
}

// ---------------------------------------------------------------- propagation

bool AffineClasses::set(ValueId value, AffineClass fresh) {
  AffineClass& row = classes_[value.index()];
  if (row.kind == TupleClass::none || fresh.kind == TupleClass::unknown || row == fresh) return false;
  fresh.kind = std::max(fresh.kind, row.kind);
  if (row == fresh) return false;
  row = fresh;
  return true;
}

bool AffineClasses::update_block(BlockId block) {
  bool changed = false;
  for (uint32_t i = 0; i < function_.parameters(block).size(); ++i)
    changed |= set(function_.parameters(block)[i], of_parameter(block, i));
  for (InstructionId id : function_.instructions_in(block)) {
    if (function_.instructions[id].kind != InstructionKind::real) continue;
    unsigned results = 0;
    ir::for_each_definition(function_, id, [&](ValueId) { ++results; });
    if (results == 0) continue;
    const AffineClass row = results == 1 ? of_result(id) : none(data_reason, id);
    ir::for_each_definition(function_, id, [&](ValueId value) { changed |= set(value, row); });
  }
  return changed;
}

AffineClass AffineClasses::of_parameter(BlockId block, uint32_t index) const {
  const ValueId parameter = function_.parameters(block)[index];
  const LoopId loop = forms_.loops().innermost(block);
  const bool is_header = loop && forms_.loops().loops()[loop].header == block;
  const bool predicate = is_predicate(function_, parameter);
  AffineClass row;
  for (EdgeId edge : forms_.control_flow().predecessors(block)) {
    if (!forms_.control_flow().reachable(function_.edges[edge].from)) continue;
    const ValueId argument = function_.arguments(edge)[index];
    if (function_.values[argument].is_undefined) continue; // may not be read
    // An argument on a loop exit is read outside the loop.
    row = join(row, at(argument, block), {});
  }
  if (!row.is_affine()) return row;
  if (!predicate && !has_tuple_width(function_.values[parameter].type)) return none(data_reason, {});
  const bool divergent = joins_divergent_ways(block);
  row.varies_in = loop;
  if (predicate) {
    if (divergent || (is_header && desynchronised_[loop.index()])) row.kind = TupleClass::affine;
    return row;
  }
  if (is_header && desynchronised_[loop.index()]) return none(later_trip_reason, function_.terminator(block));
  if (is_header && (divergent || row.condition_count != 0)) return none(carried_reason, function_.blocks[block].first);
  return divergent ? with_condition(row, condition_of(block), function_.blocks[block].first) : row;
}

AffineClass AffineClasses::of_result(InstructionId id) const {
  AffineClass row = computed(id);
  const ir::Instruction& instruction = function_.instructions[id];
  if (!row.is_affine() || !instruction.guard) return row;
  const AffineClass guard = at(instruction.guard, instruction.block);
  if (!guard.is_affine()) return guard;
  const Operand& last = function_.operands_of(id).back();
  if (!last.has(ir::OperandFlag::old_value) || !last.is(OperandKind::value)) return none(data_reason, id);
  if (function_.values[last.as_value()].is_undefined) return row;
  const AffineClass old = at(last.as_value(), instruction.block);
  AffineClass both = join(row, old, id);
  if (!both.is_affine() || guard.is_uniform()) return both;
  if (is_predicate(function_, last.as_value())) {
    both.kind = TupleClass::affine;
    return both;
  }
  return with_condition(both, condition_of(id), id);
}

// The class of the result, disregarding the guard.
AffineClass AffineClasses::computed(InstructionId id) const {
  const ir::Form& form = function_.form_of(id);
  const BlockId block = function_.instructions[id].block;
  std::span<const Operand> operands = function_.operands_of(id);
  if (form.opaque || form.extension) return none(data_reason, id);
  // Affine: the kernel's own parameters (but not results of calls), and constant memory at a uniform address.
  if (form.opcode == Opcode::ld && (ir::is_param(form.space) || form.space == ir::StateSpace::constant)) {
    if (operands.size() < 3 || !operands[0].is(OperandKind::value) || !operands[1].is(OperandKind::address) ||
        operands[1].group_size() != 1 || (ir::is_param(form.space) && !ir::removable_when_unused(function_, id)))
      return none(data_reason, id);
    AffineClass address = of_operand(operands[2], block);
    if (address.kind == TupleClass::unknown || address.is_uniform()) return address;
    return none("a constant at an address that differs between threads", id);
  }
  if (!form.effects.pure() || !operands[0].is(OperandKind::value)) return none(data_reason, id);
  std::vector<AffineClass> sources;
  bool all_uniform = true, unknown = false;
  for (size_t i = 1; i < operands.size(); ++i) {
    if (operands[i].has(ir::OperandFlag::old_value)) break;
    if (operands[i].is_group()) return none("an operand of several parts", id);
    sources.push_back(of_operand(operands[i], block));
    if (sources.back().kind == TupleClass::none) {
      AffineClass row = sources.back();
      if (!row.culprit) row.culprit = id;
      return row;
    }
    unknown |= sources.back().kind == TupleClass::unknown;
    all_uniform &= sources.back().is_uniform();
  }
  if (unknown) return {};
  if (all_uniform) { // any operation
    AffineClass row;
    row.kind = TupleClass::scalar;
    for (const AffineClass& source : sources)
      row = join(row, source, id);
    return row;
  }
  return is_predicate(function_, operands[0].as_value()) ? compute_predicate(id, sources) : compute_tuple(id, sources);
}

AffineClass AffineClasses::compute_predicate(InstructionId id, const std::vector<AffineClass>& sources) const {
  const ir::Form& form = function_.form_of(id);
  AffineClass row;
  for (const AffineClass& source : sources)
    row = join(row, source, id);
  if (!row.is_affine()) return row;
  switch (form.operation) {
  case Operation::compare:
    if (sources.size() != 2 || !is_whole_number(form.type()))
      return none("a comparison that is not of two whole numbers", id);
    // One operand must be the same for all threads of a block (4.3).
    if (std::ranges::none_of(sources, [](const AffineClass& source) {
          return source.kind <= TupleClass::block_scalar && !source.modulo;
        }))
      return none("a comparison of two values that both differ between the threads of a block", id);
    break;
  case Operation::bit_and:
  case Operation::bit_or:
  case Operation::bit_xor:
  case Operation::complement:
  case Operation::copy:
    break;
  case Operation::none:
  case Operation::convert:
  case Operation::convert_address:
  case Operation::add:
  case Operation::subtract:
  case Operation::negate:
  case Operation::absolute:
  case Operation::multiply:
  case Operation::multiply_add:
  case Operation::multiply_24:
  case Operation::multiply_add_24:
  case Operation::divide:
  case Operation::remainder:
  case Operation::minimum:
  case Operation::maximum:
  case Operation::logic_of_three:
  case Operation::shift_left:
  case Operation::shift_right:
  case Operation::select:
    return none("an operation that affine computation does not have", id);
  }
  // A predicate is one bit per thread: the path it comes from no longer matters.
  if (row.kind == TupleClass::scalar && row.condition_count != 0) row.kind = TupleClass::affine;
  row.condition_count = 0;
  row.conditions = {};
  row.modulo = false;
  return row;
}

AffineClass AffineClasses::choose(InstructionId id, const AffineClass& a, const AffineClass& b) const {
  return with_condition(join(a, b, id), condition_of(id), id);
}

AffineClass AffineClasses::remainder(InstructionId id, const AffineClass& dividend, const AffineClass& divisor) const {
  if (divisor.kind != TupleClass::scalar) return none("a remainder by a divisor that differs between threads", id);
  if (dividend.modulo) return none("a remainder of a remainder", id);
  AffineClass row = join(dividend, divisor, id);
  row.modulo = row.is_affine() && row.kind != TupleClass::scalar;
  return row;
}

AffineClass AffineClasses::compute_tuple(InstructionId id, const std::vector<AffineClass>& sources) const {
  const ir::Form& form = function_.form_of(id);
  const AffineClass bad_operation = none("an operation that affine computation does not have", id);
  const AffineClass bad_factor = none("a product of two values that both differ between threads", id);
  auto is_scalar = [&](size_t i) { return sources[i].kind == TupleClass::scalar; };
  // A mod tuple can only be added to a scalar (4.4).
  auto sum = [&](const AffineClass& a, const AffineClass& b) {
    if ((a.modulo && b.kind != TupleClass::scalar) || (b.modulo && a.kind != TupleClass::scalar))
      return none("a remainder plus a value that differs between threads", id);
    return join(a, b, id);
  };
  if (form.opcode != Opcode::selp && form.opcode != Opcode::mov && !is_whole_number(form.type())) return bad_operation;
  if (form.has(ir::Modifier::sat) || form.carry_out) return bad_operation;
  if (is_mask(function_, id)) return remainder(id, sources[0], sources[1]);
  if (is_sum_by_or(id)) return sum(sources[0], sources[1]);
  switch (form.operation) {
  case Operation::copy:
    return has_tuple_width(form.type()) ? sources[0] : bad_operation;
  case Operation::convert_address: {
    const bool plain = form.space == ir::StateSpace::global;
    return plain ? sources[0] : bad_operation;
  }
  case Operation::convert: {
    if (form.types.size() < 2 || !is_whole_number(form.types[1])) return bad_operation;
    const bool widens = ir::bit_width(form.types[0]) > ir::bit_width(form.types[1]);
    return widens ? widened(id, sources[0], sources[0]) : sources[0];
  }
  case Operation::add:
  case Operation::subtract:
    return sum(sources[0], sources[1]);
  case Operation::negate:
  case Operation::complement: // -1 - x
    return sources[0];
  case Operation::shift_left:
    return is_scalar(1) ? join(sources[0], sources[1], id) : bad_factor;
  case Operation::multiply:
  case Operation::multiply_add: {
    if (form.has(ir::Modifier::hi)) return bad_operation;
    if (!is_scalar(0) && !is_scalar(1)) return bad_factor;
    AffineClass product = join(sources[0], sources[1], id);
    if (form.operation == Operation::multiply_add) product = sum(product, sources[2]);
    const AffineClass& factor = is_scalar(0) ? sources[1] : sources[0];
    return form.has(ir::Modifier::wide) ? widened(id, product, factor) : product;
  }
  case Operation::remainder:
    return remainder(id, sources[0], sources[1]);
  case Operation::select: {
    if (!has_tuple_width(form.type())) return bad_operation;
    if (sources[2].is_uniform()) return join(sources[0], sources[1], id);
    return choose(id, sources[0], sources[1]);
  }
  case Operation::minimum:
  case Operation::maximum:
    if (sources[0].kind > TupleClass::block_scalar && sources[1].kind > TupleClass::block_scalar)
      return none("a comparison of two values that both differ between the threads of a block", id);
    return choose(id, sources[0], sources[1]);
  case Operation::absolute:
    return choose(id, sources[0], sources[0]);
  case Operation::none:
  case Operation::multiply_24:
  case Operation::multiply_add_24:
  case Operation::divide:
  case Operation::bit_and:
  case Operation::bit_or:
  case Operation::bit_xor:
  case Operation::logic_of_three:
  case Operation::shift_right:
  case Operation::compare:
    break;
  }
  return bad_operation;
}

// nvcc writes an addition as `or` if it knows that the operands have no common bits. A linear form of an `or` is either
// such a sum or a value that is the same for all threads.
bool AffineClasses::is_sum_by_or(InstructionId id) const {
  const ir::Form& form = function_.form_of(id);
  if (form.operation != Operation::bit_or || !is_whole_number(form.type())) return false;
  const ValueId value = function_.operands_of(id)[0].as_value();
  const ir::ValueClass kind = forms_.form(value).kind;
  return (kind == ir::ValueClass::linear || kind == ir::ValueClass::linear_loop) && why_not_widened(id).empty();
}

// ---------------------------------------------------------------- widening

AffineClass AffineClasses::widened(InstructionId id, AffineClass result, const AffineClass& narrow) const {
  if (!result.is_affine() || narrow.kind == TupleClass::scalar) return result; // a single number, extended directly
  const std::string_view reason = why_not_widened(id);
  return reason.empty() ? result : none(reason, id);
}

// The tuple's base is the value of thread 0 in block 0, which may not have taken the same branches: facts that a
// dominating branch proves do not hold for it.
bool AffineClasses::proved_for_all(ir::ObligationId id) const {
  const ir::RangeObligation& obligation = forms_.obligation(id);
  return obligation.proved && obligation.reason != "a branch that dominates it";
}

bool AffineClasses::dischargeable(ir::ObligationId id) const {
  if (proved_for_all(id) || (options_.assume_no_overflow && forms_.is_about_overflow(id))) return true;
  return options_.launch_checks && forms_.has_launch_predicate(id);
}

// Does the form determine the value in each thread? For block-uniform values it may state only that.
bool AffineClasses::is_described(const ir::LinearForm& form) const {
  switch (form.kind) {
  case ir::ValueClass::any:
    return false;
  case ir::ValueClass::divergent_linear:
    return std::all_of(form.alternatives.begin(), form.alternatives.begin() + (1 << form.condition_count),
                       [&](ir::LinearFormId id) { return is_described(forms_.form(id)); });
  case ir::ValueClass::mod_linear:
    return is_described(forms_.form(form.dividend));
  default:
    return form.has_coefficients();
  }
}

std::string_view AffineClasses::why_not_widened(InstructionId id) const {
  const ValueId value = function_.operands_of(id)[0].as_value();
  if (!is_described(forms_.form(value))) return "an index of which nothing shows that it does not wrap";
  std::set<ir::ObligationId>& rests_on = obligations_[id.index()];
  for (ir::ObligationId obligation : forms_.obligations(value)) {
    if (!dischargeable(obligation)) return "an index that may wrap, which no test at the launch can exclude";
    rests_on.insert(obligation);
  }
  return {};
}

const std::set<ir::ObligationId>& AffineClasses::obligations(InstructionId instruction) const {
  return obligations_[instruction.index()];
}

// ---------------------------------------------------------------- Fig. 6

bool AffineClasses::is_potentially_affine(InstructionId id) const {
  const ir::Instruction& instruction = function_.instructions[id];
  const ir::Form& form = function_.form_of(id);
  if (form.effects.branch) return !instruction.guard || at(instruction.guard, instruction.block).is_affine();
  bool affine = true, any = false;
  std::span<const Operand> operands = function_.operands_of(id);
  for (size_t i = 0; i < operands.size(); i = ir::next_sibling(operands, i)) {
    if (!operands[i].is(OperandKind::address)) continue;
    any = true; // memory: decided by the address
    if (operands[i].group_size() != 1) return false;
    affine &= of_operand(operands[i + 1], instruction.block).is_affine();
  }
  if (any) return affine;
  ir::for_each_definition(function_, id, [&](ValueId value) {
    any = true;
    affine &= of(value).is_affine();
  });
  return any && affine;
}

} // namespace ptxrewrite::transforms::dac
