// Block-scaled products, and elements of 4 and 6 bits: the locations of scales in the manual and in CuTe (tmem_sf_frg
// of cute/atom/mma_traits_sm100_frag.hpp), and numbers with exact sums.
#include "tests/unit/emulator/tensor_memory/product_statement.h"
#include "tests/unit/emulator/tensor_memory/tensor_kernel.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>

namespace ptxrewrite::emulator::tensor_memory_test::scaled_test {
namespace {

struct Narrow {
  const char* name;
  uint32_t format; // of kind::f8f6f4
  unsigned bits;
  std::array<uint32_t, 4> codes; // of 0, 1, -2, 3
};
constexpr std::array<int, 4> values = {0, 1, -2, 3};
constexpr Narrow e4m3 = {"e4m3", 0, 8, {0x00, 0x38, 0xc0, 0x44}}, e5m2 = {"e5m2", 1, 8, {0x00, 0x3c, 0xc0, 0x42}},
                 e2m3 = {"e2m3", 3, 6, {0x00, 0x08, 0x30, 0x14}}, e3m2 = {"e3m2", 4, 6, {0x00, 0x0c, 0x30, 0x12}},
                 e2m1 = {"e2m1", 5, 4, {0x0, 0x2, 0xc, 0x5}};

struct Scale {
  uint32_t code;
  double value;
};
constexpr std::array<Scale, 4> exponents = {{{127, 1}, {128, 2}, {126, 0.5}, {130, 8}}}; // ue8m0
// The ends of ue8m0, without and with scales by which an element overflows f32 before it is multiplied.
constexpr std::array<Scale, 4> extremes = {{{0, 0x1p-127}, {238, 0x1p111}, {1, 0x1p-126}, {127, 1}}};
constexpr std::array<Scale, 4> overflowing = {{{0, 0x1p-127}, {239, 0x1p112}, {254, 0x1p127}, {100, 0x1p-27}}};
constexpr std::array<Scale, 4> with_nan = {{{255, NAN}, {120, 0x1p-7}, {127, 1}, {130, 8}}};
constexpr std::array<Scale, 4> fractions = {{{0x38, 1}, {0x3c, 1.5}, {0x30, 0.5}, {0x45, 3.25}}}; // ue4m3

struct Scaled {
  std::string kind = "mxf8f6f4.block_scale";
  Narrow a = e4m3, b = e4m3;
  unsigned scales = 0; // of a row; 0: not scaled
  bool packed = false; // two elements of 4 bits in a byte
  bool by_fractions = false;
  unsigned m = 128, n = 32, group = 1;
  unsigned a_byte = 0, b_byte = 0;
  const std::array<Scale, 4>* codes = nullptr; // of scales; nullptr: ordinary ones
  bool names_bytes = false;                    // the first bytes are in the scales' addresses, too
  bool single = false;                         // one element of each line is not zero: sums have one term
  unsigned k() const { return packed ? 64 : 32; }
  unsigned rows() const { return m / group; }
  uint32_t descriptor() const {
    const uint32_t of_a = packed ? 1 : a.format, of_b = packed ? 1 : b.format;
    if (scales == 0) return 1 << 4 | of_a << 7 | of_b << 10 | n / 8 << 17 | m / 16 << 24;
    return b_byte << 4 | of_a << 7 | of_b << 10 | n / 8 << 17 | uint32_t(!by_fractions) << 23 | m / 128 << 27 |
           a_byte << 29;
  }
};

constexpr uint32_t start_of_a = 1024, start_of_b = 16384, bytes_of_image = 32768;
constexpr uint32_t column_of_a_scales = 160, column_of_b_scales = 176;

// A line of elements along k, in chunks of 16 bytes.
struct Line {
  const Narrow& type;
  bool packed;
  uint32_t start;

