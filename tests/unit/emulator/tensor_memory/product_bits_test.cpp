// tcgen05.mma bit for bit, over all codes of its operands and scales: NaNs, infinities, subnormal numbers, every
// exponent. Layouts of operands and D are CuTe's. Where the manual is silent, the order is that of product.cpp: sums
// along k from D on, exact products, each partial sum rounded once to f32; NaNs are canonical.
#include "tests/unit/emulator/float_codes.h"
#include "tests/unit/emulator/tensor_memory/product_statement.h"
#include "tests/unit/emulator/tensor_memory/tensor_kernel.h"

#include <cmath>
#include <cstring>
#include <random>

namespace ptxrewrite::emulator::tensor_memory_test::product_bits_test {
namespace {

using namespace emulator_test::float_codes;

struct Types {
  const char* kind;
  Format a, b;
  uint32_t a_format, b_format; // in the instruction descriptor
  bool half_sums;
  bool is_scaled = false;
};

constexpr uint32_t rows = 128, columns = 16, start_of_b = 8192, columns_of_cells = 64;
constexpr uint32_t column_of_a_scales = 32, column_of_b_scales = 48;

double scale_of(uint32_t code) { // ue8m0
  return code == 255 ? std::numeric_limits<double>::quiet_NaN() : std::ldexp(1.0, static_cast<int>(code) - 127);
}

// f32 nearest to sum + product, where neither is rounded before: the error of the sum in f64 decides ties.
float rounded_sum(double product, double sum) {
  if (!std::isfinite(product) || !std::isfinite(sum)) return static_cast<float>(product + sum);
  const double both = product + sum, part = both - product;
  const double error = (product - (both - part)) + (sum - part);
  const auto near = static_cast<float>(both);
  if (error == 0 || std::isinf(near)) return near;
  // `both` is half way between two floats, or a float: the error says on which side of it the exact sum is.
  const double apart = both - static_cast<double>(near);
  const float other = std::nextafterf(near, apart > 0 ? INFINITY : -INFINITY);
  const double half = (static_cast<double>(other) - static_cast<double>(near)) / 2;
  return apart == half && (error > 0) == (half > 0) && error != 0 ? other : near;
}

struct Operands {
  std::vector<float> a, b;
  std::vector<double> a_scales = std::vector<double>(rows, 1.0), b_scales = std::vector<double>(columns, 1.0);
};

void check(const Types& types, Codes codes, bool adds, unsigned seed) {
  CAPTURE(std::string(types.kind));
  CAPTURE(std::string(types.a.name));
  CAPTURE(std::string(types.b.name));
  CAPTURE(static_cast<int>(codes));
  std::mt19937 random(seed);
  const auto bytes = static_cast<uint32_t>((types.a.bits() + 7) / 8), k = 32 / bytes;
  const Layout layout = canonical_layout(false, Swizzle::none, bytes, 128, 256);
  const Format& of_sums = types.half_sums ? f16 : f32;
  TensorKernel kernel;
  kernel.columns = columns_of_cells;
  kernel.shared.resize(start_of_b + 2048);
  Operands operands;
  const auto fill = [&](const Format& format, uint32_t start, uint32_t lines, std::vector<float>& numbers) {
    numbers.resize(lines * k);
    for (uint32_t line = 0; line < lines; ++line)
      for (uint32_t i = 0; i < k; i += 16 / bytes) {
        uint8_t chunk[16] = {};
        for (uint32_t j = 0; j < 16 / bytes; ++j) {
          const uint32_t code = code_of(format, codes, random);
          numbers[line * k + i + j] = static_cast<float>(value_of(format, code));
          const auto bits = static_cast<uint32_t>(format.bits());
          if (bits >= 8) { // elements of 4 and 6 bits lie densely at the beginning of a chunk
            std::memcpy(chunk + j * bytes, &code, bytes);
          } else {
            for (uint32_t bit = 0; bit < bits; ++bit)
              chunk[(j * bits + bit) / 8] |= static_cast<uint8_t>((code >> bit & 1) << ((j * bits + bit) % 8));
          }
        }
        std::memcpy(kernel.shared.data() + layout.address(start, line, i), chunk, 16);
      }
  };
  fill(types.a, 0, rows, operands.a);
  fill(types.b, start_of_b, columns, operands.b);
  std::vector<uint32_t> before = random_cells(rows * columns_of_cells, seed);
  const auto cell = [&](uint32_t lane, uint32_t column) -> uint32_t& {
    return before[lane * columns_of_cells + column];
  };
  for (uint32_t row = 0; row < rows; ++row)
    for (uint32_t column = 0; column < columns; ++column)
      cell(row, column) = code_of(of_sums, codes, random);
  for (const bool of_b : {false, true})
    for (uint32_t line = 0; types.is_scaled && line < (of_b ? columns : rows); ++line) {
      const uint32_t code = random() % 40 == 0 ? 255 : codes == Codes::any ? random() % 255 : 117 + random() % 20;
      for (uint32_t copy = 0; copy < 4; ++copy)
        cell(line % 32 + 32 * copy, (of_b ? column_of_b_scales : column_of_a_scales) + line / 32) = code;
      (of_b ? operands.b_scales : operands.a_scales)[line] = scale_of(code);
    }
  const uint32_t sums = types.half_sums ? 0 : 1;
  const uint32_t plain = sums << 4 | types.a_format << 7 | types.b_format << 10 | columns / 8 << 17 | rows / 16 << 24;
  const uint32_t scaled = types.a_format << 7 | types.b_format << 10 | columns / 8 << 17 | 1 << 23 | rows / 128 << 27;
  kernel.parameters = {descriptor(0, 128, 256, Swizzle::none), descriptor(start_of_b, 128, 256, Swizzle::none),
                       types.is_scaled ? scaled : plain};
  const std::string places = types.is_scaled ? ", [%tm + " + std::to_string(column_of_a_scales) + "], [%tm + " +
                                                   std::to_string(column_of_b_scales) + "]"
                                             : "";
  kernel.operations = std::string("  tcgen05.mma.cta_group::1.kind::") + types.kind + " [%tm], %x0, %x1, %w2" + places +
                      (adds ? ", %yes;\n" : ", %no;\n");
  const PtxRun run = run_tensor_kernel(kernel, before);
  REQUIRE_MESSAGE(run.ok(), run.error << run.failure());
  const std::vector<uint32_t> after = run.buffer<uint32_t>(2);
  unsigned wrong = 0;
  for (uint32_t row = 0; row < rows; ++row)
    for (uint32_t column = 0; column < columns; ++column) {
      float sum =
          adds ? static_cast<float>(value_of(of_sums, cell(row, column) & (types.half_sums ? 0xffff : ~0u))) : 0;
      for (uint32_t i = 0; i < k; ++i) {
        const auto left = static_cast<double>(operands.a[row * k + i]),
                   right = static_cast<double>(operands.b[column * k + i]);
        sum = rounded_sum(left * right * operands.a_scales[row] * operands.b_scales[column], static_cast<double>(sum));
      }
      const uint32_t found = after[row * columns_of_cells + column];
      wrong += types.half_sums ? (found & 0xffff) != f16_bits(sum) : found != f32_bits(sum);
    }
  CHECK(wrong == 0);
}

TEST_CASE("products into tensor memory, all codes of all types") {
  const Types all[] = {{"f16", f16, f16, 0, 0, false},      {"f16", f16, f16, 0, 0, true},
                       {"f16", bf16, bf16, 1, 1, false},    {"tf32", tf32, tf32, 2, 2, false},
                       {"f8f6f4", e4m3, e5m2, 0, 1, false}, {"f8f6f4", e5m2, e4m3, 1, 0, true},
                       {"f8f6f4", e4m3, e4m3, 0, 0, true},  {"f8f6f4", e2m3, e3m2, 3, 4, false},
                       {"f8f6f4", e2m1, e5m2, 5, 1, false}, {"f8f6f4", e3m2, e2m1, 4, 5, true}};
  unsigned seed = 0;
  for (const Types& types : all)
    for (const Codes codes : {Codes::any, Codes::finite, Codes::small, Codes::few_specials})
      for (const bool adds : {false, true})
        check(types, codes, adds, seed++);
}

TEST_CASE("scaled products, all codes of scales and elements") {
  const Types all[] = {{"mxf8f6f4.block_scale", e4m3, e5m2, 0, 1, false, true},
                       {"mxf8f6f4.block_scale", e5m2, e2m3, 1, 3, false, true},
                       {"mxf8f6f4.block_scale", e2m1, e4m3, 5, 0, false, true}};
  unsigned seed = 1000;
  for (const Types& types : all)
    for (const Codes codes : {Codes::any, Codes::finite, Codes::small, Codes::few_specials})
      for (const bool adds : {false, true})
        check(types, codes, adds, seed++);
}

} // namespace
} // namespace ptxrewrite::emulator::tensor_memory_test::product_bits_test
