// Facts of GT200 in the table of composites: instructions counted by hand after the CUDA Programming Guide 2.3.
#include "tests/paper/gt200.h"
#include "tests/unit/grammar/read.h"

#include <doctest/doctest.h>

namespace ptxrewrite::tests::gt200_test {

using namespace ptxrewrite;

namespace {

// Of all instructions but the last, ret: their numbers on the machine if the paper counts one each.
std::string counts(const std::string& body, Gt200Facts facts) {
  ReadText text("//@ ptxrewrite hardware 1\n.version 7.0\n.target sm_70\n.address_size 64\n"
                ".visible .entry k(.param .u64 data)\n{\n\t.reg .b32 %r<9>;\n\t.reg .b64 %rd<5>;\n"
                "\t.shared .align 4 .b8 tile[256];\n\tld.param.u64 %rd1, [data];\n\tld.global.u32 %r1, [%rd1];\n" +
                body + "\n\tst.global.u32 [%rd1], %r2;\n\tret;\n}\n");
  REQUIRE_MESSAGE(text.ok(), text.messages());
  const ir::Function& function = text.function();
  Gt200 gt200(facts);
  std::string list;
  for (ir::BlockId block : function.layout)
    for (ir::InstructionId id : function.instructions_in(block))
      if (function.instructions[id].kind == ir::InstructionKind::real && function.form_of(id).opcode != ir::Opcode::ret)
        list += (list.empty() ? "" : " ") + std::to_string(gt200(function, id, 1));
  return list;
}

} // namespace

TEST_CASE("a product of 32 bits is four by 16 bits, unless 24 bits are enough") {
  constexpr Gt200Facts split{.split_products = true};
  // ld, ld, the product, st
  CHECK(counts("mul.lo.s32 %r2, %r1, %r1;", {}) == "1 1 1 1");
  CHECK(counts("mul.lo.s32 %r2, %r1, %r1;", split) == "1 1 4 1");
  CHECK(counts("mad.lo.s32 %r2, %r1, 12, %r1;", split) == "1 1 4 1");
  CHECK(counts("mul.lo.s32 %r2, %r1, 16;", split) == "1 1 1 1"); // a shift
  CHECK(counts("mul24.lo.s32 %r2, %r1, %r1;", split) == "1 1 1 1");
  // Blocks are at most 65,535, threads 512.
  CHECK(counts("mov.u32 %r3, %ctaid.x; mov.u32 %r4, %ntid.x; mul.lo.s32 %r2, %r3, %r4;", split) == "1 1 1 1 1 1");
  // 23 bits without a sign, 24 with it.
  CHECK(counts("and.b32 %r3, %r1, 0x7fffff; mul.lo.s32 %r2, %r3, 100;", split) == "1 1 1 1 1");
  CHECK(counts("and.b32 %r3, %r1, 0x800000; mul.lo.s32 %r2, %r3, 100;", split) == "1 1 1 4 1");
  CHECK(counts("shl.b32 %r3, %r1, 8; shr.s32 %r3, %r3, 8; mul.lo.s32 %r2, %r3, 100;", split) == "1 1 1 1 4 1");
  CHECK(counts("shl.b32 %r3, %r1, 8; shr.s32 %r4, %r3, 8; mul.lo.s32 %r2, %r4, 100;", split) == "1 1 1 1 1 1");
  CHECK(counts("shr.u32 %r3, %r1, 8; mul.lo.s32 %r2, %r3, 100;", split) == "1 1 1 4 1");
  CHECK(counts("shr.u32 %r3, %r1, 9; mul.lo.s32 %r2, %r3, 100;", split) == "1 1 1 1 1");
}

TEST_CASE("a composite's product is one or four instructions") {
  const std::string composite = "crf.mul.lo.s32.shr.s32 %r2, %r1, %r1, 4;";
  CHECK(counts(composite, {.split_products = true}) == "1 1 4 1");
  CHECK(counts(composite, {.split_products = true, .split_in_composites = false}) == "1 1 1 1");
}

TEST_CASE("a load from shared memory is its reader's operand") {
  constexpr Gt200Facts facts{.shared_operands = true};
  CHECK(counts("ld.shared.u32 %r3, [tile]; add.s32 %r2, %r3, %r1;", {}) == "1 1 1 1 1");
  CHECK(counts("ld.shared.u32 %r3, [tile]; add.s32 %r2, %r3, %r1;", facts) == "1 1 0 1 1");
  // One operand of an instruction; no other reader; no write or barrier in between.
  CHECK(counts("ld.shared.u32 %r3, [tile]; ld.shared.u32 %r4, [tile+4]; add.s32 %r2, %r3, %r4;", facts) ==
        "1 1 0 1 1 1");
  CHECK(counts("ld.shared.u32 %r3, [tile]; add.s32 %r2, %r3, %r3;", facts) == "1 1 1 1 1");
  CHECK(counts("ld.shared.u32 %r3, [tile]; st.shared.u32 [tile], %r1; add.s32 %r2, %r3, %r1;", facts) == "1 1 1 1 1 1");
  CHECK(counts("ld.shared.u32 %r3, [tile]; bar.sync 0; add.s32 %r2, %r3, %r1;", facts) == "1 1 1 1 1 1");
  // Not the value that is stored.
  CHECK(counts("ld.shared.u32 %r2, [tile];", facts) == "1 1 1 1");
}

} // namespace ptxrewrite::tests::gt200_test
