#include "tests/paper/gt200.h"

#include "ir/isa/isa.h"

#include <algorithm>
#include <bit>
#include <optional>

namespace ptxrewrite::tests {
namespace {

using ir::Form;
using ir::InstructionClass;
using ir::InstructionId;
using ir::Modifier;
using ir::Opcode;
using ir::Operand;
using ir::OperandKind;
using ir::ValueId;

// Places of definitions and uses of registers, in a function in any state.
struct Registers {
  std::vector<uint32_t> writes, reads;
  std::vector<InstructionId> writer, reader; // the last one

  explicit Registers(const ir::Function& function)
      : writes(function.values.size()), reads(writes), writer(writes.size()), reader(writes.size()) {
    for (ir::BlockId block : function.layout) {
      for (InstructionId id : function.instructions_in(block)) {
        ir::for_each_definition(function, id, [&](ValueId value) {
          ++writes[value.index()];
          writer[value.index()] = id;
        });
        ir::for_each_use(function, id, [&](ValueId value) {
          ++reads[value.index()];
          reader[value.index()] = id;
        });
      }
      for (ir::EdgeId edge : function.successors(block))
        for (ValueId value : function.arguments(edge))
          reads[value.index()] += 2;
    }
  }
  // The only instruction that writes the register.
  InstructionId definition(const Operand& operand) const {
    if (!operand.is(OperandKind::value)) return {};
    const uint32_t index = operand.as_value().index();
    return writes[index] == 1 ? writer[index] : InstructionId();
  }
};

constexpr unsigned multiplier_bits = 24;

std::vector<Operand> sources_of(const ir::Function& function, InstructionId id) {
  std::vector<Operand> sources;
  for (const Operand& operand : function.operands_of(id))
    if (!operand.is_definition() && !operand.is_group() && !operand.has(ir::OperandFlag::old_value))
      sources.push_back(operand);
  return sources;
}

bool is_literal(const Operand& operand, int64_t least, int64_t most) {
  return operand.is(OperandKind::integer) && operand.immediate >= least && operand.immediate <= most;
}

// Whether a factor has 24 bits for whoever compiles for the machine: its grids have at most 65,535 blocks a side.
bool has_24_bits(const ir::Function& function, const Registers& registers, const Operand& factor) {
  constexpr int64_t limit = int64_t(1) << (multiplier_bits - 1);
  if (factor.is(OperandKind::integer)) return is_literal(factor, -limit, limit - 1);
  if (factor.is(OperandKind::special_register)) return true;
  const InstructionId id = registers.definition(factor);
  if (!id || function.instructions[id].kind != ir::InstructionKind::real || function.instructions[id].guard)
    return false;
  const Form& form = function.form_of(id);
  const std::vector<Operand> sources = sources_of(function, id);
  if (sources.empty()) return false;
  switch (form.opcode) {
  case Opcode::mov:
    return has_24_bits(function, registers, sources[0]);
  case Opcode::and_:
    return std::ranges::any_of(sources, [&](const Operand& operand) { return is_literal(operand, 0, limit - 1); });
  case Opcode::shr:
    return is_literal(sources.back(), 32 - multiplier_bits + (form.type() != ir::ScalarType::s32), 31);
  case Opcode::ld:
  case Opcode::cvt:
    return ir::bit_width(form.types.back()) <= 16 && !ir::is_float(form.types.back());
  default:
    return false;
  }
}

bool is_product_of_32_bits(const Form& form) {
  return (form.opcode == Opcode::mul || form.opcode == Opcode::mad) && !ir::is_float(form.type()) &&
         ir::bit_width(form.type()) == 32 && !form.has(Modifier::hi);
}

bool is_power_of_two(const Operand& operand) {
  return operand.is(OperandKind::integer) && operand.immediate > 0 &&
         std::has_single_bit(static_cast<uint64_t>(operand.immediate));
}

bool is_split(const ir::Function& function, const Registers& registers, InstructionId id) {
  const Form& form = function.form_of(id);
  const bool is_in_composite = form.extension && form.mnemonic.starts_with("crf.mul.lo");
  if (!is_in_composite && !is_product_of_32_bits(form)) return false;
  const std::vector<Operand> sources = sources_of(function, id);
  if (sources.size() < 2 || is_power_of_two(sources[0]) || is_power_of_two(sources[1])) return false;
  return !has_24_bits(function, registers, sources[0]) || !has_24_bits(function, registers, sources[1]);
}

bool takes_shared_operand(const Form& form) {
  switch (form.kind) {
  case InstructionClass::integer:
  case InstructionClass::floating_point:
  case InstructionClass::comparison:
  case InstructionClass::logic:
  case InstructionClass::shift:
  case InstructionClass::selection:
  case InstructionClass::extension:
    return ir::bit_width(form.type()) == 32 || form.extension;
  default:
    return false;
  }
}

bool is_shared_load(const ir::Function& function, InstructionId id) {
  const ir::Instruction& row = function.instructions[id];
  if (row.kind != ir::InstructionKind::real || row.guard) return false;
  const Form& form = function.form_of(id);
  return form.opcode == Opcode::ld && ir::is_shared(form.space) && ir::bit_width(form.type()) == 32 &&
         form.definitions == 1 && !form.effects.volatile_result && !form.effects.atomic &&
         function.operands_of(id)[0].is(OperandKind::value);
}

// Nothing between the two may change shared memory.
bool may_be_read_later(const ir::Function& function, InstructionId load, InstructionId reader) {
  for (InstructionId id = function.instructions[load].next; id; id = function.instructions[id].next) {
    if (id == reader) return true;
    if (function.instructions[id].kind != ir::InstructionKind::real) continue;
    const ir::Effects& effects = function.form_of(id).effects;
    if (effects.barrier || effects.writes_memory || effects.call || effects.atomic) return false;
  }
  return false;
}

bool is_in_memory(const ir::Function& function, const Registers& registers, const Operand& operand) {
  const InstructionId id = registers.definition(operand);
  if (!id || function.instructions[id].kind != ir::InstructionKind::real) return false;
  const Form& form = function.form_of(id);
  return form.opcode == Opcode::ld && (ir::is_param(form.space) || form.space == ir::StateSpace::constant);
}

// The instruction of which the load could be an operand.
InstructionId reader_of_load(const ir::Function& function, const Registers& registers, InstructionId load) {
  if (!is_shared_load(function, load)) return {};
  const uint32_t result = function.operands_of(load)[0].as_value().index();
  const InstructionId reader = registers.reader[result];
  if (registers.writes[result] != 1 || registers.reads[result] != 1 || !reader ||
      function.instructions[reader].kind != ir::InstructionKind::real ||
      !takes_shared_operand(function.form_of(reader)) || !may_be_read_later(function, load, reader))
    return {};
  for (const Operand& source : sources_of(function, reader))
    if (is_in_memory(function, registers, source)) return {}; // one operand of an instruction is in memory
  return reader;
}

} // namespace

std::vector<Gt200::Change> Gt200::changes_in(const ir::Function& function) const {
  const Registers registers(function);
  std::vector<Change> changes(function.instructions.size());
  std::vector<bool> has_shared_operand(function.instructions.size());
  for (ir::BlockId block : function.layout)
    for (InstructionId id : function.instructions_in(block)) {
      if (function.instructions[id].kind != ir::InstructionKind::real) continue;
      Change& change = changes[id.index()];
      if (facts_.split_products) change.is_split_product = is_split(function, registers, id);
      if (!facts_.shared_operands) continue;
      const InstructionId reader = reader_of_load(function, registers, id);
      if (!reader || has_shared_operand[reader.index()]) continue;
      has_shared_operand[reader.index()] = true;
      change.is_shared_operand = true;
    }
  return changes;
}

uint64_t Gt200::operator()(const ir::Function& function, InstructionId id, uint64_t weight) {
  auto [place, is_new] = known_.try_emplace(&function);
  if (is_new) place->second = changes_in(function);
  const Change& change = place->second[id.index()];
  if (change.is_shared_operand) return 0;
  if (!change.is_split_product || (!facts_.split_in_composites && function.form_of(id).extension)) return weight;
  constexpr uint64_t more_of_product = 3;
  return weight + more_of_product;
}

} // namespace ptxrewrite::tests
