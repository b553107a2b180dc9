// Comparisons of floats: all pairs of edge operands of all types against the manual's table of operators.
#include "emulator/semantics/float_compare.h"
#include "tests/unit/emulator/semantics/float_reference.h"

#include <doctest/doctest.h>

#include <cmath>
#include <string_view>

namespace ptxrewrite::tests::float_compare_semantics_test {

namespace {

using namespace ptxrewrite::emulator::semantics;
using namespace ptxrewrite::test;
using enum FloatComparison;

// By name: a relation of two numbers, followed by u if NaN makes it true.
bool stated(std::string_view name, double a, double b) {
  const bool unordered = std::isnan(a) || std::isnan(b);
  if (name == "num") return !unordered;
  if (name == "nan") return unordered;
  if (unordered) return name.size() == 3;
  const std::string_view relation = name.substr(0, 2);
  return relation == "eq"   ? a == b
         : relation == "ne" ? a != b
         : relation == "lt" ? a < b
         : relation == "le" ? a <= b
         : relation == "gt" ? a > b
                            : a >= b;
}

template <FloatComparison Comparison> void check(std::string_view name) {
  auto flushed_value = [](double a, const Format& format) {
    return std::fabs(a) < std::ldexp(1.0, format.min_exponent) ? 0.0 : a;
  };
  auto every_pair = [&](const Format& format, auto test) {
    for (uint64_t a : edge_codes(format))
      for (uint64_t b : edge_codes(format)) {
        const double x = decoded(format, a), y = decoded(format, b);
        test(a, b, stated(name, x, y), stated(name, flushed_value(x, format), flushed_value(y, format)));
      }
  };
  size_t wrong = 0;
  every_pair(f32_numbers, [&](uint64_t a, uint64_t b, bool wanted, bool wanted_flushed) {
    const auto x = from_bits<float>(static_cast<uint32_t>(a)), y = from_bits<float>(static_cast<uint32_t>(b));
    wrong += compare_float<Comparison>(x, y) != wanted;
    wrong += compare_float<Comparison, true>(x, y) != wanted_flushed;
  });
  every_pair(f64_numbers, [&](uint64_t a, uint64_t b, bool wanted, bool) {
    wrong += compare_float<Comparison>(from_bits<double>(a), from_bits<double>(b)) != wanted;
  });
  every_pair(f16_numbers, [&](uint64_t a, uint64_t b, bool wanted, bool wanted_flushed) {
    const Float16 x = {static_cast<uint16_t>(a)}, y = {static_cast<uint16_t>(b)};
    wrong += compare_float<Comparison>(x, y) != wanted;
    wrong += compare_float<Comparison, true>(x, y) != wanted_flushed;
  });
  every_pair(bf16_numbers, [&](uint64_t a, uint64_t b, bool wanted, bool) {
    const BFloat16 x = {static_cast<uint16_t>(a)}, y = {static_cast<uint16_t>(b)};
    wrong += compare_float<Comparison>(x, y) != wanted;
  });
  CHECK_MESSAGE(wrong == 0, name);
}

} // namespace

TEST_CASE("float comparison lane semantics: fourteen operators on all types, with .ftz") {
  check<eq>("eq");
  check<ne>("ne");
  check<lt>("lt");
  check<le>("le");
  check<gt>("gt");
  check<ge>("ge");
  check<equ>("equ");
  check<neu>("neu");
  check<ltu>("ltu");
  check<leu>("leu");
  check<gtu>("gtu");
  check<geu>("geu");
  check<num>("num");
  check<FloatComparison::nan>("nan");
}

TEST_CASE("float comparison lane semantics: what set writes for true") {
  CHECK(set_value<uint32_t>(true) == 0xffffffff);
  CHECK(set_value<int16_t>(true) == -1);
  CHECK(set_value<float>(true) == 1.0f);
  CHECK(set_value<Float16>(true).bits == 0x3c00);
  CHECK(set_value<BFloat16>(true).bits == 0x3f80);
  CHECK(set_value<uint16_t>(false) == 0);
  CHECK(to_bits(set_value<float>(false)) == 0);
}

} // namespace ptxrewrite::tests::float_compare_semantics_test
