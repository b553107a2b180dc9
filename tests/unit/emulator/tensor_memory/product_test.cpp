// tcgen05.mma against an independent description: operands in shared memory with CuTe's layouts (CUTLASS's
// cute/arch/mma_sm100_desc.hpp), rows of D in tensor memory with its fragments (cute/atom/mma_traits_sm100_frag.hpp:
// shapes and strides over lane + 128 * column), and products of whole numbers, which do not depend on the order of
// summation.
#include "tests/unit/emulator/tensor_memory/product_statement.h"
#include "tests/unit/emulator/tensor_memory/tensor_kernel.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <random>

namespace ptxrewrite::emulator::tensor_memory_test::product_test {
namespace {

// --- types ---

struct Element {
  const char* name;
  const char* kind;
  uint32_t format; // in the instruction descriptor
  unsigned bytes;
  unsigned k;
  std::array<uint32_t, 4> codes;
  std::array<int, 4> values;
};
constexpr Element elements[] = {
    {"f16", "f16", 0, 2, 16, {0x0000, 0x3c00, 0xc000, 0x4200}, {0, 1, -2, 3}},
    {"bf16", "f16", 1, 2, 16, {0x0000, 0x3f80, 0xc000, 0x4040}, {0, 1, -2, 3}},
    {"tf32", "tf32", 2, 4, 8, {0x00001000, 0x3f800fff, 0xc0000000, 0x40401234}, {0, 1, -2, 3}}, // 13 bits are ignored
    {"e4m3", "f8f6f4", 0, 1, 32, {0x00, 0x38, 0xc0, 0x44}, {0, 1, -2, 3}},
    {"e5m2", "f8f6f4", 1, 1, 32, {0x00, 0x3c, 0xc0, 0x42}, {0, 1, -2, 3}},
    {"u8", "i8", 0, 1, 32, {0x00, 0x01, 0xfe, 0x83}, {0, 1, 254, 131}},
    {"s8", "i8", 1, 1, 32, {0x00, 0x01, 0xfe, 0x83}, {0, 1, -2, -125}},
    // A sign and 11 bits: sums do not fit into f32.
    {"s1z4m11", "ti16", 3, 2, 16, {0x0000, 0x0001, 0x87ff, 0x07fd}, {0, 1, -2047, 2045}},
};
const Element& element(const std::string& name) {
  for (const Element& one : elements)
    if (name == one.name) return one;
  FAIL("no such type");
  return elements[0];
}

void fill(std::vector<uint8_t>& image, size_t begin, size_t end, const Element& type, unsigned seed) {
  std::mt19937 random(seed);
  for (size_t at = begin; at < end; at += type.bytes)
    std::memcpy(image.data() + at, &type.codes[random() % 4], type.bytes);
}

int value_at(const Element& type, const std::vector<uint8_t>& bytes, size_t at) {
  if (at + type.bytes > bytes.size()) FAIL("an address behind the image");
  uint32_t code = 0;
  std::memcpy(&code, bytes.data() + at, type.bytes);
  for (unsigned i = 0; i < 4; ++i)
    if (type.codes[i] == code) return type.values[i];
  FAIL("no such code");
  return 0;
}

float half_value(uint32_t bits) {
  const int exponent = static_cast<int>(bits >> 10 & 31), fraction = static_cast<int>(bits & 1023);
  const float magnitude = exponent ? std::ldexp(1024.0f + static_cast<float>(fraction), exponent - 25)
                                   : std::ldexp(static_cast<float>(fraction), -24);
  return bits & 0x8000 ? -magnitude : magnitude;
}

// --- products ---

struct Product {
  const Element* a = &elements[0];
  const Element* b = &elements[0];
  uint32_t sums = 1; // 0 f16, 1 f32, 2 s32
  unsigned m = 128, n = 64;
  bool a_major = false, b_major = false;
  bool weights_stay = false;
  unsigned group = 1;
  uint32_t more_bits = 0; // of the instruction descriptor
  unsigned k() const { return a->k; }
  uint32_t instruction_descriptor() const {
    return sums << 4 | a->format << 7 | b->format << 10 | uint32_t(a_major) << 15 | uint32_t(b_major) << 16 |
           n / 8 << 17 | m / 16 << 24 | more_bits;
  }
  std::string name() const {
    return std::string("tcgen05.mma") + (weights_stay ? ".ws" : "") + ".cta_group::" + std::to_string(group) +
           ".kind::" + a->kind;
  }
};

double sum_at(const Product& product, const std::vector<uint32_t>& cells, uint32_t columns, uint32_t lane,
              uint32_t column) {
  const uint32_t cell = cells[lane * columns + column];
  if (product.sums == 0) return cell >> 16 ? NAN : half_value(cell);
  if (product.sums == 1) return std::bit_cast<float>(cell);
  return static_cast<int32_t>(cell);
}

using Numbers = std::function<int(unsigned line, unsigned i)>;

// D of a block, from row `first` on, is the product; all other cells are unchanged.
void check_block(const Product& product, unsigned first, const std::vector<uint32_t>& before,
                 const std::vector<uint32_t>& after, uint32_t columns, const Numbers& a, const Numbers& b) {
  const unsigned rows = product.m / product.group;
  const SumLayout layout = sum_layout(rows, product.n, product.weights_stay || product.group == 2);
  std::vector<bool> is_sum(before.size());
  unsigned wrong = 0;
  for (unsigned row = 0; row < rows; ++row)
    for (unsigned column = 0; column < product.n; ++column) {
      int sum = 0;
      for (unsigned i = 0; i < product.k(); ++i)
        sum += a(first + row, i) * b(column, i);
      const auto [lane, place] = layout.place(row, column);
      is_sum[lane * columns + place] = true;
      wrong += sum_at(product, after, columns, lane, place) != sum;
    }
  CHECK(wrong == 0);
  unsigned changed = 0;
  for (size_t i = 0; i < before.size(); ++i)
    changed += !is_sum[i] && before[i] != after[i];
  CHECK(changed == 0);
}

constexpr uint32_t a_start = 1024, b_start = 20480, image_bytes = 40960;

struct Strides {
  uint32_t leading, stride;
};
Strides strides(bool mn_major, Swizzle swizzles) {
  const uint32_t line = 16 * line_chunks(swizzles);
  if (!mn_major) return {swizzles == Swizzle::none ? 128u : 16u, swizzles == Swizzle::none ? 256u + 16 : 8 * line};
  if (swizzles == Swizzle::none) return {2560, 128 + 16};
  return {line * 8 * 4, line * (swizzles == Swizzle::by_pairs ? 4 : 8)};
}

// `apart`: more bytes between the groups of eight lines of K-major matrices.
void check_product(const Product& product, Swizzle swizzles, unsigned seed, LaunchRequest request = {},
                   uint32_t apart = 0) {
  CAPTURE(product.a->name);
  CAPTURE(product.b->name);
  CAPTURE(product.m);
  CAPTURE(product.n);
  CAPTURE(static_cast<int>(swizzles));
  CAPTURE(product.a_major);
  CAPTURE(product.b_major);
  TensorKernel kernel;
  choose_target(kernel, product.a->kind);
  kernel.columns = 256;
  kernel.shared.resize(image_bytes);
  fill(kernel.shared, 0, b_start, *product.a, seed);
  fill(kernel.shared, b_start, image_bytes, *product.b, seed + 1);
  Strides of_a = strides(product.a_major, swizzles), of_b = strides(product.b_major, swizzles);
  of_a.stride += apart, of_b.stride += apart;
  kernel.parameters = {descriptor(a_start, of_a.leading, of_a.stride, swizzles),
                       descriptor(b_start, of_b.leading, of_b.stride, swizzles), product.instruction_descriptor()};
  kernel.operations = "  " + product.name() + " [%tm], %x0, %x1, %w2, %no;\n";
  const std::vector<uint32_t> before = random_cells(128 * kernel.columns, seed + 2);
  const PtxRun run = run_tensor_kernel(kernel, before, std::move(request));
  REQUIRE_MESSAGE(run.ok(), run.error << run.failure());
  const Layout a = canonical_layout(product.a_major, swizzles, product.a->bytes, of_a.leading, of_a.stride);
  const Layout b = canonical_layout(product.b_major, swizzles, product.b->bytes, of_b.leading, of_b.stride);
  check_block(
      product, 0, before, run.buffer<uint32_t>(2), kernel.columns,
      [&](unsigned row, unsigned i) { return value_at(*product.a, kernel.shared, a.address(a_start, row, i)); },
      [&](unsigned column, unsigned i) { return value_at(*product.b, kernel.shared, b.address(b_start, column, i)); });
}

struct Types {
  const char *a, *b;
  uint32_t sums;
};
constexpr Types all_types[] = {{"f16", "f16", 1},   {"f16", "f16", 0},   {"bf16", "bf16", 1},
                               {"tf32", "tf32", 1}, {"e4m3", "e5m2", 1}, {"e5m2", "e4m3", 0},
                               {"s8", "u8", 2},     {"u8", "s8", 2},     {"s1z4m11", "s1z4m11", 2}};

Product product_of(const Types& types, unsigned m, unsigned n) {
  Product product;
  product.a = &element(types.a);
  product.b = &element(types.b);
  product.sums = types.sums;
  product.m = m;
  product.n = n;
  return product;
}

TEST_CASE("products of every type, their operands K-major in every swizzle, of 128 and 64 rows") {
  unsigned seed = 1;
  for (const Types& types : all_types)
    for (const Swizzle swizzles : {Swizzle::none, Swizzle::b32, Swizzle::b64, Swizzle::b128})
      for (const unsigned m : {64u, 128u}) {
        ++seed;
        check_product(product_of(types, m, seed % 3 ? 32 : 48), swizzles, seed);
      }
}

TEST_CASE("operands may lie with their rows or columns contiguous") {
  unsigned seed = 100;
  for (const Types& types : {all_types[0], all_types[3], all_types[4], all_types[6]})
    for (const Swizzle swizzles : {Swizzle::none, Swizzle::b32, Swizzle::b64, Swizzle::b128, Swizzle::by_pairs})
      for (const bool a_major : {false, true}) {
        Product product = product_of(types, 128, 64);
        product.a_major = a_major || swizzles == Swizzle::by_pairs;
        product.b_major = true;
        check_product(product, swizzles, seed++);
      }
}

TEST_CASE("the widest and the narrowest products") {
  check_product(product_of(all_types[0], 128, 256), Swizzle::none, 200);
  check_product(product_of(all_types[0], 128, 16), Swizzle::none, 201);
  check_product(product_of(all_types[0], 64, 256), Swizzle::b64, 202);
  check_product(product_of(all_types[0], 64, 8), Swizzle::b64, 203);
  // Groups of eight lines at different places of the swizzle's pattern.
  for (const Swizzle swizzles : {Swizzle::b32, Swizzle::b64, Swizzle::b128})
    check_product(product_of(all_types[0], 64, 32), swizzles, 204, {}, 128);
}

TEST_CASE("weight-stationary products of 32, 64 and 128 rows") {
  unsigned seed = 300;
  for (const Types& types : {all_types[0], all_types[3], all_types[5], all_types[6], all_types[8]})
    for (const unsigned m : {32u, 64u, 128u})
      for (const unsigned n : {64u, 128u}) {
        Product product = product_of(types, m, n);
        product.weights_stay = true;
        check_product(product, Swizzle::none, seed++);
      }
}

// A product of two blocks, issued by the first one: each has half of the rows of A and half of the columns of B.
void check_pair(const Product& product, Swizzle swizzles, unsigned seed, bool late) {
  CAPTURE(product.a->name);
  CAPTURE(product.m);
  CAPTURE(product.n);
  TensorKernel kernel;
  kernel.group = kernel.blocks = 2;
  kernel.columns = 256;
  kernel.shared.resize(2 * image_bytes);
  for (unsigned block = 0; block < 2; ++block) {
    fill(kernel.shared, block * image_bytes, block * image_bytes + b_start, *product.a, seed + block);
    fill(kernel.shared, block * image_bytes + b_start, (block + 1) * image_bytes, *product.b, seed + block + 2);
  }
  const Strides of_a = strides(product.a_major, swizzles), of_b = strides(product.b_major, swizzles);
  kernel.parameters = {descriptor(a_start, of_a.leading, of_a.stride, swizzles),
                       descriptor(b_start, of_b.leading, of_b.stride, swizzles), product.instruction_descriptor()};
  kernel.before = "  tcgen05.fence::before_thread_sync;\n  barrier.cluster.arrive;\n  barrier.cluster.wait;\n";
  kernel.operations =
      "  setp.ne.u32 %more, %block, 0;\n  @%more bra ISSUED;\n  " + product.name() + " [%tm], %x0, %x1, %w2, %no;\n";
  kernel.commit = "  mov.u32 %v, bar;\n  tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster"
                  ".multicast::cluster.b64 [%v], 3;\n";
  const std::vector<uint32_t> before = random_cells(2 * 128 * kernel.columns, seed + 4);
  LaunchRequest request;
  request.late_copies = late;
  const PtxRun run = run_tensor_kernel(kernel, before, request);
  REQUIRE_MESSAGE(run.ok(), run.error << run.failure());
  const Layout a = canonical_layout(product.a_major, swizzles, product.a->bytes, of_a.leading, of_a.stride);
  const Layout b = canonical_layout(product.b_major, swizzles, product.b->bytes, of_b.leading, of_b.stride);
  const unsigned rows = product.m / 2, columns = product.n / 2;
  const std::vector<uint32_t> after = run.buffer<uint32_t>(2);
  for (unsigned block = 0; block < 2; ++block) {
    const auto of_block = [&](const std::vector<uint32_t>& cells) {
      return std::vector<uint32_t>(cells.begin() + block * 128 * kernel.columns,
                                   cells.begin() + (block + 1) * 128 * kernel.columns);
    };
    check_block(
        product, block * rows, of_block(before), of_block(after), kernel.columns,
        [&](unsigned row, unsigned i) {
          return value_at(*product.a, kernel.shared, row / rows * image_bytes + a.address(a_start, row % rows, i));
        },
        [&](unsigned column, unsigned i) {
          return value_at(*product.b, kernel.shared,
                          column / columns * image_bytes + b.address(b_start, column % columns, i));
        });
  }
}

TEST_CASE("products of a pair of blocks, of 256 and 128 rows") {
  unsigned seed = 500;
  for (const Types& types : {all_types[0], all_types[3], all_types[4], all_types[6]})
    for (const unsigned m : {128u, 256u})
      for (const bool late : {false, true}) {
        seed += 10;
        Product product = product_of(types, m, 64);
        product.group = 2;
        product.b_major = late;
        check_pair(product, Swizzle::b128, seed, late);
      }
}

// --- A in tensor memory, the scale of D, lanes that keep their values ---

TEST_CASE("A in tensor memory: as many elements in a column as there is room for") {
  unsigned seed = 700;
  for (const Types& types : {all_types[0], all_types[2], all_types[3], all_types[4], all_types[6]})
    for (const unsigned m : {64u, 128u})
      for (const unsigned first_lane : {0u, 16u}) {
        if (m == 128 && first_lane) continue;
        seed += 3;
        const Product product = product_of(types, m, 32);
        CAPTURE(product.a->name);
        CAPTURE(m);
        constexpr uint32_t a_column = 200;
        TensorKernel kernel;
        choose_target(kernel, product.a->kind);
        kernel.columns = 256;
        kernel.shared.resize(image_bytes);
        fill(kernel.shared, 0, image_bytes, *product.b, seed);
        std::vector<uint8_t> of_a(128 * 32); // 32 bytes a row
        fill(of_a, 0, of_a.size(), *product.a, seed + 1);
        std::vector<uint32_t> before = random_cells(128 * kernel.columns, seed + 2);
        for (uint32_t lane = 0; lane < 128; ++lane)
          std::memcpy(&before[lane * kernel.columns + a_column], &of_a[lane * 32], 32);
        kernel.parameters = {0, descriptor(b_start, 128, 256, Swizzle::none), product.instruction_descriptor(),
                             first_lane << 16 | a_column, first_lane << 16};
        kernel.operations = "  " + product.name() + " [%w4], [%w3], %x1, %w2, %no;\n";
        const PtxRun run = run_tensor_kernel(kernel, before);
        REQUIRE_MESSAGE(run.ok(), run.error << run.failure());
        const std::vector<uint32_t> after = run.buffer<uint32_t>(2);
        const Layout b = canonical_layout(false, Swizzle::none, product.b->bytes, 128, 256);
        const SumLayout layout = sum_layout(m, product.n, false);
        unsigned wrong = 0;
        for (unsigned row = 0; row < m; ++row)
          for (unsigned column = 0; column < product.n; ++column) {
            const auto [lane, place] = layout.place(row, column);
            int sum = 0;
            for (unsigned i = 0; i < product.k(); ++i)
              sum += value_at(*product.a, of_a, (first_lane + lane) * 32 + i * product.a->bytes) *
                     value_at(*product.b, kernel.shared, b.address(b_start, column, i));
            wrong += sum_at(product, after, kernel.columns, first_lane + lane, place) != sum;
          }
        CHECK(wrong == 0);
      }
}

TEST_CASE("D is scaled and added to, signs are changed, some lanes keep what they have") {
  for (const unsigned m : {64u, 128u})
    for (const unsigned shift : {0u, 1u, 15u}) {
      Product product = product_of(all_types[0], m, 16);
      product.more_bits = 1u << (shift ? 13 : 14); // negates A or B
      TensorKernel kernel;
      kernel.columns = 32;
      kernel.shared.resize(image_bytes);
      fill(kernel.shared, 0, image_bytes, *product.a, m + shift);
      const std::array<uint32_t, 4> disabled = {0x80000001, 0x0000fff0, 0, 0xffffffff};
      kernel.parameters = {descriptor(a_start, 128, 256, Swizzle::none),
                           descriptor(b_start, 128, 256, Swizzle::none),
                           product.instruction_descriptor(),
                           disabled[0],
                           disabled[1],
                           disabled[2],
                           disabled[3]};
      kernel.operations = "  " + product.name() + " [%tm], %x0, %x1, %w2, {%w3, %w4, %w5, %w6}, %yes" +
                          (shift ? ", " + std::to_string(shift) : "") + ";\n";
      std::vector<uint32_t> before(128 * kernel.columns);
      for (size_t i = 0; i < before.size(); ++i)
        before[i] = std::bit_cast<uint32_t>(static_cast<float>(i % 97) * 32768.0f);
      const PtxRun run = run_tensor_kernel(kernel, before);
      REQUIRE_MESSAGE(run.ok(), run.error << run.failure());
      const std::vector<uint32_t> after = run.buffer<uint32_t>(2);
      const Layout layout = canonical_layout(false, Swizzle::none, 2, 128, 256);
      const SumLayout sums = sum_layout(m, product.n, false);
      unsigned wrong = 0;
      for (unsigned row = 0; row < m; ++row)
        for (unsigned column = 0; column < product.n; ++column) {
          const auto [lane, place] = sums.place(row, column);
          const size_t at = lane * kernel.columns + place;
          int sum = 0;
          for (unsigned i = 0; i < 16; ++i)
            sum -= value_at(*product.a, kernel.shared, layout.address(a_start, row, i)) *
                   value_at(*product.b, kernel.shared, layout.address(b_start, column, i));
          const float expected =
              static_cast<float>(at % 97) * std::ldexp(32768.0f, -static_cast<int>(shift)) + static_cast<float>(sum);
          wrong += disabled[lane / 32] >> lane % 32 & 1 ? after[at] != before[at]
                                                        : std::bit_cast<float>(after[at]) != expected;
        }
      CHECK(wrong == 0);
    }
}

TEST_CASE("whole numbers wrap around, or saturate") {
  for (const bool saturates : {false, true}) {
    Product product = product_of({"s8", "s8", 2}, 128, 16);
    product.more_bits = saturates ? 1u << 3 : 0;
    TensorKernel kernel;
    kernel.columns = 32;
    kernel.shared.assign(image_bytes, 127);
    kernel.parameters = {descriptor(a_start, 128, 256, Swizzle::none), descriptor(b_start, 128, 256, Swizzle::none),
                         product.instruction_descriptor()};
    kernel.operations = "  " + product.name() + " [%tm], %x0, %x1, %w2, %yes;\n";
    const PtxRun run = run_tensor_kernel(kernel, std::vector<uint32_t>(128 * 32, 0x7fffff00));
    REQUIRE_MESSAGE(run.ok(), run.error << run.failure());
    const uint32_t expected = saturates ? 0x7fffffffu : 0x7fffff00u + 32 * 127 * 127;
    const std::vector<uint32_t> after = run.buffer<uint32_t>(2);
    for (uint32_t lane = 0; lane < 128; ++lane)
      CHECK(after[lane * 32 + lane % 16] == expected);
  }
}

TEST_CASE("whole numbers of 11 bits: signs are changed, D is added to and wraps around") {
  const Product product = product_of(all_types[8], 128, 16);
  TensorKernel kernel;
  choose_target(kernel, product.a->kind);
  kernel.columns = 32;
  for (size_t i = 0; i < image_bytes; i += 2) { // 2047
    kernel.shared.push_back(0xff);
    kernel.shared.push_back(0x07);
  }
  for (const bool negated : {false, true}) {
    kernel.parameters = {descriptor(a_start, 128, 256, Swizzle::none), descriptor(b_start, 128, 256, Swizzle::none),
                         product.instruction_descriptor() | uint32_t(negated) << 13};
    kernel.operations = "  " + product.name() + " [%tm], %x0, %x1, %w2, %yes;\n";
    const PtxRun run = run_tensor_kernel(kernel, std::vector<uint32_t>(128 * 32, 0x7ffffff0));
    REQUIRE_MESSAGE(run.ok(), run.error << run.failure());
    const uint32_t sum = 16 * 2047 * 2047;
    CHECK(run.buffer<uint32_t>(2)[5 * 32 + 3] == (negated ? 0x7ffffff0u - sum : 0x7ffffff0u + sum));
  }
  kernel.parameters[2] |= 1 << 16;
  CHECK(
      run_tensor_kernel(kernel, std::vector<uint32_t>(128 * 32)).failure().find("transposed matrices of kind::ti16") ==
      0);
}

TEST_CASE("late products are the same to a kernel that waits for them") {
  for (const Types& types : {all_types[0], all_types[7]}) {
    LaunchRequest request;
    request.late_copies = true;
    check_product(product_of(types, 128, 64), Swizzle::b128, 400, request);
  }
}

} // namespace
} // namespace ptxrewrite::emulator::tensor_memory_test::product_test
