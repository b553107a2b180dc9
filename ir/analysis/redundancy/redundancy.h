// Which results are the same vector in every warp of a block: DARSIE's lattice (darsie §4.2) over SSA form.
//
//   Redundancy redundancy(function);                    // SSA form
//   redundancy.mark(instruction), redundancy.mark(value)
//   for a function in either form: std::vector<DarsieMark> marks = marks_of(function);  marks[instruction.index()]
//
// What a mark promises. Take two warps of one block, all lanes active, at the same instruction with the same history
// of branches. If the instruction is DR (or CR and promoted for the block's shape) both get the same result in each
// lane; loads if neither store nor fence came between them. Barriers may stand for the history: the promise holds for
// warps that have passed the same barriers, whatever ways they took there. Programs with data races are promised
// nothing.
#pragma once

#include "ir/forms/darsie_mark.h"

#include <memory>
#include <vector>

namespace ptxrewrite::ir {

// Three sources of marks are not in the paper: %laneid, tid.y as conditional in blocks of three dimensions (§4.2 has
// two), and values whose linear form is the same for the whole launch.
enum class MarkRules : uint8_t { all, paper };

class Redundancy {
public:
  // `function` must be in SSA form. Device functions are `vector` throughout: their callers differ.
  explicit Redundancy(const Function& function, MarkRules rules = MarkRules::all);

  // Of the result; instructions without a register result, and what is no real instruction, are `vector`.
  DarsieMark mark(InstructionId instruction) const { return instruction_marks_[instruction.index()]; }
  // As seen inside the loops around the definition.
  DarsieMark mark(ValueId value) const { return value_marks_[value.index()]; }
  const std::vector<DarsieMark>& instruction_marks() const { return instruction_marks_; }

private:
  std::vector<DarsieMark> instruction_marks_;
  std::vector<DarsieMark> value_marks_;
};

// One mark for each instruction, by InstructionId::index(): as written in the text if the text has any, else computed.
// A function that has no SSA form is `vector` throughout.
std::vector<DarsieMark> marks_of(const Function& function, MarkRules rules = MarkRules::all);

} // namespace ptxrewrite::ir
