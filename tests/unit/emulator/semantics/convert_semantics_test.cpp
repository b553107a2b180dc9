// Conversions with a float as source or destination: against MPFR, long double, and for the 8, 6 and 4-bit formats
// against tables of their values, built bit by bit.
#include "emulator/semantics/convert.h"
#include "tests/unit/emulator/semantics/float_reference.h"
#include "tests/unit/emulator/semantics/narrow_floats.h"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace {

using namespace ptxrewrite::emulator::semantics;
using namespace ptxrewrite::test;

// Edges, halves around all small and large integers, and random bits.
template <class Float> std::vector<Float> float_operands() {
  const Format& format = sizeof(Float) == 4 ? f32_numbers : f64_numbers;
  std::vector<Float> result;
  auto add = [&](double value) {
    for (double a : {value, -value})
      result.push_back(static_cast<Float>(a));
  };
  for (uint64_t code : edge_codes(format))
    result.push_back(from_bits<Float>(static_cast<BitsOf<Float>>(code)));
  for (int power = 0; power <= 66; ++power)
    for (double delta : {0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.5})
      for (double base : {std::ldexp(1.0, power) + delta, std::ldexp(1.0, power) - delta}) {
        const auto near = static_cast<Float>(base);
        add(near);
        add(std::nextafter(near, Float{0}));
        add(std::nextafter(near, std::numeric_limits<Float>::infinity()));
      }
  for (double a = 0; a < 40; a += 0.25)
    add(a);
  RandomBits random(3);
  for (int i = 0; i < 3000; ++i) {
    result.push_back(from_bits<Float>(static_cast<BitsOf<Float>>(random())));
    add(std::ldexp(static_cast<double>(random() >> 11), static_cast<int>(random() % 70) - 55));
  }
  while (result.size() % 32 != 0)
    result.push_back(0);
  return result;
}

long double integral(IntegerRounding mode, long double a) {
  switch (mode) {
  case IntegerRounding::nearest_even: {
    const long double low = std::floor(a), rest = a - low;
    const bool up = rest > 0.5L || (rest == 0.5L && std::fmod(low, 2.0L) != 0);
    return std::copysign(up ? low + 1 : low, a);
  }
  case IntegerRounding::toward_zero:
    return std::trunc(a);
  case IntegerRounding::down:
    return std::floor(a);
  case IntegerRounding::up:
    return std::ceil(a);
  }
  return a;
}

template <class Int, IntegerRounding Mode, bool Flush, class Float> Int integer_stated(Float a) {
  using Limits = std::numeric_limits<Int>;
  constexpr bool zero = sizeof(Float) < 8 && sizeof(Int) < 8;
  if (std::isnan(a)) return zero ? 0 : static_cast<Int>(uint64_t{1} << (8 * sizeof(Int) - 1));
  if (Flush && std::fpclassify(a) == FP_SUBNORMAL) a = 0;
  const long double value = std::isinf(a) ? static_cast<long double>(a) : integral(Mode, a);
  if (value >= static_cast<long double>(Limits::max())) return Limits::max();
  if (value <= static_cast<long double>(Limits::min())) return Limits::min();
  return static_cast<Int>(value);
}

