// A stage is `s = shfl(x, o); y = x + s`. 32-bit sums wrap, so that their order does not matter; neither does that of
// minima and maxima of f32, which leave out NaN (or, with .NaN, are the one canonical NaN), order -0 before +0 and keep
// subnormal numbers, as redux does. Nor does the order of the five offsets matter: in any order, the total of each lane
// includes each lane whose number differs from its own in any of the five bits (shfl.bfly) exactly once, and that of
// lane 0 each lane that is a sum of some of 1, 2, 4, 8 and 16 (shfl.down).
#include "transforms/warp/shuffle_trees.h"

#include "ir/analysis/linear/relation.h"
#include "ir/core/builder.h"
#include "ir/core/module.h"
#include "ir/edit/fold_control.h"
#include "ir/isa/isa_availability.h"

#include <algorithm>
#include <bit>
#include <map>
#include <optional>

namespace ptxrewrite::transforms::warp {

namespace {

using ir::BlockId;
using ir::InstructionId;
using ir::InstructionKind;
using ir::Modifier;
using ir::Opcode;
using ir::Operand;
using ir::OperandKind;
using ir::ValueId;

constexpr uint32_t all_lanes = UINT32_MAX;
constexpr uint32_t whole_warp_segment = 31; // shfl's c: segments of 32 lanes, nothing beyond lane 31

struct Row {
  Reduction reduction;
  std::string_view step, redux;
};
constexpr Row rows[] = {
    {Reduction::add, "add.s32", "redux.sync.add.s32"},
    {Reduction::add, "add.u32", "redux.sync.add.u32"},
    {Reduction::minimum_signed, "min.s32", "redux.sync.min.s32"},
    {Reduction::minimum_unsigned, "min.u32", "redux.sync.min.u32"},
    {Reduction::maximum_signed, "max.s32", "redux.sync.max.s32"},
    {Reduction::maximum_unsigned, "max.u32", "redux.sync.max.u32"},
    {Reduction::minimum_float, "min.f32", "redux.sync.min.f32"},
    {Reduction::maximum_float, "max.f32", "redux.sync.max.f32"},
    {Reduction::minimum_float_or_nan, "min.NaN.f32", "redux.sync.min.NaN.f32"},
    {Reduction::maximum_float_or_nan, "max.NaN.f32", "redux.sync.max.NaN.f32"},
    {Reduction::and_, "and.b32", "redux.sync.and.b32"},
    {Reduction::or_, "or.b32", "redux.sync.or.b32"},
    {Reduction::xor_, "xor.b32", "redux.sync.xor.b32"},
};

const Row& row_of(Reduction reduction) {
  return *std::ranges::find(rows, reduction, &Row::reduction);
}

// Reductions of 0 and 1 that votes compute, too.
enum class Vote : uint8_t { none, count, any, all };
Vote vote_of(const ShuffleTree& tree) {
  if (!tree.predicate) return Vote::none;
  switch (tree.reduction) {
  case Reduction::add:
    return Vote::count;
  case Reduction::or_:
  case Reduction::maximum_signed:
  case Reduction::maximum_unsigned:
    return Vote::any;
  case Reduction::and_:
  case Reduction::minimum_signed:
  case Reduction::minimum_unsigned:
    return Vote::all;
  case Reduction::minimum_float:
  case Reduction::maximum_float:
  case Reduction::minimum_float_or_nan:
  case Reduction::maximum_float_or_nan:
  case Reduction::xor_:
    return Vote::none;
  }
  return Vote::none;
}

std::string_view replacement(const ShuffleTree& tree) {
  switch (vote_of(tree)) {
  case Vote::none:
    return row_of(tree.reduction).redux;
  case Vote::count:
    return "vote.sync.ballot.b32";
  case Vote::any:
    return "vote.sync.any.pred";
  case Vote::all:
    return "vote.sync.all.pred";
  }
  return {};
}

struct Shuffle {
  ValueId result, source;
  uint32_t lane = 0; // offset, mask or lane number, depending on the mode
  Operand distance;  // the same as an operand
};

class Finder {
public:
  Finder(const ir::Function& function, const ir::DefUse& def_use) : function_(function), def_use_(def_use) {}