  std::pair<uint32_t, uint32_t> place(uint32_t line, uint32_t i) const { // byte, bit
    const Layout layout = canonical_layout(false, Swizzle::none, 1, 128, 256);
    const uint32_t in_chunk = packed ? 32 : 16;
    const uint32_t bit = i % in_chunk * type.bits;
    return {layout.address(start, line, i / in_chunk * 16) + bit / 8, bit % 8};
  }
  uint32_t code(const uint8_t* image, uint32_t line, uint32_t i) const {
    const auto [byte, bit] = place(line, i);
    return (image[byte] | uint32_t(image[byte + 1]) << 8) >> bit & ((1u << type.bits) - 1);
  }
  void put(uint8_t* image, uint32_t line, uint32_t i, uint32_t code) const {
    const auto [byte, bit] = place(line, i);
    uint32_t word = image[byte] | uint32_t(image[byte + 1]) << 8;
    word = (word & ~(((1u << type.bits) - 1) << bit)) | code << bit;
    image[byte] = static_cast<uint8_t>(word);
    image[byte + 1] = static_cast<uint8_t>(word >> 8);
  }
  int value(const uint8_t* image, uint32_t line, uint32_t i) const {
    const uint32_t found = code(image, line, i);
    for (unsigned j = 0; j < 4; ++j)
      if (type.codes[j] == found) return values[j];
    FAIL("no such code");
    return 0;
  }
};

// Lane (of the first of its copies) and column of the scales of a row of A, or of a column of B.
std::pair<uint32_t, uint32_t> scale_place(const Scaled& product, bool of_b, uint32_t line) {
  const bool in_halves = of_b && product.group == 2 && product.m == 128; // the 2x2 data path
  if (!in_halves) return {line % 32, line / 32};
  const uint32_t half = product.n / 2;
  return {line / half * 64 + line % half % 32, line % half / 32};
}

// Both matrices with elements from the four numbers, and padding.
void fill_images(const Scaled& product, std::mt19937& random, std::vector<uint8_t>& images) {
  images.resize(product.group * bytes_of_image);
  for (uint8_t& byte : images)
    byte = static_cast<uint8_t>(random());
  const Line a{product.a, product.packed, start_of_a}, b{product.b, product.packed, start_of_b};
  for (unsigned block = 0; block < product.group; ++block) {
    uint8_t* image = images.data() + block * bytes_of_image;
    for (unsigned i = 0; i < product.k(); ++i) {
      for (unsigned row = 0; row < product.rows(); ++row)
        a.put(image, row, i, product.a.codes[product.single ? (i == 5 ? 1 + random() % 3 : 0) : random() % 4]);
      for (unsigned column = 0; column < product.n / product.group; ++column)
        b.put(image, column, i, product.b.codes[product.single ? (i == 5 ? 1 + random() % 3 : 0) : random() % 4]);
    }
  }
}

void check_scaled(const Scaled& product, unsigned seed) {
  CAPTURE(product.kind);
  CAPTURE(product.a.name);
  CAPTURE(product.b.name);
  CAPTURE(product.m);
  CAPTURE(product.n);
  std::mt19937 random(seed);
  TensorKernel kernel;
  kernel.group = kernel.blocks = product.group;
  kernel.columns = 192;
  fill_images(product, random, kernel.shared);
  const Line a{product.a, product.packed, start_of_a}, b{product.b, product.packed, start_of_b};
  std::vector<uint32_t> before = random_cells(product.group * 128 * kernel.columns, seed);
  // The copies of scales agree: quarters 0 and 1 are like 2 and 3, or all four alike.
  const auto cell = [&](unsigned block, uint32_t lane, uint32_t column) -> uint32_t& {
    return before[(block * 128 + lane) * kernel.columns + column];
  };
  const auto& codes = product.codes ? *product.codes : product.by_fractions ? fractions : exponents;
  const auto scales = [&](bool of_b, unsigned lines, unsigned block, uint32_t first) {
    for (unsigned line = 0; line < lines; ++line) {
      const auto [lane, column] = scale_place(product, of_b, line);
      uint32_t word = 0;
      for (unsigned i = 0; i < 4; ++i)
        word |= codes[(line * 7 + i * 3 + (of_b ? 1 : block)) * 2654435761u >> 29 & 3].code << 8 * i;
      const bool in_halves = of_b && product.group == 2 && product.m == 128;
      for (unsigned copy = 0; copy < (in_halves ? 2u : 4u); ++copy)
        cell(block, lane + 32 * copy, first + column) = word;
    }
  };
  for (unsigned block = 0; block < product.group && product.scales; ++block) {
    scales(false, product.rows(), block, column_of_a_scales);
    scales(true, product.n, block, column_of_b_scales);
  }
  const auto scale_of = [&](bool of_b, unsigned line, unsigned block, unsigned i) {
    const auto [lane, column] = scale_place(product, of_b, line);
    const uint32_t word = cell(block, lane, (of_b ? column_of_b_scales : column_of_a_scales) + column);
    const unsigned byte = (of_b ? product.b_byte : product.a_byte) + i / (product.k() / product.scales);
    for (const Scale& scale : codes)
      if (scale.code == (word >> 8 * byte & 0xff)) return scale.value;
    FAIL("no such scale");
    return 0.0;
  };
  kernel.parameters = {descriptor(start_of_a, 128, 256, Swizzle::none), descriptor(start_of_b, 128, 256, Swizzle::none),
                       product.descriptor()};
  const auto place_of = [&](uint32_t column, unsigned byte) {
    return ", [%tm + " + std::to_string(column | (product.names_bytes ? byte << 30 : 0)) + "]";
  };
  const std::string places =
      product.scales ? place_of(column_of_a_scales, product.a_byte) + place_of(column_of_b_scales, product.b_byte) : "";
  kernel.operations = "  tcgen05.mma.cta_group::" + std::to_string(product.group) + ".kind::" + product.kind +
                      " [%tm], %x0, %x1, %w2" + places + ", %no;\n";
  if (product.group == 2) {
    kernel.before = "  tcgen05.fence::before_thread_sync;\n  barrier.cluster.arrive;\n  barrier.cluster.wait;\n";
    kernel.operations = "  setp.ne.u32 %more, %block, 0;\n  @%more bra ISSUED;\n" + kernel.operations;
    kernel.commit = "  mov.u32 %v, bar;\n  tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster"
                    ".multicast::cluster.b64 [%v], 3;\n";
  }
  const PtxRun run = run_tensor_kernel(kernel, before);
  REQUIRE_MESSAGE(run.ok(), run.error << run.failure());
  const std::vector<uint32_t> after = run.buffer<uint32_t>(2);
  const SumLayout layout = sum_layout(product.rows(), product.n, product.group == 2);
  unsigned wrong = 0;
  for (unsigned block = 0; block < product.group; ++block)
    for (unsigned row = 0; row < product.rows(); ++row)
      for (unsigned column = 0; column < product.n; ++column) {
        const unsigned part = product.n / product.group;
        double sum = 0;
        for (unsigned i = 0; i < product.k(); ++i) {
          const double scale = product.scales ? scale_of(false, row, block, i) * scale_of(true, column, block, i) : 1;
          sum += a.value(kernel.shared.data() + block * bytes_of_image, row, i) *
                 b.value(kernel.shared.data() + column / part * bytes_of_image, column % part, i) * scale;
        }
        const auto [lane, place] = layout.place(row, column);
        const uint32_t expected =
            std::isnan(sum) ? 0x7fffffff : std::bit_cast<uint32_t>(static_cast<float>(sum) + 0.0f);
        wrong += after[(block * 128 + lane) * kernel.columns + place] != expected;
      }
  CHECK(wrong == 0);
}

TEST_CASE("elements of 8, 6 and 4 bits, in any pairs") {
  unsigned seed = 1;
  for (const Narrow& a : {e4m3, e5m2, e2m3, e3m2, e2m1})
    for (const Narrow& b : {e5m2, e2m3, e3m2, e2m1}) {
      check_scaled({.kind = "f8f6f4", .a = a, .b = b, .m = seed % 2 ? 64u : 128u}, seed);
      ++seed;
    }
}

TEST_CASE("kind::mxf8f6f4: a scale for each row of A and column of B, in any of the bytes") {
  unsigned seed = 100;
  for (const Narrow& a : {e4m3, e3m2, e2m1})
    for (unsigned byte = 0; byte < 4; ++byte)
      for (const unsigned n : {16u, 80u})
        check_scaled({.a = a, .b = e5m2, .scales = 1, .n = n, .a_byte = byte, .b_byte = 3 - byte}, seed++);
}

TEST_CASE("kind::mxf4 and kind::mxf4nvf4: two or four scales") {
  unsigned seed = 200;
  for (const unsigned byte : {0u, 2u})
    check_scaled({.kind = "mxf4.block_scale.scale_vec::2X",
                  .a = e2m1,
                  .b = e2m1,
                  .scales = 2,
                  .packed = true,
                  .n = 64,
                  .a_byte = byte,
                  .b_byte = 2 - byte},
                 seed++);
  for (const bool by_fractions : {false, true}) {
    check_scaled({.kind = "mxf4nvf4.block_scale.scale_vec::4X",
                  .a = e2m1,
                  .b = e2m1,
                  .scales = 4,
                  .packed = true,
                  .by_fractions = by_fractions,
                  .n = 48},
                 seed++);
    check_scaled({.kind = "mxf4nvf4.block_scale.block32",
                  .a = e2m1,
                  .b = e2m1,
                  .scales = 2,
                  .packed = true,
                  .by_fractions = by_fractions},
                 seed++);
  }
}

// As CUTLASS's kernels have them (cute/arch/mma_sm100_desc.hpp, make_runtime_instr_desc_block_scaled).
TEST_CASE("the first byte of the scales in the two highest bits of their addresses") {
  check_scaled({.a = e4m3, .b = e5m2, .scales = 1, .n = 80, .a_byte = 1, .b_byte = 1, .names_bytes = true}, 350);
}

TEST_CASE("scales at the ends of their range: products are rounded once, to infinity or a subnormal number too") {
  unsigned seed = 400;
  for (const auto* codes : {&extremes, &overflowing, &with_nan})
    for (const Narrow& a : {e4m3, e5m2, e2m1}) {
      check_scaled({.a = a, .b = e5m2, .scales = 1, .codes = codes, .single = true}, seed++);
      check_scaled({.kind = "mxf4.block_scale.scale_vec::2X",
                    .a = e2m1,
                    .b = e2m1,
                    .scales = 2,
                    .packed = true,
                    .codes = codes,
                    .single = true},
                   seed++);
    }
}

TEST_CASE("scaled products of a pair of blocks") {
  for (const unsigned m : {128u, 256u})
    check_scaled({.a = e2m3, .b = e4m3, .scales = 1, .m = m, .n = 96, .group = 2, .a_byte = 1, .b_byte = 2}, 300 + m);
}

} // namespace
} // namespace ptxrewrite::emulator::tensor_memory_test::scaled_test
