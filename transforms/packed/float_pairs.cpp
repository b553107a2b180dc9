// Greedy: an operation is paired with the one that reads the neighbours of its operands at the same positions. Each
// half of a pair rounds separately, as the scalar operation does, and NaNs are canonical in both.
#include "transforms/packed/float_pairs.h"

#include "ir/core/insertion.h"
#include "ir/core/module.h"
#include "ir/flow/def_use.h"
#include "ir/isa/isa_availability.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>

namespace ptxrewrite::transforms::packed {

namespace {

using ir::BlockId;
using ir::InstructionId;
using ir::InstructionKind;
using ir::Opcode;
using ir::Operand;
using ir::OperandKind;
using ir::ValueId;

constexpr std::string_view packed_suffix = "x2"; // fma.rn.f32 -> fma.rn.f32x2

bool is_pairable(const ir::Function& function, InstructionId id) {
  const ir::Instruction& instruction = function.instructions[id];
  if (instruction.kind != InstructionKind::real || instruction.guard) return false;
  const ir::Form& form = function.form_of(id);
  if (form.types.size() != 1 || form.type() != ir::ScalarType::f32 || form.has(ir::Modifier::sat)) return false;
  if (form.opcode != Opcode::fma && form.opcode != Opcode::add && form.opcode != Opcode::sub &&
      form.opcode != Opcode::mul)
    return false;
  const std::span<const Operand> operands = function.operands_of(id);
  return operands[0].is(OperandKind::value) && std::ranges::all_of(operands, [](const Operand& operand) {
           return (operand.is(OperandKind::value) && !operand.has(ir::OperandFlag::negated)) ||
                  operand.is(OperandKind::float32);
         });
}

// The value adjacent to another one, and which half it is.
struct Neighbour {
  ValueId other;
  bool is_lower = false; // the value itself is the lower half
};

class PairFinder {
public:
  explicit PairFinder(const ir::Function& function)
      : function_(function), def_use_(function), neighbours_(function.values.size()),
        place_(function.values.size(), -1), paired_(function.instructions.size()) {}

  std::vector<FloatPairs> run() {
    find_loads();
    std::vector<FloatPairs> list;
    for (BlockId block : function_.layout)
      if (FloatPairs found = in_block(block); !found.pairs.empty()) list.push_back(std::move(found));
    return list;
  }

private:
  enum class Fit : uint8_t { none, same, beside };

  void find_loads();
  void join(ValueId lower, ValueId upper);
  FloatPairs in_block(BlockId block);
  // The operation to pair with `first`, which is the lower half.
  InstructionId partner_of(InstructionId first) const;
  Fit fit(const Operand& lower, const Operand& upper) const;
  bool goes_with(InstructionId first, InstructionId second) const;
  // Returns whether the pair can be placed at its first operation, or else at its second; nothing if at neither.
  std::optional<bool> is_done_at_first(InstructionId first, InstructionId second) const;

