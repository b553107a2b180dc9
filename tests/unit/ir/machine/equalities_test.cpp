// Branches that tell ptxas 13.0 a number, found by assembling a store at an index after each (sm_80, sm_90, sm_120).
#include "ir/machine/prepare/equalities.h"
#include "ir/ssa/ssa.h"
#include "ir/verify/verify.h"
#include "tests/unit/grammar/read.h"

#include <doctest/doctest.h>

#include <string>

namespace ptxrewrite::tests::equalities_test {

using namespace ptxrewrite;
using namespace ptxrewrite::ir;

namespace {

bool tells_a_number(const std::string& body) {
  ReadText read(".version 8.0\n.target sm_75\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n.reg .pred %p<5>; "
                ".reg .b32 %r<20>; .reg .b64 %rd<8>;\nld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x;\n" +
                body + "\nret;\n}\n");
  REQUIRE_MESSAGE(read.ok(), read.messages());
  REQUIRE(construct_ssa(read.function()).ok());
  Function& function = read.function();
  const ControlFlow flow(function);
  const DominatorTree dominators(function, flow);
  const bool found = has_equalities(function, flow, dominators);
  const size_t instructions = function.instructions.size();
  use_equalities(function, flow, dominators);
  CHECK(found == (function.instructions.size() > instructions));
  CHECK(verify(function).empty());
  return found;
}

} // namespace

TEST_CASE("behind a branch on inequality of 32 bits the number is known; ptxas does not look at others") {
  const std::string store = "mul.wide.s32 %rd2, %r1, 4; add.s64 %rd3, %rd1, %rd2; st.global.u32 [%rd3+4], %r1;\n";
  CHECK(tells_a_number("setp.ne.s32 %p1, %r1, 5; @%p1 ret;\n" + store));
  CHECK(tells_a_number("setp.ne.u32 %p1, %r1, 0; @%p1 bra OUT;\n" + store + "OUT:"));
  CHECK(tells_a_number("setp.ne.s32 %p1, %r1, 5; @!%p1 bra IN; ret;\nIN:\n" + store));
  CHECK_FALSE(tells_a_number("setp.eq.s32 %p1, %r1, 5; @!%p1 ret;\n" + store));
  CHECK_FALSE(tells_a_number("setp.gt.u32 %p1, %r1, 0; @%p1 ret;\n" + store));
  CHECK_FALSE(tells_a_number("cvt.u64.u32 %rd4, %r1; setp.ne.s64 %p1, %rd4, 0; @%p1 ret; st.global.u64 [%rd1], %rd4;"));
  // With another path to the store; before the test; registers without a write.
  CHECK_FALSE(tells_a_number("setp.ne.s32 %p1, %r1, 5; @%p1 bra OUT;\nOUT:\n" + store));
  CHECK_FALSE(tells_a_number(store + "setp.ne.s32 %p1, %r1, 5; @%p1 ret;\n"));
  CHECK_FALSE(tells_a_number("setp.ne.s32 %p1, %r9, 5; @%p1 ret; st.global.u32 [%rd1], %r9;\n"));
}

} // namespace ptxrewrite::tests::equalities_test
