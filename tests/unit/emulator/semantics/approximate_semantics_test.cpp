// The .approx instructions: special operands listed in the manual, errors against MPFR far within the manual's bounds,
// and nearly always the correctly rounded result, as ptxas folds them.
#include "emulator/semantics/approximate.h"
#include "tests/unit/emulator/semantics/float_reference.h"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <string>
#include <vector>

namespace {

using namespace ptxrewrite::emulator::semantics;
using namespace ptxrewrite::test;

const float infinity = HUGE_VALF;
const float nan_operand = std::bit_cast<float>(0xffc12345);

bool is_canonical(float a) {
  return to_bits(a) == 0x7fffffff;
}

} // namespace

TEST_CASE("approximate lane semantics: special operands") {
  for (float a : {nan_operand, -1.0f, -infinity, -0x1p-149f}) {
    CAPTURE(a);
    CHECK(is_canonical(sqrt_approx(a)));
    CHECK(is_canonical(rsqrt_approx(a)));
    CHECK(is_canonical(lg2_approx(a)));
  }
  for (float a : {nan_operand, infinity, -infinity}) {
    CHECK(is_canonical(sin_approx(a)));
    CHECK(is_canonical(cos_approx(a)));
  }
  CHECK(is_canonical(rcp_approx(nan_operand)));
  CHECK(is_canonical(ex2_approx(nan_operand)));
  CHECK(is_canonical(tanh_approx(nan_operand)));
  CHECK(is_canonical(div_approx(nan_operand, 1.0f)));
  CHECK(to_bits(sqrt_approx(-0.0f)) == to_bits(-0.0f));
  CHECK(sqrt_approx(infinity) == infinity);
  CHECK(rsqrt_approx(0.0f) == infinity);
  CHECK(rsqrt_approx(-0.0f) == -infinity);
  CHECK(to_bits(rsqrt_approx(infinity)) == 0);
  CHECK(rsqrt_approx<true>(0x1p-149f) == infinity);
  CHECK(rsqrt_approx<true>(-0x1p-149f) == -infinity);
  CHECK(to_bits(rcp_approx(-infinity)) == to_bits(-0.0f));
  CHECK(rcp_approx(-0.0f) == -infinity);
  CHECK(rcp_approx(0x1p-149f) == infinity);
  CHECK(rcp_approx(0x1p127f) == 0x1p-127f);
  CHECK(to_bits(rcp_approx<true>(-0x1p127f)) == to_bits(-0.0f));
  CHECK(to_bits(sin_approx(-0.0f)) == to_bits(-0.0f));
  CHECK(to_bits(sin_approx(-0x1p-149f)) == to_bits(-0.0f));
  CHECK(sin_approx(0x1p-126f) == 0x1p-126f);
  CHECK(cos_approx(-0x1p-149f) == 1.0f);
  CHECK(lg2_approx(0.0f) == -infinity);
  CHECK(lg2_approx(-0.0f) == -infinity);
  CHECK(lg2_approx(infinity) == infinity);
  CHECK(lg2_approx(0x1p-149f) == -149.0f);
  CHECK(lg2_approx<true>(0x1p-127f) == -infinity);
  CHECK(to_bits(lg2_approx(1.0f)) == 0);
  CHECK(to_bits(ex2_approx(-infinity)) == 0);
  CHECK(ex2_approx(infinity) == infinity);
  CHECK(ex2_approx(-0.0f) == 1.0f);
  CHECK(ex2_approx(-149.0f) == 0x1p-149f);
  CHECK(ex2_approx<true>(-126.5f) == 0.0f);
  CHECK(to_bits(ex2_approx(-1e30f)) == 0);
  CHECK(ex2_approx(1e30f) == infinity);
  CHECK(tanh_approx(infinity) == 1.0f);
  CHECK(tanh_approx(-infinity) == -1.0f);
  CHECK(tanh_approx(1e30f) == 1.0f);
  CHECK(to_bits(tanh_approx(-0.0f)) == to_bits(-0.0f));
  CHECK(tanh_approx(0x1p-149f) == 0x1p-149f);
}

TEST_CASE("approximate lane semantics: division by huge numbers") {
  CHECK(div_approx(3.0f, 0x1p126f) == 0x1.8p-125f);
  CHECK(to_bits(div_approx(3e38f, 0x1.000002p126f)) == 0);
  CHECK(to_bits(div_approx(-3.0f, 0x1p127f)) == to_bits(-0.0f));
  CHECK(is_canonical(div_approx(infinity, -0x1p127f)));
  CHECK(div_approx(infinity, 0x1p126f) == infinity);
  CHECK(to_bits(div_approx(1.0f, -infinity)) == to_bits(-0.0f));
  CHECK(is_canonical(div_approx(infinity, infinity)));
  CHECK(div_approx(1.0f, 0.0f) == infinity);
  CHECK(div_full(0x1p127f, 0x1p127f) == 1.0f);
  CHECK(div_full<true>(0x1p-120f, 0x1p10f) == 0.0f);
  CHECK(div_full<false>(0x1p-120f, 0x1p10f) == 0x1p-130f);
}

