// How lanes part, meet, wait for one another and end. What a kernel computes is stated by C++ loops over the threads;
// where lanes meet again is seen from how often an instruction executes.
#include "tests/unit/emulator/run_ptx.h"

using namespace ptxrewrite;
using namespace ptxrewrite::emulator;

TEST_CASE("buffers and scalars reach a kernel") {
  PtxRun run = run_ptx(kernel("k", ".param .u64 out, .param .u8 small, .param .u32 value", R"(
  .reg .b64 %rd<4>; .reg .b32 %r<4>;
  ld.param.u64 %rd1, [out];
  ld.param.u32 %r1, [value];
  ld.param.u8 %r2, [small];
  st.global.u32 [%rd1], %r1;
  st.global.u32 [%rd1+4], %r2;
  ret;)"),
                       {.kernel = "k"}, {zeros<uint32_t>(2), uint8_t(200), uint32_t(77)});
  REQUIRE(run.error == "");
  REQUIRE(run.failure() == "");
  CHECK(run.buffer<uint32_t>(0) == std::vector<uint32_t>{77, 200});
}