  const ir::Function& function_;
  ir::DefUse def_use_;
  std::vector<std::optional<Neighbour>> neighbours_; // by ValueId
  std::vector<int64_t> place_; // by ValueId: position of its definition in the current block; -1: available from its
                               // start
  std::vector<bool> paired_;   // by InstructionId
  std::vector<int64_t> order_; // by InstructionId: position in the current block; -1: in another block
};

void PairFinder::join(ValueId lower, ValueId upper) {
  if (lower == upper || neighbours_[lower.index()] || neighbours_[upper.index()]) return;
  neighbours_[lower.index()] = Neighbour{upper, true};
  neighbours_[upper.index()] = Neighbour{lower, false};
}

void PairFinder::find_loads() {
  for (BlockId block : function_.layout)
    for (InstructionId id : function_.instructions_in(block)) {
      if (!function_.is_opcode(id, Opcode::ld) || function_.instructions[id].guard) continue;
      const ir::Form& form = function_.form_of(id);
      const std::span<const Operand> operands = function_.operands_of(id);
      if (form.vector_width < 2 || ir::bit_width(form.type()) != 32 || !operands[0].is(OperandKind::vector)) continue;
      for (size_t i = 1; i + 1 <= operands[0].group_size(); i += 2)
        if (operands[i].is(OperandKind::value) && operands[i + 1].is(OperandKind::value))
          join(operands[i].as_value(), operands[i + 1].as_value());
    }
}

PairFinder::Fit PairFinder::fit(const Operand& lower, const Operand& upper) const {
  if (lower == upper || (lower.is_constant() && upper.is_constant())) return Fit::same;
  if (!lower.is(OperandKind::value) || !upper.is(OperandKind::value)) return Fit::none;
  const std::optional<Neighbour>& beside = neighbours_[lower.id];
  if (beside) {
    if (beside->other != upper.as_value()) return Fit::none;
    return beside->is_lower ? Fit::beside : Fit::same; // swapped halves cost as much as a number used twice
  }
  if (neighbours_[upper.id]) return Fit::none;
  // Values carried by a loop: assumed to be neighbours, which holds if their next values are.
  const ir::DefinitionSite &a = def_use_.definition(lower.as_value()), &b = def_use_.definition(upper.as_value());
  return a.is_parameter() && b.is_parameter() && a.block == b.block ? Fit::beside : Fit::none;
}

bool PairFinder::goes_with(InstructionId first, InstructionId second) const {
  if (first == second || paired_[second.index()] || order_[second.index()] < 0 || !is_pairable(function_, second))
    return false;
  if (function_.instructions[first].form != function_.instructions[second].form) return false;
  const std::span<const Operand> a = function_.operands_of(first), b = function_.operands_of(second);
  if (a.size() != b.size() || neighbours_[a[0].id] || neighbours_[b[0].id]) return false;
  bool lies_beside = false;
  for (size_t i = 1; i < a.size(); ++i) {
    const Fit one = fit(a[i], b[i]);
    if (one == Fit::none) return false;
    lies_beside |= one == Fit::beside;
  }
  return lies_beside;
}

std::optional<bool> PairFinder::is_done_at_first(InstructionId first, InstructionId second) const {
  const int64_t begin = order_[first.index()], end = order_[second.index()];
  if (begin > end) return std::nullopt;
  bool known_early = true;
  ir::for_each_use(function_, second, [&](ValueId value) { known_early &= place_[value.index()] < begin; });
  if (known_early) return true;
  const ValueId result = function_.operands_of(first)[0].as_value();
  const bool read_late = std::ranges::all_of(def_use_.uses(result), [&](const ir::Use& use) {
    return !use.instruction || order_[use.instruction.index()] < 0 || order_[use.instruction.index()] > end;
  });
  return read_late ? std::optional(false) : std::nullopt;
}

InstructionId PairFinder::partner_of(InstructionId first) const {
  const std::span<const Operand> operands = function_.operands_of(first);
  // The partner reads a neighbour, or the parameter that follows.
  for (size_t i = 1; i < operands.size(); ++i) {
    if (!operands[i].is(OperandKind::value)) continue;
    const ValueId value = operands[i].as_value();
    std::vector<ValueId> others;
    if (const std::optional<Neighbour>& beside = neighbours_[value.index()]) {
      if (!beside->is_lower) return {};
      others.push_back(beside->other);
    } else if (const ir::DefinitionSite& site = def_use_.definition(value); site.is_parameter()) {
      for (ValueId parameter : function_.parameters(site.block))
        if (parameter != value && function_.values[parameter].type == function_.values[value].type)
          others.push_back(parameter);
    }
    for (ValueId other : others)
      for (const ir::Use& use : def_use_.uses(other))
        if (use.instruction && use.index == i && goes_with(first, use.instruction) &&
            is_done_at_first(first, use.instruction))
          return use.instruction;
  }
  return {};
}

FloatPairs PairFinder::in_block(BlockId block) {
  FloatPairs found;
  order_.assign(function_.instructions.size(), -1);
  std::ranges::fill(place_, -1);
  std::vector<InstructionId> list;
  for (InstructionId id : function_.instructions_in(block)) {
    order_[id.index()] = static_cast<int64_t>(list.size());
    ir::for_each_definition(function_, id, [&](ValueId value) { place_[value.index()] = order_[id.index()]; });
    list.push_back(id);
  }
  for (InstructionId first : list) {
    if (paired_[first.index()] || !is_pairable(function_, first)) continue;
    const InstructionId second = partner_of(first);
    if (!second) continue;
    const bool at_first = *is_done_at_first(first, second);
    found.pairs.push_back({first, second, at_first});
    paired_[first.index()] = paired_[second.index()] = true;
    const std::span<const Operand> a = function_.operands_of(first), b = function_.operands_of(second);
    for (size_t i = 0; i < a.size(); ++i)
      if (a[i].is(OperandKind::value) && b[i].is(OperandKind::value)) join(a[i].as_value(), b[i].as_value());
    const int64_t place = order_[(at_first ? first : second).index()];
    place_[a[0].id] = place_[b[0].id] = place;
  }
  return found;
}

// Packs pairs into 64-bit registers, each once in a block, as soon as both halves are available.
class Packer {
public:
  Packer(ir::Function& function, BlockId block) : function_(function), builder_(function), block_(block) {
    int64_t place = 0;
    for (InstructionId id : function.instructions_in(block)) {
      ir::for_each_definition(function, id, [&](ValueId value) { definitions_[value.index()] = {place, id}; });
      ++place;
    }
  }

