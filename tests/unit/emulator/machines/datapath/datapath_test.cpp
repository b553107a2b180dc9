// The scalar unit and the sliced datapath (composite-hpca13 sections 4 and 5) on hand-made warps, and on kernels whose
// shares are known by construction.
#include "emulator/observe/datapath_study.h"

#include "tests/unit/emulator/run_ptx.h"

#include <map>
#include <set>

namespace ptxrewrite::tests::datapath_test {

using namespace ptxrewrite;
using namespace ptxrewrite::emulator;

namespace {

constexpr HardwareRegister r0{0}, r1{1}, r2{2}, wide{4, 2}, predicate{0, 0, false};

template <size_t n>
bool issue(ScalarUnit& unit, uint32_t warp, const HardwareRegister (&sources)[n], bool capable = true) {
  return unit.issue(warp, sources, capable, 1);
}

} // namespace

TEST_CASE("a scalar bit is set by equal values in all lanes and cleared by any other write") {
  ScalarUnit unit({.warps = 2, .registers = 8, .others = 1});
  CHECK(!unit.is_scalar(0, r0));
  CHECK(unit.write(0, r0, true, true));
  CHECK(unit.is_scalar(0, r0));
  CHECK(!unit.is_scalar(1, r0)); // another warp's register
  CHECK(unit.counters().scalar_writes == 1);
  // Different values in all lanes.
  CHECK(!unit.write(0, r0, true, false));
  CHECK(!unit.is_scalar(0, r0));
  CHECK(unit.counters().vector_writes == 1);
  CHECK(unit.counters().expansions == 0);
  // Some lanes only: even equal values clear the bit, and the value of the other lanes has to be copied.
  unit.write(0, r0, true, true);
  CHECK(!unit.write(0, r0, false, true));
  CHECK(!unit.is_scalar(0, r0));
  CHECK(unit.counters().expansions == 1);
  unit.write(0, r0, false, true); // no further expansion: it is in the vector file
  CHECK(unit.counters().expansions == 1);
  unit.write(0, wide, true, true);
  unit.write(0, wide, false, false);
  CHECK(unit.counters().expansions == 3);
  unit.write(0, predicate, true, true);
  CHECK(unit.is_scalar(0, predicate));
  unit.start(0);
  CHECK(!unit.is_scalar(0, predicate));
}

TEST_CASE("an instruction whose sources are all scalar goes to the scalar pipeline") {
  ScalarUnit unit({.warps = 1, .registers = 8, .others = 1});
  unit.write(0, r0, true, true);
  unit.write(0, r1, true, true);
  unit.write(0, r2, true, false);
  CHECK(issue(unit, 0, {r0, r1}));
  CHECK(!issue(unit, 0, {r0, r2}));
  CHECK(!issue(unit, 0, {r0, r1}, false)); // a load, or some lanes only
  CHECK(unit.issue(0, {}, true, 3));       // only constants
  CHECK(unit.counters().issued == 4);
  // The SIMT pipeline reads scalar registers from the scalar file, too.
  CHECK(unit.counters().scalar_reads == 5);
  CHECK(unit.counters().vector_reads == 1);
  CHECK(!issue(unit, 0, {r0, predicate}));
  unit.write(0, predicate, true, true);
  CHECK(issue(unit, 0, {r0, predicate}));
  CHECK(unit.counters().scalar_reads == 7); // predicates are in no register file
}

TEST_CASE("the scalar register file is indexed by warp and register: what lies behind its end is never scalar") {
  // 20 registers: warps 0 to 24 have all their registers in 512 entries, warp 25 has 12, warp 26 none.
  ScalarUnit unit({.warps = 32, .registers = 20, .others = 1});
  const HardwareRegister last{19}, eleventh{11}, twelfth{12}, pair{10, 2}, straddling{12, 2};
  CHECK(unit.write(24, last, true, true));
  CHECK(unit.write(25, eleventh, true, true));
  CHECK(!unit.write(25, twelfth, true, true));
  CHECK(unit.write(25, pair, true, true));
  CHECK(!unit.write(25, straddling, true, true));
  CHECK(!unit.write(26, r0, true, true));
  CHECK(unit.write(26, predicate, true, true));
  CHECK(unit.counters().vector_writes == 1 + 2 + 1);
}

TEST_CASE("halves: the same extension in all lanes, kept by writes that agree with it") {
  SlicedDatapath slices({.warps = 2, .registers = 8, .others = 1});
  auto write = [&](HardwareRegister to, bool narrow, bool negative, bool all_lanes) {
    slices.write(0, std::array{WrittenValue{to, narrow, negative}}, all_lanes, false, 1);
  };
  CHECK(!slices.is_half(0, r0));
  write(r0, true, false, true);
  CHECK(slices.is_half(0, r0));
  CHECK(!slices.is_half(1, r0));
  write(r0, true, false, false); // a partial write with the same extension
  CHECK(slices.is_half(0, r0));
  CHECK(slices.counters().half_writes == 2);
  write(r0, true, true, false); // a partial write with the other sign
  CHECK(!slices.is_half(0, r0));
  CHECK(slices.counters().expansions == 1);
  write(r0, true, true, false); // a partial write of a register without HB
  CHECK(!slices.is_half(0, r0));
  write(r0, true, true, true);
  CHECK(slices.is_half(0, r0));
  write(r0, false, false, true);
  CHECK(!slices.is_half(0, r0));
  CHECK(slices.counters().expansions == 1); // the whole register is written
  CHECK(slices.counters().writes == 6);
  CHECK(slices.counters().half_writes == 3);
}

TEST_CASE("16-bit instructions of odd and even warps pair, results that do not fit stall") {
  SlicedDatapath slices({.warps = 4, .registers = 8, .others = 0});
  for (uint32_t warp = 0; warp < 4; ++warp)
    slices.write(warp, std::array{WrittenValue{r0, true, false}}, true, false, 1);
  const HardwareRegister narrow[] = {r0}, mixed[] = {r0, r1};
  // Even warps: five 16-bit instructions of ten. Odd warps: three of five.
  for (unsigned i = 0; i < 5; ++i) {
    CHECK(slices.issue(i % 2 * 2, narrow, true, 1));
    CHECK(!slices.issue(i % 2 * 2, mixed, true, 1));
  }
  CHECK(slices.issue(1, narrow, true, 2));
  CHECK(slices.issue(3, narrow, true, 1));
  CHECK(!slices.issue(3, narrow, false, 2)); // a load
  CHECK(slices.counters().narrow == 8);
  slices.pair_up();
  CHECK(slices.counters().paired == 6); // three of each side
  // Five cycles in which both sides issue, half of the even and 60 % of the odd instructions are narrow: 1.5 pairs.
  CHECK(slices.counters().paired_by_chance == doctest::Approx(3));
  // Two warps per side, half of them ready: only one to choose from.
  CHECK(slices.counters().paired_by_search == doctest::Approx(3));
  slices.pair_up();
  CHECK(slices.counters().paired == 6);
  // Only a 16-bit instruction stalls for a wide result.
  slices.write(0, std::array{WrittenValue{r1, false, false}}, true, true, 1);
  slices.write(0, std::array{WrittenValue{r1, true, true}}, true, true, 1);
  slices.write(0, std::array{WrittenValue{r1, false, false}}, true, false, 1);
  CHECK(slices.counters().stalls == 1);
}

TEST_CASE("sliced datapath: a scheduler that looks for a 16-bit instruction among ready warps finds more partners") {
  constexpr HardwareRegister r0{0}, r1{1};
  SlicedDatapath slices({.warps = 32, .registers = 8, .others = 1});
  for (uint32_t warp = 0; warp < 32; ++warp) {
    slices.write(warp, std::array{WrittenValue{r0, true, false}, WrittenValue{r1, false, false}}, true, false, 1);
    slices.issue(warp, std::array{r0}, true, 1);
    for (unsigned i = 0; i < 4; ++i)
      slices.issue(warp, std::array{r1}, true, 1);
  }
  slices.pair_up();
  // A fifth of 80 instructions of each side. By chance one cycle in 25 has a pair; one of eight ready warps has a
  // 16-bit instruction with probability 1 - 0.8^8 = 0.83, but there are only 16.
  CHECK(slices.counters().paired_by_chance == doctest::Approx(2 * 80 / 25.0));
  CHECK(slices.counters().paired_by_search == doctest::Approx(32));
  CHECK(slices.counters().paired == 32);
}

TEST_CASE("registers share a number when they are not live at the same time, and never otherwise") {
  Diagnostics diagnostics;
  const auto module = grammar::read_module(SourceFile("test.ptx", kernel("k", ".param .u64 out", R"(
  .reg .b64 %rd<9>; .reg .b32 %r<9>; .reg .pred %p<3>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, 5;
  mov.u32 %r2, 0;
LOOP:
  add.u32 %r3, %r1, %r2;   // %r1 is live around the loop
  add.u32 %r2, %r3, 1;
  setp.lt.u32 %p1, %r2, 100;
  @%p1 bra LOOP;
  add.u32 %r4, %r2, 1;
  mul.wide.u32 %rd2, %r4, 8;
  add.u64 %rd3, %rd1, %rd2;
  st.global.u32 [%rd3], %r4;
  ret;)")),
                                           diagnostics);
  REQUIRE(module);
  const ir::Function& function = *module->functions.back();
  const RegisterNumbers numbers = number_registers(function, [](ir::InstructionId) { return true; });
  std::map<std::string, HardwareRegister> by_name;
  for (uint32_t index = 0; index < function.values.size(); ++index) {
    const ir::Value& value = function.values[ir::ValueId(index)];
    const std::string number = value.number == ir::Value::no_number ? "" : std::to_string(value.number);
    by_name[std::string(module->text(value.name)) + number] = numbers.of[index];
  }
  auto words = [&](const char* name) {
    std::set<uint32_t> places;
    for (uint32_t word = 0; word < by_name.at(name).words; ++word)
      places.insert(by_name.at(name).number + word);
    return places;
  };
  auto apart = [&](const char* a, const char* b) {
    for (uint32_t place : words(a))
      if (words(b).contains(place)) return false;
    return true;
  };
  for (const char* other : {"%r1", "%r2", "%r3", "%r4", "%rd2"})
    CHECK(apart("%rd1", other));
  CHECK(apart("%r1", "%r2"));
  CHECK(apart("%r1", "%r3"));
  CHECK(apart("%r4", "%rd2"));
  CHECK(apart("%r4", "%rd3"));
  CHECK(by_name.at("%rd1").words == 2);
  CHECK(by_name.at("%rd1").number % 2 == 0);
  CHECK(by_name.at("%p1").words == 0);
  CHECK(!by_name.at("%p1").in_file);
  CHECK(numbers.registers <= 8);
  // A register without a write to the register file is not in it.
  CHECK(number_registers(function, [](ir::InstructionId) { return false; }).registers == 0);
}

namespace {

DatapathCounts count(const std::string& body, Dimensions grid, Dimensions block, const std::vector<Argument>& arguments,
                     uint64_t resident_blocks = 32, uint32_t trip_sample = 1) {
  // Every instruction is one machine instruction; integer instructions by the type's name.
  DatapathStudy datapath({.resident_blocks = [=](uint64_t) { return resident_blocks; },
                          .instruction =
                              [](const ir::Function& f, ir::InstructionId id) {
                                const ir::Form& form = f.form_of(id);
                                const bool computes = form.effects.pure();
                                return DatapathInstruction{1, computes, computes};
                              }});
  ValueStudy values({.resident_blocks = {}, .listener = &datapath, .trip_sample = trip_sample});
  const PtxRun run = run_ptx(kernel("k", ".param .u64 out, .param .u32 n", body),
                             {.kernel = "k", .grid = grid, .block = block, .observer = &values}, arguments);
  REQUIRE(run.error == "");
  REQUIRE(run.failure() == "");
  return datapath.counts();
}

} // namespace

TEST_CASE("shares of a kernel: scalar, 16-bit, redundant instructions, and where registers are") {
  const std::string body = R"(
  .reg .b64 %rd<9>; .reg .b32 %r<20>; .reg .pred %p<3>;
  mov.u32 %r1, %tid.x;         // a vector below 2^16
  mov.u32 %r2, %ctaid.x;       // scalar: no register source, and the same everywhere
  add.u32 %r3, %r2, 1000;      // scalar, 16 bits
  mul.lo.u32 %r4, %r3, 100000; // scalar, a constant of more than 16 bits, a result, too
  add.u32 %r5, %r1, %r3;       // 16 bits
  mul.lo.u32 %r6, %r5, %r5;    // 16 bits, stalls: 1000 squared
  add.u32 %r7, %r6, %r4;       // neither
  setp.lt.u32 %p1, %r1, 16;
  @%p1 mov.u32 %r3, %r2;       // half of warp 0's lanes; none of the other warp's: not executed there
  add.u32 %r8, %r3, 1;         // no more scalar in warp 0
  ret;)";
  const DatapathCounts counts = count(body, {1}, {64}, {zeros<uint32_t>(1), 5u});
  CHECK(counts.instructions == 2 * 11 - 1);
  // %r2, %r3, %r4 in both warps, %r8 in warp 1.
  CHECK(counts.scalar == 7);
  // The same result in all lanes: those, and the comparison in warp 1. Warp 0 has two values in %r3, so two in %r8.
  CHECK(counts.redundant == 8);
  // Sources: %r3, %r5, %r6, the comparison, %r8 in both warps, and the guarded move in warp 0. %tid.x and %ctaid.x
  // count as 32 bits.
  CHECK(counts.narrow == 11);
  CHECK(counts.stalls == 2);
  CHECK(counts.paired == 10);
  // Reads per warp: r2; r3; r1 r3; r5 r5; r6 r4; r1; r3. Warp 0 also r2.
  CHECK(counts.reads == 2 * 10 + 1);
  CHECK(counts.half_reads == counts.reads - 2 * 2);
  // From the scalar file: r2, r3, r3, r4; then r3 in warp 1, r2 in warp 0.
  CHECK(counts.with_scalar.scalar - counts.with_scalar.full > 0);
  // Writes per warp: r1 to r8; warp 0 writes r3 once more. Wide: r4, r6, r7.
  CHECK(counts.writes == 2 * 8 + 1);
  CHECK(counts.half_writes == counts.writes - 2 * 3);
  CHECK(counts.with_slices.full == 4 + 6);
  CHECK(counts.with_slices.half == counts.accesses() - 10);
  // Scalar: reads 4 + 1 per warp, writes r2, r3, r4 and in warp 1 r8; one expansion of r3 in warp 0.
  CHECK(counts.with_scalar.scalar == 10 + 7 + 1);
  CHECK(counts.with_scalar.full == counts.accesses() - 17 + 1);
  CHECK(counts.with_both.scalar == counts.with_scalar.scalar);
  // Of the wide registers, r4 is scalar.
  CHECK(counts.with_both.full == 2 * (1 + 2) + 1);
}

TEST_CASE("a trip that stands for eight counts for eight") {
  const std::string body = R"(
  .reg .b64 %rd<9>; .reg .b32 %r<20>; .reg .pred %p<3>;
  ld.param.u32 %r9, [n];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, 0;
LOOP:
  and.b32 %r3, %r2, 0;         // scalar
  add.u32 %r4, %r1, %r3;       // 16 bits
  mul.lo.u32 %r5, %r4, 100000; // neither
  setp.lt.u32 %p1, %r1, 16;
  @%p1 mov.u32 %r3, %r1;
  add.u32 %r2, %r2, 1;
  setp.lt.u32 %p2, %r2, %r9;
  @%p2 bra LOOP;
  ret;)";
  // 16 trips and ten groups of eight. The last trip does not branch back: one group more or less in each of 4 warps.
  const std::vector<Argument> arguments = {zeros<uint32_t>(1), 96u};
  const DatapathCounts all = count(body, {2}, {64}, arguments), some = count(body, {2}, {64}, arguments, 32, 8);
  CHECK(some.instructions + 4 * 7 >= all.instructions);
  CHECK(some.instructions <= all.instructions + 4 * 7);
  CHECK(some.scalar == all.scalar);
  CHECK(some.redundant == all.redundant);
  CHECK(some.narrow == all.narrow);
  CHECK(some.paired == all.paired);
  CHECK(some.reads == all.reads);
  CHECK(some.half_writes == all.half_writes);
  CHECK(some.with_both.scalar == all.with_both.scalar);
  CHECK(some.with_both.full == all.with_both.full);
  CHECK(some.with_slices.half == all.with_slices.half);
}

TEST_CASE("warps beyond the scalar register file run on the SIMT pipeline") {
  const std::string body = R"(
  .reg .b32 %r<9>;
  mov.u32 %r1, %ctaid.x;
  add.u32 %r2, %r1, 1;
  add.u32 %r3, %r2, %r1;
  ret;)";
  // Two live registers: 512 entries hold those of 256 warps. 300 blocks of two warps, all resident at the same
  // time.
  const DatapathCounts all = count(body, {300}, {64}, {zeros<uint32_t>(1), 5u}, 300);
  // mov needs no register; the additions need %r1, then %r2, in the scalar file.
  CHECK(all.scalar > 0);
  CHECK(all.scalar < 600 * 3);
  const DatapathCounts few = count(body, {300}, {64}, {zeros<uint32_t>(1), 5u}, 32);
  CHECK(few.scalar == 600 * 3);
}

} // namespace ptxrewrite::tests::datapath_test