template <class Int, IntegerRounding Mode, bool Flush = false, class Float>
void check_to_integer(const std::vector<Float>& all) {
  size_t wrong = 0;
  for (size_t first = 0; first < all.size(); first += 32) {
    std::array<Int, 32> d;
    for (size_t i = 0; i < 32; ++i)
      d[i] = float_to_int<Int, Mode, Flush>(all[first + i]);
    for (size_t i = 0; i < 32; ++i) {
      const Int wanted = integer_stated<Int, Mode, Flush>(all[first + i]);
      if (d[i] != wanted && ++wrong <= 3) FAIL_CHECK(double{all[first + i]}, " becomes ", d[i], ", should be ", wanted);
    }
  }
  CHECK_MESSAGE(wrong == 0, sizeof(Float), " bytes to an integer of ", sizeof(Int), ", mode ", static_cast<int>(Mode));
}
template <class Int, class Float> void check_to_integer_all(const std::vector<Float>& all) {
  check_to_integer<Int, IntegerRounding::nearest_even>(all);
  check_to_integer<Int, IntegerRounding::toward_zero>(all);
  check_to_integer<Int, IntegerRounding::down>(all);
  check_to_integer<Int, IntegerRounding::up>(all);
}
template <class Float> void check_to_all_integers() {
  const auto all = float_operands<Float>();
  check_to_integer_all<int8_t>(all);
  check_to_integer_all<uint8_t>(all);
  check_to_integer_all<int16_t>(all);
  check_to_integer_all<uint16_t>(all);
  check_to_integer_all<int32_t>(all);
  check_to_integer_all<uint32_t>(all);
  check_to_integer_all<int64_t>(all);
  check_to_integer_all<uint64_t>(all);
}

template <IntegerRounding Mode> void check_integral() {
  auto wanted = [](auto a) {
    using Float = decltype(a);
    if (std::isnan(a)) return sizeof(Float) == 4 ? static_cast<Float>(std::bit_cast<float>(0x7fffffff)) : quieted(a);
    return std::isinf(a) ? a : std::copysign(static_cast<Float>(integral(Mode, a)), a);
  };
  for (float a : float_operands<float>())
    CHECK(to_bits(cvt_integral<Mode>(a)) == to_bits(wanted(a)));
  for (double a : float_operands<double>())
    CHECK(to_bits(cvt_integral<Mode>(a)) == to_bits(wanted(a)));
  for (uint32_t code = 0; code < 0x10000; code += 7) {
    const auto bits = static_cast<uint16_t>(code);
    const double half = decoded(f16_numbers, bits), brain = decoded(bf16_numbers, bits);
    const bool right =
        cvt_integral<Mode>(Float16{bits}).bits == (std::isnan(half) ? 0x7fff : encoded(f16_numbers, wanted(half))) &&
        cvt_integral<Mode>(BFloat16{bits}).bits == (std::isnan(brain) ? 0x7fff : encoded(bf16_numbers, wanted(brain)));
    if (!right) FAIL_CHECK("code ", bits);
  }
}

} // namespace

TEST_CASE("convert lane semantics: floats become integers in four roundings, clamped, NaN as the manual says") {
  check_to_all_integers<float>();
  check_to_all_integers<double>();
  check_to_integer<int32_t, IntegerRounding::up, true>(float_operands<float>());
  check_to_integer<uint64_t, IntegerRounding::up, true>(float_operands<float>());
  CHECK(float_to_int<int32_t, IntegerRounding::up>(0x1p-149f) == 1);
  CHECK(float_to_int<int32_t, IntegerRounding::up, true>(0x1p-149f) == 0);
  for (uint32_t code = 0; code < 0x10000; ++code) {
    const Float16 half = {static_cast<uint16_t>(code)};
    const BFloat16 brain = {static_cast<uint16_t>(code)};
    const auto value = static_cast<float>(decoded(f16_numbers, code));
    const auto other = static_cast<float>(decoded(bf16_numbers, code));
    const bool right = float_to_int<int16_t, IntegerRounding::nearest_even>(half) ==
                           integer_stated<int16_t, IntegerRounding::nearest_even, false>(value) &&
                       float_to_int<uint8_t, IntegerRounding::up>(half) ==
                           integer_stated<uint8_t, IntegerRounding::up, false>(value) &&
                       float_to_int<int64_t, IntegerRounding::down>(half) ==
                           integer_stated<int64_t, IntegerRounding::down, false>(value) &&
                       float_to_int<uint32_t, IntegerRounding::down>(brain) ==
                           integer_stated<uint32_t, IntegerRounding::down, false>(other) &&
                       float_to_int<uint64_t, IntegerRounding::toward_zero>(brain) ==
                           integer_stated<uint64_t, IntegerRounding::toward_zero, false>(other);
    if (!right) FAIL_CHECK("half of code ", code);
  }
}

