// Reads the text of a pipeline: `a,b(option=value,flag)`.
#include "support/text/near_names.h"
#include "transforms/manager/pipeline.h"

#include <charconv>

namespace ptxrewrite::transforms {

namespace {

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}
bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
}

template <class List> std::vector<std::string> names_of(const List& list) {
  std::vector<std::string> names;
  for (const auto& entry : list)
    names.emplace_back(entry.name);
  return names;
}

class Parser {
public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<Pipeline> parse() {
    Pipeline pipeline;
    skip_blanks();
    if (at_end()) return pipeline;
    while (true) {
      if (Status status = parse_step(pipeline); !status) return status.error();
      skip_blanks();
      if (at_end()) return pipeline;
      if (!accept(',')) return unexpected("',' or the end");
    }
  }

private:
  bool at_end() const { return position_ == text_.size(); }
  char peek() const { return at_end() ? '\0' : text_[position_]; }
  void skip_blanks() {
    while (!at_end() && is_blank(peek()))
      ++position_;
  }
  bool accept(char c) {
    skip_blanks();
    if (at_end() || peek() != c) return false;
    ++position_;
    return true;
  }
  Error error_at(size_t begin, size_t end, std::string message) const {
    return {std::move(message), {static_cast<uint32_t>(begin), static_cast<uint32_t>(end)}};
  }
  Error unexpected(const std::string& wanted) const {
    if (at_end())
      return error_at(position_ ? position_ - 1 : 0, position_, "the pipeline ends where " + wanted + " should follow");
    return error_at(position_, position_ + 1, "expected " + wanted);
  }
  std::string_view name() {
    skip_blanks();
    size_t begin = position_;
    while (!at_end() && is_name_character(peek()))
      ++position_;
    return text_.substr(begin, position_ - begin);
  }

  Status parse_step(Pipeline& pipeline) {
    std::string_view pass_name = name();
    if (pass_name.empty()) return unexpected("the name of a pass");
    const PassDescription* pass = find_pass(pass_name);
    if (!pass)
      return error_at(position_ - pass_name.size(), position_,
                      "no pass is called '" + std::string(pass_name) + "'" +
                          near_names(pass_name, names_of(all_passes())));
    PipelineStep step{*pass, {}};
    if (accept('(') && !accept(')')) {
      do {
        if (Status status = parse_option(step); !status) return status;
      } while (accept(','));
      if (!accept(')')) return unexpected("',' or ')'");
    }
    pipeline.steps.push_back(std::move(step));
    return {};
  }

  Status parse_option(PipelineStep& step) {
    std::string_view option_name = name();
    if (option_name.empty()) return unexpected("the name of an option");
    size_t name_begin = position_ - option_name.size();
    const PassOptionDescription* option = nullptr;
    for (const PassOptionDescription& candidate : step.pass.options)
      if (candidate.name == option_name) option = &candidate;
    if (!option) {
      std::string pass_name(step.pass.name);
      return error_at(name_begin, position_,
                      step.pass.options.empty()
                          ? "pass '" + pass_name + "' has no options"
                          : "pass '" + pass_name + "' has no option '" + std::string(option_name) + "'" +
                                near_names(option_name, names_of(step.pass.options)));
    }
    if (step.options.all().contains(option_name))
      return error_at(name_begin, position_, "option '" + std::string(option_name) + "' is given twice");
    std::string value;
    size_t value_begin = name_begin;
    bool has_value = accept('=');
    if (has_value) {
      skip_blanks();
      value_begin = position_;
      if (Status status = parse_value(value); !status) return status;
    }
    if (Status status = check_value(*option, has_value, value, value_begin); !status) return status;
    step.options.set(std::string(option_name), std::move(value));
    return {};
  }

  Status parse_value(std::string& value) {
    if (peek() == '"') {
      size_t begin = position_++;
      while (!at_end() && peek() != '"')
        value += text_[position_++];
      if (at_end()) return error_at(begin, begin + 1, "this quote is never closed");
      ++position_;
      return {};
    }
    while (!at_end() && peek() != ',' && peek() != '(' && peek() != ')' && !is_blank(peek()))
      value += text_[position_++];
    if (value.empty()) return unexpected("a value");
    return {};
  }

  Status check_value(const PassOptionDescription& option, bool has_value, const std::string& value,
                     size_t begin) const {
    std::string option_name(option.name);
    switch (option.kind) {
    case PassOptionKind::text:
      if (!has_value) return error_at(begin, position_, "option '" + option_name + "' needs a value");
      return {};
    case PassOptionKind::flag:
      for (std::string_view word : {"", "1", "true", "on", "yes", "0", "false", "off", "no"})
        if (value == word) return {};
      return error_at(begin, position_, "option '" + option_name + "' is a flag: true or false");
    case PassOptionKind::number: {
      int64_t number = 0;
      auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
      if (value.empty() || error != std::errc() || end != value.data() + value.size())
        return error_at(begin, position_, "option '" + option_name + "' needs an integer");
      return {};
    }
    }
    return {};
  }

  std::string_view text_;
  size_t position_ = 0;
};

bool needs_quotes(std::string_view value) {
  for (char c : value)
    if (!is_name_character(c) && c != ':' && c != '/' && c != '+' && c != '=') return true;
  return value.empty();
}

} // namespace

Result<Pipeline> parse_pipeline(std::string_view text) {
  return Parser(text).parse();
}

std::string to_string(const Pipeline& pipeline) {
  std::string text;
  for (const PipelineStep& step : pipeline.steps) {
    if (!text.empty()) text += ',';
    text += step.pass.name;
    char separator = '(';
    for (const auto& [name, value] : step.options.all()) {
      text += separator + name;
      separator = ',';
      bool bare = value.empty();
      for (const PassOptionDescription& option : step.pass.options)
        if (option.name == name && option.kind == PassOptionKind::text) bare = false;
      if (!bare) text += needs_quotes(value) ? "=\"" + value + '"' : '=' + value;
    }
    if (separator == ',') text += ')';
  }
  return text;
}

} // namespace ptxrewrite::transforms
