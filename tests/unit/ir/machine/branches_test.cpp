// Two short sides of a branch are issued under predicates. The limits were found by assembling kernels with longer and
// longer sides: ptxas 11.8 for sm_35 and sm_60 and 13.0 for sm_75, 80 and 90 remove the branch up to seven instructions
// on the longer side, up to five if all lanes take the same side.
#include "ir/machine/select/lowering.h"
#include "ir/ssa/ssa.h"
#include "tests/unit/grammar/read.h"

#include <doctest/doctest.h>

namespace ptxrewrite::tests::branches_test {

using namespace ptxrewrite;
using namespace ptxrewrite::ir;

namespace {

uint32_t lowered(int one, int other, const std::string& index, uint32_t capability) {
  auto side = [](int length, const std::string& addend) {
    std::string code;
    for (int i = 0; i < length; ++i)
      code += "fma.rn.f32 %a, %a, %b, " + addend + ";\n";
    return code;
  };
  ReadText text(
      ".version 8.0\n.target sm_75\n.address_size 64\n"
      ".visible .entry k(.param .u64 in, .param .u64 out)\n{\n"
      ".reg .b64 %in, %out; .reg .b32 %r1; .reg .pred %p1; .reg .f32 %a, %b, %c;\n"
      "ld.param.u64 %in, [in]; ld.param.u64 %out, [out]; ld.global.f32 %a, [%in]; ld.global.f32 %b, [%in+4];\n"
      "ld.global.f32 %c, [%in+8]; mov.u32 %r1, " +
      index + "; setp.gt.s32 %p1, %r1, 7;\n@%p1 bra other;\n" + side(one, "%b") + "bra behind;\nother:\n" +
      side(other, "%c") + "behind: bar.sync 0; st.global.f32 [%out], %a;\nret;\n}\n");
  REQUIRE_MESSAGE(text.ok(), text.messages());
  REQUIRE(construct_ssa(text.function()).ok());
  return lower(text.function(), capability).static_instructions();
}

} // namespace

TEST_CASE("two short sides of a branch are issued under predicates") {
  for (uint32_t capability : {35U, 60U, 75U, 80U, 90U})
    for (const auto& [index, longest] : {std::pair("%tid.x", 7), {"%ctaid.x", 5}}) {
      INFO("sm_" << capability << " " << index);
      // Both sides longer by one, and the first side alone.
      CHECK(lowered(longest, longest, index, capability) == lowered(longest - 1, longest - 1, index, capability) + 2);
      CHECK(lowered(longest + 1, longest + 1, index, capability) >= lowered(longest, longest, index, capability) + 4);
      CHECK(lowered(longest, 1, index, capability) == lowered(longest - 1, 1, index, capability) + 1);
      CHECK(lowered(longest + 1, 1, index, capability) >= lowered(longest, 1, index, capability) + 3);
    }
}

} // namespace ptxrewrite::tests::branches_test
