// Matrix instructions against products computed element by element. The layouts are those of the manual (PTX ISA
// 9.7.14.5): the row and the column of the i-th element of the lane at position t of group g.
#include "tests/unit/emulator/run_ptx.h"

#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <random>

namespace ptxrewrite::emulator::matrix_test {
namespace {

using Where = std::function<int(int g, int t, int i)>;

struct Layout {
  Where row, column;
  int elements; // of each lane
};

struct Numbers {
  int bits;
  std::function<uint64_t(double)> encode;
  std::function<double(uint64_t)> decode;
};

Numbers floats(int exponent_bits, int fraction_bits, int bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1, width = 1 + exponent_bits + fraction_bits;
  const int unused = bits - width; // of tf32: the low bits of the fraction
  return {bits,
          [=](double value) -> uint64_t {
            if (value == 0) return 0;
            int exponent = 0;
            const double fraction = std::frexp(std::fabs(value), &exponent) * 2 - 1;
            const auto sign = static_cast<uint64_t>(value < 0) << (width - 1);
            return (sign | static_cast<uint64_t>(exponent - 1 + bias) << fraction_bits |
                    static_cast<uint64_t>(std::ldexp(fraction, fraction_bits)))
                   << unused;
          },
          [=](uint64_t code) {
            code >>= unused;
            const auto exponent = static_cast<int>(code >> fraction_bits) & ((1 << exponent_bits) - 1);
            const auto fraction = static_cast<double>(code & ((uint64_t(1) << fraction_bits) - 1));
            if (exponent == 0 && fraction == 0) return 0.0;
            return std::ldexp(1 + std::ldexp(fraction, -fraction_bits), exponent - bias) *
                   (code >> (width - 1) & 1 ? -1 : 1);
          }};
}
Numbers integers(int bits, bool is_signed) {
  const uint64_t mask = bits == 64 ? ~uint64_t(0) : (uint64_t(1) << bits) - 1;
  return {bits, [=](double value) { return static_cast<uint64_t>(static_cast<int64_t>(value)) & mask; },
          [=](uint64_t code) {
            const auto value = static_cast<double>(code);
            return is_signed && code >> (bits - 1) & 1 ? value - std::ldexp(1, bits) : value;
          }};
}

const Numbers f16 = floats(5, 10, 16), bf16 = floats(8, 7, 16), tf32 = floats(8, 10, 32), f32 = floats(8, 23, 32),
              f64 = floats(11, 52, 64), e4m3 = floats(4, 3, 8), e5m2 = floats(5, 2, 8), s8 = integers(8, true),
              u8 = integers(8, false), s4 = integers(4, true), u4 = integers(4, false), b1 = integers(1, false),
              s32 = integers(32, true);

struct Case {
  std::string words; // after mma.sync.aligned.
  int m, n, k;
  Numbers a, b, c, d;
  Layout a_layout, b_layout, c_layout;
};

using Matrix = std::vector<std::vector<double>>;

Matrix random_matrix(int rows, int columns, const Numbers& numbers, std::mt19937& random) {
  Matrix matrix(static_cast<size_t>(rows), std::vector<double>(static_cast<size_t>(columns)));
  for (auto& row : matrix)
    for (double& element : row) {
      if (numbers.bits <= 8 && numbers.decode(1) == 1) // integers: all values
        element = numbers.decode(random() & ((1u << numbers.bits) - 1));
      else
        element = static_cast<double>(random() % 17) - 8;
    }
  return matrix;
}

// Words of a register file, lane after lane.
std::vector<uint64_t> spread(const Matrix& matrix, const Layout& layout, const Numbers& numbers, int register_bits) {
  const int per_register = register_bits / numbers.bits, registers = layout.elements / per_register;
  std::vector<uint64_t> words(static_cast<size_t>(32 * registers));
  for (int lane = 0; lane < 32; ++lane)
    for (int i = 0; i < layout.elements; ++i) {
      const int row = layout.row(lane / 4, lane % 4, i), column = layout.column(lane / 4, lane % 4, i);
      words[static_cast<size_t>(lane * registers + i / per_register)] |=
          numbers.encode(matrix[static_cast<size_t>(row)][static_cast<size_t>(column)])
          << (i % per_register * numbers.bits);
    }
  return words;
}

Buffer as_buffer(const std::vector<uint64_t>& words, int register_bits) {
  Buffer buffer{std::vector<std::byte>(words.size() * static_cast<size_t>(register_bits / 8))};
  for (size_t i = 0; i < words.size(); ++i)
    std::memcpy(buffer.bytes.data() + i * static_cast<size_t>(register_bits / 8), &words[i],
                static_cast<size_t>(register_bits / 8));
  return buffer;
}

std::string register_list(char name, int count) {
  std::string text = "{";
  for (int i = 0; i < count; ++i)
    text += (i ? ", %" : "%") + std::string(1, name) + std::to_string(i);
  return text + "}";
}

// A kernel whose lanes load registers a, b, c, execute `instruction` and store the registers d.
std::string mma_kernel(const std::string& instruction, const int (&registers)[4], int bits) {
  const std::string type = ".b" + std::to_string(bits), bytes = std::to_string(bits / 8);
  std::string body = "  .reg " + type +
                     " %a<9>, %b<9>, %c<9>, %d<9>;\n  .reg .b64 %p, %o;\n  .reg .b32 %t, %s;\n"
                     "  mov.u32 %t, %laneid;\n";
  auto place = [&](char name, int count) {
    body += "  mul.lo.u32 %s, %t, " + std::to_string(count * bits / 8) + ";\n  cvt.u64.u32 %o, %s;\n" +
            "  ld.param.u64 %p, [p" + name + "];\n  add.u64 %p, %p, %o;\n";
  };
  for (int which = 0; which < 3; ++which) {
    const char name = "abc"[which];
    place(name, registers[which]);
    for (int i = 0; i < registers[which]; ++i)
      body += "  ld.global" + type + " %" + name + std::to_string(i) + ", [%p+" + std::to_string(i * bits / 8) + "];\n";
  }
  body += "  " + instruction + " " + register_list('d', registers[3]) + ", " + register_list('a', registers[0]) + ", " +
          register_list('b', registers[1]) + ", " + register_list('c', registers[2]) + ";\n";
  place('d', registers[3]);
  for (int i = 0; i < registers[3]; ++i)
    body += "  st.global" + type + " [%p+" + std::to_string(i * bits / 8) + "], %d" + std::to_string(i) + ";\n";
  return kernel("k", ".param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u64 pd", body + "  ret;");
}

void check_case(const Case& test, bool and_popc = false, bool xor_popc = false) {
  CAPTURE(test.words);
  std::mt19937 random(7);
  const int bits = test.a.bits == 64 ? 64 : 32;
  const Matrix a = random_matrix(test.m, test.k, test.a, random), b = random_matrix(test.k, test.n, test.b, random);
  const Matrix c = random_matrix(test.m, test.n, test.c, random);
  const Layout d_layout = test.c_layout;
  auto count = [&](const Layout& layout, const Numbers& numbers) { return layout.elements * numbers.bits / bits; };
  const int registers[4] = {count(test.a_layout, test.a), count(test.b_layout, test.b), count(test.c_layout, test.c),
                            count(d_layout, test.d)};
  PtxRun run = run_ptx(mma_kernel("mma.sync.aligned." + test.words, registers, bits), {.kernel = "k", .block = {32}},
                       {as_buffer(spread(a, test.a_layout, test.a, bits), bits),
                        as_buffer(spread(b, test.b_layout, test.b, bits), bits),
                        as_buffer(spread(c, test.c_layout, test.c, bits), bits),
                        as_buffer(std::vector<uint64_t>(static_cast<size_t>(32 * registers[3])), bits)});
  REQUIRE_MESSAGE(run.ok(), run.error << run.failure());
  Matrix expected = c;
  for (size_t i = 0; i < c.size(); ++i)
    for (size_t j = 0; j < c[i].size(); ++j)
      for (size_t x = 0; x < a[i].size(); ++x) {
        const double left = a[i][x], right = b[x][j];
        expected[i][j] += and_popc ? std::min(left, right) : xor_popc ? (left != right ? 1 : 0) : left * right;
      }
  CHECK(run.buffers[3] == as_buffer(spread(expected, d_layout, test.d, bits), bits).bytes);
}

// The layouts by the manual's cases.
Layout accumulator(int rows) {
  return {[](int g, int, int i) { return i < 2 ? g : g + 8; }, [](int, int t, int i) { return t * 2 + (i & 1); },
          rows == 16 ? 4 : 2};
}
bool between(int low, int i, int past) {
  return low <= i && i < past;
}

TEST_CASE("mma of f16 and bf16") {
  const Layout a8{[](int g, int, int i) { return i < 2 ? g : g + 8; },
                  [](int, int t, int i) { return t * 2 + (i & 1); }, 4};
  const Layout b8{[](int, int t, int i) { return t * 2 + i; }, [](int g, int, int) { return g; }, 2};
  const Layout a16{[](int g, int, int i) { return between(0, i, 2) || between(4, i, 6) ? g : g + 8; },
                   [](int, int t, int i) { return t * 2 + (i & 1) + (i < 4 ? 0 : 8); }, 8};
  const Layout b16{[](int, int t, int i) { return t * 2 + (i & 1) + (i < 2 ? 0 : 8); },
                   [](int g, int, int) { return g; }, 4};
  const Layout c = accumulator(16);
  check_case({"m16n8k8.row.col.f32.f16.f16.f32", 16, 8, 8, f16, f16, f32, f32, a8, b8, c});
  check_case({"m16n8k8.row.col.f16.f16.f16.f16", 16, 8, 8, f16, f16, f16, f16, a8, b8, c});
  check_case({"m16n8k16.row.col.f32.f16.f16.f32", 16, 8, 16, f16, f16, f32, f32, a16, b16, c});
  check_case({"m16n8k16.row.col.f16.f16.f16.f16", 16, 8, 16, f16, f16, f16, f16, a16, b16, c});
  check_case({"m16n8k8.row.col.f32.bf16.bf16.f32", 16, 8, 8, bf16, bf16, f32, f32, a8, b8, c});
  check_case({"m16n8k16.row.col.f32.bf16.bf16.f32", 16, 8, 16, bf16, bf16, f32, f32, a16, b16, c});
}

TEST_CASE("mma of tf32 and f64") {
  const Where group = [](int g, int, int) { return g; }, place = [](int, int t, int) { return t; };
  const Layout c = accumulator(16);
  const Layout a4{[](int g, int, int i) { return i == 0 ? g : g + 8; }, place, 2}, b4{place, group, 1};
  const Layout a8{[](int g, int, int i) { return i == 0 || i == 2 ? g : g + 8; },
                  [](int, int t, int i) { return i < 2 ? t : t + 4; }, 4};
  const Layout b8{[](int, int t, int i) { return i == 0 ? t : t + 4; }, group, 2};
  check_case({"m16n8k4.row.col.f32.tf32.tf32.f32", 16, 8, 4, tf32, tf32, f32, f32, a4, b4, c});
  check_case({"m16n8k8.row.col.f32.tf32.tf32.f32", 16, 8, 8, tf32, tf32, f32, f32, a8, b8, c});
  check_case({"m16n8k4.row.col.f64.f64.f64.f64", 16, 8, 4, f64, f64, f64, f64, a4, b4, c});
  check_case({"m16n8k8.row.col.f64.f64.f64.f64", 16, 8, 8, f64, f64, f64, f64, a8, b8, c});
  const Layout a16{[](int g, int, int i) { return i % 2 == 0 ? g : g + 8; },
                   [](int, int t, int i) { return i % 2 == 0 ? i * 2 + t : i * 2 - 2 + t; }, 8};
  const Layout b16{[](int, int t, int i) { return t + 4 * i; }, group, 4};
  check_case({"m16n8k16.row.col.f64.f64.f64.f64", 16, 8, 16, f64, f64, f64, f64, a16, b16, c});
  check_case({"m8n8k4.row.col.f64.f64.f64.f64",
              8,
              8,
              4,
              f64,
              f64,
              f64,
              f64,
              {group, place, 1},
              {place, group, 1},
              accumulator(8)});
}

TEST_CASE("sums of f64 are rounded as the instruction says") {
  constexpr double unit = 0x1p-52, up = 1 + unit;
  struct Rounding {
    std::string word;
    double positive, negative; // of 1 and of -1, three quarters of a unit in the last place further from zero
  };
  for (const Rounding& rounding :
       {Rounding{"", up, -up}, {".rn", up, -up}, {".rz", 1, -1}, {".rm", 1, -up}, {".rp", up, -1}})
    for (const bool is_long : {false, true})
      for (const double sign : {1.0, -1.0}) {
        CAPTURE(rounding.word);
        CAPTURE(is_long);
        CAPTURE(sign);
        const int registers[4] = {is_long ? 8 : 1, is_long ? 4 : 1, is_long ? 4 : 2, is_long ? 4 : 2};
        const auto words = [&](int which, const auto& number) {
          std::vector<uint64_t> all;
          for (int lane = 0; lane < 32; ++lane)
            for (int i = 0; i < registers[which]; ++i)
              all.push_back(std::bit_cast<uint64_t>(number(lane % 4, i)));
          return as_buffer(all, 64);
        };
        // Elements at the first place along k alone: of A in one or two registers.
        const int rows_of_lane = is_long ? 2 : 1;
        PtxRun run = run_ptx(mma_kernel("mma.sync.aligned." + std::string(is_long ? "m16n8k16" : "m8n8k4") +
                                            ".row.col" + rounding.word + ".f64.f64.f64.f64",
                                        registers, 64),
                             {.kernel = "k", .block = {32}},
                             {words(0, [&](int t, int i) { return t == 0 && i < rows_of_lane ? sign : 0.0; }),
                              words(1, [&](int t, int i) { return t == 0 && i == 0 ? 0.75 * unit : 0.0; }),
                              words(2, [&](int, int) { return sign; }), words(3, [&](int, int) { return 0.0; })});
        REQUIRE_MESSAGE(run.ok(), run.error << run.failure());
        const double expected = sign > 0 ? rounding.positive : rounding.negative;
        CHECK(run.buffer<double>(3) == std::vector<double>(32 * static_cast<size_t>(registers[3]), expected));
      }
}

TEST_CASE("mma of integers of 8 and 4 bits") {
  const Where group = [](int g, int, int) { return g; };
  const Layout c = accumulator(16), c8 = accumulator(8);
  const Layout a16{[](int g, int, int i) { return i < 4 ? g : g + 8; },
                   [](int, int t, int i) { return t * 4 + (i & 3); }, 8};
  const Layout b16{[](int, int t, int i) { return t * 4 + i; }, group, 4};
  const Layout a32{[](int g, int, int i) { return between(0, i, 4) || between(8, i, 12) ? g : g + 8; },
                   [](int, int t, int i) { return t * 4 + (i & 3) + (i < 8 ? 0 : 16); }, 16};
  const Layout b32{[](int, int t, int i) { return t * 4 + (i & 3) + (i < 4 ? 0 : 16); }, group, 8};
  const Layout small_a16{group, [](int, int t, int i) { return t * 4 + i; }, 4};
  for (const auto& [a_word, a] : {std::pair{"s8", s8}, std::pair{"u8", u8}})
    for (const auto& [b_word, b] : {std::pair{"s8", s8}, std::pair{"u8", u8}}) {
      const std::string types = std::string(".row.col.s32.") + a_word + "." + b_word + ".s32";
      check_case({"m8n8k16" + types, 8, 8, 16, a, b, s32, s32, small_a16, b16, c8});
      check_case({"m16n8k16" + types, 16, 8, 16, a, b, s32, s32, a16, b16, c});
      check_case({"m16n8k32" + types, 16, 8, 32, a, b, s32, s32, a32, b32, c});
    }
  const Layout a4_32{[](int g, int, int i) { return i < 8 ? g : g + 8; },
                     [](int, int t, int i) { return t * 8 + (i & 7); }, 16};
  const Layout b4_32{[](int, int t, int i) { return t * 8 + i; }, group, 8};
  const Layout a4_64{[](int g, int, int i) { return between(0, i, 8) || between(16, i, 24) ? g : g + 8; },
                     [](int, int t, int i) { return t * 8 + (i & 7) + (i < 16 ? 0 : 32); }, 32};
  const Layout b4_64{[](int, int t, int i) { return t * 8 + (i & 7) + (i < 8 ? 0 : 32); }, group, 16};
  for (const auto& [a_word, a] : {std::pair{"s4", s4}, std::pair{"u4", u4}})
    for (const auto& [b_word, b] : {std::pair{"s4", s4}, std::pair{"u4", u4}}) {
      const std::string types = std::string(".row.col.s32.") + a_word + "." + b_word + ".s32";
      check_case({"m8n8k32" + types,
                  8,
                  8,
                  32,
                  a,
                  b,
                  s32,
                  s32,
                  {group, [](int, int t, int i) { return t * 8 + i; }, 8},
                  b4_32,
                  c8});
      check_case({"m16n8k32" + types, 16, 8, 32, a, b, s32, s32, a4_32, b4_32, c});
      check_case({"m16n8k64" + types, 16, 8, 64, a, b, s32, s32, a4_64, b4_64, c});
    }
}

TEST_CASE("mma of single bits") {
  const Where group = [](int g, int, int) { return g; };
  const Layout c = accumulator(16);
  const Layout b128{[](int, int t, int i) { return t * 32 + i; }, group, 32};
  const Layout a128{[](int g, int, int i) { return i < 32 ? g : g + 8; },
                    [](int, int t, int i) { return t * 32 + (i & 31); }, 64};
  const Layout a256{[](int g, int, int i) { return between(0, i, 32) || between(64, i, 96) ? g : g + 8; },
                    [](int, int t, int i) { return t * 32 + (i & 31) + (i < 64 ? 0 : 128); }, 128};
  const Layout b256{[](int, int t, int i) { return t * 32 + (i & 31) + (i < 32 ? 0 : 128); }, group, 64};
  for (const bool use_and : {false, true}) {
    const std::string types = std::string(".row.col.s32.b1.b1.s32.") + (use_and ? "and" : "xor") + ".popc";
    check_case({"m8n8k128" + types,
                8,
                8,
                128,
                b1,
                b1,
                s32,
                s32,
                {group, [](int, int t, int i) { return t * 32 + i; }, 32},
                b128,
                accumulator(8)},
               use_and, !use_and);
    check_case({"m16n8k128" + types, 16, 8, 128, b1, b1, s32, s32, a128, b128, c}, use_and, !use_and);
    check_case({"m16n8k256" + types, 16, 8, 256, b1, b1, s32, s32, a256, b256, c}, use_and, !use_and);
  }
}

TEST_CASE("mma of floats of 8 bits") {
  const Where group = [](int g, int, int) { return g; };
  const Layout a32{[](int g, int, int i) { return between(0, i, 4) || between(8, i, 12) ? g : g + 8; },
                   [](int, int t, int i) { return t * 4 + (i & 3) + (i < 8 ? 0 : 16); }, 16};
  const Layout b32{[](int, int t, int i) { return t * 4 + (i & 3) + (i < 4 ? 0 : 16); }, group, 8};
  check_case({"m16n8k32.row.col.f32.e4m3.e4m3.f32", 16, 8, 32, e4m3, e4m3, f32, f32, a32, b32, accumulator(16)});
}

// m8n8k4 of f16 is four products with their own numbering of lanes: lane 4g + t.
TEST_CASE("four products at once: m8n8k4 of f16") {
  for (const bool a_columns : {false, true})
    for (const bool b_columns : {false, true})
      for (const bool wide : {false, true}) {
        std::mt19937 random(5);
        std::vector<Matrix> a, b, c, expected;
        for (int q = 0; q < 4; ++q) {
          a.push_back(random_matrix(8, 4, f16, random));
          b.push_back(random_matrix(4, 8, f16, random));
          c.push_back(random_matrix(8, 8, f16, random));
          expected.push_back(c.back());
          for (size_t i = 0; i < 8; ++i)
            for (size_t j = 0; j < 8; ++j)
              for (size_t x = 0; x < 4; ++x)
                expected.back()[i][j] += a.back()[i][x] * b.back()[x][j];
        }
        auto spread_quads = [&](const std::vector<Matrix>& matrices, const Layout& layout, const Numbers& numbers) {
          std::vector<uint64_t> words;
          const int registers = layout.elements * numbers.bits / 32;
          for (int lane = 0; lane < 32; ++lane) {
            const Matrix& matrix = matrices[static_cast<size_t>(lane % 16 / 4)]; // quads 0 and 4 have the first one ...
            const std::vector<uint64_t> all = spread(matrix, layout, numbers, 32);
            words.insert(words.end(), all.begin() + lane * registers, all.begin() + (lane + 1) * registers);
          }
          return as_buffer(words, 32);
        };
        const auto lane_of = [](int g, int t) { return 4 * g + t; };
        const Where by_lane = [=](int g, int t, int) { return lane_of(g, t) % 4 + (lane_of(g, t) < 16 ? 0 : 4); };
        const Layout a_rows{by_lane, [](int, int, int i) { return i; }, 4};
        const Layout a_cols{[=](int g, int t, int i) { return lane_of(g, t) < 16 ? i % 4 : i % 4 + 4; },
                            [=](int, int t, int) { return t; }, 4};
        const Layout b_rows{[](int, int t, int) { return t; },
                            [=](int g, int t, int i) { return lane_of(g, t) < 16 ? i : i + 4; }, 4};
        const Layout b_cols{[](int, int, int i) { return i; }, by_lane, 4};
        const Layout narrow_c{by_lane, [](int, int, int i) { return i; }, 8};
        const Layout wide_c{[=](int g, int t, int i) {
                              const int x = (lane_of(g, t) & 1) + (i & 2);
                              return lane_of(g, t) < 16 ? x : x + 4;
                            },
                            [=](int g, int t, int i) { return (i & 4) + (lane_of(g, t) & 2) + (i & 1); }, 8};
        const Layout& c_layout = wide ? wide_c : narrow_c;
        const Numbers& numbers = wide ? f32 : f16;
        const int registers[4] = {2, 2, wide ? 8 : 4, wide ? 8 : 4};
        const std::string types = wide ? ".f32.f16.f16.f32" : ".f16.f16.f16.f16";
        PtxRun run = run_ptx(mma_kernel(std::string("mma.sync.aligned.m8n8k4.") + (a_columns ? "col" : "row") + "." +
                                            (b_columns ? "col" : "row") + types,
                                        registers, 32),
                             {.kernel = "k", .block = {32}},
                             {spread_quads(a, a_columns ? a_cols : a_rows, f16),
                              spread_quads(b, b_columns ? b_cols : b_rows, f16), spread_quads(c, c_layout, numbers),
                              spread_quads(c, c_layout, numbers)});
        REQUIRE_MESSAGE(run.ok(), run.error << run.failure());
        CHECK(run.buffers[3] == spread_quads(expected, c_layout, numbers).bytes);
      }
}

TEST_CASE("sums go from C on along k, rounded each time; integers wrap or are clamped in the end") {
  const int registers[4] = {4, 2, 4, 4};
  const std::vector<uint64_t> ones_a(32 * 4, 0x3c003c00), ones_b(32 * 2, 0x3c003c00);
  PtxRun run = run_ptx(
      mma_kernel("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", registers, 32), {.kernel = "k", .block = {32}},
      {as_buffer(ones_a, 32), as_buffer(ones_b, 32),
       as_buffer(std::vector<uint64_t>(32 * 4, std::bit_cast<uint32_t>(0x1p24f)), 32), zeros<uint32_t>(32 * 4)});
  REQUIRE(run.ok());
  CHECK(run.buffer<float>(3) == std::vector<float>(32 * 4, 0x1p24f)); // each 1 is lost by rounding

  const std::vector<uint64_t> large_a(32 * 4, 0x7f7f7f7f), large_b(32 * 2, 0x7f7f7f7f);
  for (const bool clamps : {false, true}) {
    run = run_ptx(
        mma_kernel(std::string("mma.sync.aligned.m16n8k32.row.col") + (clamps ? ".satfinite" : "") + ".s32.s8.s8.s32",
                   registers, 32),
        {.kernel = "k", .block = {32}},
        {as_buffer(large_a, 32), as_buffer(large_b, 32), as_buffer(std::vector<uint64_t>(32 * 4, 0x7fffffff), 32),
         zeros<uint32_t>(32 * 4)});
    REQUIRE_MESSAGE(run.ok(), run.error);
    CHECK(run.buffer<uint32_t>(3)[77] == (clamps ? 0x7fffffffu : 0x7fffffffu + 32 * 127 * 127));
  }
}

// --- wmma: the layout is our own, so whole products are compared ---

struct WmmaCase {
  std::string shape;
  int m, n, k;
  std::string type, sum_type; // as .type of load and of the accumulator
  Numbers numbers, sums;
  int a_registers, b_registers, c_registers;
  bool both_layouts = true;
};

std::string wmma_kernel(const WmmaCase& test, bool a_columns, bool b_columns, bool c_columns, int padding) {
  auto word = [](bool columns) { return columns ? std::string("col") : std::string("row"); };
  auto stride = [&](bool columns, int rows, int width) { return std::to_string((columns ? rows : width) + padding); };
  const std::string bits = test.numbers.bits == 64 ? "64" : "32";
  const std::string ab = word(a_columns) + "." + word(b_columns);
  std::string mma =
      "wmma.mma." + std::string(test.type == "b1" ? "xor.popc." : "") + "sync.aligned." + ab + "." + test.shape;
  mma += test.type == "f16" ? "." + test.sum_type + "." + test.sum_type
                            : "." + test.sum_type + "." + test.type + "." + test.type + "." + test.sum_type;
  std::string body = "  .reg .b" + bits +
                     " %a<9>, %b<9>, %c<9>, %d<9>;\n  .reg .b64 %pa, %pb, %pc, %pd;\n"
                     "  .reg .b32 %s;\n";
  for (const std::string name : {"a", "b", "c", "d"})
    body += "  ld.param.u64 %p" + name + ", [p" + name + "];\n";
  const std::string space = padding ? ".global." : ".";
  body += "  wmma.load.a.sync.aligned." + word(a_columns) + "." + test.shape + space + test.type + " " +
          register_list('a', test.a_registers) + ", [%pa], " + stride(a_columns, test.m, test.k) + ";\n";
  body += "  mov.u32 %s, " + stride(b_columns, test.k, test.n) + ";\n";
  body += "  wmma.load.b.sync.aligned." + word(b_columns) + "." + test.shape + space + test.type + " " +
          register_list('b', test.b_registers) + ", [%pb], %s;\n";
  body += "  wmma.load.c.sync.aligned." + word(c_columns) + "." + test.shape + space + test.sum_type + " " +
          register_list('c', test.c_registers) + ", [%pc]" +
          (padding ? ", " + stride(c_columns, test.m, test.n) : std::string()) + ";\n";
  body += "  " + mma + " " + register_list('d', test.c_registers) + ", " + register_list('a', test.a_registers) + ", " +
          register_list('b', test.b_registers) + ", " + register_list('c', test.c_registers) + ";\n";
  body += "  wmma.store.d.sync.aligned." + word(!c_columns) + "." + test.shape + space + test.sum_type + " [%pd], " +
          register_list('d', test.c_registers) + ", " + stride(!c_columns, test.m, test.n) + ";\n  ret;";
  return kernel("k", ".param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u64 pd", body);
}

Buffer in_memory(const Matrix& matrix, bool by_columns, const Numbers& numbers, int padding) {
  const size_t rows = matrix.size(), columns = matrix[0].size();
  const size_t stride = (by_columns ? rows : columns) + static_cast<size_t>(padding);
  const size_t lines = by_columns ? columns : rows, bits = static_cast<size_t>(numbers.bits);
  Buffer buffer{std::vector<std::byte>((stride * lines * bits + 7) / 8)};
  for (size_t i = 0; i < rows; ++i)
    for (size_t j = 0; j < columns; ++j) {
      const size_t at = (by_columns ? j * stride + i : i * stride + j) * bits;
      uint64_t value = numbers.encode(matrix[i][j]) << at % 8, old = 0;
      std::memcpy(&old, &buffer.bytes[at / 8], (bits + 7) / 8);
      value |= bits < 8 ? old : 0;
      std::memcpy(&buffer.bytes[at / 8], &value, (bits + 7) / 8);
    }
  return buffer;
}

TEST_CASE("wmma: load, multiply, store") {
  const std::vector<WmmaCase> cases = {
      {"m16n16k16", 16, 16, 16, "f16", "f32", f16, f32, 8, 8, 8},
      {"m16n16k16", 16, 16, 16, "f16", "f16", f16, f16, 8, 8, 4},
      {"m8n32k16", 8, 32, 16, "f16", "f32", f16, f32, 8, 8, 8},
      {"m32n8k16", 32, 8, 16, "f16", "f16", f16, f16, 8, 8, 4},
      {"m16n16k16", 16, 16, 16, "bf16", "f32", bf16, f32, 4, 4, 8},
      {"m8n32k16", 8, 32, 16, "bf16", "f32", bf16, f32, 2, 8, 8},
      {"m32n8k16", 32, 8, 16, "bf16", "f32", bf16, f32, 8, 2, 8},
      {"m16n16k8", 16, 16, 8, "tf32", "f32", tf32, f32, 4, 4, 8},
      {"m8n8k4", 8, 8, 4, "f64", "f64", f64, f64, 1, 1, 2},
      {"m16n16k16", 16, 16, 16, "s8", "s32", s8, s32, 2, 2, 8},
      {"m16n16k16", 16, 16, 16, "u8", "s32", u8, s32, 2, 2, 8},
      {"m8n32k16", 8, 32, 16, "u8", "s32", u8, s32, 1, 4, 8},
      {"m32n8k16", 32, 8, 16, "s8", "s32", s8, s32, 4, 1, 8},
      {"m8n8k32", 8, 8, 32, "s4", "s32", s4, s32, 1, 1, 2, false},
      {"m8n8k32", 8, 8, 32, "u4", "s32", u4, s32, 1, 1, 2, false},
      {"m8n8k128", 8, 8, 128, "b1", "s32", b1, s32, 1, 1, 2, false},
  };
  for (const WmmaCase& test : cases)
    for (int layouts = 0; layouts < (test.both_layouts ? 8 : 2); ++layouts) {
      CAPTURE(test.shape);
      CAPTURE(test.type);
      CAPTURE(layouts);
      const bool a_columns = test.both_layouts && (layouts & 2), b_columns = !test.both_layouts || (layouts & 4);
      const bool c_columns = layouts & 1;
      const int padding = test.both_layouts ? layouts * 8 : 0;
      std::mt19937 random(3);
      const Matrix a = random_matrix(test.m, test.k, test.numbers, random);
      const Matrix b = random_matrix(test.k, test.n, test.numbers, random);
      const Matrix c = random_matrix(test.m, test.n, test.sums, random);
      Matrix expected = c;
      for (size_t i = 0; i < c.size(); ++i)
        for (size_t j = 0; j < c[i].size(); ++j)
          for (size_t x = 0; x < a[i].size(); ++x)
            expected[i][j] += test.type == "b1" ? (a[i][x] != b[x][j] ? 1 : 0) : a[i][x] * b[x][j];
      const Buffer result = in_memory(expected, !c_columns, test.sums, padding);
      PtxRun run =
          run_ptx(wmma_kernel(test, a_columns, b_columns, c_columns, padding), {.kernel = "k", .block = {32}},
                  {in_memory(a, a_columns, test.numbers, padding), in_memory(b, b_columns, test.numbers, padding),
                   in_memory(c, c_columns, test.sums, padding), Buffer{std::vector<std::byte>(result.bytes.size())}});
      REQUIRE_MESSAGE(run.ok(), run.error << run.failure());
      CHECK(run.buffers[3] == result.bytes);
    }
}

// The CUDA programming guide on satf of mma_sync: infinities become the largest number, NaN becomes +0.
TEST_CASE("wmma: .satfinite of floating-point products") {
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> special = {infinity, -infinity, std::nanf(""), 1.0f, -2.0f, 0.0f, 1e6f, -1e6f};
  std::vector<float> c(256);
  for (size_t i = 0; i < c.size(); ++i)
    c[i] = special[i % special.size()];
  for (const std::string type : {"f32", "f16"}) {
    CAPTURE(type);
    const std::string d = register_list('d', type == "f32" ? 8 : 4);
    PtxRun run =
        run_ptx(kernel("k", ".param .u64 in, .param .u64 out",
                       "  .reg .b32 %c<9>, %d<9>, %z;\n  .reg .b64 %i, %o;\n"
                       "  ld.param.u64 %i, [in];\n  ld.param.u64 %o, [out];\n  mov.b32 %z, 0;\n"
                       "  wmma.load.c.sync.aligned.row.m16n16k16.f32 " +
                           register_list('c', 8) +
                           ", [%i];\n"
                           "  wmma.mma.sync.aligned.row.col.m16n16k16." +
                           type + ".f32.satfinite " + d + ", {%z,%z,%z,%z,%z,%z,%z,%z}, {%z,%z,%z,%z,%z,%z,%z,%z}, " +
                           register_list('c', 8) + ";\n  wmma.store.d.sync.aligned.row.m16n16k16." + type + " [%o], " +
                           d + ";\n  ret;"),
                {.kernel = "k", .block = {32}}, {buffer_of(c), zeros<float>(256)});
    REQUIRE_MESSAGE(run.ok(), run.error << run.failure());
    for (size_t i = 0; i < c.size(); ++i) {
      CAPTURE(i);
      const float largest = type == "f32" ? std::numeric_limits<float>::max() : 65504.0f;
      const float wanted = std::isnan(c[i]) ? 0.0f : std::min(std::max(c[i], -largest), largest);
      if (type == "f32")
        CHECK(run.buffer<float>(1)[i] == wanted);
      else
        CHECK(run.buffer<uint16_t>(1)[i] == f16.encode(wanted));
    }
  }
}

// --- 8x8 matrices through shared memory ---

TEST_CASE("ldmatrix and stmatrix") {
  // Row r of matrix i is at 16 * ((i * 8 + r) * 5 % 32): element c is 1000 i + 10 r + c.
  auto value = [](size_t i, size_t r, size_t c) { return static_cast<uint16_t>(1000 * i + 10 * r + c); };
  std::vector<uint16_t> rows(32 * 8);
  for (size_t line = 0; line < 32; ++line)
    for (size_t c = 0; c < 8; ++c)
      rows[line * 5 % 32 * 8 + c] = value(line / 8, line % 8, c);
  for (const int count : {1, 2, 4})
    for (const bool transposed : {false, true}) {
      CAPTURE(count);
      CAPTURE(transposed);
      const std::string words =
          std::string(".sync.aligned.m8n8.x") + std::to_string(count) + (transposed ? ".trans" : "") + ".shared.b16 ";
      PtxRun run =
          run_ptx(kernel("k", ".param .u64 in, .param .u64 out, .param .u64 back", R"(
  .reg .b32 %t, %s, %d<4>, %v;
  .reg .b64 %p, %o;
  mov.u32 %t, %tid.x;
  mul.wide.u32 %o, %t, 16;
  ld.param.u64 %p, [in];
  add.u64 %p, %p, %o;
  mov.u32 %s, area;
  shl.b32 %v, %t, 4;
  add.u32 %v, %v, %s;
  .reg .v4 .b32 %q;
  .reg .b32 %x<4>;
  ld.global.v4.b32 {%x0, %x1, %x2, %x3}, [%p];
  st.shared.v4.b32 [%v], {%x0, %x1, %x2, %x3};
  bar.sync 0;
  mul.lo.u32 %v, %t, 5;
  and.b32 %v, %v, 31;
  shl.b32 %v, %v, 4;
  add.u32 %v, %v, %s;
  mov.b32 %d0, 0; mov.b32 %d1, 0; mov.b32 %d2, 0; mov.b32 %d3, 0;
  ldmatrix)" + words + register_list('d', count) + R"(, [%v];
  ld.param.u64 %p, [out];
  add.u64 %p, %p, %o;
  st.global.v4.b32 [%p], {%d0, %d1, %d2, %d3};
  bar.sync 0;
  stmatrix)" + words + "[%v+512], " + register_list('d', count) + R"(;
  bar.sync 0;
  shl.b32 %v, %t, 4;
  add.u32 %v, %v, %s;
  ld.shared.v4.b32 {%x0, %x1, %x2, %x3}, [%v+512];
  ld.param.u64 %p, [back];
  add.u64 %p, %p, %o;
  st.global.v4.b32 [%p], {%x0, %x1, %x2, %x3};
  ret;)",
                         ".shared .align 16 .b8 area[1024];\n"),
                  {.kernel = "k", .block = {32}}, {buffer_of(rows), zeros<uint16_t>(32 * 8), zeros<uint16_t>(32 * 8)});
      REQUIRE_MESSAGE(run.ok(), run.error << run.failure());
      const std::vector<uint16_t> held = run.buffer<uint16_t>(1), stored = run.buffer<uint16_t>(2);
      for (size_t lane = 0; lane < 32; ++lane)
        for (size_t i = 0; i < 4; ++i)
          for (size_t half = 0; half < 2; ++half) {
            const size_t row = lane / 4, column = 2 * (lane % 4) + half;
            const uint16_t expected = transposed ? value(i, column, row) : value(i, row, column);
            CHECK(held[lane * 8 + i * 2 + half] == (i < static_cast<size_t>(count) ? expected : 0));
          }
      for (size_t line = 0; line < 32; ++line)
        for (size_t c = 0; c < 8; ++c)
          CHECK(stored[line * 5 % 32 * 8 + c] ==
                (line < static_cast<size_t>(8 * count) ? rows[line * 5 % 32 * 8 + c] : 0));
    }
}

TEST_CASE("movmatrix") {
  PtxRun run = run_ptx(kernel("k", ".param .u64 out", R"(
  .reg .b32 %t, %d;
  .reg .b64 %p, %o;
  mov.u32 %t, %tid.x;
  mul.lo.u32 %d, %t, 0x00020002;
  add.u32 %d, %d, 0x00010000;
  movmatrix.sync.aligned.m8n8.trans.b16 %d, %d;
  mul.wide.u32 %o, %t, 4;
  ld.param.u64 %p, [out];
  add.u64 %p, %p, %o;
  st.global.b32 [%p], %d;
  ret;)"),
                       {.kernel = "k", .block = {32}}, {zeros<uint16_t>(64)});
  REQUIRE_MESSAGE(run.ok(), run.error << run.failure());
  for (size_t row = 0; row < 8; ++row)
    for (size_t column = 0; column < 8; ++column)
      CHECK(run.buffer<uint16_t>(0)[row * 8 + column] == column * 8 + row); // element n of the matrix was n
}

TEST_CASE("rows of matrices are checked") {
  auto failure = [](const std::string& offset) {
    return run_ptx(kernel("k", "",
                          R"(
  .reg .b32 %v, %d;
  mov.u32 %v, area;
  ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%d}, [%v+)" +
                              offset + "];\n  ret;",
                          ".shared .align 16 .b8 area[32];\n"),
                   {.kernel = "k", .block = {32}})
        .failure();
  };
  CHECK(failure("16").empty());
  CHECK(failure("8").find("not a multiple of 16") != std::string::npos);
  CHECK(failure("32").find("matrix load of 16 bytes at 0x20 is out of bounds") != std::string::npos);
}

