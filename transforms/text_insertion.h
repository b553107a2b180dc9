// Annotated forms as text insertion: the source with hints between its words, every other byte as it was.
//
//   if (only_annotates(pipeline, form))
//     AnnotatedText result = annotated_text(module, pipeline, options);   // module as read
#pragma once

#include "transforms/pipeline.h"

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

} // namespace ptxrewrite::transforms
