// `prove` on votes, on trees of shfl.down, masks of lanes and barriers of one warp: the rewriting of pass `warp` is
// proved, and rewritings by a pass that does not look are not if they are one step outside.
#include "ir/core/builder.h"
#include "ir/flow/def_use.h"
#include "tests/unit/evaluate/prove/prove_text.h"

#include <doctest/doctest.h>

namespace ptxrewrite::tests::prove_lanes_test {

using namespace ptxrewrite;
using namespace ptxrewrite::prove;

namespace {

void claim(ir::Function& function, transforms::PassContext& context, const char* predicate) {
  context.ledger.push_back({std::string(function.module().text(function.name)),
                            "blocks are whole warps",
                            "test",
                            transforms::Discharge::launch_checked,
                            predicate,
                            {},
                            ""});
}

ir::InstructionId place_behind_definition(const ir::Function& function, ir::ValueId value) {
  const ir::DefUse definitions(function);
  return function.instructions[definitions.definition(value).instruction].next;
}

// Puts a joint instruction in place of the shuffles and steps, whatever they compute: `redux.sync.STEP`, or a vote by
// the predicate of the last selp before them.
transforms::Change put_joint(ir::Function& function, transforms::PassContext& context) {
  using ir::Operand;
  std::vector<ir::InstructionId> taken, broadcasts;
  Operand input, total, voter;
  ir::InstructionId last;
  const std::string step(context.options.text("step", "add.s32")), vote(context.options.text("vote", ""));
  for (ir::BlockId block : function.layout)
    for (ir::InstructionId id : function.instructions_in(block)) {
      if (function.instructions[id].kind != ir::InstructionKind::real) continue;
      const auto operands = function.operands_of(id);
      const bool is_shuffle = function.is_opcode(id, ir::Opcode::shfl);
      if (function.is_opcode(id, ir::Opcode::selp) && taken.empty()) voter = operands[3];
      if (is_shuffle && taken.empty()) input = operands[3];
      if (is_shuffle && function.form_of(id).has(ir::Modifier::idx)) { // a broadcast: the total itself
        ir::Builder(function).before(id).standing_for(id).emit("mov.b32",
                                                               {operands[1], Operand::value(total.as_value())});
        broadcasts.push_back(id);
        continue;
      }
      const bool is_step = last != id && !taken.empty() && function.is_opcode(taken.back(), ir::Opcode::shfl) &&
                           operands.size() == 3 && !is_shuffle;
      if (is_step) total = operands[0], last = id;
      if (is_shuffle || is_step) taken.push_back(id);
    }
  const Operand mask = Operand::integer(context.options.flag("half") ? 0xffff : UINT32_MAX);
  if (context.options.flag("negated")) voter.flags = ir::OperandFlag::negated;
  const bool swaps = context.options.flag("swapped");
  ir::Builder builder(function);
  if (context.options.flag("early"))
    builder.before(place_behind_definition(function, voter.as_value()));
  else
    builder.before(last);
  builder.standing_for(last);
  if (vote.empty()) {
    builder.emit("redux.sync." + step, {total, input, mask});
  } else if (vote == "ballot") {
    const ir::ValueId bits = builder.emit_value("vote.sync.ballot.b32", ir::ScalarType::b32, {voter, mask});
    builder.before(last);
    builder.emit("popc.b32", {total, Operand::value(bits)});
  } else {
    const ir::ValueId bit = builder.emit_value("vote.sync." + vote + ".pred", ir::ScalarType::pred, {voter, mask});
    builder.before(last);
    builder.emit("selp.b32", {total, Operand::integer(!swaps), Operand::integer(swaps), Operand::value(bit)});
  }
  taken.insert(taken.end(), broadcasts.begin(), broadcasts.end());
  for (ir::InstructionId id : taken)
    function.remove(id);
  if (context.options.flag("whole")) claim(function, context, "ntid.x * ntid.y * ntid.z % 32 == 0");
  if (context.options.flag("rows")) claim(function, context, "ntid.x % 32 == 0");
  return transforms::Change::changed;
}
const transforms::RegisterPass
    joint_pass({"test-joint",
                "wrong: joint instructions without a look",
                put_joint,
                {{"step", "operation of redux"},
                 {"vote", "any, all or ballot"},
                 {"early", "the vote where its predicate is computed", transforms::PassOptionKind::flag},
                 {"half", "a mask of 16 lanes", transforms::PassOptionKind::flag},
                 {"negated", "of the other value", transforms::PassOptionKind::flag},
                 {"swapped", "0 for 1", transforms::PassOptionKind::flag},
                 {"rows", "claims whole rows", transforms::PassOptionKind::flag},
                 {"whole", "claims whole warps", transforms::PassOptionKind::flag}}});

std::string tree(const std::string& step, const std::string& mode = "bfly", const std::string& segment = "31") {
  std::string text;
  for (unsigned offset : {16, 8, 4, 2, 1})
    text += "shfl.sync." + mode + ".b32 %r3|%p1, %r2, " + std::to_string(offset) + ", " + segment + ", -1;\n" + step +
            " %r2, %r2, %r3;\n";
  return text;
}

const std::string bit = "setp.lt.s32 %p3, %r2, 7; selp.b32 %r2, 1, 0, %p3;\n";
const std::string lane_zero = "and.b32 %r7, %r4, 31; setp.ne.s32 %p4, %r7, 0; @%p4 bra DONE;\n";

Outcome outcome(const std::string& body, const std::string& passes, const std::string& directive = "") {
  const std::string text =
      ".version 8.6\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p, .param .u32 n)\n" + directive +
      "{\n.reg .b64 %rd<5>; .reg .b32 %r<9>; .reg .pred %p<6>;\nld.param.u64 %rd1, [p]; ld.param.u32 %r1, [n];\n"
      "mov.u32 %r4, %tid.x; mul.wide.u32 %rd2, %r4, 4; add.s64 %rd3, %rd1, %rd2; ld.global.u32 %r2, [%rd3];\n" +
      body + "st.global.u32 [%rd3], %r2;\nDONE: ret;\n}\n";
  const KernelProof proof = prove_text(text, passes).front();
  REQUIRE_MESSAGE(proof.changed, text);
  return proof.outcome();
}

} // namespace

TEST_CASE("votes in place of trees over 0 and 1 are proved") {
  for (const char* step : {"or.b32", "max.s32", "max.u32"}) {
    CHECK(outcome(bit + tree(step), "test-joint(vote=any,whole)") == Outcome::proved);
    CHECK(outcome(bit + tree(step), "warp(force)") == Outcome::proved);
  }
  for (const char* step : {"and.b32", "min.s32", "min.u32"}) {
    CHECK(outcome(bit + tree(step), "test-joint(vote=all,whole)") == Outcome::proved);
    CHECK(outcome(bit + tree(step), "warp(force)") == Outcome::proved);
  }
  CHECK(outcome(bit + tree("add.s32"), "test-joint(vote=ballot,whole)") == Outcome::proved);
  CHECK(outcome(bit + tree("add.s32"), "warp(force)") == Outcome::proved);
  CHECK(outcome(bit + tree("or.b32"), "test-joint(vote=any)", ".reqntid 64, 1, 1\n") == Outcome::proved);
}

TEST_CASE("votes are not proved one step outside: another vote, value, mask, number, missing lanes") {
  const auto any = [](const std::string& options, const std::string& before = "", const std::string& directive = "") {
    return outcome(before + bit + tree("or.b32"), "test-joint(" + options + ")", directive);
  };
  REQUIRE(any("vote=any,whole") == Outcome::proved);
  CHECK(any("vote=all,whole") != Outcome::proved);
  CHECK(any("vote=ballot,whole") != Outcome::proved);
  CHECK(any("vote=any,whole,negated") != Outcome::proved);
  CHECK(any("vote=any,whole,swapped") != Outcome::proved);
  CHECK(any("vote=any,whole,half") != Outcome::proved);
  CHECK(any("vote=any") != Outcome::proved);
  CHECK(any("vote=any", "", ".reqntid 48, 1, 1\n") != Outcome::proved);
  CHECK(any("vote=any,whole", "setp.lt.s32 %p2, %r4, 5; @%p2 bra DONE;\n") != Outcome::proved);
  CHECK(outcome(bit + tree("and.b32"), "test-joint(vote=any,whole)") != Outcome::proved);
  CHECK(outcome(bit + tree("add.s32"), "test-joint(vote=any,whole)") != Outcome::proved);
  CHECK(outcome(bit + tree("xor.b32"), "test-joint(vote=ballot,whole)") != Outcome::proved);
  // 2 instead of 1; a number that another predicate selects.
  const std::string two = "setp.lt.s32 %p3, %r2, 7; selp.b32 %r2, 2, 0, %p3;\n";
  CHECK(outcome(two + tree("or.b32"), "test-joint(vote=any,whole)") != Outcome::proved);
  const std::string other = "setp.lt.s32 %p3, %r2, 7; setp.lt.s32 %p5, %r2, 8; selp.b32 %r2, 1, 0, %p3;\n"
                            "selp.b32 %r5, 1, 0, %p5;\n";
  CHECK(outcome(other + tree("or.b32"), "test-joint(vote=any,whole)") != Outcome::proved);
}

TEST_CASE("a vote is taken where its number is made: in the same execution, by all lanes") {
  const std::string selected = "selp.b32 %r2, 1, 0, %p3;\n";
  const auto early = [&](const std::string& body) {
    return outcome(body + selected + tree("add.s32"), "test-joint(vote=ballot,rows,early)");
  };
  CHECK(early("setp.lt.s32 %p3, %r2, 7;\n") == Outcome::proved);
  // The predicate of the last trip: lanes take their own numbers of trips, and vote in each.
  CHECK(early("LOOP: add.s32 %r2, %r2, -3; setp.lt.s32 %p3, %r2, 7; setp.gt.s32 %p2, %r2, %r1; @%p2 bra LOOP;\n") !=
        Outcome::proved);
}

TEST_CASE("a tree of shfl.down has its total in lane 0 alone") {
  const std::string down = tree("add.s32", "down");
  CHECK(outcome(down + lane_zero, "test-joint(rows)") == Outcome::proved);
  CHECK(outcome(down + lane_zero, "warp(force)") == Outcome::proved);
  CHECK(outcome(down + "mov.u32 %r7, %laneid; setp.ne.s32 %p4, %r7, 0; @%p4 bra DONE;\n", "test-joint(whole)") ==
        Outcome::proved);
  CHECK(outcome(down + "setp.ne.s32 %p4, %r4, 0; @%p4 bra DONE;\n", "test-joint(rows)") == Outcome::proved);
  // Lane 0's is broadcast.
  const std::string broadcast = "shfl.sync.idx.b32 %r2|%p1, %r2, 0, 31, -1;\n";
  CHECK(outcome(down + broadcast, "test-joint(rows)") == Outcome::proved);
  // Read by all lanes, by lane 1, by lanes whose number is not known, by lane 0 and one more, from lane 1.
  CHECK(outcome(down, "test-joint(rows)") != Outcome::proved);
  CHECK(outcome(down + "and.b32 %r7, %r4, 31; setp.ne.s32 %p4, %r7, 1; @%p4 bra DONE;\n", "test-joint(rows)") !=
        Outcome::proved);
  CHECK(outcome(down + lane_zero, "test-joint(whole)") != Outcome::proved);
  CHECK(outcome(down + "and.b32 %r7, %r4, 30; setp.ne.s32 %p4, %r7, 0; @%p4 bra DONE;\n", "test-joint(rows)") !=
        Outcome::proved);
  CHECK(outcome(down + "shfl.sync.idx.b32 %r2|%p1, %r2, 1, 31, -1;\n", "test-joint(rows)") != Outcome::proved);
  CHECK(outcome(tree("add.s32", "down", "15") + lane_zero, "test-joint(rows)") != Outcome::proved);
  CHECK(outcome(tree("add.s32", "up") + lane_zero, "test-joint(rows)") != Outcome::proved);
}

TEST_CASE("all lanes get there if the branches around the place have one condition in a warp") {
  const std::string sum = tree("add.s32");
  const auto below = [&](const char* limit, const char* options) {
    return outcome("setp.ge.u32 %p2, %r4, " + std::string(limit) + "; @%p2 bra DONE;\n" + sum,
                   "test-joint(" + std::string(options) + ")");
  };
  CHECK(below("64", "rows") == Outcome::proved);
  CHECK(below("48", "rows") != Outcome::proved);
  CHECK(below("64", "whole") != Outcome::proved);
  CHECK(outcome("setp.ge.s32 %p2, %r2, 64; @%p2 bra DONE;\n" + sum, "test-joint(rows)") != Outcome::proved);
  // A loop of which each lane takes its own number of trips: behind it, in it.
  const std::string loop = "LOOP: add.s32 %r4, %r4, 128; add.s32 %r2, %r2, %r4; setp.lt.s32 %p2, %r4, %r1;\n"
                           "@%p2 bra LOOP;\n";
  CHECK(outcome(loop + sum, "test-joint(rows)") == Outcome::proved);
  CHECK(outcome("LOOP: add.s32 %r4, %r4, 128;\n" + sum + "setp.lt.s32 %p2, %r4, %r1; @%p2 bra LOOP;\n",
                "test-joint(rows)") != Outcome::proved);
  CHECK(outcome("mov.u32 %r5, 0; LOOP: add.s32 %r5, %r5, 1;\n" + sum + "setp.lt.s32 %p2, %r5, %r1; @%p2 bra LOOP;\n",
                "test-joint(rows)") == Outcome::proved);
  // Behind the loop, its number of trips differs.
  CHECK(outcome(loop + "setp.lt.s32 %p4, %r4, 4096; @%p4 bra DONE;\n" + sum, "test-joint(rows)") != Outcome::proved);
}

TEST_CASE("masks of lanes are powers of two of the lane's number") {
  const auto text = [](const std::string& mask, const std::string& directive) {
    return ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p)\n" + directive +
           "{\n.reg .b64 %rd<5>; .reg .b32 %r<9>;\nld.param.u64 %rd1, [p]; mov.u32 %r4, %tid.x; mov.u32 %r5, 1;\n"
           "and.b32 %r6, %r4, 31; " +
           mask + "mul.wide.u32 %rd2, %r4, 4; add.s64 %rd3, %rd1, %rd2; st.global.u32 [%rd3], %r7; ret;\n}\n";
  };
  const std::string row = ".reqntid 64, 1, 1\n", rows = ".reqntid 16, 4, 1\n";
  const std::string below = "shl.b32 %r7, %r5, %r6; add.s32 %r7, %r7, -1;\n";
  const auto is_proved = [&](const std::string& old, const std::string& name, const std::string& directive) {
    // As many instructions: they correspond by number.
    return prove_texts(text(old, directive), text("mov.u32 %r7, 0; mov.u32 %r7, %lanemask_" + name + ";\n", directive))
        .holds();
  };
  CHECK(is_proved(below, "lt", row));
  CHECK(is_proved("shl.b32 %r7, -1, %r6; mov.b32 %r7, %r7;\n", "ge", row));
  CHECK(is_proved("shl.b32 %r7, -2, %r6; mov.b32 %r7, %r7;\n", "gt", row));
  CHECK(is_proved("shl.b32 %r7, -2, %r6; not.b32 %r7, %r7;\n", "le", row));
  CHECK(is_proved("shl.b32 %r7, %r5, %r6; mov.b32 %r7, %r7;\n", "eq", row));
  for (const char* name : {"le", "ge", "gt", "eq"})
    CHECK_FALSE(is_proved(below, name, row));
  CHECK_FALSE(is_proved(below, "lt", rows));
  CHECK_FALSE(is_proved(below, "lt", ""));
}

