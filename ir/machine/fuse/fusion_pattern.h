// Terms of fuse.def: instructions that match, and requirements on their operands. Private to ir/machine.
//
//   mul.wide.int32(a, #k)        opcodes, words of the mnemonic, operands
//   and|or|xor.!sat(@ ~ b)       alternatives; a word that must be absent; `~`: the two operands in either order
//   class:floating_point.f32     all opcodes of a class (reader's terms only)
//
// Type words refer to the first and then the second instruction type: s32, or int32, int64 (unsigned, signed or
// bits), int (all but floating point), float. `add` and `sub` exclude .sat and .cc. Omitted operands match
// anything.
//
//   a, b, c   any operand but the producer's result; the same letter twice is the same operand
//   #k        an integer, whose value is k, m or n;   $k  a literal, possibly moved into a register
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
    bool absent = false; // none of them may be present; false: one of them has to be
    std::vector<Modifier> any;
  };
  std::vector<Opcode> opcodes;
  std::vector<InstructionClass> classes;
  std::array<uint64_t, 2> types = {UINT64_MAX, UINT64_MAX}; // bits by ScalarType
  std::vector<Words> words;

  bool fits(const Form& form) const;
};

inline constexpr std::string_view fusion_variables = "abckmn";
// Its index among the variables; npos for other letters.
constexpr size_t variable_index(char letter) {
  return fusion_variables.find(letter);
}

// Without leading and trailing blanks.
std::string_view trimmed(std::string_view text);

struct FusionTerm;

struct FusionOperand {
  enum class Kind : uint8_t { anything, variable, integer, literal, number, result, term };
  Kind kind = Kind::anything;
  uint8_t variable = 0; // index, for variable, integer and literal
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

// Appends a description of an error in the text to `error`; leaves it unchanged if there is none.
FusionAlternatives parse_fusion_terms(std::string_view text, std::string& error);
// "cvt.int64.u32 > add.int64": the reader of the result, and the reader of that one's result.
std::vector<FusionAlternatives> parse_fusion_chain(std::string_view text, std::string& error);
// "add|sub"
std::vector<Opcode> parse_fusion_opcodes(std::string_view text, std::string& error);

} // namespace ptxrewrite::ir
