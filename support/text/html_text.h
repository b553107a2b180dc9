// Text within an HTML page.
#pragma once

#include <string>
#include <string_view>

namespace ptxrewrite {

// Appends text with characters that are special in HTML replaced by entities; also suitable for attributes.
inline void append_escaped(std::string& out, std::string_view text) {
  for (char c : text) {
    switch (c) {
    case '&':
      out += "&amp;";
      break;
    case '<':
      out += "&lt;";
      break;
    case '>':
      out += "&gt;";
      break;
    case '"':
      out += "&quot;";
      break;
    default:
      out += c;
    }
  }
}

inline std::string escaped(std::string_view text) {
  std::string out;
  append_escaped(out, text);
  return out;
}

} // namespace ptxrewrite
