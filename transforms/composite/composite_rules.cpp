// Parses composite_rules.def, row by row. The text is part of the program: assertions, and tests over all rows, find
// errors in it.
#include "transforms/composite/composite_rules.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cctype>
#include <charconv>
#include <mutex>
#include <unordered_map>

namespace ptxrewrite::transforms::legal::composite {

namespace {

class Reader {
public:
  // `alternative`: the index of the choice for each `x|y(...)`.
  Reader(std::string_view text, size_t alternative) : text_(text), alternative_(alternative) {}

  RuleTerm term();
  RuleExpression expression() { return conditional(); }
  bool at_end() {
    skip_blanks();
    return position_ == text_.size();
  }
  size_t alternatives() const { return alternatives_; }

private:
  void skip_blanks() {
    while (position_ < text_.size() && text_[position_] == ' ')
      ++position_;
  }
  bool take(std::string_view word) {
    skip_blanks();
    if (!text_.substr(position_).starts_with(word)) return false;
    position_ += word.size();
    return true;
  }
  void expect(std::string_view word) {
    [[maybe_unused]] const bool found = take(word);
    assert(found);
  }
  bool at_digit() {
    skip_blanks();
    return position_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[position_]));
  }
  uint32_t number();
  std::string word();
  std::string mnemonic();
  RuleExpression conditional();
  RuleExpression binary(unsigned level);
  RuleExpression unary();
  RuleExpression call(std::string name);

  std::string_view text_;
  size_t alternative_;
  size_t alternatives_ = 1;
  size_t position_ = 0;
};

uint32_t Reader::number() {
  skip_blanks();
  const bool hexadecimal = text_.substr(position_).starts_with("0x");
  if (hexadecimal) position_ += 2;
  uint32_t value = 0;
  const char* begin = text_.data() + position_;
  const auto end = std::from_chars(begin, text_.data() + text_.size(), value, hexadecimal ? 16 : 10);
  assert(end.ec == std::errc());
  position_ += static_cast<size_t>(end.ptr - begin);
  return value;
}

// Letters, digits, dots and underscores.
std::string Reader::word() {
  skip_blanks();
  const size_t begin = position_;
  while (position_ < text_.size() &&
         (std::isalnum(static_cast<unsigned char>(text_[position_])) || text_[position_] == '.'))
    ++position_;
  assert(position_ > begin);
  return std::string(text_.substr(begin, position_ - begin));
}

std::string Reader::mnemonic() {
  std::vector<std::string> words{word()};
  while (position_ < text_.size() && text_[position_] == '|' && words.front().find('.') != std::string::npos) {
    ++position_;
    words.push_back(word());
  }
  alternatives_ = std::max(alternatives_, words.size());
  return words[alternative_ % words.size()];
}

RuleTerm Reader::term() {
  RuleTerm result;
  skip_blanks();
  if (take("#")) {
    if (take("(")) {
      result.kind = RuleTerm::Kind::computed;
      result.expression = expression();
      expect(")");
    } else {
      result.kind = RuleTerm::Kind::name;
      result.text = word();
    }
    return result;
  }
  const bool minus = take("-");
  if (at_digit()) {
    result.number = minus ? 0 - number() : number();
    return result;
  }
  result.text = mnemonic();
  if (!take("(")) {
    result.kind = RuleTerm::Kind::variable;
    if (result.text == "p") result.bits = 1;
    if (result.text.size() > 1) std::from_chars(&result.text[1], result.text.data() + result.text.size(), result.bits);
    return result;
  }
  result.kind = RuleTerm::Kind::application;
  do
    result.operands.push_back(term());
  while (take(","));
  expect(")");
  result.mnemonic = mnemonic_id(result.text);
  result.commutes = commutes(result.text);
  result.is_float = result.text.ends_with(".f32");
  result.is_byte = result.text.starts_with("byte");
  return result;
}

RuleExpression::Code code_of(std::string_view text) {
  using Code = RuleExpression::Code;
  constexpr std::pair<std::string_view, Code> codes[] = {
      {"~", Code::complement}, {"ones", Code::ones},    {"popc", Code::popc},     {"?:", Code::choice},
      {"+", Code::add},        {"-", Code::subtract},   {"*", Code::multiply},    {"&", Code::bit_and},
      {"|", Code::bit_or},     {"^", Code::bit_xor},    {"<<", Code::shift_left}, {">>", Code::shift_right},
      {"==", Code::equal},     {"!=", Code::not_equal}, {"<", Code::less},        {">", Code::greater},
      {"<=", Code::at_most},   {">=", Code::at_least},  {"||", Code::either},     {"&&", Code::both}};
  const auto* found = std::ranges::find(codes, text, &std::pair<std::string_view, Code>::first);
  return found == std::end(codes) ? Code::none : found->second;
}

