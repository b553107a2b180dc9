// The table of fusions (fuse.def): it is read without errors; the names of its conditions have the
// values of the match; its terms match the right forms.
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

TEST_CASE("names in conditions: literals have their values, functions of what is not there are 0") {
  ReadText text{kernel("")};
  const ControlFlow flow{text.function()};
  const ValueFlow values{text.function()};
  const DominatorTree dominators{text.function(), flow};
  std::vector<InstructionCost> costs;
  const LoweringContext context{text.function(), flow, values, 80, costs, {}, {}, {}, dominators, {}, {}, {}, {}};
  const Operand first = Operand::integer(int64_t{0x1'0000'0040}), second = Operand::integer(-1);
  FusionMatch match;
  match.operands[variable_index('k')] = &first;
  match.operands[variable_index('m')] = &second;
  match.count = 3;
  const auto value = [&](FusionExpression expression) { return expression({context, match}); };
  CHECK(value(PTXREWRITE_FUSION_EXPRESSION(k - m)) == 0x1'0000'0041);
  CHECK(value(PTXREWRITE_FUSION_EXPRESSION(low(k))) == 64);
  CHECK(value(PTXREWRITE_FUSION_EXPRESSION(high(k))) == 1);
  CHECK(value(PTXREWRITE_FUSION_EXPRESSION(low(m))) == 0xffffffff);
  CHECK(value(PTXREWRITE_FUSION_EXPRESSION(pow2(low(k)) && !pow2(k) && !pow2(m))) == 1);
  CHECK(value(PTXREWRITE_FUSION_EXPRESSION(n)) == 0);
  CHECK(value(PTXREWRITE_FUSION_EXPRESSION(count * 2)) == 6);
  CHECK(value(PTXREWRITE_FUSION_EXPRESSION(unguarded(r) || standing(s) || cost(p))) == 0);
  CHECK(value(PTXREWRITE_FUSION_EXPRESSION(literal(a))) == 0);
}

TEST_CASE("what is wrong in a row is named") {
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
