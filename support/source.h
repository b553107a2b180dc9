// A source file held in memory, and positions in it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace ptxrewrite {

// Half-open range of byte offsets. An empty default range means "no position".
struct SourceRange {
  uint32_t begin = 0;
  uint32_t end = 0;
  bool empty() const { return begin == end; }
};

// 1-based line and column; columns count bytes.
struct LineColumn {
  uint32_t line = 0;
  uint32_t column = 0;
};

// Copies share the text, so that diagnostics can show it after the reader has consumed its copy; views of the text are
// valid while any copy lives.
class SourceFile {
public:
  SourceFile() : SourceFile({}, {}) {}
  SourceFile(std::string name, std::string text)
      : name_(std::move(name)), text_(std::make_shared<const std::string>(std::move(text))) {}
  SourceFile(const SourceFile&) = default; // no moves: the moved-from source may still be read
  SourceFile& operator=(const SourceFile&) = default;

  const std::string& name() const { return name_; }
  std::string_view text() const { return *text_; }
  std::string_view text(SourceRange range) const { return text().substr(range.begin, range.end - range.begin); }
  LineColumn locate(uint32_t offset) const;
  // The text of a 1-based line without its line end.
  std::string_view line(uint32_t line_number) const;

private:
  void index_lines() const;

  std::string name_;
  std::shared_ptr<const std::string> text_;
  mutable std::vector<uint32_t> line_starts_; // built on first use
};

} // namespace ptxrewrite
