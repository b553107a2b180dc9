// The table was determined by assembling kernels with one to twelve divisions, with and without a common divisor: see
// divisions.h. ptxas 13.0 generates the same code for sm_75, 80 and 90; 11.8 was used for sm_35, sm_50.
#include "ir/machine/select/divisions.h"

#include "ir/machine/figures/generations.h"
#include "ir/machine/fuse/constant_ranges.h"

#include <map>
#include <optional>
#include <tuple>
#include <vector>

namespace ptxrewrite::ir {

namespace {

struct DivisionWeight {
  Generation first_generation;
  ScalarType type;
  bool literal; // the divisor is a literal
  Opcode opcode;
  uint16_t first;   // no other division by the same divisor
  uint16_t later;   // the divisor's reciprocal is available
  uint16_t further; // and its complement, for a divisor of zero, from a second division
  uint16_t partner; // quotient or remainder of the same two numbers is available
};
constexpr DivisionWeight division_weights[] = {
    {Generation::fermi, ScalarType::u32, false, Opcode::div, 15, 8, 8, 3},     //
    {Generation::fermi, ScalarType::u32, false, Opcode::rem, 14, 7, 7, 2},     //
    {Generation::fermi, ScalarType::s32, false, Opcode::div, 20, 12, 12, 8},   //
    {Generation::fermi, ScalarType::s32, false, Opcode::rem, 18, 10, 10, 6},   //
    {Generation::fermi, ScalarType::u32, true, Opcode::div, 13, 7, 7, 2},      //
    {Generation::fermi, ScalarType::u32, true, Opcode::rem, 12, 6, 6, 1},      //
    {Generation::fermi, ScalarType::s32, true, Opcode::div, 17, 11, 11, 6},    //
    {Generation::fermi, ScalarType::s32, true, Opcode::rem, 15, 9, 9, 4},      //
    {Generation::maxwell, ScalarType::u32, false, Opcode::div, 30, 15, 15, 3}, //
    {Generation::maxwell, ScalarType::u32, false, Opcode::rem, 29, 14, 14, 2}, //
    {Generation::maxwell, ScalarType::s32, false, Opcode::div, 34, 17, 17, 8}, //
    {Generation::maxwell, ScalarType::s32, false, Opcode::rem, 32, 16, 16, 6}, //
    {Generation::maxwell, ScalarType::u32, true, Opcode::div, 26, 13, 13, 2},  //
    {Generation::maxwell, ScalarType::u32, true, Opcode::rem, 25, 12, 12, 1},  //
    {Generation::maxwell, ScalarType::s32, true, Opcode::div, 30, 17, 17, 6},  //
    {Generation::maxwell, ScalarType::s32, true, Opcode::rem, 28, 15, 15, 4},  //
    {Generation::volta, ScalarType::u32, false, Opcode::div, 18, 10, 9, 4},    //
    {Generation::volta, ScalarType::u32, false, Opcode::rem, 17, 9, 8, 3},     //
    {Generation::volta, ScalarType::s32, false, Opcode::div, 24, 13, 13, 9},   //
    {Generation::volta, ScalarType::s32, false, Opcode::rem, 22, 12, 11, 7},   //
    {Generation::volta, ScalarType::u32, true, Opcode::div, 14, 7, 7, 2},      //
    {Generation::volta, ScalarType::u32, true, Opcode::rem, 13, 6, 6, 1},      //
    {Generation::volta, ScalarType::s32, true, Opcode::div, 18, 11, 11, 6},    //
    {Generation::volta, ScalarType::s32, true, Opcode::rem, 16, 9, 9, 4},      //
};

const DivisionWeight* row_of(const Form& form, bool literal, Generation generation) {
  const DivisionWeight* newest = nullptr;
  for (const DivisionWeight& row : division_weights)
    if (row.opcode == form.opcode && row.type == form.type() && row.literal == literal &&
        row.first_generation <= generation)
      newest = &row;
  return newest;
}

// A register or a literal.
using Number = std::pair<bool, int64_t>;
Number number_of(const Operand& operand) {
  if (operand.is(OperandKind::value)) return {true, operand.as_value().index()};
  return {false, operand.immediate};
}

} // namespace

void share_reciprocals(LoweringContext& context) {
  const Function& function = context.function;
  if (!context.facts.contents.divides) return;
  if (!function.is_ssa) return; // as read, a register may hold another number by then
  std::map<std::pair<ScalarType, Number>, std::vector<InstructionId>> by_divisor;
  std::optional<ConstantRanges> ranges; // reciprocals have the live ranges of constants
  for (BlockId block : function.layout)
    for (InstructionId id : function.instructions_in(block)) {
      const Form* form = context.form(id);
      if (!form || (form->opcode != Opcode::div && form->opcode != Opcode::rem) || !context.needed[id.index()])
        continue;
      const Operand* dividend = context.source(id, 0);
      const Operand* divisor = context.source(id, 1);
      const DivisionWeight* row =
          dividend && divisor ? row_of(*form, context.is_literal(divisor), generation_of(context.capability)) : nullptr;
      if (!row || context.absorbed[id.index()]) continue;
      uint16_t weight = row->first;
      bool is_second = true;
      std::vector<InstructionId>& earlier = by_divisor[{form->type(), number_of(*divisor)}];
      for (InstructionId other : earlier) {
        if (!ranges) ranges.emplace(context);
        if (!ranges->keeps(function.instructions[other].block, block)) continue;
        const bool partner = number_of(*context.source(other, 0)) == number_of(*dividend);
        weight = std::min(weight, partner ? row->partner : is_second ? row->later : row->further);
        is_second = false;
      }
      context.costs[id.index()].weight = weight;
      earlier.push_back(id);
    }
}

} // namespace ptxrewrite::ir
