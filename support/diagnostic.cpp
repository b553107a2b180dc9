#include "support/diagnostic.h"

#include <algorithm>

namespace ptxrewrite {

namespace {

constexpr uint32_t window_columns = 120;

const char* severity_word(Severity severity) {
  switch (severity) {
  case Severity::note:
    return "note";
  case Severity::warning:
    return "warning";
  case Severity::error:
    return "error";
  }
  return "error";
}

const char* severity_colour(Severity severity) {
  switch (severity) {
  case Severity::note:
    return "\033[1;36m";
  case Severity::warning:
    return "\033[1;35m";
  case Severity::error:
    return "\033[1;31m";
  }
  return "";
}

void append_caret_lines(std::string& out, const Diagnostic& diagnostic, const SourceFile& source, LineColumn at) {
  std::string_view line = source.line(at.line);
  uint32_t caret = at.column - 1;
  uint32_t first = caret > window_columns / 2 && line.size() > window_columns ? caret - window_columns / 2 : 0;
  std::string_view shown = first < line.size() ? line.substr(first, window_columns) : std::string_view();
  out += "  ";
  for (char c : shown)
    out += c == '\t' ? ' ' : (c < 0x20 || c > 0x7e) ? '?' : c;
  out += "\n  ";
  out.append(caret - first, ' ');
  out += '^';
  uint32_t width = diagnostic.range.end - diagnostic.range.begin;
  uint32_t room = caret - first < shown.size() ? static_cast<uint32_t>(shown.size()) - (caret - first) : 1;
  if (width > 1 && room > 1) out.append(std::min(width, room) - 1, '~');
  out += '\n';
}

} // namespace

std::string render(const Diagnostic& diagnostic, const SourceFile& source, bool colour) {
  std::string out = source.name();
  bool located = !diagnostic.range.empty() && diagnostic.range.begin <= source.text().size();
  LineColumn at;
  if (located) {
    at = source.locate(diagnostic.range.begin);
    out += ':' + std::to_string(at.line) + ':' + std::to_string(at.column);
  }
  out += ": ";
  if (colour) out += severity_colour(diagnostic.severity);
  out += severity_word(diagnostic.severity);
  out += ':';
  if (colour) out += "\033[0m";
  out += ' ' + diagnostic.message + '\n';
  if (located) append_caret_lines(out, diagnostic, source, at);
  for (const std::string& note : diagnostic.notes)
    out += "  note: " + note + '\n';
  return out;
}

} // namespace ptxrewrite
