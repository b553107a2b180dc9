// Folding is correct: results by hand from the ISA manual's definitions, known bits against all numbers that they
// exclude, and well-formed functions of all samples for a known block.
#include "ir/machine/prepare/canonical.h"
#include "ir/machine/prepare/fold.h"
#include "ir/machine/prepare/known_bits.h"
#include "ir/ssa/ssa.h"
#include "ir/verify/verify.h"
#include "tests/unit/grammar/read.h"
#include "tests/unit/paths.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

namespace ptxrewrite::tests::fold_test {

using namespace ptxrewrite;
using namespace ptxrewrite::ir;

namespace {

struct Example {
  const char* mnemonic;
  std::vector<uint64_t> sources;
  uint64_t result;
};

KnownBits fold_numbers(const Form& form, std::span<const uint64_t> sources) {
  std::vector<KnownBits> known;
  for (uint64_t source : sources)
    known.push_back(KnownBits::literal(source));
  return known_result(form, known);
}

std::string body(const std::string& text, const std::string& directive = "") {
  return ".version 8.0\n.target sm_75\n.address_size 64\n.visible .entry k(.param .u64 p) " + directive +
         "\n{\n.reg .pred %p<5>; .reg .b32 %r<20>; .reg .b64 %rd<4>;\nld.param.u64 %rd1, [p];\n" + text + "\nret;\n}\n";
}

// The number of remaining instructions, or -1 if nothing was folded.
int count_folded(const std::string& text) {
  ReadText read(text);
  REQUIRE_MESSAGE(read.ok(), read.messages());
  REQUIRE(construct_ssa(read.function()).ok());
  Function& function = read.function();
  ControlFlow flow(function);
  if (!fold(function, flow)) return -1;
  CHECK(verify(function).empty());
  CHECK(flow.reverse_postorder() == ControlFlow(function).reverse_postorder());
  int count = 0;
  for (BlockId block : function.layout)
    for (InstructionId id : function.instructions_in(block))
      count += function.instructions[id].kind == InstructionKind::real;
  return count;
}

// True if the cached definitions equal those of a fresh analysis of the function.
bool are_current(DefinitionsBetweenSteps& kept, const Function& function) {
  const ValueDefinitions fresh(function);
  const ValueDefinitions& old = kept.of(function);
  for (ValueId value : function.values.ids())
    if (old.definition(value) != fresh.definition(value) || old.merges(value) != fresh.merges(value) ||
        old.only_reader(value) != fresh.only_reader(value))
      return false;
  return true;
}

} // namespace

TEST_CASE("numbers are computed as the ISA manual defines") {
  const Example examples[] = {
      {"add.s32", {0xffffffff, 2}, 1},
      {"sub.u32", {1, 2}, 0xffffffff},
      {"mul.lo.s32", {0x10000, 0x10001}, 0x10000},
      {"mul.hi.u32", {0x80000000, 6}, 3},
      {"mul.hi.s32", {0x80000000, 6}, 0xfffffffd},
      {"mul.wide.s32", {0xffffffff, 5}, uint64_t(-5)},
      {"mul.wide.u32", {0xffffffff, 5}, 0x4fffffffb},
      {"mad.lo.u32", {7, 9, 0xfffffff0}, 47},
      {"mad.wide.s32", {0xfffffffe, 3, 10}, 4},
      {"div.s32", {uint32_t(-7), 2}, uint32_t(-3)},
      {"rem.s32", {uint32_t(-7), 2}, uint32_t(-1)},
      {"min.s32", {uint32_t(-1), 1}, uint32_t(-1)},
      {"min.u32", {uint32_t(-1), 1}, 1},
      {"shl.b32", {3, 32}, 0},
      {"shr.s32", {0x80000000, 40}, 0xffffffff},
      {"shr.u32", {0x80000000, 31}, 1},
      {"not.b32", {0x0f0f0f0f}, 0xf0f0f0f0},
      {"neg.s64", {1}, ~uint64_t(0)},
      {"cvt.s64.s32", {0x80000000}, 0xffffffff80000000},
      {"cvt.u64.u32", {0x80000000}, 0x80000000},
      {"cvt.u32.u64", {0x123456789}, 0x23456789},
      {"setp.lt.s32", {0xffffffff, 0}, 1},
      {"setp.lt.u32", {0xffffffff, 0}, 0},
      {"setp.ge.s64", {uint64_t(-1), 0}, 0},
      {"selp.b32", {4, 5, 0}, 5},
      {"lop3.b32", {0xf0, 0xcc, 0xaa, 0xca}, 0xca},
      {"and.pred", {1, 0}, 0},
  };
  for (const Example& one : examples) {
    INFO(std::string(one.mnemonic));
    const KnownBits result = fold_numbers(form(known_form(one.mnemonic)), one.sources);
    REQUIRE(result.all);
    CHECK(result.may_be_one == one.result);
  }
  // Divisions by zero are left to the machine, and floating-point arithmetic is not folded.
  const uint64_t by_zero[] = {1, 0}, number[] = {1};
  CHECK_FALSE(fold_numbers(form(known_form("div.u32")), by_zero).all);
  CHECK_FALSE(fold_numbers(form(known_form("cvt.rn.f32.u32")), number).all);
}

TEST_CASE("bits that are ruled out are zero for all numbers") {
  const char* const mnemonics[] = {"and.b32", "or.b32",  "xor.b32",    "add.u32",     "mul.lo.u32",  "shl.b32",
                                   "shr.u32", "shr.s32", "mad.lo.u32", "setp.lt.s32", "setp.gt.u32", "setp.ne.b32"};
  std::mt19937 random(7);
  auto any = [&]() { return static_cast<uint32_t>(random()) >> (random() % 32); };
  size_t ruled_out = 0;
  for (const char* mnemonic : mnemonics)
    for (int round = 0; round < 2000; ++round) {
      const Form& one = form(known_form(mnemonic));
      std::vector<KnownBits> known{{any(), false}, {any(), false}};
      if (random() % 2) known[1] = KnownBits::literal(any() % (one.opcode == Opcode::shl ? 40 : 100000));
      if (one.opcode == Opcode::mad) known.push_back({any(), false});
      const KnownBits bits = known_result(one, known);
      ruled_out += bits.may_be_one != 0xffffffff;
      for (int sample = 0; sample < 8; ++sample) {
        std::vector<uint64_t> numbers;
        for (const KnownBits& source : known)
          numbers.push_back(source.all ? source.may_be_one : source.may_be_one & random());
        const KnownBits number = fold_numbers(one, numbers);
        REQUIRE(number.all);
        INFO(std::string(mnemonic));
        CHECK((number.may_be_one & ~bits.may_be_one) == 0);
        if (bits.all) CHECK(number.may_be_one == bits.may_be_one);
      }
    }
  CHECK(ruled_out > 4000);
}

TEST_CASE("folding follows branches, guards and what arrives from several ways") {
  const std::string store = "st.global.u32 [%rd1], %r2;";
  CHECK(count_folded(body("mov.u32 %r1, %tid.x; add.s32 %r2, %r1, 1;" + store)) == -1);
  // ld.param, mov, st, ret: the branch and its target are removed.
  CHECK(count_folded(body("mov.u32 %r1, 5; setp.gt.s32 %p1, %r1, 4; mov.u32 %r2, 1; @%p1 bra end; mov.u32 %r2, 2;"
                          "bar.sync 0; end: " +
                          store)) <= 7);
  // Two paths with one number, and a loop that brings another one, which is kept.
  CHECK(count_folded(body("mov.u32 %r2, 0; again: bar.sync 0; add.s32 %r2, %r2, 1; setp.lt.s32 %p1, %r2, 9;"
                          "@%p1 bra again; " +
                          store)) == -1);
  // The index is known if the block is a row, and unknown without its shape.
  const std::string row = "mov.u32 %r1, %tid.y; mov.u32 %r3, %tid.x; add.s32 %r2, %r1, %r3;" + store;
  CHECK(count_folded(body(row)) == -1);
  CHECK(count_folded(body(row, ".reqntid 64, 1, 1")) == 5);
}

TEST_CASE("samples for a known block stay well-formed") {
  namespace files = std::filesystem;
  size_t functions = 0, changed = 0, canonical = 0;
  for (const auto& entry : files::recursive_directory_iterator(tests::source_path("samples"))) {
    if (entry.path().extension() != ".ptx") continue;
    std::stringstream text;
    text << std::ifstream(entry.path()).rdbuf();
    ReadText read(text.str());
    if (!read.ok()) continue;
    for (const std::unique_ptr<Function>& function : read.module->functions) {
      if (!function->has_body || !construct_ssa(*function).ok()) continue;
      function->directives.push_back({read.module->intern(".reqntid"), {64, 1, 1}, 3, {}});
      ++functions;
      ControlFlow flow(*function);
      DefinitionsBetweenSteps definitions;
      CAPTURE(entry.path().string());
      const bool folded = fold(*function, flow, definitions);
      CHECK(are_current(definitions, *function));
      canonical += make_canonical(*function, 80, definitions);
      CHECK(are_current(definitions, *function));
      if (!folded) continue;
      ++changed;
      CHECK(verify(*function).empty());
      CHECK(flow.reverse_postorder() == ControlFlow(*function).reverse_postorder());
    }
  }
  CHECK(functions > 100);
  CHECK(changed > 20);
  CHECK(canonical > 0);
}

} // namespace ptxrewrite::tests::fold_test
