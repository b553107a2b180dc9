#include "support/text/toml_depth.h"

#include <algorithm>
#include <string>
#include <vector>

namespace ptxrewrite {
namespace {

class DepthScanner {
public:
  explicit DepthScanner(std::string_view text) : text_(text) {}

  std::optional<size_t> run() {
    while (at_ < text_.size()) {
      const size_t before = at_;
      const char c = text_[at_];
      step();
      if ((c == '.' || c == '[' || c == '{') && depth() > deepest_toml) return before;
    }
    return std::nullopt;
  }

private:
  // An enclosing construct of a position: a header's table or the root, an inline table, an array.
  struct Open {
    bool is_array = false;
    bool in_key = false;
    size_t parts = 0; // of the key before the position
  };

  size_t depth() const {
    size_t sum = header_parts_;
    for (const Open& open : open_)
      sum += open.parts + 1;
    return sum;
  }

  void step() {
    const char c = text_[at_];
    if (c == '#') {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else if (c == '"' || c == '\'') {
      skip_string(c);
    } else if (in_header_) {
      step_in_header(c);
    } else if (open_.back().in_key) {
      step_in_key(c);
    } else {
      step_in_value(c);
    }
  }

  void step_in_header(char c) {
    header_parts_ += c == '.';
    if (c == ']' || c == '\n') in_header_ = false;
    ++at_;
  }

  void step_in_key(char c) {
    Open& here = open_.back();
    if (c == '[' && open_.size() == 1 && here.parts == 0) {
      in_header_ = true;
      header_parts_ = 1;
    } else if (c == '.') {
      ++here.parts;
    } else if (c == '=') {
      here.in_key = false;
    } else if (c == '}' && open_.size() > 1) {
      open_.pop_back();
    } else if (c == '\n') {
      here.parts = 0;
    }
    ++at_;
  }

  void step_in_value(char c) {
    Open& here = open_.back();
    if (c == '{' || c == '[') {
      open_.push_back({c == '[', c == '{', 0});
    } else if ((c == '}' || c == ']') && open_.size() > 1) {
      open_.pop_back();
    } else if (!here.is_array && (c == ',' || (c == '\n' && open_.size() == 1))) {
      here.in_key = true;
      here.parts = 0;
    }
    ++at_;
  }

  // Moves past the end of a string. A string with single quotes ends at the end of its line at the latest.
  void skip_string(char quote) {
    const bool is_long = text_.substr(at_).starts_with(std::string(3, quote));
    at_ += is_long ? 3 : 1;
    for (; at_ < text_.size(); ++at_) {
      if (text_[at_] == '\\' && quote == '"') {
        ++at_;
      } else if (text_[at_] == quote && (!is_long || text_.substr(at_).starts_with(std::string(3, quote)))) {
        at_ += is_long ? 3 : 1;
        // A long string may end in up to two quotes before its closing quotes.
        for (int more = 0; is_long && more < 2 && at_ < text_.size() && text_[at_] == quote; ++more)
          ++at_;
        return;
      } else if (text_[at_] == '\n' && !is_long) {
        return;
      }
    }
    at_ = text_.size();
  }

  std::string_view text_;
  size_t at_ = 0;
  bool in_header_ = false;
  size_t header_parts_ = 0;
  std::vector<Open> open_ = {{false, true, 0}};
};

} // namespace

std::optional<size_t> too_deep_at(std::string_view text) {
  return DepthScanner(text).run();
}

} // namespace ptxrewrite
