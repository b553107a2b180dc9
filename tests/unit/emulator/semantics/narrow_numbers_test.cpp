// Arithmetic and conversions of 8, 6 and 4-bit floats that PTX 9.1 to 9.4 added, against tables of their values
// (narrow_floats.h) and exact sums and products.
#include "emulator/semantics/narrow_numbers.h"
#include "tests/unit/emulator/run_ptx.h"
#include "tests/unit/emulator/semantics/narrow_floats.h"

#include <bit>
#include <random>

namespace ptxrewrite::emulator::narrow_numbers_test {
namespace {

using ptxrewrite::test::NarrowFormat;

constexpr unsigned count = 8192;

struct Named {
  std::string word; // of one number: "e4m3"
  const NarrowFormat* format;
  unsigned bits; // a number takes in a register
};
const Named formats[] = {{"e4m3", &test::e4m3_values, 8},
                         {"e5m2", &test::e5m2_values, 8},
                         {"e2m3", &test::e2m3_values, 8},
                         {"e3m2", &test::e3m2_values, 8},
                         {"e2m1", &test::e2m1_values, 4}};

// NaN, infinity or a number, exactly.
long double value(const Named& named, uint32_t code) {
  code &= 2 * named.format->sign() - 1;
  const uint32_t magnitude = code & (named.format->sign() - 1);
  long double result = 0;
  if (magnitude <= named.format->last())
    result = static_cast<long double>(named.format->values[magnitude]);
  else if (named.word == "e5m2" && magnitude == 0x7c)
    result = HUGE_VALL;
  else
    result = std::nanl("");
  return (code & named.format->sign()) != 0 ? -result : result;
}

struct Options {
  bool toward_zero = false, finite = true, relu = false, positive_zero = false;
};

// The code that a value is rounded to: by looking through all values of the format.
uint32_t rounded(const Named& named, long double exact, const Options& options = {}) {
  const NarrowFormat& format = *named.format;
  if (std::isnan(exact)) return format.nan;
  const bool negative = std::signbit(exact);
  const long double magnitude = std::fabs(exact);
  const uint32_t last = format.last();
  const long double largest = format.values[last];
  const long double step = largest - static_cast<long double>(format.values[last - 1]);
  uint32_t code = 0;
  while (code < last && static_cast<long double>(format.values[code + 1]) <= magnitude)
    ++code;
  if (!options.toward_zero) {
    const long double next = code < last ? static_cast<long double>(format.values[code + 1]) : largest + step;
    const long double middle = (static_cast<long double>(format.values[code]) + next) / 2;
    if (magnitude > middle || (magnitude == middle && (code & 1) != 0)) ++code;
  }
  if (code > last || std::isinf(exact)) {
    if (options.finite || last == format.sign() - 1)
      code = last;
    else
      code = named.word == "e5m2" ? 0x7c : 0x7f; // infinity; e4m3 has only a NaN
    if (!options.finite && named.word == "e4m3") return 0x7f;
  }
  if (negative && options.relu) return 0;
  if (code == 0 && options.positive_zero) return 0;
  return code | (negative ? format.sign() : 0);
}

std::vector<uint32_t> random_words(unsigned seed) {
  std::mt19937 random(seed);
  std::vector<uint32_t> words(count);
  for (uint32_t& word : words)
    word = random();
  return words;
}

// `body` computes %r0 from %r1, %r2, %r3, one word of each buffer a thread.
std::vector<uint32_t> computed(const std::string& body, const std::string& target,
                               const std::vector<std::vector<uint32_t>>& inputs) {
  std::string text =
      ".version 9.4\n.target " + target +
      "\n.address_size 64\n.visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 out)"
      " {\n.reg .b64 %d<6>; .reg .b32 %r<9>; .reg .f32 %f<4>; .reg .b32 %i<3>; .reg .b16 %h<4>;\n"
      ".reg .b8 %c<4>;\nld.param.u64 %d0, [a]; ld.param.u64 %d1, [b]; ld.param.u64 %d2, [c];\n"
      "ld.param.u64 %d3, [out]; mov.u32 %i0, %tid.x; mov.u32 %i1, %ctaid.x;\n"
      "mad.lo.u32 %i0, %i1, 1024, %i0; mul.wide.u32 %d4, %i0, 4; add.u64 %d0, %d0, %d4;\n"
      "add.u64 %d1, %d1, %d4; add.u64 %d2, %d2, %d4; add.u64 %d3, %d3, %d4;\n"
      "ld.global.b32 %r1, [%d0]; ld.global.b32 %r2, [%d1]; ld.global.b32 %r3, [%d2];\n" +
      body + "\nst.global.b32 [%d3], %r0; ret; }\n";
  const PtxRun run =
      run_ptx(text, {.kernel = "k", .grid = {count / 1024}, .block = {1024}},
              {buffer_of(inputs[0]), buffer_of(inputs[1]), buffer_of(inputs[2]), zeros<uint32_t>(count)});
  REQUIRE(run.error == "");
  REQUIRE(run.ok());
  return run.buffer<uint32_t>(3);
}

} // namespace

TEST_CASE("add, sub, mul and fma of four narrow floats are exact and rounded once") {
  const std::vector<std::vector<uint32_t>> in = {random_words(1), random_words(2), random_words(3)};
  for (unsigned result = 0; result < 2; ++result) // e4m3 and e5m2
    for (const Named& a : formats)
      for (const bool finite : {false, true})
        for (const std::string operation : {"add", "sub", "mul", "fma"}) {
          const Named& d = formats[result];
          const Named& b = formats[(result + (&a - formats) + 1) % 5];
          const bool product = operation == "mul" || operation == "fma";
          const std::string mnemonic = operation + (finite ? ".satfinite." : ".rn.") + d.word + "x4." + a.word + "x4" +
                                       (product ? "." + b.word + "x4" : "");
          CAPTURE(mnemonic);
          const auto operand = [](const Named& named, const char* number) {
            return named.bits == 4 ? std::string("%h") + number : std::string("%r") + number;
          };
          std::string body = "cvt.u16.u32 %h1, %r1; cvt.u16.u32 %h2, %r2;\n" + mnemonic + " %r0, " + operand(a, "1");
          if (product) body += ", " + operand(b, "2");
          if (operation != "mul") body += ", %r3";
          const std::vector<uint32_t> got = computed(body + ";", "sm_100a", in);
          size_t wrong = 0;
          for (unsigned i = 0; i < count; ++i)
            for (unsigned k = 0; k < 4; ++k) {
              const long double x = value(a, in[0][i] >> (k * a.bits)), y = value(b, in[1][i] >> (k * b.bits));
              const long double z = value(d, in[2][i] >> (k * 8));
              const long double exact = operation == "add"   ? x + z
                                        : operation == "sub" ? x - z
                                        : operation == "mul" ? x * y
                                                             : x * y + z;
              wrong += (got[i] >> (8 * k) & 0xff) != rounded(d, exact, {.finite = finite});
            }
          CHECK(wrong == 0);
        }
}

// .e2m1p4x4: four numbers of 4 bits, in the low halves of bytes.
TEST_CASE("numbers of 4 bits in a byte each") {
  constexpr long double numbers[] = {0, 0.5L, 1, 1.5L, 2, 3, 4, 6};
  std::vector<std::vector<uint32_t>> in = {random_words(14), random_words(15), random_words(16)};
  for (uint32_t& word : in[0])
    word &= 0x0f0f0f0f;
  const std::vector<uint32_t> got =
      computed("fma.rn.satfinite.e4m3x4.e2m1p4x4.e5m2x4 %r0, %r1, %r2, %r3;", "sm_100a", in);
  size_t wrong = 0;
  for (unsigned i = 0; i < count; ++i)
    for (unsigned k = 0; k < 4; ++k) {
      const uint32_t code = in[0][i] >> (8 * k) & 0xf;
      const long double x = code & 8 ? -numbers[code & 7] : numbers[code & 7];
      const long double exact = x * value(formats[1], in[1][i] >> (8 * k)) + value(formats[0], in[2][i] >> (8 * k));
      wrong += (got[i] >> (8 * k) & 0xff) != rounded(formats[0], exact, {.finite = true});
    }
  CHECK(wrong == 0);
}

TEST_CASE("the scale ue8m0 is a factor of narrow arithmetic, too") {
  // 2^(code - 127), 0xff is NaN; products with codes around 127 stay in range.
  std::vector<std::vector<uint32_t>> in = {random_words(4), random_words(5), random_words(6)};
  for (uint32_t& word : in[1])
    word = 0x7f7f7f7f + (word & 0x07070707) - 0x03030303;
  in[1][7] = 0xffffffff;
  const std::vector<uint32_t> got = computed("mul.e5m2x4.e4m3x4.ue8m0x4 %r0, %r1, %r2;", "sm_100a", in);
  size_t wrong = 0;
  for (unsigned i = 0; i < count; ++i)
    for (unsigned k = 0; k < 4; ++k) {
      const uint32_t scale = in[1][i] >> (8 * k) & 0xff;
      const long double factor = scale == 0xff ? std::nanl("") : std::ldexp(1.0L, static_cast<int>(scale) - 127);
      const long double exact = value(formats[0], in[0][i] >> (8 * k)) * factor;
      wrong += (got[i] >> (8 * k) & 0xff) != rounded(formats[1], exact, {.finite = false});
    }
  CHECK(wrong == 0);
}

TEST_CASE("conversions to narrow floats: .rz, .pzo, .relu and a scale") {
  std::vector<std::vector<uint32_t>> in = {random_words(7), random_words(8), random_words(9)};
  for (unsigned i = 0; i < count; ++i) { // most of the exponents near those of the formats
    in[0][i] = (in[0][i] & 0x8fffffff) | 0x30000000;
    in[1][i] = i % 16 == 0 ? in[1][i] : (in[1][i] & 0x87ffffff) | 0x38000000;
    in[2][i] = 120 + in[2][i] % 16;
  }
  in[0][1] = 0x80000000, in[0][2] = 0x7fc00000, in[0][3] = 0x7f800000, in[0][4] = 0xff800000, in[0][5] = 0x80000001;
  for (const Named& to : formats)
    for (const bool rz : {false, true})
      for (const bool relu : {false, true})
        for (const bool pzo : {false, true})
          for (const bool scaled : {false, true}) {
            const std::string mnemonic = std::string("cvt") + (rz ? ".rz" : ".rn") + ".satfinite" +
                                         (relu ? ".relu" : "") + (pzo ? ".pzo" : "") +
                                         (scaled ? ".scaled::n1::ue8m0." : ".") + to.word + "x2.f32";
            CAPTURE(mnemonic);
            const std::string destination = to.bits == 4 ? "%c0" : "%h0";
            const std::string body = "mov.b32 %f1, %r1; mov.b32 %f2, %r2; cvt.u8.u32 %c1, %r3;\n" + mnemonic + " " +
                                     destination + ", %f1, %f2" + (scaled ? ", %c1" : "") + ";\ncvt.u32." +
                                     (to.bits == 4 ? "u8" : "u16") + " %r0, " + destination + ";";
            const std::vector<uint32_t> got = computed(body, "sm_107a", in);
            size_t wrong = 0;
            for (unsigned i = 0; i < count; ++i) {
              uint32_t expected = 0;
              for (const uint32_t word : {in[0][i], in[1][i]}) {
                long double exact = std::bit_cast<float>(word);
                if (scaled && std::fabs(exact) < 0x1p-126L) exact = std::copysign(0.0L, exact);
                if (scaled) exact = std::ldexp(exact, 127 - static_cast<int>(in[2][i]));
                expected = expected << to.bits | rounded(to, exact, {rz, true, relu, pzo});
              }
              wrong += got[i] != expected;
            }
            CHECK(wrong == 0);
          }
}

TEST_CASE("bf16x2 from narrow floats with two scales, and back") {
  std::vector<std::vector<uint32_t>> in = {random_words(10), random_words(11), random_words(12)};
  for (const Named& from : formats) {
    CAPTURE(from.word);
    const std::string source = from.bits == 4 ? "%c1" : "%h1";
    const std::string body = "cvt.u16.u32 %h1, %r1; cvt.u8.u32 %c1, %r1; cvt.u16.u32 %h2, %r2;\n"
                             "cvt.rn.scaled::n2::ue8m0.bf16x2." +
                             from.word + "x2 %r0, " + source + ", %h2;";
    const std::vector<uint32_t> got = computed(body, "sm_100a", in);
    size_t wrong = 0;
    for (unsigned i = 0; i < count; ++i)
      for (unsigned k = 0; k < 2; ++k) {
        const uint32_t scale = in[1][i] >> (8 * k) & 0xff;
        const long double number = value(from, in[0][i] >> (k * from.bits));
        const uint32_t bits = got[i] >> (16 * k) & 0xffff;
        if (scale == 0xff || std::isnan(number)) {
          wrong += bits != 0x7fff;
          continue;
        }
        // At most four significant bits: only beyond the range of bf16, below 2^-133, is anything lost.
        const long double exact = std::ldexp(number, static_cast<int>(scale) - 127);
        const auto result = static_cast<long double>(std::bit_cast<float>(bits << 16));
        if (std::fabs(exact) > 0x1.fep127L)
          wrong += !std::isinf(result);
        else if (std::fabs(exact) >= 0x1p-126L || exact == 0)
          wrong += result != exact || std::signbit(result) != std::signbit(exact);
        else
          wrong += std::fabs(result - exact) > 0x1p-134L;
      }
    CHECK(wrong == 0);
    // Codes come back: of bf16 that hold a number of the format.
    const std::string back = "cvt.u16.u32 %h1, %r1; cvt.u8.u32 %c1, %r1;\ncvt.rn.bf16x2." + from.word + "x2 %r4, " +
                             source + ";\ncvt.rn.satfinite." + from.word + "x2.bf16x2 " +
                             (from.bits == 4 ? "%c0, %r4; cvt.u32.u8 %r0, %c0;" : "%h0, %r4; cvt.u32.u16 %r0, %h0;");
    const std::vector<uint32_t> again = computed(back, "sm_100a", in);
    wrong = 0;
    for (unsigned i = 0; i < count; ++i)
      for (unsigned k = 0; k < 2; ++k) {
        const uint32_t code = again[i] >> (k * from.bits) & (from.bits == 4 ? 0xf : 0xff);
        wrong += code != rounded(from, value(from, in[0][i] >> (k * from.bits)));
      }
    CHECK(wrong == 0);
  }
}

TEST_CASE("s2f6 is an integer in units of 1/64") {
  std::vector<std::vector<uint32_t>> in = {random_words(13), random_words(14), random_words(15)};
  for (unsigned i = 0; i < count; ++i) {
    in[0][i] = (in[0][i] & 0x87ffffff) | 0x38000000;
    in[1][i] = (in[1][i] & 0x87ffffff) | 0x38000000;
  }
  for (const bool relu : {false, true})
    for (const bool rz : {false, true}) {
      const std::string body = std::string("mov.b32 %f1, %r1; mov.b32 %f2, %r2;\ncvt") + (rz ? ".rz" : ".rn") +
                               ".satfinite" + (relu ? ".relu" : "") +
                               ".s2f6x2.f32 %h0, %f1, %f2; cvt.u32.u16 %r0, %h0;";
      CAPTURE(body);
      const std::vector<uint32_t> got = computed(body, "sm_107a", in);
      size_t wrong = 0;
      for (unsigned i = 0; i < count; ++i) {
        uint32_t expected = 0;
        for (const uint32_t word : {in[0][i], in[1][i]}) {
          const double units = std::bit_cast<float>(word) * 64.0;
          double whole = std::clamp(rz ? std::trunc(units) : std::nearbyint(units), -128.0, 127.0);
          if (relu) whole = std::max(whole, 0.0);
          expected = expected << 8 | (static_cast<uint32_t>(static_cast<int>(whole)) & 0xff);
        }
        wrong += got[i] != expected;
      }
      CHECK(wrong == 0);
    }
}

TEST_CASE("mixed packed sums and products") {
  std::vector<std::vector<uint32_t>> in = {random_words(16), random_words(17), random_words(18)};
  for (unsigned i = 0; i < count; ++i) // finite, of like size
    for (unsigned k = 0; k < 3; ++k)
      in[k][i] = (in[k][i] & 0x8fff8fff) | 0x30003000;
  const auto half = [](uint32_t code) { // f16, normal
    const double fraction = 1 + (code & 0x3ff) / 1024.0;
    return std::ldexp((code & 0x8000) != 0 ? -fraction : fraction, static_cast<int>(code >> 10 & 31) - 15);
  };
  const auto float_of = [](uint32_t word) { return static_cast<double>(std::bit_cast<float>(word)); };
  const auto truncated_to_float = [](double exact) {
    const float nearest = static_cast<float>(exact);
    return std::fabs(static_cast<double>(nearest)) > std::fabs(exact) ? std::nextafter(nearest, 0.0f) : nearest;
  };
  // Sums of f16 and f32 in f64: 24 and 11 bits, exponents at most 40 apart.
  for (const bool rz : {false, true}) {
    const std::string body = std::string("mov.b64 %d4, {%r2, %r3}; add") + (rz ? ".rz" : "") +
                             ".f32x2.f16x2.f32x2 %d4, %r1, %d4; mov.b64 {%r4, %r5}, %d4; xor.b32 %r0, %r4, %r5;";
    const std::vector<uint32_t> got = computed(body, "sm_107a", in);
    size_t wrong = 0;
    for (unsigned i = 0; i < count; ++i) {
      const double low = half(in[0][i] & 0xffff) + float_of(in[1][i]);
      const double high = half(in[0][i] >> 16) + float_of(in[2][i]);
      const auto result = [&](double exact) {
        return std::bit_cast<uint32_t>(rz ? truncated_to_float(exact) : static_cast<float>(exact));
      };
      wrong += got[i] != (result(low) ^ result(high));
    }
    CHECK(wrong == 0);
  }
  // bf16, rounded to zero, is the upper half of the f32 rounded to zero.
  for (const std::string operation : {"add", "sub", "mul"}) {
    const std::string body =
        "mov.b64 %d4, {%r1, %r2}; mov.b64 %d5, {%r2, %r3}; " + operation + ".rz.bf16x2.f32x2.f32x2 %r0, %d4, %d5;";
    const std::vector<uint32_t> got = computed(body, "sm_107a", in);
    size_t wrong = 0;
    for (unsigned i = 0; i < count; ++i)
      for (unsigned k = 0; k < 2; ++k) {
        const double a = float_of(in[k][i]), b = float_of(in[k + 1][i]);
        const double exact = operation == "add" ? a + b : operation == "sub" ? a - b : a * b;
        wrong += (got[i] >> (16 * k) & 0xffff) != std::bit_cast<uint32_t>(truncated_to_float(exact)) >> 16;
      }
    CHECK(wrong == 0);
  }
  // fma: a product of 11 and 24 bits and a sum, in long double.
  const std::string body = "mov.b64 %d4, {%r2, %r2}; mov.b64 %d5, {%r3, %r3}; fma.rn.f32x2.f16x2.f32x2.f32x2 %d4, %r1,"
                           " %d4, %d5; mov.b64 {%r0, _}, %d4;";
  const std::vector<uint32_t> got = computed(body, "sm_107a", in);
  size_t wrong = 0;
  for (unsigned i = 0; i < count; ++i) {
    const long double product = static_cast<long double>(half(in[0][i] & 0xffff)) * float_of(in[1][i]);
    wrong += got[i] != std::bit_cast<uint32_t>(static_cast<float>(product + float_of(in[2][i])));
  }
  CHECK(wrong == 0);
}

} // namespace ptxrewrite::emulator::narrow_numbers_test
