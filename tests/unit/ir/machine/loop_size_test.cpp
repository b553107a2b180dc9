// The size by which a loop of unknown trips is copied or not, against ptxas: constants and addresses that the loop
// reads itself count, although they become operands of other instructions.
#include "ir/machine/figures/figures.h"
#include "ir/machine/select/lowering.h"
#include "ir/ssa/ssa.h"
#include "support/ptxas.h"
#include "tests/unit/grammar/read.h"

#include <doctest/doctest.h>

namespace ptxrewrite::tests::loop_size_test {

using namespace ptxrewrite;
using namespace ptxrewrite::ir;

namespace {

// A loop with `work` and a chain of `length` multiply-adds.
std::string loop(const std::string& work, int length) {
  std::string chain;
  for (int i = 0; i < length; ++i)
    chain += "fma.rn.f32 %f1, %f1, %f1, %f1;\n";
  return ".version 7.8\n.target sm_75\n.address_size 64\n"
         ".visible .entry k(.param .u64 a, .param .u32 n, .param .u32 c)\n{\n"
         ".reg .b32 %r<20>; .reg .b64 %rd<10>; .reg .f32 %f<5>; .reg .pred %p<3>;\n"
         ".local .align 8 .b8 own[8]; .shared .align 8 .b8 all[4096];\n"
         "ld.param.u64 %rd1, [a]; ld.param.u32 %r1, [n]; ld.param.u32 %r2, [c]; mov.u32 %r3, %tid.x;\n"
         "mov.u32 %r4, 0; mov.u32 %r5, all; shl.b32 %r6, %r3, 2; add.s32 %r5, %r5, %r6;\n"
         "setp.le.s32 %p1, %r1, 0; @%p1 bra E;\nL: mul.wide.s32 %rd2, %r4, 256; add.s64 %rd3, %rd1, %rd2;\n"
         "ld.global.u64 %rd4, [%rd3]; cvt.u32.u64 %r7, %rd4;\n" +
         work + "mov.b32 %f1, %r7;\n" + chain +
         "mov.b32 %r7, %f1; st.global.u32 [%rd3], %r7;\n"
         "add.s32 %r4, %r4, 1; setp.ne.s32 %p2, %r4, %r1; @%p2 bra L;\nE: ret;\n}\n";
}

constexpr uint32_t with_copies = 100; // instructions, at least: the loop alone has at most 60

bool copies_by_model(const std::string& text, uint32_t capability) {
  ReadText read(text);
  REQUIRE_MESSAGE(read.ok(), read.messages());
  REQUIRE(construct_ssa(read.function()).ok());
  return lower(read.function(), capability).static_instructions() >= with_copies;
}

bool copies_by_ptxas(const std::string& text, uint32_t capability) {
  Result<FiguresByFunction> real = machine_figures(text, "sm_" + std::to_string(capability));
  REQUIRE_MESSAGE(real.ok(), text);
  return real->at("k").instructions >= with_copies;
}

} // namespace

TEST_CASE("loops are copied up to the size at which ptxas stops") {
  if (!find_ptxas()) {
    MESSAGE("skipped: no ptxas");
    return;
  }
  const std::pair<const char*, std::string> works[] = {
      {"nothing", ""},
      {"parameter of the loop", "ld.param.u32 %r8, [c]; add.s32 %r7, %r7, %r8;"},
      {"parameter from before", "add.s32 %r7, %r7, %r2;"},
      {"two parameters", "ld.param.u32 %r8, [c]; ld.param.u32 %r9, [n]; add.s32 %r7, %r7, %r8; xor.b32 %r7, %r7, %r9;"},
      {"block index", "mov.u32 %r8, %ctaid.x; add.s32 %r7, %r7, %r8;"},
      {"block size", "mov.u32 %r8, %ntid.x; add.s32 %r7, %r7, %r8;"},
      {"literal", "mov.u32 %r8, 12345; add.s32 %r7, %r7, %r8;"},
      {"store to a local variable", "st.local.u64 [own], %rd4;"},
      {"at its address in a register", "mov.u64 %rd5, own; st.local.u64 [%rd5], %rd4;"},
      {"load from a local variable", "st.local.u64 [own], %rd4; ld.local.u32 %r8, [own]; add.s32 %r7, %r7, %r8;"},
      {"with an offset", "st.local.u64 [own], %rd4; ld.local.u32 %r8, [own+4]; add.s32 %r7, %r7, %r8;"},
      {"shared memory", "ld.shared.u32 %r8, [%r5]; add.s32 %r7, %r7, %r8;"},
      {"shared variable", "ld.shared.u32 %r8, [all]; add.s32 %r7, %r7, %r8;"},
      {"shared variable with an offset", "ld.shared.u32 %r8, [all+4]; add.s32 %r7, %r7, %r8;"},
      {"its address in a register", "mov.u32 %r9, all; ld.shared.u32 %r8, [%r9+4]; add.s32 %r7, %r7, %r8;"},
      {"two offsets", "ld.shared.u32 %r8, [all+4]; add.s32 %r7, %r7, %r8; ld.shared.u32 %r9, [all+8]; "
                      "xor.b32 %r7, %r7, %r9;"},
  };
  constexpr int shortest = 20, longest = 50;
  for (uint32_t capability : {75U, 90U})
    for (const auto& [name, work] : works) {
      int length = shortest;
      while (length < longest && copies_by_model(loop(work, length + 1), capability))
        ++length;
      INFO("sm_" << capability << ", " << std::string(name) << ": up to " << length << " multiply-adds");
      REQUIRE(length > shortest);
      REQUIRE(length < longest);
      CHECK(copies_by_ptxas(loop(work, length), capability));
      CHECK_FALSE(copies_by_ptxas(loop(work, length + 1), capability));
    }
}

} // namespace ptxrewrite::tests::loop_size_test