TEST_CASE("convert lane semantics: floats become integral floats of the same size, -0 stays") {
  check_integral<IntegerRounding::nearest_even>();
  check_integral<IntegerRounding::toward_zero>();
  check_integral<IntegerRounding::down>();
  check_integral<IntegerRounding::up>();
  CHECK(to_bits(cvt_integral<IntegerRounding::up, true>(0x1p-149f)) == 0);
}

#ifdef PTXREWRITE_HAVE_MPFR
namespace {

template <class Int> std::vector<Int> integers() {
  std::vector<Int> result;
  for (unsigned power = 0; power < 8 * sizeof(Int); ++power)
    for (int64_t delta = -3; delta <= 3; ++delta)
      for (uint64_t scale : {uint64_t{1}, uint64_t{3}, uint64_t{0x1000001}, uint64_t{0x20000000000001}}) {
        const uint64_t value = (scale << power) + static_cast<uint64_t>(delta);
        result.push_back(static_cast<Int>(value));
        result.push_back(static_cast<Int>(0 - value));
      }
  RandomBits random(4);
  for (int i = 0; i < 2000; ++i)
    result.push_back(static_cast<Int>(random() >> (random() % 64)));
  while (result.size() % 32 != 0)
    result.push_back(0);
  return result;
}

template <class Int> Rounded integer_as(const Format& format, mpfr_rnd_t mode, Int a) {
  return rounded(format, mode, [&](mpfr_ptr d, mpfr_rnd_t r) {
    return std::is_signed_v<Int> ? mpfr_set_si(d, static_cast<long>(a), r)
                                 : mpfr_set_ui(d, static_cast<unsigned long>(a), r);
  });
}

template <class Int, Rounding Mode> void check_from_integer() {
  const mpfr_rnd_t r = mpfr_roundings[static_cast<int>(Mode)];
  const auto all = integers<Int>();
  for (size_t first = 0; first < all.size(); first += 32) {
    std::array<float, 32> single;
    std::array<double, 32> wide;
    std::array<Float16, 32> half;
    std::array<BFloat16, 32> brain;
    for (size_t i = 0; i < 32; ++i)
      single[i] = int_to_f32<FloatMode<Mode>>(all[first + i]);
    for (size_t i = 0; i < 32; ++i)
      wide[i] = int_to_f64<Mode>(all[first + i]);
    for (size_t i = 0; i < 32; ++i)
      half[i] = int_to_half<Float16, Mode>(all[first + i]);
    for (size_t i = 0; i < 32; ++i)
      brain[i] = int_to_half<BFloat16, Mode>(all[first + i]);
    for (size_t i = 0; i < 32; ++i) {
      const Int a = all[first + i];
      const bool right = single[i] == integer_as(f32_numbers, r, a).value &&
                         wide[i] == integer_as(f64_numbers, r, a).value &&
                         half[i].bits == encoded(f16_numbers, integer_as(f16_numbers, r, a).value) &&
                         brain[i].bits == encoded(bf16_numbers, integer_as(bf16_numbers, r, a).value);
      if (!right) FAIL_CHECK(a, " in mode ", static_cast<int>(Mode));
    }
  }
}
template <class Int> void check_from_integer_all() {
  check_from_integer<Int, Rounding::nearest_even>();
  check_from_integer<Int, Rounding::toward_zero>();
  check_from_integer<Int, Rounding::down>();
  check_from_integer<Int, Rounding::up>();
}

// f64 around the values of a narrower format and their midpoints.
std::vector<double> doubles_around(const Format& format) {
  std::vector<double> result = float_operands<double>();
  RandomBits random(5);
  for (int i = 0; i < 20000; ++i) {
    const uint64_t mask = (uint64_t{1} << (format.bits() - 1)) - 1;
    const uint64_t code = random() & mask;
    const double value = decoded(format, code), next = decoded(format, code + 1);
    if (std::isnan(value) || std::isnan(next) || std::isinf(value)) continue;
    const double step = std::isinf(next) ? value - decoded(format, code - 1) : next - value;
    for (double a : {value, value + step / 2, value + step / 4})
      for (double b : {a, std::nextafter(a, 0.0), std::nextafter(a, HUGE_VAL)})
        result.push_back(random() & 1 ? b : -b);
  }
  return result;
}

template <Rounding Mode> void check_from_f64() {
  const mpfr_rnd_t r = mpfr_roundings[static_cast<int>(Mode)];
  size_t wrong = 0;
  for (double a : doubles_around(f32_numbers)) {
    if (std::isnan(a)) continue;
    const Rounded wanted = converted(f32_numbers, r, a);
    const auto value = static_cast<float>(wanted.value);
    const float flushed_value = wanted.tiny ? std::copysign(0.0f, value) : value;
    const float saturated_value = value > 1 ? 1 : value > 0 ? value : 0;
    const bool right = to_bits(f64_to_f32<FloatMode<Mode>>(a)) == to_bits(value) &&
                       to_bits(f64_to_f32<FloatMode<Mode, true>>(a)) == to_bits(flushed_value) &&
                       to_bits(f64_to_f32<FloatMode<Mode, false, true>>(a)) == to_bits(saturated_value);
    if (!right && ++wrong <= 3) FAIL_CHECK("f64 bits ", to_bits(a), " to f32, mode ", static_cast<int>(Mode));
  }
  for (double a : doubles_around(f16_numbers))
    if (!std::isnan(a) &&
        f64_to_half<Float16, Mode>(a).bits != encoded(f16_numbers, converted(f16_numbers, r, a).value) && ++wrong <= 3)
      FAIL_CHECK("f64 bits ", to_bits(a), " to f16, mode ", static_cast<int>(Mode));
  for (double a : doubles_around(bf16_numbers))
    if (!std::isnan(a) &&
        f64_to_half<BFloat16, Mode>(a).bits != encoded(bf16_numbers, converted(bf16_numbers, r, a).value) &&
        ++wrong <= 3)
      FAIL_CHECK("f64 bits ", to_bits(a), " to bf16, mode ", static_cast<int>(Mode));
  CHECK(wrong == 0);
}

} // namespace
#endif