TEST_CASE("approximate lane semantics: the f64 instructions that know upper halves only") {
  auto bits = [](double a) { return to_bits(a); };
  CHECK(rcp_approx_ftz(4.0) == 0.25);
  CHECK(rcp_approx_ftz(from_bits<double>(0x40100000ffffffff)) == 0.25);
  CHECK(rcp_approx_ftz(0x1p-1040) == HUGE_VAL);
  CHECK(rcp_approx_ftz(-0.0) == -HUGE_VAL);
  CHECK(bits(rcp_approx_ftz(-0x1p1023)) == bits(-0.0));
  CHECK(bits(rcp_approx_ftz(from_bits<double>(0xfff8000000000001))) == 0x7fffffff00000000);
  CHECK(bits(rsqrt_approx_ftz(-1.0)) == 0x7fffffff00000000);
  CHECK(rsqrt_approx_ftz(-0.0) == -HUGE_VAL);
  CHECK(bits(rsqrt_approx_ftz(HUGE_VAL)) == 0);
  RandomBits random(7);
  for (int i = 0; i < 10000; ++i) {
    const double a =
        std::ldexp(1 + std::ldexp(static_cast<double>(random() >> 12), -52), static_cast<int>(random() % 1000) - 500);
    CHECK((bits(rcp_approx_ftz(a)) & 0xffffffff) == 0);
    CHECK(std::fabs(rcp_approx_ftz(a) * a - 1) < 0x1p-19); // 20 bits of the operand, 20 of the result
    CHECK((bits(rsqrt_approx_ftz(a)) & 0xffffffff) == 0);
    CHECK(std::fabs(rsqrt_approx_ftz(a) * std::sqrt(a) - 1) < 0x1p-19);
    CHECK(std::fabs(rsqrt_approx(a) * std::sqrt(a) - 1) < 0x1p-51);
  }
}

#ifdef PTXREWRITE_HAVE_MPFR
namespace {

using MpfrFunction = int (*)(mpfr_ptr, mpfr_srcptr, mpfr_rnd_t);

int reciprocal(mpfr_ptr d, mpfr_srcptr a, mpfr_rnd_t r) {
  return mpfr_ui_div(d, 1, a, r);
}

struct Errors {
  double absolute = 0;
  double relative = 0;
  double share_not_nearest = 0;
};

// Errors of `function` on `operands`, whose results are all finite.
template <class Function> Errors errors(MpfrFunction exact, const std::vector<float>& operands, Function function) {
  Errors result;
  size_t different = 0;
  for (size_t first = 0; first + 32 <= operands.size(); first += 32) {
    std::array<float, 32> d;
    for (size_t i = 0; i < 32; ++i)
      d[i] = function(operands[first + i]);
    for (size_t i = 0; i < 32; ++i) {
      const Number a(operands[first + i]);
      Number wanted(0, 120), error(0, 120);
      exact(wanted, a, MPFR_RNDN);
      mpfr_sub_d(error, wanted, d[i], MPFR_RNDN);
      result.absolute = std::max(result.absolute, std::fabs(mpfr_get_d(error, MPFR_RNDN)));
      if (!mpfr_zero_p(static_cast<mpfr_srcptr>(wanted))) {
        mpfr_div(error, error, wanted, MPFR_RNDN);
        result.relative = std::max(result.relative, std::fabs(mpfr_get_d(error, MPFR_RNDN)));
      }
      const double nearest =
          rounded(f32_numbers, MPFR_RNDN, [&](mpfr_ptr x, mpfr_rnd_t r) { return exact(x, a, r); }).value;
      different += d[i] != static_cast<float>(nearest);
    }
  }
  result.share_not_nearest = static_cast<double>(different) / static_cast<double>(operands.size());
  return result;
}

// Random numbers in [-limit, limit], half of them uniformly distributed, half with uniform exponents down to `least`.
std::vector<float> spread(float limit, float least, bool negative_too) {
  std::vector<float> result;
  RandomBits random(8);
  while (result.size() < 32000) {
    const double even = std::ldexp(static_cast<double>(random() >> 11), -53);
    const double a = random() & 1 ? even * limit : least * std::pow(static_cast<double>(limit) / least, even);
    result.push_back(static_cast<float>(negative_too && random() & 1 ? -a : a));
  }
  return result;
}

const float pi = 3.14159265f;

} // namespace
#endif

