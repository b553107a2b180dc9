// Compiled with one more row in ir/machine/fuse/fuse.def, of a fictitious machine: an addition fused with a count
// of bits, one instruction on Ampere, two on Hopper, not on others.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "ir/machine/fuse/fusion.h"
#include "ir/machine/select/lowering.h"
#include "ir/machine/select/lowering_trace.h"
#include "ir/ssa/ssa.h"
#include "tests/unit/grammar/read.h"

#include <doctest/doctest.h>

#include <algorithm>

using namespace ptxrewrite;
using namespace ptxrewrite::ir;

namespace {

struct Counted {
  uint32_t instructions = 0;
  bool fused = false;
};

// Counts for a kernel that counts the bits of a loaded word and then joins the count with another word.
Counted counted(const std::string& joins, uint32_t capability) {
  ReadText text(kernel("ld.param.u64 %rd1, [p]; ld.global.u32 %r1, [%rd1]; ld.global.u32 %r2, [%rd1+4];\n"
                       "popc.b32 %r3, %r1; " +
                       joins + " %r4, %r2, %r3; st.global.u32 [%rd1], %r4;"));
  REQUIRE_MESSAGE(text.ok(), text.messages());
  REQUIRE(construct_ssa(text.function()).ok());
  LoweringTrace trace;
  Counted result;
  result.instructions = lower(text.function(), capability, &trace).static_instructions();
  result.fused =
      std::ranges::any_of(trace.remarks, [](const LoweringRemark& remark) { return remark.step == "population sum"; });
  return result;
}

} // namespace

TEST_CASE("the table is right with the row") {
  CHECK(fusion_row_errors() == std::vector<std::string>{});
}

TEST_CASE("the row changes the count of what it names, on the generations of its columns") {
  // xor and add are one instruction each on all of them, and no row is about xor.
  for (const uint32_t capability : {35, 50, 70, 75, 100, 120}) {
    CAPTURE(capability);
    CHECK(counted("add.u32", capability).instructions == counted("xor.b32", capability).instructions);
    CHECK_FALSE(counted("add.u32", capability).fused);
  }
  CHECK(counted("add.u32", 80).instructions + 1 == counted("xor.b32", 80).instructions);
  CHECK(counted("add.u32", 80).fused);
  CHECK(counted("add.u32", 90).instructions == counted("xor.b32", 90).instructions);
  CHECK(counted("add.u32", 90).fused);
}
