// Expressions of launch files: values, C's precedence, exactness, and where errors point.
#include "launch/expression.h"
#include "launch/functions.h"

#include <doctest/doctest.h>

namespace ptxrewrite::tests::expression_test {

using namespace ptxrewrite;
using namespace ptxrewrite::launch;

namespace {

Result<Number> value_of(const std::string& text, const std::vector<std::pair<std::string, Number>>& names = {},
                        const ElementContext& element = {}) {
  Result<ArithmeticExpression> expression = ArithmeticExpression::parse(text, launch_dialect());
  if (!expression) return expression.error();
  std::vector<Number> values;
  for (const std::string& name : expression->names()) {
    bool found = false;
    for (const auto& [known, value] : names)
      if (known == name) values.push_back(value), found = true;
    if (!found) return Error{"no name " + name, {}};
  }
  return expression->evaluate(values, element);
}

std::string text_of(const std::string& text) {
  Result<Number> value = value_of(text, {{"n", Number(100)}, {"x", Number::of(0.5)}});
  return value ? to_string(*value) : "error: " + value.error().message;
}

} // namespace

TEST_CASE("integers are exact and bind as in C") {
  CHECK(text_of("1 + 2 * 3") == "7");
  CHECK(text_of("(1 + 2) * 3") == "9");
  CHECK(text_of("7 - 2 - 1") == "4");
  CHECK(text_of("-7 / 2") == "-3"); // C truncates
  CHECK(text_of("-7 % 3") == "-1");
  CHECK(text_of("1 << 3 + 1") == "16"); // + binds tighter than <<
  CHECK(text_of("6 & 3 == 3") == "0");  // == binds tighter than &
  CHECK(text_of("1 | 6 ^ 2 & 3") == "5");
  CHECK(text_of("-16 >> 2") == "-4");
  CHECK(text_of("~0") == "-1");
  CHECK(text_of("!n + !0") == "1");
  CHECK(text_of("2 < 3 == 1") == "1");
  CHECK(text_of("0 ? 1 : 0 ? 2 : 3") == "3");
  CHECK(text_of("n > 50 ? n : 50") == "100");
  CHECK(text_of("0x10 + 0XfF") == "271");
  CHECK(text_of("1_000_000") == "1000000");
  CHECK(text_of("9223372036854775807 * 9223372036854775807") == "85070591730234615847396907784232501249");
  CHECK(text_of("- - 5") == "5");
  CHECK(text_of("+5") == "5");
}

TEST_CASE("decimals mix with integers, and comparisons give integers") {
  CHECK(text_of("1.0 / 4") == "0.25");
  CHECK(text_of("1 / 4") == "0");
  CHECK(text_of("x * n") == "50");
  CHECK(text_of("2e-3 * 1000 == 2") == "1");
  CHECK(text_of("int(7.9) + int(-7.9)") == "0");
  CHECK(text_of("float(1) / 4") == "0.25");
  CHECK(text_of("sqrt(2.25)") == "1.5");
  CHECK(text_of(".5 + .25") == "0.75");
}

TEST_CASE("functions") {
  CHECK(text_of("min(3, 1, 2)") == "1");
  CHECK(text_of("max(3, 1.5, 2)") == "3");
  CHECK(text_of("ceil_div(7, 2) + ceil_div(8, 2)") == "8");
  CHECK(text_of("ceil_div(-7, 2)") == "-3");
  CHECK(text_of("round_up(17, 16)") == "32");
  CHECK(text_of("round_up(16, 16)") == "16");
  CHECK(text_of("log2(1) + log2(1023) + log2(1024)") == "19");
  CHECK(text_of("pow(3, 4)") == "81");
  CHECK(text_of("pow(-1, 3) + pow(0, 0)") == "0");
  CHECK(text_of("pow(2, -1)") == "0.5");
  CHECK(text_of("abs(-3) + abs(3)") == "6");
}

TEST_CASE("only what is needed is evaluated") {
  CHECK(text_of("n - 100 == 0 || 10 / (n - 100) == 0") == "1");
  CHECK(text_of("0 && 1 / 0") == "0");
  CHECK(text_of("1 || 1 / 0") == "1");
  CHECK(text_of("5 && 3") == "1");
  CHECK(text_of("1 ? 2 : 1 / 0") == "2");
}

TEST_CASE("what has no value is an error") {
  CHECK(text_of("1 / 0") == "error: division by zero");
  CHECK(text_of("1 % 0") == "error: remainder of a division by zero");
  CHECK(text_of("1.0 / 0") == "error: division by zero");
  CHECK(text_of("1 << -1") == "error: a shift by a negative number");
  CHECK(text_of("1 << 127") == "error: a value does not fit in 128 bits");
  CHECK(text_of("pow(2, 127)") == "error: a value does not fit in 128 bits");
  CHECK(text_of("170141183460469231731687303715884105727 + 1") == "error: a value does not fit in 128 bits");
  CHECK(text_of("170141183460469231731687303715884105728") == "error: this number does not fit in 128 bits");
  CHECK(text_of("1.5 % 2") == "error: this operator wants integers");
  CHECK(text_of("sqrt(-1)") == "error: the square root of a negative number");
  CHECK(text_of("log2(0)") == "error: log2 wants a number above 0");
  CHECK(text_of("uniform(1, 0, seed=1)") == "error: the upper bound lies below the lower one");
}

TEST_CASE("syntax errors point at what is wrong") {
  struct Row {
    const char* text;
    const char* message;
    uint32_t begin, end;
  };
  const Row rows[] = {
      {"", "expected a value at the end of the expression", 0, 1},
      {"1 +", "expected a value at the end of the expression", 2, 3},
      {"1 + * 2", "expected a number, a name or '(', not '*'", 4, 5},
      {"(1 + 2", "this '(' has no ')'", 0, 1},
      {"1 2", "expected an operator or the end of the expression, not '2'", 2, 3},
      {"12ab", "this is not a number", 0, 4},
      {"0x", "this is not a number", 0, 2},
      {"1.2.3", "this is not a number", 0, 5},
      {"celi_div(1, 2)", "there is no function 'celi_div'; did you mean 'ceil_div'?", 0, 8},
      {"max()", "'max' takes at least 1 arguments, not 0", 0, 3},
      {"ceil_div(1)", "'ceil_div' takes 2 arguments, not 1", 0, 8},
      {"iota(1, 2, 3)", "'iota' takes 0 to 2 arguments, not 3", 0, 4},
      {"min + 1", "'min' is a function: write min(...)", 0, 3},
      {"constant(1, seed=2)", "'constant' takes no seed", 12, 13},
      {"uniform(seed=2)", "'uniform' takes 2 arguments and a seed, not 0", 0, 7},
      {"1 ? 2", "expected ':' and the value for the other case", 5, 6},
      {"n = 3", "expected an operator or the end of the expression, not '='", 2, 3},
  };
  for (const Row& row : rows) {
    INFO(row.text);
    Result<ArithmeticExpression> expression = ArithmeticExpression::parse(row.text, launch_dialect());
    REQUIRE(!expression);
    CHECK(expression.error().message == row.message);
    CHECK(expression.error().range.begin == row.begin);
    CHECK(expression.error().range.end == row.end);
  }
}

TEST_CASE("hostile lengths and depths end in an error or a value") {
  CHECK(text_of(std::string(100000, '(')) == "error: the expression is nested too deeply");
  CHECK(text_of(std::string(100000, '-') + "1") == "error: the expression is nested too deeply");
  std::string sum = "0";
  for (int i = 0; i < 100000; ++i)
    sum += "+1";
  CHECK(text_of(sum) == "100000");
  CHECK(text_of(std::string(2 << 20, '1')) == "error: the expression is longer than a million characters");
}

} // namespace ptxrewrite::tests::expression_test
