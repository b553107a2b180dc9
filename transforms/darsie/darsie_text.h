// DARSIE's marks in PTX text: where they go, and how they are taken out again byte for byte.
//
// A comment stands behind its instruction on the same line. Where something else follows on that line, the rest goes to
// the next line and the mark ends in `+`, which tells the way back. Never a label: that would start a basic block.
#pragma once

#include "ir/forms/darsie_mark.h"
#include "transforms/manager/pass.h"

#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace ptxrewrite::transforms {

enum class MarkCarrier : uint8_t {
  comment, // `//@ darsie DR uniform` behind the instruction
  pragma,  // `.pragma "darsie DR uniform";` in front of it and of its guard, for tools that drop comments
};
std::optional<MarkCarrier> parse_carrier(std::string_view word);

// For a function as read; `marks` by InstructionId::index(). Nothing for instructions without a place in the source.
std::vector<TextInsertion> mark_insertions(const ir::Function& function, std::span<const ir::DarsieMark> marks,
                                           MarkCarrier carrier);

// The module's source without its marks, those of RegLess (regless_text.h) too; whatever wrote them, what else the text
// holds stays.
std::string without_marks(const ir::Module& module);

} // namespace ptxrewrite::transforms
