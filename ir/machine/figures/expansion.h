// The rows of expand.def: the machine instructions of a PTX instruction of one form by itself.
#pragma once

#include "ir/isa/isa.h"
#include "ir/machine/figures/machine_isa.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ptxrewrite::ir {

enum class Subroutine : uint8_t {
  none,
#define EXPAND(opcode, words, targets, names, subroutine)
#define EXPAND_CLASS(kind, names)
#define EXPAND_FUSED(rule, opcode, words, targets, names)
#define EXPAND_ORDER(words, targets, before, behind)
#define SUBROUTINE(name, instructions, at_place, executed, moves, work) name,
#include "ir/machine/figures/expand.def"
#undef EXPAND
#undef EXPAND_CLASS
#undef EXPAND_FUSED
#undef EXPAND_ORDER
#undef SUBROUTINE
  count,
};

struct Expansion {
  std::string_view names; // as in the row
  uint16_t instructions = 0;
  MachineOpcode principal{}; // whose unit, latency and rate the whole has
  Subroutine subroutine = Subroutine::none;
  bool is_of_one_opcode = false; // of the principal, several times perhaps: its slots are those of the PTX operands

  Pipe pipe() const { return row_of(principal).pipe; }
};

// `literal`: whether the last operand is a literal.
const Expansion& expansion_of(const Form& form, uint32_t compute_capability, bool literal);

// Instructions before and behind a load, store or atomic operation of this memory order, in addition to its expansion.
uint16_t instructions_of_order(const Form& form, uint32_t compute_capability);

struct SubroutineSize {
  uint16_t instructions = 0; // appended once per kernel
  uint16_t at_place = 0;     // per use, on the slow path only
  uint16_t executed = 0;     // of the subroutine, on every execution
  uint16_t moves = 0;        // of operands and results, unless the operands are loaded only for it
};
SubroutineSize size_of(Subroutine subroutine);
// Does any instruction of the opcode use one, on any machine?
bool may_use_subroutine(Opcode opcode);

// The machine instructions one by one, without those whose names are not known. `fused`: names of the fusion rules by
// which the instruction absorbs others.
std::vector<std::string> machine_names(const Form& form, uint32_t compute_capability, bool literal,
                                       std::span<const std::string_view> fused);

} // namespace ptxrewrite::ir