// Rows of 16 bytes at lanes' addresses; the row and column of each byte of a register are described by bits of a
// tile, like CUTLASS's traits of these instructions: (lane that addresses a row) -> bit, (lane that holds it, bit) ->
// bit.
unsigned tile_bit_of_row(bool transposed, unsigned row) {
  return transposed ? row % 2 * 128 + row / 2 % 2 * 1024 + row / 4 % 4 * 256 + row / 16 * 2048 : row * 128;
}
unsigned tile_bit_held(bool transposed, unsigned lane, unsigned reg, unsigned byte) {
  return transposed ? lane % 4 * 256 + lane / 4 * 8 + byte % 2 * 128 + byte / 2 * 64 + reg * 1024
                    : lane * 32 + byte * 8 + reg * 1024;
}

TEST_CASE("ldmatrix of rows of bytes, and of elements of 4 and 6 bits that become bytes") {
  struct Row {
    const char* words;
    unsigned registers, bits;
    bool transposed;
  };
  const Row rows[] = {{"m16n16.x1.trans.shared.b8", 2, 8, true},
                      {"m16n16.x2.trans.shared.b8", 4, 8, true},
                      {"m16n16.x2.trans.shared.b8x16.b6x16_p32", 4, 6, true},
                      {"m16n16.x1.trans.shared.b8x16.b4x16_p64", 2, 4, true},
                      {"m8n16.x1.shared.b8x16.b4x16_p64", 1, 4, false},
                      {"m8n16.x2.shared.b8x16.b6x16_p32", 2, 6, false},
                      {"m8n16.x4.shared.b8x16.b4x16_p64", 4, 4, false}};
  std::mt19937 random(77);
  for (const Row& row : rows) {
    CAPTURE(row.words);
    std::vector<uint8_t> image(32 * 16);
    for (uint8_t& byte : image)
      byte = static_cast<uint8_t>(random());
    std::string names, stores;
    for (unsigned i = 0; i < row.registers; ++i) {
      names += (i ? ", %d" : "%d") + std::to_string(i);
      stores += "  st.global.u32 [%p + " + std::to_string(4 * i) + "], %d" + std::to_string(i) + ";\n";
    }
    PtxRun run = run_ptx(".version 8.8\n.target sm_120a\n.address_size 64\n.shared .align 16 .b8 tile[512];\n"
                         ".visible .entry k(.param .u64 in, .param .u64 out)\n{\n  .reg .b32 %d<4>, %x<4>, %t, %s;\n"
                         "  .reg .b64 %p, %o;\n  mov.u32 %t, %tid.x;\n  ld.param.u64 %p, [in];\n"
                         "  mul.wide.u32 %o, %t, 16;\n  add.u64 %p, %p, %o;\n"
                         "  ld.global.v4.u32 {%x0, %x1, %x2, %x3}, [%p];\n  shl.b32 %s, %t, 4;\n  mov.u32 %t, tile;\n"
                         "  add.u32 %s, %s, %t;\n  st.shared.v4.u32 [%s], {%x0, %x1, %x2, %x3};\n  bar.sync 0;\n"
                         "  ldmatrix.sync.aligned." +
                             std::string(row.words) + " {" + names +
                             "}, [%s];\n  ld.param.u64 %p, [out];\n  add.u64 %p, %p, %o;\n" + stores + "  ret;\n}\n",
                         {.kernel = "k", .block = {32}}, {buffer_of(image), zeros<uint32_t>(128)});
    REQUIRE_MESSAGE(run.ok(), run.error << run.failure());
    const std::vector<uint32_t> out = run.buffer<uint32_t>(1);
    unsigned wrong = 0;
    for (unsigned lane = 0; lane < 32; ++lane)
      for (unsigned reg = 0; reg < row.registers; ++reg)
        for (unsigned byte = 0; byte < 4; ++byte) {
          const unsigned bit = tile_bit_held(row.transposed, lane, reg, byte);
          unsigned expected = 256; // none
          for (unsigned line = 0; line < row.registers * 8; ++line) {
            if (tile_bit_of_row(row.transposed, line) / 128 != bit / 128) continue;
            expected = 0;
            for (unsigned i = 0; i < row.bits; ++i) {
              const unsigned place = bit % 128 / 8 * row.bits + i;
              expected |= (image[line * 16 + place / 8] >> place % 8 & 1u) << i;
            }
          }
          if ((out[lane * 4 + reg] >> 8 * byte & 0xff) != expected) ++wrong;
        }
    CHECK(wrong == 0);
  }
}

