// Contents of buffers: conversions against brute force, generators against their definition, and bits that must never
// change, because stored results depend on them.
#include "launch/functions.h"
#include "launch/launch_plan.h"
#include "launch/scalar_bytes.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <set>

namespace ptxrewrite::tests::generators_test {

using namespace ptxrewrite;
using namespace ptxrewrite::launch;

namespace {

template <class T> std::vector<T> filled(ir::ScalarType type, uint64_t count, const std::string& formula) {
  Buffer buffer;
  buffer.name = "b";
  buffer.type = type;
  buffer.count = count;
  Result<ArithmeticExpression> expression = ArithmeticExpression::parse(formula, launch_dialect());
  REQUIRE(expression);
  BoundExpression bound;
  bound.expression = std::make_shared<const ArithmeticExpression>(*expression);
  for (size_t i = 0; i < expression->names().size(); ++i) {
    if (expression->names()[i] == "i") bound.index_slot = i;
    if (expression->names()[i] == "count") bound.count_slot = i;
    bound.values.push_back(Number(0));
  }
  buffer.contents.formula = bound;
  std::vector<T> out(count);
  Status status = buffer.initialise(std::as_writable_bytes(std::span(out)));
  INFO(formula << ": " << (status ? "" : status.error().message));
  REQUIRE(status.ok());
  return out;
}

// The value of half-precision bits from the format's definition: sign, 5 bits of exponent, 10 of fraction.
double half_by_definition(unsigned bits, int exponent_bits) {
  const int fraction_bits = 15 - exponent_bits, bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = static_cast<int>(bits >> fraction_bits) & ((1 << exponent_bits) - 1);
  const double fraction = (bits & ((1u << fraction_bits) - 1)) / std::pow(2.0, fraction_bits);
  const double size =
      exponent == 0 ? fraction * std::pow(2.0, 1 - bias) : (1 + fraction) * std::pow(2.0, exponent - bias);
  return bits & 0x8000 ? -size : size;
}

} // namespace

TEST_CASE("16-bit floats: every bit pattern, every midpoint and its neighbours") {
  struct Format {
    int exponent_bits;
    uint16_t infinity;
    uint16_t (*to)(double);
    double (*from)(uint16_t);
  };
  for (const Format& format : {Format{5, 0x7c00, to_half, from_half}, Format{8, 0x7f80, to_bfloat, from_bfloat}}) {
    unsigned wrong = 0;
    for (unsigned bits = 0; bits < format.infinity; ++bits) {
      const double value = half_by_definition(bits, format.exponent_bits);
      wrong += format.from(static_cast<uint16_t>(bits)) != value;
      wrong += format.to(value) != bits;
      wrong += format.to(-value) != (bits | 0x8000u);
      // Above the largest number is the next one of an unbounded exponent range, which represents infinity.
      const double next = half_by_definition(bits + 1, format.exponent_bits);
      const double middle = value / 2 + next / 2; // exact: one additional bit
      const unsigned even = bits % 2 == 0 ? bits : bits + 1;
      wrong += format.to(middle) != even;
      wrong += format.to(std::nextafter(middle, 0.0)) != bits;
      wrong += format.to(std::nextafter(middle, INFINITY)) != bits + 1;
    }
    CHECK(wrong == 0);
    CHECK(format.to(INFINITY) == format.infinity);
    CHECK(std::isinf(format.from(format.infinity)));
    CHECK(std::isnan(format.from(format.to(NAN))));
    CHECK(format.to(1e300) == format.infinity);
    CHECK(format.to(5e-324) == 0);
  }
}

TEST_CASE("values that do not fit their type are refused") {
  std::byte bytes[8];
  using ir::ScalarType;
  CHECK(encode(ScalarType::u8, Number(255), bytes).empty());
  CHECK(encode(ScalarType::u8, Number(256), bytes) == "256 does not fit u8 (0 to 255)");
  CHECK(encode(ScalarType::s8, Number(-128), bytes).empty());
  CHECK(encode(ScalarType::s8, Number(128), bytes) == "128 does not fit s8 (-128 to 127)");
  CHECK(encode(ScalarType::b8, Number(-128), bytes).empty());
  CHECK(encode(ScalarType::b8, Number(255), bytes).empty());
  CHECK(encode(ScalarType::b8, Number(-129), bytes) == "-129 does not fit b8 (-128 to 255)");
  CHECK(encode(ScalarType::u64, Number((Int128(1) << 64) - 1), bytes).empty());
  CHECK(!encode(ScalarType::u64, Number(Int128(1) << 64), bytes).empty());
  CHECK(encode(ScalarType::s32, Number::of(1.5), bytes) == "1.5 is no integer, which s32 wants: use int(...)");
  CHECK(encode(ScalarType::f32, Number::of(1e39), bytes) == "9.9999999999999994e+38 does not fit f32");
  CHECK(encode(ScalarType::f32, Number::of(INFINITY), bytes).empty());
  CHECK(encode(ScalarType::f16, Number(65519), bytes).empty()); // rounds to 65504
  CHECK(encode(ScalarType::f16, Number(65520), bytes) == "65520 does not fit f16");
  REQUIRE(encode(ScalarType::f32, Number::of(0.1), bytes).empty());
  float tenth = 0;
  std::memcpy(&tenth, bytes, 4);
  CHECK(tenth == 0.1f);
  for (ScalarType type : {ScalarType::s8, ScalarType::s16, ScalarType::s32, ScalarType::s64}) {
    REQUIRE(encode(type, Number(-5), bytes).empty());
    CHECK(to_string(decode(type, bytes)) == "-5");
  }
}

TEST_CASE("the random bits are splitmix64's, with the seed mixed first") {
  // Written from the published algorithm: state += 0x9e3779b97f4a7c15, then two multiply-xorshift steps.
  auto mix = [](uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  };
  // Published test vector: the first output for seed 1234567.
  CHECK(mix(1234567 + 0x9e3779b97f4a7c15u) == 6457827717110365317u);
  uint64_t state = mix(7 + 0x9e3779b97f4a7c15u);
  for (uint64_t index = 0; index < 100; ++index) {
    state += 0x9e3779b97f4a7c15u;
    CHECK(random_bits(7, index) == mix(state));
  }
}

TEST_CASE("bits of generators never change") {
  // Computed independently, from the definitions, in Python's exact integers and fractions.
  CHECK(filled<uint32_t>(ir::ScalarType::f32, 4, "uniform(-1, 1, seed=1)") ==
        std::vector<uint32_t>{0xbe86f954, 0x3f631ada, 0xbf68d413, 0x3f0e0c36});
  CHECK(filled<uint64_t>(ir::ScalarType::f64, 3, "normal(0, 1, seed=1)") ==
        std::vector<uint64_t>{0xbfb2907c2c000000, 0xbffe291cbd400000, 0xbfd3e99296c00000});
  CHECK(filled<int32_t>(ir::ScalarType::s32, 6, "uniform(-100, 100, seed=3)") ==
        std::vector<int32_t>{48, 19, 27, 59, 60, 23});
  CHECK(filled<uint32_t>(ir::ScalarType::u32, 10, "permutation(seed=4)") ==
        std::vector<uint32_t>{4, 1, 2, 9, 7, 8, 5, 3, 0, 6});
}

TEST_CASE("uniform numbers stay in their bounds and spread evenly") {
  auto reals = filled<double>(ir::ScalarType::f64, 100000, "uniform(2, 4, seed=5)");
  double sum = 0, squares = 0;
  for (double x : reals) {
    REQUIRE(x >= 2);
    REQUIRE(x < 4);
    sum += x;
    squares += (x - 3) * (x - 3);
  }
  CHECK(sum / 1e5 == doctest::Approx(3).epsilon(0.005));
  CHECK(squares / 1e5 == doctest::Approx(4.0 / 12).epsilon(0.02)); // variance of a uniform number
  auto dice = filled<int8_t>(ir::ScalarType::s8, 60000, "uniform(-2, 3, seed=6)");
  unsigned counts[6] = {};
  for (int8_t die : dice) {
    REQUIRE(die >= -2);
    REQUIRE(die <= 3);
    ++counts[die + 2];
  }
  for (unsigned count : counts)
    CHECK(count == doctest::Approx(10000).epsilon(0.05));
  auto whole = filled<uint64_t>(ir::ScalarType::u64, 4, "uniform(0, 0xffffffffffffffff, seed=1)");
  CHECK(whole[0] == random_bits(1, 0));
}

TEST_CASE("normal numbers have their mean and deviation") {
  auto numbers = filled<double>(ir::ScalarType::f64, 100000, "normal(10, 2, seed=1)");
  double sum = 0, squares = 0;
  unsigned within = 0;
  for (double x : numbers) {
    sum += x;
    squares += (x - 10) * (x - 10);
    within += std::fabs(x - 10) < 2;
  }
  CHECK(sum / 1e5 == doctest::Approx(10).epsilon(0.005));
  CHECK(squares / 1e5 == doctest::Approx(4).epsilon(0.02));
  CHECK(within / 1e5 == doctest::Approx(0.683).epsilon(0.02)); // the normal distribution's share within one deviation
}

TEST_CASE("permutations hold each index once, whatever the count") {
  for (uint64_t count : {1u, 2u, 3u, 7u, 64u, 1000u, 4097u}) {
    auto order = filled<uint32_t>(ir::ScalarType::u32, count, "permutation(seed=9)");
    std::set<uint32_t> seen(order.begin(), order.end());
    CHECK(seen.size() == count);
    CHECK(*seen.rbegin() == count - 1);
  }
  auto order = filled<uint32_t>(ir::ScalarType::u32, 1000, "permutation(seed=9)");
  unsigned fixed = 0;
  for (uint32_t i = 0; i < 1000; ++i)
    fixed += order[i] == i;
  CHECK(fixed < 10);
}

TEST_CASE("formulas over the index") {
  CHECK(filled<int32_t>(ir::ScalarType::s32, 5, "iota") == std::vector<int32_t>{0, 1, 2, 3, 4});
  CHECK(filled<int32_t>(ir::ScalarType::s32, 4, "iota(10, -3)") == std::vector<int32_t>{10, 7, 4, 1});
  CHECK(filled<float>(ir::ScalarType::f32, 3, "iota(0.5, 0.25)") == std::vector<float>{0.5f, 0.75f, 1.0f});
  CHECK(filled<uint8_t>(ir::ScalarType::u8, 4, "constant(7)") == std::vector<uint8_t>{7, 7, 7, 7});
  CHECK(filled<uint16_t>(ir::ScalarType::u16, 3, "zeros") == std::vector<uint16_t>{0, 0, 0});
  CHECK(filled<float>(ir::ScalarType::f32, 9, "i / 3 == i % 3 ? 2.5 : 0") ==
        std::vector<float>{2.5f, 0, 0, 0, 2.5f, 0, 0, 0, 2.5f});
  CHECK(filled<int32_t>(ir::ScalarType::s32, 4, "count - 1 - i") == std::vector<int32_t>{3, 2, 1, 0});
  CHECK(filled<int32_t>(ir::ScalarType::s32, 3, "count") == std::vector<int32_t>{3, 3, 3});
}

TEST_CASE("random bits fill all of an element") {
  auto words = filled<uint16_t>(ir::ScalarType::s16, 2000, "random_bits(seed=2)");
  uint16_t ones = 0, zeros = 0xffff;
  for (size_t i = 0; i < words.size(); ++i) {
    CHECK(words[i] == static_cast<uint16_t>(random_bits(2, i)));
    ones |= words[i];
    zeros &= words[i];
  }
  CHECK(ones == 0xffff);
  CHECK(zeros == 0);
  auto floats = filled<uint32_t>(ir::ScalarType::f32, 1000, "random_bits(seed=2)");
  for (size_t i = 0; i < floats.size(); ++i) {
    // A signalling NaN may become quiet.
    const uint32_t bits = static_cast<uint32_t>(random_bits(2, i));
    const bool is_nan = (bits & 0x7fffffff) > 0x7f800000;
    CHECK((floats[i] | (is_nan ? 0x400000 : 0)) == (bits | (is_nan ? 0x400000 : 0)));
  }
}

TEST_CASE("a generator alone and one inside an expression give the same elements") {
  CHECK(filled<float>(ir::ScalarType::f32, 100, "uniform(-1.5, 2, seed=7)") ==
        filled<float>(ir::ScalarType::f32, 100, "uniform(-1.5, 2, seed=7) + 0"));
  CHECK(filled<int32_t>(ir::ScalarType::s32, 100, "uniform(-5, 9)") ==
        filled<int32_t>(ir::ScalarType::s32, 100, "0 + uniform(-5, 9, seed=0)"));
  CHECK(filled<int32_t>(ir::ScalarType::s32, 10, "iota(-3, 1 + 1)") ==
        filled<int32_t>(ir::ScalarType::s32, 10, "iota(-3, 2)"));
}

} // namespace ptxrewrite::tests::generators_test
