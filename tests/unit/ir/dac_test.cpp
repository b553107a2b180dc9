// DAC's two streams in the IR: the values that cross over, copies, SSA form, and the verifier's rule about them. The
// rules of their text are in tests/golden/dac.
#include "ir/forms/dac.h"

#include "ir/core/builder.h"
#include "ir/core/print.h"
#include "ir/ssa/ssa.h"
#include "ir/verify/verify.h"
#include "tests/unit/grammar/read.h"

#include <doctest/doctest.h>

#include <algorithm>

namespace ptxrewrite::tests::dac_test {

using namespace ptxrewrite;
using namespace ptxrewrite::ir;

namespace {

const char* const two_streams = R"(//@ ptxrewrite hardware 1
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 data)
{
  .reg .b32 %r<3>;
  .reg .pred %p<2>;
  .shared .b32 tile[32];
  .dac.affine {
  .reg .b64 %rd<3>;
  .reg .b32 %r<3>;
  .reg .pred %p<2>;
  ld.param.u64 %rd1, [data];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd2, %r1, 4;
  add.s64 %rd2, %rd1, %rd2;
  mov.u32 %r2, 0;
L:
  dac.enq.data.global.u32 4, [%rd2];
  mov.u32 %r1, tile;
  dac.enq.addr.shared 5, [%r1];
  add.s64 %rd2, %rd2, 128;
  add.u32 %r2, %r2, 1;
  setp.lt.u32 %p1, %r2, 8;
  dac.enq.pred 8, %p1;
  @dac.take.pred(10) ret;
  @%p1 bra L;
  ret;
  }
L:
  ld.global.u32 %r1, [dac.deq.data(4)];
  st.shared.u32 [dac.deq.addr(5)], %r1;
  dac.deq.pred %p1, 8;
  setp.eq.u32 %p0, %r1, 0;
  dac.give.pred 10, %p0;
  @%p0 ret;
  @%p1 bra L;
  ret;
}
)";

struct Streams {
  ReadText text{two_streams};
  Function& body() { return text.function(); }
  Function& affine() { return *text.function().affine_stream; }

  InstructionId find(const Function& function, std::string_view mnemonic) const {
    for (BlockId block : function.layout)
      for (InstructionId id : function.instructions_in(block))
        if (function.instructions[id].kind == InstructionKind::real && function.form_of(id).mnemonic == mnemonic)
          return id;
    return {};
  }
};

std::vector<std::string> rules(const Function& function) {
  std::vector<std::string> list;
  for (const VerifierFinding& finding : verify(function))
    list.push_back(finding.rule);
  return list;
}

} // namespace

TEST_CASE("what crosses over is found in both streams, with its number") {
  Streams streams;
  REQUIRE_MESSAGE(streams.text.ok(), streams.text.messages());
  const std::vector<Crossing> sent = crossings(streams.affine()), taken = crossings(streams.body());
  REQUIRE(sent.size() == 4);
  REQUIRE(taken.size() == 4);
  const CrossingKind kinds[] = {CrossingKind::data, CrossingKind::address, CrossingKind::predicate,
                                CrossingKind::given_predicate};
  const uint32_t numbers[] = {4, 5, 8, 10};
  for (size_t i = 0; i < 4; ++i) {
    CHECK(sent[i].kind == kinds[i]);
    CHECK(sent[i].number == numbers[i]);
    CHECK(sent[i].sends == (i != 3));
    CHECK(taken[i].kind == kinds[i]);
    CHECK(taken[i].number == numbers[i]);
    CHECK(taken[i].sends == (i == 3));
  }
  CHECK(takes_from_queue(streams.body(), taken[0].instruction));
  CHECK_FALSE(takes_from_queue(streams.body(), taken[3].instruction));
  CHECK(takes_from_queue(streams.affine(), sent[3].instruction)); // by its guard
}

TEST_CASE("the affine stream knows the kernel's variables under the same handles") {
  Streams streams;
  REQUIRE(streams.text.ok());
  REQUIRE(streams.affine().variables.size() == streams.body().variables.size());
  for (VariableId id : streams.body().variables.ids())
    CHECK(streams.affine().variables[id].name == streams.body().variables[id].name);
}

