#include "transforms/darsie/darsie_text.h"

#include "ir/core/module.h"
#include "ir/machine/registers/regless_mark.h"
#include "transforms/manager/text_insertion.h"

namespace ptxrewrite::transforms {

namespace {

using ir::InstructionId;
using ir::InstructionKind;

TextInsertion pragma_before(uint32_t begin, ir::DarsieMark mark) {
  return {begin, ".pragma \"" + std::string(ir::mark_prefix) + to_string(mark) + "\"; "};
}

// The source range that a mark occupies, including the blanks and line breaks inserted with it.
SourceRange written_range(std::string_view source, SourceRange range, InstructionKind kind) {
  if (kind == InstructionKind::pragma) {
    if (range.end < source.size() && source[range.end] == ' ') ++range.end;
    return range;
  }
  return range_of_comment(source, range);
}

} // namespace

std::optional<MarkCarrier> parse_carrier(std::string_view word) {
  if (word == "comment") return MarkCarrier::comment;
  if (word == "pragma") return MarkCarrier::pragma;
  return std::nullopt;
}

std::vector<TextInsertion> mark_insertions(const ir::Function& function, std::span<const ir::DarsieMark> marks,
                                           MarkCarrier carrier) {
  const std::string_view source = function.module().source.text();
  std::vector<TextInsertion> insertions;
  for (ir::BlockId block : function.layout)
    for (InstructionId id : function.instructions_in(block)) {
      const ir::Instruction& instruction = function.instructions[id];
      if (instruction.kind != InstructionKind::real || instruction.range.empty()) continue;
      const ir::DarsieMark mark = marks[id.index()];
      insertions.push_back(
          carrier == MarkCarrier::pragma
              ? pragma_before(instruction.range.begin, mark)
              : comment_behind(source, instruction.range.end, std::string(ir::mark_prefix) + to_string(mark)));
    }
  return insertions;
}

std::string without_marks(const ir::Module& module) {
  const std::string_view source = module.source.text();
  std::vector<SourceRange> ranges;
  for (const auto& function : module.functions)
    for (ir::BlockId block : function->layout)
      for (InstructionId id : function->instructions_in(block)) {
        const ir::Instruction& instruction = function->instructions[id];
        if (!instruction.range.empty() && (ir::carries_mark(*function, id) || ir::carries_regless_mark(*function, id)))
          ranges.push_back(written_range(source, instruction.range, instruction.kind));
      }
  return without_ranges(source, std::move(ranges));
}

} // namespace ptxrewrite::transforms
