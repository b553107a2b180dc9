#include "evaluate/prove/reductions.h"

#include "evaluate/prove/lanes.h"
#include "ir/core/builder.h"
#include "ir/core/module.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>

namespace ptxrewrite::prove {

namespace {

using ir::InstructionId;
using ir::Modifier;
using ir::Opcode;
using ir::Operand;
using ir::OperandKind;
using ir::ValueId;

constexpr uint32_t all_lanes = UINT32_MAX, last_lane = 31;

// The lanes whose inputs a lane's value combines; nothing if one is combined twice.
using LaneSets = std::array<std::optional<uint32_t>, warp_size>;

struct Stage {
  uint32_t offset = 0;
  bool is_down = false;
};

struct Tree {
  ValueId input, total;
  std::vector<InstructionId> instructions; // in program order
  bool is_in_lane_zero = false;            // the other lanes' totals lack lanes
};

// A joint instruction of the rewritten kernel, and the instructions that it stands for.
struct Joint {
  InstructionId instruction; // redux, vote
  InstructionId use;         // popc, selp: defines the total; of redux, the same instruction
  Operand input;             // a number, or a predicate
  bool is_predicate = false;
  Tree tree;
  std::vector<std::pair<InstructionId, InstructionId>> broadcasts; // copies of the total, and the original's shuffles
};

LaneSets combined(const std::vector<Stage>& stages) {
  LaneSets sets;
  for (unsigned lane = 0; lane < warp_size; ++lane)
    sets[lane] = 1u << lane;
  for (const Stage& stage : stages) {
    const LaneSets old = sets;
    for (unsigned lane = 0; lane < warp_size; ++lane) {
      unsigned other = stage.is_down ? lane + stage.offset : lane ^ stage.offset;
      if (other > last_lane) other = lane; // shfl.down beyond the last lane returns the own value
      const bool are_apart = old[lane] && old[other] && (*old[lane] & *old[other]) == 0;
      sets[lane] = are_apart ? std::optional(*old[lane] | *old[other]) : std::nullopt;
    }
  }
  return sets;
}

// --- the original's trees ---

class Trees {
public:
  explicit Trees(const ir::Function& original) : original_(original), def_use_(original) {}

  // The instructions that compute `total` by one of the steps; nothing if no lane has all 32 lanes' inputs once.
  std::optional<Tree> tree(ValueId total, const std::vector<std::string_view>& steps) const;
  // The original's shuffle by which all lanes get lane 0's `total`, if it defines this value.
  InstructionId broadcast(ValueId value, ValueId total) const;
  std::optional<uint32_t> literal(const Operand& operand) const;

private:
  InstructionId definition(ValueId value) const;
  // Follows copies to their source.
  ValueId source_of(ValueId value, std::vector<InstructionId>& copies) const;
  std::optional<std::span<const Operand>> sources_of(InstructionId shuffle, Modifier mode) const;
  std::optional<Stage> stage_of(InstructionId shuffle) const;
  std::optional<ValueId> value_before(InstructionId step, Stage& stage, std::vector<InstructionId>& met) const;

