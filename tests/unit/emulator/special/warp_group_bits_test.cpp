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

// The columns of a sparse A's stored elements, 32 bytes of each row, for metadata of any two of four elements (tf32:
// one of two), which thread 4 * row + i holds (PTX ISA 9.7.15.6.1): eight indices of a row, in the low half of the word
// those of rows 0 to 7 of a warp's sixteen. Threads that the selector does not name have any words.
std::vector<uint32_t> random_columns(uint32_t bytes, uint32_t selector, std::mt19937& random,
                                     std::vector<uint32_t>& of_threads) {
  constexpr uint32_t pairs[] = {0b0100, 0b1000, 0b1100, 0b1001, 0b1101, 0b1110}, indices_of_thread = 8;
  const uint32_t stored = 32 / bytes, units = bytes == 4 ? 2 : 1; // of an element
  std::vector<uint32_t> columns(rows * stored);
  for (uint32_t thread = 0; thread < 128; ++thread)
    of_threads[thread * 4] = static_cast<uint32_t>(random());
  for (uint32_t row = 0; row < rows; ++row)
    for (uint32_t index = 0; index < stored * units; index += 2) {
      const uint32_t pair = bytes == 4 ? (random() % 2 ? 0b1110 : 0b0100) : pairs[random() % std::size(pairs)];
      const uint32_t of_row = selector * (stored * units / indices_of_thread) + index / indices_of_thread;
      const uint32_t thread = row / 16 * 32 + row % 8 * 4 + of_row % 4;
      const uint32_t bit = row % 16 / 8 * 16 + index % indices_of_thread * 2;
      of_threads[thread * 4] = (of_threads[thread * 4] & ~(15u << bit)) | pair << bit;
      uint32_t* of_pair = &columns[row * stored + index / units];
      if (bytes == 4) {
        of_pair[0] = index + (pair == 0b1110 ? 1 : 0);
      } else {
        of_pair[0] = index * 2 + (pair & 3);
        of_pair[1] = index * 2 + (pair >> 2);
      }
    }
  return columns;
}

// `selector`: of a sparse A; -1: A is dense.
void check(const Types& types, Codes codes, bool adds, bool negates, unsigned seed, int selector = -1) {
  std::mt19937 random(seed);
  const bool sparse = selector >= 0;
  const auto bytes = static_cast<uint32_t>(types.a.bits() / 8), stored = 32 / bytes, k = sparse ? 2 * stored : stored;
  Form form;
  form.types = std::string(types.half_sums ? "f16." : "f32.") + types.a.name + "." + types.b.name;
  form.n = columns;
  form.k = k;
  form.behind = std::string(negates ? ", -1, 1" : ", 1, 1") + (bytes == 2 ? ", 0, 0" : "");
  CAPTURE(form.types);
  CAPTURE(static_cast<int>(codes));
  const Layout of_a = canonical_layout(false, 0, bytes, 128, 256);
  const Layout of_b = canonical_layout(false, 0, bytes, 128, sparse ? 512 : 256);
  const Format& of_sums = types.half_sums ? f16 : f32;
  Input input;
  input.shared.resize(start_of_b + 1024);
  input.a = descriptor(0, 128, 256, 0);
  input.b = descriptor(start_of_b, 128, sparse ? 512 : 256, 0);
  input.adds = adds;
  std::vector<float> a(rows * stored), b(columns * k), d(rows * columns);
  const auto fill = [&](const Format& format, const Layout& layout, uint32_t start, uint32_t lines, uint32_t of_line,
                        std::vector<float>& numbers) {
    for (uint32_t line = 0; line < lines; ++line)
      for (uint32_t i = 0; i < of_line; ++i) {
        const uint32_t code = code_of(format, codes, random);
        numbers[line * of_line + i] = static_cast<float>(value_of(format, code));
        std::memcpy(input.shared.data() + layout.address(start, line, i), &code, bytes);
      }
  };
  fill(types.a, of_a, 0, rows, stored, a);
  fill(types.b, of_b, start_of_b, columns, k, b);
  std::vector<uint32_t> of_elements(rows * stored); // columns of A
  for (uint32_t i = 0; i < of_elements.size(); ++i)
    of_elements[i] = i % stored;
  if (sparse) {
    form.selector = std::to_string(selector);
    form.metadata = "  mov.b32 %m, %a0;\n";
    of_elements = random_columns(bytes, static_cast<uint32_t>(selector), random, input.a_registers);
  }
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
      for (uint32_t i = 0; i < stored; ++i) {
        const float left = a[row * stored + i];
        sum = std::fma(negates ? -left : left, b[column * k + of_elements[row * stored + i]], sum);
      }
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

TEST_CASE("asynchronous products of a sparse A, all codes of all types, any metadata") {
  const Types all[] = {{f16, f16, false},   {f16, f16, true},   {bf16, bf16, false}, {tf32, tf32, false},
                       {e4m3, e4m3, false}, {e4m3, e5m2, true}, {e5m2, e4m3, false}, {e5m2, e5m2, true}};
  unsigned seed = 1000;
  for (const Types& types : all)
    for (const Codes codes : {Codes::any, Codes::finite, Codes::small, Codes::few_specials})
      for (int selector = 0; selector < (types.a.bits() == 8 ? 1 : 2); ++selector)
        for (const bool negates : {false, true})
          check(types, codes, seed % 4 != 0, negates, seed, selector), ++seed;
}

} // namespace
} // namespace ptxrewrite::emulator::warp_group_bits_test
