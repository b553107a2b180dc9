// The first generation of machines (FX5800): its sequences for missing instructions compute, step by step, the result
// of the PTX ISA manual; and counts of sequences written by hand for a machine of two-input logic and 32 bits.
#include "ir/machine/prepare/simple_steps.h"
#include "ir/machine/select/lowering.h"
#include "ir/ssa/ssa.h"
#include "tests/unit/grammar/read.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

namespace ptxrewrite::tests::first_generation_test {

using namespace ptxrewrite;
using namespace ptxrewrite::ir;

namespace {

uint32_t evaluate(const std::vector<SimpleStep>& steps, const std::vector<uint32_t>& inputs) {
  std::vector<uint32_t> results;
  for (const SimpleStep& step : steps) {
    auto value = [&](const StepOperand& operand) {
      switch (operand.kind) {
      case StepOperand::Kind::input:
        return inputs.at(operand.index);
      case StepOperand::Kind::step:
        return results.at(operand.index);
      default:
        return static_cast<uint32_t>(operand.literal);
      }
    };
    uint32_t a = value(step.a), b = value(step.b);
    if (step.mnemonic == "and.b32")
      results.push_back(a & b);
    else if (step.mnemonic == "or.b32")
      results.push_back(a | b);
    else if (step.mnemonic == "xor.b32")
      results.push_back(a ^ b);
    else if (step.mnemonic == "shl.b32")
      results.push_back(b > 31 ? 0 : a << b);
    else if (step.mnemonic == "shr.u32")
      results.push_back(b > 31 ? 0 : a >> b);
    else if (step.mnemonic == "shr.s32")
      results.push_back(static_cast<uint32_t>(static_cast<int32_t>(a) >> std::min(b, 31u)));
    else
      FAIL("no two-input instruction: " << step.mnemonic);
  }
  return results.back();
}

std::vector<SimpleStep> steps_of(std::string_view mnemonic, size_t registers, std::vector<int64_t> literals) {
  std::vector<Operand> sources;
  for (uint32_t i = 0; i < registers; ++i)
    sources.push_back(Operand::value(ValueId(i)));
  for (int64_t value : literals)
    sources.push_back(Operand::integer(value));
  return simple_steps(form(known_form(mnemonic)), sources);
}

std::mt19937 random_numbers(5);
uint32_t any_number() {
  return static_cast<uint32_t>(random_numbers());
}

// Weights of the instructions in the order of the text.
std::string weights(const std::string& body) {
  ReadText text(".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k()\n{\n"
                ".reg .b32 %r<9>; .reg .b64 %rd<5>;\n" +
                body + "\nret;\n}\n");
  REQUIRE_MESSAGE(text.ok(), text.messages());
  Function& function = text.function();
  REQUIRE(construct_ssa(function).ok());
  Lowering lowering = lower(function, 13);
  std::string out;
  for (BlockId block : function.layout)
    for (InstructionId id : function.instructions_in(block))
      if (function.instructions[id].kind == InstructionKind::real)
        out += (out.empty() ? "" : " ") + std::to_string(lowering.cost(id).weight);
  return out;
}

} // namespace

TEST_CASE("all 256 functions of three inputs") {
  size_t most = 0;
  for (int table = 0; table < 256; ++table) {
    std::vector<SimpleStep> steps = steps_of("lop3.b32", 3, {table});
    // Inputs and constants need no step.
    bool is_no_work = table == 0x00 || table == 0xff || table == 0xf0 || table == 0xcc || table == 0xaa;
    CHECK(steps.empty() == is_no_work);
    if (is_no_work) continue;
    // Each of the eight combinations of bits occurs in these words.
    uint32_t result = evaluate(steps, {0xf0f0f0f0u, 0xccccccccu, 0xaaaaaaaau});
    CHECK((result & 0xff) == static_cast<uint32_t>(table));
    most = std::max(most, steps.size());
  }
  CHECK(steps_of("lop3.b32", 3, {0x96}).size() == 2); // a ^ b ^ c
  CHECK(steps_of("lop3.b32", 3, {0xca}).size() == 3); // a ? b : c = ((b ^ c) & a) ^ c
  CHECK(steps_of("lop3.b32", 3, {0xe8}).size() == 4); // the majority
  CHECK(steps_of("lop3.b32", 3, {0xc0}).size() == 1); // a & b
  CHECK(most <= 6);
}

TEST_CASE("the machine's own multiplication has 24 bits") {
  CHECK(weights("mul24.lo.s32 %r1, %r2, %r3; st.global.u32 [%rd1], %r1;") == "1 1 1");
  CHECK(weights("mad24.lo.s32 %r1, %r2, %r3, %r4; st.global.u32 [%rd1], %r1;") == "1 1 1");
}

TEST_CASE("funnel shifts by a literal") {
  for (int amount = 0; amount < 70; ++amount)
    for (const char* mnemonic : {"shf.l.wrap.b32", "shf.r.wrap.b32", "shf.l.clamp.b32", "shf.r.clamp.b32"}) {
      std::vector<SimpleStep> steps = steps_of(mnemonic, 2, {amount});
      bool wraps = std::string_view(mnemonic).find("wrap") != std::string_view::npos;
      uint32_t count = wraps ? static_cast<uint32_t>(amount) & 31 : static_cast<uint32_t>(std::min(amount, 32));
      CHECK(steps.empty() == (count == 0 || count == 32));
      if (steps.empty()) continue;
      uint32_t low = any_number(), high = any_number();
      uint64_t pair = uint64_t(high) << 32 | low;
      bool left = mnemonic[4] == 'l';
      auto expected = static_cast<uint32_t>(left ? (pair << count) >> 32 : pair >> count);
      CHECK(evaluate(steps, {low, high}) == expected);
      CHECK(steps.size() == 3);
    }
}

TEST_CASE("byte permutations by a literal") {
  for (int i = 0; i < 3000; ++i) {
    uint32_t selector = any_number() & (i % 4 ? 0x7777u : 0xffffu);
    std::vector<SimpleStep> steps = steps_of("prmt.b32", 2, {selector});
    bool signs = (selector & 0x8888) != 0;
    if (signs) {
      CHECK(steps.empty());
      continue;
    }
    if (selector == 0x3210 || selector == 0x7654) continue; // one of the inputs
    uint32_t a = any_number(), b = any_number(), expected = 0;
    uint64_t pair = uint64_t(b) << 32 | a;
    for (unsigned place = 0; place < 4; ++place)
      expected |= static_cast<uint32_t>(pair >> (8 * (selector >> (4 * place) & 7)) & 0xff) << (8 * place);
    CHECK(evaluate(steps, {a, b}) == expected);
  }
}

TEST_CASE("bit fields by literals") {
  for (int64_t position = 0; position < 33; ++position)
    for (int64_t length = 0; length < 34; ++length) {
      uint32_t a = any_number(), b = any_number();
      auto in_field = [&](int64_t bit) { return bit >= position && bit < position + length && bit < 32; };
      uint32_t field = 0, inserted = b;
      for (int64_t bit = 0; bit < 32; ++bit) {
        if (in_field(bit)) field |= (a >> bit & 1) << (bit - position);
        if (in_field(bit)) inserted = (inserted & ~(1u << bit)) | (a >> (bit - position) & 1) << bit;
      }
      uint32_t extended = field;
      int64_t top = std::min<int64_t>(position + length - 1, 31);
      if (length > 0 && position < 32 && (a >> top & 1))
        for (int64_t bit = top - position + 1; bit < 32; ++bit)
          extended |= 1u << bit;
      if (std::vector<SimpleStep> steps = steps_of("bfe.u32", 1, {position, length}); !steps.empty()) {
        CHECK(evaluate(steps, {a}) == field);
        CHECK(steps.size() <= 2);
      }
      if (std::vector<SimpleStep> steps = steps_of("bfe.s32", 1, {position, length}); !steps.empty())
        CHECK(evaluate(steps, {a}) == extended);
      if (std::vector<SimpleStep> steps = steps_of("bfi.b32", 2, {position, length}); !steps.empty())
        CHECK(evaluate(steps, {a, b}) == inserted);
    }
  CHECK(steps_of("bfe.u32", 1, {8, 8}).size() == 2);
  CHECK(steps_of("bfe.u32", 1, {0, 8}).size() == 1);
  CHECK(steps_of("bfe.u32", 1, {24, 8}).size() == 1);
  CHECK(steps_of("bfi.b32", 2, {8, 8}).size() == 4);
}

TEST_CASE("FX5800: sums, logic and shifts are apart") {
  // No three-input sum, no scaled one, no three-input logic: ld, then one each, st.
  CHECK(weights("ld.global.u32 %r1, [%rd2]; add.s32 %r2, %r1, 5; add.s32 %r3, %r2, %r1; shl.b32 %r4, %r3, 2;\n"
                "add.s32 %r5, %r4, %r1; and.b32 %r6, %r5, %r1; xor.b32 %r7, %r6, %r2; st.global.u32 [%rd2], %r7;") ==
        "1 1 1 1 1 1 1 1 1");
  // A rotation is two shifts and an or.
  CHECK(weights("ld.global.u32 %r1, [%rd2]; shf.l.wrap.b32 %r2, %r1, %r1, 5; st.global.u32 [%rd2], %r2;") == "1 3 1 1");
  // Product and sum are a multiply-add.
  CHECK(
      weights("ld.global.u32 %r1, [%rd2]; mul.lo.s32 %r2, %r1, %r1; add.s32 %r3, %r2, 5; st.global.u32 [%rd2], %r3;") ==
      "1 0 1 1 1");
  // A product with a power of two is different: a shift and a sum.
  CHECK(
      weights("ld.global.u32 %r1, [%rd2]; mul.lo.s32 %r2, %r1, 8; add.s32 %r3, %r2, %r1; st.global.u32 [%rd2], %r3;") ==
      "1 1 1 1 1");
}

TEST_CASE("FX5800: addresses have one word, data of 64 bits two") {
  CHECK(weights("ld.global.u32 %r1, [%rd2]; mul.wide.s32 %rd3, %r1, 4; add.s64 %rd4, %rd2, %rd3;\n"
                "st.global.u32 [%rd4], %r1;") == "1 1 1 1 1");
  CHECK(weights("ld.global.u64 %rd1, [%rd2]; add.s64 %rd3, %rd1, %rd1; st.global.u64 [%rd2], %rd3;") == "1 2 1 1");
  // The high half of a right-shifted number reaches the low half.
  CHECK(weights("ld.global.u64 %rd1, [%rd2]; add.s64 %rd3, %rd1, %rd1; shr.u64 %rd4, %rd3, 8;\n"
                "st.global.u32 [%rd4], 1;") == "1 2 3 1 1");
}

} // namespace ptxrewrite::tests::first_generation_test
