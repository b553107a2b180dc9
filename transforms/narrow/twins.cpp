#include "transforms/narrow/twins.h"

#include "ir/core/insertion.h"
#include "ir/core/module.h"

#include <algorithm>

namespace ptxrewrite::transforms {

namespace {

using ir::InstructionId;
using ir::Operand;
using ir::OperandKind;
using ir::Operation;
using ir::ValueId;

constexpr unsigned most_depth = 200; // of nested operands: deeper ones are extracted

bool is_64_bit_register(const ir::Function& function, const Operand& operand) {
  if (!operand.is(OperandKind::value) || operand.selector != ir::no_selector || operand.has(ir::OperandFlag::negated))
    return false;
  const ir::Value& value = function.values[operand.as_value()];
  return ir::bit_width(value.type) == 64 && !ir::is_float(value.type) && value.vector_width == 1 &&
         value.register_class == ir::RegisterClass::general;
}

bool is_32_bit_operand(const ir::Function& function, const Operand& operand) {
  if (operand.is(OperandKind::integer)) return true;
  if (!operand.is(OperandKind::value) || operand.selector != ir::no_selector || operand.has(ir::OperandFlag::negated))
    return false;
  const ir::Value& value = function.values[operand.as_value()];
  return ir::bit_width(value.type) == 32 && value.vector_width == 1;
}

// The 32-bit instruction that computes the low half of this one's result from low halves; nullptr if there is none.
const char* low_half_mnemonic(const ir::Form& form) {
  const bool wide = form.has(ir::Modifier::wide);
  if (form.opaque || form.has(ir::Modifier::sat) || form.has(ir::Modifier::hi) || form.effects.reads_carry ||
      form.effects.writes_carry || ir::bit_width(form.type()) != (wide ? 32u : 64u) ||
      (!ir::is_integer(form.type()) && !ir::is_bit_type(form.type())))
    return nullptr;
  switch (form.operation) {
  case Operation::copy:
    return "mov.b32";
  case Operation::add:
    return "add.s32";
  case Operation::subtract:
    return "sub.s32";
  case Operation::negate:
    return "neg.s32";
  case Operation::multiply:
    return "mul.lo.s32";
  case Operation::multiply_add:
    return "mad.lo.s32";
  case Operation::bit_and:
    return "and.b32";
  case Operation::bit_or:
    return "or.b32";
  case Operation::bit_xor:
    return "xor.b32";
  case Operation::complement:
    return "not.b32";
  case Operation::shift_left:
    return "shl.b32"; // the low half of a shift by 32 or more is 0, as in a 32-bit shift
  case Operation::select:
    return form.opcode == ir::Opcode::selp ? "selp.b32" : nullptr;
  case Operation::convert:
  case Operation::none:
  case Operation::convert_address:
  case Operation::absolute:
  case Operation::multiply_24:
  case Operation::multiply_add_24:
  case Operation::divide:
  case Operation::remainder:
  case Operation::minimum:
  case Operation::maximum:
  case Operation::logic_of_three:
  case Operation::shift_right:
  case Operation::compare:
    break;
  }
  return nullptr;
}

// cvt.u64.u32, cvt.s64.s32: the source is the low half.
bool extends_32_bits(const ir::Form& form) {
  return form.opcode == ir::Opcode::cvt && !form.opaque && !form.has(ir::Modifier::sat) &&
         (ir::is_integer(form.type()) || ir::is_bit_type(form.type())) && ir::bit_width(form.type()) == 64 &&
         ir::is_integer(form.type(1)) && ir::bit_width(form.type(1)) == 32;
}

// Truncations: cvt.u32.u64 and the like.
bool cuts_64_bits(const ir::Form& form) {
  return form.opcode == ir::Opcode::cvt && !form.opaque && !form.has(ir::Modifier::sat) &&
         ir::is_integer(form.type()) && ir::bit_width(form.type()) <= 32 && ir::is_integer(form.type(1)) &&
         ir::bit_width(form.type(1)) == 64;
}

bool has_plain_operands(const ir::Function& function, InstructionId id, const ir::Form& form) {
  const std::span<const Operand> operands = function.operands_of(id);
  if (operands.size() < 2 || !is_64_bit_register(function, operands[0]) || !operands[0].is_definition()) return false;
  const bool wide = form.has(ir::Modifier::wide);
  for (size_t i = 1; i < operands.size(); ++i) {
    const Operand& operand = operands[i];
    if (operand.is_definition()) return false;
    const bool small = (form.operation == Operation::shift_left && i == 2) || (wide && i < 3);
    if (form.operation == Operation::select && i == 3) continue;
    if (small ? !is_32_bit_operand(function, operand)
              : !operand.is(OperandKind::integer) && !is_64_bit_register(function, operand))
      return false;
  }
  return true;
}

} // namespace

bool keeps_low_halves(const ir::Function& function, InstructionId id) {
  const ir::Instruction& instruction = function.instructions[id];
  if (instruction.kind != ir::InstructionKind::real || instruction.guard) return false;
  const ir::Form& form = function.form_of(id);
  const std::span<const Operand> operands = function.operands_of(id);
  if (cuts_64_bits(form)) // has no 64-bit result
    return operands.size() == 2 && ir::bit_width(function.values[operands[0].as_value()].type) <= 32;
  if (extends_32_bits(form))
    return operands.size() == 2 && is_64_bit_register(function, operands[0]) &&
           is_32_bit_operand(function, operands[1]) && operands[1].is(OperandKind::value);
  return low_half_mnemonic(form) && has_plain_operands(function, id, form);
}

Operand Twins::low_half(const Operand& operand) {
  if (operand.is(OperandKind::integer))
    return Operand::integer(static_cast<int32_t>(static_cast<uint64_t>(operand.immediate)));
  return Operand::value(make(operand.as_value()));
}

ValueId Twins::make(ValueId value) {
  if (auto found = made_.find(value); found != made_.end()) return found->second;
  const ir::DefinitionSite& site = def_use_.definition(value);
  const bool stays = whole_.contains(value) || depth_ >= most_depth;
  if (site.is_parameter() && !stays) return make_parameter(value, site);
  if (site.instruction && keeps_low_halves(function_, site.instruction)) {
    const ir::Form& form = function_.form_of(site.instruction);
    if (extends_32_bits(form)) {
      const ValueId source = function_.operands_of(site.instruction)[1].as_value();
      if (function_.values[source].type == ir::ScalarType::b32) return made_[value] = source;
      // Block parameters take arguments of their own type only: a register declared as .u32 is copied.
      ir::Builder builder(function_);
      builder.after(site.instruction).standing_for(site.instruction);
      return made_[value] = builder.emit_value("mov.b32", ir::ScalarType::b32, {Operand::value(source)}, "%r");
    }
    if (!stays) return make_instruction(value, site.instruction);
  }
  return cut(value);
}

ValueId Twins::cut(ValueId value) {
  const ir::DefinitionSite& site = def_use_.definition(value);
  ir::Builder builder(function_);
  if (site.is_parameter() || !site.instruction) {
    builder = site.is_parameter() ? ir::builder_at_start(function_, site.block) : ir::builder_at_code_start(function_);
  } else {
    builder.after(site.instruction).standing_for(site.instruction);
  }
  return made_[value] = builder.emit_value("cvt.u32.u64", ir::ScalarType::b32, {Operand::value(value)}, "%r");
}

ValueId Twins::make_parameter(ValueId value, const ir::DefinitionSite& site) {
  ir::Value row;
  row.type = ir::ScalarType::b32;
  row.name = function_.module().intern("%r");
  const ValueId twin = function_.add_value(row);
  made_[value] = twin; // set before the arguments are visited, because loops lead back to this value
  std::vector<ValueId> parameters(function_.parameters(site.block).begin(), function_.parameters(site.block).end());
  const size_t place = parameters.size();
  parameters.push_back(twin);
  function_.set_parameters(site.block, parameters);
  auto set_argument = [&](ir::EdgeId edge, ValueId argument) {
    std::vector<ValueId> arguments(function_.arguments(edge).begin(), function_.arguments(edge).end());
    arguments.resize(std::max(arguments.size(), place + 1));
    arguments[place] = argument;
    function_.set_arguments(edge, arguments);
  };
  // Adds a placeholder for each edge first, because arguments may add parameters to this block, too.
  for (ir::EdgeId edge : flow_.predecessors(site.block))
    set_argument(edge, twin);
  ++depth_;
  for (ir::EdgeId edge : flow_.predecessors(site.block))
    set_argument(edge, make(function_.arguments(edge)[site.parameter]));
  --depth_;
  return twin;
}

ValueId Twins::make_instruction(ValueId value, InstructionId id) {
  const ir::Form& form = function_.form_of(id);
  const std::vector<Operand> operands(function_.operands_of(id).begin(), function_.operands_of(id).end());
  const ValueId twin = ir::Builder(function_).new_value(ir::ScalarType::b32, "%r");
  made_[value] = twin; // set before the operands are visited, because loops lead back to this value
  std::vector<Operand> halves{Operand::definition(twin)};
  ++depth_;
  for (size_t i = 1; i < operands.size(); ++i) {
    const bool is_whole =
        is_64_bit_register(function_, operands[i]) ||
        (operands[i].is(OperandKind::integer) && !(form.operation == Operation::shift_left && i == 2));
    halves.push_back(is_whole ? low_half(operands[i]) : operands[i]);
  }
  --depth_;
  ir::Builder builder(function_);
  builder.after(id).standing_for(id).emit(low_half_mnemonic(form), halves);
  return twin;
}

void Twins::replace_truncations() {
  std::vector<std::pair<InstructionId, ValueId>> found;
  for (ir::BlockId block : flow_.reverse_postorder())
    for (InstructionId id : function_.instructions_in(block)) {
      if (function_.instructions[id].kind != ir::InstructionKind::real || function_.instructions[id].guard) continue;
      const std::span<const Operand> operands = function_.operands_of(id);
      const ir::Form& form = function_.form_of(id);
      if (!cuts_64_bits(form) || operands.size() != 2 || !is_64_bit_register(function_, operands[1]) ||
          !is_32_bit_operand(function_, operands[0]) || whole_.contains(operands[1].as_value()))
        continue;
      const auto twin = made_.find(operands[1].as_value());
      // A low half that was extracted here is such a truncation itself.
      if (twin != made_.end() && twin->second != operands[0].as_value()) found.emplace_back(id, twin->second);
    }
  for (const auto& [id, twin] : found) {
    const Operand result = function_.operands_of(id)[0];
    ir::Builder(function_).before(id).standing_for(id).emit("mov.b32", {result, Operand::value(twin)});
    function_.remove(id);
  }
}

} // namespace ptxrewrite::transforms
