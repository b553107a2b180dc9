// Operands that compilers do not generate: numbers and `_` instead of registers, impossible counts.
#include "tests/unit/emulator/run_ptx.h"

namespace ptxrewrite::tests::operands_test {

using namespace ptxrewrite;
using namespace ptxrewrite::emulator;

namespace {

constexpr const char* registers = ".reg .b32 %r<8>; .reg .b64 %rd<8>; .reg .pred %p<4>;\n";

} // namespace

TEST_CASE("streams of DAC have registers where its machine looks for them") {
  for (const char* statement : {"dac.take.pred _, 3;", "dac.enq.pred 3, 1;", "selp.b32 _, %r1, 7, %p1;"}) {
    CAPTURE(statement);
    const std::string text = std::string("//@ ptxrewrite hardware 1\n.version 8.0\n.target sm_80\n.address_size 64\n") +
                             ".visible .entry k()\n{\n.dac.affine {\n" + registers + statement + " ret;\n}\nret;\n}\n";
    CHECK(run_ptx(text, {.kernel = "k"}, {}).error.find("must be a register for") != std::string::npos);
  }
}

TEST_CASE("a barrier for more threads than any block has never opens") {
  for (const uint32_t threads : {64u, 1u << 29, (1u << 29) + 32, 0xffffffe0u}) {
    CAPTURE(threads);
    const PtxRun run =
        run_ptx(kernel("k", ".param .u32 n", ".reg .b32 %r<4>;\nld.param.u32 %r1, [n];\nbar.sync 1, %r1;\nret;"),
                {.kernel = "k", .block = {32}, .fuel = 10'000}, {threads});
    CHECK(run.failure().find("deadlock") != std::string::npos);
  }
}

TEST_CASE("vectors have elements") {
  for (const char* statement :
       {"mov.b32 %r1, {};", "mov.b32 {}, %r1;", "mov.b32 {}, {};", "st.global.u32 [%rd1], {};"}) {
    CAPTURE(statement);
    const PtxRun run = run_ptx(kernel("k", "", std::string(registers) + statement + "\nret;"), {.kernel = "k"}, {});
    CHECK(run.error.find("a vector without elements") != std::string::npos);
  }
}

} // namespace ptxrewrite::tests::operands_test
