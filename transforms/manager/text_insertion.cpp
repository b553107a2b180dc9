#include "transforms/manager/text_insertion.h"

#include <algorithm>

namespace ptxrewrite::transforms {

bool only_annotates(const Pipeline& pipeline, OutputForm form) {
  if (form != OutputForm::annotated || pipeline.steps.empty()) return false;
  return std::ranges::all_of(pipeline.steps, [](const PipelineStep& step) { return step.pass.annotate != nullptr; });
}

AnnotatedText annotated_text(const ir::Module& module, const Pipeline& pipeline, const RunOptions& options) {
  AnnotatedText result;
  PassContext context;
  context.form = options.form;
  context.assumptions = options.assumptions;
  std::vector<TextInsertion> insertions;
  for (const PipelineStep& step : pipeline.steps)
    result.report.times.push_back({std::string(step.pass.name)});
  for (const auto& function : module.functions) {
    std::string name(module.text(function->name));
    if (!function->has_body || !matches_glob(options.functions, name) ||
        std::ranges::find(options.excluded, name) != options.excluded.end())
      continue;
    result.report.functions.push_back(name);
    for (size_t i = 0; i < pipeline.steps.size() && result.report.executions < options.stop_after; ++i) {
      const PipelineStep& step = pipeline.steps[i];
      ++result.report.executions;
      context.options = step.options;
      std::vector<TextInsertion> made = step.pass.annotate(*function, context);
      ++result.report.times[i].runs;
      result.report.times[i].changes += !made.empty();
      std::ranges::move(made, std::back_inserter(insertions));
      for (Remark& remark : context.remarks) {
        remark.pass = step.pass.name;
        remark.function = name;
        result.report.remarks.push_back(std::move(remark));
      }
      context.remarks.clear();
    }
  }
  result.report.statistics = std::move(context.statistics);
  result.text = with_insertions(module.source.text(), std::move(insertions));
  return result;
}

std::string with_insertions(std::string_view source, std::vector<TextInsertion> insertions) {
  std::ranges::stable_sort(insertions, {}, &TextInsertion::offset);
  std::string out;
  size_t size = source.size();
  for (const TextInsertion& insertion : insertions)
    size += insertion.text.size();
  out.reserve(size);
  size_t at = 0;
  for (const TextInsertion& insertion : insertions) {
    out.append(source, at, insertion.offset - at);
    out += insertion.text;
    at = insertion.offset;
  }
  return out.append(source, at);
}

std::string without_ranges(std::string_view source, std::vector<SourceRange> ranges) {
  std::ranges::sort(ranges, {}, &SourceRange::begin);
  std::string out;
  out.reserve(source.size());
  size_t at = 0;
  for (const SourceRange& range : ranges) {
    out.append(source, at, range.begin - at);
    at = range.end;
  }
  return out.append(source, at);
}

namespace {

constexpr std::string_view line_goes_on = " +";
constexpr std::string_view blanks = " \t\r\f\v";

// Is there nothing but blanks between `at` and the end of its line?
bool ends_line(std::string_view source, size_t at) {
  const size_t next = source.find_first_not_of(blanks, at);
  return next == source.npos || source[next] == '\n';
}

size_t line_start(std::string_view source, size_t at) {
  return at == 0 ? 0 : source.rfind('\n', at - 1) + 1; // npos + 1 is 0
}

// Is there nothing but blanks between the beginning of the line and `at`?
bool begins_line(std::string_view source, size_t at) {
  const size_t start = line_start(source, at);
  return source.substr(start, at - start).find_first_not_of(blanks) == source.npos;
}

} // namespace

TextInsertion comment_behind(std::string_view source, uint32_t end, std::string_view text) {
  TextInsertion insertion{end, " //@ " + std::string(text)};
  if (!ends_line(source, end)) (insertion.text += line_goes_on) += '\n';
  return insertion;
}

TextInsertion comment_before(std::string_view source, uint32_t begin, std::string_view text) {
  if (!begins_line(source, begin)) return comment_behind(source, begin, text);
  const size_t start = line_start(source, begin);
  std::string line(source.substr(start, begin - start));
  return {static_cast<uint32_t>(start), line + "//@ " + std::string(text) + "\n"};
}

SourceRange range_of_comment(std::string_view source, SourceRange range) {
  // Blanks at the end of the line belong to the source.
  while (range.end > range.begin && blanks.find(source[range.end - 1]) != blanks.npos)
    --range.end;
  const std::string_view text = source.substr(range.begin, range.end - range.begin);
  const bool line_follows = range.end < source.size() && source[range.end] == '\n';
  if (text.ends_with(line_goes_on)) {
    if (line_follows) ++range.end;
  } else if (begins_line(source, range.begin)) {
    if (line_follows) ++range.end;
    range.begin = static_cast<uint32_t>(line_start(source, range.begin));
    return range;
  }
  if (range.begin > 0 && source[range.begin - 1] == ' ') --range.begin;
  return range;
}

} // namespace ptxrewrite::transforms
