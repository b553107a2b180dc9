#include "evaluate/prove/reductions.h"

#include "ir/analysis/linear/linear.h"
#include "ir/core/module.h"
#include "ir/flow/def_use.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>

namespace ptxrewrite::prove {

namespace {

using ir::BlockId;
using ir::InstructionId;
using ir::Opcode;
using ir::Operand;
using ir::OperandKind;
using ir::ValueId;

constexpr uint32_t all_lanes = UINT32_MAX, last_lane = 31;
constexpr unsigned warp_size = 32;

// The lanes whose inputs a lane's value combines, each as often as the bit says: a lane that is combined twice ends the
// search.
using Lanes = std::array<uint32_t, warp_size>;

class Trees {
public:
  Trees(const ir::Function& original, const std::vector<transforms::Obligation>& ledger)
      : original_(original), def_use_(original), forms_(original), warps_are_whole_(has_whole_warps(ledger)) {}

  // The instructions that compute `total` from `input` by `step`, in program order; nothing if they do not combine all
  // lanes once, or if lanes may be missing.
  std::optional<std::vector<InstructionId>> tree(ValueId input, ValueId total, std::string_view step) const;
  // The operands of an instruction with literals in place of registers that hold one.
  std::vector<Operand> operands_of(InstructionId id) const;

private:
  bool has_whole_warps(const std::vector<transforms::Obligation>& ledger) const;
  bool all_lanes_reach(BlockId block) const;
  InstructionId definition(ValueId value) const;
  std::optional<uint32_t> literal(const Operand& operand) const;
  // Follows copies to their source.
  ValueId source_of(ValueId value, std::vector<InstructionId>& copies) const;
  std::optional<uint32_t> offset_of(InstructionId shuffle) const;