  std::vector<ShuffleTree> run() {
    std::vector<ShuffleTree> trees;
    std::vector<bool> taken(function_.instructions.size());
    for (BlockId block : function_.layout)
      for (InstructionId id : function_.instructions_in(block)) {
        if (taken[id.index()]) continue;
        std::optional<ShuffleTree> tree = tree_from(id);
        if (!tree) tree = loop_from(id);
        if (!tree) continue;
        for (InstructionId shuffle : tree->shuffles)
          if (shuffle) taken[shuffle.index()] = true;
        trees.push_back(*std::move(tree));
      }
    return trees;
  }

private:
  std::optional<uint32_t> literal(const Operand& operand) const;
  // `known`: the distance must be a literal.
  std::optional<Shuffle> shuffle(InstructionId id, Modifier mode, bool known = true) const;
  // An unconditional copy of a 32-bit register: nvcc copies floats to integer registers and back around a shuffle.
  struct Copy {
    ValueId from, to;
  };
  std::optional<Copy> copy_of_bits(InstructionId id) const;
  // The shuffle that reads the value, or a copy of it; invalid if there is none.
  InstructionId shuffle_of(ValueId value) const;
  // Makes the copied values those of the stage, if there is a copy on either side.
  void look_through_copies(Shuffle& stage, ShuffleTree& tree) const;
  bool is_only_loop_of(const ShuffleTree& tree, BlockId block, ir::EdgeId back) const;
  std::optional<ShuffleTree> tree_from(InstructionId first) const;
  std::optional<ShuffleTree> loop_from(InstructionId shuffle) const;
  // The instruction that combines a stage's two values; invalid if one of the values has a disallowed reader.
  InstructionId step_of(const Shuffle& stage, InstructionId id, bool is_first) const;
  void find_predicate(ShuffleTree& tree) const;
  void find_broadcasts(ShuffleTree& tree) const;