TEST_CASE("convert lane semantics: integers become floats in four roundings") {
#ifndef PTXREWRITE_HAVE_MPFR
  MESSAGE("skipped: built without MPFR");
#else
  check_from_integer_all<int8_t>();
  check_from_integer_all<uint8_t>();
  check_from_integer_all<int16_t>();
  check_from_integer_all<uint16_t>();
  check_from_integer_all<int32_t>();
  check_from_integer_all<uint32_t>();
  check_from_integer_all<int64_t>();
  check_from_integer_all<uint64_t>();
#endif
}

TEST_CASE("convert lane semantics: f64 becomes f32, f16 and bf16 in four roundings") {
#ifndef PTXREWRITE_HAVE_MPFR
  MESSAGE("skipped: built without MPFR");
#else
  check_from_f64<Rounding::nearest_even>();
  check_from_f64<Rounding::toward_zero>();
  check_from_f64<Rounding::down>();
  check_from_f64<Rounding::up>();
#endif
  auto nan = [](uint64_t bits) { return std::bit_cast<double>(bits); };
  CHECK(to_bits(f64_to_f32<>(nan(0x7ffabcdef0012345))) == 0x7fd5e6f7); // the upper part of the payload, as ptxas folds
  CHECK(to_bits(f64_to_f32<>(nan(0xfff0000000000001))) == 0xffc00000);
  CHECK(f64_to_half<Float16, Rounding::nearest_even>(nan(0x7ff8000000000000)).bits == 0x7fff);
}