  const ir::Function& original_;
  ir::DefUse def_use_;
};

InstructionId Trees::definition(ValueId value) const {
  const InstructionId id = def_use_.definition(value).instruction;
  const bool is_usual = id && original_.instructions[id].kind == ir::InstructionKind::real &&
                        !original_.instructions[id].guard && !original_.keeps_old_values(id);
  return is_usual ? id : InstructionId();
}

std::optional<uint32_t> Trees::literal(const Operand& operand) const {
  if (operand.is(OperandKind::integer)) return static_cast<uint32_t>(operand.immediate);
  if (!operand.is(OperandKind::value)) return std::nullopt;
  const InstructionId id = definition(operand.as_value());
  if (!id || !original_.is_opcode(id, Opcode::mov)) return std::nullopt;
  const auto operands = original_.operands_of(id);
  if (operands.size() != 2 || !operands[1].is(OperandKind::integer)) return std::nullopt;
  return static_cast<uint32_t>(operands[1].immediate);
}

ValueId Trees::source_of(ValueId value, std::vector<InstructionId>& copies) const {
  const InstructionId id = definition(value);
  if (!id || !original_.is_opcode(id, Opcode::mov)) return value;
  const auto operands = original_.operands_of(id);
  if (operands.size() != 2 || !operands[1].is(OperandKind::value) || operands[1].selector != ir::no_selector ||
      ir::bit_width(original_.values[operands[1].as_value()].type) != 32)
    return value;
  copies.push_back(id);
  return operands[1].as_value();
}

// The sources of a shuffle in this mode in which all lanes of the warp take part.
std::optional<std::span<const Operand>> Trees::sources_of(InstructionId shuffle, Modifier mode) const {
  const ir::Form& form = original_.form_of(shuffle);
  if (form.opcode != Opcode::shfl || !form.has(Modifier::sync) || !form.has(mode)) return std::nullopt;
  auto operands = original_.operands_of(shuffle);
  operands = operands.subspan(operands[0].is(OperandKind::pair) ? 3 : 1);
  if (operands.size() != 4 || literal(operands[2]) != last_lane || literal(operands[3]) != all_lanes)
    return std::nullopt;
  return operands;
}

std::optional<Stage> Trees::stage_of(InstructionId shuffle) const {
  for (const bool is_down : {false, true})
    if (const auto sources = sources_of(shuffle, is_down ? Modifier::down : Modifier::bfly))
      if (const auto offset = literal((*sources)[1]); offset && *offset < warp_size) return Stage{*offset, is_down};
  return std::nullopt;
}

// The value that the step combines with another lane's.
std::optional<ValueId> Trees::value_before(InstructionId step, Stage& stage, std::vector<InstructionId>& met) const {
  const auto operands = original_.operands_of(step);
  if (operands.size() != 3 || !operands[1].is(OperandKind::value) || !operands[2].is(OperandKind::value))
    return std::nullopt;
  for (size_t i = 1; i < 3; ++i) {
    std::vector<InstructionId> copies;
    const InstructionId shuffle = definition(source_of(operands[i].as_value(), copies));
    const auto found = shuffle ? stage_of(shuffle) : std::nullopt;
    if (!found || original_.instructions[shuffle].block != original_.instructions[step].block) continue;
    const auto sources = original_.operands_of(shuffle);
    const bool has_predicate = sources[0].is(OperandKind::pair);
    const Operand shuffled = sources[has_predicate ? 3 : 1];
    if (has_predicate && sources[2].is(OperandKind::value) && !def_use_.uses(sources[2].as_value()).empty()) continue;
    if (!shuffled.is(OperandKind::value)) continue;
    copies.push_back(shuffle);
    const ValueId other = operands[3 - i].as_value();
    if (shuffled.as_value() != other && source_of(shuffled.as_value(), copies) != other) continue;
    stage = *found;
    met.insert(met.end(), copies.begin(), copies.end());
    return other;
  }
  return std::nullopt;
}

std::optional<Tree> Trees::tree(ValueId total, const std::vector<std::string_view>& steps) const {
  const InstructionId last = definition(total);
  if (!last || std::ranges::find(steps, original_.form_of(last).mnemonic) == steps.end()) return std::nullopt;
  const ir::BlockId block = original_.instructions[last].block;
  std::vector<InstructionId> met;
  std::vector<Stage> stages; // the first one first
  Tree tree{total, total, {}, false};
  while (stages.size() < warp_size) {
    const InstructionId step = definition(tree.input);
    Stage stage;
    if (!step || original_.form_of(step).mnemonic != original_.form_of(last).mnemonic ||
        original_.instructions[step].block != block)
      return std::nullopt;
    met.push_back(step);
    const auto before = value_before(step, stage, met);
    if (!before) return std::nullopt;
    tree.input = *before;
    stages.insert(stages.begin(), stage);
    const LaneSets sets = combined(stages);
    if (sets[0] != all_lanes) continue;
    tree.is_in_lane_zero = std::ranges::any_of(sets, [](const auto& set) { return set != all_lanes; });
    for (InstructionId id : original_.instructions_in(block))
      if (std::ranges::find(met, id) != met.end()) tree.instructions.push_back(id);
    return tree.instructions.size() == met.size() ? std::optional(tree) : std::nullopt;
  }
  return std::nullopt;
}

InstructionId Trees::broadcast(ValueId value, ValueId total) const {
  const InstructionId shuffle = definition(value);
  const auto sources = shuffle ? sources_of(shuffle, Modifier::idx) : std::nullopt;
  if (!sources || literal((*sources)[1]) != 0u || !(*sources)[0].is(OperandKind::value)) return {};
  const auto operands = original_.operands_of(shuffle);
  const bool has_predicate = operands[0].is(OperandKind::pair);
  if (has_predicate && operands[2].is(OperandKind::value) && !def_use_.uses(operands[2].as_value()).empty()) return {};
  return (*sources)[0].as_value() == total ? shuffle : InstructionId();
}

// --- the rewritten kernel's joint instructions ---

class JointInstructions {
public:
  JointInstructions(const ir::Function& original, ir::Function& rewritten,
                    const std::vector<transforms::Obligation>& ledger)
      : original_(original), rewritten_(rewritten), shape_(warp_shape(original, ledger)), trees_(original),
        lanes_(original, shape_), def_use_(rewritten) {}

