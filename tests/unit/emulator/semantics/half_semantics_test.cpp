// f16 and bf16: their values bit by bit, conversion from f32 around every one of them, arithmetic against MPFR.
#include "emulator/semantics/accumulate.h"
#include "emulator/semantics/half.h"
#include "emulator/semantics/half_vector.h"
#include "emulator/semantics/min_max.h"
#include "tests/unit/emulator/semantics/float_reference.h"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace {

using namespace ptxrewrite::emulator::semantics;
using namespace ptxrewrite::test;

template <class Half> constexpr Format numbers_of = f16_numbers;
template <> constexpr Format numbers_of<BFloat16> = bf16_numbers;

template <class Half> void check_decoding() {
  size_t wrong = 0;
  for (uint32_t code = 0; code < 0x10000; ++code) {
    const float value = to_float(Half{static_cast<uint16_t>(code)});
    const double wanted = decoded(numbers_of<Half>, code);
    const bool right = std::isnan(wanted) ? std::isnan(value) : to_bits(value) == to_bits(static_cast<float>(wanted));
    if (!right && ++wrong <= 3) FAIL_CHECK("code ", code, " is ", value, ", should be ", wanted);
  }
  CHECK(wrong == 0);
}

} // namespace

TEST_CASE("half lane semantics: every f16 and bf16 has the value that its fields say") {
  check_decoding<Float16>();
  check_decoding<BFloat16>();
}

