#include "cuda/fatbin/link_ptx.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string_view>
#include <vector>

namespace ptxrewrite::cuda {
namespace {

// A directive that a linked module has only once, in its header.
struct HeadLine {
  std::string_view directive;
  std::string_view line;
};

constexpr std::string_view head_directives[] = {".version", ".target", ".address_size"};

// Returns the header directive at the start of the line; empty for other lines.
std::string_view head_directive(std::string_view line) {
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  for (std::string_view directive : head_directives)
    if (line.starts_with(directive)) return directive;
  return {};
}

// The numbers in a line, for comparing versions: ".version 8.10" is newer than ".version 8.2".
std::vector<uint64_t> numbers_in(std::string_view line) {
  std::vector<uint64_t> numbers;
  const char* end = line.data() + line.size();
  for (const char* at = line.data(); at != end;) {
    uint64_t number = 0;
    const auto [behind, error] = std::from_chars(at, end, number);
    if (error == std::errc()) numbers.push_back(number);
    at = error == std::errc() ? behind : at + 1;
  }
  return numbers;
}

void keep_newest(std::vector<HeadLine>& head, HeadLine line) {
  for (HeadLine& kept : head)
    if (kept.directive == line.directive) {
      if (numbers_in(kept.line) < numbers_in(line.line)) kept = line;
      return;
    }
  head.push_back(line);
}

} // namespace

std::string link_ptx(std::span<const std::string> texts) {
  if (texts.size() == 1) return texts.front();
  std::vector<HeadLine> head;
  std::string body;
  for (const std::string& text : texts) {
    std::string_view rest = text;
    while (!rest.empty()) {
      const size_t end = std::min(rest.find('\n'), rest.size() - 1) + 1;
      const std::string_view line = rest.substr(0, end);
      rest.remove_prefix(end);
      if (const std::string_view directive = head_directive(line); !directive.empty())
        keep_newest(head, {directive, line});
      else
        body += line;
    }
    body += '\n';
  }
  std::string linked;
  for (std::string_view directive : head_directives)
    for (const HeadLine& line : head)
      if (line.directive == directive) linked.append(line.line).append(line.line.ends_with('\n') ? "" : "\n");
  return linked + body;
}

} // namespace ptxrewrite::cuda