RuleExpression operation(std::string text, std::vector<RuleExpression> operands) {
  RuleExpression result;
  result.kind = RuleExpression::Kind::operation;
  result.code = code_of(text);
  result.text = std::move(text);
  result.operands = std::move(operands);
  return result;
}

RuleExpression Reader::conditional() {
  RuleExpression condition = binary(0);
  if (!take("?")) return condition;
  RuleExpression yes = conditional();
  expect(":");
  RuleExpression no = conditional();
  return operation("?:", {std::move(condition), std::move(yes), std::move(no)});
}

// Lowest precedence first; an operator precedes its own prefixes.
constexpr std::array<std::array<std::string_view, 4>, 9> operators{
    {{"||"}, {"&&"}, {"|"}, {"^"}, {"&"}, {"==", "!="}, {"<=", ">=", "<", ">"}, {"<<", ">>"}, {"+", "-", "*"}}};

RuleExpression Reader::binary(unsigned level) {
  if (level == operators.size()) return unary();
  RuleExpression left = binary(level + 1);
  for (;;) {
    skip_blanks();
    const std::string_view rest = text_.substr(position_);
    std::string_view found;
    for (std::string_view candidate : operators[level]) {
      if (candidate.empty() || !rest.starts_with(candidate)) continue;
      // `|` must not match the start of `||`, nor `<` that of `<<`.
      if (candidate.size() == 1 && rest.size() > 1 && rest[1] == candidate[0] && candidate != "-") continue;
      found = candidate;
      break;
    }
    if (found.empty()) return left;
    position_ += found.size();
    left = operation(std::string(found), {std::move(left), binary(level + 1)});
  }
}

RuleExpression Reader::unary() {
  if (take("~")) return operation("~", {unary()});
  if (take("(")) {
    RuleExpression inside = expression();
    expect(")");
    return inside;
  }
  RuleExpression result;
  if (at_digit()) {
    result.number = number();
    return result;
  }
  std::string name = word();
  if (take("(")) return call(std::move(name));
  result.kind = RuleExpression::Kind::name;
  result.text = std::move(name);
  return result;
}

RuleExpression Reader::call(std::string name) {
  RuleExpression result = operation(std::move(name), {});
  if (result.text == "zeros" || result.text == "fits") {
    result.kind = RuleExpression::Kind::fact;
    result.variable = word();
    expect(",");
  } else {
    assert(result.text == "ones" || result.text == "popc");
  }
  result.operands.push_back(expression());
  expect(")");
  return result;
}

// Splits a conjunction into its operands.
void split_conditions(RuleExpression expression, std::vector<RuleExpression>& conditions) {
  if (expression.kind == RuleExpression::Kind::operation && expression.text == "&&") {
    for (RuleExpression& operand : expression.operands)
      split_conditions(std::move(operand), conditions);
    return;
  }
  conditions.push_back(std::move(expression));
}

std::vector<RuleExpression> parse_conditions(std::string_view text) {
  std::vector<RuleExpression> conditions;
  if (text.empty()) return conditions;
  Reader reader(text, 0);
  split_conditions(reader.expression(), conditions);
  assert(reader.at_end());
  return conditions;
}

ByteRule parse_bytes(std::string_view pattern, std::string_view condition, std::string_view bytes) {
  ByteRule rule;
  rule.pattern = Reader(pattern, 0).term();
  rule.conditions = parse_conditions(condition);
  rule.text = std::string(pattern) + (condition.empty() ? "" : " where " + std::string(condition));
  size_t at = 0;
  for (Byte& byte : rule.bytes) {
    while (bytes[at] == ' ')
      ++at;
    if (bytes[at] == 'z') {
      ++at;
      continue;
    }
    byte.kind = bytes[at] == '~' ? Byte::Kind::sign : Byte::Kind::byte;
    at += bytes[at] == '~';
    byte.variable = bytes[at];
    byte.index = static_cast<uint8_t>(bytes[at + 1] - '0');
    at += 2;
  }
  return rule;
}

// Instantiates `element` for one byte: @ is the number of the byte or, alone, a variable of its own: w, x, y, z.
std::string element_of(std::string_view element, size_t byte) {
  std::string text;
  for (size_t i = 0; i < element.size(); ++i) {
    if (element[i] != '@')
      text += element[i];
    else if (i > 0 && std::isalpha(static_cast<unsigned char>(element[i - 1])))
      text += static_cast<char>('0' + byte);
    else
      text += "wxyz"[byte];
  }
  return text;
}

