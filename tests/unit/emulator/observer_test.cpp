// Observers see sources before and results after every instruction; the redundancy study agrees with the known
// redundancy of a kernel.
#include "emulator/core/observer.h"

#include "emulator/observe/redundancy.h"
#include "tests/unit/emulator/run_ptx.h"

#include <bit>

namespace ptxrewrite::tests::observer_test {

using namespace ptxrewrite;
using namespace ptxrewrite::emulator;

namespace {

// The observed data of one instruction.
struct Seen {
  std::string_view text;
  uint64_t block = 0;
  uint32_t warp = 0, mask = 0;
  std::vector<std::vector<uint64_t>> sources, results; // by lane
  std::vector<unsigned> source_bits, result_bits;
};

class Recorder final : public ValueObserver {
public:
  explicit Recorder(std::string_view text) : text_(text) {}
  std::vector<Seen> before_, after_;

  void executing(const ObservedInstruction& at) override { record(at, before_); }
  void executed(const ObservedInstruction& at) override { record(at, after_); }
  void passed(Block&, Warp& warp, const MicroOp&) override { passed_.push_back(warp.active); }
  void block_ended(Block&) override { ++blocks_ended; }
  unsigned blocks_ended = 0;
  std::vector<uint32_t> passed_;

private:
  void record(const ObservedInstruction& at, std::vector<Seen>& to) {
    const SourceRange range = at.function->instructions[at.instruction].range;
    const std::string_view text = at.function->module().source.text().substr(range.begin, range.end - range.begin);
    if (text.find(text_) == std::string_view::npos) return;
    Seen seen{text, at.block->linear, at.warp->index, at.mask, {}, {}, {}, {}};
    auto copy = [](std::span<const ObservedValue> values, auto& lanes, auto& bits) {
      for (const ObservedValue& value : values) {
        lanes.emplace_back();
        for (unsigned lane = 0; lane < 32; ++lane)
          lanes.back().push_back(value.low(lane));
        bits.push_back(value.bits);
      }
    };
    copy(at.sources, seen.sources, seen.source_bits);
    copy(at.results, seen.results, seen.result_bits);
    to.push_back(std::move(seen));
  }
  std::string text_;
};

const std::string body = R"(
  .reg .b64 %rd<9>; .reg .b32 %r<30>; .reg .b16 %h<4>; .reg .pred %p<9>;
  mov.u32 %r1, %tid.x;
  mad.lo.u32 %r5, %r1, 0x10001, 0x20000;
  mov.b32 {%h2, %h3}, %r5;
  mov.u32 %r2, %ctaid.x;
  add.u32 %r3, %r1, 100;
  mul.wide.u32 %rd2, %r3, %r3;
  setp.lt.u32 %p1, %r1, 40;
  @%p1 add.u32 %r3, %r3, %r2;
  cvt.u16.u32 %h1, %r3;
  ld.param.u64 %rd1, [out];
  mad.wide.u32 %rd1, %r1, 4, %rd1;
  st.global.u32 [%rd1+0], %r3;
  @%p1 bra SKIP;
  xor.b32 %r4, %r2, 5;
SKIP:
  ret;)";

Recorder watch(std::string_view text) {
  Recorder recorder(text);
  PtxRun run = run_ptx(kernel("k", ".param .u64 out", body),
                       {.kernel = "k", .grid = {2}, .block = {70}, .host_threads = 4, .observer = &recorder},
                       {zeros<uint32_t>(70)});
  REQUIRE(run.error == "");
  REQUIRE(run.failure() == "");
  CHECK(recorder.blocks_ended == 2);
  return recorder;
}

} // namespace

