// Early issue by the assembler: ptxas moves loads before instructions that wait for others (CUDA 13.0, disassembled
// with nvdisasm: 16 pairs of ld.global and st.shared become 16 LDG, then 16 STS; of 64 pairs 21 LDG come first on sm_80
// and sm_90), but not before a barrier or a store to the same memory.
#include "tests/unit/emulator/timing/timed_kernel.h"

#include <fmt/format.h>

namespace ptxrewrite::tests::walk_test {

using namespace ptxrewrite;
using namespace ptxrewrite::emulator;
using namespace ptxrewrite::timing;

namespace {

// Clocks of one warp for `pairs` pairs of a load of global memory at distant addresses and a consumer of its result;
// `between` follows each pair.
double clocks_of_pairs(unsigned pairs, const std::string& consumer, const std::string& between = {}) {
  std::string body = R"(
  .reg .b64 %rd<9>; .reg .b32 %r<9>; .reg .f32 %f<99>; .shared .align 4 .b8 tile[16384];
  ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd3, %rd1, %rd2;
  shl.b32 %r2, %r1, 2; mov.u32 %r3, tile; add.s32 %r4, %r3, %r2; mov.f32 %f90, 0f00000000;
)";
  for (unsigned i = 0; i < pairs; ++i)
    body += fmt::format("  ld.global.f32 %f{0}, [%rd3];\n  {1}\n  add.s64 %rd3, %rd3, 4096; {2}\n", i,
                        fmt::format(fmt::runtime(consumer), i, 128 * i), between);
  body += "  st.global.f32 [%rd1], %f90;\n  ret;\n";
  const ir::Machine& on = machine_named("a100");
  const TimedKernel timed = time_kernel(kernel("k", ".param .u64 p", body), {.kernel = "k", .block = {32}},
                                        {Buffer{std::vector<std::byte>(size_t(pairs + 1) * 4096)}}, on);
  return timed.on(on).clocks;
}

constexpr uint32_t constant_warps = 80 * 64;
constexpr size_t index_of_port = static_cast<size_t>(Cause::memory_port);

} // namespace

TEST_CASE("loads of one piece of code wait together, as many as an assembler issues ahead") {
  const ir::Machine& on = machine_named("a100");
  const double latency = on.latency.dram.value;
  const std::string to_shared = "st.shared.f32 [%r4+{1}], %f{0};";
  const double one = clocks_of_pairs(1, to_shared);
  CHECK(clocks_of_pairs(16, to_shared) - one < 0.5 * latency);
  // 64 loads: the 22nd is issued when the first one's result arrives, and so on.
  const double many = clocks_of_pairs(64, to_shared) - one;
  CHECK(many > 2.5 * latency);
  CHECK(many < 4 * latency);
}

TEST_CASE("no load passes a barrier or a store that may be of its data") {
  const double latency = machine_named("a100").latency.dram.value;
  const std::string to_shared = "st.shared.f32 [%r4+{1}], %f{0};";
  const double one = clocks_of_pairs(1, to_shared);
  CHECK(clocks_of_pairs(8, to_shared, "bar.sync 0;") - one > 6.5 * latency);
  CHECK(clocks_of_pairs(8, "st.global.f32 [%rd3+2048], %f{0};") - one > 6.5 * latency);
}

namespace {

// Clocks of the memory port for a kernel of which each warp executes `load`, code that sets %f1.
double port_clocks(const ir::Machine& on, const std::string& load) {
  const std::string body = R"(
  .reg .b64 %rd<9>; .reg .b32 %r<9>; .reg .f32 %f<9>;
  ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x;
)" + load + R"(
  mul.wide.u32 %rd5, %r1, 4; add.s64 %rd6, %rd1, %rd5; st.global.f32 [%rd6], %f1;
  ret;
)";
  const std::string text = ".version 8.5\n.target sm_70\n.address_size 64\n.const .align 4 .f32 table[32];\n"
                           ".visible .entry k(.param .u64 p)\n{\n" +
                           body + "}\n";
  const TimedKernel timed = time_kernel(text, {.kernel = "k", .grid = {constant_warps}, .block = {32}},
                                        {Buffer{std::vector<std::byte>(128)}}, on);
  return timed.on(on).demand.unit[index_of_port];
}

// A load of constant memory; `index`: code that sets the element, %r2.
std::string constant_load(const std::string& index) {
  return index + " shl.b32 %r3, %r2, 2; cvt.u64.u32 %rd2, %r3; mov.u64 %rd3, table; add.s64 %rd4, %rd3, %rd2; "
                 "ld.const.f32 %f1, [%rd4];";
}

} // namespace

TEST_CASE("constants at different addresses are read one after the other") {
  for (const char* name : {"titanv", "a100"}) {
    CAPTURE(name);
    const ir::Machine& on = machine_named(name);
    const double no_load = port_clocks(on, "mov.f32 %f1, 0f3F800000;"),
                 operand = port_clocks(on, "ld.const.f32 %f1, [table+12]; add.f32 %f1, %f1, %f1;"),
                 uniform = port_clocks(on, constant_load("mov.u32 %r2, %ctaid.x; and.b32 %r2, %r2, 31;")),
                 four = port_clocks(on, constant_load("and.b32 %r2, %r1, 3;")),
                 all = port_clocks(on, constant_load("mov.u32 %r2, %r1;"));
    CHECK(operand == doctest::Approx(no_load));
    CHECK(uniform - no_load == doctest::Approx(constant_warps));
    CHECK(four - uniform == doctest::Approx(3.0 * constant_warps));
    CHECK(all - uniform == doctest::Approx(31.0 * constant_warps));
  }
}

} // namespace ptxrewrite::tests::walk_test
