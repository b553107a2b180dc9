// DARSIE's marks in PTX text: inserts them, and removes them again byte for byte.
//
// A comment follows its instruction on the same line. If other text follows on that line, it moves to the next line and
// the mark ends in `+`, so that removing the mark can restore the line. Marks are never labels, because a label would
// start a basic block.
#pragma once

#include "ir/forms/darsie_mark.h"
#include "transforms/manager/pass.h"

#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace ptxrewrite::transforms {

enum class MarkCarrier : uint8_t {
  comment, // `//@ darsie DR uniform` after the instruction
  pragma,  // `.pragma "darsie DR uniform";` before the instruction and its guard, for tools that drop comments
};
std::optional<MarkCarrier> parse_carrier(std::string_view word);

// For a function as read; `marks` by InstructionId::index(). Skips instructions without a position in the source.
std::vector<TextInsertion> mark_insertions(const ir::Function& function, std::span<const ir::DarsieMark> marks,
                                           MarkCarrier carrier);

// Returns the module's source without DARSIE's and RegLess's marks (regless_text.h), whichever tool wrote them; the
// rest of the text is unchanged.
std::string without_marks(const ir::Module& module);

} // namespace ptxrewrite::transforms
