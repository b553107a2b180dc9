// tcgen05.cp: the mapping of bytes of shared memory to lanes of tensor memory, as in CUTLASS's Copy_Traits of
// SM100_UTCCP_* (cute/atom/copy_traits_sm100.hpp), and the commit after it; tcgen05.shift as a B200 was measured to do
// it.
#include "tests/unit/emulator/tensor_memory/product_statement.h"
#include "tests/unit/emulator/tensor_memory/tensor_kernel.h"

#include <algorithm>
#include <cstring>
#include <functional>

namespace ptxrewrite::emulator::tensor_memory_test::copy_test {
namespace {

struct Copy {
  const char* shape;
  unsigned rows, chunks;                                         // of 16 bytes
  std::vector<std::vector<std::pair<uint32_t, uint32_t>>> lanes; // a mode of the row for each copy: shape, stride
  std::vector<uint32_t> first;                                   // lane of each copy
};
const Copy copies[] = {
    {"128x256b", 128, 2, {{{128, 1}}}, {0}},
    {"128x128b", 128, 1, {{{128, 1}}}, {0}},
    {"4x256b", 4, 2, {{{4, 32}}}, {0}},
    {"32x128b.warpx4", 32, 1, {{{32, 1}}, {{32, 1}}, {{32, 1}}, {{32, 1}}}, {0, 32, 64, 96}},
    {"64x128b.warpx2::02_13", 64, 1, {{{64, 1}}, {{64, 1}}}, {0, 64}},
    {"64x128b.warpx2::01_23", 64, 1, {{{32, 1}, {2, 64}}, {{32, 1}, {2, 64}}}, {0, 32}},
};

// 16 bytes in the format of tensor memory: elements of 4 or 6 bits take a byte each.
void expand(unsigned bits, const uint8_t* from, uint8_t* to) {
  for (unsigned i = 0; i < 16; ++i) {
    unsigned code = bits == 8 ? from[i] : 0;
    for (unsigned bit = 0; bit < bits && bits < 8; ++bit)
      code |= (from[(i * bits + bit) / 8] >> (i * bits + bit) % 8 & 1u) << bit;
    to[i] = static_cast<uint8_t>(bits == 4 ? code << 2 : code);
  }
}

TEST_CASE("copies of every shape, swizzled and not, and with elements that become bytes") {
  constexpr uint32_t columns = 32, target_column = 5, start = 1024;
  unsigned seed = 1;
  for (const Copy& copy : copies)
    for (const unsigned bits : {8u, 6u, 4u})
      for (const Swizzle swizzles : {Swizzle::none, Swizzle::b128})
        for (const bool late : {false, true}) {
          CAPTURE(copy.shape);
          CAPTURE(bits);
          std::mt19937 random(++seed);
          TensorKernel kernel;
          kernel.columns = columns;
          kernel.shared.resize(24576);
          for (uint8_t& byte : kernel.shared)
            byte = static_cast<uint8_t>(random());
          const uint32_t leading = 128, stride = swizzles == Swizzle::none ? 272 : 1024;
          kernel.parameters = {descriptor(start, leading, stride, swizzles)};
          kernel.operations = "  tcgen05.cp.cta_group::1." + std::string(copy.shape) +
                              (bits == 8   ? ""
                               : bits == 6 ? ".b8x16.b6x16_p32"
                                           : ".b8x16.b4x16_p64") +
                              " [%tm + " + std::to_string(target_column) + "], %x0;\n";
          const std::vector<uint32_t> before = random_cells(128 * columns, seed);
          LaunchRequest request;
          request.late_copies = late;
          const PtxRun run = run_tensor_kernel(kernel, before, request);
          REQUIRE_MESSAGE(run.ok(), run.error << run.failure());
          std::vector<uint32_t> expected = before;
          const Layout layout = canonical_layout(false, swizzles, 1, leading, stride);
          for (size_t i = 0; i < copy.lanes.size(); ++i)
            for (uint32_t row = 0; row < copy.rows; ++row)
              for (uint32_t chunk = 0; chunk < copy.chunks; ++chunk) {
                uint8_t bytes[16];
                expand(bits, kernel.shared.data() + layout.address(start, row, chunk * 16), bytes);
                const uint32_t lane = copy.first[i] + Mode{copy.lanes[i]}.offset(row);
                std::memcpy(&expected[lane * columns + target_column + chunk * 4], bytes, sizeof bytes);
              }
          CHECK(run.buffer<uint32_t>(2) == expected);
        }
}

// Published read-back of a B200: of rows numbered from 0, a shift leaves 1 to 31 and 31 again in each quarter.
TEST_CASE("a shift moves eight columns by a lane, in each quarter of the lanes") {
  for (const unsigned group : {1u, 2u})
    for (const unsigned times : {1u, 3u})
      for (const bool late : {false, true}) {
        TensorKernel kernel;
        kernel.columns = 32;
        kernel.group = kernel.blocks = group;
        for (unsigned i = 0; i < times; ++i)
          kernel.operations += "  tcgen05.shift.cta_group::" + std::to_string(group) + ".down [%tm + 8];\n";
        if (group == 2) { // by the first block, for both
          kernel.before = "  tcgen05.fence::before_thread_sync;\n  barrier.cluster.arrive;\n  barrier.cluster.wait;\n";
          kernel.operations = "  setp.ne.u32 %more, %block, 0;\n  @%more bra ISSUED;\n" + kernel.operations;
          kernel.commit = "  mov.u32 %v, bar;\n  tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster"
                          ".multicast::cluster.b64 [%v], 3;\n";
        }
        const std::vector<uint32_t> before = random_cells(group * 128 * kernel.columns, times);
        LaunchRequest request;
        request.late_copies = late;
        request.check = true;
        const PtxRun run = run_tensor_kernel(kernel, before, request);
        REQUIRE_MESSAGE(run.ok(), run.error << run.failure());
        CHECK(run.result.findings.empty());
        std::vector<uint32_t> expected = before;
        for (uint32_t row = 0; row < group * 128; ++row)
          for (uint32_t column = 8; column < 16; ++column)
            expected[row * kernel.columns + column] =
                before[(row / 32 * 32 + std::min(row % 32 + times, 31u)) * kernel.columns + column];
        CHECK(run.buffer<uint32_t>(2) == expected);
      }
}

TEST_CASE("operations of one thread take place in their order, whichever commit is waited for") {
  for (const bool late : {false, true}) {
    TensorKernel kernel;
    kernel.columns = 32;
    kernel.shared.resize(8192);
    for (size_t i = 0; i < kernel.shared.size(); ++i)
      kernel.shared[i] = static_cast<uint8_t>(i / 4096 + 1);
    kernel.parameters = {descriptor(0, 128, 128, Swizzle::none), descriptor(4096, 128, 128, Swizzle::none)};
    kernel.begin = "  .shared .align 8 .b64 other;\n  @%one mbarrier.init.shared::cta.b64 [other], 1;\n";
    kernel.operations = "  tcgen05.cp.cta_group::1.128x128b [%tm], %x0;\n"
                        "  tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [%q];\n"
                        "  tcgen05.cp.cta_group::1.128x128b [%tm], %x1;\n";
    kernel.before = "  mov.u64 %q, other;\n  cvta.shared.u64 %q, %q;\n";
    LaunchRequest request;
    request.late_copies = late;
    const PtxRun run = run_tensor_kernel(kernel, std::vector<uint32_t>(128 * 32), request);
    REQUIRE_MESSAGE(run.ok(), run.error << run.failure());
    CHECK(run.buffer<uint32_t>(2)[0] == 0x02020202);
  }
}

} // namespace
} // namespace ptxrewrite::emulator::tensor_memory_test::copy_test