  void replace(const FloatPairs::Pair& pair) {
    const InstructionId position = pair.at_first ? pair.first : pair.second;
    const std::vector<Operand> a = operands_of(pair.first), b = operands_of(pair.second);
    std::vector<Operand> operands(1);
    for (size_t i = 1; i < a.size(); ++i)
      operands.push_back(Operand::value(packed(a[i], b[i], pair.first)));
    builder_.before(position).standing_for(pair.first);
    const ValueId both = builder_.new_value(ir::ScalarType::b64);
    operands[0] = Operand::definition(both);
    const std::string mnemonic = std::string(function_.form_of(pair.first).mnemonic) + std::string(packed_suffix);
    builder_.emit(mnemonic, operands);
    const InstructionId halves =
        builder_.emit("mov.b64", {Operand::group(OperandKind::vector, 2), a[0], b[0], Operand::value(both)});
    packed_[key_of(Operand::value(a[0].as_value()), Operand::value(b[0].as_value()))] = both;
    const int64_t place = definitions_.at((pair.at_first ? a[0] : b[0]).id).first;
    definitions_[a[0].id] = definitions_[b[0].id] = {place, halves};
    function_.remove(pair.first);
    function_.remove(pair.second);
  }

private:
  static std::array<uint64_t, 4> key_of(const Operand& lower, const Operand& upper) {
    const auto word = [](const Operand& operand) { return static_cast<uint64_t>(operand.kind) << 32 | operand.id; };
    return {word(lower), static_cast<uint64_t>(lower.immediate), word(upper), static_cast<uint64_t>(upper.immediate)};
  }
  std::vector<Operand> operands_of(InstructionId id) const {
    const std::span<const Operand> view = function_.operands_of(id);
    return {view.begin(), view.end()};
  }
  // Positions the builder after the later definition, or at the beginning of the block.
  void place_builder(const Operand& lower, const Operand& upper) {
    std::pair<int64_t, InstructionId> last{-1, {}};
    for (const Operand& operand : {lower, upper})
      if (operand.is(OperandKind::value))
        if (const auto row = definitions_.find(operand.id); row != definitions_.end())
          last = std::max(last, row->second);
    if (last.second)
      builder_.after(last.second);
    else
      builder_ = ir::builder_at_start(function_, block_);
  }
  Operand in_register(const Operand& operand) {
    if (operand.is(OperandKind::value)) return operand;
    return Operand::value(builder_.emit_value("mov.f32", ir::ScalarType::f32, {operand}));
  }
  ValueId packed(const Operand& lower, const Operand& upper, InstructionId reader) {
    const auto key = key_of(lower, upper);
    if (const auto row = packed_.find(key); row != packed_.end()) return row->second;
    place_builder(lower, upper);
    builder_.standing_for(reader);
    const Operand low = in_register(lower), high = lower == upper ? low : in_register(upper);
    const ValueId both =
        builder_.emit_value("mov.b64", ir::ScalarType::b64, {Operand::group(OperandKind::vector, 2), low, high});
    packed_.emplace(key, both);
    return both;
  }

  ir::Function& function_;
  ir::Builder builder_;
  BlockId block_;
  std::map<uint32_t, std::pair<int64_t, InstructionId>> definitions_; // by ValueId: position in the block, and defining
                                                                      // instruction
  std::map<std::array<uint64_t, 4>, ValueId> packed_;                 // by the two halves
};

} // namespace

std::vector<FloatPairs> find_float_pairs(const ir::Function& function) {
  return PairFinder(function).run();
}

std::string description(const ir::Function& function, const FloatPairs& pairs) {
  std::map<std::string_view, size_t> counts;
  for (const FloatPairs::Pair& pair : pairs.pairs)
    counts[function.form_of(pair.first).mnemonic] += 2;
  std::string text;
  for (const auto& [mnemonic, count] : counts)
    text += (text.empty() ? "" : ", ") + std::to_string(count) + " " + std::string(mnemonic);
  return text + " -> f32x2";
}

void replace(ir::Function& function, const FloatPairs& pairs) {
  Packer packer(function, function.instructions[pairs.pairs.front().first].block);
  for (const FloatPairs::Pair& pair : pairs.pairs)
    packer.replace(pair);
}

bool has_float_pairs(const ir::Module& module) {
  const ir::PtxVersion version{module.version_major, module.version_minor};
  return !module.targets.empty() && std::ranges::all_of(module.targets, [&](Symbol target) {
    const std::string_view word = module.text(target);
    return !(word.starts_with("sm_") || word.starts_with("compute_")) ||
           ir::why_not_available(ir::form(ir::known_form("fma.rn.f32x2")), version, word).empty();
  });
}

} // namespace ptxrewrite::transforms::packed
