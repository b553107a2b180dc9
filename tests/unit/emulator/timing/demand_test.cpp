// What a launch asks for, against counts by hand: lines that accesses touch however long the code is, and bytes of
// instructions that a cache of known size misses.
#include "emulator/timing/instruction_fetch.h"
#include "tests/unit/emulator/timing/timed_kernel.h"

#include <fmt/format.h>

namespace ptxrewrite::tests::demand_test {

using namespace ptxrewrite;
using namespace ptxrewrite::emulator;
using namespace ptxrewrite::timing;

namespace {

constexpr uint32_t blocks = 160, threads = 256;
constexpr double warps = blocks * threads / 32.0;

// `count` loads of a word by lane, none of the same words, each across a border of 128 bytes in the middle of the warp.
std::string straight_loads(unsigned count) {
  std::string body = "  .reg .b64 %rd<4>; .reg .b32 %r<4>; .reg .f32 %f<4>;\n"
                     "  ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4;\n"
                     "  add.s64 %rd3, %rd1, %rd2; mov.f32 %f1, 0f00000000;\n";
  for (unsigned i = 0; i < count; ++i)
    body += fmt::format("  ld.global.f32 %f2, [%rd3+{}]; add.f32 %f1, %f1, %f2;\n", 64 + 1024 * i);
  body += "  st.global.f32 [%rd3], %f1;\n  ret;\n";
  return kernel("k", ".param .u64 p", body);
}

// `count` dependent multiply-adds, which no assembler joins, so often; a barrier among them if asked for.
std::string multiply_adds(unsigned count, unsigned trips, bool with_barrier) {
  std::string body = "  .reg .b64 %rd<4>; .reg .b32 %r<4>; .reg .f32 %f<4>; .reg .pred %p1;\n"
                     "  ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4;\n"
                     "  add.s64 %rd3, %rd1, %rd2; ld.global.f32 %f1, [%rd3]; mov.u32 %r2, 0;\nLOOP:\n";
  for (unsigned i = 0; i < count; ++i)
    body += "  fma.rn.f32 %f1, %f1, %f1, %f1;\n";
  if (with_barrier) body += "  bar.sync 0;\n";
  if (trips > 1) body += fmt::format("  add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, {}; @%p1 bra LOOP;\n", trips);
  body += "  st.global.f32 [%rd3], %f1;\n  ret;\n";
  return kernel("k", ".param .u64 p", body);
}

struct Demanded {
  Demand demand;
  double missed = 0;
};

Demanded demanded(const std::string& text, uint64_t bytes, const ir::Machine& machine) {
  const TimedKernel timed = time_kernel(text, {.kernel = "k", .grid = {blocks}, .block = {threads}},
                                        {Buffer{std::vector<std::byte>(bytes)}}, machine);
  const ModelledLaunch launch(timed.run.result.counters, timed.recording, machine, 8);
  return {demand_of(launch.input()), missed_instruction_bytes(launch.input())};
}

} // namespace

TEST_CASE("accesses of straight code that is longer than what is looked at count as those that were seen") {
  const ir::Machine& titanv = machine_named("titanv"); // a line of 128 bytes a clock
  for (unsigned count : {100u, 3000u}) {
    CAPTURE(count);
    const Demand demand = demanded(straight_loads(count), 4096 + 1024 * (count + 1), titanv).demand;
    // Two lines each, and the store's one.
    CHECK(demand.unit[index(Cause::memory_port)] == doctest::Approx(warps * (2.0 * count + 1)).epsilon(0.01));
    // 128 bytes from the middle of a line on: two sectors of either line.
    CHECK(demand.sectors == doctest::Approx(warps * 4.0 * count).epsilon(0.01));
    CHECK((demand.unseen_accesses > 0) == (count > 1000));
  }
}

// Turing's port moves 64 bytes in a clock: 32 words of a pass take two clocks, and each pass as many. GA10x's moves 128
// bytes, but its 16 load/store units take two clocks for a warp: a conflict of two words costs nothing. An A100 has 32
// units.
TEST_CASE("clocks of shared loads with conflicts, by generation") {
  const auto loads = [](const char* machine, unsigned stride) {
    const std::string body = fmt::format(R"(
  .shared .align 4 .b8 tile[16384];
  .reg .b64 %rd<4>; .reg .b32 %r<5>;
  ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; mul.lo.u32 %r2, %r1, {}; mov.u32 %r3, tile; add.u32 %r3, %r3, %r2;
  st.shared.u32 [%r3], %r1; ld.shared.u32 %r4, [%r3]; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd3, %rd1, %rd2;
  st.global.u32 [%rd3], %r4; ret;
)",
                                         stride);
    const Demand demand = demanded(kernel("k", ".param .u64 p", body), 4096, machine_named(machine)).demand;
    return demand.unit[index(Cause::memory_port)] / warps;
  };
  // Two accesses of shared memory each, and a store of one line.
  CHECK(loads("rtx2080ti", 4) == doctest::Approx(2 * 2 + 2));
  CHECK(loads("rtx2080ti", 8) == doctest::Approx(2 * 4 + 2));
  CHECK(loads("rtx2080ti", 32) == doctest::Approx(2 * 16 + 2));
  CHECK(loads("rtx3090", 4) == doctest::Approx(2 * 2 + 2));
  CHECK(loads("rtx3090", 8) == doctest::Approx(2 * 2 + 2));
  CHECK(loads("rtx3090", 32) == doctest::Approx(2 * 8 + 2));
  CHECK(loads("a100", 4) == doctest::Approx(2 * 1 + 1));
  CHECK(loads("a100", 8) == doctest::Approx(2 * 2 + 1));
}