std::vector<Rule> parse_elements(const RuleRow& row) {
  const std::string_view element = row.pattern;
  std::array<std::string, 4> e;
  for (size_t i = 0; i < e.size(); ++i)
    e[i] = element_of(element, i);
  const std::string pattern = "or.b32(or.b32(or.b32(and.b32(" + e[0] + ", 255), shl.b32(and.b32(" + e[1] +
                              ", 255), 8)), shl.b32(and.b32(" + e[2] + ", 255), 16)), shl.b32(" + e[3] + ", 24))";
  std::vector<Rule> rules =
      parse_rule(row.family, row.name, pattern, row.condition, row.replacement, row.version, row.target, row.saves);
  for (size_t i = 0; i < rules.size(); ++i) {
    rules[i].pattern_text = "four bytes of " + std::string(element);
    for (const std::string& text : e)
      rules[i].elements.push_back(Reader(text, i).term());
  }
  return rules;
}

LogicRule parse_logic(std::string_view pattern, std::string_view table) {
  return {Reader(pattern, 0).term(), Reader(table, 0).expression(), std::string(pattern)};
}

constexpr RuleRow row_table[] = {
#define SYNONYM(canonical, other)
#define RULE(family, name, pattern, condition, replacement, version, target, saves)                                    \
  {Family::family, name, pattern, condition, replacement, version, target, saves, false},
#define BYTES(pattern, condition, bytes)
#define ELEMENTS(name, element, replacement, version, target, saves)                                                   \
  {Family::bytes, name, element, "", replacement, version, target, saves, true},
#define LOGIC(pattern, table)
#include "transforms/composite/composite_rules.def"
#undef SYNONYM
#undef RULE
#undef BYTES
#undef ELEMENTS
#undef LOGIC
};

constexpr Synonym synonym_table[] = {
#define SYNONYM(canonical, other) {canonical, other},
#define RULE(family, name, pattern, condition, replacement, version, target, saves)
#define BYTES(pattern, condition, bytes)
#define ELEMENTS(name, element, replacement, version, target, saves)
#define LOGIC(pattern, table)
#include "transforms/composite/composite_rules.def"
#undef SYNONYM
#undef RULE
#undef BYTES
#undef ELEMENTS
#undef LOGIC
};

} // namespace

std::vector<Rule> parse_rule(Family family, std::string_view name, std::string_view pattern, std::string_view condition,
                             std::string_view replacement, unsigned version, unsigned target, unsigned saves) {
  std::vector<Rule> list;
  size_t alternatives = 1;
  for (size_t alternative = 0; alternative < alternatives; ++alternative) {
    Rule rule{family, std::string(name), {}, parse_conditions(condition), {}, version, target, saves, {}, {}, {}, {}};
    Reader reader(pattern, alternative);
    rule.pattern = reader.term();
    assert(reader.at_end());
    alternatives = reader.alternatives();
    rule.replacement = Reader(replacement, alternative).term();
    rule.pattern_text = pattern;
    rule.condition_text = condition;
    rule.replacement_text = replacement;
    list.push_back(std::move(rule));
  }
  return list;
}

namespace {

using RowsByRoot = std::unordered_map<std::string_view, std::vector<const RuleRow*>>;

RowsByRoot rows_by_root() {
  RowsByRoot table;
  for (const RuleRow& row : row_table)
    // Alternatives end at a bar, the last one before its operands.
    for (std::string_view rest = row.pattern.substr(0, row.pattern.find('('));;) {
      const size_t bar = rest.find('|');
      std::vector<const RuleRow*>& rows = table[rest.substr(0, bar)];
      if (rows.empty() || rows.back() != &row) rows.push_back(&row);
      if (bar == std::string_view::npos) break;
      rest.remove_prefix(bar + 1);
    }
  return table;
}

} // namespace

std::span<const RuleRow* const> rows_with_root(std::string_view mnemonic) {
  static const RowsByRoot table = rows_by_root();
  const auto found = table.find(mnemonic);
  return found == table.end() ? std::span<const RuleRow* const>() : found->second;
}

std::span<const RuleRow> rule_rows() {
  return row_table;
}

std::span<const Rule> rules_of(const RuleRow& row) {
  static std::array<std::once_flag, std::size(row_table)> once;
  static std::array<std::vector<Rule>, std::size(row_table)> parsed;
  const auto index = static_cast<size_t>(&row - row_table);
  assert(index < std::size(row_table));
  std::call_once(once[index], [&] {
    parsed[index] = row.is_element ? parse_elements(row)
                                   : parse_rule(row.family, row.name, row.pattern, row.condition, row.replacement,
                                                row.version, row.target, row.saves);
  });
  return parsed[index];
}

