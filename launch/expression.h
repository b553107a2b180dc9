// Expressions of launch files and launch predicates: compiled from text to a small stack program, and evaluated.
//
// Both share one grammar: integers (decimal, 0x), decimals if the dialect has them, names (`n`, `ntid.x`), the
// operators of C with C's precedence, `c ? a : b`, and calls, whose last arguments may be named (`seed=1`). The dialect
// defines the functions, the caller the names. && || ?: evaluate only the operands that they need.
//
// Integers are exact: an operation whose result does not fit 128 bits is an error.
#pragma once

#include "ir/isa/types.h"
#include "launch/integer.h"
#include "support/result.h"

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ptxrewrite::launch {

inline constexpr const char* overflow_message = "a value does not fit in 128 bits";

struct Number {
  bool is_decimal = false;
  Int128 integer = 0;
  double decimal = 0;

  Number() = default;
  Number(Int128 value) : integer(value) {}
  static Number of(double value) {
    Number number;
    number.is_decimal = true;
    number.decimal = value;
    return number;
  }
  double as_double() const { return is_decimal ? decimal : static_cast<double>(integer); }
  bool truth() const { return is_decimal ? decimal != 0 : integer != 0; }
};

std::string to_string(const Number& number);

// The element of a buffer that a generator computes.
struct ElementContext {
  uint64_t index = 0;
  uint64_t count = 0;
  ir::ScalarType type = ir::ScalarType::s64; // of the elements
};

// Returns nullptr and sets the result, or returns the reason of failure.
using FunctionBody = const char* (*)(std::span<const Number> arguments, const ElementContext& element, Number& result);

struct FunctionRow {
  std::string_view name;
  unsigned least = 0; // positional arguments
  unsigned most = 0;  // unbounded_arguments: any number
  FunctionBody body = nullptr;
  bool has_seed = false; // also takes `seed=n`, as the last argument; 0 if omitted
  bool per_element = false;
};
constexpr unsigned unbounded_arguments = 64;

struct Dialect {
  std::span<const FunctionRow> functions;
  bool decimals = false;
};

// Receives an expression in postfix order, for computations on something other than numbers.
class PostfixVisitor {
public:
  virtual ~PostfixVisitor() = default;
  virtual void number(const Number& value) = 0;
  virtual void name(size_t index) = 0; // index into ArithmeticExpression::names()
  // A binary operator ("+" ...), a unary one ("neg" "~" "!" "!!"), the ternary "?:", or a function's name.
  virtual void operation(std::string_view spelling, unsigned operands) = 0;
};

class ArithmeticExpression {
public:
  // Ranges in errors are relative to `text` plus `offset`, so that they refer to the file that contains the text.
  static Result<ArithmeticExpression> parse(std::string_view text, const Dialect& dialect, uint32_t offset = 0);

  // The names used, each once; evaluate() takes their values in this order.
  const std::vector<std::string>& names() const { return names_; }
  // The first occurrence of each name.
  const std::vector<SourceRange>& name_ranges() const { return name_ranges_; }
  // True if a function depends on the element (uniform, iota, ...).
  bool per_element() const { return per_element_; }

  Result<Number> evaluate(std::span<const Number> values, const ElementContext& element = {}) const;

  // Visits the whole expression, including the branches of ?: that an evaluation skips.
  void visit(PostfixVisitor& visitor) const;

  // If the expression is a single call whose arguments do not depend on the element, such as `uniform(-1, 1, seed=2)`:
  // the function and its arguments, so that many elements can be computed without evaluating the program for each.
  struct SingleCall {
    FunctionBody body = nullptr;
    std::vector<Number> arguments;
  };
  std::optional<SingleCall> as_single_call() const;

private:
  friend class ExpressionParser;

  enum class Operation : uint8_t {
    push_constant, // argument: index of constants_
    push_name,     // argument: index of names_
    call,          // argument: index of calls_
    negate,
    complement,
    logical_not,
    to_truth, // 0 or 1
    add,
    subtract,
    multiply,
    divide,
    remainder,
    shift_left,
    shift_right,
    bit_and,
    bit_or,
    bit_xor,
    equal,
    not_equal,
    less,
    less_equal,
    greater,
    greater_equal,
    jump,               // argument: index of the step
    jump_if_false,      // pops
    jump_if_false_keep, // &&: keeps 0 and jumps, or pops
    jump_if_true_keep,  // ||: keeps 1 and jumps, or pops
  };
  struct Step {
    Operation operation;
    uint32_t argument = 0;
    SourceRange range;
  };
  struct Call {
    const FunctionRow* function;
    uint32_t argument_count;
  };

  static const char* apply_binary(Operation operation, const Number& a, const Number& b, Number& result);
  static const char* apply_to_integers(Operation operation, Int128 a, Int128 b, Number& result);
  static const char* apply_to_decimals(Operation operation, double a, double b, Number& result);
  static const char* apply_unary(Operation operation, Number& value);

  std::vector<Step> steps_;
  std::vector<Number> constants_;
  std::vector<std::string> names_;
  std::vector<SourceRange> name_ranges_;
  std::vector<Call> calls_;
  unsigned stack_size_ = 0;
  bool per_element_ = false;
};

} // namespace ptxrewrite::launch
