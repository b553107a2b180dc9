// A product or shift by a literal whose operand is another one, against ptxas: ptxas multiplies once by the product of
// both literals if the inner result has no other reader. Sums in 64 bits with literals start from their first term.
#include "tests/unit/ir/machine/instruction_counts.h"

#include <doctest/doctest.h>

namespace ptxrewrite::tests::factors_test {

using namespace ptxrewrite;
using namespace ptxrewrite::ir;

TEST_CASE("factors that follow each other are one") {
  if (skipped_without_ptxas()) return;
  const std::pair<const char*, std::string> cases[] = {
      {"shift of a shift", "shl.b32 %r4, %r3, 8; shl.b32 %r5, %r4, 1;"},
      {"shift of a product with a power of two", "mul.lo.s32 %r4, %r3, 256; shl.b32 %r5, %r4, 1;"},
      {"shift of a product", "mul.lo.s32 %r4, %r3, 100; shl.b32 %r5, %r4, 1;"},
      {"product of a product", "mul.lo.s32 %r4, %r3, 100; mul.lo.s32 %r5, %r4, 3;"},
      {"multiply-add of a product", "mul.lo.s32 %r4, %r3, 7; mad.lo.s32 %r5, %r4, 100, %r1;"},
      {"product of a shift", "shl.b32 %r4, %r3, 3; mul.lo.s32 %r5, %r4, 100;"},
      {"multiply-add of a shift", "shl.b32 %r4, %r3, 3; mad.lo.s32 %r5, %r4, 100, %r1;"},
      {"shift of a sum of a product", "mad.lo.s32 %r4, %r3, 256, %r1; shl.b32 %r5, %r4, 1;"},
      {"shift that is stored, too", "shl.b32 %r4, %r3, 8; shl.b32 %r5, %r4, 1; st.global.u32 [%rd2+4], %r4;"},
      {"of the block", "mov.u32 %r3, %ctaid.x; mul.lo.s32 %r4, %r3, 256; shl.b32 %r5, %r4, 1;"}};
  for (const auto& [name, work] : cases) {
    const std::string text = ".version 7.8\n.target sm_75\n.address_size 64\n"
                             ".visible .entry k(.param .u64 a, .param .u64 b)\n{\n.reg .b32 %r<9>; .reg .b64 %rd<3>;\n"
                             ".pragma \"nounroll\";\nld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b];\n"
                             "mov.u32 %r1, %tid.x; ld.global.u32 %r3, [%rd1];\n" +
                             work + "\nadd.s32 %r6, %r5, %r1; st.global.u32 [%rd2], %r6; ret;\n}\n";
    for (uint32_t capability : {75U, 80U, 90U, 120U}) {
      INFO("sm_" << capability << ", " << std::string(name));
      const auto [model, ptxas] = instruction_counts(text, capability);
      CHECK(model == ptxas);
    }
  }
}

TEST_CASE("literal summands that follow each other are one, which accesses add") {
  if (skipped_without_ptxas()) return;
  for (int sums : {2, 5, 12})
    for (const std::string literal : {"2048", "%rd52"})
      for (const bool stored : {false, true})
        for (const std::string between : {"", "bar.sync 0; "}) {
          std::string work;
          for (int i = 0; i < sums; ++i) {
            const std::string next = std::to_string(3 + i), last = std::to_string(2 + i);
            work += "add.s64 %rd" + next + ", %rd" + last + ", " + literal + "; ld.global.u32 %r" + next + ", [%rd" +
                    next + "]; xor.b32 %r2, %r2, %r" + next + ";\n" + between;
          }
          if (stored) work += "st.global.u64 [%rd51], %rd" + std::to_string(2 + sums) + ";\n";
          const std::string text =
              ".version 7.8\n.target sm_75\n.address_size 64\n.visible .entry k(.param .u64 a, .param .u64 b)\n{\n"
              ".reg .b32 %r<40>; .reg .b64 %rd<60>;\nld.param.u64 %rd50, [a]; ld.param.u64 %rd51, [b]; "
              "mov.u32 %r1, %tid.x; mul.wide.u32 %rd1, %r1, 8; add.s64 %rd2, %rd50, %rd1; ld.global.u32 %r2, [%rd2]; "
              "mov.b64 %rd52, 2048;\n" +
              work + "st.global.u32 [%rd51+8], %r2; ret;\n}\n";
          for (uint32_t capability : {75U, 80U, 90U, 100U, 120U}) {
            INFO("sm_" << capability << ", " << sums << " sums of " << literal << (stored ? ", stored " : " ")
                       << between);
            const auto [model, ptxas] = instruction_counts(text, capability);
            CHECK(model == ptxas);
          }
        }
}

} // namespace ptxrewrite::tests::factors_test
