// One operand of an instruction: 16 bytes, no pointers.
//
// An instruction's operands are a span of its function's pool, written in pre-order: a group (vector, address, pair,
// list) is followed by the operands inside it. So a plain loop over the span visits every register exactly once, and
// `next_sibling` skips a group. Destinations come first, in the order of the text.
#pragma once

#include "ir/core/entities.h"

#include <bit>
#include <cstdint>
#include <span>

namespace ptxrewrite::ir {

enum class OperandKind : uint8_t {
  value,            // register                            id = ValueId
  integer,          // integer literal or folded constant  immediate
  float32,          // 0fXXXXXXXX                          immediate = bit pattern
  float64,          // 0dX.. or a decimal literal          immediate = bit pattern
  special_register, // %tid.x                              id = SpecialRegister, selector
  symbol,           // variable or function (+ offset)     id = SymbolRef bits, immediate = byte offset
  block,            // branch target                       id = BlockId
  label_table,      // .branchtargets/.calltargets label   id = LabelTableId
  prototype,        // .callprototype label                id = PrototypeId
  sink,             // _
  text,             // opaque operand text                 id = Symbol
  vector,           // {a, b}       group; id = number of operands inside, including nested ones
  address,          // [base + immediate]   group: base, then a second register (hardware forms) or tensor/texture
                    //              coordinates; immediate = byte offset
  pair,             // p|q          group of two
  list,             // (a, b)       group: call results or arguments
};

enum class OperandFlag : uint8_t {
  none = 0,
  definition = 1 << 0,  // written by the instruction
  negated = 1 << 1,     // !p, or -x on float and integer registers where the ISA has it
  hexadecimal = 1 << 2, // print the integer in base 16, as in the source
  unsigned_literal = 1 << 3,
  old_value = 1 << 4,       // SSA only: value of a destination where the guard is false; see Instruction
  bracketed_index = 1 << 5, // address spelled var[reg] instead of [reg]
  generic_address = 1 << 6, // symbols in initialisers: generic(x)
  unified = 1 << 7,         // addresses: [x].unified
  // Addresses: the source spells an offset of zero, [x+0]. ptxas -g generates different code for it than for [x].
  spelled_offset = unsigned_literal,
};
constexpr OperandFlag operator|(OperandFlag a, OperandFlag b) {
  return static_cast<OperandFlag>(static_cast<uint8_t>(a) | static_cast<uint8_t>(b));
}
constexpr bool operator&(OperandFlag a, OperandFlag b) {
  return (static_cast<uint8_t>(a) & static_cast<uint8_t>(b)) != 0;
}

// `.x` `.r` `.b0` `.h10` `.b3210`: vector component or byte/half selection of the video instructions.
// 0 = none. Otherwise bits 15:14 = kind (1 component, 2 byte, 3 half), 13:12 = digits - 1, 11:0 = digits, 3 bits each,
// the first one highest. A component's digit is 0-3; bit 11 set means it was spelled r, g, b, a.
using Selector = uint16_t;
constexpr Selector no_selector = 0;
constexpr Selector component_selector(unsigned component) {
  return static_cast<Selector>(0x4000 | component);
}

struct Operand {
  OperandKind kind = OperandKind::integer;
  OperandFlag flags = OperandFlag::none;
  Selector selector = no_selector;
  uint32_t id = 0;
  int64_t immediate = 0;

  static Operand value(ValueId id) { return {OperandKind::value, OperandFlag::none, no_selector, id.index(), 0}; }
  static Operand definition(ValueId id) {
    return {OperandKind::value, OperandFlag::definition, no_selector, id.index(), 0};
  }
  static Operand integer(int64_t value) { return {OperandKind::integer, OperandFlag::none, no_selector, 0, value}; }
  static Operand float32_bits(uint32_t bits) {
    return {OperandKind::float32, OperandFlag::none, no_selector, 0, static_cast<int64_t>(bits)};
  }
  static Operand float64_bits(uint64_t bits) {
    return {OperandKind::float64, OperandFlag::none, no_selector, 0, std::bit_cast<int64_t>(bits)};
  }
  static Operand symbol(SymbolRef ref, int64_t offset = 0) {
    return {OperandKind::symbol, OperandFlag::none, no_selector, ref.bits(), offset};
  }
  static Operand special(uint32_t special_register, Selector selector = no_selector) {
    return {OperandKind::special_register, OperandFlag::none, selector, special_register, 0};
  }
  static Operand block(BlockId id) { return {OperandKind::block, OperandFlag::none, no_selector, id.index(), 0}; }
  // Head of a group; `inside` operands follow it.
  static Operand group(OperandKind kind, uint32_t inside, int64_t immediate = 0) {
    return {kind, OperandFlag::none, no_selector, inside, immediate};
  }

  bool is(OperandKind wanted) const { return kind == wanted; }
  bool has(OperandFlag flag) const { return flags & flag; }
  bool is_group() const { return kind >= OperandKind::vector; }
  bool is_definition() const { return has(OperandFlag::definition); }
  bool is_constant() const {
    return kind == OperandKind::integer || kind == OperandKind::float32 || kind == OperandKind::float64;
  }
  ValueId as_value() const { return ValueId(id); }
  BlockId as_block() const { return BlockId(id); }
  SymbolRef as_symbol() const { return SymbolRef::from_bits(id); }
  // Operands inside this group; 0 for anything else.
  uint32_t group_size() const { return is_group() ? id : 0; }
  bool operator==(const Operand&) const = default;
};
static_assert(sizeof(Operand) == 16);

// Index of the operand that follows `index` and the operands inside it.
inline size_t next_sibling(std::span<const Operand> operands, size_t index) {
  return index + 1 + operands[index].group_size();
}

} // namespace ptxrewrite::ir
