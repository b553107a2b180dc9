// Joins values into bundles, unless two values that are live at the same time would get the same register.
#include "ir/machine/registers/allocation_bundles.h"

#include "ir/flow/loops.h"

#include <algorithm>
#include <bit>
#include <map>

namespace ptxrewrite::ir {

std::vector<VectorOperand> vector_operands(const Function& function, const MachineValues& values, InstructionId id) {
  std::vector<VectorOperand> result;
  const Instruction& instruction = function.instructions[id];
  if (instruction.kind != InstructionKind::real || !values.is_issued(id)) return result;
  const Form& form = function.form_of(id);
  if (form.opcode == Opcode::mov || form.effects.call) return result;
  std::span<const Operand> operands = function.operands_of(id);
  for (uint32_t i = 0; i < operands.size(); ++i) {
    if (!operands[i].is(OperandKind::vector)) continue;
    VectorOperand vector;
    vector.operand = i;
    bool whole = true;          // every element fills whole registers
    uint32_t element_units = 0; // the same for all elements
    for (uint32_t k = i + 1; k <= i + operands[i].group_size(); ++k) {
      const Operand& element = operands[k];
      ValueId value = element.is(OperandKind::value) ? element.as_value() : ValueId();
      if (!value) continue;
      unsigned bits = bit_width(function.values[value].type);
      whole &= bits >= 32;
      element_units = std::max(element_units, std::max(1u, bits / 32));
      vector.definition |= element.is_definition();
    }
    for (uint32_t k = i + 1; k <= i + operands[i].group_size(); ++k) {
      const Operand& element = operands[k];
      ValueId value = element.is(OperandKind::value) ? element.as_value() : ValueId();
      if (value && !values.in_register(value)) {
        // Its readers read other registers: use one of the same width, or assemble the element at the instruction.
        std::span<const ValueId> parts = values.stands_for(value);
        value = parts.size() == 1 && values.units(parts[0]) == element_units ? parts[0] : ValueId();
      }
      vector.elements.push_back({value, vector.registers});
      vector.registers += std::max(element_units, 1u);
    }
    if (!whole || vector.registers < 2) continue;
    vector.alignment = std::min(std::bit_ceil(vector.registers), vector.registers <= 4 ? 4u : 8u);
    if (vector.registers > 8) vector.alignment = 4;
    result.push_back(std::move(vector));
  }
  return result;
}

Bundles::Bundles(const Function& function, const MachineValues& values, const AllocationOptions& options)
    : function_(function), values_(values), bundle_of_(function.values.size(), UINT32_MAX),
      offset_(function.values.size()) {
  for (ValueId value : function.values.ids()) {
    if (!values.in_register(value) || values.ranges(value).empty()) continue;
    Bundle bundle;
    bundle.members.push_back({value, 0});
    uint32_t units = values.units(value);
    bundle.lanes.assign(units, {values.ranges(value).begin(), values.ranges(value).end()});
    bundle.alignment = std::min(std::bit_ceil(units), 4u);
    bundle.predicates = values.is_predicate(value);
    bundle_of_[value.index()] = static_cast<uint32_t>(bundles_.size());
    bundles_.push_back(std::move(bundle));
  }
  if (options.keep_names) join_names();
  join_guarded();
  ControlFlow flow(function);
  DominatorTree dominators(function, flow);
  LoopForest loops(function, flow, dominators);
  // Process inner loops first, as copies there cost most.
  std::vector<BlockId> blocks = flow.reverse_postorder();
  std::stable_sort(blocks.begin(), blocks.end(), [&](BlockId a, BlockId b) { return loops.depth(a) > loops.depth(b); });
  join_edges(blocks);
  join_vectors();
  join_halves();
  join_copies();
}

bool Bundles::aligned_alike(const Bundle& a, const Bundle& b, int shift, uint32_t& alignment, uint32_t& phase) const {
  int phase_b = static_cast<int>(b.phase) + shift;
  const int difference = static_cast<int>(a.phase) - phase_b;
  int smaller = static_cast<int>(std::min(a.alignment, b.alignment));
  if (difference % smaller != 0) return false;
  alignment = std::max(a.alignment, b.alignment);
  int wanted = a.alignment >= b.alignment ? static_cast<int>(a.phase) : phase_b;
  int modulus = static_cast<int>(alignment);
  phase = static_cast<uint32_t>((wanted % modulus + modulus) % modulus);
  return true;
}

bool Bundles::join(ValueId value_a, ValueId value_b, int distance, uint32_t longest) {
  uint32_t index_a = bundle_of(value_a), index_b = bundle_of(value_b);
  if (index_a == UINT32_MAX || index_b == UINT32_MAX) return false;
  // The offset of b's bundle relative to a's.
  int shift = static_cast<int>(offset_of(value_a)) + distance - static_cast<int>(offset_of(value_b));
  if (index_a == index_b) return shift == 0;
  if (bundles_[index_a].members.size() < bundles_[index_b].members.size()) {
    std::swap(index_a, index_b);
    shift = -shift;
  }
  Bundle& a = bundles_[index_a];
  Bundle& b = bundles_[index_b];
  if (a.predicates != b.predicates) return false;
  int first = std::min(0, shift);
  int end = std::max(static_cast<int>(a.lanes.size()), shift + static_cast<int>(b.lanes.size()));
  if (static_cast<size_t>(end - first) > std::max({a.lanes.size(), b.lanes.size(), size_t{longest}})) return false;
  uint32_t alignment, phase;
  if (!aligned_alike(a, b, shift, alignment, phase)) return false;
  for (size_t lane = 0; lane < b.lanes.size(); ++lane) {
    int at = shift + static_cast<int>(lane);
    if (at >= 0 && at < static_cast<int>(a.lanes.size()) && overlap(a.lanes[static_cast<size_t>(at)], b.lanes[lane]))
      return false;
  }
  uint32_t moved = static_cast<uint32_t>(-first); // shifts the members of a
  if (moved > 0) {
    a.lanes.insert(a.lanes.begin(), moved, {});
    for (Bundle::Member& member : a.members) {
      member.offset += moved;
      offset_[member.value.index()] = member.offset;
    }
  }
  a.lanes.resize(static_cast<size_t>(end - first));
  a.alignment = alignment;
  a.phase = (phase + moved) % alignment;
  uint32_t start = static_cast<uint32_t>(shift - first);
  for (size_t lane = 0; lane < b.lanes.size(); ++lane)
    merge_ranges(a.lanes[start + lane], b.lanes[lane]);
  for (const Bundle::Member& member : b.members) {
    a.members.push_back({member.value, member.offset + start});
    bundle_of_[member.value.index()] = index_a;
    offset_[member.value.index()] = member.offset + start;
  }
  b.members.clear();
  b.lanes.clear();
  return true;
}

bool Bundles::align(ValueId value, uint32_t alignment) {
  uint32_t index = bundle_of(value);
  if (index == UINT32_MAX) return false;
  Bundle& bundle = bundles_[index];
  Bundle wish;
  wish.alignment = alignment;
  wish.phase = offset_of(value) % alignment;
  return aligned_alike(bundle, wish, 0, bundle.alignment, bundle.phase);
}

// Joins values that have the same register in the text.
void Bundles::join_names() {
  std::map<std::pair<uint32_t, uint32_t>, ValueId> first;
  for (ValueId value : function_.values.ids()) {
    const Value& row = function_.values[value];
    if (bundle_of(value) == UINT32_MAX || !row.name) continue;
    auto [place, fresh] = first.try_emplace({row.name.index(), row.number}, value);
    if (fresh || join(place->second, value, 0, 0)) continue;
    for (const Bundle::Member& member : bundles_[bundle_of(place->second)].members)
      if (overlap(values_.ranges(member.value), values_.ranges(value))) clashes_.push_back({member.value, value});
  }
}

// Gives both values one register. If that fails, reserves the destination's register during the reads of the
// instruction, because the old value is copied there before the instruction.
void Bundles::keep_in_place(InstructionId id, ValueId old, ValueId destination) {
  uint32_t index = bundle_of(destination);
  if (index == UINT32_MAX || function_.values[old].is_undefined) return;
  std::span<const ValueId> parts = values_.stands_for(old);
  if (parts.size() == 1 && values_.units(parts[0]) == values_.units(destination) && join(destination, parts[0], 0, 0))
    return;
  LiveRange moved{2 * values_.index_of(id), 2 * values_.index_of(id) + 1};
  for (uint32_t unit = 0; unit < values_.units(destination); ++unit)
    merge_ranges(bundles_[index].lanes[offset_of(destination) + unit], std::span(&moved, 1));
}

// Joins the old values of guarded instructions with their destinations.
void Bundles::join_guarded() {
  for (BlockId block : function_.layout)
    for (InstructionId id : function_.instructions_in(block)) {
      if (!function_.keeps_old_values(id)) continue;
      std::vector<ValueId> definitions;
      for_each_definition(function_, id, [&](ValueId value) { definitions.push_back(value); });
      size_t next = 0;
      for (const Operand& operand : function_.operands_of(id))
        if (operand.is(OperandKind::value) && operand.has(OperandFlag::old_value) && next < definitions.size()) {
          keep_in_place(id, operand.as_value(), definitions[next]);
          ++next;
        }
    }
}

void Bundles::join_edges(const std::vector<BlockId>& blocks) {
  for (BlockId block : blocks)
    for (EdgeId edge : function_.successors(block)) {
      std::span<const ValueId> parameters = function_.parameters(function_.edges[edge].to);
      for (size_t i = 0; i < parameters.size(); ++i) {
        std::span<const ValueId> parts = values_.stands_for(function_.arguments(edge)[i]);
        if (parts.size() == 1 && values_.units(parts[0]) == values_.units(parameters[i]))
          join(parameters[i], parts[0], 0, 0);
      }
    }
}

void Bundles::join_vector(const VectorOperand& vector) {
  ValueId first;
  uint32_t first_offset = 0;
  for (const VectorOperand::Element& element : vector.elements) {
    if (!element.value || bundle_of(element.value) == UINT32_MAX) continue;
    if (first) {
      join(first, element.value, static_cast<int>(element.offset) - static_cast<int>(first_offset), vector.registers);
      continue;
    }
    Bundle& bundle = bundles_[bundle_of(element.value)];
    // The group's start is aligned; convert this to the phase of its first element.
    Bundle wish;
    wish.alignment = vector.alignment;
    uint32_t back = element.offset % vector.alignment;
    wish.phase = (offset_of(element.value) + vector.alignment - back) % vector.alignment;
    if (!aligned_alike(bundle, wish, 0, bundle.alignment, bundle.phase)) return;
    first = element.value;
    first_offset = element.offset;
  }
}

void Bundles::join_vectors() {
  // Loaded vectors first, because a load needs consecutive registers; stored vectors can be assembled by copies.
  for (bool definition : {true, false})
    for (BlockId block : function_.layout)
      for (InstructionId id : function_.instructions_in(block))
        for (const VectorOperand& vector : vector_operands(function_, values_, id))
          if (vector.definition == definition) join_vector(vector);
}

// Joins the halves of mov.b64 that splits or assembles a pair.
void Bundles::join_halves() {
  for (BlockId block : function_.layout)
    for (InstructionId id : function_.instructions_in(block)) {
      if (!function_.is_opcode(id, Opcode::mov)) continue;
      std::span<const Operand> operands = function_.operands_of(id);
      ValueId whole;
      std::vector<ValueId> parts;
      for (size_t i = 0; i < operands.size(); i = next_sibling(operands, i)) {
        if (operands[i].is(OperandKind::vector)) {
          for (size_t k = i + 1; k <= i + operands[i].group_size(); ++k)
            parts.push_back(operands[k].is(OperandKind::value) ? operands[k].as_value() : ValueId());
        } else if (operands[i].is(OperandKind::value) && !operands[i].has(OperandFlag::old_value)) {
          whole = operands[i].as_value();
        }
      }
      if (!whole || parts.empty()) continue;
      int offset = 0;
      for (ValueId part : parts) {
        if (!part) {
          offset += static_cast<int>(values_.units(whole) / parts.size());
          continue;
        }
        join(whole, part, offset, 0);
        offset += static_cast<int>(values_.units(part));
      }
    }
}

// Joins guarded copies, and copies between values that need a register for other reasons.
void Bundles::join_copies() {
  for (BlockId block : function_.layout)
    for (InstructionId id : function_.instructions_in(block)) {
      if (!function_.is_opcode(id, Opcode::mov) && !function_.is_opcode(id, Opcode::cvta)) continue;
      std::span<const Operand> operands = function_.operands_of(id);
      if (operands.size() < 2 || !operands[0].is(OperandKind::value) || !operands[1].is(OperandKind::value)) continue;
      std::span<const ValueId> parts = values_.stands_for(operands[1].as_value());
      ValueId copy = operands[0].as_value();
      if (parts.size() == 1 && values_.units(parts[0]) == values_.units(copy)) join(copy, parts[0], 0, 0);
    }
}

} // namespace ptxrewrite::ir