TEST_CASE("convert lane semantics: widening is exact, .ftz flushes what is subnormal in f32") {
  CHECK(to_bits(f32_to_f64(0x1p-149f)) == to_bits(0x1p-149));
  CHECK(to_bits(f32_to_f64<true>(-0x1p-149f)) == to_bits(-0.0));
  CHECK(to_bits(half_to_f32(Float16{0x0001})) == to_bits(0x1p-24f));
  CHECK(to_bits(half_to_f32<true>(Float16{0x8001})) == to_bits(-0x1p-24f));
  CHECK(to_bits(half_to_f32<true>(BFloat16{0x8001})) == to_bits(-0.0f));
  CHECK(to_bits(half_to_f32(Float16{0xfe01})) == 0x7fffffff);
  CHECK(half_to_f64(BFloat16{0x0001}) == 0x1p-133);
  CHECK(f32_to_half<Float16, Rounding::up, true>(0x1p-149f).bits == 0);
  CHECK(f32_to_half<Float16, Rounding::up>(0x1p-149f).bits == 1);
  CHECK(half_to_half<BFloat16, Rounding::down>(Float16{0x3c01}).bits == 0x3f80);
  CHECK(half_to_half<BFloat16, Rounding::up>(Float16{0x3c01}).bits == 0x3f81);
  CHECK(half_to_half<Float16, Rounding::toward_zero>(BFloat16{0x7f7f}).bits == 0x7bff);
}

namespace {

std::vector<float> values_around(const NarrowFormat& format) {
  std::vector<float> result = {0.0f, -0.0f, 0x1p-149f, 0x1p-126f, 0x1p-30f, 1e30f, HUGE_VALF, 500.0f, 100.0f, 3.3f};
  for (size_t i = 0; i + 1 < format.values.size(); ++i) {
    const auto low = static_cast<float>(format.values[i]), high = static_cast<float>(format.values[i + 1]);
    for (float a : {low, (low + high) / 2, low + (high - low) * 0.3f, high})
      for (float b : {a, std::nextafter(a, 0.0f), std::nextafter(a, HUGE_VALF)})
        result.push_back(b);
  }
  const size_t count = result.size();
  for (size_t i = 0; i < count; ++i)
    result.push_back(-result[i]);
  return result;
}

template <SmallFormat Format> void check_small(const NarrowFormat& format) {
  const uint32_t sign = format.sign();
  constexpr unsigned stride = code_stride<Format>;
  RandomBits random(6);
  for (float a : values_around(format)) {
    const double magnitude = std::isinf(a) ? 1e30 : std::fabs(a);
    const uint32_t nearest = nearest_code(format, magnitude);
    const uint32_t with_sign_bit = nearest | (std::signbit(a) ? sign : 0);
    const uint32_t one = nearest_code(format, 1.0);
    CAPTURE(a);
    CHECK(pack_small<Format, false>(a, 1.0f) == (with_sign_bit << stride | one));
    CHECK(pack_small<Format, true>(1.0f, a) == (one << stride | (std::signbit(a) ? 0 : nearest)));
    const auto bits = static_cast<uint32_t>(random());
    auto code = [&](uint32_t random_bits) {
      return stochastic_code(format, magnitude, random_bits) | (std::signbit(a) ? sign : 0);
    };
    uint32_t first = bits >> 16, second = bits & 0xffff;
    if (stride == 4) {
      first = ((bits >> 16) & 0xff00) | ((bits >> 8) & 0xff);
      second = ((bits >> 8) & 0xff00) | (bits & 0xff);
    }
    CHECK(pack_small_stochastic<Format, false>(a, 1.0f, a, a, bits) ==
          (code(first) << 3 * stride | one << 2 * stride | code(second) << stride | code(second)));
  }
  const auto nan = std::bit_cast<float>(0xffc00001);
  CHECK(pack_small<Format, false>(nan, 0.0f) == format.nan << stride);
  CHECK(pack_small<Format, true>(nan, 0.0f) == format.nan << stride);
  // Back: every code, both signs, in either half.
  for (uint32_t code = 0; code <= format.last(); ++code)
    for (uint32_t sign_bit : {0u, sign}) {
      const double value = std::copysign(format.values[code], sign_bit != 0 ? -1.0 : 1.0);
      const uint64_t wanted = encoded(f16_numbers, value);
      const auto pack = static_cast<PackOfTwo<Format>>((code | sign_bit) << stride | code);
      const Float16x2 halves = unpack_small<Format, false>(pack);
      CAPTURE(code);
      CHECK(halves.high.bits == wanted);
      CHECK(halves.low.bits == (wanted & 0x7fff));
      CHECK(unpack_small<Format, true>(pack).high.bits == (sign_bit != 0 ? 0 : wanted));
      // And as halves of an f16x2 source.
      CHECK(pack_small<Format, false>(halves) == pack);
    }
}

} // namespace

