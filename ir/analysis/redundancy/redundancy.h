// Results that are the same vector in every warp of a block: DARSIE's lattice (darsie §4.2) over SSA form.
//
//   Redundancy redundancy(function);                    // SSA form
//   redundancy.mark(instruction), redundancy.mark(value)
//   for a function in either form: std::vector<DarsieMark> marks = marks_of(function);  marks[instruction.index()]
//
// Meaning of a mark: take two warps of one block, all lanes active, at the same instruction with the same history of
// branches. If the instruction is DR (or CR and promoted for the block's shape), both get the same result in each lane;
// for loads, only if neither a store nor a fence came between them. Equal barriers may replace an equal history: the
// guarantee holds for warps that have passed the same barriers, on any paths. It does not hold for programs with data
// races.
#pragma once

#include "ir/forms/darsie_mark.h"

#include <memory>
#include <vector>

namespace ptxrewrite::ir {

// Three sources of marks are not in the paper: %laneid, tid.y as conditional in three-dimensional blocks (§4.2 has two
// dimensions), and values whose linear form is the same for the whole launch.
enum class MarkRules : uint8_t { all, paper };

class Redundancy {
public:
  // `function` must be in SSA form. In device functions every value is `vector`, because callers differ.
  explicit Redundancy(const Function& function, MarkRules rules = MarkRules::all);

  // The mark of the result; `vector` for statements that are not instructions, and without a register result.
  DarsieMark mark(InstructionId instruction) const { return instruction_marks_[instruction.index()]; }
  // The mark of a value inside the loops around its definition.
  DarsieMark mark(ValueId value) const { return value_marks_[value.index()]; }
  const std::vector<DarsieMark>& instruction_marks() const { return instruction_marks_; }

private:
  std::vector<DarsieMark> instruction_marks_;
  std::vector<DarsieMark> value_marks_;
};

// One mark per instruction, by InstructionId::index(): the marks written in the text if it has any, else computed ones.
// If the function has no SSA form, all are `vector`.
std::vector<DarsieMark> marks_of(const Function& function, MarkRules rules = MarkRules::all);

} // namespace ptxrewrite::ir
