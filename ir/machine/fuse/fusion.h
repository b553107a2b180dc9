// The rows of fuse.def and the matcher that applies them. Private to ir/machine.
//
// A row looks at one instruction (the producer) and at who reads its result. Where the readers' machine instructions
// can do its work, it is absorbed: its cost becomes 0, and the row adjusts the cost of the readers. Few rows look the
// other way, at who makes the operands.
#pragma once

#include "ir/machine/prepare/lowering_context.h"

#include <string>
#include <string_view>
#include <vector>

namespace ptxrewrite::ir {

struct AppliedFusion {
  std::string_view name;  // of the row; empty: no row absorbed the instruction
  bool by_source = false; // those who make its operands do its work, not its readers
};

// Tries the rows in their order. The costs of readers, and of a producer that is not absorbed, are adjusted; that of
// one that is absorbed is left to the caller.
AppliedFusion apply_fusions(LoweringContext& context, InstructionId id);

// How many rows of fuse.def are patterns, and how many name a function.
struct FusionRowCounts {
  size_t patterns = 0, coded = 0;
};
FusionRowCounts fusion_row_counts();

// What is wrong with the text of rows, one entry a row; such rows are left out. Empty if the table is right.
std::vector<std::string> fusion_row_errors();

} // namespace ptxrewrite::ir
