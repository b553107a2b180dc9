#include "ir/core/function.h"

#include "ir/core/module.h"

#include <algorithm>
#include <atomic>

namespace ptxrewrite::ir {

uint64_t Function::version() const {
  static std::atomic<uint64_t> last{0};
  if (version_ == 0) version_ = ++last;
  return version_;
}

OwnedFunction::OwnedFunction(std::unique_ptr<Function> function) : function_(std::move(function)) {}
OwnedFunction::OwnedFunction(const OwnedFunction& other)
    : function_(other.function_ ? std::make_unique<Function>(*other.function_) : nullptr) {}
OwnedFunction::OwnedFunction(OwnedFunction&& other) noexcept = default;
OwnedFunction& OwnedFunction::operator=(OwnedFunction other) noexcept {
  function_ = std::move(other.function_);
  return *this;
}
OwnedFunction::~OwnedFunction() = default;

std::string Function::value_name(ValueId id) const {
  const Value& value = values[id];
  std::string name(module_->text(value.name));
  if (is_queue(value.register_class)) return name + "(" + std::to_string(value.number) + ")";
  if (value.number != Value::no_number) name += std::to_string(value.number);
  if (name.empty()) name = "%v" + std::to_string(id.index());
  return name;
}

std::string Function::block_name(BlockId id) const {
  Symbol label = blocks[id].label;
  return label ? std::string(module_->text(label)) : "$B" + std::to_string(id.index());
}

bool Function::keeps_old_values(InstructionId id) const {
  const Instruction& instruction = instructions[id];
  if (instruction.guard) return true;
  return instruction.kind == InstructionKind::real && form_of(id).opcode == Opcode::wgmma;
}

InstructionId Function::terminator(BlockId block) const {
  InstructionId id = blocks[block].last;
  while (id && instructions[id].kind != InstructionKind::real)
    id = instructions[id].previous;
  if (!id) return {};
  const Form& form = form_of(id);
  if (form.opaque) { // assumed to have every effect, but only one that names labels can branch
    for (const Operand& operand : operands_of(id))
      if (operand.is(OperandKind::block) || operand.is(OperandKind::label_table)) return id;
    return {};
  }
  return form.effects.branch || form.effects.terminates ? id : InstructionId();
}

ValueId Function::add_value(Value value) {
  changed();
  return values.add(value);
}

BlockId Function::add_block(Symbol label) {
  changed();
  Block block;
  block.label = label;
  return blocks.add(block);
}

void Function::place_block(BlockId block) {
  changed();
  assert(!blocks[block].in_layout);
  blocks[block].in_layout = true;
  layout.push_back(block);
}

void Function::place_block_before(BlockId block, BlockId position) {
  changed();
  assert(!blocks[block].in_layout);
  blocks[block].in_layout = true;
  layout.insert(std::find(layout.begin(), layout.end(), position), block);
}

void Function::remove_block(BlockId block) {
  changed();
  for (InstructionId id : instructions_in(block))
    remove(id);
  blocks[block].in_layout = false;
  blocks[block].successors = {};
  std::erase(layout, block);
}

InstructionId Function::add_instruction(Instruction instruction, std::span<const Operand> operand_list) {
  changed();
  instruction.operands = operands.add(operand_list);
  instruction.previous = instruction.next = InstructionId();
  instruction.block = BlockId();
  return instructions.add(instruction);
}

void Function::link(InstructionId instruction, BlockId block, InstructionId previous, InstructionId next) {
  changed();
  Instruction& row = instructions[instruction];
  assert(!row.block);
  row.block = block;
  row.previous = previous;
  row.next = next;
  (previous ? instructions[previous].next : blocks[block].first) = instruction;
  (next ? instructions[next].previous : blocks[block].last) = instruction;
}

void Function::append(BlockId block, InstructionId instruction) {
  link(instruction, block, blocks[block].last, InstructionId());
}

void Function::insert_before(InstructionId position, InstructionId instruction) {
  link(instruction, instructions[position].block, instructions[position].previous, position);
}

void Function::insert_after(InstructionId position, InstructionId instruction) {
  link(instruction, instructions[position].block, position, instructions[position].next);
}

void Function::remove(InstructionId instruction) {
  changed();
  Instruction& row = instructions[instruction];
  assert(row.block);
  (row.previous ? instructions[row.previous].next : blocks[row.block].first) = row.next;
  (row.next ? instructions[row.next].previous : blocks[row.block].last) = row.previous;
  row.block = BlockId();
  row.previous = row.next = InstructionId();
}

void Function::set_operands(InstructionId instruction, std::span<const Operand> operand_list) {
  changed();
  PoolSpan& span = instructions[instruction].operands;
  if (operand_list.size() <= span.count) {
    std::copy(operand_list.begin(), operand_list.end(), operands.view(span).begin());
    span.count = static_cast<uint32_t>(operand_list.size());
  } else {
    span = operands.add(operand_list);
  }
}

EdgeId Function::add_edge(BlockId from, BlockId to, std::span<const ValueId> argument_list) {
  changed();
  return edges.add(Edge{from, to, value_lists.add(argument_list)});
}

void Function::set_successors(BlockId block, std::span<const EdgeId> edge_list, bool falls_through) {
  changed();
  blocks[block].successors = edge_lists.add(edge_list);
  blocks[block].falls_through = falls_through;
}

void Function::set_parameters(BlockId block, std::span<const ValueId> value_list) {
  changed();
  blocks[block].parameters = value_lists.add(value_list);
}

void Function::set_arguments(EdgeId edge, std::span<const ValueId> value_list) {
  changed();
  edges[edge].arguments = value_lists.add(value_list);
}

} // namespace ptxrewrite::ir
