// Summaries of one nesting level are contiguous; all levels share one array.
#include "ir/core/operand_summary.h"

namespace ptxrewrite::ir {

namespace {

// Index of the first operand that accepts a one-element vector in place of a register; UINT32_MAX if none does.
unsigned single_vectors_from(const Form& form) {
  switch (form.opcode) {
  case Opcode::ld:
  case Opcode::ldu:
  case Opcode::st:
  case Opcode::sust:
  case Opcode::suld:
    return form.vector_width == 1 ? 0 : UINT32_MAX;
  case Opcode::mov:
    return form.vector_width == 1 && is_bit_type(form.type()) ? 0 : UINT32_MAX;
  case Opcode::mma:
    return 4; // the fragments are one-element vectors, the scales after them are not
  default:
    return UINT32_MAX;
  }
}

// `ld.global.u32 {%r1}, [%rd1];`: ptxas accepts one register in braces for the register itself, and so does the table.
void unwrap_single_vectors(const Form& form, std::span<OperandSummary> operands) {
  for (unsigned position = single_vectors_from(form); position < operands.size(); ++position)
    if (operands[position].kind == SummaryKind::vector && operands[position].elements.size() == 1 &&
        operands[position].elements[0].kind != SummaryKind::sink)
      operands[position] = OperandSummary(operands[position].elements[0]);
}

} // namespace

std::span<const OperandSummary> OperandSummaries::of(const Function& function, InstructionId instruction) {
  std::span<const Operand> operands = function.operands_of(instruction);
  while (!operands.empty() && operands.back().has(OperandFlag::old_value))
    operands = operands.first(operands.size() - 1);
  return of(function, function.form_of(instruction), operands);
}

std::span<const OperandSummary> OperandSummaries::of(const Function& function, const Form& form,
                                                     std::span<const Operand> operands) {
  function_ = &function;
  operands_ = operands;
  if (pool_.size() < operands_.size()) pool_.resize(operands_.size() * 2);
  used_ = 0;
  std::span<OperandSummary> result = range(0, operands_.size());
  unwrap_single_vectors(form, result);
  return result;
}

std::span<OperandSummary> OperandSummaries::range(size_t begin, size_t end) {
  size_t count = 0;
  for (size_t index = begin; index < end; index = next_sibling(operands_, index))
    ++count;
  std::span<OperandSummary> result(pool_.data() + used_, count);
  used_ += count;
  size_t place = 0;
  for (size_t index = begin; index < end; index = next_sibling(operands_, index))
    result[place++] = one(index);
  return result;
}

OperandSummary OperandSummaries::of_register(const Operand& operand) const {
  const Value& value = function_->values[operand.as_value()];
  OperandSummary summary;
  summary.kind = SummaryKind::register_;
  summary.type = value.type;
  summary.hardware = value.register_class != RegisterClass::general;
  unsigned selector = operand.selector >> 14;
  summary.vector_width = selector == 1 ? 1 : value.vector_width;
  summary.byte_selector = selector > 1;
  // The same flag encodes `!p` and `-x`; the type tells them apart.
  bool predicate = value.type == ScalarType::pred;
  summary.negated = predicate && operand.has(OperandFlag::negated);
  summary.minus = !predicate && operand.has(OperandFlag::negated);
  return summary;
}

OperandSummary OperandSummaries::of_address(size_t index) {
  OperandSummary summary;
  summary.kind = SummaryKind::address;
  summary.unified = operands_[index].has(OperandFlag::unified);
  size_t end = next_sibling(operands_, index), inside = index + 1;
  if (inside >= end) return summary;
  const Operand& base = operands_[inside];
  if (base.is(OperandKind::value)) {
    OperandSummary base_summary = of_register(base);
    summary.base = AddressBase::register_;
    summary.type = base_summary.type;
    summary.hardware = base_summary.hardware;
  } else {
    summary.base = base.is(OperandKind::symbol) ? AddressBase::symbol : AddressBase::immediate;
  }
  inside = next_sibling(operands_, inside);
  bool second_base = inside < end && operands_[inside].is(OperandKind::value) &&
                     (operands_[index].has(OperandFlag::bracketed_index) || summary.hardware ||
                      of_register(operands_[inside]).hardware);
  if (second_base) ++inside;
  summary.elements = range(inside, end);
  return summary;
}

OperandSummary OperandSummaries::one(size_t index) {
  const Operand& operand = operands_[index];
  OperandSummary summary;
  switch (operand.kind) {
  case OperandKind::value:
    return of_register(operand);
  case OperandKind::address:
    return of_address(index);
  case OperandKind::integer:
    summary.kind = SummaryKind::integer_immediate;
    summary.value = static_cast<uint64_t>(operand.immediate);
    break;
  case OperandKind::float32:
  case OperandKind::float64:
    summary.kind = SummaryKind::float_immediate;
    summary.type = operand.is(OperandKind::float32) ? ScalarType::f32 : ScalarType::f64;
    break;
  case OperandKind::special_register:
    if (info(SpecialRegister(operand.id)).version.empty()) { // of a hardware form: allowed in place of a register
      summary.kind = SummaryKind::register_;
      summary.type = ScalarType::b32;
      summary.hardware = true; // 64 bits wide if it is an address
      break;
    }
    summary.kind = SummaryKind::special_register;
    summary.special = static_cast<uint8_t>(operand.id);
    summary.vector_width = operand.selector == no_selector ? info(SpecialRegister(operand.id)).vector_width : 1;
    break;
  case OperandKind::symbol:
    summary.kind = SummaryKind::symbol;
    break;
  case OperandKind::block:
  case OperandKind::label_table:
  case OperandKind::prototype:
    summary.kind = SummaryKind::label;
    break;
  case OperandKind::sink:
    summary.kind = SummaryKind::sink;
    break;
  case OperandKind::text:
    summary.kind = SummaryKind::string;
    break;
  case OperandKind::vector:
    summary.kind = SummaryKind::vector;
    break;
  case OperandKind::pair:
    summary.kind = SummaryKind::predicate_pair;
    break;
  case OperandKind::list:
    summary.kind = SummaryKind::list;
    break;
  }
  if (operand.is_group()) summary.elements = range(index + 1, next_sibling(operands_, index));
  return summary;
}

} // namespace ptxrewrite::ir