TEST_CASE("convert lane semantics: 8, 6 and 4-bit floats, by tables of their values") {
  check_small<e4m3_format>(e4m3_values);
  check_small<e5m2_format>(e5m2_values);
  check_small<e2m3_format>(e2m3_values);
  check_small<e3m2_format>(e3m2_values);
  check_small<e2m1_format>(e2m1_values);
  CHECK(e4m3_values.values.back() == 448);
  CHECK(e5m2_values.values.back() == 57344);
  CHECK(e2m3_values.values.back() == 7.5);
  CHECK(e3m2_values.values.back() == 28);
  CHECK(e2m1_values.values.back() == 6);
  const Float16x2 specials = unpack_small<e5m2_format, false>(0x7cfe); // inf, -NaN
  CHECK(specials.high.bits == 0x7c00);
  CHECK(specials.low.bits == 0x7fff);
  CHECK(unpack_small<e4m3_format, true>(0xff00).high.bits == 0x7fff);
}

TEST_CASE("convert lane semantics: stochastic rounding to halves adds the random bits to what is cut off") {
  const auto a = std::bit_cast<float>(0x3f801234); // f16 keeps 0x3c00 and drops 0x1234, bf16 keeps 0x3f80
  CHECK(pack_halves_stochastic<Float16, false, false>(a, a, 0x0dcb0dcc).high.bits == 0x3c00);
  CHECK(pack_halves_stochastic<Float16, false, false>(a, a, 0x0dcb0dcc).low.bits == 0x3c01);
  CHECK(pack_halves_stochastic<Float16, false, false>(a, a, 0xedcbedcc).high.bits == 0x3c00); // 13 bits are used
  CHECK(pack_halves_stochastic<BFloat16, false, false>(-a, a, 0xedccedcb).high.bits == 0xbf81);
  CHECK(pack_halves_stochastic<BFloat16, false, false>(-a, a, 0xedccedcb).low.bits == 0x3f80);
  CHECK(pack_halves_stochastic<BFloat16, false, true>(-a, a, 0xedccedcb).high.bits == 0);
  CHECK(pack_halves_stochastic<Float16, false, false>(65519.0f, 1e6f, 0x1fff1fff).high.bits == 0x7c00);
  CHECK(pack_halves_stochastic<Float16, true, false>(65519.0f, 1e6f, 0x1fff1fff).high.bits == 0x7bff);
  // Subnormal: 2^-24 / 2 is half a unit, the first random bit decides.
  CHECK(pack_halves_stochastic<Float16, false, false>(0x1p-25f, 0x1p-25f, 0x0fff1000).high.bits == 0);
  CHECK(pack_halves_stochastic<Float16, false, false>(0x1p-25f, 0x1p-25f, 0x0fff1000).low.bits == 1);
  CHECK(pack_halves_stochastic<Float16, false, false>(0x1p-38f, 0x1p-37f, 0x1fff1fff).high.bits == 0);
  CHECK(pack_halves_stochastic<Float16, false, false>(0x1p-38f, 0x1p-37f, 0x1fff1fff).low.bits == 1);
}

