// mma.sp, block-scaled mma and elements of 4 and 6 bits, against products of whole numbers written element by element.
// The bits of metadata are interpreted as in the figures of PTX ISA 9.7.14.6.2: chunk by chunk.
#include "tests/unit/emulator/run_ptx.h"

#include <array>
#include <bit>
#include <random>

namespace ptxrewrite::emulator::matrix_sparse_test {
namespace {

// Codes in their register format; `bits` includes padding.
struct Element {
  const char* name;
  unsigned bits;
  std::array<uint32_t, 4> codes;
  std::array<int, 4> values;
};

constexpr Element f16 = {"f16", 16, {0, 0x3c00, 0xc000, 0x4200}, {0, 1, -2, 3}};
constexpr Element bf16 = {"bf16", 16, {0, 0x3f80, 0xc000, 0x4040}, {0, 1, -2, 3}};
constexpr Element tf32 = {"tf32", 32, {0, 0x3f800fff, 0xc0000000, 0x40401234}, {0, 1, -2, 3}};
constexpr Element e4m3 = {"e4m3", 8, {0, 0x38, 0xc0, 0x44}, {0, 1, -2, 3}};
constexpr Element e5m2 = {"e5m2", 8, {0, 0x3c, 0xc0, 0x42}, {0, 1, -2, 3}};
constexpr Element e3m2 = {"e3m2", 8, {0, 12, 48, 18}, {0, 1, -2, 3}};
constexpr Element e2m3 = {"e2m3", 8, {0, 8, 48, 20}, {0, 1, -2, 3}};
constexpr Element e2m1 = {"e2m1", 8, {0, 2 << 2, 12 << 2, 5 << 2}, {0, 1, -2, 3}};
constexpr Element packed_e2m1 = {"e2m1", 4, {0, 2, 12, 5}, {0, 1, -2, 3}};
constexpr Element s8 = {"s8", 8, {0, 1, 0xfe, 0x83}, {0, 1, -2, -125}};
constexpr Element u8 = {"u8", 8, {0, 1, 0xfe, 0x83}, {0, 1, 254, 131}};
constexpr Element s4 = {"s4", 4, {0, 1, 14, 8}, {0, 1, -2, -8}};
constexpr Element u4 = {"u4", 4, {0, 1, 14, 8}, {0, 1, 14, 8}};

// Registers of the 32 lanes: A, B, C, metadata, scales of A, scales of B.
constexpr unsigned row_of_registers = 15;
constexpr unsigned first_a = 0, first_b = 4, first_c = 8, metadata = 12, scale_a = 13, scale_b = 14;
struct Lanes {
  std::vector<uint32_t> registers = std::vector<uint32_t>(32 * row_of_registers);
  uint32_t& at(unsigned lane, unsigned reg) { return registers[lane * row_of_registers + reg]; }
};

struct Product {
  std::string words; // after "mma." up to the shape's types: "sp.sync.aligned.m16n8k32.row.col"
  std::string d = "f32";
  Element a, b;
  unsigned k = 32;
  bool sparse = true;
  unsigned selector = 0;
  unsigned scales = 0; // of a row
  const char* scale_type = "ue8m0";
  unsigned byte_a = 0, thread_a = 0, byte_b = 0, thread_b = 0;
};

std::string list(const char* name, unsigned first, unsigned count) {
  std::string text = "{";
  for (unsigned i = 0; i < count; ++i)
    text += (i ? ", " : "") + std::string(name) + std::to_string(first + i);
  return text + "}";
}

std::vector<uint32_t> run_product(const Product& product, const Lanes& lanes) {
  const unsigned a_registers = product.k * product.a.bits / (product.sparse ? 128 : 64);
  const unsigned b_registers = product.k * product.b.bits / 128;
  std::string text = ".version 8.8\n.target sm_120a\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 "
                     "out)\n{\n  .reg .b32 %r<15>, %d<4>, %t;\n  .reg .b64 %p, %o;\n  mov.u32 %t, %tid.x;\n  "
                     "ld.param.u64 %p, [in];\n  mul.wide.u32 %o, %t, 60;\n  add.u64 %p, %p, %o;\n";
  for (unsigned i = 0; i < row_of_registers; ++i)
    text += "  ld.global.u32 %r" + std::to_string(i) + ", [%p + " + std::to_string(4 * i) + "];\n";
  text += "  mma." + product.words + "." + product.d + "." + product.a.name + "." + product.b.name + "." + product.d;
  if (product.scales) text += std::string(".") + product.scale_type;
  text += " " + list("%d", 0, 4) + ", " + list("%r", first_a, a_registers) + ", " + list("%r", first_b, b_registers) +
          ", " + list("%r", first_c, 4);
  if (product.sparse) text += ", %r12, " + std::to_string(product.selector);
  if (product.scales)
    text += ", %r13, {" + std::to_string(product.byte_a) + ", " + std::to_string(product.thread_a) + "}, %r14, {" +
            std::to_string(product.byte_b) + ", " + std::to_string(product.thread_b) + "}";
  text += ";\n  ld.param.u64 %p, [out];\n  shl.b64 %o, %o, 0;\n  mul.wide.u32 %o, %t, 16;\n  add.u64 %p, %p, %o;\n  "
          "st.global.v4.u32 [%p], " +
          list("%d", 0, 4) + ";\n  ret;\n}\n";
  PtxRun run = run_ptx(text, {.kernel = "k", .block = {32}}, {buffer_of(lanes.registers), zeros<uint32_t>(128)});
  REQUIRE_MESSAGE(run.ok(), run.error << run.failure());
  return run.buffer<uint32_t>(1);
}

void put(uint32_t& reg, unsigned at, const Element& element, unsigned which) {
  reg |= element.codes[which] << (at * element.bits);
}

// A random matrix, as numbers and as registers.
struct Case {
  Lanes lanes;
  std::vector<int> a, b; // 16 rows of k; 8 columns of k
  std::vector<int> c = std::vector<int>(128);
};

// The columns of a row of A described by each lane's 16 bits of metadata, and the columns per chunk.
struct Metadata {
  unsigned columns_of_lane, columns_of_chunk;
};
Metadata metadata_of(const Element& a) {
  if (a.bits == 32) return {8, 2};
  return a.bits == 4 ? Metadata{32, 8} : Metadata{16, 4};
}

// Chooses the stored columns of a chunk, in order, with its four bits of metadata.
std::pair<std::vector<unsigned>, uint32_t> choose(const Element& a, std::mt19937& random) {
  if (a.bits == 32) return random() % 2 ? std::pair{std::vector{1u}, 0b1110u} : std::pair{std::vector{0u}, 0b0100u};
  const unsigned first = random() % 3, second = first + 1 + random() % (3 - first);
  const uint32_t bits = first | second << 2;
  if (a.bits == 4) return {{2 * first, 2 * first + 1, 2 * second, 2 * second + 1}, bits};
  return {{first, second}, bits};
}

void store_a(const Product& product, Case& made, unsigned row, unsigned column, unsigned which) {
  const unsigned each = 32 / product.a.bits; // elements of a register
  const unsigned block = column / (4 * each);
  const unsigned lane = row % 8 * 4 + column % (4 * each) / each;
  put(made.lanes.at(lane, first_a + 2 * block + row / 8), column % each, product.a, which);
}

Case make_case(const Product& product, unsigned seed) {
  std::mt19937 random(seed);
  Case made;
  const unsigned k = product.k;
  made.a.resize(16 * k);
  made.b.resize(8 * k);
  const Metadata meta = metadata_of(product.a);
  const unsigned lanes = k / meta.columns_of_lane;
  for (unsigned row = 0; row < 16; ++row) {
    unsigned stored = 0;
    for (unsigned chunk = 0; product.sparse && chunk < k / meta.columns_of_chunk; ++chunk) {
      const auto [columns, bits] = choose(product.a, random);
      const unsigned column = chunk * meta.columns_of_chunk;
      const unsigned lane = row % 8 * 4 + product.selector * lanes + column / meta.columns_of_lane;
      const unsigned at = column % meta.columns_of_lane / meta.columns_of_chunk * 4 + row / 8 * 16;
      made.lanes.at(lane, metadata) |= bits << at;
      for (unsigned inside : columns) {
        const unsigned which = random() % 4;
        made.a[row * k + column + inside] = product.a.values[which];
        store_a(product, made, row, stored++, which);
      }
    }
    for (unsigned column = 0; !product.sparse && column < k; ++column) {
      const unsigned which = random() % 4;
      made.a[row * k + column] = product.a.values[which];
      store_a(product, made, row, column, which);
    }
  }
  for (unsigned column = 0; column < 8; ++column)
    for (unsigned i = 0; i < k; ++i) {
      const unsigned which = random() % 4, each = 32 / product.b.bits;
      made.b[column * k + i] = product.b.values[which];
      put(made.lanes.at(column * 4 + i % (4 * each) / each, first_b + i / (4 * each)), i % each, product.b, which);
    }
  for (unsigned lane = 0; lane < 32; ++lane)
    for (unsigned i = 0; i < 4; ++i) {
      const int value = static_cast<int>(random() % 100) - 50;
      made.c[(lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2] = value;
      made.lanes.at(lane, first_c + i) =
          product.d == "s32" ? static_cast<uint32_t>(value) : std::bit_cast<uint32_t>(static_cast<float>(value));
    }
  return made;
}

float result(const Product& product, const std::vector<uint32_t>& d, unsigned row, unsigned column) {
  const uint32_t word = d[(row % 8 * 4 + column / 2) * 4 + row / 8 * 2 + column % 2];
  return product.d == "s32" ? static_cast<float>(static_cast<int32_t>(word)) : std::bit_cast<float>(word);
}

// factor(row, column, k): scale of a product.
template <class Factor> void check(const Product& product, const Case& made, Factor&& factor) {
  CAPTURE(product.words);
  CAPTURE(product.a.name);
  CAPTURE(product.b.name);
  CAPTURE(product.selector);
  const std::vector<uint32_t> d = run_product(product, made.lanes);
  unsigned wrong = 0;
  for (unsigned row = 0; row < 16; ++row)
    for (unsigned column = 0; column < 8; ++column) {
      double sum = made.c[row * 8 + column];
      for (unsigned i = 0; i < product.k; ++i)
        sum += made.a[row * product.k + i] * made.b[column * product.k + i] * factor(row, column, i);
      if (sum != static_cast<double>(result(product, d, row, column))) ++wrong;
    }
  CHECK(wrong == 0);
}
void check(const Product& product, unsigned seed) {
  check(product, make_case(product, seed), [](unsigned, unsigned, unsigned) { return 1.0; });
}

TEST_CASE("mma.sp of every type and shape, its metadata in any lanes that the selector names") {
  struct Row {
    const char* d;
    Element a, b;
    unsigned k, selectors;
  };
  const Row rows[] = {{"f32", f16, f16, 16, 4},   {"f32", f16, f16, 32, 2},  {"f32", bf16, bf16, 16, 4},
                      {"f32", bf16, bf16, 32, 2}, {"f32", tf32, tf32, 8, 4}, {"f32", tf32, tf32, 16, 2},
                      {"s32", s8, u8, 32, 2},     {"s32", u8, s8, 64, 1},    {"s32", s8, s8, 64, 1},
                      {"s32", s4, u4, 64, 2},     {"s32", u4, u4, 128, 1},   {"f32", e4m3, e5m2, 64, 1}};
  unsigned seed = 1;
  for (const Row& row : rows)
    for (const char* sp : {"sp", "sp::ordered_metadata"})
      for (unsigned selector = 0; selector < row.selectors; ++selector)
        check({.words = std::string(sp) + ".sync.aligned.m16n8k" + std::to_string(row.k) + ".row.col",
               .d = row.d,
               .a = row.a,
               .b = row.b,
               .k = row.k,
               .selector = selector},
              seed++);
}

TEST_CASE("what is not stored of a sparse matrix is not multiplied, by an infinity either") {
  Product product{.words = "sp.sync.aligned.m16n8k16.row.col", .a = f16, .b = f16, .k = 16};
  Lanes lanes;
  for (unsigned lane = 0; lane < 32; ++lane) {
    lanes.at(lane, metadata) = 0x44444444; // columns 0 and 1 of each four
    lanes.at(lane, first_a) = lanes.at(lane, first_a + 1) = 0x3c003c00;
    // Columns 0 and 1 of each four are held by lanes 0 and 2 of each four.
    for (unsigned i = 0; i < 2; ++i)
      lanes.at(lane, first_b + i) = lane % 2 ? 0x7c007c00 : 0x3c003c00;
  }
  for (uint32_t bits : run_product(product, lanes))
    CHECK(std::bit_cast<float>(bits) == 8.0f);
}

TEST_CASE("floats of 4, 6 and 8 bits, each in a byte") {
  unsigned seed = 300;
  for (const Element& a : {e4m3, e5m2, e3m2, e2m3, e2m1})
    for (const Element& b : {e4m3, e5m2, e3m2, e2m3, e2m1}) {
      check({.words = "sync.aligned.m16n8k32.row.col.kind::f8f6f4", .a = a, .b = b, .sparse = false}, seed++);
      check({.words = "sp::ordered_metadata.sync.aligned.m16n8k64.row.col.kind::f8f6f4", .a = a, .b = b, .k = 64},
            seed++);
    }
}

// Scales in all lanes and bytes; each depends on its lane, byte and side.
struct ScaleCodes {
  const char* type;
  std::array<uint8_t, 4> codes;
  std::array<double, 4> values;
};
constexpr ScaleCodes ue8m0 = {"ue8m0", {127, 128, 126, 130}, {1, 2, 0.5, 8}};
constexpr ScaleCodes ue4m3 = {"ue4m3", {0x38, 0x40, 0x30, 0x44}, {1, 2, 0.5, 3}};

void check_scaled(Product product, const ScaleCodes& codes, unsigned seed) {
  product.scale_type = codes.type;
  Case made = make_case(product, seed);
  std::mt19937 random(seed);
  std::array<std::array<unsigned, 4>, 32> of_a{}, of_b{};
  for (unsigned lane = 0; lane < 32; ++lane)
    for (unsigned byte = 0; byte < 4; ++byte) {
      of_a[lane][byte] = random() % 4;
      of_b[lane][byte] = random() % 4;
      made.lanes.at(lane, scale_a) |= uint32_t{codes.codes[of_a[lane][byte]]} << (8 * byte);
      made.lanes.at(lane, scale_b) |= uint32_t{codes.codes[of_b[lane][byte]]} << (8 * byte);
    }
  CAPTURE(product.byte_a);
  CAPTURE(product.thread_a);
  CAPTURE(product.byte_b);
  CAPTURE(product.thread_b);
  const unsigned block = product.k / product.scales;
  check(product, made, [&](unsigned row, unsigned column, unsigned i) {
    const unsigned a_lane = row % 8 * 4 + product.thread_a * 2 + row / 8, b_lane = column * 4 + product.thread_b;
    return codes.values[of_a[a_lane][product.byte_a + i / block]] *
           codes.values[of_b[b_lane][product.byte_b + i / block]];
  });
}

TEST_CASE("block-scaled products: one, two or four scales of a row, in the bytes and lanes that are named") {
  unsigned seed = 500;
  for (const unsigned thread_a : {0u, 1u})
    for (const unsigned thread_b : {0u, 1u, 2u, 3u}) {
      for (const unsigned byte : {0u, 1u, 2u, 3u})
        for (const bool sparse : {false, true})
          check_scaled({.words = std::string(sparse ? "sp::ordered_metadata." : "") + "sync.aligned.m16n8k" +
                                 (sparse ? "64" : "32") + ".row.col.kind::mxf8f6f4.block_scale.scale_vec::1X",
                        .a = e2m3,
                        .b = e2m1,
                        .k = sparse ? 64u : 32u,
                        .sparse = sparse,
                        .scales = 1,
                        .byte_a = byte,
                        .thread_a = thread_a,
                        .byte_b = 3 - byte,
                        .thread_b = thread_b},
                       ue8m0, seed++);
      for (const unsigned byte : {0u, 2u})
        for (const bool sparse : {false, true})
          check_scaled({.words = std::string(sparse ? "sp::ordered_metadata." : "") + "sync.aligned.m16n8k" +
                                 (sparse ? "128" : "64") + ".row.col.kind::mxf4.block_scale.scale_vec::2X",
                        .a = packed_e2m1,
                        .b = packed_e2m1,
                        .k = sparse ? 128u : 64u,
                        .sparse = sparse,
                        .scales = 2,
                        .byte_a = byte,
                        .thread_a = thread_a,
                        .byte_b = 2 - byte,
                        .thread_b = thread_b},
                       ue8m0, seed++);
      check_scaled({.words = "sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X",
                    .a = packed_e2m1,
                    .b = packed_e2m1,
                    .k = 64,
                    .sparse = false,
                    .scales = 4,
                    .thread_a = thread_a,
                    .thread_b = thread_b},
                   ue4m3, seed++);
    }
}

TEST_CASE("scales beyond the range of f32 are exact, and a scale that is no number makes the sum none") {
  Product product{.words = "sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X",
                  .a = e4m3,
                  .b = e4m3,
                  .sparse = false,
                  .scales = 1};
  Lanes lanes;
  for (unsigned lane = 0; lane < 32; ++lane) {
    lanes.at(lane, first_a) = lanes.at(lane, first_a + 1) = lane % 4 ? 0 : 0x7e; // 448 in column 0
    lanes.at(lane, first_b) = lane % 4 ? 0 : 0x7e;
    lanes.at(lane, scale_a) = 254; // 2^127
    lanes.at(lane, scale_b) = 0;   // 2^-127
  }
  for (uint32_t bits : run_product(product, lanes))
    CHECK(std::bit_cast<float>(bits) == 448.0f * 448.0f);
  // 1.5 * 2^-149 + 2^-149, rounded once: to 2 * 2^-149, the even one.
  for (unsigned lane = 0; lane < 32; ++lane) {
    lanes.at(lane, first_a) = lanes.at(lane, first_a + 1) = lane % 4 ? 0 : 0x3c;
    lanes.at(lane, first_b) = lane % 4 ? 0 : 0x38;
    lanes.at(lane, scale_a) = 0;   // 2^-127
    lanes.at(lane, scale_b) = 105; // 2^-22
    for (unsigned i = 0; i < 4; ++i)
      lanes.at(lane, first_c + i) = 1;
  }
  for (uint32_t bits : run_product(product, lanes))
    CHECK(bits == 2);
  for (unsigned lane = 0; lane < 32; ++lane)
    lanes.at(lane, scale_a) = 255;
  for (uint32_t bits : run_product(product, lanes))
    CHECK(bits == 0x7fffffff);
}

} // namespace
} // namespace ptxrewrite::emulator::matrix_sparse_test
