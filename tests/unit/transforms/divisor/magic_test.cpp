// The numbers that replace a divisor, as computed by the launch expressions, against division itself.
//
// For one divisor, n*m/2^k (rounded up) exceeds n/d by n times a constant, and (n+1)*m/2^k (rounded down) falls short
// by n times one: if the quotient is right for the largest dividends before and at a multiple, it is right for all. So
// each divisor is tested with its largest multiples, and with edge values.
#include "launch/predicate.h"
#include "transforms/divisor/magic.h"

#include <doctest/doctest.h>

#include <random>
#include <vector>

using namespace ptxrewrite;
using namespace ptxrewrite::transforms;

namespace {

using launch::Int128;
using launch::UInt128;

Int128 value_of(const std::string& text) {
  auto expression = launch::LaunchExpression::parse(text);
  REQUIRE_MESSAGE(expression, text);
  auto value = expression->evaluate({});
  REQUIRE_MESSAGE(value, text << ": " << value.error().message);
  return *value;
}

struct Numbers {
  uint64_t multiplier, shift, addend;
};

Numbers numbers(MagicForm form, uint64_t divisor) {
  const Magic magic = magic_of(form, std::to_string(divisor));
  const Int128 m = value_of(magic.multiplier), shift = value_of(magic.shift);
  // They fit the parameters.
  const unsigned bits = ir::bit_width(magic.multiplier_type);
  const Int128 low = ir::is_signed(magic.multiplier_type) ? -(Int128(1) << (bits - 1)) : 0;
  CHECK(m >= low);
  CHECK(m < low + (Int128(1) << bits));
  CHECK(shift >= 0);
  CHECK(shift < 64);
  const Int128 addend = magic.addend.empty() ? 0 : value_of(magic.addend);
  CHECK(addend >= 0);
  CHECK(addend < Int128(1) << 32);
  return {static_cast<uint64_t>(m), static_cast<uint64_t>(shift), static_cast<uint64_t>(addend)};
}

// The computation of the instructions: PTX ISA, mul.wide, mad.wide, mul.hi, shr.
uint64_t quotient(MagicForm form, const Numbers& x, uint64_t n) {
  switch (form) {
  case MagicForm::natural32:
    return static_cast<uint32_t>(n * x.multiplier >> x.shift);
  case MagicForm::unsigned32:
    return static_cast<uint32_t>((n * x.multiplier + x.addend) >> x.shift);
  case MagicForm::signed32: {
    const auto a = static_cast<int32_t>(n), m = static_cast<int32_t>(x.multiplier);
    const auto high = static_cast<uint32_t>((int64_t(a) * m) >> 32) + static_cast<uint32_t>(a);
    return static_cast<uint32_t>(static_cast<int32_t>(high) >> x.shift) + (static_cast<uint32_t>(n) >> 31);
  }
  case MagicForm::natural64:
    return static_cast<uint64_t>(UInt128(n) * x.multiplier >> 64) >> x.shift;
  case MagicForm::unsigned64: {
    const auto high = static_cast<uint64_t>(UInt128(n) * x.multiplier >> 64);
    return (((n - high) >> 1) + high) >> x.shift;
  }
  case MagicForm::signed64: {
    const auto a = static_cast<int64_t>(n), m = static_cast<int64_t>(x.multiplier);
    const auto high = static_cast<uint64_t>((Int128(a) * m) >> 64) + n;
    return static_cast<uint64_t>(static_cast<int64_t>(high) >> x.shift) + (n >> 63);
  }
  }
  return 0;
}

struct Range {
  unsigned width;
  uint64_t largest; // dividend, or the bits of one
  bool is_signed;
};
Range range_of(MagicForm form) {
  switch (form) {
  case MagicForm::natural32:
    return {32, INT32_MAX, false};
  case MagicForm::unsigned32:
    return {32, UINT32_MAX, false};
  case MagicForm::signed32:
    return {32, INT32_MAX, true};
  case MagicForm::natural64:
    return {64, INT64_MAX, false};
  case MagicForm::unsigned64:
    return {64, UINT64_MAX, false};
  case MagicForm::signed64:
    return {64, INT64_MAX, true};
  }
  return {};
}

constexpr MagicForm forms[] = {MagicForm::natural32, MagicForm::unsigned32, MagicForm::signed32,
                               MagicForm::natural64, MagicForm::unsigned64, MagicForm::signed64};

// Compares one dividend, and its negative if the form is signed.
void compare(MagicForm form, const Numbers& x, uint64_t divisor, uint64_t n) {
  const Range range = range_of(form);
  const uint64_t mask = range.width == 64 ? UINT64_MAX : UINT32_MAX;
  if (quotient(form, x, n) != n / divisor) FAIL_CHECK("form " << int(form) << ": " << n << " / " << divisor);
  if (!range.is_signed) return;
  // The most negative number, too.
  for (uint64_t magnitude : {n, n + 1})
    if (quotient(form, x, (0 - magnitude) & mask) != ((0 - magnitude / divisor) & mask))
      FAIL_CHECK("form " << int(form) << ": -" << magnitude << " / " << divisor);
}

void check_divisor(MagicForm form, uint64_t divisor, std::mt19937_64& random) {
  const Range range = range_of(form);
  const Numbers x = numbers(form, divisor);
  const uint64_t multiple = range.largest / divisor * divisor; // the largest
  std::vector<uint64_t> dividends{0, 1, divisor, divisor - 1, multiple, range.largest, range.largest - 1};
  if (multiple != 0) dividends.push_back(multiple - 1);
  if (multiple > divisor) dividends.push_back(multiple - divisor - 1);
  for (unsigned bit = 0; bit < range.width; bit += 5)
    for (uint64_t near : {(uint64_t(1) << bit) - 1, uint64_t(1) << bit})
      dividends.push_back(near);
  for (int i = 0; i < 4; ++i)
    dividends.push_back(random() >> (random() % range.width));
  for (uint64_t n : dividends)
    if (n <= range.largest) compare(form, x, divisor, n);
}

} // namespace

