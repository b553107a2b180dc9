#include "launch/expression.h"

#include "support/text/near_names.h"

#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace ptxrewrite::launch {

std::string to_string(const Number& number) {
  if (!number.is_decimal) return to_string(number.integer);
  char text[40];
  std::snprintf(text, sizeof text, "%.17g", number.decimal);
  return text;
}

namespace {

constexpr unsigned nesting_limit = 150;
constexpr size_t length_limit = size_t{1} << 20;

bool is_name_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$';
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_name_part(char c) {
  return is_name_start(c) || is_digit(c) || c == '.' || c == '@'; // P3@8: bytes of a parameter from 8 on
}

} // namespace

// Parses an expression and emits its steps. Every parse_* function emits code that pushes one value, or returns false
// with `error_` set.
class ExpressionParser {
public:
  ExpressionParser(std::string_view text, const Dialect& dialect, uint32_t offset)
      : text_(text), dialect_(dialect), offset_(offset) {}

  Result<ArithmeticExpression> parse() {
    if (text_.size() > length_limit) return Error{"the expression is longer than a million characters", {}};
    if (!parse_choice()) return error_;
    skip_blanks();
    if (at_ < text_.size())
      return Error{"expected an operator or the end of the expression, not '" + shown_character() + "'", here(1)};
    return std::move(result_);
  }

private:
  using Operation = ArithmeticExpression::Operation;

  struct BinaryOperator {
    std::string_view spelling;
    unsigned precedence;
    Operation operation;
  };
  // Longer spellings first. Precedences as in C.
  static constexpr BinaryOperator binary_operators[] = {
      {"&&", 2, Operation::jump_if_false_keep},
      {"||", 1, Operation::jump_if_true_keep},
      {"==", 6, Operation::equal},
      {"!=", 6, Operation::not_equal},
      {"<=", 7, Operation::less_equal},
      {">=", 7, Operation::greater_equal},
      {"<<", 8, Operation::shift_left},
      {">>", 8, Operation::shift_right},
      {"<", 7, Operation::less},
      {">", 7, Operation::greater},
      {"+", 9, Operation::add},
      {"-", 9, Operation::subtract},
      {"*", 10, Operation::multiply},
      {"/", 10, Operation::divide},
      {"%", 10, Operation::remainder},
      {"&", 5, Operation::bit_and},
      {"^", 4, Operation::bit_xor},
      {"|", 3, Operation::bit_or},
  };

