// Addresses of shared and local memory against ptxas: sums that accesses scale as a whole, places in local memory.
#include "tests/unit/ir/machine/instruction_counts.h"

#include <doctest/doctest.h>

namespace ptxrewrite::tests::shared_address_test {

using namespace ptxrewrite;
using namespace ptxrewrite::ir;

namespace {

std::string kernel(const std::string& body) {
  return ".version 7.8\n.target sm_75\n.address_size 64\n.visible .entry k(.param .u64 a, .param .u64 b, .param .u32 "
         "n)\n{\n"
         ".reg .b32 %r<40>; .reg .b64 %rd<10>; .reg .pred %p<5>; .local .align 8 .b8 own[8];\n"
         ".shared .align 4 .b8 one[16384]; .shared .align 4 .b8 two[4096];\n"
         "ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.param.u32 %r9, [n]; mov.u32 %r1, %tid.x;\n"
         "mov.u32 %r2, %tid.y; ld.global.u32 %r3, [%rd1]; mov.u32 %r20, one;\n" +
         body + "ret;\n}\n";
}

void check(const std::pair<const char*, std::string>& one) {
  const std::string text = kernel(one.second);
  for (uint32_t capability : {75U, 80U}) {
    INFO("sm_" << capability << ", " << std::string(one.first));
    const auto [model, ptxas] = instruction_counts(text, capability);
    CHECK(model == ptxas);
  }
}

} // namespace

TEST_CASE("accesses of shared memory scale sums of multiples of their scale") {
  if (skipped_without_ptxas()) return;
  const std::string sum = "add.s32 %r23, %r21, %r22; st.shared.u32 [%r23], %r3; ", column = "shl.b32 %r22, %r1, 2; ";
  for (const std::string factor : {"12", "64", "66", "68", "132"})
    for (const std::string shift : {"1", "2"})
      check({"row and column", "mad.lo.s32 %r21, %r2, " + factor + ", %r20; shl.b32 %r22, %r1, " + shift + "; " + sum});
  const std::string row = "mad.lo.s32 %r21, %r2, 68, %r20; ";
  for (const auto& one : std::initializer_list<std::pair<const char*, std::string>>{
           {"a factor that is no multiple", "mad.lo.s32 %r21, %r2, 68, %r20; shl.b32 %r22, %r1, 3; " + sum},
           {"three indices", row + "mov.u32 %r6, %tid.z; mad.lo.s32 %r21, %r6, 1088, %r21; " + column + sum},
           {"shifts alone", "shl.b32 %r21, %r2, 6; add.s32 %r21, %r20, %r21; " + column + sum},
           {"an unknown factor", "shl.b32 %r5, %r9, 2; mad.lo.s32 %r21, %r2, %r5, %r20; " + column + sum},
           {"two accesses",
            row + column + sum + "bar.sync 0; ld.shared.u32 %r5, [%r23+68]; st.global.u32 [%rd2], %r5;"},
           {"the row is read, too", row + column + sum +
                                        "bar.sync 0; ld.shared.u32 %r5, [%r21]; "
                                        "st.global.u32 [%rd2], %r5;"},
           {"the column is read, too", row + column + sum +
                                           "bar.sync 0; add.s32 %r24, %r20, %r22; "
                                           "ld.shared.u32 %r5, [%r24]; st.global.u32 [%rd2], %r5;"},
           {"the address is stored", row + column + sum + "st.global.u32 [%rd2], %r23;"},
           {"a row for two sums", row + column + sum +
                                      "bar.sync 0; shl.b32 %r24, %r3, 2; add.s32 %r25, %r21, %r24; "
                                      "ld.shared.u32 %r5, [%r25]; st.global.u32 [%rd2], %r5;"},
           {"the same place of two variables",
            "shl.b32 %r21, %r2, 6; " + column +
                "add.s32 %r24, %r20, %r21; add.s32 %r23, %r24, %r22; "
                "st.shared.u32 [%r23], %r3; mov.u32 %r30, two; add.s32 %r31, %r30, %r21; "
                "add.s32 %r32, %r31, %r22; st.shared.u32 [%r32], %r9; bar.sync 0; "
                "ld.shared.u32 %r5, [%r23+64]; ld.shared.u32 %r6, [%r32+64]; "
                "add.s32 %r5, %r5, %r6; st.global.u32 [%rd2], %r5;"},
           {"in another block", row + "setp.gt.s32 %p1, %r3, %r9; @%p1 bra E; " + column + sum + "bar.sync 1; E: "},
           {"atomic operation", row + column +
                                    "add.s32 %r23, %r21, %r22; atom.shared.max.u32 %r5, [%r23], %r3; "
                                    "st.global.u32 [%rd2], %r5;"}})
    check(one);
}

TEST_CASE("the address of a local variable takes no instruction") {
  if (skipped_without_ptxas()) return;
  // The load is narrower than the store, so that ptxas keeps the variable in local memory.
  const std::string value = "ld.global.u64 %rd4, [%rd2]; ",
                    load = "ld.local.u32 %r5, [own+4]; st.global.u32 [%rd2], %r5;";
  check({"named", value + "st.local.u64 [own], %rd4; " + load});
  check({"in a register", value + "mov.u64 %rd3, own; st.local.u64 [%rd3], %rd4; " + load});
}

TEST_CASE("words of constant memory are operands in copies of a loop") {
  if (skipped_without_ptxas()) return;
  for (const std::string start : {"0", "64"}) {
    const std::string text =
        ".version 7.8\n.target sm_75\n.address_size 64\n.const .align 4 .b8 table[4096];\n"
        ".visible .entry k(.param .u64 a)\n{\n.reg .b32 %r<40>; .reg .b64 %rd<10>; .reg .pred %p<5>;\n"
        "ld.param.u64 %rd1, [a]; mov.u64 %rd2, table; add.s64 %rd2, %rd2, " +
        start +
        "; mov.u32 %r1, 0; mov.u32 %r2, 0;\n"
        "L: ld.const.u32 %r3, [%rd2]; xor.b32 %r2, %r2, %r3; mul.lo.s32 %r2, %r2, %r2;\n"
        "add.s64 %rd2, %rd2, 4; add.s32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 16; @%p1 bra L;\n"
        "st.global.u32 [%rd1], %r2; ret;\n}\n";
    ReadText read(text);
    REQUIRE_MESSAGE(read.ok(), read.messages());
    REQUIRE(construct_ssa(read.function()).ok());
    for (uint32_t capability : {75U, 80U}) {
      Result<FiguresByFunction> real = machine_figures(text, "sm_" + std::to_string(capability));
      REQUIRE(real.ok());
      const int ptxas = static_cast<int>(real->at("k").instructions),
                model = static_cast<int>(lower(read.function(), capability).static_instructions());
      INFO("sm_" << capability << ", from " << start << ": " << model << " estimated, " << ptxas << " by ptxas");
      constexpr int with_loads = 48; // sixteen loads, logic operations and products
      CHECK(ptxas < with_loads);
      CHECK(model < with_loads);
      CHECK(std::abs(model - ptxas) <= 6); // the first address is counted
    }
  }
}

} // namespace ptxrewrite::tests::shared_address_test