#ifdef PTXREWRITE_HAVE_MPFR
namespace {

// Around every value of the format: itself, the midpoint to the next one, and the neighbours of both in f32.
template <class Half> std::vector<float> around_all_codes() {
  const Format& format = numbers_of<Half>;
  std::vector<float> result;
  for (uint32_t code = 0; code < 0x8000; ++code) {
    const auto value = static_cast<float>(decoded(format, code));
    const auto next = static_cast<float>(decoded(format, code + 1));
    if (std::isnan(value) || std::isnan(next)) continue;
    const float step = std::isinf(next) ? 0 : next - value;
    for (float a : {value, value + step / 2})
      for (float b : {a, std::nextafter(a, 0.0f), std::nextafter(a, HUGE_VALF)}) {
        result.push_back(b);
        result.push_back(-b);
      }
  }
  for (float a : {0x1.ffep15f, 0x1.ffdffep15f, 0x1.fep127f, 0x1.fefffep127f, 0x1.ffp127f, 0x1.fffffep127f, 0x1p-149f,
                  0x1p-25f, 0x1.000002p-25f, 0x1p-134f, 0x1.000008p-134f})
    for (float b : {a, -a})
      result.push_back(b);
  return result;
}

template <class Half, Rounding Mode> void check_encoding(const std::vector<float>& all) {
  size_t wrong = 0;
  for (float a : all) {
    const Half half = to_half<Half, narrow_rounding(Mode)>(a);
    const Half finite = to_half<Half, narrow_rounding(Mode), NarrowOptions{.finite = true}>(a);
    const Half relu = to_half<Half, narrow_rounding(Mode), NarrowOptions{.relu = true}>(a);
    const double exact = converted(numbers_of<Half>, mpfr_roundings[static_cast<int>(Mode)], a).value;
    const auto wanted = static_cast<uint16_t>(encoded(numbers_of<Half>, exact));
    const auto largest = static_cast<uint16_t>((wanted & 0x8000) | (FloatTraits<Half>::infinity - 1));
    const uint16_t wanted_finite = std::isinf(exact) ? largest : wanted;
    const uint16_t wanted_relu = std::signbit(a) ? 0 : wanted;
    if ((half.bits != wanted || finite.bits != wanted_finite || relu.bits != wanted_relu) && ++wrong <= 3)
      FAIL_CHECK("f32 bits ", to_bits(a), " become ", half.bits, ", should be ", wanted);
  }
  CHECK(wrong == 0);
}
template <class Half> void check_encoding() {
  const std::vector<float> all = around_all_codes<Half>();
  check_encoding<Half, Rounding::nearest_even>(all);
  check_encoding<Half, Rounding::toward_zero>(all);
  check_encoding<Half, Rounding::down>(all);
  check_encoding<Half, Rounding::up>(all);
}

struct Codes {
  uint16_t a, b, c;
};

// All pairs of edge operands; random codes; random codes of similar exponents; sums with cancellation.
template <class Half> std::vector<Codes> operands() {
  const std::vector<uint64_t> edges = edge_codes(numbers_of<Half>);
  RandomBits random(2);
  auto code = [](uint64_t bits) { return static_cast<uint16_t>(bits); };
  std::vector<Codes> result;
  for (uint64_t a : edges)
    for (uint64_t b : edges)
      result.push_back({code(a), code(b), code(edges[random() % edges.size()])});
  for (int i = 0; i < 20000; ++i) {
    const uint16_t a = code(random()), b = code(random());
    result.push_back({a, b, code(random())});
    result.push_back({a, code((a & 0x7c00) + (random() & 0x83ff)), code((b & 0x7c00) + (random() & 0x83ff))});
    const Half negated_product = to_half<Half>(-to_float(Half{a}) * to_float(Half{b}));
    result.push_back({a, b, code(negated_product.bits + random() % 3)});
  }
  while (result.size() % 32 != 0)
    result.push_back(result.front());
  return result;
}

template <class Half> Half flush_half(Half a) {
  const double value = decoded(numbers_of<Half>, a.bits);
  const bool subnormal = value != 0 && std::fabs(value) < std::ldexp(1.0, numbers_of<Half>.min_exponent);
  return subnormal ? Half{static_cast<uint16_t>(a.bits & 0x8000)} : a;
}

template <class Half, HalfMode Mode> uint16_t modified(Rounded result) {
  if (Mode.flush && result.tiny) result.value = std::copysign(0.0, result.value);
  if (Mode.saturate) result.value = !(result.value > 0) ? 0 : result.value > 1 ? 1 : result.value;
  if (Mode.relu && !std::isnan(result.value) && std::signbit(result.value)) result.value = 0;
  if (std::isnan(result.value)) return Mode.saturate ? 0 : 0x7fff;
  return static_cast<uint16_t>(encoded(numbers_of<Half>, result.value));
}

template <class Half, HalfMode Mode, class Function, class Reference>
void check_operation(const char* name, const std::vector<Codes>& all, Function function, Reference reference) {
  size_t wrong = 0;
  for (size_t first = 0; first < all.size(); first += 32) {
    std::array<Half, 32> a, b, c, d;
    for (size_t i = 0; i < 32; ++i) {
      a[i] = {all[first + i].a};
      b[i] = {all[first + i].b};
      c[i] = {all[first + i].c};
    }
    for (size_t i = 0; i < 32; ++i)
      d[i] = function(a[i], b[i], c[i]);
    for (size_t i = 0; i < 32; ++i) {
      auto value = [](Half h) { return decoded(numbers_of<Half>, (Mode.flush ? flush_half(h) : h).bits); };
      uint16_t wanted = modified<Half, Mode>(reference(value(a[i]), value(b[i]), value(c[i])));
      if (Mode.out_of_bounds)
        for (Half h : {a[i], b[i]}) // the addend does not count (seen on an H100)
          if (h.bits == 0x7ff7 || h.bits == 0xfff7) wanted = 0;
      if (d[i].bits != wanted && ++wrong <= 3)
        FAIL_CHECK(std::string(name), " of ", a[i].bits, ", ", b[i].bits, ", ", c[i].bits, " is ", d[i].bits,
                   ", should be ", wanted);
    }
  }
  CHECK_MESSAGE(wrong == 0, std::string(name));
}

template <class Half, HalfMode Mode> void check_fma(const std::vector<Codes>& all) {
  const mpfr_rnd_t r = mpfr_roundings[static_cast<int>(Mode.rounding)];
  check_operation<Half, Mode>(
      "fma", all, [](Half a, Half b, Half c) { return fma_half<Half, Mode>(a, b, c); },
      [=](double a, double b, double c) { return fused(numbers_of<Half>, r, a, b, c); });
}
template <class Half, HalfMode Mode> void check_arithmetic(const std::vector<Codes>& all) {
  check_operation<Half, Mode>(
      "add", all, [](Half a, Half b, Half) { return add_half<Half, Mode>(a, b); },
      [](double a, double b, double) { return sum(numbers_of<Half>, MPFR_RNDN, a, b); });
  check_operation<Half, Mode>(
      "sub", all, [](Half a, Half b, Half) { return sub_half<Half, Mode>(a, b); },
      [](double a, double b, double) { return difference(numbers_of<Half>, MPFR_RNDN, a, b); });
  check_operation<Half, Mode>(
      "mul", all, [](Half a, Half b, Half) { return mul_half<Half, Mode>(a, b); },
      [](double a, double b, double) { return product(numbers_of<Half>, MPFR_RNDN, a, b); });
  check_fma<Half, Mode>(all);
}

} // namespace
#endif

