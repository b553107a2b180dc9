// The rows of fuse.def and the matcher that applies them. Private to ir/machine.
//
// A row describes one instruction (the producer) and the readers of its result. If the readers' machine instructions
// can do its work, it is absorbed: its cost becomes 0, and the row adjusts the cost of the readers. A few rows instead
// describe the definitions of the operands.
#pragma once

#include "ir/machine/prepare/lowering_context.h"

#include <string>
#include <string_view>
#include <vector>

namespace ptxrewrite::ir {

struct AppliedFusion {
  std::string_view name;  // of the row; empty: not absorbed
  bool by_source = false; // absorbed by the definitions of its operands, not by its readers
};

// Tries the rows in their order. Adjusts the costs of readers, and of a producer that is not absorbed; the caller
// clears the cost of an absorbed producer.
AppliedFusion apply_fusions(LoweringContext& context, InstructionId id);

// Number of rows of fuse.def that are patterns, and that name a function.
struct FusionRowCounts {
  size_t patterns = 0, coded = 0;
};
FusionRowCounts fusion_row_counts();

// Describes errors in the text of rows, one entry per row; such rows are ignored. Empty if the table is valid.
std::vector<std::string> fusion_row_errors();

} // namespace ptxrewrite::ir