  const ir::Function& function_;
  const ir::DefUse& def_use_;
};

std::optional<uint32_t> Finder::literal(const Operand& operand) const {
  if (operand.is(OperandKind::integer)) return static_cast<uint32_t>(operand.immediate);
  if (!operand.is(OperandKind::value)) return std::nullopt;
  const InstructionId id = def_use_.definition(operand.as_value()).instruction;
  if (!id || !function_.is_opcode(id, Opcode::mov) || function_.keeps_old_values(id)) return std::nullopt;
  const std::span<const Operand> operands = function_.operands_of(id);
  if (operands.size() != 2 || !operands[1].is(OperandKind::integer)) return std::nullopt;
  return static_cast<uint32_t>(operands[1].immediate);
}

std::optional<Shuffle> Finder::shuffle(InstructionId id, Modifier mode, bool known) const {
  if (!function_.is_opcode(id, Opcode::shfl) || function_.instructions[id].guard) return std::nullopt;
  const ir::Form& form = function_.form_of(id);
  if (!form.has(Modifier::sync) || !form.has(mode)) return std::nullopt;
  std::span<const Operand> operands = function_.operands_of(id);
  Shuffle found;
  if (operands[0].is(OperandKind::pair)) {
    if (operands[2].is(OperandKind::value) && !def_use_.uses(operands[2].as_value()).empty()) return std::nullopt;
    found.result = operands[1].as_value();
    operands = operands.subspan(3);
  } else {
    found.result = operands[0].as_value();
    operands = operands.subspan(1);
  }
  if (operands.size() != 4 || !operands[0].is(OperandKind::value)) return std::nullopt;
  found.source = operands[0].as_value();
  const std::optional<uint32_t> lane = literal(operands[1]), segment = literal(operands[2]),
                                mask = literal(operands[3]);
  if ((known && !lane) || segment != whole_warp_segment || mask != all_lanes) return std::nullopt;
  found.lane = lane.value_or(0);
  found.distance = operands[1];
  return found;
}

InstructionId Finder::step_of(const Shuffle& stage, InstructionId id, bool is_first) const {
  const std::span<const ir::Use> uses = def_use_.uses(stage.result);
  if (uses.size() != 1 || !uses[0].instruction) return {};
  const InstructionId step = uses[0].instruction;
  const ir::Instruction& instruction = function_.instructions[step];
  if (instruction.kind != InstructionKind::real || instruction.guard) return {};
  if (instruction.block != function_.instructions[id].block) return {};
  const std::span<const Operand> operands = function_.operands_of(step);
  if (operands.size() != 3) return {};
  const auto reads = [&](size_t i, ValueId value) { return operands[i] == Operand::value(value); };
  const bool puts_together =
      (reads(1, stage.source) && reads(2, stage.result)) || (reads(2, stage.source) && reads(1, stage.result));
  // The input of a stage is read by its shuffle and its step; only that of the first stage may have other readers.
  if (!puts_together || (!is_first && def_use_.uses(stage.source).size() != 2)) return {};
  return step;
}

std::optional<Finder::Copy> Finder::copy_of_bits(InstructionId id) const {
  if (!id || !function_.is_opcode(id, Opcode::mov) || function_.keeps_old_values(id)) return std::nullopt;
  const std::span<const Operand> operands = function_.operands_of(id);
  if (operands.size() != 2 || !operands[0].is(OperandKind::value) || !operands[1].is(OperandKind::value))
    return std::nullopt;
  const Copy copy{operands[1].as_value(), operands[0].as_value()};
  const auto is_32_bit = [&](ValueId value) {
    return ir::bit_width(function_.values[value].type) == 32 && function_.values[value].vector_width == 1;
  };
  if (!is_32_bit(copy.from) || !is_32_bit(copy.to) || operands[1].selector != ir::no_selector) return std::nullopt;
  return copy;
}

InstructionId Finder::shuffle_of(ValueId value) const {
  for (const ir::Use& use : def_use_.uses(value)) {
    if (!use.instruction) continue;
    if (function_.is_opcode(use.instruction, Opcode::shfl)) return use.instruction;
    const std::optional<Copy> copy = copy_of_bits(use.instruction);
    if (!copy) continue;
    for (const ir::Use& other : def_use_.uses(copy->to))
      if (other.instruction && function_.is_opcode(other.instruction, Opcode::shfl)) return other.instruction;
  }
  return {};
}

void Finder::look_through_copies(Shuffle& stage, ShuffleTree& tree) const {
  const InstructionId before = def_use_.definition(stage.source).instruction;
  const std::span<const ir::Use> readers = def_use_.uses(stage.result);
  if (readers.size() != 1 || def_use_.uses(stage.source).size() != 1) return;
  const std::optional<Copy> to_shuffle = copy_of_bits(before), back = copy_of_bits(readers[0].instruction);
  if (!to_shuffle || !back) return;
  stage.source = to_shuffle->from;
  stage.result = back->to;
  tree.copies.insert(tree.copies.end(), {before, readers[0].instruction});
}

std::optional<ShuffleTree> Finder::tree_from(InstructionId first) const {
  if (!function_.is_opcode(first, Opcode::shfl)) return std::nullopt;
  ShuffleTree tree;
  tree.is_down = function_.form_of(first).has(Modifier::down);
  const Modifier mode = tree.is_down ? Modifier::down : Modifier::bfly;
  uint32_t offsets = 0;
  InstructionId next = first;
  std::optional<Reduction> reduction;
  for (size_t stage = 0; stage < ShuffleTree::stages; ++stage) {
    std::optional<Shuffle> found = next ? shuffle(next, mode) : std::nullopt;
    if (found) look_through_copies(*found, tree);
    if (!found || (stage > 0 && found->source != tree.total)) return std::nullopt;
    if (function_.instructions[next].block != function_.instructions[first].block) return std::nullopt;
    if (stage == 0) tree.input = found->source;
    if (!std::has_single_bit(found->lane) || found->lane > 16 || (offsets & found->lane) != 0) return std::nullopt;
    offsets |= found->lane; // 1, 2, 4, 8 and 16 at the end
    const InstructionId step = step_of(*found, next, stage == 0);
    if (!step) return std::nullopt;
    const auto row = std::ranges::find(rows, function_.form_of(step).mnemonic, &Row::step);
    if (row == std::end(rows) || (reduction && *reduction != row->reduction)) return std::nullopt;
    reduction = row->reduction;
    tree.shuffles[stage] = next;
    tree.steps[stage] = step;
    tree.total = function_.operands_of(step)[0].as_value();
    next = stage + 1 == ShuffleTree::stages ? InstructionId() : shuffle_of(tree.total);
  }
  tree.reduction = *reduction;
  find_predicate(tree);
  find_broadcasts(tree);
  return tree;
}

// Interprets the integers of a loop's block that depend only on their initial values.
class CountingLoop {
public:
  CountingLoop(const ir::Function& function, const ir::DefUse& def_use, BlockId block)
      : function_(function), def_use_(def_use), block_(block) {}