TEST_CASE("half lane semantics: f32 becomes f16 and bf16 in all roundings, around every value") {
#ifndef PTXREWRITE_HAVE_MPFR
  MESSAGE("skipped: built without MPFR");
#else
  check_encoding<Float16>();
  check_encoding<BFloat16>();
  for (float nan : {std::bit_cast<float>(0x7f800001), std::bit_cast<float>(0xffc12345)}) {
    CHECK(to_half<Float16>(nan).bits == 0x7fff);
    CHECK(to_half<BFloat16, NarrowRounding::up>(nan).bits == 0x7fff);
  }
  CHECK(to_half<Float16>(HUGE_VALF).bits == 0x7c00);
  CHECK(to_half<Float16, NarrowRounding::toward_zero>(-HUGE_VALF).bits == 0xfc00);
  CHECK(to_half<BFloat16, NarrowRounding::down>(HUGE_VALF).bits == 0x7f80);
#endif
}

TEST_CASE("half lane semantics: f16 and bf16 arithmetic is correctly rounded, with all modifiers") {
#ifndef PTXREWRITE_HAVE_MPFR
  MESSAGE("skipped: built without MPFR");
#else
  const auto halves = operands<Float16>();
  check_arithmetic<Float16, HalfMode{}>(halves);
  check_arithmetic<Float16, HalfMode{.flush = true}>(halves);
  check_arithmetic<Float16, HalfMode{.saturate = true}>(halves);
  check_arithmetic<Float16, HalfMode{.flush = true, .saturate = true}>(halves);
  check_fma<Float16, HalfMode{.relu = true}>(halves);
  check_fma<Float16, HalfMode{.flush = true, .relu = true}>(halves);
  check_fma<Float16, HalfMode{.relu = true, .out_of_bounds = true}>(halves);
  const auto brains = operands<BFloat16>();
  check_arithmetic<BFloat16, HalfMode{}>(brains);
  check_fma<BFloat16, HalfMode{.rounding = Rounding::toward_zero}>(brains);
  check_fma<BFloat16, HalfMode{.rounding = Rounding::down}>(brains);
  check_fma<BFloat16, HalfMode{.rounding = Rounding::up, .relu = true}>(brains);
  check_fma<BFloat16, HalfMode{.rounding = Rounding::nearest_even, .out_of_bounds = true}>(brains);
#endif
}

TEST_CASE("half lane semantics: abs, neg, min and max of all pairs of edges") {
  const std::vector<uint64_t> edges = edge_codes(f16_numbers);
  for (uint64_t x : edges) {
    const auto a = static_cast<uint16_t>(x);
    const double value = decoded(f16_numbers, a);
    const bool nan = std::isnan(value);
    const bool subnormal = value != 0 && std::fabs(value) < 0x1p-14;
    CAPTURE(a);
    CHECK(abs_half(Float16{a}).bits == (nan ? 0x7fff : a & 0x7fff));
    CHECK(abs_half<true>(Float16{a}).bits == (nan ? 0x7fff : subnormal ? 0 : a & 0x7fff));
    CHECK(neg_half(Float16{a}).bits == (nan ? 0x7fff : a ^ 0x8000));
    CHECK(neg_half<true>(Float16{a}).bits == (nan ? 0x7fff : (subnormal ? a & 0x8000 : a) ^ 0x8000));
    CHECK(neg_half(BFloat16{a}).bits == ((a & 0x7fff) > 0x7f80 ? 0x7fff : a ^ 0x8000));
    CHECK(neg_element<false>(Float16{a}).bits == (a ^ 0x8000));
    CHECK(abs_element<true>(Float16{a}).bits == (subnormal ? 0 : a & 0x7fff));
    CHECK(abs_half(BFloat16{a}).bits == ((a & 0x7fff) > 0x7f80 ? 0x7fff : a & 0x7fff));
    for (uint64_t y : edges) {
      const auto b = static_cast<uint16_t>(y);
      const double other = decoded(f16_numbers, b);
      CAPTURE(b);
      const bool either = nan || std::isnan(other);
      const bool a_first = value < other || (value == other && std::signbit(value));
      const uint16_t least = nan ? (std::isnan(other) ? 0x7fff : b) : std::isnan(other) || a_first ? a : b;
      const uint16_t most = nan ? (std::isnan(other) ? 0x7fff : b) : std::isnan(other) || !a_first ? a : b;
      CHECK(min_float(Float16{a}, Float16{b}).bits == least);
      CHECK(max_float(Float16{a}, Float16{b}).bits == most);
      constexpr MinMaxMode with_nan = {.propagate_nan = true};
      CHECK(min_float<with_nan>(Float16{a}, Float16{b}).bits == (either ? 0x7fff : least));
      CHECK(max_float<with_nan>(Float16{a}, Float16{b}).bits == (either ? 0x7fff : most));
      constexpr MinMaxMode signs = {.abs = true, .xorsign = true};
      const uint16_t larger = std::isnan(value)                     ? b
                              : std::isnan(other)                   ? a
                              : std::fabs(value) > std::fabs(other) ? a
                                                                    : b;
      const bool both = nan && std::isnan(other);
      CHECK(max_float<signs>(Float16{a}, Float16{b}).bits == (both ? 0x7fff : (larger & 0x7fff) | ((a ^ b) & 0x8000)));
    }
  }
}

