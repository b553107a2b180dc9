// f32 and f64 arithmetic of one lane against MPFR, for random and edge operands, in loops over 32 lanes like those of
// the emulator.
#include "emulator/semantics/float.h"
#include "emulator/semantics/half.h"
#include "emulator/semantics/min_max.h"
#include "tests/unit/emulator/semantics/float_reference.h"

#include <doctest/doctest.h>

#include <array>
#include <bit>
#include <cmath>
#include <string>
#include <vector>

namespace {

using namespace ptxrewrite::emulator::semantics;
using namespace ptxrewrite::test;

template <class T> struct Operands { T a, b, c; };

template <class T> const Format& format_numbers() {
  if constexpr (sizeof(T) == 4)
    return f32_numbers;
  else
    return f64_numbers;
}

// Every pair of edge operands, with a third one; then random numbers: of any exponent, of similar exponents, sums with
// cancellation, and products around the smallest normal number.
template <class T> std::vector<Operands<T>> operands(size_t random_count) {
  const Format& format = format_numbers<T>();
  const std::vector<uint64_t> codes = edge_codes(format);
  RandomBits random(1);
  auto number = [](uint64_t code) { return std::bit_cast<T>(static_cast<BitsOf<T>>(code)); };
  std::vector<Operands<T>> result;
  for (uint64_t a : codes)
    for (uint64_t b : codes)
      result.push_back({number(a), number(b), number(codes[random() % codes.size()])});
  for (size_t i = 0; i < random_count; ++i) {
    const T a = number(random()), b = number(random()), c = number(random());
    const int fraction_bits = format.precision - 1;
    const uint64_t middle = static_cast<uint64_t>(1 - format.min_exponent) << fraction_bits;
    const uint64_t mask = (uint64_t{16} << fraction_bits) - 1;
    const uint64_t sign = uint64_t{1} << (format.bits() - 1);
    auto near_one = [&] {
      return number(middle - (uint64_t{8} << fraction_bits) + (random() & mask) + (random() & sign));
    };
    const T x = near_one(), y = near_one(), z = near_one();
    result.push_back({a, b, c});
    result.push_back({x, y, z});
    result.push_back({x, y, static_cast<T>(-x * y)});
    result.push_back({x, static_cast<T>(-x + std::ldexp(z, -format.precision)), y});
    const T tiny = std::ldexp(x, format.min_exponent / 2),
            small = std::ldexp(y, format.min_exponent - format.min_exponent / 2);
    result.push_back({tiny, small, static_cast<T>(std::ldexp(z, format.min_exponent))});
  }
  while (result.size() % 32 != 0)
    result.push_back(result.front());
  return result;
}

template <class T> std::string text(const Operands<T>& in) {
  return std::to_string(to_bits(in.a)) + ", " + std::to_string(to_bits(in.b)) + ", " + std::to_string(to_bits(in.c));
}

// Calls `function` in loops over 32 lanes and compares each result with `expected`.
template <class T, class Function, class Expected>
void check_all(const char* name, const std::vector<Operands<T>>& all, Function function, Expected expected) {
  size_t wrong = 0;
  for (size_t first = 0; first < all.size(); first += 32) {
    std::array<T, 32> a, b, c, d;
    for (size_t i = 0; i < 32; ++i) {
      a[i] = all[first + i].a;
      b[i] = all[first + i].b;
      c[i] = all[first + i].c;
    }
    for (size_t i = 0; i < 32; ++i)
      d[i] = function(a[i], b[i], c[i]);
    for (size_t i = 0; i < 32; ++i) {
      const T wanted = expected(all[first + i]);
      if (to_bits(wanted) != to_bits(d[i]) && ++wrong <= 3)
        FAIL_CHECK(std::string(name), " of bits ", text(all[first + i]), " is ", to_bits(d[i]), ", should be ",
                   to_bits(wanted));
    }
  }
  CHECK_MESSAGE(wrong == 0, std::string(name));
}

#ifdef PTXREWRITE_HAVE_MPFR

// NaN is canonical in f32, and that of the operands in f64.
template <class T> T with_nan(double value, const Operands<T>& in, int operand_count) {
  if (!std::isnan(value)) return static_cast<T>(value);
  if constexpr (sizeof(T) == 4) return std::bit_cast<float>(0x7fffffff);
  const T values[] = {in.a, in.b, in.c};
  for (int i = 0; i < operand_count; ++i)
    if (std::isnan(values[i])) return from_bits<T>(static_cast<BitsOf<T>>(to_bits(values[i]) | 0x0008000000000000));
  return from_bits<T>(static_cast<BitsOf<T>>(0xfff8000000000000));
}

float flush(float a) {
  return std::fpclassify(a) == FP_SUBNORMAL ? std::copysign(0.0f, a) : a;
}

// Applies the modifiers to a result.
template <class Mode> float modified(Rounded result, const Operands<float>& in, int operand_count) {
  float value = with_nan<float>(result.value, in, operand_count);
  if (Mode::flush && result.tiny) value = std::copysign(0.0f, value);
  if (Mode::saturate) value = !(value > 0) ? 0.0f : value > 1 ? 1.0f : value;
  return value;
}

template <class Mode> void check_f32(const std::vector<Operands<float>>& all) {
  const mpfr_rnd_t r = mpfr_roundings[static_cast<int>(Mode::rounding)];
  auto expect = [&](int operand_count, auto reference) {
    return [=](Operands<float> in) {
      const Operands<float> used = Mode::flush ? Operands<float>{flush(in.a), flush(in.b), flush(in.c)} : in;
      return modified<Mode>(reference(used), used, operand_count);
    };
  };
  CAPTURE(static_cast<int>(Mode::rounding));
  CAPTURE(Mode::flush);
  CAPTURE(Mode::saturate);
  using In = const Operands<float>&;
  check_all(
      "add", all, [](float a, float b, float) { return add_f32<Mode>(a, b); },
      expect(2, [r](In in) { return sum(f32_numbers, r, in.a, in.b); }));
  check_all(
      "sub", all, [](float a, float b, float) { return sub_f32<Mode>(a, b); },
      expect(2, [r](In in) { return difference(f32_numbers, r, in.a, in.b); }));
  check_all(
      "mul", all, [](float a, float b, float) { return mul_f32<Mode>(a, b); },
      expect(2, [r](In in) { return product(f32_numbers, r, in.a, in.b); }));
  check_all(
      "fma", all, [](float a, float b, float c) { return fma_f32<Mode>(a, b, c); },
      expect(3, [r](In in) { return fused(f32_numbers, r, in.a, in.b, in.c); }));
  if constexpr (!Mode::saturate) {
    check_all(
        "div", all, [](float a, float b, float) { return div_f32<Mode>(a, b); },
        expect(2, [r](In in) { return quotient(f32_numbers, r, in.a, in.b); }));
    check_all(
        "rcp", all, [](float a, float, float) { return rcp_f32<Mode>(a); },
        expect(1, [r](In in) { return quotient(f32_numbers, r, 1.0, in.a); }));
    check_all(
        "sqrt", all, [](float a, float, float) { return sqrt_f32<Mode>(a); },
        expect(1, [r](In in) { return root(f32_numbers, r, in.a); }));
  }
}

template <Rounding Mode> void check_f64(const std::vector<Operands<double>>& all) {
  const mpfr_rnd_t r = mpfr_roundings[static_cast<int>(Mode)];
  auto expect = [&](int operand_count, auto reference) {
    return [=](const Operands<double>& in) { return with_nan<double>(reference(in).value, in, operand_count); };
  };
  CAPTURE(static_cast<int>(Mode));
  using In = const Operands<double>&;
  check_all(
      "add", all, [](double a, double b, double) { return add_f64<Mode>(a, b); },
      expect(2, [r](In in) { return sum(f64_numbers, r, in.a, in.b); }));
  check_all(
      "sub", all, [](double a, double b, double) { return sub_f64<Mode>(a, b); },
      expect(2, [r](In in) { return difference(f64_numbers, r, in.a, in.b); }));
  check_all(
      "mul", all, [](double a, double b, double) { return mul_f64<Mode>(a, b); },
      expect(2, [r](In in) { return product(f64_numbers, r, in.a, in.b); }));
  check_all(
      "fma", all, [](double a, double b, double c) { return fma_f64<Mode>(a, b, c); },
      expect(3, [r](In in) { return fused(f64_numbers, r, in.a, in.b, in.c); }));
  check_all(
      "div", all, [](double a, double b, double) { return div_f64<Mode>(a, b); },
      expect(2, [r](In in) { return quotient(f64_numbers, r, in.a, in.b); }));
  check_all(
      "sqrt", all, [](double a, double, double) { return sqrt_f64<Mode>(a); },
      expect(1, [r](In in) { return root(f64_numbers, r, in.a); }));
}

template <class Half> Half half_of(float a) {
  return {static_cast<uint16_t>(to_bits(a) >> 7)}; // any bits are valid
}

#endif

} // namespace