TEST_CASE("a barrier of a block of one warp is a barrier of the warp") {
  const auto text = [](const std::string& barrier, const std::string& directive) {
    return ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p)\n" + directive +
           "{\n.reg .b64 %rd<5>; .reg .b32 %r<9>;\n.shared .b32 s[64];\nld.param.u64 %rd1, [p]; mov.u32 %r4, %tid.x;\n"
           "st.shared.u32 [s], %r4; " +
           barrier + "ld.shared.u32 %r5, [s]; st.global.u32 [%rd1], %r5; ret;\n}\n";
  };
  const auto is_proved = [&](const std::string& old, const std::string& made, const std::string& directive) {
    return prove_texts(text(old, directive), text(made, directive)).holds();
  };
  const std::string block = "bar.sync 0;\n", warp = "bar.warp.sync -1;\n", one = ".maxntid 32, 1, 1\n";
  CHECK(is_proved(block, warp, one));
  CHECK(is_proved("barrier.sync.aligned 0;\n", warp, ".reqntid 4, 4, 2\n"));
  CHECK_FALSE(is_proved(block, warp, ".maxntid 64, 1, 1\n"));
  CHECK_FALSE(is_proved(block, warp, ""));
  CHECK_FALSE(is_proved(block, "bar.warp.sync 1;\n", one));
  CHECK_FALSE(is_proved("bar.sync 0, 64;\n", warp, one));
  CHECK_FALSE(is_proved("barrier.sync 0;\n", warp, one));
  CHECK_FALSE(is_proved("bar.arrive 0, 64; " + block, "bar.arrive 0, 64; " + warp, one));
}

} // namespace ptxrewrite::tests::prove_lanes_test
