#include "evaluate/prove/lanes.h"

#include "ir/core/module.h"

#include <algorithm>
#include <array>

namespace ptxrewrite::prove {

namespace {

using ir::BlockId;
using ir::InstructionId;
using ir::ValueId;

constexpr unsigned lane_bits = 5;
constexpr unsigned effort_for_lanes = 2'000'000; // of the solver, for one condition

// Operations whose result is the same in two lanes if their operands are: all but those that communicate.
const std::set<std::string, std::less<>> of_operands{"and",  "or",   "xor",  "shl",  "lshr", "ashr", "select",
                                                     "smin", "smax", "umin", "umax", "zero", "slt",  "ult"};

bool is_of_launch(const Atom& leaf) {
  for (const std::string_view start : {"%ctaid.", "%ntid.", "%nctaid.", "&", "window."})
    if (leaf.name.starts_with(start)) return true;
  return leaf.name.size() > 1 && leaf.name[0] == 'P' && leaf.name[1] >= '0' && leaf.name[1] <= '9';
}

bool is_mentioned(const Terms& terms, TermId term, const std::set<AtomId>& names) {
  std::set<AtomId> inside;
  terms.collect_atoms(term, inside);
  return std::ranges::any_of(inside, [&](AtomId atom) { return names.contains(atom); });
}

} // namespace

WarpShape warp_shape(const ir::Function& function, std::span<const transforms::Obligation> ledger) {
  WarpShape shape;
  for (const ir::FunctionDirective& directive : function.directives) {
    if (function.module().text(directive.name) != ".reqntid" || directive.count == 0) continue;
    std::array<uint64_t, 3> extents{1, 1, 1};
    for (unsigned i = 0; i < directive.count && i < 3; ++i)
      extents[i] = directive.numbers[i];
    shape.is_whole |= extents[0] * extents[1] * extents[2] % warp_size == 0;
    shape.is_row |= extents[0] % warp_size == 0 || extents[1] * extents[2] == 1;
  }
  for (const transforms::Obligation& entry : ledger) {
    if (entry.discharge != transforms::Discharge::launch_checked) continue;
    const bool rows_are_whole = entry.reason == "ntid.x % 32 == 0";
    shape.is_whole |= rows_are_whole || entry.reason == "ntid.x * ntid.y * ntid.z % 32 == 0";
    shape.is_row |= rows_are_whole || entry.reason == "ntid.x % 32 == 0 || ntid.y * ntid.z == 1";
  }
  return shape;
}

std::vector<Assumption> lane_facts(Terms& terms, const WarpShape& shape) {
  const TermId lane = terms.leaf("%laneid", 32);
  std::vector<Assumption> facts{{terms.zero_extend(lane, 128), {0, warp_size - 1}}};
  if (!shape.is_row) return facts;
  const TermId column = terms.bitwise("and", terms.leaf("%tid.x", 32, true), terms.literal(32, warp_size - 1));
  facts.push_back({terms.zero_extend(terms.subtract(lane, column), 128), {0, 0}});
  return facts;
}

namespace {

// Is the number of threads of a block at most a warp's, by a directive?
bool is_one_warp(const ir::Function& function) {
  return function.is_entry && std::ranges::any_of(function.directives, [&](const ir::FunctionDirective& directive) {
           const std::string_view name = function.module().text(directive.name);
           uint64_t threads = 1;
           for (unsigned i = 0; i < directive.count && i < 3; ++i)
             threads *= directive.numbers[i];
           return directive.count > 0 && (name == ".reqntid" || name == ".maxntid") && threads <= warp_size;
         });
}

bool is_barrier(const ir::Form& form) {
  return !form.opaque && (form.opcode == ir::Opcode::bar || form.opcode == ir::Opcode::barrier);
}

// bar.sync N, or its synonym with `.aligned`: for all threads of the block.
bool is_barrier_of_block(const ir::Function& function, InstructionId id) {
  const ir::Form& form = function.form_of(id);
  const auto operands = function.operands_of(id);
  return is_barrier(form) && form.has(ir::Modifier::sync) && !form.has(ir::Modifier::warp) &&
         !form.has(ir::Modifier::cluster) && (form.opcode == ir::Opcode::bar || form.has(ir::Modifier::aligned)) &&
         operands.size() == 1 && operands[0].is(ir::OperandKind::integer) && !function.instructions[id].guard;
}

} // namespace

bool is_barrier_of_one_warp(const ir::Function& original, InstructionId before, const ir::Function& rewritten,
                            InstructionId after) {
  const auto operands = rewritten.operands_of(after);
  const bool is_whole = rewritten.form_of(after).mnemonic == "bar.warp.sync" && !rewritten.instructions[after].guard &&
                        operands.size() == 1 && operands[0].is(ir::OperandKind::integer) &&
                        static_cast<uint32_t>(operands[0].immediate) == UINT32_MAX;
  if (!is_whole || !is_one_warp(original) || !is_barrier_of_block(original, before)) return false;
  for (const BlockId block : original.layout)
    for (const InstructionId id : original.instructions_in(block)) {
      if (original.instructions[id].kind != ir::InstructionKind::real) continue;
      const ir::Form& form = original.form_of(id);
      if (form.opaque || form.effects.call) return false;
      if (is_barrier(form) && !form.has(ir::Modifier::warp) && !is_barrier_of_block(original, id)) return false;
    }
  return true;
}

Lanes::Lanes(const ir::Function& function, const WarpShape& shape)
    : function_(function), shape_(shape), solver_(terms_, effort_for_lanes), bounds_(terms_, {}),
      exact_(terms_, bounds_,
             [this](AtomKind kind, unsigned from, unsigned to, const ir::Interval& range) {
               return solver_.extension_is_exact(kind, from, to, range);
             }),
      kernel_(function, terms_, bounds_, exact_, {}), flow_(function), post_dominators_(function, flow_),
      def_use_(function) {}

// --- joint execution ---

bool Lanes::depends_on(BlockId block, BlockId branch) const {
  if (block != branch && post_dominators_.post_dominates(block, branch)) return false;
  return std::ranges::any_of(function_.successors(branch), [&](ir::EdgeId edge) {
    const BlockId next = function_.edges[edge].to;
    return next == block || post_dominators_.post_dominates(block, next);
  });
}

// Is the term the same in all lanes of a warp that are at the block together?
bool Lanes::is_uniform(TermId term, BlockId block) {
  const TermId column = terms_.leaf("%tid.x", 32, true);
  std::set<AtomId> inside;
  terms_.collect_atoms(term, inside);
  for (const AtomId id : inside) {
    const Atom& atom = terms_.atom(id);
    if (atom.kind == AtomKind::operation && !of_operands.contains(atom.name) && !atom.name.starts_with("div.") &&
        !atom.name.starts_with("rem."))
      return false;
    if (atom.kind != AtomKind::leaf || is_of_launch(atom)) continue;
    if (shape_.is_row && atom.name.starts_with("%tid.")) continue;
    // In the loop itself: lanes in one trip. After it, their numbers of trips may differ.
    const bool is_own_trip = std::ranges::any_of(kernel_.loops().loops(), [&](const ir::Loop& loop) {
      return atom.name == trip_name(loop.header) && std::ranges::find(loop.blocks, block) != loop.blocks.end();
    });
    if (!is_own_trip) return false;
  }
  const AtomId mine = *terms_.as_atom(column);
  if (!inside.contains(mine)) return true;
  const TermId start = terms_.bitwise("and", column, terms_.literal(32, ~UInt128(warp_size - 1) & UINT32_MAX));
  const TermId other = terms_.add(start, terms_.zero_extend(terms_.leaf("another lane", lane_bits), 32));
  const Outcome outcome = solver_.prove_equal(term, terms_.substitute(term, {{mine, other}}), {}).outcome;
  return outcome == Outcome::identical || outcome == Outcome::proved;
}

bool Lanes::is_uniform_branch(BlockId block) {
  const auto [row, is_new] = uniform_.try_emplace(block, false);
  if (!is_new) return row->second;
  const std::optional<TermId> condition = kernel_.condition(block);
  return uniform_[block] = condition && is_uniform(*condition, block);
}

bool Lanes::all_reach(BlockId block) {
  if (!function_.is_entry || !shape_.is_whole) return false;
  const auto [row, is_new] = reached_.try_emplace(block, false);
  if (!is_new) return row->second;
  std::vector<BlockId> before{block};
  for (size_t i = 0; i < before.size(); ++i)
    for (ir::EdgeId edge : flow_.predecessors(before[i]))
      if (const BlockId from = function_.edges[edge].from; std::ranges::find(before, from) == before.end())
        before.push_back(from);
  for (const BlockId one : before)
    for (const InstructionId id : function_.instructions_in(one)) {
      const ir::Instruction& instruction = function_.instructions[id];
      if (instruction.kind != ir::InstructionKind::real) continue;
      const ir::Form& form = function_.form_of(id);
      if (form.opaque || form.effects.call || (form.effects.terminates && instruction.guard)) return false;
    }
  std::vector<BlockId> deciding{block};
  std::set<BlockId> branches;
  for (size_t i = 0; i < deciding.size(); ++i)
    for (const BlockId branch : before) {
      if (function_.successors(branch).size() < 2 || !depends_on(deciding[i], branch)) continue;
      if (!branches.insert(branch).second) continue;
      if (!is_uniform_branch(branch)) return false;
      deciding.push_back(branch);
    }
  return reached_[block] = true;
}

// --- lane 0 ---

bool Lanes::implies_lane_zero(const std::vector<TermId>& conditions) {
  const TermId lane = terms_.leaf("%laneid", 32);
  const std::set<AtomId> names{*terms_.as_atom(lane), *terms_.as_atom(terms_.leaf("%tid.x", 32, true))};
  std::vector<Assumption> known = lane_facts(terms_, shape_);
  const size_t always = known.size();
  for (const TermId bit : conditions)
    if (is_mentioned(terms_, bit, names)) known.push_back({terms_.zero_extend(bit, 128), {1, 1}});
  if (known.size() == always) return false;
  const Outcome outcome = solver_.prove_equal(lane, terms_.literal(32, 0), known).outcome;
  return outcome == Outcome::identical || outcome == Outcome::proved;
}

bool Lanes::runs_in_lane_zero(BlockId block) {
  const auto [row, is_new] = alone_.try_emplace(block, false);
  if (is_new) row->second = implies_lane_zero(kernel_.conditions_of(block));
  return row->second;
}

bool Lanes::reads(ValueId value, const std::set<InstructionId>& joint, std::set<ValueId>& visited) {
  if (!visited.insert(value).second) return true;
  return std::ranges::all_of(def_use_.uses(value), [&](const ir::Use& use) {
    if (!use.instruction) {
      const ir::Edge& edge = function_.edges[use.edge];
      return runs_in_lane_zero(edge.from) || reads(function_.parameters(edge.to)[use.index], joint, visited);
    }
    if (joint.contains(use.instruction)) return true;
    const ir::Instruction& reader = function_.instructions[use.instruction];
    if (runs_in_lane_zero(reader.block)) return true;
    if (reader.kind != ir::InstructionKind::real) return false;
    const bool is_read_by_guard = use.index == ir::Use::guard_index; // and a kept value is read if the guard is false
    if (reader.guard && !is_read_by_guard &&
        !function_.operands_of(use.instruction)[use.index].has(ir::OperandFlag::old_value))
      if (const TermId guard = kernel_.value(reader.guard); guard && terms_.width(guard) == 1)
        if (implies_lane_zero({reader.guard_negated ? terms_.negation(guard) : guard})) return true;
    if (!function_.form_of(use.instruction).effects.pure()) return false;
    bool alone = true;
    ir::for_each_definition(function_, use.instruction,
                            [&](ValueId result) { alone = alone && reads(result, joint, visited); });
    return alone;
  });
}

bool Lanes::only_lane_zero_reads(ValueId value, const std::set<InstructionId>& joint) {
  std::set<ValueId> visited;
  return reads(value, joint, visited);
}

} // namespace ptxrewrite::prove
