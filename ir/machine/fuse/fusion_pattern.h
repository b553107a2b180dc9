// Terms of fuse.def: which instructions fit, and what their operands have to be. Private to ir/machine.
//
//   mul.wide.int32(a, #k)        opcodes, words of the mnemonic, operands
//   and|or|xor.!sat(@ ~ b)       alternatives; a word that must be missing; `~`: these two in either order
//   class:floating_point.f32     all opcodes of a class (reader's terms alone)
//
// Words that are types look at the first and then the second instruction type: s32, or int32, int64 (unsigned, signed
// or bits), int (all but floating point), float. `add` and `sub` are those without .sat and .cc. Operands that are not
// written may be anything.
//
//   a, b, c   any operand but the producer's result; the same letter twice is the same operand
//   #k        an integer, with k, m or n its number;   $k  a literal, which may have come into a register by a move
//   0, 31 ..  this integer
//   @         the producer's result
//   _         anything
//   shr.u32(b, #m)   a term: the result of such an instruction, in the same block and with no other reader
#pragma once

#include "ir/isa/isa.h"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ptxrewrite::ir {

struct FormTest {
  struct Words {
    bool absent = false; // none may be there; else one of them
    std::vector<Modifier> any;
  };
  std::vector<Opcode> opcodes;
  std::vector<InstructionClass> classes;
  std::array<uint64_t, 2> types = {UINT64_MAX, UINT64_MAX}; // bits by ScalarType
  std::vector<Words> words;

  bool fits(const Form& form) const;
};

inline constexpr std::string_view fusion_variables = "abckmn";
// Its place among the variables; nothing for other letters.
constexpr size_t variable_index(char letter) {
  return fusion_variables.find(letter);
}

// Without the blanks around it.
std::string_view trimmed(std::string_view text);

struct FusionTerm;

struct FusionOperand {
  enum class Kind : uint8_t { anything, variable, integer, literal, number, result, term };
  Kind kind = Kind::anything;
  uint8_t variable = 0; // index, of the first three kinds behind `anything`
  int64_t number = 0;
  std::vector<FusionTerm> term; // one, or none
};

struct FusionTerm {
  FormTest form;
  std::vector<FusionOperand> operands;
  bool commutes = false; // the first two operands
};

// Alternatives ("add.int64 or sub.int64(@, c)").
using FusionAlternatives = std::vector<FusionTerm>;

// `error`: what is wrong with the text, appended; unchanged where nothing is.
FusionAlternatives parse_fusion_terms(std::string_view text, std::string& error);
// "cvt.int64.u32 > add.int64": who reads the result, who reads what that one writes.
std::vector<FusionAlternatives> parse_fusion_chain(std::string_view text, std::string& error);
// "add|sub"
std::vector<Opcode> parse_fusion_opcodes(std::string_view text, std::string& error);

} // namespace ptxrewrite::ir
