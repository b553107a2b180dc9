// Laws that hold for all figures: faster hardware is not slower, less work is not slower, a chain costs its latency, a
// stream its bandwidth, stacks add up, and results do not depend on the host.
#include "tests/unit/emulator/timing/timed_kernel.h"

#include <fmt/format.h>

#include <random>

namespace ptxrewrite::tests::model_test {

using namespace ptxrewrite;
using namespace ptxrewrite::emulator;
using namespace ptxrewrite::timing;

namespace {

// Every thread loads 16 bytes at `stride` x its index, does `work` independent multiply-adds with them and stores 4.
std::string stream(unsigned stride, unsigned work) {
  std::string body = R"(
  .reg .b64 %rd<9>; .reg .b32 %r<9>; .reg .f32 %f<500>;
  ld.param.u64 %rd1, [from]; ld.param.u64 %rd2, [to];
  mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;
  mad.lo.u32 %r4, %r1, %r2, %r3;
)";
  body += fmt::format("  mul.wide.u32 %rd3, %r4, {};\n  add.s64 %rd4, %rd1, %rd3;\n", stride);
  body += "  ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd4];\n  add.f32 %f5, %f1, %f2; add.f32 %f6, %f3, %f4;\n";
  for (unsigned i = 0; i < work; ++i)
    body += fmt::format("  fma.rn.f32 %f{}, %f1, %f{}, 0f{:08X};\n", 10 + i, 2 + i % 2, 0x3F800000 + i);
  body += "  add.f32 %f7, %f5, %f6;\n";
  for (unsigned i = 0; i < work; ++i)
    body += fmt::format("  add.f32 %f7, %f7, %f{};\n", 10 + i);
  body += "  mul.wide.u32 %rd5, %r4, 4;\n  add.s64 %rd6, %rd2, %rd5;\n  st.global.f32 [%rd6], %f7;\n  ret;\n";
  return kernel("k", ".param .u64 from, .param .u64 to", body);
}

TimedKernel time_stream(unsigned stride, unsigned work, uint32_t blocks, const ir::Machine& on) {
  const uint32_t threads = blocks * 256;
  return time_kernel(stream(stride, work), {.kernel = "k", .grid = {blocks}, .block = {256}},
                     {Buffer{std::vector<std::byte>(uint64_t(threads) * stride + 16)}, zeros<float>(threads)}, on);
}

// A chain of `length` instructions, by one warp.
std::string chain(const std::string& instruction, unsigned length) {
  std::string body = R"(
  .reg .b64 %rd<9>; .reg .b32 %r<9>; .reg .f32 %f<9>; .reg .f64 %fd<9>;
  ld.param.u64 %rd1, [p]; mov.f32 %f1, 0f3F800000; mov.f64 %fd1, 0d3FF0000000000000; mov.u32 %r1, %tid.x;
)";
  for (unsigned i = 0; i < length; ++i)
    body += "  " + instruction + "\n";
  body += "  st.global.f32 [%rd1], %f1; st.global.f64 [%rd1+8], %fd1; st.global.u32 [%rd1+16], %r1;\n  ret;\n";
  return kernel("k", ".param .u64 p", body);
}

double clocks_of_chain(const std::string& instruction, unsigned length, const ir::Machine& on) {
  // Memory in which each word holds its own address.
  std::vector<uint64_t> memory(64, global_base);
  const TimedKernel timed =
      time_kernel(chain(instruction, length), {.kernel = "k", .block = {1}}, {buffer_of(memory)}, on);
  REQUIRE(timed.run.addresses[0] == global_base);
  return timed.on(on).clocks;
}

} // namespace

TEST_CASE("a chain of dependent instructions costs its latency") {
  for (const char* name : {"fx5800", "gtx480", "k20", "gtx980", "p100", "titanv", "a100", "h200"}) {
    const ir::Machine& on = machine_named(name);
    CAPTURE(name);
    auto by_link = [&](const std::string& instruction) {
      return (clocks_of_chain(instruction, 3000, on) - clocks_of_chain(instruction, 1000, on)) / 2000;
    };
    CHECK(by_link("add.f32 %f1, %f1, %f1;") == doctest::Approx(on.latency.fp32.value).epsilon(0.02));
    CHECK(by_link("add.f64 %fd1, %fd1, %fd1;") == doctest::Approx(on.latency.fp64.value).epsilon(0.02));
    CHECK(by_link("xor.b32 %r1, %r1, %r1;") == doctest::Approx(on.latency.integer.value).epsilon(0.02));
    const double hit = on.latency.l1.known ? on.latency.l1.value : on.latency.dram.value;
    // NVIDIA's tuning guides: Kepler, Maxwell and Pascal but for GP100 (6.0) cache global loads in L2 alone.
    const uint32_t capability = on.compute_capability;
    const bool no_l1_for_global = capability >= 30 && capability < 70 && capability != 60;
    const double load = no_l1_for_global ? on.latency.l2.value : hit;
    CHECK(by_link("ld.global.u64 %rd1, [%rd1];") == doctest::Approx(load).epsilon(0.02));
    if (on.latency.l2.known)
      CHECK(by_link("ld.global.cg.u64 %rd1, [%rd1];") == doctest::Approx(on.latency.l2.value).epsilon(0.02));
  }
}