// ptxas keeps a local variable in registers if all of its addresses are constants (docs/lowering.md), so that no
// machine instruction accesses memory; with an index by thread it stays in local memory.
TEST_CASE("a local variable in registers takes neither port nor sectors") {
  auto with = [](const char* local) {
    return demanded(kernel("k", ".param .u64 p", std::string(R"(
  .local .align 8 .b8 depot[16];
  .reg .b64 %rd<4>; .reg .b32 %r<9>;
  ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd3, %rd1, %rd2;
)") + local + R"(
  st.global.u32 [%rd3], %r2;
  ret;
)"),
                    4096, machine_named("titanv"))
        .demand;
  };
  const Demand none = with("mov.u32 %r2, %r1;");
  const Demand kept = with("st.local.u32 [depot+4], %r1; ld.local.u32 %r2, [depot+4];");
  const Demand indexed = with("mov.u32 %r3, depot; and.b32 %r4, %r1, 4; add.u32 %r5, %r3, %r4;"
                              "st.local.u32 [depot+4], %r1; ld.local.u32 %r2, [%r5];");
  CHECK(none.l2_bytes == warps * 128);
  CHECK(kept.l2_bytes == none.l2_bytes);
  CHECK(kept.sectors == none.sectors);
  CHECK(kept.unit[index(Cause::memory_port)] == none.unit[index(Cause::memory_port)]);
  CHECK(indexed.l2_bytes >= 2 * none.l2_bytes);
}

TEST_CASE("instructions that a scheduler's cache of 12 KiB misses") {
  const ir::Machine& titanv = machine_named("titanv");
  REQUIRE(titanv.fetch.cache_kib.value == 12);
  SUBCASE("code that fits: nothing, however often it runs") {
    CHECK(demanded(multiply_adds(500, 20, false), 4096, titanv).missed == 0);
  }
  SUBCASE("straight code that does not fit: all of it, for each warp") {
    const double missed = demanded(multiply_adds(3000, 1, false), 4096, titanv).missed;
    CHECK(missed == doctest::Approx(warps * 3000 * 16).epsilon(0.01));
  }
  SUBCASE("a loop that does not fit: in each trip") {
    const double missed = demanded(multiply_adds(1000, 40, false), 4096, titanv).missed;
    CHECK(missed == doctest::Approx(warps * 1000 * 16 * 40).epsilon(0.02));
  }
  SUBCASE("a loop with a barrier: the block's two warps of a scheduler share it") {
    const double missed = demanded(multiply_adds(1000, 40, true), 4096, titanv).missed;
    CHECK(missed == doctest::Approx(warps / 2 * 1000 * 16 * 40).epsilon(0.02));
  }
}

TEST_CASE("machines whose caches are not known fetch in time") {
  CHECK(demanded(multiply_adds(3000, 1, false), 4096, machine_named("gtx480")).missed == 0);
}

} // namespace ptxrewrite::tests::demand_test
