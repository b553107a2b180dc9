// A slice of a machine, against the whole machine with a grid that is larger by the same factor.
#include "emulator/timing/slice.h"
#include "tests/unit/emulator/timing/timed_kernel.h"

namespace ptxrewrite::tests::slice_test {

using namespace ptxrewrite;
using namespace ptxrewrite::emulator;
using namespace ptxrewrite::timing;

namespace {

const ir::Machine& titanv() {
  return machine_named("titanv");
}

// Each thread reads 4 bytes of its own, computes `work` times and writes them.
std::string streaming(unsigned work) {
  std::string body = R"(
  .reg .b64 %rd<9>; .reg .b32 %r<9>; .reg .f32 %f<9>;
  ld.param.u64 %rd1, [p]; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;
  mad.lo.u32 %r4, %r1, %r2, %r3; mul.wide.u32 %rd2, %r4, 4; add.s64 %rd3, %rd1, %rd2; ld.global.f32 %f1, [%rd3];
)";
  for (unsigned i = 0; i < work; ++i)
    body += "  fma.rn.f32 %f1, %f1, %f1, %f1;\n";
  return kernel("k", ".param .u64 p", body + "  st.global.f32 [%rd3], %f1; ret;\n");
}

double clocks_on(const ir::Machine& on, unsigned work, uint32_t blocks) {
  const TimedKernel timed = time_kernel(streaming(work), {.kernel = "k", .grid = {blocks}, .block = {256}},
                                        {zeros<float>(uint64_t(blocks) * 256)}, on);
  return timed.on(on).clocks;
}

} // namespace

TEST_CASE("a slice has its share of what all SMs have, and all of what each has") {
  const ir::Machine slice = slice_of(titanv(), 8);
  CHECK(slice.sms == 10);
  CHECK(slice.memory.l2_kib.value * 8 == doctest::Approx(titanv().memory.l2_kib.value));
  CHECK(slice.memory.achieved_dram_gb_per_second.value * 8 ==
        doctest::Approx(titanv().memory.achieved_dram_gb_per_second.value));
  CHECK(slice.memory.l2_bytes_per_clock.value == titanv().memory.l2_bytes_per_clock.value);
  CHECK(slice.launch.per_block.value == 8 * titanv().launch.per_block.value);
  CHECK(slice_of(titanv(), 1).sms == titanv().sms);
  CHECK(slice_of(titanv(), 1000).sms == 1);
  // 80 SMs do not divide by 3: the share is that of 26.
  CHECK(slice_of(titanv(), 3).memory.l2_kib.value == doctest::Approx(titanv().memory.l2_kib.value * 26 / 80));
}

TEST_CASE("a part of a grid takes as long on a slice as the whole grid on the machine") {
  for (unsigned work : {0u, 400u})
    for (uint32_t parts : {8u, 80u}) {
      CAPTURE(work);
      CAPTURE(parts);
      CHECK(clocks_on(slice_of(titanv(), parts), work, 1280 / parts * 2) ==
            doctest::Approx(clocks_on(titanv(), work, 1280 * 2)).epsilon(0.03));
    }
}

} // namespace ptxrewrite::tests::slice_test
