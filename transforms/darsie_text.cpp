#include "transforms/darsie_text.h"

#include "ir/module.h"
#include "transforms/text_insertion.h"

namespace ptxrewrite::transforms {

namespace {

using ir::InstructionId;
using ir::InstructionKind;

constexpr std::string_view line_goes_on = " +";
constexpr std::string_view blanks = " \t\r\f\v";

// Is there nothing but blanks between `at` and the end of its line?
bool ends_line(std::string_view source, size_t at) {
  const size_t next = source.find_first_not_of(blanks, at);
  return next == source.npos || source[next] == '\n';
}

TextInsertion comment_behind(std::string_view source, uint32_t end, ir::DarsieMark mark) {
  TextInsertion insertion{end, " //@ " + std::string(ir::mark_prefix) + to_string(mark)};
  if (!ends_line(source, end)) (insertion.text += line_goes_on) += '\n';
  return insertion;
}

TextInsertion pragma_before(uint32_t begin, ir::DarsieMark mark) {
  return {begin, ".pragma \"" + std::string(ir::mark_prefix) + to_string(mark) + "\"; "};
}

// What a mark's carrier takes of the source, with what came with it.
SourceRange written_range(std::string_view source, SourceRange range, InstructionKind kind) {
  if (kind == InstructionKind::pragma) {
    if (range.end < source.size() && source[range.end] == ' ') ++range.end;
    return range;
  }
  // Blanks at the end of the line were there before.
  while (range.end > range.begin && blanks.find(source[range.end - 1]) != blanks.npos)
    --range.end;
  const std::string_view text = source.substr(range.begin, range.end - range.begin);
  if (text.ends_with(line_goes_on) && range.end < source.size() && source[range.end] == '\n') ++range.end;
  if (range.begin > 0 && source[range.begin - 1] == ' ') --range.begin;
  return range;
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
      insertions.push_back(carrier == MarkCarrier::pragma ? pragma_before(instruction.range.begin, mark)
                                                          : comment_behind(source, instruction.range.end, mark));
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
        if (!instruction.range.empty() && ir::carries_mark(*function, id))
          ranges.push_back(written_range(source, instruction.range, instruction.kind));
      }
  return without_ranges(source, std::move(ranges));
}

} // namespace ptxrewrite::transforms
