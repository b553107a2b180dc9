// A stage is `s = shfl(x, o); y = x + s`. Sums of 32 bits wrap, so that their order does not matter, and neither does
// the order of the five offsets: whichever comes first, lane l's total has each lane whose number differs from l in any
// of the five bits (shfl.bfly), and lane 0's each lane that is a sum of some of 1, 2, 4, 8 and 16 (shfl.down), once.
#include "transforms/warp/shuffle_trees.h"

#include "ir/core/builder.h"
#include "ir/core/module.h"
#include "ir/isa/isa_availability.h"

#include <algorithm>
#include <bit>
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
    {Reduction::and_, "and.b32", "redux.sync.and.b32"},
    {Reduction::or_, "or.b32", "redux.sync.or.b32"},
    {Reduction::xor_, "xor.b32", "redux.sync.xor.b32"},
};

const Row& row_of(Reduction reduction) {
  return *std::ranges::find(rows, reduction, &Row::reduction);
}

// Of 0s and 1s: votes say it too.
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
  uint32_t lane = 0; // offset, mask or number, as the mode says
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
        if (!tree) continue;
        for (InstructionId shuffle : tree->shuffles)
          taken[shuffle.index()] = true;
        trees.push_back(*std::move(tree));
      }
    return trees;
  }

private:
  std::optional<uint32_t> literal(const Operand& operand) const;
  std::optional<Shuffle> shuffle(InstructionId id, Modifier mode) const;
  std::optional<ShuffleTree> tree_from(InstructionId first) const;
  // The instruction that puts a stage's two values together; invalid if anything else reads what it may not.
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

std::optional<Shuffle> Finder::shuffle(InstructionId id, Modifier mode) const {
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
  if (!lane || segment != whole_warp_segment || mask != all_lanes) return std::nullopt;
  found.lane = *lane;
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
  // What a stage starts from is read by its shuffle and its step, and the first stage's may be by others.
  if (!puts_together || (!is_first && def_use_.uses(stage.source).size() != 2)) return {};
  return step;
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
    const std::optional<Shuffle> found = next ? shuffle(next, mode) : std::nullopt;
    if (!found || (stage > 0 && found->source != tree.total)) return std::nullopt;
    if (function_.instructions[next].block != function_.instructions[first].block) return std::nullopt;
    if (stage == 0) tree.input = found->source;
    if (!std::has_single_bit(found->lane) || found->lane > 16 || (offsets & found->lane) != 0) return std::nullopt;
    offsets |= found->lane; // 1, 2, 4, 8 and 16 in the end
    const InstructionId step = step_of(*found, next, stage == 0);
    if (!step) return std::nullopt;
    const auto row = std::ranges::find(rows, function_.form_of(step).mnemonic, &Row::step);
    if (row == std::end(rows) || (reduction && *reduction != row->reduction)) return std::nullopt;
    reduction = row->reduction;
    tree.shuffles[stage] = next;
    tree.steps[stage] = step;
    tree.total = function_.operands_of(step)[0].as_value();
    next = {};
    if (stage + 1 == ShuffleTree::stages) break;
    for (const ir::Use& use : def_use_.uses(tree.total))
      if (use.instruction && function_.is_opcode(use.instruction, Opcode::shfl)) next = use.instruction;
  }
  tree.reduction = *reduction;
  find_predicate(tree);
  find_broadcasts(tree);
  return tree;
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

// Blocks that only lanes 0 reach, and what only they read.
class LaneZero {
public:
  LaneZero(const ir::Function& function, const ir::DefUse& def_use, const WarpLanes& lanes)
      : function_(function), def_use_(def_use), lanes_(lanes), flow_(function), dominators_(function, flow_) {}

  bool runs_alone(BlockId block) const {
    for (; block; block = dominators_.immediate_dominator(block))
      if (is_entered_alone(block)) return true;
    return false;
  }

  // `depth`: through how many computations.
  bool reads_alone(ValueId value, std::span<const InstructionId> others, unsigned depth = 4) const {
    return std::ranges::all_of(def_use_.uses(value), [&](const ir::Use& use) {
      if (!use.instruction) return runs_alone(function_.edges[use.edge].from);
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
  return LaneZero(function, def_use, lanes).reads_alone(tree.total, tree.broadcasts);
}

bool is_replaceable(const ir::Module& module, const ShuffleTree& tree) {
  return !module.targets.empty() && is_available(module, replacement(tree));
}

std::string description(const ShuffleTree& tree) {
  return std::string("5 shfl.sync.") + (tree.is_down ? "down" : "bfly") + " -> " + std::string(replacement(tree)) +
         (vote_of(tree) == Vote::count ? ", popc.b32" : "");
}

void replace(ir::Function& function, const ShuffleTree& tree) {
  const InstructionId last = tree.steps.back();
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
  for (size_t stage = ShuffleTree::stages; stage-- > 0;) {
    function.remove(tree.steps[stage]);
    function.remove(tree.shuffles[stage]);
  }
}

} // namespace ptxrewrite::transforms::warp