TEST_CASE("a saturating stream reaches the bandwidth that was measured") {
  for (const char* name : {"gtx480", "titanv", "a100", "h200"}) {
    const ir::Machine& on = machine_named(name);
    CAPTURE(name);
    const KernelTime time = time_stream(16, 0, 16384, on).on(on);
    const double seconds = time.seconds - launch_cost(on).constant.value / (on.clock_mhz * 1e6);
    const double gb_per_second = time.demand.dram_bytes() / seconds / 1e9;
    CHECK(gb_per_second <= on.memory.achieved_dram_gb_per_second.value);
    CHECK(gb_per_second >= 0.85 * on.memory.achieved_dram_gb_per_second.value);
    CHECK(time.demand.dram_read_bytes == doctest::Approx(16384.0 * 256 * 16).epsilon(0.02));
  }
}

TEST_CASE("issue alone costs its issue time") {
  const ir::Machine& on = machine_named("h200");
  // 132 SMs x 2048 threads: full SMs, only independent multiply-adds after one load.
  const TimedKernel few = time_stream(16, 100, 132 * 8, on), many = time_stream(16, 400, 132 * 8, on);
  const double instructions = many.on(on).demand.instructions - few.on(on).demand.instructions;
  CHECK(instructions == doctest::Approx(132.0 * 64 * 600).epsilon(0.01));
  const double clocks = many.on(on).clocks - few.on(on).clocks;
  CHECK(clocks == doctest::Approx(instructions / 132 / 4).epsilon(0.1));
}

TEST_CASE("more bandwidth, more ports, shorter latencies are never slower; stacks add up") {
  std::mt19937 random(3);
  for (const char* name : {"fx5800", "gtx480", "gtx1080ti", "titanv", "h200"}) {
    const ir::Machine& base = machine_named(name);
    CAPTURE(name);
    for (int round = 0; round < 12; ++round) {
      const unsigned strides[] = {16, 32, 64, 256};
      const TimedKernel timed = time_stream(strides[random() % 4], static_cast<unsigned>(random() % 60),
                                            static_cast<uint32_t>(1 + random() % 700), base);
      const KernelTime before = timed.on(base);
      CHECK(sum_of(before.stack) == doctest::Approx(before.clocks).epsilon(1e-9));
      for (double clocks : before.stack)
        CHECK(clocks >= 0);
      auto not_slower = [&](auto change) {
        ir::Machine better = base;
        change(better);
        CHECK(timed.on(better).clocks <= before.clocks * (1 + 1e-9));
      };
      not_slower([](ir::Machine& m) { m.memory.achieved_dram_gb_per_second.value *= 1.5; });
      not_slower([](ir::Machine& m) { m.memory.l2_bytes_per_clock.value *= 1.5; });
      not_slower([](ir::Machine& m) { m.throughput.fp32.value *= 2; });
      not_slower([](ir::Machine& m) { m.throughput.load_store.value *= 2; });
      not_slower([](ir::Machine& m) { m.latency.dram.value *= 0.8; });
      not_slower([](ir::Machine& m) { m.latency.fp32.value *= 0.5; });
      not_slower([](ir::Machine& m) { m.memory.outstanding_misses.value *= 2; });
    }
  }
}

TEST_CASE("fewer instructions in the same profile are never slower") {
  for (const char* name : {"gtx480", "titanv", "h200"}) {
    const ir::Machine& on = machine_named(name);
    CAPTURE(name);
    for (uint32_t blocks : {1u, 130u, 1500u}) {
      double before = 0;
      for (unsigned work : {0u, 1u, 2u, 5u, 10u, 20u, 50u, 100u, 200u}) {
        const double clocks = time_stream(16, work, blocks, on).on(on).clocks;
        CAPTURE(blocks);
        CAPTURE(work);
        CHECK(clocks >= before);
        before = clocks;
      }
    }
  }
}

TEST_CASE("the host's threads and a second run change nothing") {
  const ir::Machine& on = machine_named("h200");
  auto time = [&](unsigned host_threads) {
    return time_kernel(stream(64, 7), {.kernel = "k", .grid = {900}, .block = {256}, .host_threads = host_threads},
                       {Buffer{std::vector<std::byte>(900 * 256 * 64)}, zeros<float>(900 * 256)}, on)
        .on(on);
  };
  const KernelTime one = time(1), two = time(4);
  CHECK(one.clocks == two.clocks);
  CHECK(one.stack == two.stack);
}

} // namespace ptxrewrite::tests::model_test
