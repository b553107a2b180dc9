// Fusions of instructions, by the rules of the machines' own instruction sets: each case states the code of ptxas.
#include "ir/machine/select/lowering.h"

#include "ir/ssa/ssa.h"
#include "tests/unit/grammar/read.h"

#include <doctest/doctest.h>

namespace ptxrewrite::tests::lowering_test {

using namespace ptxrewrite;
using namespace ptxrewrite::ir;

namespace {

// Weights of the instructions in the order of the text, "w" or "w+u" if the uniform datapath is used.
std::string weights(const std::string& body, uint32_t capability, bool ssa) {
  ReadText text(kernel(body));
  REQUIRE_MESSAGE(text.ok(), text.messages());
  Function& function = text.function();
  if (ssa) REQUIRE(construct_ssa(function).ok());
  Lowering lowering = lower(function, capability);
  std::string out;
  for (BlockId block : function.layout)
    for (InstructionId id : function.instructions_in(block)) {
      if (function.instructions[id].kind != InstructionKind::real) continue;
      const InstructionCost& cost = lowering.cost(id);
      out += (out.empty() ? "" : " ") + std::to_string(cost.weight);
      if (cost.uniform) out += "+" + std::to_string(cost.uniform);
    }
  return out;
}

void check_both(const std::string& body, uint32_t capability, const std::string& expected) {
  CAPTURE(body);
  CHECK(weights(body, capability, true) == expected);
  CHECK(weights(body, capability, false) == expected);
}

} // namespace

TEST_CASE("an address from a parameter and an index is one wide multiply-add") {
  // S2R; MOV 4 with IMAD.WIDE; LDG; FADD; STG to the same address; EXIT.
  check_both("ld.param.u64 %rd1, [p]; cvta.to.global.u64 %rd1, %rd1; mov.u32 %r1, %tid.x;\n"
             "mul.wide.s32 %rd2, %r1, 4; ld.global.f32 %f1, [%rd2]; st.global.f32 [%rd2], %f1;",
             80, "0 0 1 1 1 1 1");
}

TEST_CASE("dead code weighs nothing") {
  check_both("ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; add.s32 %r2, %r1, %r1; add.s32 %r3, %r2, %r2;", 80,
             "0 0 0 0 1");
}

TEST_CASE("dead readers do not change what is fused") {
  const std::string load = "ld.global.u64 %rd1, [%rd1]; ld.global.u32 %r1, [%rd1]; ld.global.u32 %r2, [%rd1+4];\n";
  struct Fusion {
    const char *producer, *reader;
  };
  for (const Fusion& fusion : {Fusion{"mul.lo.s32 %r3, %r1, %r2;", "add.s32 %r4, %r3, %r1;"},
                               Fusion{"shl.b32 %r3, %r1, 3;", "add.s32 %r4, %r3, %r2;"},
                               Fusion{"not.b32 %r3, %r1;", "and.b32 %r4, %r3, %r2;"}})
    for (const uint32_t capability : {20u, 52u, 70u, 80u, 120u})
      for (const std::string dead : {"popc.b32 %r4, %r3;", "setp.eq.s32 %p1, %r3, 7;"}) {
        CAPTURE(std::string(fusion.producer));
        CAPTURE(capability);
        CAPTURE(dead);
        const auto weight = [&](const std::string& between) {
          const std::string begin = load + fusion.producer + "\n";
          const std::string end = std::string(fusion.reader) + "\nst.global.u32 [%rd1], %r4;";
          ReadText text(kernel(begin + between + end));
          REQUIRE_MESSAGE(text.ok(), text.messages());
          Function& function = text.function();
          REQUIRE(construct_ssa(function).ok());
          return std::to_string(lower(function, capability).static_instructions()) + " " +
                 std::to_string(lower_as_written(function, capability).static_instructions());
        };
        CHECK(weight(dead) == weight(""));
      }
}

TEST_CASE("a special register is read once") {
  check_both("ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.x; mov.u32 %r3, %tid.y;\n"
             "st.global.u32 [%rd1], %r1; st.global.u32 [%rd1+4], %r2; st.global.u32 [%rd1+8], %r3;",
             80, "2 1 0 1 1 1 1 1");
}

TEST_CASE("constants added to addresses go into the access") {
  check_both("ld.global.u64 %rd1, [%rd1]; add.s64 %rd2, %rd1, 16; ld.global.u32 %r1, [%rd2];\n"
             "st.global.u32 [%rd2+4], %r1;",
             80, "1 0 1 1 1");
  // Not when the address itself is stored.
  check_both("ld.global.u64 %rd1, [%rd1]; add.s64 %rd2, %rd1, 16; st.global.u64 [%rd2], %rd2;", 80, "1 2 1 1");
}

// Section 4.3 of the R2D2 paper: instructions fetch the parts of a linear register as operands and add them.
TEST_CASE("a move of a linear register is no instruction where all its readers can name it") {
  auto weight_of_moves = [](const std::string& body) {
    ReadText text("//@ ptxrewrite hardware 1\n.version 9.0\n.target sm_80\n.address_size 64\n"
                  ".visible .entry k(.param .u64 p)\n{\n"
                  ".reg .b32 %r<9>; .reg .b64 %rd<3>, %cr<3>, %tr<2>, %br<2>, %lr<2>; .reg .pred %p<2>;\n"
                  ".r2d2.coefficient {\nld.param.u64 %cr0, [p];\nmov.u32 %cr1, %ntid.x;\n}\n"
                  ".r2d2.thread {\ncvt.u64.u32 %tr0, %tid.x;\n}\n"
                  ".r2d2.block {\nmov.b64 %br0, %cr0;\n}\n"
                  ".r2d2.linear %lr0 = %tr0 + %br0;\n.r2d2.linear %lr1 = %tr0 + 0;\n"
                  "ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%lr0];\n" +
                  body + "ret;\n}\n");
    REQUIRE_MESSAGE(text.ok(), text.messages());
    Function function = text.function();
    REQUIRE(construct_ssa(function).ok());
    Lowering lowering = lower(function, 70);
    uint32_t sum = 0;
    for (BlockId block : function.layout)
      for (InstructionId id : function.instructions_in(block))
        if (function.is_opcode(id, Opcode::r2d2_mov)) sum += lowering.cost(id).weight;
    return sum;
  };
  const std::string move = "r2d2.mov.b32 %r5, %lr0;\n", store = "st.global.u32 [%lr0], %r6;\n";
  CHECK(weight_of_moves(move + "min.s32 %r6, %r5, %r1;\n" + store) == 0);
  CHECK(weight_of_moves(move + "min.s32 %r6, %r5, %r1;\nmax.s32 %r6, %r6, %r5;\n" + store) == 0);
  // Four registers: two, a coefficient and the other operand; with two others they are five.
  CHECK(weight_of_moves("r2d2.mov.b32 %r5, %lr0, %cr1;\nadd.s32 %r6, %r5, %r1;\n" + store) == 0);
  CHECK(weight_of_moves("r2d2.mov.b32 %r5, %lr0, %cr1;\nmad.lo.s32 %r6, %r5, %r1, %r2;\n" + store) == 1);
  // Not twice in one instruction, not as a stored value, not into a register that is written on two paths.
  CHECK(weight_of_moves(move + "mul.lo.s32 %r6, %r5, %r5;\n" + store) == 1);
  CHECK(weight_of_moves(move + "r2d2.mov.b32 %r7, %lr0, 4;\nmin.s32 %r6, %r5, %r7;\n" + store) == 1);
  CHECK(weight_of_moves(move + "st.global.u32 [%lr0], %r5;\n") == 1);
  CHECK(weight_of_moves("mov.u32 %r5, 0;\nsetp.lt.s32 %p1, %r1, 0;\n@%p1 r2d2.mov.b32 %r5, %lr0;\n"
                        "min.s32 %r6, %r5, %r1;\n" +
                        store) == 1);
  // A single register is an ordinary operand.
  CHECK(weight_of_moves("r2d2.mov.b32 %r5, %lr1;\nst.global.u32 [%lr0], %r5;\n") == 0);
  CHECK(weight_of_moves("r2d2.mov.b32 %r5, %cr1;\nmul.lo.s32 %r6, %r5, %r5;\n" + store) == 0);
  CHECK(weight_of_moves("r2d2.mov.b64 %rd1, %cr0;\nst.global.u32 [%rd1], %r1;\n") == 0);
  CHECK(weight_of_moves("r2d2.mov.b64 %rd1, %lr0;\nst.global.u64 [%lr0], %rd1;\n") == 2);
}

// An offset that changes from trip to trip: only while its register holds the value of that trip.
TEST_CASE("a linear register plus a loop's offset is read where the offset still holds") {
  auto weight_of_move = [](const std::string& first, const std::string& second) {
    ReadText text("//@ ptxrewrite hardware 1\n.version 9.0\n.target sm_80\n.address_size 64\n"
                  ".visible .entry k(.param .u64 p)\n{\n"
                  ".reg .b32 %r<9>; .reg .b64 %cr<3>, %tr<2>, %br<2>, %lr<2>; .reg .pred %p<2>;\n"
                  ".r2d2.coefficient {\nld.param.u64 %cr0, [p];\n}\n"
                  ".r2d2.thread {\ncvt.u64.u32 %tr0, %tid.x;\n}\n.r2d2.block {\nmov.b64 %br0, %cr0;\n}\n"
                  ".r2d2.linear %lr0 = %tr0 + %br0;\nmov.u32 %r1, 0;\nL:\nld.global.u32 %r2, [%lr0];\n"
                  "r2d2.mov.b32 %r3, %lr0, %r1;\n" +
                  first + second + "setp.lt.s32 %p1, %r1, 99;\n@%p1 bra L;\nret;\n}\n");
    REQUIRE_MESSAGE(text.ok(), text.messages());
    Function function = text.function();
    REQUIRE(construct_ssa(function).ok());
    Lowering lowering = lower(function, 70);
    for (BlockId block : function.layout)
      for (InstructionId id : function.instructions_in(block))
        if (function.is_opcode(id, Opcode::r2d2_mov)) return uint32_t(lowering.cost(id).weight);
    return UINT32_MAX;
  };
  const std::string reader = "min.s32 %r4, %r3, %r2;\nst.global.u32 [%lr0], %r4;\n", step = "add.s32 %r1, %r1, 4;\n";
  CHECK(weight_of_move(reader, step) == 0);
  CHECK(weight_of_move(step, reader) == 1);
}

// LDS.128 where the row of a tile starts at a multiple of sixteen bytes, as for any register whose alignment is known.
TEST_CASE("neighbouring loads from shared memory at a linear register are joined") {
  auto weights_of_loads = [](int row_bytes) {
    ReadText text("//@ ptxrewrite hardware 1\n.version 9.0\n.target sm_80\n.address_size 64\n"
                  ".visible .entry k(.param .u64 p)\n{\n"
                  ".reg .b32 %r<5>; .reg .b64 %cr<2>, %tr<3>, %br<2>, %lr<1>;\n.shared .align 4 .b8 tile[4096];\n"
                  ".r2d2.coefficient {\nmov.u32 %cr0, tile;\nmov.u32 %cr1, 0;\n}\n"
                  ".r2d2.thread {\ncvt.u64.u32 %tr0, %tid.x;\nmad.lo.s64 %tr1, %tr0, " +
                  std::to_string(row_bytes) +
                  ", 0;\n}\n.r2d2.block {\nmov.b64 %br0, %cr0;\n}\n.r2d2.linear %lr0 = %tr1 + %br0;\n"
                  "ld.shared.u32 %r1, [%lr0];\nld.shared.u32 %r2, [%lr0+4];\n"
                  "ld.shared.u32 %r3, [%lr0+8];\nld.shared.u32 %r4, [%lr0+12];\n"
                  "add.s32 %r1, %r1, %r2;\nadd.s32 %r1, %r1, %r3;\nadd.s32 %r1, %r1, %r4;\n"
                  "st.shared.u32 [%lr0], %r1;\nret;\n}\n");
    REQUIRE_MESSAGE(text.ok(), text.messages());
    Function function = text.function();
    REQUIRE(construct_ssa(function).ok());
    Lowering lowering = lower(function, 70);
    uint32_t sum = 0;
    for (BlockId block : function.layout)
      for (InstructionId id : function.instructions_in(block))
        if (function.is_opcode(id, Opcode::ld)) sum += lowering.cost(id).weight;
    return sum;
  };
  CHECK(weights_of_loads(64) == 1);
  CHECK(weights_of_loads(8) == 2);
  CHECK(weights_of_loads(4) == 4);
}

// By ptxas 13.0 for sm_75 and sm_80: IMAD.MOV.U32 R3, RZ, RZ, 0x4 before IMAD.WIDE R2, R0, R3, c[0x0][0x160].
TEST_CASE("the literal factor of wide multiply-adds comes into a register in each block that no other such dominates") {
  const std::string load = "ld.param.u64 %rd1, [p]; ld.global.u32 %r1, [%rd1];\n",
                    access = "mul.wide.s32 %rd2, %r1, 4; add.s64 %rd2, %rd1, %rd2; ld.global.u32 %r1, [%rd2];\n",
                    end = "setp.ne.u32 %p1, %r1, 0; @%p1 bra L;\n";
  CHECK(weights(load + "L:" + access + access + end, 80, true) == "2 1 0 2 1 0 1 1 1 1 1");
  CHECK(weights(load + access + "L: " + access + end, 80, true) == "2 1 0 2 1 0 1 1 1 1 1");
  const std::string branch = "setp.ne.u32 %p1, %r1, 0; @%p1 bra M;\n", work = "atom.global.add.u32 %r1, [%rd2], %r1;\n",
                    long_work = work + work + work + work + work + work + work + work;
  CHECK(weights(load + branch + access + long_work + "M:" + access + "st.global.u32 [%rd1], %r1;\n", 80, true) ==
        "2 1 1 1 0 2 1 1 1 1 1 1 1 1 1 0 2 1 1 1");
  // Loops of several blocks move it again.
  CHECK(weights(load + access + "L: " + access + branch + "st.global.u32 [%rd1], %r1;\n" + end + "M:", 80, true) ==
        "2 1 0 2 1 0 2 1 1 1 1 1 1 1");
}

// By ptxas 13.0 for sm_80: one IMAD.WIDE.U32 R2, R0, 0xc, R2, and the second sum is fused.
TEST_CASE("a wide product that is shifted is one product, a sum is known with its operands in either order") {
  CHECK(weights("ld.global.u32 %r1, [%rd1]; ld.global.u64 %rd1, [%rd1+8]; mul.wide.u32 %rd2, %r1, 3;\n"
                "shl.b64 %rd2, %rd2, 2; add.s64 %rd2, %rd2, %rd1; st.global.u32 [%rd2], %r1;\n",
                80, true) == "1 1 0 0 1 1 1");
  CHECK(weights("ld.global.u32 %r1, [%rd1]; ld.global.u32 %r2, [%rd1+8]; add.s32 %r3, %r1, %r2;\n"
                "add.s32 %r4, %r2, %r1; st.global.u32 [%rd1], %r3; st.global.u32 [%rd1+4], %r4;\n",
                80, true) == "1 1 1 0 1 1 1");
}

// By ptxas 13.0 for sm_75: ULDC.64 UR4, c[0x0][0x160], STG.E.SYS [UR4], R0; for sm_80 two moves.
TEST_CASE("a parameter that is only an address comes into uniform registers where accesses name them") {
  const std::string text = "ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; st.global.u32 [%rd1], %r1;\n";
  CHECK(weights(text, 75, true) == "0+1 1 1 1");
  CHECK(weights(text, 80, true) == "2 1 1 1");
}

// By ptxas 13.0: ten loads, and ten sums IMAD R4, R4, 0x5, R5 and so on, each with its number.
TEST_CASE("copies of a loop whose trips are known compute no number that follows from them") {
  ReadText text(kernel("ld.param.u64 %rd1, [p]; mov.u32 %r1, 0; mov.u32 %r4, 0;\n"
                       "L: mul.lo.s32 %r2, %r1, 12; xor.b32 %r2, %r2, 5; ld.volatile.global.u32 %r3, [%rd1];\n"
                       "mul.lo.s32 %r3, %r3, %r2; add.s32 %r4, %r4, %r3;\n"
                       "add.s32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 10; @%p1 bra L;\nst.global.u32 [%rd1], %r4;\n"));
  REQUIRE_MESSAGE(text.ok(), text.messages());
  REQUIRE(construct_ssa(text.function()).ok());
  // Loads and multiply-adds; the text has those of one trip, the number's, and the loop's counter and branch.
  CHECK(lower(text.function(), 80).unrolled_instructions() == 10 * 2 - (2 + 2 + 3));
}

// By ptxas 13.0: MOV R7, R5 before the loop, where both counters start.
TEST_CASE("one value that two counters of a loop start from is moved for one of them") {
  const std::string start = "ld.global.u32 %r1, [%rd1]; mov.u32 %r2, %r1;\n",
                    loop = "L: st.global.u32 [%rd1+4], %r1; add.s32 %r1, %r1, 3; add.s32 %r2, %r2, 5;\n"
                           "setp.lt.s32 %p1, %r1, %r2; @%p1 bra L; st.global.u32 [%rd1+8], %r2;\n";
  CHECK(weights(start + loop, 80, true) == "1 1 1 1 1 1 1 1 1");
  CHECK(weights(start + "xor.b32 %r2, %r2, 9;\n" + loop, 80, true) == "1 0 1 1 1 1 1 1 1 1");
}

// By ptxas 13.0: MUFU.RCP once, and again after the loop, which may exit in two places.
TEST_CASE("the reciprocal of a divisor stays at hand, but not through loops of several blocks") {
  const std::string divide = "div.s32 %r3, %r3, %r2; st.global.u32 [%rd1], %r3;\n",
                    loop = "L: ld.volatile.global.u32 %r3, [%rd1+4]; setp.lt.s32 %p1, %r3, %r2;\n",
                    leave = "setp.eq.s32 %p2, %r3, 7; @%p2 bra M;\n", again = "@%p1 bra L;\n";
  const std::string start = "ld.global.u32 %r2, [%rd1+8]; ld.global.u32 %r3, [%rd1];\n" + divide;
  auto second_division = [&](const std::string& between) {
    const std::string all = weights(start + between + divide + "M:", 80, true);
    return all.substr(0, all.rfind(" 1 1")).substr(all.substr(0, all.rfind(" 1 1")).rfind(' ') + 1);
  };
  CHECK(second_division(loop + again) == "13");
  CHECK(second_division(loop + leave + again) == "24");
}

TEST_CASE("two compares and their conjunction are two instructions") {
  check_both("ld.global.u32 %r1, [%rd1]; ld.global.u32 %r2, [%rd1+4]; setp.lt.s32 %p1, %r1, %r2;\n"
             "setp.gt.s32 %p2, %r1, 5; and.pred %p1, %p1, %p2; selp.u32 %r3, 1, 2, %p1; st.global.u32 [%rd1], %r3;",
             80, "1 1 1 1 0 2 1 1"); // one of the two literals is moved into a register
}

TEST_CASE("sections of a hardware form are issued as written, linear rows and what reads them are free") {
  ReadText text("//@ ptxrewrite hardware 1\n.version 9.0\n.target sm_80\n.address_size 64\n"
                ".visible .entry k(.param .u64 p)\n{\n.reg .b32 %r<3>; .reg .b64 %cr<3>, %tr<2>, %br<2>, %lr<2>;\n"
                ".r2d2.coefficient {\nmov.u32 %cr0, %ntid.x;\nmul.wide.s32 %cr1, %cr0, 4;\nld.param.u64 %cr2, [p];\n}\n"
                ".r2d2.thread {\ncvt.u64.u32 %tr0, %tid.x;\nmad.lo.s64 %tr1, %tr0, 4, 0;\n}\n"
                ".r2d2.block {\ncvt.u64.u32 %br1, %ctaid.x;\nmad.lo.s64 %br0, %br1, %cr1, %cr2;\n}\n"
                ".r2d2.linear %lr0 = %tr1 + %br0;\n"
                "ld.global.u32 %r1, [%lr0+4];\nr2d2.mov.b32 %r2, %lr0;\nadd.s32 %r1, %r1, %r2;\n"
                "st.global.u32 [%lr0], %r1;\nret;\n}\n");
  REQUIRE_MESSAGE(text.ok(), text.messages());
  const Function& function = text.function();
  Lowering lowering = lower(function, 70);
  for (BlockId block : function.layout)
    for (InstructionId id : function.instructions_in(block)) {
      CAPTURE(id.index());
      // The addition reads the linear register itself.
      bool issued =
          function.instructions[id].kind == InstructionKind::real && !function.is_opcode(id, Opcode::r2d2_mov);
      CHECK(lowering.cost(id).weight == issued);
      CHECK(lowering.cost(id).uniform == 0);
    }
}

} // namespace ptxrewrite::tests::lowering_test