TEST_CASE("float lane semantics: f32 arithmetic is correctly rounded in all roundings, with .ftz and .sat") {
#ifndef PTXREWRITE_HAVE_MPFR
  MESSAGE("skipped: built without MPFR");
#else
  const auto all = operands<float>(4000);
  check_f32<FloatMode<Rounding::nearest_even>>(all);
  check_f32<FloatMode<Rounding::toward_zero>>(all);
  check_f32<FloatMode<Rounding::down>>(all);
  check_f32<FloatMode<Rounding::up>>(all);
  check_f32<FloatMode<Rounding::nearest_even, true>>(all);
  check_f32<FloatMode<Rounding::toward_zero, true>>(all);
  check_f32<FloatMode<Rounding::down, true>>(all);
  check_f32<FloatMode<Rounding::up, true>>(all);
  check_f32<FloatMode<Rounding::nearest_even, false, true>>(all);
  check_f32<FloatMode<Rounding::nearest_even, true, true>>(all);
  check_f32<FloatMode<Rounding::down, false, true>>(all);
  check_f32<FloatMode<Rounding::up, true, true>>(all);
#endif
}

TEST_CASE("float lane semantics: f64 arithmetic is correctly rounded in all roundings and passes NaNs on") {
#ifndef PTXREWRITE_HAVE_MPFR
  MESSAGE("skipped: built without MPFR");
#else
  const auto all = operands<double>(4000);
  check_f64<Rounding::nearest_even>(all);
  check_f64<Rounding::toward_zero>(all);
  check_f64<Rounding::down>(all);
  check_f64<Rounding::up>(all);
#endif
}