TEST_CASE("an observer sees sources, results, widths and masks") {
  Recorder add = watch("@%p1 add.u32");
  // Two blocks; warps 0 and 1 have lanes below 40, warp 2 has none and does not execute it.
  REQUIRE(add.before_.size() == 4);
  REQUIRE(add.after_.size() == 4);
  for (unsigned i = 0; i < 4; ++i) {
    const Seen &before = add.before_[i], &after = add.after_[i];
    CHECK(before.block == i / 2);
    CHECK(before.warp == i % 2);
    CHECK(before.mask == (i % 2 ? 0xffu : 0xffffffffu));
    CHECK(after.mask == before.mask);
    CHECK(before.source_bits == std::vector<unsigned>{32, 32});
    CHECK(after.result_bits == std::vector<unsigned>{32});
    for (unsigned lane = 0; lane < 32; ++lane) {
      CHECK(before.sources[0][lane] == i % 2 * 32 + lane + 100);
      CHECK(before.sources[1][lane] == i / 2);
      CHECK(after.results[0][lane] == i % 2 * 32 + lane + 100 + ((before.mask >> lane) & 1 ? i / 2 : 0));
    }
  }
  Recorder wide = watch("mul.wide");
  CHECK(wide.after_.at(0).result_bits == std::vector<unsigned>{64});
  CHECK(wide.after_[0].results[0][7] == 107 * 107);
  Recorder compare = watch("setp.lt");
  CHECK(compare.after_.at(1).result_bits == std::vector<unsigned>{1});
  CHECK(compare.after_[1].results[0][7] == 1);
  CHECK(compare.after_[1].results[0][8] == 0);
  CHECK(compare.before_[1].sources[1] == std::vector<uint64_t>(32, 40));
  Recorder special = watch("mov.u32 %r1, %tid.x");
  CHECK(special.before_.at(1).sources.at(0).at(3) == 35);
  CHECK(special.before_.at(2).mask == 0x3f); // 70 threads
  Recorder store = watch("st.global");
  REQUIRE(store.before_.at(0).sources.size() == 2);
  CHECK(store.before_[0].source_bits == std::vector<unsigned>{64, 32});
  CHECK(store.before_[0].sources[0][9] - store.before_[0].sources[0][8] == 4);
  CHECK(store.before_[0].sources[1][9] == 109);
  // Every instruction that some lane executes, once per warp.
  CHECK(watch("").before_.size() == 2 * (3 * 11 + 2 + 2 + 2 + 3));
}

TEST_CASE("an observer sees all results of an instruction, and guards that let nobody through") {
  Recorder unpack = watch("mov.b32 {");
  REQUIRE(unpack.after_.size() == 6);
  for (unsigned lane = 0; lane < 32; ++lane) {
    CHECK(unpack.after_[1].results.at(0)[lane] == 32 + lane);
    CHECK(unpack.after_[1].results.at(1)[lane] == 34 + lane);
  }
  // The third warp of each block, with six lanes: the addition and the branch.
  CHECK(unpack.passed_ == std::vector<uint32_t>{0x3f, 0x3f, 0x3f, 0x3f});
}

