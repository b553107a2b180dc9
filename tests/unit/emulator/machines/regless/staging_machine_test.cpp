// RegLess's machine (RegLess §5) on a kernel with hand-written annotations: they are executed, and errors in them are
// reported. And its parts: compressor patterns against all lanes, and the order of the lists.
#include "emulator/machines/regless/staging_counters.h"
#include "emulator/machines/regless/staging_ports.h"
#include "emulator/machines/regless/staging_unit.h"
#include "tests/unit/emulator/run_ptx.h"

#include <doctest/doctest.h>

#include <numeric>

namespace ptxrewrite::tests::staging_machine_test {

using namespace ptxrewrite;
using namespace ptxrewrite::emulator;

namespace {

// out[tid] = in[tid] < 0 ? -in[tid] : in[tid], plus 7 times tid. %r2 is partially written under a guard.
const std::string annotated = R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 data)
{
  .reg .pred %p<2>; .reg .b32 %r<6>; .reg .b64 %rd<4>;
  //@ regless machine 80
  //@ regless alloc %r1=R0 %rd3=R2:R3 %r2=R1 %r3=R0
  //@ regless region 0 live 4 banks 1,1,1,1,0,0,0,0
  ld.param.u64 %rd1, [data];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd2, %r1, 4;
  add.s64 %rd3, %rd1, %rd2; //@ regless evict R0
  ld.global.u32 %r2, [%rd3]; //@ regless evict R1 R2 R3
  //@ regless region 1 live 4 banks 1,1,1,1,0,0,0,0 preload R0! R1! R2! R3!
  setp.lt.s32 %p1, %r2, 0;
  @%p1 neg.s32 %r2, %r2;
  mad.lo.s32 %r3, %r1, 7, %r2; //@ regless erase R1
  st.global.u32 [%rd3], %r3; //@ regless erase R0 R2 R3
  ret;
}
)";

std::string with(const std::string& from, const std::string& to) {
  std::string text = annotated;
  const size_t at = text.find(from);
  REQUIRE(at != text.npos);
  return text.replace(at, from.size(), to);
}