  using Values = std::map<uint32_t, uint32_t>; // by ValueId
  std::optional<uint32_t> value(const Operand& operand, const Values& known, unsigned depth = 8) const;

private:
  const ir::Function& function_;
  const ir::DefUse& def_use_;
  BlockId block_;
};

std::optional<bool> compare(const ir::Form& form, uint32_t a, uint32_t b) {
  const std::optional<ir::Relation> relation = ir::relation_of(form);
  if (!relation || form.types.size() != 1 || ir::bit_width(form.type()) != 32) return std::nullopt;
  if (relation->reversed) std::swap(a, b);
  switch (relation->comparison) {
  case ir::Comparison::equal:
    return a == b;
  case ir::Comparison::not_equal:
    return a != b;
  case ir::Comparison::less_signed:
    return static_cast<int32_t>(a) < static_cast<int32_t>(b);
  case ir::Comparison::less_equal_signed:
    return static_cast<int32_t>(a) <= static_cast<int32_t>(b);
  case ir::Comparison::less_unsigned:
    return a < b;
  case ir::Comparison::less_equal_unsigned:
    return a <= b;
  }
  return std::nullopt;
}

std::optional<uint32_t> CountingLoop::value(const Operand& operand, const Values& known, unsigned depth) const {
  if (operand.is(OperandKind::integer)) return static_cast<uint32_t>(operand.immediate);
  if (!operand.is(OperandKind::value) || operand.has(ir::OperandFlag::negated) || depth == 0) return std::nullopt;
  if (const auto row = known.find(operand.id); row != known.end()) return row->second;
  const InstructionId id = def_use_.definition(operand.as_value()).instruction;
  if (!id || function_.instructions[id].kind != InstructionKind::real || function_.instructions[id].guard)
    return std::nullopt;
  const ir::Form& form = function_.form_of(id);
  const std::span<const Operand> operands = function_.operands_of(id);
  if (!form.effects.pure() || operands.size() < 2 || operands.size() > 3 || operands[0].is_group()) return std::nullopt;
  const std::optional<uint32_t> a = value(operands[1], known, depth - 1);
  const std::optional<uint32_t> b = operands.size() == 3 ? value(operands[2], known, depth - 1) : a;
  if (!a || !b) return std::nullopt;
  const std::string_view mnemonic = form.mnemonic;
  if (form.operation == ir::Operation::compare) {
    const std::optional<bool> holds = compare(form, *a, *b);
    if (!holds) return std::nullopt;
    return *holds ? 1u : 0u;
  }
  if (mnemonic == "mov.u32" || mnemonic == "mov.b32" || mnemonic == "mov.s32") return a;
  if (mnemonic == "add.s32" || mnemonic == "add.u32") return *a + *b;
  if (mnemonic == "and.b32") return *a & *b;
  if (mnemonic == "shl.b32") return *b > 31 ? 0 : *a << *b;
  if (mnemonic == "shr.u32" || mnemonic == "shr.b32") return *b > 31 ? 0 : *a >> *b;
  if (mnemonic == "shr.s32") return static_cast<uint32_t>(static_cast<int32_t>(*a) >> std::min(*b, 31u));
  return std::nullopt;
}

// Matches for (o = 16; o > 0; o /= 2) x = f(x, shfl(x, o)), with any counter: nvcc keeps the loop if 16 is warpSize /
// 2.
std::optional<ShuffleTree> Finder::loop_from(InstructionId id) const {
  const BlockId block = function_.instructions[id].block;
  ShuffleTree tree;
  tree.is_down = function_.is_opcode(id, Opcode::shfl) && function_.form_of(id).has(Modifier::down);
  const std::optional<Shuffle> found = shuffle(id, tree.is_down ? Modifier::down : Modifier::bfly, false);
  const InstructionId branch = function_.terminator(block);
  if (!found || !branch || !function_.is_opcode(branch, Opcode::bra) || !function_.instructions[branch].guard)
    return std::nullopt;
  const std::span<const ir::EdgeId> ways = function_.successors(block);
  if (ways.size() != 2 || (function_.edges[ways[0]].to == block) == (function_.edges[ways[1]].to == block))
    return std::nullopt;
  const bool back_is_taken = function_.edges[ways[0]].to == block;
  const ir::EdgeId back = ways[back_is_taken ? 0 : 1];
  const InstructionId step = step_of(*found, id, true);
  if (!step) return std::nullopt;
  const auto row = std::ranges::find(rows, function_.form_of(step).mnemonic, &Row::step);
  if (row == std::end(rows)) return std::nullopt;
  tree.reduction = row->reduction;
  tree.total = function_.operands_of(step)[0].as_value();
  tree.input = found->source;
  tree.shuffles[0] = id;
  tree.steps[0] = step;
  tree.loop_test = function_.instructions[branch].guard;
  const bool goes_back_when = back_is_taken != function_.instructions[branch].guard_negated;
  tree.ends_when = !goes_back_when;
  if (!is_only_loop_of(tree, block, back)) return std::nullopt;

  // The only entry edge, and the counters' initial values.
  CountingLoop::Values known;
  const CountingLoop loop(function_, def_use_, block);
  std::optional<ir::EdgeId> entry;
  const ir::ControlFlow flow(function_);
  for (ir::EdgeId edge : flow.predecessors(block)) {
    if (edge == back) continue;
    if (entry) return std::nullopt;
    entry = edge;
  }
  if (!entry) return std::nullopt;
  const std::span<const ValueId> parameters = function_.parameters(block);
  for (size_t i = 0; i < parameters.size(); ++i)
    if (const auto start = loop.value(Operand::value(function_.arguments(*entry)[i]), {}))
      known[parameters[i].index()] = *start;
  uint32_t offsets = 0;
  for (size_t trip = 0; trip < ShuffleTree::stages; ++trip) {
    const std::optional<uint32_t> offset = loop.value(found->distance, known);
    const std::optional<uint32_t> test = loop.value(Operand::value(tree.loop_test), known);
    if (!offset || !test || !std::has_single_bit(*offset) || *offset > 16 || (offsets & *offset) != 0)
      return std::nullopt;
    offsets |= *offset;
    if ((*test != 0) != (trip + 1 < ShuffleTree::stages ? goes_back_when : tree.ends_when)) return std::nullopt;
    CountingLoop::Values next;
    for (size_t i = 0; i < parameters.size(); ++i)
      if (const auto one = loop.value(Operand::value(function_.arguments(back)[i]), known))
        next[parameters[i].index()] = *one;
    known = std::move(next);
  }
  return tree;
}

// Does the loop do nothing else, and is the total its only value that is read after it?
bool Finder::is_only_loop_of(const ShuffleTree& tree, BlockId block, ir::EdgeId back) const {
  const std::span<const ValueId> parameters = function_.parameters(block);
  const auto place = std::ranges::find(parameters, tree.input);
  if (place == parameters.end() ||
      function_.arguments(back)[static_cast<size_t>(place - parameters.begin())] != tree.total)
    return false;
  const auto stays_inside = [&](ValueId value) {
    return std::ranges::all_of(def_use_.uses(value), [&](const ir::Use& use) {
      return use.instruction ? function_.instructions[use.instruction].block == block : use.edge == back;
    });
  };
  if (def_use_.uses(tree.input).size() != 2 || def_use_.uses(tree.loop_test).size() != 1) return false;
  for (ValueId parameter : parameters)
    if (!stays_inside(parameter)) return false;
  for (InstructionId id : function_.instructions_in(block)) {
    if (function_.instructions[id].kind != InstructionKind::real || id == tree.shuffles[0] || id == tree.steps[0])
      continue;
    if (id == function_.terminator(block)) continue;
    if (!function_.form_of(id).effects.pure() || function_.instructions[id].guard) return false;
    bool inside = true;
    ir::for_each_definition(function_, id, [&](ValueId value) { inside = inside && stays_inside(value); });
    if (!inside) return false;
  }
  // Within the loop, only the step and the back edge read the total.
  return std::ranges::none_of(def_use_.uses(tree.total), [&](const ir::Use& use) {
    return use.instruction && function_.instructions[use.instruction].block == block;
  });
}

void Finder::find_predicate(ShuffleTree& tree) const {
  const InstructionId id = def_use_.definition(tree.input).instruction;
  if (!id || !function_.is_opcode(id, Opcode::selp) || function_.keeps_old_values(id)) return;
  const std::span<const Operand> operands = function_.operands_of(id);
  if (operands.size() != 4 || !operands[3].is(OperandKind::value) || operands[3].has(ir::OperandFlag::negated)) return;
  const std::optional<uint32_t> yes = literal(operands[1]), no = literal(operands[2]);
  if (!yes || !no || *yes + *no != 1 || *yes > 1) return;
  tree.predicate = operands[3].as_value();
  tree.is_complement = *yes == 0;
}

void Finder::find_broadcasts(ShuffleTree& tree) const {
  for (const ir::Use& use : def_use_.uses(tree.total)) {
    if (!use.instruction) continue;
    const std::optional<Shuffle> found = shuffle(use.instruction, Modifier::idx);
    if (found && found->source == tree.total && found->lane < (tree.is_down ? 1 : 32))
      tree.broadcasts.push_back(use.instruction);
  }
}

// Blocks that only lane 0 executes, and values that only these blocks read.
class LaneZero {
public:
  LaneZero(const ir::Function& function, const ir::DefUse& def_use, const WarpLanes& lanes)
      : function_(function), def_use_(def_use), lanes_(lanes), flow_(function), dominators_(function, flow_) {}

