#include "grammar/item_scanner.h"

#include <algorithm>
#include <array>

namespace ptxrewrite::grammar {

namespace {

constexpr bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\f';
}
constexpr bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$';
}

using CharacterSet = std::array<bool, 256>;
constexpr CharacterSet make_set(std::string_view characters) {
  CharacterSet set{};
  for (char c : characters)
    set[static_cast<unsigned char>(c)] = true;
  return set;
}
// Characters that may end an item or begin text in which nothing ends it.
constexpr CharacterSet interesting = make_set("{}\"/#;.@,()");
constexpr CharacterSet interesting_in_braces = make_set("{}\"/#");

// Words that cannot occur in a function's header outside of parentheses.
bool begins_item(std::string_view word) {
  static constexpr std::string_view words[] = {".visible",
                                               ".extern",
                                               ".weak",
                                               ".common",
                                               ".entry",
                                               ".func",
                                               ".file",
                                               ".section",
                                               ".global",
                                               ".const",
                                               ".shared",
                                               ".local",
                                               ".tex",
                                               ".reg",
                                               ".alias",
                                               ".version",
                                               ".target",
                                               ".param",
                                               ".address_size",
                                               ".metadata_section",
                                               ".nv_intermediate_source_section"};
  return std::find(std::begin(words), std::end(words), word) != std::end(words);
}

} // namespace

bool is_raw_section(std::string_view word) {
  return word == ".metadata_section" || word == ".nv_intermediate_source_section";
}

uint32_t ItemScanner::line_end(uint32_t position) const {
  size_t end = text_.find('\n', position);
  return static_cast<uint32_t>(end == std::string_view::npos ? text_.size() : end);
}

bool ItemScanner::at_line_start(uint32_t position) const {
  while (position > 0 && (text_[position - 1] == ' ' || text_[position - 1] == '\t'))
    --position;
  return position == 0 || text_[position - 1] == '\n';
}

bool ItemScanner::skip_opaque(uint32_t& position) const {
  switch (text_[position]) {
  case '/':
    if (position + 1 >= text_.size()) return false;
    if (text_[position + 1] == '/') {
      position = line_end(position);
      return true;
    }
    if (text_[position + 1] == '*') {
      size_t end = text_.find("*/", position + 2);
      position = static_cast<uint32_t>(end == std::string_view::npos ? text_.size() : end + 2);
      return true;
    }
    return false;
  case '"': {
    size_t end = text_.find('"', position + 1);
    position = static_cast<uint32_t>(end == std::string_view::npos ? text_.size() : end + 1);
    return true;
  }
  case '#':
    if (!at_line_start(position)) return false;
    position = line_end(position);
    return true;
  default:
    return false;
  }
}

std::string_view ItemScanner::word_at(uint32_t position) const {
  size_t end = position + 1;
  while (end < text_.size() && is_word(text_[end]))
    ++end;
  return text_.substr(position, end - position);
}

bool ItemScanner::next(SourceRange& item) {
  while (position_ < text_.size()) {
    if (is_blank(text_[position_])) {
      ++position_;
      continue;
    }
    const uint32_t begin = position_;
    if (text_.substr(begin, 3) == "//@") {
      position_ = line_end(begin);
      item = {begin, position_};
      return true;
    }
    // A `#` that is not a line marker is an item, so that the parser reports it.
    bool marker = text_[begin] == '#' && text_.find_first_not_of(" \t", begin + 1) != std::string_view::npos && [&] {
      std::string_view rest = text_.substr(text_.find_first_not_of(" \t", begin + 1));
      if (rest.substr(0, 4) == "line") rest.remove_prefix(std::min(rest.find_first_not_of(" \t", 4), rest.size()));
      return !rest.empty() && rest[0] >= '0' && rest[0] <= '9';
    }();
    if (text_[begin] != '"' && (text_[begin] != '#' || marker) && skip_opaque(position_)) continue;
    position_ = std::max(find_end(begin), begin + 1);
    item = {begin, position_};
    return true;
  }
  return false;
}

uint32_t ItemScanner::find_end(uint32_t begin) const {
  const uint32_t size = static_cast<uint32_t>(text_.size());
  if (text_.substr(begin, 2) == "@@") return line_end(begin);
  const std::string_view first = word_at(begin);
  // These have no semicolon: they extend to the next directive.
  const bool open_ended = first == ".version" || first == ".target" || first == ".address_size" || first == ".file";
  bool body_ends_it = first == ".section" || is_raw_section(first);
  bool in_pragma = false;   // in an entry's header: its semicolon does not end the item
  bool after_brace = false; // after an initialiser's last brace: only `,` or `;` may follow
  bool in_function = false; // after .entry or .func
  uint32_t parentheses = 0;
  uint32_t depth = 0;
  uint32_t position = begin + (open_ended ? static_cast<uint32_t>(first.size()) : 0);
  const bool has_raw_text = first == ".nv_intermediate_source_section";
  while (position < size) {
    if (!after_brace) {
      const CharacterSet& set = depth > 0 && parentheses == 0 && !has_raw_text ? interesting_in_braces : interesting;
      while (position < size && !set[static_cast<unsigned char>(text_[position])])
        ++position;
      if (position == size) break;
    }
    const char c = text_[position];
    if (is_blank(c)) {
      ++position;
      continue;
    }
    if (open_ended && text_.substr(position, 3) == "//@") return position;
    if (skip_opaque(position)) continue;
    if (after_brace && c != ',' && c != ';') return position;
    after_brace = false;
    if (c == '{') {
      ++depth;
    } else if (c == '}') {
      if (depth <= 1 && (body_ends_it || depth == 0)) return position + 1;
      if (--depth == 0) after_brace = true;
    } else if (depth == 0 && c == ';') {
      if (!in_pragma) return position + 1;
      in_pragma = false;
    } else if (depth == 0 && c == '@' && (open_ended || (in_function && parentheses == 0))) {
      return position;
    } else if (depth == 0 && c == '(') {
      ++parentheses;
    } else if (c == ')') {
      if (parentheses > 0) --parentheses;
    } else if (c == '.' && has_raw_text && word_at(position) == ".source_begin") {
      // Raw text: braces and quotes have no meaning in it.
      const size_t end = text_.find(".source_end", position);
      if (end == std::string_view::npos) return size;
      position = static_cast<uint32_t>(end) + static_cast<uint32_t>(std::string_view(".source_end").size());
      continue;
    } else if (depth == 0 && c == '.') {
      const std::string_view word = word_at(position);
      const bool fraction = position > begin && text_[position - 1] >= '0' && text_[position - 1] <= '9';
      if (open_ended && !fraction) return position;
      // A prototype may lack its semicolon: the next item ends it.
      if (in_function && parentheses == 0 && begins_item(word)) return position;
      if (word == ".entry" || word == ".func") in_function = body_ends_it = true;
      if (word == ".pragma" && body_ends_it) in_pragma = true;
      position += static_cast<uint32_t>(word.size());
      continue;
    }
    ++position;
  }
  return size;
}

} // namespace ptxrewrite::grammar
