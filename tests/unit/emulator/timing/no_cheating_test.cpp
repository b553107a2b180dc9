// Guards against cheating: a technique's entry in the model that omits a cost which its paper's machine has. Each test
// fails in that case; the costs are the papers', computed here by arithmetic.
#include "tests/unit/emulator/timing/timed_kernel.h"

#include <fmt/format.h>

namespace ptxrewrite::tests::no_cheating_test {

using namespace ptxrewrite;
using namespace ptxrewrite::emulator;
using namespace ptxrewrite::timing;

namespace {

const ir::Machine& titanv() {
  return machine_named("titanv");
}

struct LinearParts {
  unsigned coefficients = 0, thread = 0, block = 0; // dependent instructions of each part
  unsigned before = 0;                              // of the body, before the first linear register
};

// p[tid] = tid in R2D2's hardware form, with parts of any length.
std::string linear(const LinearParts& parts) {
  std::string text = fmt::format(R"(//@ ptxrewrite hardware 1
.version 8.0
.target sm_70
.address_size 64
.visible .entry k(.param .u64 p)
{{
  .reg .b32 %r<4>;
  .reg .b64 %cr<{}>, %tr<{}>, %br<{}>, %lr<1>;
  .r2d2.coefficient {{
  ld.param.u64 %cr0, [p];
)",
                                 parts.coefficients + 1, parts.thread + 2, parts.block + 1);
  for (unsigned i = 0; i < parts.coefficients; ++i)
    text += fmt::format("  add.u64 %cr{}, %cr{}, 0;\n", i + 1, i);
  text += "  }\n  .r2d2.thread {\n  cvt.u64.u32 %tr0, %tid.x;\n  mad.lo.s64 %tr1, %tr0, 4, 0;\n";
  for (unsigned i = 0; i < parts.thread; ++i)
    text += fmt::format("  mad.lo.s64 %tr{}, %tr{}, 1, 0;\n", i + 2, i + 1);
  text += fmt::format("  }}\n  .r2d2.block {{\n  mov.b64 %br0, %cr{};\n", parts.coefficients);
  for (unsigned i = 0; i < parts.block; ++i)
    text += fmt::format("  mad.lo.s64 %br{}, %br{}, 1, 0;\n", i + 1, i);
  text += fmt::format("  }}\n  .r2d2.linear %lr0 = %tr{} + %br{};\n  mov.u32 %r1, %tid.x;\n", parts.thread + 1,
                      parts.block);
  for (unsigned i = 0; i < parts.before; ++i)
    text += "  mul.lo.u32 %r1, %r1, %r1;\n";
  return text + "  st.global.u32 [%lr0], %r1;\n  ret;\n}\n";
}

KernelTime time_linear(const LinearParts& parts, uint32_t blocks, uint32_t threads = 256) {
  return time_kernel(linear(parts),
                     {.kernel = "k", .grid = {blocks}, .block = {threads}, .multiprocessors = titanv().sms},
                     {Buffer{std::vector<std::byte>(uint64_t(threads) * 4)}}, titanv())
      .on(titanv());
}

// Loads in sequence, each at the address read by the previous one, or at an offset from a linear register.
std::string chase(bool is_linear, unsigned loads) {
  std::string text = R"(//@ ptxrewrite hardware 1
.version 8.0
.target sm_70
.address_size 64
.visible .entry k(.param .u64 p)
{
  .reg .b64 %rd<4>, %cr<1>, %tr<1>, %br<1>, %lr<1>;
  .r2d2.coefficient {
  ld.param.u64 %cr0, [p];
  }
  .r2d2.thread {
  mov.u64 %tr0, 0;
  }
  .r2d2.block {
  mov.b64 %br0, %cr0;
  }
  .r2d2.linear %lr0 = %tr0 + %br0;
)";
  if (is_linear)
    text += "  mov.u64 %rd1, 0;\n";
  else
    text += "  r2d2.mov.b64 %rd1, %lr0;\n  st.global.u64 [%rd1], %rd1;\n";
  for (unsigned i = 0; i < loads; ++i)
    text += is_linear ? "  ld.global.u64 %rd1, [%lr0+%rd1];\n" : "  ld.global.u64 %rd1, [%rd1];\n";
  return text + "  st.global.u64 [%lr0+8], %rd1;\n  ret;\n}\n";
}

// `pairs` dependent pairs of a shift and an addition, as composites or not.
std::string chain(bool composite, unsigned pairs) {
  std::string body = R"(
  .reg .b64 %rd<4>; .reg .b32 %r<8>;
  ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; mov.u32 %r2, %r1;
)";
  for (unsigned i = 0; i < pairs; ++i)
    body += composite ? "crf.xor.b32.shr.u32 %r2, %r2, %r1, 3;\n" : "xor.b32 %r2, %r2, %r1; shr.u32 %r2, %r2, 3;\n";
  body += "mul.wide.u32 %rd2, %r1, 4; add.s64 %rd3, %rd1, %rd2; st.global.u32 [%rd3], %r2;\n ret;\n";
  return "//@ ptxrewrite hardware 1\n" + kernel("k", ".param .u64 p", body);
}

TimedKernel run(const std::string& text, uint32_t blocks, uint32_t threads, const ir::Machine& machine) {
  return time_kernel(text, {.kernel = "k", .grid = {blocks}, .block = {threads}, .multiprocessors = machine.sms},
                     {Buffer{std::vector<std::byte>(uint64_t(threads) * 8)}}, machine);
}

} // namespace

TEST_CASE("R2D2: linear parts are not free, once on every SM whatever the grid") {
  const double latency = titanv().latency.integer.value;
  const uint32_t waves = 5, full = 80 * 8 * waves; // 8 blocks of 8 warps on each SM
  constexpr unsigned length = 200;
  for (const LinearParts& parts : {LinearParts{.coefficients = length}, LinearParts{.thread = length}})
    for (uint32_t blocks : {1u, 80u, full}) {
      CAPTURE(blocks);
      const double more = time_linear(parts, blocks).clocks - time_linear({}, blocks).clocks;
      CHECK(more >= length * (latency - 1));
      CHECK(more <= 2.5 * length * latency); // not once per wave, let alone per block
    }
}

TEST_CASE("R2D2: block parts are each block's, and coefficients one thread's for all") {
  // The same grid of one warp by block has as many block parts as blocks.
  auto instructions = [](const LinearParts& parts, uint32_t blocks) {
    return time_linear(parts, blocks, 32).demand.instructions;
  };
  constexpr unsigned length = 50;
  for (uint32_t blocks : {80u, 800u, 8000u}) {
    CAPTURE(blocks);
    CHECK(instructions({.block = length}, blocks) - instructions({}, blocks) == doctest::Approx(length * blocks));
    CHECK(instructions({.thread = length}, blocks) - instructions({}, blocks) == doctest::Approx(length * 80));
    CHECK(instructions({.coefficients = length}, blocks) - instructions({}, blocks) == doctest::Approx(length * 80));
  }
}

TEST_CASE("R2D2: thread parts are computed by all warps of a block, not by one for all") {
  constexpr unsigned length = 100;
  const double one =
      time_linear({.thread = length}, 80, 32).demand.instructions - time_linear({}, 80, 32).demand.instructions;
  const double eight =
      time_linear({.thread = length}, 80, 256).demand.instructions - time_linear({}, 80, 256).demand.instructions;
  CHECK(eight == doctest::Approx(8 * one));
}

TEST_CASE("R2D2: the body overlaps linear parts up to its first linear register and no further") {
  constexpr unsigned length = 400, before = 100;
  const double rate = titanv().issue_rate.value;
  // A lone block computes the parts itself: nothing overlaps. On a full SM the seven other blocks issue meanwhile.
  for (uint32_t blocks : {80u, 80u * 8}) {
    CAPTURE(blocks);
    auto start = [&](unsigned instructions) {
      return time_linear({.thread = length, .before = instructions}, blocks).stack[index(Cause::linear)];
    };
    const double others = blocks > 80 ? 7 * 8 / titanv().schedulers : 0;
    const double less = start(0) - start(before);
    CHECK(less <= others * before / rate + 1);
    CHECK(less >= others * (before - 1) / rate - 1);
    CHECK(start(10 * before) >= 0);
  }
}

TEST_CASE("R2D2: each address that is added up on the way takes four clocks more") {
  constexpr unsigned loads = 64;
  auto clocks_of_load = [](bool is_linear) {
    auto clocks = [&](unsigned count) { return run(chase(is_linear, count), 1, 32, titanv()).on(titanv()).clocks; };
    return (clocks(2 * loads) - clocks(loads)) / loads;
  };
  CHECK(clocks_of_load(true) - clocks_of_load(false) == doctest::Approx(4).epsilon(0.01));
}

TEST_CASE("DARSIE: the leader executes what its followers skip, and they wait for it") {
  const ir::Machine& machine = machine_named("gtx1080ti");
  constexpr unsigned pairs = 200;
  const TimedKernel timed = run(chain(false, pairs), 1, 256, machine);
  const KernelTime before = timed.on(machine);
  auto skipping = [&](double share, double syncs) {
    Technique technique;
    technique.sites.resize(timed.recording.sites.size());
    for (SiteChange& site : technique.sites)
      site.skipped = share;
    technique.branch_syncs = syncs;
    return timed.on(machine, 32, &technique);
  };
  const KernelTime followed = skipping(7.0 / 8, 0);
  CHECK(followed.demand.instructions == doctest::Approx(before.demand.instructions / 8));
  // The dependent instructions take the leader as long as before.
  CHECK(followed.clocks >= 2 * pairs * (machine.latency.integer.value - 1));
  CHECK(followed.clocks <= before.clocks);
  // All warps of a block meet at each synchronised branch.
  CHECK(skipping(7.0 / 8, 100).clocks >= followed.clocks + 100 * machine.latency.integer.value);
}

TEST_CASE("composite: one issue slot, but both parts' latency and unit time") {
  const ir::Machine& machine = machine_named("fx5800");
  constexpr unsigned pairs = 300;
  const TimedKernel apart = run(chain(false, pairs), 1, 32, machine),
                    together = run(chain(true, pairs), 1, 32, machine);
  const KernelTime two = apart.on(machine), one = together.on(machine);
  CHECK(two.demand.instructions - one.demand.instructions == doctest::Approx(pairs));
  CHECK(one.demand.unit[index(Cause::unit_integer)] == doctest::Approx(two.demand.unit[index(Cause::unit_integer)]));
  // A lone warp waits equally long for both.
  CHECK(one.clocks == doctest::Approx(two.clocks).epsilon(0.03));
}

TEST_CASE("no technique lets more warps stay") {
  const ir::Machine& machine = machine_named("gtx980");
  const TimedKernel timed = run(chain(false, 10), 400, 256, machine);
  Technique technique;
  technique.active_warps = 1000;
  technique.sites.resize(timed.recording.sites.size());
  for (SiteChange& site : technique.sites)
    site.early_stall = 1;
  for (uint32_t registers : {32u, 128u}) {
    const KernelTime before = timed.on(machine, registers), now = timed.on(machine, registers, &technique);
    CHECK(now.resident_warps == before.resident_warps);
    CHECK(now.waves == before.waves);
  }
}

} // namespace ptxrewrite::tests::no_cheating_test
