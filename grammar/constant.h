// Literals and constant expressions, evaluated as in ptxas: integers are 64 bits wide, signed unless a U suffix, their
// size or an operator makes them unsigned; floating-point numbers are doubles and do not mix with integers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ptxrewrite::grammar {

struct Constant {
  bool is_float = false;
  bool is_unsigned = false;
  uint64_t integer = 0; // two's complement
  double real = 0;

  static Constant of(int64_t value) { return {false, false, static_cast<uint64_t>(value), 0}; }
  static Constant of_unsigned(uint64_t value) { return {false, true, value, 0}; }
  static Constant of_real(double value) { return {true, false, 0, value}; }
};

struct IntegerLiteral {
  uint64_t value = 0; // modulo 2^64, as in ptxas
  bool hexadecimal = false;
  bool is_unsigned = false;
  bool has_suffix = false;
  bool overflows = false; // rejected by ptxas
  bool is_cut = false;    // longer than 64 bits, which ptxas truncates silently
};
// `text` is a token of the lexer's INTEGER rule.
IntegerLiteral parse_integer(std::string_view text);
// `text` is a token of the lexer's FLOAT rule. Returns nullopt if the number is too large or too small for a double.
std::optional<double> parse_decimal(std::string_view text);
// The digits of `0f3F800000` or `0d3FF0000000000000`.
uint64_t parse_float_bits(std::string_view text);

enum class ConstantOperator : uint8_t {
  base,
  open, // not operators: where an expression or a parenthesis begins
  conditional_begin,
  conditional, // `?` before and after its `:`
  logical_or,
  logical_and,
  bit_or,
  bit_xor,
  bit_and,
  equal,
  not_equal,
  less,
  greater,
  less_equal,
  greater_equal,
  shift_left,
  shift_right,
  add,
  subtract,
  multiply,
  divide,
  remainder,
  plus,
  minus,
  logical_not,
  bit_not,
  cast_signed,
  cast_unsigned,
};

// Evaluates terms and operators in text order (operator precedence parsing). Errors are texts; after an error the value
// of the expression is undefined.
class ConstantEvaluator {
public:
  void begin() { operators_.push_back(ConstantOperator::base); }
  void term(Constant value) {
    values_.push_back(value);
    reduce_prefixes();
  }
  // A unary operator. Returns false if there are too many.
  [[nodiscard]] bool prefix(ConstantOperator op) { return push(op); }
  [[nodiscard]] bool open() { return push(ConstantOperator::open); }
  void close();
  // The parenthesis just opened belongs to a cast.
  void drop_open() {
    if (!operators_.empty() && operators_.back() == ConstantOperator::open) operators_.pop_back();
  }
  // A binary operator, `?` or `:`.
  [[nodiscard]] bool binary(std::string_view text);
  // True if the next term follows a prefix operator.
  bool behind_prefix() const { return !operators_.empty() && operators_.back() >= ConstantOperator::plus; }
  Constant end();
  // Returns and clears the first error; nullopt if there is none.
  std::optional<std::string> take_error() {
    std::optional<std::string> error = std::move(error_);
    error_.reset();
    return error;
  }
  void reset() {
    operators_.clear();
    values_.clear();
    error_.reset();
  }

private:
  bool push(ConstantOperator op);
  void reduce_prefixes();
  void reduce();
  void fail(std::string message) {
    if (!error_) error_ = std::move(message);
  }
  Constant pop();
  Constant apply_unary(ConstantOperator op, Constant operand);
  Constant apply_binary(ConstantOperator op, Constant left, Constant right);

  std::vector<ConstantOperator> operators_;
  std::vector<Constant> values_;
  std::optional<std::string> error_;
};

} // namespace ptxrewrite::grammar
