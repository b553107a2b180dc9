// The table of fusions (fuse.def): it is read without errors; its expressions have C's values, computed by the
// compiler; its terms match the right forms.
#include "ir/machine/fuse/fusion.h"
#include "ir/machine/fuse/fusion_expression.h"
#include "ir/machine/fuse/fusion_pattern.h"
#include "ir/machine/prepare/lowering_context.h"

#include "ir/flow/dominators.h"
#include "tests/unit/grammar/read.h"

#include <doctest/doctest.h>

namespace ptxrewrite::tests::fusion_rows_test {

using namespace ptxrewrite;
using namespace ptxrewrite::ir;

TEST_CASE("all rows of fuse.def are read, and most are patterns") {
  CHECK(fusion_row_errors() == std::vector<std::string>{});
  const FusionRowCounts counts = fusion_row_counts();
  CHECK(counts.patterns > 3 * counts.coded);
}

namespace {

struct Evaluator {
  ReadText text{kernel("")};
  ControlFlow flow{text.function()};
  ValueFlow values{text.function()};
  DominatorTree dominators{text.function(), flow};
  std::vector<InstructionCost> costs;
  LoweringContext context{text.function(), flow, values, 80, costs, {}, {}, {}, dominators, {}, {}, {}, {}};
  Operand k = Operand::integer(0), m = Operand::integer(0);

  int64_t operator()(std::string_view expression, int64_t k_value, int64_t m_value) {
    k = Operand::integer(k_value);
    m = Operand::integer(m_value);
    FusionMatch match;
    match.operands[variable_index('k')] = &k;
    match.operands[variable_index('m')] = &m;
    match.count = 3;
    std::string error;
    const FusionExpression parsed(expression, error);
    CHECK(error == "");
    return parsed.value(context, match);
  }
};

#define CHECK_LIKE_C(...) CHECK(value(#__VA_ARGS__, k, m) == static_cast<int64_t>(__VA_ARGS__))

} // namespace

// Without parentheses on purpose: the compiler determines the precedence.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wparentheses"
TEST_CASE("expressions have C's precedence and values") {
  Evaluator value;
  constexpr int64_t count = 3;
  for (const int64_t k : {0, 1, 5, 31, 255})
    for (const int64_t m : {1, 2, 7, 32}) {
      CAPTURE(k);
      CAPTURE(m);
      CHECK_LIKE_C(k + m * 2 - 1);
      CHECK_LIKE_C((k + m) * 2);
      CHECK_LIKE_C((k & k + 1) == 0);
      CHECK_LIKE_C(k % m == 0 || k == 5 && m != 2);
      CHECK_LIKE_C(k - m - 1);
      CHECK_LIKE_C(!k && -m < 0);
      CHECK_LIKE_C(k > m ? k : m ? 7 : 8);
      CHECK_LIKE_C(k <= m ^ 1 | m & 6);
      CHECK_LIKE_C(k / m + 0xff);
      CHECK_LIKE_C(count * 2 >= k);
    }
  CHECK(value("pow2(k)", 64, 0) == 1);
  CHECK(value("pow2(k)", 65, 0) == 0);
  CHECK(value("pow2(k)", 0, 0) == 0);
  CHECK(value("low(k)", -1, 0) == 0xffffffff);
  CHECK(value("high(k)", -1, 0) == 0xffffffff);
  CHECK(value("high(k)", 0x123456789, 0) == 1);
  CHECK(value("", 0, 0) == 1);
}
#pragma GCC diagnostic pop

TEST_CASE("what is wrong in a row is named") {
  const auto wrong = [](std::string_view expression) {
    std::string error;
    (void)FusionExpression(expression, error);
    return !error.empty();
  };
  for (const char* text : {"k +", "(k", "k k", "nothing(p)", "plain(3)", "q", "is(p, nosuch)", "k ? m"})
    CHECK_MESSAGE(wrong(text), text);
  for (const char* text : {"addd.int32", "add.int33", "class:nothing", "add(#q)", "add(a", "add.s32.s32.s32"}) {
    std::string error;
    (void)parse_fusion_terms(text, error);
    CHECK_MESSAGE(error != "", text);
  }
}

TEST_CASE("terms fit the forms that they name") {
  const auto fits = [](std::string_view term, std::string_view mnemonic) {
    std::string error;
    const FusionAlternatives terms = parse_fusion_terms(term, error);
    REQUIRE(error == "");
    return terms.at(0).form.fits(form(*resolve_form(mnemonic)));
  };
  CHECK(fits("mul.wide.int32", "mul.wide.s32"));
  CHECK_FALSE(fits("mul.wide.int32", "mul.wide.u16"));
  CHECK_FALSE(fits("mul.wide.int32", "mul.lo.s32"));
  CHECK(fits("cvt.int64.u32", "cvt.u64.u32"));
  CHECK_FALSE(fits("cvt.int64.u32", "cvt.u64.s32"));
  CHECK(fits("setp.eq|ne.!and", "setp.ne.s32"));
  CHECK_FALSE(fits("setp.eq|ne.!and", "setp.ne.and.s32"));
  CHECK_FALSE(fits("setp.eq|ne.!and", "setp.lt.s32"));
  CHECK(fits("add.int32", "add.s32"));
  CHECK_FALSE(fits("add.int32", "add.sat.s32")); // add is the one that neither saturates
  CHECK_FALSE(fits("add.int32", "add.cc.s32"));  // nor carries
  CHECK(fits("class:floating_point.float", "fma.rn.f32"));
  CHECK_FALSE(fits("class:comparison", "fma.rn.f32"));
}

} // namespace ptxrewrite::tests::fusion_rows_test