  bool runs_alone(BlockId block) const {
    for (; block; block = dominators_.immediate_dominator(block))
      if (is_entered_alone(block)) return true;
    return false;
  }

  // `depth`: the number of computations to look through.
  bool reads_alone(ValueId value, std::span<const InstructionId> others, unsigned depth = 4) const {
    return std::ranges::all_of(def_use_.uses(value), [&](const ir::Use& use) {
      if (!use.instruction) {
        const ir::Edge& edge = function_.edges[use.edge];
        if (runs_alone(edge.from)) return true;
        return depth > 0 && reads_alone(function_.parameters(edge.to)[use.index], others, depth - 1);
      }
      if (std::ranges::find(others, use.instruction) != others.end()) return true;
      const ir::Instruction& reader = function_.instructions[use.instruction];
      if (runs_alone(reader.block)) return true;
      if (reader.guard) return lanes_.names_lane_zero(reader.guard, !reader.guard_negated);
      if (reader.kind != InstructionKind::real || depth == 0) return false;
      if (!function_.form_of(use.instruction).effects.pure()) return false;
      bool alone = true;
      ir::for_each_definition(function_, use.instruction,
                              [&](ValueId result) { alone = alone && reads_alone(result, others, depth - 1); });
      return alone;
    });
  }

private:
  bool is_entered_alone(BlockId block) const {
    const std::span<const ir::EdgeId> edges = flow_.predecessors(block);
    if (edges.size() != 1) return false;
    const BlockId from = function_.edges[edges[0]].from;
    const InstructionId branch = function_.terminator(from);
    if (!branch || !function_.is_opcode(branch, Opcode::bra)) return false;
    const ir::Instruction& instruction = function_.instructions[branch];
    const std::span<const ir::EdgeId> ways = function_.successors(from);
    if (!instruction.guard || ways.size() != 2) return false;
    const bool is_taken = ways[0] == edges[0];
    return lanes_.names_lane_zero(instruction.guard, is_taken != instruction.guard_negated);
  }