std::span<const Rule> rules() {
  static const std::vector<Rule> table = [] {
    std::vector<Rule> list;
    for (const RuleRow& row : row_table)
      list.insert(list.end(), rules_of(row).begin(), rules_of(row).end());
    return list;
  }();
  return table;
}

std::span<const ByteRule> byte_rules() {
  static const std::vector<ByteRule> table{
#define SYNONYM(canonical, other)
#define RULE(family, name, pattern, condition, replacement, version, target, saves)
#define BYTES(pattern, condition, bytes) parse_bytes(pattern, condition, bytes),
#define ELEMENTS(name, element, replacement, version, target, saves)
#define LOGIC(pattern, table)
#include "transforms/composite/composite_rules.def"
#undef SYNONYM
#undef RULE
#undef BYTES
#undef ELEMENTS
#undef LOGIC
  };
  return table;
}

std::span<const LogicRule> logic_rules() {
  static const std::vector<LogicRule> table{
#define SYNONYM(canonical, other)
#define RULE(family, name, pattern, condition, replacement, version, target, saves)
#define BYTES(pattern, condition, bytes)
#define ELEMENTS(name, element, replacement, version, target, saves)
#define LOGIC(pattern, table) parse_logic(pattern, table),
#include "transforms/composite/composite_rules.def"
#undef SYNONYM
#undef RULE
#undef BYTES
#undef ELEMENTS
#undef LOGIC
  };
  return table;
}

std::span<const Synonym> synonyms() {
  return synonym_table;
}

std::string_view canonical(std::string_view mnemonic) {
  // A dozen rows: most words differ in their length or in one of two letters.
  if (mnemonic.size() < 4) return mnemonic;
  for (const Synonym& synonym : synonym_table)
    if (synonym.other.size() == mnemonic.size() && synonym.other[1] == mnemonic[1] &&
        synonym.other[mnemonic.size() - 3] == mnemonic[mnemonic.size() - 3] && synonym.other == mnemonic)
      return synonym.canonical;
  return mnemonic;
}

MnemonicId mnemonic_id(std::string_view canonical) {
  static std::mutex mutex;
  static std::unordered_map<std::string, MnemonicId> numbers;
  const std::lock_guard lock(mutex);
  return numbers.try_emplace(std::string(canonical), static_cast<MnemonicId>(numbers.size() + 1)).first->second;
}

MnemonicId mnemonic_id(const ir::Form& form) {
  thread_local std::vector<MnemonicId> known; // by FormId
  const size_t index = form.id.index();
  if (known.size() <= index) known.resize(std::max(index + 1, 2 * known.size()));
  if (known[index] == 0) known[index] = mnemonic_id(canonical(form.mnemonic));
  return known[index];
}

bool commutes(std::string_view mnemonic) {
  for (std::string_view start : {"and.", "or.", "xor.", "add.", "mul.", "mad.", "min.", "max."})
    if (mnemonic.starts_with(start)) return true;
  return false;
}

uint32_t evaluate(const RuleExpression& expression, const Meaning& meaning) {
  if (expression.kind == RuleExpression::Kind::number) return expression.number;
  if (expression.kind == RuleExpression::Kind::name) return meaning.literal(expression.text);
  const uint32_t x = evaluate(expression.operands[0], meaning);
  if (expression.kind == RuleExpression::Kind::fact) return meaning.fact(expression.text, expression.variable, x);
  using Code = RuleExpression::Code;
  if (expression.code == Code::choice) return evaluate(expression.operands[x ? 1 : 2], meaning);
  const uint32_t y = expression.operands.size() > 1 ? evaluate(expression.operands[1], meaning) : 0;
  switch (expression.code) {
  case Code::complement:
    return ~x;
  case Code::ones:
    return x >= 32 ? UINT32_MAX : (1u << x) - 1;
  case Code::popc:
    return static_cast<uint32_t>(std::popcount(x));
  case Code::add:
    return x + y;
  case Code::subtract:
    return x - y;
  case Code::multiply:
    return x * y;
  case Code::bit_and:
    return x & y;
  case Code::bit_or:
    return x | y;
  case Code::bit_xor:
    return x ^ y;
  case Code::shift_left:
    return y >= 32 ? 0 : x << y;
  case Code::shift_right:
    return y >= 32 ? 0 : x >> y;
  case Code::equal:
    return x == y;
  case Code::not_equal:
    return x != y;
  case Code::less:
    return x < y;
  case Code::greater:
    return x > y;
  case Code::at_most:
    return x <= y;
  case Code::at_least:
    return x >= y;
  case Code::either:
    return x || y;
  case Code::both:
    return x && y;
  case Code::none:
  case Code::choice:
    break;
  }
  assert(false);
  return 0;
}

} // namespace ptxrewrite::transforms::legal::composite
