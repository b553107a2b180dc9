// `prove` on divisions by launch constants, packed 16-bit integers and the further forms of a kernel: right rewrites
// are proved, and wrong ones, made by changed conditions and instructions, are not.
#include "evaluate/prove/divisions.h"
#include "evaluate/prove/solver.h"
#include "tests/unit/evaluate/prove/prove_text.h"

#include <doctest/doctest.h>

#include <algorithm>

namespace ptxrewrite::tests::prove_division_test {

using namespace ptxrewrite;
using namespace ptxrewrite::prove;

namespace {

std::vector<KernelProof> proofs(const std::string& body, const std::string& passes, const std::string& target) {
  const std::string text =
      ".version 8.0\n.target " + target +
      "\n.address_size 64\n.visible .entry k(.param .u64 p, .param .u32 n, .param .u64 q)\n{\n"
      ".reg .b64 %rd<9>; .reg .b32 %r<20>; .reg .b16 %h<20>; .reg .f32 %f<20>; .reg .pred %p<3>;\n"
      "ld.param.u64 %rd1, [p]; ld.param.u32 %r1, [n]; ld.param.u64 %rd2, [q]; mov.u32 %r2, %tid.x;\n" +
      body + "ret;\n}\n";
  return prove_text(text, passes);
}

// n / d by the numbers of a form, where d is a parameter; `m` and `s` are parameters that the launcher computes.
struct MagicTerms {
  Terms terms;
  TermId d = terms.leaf("P1", 32), n = terms.leaf("n", 32);
  TermId m = terms.leaf("m", 32), s = terms.leaf("s", 32);
  Divisions divisions;

  explicit MagicTerms(const std::string& multiplier, const std::string& shift)
      : divisions(terms, {{multiplier, m}, {shift, s}}, [this](const std::string& text) -> std::optional<TermId> {
          return text == "zext32(P1)" ? std::optional(terms.zero_extend(d, 128)) : std::nullopt;
        }) {}

  TermId shifted(TermId by) {
    const TermId product = terms.multiply(terms.zero_extend(n, 64), terms.zero_extend(by, 64));
    return terms.operation("lshr", 64, {product, terms.zero_extend(s, 64)});
  }
};

} // namespace

TEST_CASE("a product with magic numbers is the quotient, if its condition holds and the numbers are the divisor's") {
  const transforms::Magic magic = transforms::magic_of(transforms::MagicForm::natural32, "zext32(P1)");
  MagicTerms right(magic.multiplier, magic.shift);
  Terms& terms = right.terms;
  std::vector<TermId> asked;
  const TermId quotient = terms.zero_extend(terms.operation("div.u32.0", 32, {right.n, right.d}), 64);
  CHECK(right.divisions.rewritten(right.shifted(right.m), [&](TermId bit) {
    asked.push_back(bit);
    return true;
  }) == quotient);
  // The condition is that of the rule: true for n = 2^31 - 1 and d = 1, not for n = 2^31, nor for d = 0.
  REQUIRE(!asked.empty());
  const auto holds = [&](uint64_t n, uint64_t d) {
    return terms.substitute(asked[0], {{*terms.as_atom(right.n), terms.literal(32, n)},
                                       {*terms.as_atom(right.d), terms.literal(32, d)}}) == terms.literal(1, 1);
  };
  CHECK(holds(0x7fffffff, 1));
  CHECK(holds(0, 0xffffffff));
  CHECK(!holds(0x80000000, 1));
  CHECK(!holds(5, 0));
  // Not shown: stays. Another multiplier, other numbers: stays.
  const TermId product = right.shifted(right.m);
  CHECK(right.divisions.rewritten(product, [](TermId) { return false; }) == product);
  const TermId other = right.shifted(terms.leaf("other", 32));
  CHECK(right.divisions.rewritten(other, [](TermId) { return true; }) == other);
  MagicTerms wrong(magic.multiplier + " + 1", magic.shift);
  const TermId wrong_product = wrong.shifted(wrong.m);
  CHECK(wrong.divisions.rewritten(wrong_product, [](TermId) { return true; }) == wrong_product);
}

TEST_CASE("remainders and signed divisions are rewritten only under their conditions") {
  Terms terms;
  Divisions divisions(terms, {}, [](const std::string&) { return std::nullopt; });
  const TermId x = terms.leaf("x", 32), y = terms.leaf("y", 32);
  const TermId rest = terms.operation("rem.u32.0", 32, {x, y}), quotient = terms.operation("div.u32.0", 32, {x, y});
  CHECK(divisions.rewritten(rest, [](TermId) { return true; }) == terms.subtract(x, terms.multiply(quotient, y)));
  CHECK(divisions.rewritten(rest, [](TermId) { return false; }) == rest);
  const TermId of_signed = terms.operation("div.s32.0", 32, {x, y});
  CHECK(divisions.rewritten(of_signed, [](TermId) { return true; }) == quotient);
  CHECK(divisions.rewritten(of_signed, [](TermId) { return false; }) == of_signed);
}

TEST_CASE("divisions by launch constants are proved") {
  if (!Solver::available()) return;
  const std::string store = "mul.wide.u32 %rd3, %r2, 4; add.s64 %rd4, %rd1, %rd3; st.global.u32 [%rd4], %r5;\n";
  for (const std::string body : {"div.u32 %r5, %r2, %r1;", "rem.s32 %r5, %r2, %r1;"}) {
    const auto list = proofs(body + store, "divisor(force)", "sm_80");
    CAPTURE(body);
    REQUIRE(list.size() == 1);
    CHECK(list[0].changed);
    CHECK(list[0].outcome() == Outcome::proved);
  }
}

TEST_CASE("pairs of 16-bit integers in words are proved") {
  if (!Solver::available()) return;
  const auto list = proofs("ld.global.v2.u16 {%h1, %h2}, [%rd1]; ld.global.v2.u16 {%h3, %h4}, [%rd1+4];"
                           "cvt.s32.s16 %r3, %h1; cvt.s32.s16 %r4, %h3; max.s32 %r5, %r3, %r4; cvt.u16.u32 %h5, %r5;"
                           "cvt.s32.s16 %r6, %h2; cvt.s32.s16 %r7, %h4; max.s32 %r8, %r6, %r7; cvt.u16.u32 %h6, %r8;"
                           "st.global.v2.u16 [%rd1+8], {%h5, %h6};\n",
                           "packed(force)", "sm_90");
  REQUIRE(list.size() == 1);
  CHECK(list[0].changed);
  CHECK(list[0].outcome() == Outcome::proved);
}

TEST_CASE("each form of a kernel has its own proof") {
  if (!Solver::available()) return;
  const std::string quads = "mul.wide.u32 %rd3, %r2, 16; add.s64 %rd4, %rd1, %rd3; add.s64 %rd5, %rd2, %rd3;\n";
  const std::string body = quads + "ld.global.f32 %f1, [%rd4]; ld.global.f32 %f2, [%rd4+4];"
                                   "st.global.f32 [%rd5], %f1; st.global.f32 [%rd5+4], %f2;"
                                   "ld.global.f32 %f3, [%rd4+8]; st.global.f32 [%rd5+8], %f3;\n";
  const auto list = proofs(body, "memory(force)", "sm_80");
  REQUIRE(list.size() == 2);
  CHECK(list[0].kernel == "k");
  CHECK(list[1].kernel == "k__memory_unaligned");
  for (const KernelProof& proof : list) {
    CAPTURE(proof.kernel);
    CHECK(proof.outcome() == Outcome::proved);
  }
}

} // namespace ptxrewrite::tests::prove_division_test