  // --- text ---
  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r'))
      ++at_;
  }
  bool take(std::string_view word) {
    skip_blanks();
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }
  SourceRange here(size_t length) const {
    return {offset_ + static_cast<uint32_t>(at_), offset_ + static_cast<uint32_t>(at_ + length)};
  }
  SourceRange since(size_t start) const {
    return {offset_ + static_cast<uint32_t>(start), offset_ + static_cast<uint32_t>(at_)};
  }
  std::string shown_character() const {
    unsigned char c = static_cast<unsigned char>(text_[at_]);
    return c < 0x20 || c > 0x7e ? "?" : std::string(1, text_[at_]);
  }
  bool fail(std::string message, SourceRange range) {
    error_ = Error{std::move(message), range};
    return false;
  }

  // --- program ---
  void emit(Operation operation, uint32_t argument, SourceRange range, int stack_change) {
    result_.steps_.push_back({operation, argument, range});
    depth_ += stack_change;
    result_.stack_size_ = std::max(result_.stack_size_, static_cast<unsigned>(depth_));
  }
  size_t emit_jump(Operation operation, SourceRange range, int stack_change) {
    emit(operation, 0, range, stack_change);
    return result_.steps_.size() - 1;
  }
  void land(size_t jump) { result_.steps_[jump].argument = static_cast<uint32_t>(result_.steps_.size()); }

  bool push_constant(Number value, SourceRange range) {
    result_.constants_.push_back(value);
    emit(Operation::push_constant, static_cast<uint32_t>(result_.constants_.size() - 1), range, 1);
    return true;
  }

  // --- grammar ---
  bool parse_choice() {
    if (++nesting_ > nesting_limit) return fail("the expression is nested too deeply", here(1));
    if (!parse_binary(1)) return false;
    skip_blanks();
    size_t start = at_;
    if (take("?")) {
      size_t to_second = emit_jump(Operation::jump_if_false, since(start), -1);
      if (!parse_choice()) return false;
      if (!take(":")) return fail("expected ':' and the value for the other case", here(1));
      size_t to_end = emit_jump(Operation::jump, since(start), -1);
      land(to_second);
      if (!parse_choice()) return false;
      land(to_end);
    }
    --nesting_;
    return true;
  }

  const BinaryOperator* next_operator() {
    skip_blanks();
    if (at_ >= text_.size()) return nullptr;
    for (const BinaryOperator& row : binary_operators)
      if (row.spelling[0] == text_[at_] && text_.substr(at_).starts_with(row.spelling)) return &row;
    return nullptr;
  }

  bool parse_binary(unsigned least_precedence) {
    if (!parse_unary()) return false;
    for (;;) {
      const BinaryOperator* row = next_operator();
      if (!row || row->precedence < least_precedence) return true;
      size_t start = at_;
      at_ += row->spelling.size();
      SourceRange range = since(start);
      bool short_circuit =
          row->operation == Operation::jump_if_false_keep || row->operation == Operation::jump_if_true_keep;
      size_t jump = 0;
      if (short_circuit) jump = emit_jump(row->operation, range, -1);
      if (!parse_binary(row->precedence + 1)) return false;
      if (short_circuit) {
        emit(Operation::to_truth, 0, range, 0);
        land(jump);
      } else {
        emit(row->operation, 0, range, -1);
      }
    }
  }

  bool parse_unary() {
    skip_blanks();
    size_t start = at_;
    if (at_ >= text_.size()) return fail("expected a value at the end of the expression", end_range());
    Operation operation = text_[at_] == '-'   ? Operation::negate
                          : text_[at_] == '~' ? Operation::complement
                          : text_[at_] == '!' ? Operation::logical_not
                                              : Operation::add;
    if (text_[at_] == '+') {
      ++at_;
      return nested_unary();
    }
    if (operation == Operation::add) return parse_primary();
    ++at_;
    SourceRange range = since(start);
    if (!nested_unary()) return false;
    emit(operation, 0, range, 0);
    return true;
  }
  bool nested_unary() {
    if (++nesting_ > nesting_limit) return fail("the expression is nested too deeply", here(1));
    bool ok = parse_unary();
    --nesting_;
    return ok;
  }
  SourceRange end_range() const {
    // Refers to the last character: an empty range would have no caret.
    uint32_t end = offset_ + static_cast<uint32_t>(text_.size());
    return text_.empty() ? SourceRange{offset_, offset_ + 1} : SourceRange{end - 1, end};
  }

  bool parse_primary() {
    char c = text_[at_];
    if (c == '(') {
      size_t start = at_;
      ++at_;
      if (!parse_choice()) return false;
      if (!take(")")) return fail("this '(' has no ')'", {offset_ + uint32_t(start), offset_ + uint32_t(start) + 1});
      return true;
    }
    if (is_digit(c) || (c == '.' && at_ + 1 < text_.size() && is_digit(text_[at_ + 1]))) return parse_number();
    if (is_name_start(c)) return parse_name();
    return fail("expected a number, a name or '(', not '" + shown_character() + "'", here(1));
  }

  bool parse_number() {
    size_t start = at_;
    bool hexadecimal = text_[at_] == '0' && at_ + 1 < text_.size() && (text_[at_ + 1] | 0x20) == 'x';
    if (hexadecimal) at_ += 2;
    bool decimal = false;
    while (at_ < text_.size()) {
      char c = text_[at_];
      bool sign_of_exponent = decimal && (c == '-' || c == '+') && (text_[at_ - 1] | 0x20) == 'e';
      if (!is_name_part(c) && !sign_of_exponent) break;
      if (!hexadecimal && (c == '.' || (c | 0x20) == 'e')) decimal = true;
      ++at_;
    }
    std::string digits;
    for (char c : text_.substr(start, at_ - start))
      if (c != '_') digits += c;
    return decimal ? finish_decimal(digits, since(start)) : finish_integer(digits, hexadecimal, since(start));
  }

  bool finish_decimal(const std::string& digits, SourceRange range) {
    if (!dialect_.decimals) return fail("only integers can be used here", range);
    char* end = nullptr;
    double value = std::strtod(digits.c_str(), &end);
    if (end != digits.c_str() + digits.size()) return fail("this is not a number", range);
    return push_constant(Number::of(value), range);
  }

  bool finish_integer(const std::string& digits, bool hexadecimal, SourceRange range) {
    Int128 value = 0, base = hexadecimal ? 16 : 10;
    size_t first = hexadecimal ? 2 : 0;
    if (digits.size() == first) return fail("this is not a number", range);
    for (char c : digits.substr(first)) {
      int digit = is_digit(c) ? c - '0' : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10 : 99;
      if (digit >= base) return fail("this is not a number", range);
      auto product = checked_multiply(value, base);
      auto sum = product ? checked_add(*product, digit) : std::nullopt;
      if (!sum) return fail("this number does not fit in 128 bits", range);
      value = *sum;
    }
    return push_constant(value, range);
  }

  bool parse_name() {
    size_t start = at_;
    while (at_ < text_.size() && is_name_part(text_[at_]))
      ++at_;
    std::string_view name = text_.substr(start, at_ - start);
    SourceRange range = since(start);
    const FunctionRow* function = nullptr;
    for (const FunctionRow& row : dialect_.functions)
      if (row.name == name) function = &row;
    skip_blanks();
    if (at_ < text_.size() && text_[at_] == '(') {
      if (!function) return unknown_function(name, range);
      return parse_call(*function, range);
    }
    if (function && function->least == 0) return finish_call(*function, 0, false, range);
    if (function) return fail("'" + std::string(name) + "' is a function: write " + std::string(name) + "(...)", range);
    uint32_t index = 0;
    while (index < result_.names_.size() && result_.names_[index] != name)
      ++index;
    if (index == result_.names_.size()) {
      result_.names_.emplace_back(name);
      result_.name_ranges_.push_back(range);
    }
    emit(Operation::push_name, index, range, 1);
    return true;
  }

  bool unknown_function(std::string_view name, SourceRange range) {
    std::vector<std::string> known;
    for (const FunctionRow& row : dialect_.functions)
      known.emplace_back(row.name);
    return fail("there is no function '" + std::string(name) + "'" + near_names(name, known), range);
  }

  // Consumes `seed =` if it comes next.
  bool take_seed() {
    skip_blanks();
    size_t start = at_;
    if (!take("seed")) return false;
    skip_blanks();
    if (at_ < text_.size() && text_[at_] == '=' && !text_.substr(at_).starts_with("==")) {
      ++at_;
      return true;
    }
    at_ = start;
    return false;
  }

  bool parse_call(const FunctionRow& function, SourceRange range) {
    SourceRange open = here(1);
    ++at_;
    uint32_t count = 0;
    bool seeded = false;
    if (!take(")")) {
      do {
        skip_blanks();
        if (seeded) return fail("nothing may follow the seed", here(1));
        SourceRange argument_range = here(1);
        seeded = take_seed();
        if (seeded && !function.has_seed)
          return fail("'" + std::string(function.name) + "' takes no seed", argument_range);
        if (!parse_choice()) return false;
        if (!seeded) ++count;
      } while (take(","));
      if (!take(")")) return fail("this '(' has no ')'", open);
    }
    return finish_call(function, count, seeded, range);
  }

  // A function with a seed has a fixed number of other arguments, so the seed's index is known.
  bool finish_call(const FunctionRow& function, uint32_t count, bool seeded, SourceRange range) {
    if (count < function.least || count > function.most) {
      std::string wanted = std::to_string(function.least);
      if (function.most == unbounded_arguments)
        wanted = "at least " + wanted;
      else if (function.most != function.least)
        wanted += " to " + std::to_string(function.most);
      return fail("'" + std::string(function.name) + "' takes " + wanted +
                      (wanted == "1" ? " argument" : " arguments") + (function.has_seed ? " and a seed" : "") +
                      ", not " + std::to_string(count),
                  range);
    }
    if (function.has_seed && !seeded) push_constant(Number(), range);
    add_call(function, count + (function.has_seed ? 1 : 0), range);
    return true;
  }

  void add_call(const FunctionRow& function, uint32_t count, SourceRange range) {
    result_.per_element_ |= function.per_element;
    result_.calls_.push_back({&function, count});
    emit(Operation::call, static_cast<uint32_t>(result_.calls_.size() - 1), range, 1 - static_cast<int>(count));
  }

  std::string_view text_;
  const Dialect& dialect_;
  uint32_t offset_;
  size_t at_ = 0;
  unsigned nesting_ = 0;
  int depth_ = 0;
  ArithmeticExpression result_;
  Error error_;
};