  const ir::Function& function_;
  const ir::DefUse& def_use_;
  const WarpLanes& lanes_;
  ir::ControlFlow flow_;
  ir::DominatorTree dominators_;
};

Operand full_mask() {
  Operand mask = Operand::integer(all_lanes);
  mask.flags = ir::OperandFlag::hexadecimal;
  return mask;
}

bool is_available(const ir::Module& module, std::string_view mnemonic) {
  const ir::PtxVersion version{module.version_major, module.version_minor};
  return std::ranges::all_of(module.targets, [&](Symbol target) {
    const std::string_view word = module.text(target);
    return !(word.starts_with("sm_") || word.starts_with("compute_")) ||
           ir::why_not_available(ir::form(ir::known_form(mnemonic)), version, word).empty();
  });
}

} // namespace

std::vector<ShuffleTree> find_shuffle_trees(const ir::Function& function, const ir::DefUse& def_use) {
  return Finder(function, def_use).run();
}

bool is_read_by_lane_zero_only(const ir::Function& function, const ir::DefUse& def_use, const WarpLanes& lanes,
                               const ShuffleTree& tree) {
  std::vector<InstructionId> others = tree.broadcasts;
  if (tree.loop_test) others.insert(others.end(), {tree.shuffles[0], tree.steps[0]}); // the loop has no further trips
  return LaneZero(function, def_use, lanes).reads_alone(tree.total, others);
}

bool is_replaceable(const ir::Module& module, const ShuffleTree& tree) {
  return !module.targets.empty() && is_available(module, replacement(tree));
}

std::string description(const ShuffleTree& tree) {
  return std::string(tree.loop_test ? "loop of shfl.sync." : "5 shfl.sync.") + (tree.is_down ? "down" : "bfly") +
         " -> " + std::string(replacement(tree)) + (vote_of(tree) == Vote::count ? ", popc.b32" : "");
}

static void replace_one(ir::Function& function, const ShuffleTree& tree) {
  const InstructionId last = tree.steps[tree.loop_test ? 0 : ShuffleTree::stages - 1];
  ir::Builder builder(function);
  builder.before(last).standing_for(last);
  const Operand total = Operand::definition(tree.total);
  Operand voter = Operand::value(tree.predicate);
  if (tree.is_complement) voter.flags = ir::OperandFlag::negated;
  const Vote vote = vote_of(tree);
  if (vote == Vote::none) {
    builder.emit(replacement(tree), {total, Operand::value(tree.input), full_mask()});
  } else if (vote == Vote::count) {
    const ValueId ballot = builder.emit_value(replacement(tree), ir::ScalarType::b32, {voter, full_mask()});
    builder.emit("popc.b32", {total, Operand::value(ballot)});
  } else {
    const ValueId all = builder.emit_value(replacement(tree), ir::ScalarType::pred, {voter, full_mask()});
    builder.emit("selp.b32", {total, Operand::integer(1), Operand::integer(0), Operand::value(all)});
  }
  for (InstructionId id : tree.broadcasts) {
    const std::span<const Operand> operands = function.operands_of(id);
    const Operand result = operands[operands[0].is(OperandKind::pair) ? 1 : 0];
    builder.before(id).standing_for(id);
    builder.emit("mov.b32", {result, Operand::value(tree.total)});
    function.remove(id);
  }
  for (size_t stage = tree.loop_test ? 1 : ShuffleTree::stages; stage-- > 0;) {
    function.remove(tree.steps[stage]);
    function.remove(tree.shuffles[stage]);
  }
  for (InstructionId id : tree.copies)
    function.remove(id);
}

void replace(ir::Function& function, const std::vector<ShuffleTree>& trees) {
  ir::KnownPredicates known;
  for (const ShuffleTree& tree : trees) {
    replace_one(function, tree);
    if (tree.loop_test) known[tree.loop_test] = tree.ends_when;
  }
  if (known.empty()) return;
  ir::Replacements replacements;
  ir::fold_guards(function, known, replacements);
  ir::find_needless_parameters(function, replacements);
  ir::replace(function, replacements);
}

} // namespace ptxrewrite::transforms::warp
