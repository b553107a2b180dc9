// The cost of instructions depending on their context, against ptxas: divisions by one number, exchanges between lanes
// in and after branches and loops, neighbours in shared memory. Long: the list of kernels is data.
#include "ir/machine/figures/figures.h"
#include "ir/machine/select/lowering.h"
#include "ir/ssa/ssa.h"
#include "support/ptxas.h"
#include "tests/unit/grammar/read.h"

#include <doctest/doctest.h>

#include <cstdlib>

namespace ptxrewrite::tests::lowering_contexts_test {

using namespace ptxrewrite;
using namespace ptxrewrite::ir;

namespace {

constexpr const char* header = R"(.version 8.0
.target sm_75
.address_size 64
)";
constexpr const char* prologue = R"(.visible .entry k(.param .u64 p, .param .u32 n)
{
.reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<60>; .reg .b64 %rd<20>; .reg .f32 %f<20>; .reg .f64 %d<9>;
.shared .align 16 .b8 tile[8192];
ld.param.u64 %rd1, [p]; ld.param.u32 %r50, [n]; cvta.to.global.u64 %rd1, %rd1;
mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd1, %rd1, %rd2;
mov.u32 %r2, tile; shl.b32 %r3, %r1, 6; add.s32 %r3, %r2, %r3;
ld.global.u32 %r10, [%rd1]; ld.global.u32 %r11, [%rd1+4]; ld.global.u32 %r12, [%rd1+8]; ld.global.u32 %r13, [%rd1+12];
ld.global.f64 %d1, [%rd1+16]; ld.global.f32 %f1, [%rd1+24]; ld.global.u64 %rd10, [%rd1+32]; ld.global.u64 %rd11, [%rd1+40];
)";
constexpr const char* epilogue = R"(
st.global.u32 [%rd1+100], %r10; st.global.u32 [%rd1+104], %r11; st.global.u32 [%rd1+108], %r12;
st.global.u32 [%rd1+112], %r13; st.global.f64 [%rd1+120], %d1; st.global.f32 [%rd1+128], %f1;
st.global.u64 [%rd1+136], %rd10; st.global.u64 [%rd1+144], %rd11;
ret;
}
)";

std::string shuffles(unsigned count) {
  std::string text;
  for (unsigned i = 0; i < count; ++i)
    text += "shfl.sync.down.b32 %r40, %r10, " + std::to_string(1 << i) + ", 31, -1; add.s32 %r10, %r10, %r40;\n";
  return text;
}

std::string stores(int count = 12) {
  std::string text;
  for (int i = 0; i < count; ++i)
    text += "st.volatile.global.u32 [%rd1+" + std::to_string(200 + 4 * i) + "], %r11;\n";
  return text;
}

struct Case {
  const char* name;
  std::string body;
  const char* functions = "";
};

// From `start` while less than n, each trip loads and stores.
std::string copying_loop(const std::string& start) {
  return "mov.u32 %r41, " + start +
         "; trip: mul.wide.s32 %rd5, %r41, 4; add.s64 %rd6, %rd1, %rd5; ld.global.f32 %f2, [%rd6];\n"
         "st.global.f32 [%rd6+4000], %f2; add.s32 %r41, %r41, 1; setp.lt.s32 %p1, %r41, %r50; @%p1 bra trip;\n";
}

// Lanes leave it at different times.
std::string parting_loop(const std::string& work) {
  return "mov.u32 %r41, %r1; trip: .pragma \"nounroll\";\n" + work +
         "add.s32 %r41, %r41, 1; setp.lt.s32 %p1, %r41, %r50; @%p1 bra trip;\n";
}

// Too large to be inlined.
constexpr const char* called_function = R"(.func (.param .b32 back) slow(.param .b32 given)
{ .reg .b32 %r<9>; .reg .pred %p<3>;
ld.param.u32 %r1, [given]; mov.u32 %r2, 0;
trip: .pragma "nounroll";
mad.lo.s32 %r2, %r2, %r1, 12345; xor.b32 %r2, %r2, %r1; shr.u32 %r3, %r1, 3; mul.lo.s32 %r2, %r2, %r3;
shf.l.wrap.b32 %r2, %r2, %r2, 7; add.s32 %r1, %r1, -1; setp.gt.s32 %p1, %r1, 0; @%p1 bra trip;
st.param.b32 [back], %r2; ret; }
)";
constexpr const char* printing_function =
    ".extern .func (.param .b32 printed) vprintf(.param .b64 format, .param .b64 numbers);\n"
    ".global .align 1 .b8 format[4] = {37, 100, 0};\n";
