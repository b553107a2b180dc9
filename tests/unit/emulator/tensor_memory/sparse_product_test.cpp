// tcgen05.mma.sp: whole numbers whose products no order of summation changes, and any codes of floats, NaNs, infinities
// and subnormal numbers among them, whose sums go along k from 0 on, each rounded once to f32; the metadata lie as
// CUTLASS writes their fragments (tmem_e_frg and tmem_e_frg_ws of cute/atom/mma_traits_sm100_frag.hpp: lane + 128 *
// bit), and their values are those of the manual's tables (PTX ISA 9.7.16.10.8.1 and .2).
#include "tests/unit/emulator/float_codes.h"
#include "tests/unit/emulator/tensor_memory/product_statement.h"
#include "tests/unit/emulator/tensor_memory/tensor_kernel.h"

#include <array>
#include <bit>
#include <cstring>

namespace ptxrewrite::emulator::tensor_memory_test::sparse_product_test {
namespace {

struct Kind {
  const char* name;
  uint32_t format, sums;
  unsigned bytes, k; // k: of B
  std::array<uint32_t, 3> codes;
};
constexpr std::array<int, 3> values = {1, -2, 3};
constexpr Kind kinds[] = {
    {"f16", 0, 1, 2, 32, {0x3c00, 0xc000, 0x4200}},  {"tf32", 2, 1, 4, 16, {0x3f800000, 0xc0000000, 0x40400000}},
    {"f8f6f4", 0, 1, 1, 64, {0x38, 0xc0, 0x44}},     {"i8", 1, 2, 1, 64, {0x01, 0xfe, 0x03}},
    {"ti16", 3, 2, 2, 32, {0x0001, 0x8002, 0x0003}},
};

struct Metadata {
  Mode row, k;    // lane + 128 * place
  unsigned bits;  // of a place
  unsigned chunk; // elements that 4 bits speak of
};

Metadata metadata_of(const Kind& kind, unsigned rows) {
  if (kind.bytes == 2) return {{{{8, 1}, {2, 2048}, {rows / 16, 16}}}, {{{16, 128}, {2, 8}}}, 1, 4};
  if (kind.bytes == 4) return {{{{8, 1}, {2, 1024}, {rows / 16, 16}}}, {{{8, 128}, {2, 8}}}, 2, 2};
  return {{{{rows, 1}}}, {{{64, 128}}}, 1, 4};
}

constexpr std::array<uint32_t, 7> pairs = {0b0100, 0b1000, 0b1100, 0b1001, 0b1101, 0b0110, 0b1110};
constexpr std::array<uint32_t, 2> singles = {0b1110, 0b0100};

// Columns of the elements that are stored, of one row.
std::vector<unsigned> columns_of(const Kind& kind, const std::vector<uint32_t>& chunks) {
  std::vector<unsigned> columns;
  for (unsigned i = 0; i < chunks.size(); ++i) {
    if (kind.bytes == 4) {
      columns.push_back(2 * i + (chunks[i] == 0b1110 ? 1 : 0));
    } else {
      columns.push_back(4 * i + (chunks[i] & 3));
      columns.push_back(4 * i + (chunks[i] >> 2));
    }
  }
  return columns;
}

constexpr uint32_t a_start = 1024, b_start = 20480, image_bytes = 40960, metadata_column = 128;

using emulator_test::float_codes::Codes;
using emulator_test::float_codes::Format;

// `format`: elements are any such codes; nullptr: whole numbers.
void check(const Kind& kind, unsigned m, bool weights_stay, unsigned selector, unsigned seed,
           const Format* format = nullptr, Codes codes = Codes::any) {
  CAPTURE(kind.name);
  CAPTURE(m);
  CAPTURE(selector);
  const unsigned n = 64;
  std::mt19937 random(seed);
  TensorKernel kernel;
  choose_target(kernel, kind.name);
  kernel.columns = 256;
  kernel.shared.resize(image_bytes);
  const auto number_at = [&](uint32_t at) {
    uint32_t code = 0;
    std::memcpy(&code, kernel.shared.data() + at, kind.bytes);
    if (format) return static_cast<float>(value_of(*format, code));
    const auto which = std::find(kind.codes.begin(), kind.codes.end(), code) - kind.codes.begin();
    return static_cast<float>(values[static_cast<size_t>(which)]);
  };
  for (uint32_t at = 0; at < image_bytes; at += kind.bytes) {
    const uint32_t code = format ? code_of(*format, codes, random) : kind.codes[random() % 3];
    std::memcpy(kernel.shared.data() + at, &code, kind.bytes);
  }
  // A of K / 2 columns in a swizzle of 32 bytes, B in one of 64.
  const Layout a = canonical_layout(false, Swizzle::b32, kind.bytes, 16, 256);
  const Layout b = canonical_layout(false, Swizzle::b64, kind.bytes, 16, 512);
  const uint32_t instruction =
      selector | 1 << 2 | kind.sums << 4 | kind.format << 7 | kind.format << 10 | n / 8 << 17 | m / 16 << 24;
  kernel.parameters = {descriptor(a_start, 16, 256, Swizzle::b32), descriptor(b_start, 16, 512, Swizzle::b64),
                       instruction};
  kernel.operations = "  add.u32 %w3, %tm, " + std::to_string(metadata_column) + ";\n  tcgen05.mma" +
                      (weights_stay ? ".ws" : "") + ".sp.cta_group::1.kind::" + kind.name +
                      " [%tm], %x0, %x1, [%w3], %w2, %no;\n";
  std::vector<uint32_t> before = random_cells(128 * kernel.columns, seed + 2);
  const Metadata metadata = metadata_of(kind, m);
  std::vector<std::vector<unsigned>> kept(m);
  for (unsigned row = 0; row < m; ++row) {
    std::vector<uint32_t> chunks;
    for (unsigned k = 0; k < kind.k; k += metadata.chunk) {
      chunks.push_back(kind.bytes == 4 ? singles[random() % 2] : pairs[random() % 7]);
      const uint32_t at = metadata.row.offset(row) + metadata.k.offset(k);
      const uint32_t lane = at % 128, bit = at / 128 * metadata.bits;
      for (unsigned copy = 0; copy < 128 / m; ++copy) { // each part of the columns of D has its own
        uint32_t& cell = before[(lane + copy * m) * kernel.columns + metadata_column + selector + bit / 32];
        cell = (cell & ~(15u << bit % 32)) | chunks.back() << bit % 32;
      }
    }
    kept[row] = columns_of(kind, chunks);
  }
  const PtxRun run = run_tensor_kernel(kernel, before, {});
  REQUIRE_MESSAGE(run.ok(), run.error << run.failure());
  const std::vector<uint32_t> after = run.buffer<uint32_t>(2);
  const SumLayout layout = sum_layout(m, n, weights_stay);
  unsigned wrong = 0;
  for (unsigned row = 0; row < m; ++row)
    for (unsigned column = 0; column < n; ++column) {
      float sum = 0;
      for (unsigned i = 0; i < kind.k / 2; ++i)
        sum = std::fma(number_at(a.address(a_start, row, i)), number_at(b.address(b_start, column, kept[row][i])), sum);
      const auto [lane, place] = layout.place(row, column);
      const uint32_t cell = after[lane * kernel.columns + place];
      wrong += kind.sums == 2 ? static_cast<int32_t>(cell) != static_cast<int32_t>(sum)
                              : cell != emulator_test::float_codes::f32_bits(sum);
    }
  CHECK(wrong == 0);
}

TEST_CASE("sparse products of 128 rows, and of fewer where the weights stay") {
  unsigned seed = 1;
  for (const Kind& kind : kinds)
    for (const unsigned selector : {0u, 1u}) {
      if (selector == 1 && kind.bytes == 1) continue;
      check(kind, 128, false, selector, ++seed);
      for (const unsigned m : {32u, 64u, 128u})
        check(kind, m, true, selector, ++seed);
    }
}

TEST_CASE("sparse products, all codes of elements") {
  using namespace emulator_test::float_codes;
  unsigned seed = 100;
  for (const auto& [kind, format] : {std::pair(kinds[0], f16), std::pair(kinds[1], tf32), std::pair(kinds[2], e4m3)})
    for (const Codes codes : {Codes::any, Codes::finite, Codes::small, Codes::few_specials})
      for (const unsigned m : {32u, 128u})
        check(kind, m, m == 32, kind.bytes == 1 ? 0 : seed % 2, seed, &format, codes), ++seed;
}

TEST_CASE("infinities beside the stored elements do not count") {
  TensorKernel kernel;
  kernel.columns = 64;
  kernel.shared.resize(image_bytes);
  const uint16_t one = 0x3c00, infinity = 0x7c00;
  for (uint32_t at = 0; at < b_start; at += 2)
    std::memcpy(kernel.shared.data() + at, &one, 2);
  const Layout b = canonical_layout(false, Swizzle::b64, 2, 16, 512);
  for (unsigned column = 0; column < 16; ++column)
    for (unsigned k = 0; k < 32; ++k)
      std::memcpy(kernel.shared.data() + b.address(b_start, column, k), k % 4 < 2 ? &one : &infinity, 2);
  kernel.parameters = {descriptor(a_start, 16, 256, Swizzle::b32), descriptor(b_start, 16, 512, Swizzle::b64),
                       uint64_t(1 << 2 | 1 << 4 | 16 / 8 << 17 | 128 / 16 << 24)};
  kernel.operations = "  add.u32 %w3, %tm, 32;\n"
                      "  tcgen05.mma.sp.cta_group::1.kind::f16 [%tm], %x0, %x1, [%w3], %w2, %no;\n";
  const std::vector<uint32_t> before(128 * kernel.columns, 0x44444444); // elements 0 and 1 of each four
  const PtxRun run = run_tensor_kernel(kernel, before, {});
  REQUIRE_MESSAGE(run.ok(), run.error << run.failure());
  CHECK(std::bit_cast<float>(run.buffer<uint32_t>(2)[0]) == 16);
}

TEST_CASE("what is refused of sparse products") {
  TensorKernel kernel;
  kernel.columns = 64;
  kernel.shared.resize(image_bytes);
  const auto failure = [&](uint64_t bits, const char* add) {
    kernel.parameters = {descriptor(a_start, 16, 256, Swizzle::b32), descriptor(b_start, 16, 512, Swizzle::b64), bits};
    kernel.operations = std::string("  add.u32 %w3, %tm, ") + add +
                        ";\n  tcgen05.mma.sp.cta_group::1.kind::f16 [%tm], %x0, %x1, [%w3], %w2, %no;\n";
    return run_tensor_kernel(kernel, std::vector<uint32_t>(128 * kernel.columns), {}).failure();
  };
  const uint64_t shape = 1 << 4 | 16 / 8 << 17;
  CHECK(failure(shape | 1 << 2 | 64 / 16 << 24, "32").find("a sparse product of 64 rows in a block") == 0);
  CHECK(failure(shape | 1 << 2 | 2 | 128 / 16 << 24, "32").find("a sparsity selector of 2") == 0);
  CHECK(failure(shape | 128 / 16 << 24, "32").find("dense product in an instruction with .sp") != std::string::npos);
  CHECK(failure(shape | 1 << 2 | 128 / 16 << 24, "33").find("an odd column") != std::string::npos);
}

} // namespace
} // namespace ptxrewrite::emulator::tensor_memory_test::sparse_product_test
