// The limit study LN (r2d2-isca23 section 2.2) on kernels small enough to count by hand, and by brute force: a linear
// result is, in every thread, block and trip, the sum of a thread's part, a block's part and a trip's part.
#include "emulator/observe/linearity.h"

#include "tests/unit/emulator/run_ptx.h"

#include <bit>
#include <map>

namespace ptxrewrite::tests::linearity_test {

using namespace ptxrewrite;
using namespace ptxrewrite::emulator;

namespace {

std::unique_ptr<ir::Module> read(const std::string& text) {
  Diagnostics diagnostics;
  std::unique_ptr<ir::Module> module = grammar::read_module(SourceFile("test.ptx", text), diagnostics);
  REQUIRE(module);
  return module;
}

// The results of every instruction, with the number of the execution by the warp, which is its trip in these kernels.
class Results final : public ValueObserver {
public:
  struct Place {
    uint64_t block;
    uint32_t thread, trip;
    auto operator<=>(const Place&) const = default;
  };
  std::map<uint32_t, std::map<Place, uint64_t>> values; // by the instruction's number
  std::map<uint32_t, unsigned> bits;

  void executed(const ObservedInstruction& at) override {
    if (at.results.size() != 1) return;
    const uint32_t trip = trips_[{at.block->linear, at.warp->index, at.number}]++;
    bits[at.number] = at.results[0].bits;
    for (uint32_t lanes = at.mask; lanes; lanes &= lanes - 1) {
      const auto lane = static_cast<unsigned>(std::countr_zero(lanes));
      values[at.number][{at.block->linear, at.warp->index * 32 + lane, trip}] = at.results[0].low(lane);
    }
  }

private:
  std::map<std::tuple<uint64_t, uint32_t, uint32_t>, uint32_t> trips_;
};

struct Study {
  std::unique_ptr<ir::Module> module;
  std::unique_ptr<LinearityStudy> study;
  PtxRun run;

  // The study uses another copy of the module than the run: numbers are the same.
  Study(const std::string& text, LaunchRequest request, const std::vector<Argument>& arguments,
        const std::vector<std::byte>& parameters)
      : module(read(text)) {
    request.parameters = parameters;
    study = std::make_unique<LinearityStudy>(*module->functions.back(), request);
    request.parameters.clear();
    request.observer = study.get();
    run = run_ptx(text, request, arguments);
    REQUIRE_MESSAGE(run.ok(), run.error, run.failure());
  }

  LinearityRow row(std::string_view text) const {
    for (const LinearityRow& row : study->rows()) {
      if (!row.function) continue;
      const SourceRange range = row.function->instructions[row.instruction].range;
      if (run.module->source.text().substr(range.begin, range.end - range.begin).find(text) != std::string_view::npos)
        return row;
    }
    FAIL("not executed: ", text);
    return {};
  }
};

template <class... Values> std::vector<std::byte> packed(Values... values) {
  std::vector<std::byte> bytes;
  auto add = [&](auto value) {
    bytes.resize((bytes.size() + sizeof value - 1) / sizeof value * sizeof value + sizeof value);
    std::memcpy(bytes.data() + bytes.size() - sizeof value, &value, sizeof value);
  };
  (add(values), ...);
  return bytes;
}

const std::string counted = kernel("k", ".param .u64 out, .param .u32 n", R"(
  .reg .b64 %rd<9>; .reg .b32 %r<30>; .reg .f32 %f<9>; .reg .pred %p<9>;
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mad.lo.s32 %r4, %r2, %r3, %r1;
  ld.param.u64 %rd1, [out];
  mul.wide.s32 %rd2, %r4, 4;
  add.s64 %rd3, %rd1, %rd2;
  ld.global.f32 %f1, [%rd3];
  add.f32 %f2, %f1, %f1;
  st.global.f32 [%rd3], %f2;
  ld.param.u32 %r5, [n];
  add.s32 %r6, %r1, %r5;
  mul.wide.s32 %rd4, %r6, 4;     // index n + tid.x may wrap
  mul.wide.u32 %rd5, %r2, 4;
  mov.u64 %rd6, table;
  add.s64 %rd7, %rd6, %rd5;
  ld.const.u32 %r7, [%rd7];      // one value for each block, of no linear form
  mul.lo.s32 %r8, %r1, %r1;      // no linear form
  mov.u32 %r9, 0;
  mov.u32 %r10, %r4;
LOOP:
  add.s32 %r9, %r9, 1;
  add.s32 %r10, %r10, %r5;
  add.s32 %r11, %r1, 3;          // the same in every trip
  shr.u32 %r12, %r9, 1;
  setp.lt.s32 %p1, %r9, 5;
  @%p1 bra LOOP;
  setp.lt.s32 %p2, %r1, 16;
  @%p2 add.s32 %r13, %r1, 1;     // some threads keep what they had
  ret;)",
                                   "\n.const .b32 table[8] = {3, 1, 4, 1, 5, 9, 2, 6};\n");

// Six blocks of 40 threads: two warps each, of 32 and 8 lanes.
constexpr uint64_t blocks = 6, threads = 40, warps = 2, all = blocks * threads;

} // namespace