std::string print(const char* scope) {
  return std::string("{ .param .b64 a; .param .b64 b; .param .b32 c; st.param.b64 [a], %rd5; st.param.b64 [b], %rd10;\n"
                     "call.uni (c), vprintf, (a, b); } // ") +
         scope + "\n";
}

std::vector<Case> cases() {
  const std::string inside = "setp.gt.u32 %p1, %r1, 31; @%p1 bra end;\n", end = "end:\n";
  const std::string loop = "mov.u64 %rd5, %rd1;\nagain: .pragma \"nounroll\";\n"
                           "add.s32 %r1, %r1, 1; add.s64 %rd5, %rd5, 4096; st.volatile.global.u32 [%rd5], %r1;\n"
                           "setp.lt.s32 %p1, %r1, %r11; @%p1 bra again;\n";
  return {
      {"one division", "div.u32 %r10, %r10, %r11;"},
      {"two divisions by one number", "div.u32 %r10, %r10, %r13; div.u32 %r11, %r11, %r13;"},
      {"three divisions by one number",
       "div.s32 %r10, %r10, %r13; div.s32 %r11, %r11, %r13; div.s32 %r12, %r12, %r13;"},
      {"two divisions by two numbers", "div.u32 %r10, %r10, %r12; div.u32 %r11, %r11, %r13;"},
      {"quotient and remainder", "div.u32 %r12, %r10, %r11; rem.u32 %r13, %r10, %r11;"},
      {"signed quotient and remainder", "div.s32 %r12, %r10, %r11; rem.s32 %r13, %r10, %r11;"},
      {"long quotient and remainder", "div.u64 %rd10, %rd10, %rd11; rem.u64 %rd11, %rd10, %rd11;"},
      {"remainders by a literal", "rem.u32 %r12, %r10, 7; rem.u32 %r13, %r11, 7;"},
      {"shuffles with all lanes together", shuffles(5)},
      {"a shuffle in a branch", inside + shuffles(1) + end},
      {"shuffles in a branch", inside + shuffles(5) + end},
      {"shuffles in a branch that all lanes of the block take",
       "setp.gt.u32 %p1, %r50, 31; @%p1 bra end;\n" + shuffles(5) + end},
      {"shuffles where lanes have left",
       "setp.gt.u32 %p1, %r1, 31; @%p1 bra leave;\n" + shuffles(5) + "st.global.u32 [%rd1+300], %r10;\nleave:\n"},
      {"shuffles behind a branch", "setp.gt.u32 %p1, %r10, 3; @%p1 bra end;\n" + stores() + end + shuffles(5)},
      {"shuffles behind a loop", loop + shuffles(5)},
      {"shuffles by what a vote says",
       "setp.gt.s32 %p2, %r10, 3; vote.sync.any.pred %p1, %p2, -1; @%p1 bra end;\n" + shuffles(5) + end},
      {"shuffles by a number that all lanes load",
       "ld.shared.u32 %r41, [tile]; setp.eq.s32 %p1, %r41, 0; @%p1 bra end;\n" + shuffles(5) + end},
      {"neighbours in shared memory", "ld.shared.u32 %r10, [%r3]; ld.shared.u32 %r11, [%r3+4]; ld.shared.u32 %r12, "
                                      "[%r3+8]; ld.shared.u32 %r13, [%r3+12];"},
      {"long neighbours in shared memory", "ld.shared.u64 %rd10, [%r3]; ld.shared.u64 %rd11, [%r3+8];"},
      {"neighbours are stored", "st.shared.u32 [%r3], %r10; st.shared.u32 [%r3+4], %r11; st.shared.u32 [%r3+8], %r12; "
                                "st.shared.u32 [%r3+12], %r13; bar.sync 0; ld.shared.u32 %r10, [tile+64];"},
      {"zeros are stored", "st.shared.u32 [%r3], 0; st.shared.u32 [%r3+4], 0; st.shared.u32 [%r3+8], 0; "
                           "st.shared.u32 [%r3+12], 0; bar.sync 0; ld.shared.u32 %r10, [tile+64];"},
      {"sums in shared memory", "atom.shared.add.f32 %f1, [%r3], %f1; atom.shared.add.f64 %d1, [%r3+8], %d1;"},
      {"long sums in shared memory",
       "atom.shared.add.u64 %rd10, [%r3], %rd10; atom.shared.max.s64 %rd11, [%r3+8], %rd11;"},
      {"rotation", "shl.b32 %r40, %r10, 7; shr.u32 %r41, %r10, 25; or.b32 %r10, %r40, %r41;"},
      {"long rotation", "shl.b64 %rd5, %rd10, 31; shr.u64 %rd6, %rd10, 33; or.b64 %rd10, %rd5, %rd6;"},
      {"shift to the right and sum", "shr.u32 %r40, %r10, 3; add.s32 %r10, %r40, %r11;"},
      {"long sums", "add.s64 %rd10, %rd10, %rd11; add.s64 %rd10, %rd10, %rd1; add.s64 %rd10, %rd10, %rd2;"},
      {"predicate as a number", "setp.gt.s32 %p1, %r10, 3; selp.u32 %r40, 1, 0, %p1; setp.ne.s32 %p2, %r40, 0; "
                                "selp.b32 %r10, %r12, %r13, %p2;"},
      {"long literals", "add.f64 %d1, %d1, 0d3FF80A0000C00001; mul.f64 %d1, %d1, 0d3FF80A0000C00005;"},
      {"a loop that lanes leave at different times copies", copying_loop("%r1")},
      {"a loop that all lanes leave together copies", copying_loop("0")},
      {"volatile loads in a loop that lanes leave at different times",
       parting_loop("ld.volatile.global.u32 %r42, [%rd1]; add.s32 %r10, %r10, %r42;")},
      {"atomics in such a loop", parting_loop("atom.global.add.u32 %r42, [%rd1], %r11; add.s32 %r10, %r10, %r42;")},
      {"plain loads in such a loop", parting_loop("ld.global.u32 %r42, [%rd1]; mad.lo.s32 %r10, %r10, %r42, %r42;")},
      {"bit fields", "bfe.u32 %r10, %r10, %r11, 8; bfe.u32 %r12, %r12, 8, 8; bfe.s32 %r13, %r13, 16, 16;"},
      {"bit fields at places in registers",
       "bfe.u32 %r10, %r10, %r11, 8; bfe.u32 %r10, %r10, %r12, 9; bfi.b32 %r13, %r10, %r13, %r12, 8;"},
      {"bits of a long number", "and.b64 %rd5, %rd10, 1099511627776; setp.eq.s64 %p1, %rd5, 0; "
                                "xor.b64 %rd6, %rd11, 458752; selp.b64 %rd11, %rd11, %rd6, %p1;"},
      {"a function is called",
       "{ .param .b32 a; .param .b32 b; st.param.b32 [a], %r10; call.uni (b), slow, (a); ld.param.b32 %r10, [b]; }",
       called_function},
      {"printf twice", "mov.u64 %rd6, format; cvta.global.u64 %rd5, %rd6;\n" + print("first") + print("second"),
       printing_function},
      {"what WARP_SZ decides",
       "mov.u32 %r41, WARP_SZ; shr.u32 %r42, %r41, 6; setp.eq.s32 %p1, %r42, 0; @%p1 bra end;\n" + stores(30) + end},
      {"stores in a short branch", "setp.gt.s32 %p1, %r10, 3; @%p1 bra end;\n" + stores(8) + end},
      {"stores in a longer branch", "setp.gt.s32 %p1, %r10, 3; @%p1 bra end;\n" + stores(12) + end},
  };
}

} // namespace