TEST_CASE("convert lane semantics: packs put the first source into the upper half") {
  const Float16x2 halves = pack_halves<Float16, NarrowRounding::nearest_even>(1.0f, 2.0f);
  CHECK(halves.high.bits == 0x3c00);
  CHECK(halves.low.bits == 0x4000);
  const BFloat16x2 brains =
      pack_halves<BFloat16, NarrowRounding::toward_zero, NarrowOptions{.relu = true}>(-1.0f, 3e38f);
  CHECK(brains.high.bits == 0);
  CHECK(brains.low.bits == 0x7f61);
}

TEST_CASE("convert lane semantics: tf32") {
  auto rna = [](uint32_t bits) { return f32_to_tf32<NarrowRounding::nearest_away>(std::bit_cast<float>(bits)); };
  CHECK(rna(0x3f801000) == 0x3f802000);
  CHECK(rna(0xbf800fff) == 0xbf800000);
  CHECK(rna(0x00001000) == 0x00002000);
  CHECK(rna(0x7f7ff000) == 0x7f800000);
  CHECK(rna(0x7fc12345) == 0x7fc12000); // NaN as folded by ptxas
  CHECK(rna(0x7f800001) == 0x7fc00000); // but still a NaN
  constexpr NarrowOptions finite = {.finite = true};
  CHECK(f32_to_tf32<NarrowRounding::nearest_away, finite>(HUGE_VALF) == 0x7f7fe000);
  CHECK(f32_to_tf32<NarrowRounding::nearest_away, finite>(std::bit_cast<float>(0x7f800001)) == 0x7fffffff);
  CHECK(f32_to_tf32<NarrowRounding::nearest_even, NarrowOptions{.relu = true}>(-1.0f) == 0);
#ifdef PTXREWRITE_HAVE_MPFR
  for (float a : float_operands<float>()) {
    if (std::isnan(a)) continue;
    CAPTURE(a);
    CHECK((f32_to_tf32<NarrowRounding::nearest_even>(a) >> 13) ==
          encoded(tf32_numbers, converted(tf32_numbers, MPFR_RNDN, a).value));
    CHECK((f32_to_tf32<NarrowRounding::toward_zero>(a) >> 13) ==
          encoded(tf32_numbers, converted(tf32_numbers, MPFR_RNDZ, a).value));
  }
#endif
}

TEST_CASE("convert lane semantics: ue8m0 holds powers of two") {
  for (int exponent = -149; exponent <= 127; ++exponent)
    for (double factor : {1.0, 1.5, 1.0000001}) {
      const auto a = static_cast<float>(std::ldexp(factor, exponent));
      if (a == 0) continue;
      // The largest power of two that is not above, the smallest that is not below; the minimum is 2^-127.
      const int down = std::max(std::ilogb(a), -127);
      const int up = std::max(std::ilogb(a) + (std::ldexp(1.0f, std::ilogb(a)) != a ? 1 : 0), -127);
      CAPTURE(a);
      CHECK(pack_ue8m0<false, false>(a, -a) == (down + 127) * 0x101);
      CHECK(pack_ue8m0<true, true>(-a, a) == std::min(up + 127, 254) * 0x101);
      CHECK(pack_ue8m0<true, false>(a, a) == (up + 127) * 0x101);
    }
  CHECK(pack_ue8m0<false, false>(HUGE_VALF, 0.0f) == 0xff00);
  CHECK(pack_ue8m0<true, true>(-HUGE_VALF, -0.0f) == 0xfe00);
  CHECK(pack_ue8m0<true, true>(std::nanf(""), 1.0f) == 0xff7f);
  CHECK(pack_ue8m0<true, true>(BFloat16x2{{0x3f81}, {0x3f80}}) == 0x7f80);
  for (int code = 0; code < 0xff; ++code) {
    const BFloat16x2 halves = unpack_ue8m0(static_cast<uint16_t>(code << 8 | 127));
    CHECK(decoded(bf16_numbers, halves.high.bits) == std::ldexp(1.0, code - 127));
    CHECK(halves.low.bits == 0x3f80);
  }
  CHECK(unpack_ue8m0(0xff).low.bits == 0x7fff);
}
