#include "emulator/generated/x86/assembler.h"

#include <cstring>

namespace ptxrewrite::emulator::generated::x86 {

void Assembler::number(uint64_t value, unsigned size) {
  for (unsigned i = 0; i < size; ++i)
    byte(value >> (8 * i) & 0xff);
}

Assembler::Label Assembler::new_label() {
  places_.push_back(SIZE_MAX);
  return static_cast<Label>(places_.size() - 1);
}

void Assembler::place(Label label) {
  places_[label] = bytes_.size();
}

void Assembler::resolve_jumps() {
  for (const Jump& jump : jumps_) {
    const auto distance = static_cast<int32_t>(places_[jump.target] - (jump.at + 4));
    std::memcpy(bytes_.data() + jump.at, &distance, sizeof distance);
  }
  jumps_.clear();
}

void Assembler::jump_distance(Label target) {
  jumps_.push_back({bytes_.size(), target});
  number(0, 4);
}

void Assembler::jump(Label target) {
  byte(0xe9);
  jump_distance(target);
}

void Assembler::jump_if(Condition condition, Label target) {
  byte(0x0f);
  byte(0x80 | static_cast<unsigned>(condition));
  jump_distance(target);
}

// ModRM with a distance of 8 or 32 bits, and the SIB byte that rsp and r12 need.
void Assembler::operand(unsigned reg, Place place) {
  const bool is_short = place.offset >= -128 && place.offset <= 127;
  byte((is_short ? 0x40 : 0x80) | (reg & 7) << 3 | (place.base & 7));
  if ((place.base & 7) == rsp) byte(0x24);
  number(static_cast<uint32_t>(place.offset), is_short ? 1 : 4);
}

void Assembler::general(uint8_t opcode, unsigned reg, Place place, bool wide) {
  const unsigned rex = (wide ? 8 : 0) | (reg >> 3) << 2 | place.base >> 3;
  if (rex) byte(0x40 | rex);
  byte(opcode);
  operand(reg, place);
}

void Assembler::general(uint8_t opcode, unsigned reg, Register rm, bool wide) {
  const unsigned rex = (wide ? 8 : 0) | (reg >> 3) << 2 | rm >> 3;
  if (rex) byte(0x40 | rex);
  byte(opcode);
  operand(reg, static_cast<unsigned>(rm));
}

void Assembler::move(Register target, uint64_t value) {
  const bool wide = value > UINT32_MAX;
  const unsigned rex = (wide ? 8 : 0) | target >> 3;
  if (rex) byte(0x40 | rex);
  byte(0xb8 | (target & 7));
  number(value, wide ? 8 : 4);
}

void Assembler::arithmetic(Arithmetic which, Register target, Register other, bool wide) {
  general(static_cast<uint8_t>(static_cast<unsigned>(which) << 3 | 3), target, other, wide);
}
void Assembler::arithmetic(Arithmetic which, Register target, Place other, bool wide) {
  general(static_cast<uint8_t>(static_cast<unsigned>(which) << 3 | 3), target, other, wide);
}
void Assembler::arithmetic(Arithmetic which, Register target, int32_t value, bool wide) {
  general(0x81, static_cast<unsigned>(which), target, wide);
  number(static_cast<uint32_t>(value), 4);
}

void Assembler::add_to(Place place, int32_t value) {
  general(0x81, 0, place, true);
  number(static_cast<uint32_t>(value), 4);
}
void Assembler::add_carry_to(Place place) {
  general(0x83, 2, place, true);
  byte(0);
}
void Assembler::invert(Register target) {
  general(0xf7, 2, target, false);
}
void Assembler::test(Register a, int32_t bits) {
  general(0xf7, 0, a, false);
  number(static_cast<uint32_t>(bits), 4);
}
void Assembler::shift_left(Register target, uint8_t bits) {
  general(0xc1, 4, target, false);
  byte(bits);
}
void Assembler::count_ones(Register target, Register of) {
  byte(0xf3);
  const unsigned rex = (target >> 3) << 2 | of >> 3;
  if (rex) byte(0x40 | rex);
  byte(0x0f);
  byte(0xb8);
  operand(target, static_cast<unsigned>(of));
}

void Assembler::push(Register value) {
  if (value >> 3) byte(0x41);
  byte(0x50 | (value & 7));
}
void Assembler::pop(Register value) {
  if (value >> 3) byte(0x41);
  byte(0x58 | (value & 7));
}
void Assembler::call(Place function) {
  general(0xff, 2, function, false);
}

// The prefix of three bytes, and the opcode. `rm`: a vector register, or the base of a place.
void Assembler::vex(VectorOp op, unsigned reg, unsigned second, unsigned rm, Width width) {
  byte(0xc4);
  byte((reg >> 3 ? 0 : 0x80) | 0x40 | (rm >> 3 ? 0 : 0x20) | op.map);
  byte((op.wide ? 0x80 : 0) | (~second & 15) << 3 | (width == Width::whole ? 4 : 0) | op.prefix);
  byte(op.opcode);
}

void Assembler::vector(VectorOp op, Vector target, Vector a, Vector b, Width width) {
  vex(op, target, a, b, width);
  operand(target, static_cast<unsigned>(b));
}
void Assembler::vector(VectorOp op, Vector target, Vector a, Place b, Width width) {
  vex(op, target, a, b.base, width);
  operand(target, b);
}
void Assembler::vector(VectorOp op, Vector target, Vector a, Vector b, uint8_t immediate, Width width) {
  vector(op, target, a, b, width);
  byte(immediate);
}
void Assembler::vector_shift(VectorOp op, uint8_t which, Vector target, Vector from, uint8_t bits) {
  vex(op, which, target, from, Width::whole);
  operand(which, static_cast<unsigned>(from));
  byte(bits);
}
void Assembler::blend(VectorOp op, Vector target, Vector if_clear, Vector if_set, Vector mask) {
  vector(op, target, if_clear, if_set);
  byte(static_cast<unsigned>(mask) << 4);
}
void Assembler::signs(VectorOp op, Register target, Vector of, Width width) {
  vex(op, target, 0, of, width);
  operand(target, static_cast<unsigned>(of));
}

void Assembler::load(Vector target, Place from, Width width) {
  vector(vmovdqu_load, target, y0, from, width);
}
void Assembler::store(Place to, Vector value, Width width) {
  vector(vmovdqu_store, value, y0, to, width);
}
void Assembler::load_quarter(Vector target, Place from) {
  vector(vmovq_load, target, y0, from, Width::half);
}
void Assembler::store_quarter(Place to, Vector value) {
  vector(vmovq_store, value, y0, to, Width::half);
}
void Assembler::from_general(Vector target, Register from) {
  vex(vmovq_general, target, 0, from, Width::half);
  operand(target, static_cast<unsigned>(from));
}
void Assembler::prefetch(Place place) {
  if (place.base >> 3) byte(0x41);
  byte(0x0f);
  byte(0x18);
  operand(1, place);
}
void Assembler::clear_upper_halves() {
  byte(0xc5);
  byte(0xf8);
  byte(0x77);
}

} // namespace ptxrewrite::emulator::generated::x86