  const ir::Function& original_;
  ir::DefUse def_use_;
  ir::LinearForms forms_;
  bool warps_are_whole_;
};

bool Trees::has_whole_warps(const std::vector<transforms::Obligation>& ledger) const {
  for (const ir::FunctionDirective& directive : original_.directives) {
    if (original_.module().text(directive.name) != ".reqntid") continue;
    uint64_t threads = 1;
    for (unsigned i = 0; i < directive.count && i < 3; ++i)
      threads *= directive.numbers[i];
    if (threads % warp_size == 0) return true;
  }
  return std::ranges::any_of(ledger, [](const transforms::Obligation& entry) {
    return entry.discharge == transforms::Discharge::launch_checked &&
           (entry.reason == "ntid.x * ntid.y * ntid.z % 32 == 0" || entry.reason == "ntid.x % 32 == 0");
  });
}

// True if every branch of the kernel is decided by the launch, so that all its threads run together, and none leaves
// before the block.
bool Trees::all_lanes_reach(BlockId block) const {
  if (!original_.is_entry) return false;
  std::vector<BlockId> before{block};
  for (size_t i = 0; i < before.size(); ++i)
    for (ir::EdgeId edge : forms_.control_flow().predecessors(before[i]))
      if (const BlockId from = original_.edges[edge].from; std::ranges::find(before, from) == before.end())
        before.push_back(from);
  return std::ranges::all_of(before, [&](BlockId one) {
    if (one != block && original_.successors(one).size() > 1 && !forms_.branch_is_uniform(one)) return false;
    for (InstructionId id : original_.instructions_in(one)) {
      if (original_.instructions[id].kind != ir::InstructionKind::real) continue;
      const ir::Form& form = original_.form_of(id);
      if (form.opaque || form.effects.call || (form.effects.terminates && original_.instructions[id].guard))
        return false;
    }
    return true;
  });
}

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

// The distance of a butterfly in which all lanes of the warp take part.
std::optional<uint32_t> Trees::offset_of(InstructionId shuffle) const {
  const ir::Form& form = original_.form_of(shuffle);
  if (form.opcode != Opcode::shfl || !form.has(ir::Modifier::sync) || !form.has(ir::Modifier::bfly))
    return std::nullopt;
  auto operands = original_.operands_of(shuffle);
  operands = operands.subspan(operands[0].is(OperandKind::pair) ? 3 : 1);
  if (operands.size() != 4 || literal(operands[2]) != last_lane || literal(operands[3]) != all_lanes)
    return std::nullopt;
  const auto offset = literal(operands[1]);
  return offset && *offset < warp_size ? offset : std::nullopt;
}

std::optional<std::vector<InstructionId>> Trees::tree(ValueId input, ValueId total, std::string_view step) const {
  const InstructionId last = definition(total);
  if (!last || !warps_are_whole_ || !all_lanes_reach(original_.instructions[last].block)) return std::nullopt;
  std::vector<InstructionId> backwards;
  std::vector<uint32_t> offsets; // of the stages, the last one first
  for (ValueId value = total; value != input;) {
    const InstructionId sum = definition(value);
    if (!sum || offsets.size() == warp_size || original_.form_of(sum).mnemonic != step ||
        original_.instructions[sum].block != original_.instructions[last].block)
      return std::nullopt;
    const auto operands = original_.operands_of(sum);
    if (operands.size() != 3) return std::nullopt;
    backwards.push_back(sum);
    std::optional<ValueId> before;
    for (size_t i = 1; i < 3 && !before; ++i) {
      if (!operands[1].is(OperandKind::value) || !operands[2].is(OperandKind::value)) return std::nullopt;
      std::vector<InstructionId> copies;
      const InstructionId shuffle = definition(source_of(operands[i].as_value(), copies));
      const auto offset = shuffle ? offset_of(shuffle) : std::nullopt;
      if (!offset || original_.instructions[shuffle].block != original_.instructions[last].block) continue;
      const auto sources = original_.operands_of(shuffle);
      const Operand shuffled = sources[sources[0].is(OperandKind::pair) ? 3 : 1];
      if (!shuffled.is(OperandKind::value)) continue;
      copies.push_back(shuffle);
      const ValueId other = operands[3 - i].as_value();
      if (shuffled.as_value() != other && source_of(shuffled.as_value(), copies) != other) continue;
      before = other;
      offsets.push_back(*offset);
      backwards.insert(backwards.end(), copies.begin(), copies.end());
    }
    if (!before) return std::nullopt;
    value = *before;
  }
  Lanes lanes;
  for (unsigned lane = 0; lane < warp_size; ++lane)
    lanes[lane] = 1u << lane;
  for (size_t stage = offsets.size(); stage-- > 0;) {
    const Lanes old = lanes;
    for (unsigned lane = 0; lane < warp_size; ++lane) {
      const uint32_t other = old[lane ^ offsets[stage]];
      if ((old[lane] & other) != 0) return std::nullopt;
      lanes[lane] = old[lane] | other;
    }
  }
  if (std::ranges::any_of(lanes, [](uint32_t set) { return set != all_lanes; })) return std::nullopt;
  std::vector<InstructionId> forwards;
  for (InstructionId id : original_.instructions_in(original_.instructions[last].block))
    if (std::ranges::find(backwards, id) != backwards.end()) forwards.push_back(id);
  return forwards;
}

std::vector<Operand> Trees::operands_of(InstructionId id) const {
  const auto old = original_.operands_of(id);
  std::vector<Operand> operands(old.begin(), old.end());
  for (Operand& operand : operands)
    if (const auto number = operand.is_definition() ? std::nullopt : literal(operand))
      operand = Operand::integer(operand.is(OperandKind::integer) ? operand.immediate : int64_t(*number));
  return operands;
}

} // namespace

void take_reductions_apart(const ir::Function& original, ir::Function& rewritten,
                           const std::vector<transforms::Obligation>& ledger) {
  constexpr std::string_view name = "redux.sync.";
  std::vector<InstructionId> reductions;
  for (BlockId block : rewritten.layout)
    for (InstructionId id : rewritten.instructions_in(block))
      if (rewritten.is_opcode(id, Opcode::redux)) reductions.push_back(id);
  if (reductions.empty()) return;
  const Trees trees(original, ledger);
  for (InstructionId id : reductions) {
    const std::string_view mnemonic = rewritten.form_of(id).mnemonic;
    const auto operands = rewritten.operands_of(id);
    if (!mnemonic.starts_with(name) || operands.size() != 3 || !operands[0].is(OperandKind::value) ||
        !operands[1].is(OperandKind::value) || !operands[2].is(OperandKind::integer) ||
        static_cast<uint32_t>(operands[2].immediate) != all_lanes ||
        std::max(operands[0].id, operands[1].id) >= original.values.size())
      continue;
    const auto tree = trees.tree(operands[1].as_value(), operands[0].as_value(), mnemonic.substr(name.size()));
    if (!tree) continue;
    for (InstructionId source : *tree) {
      ir::Instruction row = original.instructions[source];
      row.previous = row.next = {};
      row.block = {};
      rewritten.insert_before(id, rewritten.add_instruction(row, trees.operands_of(source)));
    }
    rewritten.remove(id);
  }
  rewritten.changed();
}

} // namespace ptxrewrite::prove
