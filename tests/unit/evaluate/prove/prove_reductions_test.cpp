// `prove` on reductions of a warp: redux.sync for a butterfly over all 32 lanes is proved; for trees that miss or
// repeat a lane, for other operations and for warps that may lack lanes it is not, by a pass that does not look.
#include "ir/core/builder.h"
#include "tests/unit/evaluate/prove/prove_text.h"

#include <doctest/doctest.h>

#include <random>

namespace ptxrewrite::tests::prove_reductions_test {

using namespace ptxrewrite;
using namespace ptxrewrite::prove;

namespace {

// Puts `redux.sync.NAME` in place of all shuffles and sums of the first block with shuffles, whatever they compute; the
// option `whole` claims that warps are whole.
transforms::Change put_redux(ir::Function& function, transforms::PassContext& context) {
  std::vector<ir::InstructionId> taken;
  ir::Operand input, total;
  const std::string step(context.options.text("step", "add.s32"));
  ir::InstructionId last;
  for (ir::BlockId block : function.layout)
    for (ir::InstructionId id : function.instructions_in(block)) {
      if (function.instructions[id].kind != ir::InstructionKind::real) continue;
      const bool is_shuffle = function.is_opcode(id, ir::Opcode::shfl);
      const std::string_view mnemonic = function.form_of(id).mnemonic;
      const bool is_step = !taken.empty() && (mnemonic == "add.s32" || mnemonic == "max.s32" || mnemonic == "min.f32");
      const bool is_copy = mnemonic == "mov.b32" && function.operands_of(id)[1].is(ir::OperandKind::value);
      if (is_copy && taken.empty()) input = function.operands_of(id)[1];
      if (is_shuffle && taken.empty() && !input.is(ir::OperandKind::value)) input = function.operands_of(id)[3];
      if (is_step) total = function.operands_of(id)[0], last = id;
      if (is_shuffle || is_step || is_copy) taken.push_back(id);
    }
  ir::Builder(function).before(last).standing_for(last).emit("redux.sync." + step,
                                                             {total, input, ir::Operand::integer(UINT32_MAX)});
  for (ir::InstructionId id : taken)
    function.remove(id);
  if (context.options.flag("whole"))
    context.ledger.push_back({std::string(function.module().text(function.name)),
                              "blocks are whole warps",
                              "test",
                              transforms::Discharge::launch_checked,
                              "ntid.x * ntid.y * ntid.z % 32 == 0",
                              {},
                              ""});
  return transforms::Change::changed;
}
const transforms::RegisterPass
    redux_pass({"test-redux",
                "wrong: redux without a look",
                put_redux,
                {{"step", "operation"}, {"whole", "claims whole warps", transforms::PassOptionKind::flag}}});

using Offsets = std::vector<unsigned>;
const Offsets butterfly{16, 8, 4, 2, 1};

std::string tree(const Offsets& offsets, const std::string& step = "add.s32", const std::string& mode = "bfly",
                 const std::string& mask = "-1") {
  std::string text;
  for (unsigned offset : offsets)
    text += "shfl.sync." + mode + ".b32 %r3|%p1, %r2, " + std::to_string(offset) + ", 31, " + mask + ";\n" + step +
            " %r2, %r2, %r3;\n";
  return text;
}

std::string float_tree() {
  std::string text;
  for (unsigned offset : butterfly)
    text += "mov.b32 %r5, %f1; shfl.sync.bfly.b32 %r6|%p1, %r5, " + std::to_string(offset) +
            ", 31, -1; mov.b32 %f2, %r6; min.f32 %f1, %f1, %f2;\n";
  return text;
}

Outcome outcome(const std::string& body, const std::string& passes = "test-redux(whole)",
                const std::string& directive = "", const std::string& target = "sm_80") {
  const std::string text =
      ".version 8.6\n.target " + target + "\n.address_size 64\n.visible .entry k(.param .u64 p, .param .u32 n)\n" +
      directive +
      "{\n.reg .b64 %rd<5>; .reg .b32 %r<9>; .reg .f32 %f<5>; .reg .pred %p<5>;\nld.param.u64 %rd1, [p]; "
      "ld.param.u32 %r1, [n]; mov.u32 %r4, %tid.x; mul.wide.u32 %rd2, %r4, 4; add.s64 %rd3, %rd1, %rd2;\n"
      "ld.global.u32 %r2, [%rd3]; ld.global.f32 %f1, [%rd3+4096];\n" +
      body + "st.global.u32 [%rd3], %r2; st.global.f32 [%rd3+4096], %f1;\nDONE: ret;\n}\n";
  const KernelProof proof = prove_text(text, passes).front();
  REQUIRE(proof.changed);
  return proof.outcome();
}

// Does every lane's total have each lane once? By adding numbers of which each lane has one digit.
bool is_sum_of_all(const Offsets& offsets) {
  std::array<std::array<unsigned, 32>, 32> counts{};
  for (unsigned lane = 0; lane < 32; ++lane)
    counts[lane][lane] = 1;
  for (unsigned offset : offsets) {
    const auto old = counts;
    for (unsigned lane = 0; lane < 32; ++lane)
      for (unsigned i = 0; i < 32; ++i)
        counts[lane][i] = old[lane][i] + old[lane ^ offset][i];
  }
  for (const auto& row : counts)
    for (unsigned count : row)
      if (count != 1) return false;
  return true;
}

} // namespace

TEST_CASE("redux.sync of a butterfly over the whole warp is proved, as the pass writes it and as a careless one does") {
  CHECK(outcome(tree(butterfly), "warp(force)") == Outcome::proved);
  CHECK(outcome(tree(butterfly), "test-redux(whole)") == Outcome::proved);
  CHECK(outcome(tree(butterfly, "max.s32"), "warp(force)") == Outcome::proved);
  CHECK(outcome(float_tree(), "warp(force)", "", "sm_100a") == Outcome::proved);
  CHECK(outcome(tree(butterfly), "test-redux", ".reqntid 64, 3, 1\n") == Outcome::proved);
  // A branch that the launch decides.
  const std::string uniform = "setp.lt.s32 %p2, %r1, 5; @%p2 bra DONE;\n";
  CHECK(outcome(uniform + tree(butterfly)) == Outcome::proved);
}

TEST_CASE("redux.sync is not proved one step outside: operation, lanes that are missing, masks, modes, segments") {
  CHECK(outcome(tree(butterfly), "test-redux") != Outcome::proved);
  CHECK(outcome(tree(butterfly), "test-redux", ".reqntid 48, 1, 1\n") != Outcome::proved);
  CHECK(outcome(tree(butterfly), "test-redux(whole,step=\"max.s32\")") != Outcome::proved);
  CHECK(outcome(tree({16, 8, 4}, "max.s32") + tree({2, 1}), "test-redux(whole)") != Outcome::proved);
  CHECK(outcome(tree(butterfly, "add.s32", "down")) != Outcome::proved);
  // All lanes, each of them twice.
  CHECK(outcome(tree({16, 8, 4, 2, 1, 1})) != Outcome::proved);
  CHECK(outcome(tree({3, 16, 8, 4, 2, 1})) != Outcome::proved);
  CHECK(outcome(tree(butterfly, "add.s32", "bfly", "0xffff")) != Outcome::proved);
  CHECK(outcome("setp.lt.s32 %p2, %r4, 5; @%p2 bra DONE;\n" + tree(butterfly)) != Outcome::proved);
  CHECK(outcome("setp.lt.s32 %p2, %r4, 5; @%p2 ret;\n" + tree(butterfly)) != Outcome::proved);
}

TEST_CASE("redux.sync is proved for exactly those offsets that add each lane once: random sequences") {
  std::mt19937 random(24);
  size_t right = 0;
  for (unsigned i = 0; i < 150; ++i) {
    Offsets offsets = butterfly;
    std::ranges::shuffle(offsets, random);
    if (i % 3 == 1) offsets[random() % 5] = 1 + random() % 31;
    if (i % 3 == 2)
      for (unsigned& offset : offsets)
        offset = 1 + random() % 31;
    if (i % 11 == 5) offsets.pop_back();
    const bool holds = is_sum_of_all(offsets);
    right += holds;
    CHECK((outcome(tree(offsets)) == Outcome::proved) == holds);
  }
  CHECK(right > 40);
  CHECK(right < 120);
}

} // namespace ptxrewrite::tests::prove_reductions_test