Result<ArithmeticExpression> ArithmeticExpression::parse(std::string_view text, const Dialect& dialect,
                                                         uint32_t offset) {
  return ExpressionParser(text, dialect, offset).parse();
}

const char* ArithmeticExpression::apply_unary(Operation operation, Number& value) {
  switch (operation) {
  case Operation::negate:
    if (value.is_decimal) {
      value.decimal = -value.decimal;
      return nullptr;
    }
    if (value.integer == int128_min) return overflow_message;
    value.integer = -value.integer;
    return nullptr;
  case Operation::complement:
    if (value.is_decimal) return "'~' wants an integer";
    value.integer = ~value.integer;
    return nullptr;
  case Operation::logical_not:
    value = Number(value.truth() ? 0 : 1);
    return nullptr;
  default: // to_truth
    value = Number(value.truth() ? 1 : 0);
    return nullptr;
  }
}

const char* ArithmeticExpression::apply_to_decimals(Operation operation, double a, double b, Number& result) {
  switch (operation) {
  case Operation::add:
    result = Number::of(a + b);
    return nullptr;
  case Operation::subtract:
    result = Number::of(a - b);
    return nullptr;
  case Operation::multiply:
    result = Number::of(a * b);
    return nullptr;
  case Operation::divide:
    if (b == 0) return "division by zero";
    result = Number::of(a / b);
    return nullptr;
  case Operation::equal:
    result = Number(a == b);
    return nullptr;
  case Operation::not_equal:
    result = Number(a != b);
    return nullptr;
  case Operation::less:
    result = Number(a < b);
    return nullptr;
  case Operation::less_equal:
    result = Number(a <= b);
    return nullptr;
  case Operation::greater:
    result = Number(a > b);
    return nullptr;
  case Operation::greater_equal:
    result = Number(a >= b);
    return nullptr;
  default:
    return "this operator wants integers";
  }
}

