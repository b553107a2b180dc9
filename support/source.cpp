#include "support/source.h"

#include <algorithm>
#include <mutex>

namespace ptxrewrite {

// Blocks on several host threads may end with an error at the same time, and each locates its instruction.
void SourceFile::index_lines() const {
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  if (!line_starts_.empty()) return;
  line_starts_.push_back(0);
  std::string_view bytes = text();
  for (size_t i = 0; i < bytes.size(); ++i)
    if (bytes[i] == '\n') line_starts_.push_back(static_cast<uint32_t>(i + 1));
}

LineColumn SourceFile::locate(uint32_t offset) const {
  index_lines();
  auto after = std::upper_bound(line_starts_.begin(), line_starts_.end(), offset);
  auto line = static_cast<uint32_t>(after - line_starts_.begin());
  return {line, offset - line_starts_[line - 1] + 1};
}

std::string_view SourceFile::line(uint32_t line_number) const {
  index_lines();
  if (line_number == 0 || line_number > line_starts_.size()) return {};
  uint32_t begin = line_starts_[line_number - 1];
  std::string_view rest = text().substr(begin);
  rest = rest.substr(0, rest.find('\n'));
  if (!rest.empty() && rest.back() == '\r') rest.remove_suffix(1);
  return rest;
}

} // namespace ptxrewrite
