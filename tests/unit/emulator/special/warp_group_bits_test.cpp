// wgmma bit for bit, over all codes of its operands: NaNs, infinities, subnormal numbers, every exponent. Layouts of
// shared memory are CuTe's. Where the manual is silent, the order is that of warp_group_matrix.cpp: sums along k from D
// on, exact products, each partial sum rounded once to f32; NaNs are canonical.
#include "tests/unit/emulator/float_codes.h"
#include "tests/unit/emulator/special/warp_group_kernel.h"

#include <cmath>
#include <cstring>
#include <random>

namespace ptxrewrite::emulator::warp_group_bits_test {
namespace {

using namespace emulator_test::float_codes;
using namespace warp_group_test;

struct Types {
  Format a, b;
  bool half_sums;
};

constexpr uint32_t rows = 64, columns = 16, start_of_b = 4096;

void check(const Types& types, Codes codes, bool adds, bool negates, unsigned seed) {
  std::mt19937 random(seed);
  const auto bytes = static_cast<uint32_t>(types.a.bits() / 8), k = 32 / bytes;
  Form form;
  form.types = std::string(types.half_sums ? "f16." : "f32.") + types.a.name + "." + types.b.name;
  form.n = columns;
  form.k = k;
  form.behind = std::string(negates ? ", -1, 1" : ", 1, 1") + (bytes == 2 ? ", 0, 0" : "");
  CAPTURE(form.types);
  CAPTURE(static_cast<int>(codes));
  const Layout layout = canonical_layout(false, 0, bytes, 128, 256);
  const Format& of_sums = types.half_sums ? f16 : f32;
  Input input;
  input.shared.resize(start_of_b + 1024);
  input.a = descriptor(0, 128, 256, 0);
  input.b = descriptor(start_of_b, 128, 256, 0);
  input.adds = adds;
  std::vector<float> a(rows * k), b(columns * k), d(rows * columns);
  const auto fill = [&](const Format& format, uint32_t start, uint32_t lines, std::vector<float>& numbers) {
    for (uint32_t line = 0; line < lines; ++line)
      for (uint32_t i = 0; i < k; ++i) {
        const uint32_t code = code_of(format, codes, random);
        numbers[line * k + i] = static_cast<float>(value_of(format, code));
        std::memcpy(input.shared.data() + layout.address(start, line, i), &code, bytes);
      }
  };
  fill(types.a, 0, rows, a);
  fill(types.b, start_of_b, columns, b);
  input.d.resize(128 * form.d_registers());
  // Where the sum of a thread's register is: two of them in a register with half sums.
  const auto word_of = [&](unsigned thread, unsigned index) {
    return thread * form.d_registers() + (types.half_sums ? index / 2 : index);
  };
  for (unsigned thread = 0; thread < 128; ++thread)
    for (unsigned index = 0; index < columns / 2; ++index) {
      const auto [row, column] = place_of_sum(thread, index);
      const uint32_t code = code_of(of_sums, codes, random);
      d[row * columns + column] = static_cast<float>(value_of(of_sums, code));
      input.d[word_of(thread, index)] |= types.half_sums ? code << (index % 2 * 16) : code;
    }
  const PtxRun run = run_product(form, input);
  REQUIRE_MESSAGE(run.ok(), run.error << run.failure());
  const std::vector<uint32_t> words = run.buffer<uint32_t>(1);
  unsigned wrong = 0;
  for (unsigned thread = 0; thread < 128; ++thread)
    for (unsigned index = 0; index < columns / 2; ++index) {
      const auto [row, column] = place_of_sum(thread, index);
      float sum = adds ? d[row * columns + column] : 0.0f;
      for (uint32_t i = 0; i < k; ++i)
        sum = std::fma(negates ? -a[row * k + i] : a[row * k + i], b[column * k + i], sum);
      const uint32_t word = words[word_of(thread, index)];
      wrong += types.half_sums ? (word >> (index % 2 * 16) & 0xffff) != f16_bits(sum) : word != f32_bits(sum);
    }
  CHECK(wrong == 0);
}

TEST_CASE("asynchronous products of floats, all codes of all types") {
  const Types all[] = {{f16, f16, false},   {f16, f16, true},   {bf16, bf16, false}, {tf32, tf32, false},
                       {e4m3, e4m3, false}, {e4m3, e5m2, true}, {e5m2, e4m3, false}, {e5m2, e5m2, true}};
  unsigned seed = 0;
  for (const Types& types : all)
    for (const Codes codes : {Codes::any, Codes::finite, Codes::small, Codes::few_specials})
      for (const bool adds : {false, true})
        for (const bool negates : {false, true})
          check(types, codes, adds, negates, seed++);
}

} // namespace
} // namespace ptxrewrite::emulator::warp_group_bits_test