TEST_CASE("LN on a kernel counted by hand") {
  Study study(counted, {.kernel = "k", .grid = {6}, .block = {40}}, {zeros<float>(all), uint32_t(100)},
              packed(uint64_t(4096), uint32_t(100)));
  struct Expected {
    const char* text;
    uint64_t trips, coefficient, thread, block; // all three 0: not linear
  };
  for (const Expected& expected : {
           Expected{"mov.u32 %r1, %tid.x", 1, 0, threads, 0},
           Expected{"mov.u32 %r2, %ctaid.x", 1, 0, 0, blocks},
           Expected{"mov.u32 %r3, %ntid.x", 1, 1, 0, 0},
           Expected{"mad.lo.s32 %r4", 1, 1, threads, blocks}, // ntid.x is a coefficient
           Expected{"ld.param.u64", 1, 1, 0, 0},
           Expected{"mul.wide.s32 %rd2", 1, 1, threads, blocks}, // 4 * ntid.x
           Expected{"add.s64 %rd3", 1, 1, threads, blocks},
           Expected{"ld.global.f32", 1, 0, 0, 0},
           Expected{"add.f32", 1, 0, 0, 0},
           Expected{"st.global.f32", 1, 0, 0, 0},
           Expected{"add.s32 %r6", 1, 1, threads, 0},
           Expected{"mul.wide.s32 %rd4", 1, 1, threads, 0},
           Expected{"mul.wide.u32 %rd5", 1, 0, 0, blocks},
           Expected{"mov.u64 %rd6", 1, 1, 0, 0},
           Expected{"add.s64 %rd7", 1, 1, 0, blocks},
           Expected{"ld.const.u32", 1, 0, 0, blocks},
           Expected{"mul.lo.s32 %r8", 1, 0, 0, 0},
           Expected{"mov.u32 %r9, 0", 1, 1, 0, 0},
           Expected{"add.s32 %r9", 5, 5, 0, 0}, // a new value in each trip
           Expected{"add.s32 %r10", 5, 5, threads, blocks},
           Expected{"add.s32 %r11", 5, 0, threads, 0},
           Expected{"shr.u32 %r12", 5, 5, 0, 0}, // no linear form, the same in all threads
           Expected{"setp.lt.s32 %p1", 5, 5, 0, 0},
           Expected{"bra LOOP", 4, 0, 0, 0}, // not taken by any lane in the last trip
           Expected{"setp.lt.s32 %p2", 1, 0, 0, 0},
       }) {
    const std::string which = expected.text;
    CAPTURE(which);
    const LinearityRow row = study.row(expected.text);
    CHECK(row.executions == blocks * warps * expected.trips);
    CHECK(row.lanes == all * expected.trips);
    CHECK(row.coefficient == expected.coefficient);
    CHECK(row.thread == expected.thread);
    CHECK(row.block == expected.block);
    const uint64_t parts = expected.coefficient + expected.thread + expected.block;
    CHECK(row.linear == (parts > 0));
    CHECK(row.needed == (parts ? parts : all * expected.trips));
    CHECK(row.uniform == (parts > 0 && expected.thread == 0));
  }
  const LinearityRow guarded = study.row("add.s32 %r13");
  CHECK_FALSE(guarded.linear);
  CHECK(guarded.needed == blocks * 16);
  const LinearityRow total = study.study->total();
  CHECK(total.lanes == study.run.result.counters.thread_instructions);
  // A guard is false in all lanes in the last trip and in the second warp.
  CHECK(total.executions == study.run.result.counters.warp_instructions - blocks * warps - blocks);
}

TEST_CASE("a form that does not hold in this launch is not linear in it; LN never needs more than there is") {
  // n + tid.x wraps around 32 bits.
  Study wraps(counted, {.kernel = "k", .grid = {6}, .block = {40}}, {zeros<float>(all), uint32_t(0x7ffffff0)},
              packed(uint64_t(4096), uint32_t(0x7ffffff0)));
  CHECK(wraps.row("add.s32 %r6").linear);
  CHECK_FALSE(wraps.row("mul.wide.s32 %rd4").linear);
  CHECK(wraps.row("mul.wide.s32 %rd2").linear);
  // One block of one thread: nothing is repeated.
  Study one(counted, {.kernel = "k"}, {zeros<float>(1), uint32_t(1)}, packed(uint64_t(4096), uint32_t(1)));
  for (const LinearityRow& row : one.study->rows())
    CHECK(row.needed <= row.lanes);
  CHECK(one.row("mad.lo.s32 %r4").needed == 1); // not three parts
}

TEST_CASE("what LN calls linear is a sum of thread, block and trip parts, by brute force") {
  // Two-dimensional blocks, partial warps; the study gets the same buffer address as the run.
  const LaunchRequest shape{.kernel = "k", .grid = {3, 2}, .block = {9, 5}};
  Results results;
  LaunchRequest watched = shape;
  watched.observer = &results;
  PtxRun run = run_ptx(counted, watched, {zeros<float>(all), uint32_t(7)});
  REQUIRE(run.ok());
  Study study(counted, shape, {zeros<float>(all), uint32_t(7)}, packed(run.addresses[0], uint32_t(7)));
  unsigned compared = 0;
  for (uint32_t number = 0; number < study.study->rows().size(); ++number) {
    const LinearityRow row = study.study->rows()[number];
    if (!row.linear) continue;
    const auto& values = results.values.at(number);
    const unsigned bits = results.bits.at(number);
    const uint64_t mask = bits >= 64 ? UINT64_MAX : (uint64_t(1) << bits) - 1;
    CAPTURE(ir::form(row.function->instructions[row.instruction].form).mnemonic);
    const uint64_t origin = values.at({0, 0, 0});
    for (const auto& [place, value] : values) {
      const uint64_t thread = row.thread ? values.at({0, place.thread, 0}) - origin : 0;
      const uint64_t block = row.block ? values.at({place.block, 0, 0}) - origin : 0;
      const uint64_t trip = values.at({0, 0, place.trip}) - origin;
      CHECK((row.coefficient > 1 || (trip & mask) == 0));
      CHECK(value == ((origin + thread + block + trip) & mask));
      ++compared;
    }
  }
  CHECK(compared > 20 * 6 * 45);
}

} // namespace ptxrewrite::tests::linearity_test
