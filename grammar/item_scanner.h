// Finds the start and end of top-level items without parsing them, from braces, semicolons, strings and comments.
#pragma once

#include "support/source.h"

#include <string_view>

namespace ptxrewrite::grammar {

// True if the braces of this module-scope directive contain text that is kept verbatim and never parsed.
bool is_raw_section(std::string_view directive);

class ItemScanner {
public:
  explicit ItemScanner(std::string_view text, uint32_t begin = 0) : text_(text), position_(begin) {}

  // Finds the next item. Its range may end in blanks and comments. Returns false at the end of the text. A `//@`
  // comment between items is an item of its own.
  bool next(SourceRange& item);

private:
  // Skips a comment, string or line marker that begins here; returns false if there is none.
  bool skip_opaque(uint32_t& position) const;
  bool at_line_start(uint32_t position) const;
  uint32_t line_end(uint32_t position) const;
  uint32_t find_end(uint32_t begin) const;
  std::string_view word_at(uint32_t position) const;

  std::string_view text_;
  uint32_t position_ = 0;
};

} // namespace ptxrewrite::grammar
