#include "transforms/memory/packing.h"

#include "ir/flow/def_use.h"

#include <algorithm>
#include <map>
#include <span>
#include <string>

namespace ptxrewrite::transforms::memory {

namespace {

using ir::Operand;
using ir::OperandKind;
using ir::ScalarType;
using ir::ValueId;

// One byte of a register.
struct Byte {
  ValueId word;
  unsigned byte = 0;
};

class BytePacker {
public:
  BytePacker(ir::Function& function, ir::Builder& builder) : function_(function), builder_(builder) {
    for (ir::BlockId block : function.layout)
      for (ir::InstructionId id : function.instructions_in(block))
        ir::for_each_definition(function, id, [&](ValueId value) { definitions_[value] = id; });
  }

  Operand pack(std::span<const Operand> elements) {
    std::vector<Byte> bytes;
    std::vector<ValueId> words;
    for (const Operand& element : elements) {
      Byte byte = source_of({element.as_value(), 0});
      byte.word = in_32_bits(byte.word);
      bytes.push_back(byte);
      if (std::ranges::find(words, byte.word) == words.end()) words.push_back(byte.word);
    }
    if (words.size() <= 2) return select(bytes, words);
    const Operand low = pair(bytes[0], bytes[1]), high = pair(bytes[2], bytes[3]);
    return permute(low, high, 0x5410);
  }

private:
  // Traces the origin of the byte through shifts by whole bytes and conversions.
  Byte source_of(Byte byte) const {
    for (unsigned steps = 0; steps < 8; ++steps) {
      auto found = definitions_.find(byte.word);
      if (found == definitions_.end()) return byte;
      const ir::Instruction& row = function_.instructions[found->second];
      if (row.kind != ir::InstructionKind::real || row.guard) return byte;
      const ir::Form& form = function_.form_of(found->second);
      const auto operands = function_.operands_of(found->second);
      if (operands.size() < 2 || !operands[0].is(OperandKind::value) || !operands[1].is(OperandKind::value) ||
          operands[1].selector != ir::no_selector || form.has(ir::Modifier::sat))
        return byte;
      const ValueId source = operands[1].as_value();
      const ir::Value& register_row = function_.values[source];
      const unsigned width = ir::bit_width(register_row.type);
      if ((width != 16 && width != 32) || register_row.vector_width != 1 || register_row.is_undefined) return byte;
      if (!look_through(form, operands, width, byte)) return byte;
      byte.word = source;
    }
    return byte;
  }

  // Is the byte one of the first source, which has `width` bits? If so, sets `byte.byte` to its index there.
  static bool look_through(const ir::Form& form, std::span<const Operand> operands, unsigned width, Byte& byte) {
    const bool has_number = operands.size() == 3 && operands[2].is(OperandKind::integer);
    if (form.operation == ir::Operation::copy) return width == ir::bit_width(form.type());
    if (form.operation == ir::Operation::convert) {
      // Above the narrower type, bytes are those of an extension.
      const unsigned narrow = std::min(ir::bit_width(form.type(0)), ir::bit_width(form.type(1)));
      return !ir::is_float(form.type(0)) && !ir::is_float(form.type(1)) && byte.byte < narrow / 8;
    }
    if (form.operation == ir::Operation::shift_right) {
      if (!has_number || ir::bit_width(form.type()) != width) return false;
      const int64_t amount = operands[2].immediate;
      if (amount < 0 || amount % 8 != 0 || byte.byte + static_cast<uint64_t>(amount) / 8 >= width / 8) return false;
      byte.byte += static_cast<unsigned>(amount / 8);
      return true;
    }
    return form.operation == ir::Operation::bit_and && has_number &&
           ((operands[2].immediate >> (8 * byte.byte)) & 0xff) == 0xff;
  }

  ValueId in_32_bits(ValueId value) {
    if (ir::bit_width(function_.values[value].type) == 32) return value;
    auto [row, is_new] = widened_.try_emplace(value);
    if (is_new) row->second = builder_.emit_value("cvt.u32.u16", ScalarType::b32, {Operand::value(value)}, "%r");
    return row->second;
  }

  Operand permute(Operand a, Operand b, int64_t selector) {
    return Operand::value(builder_.emit_value("prmt.b32", ScalarType::b32, {a, b, Operand::integer(selector)}, "%r"));
  }
  Operand select(const std::vector<Byte>& bytes, const std::vector<ValueId>& words) {
    int64_t selector = 0;
    for (size_t i = 0; i < bytes.size(); ++i)
      selector |= int64_t(bytes[i].byte + (bytes[i].word == words[0] ? 0 : 4)) << (4 * i);
    if (words.size() == 1 && selector == 0x3210) return Operand::value(words[0]);
    return permute(Operand::value(words[0]), words.size() == 1 ? Operand::integer(0) : Operand::value(words[1]),
                   selector);
  }
  // Joins two bytes in the low half.
  Operand pair(const Byte& a, const Byte& b) {
    return permute(Operand::value(a.word), Operand::value(b.word), int64_t(a.byte | (4 + b.byte) << 4));
  }

  ir::Function& function_;
  ir::Builder& builder_;
  std::map<ValueId, ir::InstructionId> definitions_;
  std::map<ValueId, ValueId> widened_;
};

} // namespace

std::vector<Operand> pack_words(ir::Function& function, ir::Builder& builder, const std::vector<Operand>& elements,
                                unsigned bits) {
  std::vector<Operand> words;
  if (bits == 16) {
    for (size_t i = 0; i < elements.size(); i += 2)
      words.push_back(Operand::value(builder.emit_value(
          "mov.b32", ScalarType::b32, {Operand::group(OperandKind::vector, 2), elements[i], elements[i + 1]}, "%r")));
    return words;
  }
  BytePacker packer(function, builder);
  for (size_t i = 0; i < elements.size(); i += 4)
    words.push_back(packer.pack(std::span(elements).subspan(i, 4)));
  return words;
}

std::vector<Operand> fresh_words(ir::Builder& builder, size_t count) {
  std::vector<Operand> words;
  for (size_t i = 0; i < count; ++i)
    words.push_back(Operand::definition(builder.new_value(ScalarType::b32, "%r")));
  return words;
}

void split_words(const ir::Function& function, ir::Builder& builder, const std::vector<Operand>& words,
                 const std::vector<Operand>& parts, ScalarType type) {
  constexpr unsigned byte_bits = 8;
  if (ir::bit_width(type) != byte_bits) {
    for (size_t i = 0; i < words.size(); ++i)
      builder.emit("mov.b32", {Operand::group(OperandKind::vector, 2), parts[2 * i], parts[2 * i + 1],
                               Operand::value(words[i].as_value())});
    return;
  }
  for (size_t i = 0; i < parts.size(); ++i) {
    const bool is_narrow = ir::bit_width(function.values[parts[i].as_value()].type) == 16;
    const Operand byte = is_narrow ? Operand::definition(builder.new_value(ScalarType::b32, "%r")) : parts[i];
    builder.emit(ir::is_signed(type) ? "bfe.s32" : "bfe.u32",
                 {byte, Operand::value(words[i / 4].as_value()),
                  Operand::integer(static_cast<int64_t>(byte_bits * (i % 4))), Operand::integer(byte_bits)});
    if (is_narrow) builder.emit("cvt.u16.u32", {parts[i], Operand::value(byte.as_value())});
  }
}

} // namespace ptxrewrite::transforms::memory