const char* ArithmeticExpression::apply_to_integers(Operation operation, Int128 a, Int128 b, Number& result) {
  auto set = [&result](std::optional<Int128> value) {
    if (value) result = Number(*value);
    return value ? nullptr : overflow_message;
  };
  switch (operation) {
  case Operation::add:
    return set(checked_add(a, b));
  case Operation::subtract:
    return set(checked_subtract(a, b));
  case Operation::multiply:
    return set(checked_multiply(a, b));
  case Operation::divide:
    if (b == 0) return "division by zero";
    if (b == -1) return set(checked_subtract(0, a)); // the machine's division would trap for the smallest number
    return set(a / b);
  case Operation::remainder:
    if (b == 0) return "remainder of a division by zero";
    return set(b == -1 ? Int128(0) : a % b);
  case Operation::shift_left:
    if (b < 0) return "a shift by a negative number";
    return set(checked_shift_left(a, b));
  case Operation::shift_right:
    if (b < 0) return "a shift by a negative number";
    return set(a >> static_cast<int>(b > 127 ? Int128(127) : b));
  case Operation::bit_and:
    return set(a & b);
  case Operation::bit_or:
    return set(a | b);
  case Operation::bit_xor:
    return set(a ^ b);
  case Operation::equal:
    return set(a == b);
  case Operation::not_equal:
    return set(a != b);
  case Operation::less:
    return set(a < b);
  case Operation::less_equal:
    return set(a <= b);
  case Operation::greater:
    return set(a > b);
  default: // greater_equal
    return set(a >= b);
  }
}

const char* ArithmeticExpression::apply_binary(Operation operation, const Number& a, const Number& b, Number& result) {
  if (a.is_decimal || b.is_decimal) return apply_to_decimals(operation, a.as_double(), b.as_double(), result);
  return apply_to_integers(operation, a.integer, b.integer, result);
}

