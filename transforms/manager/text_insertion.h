// Writes annotated forms by inserting text: adds hints to the source and leaves every other byte unchanged.
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

// Do all steps of the pipeline (there is at least one) only add hints in this form?
bool only_annotates(const Pipeline& pipeline, OutputForm form);

struct AnnotatedText {
  std::string text;
  PipelineReport report;
};

// `module` is as it was read. Returns its source with the hints of all steps for the functions that `options` selects.
AnnotatedText annotated_text(const ir::Module& module, const Pipeline& pipeline, const RunOptions& options);

// Inserts in the order of the offsets; insertions at the same offset keep the given order.
std::string with_insertions(std::string_view source, std::vector<TextInsertion> insertions);
// Returns the source without these ranges, which must not overlap.
std::string without_ranges(std::string_view source, std::vector<SourceRange> ranges);

// Inserts `//@ text` after the source text that ends at `end`, on the same line. If more source follows on that line,
// it moves to the next line and the comment ends in `+`, so that removing the comment can restore the line.
TextInsertion comment_behind(std::string_view source, uint32_t end, std::string_view text);
// Inserts the comment before the source text that begins at `begin`: on a line of its own if only blanks precede it.
TextInsertion comment_before(std::string_view source, uint32_t begin, std::string_view text);
// Returns the part of the source that was inserted together with such a comment; `range` is that of the comment itself.
SourceRange range_of_comment(std::string_view source, SourceRange range);

} // namespace ptxrewrite::transforms