TEST_CASE("half lane semantics: packed operands are two of each, low with low and high with high") {
  const Float16x2 a = {{0x3c00}, {0x4000}}, b = {{0x4200}, {0xc500}};
  const Float16x2 total = on_pair<&add_half<Float16>>(a, b);
  CHECK(total.low.bits == 0x4400);  // 1 + 3
  CHECK(total.high.bits == 0xc200); // 2 - 5
  const Float16x2 fused = on_pair<&fma_half<Float16>>(a, b, b);
  CHECK(fused.low.bits == 0x4600);  // 1 * 3 + 3
  CHECK(fused.high.bits == 0xcb80); // 2 * -5 - 5
}

TEST_CASE("float accumulation: atomic sums flush in global memory only, dot products round every partial sum once") {
  CHECK(atomic_add_global(0x1p-127f, 1.0f) == 1.0f);
  CHECK(to_bits(atomic_add_global(-0x1p-127f, -0.0f)) == to_bits(-0.0f));
  CHECK(atomic_add_global(0x1p-126f, -0x1.8p-126f) == 0.0f);
  CHECK(atomic_add_shared(0x1p-127f, 0x1p-149f) == 0x1.000004p-127f);
  CHECK(atomic_add(Float16{0x0001}, Float16{0x0001}).bits == 0x0002);
  CHECK(atomic_add(Float16x2{{0x3c00}, {0x4000}}, Float16x2{{0x4000}, {0xc000}}).low.bits == 0x4200);
  CHECK(atomic_min_max<true>(BFloat16{0x3f80}, BFloat16{0x7fff}).bits == 0x3f80);
  CHECK(atomic_add(1.0, 0x1p-53) == 1.0);
  // 2^24 + 1 loses the 1, and so does the next addition: in this order, and not in pairs.
  const Float16 a[] = {{0x6c00}, {0x3c00}, {0x3c00}}, b[] = {{0x6c00}, {0x3c00}, {0x3c00}}; // 4096^2 + 1 + 1
  CHECK(dot(a, b, 3, 0.0f) == 0x1p24f);
  CHECK(dot(a + 1, b + 1, 2, 0.5f) == 2.5f);
  CHECK(dot(a + 1, b + 1, 2, Float16{0x6800}).bits == 0x6801); // 2048 + 2
  const uint32_t x[] = {0x3f801fff}, y[] = {0x40000001};
  CHECK(dot_tf32(x, y, 1, 1.0f) == 3.0f);
  const double one[] = {1 + 0x1p-52}, other[] = {1 - 0x1p-53};
  CHECK(dot(one, other, 1, -1.0) == 0x1p-53 - 0x1p-105); // not rounded before the sum
}

#if defined(PTXREWRITE_HALF_VECTORS)
// Every first operand with random others: any, of the same size, and such that a sum nearly cancels.
TEST_CASE("eight halves at once give the bits of one after the other") {
  std::mt19937 random(2);
  unsigned wrong = 0;
  for (uint32_t first = 0; first < 0x10000; ++first)
    for (unsigned kind = 0; kind < 4; ++kind) {
      std::array<uint16_t, halves_at_once> a, b, c, out;
      for (unsigned i = 0; i < halves_at_once; ++i) {
        const auto bits = static_cast<uint32_t>(random());
        a[i] = static_cast<uint16_t>(first);
        b[i] = static_cast<uint16_t>(kind == 1 ? 0x3c00 | (bits & 0x8003) : kind == 2 ? first ^ (bits & 0x8007) : bits);
        c[i] = static_cast<uint16_t>(kind == 1 ? (first ^ 0x8000) + (bits >> 16 & 3) : bits >> 16);
      }
      const auto compare = [&](auto vector, auto scalar, const auto&... operands) {
        const Halves result = vector(std::bit_cast<Halves>(operands)...);
        std::memcpy(out.data(), &result, sizeof result);
        for (unsigned i = 0; i < halves_at_once; ++i)
          wrong += out[i] != scalar(Float16{operands[i]}...).bits;
      };
      compare(add_halves, add_half<Float16>, a, b);
      compare(sub_halves, sub_half<Float16>, a, b);
      compare(mul_halves, mul_half<Float16>, a, b);
      compare(fma_halves, fma_half<Float16>, a, b, c);
    }
  CHECK(wrong == 0);
}
#endif
