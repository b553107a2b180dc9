#include "grammar/constant.h"

#include <charconv>

namespace ptxrewrite::grammar {

IntegerLiteral parse_integer(std::string_view text) {
  IntegerLiteral literal;
  if (text.back() == 'U') {
    literal.has_suffix = literal.is_unsigned = true;
    text.remove_suffix(1);
  }
  unsigned base = 10;
  if (text.size() > 1 && text[0] == '0') {
    if (text[1] == 'x' || text[1] == 'X') {
      base = 16;
      literal.hexadecimal = true;
      text.remove_prefix(2);
    } else if (text[1] == 'b' || text[1] == 'B') {
      base = 2;
      text.remove_prefix(2);
    } else {
      base = 8;
      text.remove_prefix(1);
    }
  }
  for (char c : text) {
    unsigned digit = c <= '9' ? static_cast<unsigned>(c - '0') : static_cast<unsigned>((c | 0x20) - 'a' + 10);
    // ptxas rejects a further digit after 2^63 or more, and otherwise truncates numbers that are too long.
    if (literal.value >> 63) literal.overflows = true;
    const uint64_t before = literal.value;
    literal.value = before * base + digit;
    if (before > (UINT64_MAX - digit) / base) literal.is_cut = true;
  }
  if (literal.value >> 63) literal.is_unsigned = true;
  return literal;
}

std::optional<double> parse_decimal(std::string_view text) {
  double value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  return value;
}

uint64_t parse_float_bits(std::string_view text) {
  uint64_t bits = 0;
  std::from_chars(text.data() + 2, text.data() + text.size(), bits, 16);
  return bits;
}

namespace {

using Op = ConstantOperator;

// Operators with higher values bind tighter.
int precedence(Op op) {
  switch (op) {
  case Op::base:
  case Op::open:
    return 0;
  case Op::conditional_begin:
  case Op::conditional:
    return 1;
  case Op::logical_or:
    return 2;
  case Op::logical_and:
    return 3;
  case Op::bit_or:
    return 4;
  case Op::bit_xor:
    return 5;
  case Op::bit_and:
    return 6;
  case Op::equal:
  case Op::not_equal:
    return 7;
  case Op::less:
  case Op::greater:
  case Op::less_equal:
  case Op::greater_equal:
    return 8;
  case Op::shift_left:
  case Op::shift_right:
    return 9;
  case Op::add:
  case Op::subtract:
    return 10;
  case Op::multiply:
  case Op::divide:
  case Op::remainder:
    return 11;
  default:
    return 12;
  }
}

Op binary_operator(std::string_view text) {
  switch (text[0]) {
  case '+':
    return Op::add;
  case '-':
    return Op::subtract;
  case '*':
    return Op::multiply;
  case '/':
    return Op::divide;
  case '%':
    return Op::remainder;
  case '^':
    return Op::bit_xor;
  case '|':
    return text.size() > 1 ? Op::logical_or : Op::bit_or;
  case '&':
    return text.size() > 1 ? Op::logical_and : Op::bit_and;
  case '=':
    return Op::equal;
  case '!':
    return Op::not_equal;
  case '<':
    return text.size() == 1 ? Op::less : text[1] == '<' ? Op::shift_left : Op::less_equal;
  case '>':
    return text.size() == 1 ? Op::greater : text[1] == '>' ? Op::shift_right : Op::greater_equal;
  default:
    return Op::conditional_begin;
  }
}

bool truth(const Constant& c) {
  return c.is_float ? c.real != 0 : c.integer != 0;
}

Constant compare(Op op, const Constant& a, const Constant& b) {
  auto by = [op](auto x, auto y) {
    switch (op) {
    case Op::equal:
      return x == y;
    case Op::not_equal:
      return x != y;
    case Op::less:
      return x < y;
    case Op::greater:
      return x > y;
    case Op::less_equal:
      return x <= y;
    default:
      return x >= y;
    }
  };
  bool result = a.is_float                       ? by(a.real, b.real)
                : a.is_unsigned || b.is_unsigned ? by(a.integer, b.integer)
                                                 : by(static_cast<int64_t>(a.integer), static_cast<int64_t>(b.integer));
  return Constant::of(result);
}

} // namespace

bool ConstantEvaluator::push(ConstantOperator op) {
  constexpr size_t nesting_limit = 256; // the parser recurses for every prefix and parenthesis
  if (operators_.size() >= nesting_limit) return false;
  operators_.push_back(op);
  return true;
}

void ConstantEvaluator::reduce_prefixes() {
  while (behind_prefix())
    reduce();
}

bool ConstantEvaluator::binary(std::string_view text) {
  if (text == ":") {
    while (precedence(operators_.back()) > 0 && operators_.back() != Op::conditional_begin)
      reduce();
    if (operators_.back() != Op::conditional_begin)
      fail("':' without '?' in a constant expression");
    else
      operators_.back() = Op::conditional;
    return true;
  }
  Op op = binary_operator(text);
  const int level = precedence(op);
  // Left to right, but `a ? b : c ? d : e` is right-associative.
  while (precedence(operators_.back()) > level || (level > 1 && precedence(operators_.back()) == level))
    reduce();
  return push(op);
}

void ConstantEvaluator::close() {
  while (precedence(operators_.back()) > 0)
    reduce();
  if (operators_.back() == Op::open) operators_.pop_back();
  reduce_prefixes();
}

Constant ConstantEvaluator::end() {
  while (!operators_.empty() && operators_.back() != Op::base)
    reduce();
  if (!operators_.empty()) operators_.pop_back();
  return pop();
}

Constant ConstantEvaluator::pop() {
  if (values_.empty()) {
    fail("a constant is missing here");
    return {};
  }
  Constant value = values_.back();
  values_.pop_back();
  return value;
}

void ConstantEvaluator::reduce() {
  Op op = operators_.back();
  operators_.pop_back();
  if (op == Op::open) return;
  if (op == Op::conditional_begin) {
    fail("'?' without ':' in a constant expression");
    return;
  }
  Constant right = pop();
  if (op >= Op::plus) {
    values_.push_back(apply_unary(op, right));
    return;
  }
  Constant left = pop();
  if (op == Op::conditional) {
    Constant condition = pop();
    if (condition.is_float || left.is_float || right.is_float) fail("'?' needs integers");
    Constant chosen = truth(condition) ? left : right;
    chosen.is_unsigned = left.is_unsigned || right.is_unsigned;
    values_.push_back(chosen);
    return;
  }
  values_.push_back(apply_binary(op, left, right));
}

Constant ConstantEvaluator::apply_unary(ConstantOperator op, Constant operand) {
  switch (op) {
  case Op::minus:
    if (operand.is_float) return Constant::of_real(-operand.real);
    operand.integer = 0 - operand.integer;
    return operand;
  case Op::plus:
    return operand;
  default:
    break;
  }
  if (operand.is_float) {
    fail("this operator needs an integer");
    return {};
  }
  switch (op) {
  case Op::logical_not:
    return Constant::of(!truth(operand));
  case Op::bit_not:
    return Constant::of_unsigned(~operand.integer);
  default:
    return {false, op == Op::cast_unsigned, operand.integer, 0}; // casts
  }
}

Constant ConstantEvaluator::apply_binary(ConstantOperator op, Constant left, Constant right) {
  if (left.is_float != right.is_float) {
    fail("integers and floating-point numbers do not mix in a constant expression");
    return {};
  }
  const bool real = left.is_float;
  if (real && (op == Op::logical_or || op == Op::logical_and)) {
    fail("this operator needs integers");
    return {};
  }
  switch (op) {
  case Op::logical_or:
    return Constant::of(truth(left) || truth(right));
  case Op::logical_and:
    return Constant::of(truth(left) && truth(right));
  case Op::equal:
  case Op::not_equal:
  case Op::less:
  case Op::greater:
  case Op::less_equal:
  case Op::greater_equal:
    return compare(op, left, right);
  default:
    break;
  }
  if (real) {
    const double a = left.real, b = right.real;
    switch (op) {
    case Op::add:
      return Constant::of_real(a + b);
    case Op::subtract:
      return Constant::of_real(a - b);
    case Op::multiply:
      return Constant::of_real(a * b);
    case Op::divide:
      return Constant::of_real(a / b);
    default:
      fail("this operator needs integers");
      return {};
    }
  }
  const uint64_t a = left.integer, b = right.integer;
  const bool is_unsigned = left.is_unsigned || right.is_unsigned;
  switch (op) {
  case Op::bit_or:
    return {false, is_unsigned, a | b, 0};
  case Op::bit_xor:
    return {false, is_unsigned, a ^ b, 0};
  case Op::bit_and:
    return {false, is_unsigned, a & b, 0};
  // Shift amounts are modulo 64, as in ptxas.
  case Op::shift_left:
    return {false, left.is_unsigned, a << (b & 63), 0};
  case Op::shift_right:
    if (left.is_unsigned) return Constant::of_unsigned(a >> (b & 63));
    return Constant::of(static_cast<int64_t>(a) >> (b & 63));
  case Op::add:
    return {false, is_unsigned, a + b, 0};
  case Op::subtract:
    return {false, is_unsigned, a - b, 0};
  case Op::multiply:
    return {false, is_unsigned, a * b, 0};
  default:
    break;
  }
  if (b == 0) {
    fail("division by zero in a constant expression");
    return {};
  }
  // ptxas computes remainders as unsigned, whatever the operands.
  if (op == Op::remainder) return {false, is_unsigned, a % b, 0};
  if (is_unsigned) return Constant::of_unsigned(a / b);
  if (b == UINT64_MAX) return Constant::of(static_cast<int64_t>(0 - a)); // INT64_MIN / -1
  return Constant::of(static_cast<int64_t>(a) / static_cast<int64_t>(b));
}

} // namespace ptxrewrite::grammar