TEST_CASE("float lane semantics: mixed precision add, sub and fma round once, to f32") {
#ifndef PTXREWRITE_HAVE_MPFR
  MESSAGE("skipped: built without MPFR");
#else
  const auto all = operands<float>(2000);
  using Mode = FloatMode<Rounding::up>;
  const Format f16 = f16_numbers, bf16 = bf16_numbers;
  check_all(
      "add", all, [](float a, float, float c) { return add_mixed<Mode>(half_of<Float16>(a), c); },
      [&](const Operands<float>& in) {
        return with_nan<float>(sum(f32_numbers, MPFR_RNDU, decoded(f16, half_of<Float16>(in.a).bits), in.c).value, in,
                               2);
      });
  check_all(
      "sub", all, [](float a, float, float c) { return sub_mixed<Mode>(half_of<BFloat16>(a), c); },
      [&](const Operands<float>& in) {
        const double a = decoded(bf16, half_of<BFloat16>(in.a).bits);
        return with_nan<float>(difference(f32_numbers, MPFR_RNDU, a, in.c).value, in, 2);
      });
  check_all(
      "fma", all,
      [](float a, float b, float c) { return fma_mixed<Mode>(half_of<Float16>(a), half_of<Float16>(b), c); },
      [&](const Operands<float>& in) {
        const double a = decoded(f16, half_of<Float16>(in.a).bits), b = decoded(f16, half_of<Float16>(in.b).bits);
        return with_nan<float>(fused(f32_numbers, MPFR_RNDU, a, b, in.c).value, in, 3);
      });
#endif
}