PtxRun staged(const std::string& text, StagingSettings settings = {}, uint32_t threads = 128) {
  std::vector<int32_t> data(threads);
  for (uint32_t i = 0; i < threads; ++i)
    data[i] = i % 3 == 0 ? -int32_t(i) : int32_t(i);
  return run_ptx(text, {.kernel = "k", .block = {threads}, .fuel = 100'000, .machines = settings}, {buffer_of(data)});
}

// The machine's error message for a text that differs from the one above.
std::string complaint(const std::string& from, const std::string& to) {
  const PtxRun run = staged(with(from, to));
  return run.error.empty() ? run.failure() : run.error;
}

bool says(const std::string& text, const std::string& what) {
  CAPTURE(text);
  return text.find(what) != text.npos;
}

} // namespace

TEST_CASE("values get through staged entries") {
  for (uint32_t entries : {32u, 512u})
    for (uint32_t compressor : {0u, 12u}) {
      const PtxRun run = staged(annotated, {.entries = entries, .compressor_lines = compressor});
      INFO(run.error, run.failure());
      REQUIRE(run.ok());
      const auto data = run.buffer<int32_t>(0);
      for (int32_t i = 0; i < 128; ++i)
        CHECK(data[static_cast<size_t>(i)] == i + 7 * i);
      const StagingCounters& counts = run.result.machines.get<StagingCounters>();
      CHECK(counts.regions == 8); // two in each of four warps
      CHECK(counts.by_region.at(0).runs == 4);
      CHECK(counts.by_region.at(0).slowest[0] == 4);
      CHECK(counts.by_region.at(1).slowest[0] == 4); // all of its inputs are still staged
      CHECK(counts.by_region.at(1).lookups == 4);    // registers R0 to R3 are in four banks
      CHECK(counts.inputs == 16);
      CHECK(counts.invalidations == 0);
      CHECK(counts.preloads[0] == 16); // each warp is alone in its shard, so its entries stay
      CHECK(counts.l1_requests() == 0);
    }
}

TEST_CASE("warps of a shard take each other's entries, and find their registers in the compressor and in L1") {
  const PtxRun run = staged(annotated, {.entries = 64, .compressor_lines = 12}, 1024);
  INFO(run.error, run.failure());
  REQUIRE(run.ok());
  const StagingCounters& counts = run.result.machines.get<StagingCounters>();
  CHECK(counts.written_back > 0);
  CHECK(counts.compressed > 0); // thread numbers and addresses have strides
  CHECK(counts.preloads[static_cast<size_t>(PreloadSource::compressor)] > 0);
  CHECK(counts.preloads[static_cast<size_t>(PreloadSource::undefined)] == 0);
  const PtxRun without = staged(annotated, {.entries = 64, .compressor_lines = 0}, 1024);
  REQUIRE(without.ok());
  CHECK(without.buffer<int32_t>(0) == run.buffer<int32_t>(0));
  CHECK(without.result.machines.get<StagingCounters>().l1_requests() > counts.l1_requests());
  CHECK(without.result.machines.get<StagingCounters>().compressed == 0);
}

TEST_CASE("each annotation is missed") {
  CHECK(says(complaint("preload R0! R1! R2! R3!", "preload R1! R2! R3!"), "region 1 reads R0, which is not staged"));
  CHECK(says(complaint("preload R0! R1!", "preload R0 R1!"), "region 1 writes R0, of which an old copy is kept"));
  CHECK(says(complaint("R2! R3!", "R2 R3!"), "region 1 erases R2, of which a copy is kept"));
  CHECK(says(complaint(" //@ regless erase R1", ""), "region 1 leaves R1 staged at its end"));
  CHECK(says(complaint(" //@ regless evict R0", ""), "region 0 leaves R0 staged at its end"));
  CHECK(says(complaint("evict R1 R2 R3", "evict R2 R3"), "region 0 leaves R1 staged at its end"));
  CHECK(says(complaint(" //@ regless erase R1", " //@ regless evict R1"), "leaves a copy of R1"));
  CHECK(says(complaint(" %r2=R1", ""), "%r2 has no machine register"));
  CHECK(says(complaint("//@ regless machine 80", ""), "has no annotations of RegLess"));
  CHECK(
      says(complaint("//@ regless region 0 live 4 banks 1,1,1,1,0,0,0,0", ""), "in front of its block's first region"));
  CHECK(says(complaint("//@ regless region 1 live 4 banks 1,1,1,1,0,0,0,0 preload R0! R1! R2! R3!", ""), "not staged"));
  CHECK(
      says(complaint("banks 1,1,1,1,0,0,0,0 preload", "banks 1,1,0,1,0,0,0,0 preload"), "more registers than it has"));
}

TEST_CASE("what nobody needs any more is not kept") {
  // R1 again, without its erasure before the new definition.
  const std::string again =
      with("mad.lo.s32 %r3, %r1, 7, %r2; //@ regless erase R1", "mad.lo.s32 %r3, %r1, 7, %r2; //@ regless erase R1\n"
                                                                "  xor.b32 %r2, %r3, 5; //@ regless erase R0\n"
                                                                "  xor.b32 %r3, %r2, 5; //@ regless erase R1");
  const PtxRun run = staged(again);
  INFO(run.error, run.failure());
  CHECK(run.ok());
  std::string without = again;
  without.replace(without.find(" //@ regless erase R1"), 21, "");
  CHECK(says(staged(without).failure(), "region 1 writes R1 over what it did not release"));
}

TEST_CASE("an annotation that lies is found out") {
  CHECK(says(complaint("erase R0 R2 R3", "erase R0 R2 R3 R9"), "region 1 erases R9, which is not staged"));
  CHECK(says(complaint("erase R0 R2 R3", "erase R0 R2 evict R3"), "leaves a copy of R3"));
  CHECK(says(complaint("evict R1 R2 R3", "erase R1 evict R2 R3"), "region 1 reads R1, whose lanes"));
  // Registers without a value.
  CHECK(
      says(complaint("0,0,0,0 preload R0! R1! R2! R3!", "0,0,0,1 preload R0! R1! R2! R3! R255"), "leaves R255 staged"));
  CHECK(staged(with("preload R0! R1! R2! R3!", "preload R0! R1! R2! R3! invalidate R254")).ok());
  CHECK(says(complaint("%r3=R0", "%r3=R9"), "has no entry for R9"));
}

TEST_CASE("the five patterns of the compressor, and nothing else") {
  RegisterLanes words{};
  auto form_of = [&] { return compressed(words).form; };
  auto expands = [&] { return compressed(words).expanded() == words; };
  words.fill(17);
  CHECK(form_of() == CompressedForm::constant);
  for (uint32_t stride : {1u, 4u}) {
    for (uint32_t lane = 0; lane < 32; ++lane)
      words[lane] = 0xfffffff0u + stride * lane; // wraps around
    CHECK(form_of() == (stride == 1 ? CompressedForm::stride_1 : CompressedForm::stride_4));
    CHECK(expands());
    for (uint32_t lane = 16; lane < 32; ++lane)
      words[lane] = 5 + stride * (lane - 16);
    CHECK(form_of() == (stride == 1 ? CompressedForm::half_stride_1 : CompressedForm::half_stride_4));
    CHECK(expands());
    for (uint32_t lane = 0; lane < 32; ++lane) {
      const uint32_t kept = words[lane];
      words[lane] += 1u << 31;
      CHECK(form_of() == CompressedForm::none);
      words[lane] = kept;
    }
  }
  for (uint32_t lane = 0; lane < 32; ++lane)
    words[lane] = 2 * lane;
  CHECK(form_of() == CompressedForm::none);
}

TEST_CASE("entries are taken from the free list, then the clean one, then the dirty one") {
  StagingCounters counters;
  StagingUnit unit(64, {.entries = 96, .compressor_lines = 0}, counters); // three entries in a bank
  const uint32_t warp = 0;
  for (uint32_t number : {0u, 8u}) { // of one bank
    unit.written(warp, number).words.fill(100 + number);
    unit.evict(warp, number, false);
  }
  unit.written(warp, 16);
  unit.erase(warp, 16, false);
  CHECK(counters.written_back == 0);
  unit.written(warp, 24); // the free one
  CHECK(counters.written_back == 0);
  unit.written(warp, 32); // the older one of two dirty ones: register 0
  CHECK(counters.written_back == 1);
  unit.erase(warp, 32, false);
  CHECK(unit.preload(warp, 0, false) == PreloadSource::l1);
  CHECK(unit.active(warp, 0)->words[31] == 100);
  unit.evict(warp, 0, false); // clean now: evicted before the dirty register 8
  unit.written(warp, 40);
  CHECK(counters.written_back == 1);
  CHECK(unit.preload(warp, 8, true) == PreloadSource::staged);
  CHECK(!unit.stored(warp).test(8));
}

TEST_CASE("a bank: one read or write per cycle, and tags for preloads where no read uses them") {
  BankPorts bank;
  CHECK(bank.read(10) == 10);
  CHECK(bank.read(10) == 11); // the second operand of one bank
  CHECK(bank.write(10) == 12);
  CHECK(bank.write(13) == 13);
  CHECK(bank.read(12) == 14);
  CHECK(!bank.has_idle_tags(10));
  CHECK(!bank.has_idle_tags(11));
  CHECK(bank.has_idle_tags(12)); // a write has looked its tag up before
  CHECK(!bank.has_idle_tags(14));
  CHECK(bank.read(10 + 1024) == 10 + 1024);
}

TEST_CASE("L1: one request per cycle, 32 lines on their way, each of them once") {
  StagingCounters counters;
  L1Ports l1;
  l1.request(100, 3); // cycles 100 to 102
  CHECK(l1.arrival(100, 1, false, counters) == 103 + 28);
  CHECK(l1.arrival(110, 2, true, counters) == 110 + 200);
  CHECK(l1.arrival(120, 2, false, counters) == 110 + 200); // L1 has it from when it arrives
  CHECK(l1.arrival(400, 2, false, counters) == 400 + 28);
  for (uint64_t line = 0; line < L1Ports::miss_registers; ++line)
    CHECK(l1.arrival(500 + line, 10 + line, true, counters) == 700 + line);
  CHECK(counters.miss_register_waits == 0);
  CHECK(l1.arrival(600, 99, true, counters) == 900); // when the first line has arrived, at 700
  CHECK(counters.miss_register_waits == 100);
}

TEST_CASE("operands of one bank are read one after the other") {
  // %r2 in R8, of R0's bank, in place of R1: the multiply-add reads both, in each of four warps.
  std::string conflicting = annotated;
  for (const auto& [from, to] : {std::pair<std::string, std::string>{"%r2=R1", "%r2=R8"},
                                 {"evict R1 R2", "evict R8 R2"},
                                 {"R0! R1! R2!", "R0! R8! R2!"},
                                 {"erase R1", "erase R8"},
                                 {"banks 1,1,1,1", "banks 2,0,1,1"},
                                 {"banks 1,1,1,1", "banks 2,0,1,1"}}) {
    const size_t at = conflicting.find(from);
    REQUIRE(at != conflicting.npos);
    conflicting.replace(at, from.size(), to);
  }
  const auto counts_of = [](const std::string& text) {
    const PtxRun run = staged(text, {.issue_width = 1});
    INFO(run.error, run.failure());
    REQUIRE(run.ok());
    return run.result.machines.get<StagingCounters>();
  };
  const StagingCounters apart = counts_of(annotated), together = counts_of(conflicting);
  CHECK(apart.operand_waits == 0);
  CHECK(together.operand_waits == 4);
  CHECK(together.by_region.at(1).operand_waits == 4);
  CHECK(together.cycles > apart.cycles); // and R0 and R8 are looked up one after the other
  CHECK(together.by_region.at(1).lookups == apart.by_region.at(1).lookups + 4);
}

TEST_CASE("preloads of a warp wait while reads of another one use the tags") {
  const auto counts_of = [](uint32_t threads) {
    const PtxRun run = staged(annotated, {.entries = 64, .compressor_lines = 0}, threads);
    INFO(run.error, run.failure());
    REQUIRE(run.ok());
    return run.result.machines.get<StagingCounters>();
  };
  // A region's four inputs are in four banks, so they are looked up in one cycle, but for a bank that another warp of
  // the shard reads.
  const StagingCounters alone = counts_of(128), beside_others = counts_of(1024);
  CHECK(alone.preload_waits == 0);
  CHECK(alone.by_region.at(1).lookups == alone.by_region.at(1).runs);
  CHECK(beside_others.preload_waits > 0);
  CHECK(beside_others.by_region.at(1).lookups == beside_others.by_region.at(1).runs + beside_others.preload_waits);
}

TEST_CASE("dual issue: a warp's next instruction goes with an independent one, to other units") {
  const auto run_with = [](uint32_t width) {
    const PtxRun run = staged(annotated, {.issue_width = width}, 1024);
    INFO(run.error, run.failure());
    REQUIRE(run.ok());
    return run.result.machines.get<StagingCounters>();
  };
  const StagingCounters one = run_with(1), two = run_with(2);
  CHECK(one.dual_issues == 0);
  CHECK(two.dual_issues > 0);
  CHECK(two.instructions == one.instructions);
  CHECK(two.dual_issues <= two.instructions / 2);
  CHECK(two.cycles <= one.cycles);
}

TEST_CASE("a region gets its entries, or none") {
  StagingCounters counters;
  StagingUnit unit(64, {.entries = 32}, counters); // one entry in each bank
  const BankCounts need{1, 0, 0, 0, 0, 0, 0, 0};
  CHECK(unit.has_room(0, need));
  unit.reserve(0, need);
  CHECK(!unit.has_room(0, need));
  CHECK(!unit.has_room(32, need)); // number 8 of the same shard: the same bank
  CHECK(unit.has_room(4, need));   // number 1: the next bank
  CHECK(unit.has_room(1, need));   // another shard
  unit.give_back(0, need);
  CHECK(unit.has_room(32, need));
}

} // namespace ptxrewrite::tests::staging_machine_test
