// The reducer: all its attempts are consistent modules, its result is still interesting and minimal for its steps, and
// all of it is deterministic.
#include "evaluate/reduce/reduce_edits.h"
#include "evaluate/reduce/reducer.h"
#include "grammar/reader.h"
#include "ir/verify/verify.h"
#include "support/file_io.h"
#include "tests/unit/paths.h"

#include <doctest/doctest.h>

namespace ptxrewrite::tests::reducer_test {

using namespace ptxrewrite;
using namespace ptxrewrite::evaluate;

namespace {

std::string sample(const std::string& name) {
  return *read_file(tests::source_path("samples/" + name + "/" + name + ".ptx"));
}

std::unique_ptr<ir::Module> read(const std::string& text) {
  Diagnostics diagnostics;
  return grammar::read_module(SourceFile("test.ptx", text), diagnostics);
}

Result<Reduction> keep_word(const std::string& text, const std::string& word, uint64_t limit = UINT64_MAX) {
  ReducerOptions options;
  options.test_limit = limit;
  options.is_interesting = [&](const std::string& candidate) { return candidate.find(word) != std::string::npos; };
  return reduce(text, "test.ptx", options);
}

size_t count_instructions(const std::string& text) {
  const auto module = read(text);
  size_t count = 0;
  for (const auto& function : module->functions)
    for (ir::BlockId block : function->layout)
      for (ir::InstructionId id : function->instructions_in(block))
        count += function->instructions[id].kind == ir::InstructionKind::real ? 1 : 0;
  return count;
}

constexpr const char* chain = R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out)
{
  .reg .b32 %r<9>;
  .reg .b64 %rd<3>;
  mov.u32 %r1, %tid.x;
  add.s32 %r2, %r1, 1;
  mul.lo.s32 %r3, %r2, %r1;
  popc.b32 %r4, %r3;
  ld.param.u64 %rd1, [out];
  st.global.u32 [%rd1], %r4;
  ret;
}
)";

} // namespace

TEST_CASE("every text that is tried reads and verifies, and the last interesting one is the result") {
  for (const std::string name : {"backprop", "warp_reduction"}) {
    std::string last;
    uint64_t tests = 0;
    ReducerOptions options;
    options.test_limit = 300;
    options.is_interesting = [&](const std::string& candidate) {
      ++tests;
      const auto module = read(candidate);
      REQUIRE(module);
      CHECK(ir::verify(*module).empty());
      const bool interesting = candidate.find("bar.sync") != std::string::npos || name != "backprop";
      if (interesting && candidate.find("mad.lo") != std::string::npos) last = candidate;
      return interesting && candidate.find("mad.lo") != std::string::npos;
    };
    const Result<Reduction> reduction = reduce(sample(name), name, options);
    REQUIRE(reduction.ok());
    CHECK(reduction->text == last);
    CHECK(reduction->tests == tests);
  }
}

TEST_CASE("one word in a sample comes down to one instruction") {
  const Result<Reduction> reduction = keep_word(sample("backprop"), "fma.rn.f64");
  REQUIRE(reduction.ok());
  CHECK(count_instructions(reduction->text) == 1);
  CHECK(reduction->text.size() < 200);
  CHECK(!reduction->limit_reached);
}

TEST_CASE("the same text and test give the same result after the same number of tests") {
  const Result<Reduction> first = keep_word(sample("warp_reduction"), "shfl.sync");
  const Result<Reduction> second = keep_word(sample("warp_reduction"), "shfl.sync");
  REQUIRE(first.ok());
  REQUIRE(second.ok());
  CHECK(first->text == second->text);
  CHECK(first->tests == second->tests);
}

TEST_CASE("the limit is a limit") {
  for (uint64_t limit : {1, 2, 17}) {
    const Result<Reduction> reduction = keep_word(sample("backprop"), "fma.rn.f64", limit);
    REQUIRE(reduction.ok());
    CHECK(reduction->tests == limit);
    CHECK(reduction->limit_reached);
    CHECK(reduction->text.find("fma.rn.f64") != std::string::npos);
  }
}

TEST_CASE("no register is read that was never written, unless the input does it") {
  const Result<Reduction> defined = keep_word(chain, "popc.b32");
  REQUIRE(defined.ok());
  CHECK(defined->text.find("popc.b32 \t%r4, 0;") != std::string::npos);

  std::string undefined = chain;
  undefined.replace(undefined.find("mov.u32 %r1, %tid.x;"), 20, "");
  const Result<Reduction> kept = keep_word(undefined, "%r4, %r3");
  REQUIRE(kept.ok());
  CHECK(count_instructions(kept->text) == 1);
}

TEST_CASE("what does not read, or is not interesting, is an error") {
  const Result<Reduction> unreadable = keep_word("add.s32;", "add");
  REQUIRE(!unreadable.ok());
  CHECK(unreadable.error().message.find("test.ptx:1:") != std::string::npos);
  const Result<Reduction> boring = keep_word(chain, "no such word");
  REQUIRE(!boring.ok());
  CHECK(boring.error().message.find("nothing to reduce") != std::string::npos);
}

TEST_CASE("edits are applied in the order of the text, overlapping ones once") {
  const std::vector<Opportunity> opportunities = {{{6, 7, "X"}}, {{0, 2, ""}, {3, 4, "yy"}}, {{1, 5, "never"}}};
  CHECK(apply_edits("abcdefgh", opportunities) == "cyyefXh");
  CHECK(apply_edits("abc", {}) == "abc");
}

TEST_CASE("every kind of edit has something to offer in a text that has something of everything") {
  const std::string text = R"(.version 8.0
.target sm_80
.address_size 64
.global .b32 table[2] = {1, 2};
.func (.param .b32 r) f(.param .b32 x)
{
	.reg .b32 %r<2>;
	ld.param.b32 %r1, [x];
	st.param.b32 [r], %r1;
	ret;
}
.visible .entry k(.param .u64 out)
.maxntid 32, 1, 1
{
	.reg .pred %p<2>;
	.reg .b32 %r<5>;
	.reg .b64 %rd<3>;
	mov.u32 %r1, %tid.x;
	add.s32 %r2, %r1, 7;
	setp.lt.s32 %p1, %r2, %r1;
	ld.param.u64 %rd1, [out];
	{
	.param .b32 a;
	st.param.b32 [a], %r2;
	.param .b32 b;
	call (b), f, (a);
	ld.param.b32 %r3, [b];
	}
targets: .branchtargets A, B;
	brx.idx %r1, targets;
A:
	@%p1 st.global.u32 [%rd1+16], %r3;
	bra B;
	st.global.u32 [%rd1], %r2;
B:
	ret;
}
)";
  const auto module = read(text);
  REQUIRE(module);
  for (const ReductionKind& kind : reduction_kinds()) {
    CAPTURE(kind.name);
    CHECK(!kind.find(*module).empty());
  }
}

} // namespace ptxrewrite::tests::reducer_test
