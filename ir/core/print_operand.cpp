#include "ir/core/print_operand.h"

#include <algorithm>
#include <charconv>

namespace ptxrewrite::ir {

namespace {

void append_hexadecimal(std::string& out, uint64_t bits, int digits) {
  static constexpr char digit[] = "0123456789ABCDEF";
  for (int shift = (digits - 1) * 4; shift >= 0; shift -= 4)
    out += digit[bits >> shift & 15];
}

} // namespace

void append_number(std::string& out, uint64_t number) {
  char buffer[20];
  auto end = std::to_chars(buffer, buffer + sizeof buffer, number).ptr;
  out.append(buffer, static_cast<size_t>(end - buffer));
}

void append_signed(std::string& out, int64_t number) {
  char buffer[20];
  auto end = std::to_chars(buffer, buffer + sizeof buffer, number).ptr;
  out.append(buffer, static_cast<size_t>(end - buffer));
}

void append_value(std::string& out, const Function& function, ValueId id, bool numbered) {
  const Value& value = function.values[id];
  if (is_queue(value.register_class)) {
    (out += function.module().text(value.name)) += '(';
    append_number(out, value.number);
    out += ')';
    return;
  }
  const bool with_id = numbered && value.register_class == RegisterClass::general;
  if (value.name && value.number != Value::no_number && !with_id) {
    // Nearly all: appended at once.
    const std::string_view stem = function.module().text(value.name);
    char buffer[40];
    if (stem.size() + 20 <= sizeof buffer) {
      char* end = std::copy(stem.begin(), stem.end(), buffer);
      end = std::to_chars(end, buffer + sizeof buffer, value.number).ptr;
      out.append(buffer, static_cast<size_t>(end - buffer));
      return;
    }
  }
  if (value.name)
    out += function.module().text(value.name);
  else
    out += "%v";
  if (value.number != Value::no_number) append_number(out, value.number);
  if (with_id) {
    out += '.';
    append_number(out, id.index());
  } else if (!value.name) {
    append_number(out, id.index());
  }
}

void append_block(std::string& out, const Function& function, BlockId id) {
  if (Symbol label = function.blocks[id].label) {
    out += function.module().text(label);
  } else {
    out += "$B";
    append_number(out, id.index());
  }
}

void append_selector(std::string& out, Selector selector) {
  unsigned kind = selector >> 14;
  if (kind == 0) return;
  out += '.';
  if (kind == 1) {
    out += (selector & 0x800 ? "rgba" : "xyzw")[selector & 3];
    return;
  }
  out += kind == 2 ? 'b' : 'h';
  unsigned digits = (selector >> 12 & 3) + 1;
  for (unsigned i = 0; i < digits; ++i)
    out += static_cast<char>('0' + (selector >> (3 * (digits - 1 - i)) & 7));
}

size_t OperandPrinter::print(std::span<const Operand> operands, size_t index) {
  const Operand& operand = operands[index];
  size_t end = next_sibling(operands, index);
  switch (operand.kind) {
  case OperandKind::vector:
    if (operand.has(OperandFlag::negated)) out_ += '-';
    out_ += '{';
    print_list(operands, index + 1, end, ", ");
    out_ += '}';
    break;
  case OperandKind::list:
    out_ += '(';
    print_list(operands, index + 1, end, ", ");
    out_ += ')';
    break;
  case OperandKind::address:
    print_address(operands, index);
    break;
  case OperandKind::pair:
    print_pair(operands, index);
    break;
  default:
    print_scalar(operand);
    break;
  }
  return end;
}

void OperandPrinter::print_list(std::span<const Operand> operands, size_t begin, size_t end,
                                std::string_view separator) {
  bool first = true;
  for (size_t index = begin; index < end;) {
    if (!first) out_ += separator;
    first = false;
    index = print(operands, index);
  }
}

void OperandPrinter::print_scalar(const Operand& operand) {
  switch (operand.kind) {
  case OperandKind::value:
    if (operand.has(OperandFlag::negated))
      out_ += function_->values[operand.as_value()].type == ScalarType::pred ? '!' : '-';
    append_value(out_, *function_, operand.as_value(), numbered_);
    break;
  case OperandKind::integer:
    print_integer(operand);
    break;
  case OperandKind::float32:
    out_ += "0f";
    append_hexadecimal(out_, static_cast<uint32_t>(operand.immediate), 8);
    break;
  case OperandKind::float64:
    out_ += "0d";
    append_hexadecimal(out_, static_cast<uint64_t>(operand.immediate), 16);
    break;
  case OperandKind::special_register:
    if (operand.has(OperandFlag::negated)) out_ += '!';
    out_ += info(static_cast<SpecialRegister>(operand.id)).name;
    break;
  case OperandKind::symbol:
    print_symbol(operand);
    break;
  case OperandKind::block:
    append_block(out_, *function_, operand.as_block());
    break;
  case OperandKind::label_table:
    out_ += module_.text(function_->label_tables[LabelTableId(operand.id)].label);
    break;
  case OperandKind::prototype:
    out_ += module_.text(function_->prototypes[PrototypeId(operand.id)].label);
    break;
  case OperandKind::sink:
    out_ += '_';
    break;
  default:
    out_ += module_.text(Symbol(operand.id));
    break; // text
  }
  if (operand.selector != no_selector) append_selector(out_, operand.selector);
}

void OperandPrinter::print_integer(const Operand& operand) {
  auto bits = static_cast<uint64_t>(operand.immediate);
  if (operand.has(OperandFlag::negated)) out_ += '!';
  if (operand.has(OperandFlag::hexadecimal)) {
    char buffer[18] = {'0', 'x'};
    auto end = std::to_chars(buffer + 2, buffer + sizeof buffer, bits, 16).ptr;
    out_.append(buffer, static_cast<size_t>(end - buffer));
  } else if (operand.has(OperandFlag::unsigned_literal)) {
    append_number(out_, bits);
    if (operand.immediate < 0) out_ += 'U';
  } else {
    append_signed(out_, operand.immediate);
  }
}

void OperandPrinter::append_offset(int64_t offset, bool spelled) {
  if (offset == 0 && !spelled) return;
  out_ += '+'; // also before a minus sign: PTX has [r+-4] but not [r-4]
  append_signed(out_, offset);
}

void OperandPrinter::print_symbol(const Operand& operand) {
  SymbolRef ref = operand.as_symbol();
  if (operand.has(OperandFlag::generic_address)) out_ += "generic(";
  switch (ref.kind()) {
  case SymbolRef::Kind::module_variable:
    out_ += module_.text(module_.variables[ref.variable()].name);
    break;
  case SymbolRef::Kind::local_variable:
    out_ += module_.text(function_->variables[ref.variable()].name);
    break;
  case SymbolRef::Kind::function:
    out_ += module_.text(module_.function(ref.function()).name);
    break;
  case SymbolRef::Kind::undeclared:
    out_ += module_.text(ref.name());
    break;
  }
  if (operand.has(OperandFlag::generic_address)) out_ += ')';
  append_offset(operand.immediate);
}

void OperandPrinter::print_address(std::span<const Operand> operands, size_t index) {
  const Operand& address = operands[index];
  size_t end = next_sibling(operands, index);
  bool indexed = address.has(OperandFlag::bracketed_index) && address.group_size() >= 1;
  if (indexed) {
    index = print(operands, index + 1);
    out_ += '[';
    bool first = true;
    while (index < end) {
      if (!first) out_ += '+';
      first = false;
      index = print(operands, index);
    }
    if (first)
      append_signed(out_, address.immediate);
    else
      append_offset(address.immediate, address.has(OperandFlag::spelled_offset));
    out_ += ']';
    return;
  }
  out_ += '[';
  bool hardware_base = index + 1 < end && operands[index + 1].is(OperandKind::value) &&
                       function_->values[operands[index + 1].as_value()].register_class != RegisterClass::general;
  index = index + 1 < end ? print(operands, index + 1) : end;
  bool offset_printed = false;
  while (index < end) {
    // In a hardware form a register is added to the base; otherwise the operands are coordinates.
    const Operand& part = operands[index];
    bool added = part.is(OperandKind::value) &&
                 (hardware_base || function_->values[part.as_value()].register_class == RegisterClass::coefficient);
    // The offset belongs to the base: `[%rd1+16, {%r1}]`.
    if (!added && !offset_printed) {
      append_offset(address.immediate, address.has(OperandFlag::spelled_offset));
      offset_printed = true;
    }
    out_ += added ? "+" : ", ";
    index = print(operands, index);
  }
  if (!offset_printed) append_offset(address.immediate, address.has(OperandFlag::spelled_offset));
  out_ += ']';
  if (address.has(OperandFlag::unified)) out_ += ".unified";
}

void OperandPrinter::print_pair(std::span<const Operand> operands, size_t index) {
  bool property = operands[index + 1].is(OperandKind::text);
  bool mask = operands[index + 1].is(OperandKind::integer); // in an initialiser: 0xff(x)
  index = print(operands, index + 1);
  out_ += property ? " = " : mask ? "(" : "|";
  print(operands, index);
  if (mask) out_ += ')';
}

} // namespace ptxrewrite::ir
