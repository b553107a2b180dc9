// A small reader of single statements for the tests of the instruction table, independent of the grammar.
//
// Registers get their type from their name: %p .pred, %c .b8, %h .b16, %r .b32, %l %A .b64, %f .f32, %d .f64, %q .b128,
// and %xu32_1 .u32 for any type. Names in capitals are labels, other names symbols.
#pragma once

#include "ir/isa/isa.h"

#include <cctype>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace ptxrewrite::test {

using namespace ptxrewrite::ir;

class Statement {
public:
  // `text` must outlive the statement. Guard and semicolon are optional.
  explicit Statement(std::string_view text) {
    skip(text);
    if (text.starts_with('@')) {
      text.remove_prefix(text.find(' '));
      skip(text);
    }
    while (!text.empty() && (text.back() == ';' || std::isspace(static_cast<unsigned char>(text.back()))))
      text.remove_suffix(1);
    size_t end = 0;
    while (end < text.size() && !std::isspace(static_cast<unsigned char>(text[end])))
      ++end;
    mnemonic = text.substr(0, end);
    text.remove_prefix(end);
    skip(text);
    operands = list(text);
  }

  std::string_view mnemonic;
  std::vector<OperandSummary> operands;

private:
  static void skip(std::string_view& text) {
    while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())))
      text.remove_prefix(1);
  }
  static std::string_view trim(std::string_view text) {
    skip(text);
    while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())))
      text.remove_suffix(1);
    return text;
  }
  static std::vector<std::string_view> split(std::string_view text, char separator) {
    std::vector<std::string_view> parts;
    int depth = 0;
    size_t start = 0;
    for (size_t i = 0; i <= text.size(); ++i) {
      if (i == text.size() || (depth == 0 && text[i] == separator)) {
        parts.push_back(trim(text.substr(start, i - start)));
        start = i + 1;
      } else if (text[i] == '[' || text[i] == '{' || text[i] == '(') {
        ++depth;
      } else if (text[i] == ']' || text[i] == '}' || text[i] == ')') {
        --depth;
      }
    }
    return parts;
  }

  std::vector<OperandSummary> list(std::string_view text) {
    std::vector<OperandSummary> result;
    if (trim(text).empty()) return result;
    for (std::string_view part : split(text, ','))
      result.push_back(operand(part));
    return result;
  }
  std::span<const OperandSummary> keep(std::vector<OperandSummary> elements) {
    storage_.push_back(std::move(elements));
    return storage_.back();
  }

  static bool register_type(std::string_view name, OperandSummary& result) {
    if (!name.starts_with('%') || name.size() < 3) return false;
    if (name.starts_with("%x") && name.find('_') != std::string_view::npos) {
      auto type = parse_type(name.substr(2, name.rfind('_') - 2));
      if (!type) return false;
      result.type = *type;
    } else if (std::isdigit(static_cast<unsigned char>(name[2]))) {
      switch (name[1]) {
      case 'p':
        result.type = ScalarType::pred;
        break;
      case 'c':
        result.type = ScalarType::b8;
        break;
      case 'h':
        result.type = ScalarType::b16;
        break;
      case 'r':
        result.type = ScalarType::b32;
        break;
      case 'l':
      case 'A':
        result.type = ScalarType::b64;
        break;
      case 'f':
        result.type = ScalarType::f32;
        break;
      case 'd':
        result.type = ScalarType::f64;
        break;
      case 'q':
        result.type = ScalarType::b128;
        break;
      default:
        return false;
      }
    } else {
      return false;
    }
    result.kind = SummaryKind::register_;
    return true;
  }

  OperandSummary operand(std::string_view text) {
    text = trim(text);
    OperandSummary result;
    if (text.empty()) return result;
    if (text == "_") {
      result.kind = SummaryKind::sink;
    } else if (text.front() == '[') {
      address(text, result);
    } else if (text.front() == '(') {
      result.kind = SummaryKind::list;
      result.elements = keep(list(text.substr(1, text.rfind(')') - 1)));
    } else if (auto bar = split(text, '|'); bar.size() == 2) {
      result.kind = SummaryKind::predicate_pair;
      std::vector<OperandSummary> pair{operand(bar[0]), operand(bar[1])};
      result.elements = keep(std::move(pair));
    } else if (text.front() == '{') {
      result.kind = SummaryKind::vector;
      result.elements = keep(list(text.substr(1, text.rfind('}') - 1)));
    } else {
      scalar(text, result);
    }
    return result;
  }

  void address(std::string_view text, OperandSummary& result) {
    result.kind = SummaryKind::address;
    size_t end = text.rfind(']');
    result.unified = text.substr(end + 1) == ".unified";
    auto parts = split(text.substr(1, end - 1), ',');
    std::string_view base = trim(parts.front().substr(0, parts.front().find('+')));
    OperandSummary base_operand = operand(base);
    result.type = base_operand.type;
    result.base = base_operand.kind == SummaryKind::register_           ? AddressBase::register_
                  : base_operand.kind == SummaryKind::integer_immediate ? AddressBase::immediate
                                                                        : AddressBase::symbol;
    std::vector<OperandSummary> rest;
    for (size_t i = 1; i < parts.size(); ++i)
      rest.push_back(operand(parts[i]));
    result.elements = keep(std::move(rest));
  }

  void scalar(std::string_view text, OperandSummary& result) {
    if (text.front() == '!') {
      result.negated = true;
      text = trim(text.substr(1));
    } else if (text.front() == '-' && text.size() > 1 && text[1] == '%') {
      result.minus = true;
      text.remove_prefix(1);
    }
    std::string_view name = text;
    if (size_t dot = text.find('.'); text.front() == '%' && dot != std::string_view::npos) {
      name = text.substr(0, dot);
      char selector = text[dot + 1];
      result.byte_selector = (selector == 'b' || selector == 'h') && text.size() > dot + 2;
    }
    if (register_type(name, result)) return;
    if (auto special = parse_special_register(name)) {
      result.kind = SummaryKind::special_register;
      result.special = static_cast<uint8_t>(*special);
      result.type = info(*special).type;
      result.vector_width = name.size() == text.size() ? info(*special).vector_width : 1;
    } else if (text == "WARP_SZ") {
      result.kind = SummaryKind::integer_immediate;
      result.value = 32;
    } else if (std::isdigit(static_cast<unsigned char>(text.front())) || text.front() == '-' || text.front() == '~' ||
               (text.front() == '.' && text.size() > 1)) {
      number(text, result);
    } else if (std::isupper(static_cast<unsigned char>(text.front()))) {
      result.kind = SummaryKind::label;
    } else if (size_t bracket = text.find('['); bracket != std::string_view::npos && mnemonic.substr(0, 3) != "mov") {
      result.kind = SummaryKind::address; // var[4], which for `mov` is the symbol's address itself
      result.base = AddressBase::symbol;
    } else if (text.front() != '%') {
      result.kind = SummaryKind::symbol;
    }
  }

  static void number(std::string_view text, OperandSummary& result) {
    bool hexadecimal = text.starts_with("0x") || text.starts_with("0X");
    bool float_bits =
        text.size() > 2 && text[0] == '0' && std::string_view("fFdD").find(text[1]) != std::string_view::npos;
    if (float_bits || (!hexadecimal && text.find_first_of(".eE") != std::string_view::npos)) {
      result.kind = SummaryKind::float_immediate;
      result.type = float_bits && (text[1] == 'f' || text[1] == 'F') ? ScalarType::f32 : ScalarType::f64;
      return;
    }
    result.kind = SummaryKind::integer_immediate;
    std::string digits(text);
    result.value = digits.front() == '-' ? 0 - std::stoull(digits.substr(1), nullptr, 0)
                                         : std::strtoull(digits.c_str(), nullptr, 0);
  }

  std::deque<std::vector<OperandSummary>> storage_;
};

// Returns an empty string if the table accepts the statement, else why not. "opaque": no row matches.
inline std::string check_statement(std::string_view text) {
  Statement statement(text);
  auto id = resolve_form(statement.mnemonic);
  if (!id) return id.error().message;
  const Form& known = form(*id);
  if (known.opaque) return "opaque";
  if (auto wrong = check_operands(known, statement.operands)) return wrong->message;
  return {};
}

} // namespace ptxrewrite::test
