// Attempts at kernels with parameters added by earlier passes: conditions refer to the original's launch.
#include "transforms/common/attempt.h"

#include "grammar/reader.h"
#include "ir/ssa/ssa.h"

#include <doctest/doctest.h>

#include <array>

namespace ptxrewrite::tests::attempt_test {

using namespace ptxrewrite;
using namespace ptxrewrite::transforms;

TEST_CASE("added parameters are written out in conditions and in further parameters") {
  const std::string text = ".version 8.0\n.target sm_80\n.address_size 64\n"
                           ".visible .entry k__a(.param .u64 p, .param .u32 n, .param .u32 m, .param .s64 x)\n{\n"
                           ".reg .b32 %r<2>;\n//@ a original k\n//@ a requires P1 < 7\n//@ a parameter u32 P1*3\n"
                           "//@ a parameter s64 P0 - 1\nld.param.u32 %r1, [m];\nret;\n}\n";
  Diagnostics diagnostics;
  std::unique_ptr<ir::Module> module = grammar::read_module(SourceFile("test.ptx", text), diagnostics);
  REQUIRE(module);
  ir::Function& function = *module->functions[0];
  REQUIRE(ir::construct_ssa(function));
  legal::Attempt attempt(function, {.launch = true}, "b");
  // Bits of a parameter, read as unsigned: P1*3 may be more than 32 bits, P0 - 1 less than 0.
  CHECK(attempt.over_original_launch("P2+4*P1 < P20") == "zext32(P1*3)+4*P1 < P20");
  CHECK(attempt.over_original_launch("sext64(P3)%PP2") == "sext64(zext64(P0 - 1))%PP2");
  CHECK(attempt.over_original_launch("P0 < ntid.x") == "P0 < ntid.x");
  // A value that exists already gets no parameter; one of this attempt is expanded in the next.
  CHECK(attempt.added_parameters() == 0);
  attempt.launch_parameter(ir::ScalarType::u32, "P1*3");
  CHECK(attempt.added_parameters() == 0);
  attempt.launch_parameter(ir::ScalarType::u32, "P2*2");
  CHECK(attempt.added_parameters() == 1);
  CHECK(attempt.over_original_launch("P4") == "zext32(zext32(P1*3)*2)");
}

TEST_CASE("texts that are deferred are those that are made at once, and what they require is known before") {
  const std::string text = ".version 8.0\n.target sm_80\n.address_size 64\n"
                           ".visible .entry k(.param .u64 p, .param .u32 n)\n{\n"
                           ".reg .b32 %r<4>; .reg .b64 %rd<4>;\nld.param.u64 %rd1, [p]; ld.param.u32 %r1, [n];\n"
                           "mov.u32 %r2, %tid.x; mad.lo.s32 %r3, %r1, %r2, %r2; mul.wide.s32 %rd2, %r3, 4;\n"
                           "add.s64 %rd3, %rd1, %rd2; st.global.u32 [%rd3], %r2;\nret;\n}\n";
  Diagnostics diagnostics;
  std::unique_ptr<ir::Module> module = grammar::read_module(SourceFile("test.ptx", text), diagnostics);
  REQUIRE(module);
  ir::Function& function = *module->functions[0];
  REQUIRE(ir::construct_ssa(function));
  ir::LinearForms forms(function);
  REQUIRE(forms.all_obligations().size() > 0);
  std::array<PassContext, 2> contexts;
  for (const bool defers : {false, true}) {
    legal::Attempt attempt(function, {.launch = true}, "b");
    if (defers) attempt.defer_texts();
    for (ir::ObligationId id : forms.all_obligations().ids())
      attempt.rest_on(forms, id, "a test", function.blocks[function.entry()].first);
    attempt.remark("first");
    attempt.remark_later([](const ir::Function& edited) { return std::to_string(edited.blocks.size()); }, {});
    attempt.remark("last");
    CHECK(attempt.needs_original()); // the product may overflow, which the launcher checks
    attempt.make_texts();
    CHECK(attempt.needs_original());
    ir::Function rewritten(function);
    std::move(attempt).commit(rewritten, contexts[defers]);
  }
  const auto &at_once = contexts[0], &deferred = contexts[1];
  REQUIRE(at_once.ledger.size() == forms.all_obligations().size());
  REQUIRE(deferred.ledger.size() == at_once.ledger.size());
  for (size_t i = 0; i < at_once.ledger.size(); ++i) {
    CHECK(deferred.ledger[i].statement == at_once.ledger[i].statement);
    CHECK(deferred.ledger[i].reason == at_once.ledger[i].reason);
    CHECK(deferred.ledger[i].range.begin == at_once.ledger[i].range.begin);
  }
  REQUIRE(deferred.remarks.size() == at_once.remarks.size());
  for (size_t i = 0; i < at_once.remarks.size(); ++i)
    CHECK(deferred.remarks[i].text == at_once.remarks[i].text);
}

} // namespace ptxrewrite::tests::attempt_test