TEST_CASE("a copy of a kernel has an affine stream of its own") {
  Streams streams;
  REQUIRE(streams.text.ok());
  const std::string before = print(*streams.text.module, {});
  Function copy(streams.body());
  REQUIRE(copy.affine_stream);
  CHECK(copy.affine_stream.get() != streams.body().affine_stream.get());
  copy.affine_stream->remove(streams.find(*copy.affine_stream, "dac.enq.pred"));
  CHECK(print(*streams.text.module, {}) == before);
  CHECK(rules(streams.body()).empty());
  CHECK(rules(copy) == std::vector<std::string>{"dac"});
}

TEST_CASE("into SSA form and out of it: nothing that takes from a queue is lost, copied or declared") {
  Streams streams;
  REQUIRE(streams.text.ok());
  REQUIRE(construct_ssa(streams.body()).ok());
  CHECK(streams.affine().is_ssa);
  CHECK(rules(streams.body()).empty());
  destruct_ssa(streams.body());
  CHECK_FALSE(streams.affine().is_ssa);
  CHECK(rules(streams.body()).empty());
  const std::string text = print(*streams.text.module, {});
  for (std::string_view once : {"[dac.deq.data(4)]", "[dac.deq.addr(5)]", "@dac.take.pred(10)", "dac.deq.pred"})
    CHECK_MESSAGE(text.find(once) != text.npos, text);
  CHECK(text.find(".reg .b64 dac") == text.npos);
  ReadText again(text);
  CHECK_MESSAGE(again.ok(), again.messages());
}

TEST_CASE("verifier, rule dac: partners, places, forms") {
  auto finds = [](auto&& damage) {
    Streams streams;
    REQUIRE(streams.text.ok());
    REQUIRE(rules(streams.body()).empty());
    damage(streams);
    const std::vector<std::string> list = rules(streams.body());
    REQUIRE(!list.empty());
    CHECK(std::all_of(list.begin(), list.end(), [](const std::string& rule) { return rule == "dac"; }));
  };
  finds([](Streams& s) { s.affine().remove(s.find(s.affine(), "dac.enq.addr.shared")); });
  finds([](Streams& s) { s.body().remove(s.find(s.body(), "st.shared.u32")); });
  finds([](Streams& s) { s.body().remove(s.find(s.body(), "dac.give.pred")); });
  finds([](Streams& s) { s.body().affine_stream = {}; });
  finds([](Streams& s) { // a store in the affine stream
    const Operand base = s.affine().operands_of(s.find(s.affine(), "dac.enq.addr.shared"))[2];
    Builder(s.affine())
        .before(s.find(s.affine(), "dac.enq.pred"))
        .emit("st.shared.u32", {Operand::group(OperandKind::address, 1), base, base});
  });
  finds([](Streams& s) { // an offset at the taker
    s.body().operands_of(s.find(s.body(), "ld.global.u32"))[1].immediate = 4;
  });
  finds(
      [](Streams& s) { s.body().instructions[s.find(s.body(), "ld.global.u32")].form = known_form("ld.global.s32"); });
  finds([](Streams& s) {
    Builder(s.body()).before(s.find(s.body(), "dac.give.pred")).emit("dac.condition", {Operand::integer(0)});
  });
}

TEST_CASE("an enqueue in the body is no partner of what stands there") {
  // Its number as an instruction is one that the affine stream does not have.
  std::string text = two_streams;
  const size_t from = text.find("  .reg .b64 %rd<3>;"), to = text.find("  ret;\n  }\n");
  text.erase(from, to - from);
  text.replace(text.rfind("  ret;"), 6, "  dac.enq.addr.shared 5, [tile];\n  ret;");
  ReadText streams(text);
  CHECK_FALSE(streams.ok());
  CHECK_MESSAGE(streams.messages().find("belongs into the affine stream") != std::string::npos, streams.messages());
}

} // namespace ptxrewrite::tests::dac_test