TEST_CASE("approximate lane semantics: f32 results are within the documented bounds and nearly all correctly rounded") {
#ifndef PTXREWRITE_HAVE_MPFR
  MESSAGE("skipped: built without MPFR");
#else
  constexpr double half_unit = 0x1p-24 * 1.0001; // half a unit in the last place, relative to the smallest significand
  constexpr double few = 1e-4;                   // share of results that are not the nearest
  auto normal = [](double limit, auto list) {
    std::erase_if(list, [&](float a) { return std::fabs(a) < limit; });
    return list;
  };
  Errors e = errors(reciprocal, spread(0x1p125f, 0x1p-126f, true), [](float a) { return rcp_approx(a); });
  CHECK(e.relative <= half_unit);
  CHECK(e.share_not_nearest == 0);
  e = errors(mpfr_sqrt, spread(3e38f, 0x1p-149f, false), [](float a) { return sqrt_approx(a); });
  CHECK(e.relative <= half_unit);
  CHECK(e.share_not_nearest == 0);
  e = errors(mpfr_rec_sqrt, spread(3e38f, 0x1p-149f, false), [](float a) { return rsqrt_approx(a); });
  CHECK(e.relative <= half_unit);
  CHECK(e.share_not_nearest <= few);
  e = errors(mpfr_exp2, normal(0, spread(127.9f, 0x1p-60f, false)), [](float a) { return ex2_approx(a); });
  CHECK(e.relative <= half_unit);
  CHECK(e.share_not_nearest <= few);
  e = errors(mpfr_exp2, spread(125.9f, 0x1p-60f, true), [](float a) { return ex2_approx(a); });
  CHECK(e.relative <= half_unit);
  CHECK(e.share_not_nearest <= few);
  e = errors(mpfr_log2, spread(3e38f, 0x1p-149f, false), [](float a) { return lg2_approx(a); });
  CHECK(e.relative <= half_unit);
  CHECK(e.share_not_nearest <= few);
  e = errors(mpfr_log2, normal(0.5, spread(2.0f, 0.5f, false)), [](float a) { return lg2_approx(a); });
  CHECK(e.relative <= half_unit);
  CHECK(e.absolute <= 0x1p-22);
  CHECK(e.share_not_nearest <= few);
  e = errors(mpfr_sin, spread(100 * pi, 0x1p-126f, true), [](float a) { return sin_approx(a); });
  CHECK(e.absolute <= 0x1p-25 * 1.0001); // the manual: 2^-20.5 within 2 pi
  CHECK(e.share_not_nearest <= few);
  e = errors(mpfr_cos, spread(100 * pi, 0x1p-126f, true), [](float a) { return cos_approx(a); });
  CHECK(e.absolute <= 0x1p-25 * 1.0001);
  CHECK(e.share_not_nearest <= few);
  e = errors(mpfr_sin, spread(3e38f, 1e3f, true), [](float a) { return sin_approx(a); });
  CHECK(e.absolute <= 0x1p-25 * 1.0001); // the manual gives no bound there
  CHECK(e.share_not_nearest <= few);
  e = errors(mpfr_cos, spread(3e38f, 1e3f, true), [](float a) { return cos_approx(a); });
  CHECK(e.absolute <= 0x1p-25 * 1.0001);
  CHECK(e.share_not_nearest <= few);
  e = errors(mpfr_tanh, spread(20.0f, 0x1p-126f, true), [](float a) { return tanh_approx(a); });
  CHECK(e.relative <= half_unit); // the manual: 2^-11
  CHECK(e.share_not_nearest <= few);
#endif
}

#ifdef PTXREWRITE_HAVE_MPFR
namespace {

// For every code: the correctly rounded result, as bits.
template <class Half, class Function>
void check_half(const Format& format, MpfrFunction exact, bool flush, Function function) {
  size_t wrong = 0;
  for (uint32_t code = 0; code < 0x10000; ++code) {
    const Half half = {static_cast<uint16_t>(code)};
    double a = decoded(format, code);
    const double least = std::ldexp(1.0, format.min_exponent);
    if (flush && std::fabs(a) < least) a = std::copysign(0.0, a);
    const Number operand(a);
    double wanted = rounded(format, MPFR_RNDN, [&](mpfr_ptr d, mpfr_rnd_t r) { return exact(d, operand, r); }).value;
    if (flush && std::fabs(wanted) < least) wanted = std::copysign(0.0, wanted);
    const auto bits = std::isnan(wanted) ? 0x7fff : static_cast<uint16_t>(encoded(format, wanted));
    if (function(half).bits != bits && ++wrong <= 3)
      FAIL_CHECK("code ", code, " gives ", function(half).bits, ", should give ", bits);
  }
  CHECK(wrong == 0);
}

} // namespace
#endif

TEST_CASE("approximate lane semantics: ex2 and tanh of every f16 and bf16 are correctly rounded") {
#ifndef PTXREWRITE_HAVE_MPFR
  MESSAGE("skipped: built without MPFR");
#else
  check_half<Float16>(f16_numbers, mpfr_exp2, false, [](Float16 a) { return ex2_approx(a); });
  check_half<Float16>(f16_numbers, mpfr_tanh, false, [](Float16 a) { return tanh_approx_half(a); });
  check_half<BFloat16>(bf16_numbers, mpfr_exp2, true, [](BFloat16 a) { return ex2_approx(a); });
  check_half<BFloat16>(bf16_numbers, mpfr_tanh, false, [](BFloat16 a) { return tanh_approx_half(a); });
#endif
}
