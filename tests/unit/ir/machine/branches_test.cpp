// Two short sides of a branch are issued under predicates. The limits were found by assembling kernels with longer and
// longer sides: ptxas 11.8 for sm_35 and sm_60 and 13.0 for sm_75, 80 and 90 remove the branch up to seven instructions
// on the longer side, up to five if all lanes take the same side.
#include "tests/unit/ir/machine/instruction_counts.h"

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

// Code that a branch skips, and the code around it.
struct Skip {
  std::string what, before, skipped, behind;
};

std::string kernel(const Skip& skip) {
  return ".version 7.8\n.target sm_75\n.address_size 64\n.visible .entry k(.param .u64 p, .param .u64 q, .param .u32 "
         "n, "
         ".param .u32 m)\n{\n.reg .b64 %a, %b, %o; .reg .b32 %t, %n, %m, %i, %v, %x; .reg .pred %q;\n"
         "mov.u32 %t, %tid.x; ld.shared.u64 %a, [%t+16]; ld.param.u64 %b, [q]; ld.param.u32 %n, [n]; "
         "ld.param.u32 %m, [m]; add.u32 %i, %t, 256; mov.u32 %x, %t;\n" +
         skip.before + "setp.ge.u32 %q, %i, %n; @%q bra L;\n" + skip.skipped + "\nL:\n" + skip.behind + "ret;\n}\n";
}

// `count` products and logic operations in turn, each of the result before.
std::string chain(int count, const std::string& value) {
  std::string code;
  for (int i = 0; i < count; ++i)
    code += (i % 2 ? "xor.b32 " : "mul.lo.u32 ") + value + ", " + value + (i % 2 ? ", %t; " : ", %i; ");
  return code;
}

void check(const Skip& skip, std::initializer_list<uint32_t> capabilities) {
  const std::string text = kernel(skip);
  for (uint32_t capability : capabilities) {
    INFO("sm_" << capability << ", " << skip.what);
    const auto [model, ptxas] = instruction_counts(text, capability);
    CHECK(model == ptxas);
  }
}

} // namespace

TEST_CASE("skipped code with loads is predicated if four instructions around it do not depend on it") {
  if (skipped_without_ptxas()) return;
  const std::string load = "ld.global.u32 %v, [%a]; ", store = "st.shared.u32 [%t+512], %v; ";
  const std::string meet = "bar.sync 0; ", last = "st.shared.u32 [%t], %x; ";
  for (int length : {0, 6, 11})
    for (int work = 2; work <= 6; ++work) {
      const std::string counts = " (" + std::to_string(length) + " skipped, " + std::to_string(work) + " around)";
      const std::string code = load + chain(length, "%v") + store;
      check({"behind a barrier" + counts, "", code, meet + chain(work, "%x") + last}, {75, 80, 90});
      check({"of shared memory behind the barrier" + counts, "", code,
             meet + "ld.shared.u32 %x, [%t+64]; " + chain(work, "%x") + last},
            {75, 80, 90});
      check({"for the condition" + counts, chain(work, "%i"), code, meet + last}, {75, 80});
      check({"for what is stored" + counts, chain(work, "%x"), code + "st.shared.u32 [%x+4], %v; ", meet},
            {75, 80, 90});
      check({"for the load" + counts, chain(work, "%x"), "mul.wide.u32 %o, %x, 4; add.s64 %a, %a, %o; " + code, meet},
            {75, 80, 90});
      check({"before a barrier" + counts, chain(work, "%x") + meet, code, meet + last}, {75, 80, 90});
      check({"of shared memory before a barrier" + counts, "ld.shared.u32 %x, [%t+64]; " + chain(work, "%x") + meet,
             code, meet + last},
            {75, 80, 90});
      check({"before" + counts, chain(work, "%x"), code, meet + last}, {75, 80, 90});
    }
}

TEST_CASE("a load whose result decides the branch overlaps with nothing behind it") {
  if (skipped_without_ptxas()) return;
  const std::string code = "ld.global.u32 %v, [%a]; st.shared.u32 [%t+512], %v; ", last = "bar.sync 0; ";
  check({"for the condition", "ld.global.u32 %i, [%a+128]; ", code, last}, {75, 80, 90});
  check({"for later", "ld.global.u32 %x, [%a+128]; ", code, last + "st.shared.u32 [%t], %x; "}, {75, 80, 90});
}

TEST_CASE("a special register is read again where no read before dominates") {
  if (skipped_without_ptxas()) return;
  const std::string read = "mov.u32 %v, %tid.y; xor.b32 %v, %v, %i; st.shared.u32 [%v+512], %v; ",
                    again = "mov.u32 %x, %tid.y; mul.lo.u32 %x, %x, %i; st.shared.u32 [%x+768], %x; ",
                    skip = "setp.ge.u32 %q, %i, %m; @%q bra M; ", last = "bar.sync 0; st.shared.u32 [%t], %t; ";
  check({"in one block", read + again, read, last}, {75, 80});
  check({"dominated", read, again, last}, {75, 80});
  check({"in two skipped pieces", "", read, "bar.sync 0; " + skip + again + "\nM: " + last}, {75, 80});
}

TEST_CASE("code is not predicated if only the end of the kernel is behind it") {
  if (skipped_without_ptxas()) return;
  for (int length : {0, 1, 4, 7})
    check({std::to_string(length) + " skipped", "",
           "mov.u32 %v, %t; " + chain(length, "%v") + "st.shared.u32 [%t], %v; ", ""},
          {75, 80, 90, 120});
}

// Eight instructions are predicated; parameters that are moved or loaded for the code count.
TEST_CASE("constants count in the size of skipped code") {
  if (skipped_without_ptxas()) return;
  for (int length = 0; length <= 8; ++length)
    for (const auto& [what, code] : std::initializer_list<std::pair<const char*, const char*>>{
             {"a parameter's address", "st.global.u32 [%b], %v; "},
             {"a product and a parameter", "mul.wide.u32 %o, %i, 4; add.s64 %o, %b, %o; st.global.u32 [%o], %v; "},
             {"a sum and a parameter", "cvt.s64.s32 %o, %i; add.s64 %o, %b, %o; st.global.u8 [%o], %v; "},
             {"a product of two words", "mul.wide.u32 %o, %i, 4; add.s64 %o, %a, %o; st.global.u32 [%o], %v; "}})
      check({std::string(what) + " behind " + std::to_string(length), "",
             "mov.u32 %v, %t; " + chain(length, "%v") + code, "bar.sync 0; st.shared.u32 [%t], %t; "},
            {80});
}

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