TEST_CASE("stmatrix of rows of bytes") {
  for (const unsigned registers : {1u, 2u, 4u}) {
    std::string names = "%d0";
    for (unsigned i = 1; i < registers; ++i)
      names += ", %d" + std::to_string(i);
    std::mt19937 random(registers);
    std::vector<uint32_t> held(128);
    for (uint32_t& word : held)
      word = static_cast<uint32_t>(random());
    PtxRun run = run_ptx(
        ".version 8.8\n.target sm_120a\n.address_size 64\n.shared .align 16 .b8 tile[512];\n"
        ".visible .entry k(.param .u64 in, .param .u64 out)\n{\n  .reg .b32 %d<4>, %t, %s;\n  .reg .b64 %p, %o;\n"
        "  mov.u32 %t, %tid.x;\n  ld.param.u64 %p, [in];\n  mul.wide.u32 %o, %t, 16;\n  add.u64 %p, %p, %o;\n"
        "  ld.global.v4.u32 {%d0, %d1, %d2, %d3}, [%p];\n  shl.b32 %s, %t, 4;\n  mov.u32 %t, tile;\n"
        "  add.u32 %s, %s, %t;\n  stmatrix.sync.aligned.m16n8.x" +
            std::to_string(registers) + ".trans.shared.b8 [%s], {" + names +
            "};\n  bar.sync 0;\n  ld.shared.v4.u32 {%d0, %d1, %d2, %d3}, [%s];\n  ld.param.u64 %p, [out];\n"
            "  add.u64 %p, %p, %o;\n  st.global.v4.u32 [%p], {%d0, %d1, %d2, %d3};\n  ret;\n}\n",
        {.kernel = "k", .block = {32}}, {buffer_of(held), zeros<uint8_t>(512)});
    REQUIRE_MESSAGE(run.ok(), run.error << run.failure());
    const std::vector<uint8_t> out = run.buffer<uint8_t>(1);
    unsigned wrong = 0;
    for (unsigned lane = 0; lane < 32; ++lane)
      for (unsigned reg = 0; reg < registers; ++reg)
        for (unsigned byte = 0; byte < 4; ++byte)
          wrong += out[tile_bit_held(true, lane, reg, byte) / 8] != (held[lane * 4 + reg] >> 8 * byte & 0xff);
    CHECK(wrong == 0);
  }
}

} // namespace
} // namespace ptxrewrite::emulator::matrix_test
