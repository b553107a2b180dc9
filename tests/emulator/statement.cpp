#include "tests/emulator/statement.h"

#include <algorithm>
#include <bit>
#include <cctype>
#include <cstdlib>

namespace ptxrewrite::test {

namespace {

std::string_view trim(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())))
    text.remove_prefix(1);
  while (!text.empty() && (std::isspace(static_cast<unsigned char>(text.back())) || text.back() == ';'))
    text.remove_suffix(1);
  return text;
}

// Splits at separators outside of braces.
std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  int depth = 0;
  size_t start = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i == text.size() || (depth == 0 && text[i] == separator)) {
      parts.push_back(trim(text.substr(start, i - start)));
      start = i + 1;
    } else if (text[i] == '{') {
      ++depth;
    } else if (text[i] == '}') {
      --depth;
    }
  }
  return parts;
}

// Integers with a minus are sign-extended; 0f and 0d give their bits; decimals the bits of a double.
Raw constant(const std::string& text) {
  const bool prefixed = text.size() > 2 && text[0] == '0';
  if (prefixed && (std::tolower(text[1]) == 'f' || std::tolower(text[1]) == 'd'))
    return std::strtoull(text.c_str() + 2, nullptr, 16);
  if (!text.starts_with("0x") && text.find_first_of(".eE") != std::string::npos)
    return std::bit_cast<uint64_t>(std::strtod(text.c_str(), nullptr));
  if (text[0] == '-') return static_cast<Raw>(-static_cast<Big>(std::strtoull(text.c_str() + 1, nullptr, 0)));
  return std::strtoull(text.c_str(), nullptr, 0);
}

StatementOperand operand(std::string_view text);

// {a, b} or a|b, in parts.
StatementOperand group(const std::vector<std::string_view>& parts) {
  StatementOperand result;
  result.kind = StatementOperand::Kind::group;
  result.elements.reserve(parts.size());
  for (std::string_view part : parts)
    result.elements.push_back(operand(part));
  return result;
}

StatementOperand operand(std::string_view text) {
  StatementOperand result;
  using Kind = StatementOperand::Kind;
  if (text == "_") {
    result.kind = Kind::sink;
    return result;
  }
  const std::vector<std::string_view> pair = split(text, '|');
  if (pair.size() == 2) return group(pair);
  if (text.front() == '{') return group(split(text.substr(1, text.rfind('}') - 1), ','));
  if (text.front() == '!') {
    result.negated = true;
    text.remove_prefix(1);
  } else if (text.starts_with("-%")) {
    result.minus = true;
    text.remove_prefix(1);
  }
  if (text.front() != '%') {
    result.value = constant(std::string(text));
    return result;
  }
  const size_t dot = std::min(text.find('.'), text.size());
  if (!std::isdigit(static_cast<unsigned char>(text[2]))) {
    result.kind = Kind::special;
    return result;
  }
  result.kind = Kind::register_;
  result.letter = text[1];
  result.number = static_cast<unsigned>(std::strtoul(std::string(text.substr(2, dot - 2)).c_str(), nullptr, 10));
  if (dot < text.size()) result.selector = text.substr(dot + 1);
  return result;
}

} // namespace

unsigned StatementOperand::bits() const {
  switch (letter) {
  case 'p':
    return 1;
  case 'c':
    return 8;
  case 'h':
    return 16;
  case 'l':
  case 'd':
    return 64;
  case 'q':
    return 128;
  default:
    return 32;
  }
}

Statement::Statement(std::string_view source) : text(source) {
  std::string_view rest = trim(source);
  const size_t blank = std::min(rest.find(' '), rest.size());
  const std::vector<std::string_view> parts = split(rest.substr(0, blank), '.');
  opcode = parts.front();
  for (size_t i = 1; i < parts.size(); ++i) {
    words.emplace_back(parts[i]);
    if (auto type = ir::parse_type(parts[i])) types.push_back(*type);
  }
  rest = trim(rest.substr(blank));
  if (rest.empty()) return;
  for (std::string_view part : split(rest, ','))
    operands.push_back(operand(part));
}

bool Statement::has(std::string_view word) const {
  return std::find(words.begin(), words.end(), word) != words.end();
}

std::vector<const StatementOperand*> registers_of(const StatementOperand& operand) {
  std::vector<const StatementOperand*> result;
  if (operand.is_register()) result.push_back(&operand);
  for (const StatementOperand& element : operand.elements)
    if (element.is_register()) result.push_back(&element);
  return result;
}

bool is_stated_in_unit_tests(const Statement& statement) {
  using enum ir::ScalarType;
  const auto is_one_of = [](ir::ScalarType type, std::initializer_list<ir::ScalarType> types) {
    return std::find(types.begin(), types.end(), type) != types.end();
  };
  bool narrow = false, pair = false, mixed = false;
  for (ir::ScalarType type : statement.types) {
    if (is_one_of(type, {u8x4, s8x4, e2m1p4x4, ue8m0x4, ue5m3x2, s2f6x2})) return true;
    narrow |= is_one_of(type, {e4m3x2, e5m2x2, e2m3x2, e3m2x2, e2m1x2});
    pair |= type == bf16x2;
    mixed |= type != statement.types.front();
  }
  if (statement.opcode == "cvt")
    return statement.has("pzo") || statement.has("scaled::n1::ue8m0") || statement.has("scaled::n2::ue8m0") ||
           (narrow && (pair || statement.has("rz")));
  if (statement.opcode == "set") return statement.types.size() == 1 && is_one_of(statement.type(), {u16x2, s16x2});
  if (statement.opcode == "add" && statement.has("sat")) return is_one_of(statement.type(), {u32, u16x2, s16x2});
  const bool packed = is_one_of(statement.type(), {f32x2, f16x2, bf16x2, e4m3x4, e5m2x4});
  const bool arithmetic =
      statement.opcode == "add" || statement.opcode == "sub" || statement.opcode == "mul" || statement.opcode == "fma";
  return arithmetic && packed && (mixed || is_one_of(statement.type(), {e4m3x4, e5m2x4}));
}

} // namespace ptxrewrite::test