namespace {

// The manual's definition of min and max.
template <bool Max, MinMaxMode Mode, class T> T min_max_stated(T a, T b) {
  const bool sign = std::signbit(a) != std::signbit(b);
  if (Mode.flush && std::fpclassify(a) == FP_SUBNORMAL) a = std::copysign(T{0}, a);
  if (Mode.flush && std::fpclassify(b) == FP_SUBNORMAL) b = std::copysign(T{0}, b);
  if (Mode.abs) {
    a = std::fabs(a);
    b = std::fabs(b);
  }
  T d;
  if ((std::isnan(a) && std::isnan(b)) || (Mode.propagate_nan && (std::isnan(a) || std::isnan(b))))
    return sizeof(T) == 4 ? static_cast<T>(std::bit_cast<float>(0x7fffffff))
                          : static_cast<T>(std::bit_cast<double>(0x7fffffffffffffff));
  if (std::isnan(a))
    d = b;
  else if (std::isnan(b))
    d = a;
  else if (a == 0 && b == 0)
    d = std::signbit(a) == Max ? b : a;
  else
    d = Max ? (a > b ? a : b) : (a < b ? a : b);
  return Mode.xorsign ? std::copysign(d, sign ? T{-1} : T{1}) : d;
}
template <MinMaxMode Mode, class T> void check_min_max(const std::vector<Operands<T>>& all) {
  using In = const Operands<T>&;
  check_all(
      "min", all, [](T a, T b, T) { return min_float<Mode>(a, b); },
      [](In in) { return min_max_stated<false, Mode>(in.a, in.b); });
  check_all(
      "max", all, [](T a, T b, T) { return max_float<Mode>(a, b); },
      [](In in) { return min_max_stated<true, Mode>(in.a, in.b); });
  if constexpr (!Mode.xorsign) {
    check_all(
        "min of three", all, [](T a, T b, T c) { return min_max<false, Mode>(a, b, c); },
        [](In in) { return min_max_stated<false, Mode>(min_max_stated<false, Mode>(in.a, in.b), in.c); });
    check_all(
        "max of three", all, [](T a, T b, T c) { return min_max<true, Mode>(a, b, c); },
        [](In in) { return min_max_stated<true, Mode>(min_max_stated<true, Mode>(in.a, in.b), in.c); });
  }
}

} // namespace

TEST_CASE("float lane semantics: min and max") {
  const auto all = operands<float>(500);
  check_min_max<MinMaxMode{}>(all);
  check_min_max<MinMaxMode{.flush = true}>(all);
  check_min_max<MinMaxMode{.propagate_nan = true}>(all);
  check_min_max<MinMaxMode{.flush = true, .propagate_nan = true}>(all);
  check_min_max<MinMaxMode{.abs = true}>(all);
  check_min_max<MinMaxMode{.propagate_nan = true, .abs = true}>(all);
  check_min_max<MinMaxMode{.abs = true, .xorsign = true}>(all);
  check_min_max<MinMaxMode{.flush = true, .propagate_nan = true, .abs = true, .xorsign = true}>(all);
  check_min_max<MinMaxMode{}>(operands<double>(500));
}

TEST_CASE("float lane semantics: abs, neg, copysign and testp look at bits") {
  for (uint64_t code : edge_codes(f32_numbers)) {
    const auto bits = static_cast<uint32_t>(code);
    const auto a = std::bit_cast<float>(bits);
    const uint32_t quiet = std::isnan(a) ? bits | 0x400000 : bits;
    const bool subnormal = std::fpclassify(a) == FP_SUBNORMAL;
    CAPTURE(bits);
    CHECK(to_bits(abs_float(a)) == (quiet & 0x7fffffff));
    CHECK(to_bits(neg_float(a)) == (quiet ^ 0x80000000));
    CHECK(to_bits(abs_float<true>(a)) == (subnormal ? 0 : quiet & 0x7fffffff));
    CHECK(to_bits(neg_float<true>(a)) == ((subnormal ? quiet & 0x80000000 : quiet) ^ 0x80000000));
    CHECK(to_bits(copysign_float(a, -2.0f)) == to_bits(std::copysign(2.0f, a)));
    CHECK(to_bits(copysign_float(-0.0f, a)) == (bits | 0x80000000));
    CHECK(testp<FloatProperty::finite>(a) == std::isfinite(a));
    CHECK(testp<FloatProperty::infinite>(a) == std::isinf(a));
    CHECK(testp<FloatProperty::number>(a) == !std::isnan(a));
    CHECK(testp<FloatProperty::not_a_number>(a) == std::isnan(a));
    CHECK(testp<FloatProperty::normal>(a) == (std::isnormal(a) || a == 0));
    CHECK(testp<FloatProperty::subnormal>(a) == subnormal);
  }
  for (uint64_t code : edge_codes(f64_numbers)) {
    const auto a = std::bit_cast<double>(code);
    CAPTURE(code);
    CHECK(to_bits(abs_float(a)) == ((std::isnan(a) ? code | 0x8000000000000 : code) & 0x7fffffffffffffff));
    CHECK(to_bits(copysign_float(a, 2.0)) == to_bits(std::copysign(2.0, a)));
    CHECK(testp<FloatProperty::normal>(a) == (std::isnormal(a) || a == 0));
    CHECK(testp<FloatProperty::subnormal>(a) == (std::fpclassify(a) == FP_SUBNORMAL));
  }
}