  void run();

private:
  bool is_of_all_lanes(InstructionId id, std::string_view name) const;
  std::optional<Joint> reduction(InstructionId id) const;
  std::optional<Joint> vote(InstructionId id) const;
  std::optional<Joint> with_tree(Joint joint, ValueId total, const std::vector<std::string_view>& steps) const;
  bool is_read_rightly(Joint& joint);
  void take_apart(const Joint& joint);
  void copy(InstructionId source, InstructionId place, std::map<ValueId, Operand>& names, ValueId kept);

  const ir::Function& original_;
  ir::Function& rewritten_;
  WarpShape shape_;
  Trees trees_;
  Lanes lanes_;
  ir::DefUse def_use_;
  std::optional<Lanes> rewritten_lanes_;
};

// NAME... d, a, -1
bool JointInstructions::is_of_all_lanes(InstructionId id, std::string_view name) const {
  const auto operands = rewritten_.operands_of(id);
  return rewritten_.form_of(id).mnemonic.starts_with(name) && !rewritten_.instructions[id].guard &&
         operands.size() == 3 && operands[0].is(OperandKind::value) && operands[1].is(OperandKind::value) &&
         operands[2].is(OperandKind::integer) && static_cast<uint32_t>(operands[2].immediate) == all_lanes;
}

std::optional<Joint> JointInstructions::with_tree(Joint joint, ValueId total,
                                                  const std::vector<std::string_view>& steps) const {
  if (total.index() >= original_.values.size()) return std::nullopt;
  const auto tree = trees_.tree(total, steps);
  if (!tree) return std::nullopt;
  joint.tree = *tree;
  return joint;
}

std::optional<Joint> JointInstructions::reduction(InstructionId id) const {
  constexpr std::string_view name = "redux.sync.";
  if (!is_of_all_lanes(id, name)) return std::nullopt;
  const auto operands = rewritten_.operands_of(id);
  Operand input = operands[1];
  return with_tree({id, id, input, false, {}, {}}, operands[0].as_value(),
                   {rewritten_.form_of(id).mnemonic.substr(name.size())});
}

// The steps of a tree over 0 and 1 that has the vote's result, made a number by its one reader.
std::optional<Joint> JointInstructions::vote(InstructionId id) const {
  if (!is_of_all_lanes(id, "vote.sync.")) return std::nullopt;
  const ir::Form& form = rewritten_.form_of(id);
  const auto operands = rewritten_.operands_of(id);
  const auto uses = def_use_.uses(operands[0].as_value());
  if (uses.size() != 1 || !uses[0].instruction || rewritten_.instructions[uses[0].instruction].guard)
    return std::nullopt;
  const InstructionId use = uses[0].instruction;
  // The tree is put in place of the number: the vote must be of the same execution, by the same lanes.
  if (rewritten_.instructions[use].block != rewritten_.instructions[id].block) return std::nullopt;
  const auto read = rewritten_.operands_of(use);
  const auto is_literal = [&](size_t i, int64_t value) {
    return read[i].is(OperandKind::integer) && read[i].immediate == value;
  };
  if (read.empty() || !read[0].is(OperandKind::value)) return std::nullopt;
  const Joint joint{id, use, operands[1], true, {}, {}};
  const bool counts = form.mnemonic == "vote.sync.ballot.b32" && rewritten_.form_of(use).mnemonic == "popc.b32";
  const bool selects = rewritten_.is_opcode(use, Opcode::selp) && read.size() == 4 && is_literal(1, 1) &&
                       is_literal(2, 0) && !read[3].has(ir::OperandFlag::negated);
  if (counts) return with_tree(joint, read[0].as_value(), {"add.s32", "add.u32"});
  if (selects && form.mnemonic == "vote.sync.any.pred")
    return with_tree(joint, read[0].as_value(), {"or.b32", "max.s32", "max.u32"});
  if (selects && form.mnemonic == "vote.sync.all.pred")
    return with_tree(joint, read[0].as_value(), {"and.b32", "min.s32", "min.u32"});
  return std::nullopt;
}

// Do all lanes take part, and, if the tree's total is that of lane 0 alone, does no other lane read it?
bool JointInstructions::is_read_rightly(Joint& joint) {
  if (!lanes_.all_reach(original_.instructions[joint.tree.instructions.front()].block)) return false;
  std::set<InstructionId> copies;
  for (const ir::Use& use : def_use_.uses(joint.tree.total)) {
    if (!use.instruction || !rewritten_.is_opcode(use.instruction, Opcode::mov)) continue;
    const auto operands = rewritten_.operands_of(use.instruction);
    if (rewritten_.instructions[use.instruction].guard || operands.size() != 2 || !operands[0].is(OperandKind::value) ||
        operands[0].id >= original_.values.size())
      continue;
    const InstructionId shuffle = trees_.broadcast(operands[0].as_value(), joint.tree.total);
    if (!shuffle || !lanes_.all_reach(original_.instructions[shuffle].block)) continue;
    joint.broadcasts.emplace_back(use.instruction, shuffle);
    copies.insert(use.instruction);
  }
  if (!joint.tree.is_in_lane_zero) return true;
  if (!rewritten_lanes_) rewritten_lanes_.emplace(rewritten_, shape_);
  return rewritten_lanes_->only_lane_zero_reads(joint.tree.total, copies);
}

// Copies an instruction of the original; its results get new values, except for the kept one.
void JointInstructions::copy(InstructionId source, InstructionId place, std::map<ValueId, Operand>& names,
                             ValueId kept) {
  ir::Builder builder(rewritten_);
  builder.before(place);
  const auto old = original_.operands_of(source);
  std::vector<Operand> operands(old.begin(), old.end());
  for (Operand& operand : operands) {
    if (!operand.is(OperandKind::value)) continue;
    const ValueId value = operand.as_value();
    if (operand.is_definition() && value != kept)
      names.insert_or_assign(value, Operand::value(builder.new_value(original_.values[value].type)));
    if (const auto known = names.find(value); known != names.end()) {
      operand = operand.is_definition() ? Operand::definition(known->second.as_value()) : known->second;
    } else if (const auto number = operand.is_definition() ? std::nullopt : trees_.literal(operand)) {
      operand =
          Operand::value(builder.emit_value("mov.b32", ir::ScalarType::b32, {Operand::integer(int64_t(*number))}));
    }
  }
  ir::Instruction row = original_.instructions[source];
  row.previous = row.next = {};
  row.block = {};
  rewritten_.insert_before(place, rewritten_.add_instruction(row, operands));
}

void JointInstructions::take_apart(const Joint& joint) {
  Operand input = joint.input;
  if (joint.is_predicate) {
    ir::Builder builder(rewritten_);
    builder.before(joint.instruction);
    const bool is_negated = input.has(ir::OperandFlag::negated);
    input =
        Operand::value(builder.emit_value("selp.b32", ir::ScalarType::b32,
                                          {Operand::integer(is_negated ? 0 : 1), Operand::integer(is_negated ? 1 : 0),
                                           Operand::value(input.as_value())}));
  }
  std::map<ValueId, Operand> names{{joint.tree.input, input}};
  for (InstructionId source : joint.tree.instructions)
    copy(source, joint.use, names, joint.tree.total);
  rewritten_.remove(joint.use);
  if (joint.use != joint.instruction) rewritten_.remove(joint.instruction);
  for (const auto& [taken, shuffle] : joint.broadcasts) {
    std::map<ValueId, Operand> none;
    copy(shuffle, taken, none, rewritten_.operands_of(taken)[0].as_value());
    rewritten_.remove(taken);
  }
}

void JointInstructions::run() {
  std::vector<Joint> joints;
  for (ir::BlockId block : rewritten_.layout)
    for (InstructionId id : rewritten_.instructions_in(block)) {
      std::optional<Joint> joint;
      if (rewritten_.is_opcode(id, Opcode::redux)) joint = reduction(id);
      if (rewritten_.is_opcode(id, Opcode::vote)) joint = vote(id);
      if (joint && is_read_rightly(*joint)) joints.push_back(*std::move(joint));
    }
  for (const Joint& joint : joints)
    take_apart(joint);
}

} // namespace

void take_reductions_apart(const ir::Function& original, ir::Function& rewritten,
                           const std::vector<transforms::Obligation>& ledger) {
  const auto is_joint = [&](InstructionId id) {
    return rewritten.is_opcode(id, Opcode::redux) || rewritten.is_opcode(id, Opcode::vote);
  };
  bool has_joint = false;
  for (ir::BlockId block : rewritten.layout)
    for (InstructionId id : rewritten.instructions_in(block))
      has_joint |= is_joint(id);
  if (!has_joint) return;
  JointInstructions(original, rewritten, ledger).run();
  rewritten.changed();
}

} // namespace ptxrewrite::prove
