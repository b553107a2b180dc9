// Annotated forms as text insertion: the source with hints between its words, every other byte as it was.
//
//   if (only_annotates(pipeline, form))
//     AnnotatedText result = annotated_text(module, pipeline, options);   // module as read
#pragma once

#include "transforms/manager/pipeline.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ptxrewrite::transforms {

// Do all steps of a pipeline, one at least, only add hints in this form?
bool only_annotates(const Pipeline& pipeline, OutputForm form);

struct AnnotatedText {
  std::string text;
  PipelineReport report;
};

// `module` is as it was read; its source gets the hints of all steps for the functions that `options` selects.
AnnotatedText annotated_text(const ir::Module& module, const Pipeline& pipeline, const RunOptions& options);

// In the order of their offsets; insertions at one offset stay in the order given.
std::string with_insertions(std::string_view source, std::vector<TextInsertion> insertions);
// Without these ranges, which do not overlap.
std::string without_ranges(std::string_view source, std::vector<SourceRange> ranges);

// `//@ text` behind what ends at `end`, on the same line. Where something else follows there, the rest goes to the next
// line and the comment ends in `+`, which tells the way back.
TextInsertion comment_behind(std::string_view source, uint32_t end, std::string_view text);
// The same in front of what begins at `begin`: on a line of its own where nothing else stands before it on its line.
TextInsertion comment_before(std::string_view source, uint32_t begin, std::string_view text);
// What of the source came with a comment that one of these has put there; `range` is that of the comment itself.
SourceRange range_of_comment(std::string_view source, SourceRange range);

} // namespace ptxrewrite::transforms