TEST_CASE("costs by what stands around") {
  if (!find_ptxas()) {
    MESSAGE("skipped: no ptxas");
    return;
  }
  for (uint32_t capability : {75u, 80u, 90u})
    for (const Case& one : cases()) {
      const std::string text = std::string(header) + one.functions + prologue + one.body + epilogue;
      Result<FiguresByFunction> real = machine_figures(text, "sm_" + std::to_string(capability));
      REQUIRE_MESSAGE(real.ok(), one.name);
      ReadText read(text);
      REQUIRE_MESSAGE(read.ok(), read.messages());
      const Function* kernel = nullptr;
      for (const std::unique_ptr<Function>& function : read.module->functions) {
        if (function->has_body) REQUIRE(construct_ssa(*function).ok());
        if (function->is_entry) kernel = function.get();
      }
      REQUIRE(kernel);
      const int expected = static_cast<int>(real->at("k").instructions);
      const int estimated = static_cast<int>(lower(*kernel, capability).static_instructions());
      INFO("sm_" << capability << ", " << std::string(one.name) << ": " << expected << " by ptxas, " << estimated
                 << " estimated");
      CHECK(std::abs(estimated - expected) <= 4 + expected / 25);
    }
}

} // namespace ptxrewrite::tests::lowering_contexts_test
