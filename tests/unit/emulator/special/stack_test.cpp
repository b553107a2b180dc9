// alloca and its stack.
#include "tests/unit/emulator/lane_kernel.h"

namespace ptxrewrite::emulator::stack_test {
namespace {

TEST_CASE("each lane has its own bytes, of its own size, and gets them back") {
  LaneInputs in;
  for (uint32_t lane = 0; lane < 40; ++lane)
    in.a.push_back(lane % 13 + 1);
  // A loop that allocates memory, fills it, and releases it: %q is the address of the last allocation.
  LaneResults out = run_lanes(R"(
  .reg .b64 %top, %size, %p, %at, %first;
  stacksave.u64 %top;
  mov.u32 %r1, 0;
  mov.u32 %d, 0;
TURN:
  stackrestore.u64 %top;
  mul.wide.u32 %size, %a, 4;
  alloca.u64 %p, %size, 16;
  setp.eq.u32 %p1, %r1, 0;
  @%p1 mov.u64 %first, %p;
  mov.u32 %r2, 0;
  mov.u64 %at, %p;
FILL:
  mad.lo.u32 %r3, %r2, 10, %thread;
  st.local.u32 [%at], %r3;
  add.u64 %at, %at, 4;
  add.u32 %r2, %r2, 1;
  setp.lt.u32 %p2, %r2, %a;
  @%p2 bra FILL;
  mov.u64 %at, %p;
  mov.u32 %r2, 0;
SUM:
  ld.local.u32 %r3, [%at];
  add.u32 %d, %d, %r3;
  add.u64 %at, %at, 4;
  add.u32 %r2, %r2, 1;
  setp.lt.u32 %p2, %r2, %a;
  @%p2 bra SUM;
  add.u32 %r1, %r1, 1;
  setp.lt.u32 %p3, %r1, 5000;
  @%p3 bra TURN;
  sub.u64 %p, %p, %first;
  cvt.u32.u64 %q, %p;
)",
                              in);
  REQUIRE_MESSAGE(out.run.ok(), out.run.error << out.run.failure());
  for (uint32_t lane = 0; lane < 40; ++lane) {
    const uint32_t n = in.a[lane];
    CHECK(out.d[lane] == 5000 * (n * lane + 10 * (n * (n - 1) / 2)));
    CHECK(out.q[lane] == 0);
  }
}

TEST_CASE("functions take memory behind that of their callers") {
  LaneInputs in{{1, 2, 3, 4, 5}, {}, {}, {}};
  LaneResults out = run_lanes(R"(
  .reg .b32 %p32, %p33;
  .local .align 4 .b32 own[2];
  st.local.u32 [own], %a;
  alloca.u32 %p32, 8;
  st.local.u32 [%p32], 100;
  { .param .b32 argument; .param .b32 result;
    st.param.b32 [argument], %a;
    call (result), deeper, (argument);
    ld.param.b32 %d, [result]; }
  alloca.u32 %p33, 4;
  st.local.u32 [%p33], 7;
  ld.local.u32 %q, [%p32];
  ld.local.u32 %r1, [own];
  add.u32 %q, %q, %r1;
)",
                              in, R"(
.func (.param .b32 out) deeper(.param .b32 in)
{
  .reg .b32 %x, %y, %p;
  ld.param.b32 %x, [in];
  alloca.u32 %p, 64;
  st.local.u32 [%p], %x;
  st.local.u32 [%p+60], %x;
  ld.local.u32 %y, [%p];
  add.u32 %y, %y, %x;
  st.param.b32 [out], %y;
  ret;
}
)");
  REQUIRE_MESSAGE(out.run.ok(), out.run.error << out.run.failure());
  for (uint32_t lane = 0; lane < 5; ++lane) {
    CHECK(out.d[lane] == 2 * in.a[lane]);
    CHECK(out.q[lane] == 100 + in.a[lane]);
  }
}

TEST_CASE("a stack that is full is told") {
  LaneResults out = run_lanes("  .reg .b64 %p;\nTURN:\n  alloca.u64 %p, 4096;\n  bra TURN;\n", {{1}, {}, {}, {}});
  CHECK(out.run.failure().find("stack overflow: alloca of 4096 bytes") != std::string::npos);
}

} // namespace
} // namespace ptxrewrite::emulator::stack_test