TEST_CASE("the redundancy study counts uniform warps and warps that repeat another one") {
  RedundancyStudy study;
  PtxRun run = run_ptx(kernel("k", ".param .u64 out, .param .u32 n", R"(
  .reg .b64 %rd<9>; .reg .b32 %r<30>; .reg .pred %p<9>;
  mov.u32 %r1, %tid.x;
  and.b32 %r2, %r1, 31;      // the same in all warps, another one in every lane
  shr.u32 %r3, %r1, 5;       // one value in a warp, another one in every warp
  ld.param.u32 %r4, [n];     // one value
  add.u32 %r5, %r2, 7;
  add.u32 %r6, %r3, 7;
  add.u32 %r7, %r4, 7;
  add.u32 %r8, %r1, 7;
  and.b32 %r9, %r3, 1;
  xor.b32 %r10, %r9, 7;      // uniform; warps 2 and 3 repeat 0 and 1
  setp.lt.u32 %p1, %r2, 16;
  @%p1 sub.u32 %r11, %r4, 1; // half of the lanes
  ret;)"),
                       {.kernel = "k", .grid = {3}, .block = {128}, .observer = &study}, {zeros<uint32_t>(1), 9u});
  REQUIRE(run.ok());
  auto row_of = [&](std::string_view text) {
    for (const auto& [number, row] : study.rows()) {
      const SourceRange range = row.function->instructions[row.instruction].range;
      if (run.module->source.text().substr(range.begin, range.end - range.begin).find(text) != std::string_view::npos)
        return row;
    }
    FAIL("not executed: ", text);
    return RedundancyRow{};
  };
  struct Expected {
    const char* text;
    uint64_t uniform, repeated, lanes;
  };
  // Three blocks of four warps: 12 executions; the first warp of a block repeats none.
  for (const Expected& expected :
       {Expected{"mov.u32 %r1", 0, 0, 384}, Expected{"and.b32 %r2", 0, 0, 384}, Expected{"shr.u32 %r3", 0, 0, 384},
        Expected{"ld.param.u32", 12, 9, 384}, Expected{"add.u32 %r5", 0, 9, 384}, Expected{"add.u32 %r6", 12, 0, 384},
        Expected{"add.u32 %r7", 12, 9, 384}, Expected{"add.u32 %r8", 0, 0, 384}, Expected{"xor.b32 %r10", 12, 6, 384},
        Expected{"sub.u32 %r11", 12, 9, 192}}) {
    CAPTURE(expected.text);
    const RedundancyRow row = row_of(expected.text);
    CHECK(row.executions == 12);
    CHECK(row.lanes == expected.lanes);
    CHECK(row.uniform == expected.uniform);
    CHECK(row.repeated == expected.repeated);
    CHECK(row.uniform_lanes == expected.uniform * expected.lanes / 12);
    CHECK(row.repeated_lanes == expected.repeated * expected.lanes / 12);
  }
  CHECK(study.total().executions == run.result.counters.warp_instructions);
  CHECK(study.total().lanes == run.result.counters.thread_instructions);
}

TEST_CASE("arguments of functions are no sources that can be seen: never redundant") {
  RedundancyStudy study;
  PtxRun run = run_ptx(kernel("k", "", R"(
  .reg .b32 %r<9>;
  mov.u32 %r1, %tid.x;
  { .param .b32 a;
    st.param.b32 [a], %r1;
    call leaf, (a); }
  ret;)",
                              R"(
.func leaf(.param .b32 n) {
  .reg .b32 %r<9>;
  ld.param.u32 %r1, [n];
  ret;
})"),
                       {.kernel = "k", .block = {64}, .observer = &study});
  REQUIRE(run.ok());
  unsigned found = 0;
  for (const auto& [number, row] : study.rows()) {
    const std::string_view mnemonic = row.function->form_of(row.instruction).mnemonic;
    if (mnemonic != "ld.param.u32" && mnemonic != "call") continue;
    ++found;
    CHECK(row.uniform == 0);
    CHECK(row.repeated == 0);
  }
  CHECK(found == 2);
}

TEST_CASE("an observer changes neither results nor counters") {
  Recorder recorder("");
  auto run = [&](Observer* observer) {
    // One host thread: all blocks store to the same words, different values.
    PtxRun result = run_ptx(kernel("k", ".param .u64 out", body),
                            {.kernel = "k", .grid = {3}, .block = {70}, .host_threads = 1, .observer = observer},
                            {zeros<uint32_t>(70)});
    REQUIRE(result.ok());
    return result;
  };
  const PtxRun with = run(&recorder), without = run(nullptr);
  CHECK(with.buffers == without.buffers);
  CHECK(with.result.counters.warp_instructions == without.result.counters.warp_instructions);
  CHECK(with.result.counters.thread_instructions == without.result.counters.thread_instructions);
}

} // namespace ptxrewrite::tests::observer_test