Result<Number> ArithmeticExpression::evaluate(std::span<const Number> values, const ElementContext& element) const {
  constexpr size_t small = 16;
  std::array<Number, small> few;
  std::vector<Number> many(stack_size_ > small ? stack_size_ : 0);
  Number* const stack = stack_size_ > small ? many.data() : few.data();
  Number* top = stack; // one after the last value
  for (size_t at = 0; at < steps_.size(); ++at) {
    const Step& step = steps_[at];
    const char* failure = nullptr;
    switch (step.operation) {
    case Operation::push_constant:
      *top++ = constants_[step.argument];
      break;
    case Operation::push_name:
      *top++ = values[step.argument];
      break;
    case Operation::call: {
      const Call& call = calls_[step.argument];
      Number result;
      failure = call.function->body({top - call.argument_count, call.argument_count}, element, result);
      top -= call.argument_count;
      *top++ = result;
      break;
    }
    case Operation::negate:
    case Operation::complement:
    case Operation::logical_not:
    case Operation::to_truth:
      failure = apply_unary(step.operation, top[-1]);
      break;
    case Operation::jump:
      at = step.argument - 1;
      break;
    case Operation::jump_if_false:
      if (!(--top)->truth()) at = step.argument - 1;
      break;
    case Operation::jump_if_false_keep:
    case Operation::jump_if_true_keep:
      if (top[-1].truth() == (step.operation == Operation::jump_if_true_keep)) {
        apply_unary(Operation::to_truth, top[-1]);
        at = step.argument - 1;
      } else {
        --top;
      }
      break;
    default:
      --top;
      failure = apply_binary(step.operation, top[-1], top[0], top[-1]);
      break;
    }
    if (failure) return Error{failure, step.range};
  }
  return stack[0];
}

std::optional<ArithmeticExpression::SingleCall> ArithmeticExpression::as_single_call() const {
  if (steps_.empty() || steps_.back().operation != Operation::call) return std::nullopt;
  const Call& call = calls_[steps_.back().argument];
  SingleCall single{call.function->body, {}};
  // Literals, possibly negated.
  for (size_t at = 0; at + 1 < steps_.size(); ++at) {
    const Step& step = steps_[at];
    if (step.operation == Operation::push_constant)
      single.arguments.push_back(constants_[step.argument]);
    else if (step.operation != Operation::negate || apply_unary(step.operation, single.arguments.back()))
      return std::nullopt;
  }
  return single.arguments.size() == call.argument_count ? std::optional(std::move(single)) : std::nullopt;
}

void ArithmeticExpression::visit(PostfixVisitor& visitor) const {
  // In the order of Operation.
  static constexpr std::string_view spellings[] = {"",   "",   "",  "neg", "~", "!",  "!!", "+", "-",  "*", "/", "%",
                                                   "<<", ">>", "&", "|",   "^", "==", "!=", "<", "<=", ">", ">="};
  // Steps before which an operator with jumps is complete, with its spelling; inner ones complete first.
  std::vector<std::pair<uint32_t, std::string_view>> open;
  auto close = [&](size_t step) {
    for (; !open.empty() && open.back().first == step; open.pop_back())
      visitor.operation(open.back().second, open.back().second == "?:" ? 3 : 2);
  };
  for (size_t i = 0; i < steps_.size(); ++i) {
    close(i);
    const Step& step = steps_[i];
    switch (step.operation) {
    case Operation::push_constant:
      visitor.number(constants_[step.argument]);
      break;
    case Operation::push_name:
      visitor.name(step.argument);
      break;
    case Operation::call:
      visitor.operation(calls_[step.argument].function->name, calls_[step.argument].argument_count);
      break;
    case Operation::jump_if_false: // its target follows the jump at the end of the first case
      open.emplace_back(steps_[step.argument - 1].argument, "?:");
      break;
    case Operation::jump:
      break;
    case Operation::jump_if_false_keep:
      open.emplace_back(step.argument, "&&");
      break;
    case Operation::jump_if_true_keep:
      open.emplace_back(step.argument, "||");
      break;
    default:
      visitor.operation(spellings[static_cast<size_t>(step.operation)], step.operation <= Operation::to_truth ? 1 : 2);
    }
  }
  close(steps_.size());
}

} // namespace ptxrewrite::launch