TEST_CASE("magic numbers are exact for all divisors of 12 bits") {
  std::mt19937_64 random(1);
  for (MagicForm form : forms)
    for (uint64_t divisor = least_divisor(form); divisor < 4096; ++divisor)
      check_divisor(form, divisor, random);
}

TEST_CASE("magic numbers are exact around powers of two, at the largest divisors and at random ones") {
  std::mt19937_64 random(2);
  for (MagicForm form : forms) {
    const uint64_t largest = largest_divisor(form);
    auto check = [&](uint64_t divisor) {
      if (divisor >= least_divisor(form) && divisor <= largest) check_divisor(form, divisor, random);
    };
    for (unsigned bit = 0; bit < 64; ++bit)
      for (int64_t near = -3; near <= 3; ++near)
        check((uint64_t(1) << bit) + static_cast<uint64_t>(near));
    for (uint64_t below = 0; below < 100; ++below)
      check(largest - below);
    for (int i = 0; i < 3000; ++i)
      check(random() >> (random() % 64));
  }
}

TEST_CASE("magic numbers: all dividends of 16 bits for divisors of 6") {
  for (MagicForm form : forms)
    for (uint64_t divisor = least_divisor(form); divisor < 64; ++divisor) {
      const Numbers x = numbers(form, divisor);
      for (uint64_t n = 0; n < 1 << 16; ++n)
        compare(form, x, divisor, n);
    }
}

TEST_CASE("there are no magic numbers of 0") {
  for (MagicForm form : forms) {
    auto expression = launch::LaunchExpression::parse(magic_of(form, "(0)").multiplier);
    REQUIRE(expression);
    CHECK_FALSE(expression->evaluate({}));
  }
}
