// Attempts at kernels with parameters added by earlier passes: conditions refer to the original's launch.
#include "transforms/common/attempt.h"

#include "grammar/reader.h"
#include "ir/ssa/ssa.h"

#include <doctest/doctest.h>

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

} // namespace ptxrewrite::tests::attempt_test
