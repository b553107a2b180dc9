#include "launch/functions.h"

#include "launch/scalar_bytes.h"
#include "support/mix.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>

namespace ptxrewrite::launch {

namespace {

using Arguments = std::span<const Number>;

constexpr const char* wants_integer = "this function wants integers";

constexpr uint64_t golden_gamma = 0x9e3779b97f4a7c15u;

// 0 <= u < 1, a multiple of 2^-53.
double unit_interval(uint64_t bits) {
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

bool less(const Number& a, const Number& b) {
  if (!a.is_decimal && !b.is_decimal) return a.integer < b.integer;
  return a.as_double() < b.as_double();
}

const char* set(Number& result, std::optional<Int128> value) {
  if (!value) return overflow_message;
  result = Number(*value);
  return nullptr;
}

const char* minimum(Arguments a, const ElementContext&, Number& result) {
  result = a[0];
  for (const Number& candidate : a)
    if (less(candidate, result)) result = candidate;
  return nullptr;
}

const char* maximum(Arguments a, const ElementContext&, Number& result) {
  result = a[0];
  for (const Number& candidate : a)
    if (less(result, candidate)) result = candidate;
  return nullptr;
}

const char* absolute(Arguments a, const ElementContext&, Number& result) {
  if (a[0].is_decimal) {
    result = Number::of(std::fabs(a[0].decimal));
    return nullptr;
  }
  return set(result, a[0].integer < 0 ? checked_subtract(0, a[0].integer) : a[0].integer);
}

// Rounded up, whatever the signs.
std::optional<Int128> ceiling_quotient(Int128 a, Int128 b) {
  if (b == -1) return checked_subtract(0, a);
  Int128 quotient = a / b, rest = a % b;
  return rest != 0 && (rest < 0) == (b < 0) ? quotient + 1 : quotient;
}

const char* ceil_div(Arguments a, const ElementContext&, Number& result) {
  if (a[0].is_decimal || a[1].is_decimal) return wants_integer;
  if (a[1].integer == 0) return "division by zero";
  return set(result, ceiling_quotient(a[0].integer, a[1].integer));
}

const char* round_up(Arguments a, const ElementContext&, Number& result) {
  if (a[0].is_decimal || a[1].is_decimal) return wants_integer;
  if (a[1].integer == 0) return "division by zero";
  auto quotient = ceiling_quotient(a[0].integer, a[1].integer);
  return set(result, quotient ? checked_multiply(*quotient, a[1].integer) : std::nullopt);
}

const char* log2_of(Arguments a, const ElementContext&, Number& result) {
  if (a[0].is_decimal) {
    if (!(a[0].decimal > 0)) return "log2 wants a number above 0";
    result = Number::of(std::log2(a[0].decimal));
    return nullptr;
  }
  if (a[0].integer <= 0) return "log2 wants a number above 0";
  Int128 rest = a[0].integer;
  int bits = -1;
  for (; rest != 0; rest >>= 1)
    ++bits;
  result = Number(bits);
  return nullptr;
}

const char* power(Arguments a, const ElementContext&, Number& result) {
  if (a[0].is_decimal || a[1].is_decimal || a[1].integer < 0) {
    result = Number::of(std::pow(a[0].as_double(), a[1].as_double()));
    return nullptr;
  }
  Int128 base = a[0].integer, count = a[1].integer;
  if (base == 0 || base == 1) return set(result, count == 0 ? Int128(1) : base);
  if (base == -1) return set(result, count % 2 != 0 ? Int128(-1) : Int128(1));
  if (count > 127) return overflow_message;
  std::optional<Int128> value = 1;
  for (Int128 i = 0; i < count && value; ++i)
    value = checked_multiply(*value, base);
  return set(result, value);
}

template <double (*function)(double)> const char* by_library(Arguments a, const ElementContext&, Number& result) {
  result = Number::of(function(a[0].as_double()));
  return nullptr;
}

const char* square_root(Arguments a, const ElementContext&, Number& result) {
  if (a[0].as_double() < 0) return "the square root of a negative number";
  result = Number::of(std::sqrt(a[0].as_double()));
  return nullptr;
}

const char* to_integer(Arguments a, const ElementContext&, Number& result) {
  if (!a[0].is_decimal) return set(result, a[0].integer);
  if (!(std::fabs(a[0].decimal) < 0x1p126)) return overflow_message;
  result = Number(static_cast<Int128>(a[0].decimal));
  return nullptr;
}

const char* to_decimal(Arguments a, const ElementContext&, Number& result) {
  result = Number::of(a[0].as_double());
  return nullptr;
}

const char* seed_of(const Number& number, uint64_t& seed) {
  if (number.is_decimal) return "the seed is no integer";
  seed = static_cast<uint64_t>(number.integer);
  return nullptr;
}

const char* uniform(Arguments a, const ElementContext& element, Number& result) {
  uint64_t seed = 0;
  if (const char* failure = seed_of(a[2], seed)) return failure;
  uint64_t bits = random_bits(seed, element.index);
  if (less(a[1], a[0])) return "the upper bound lies below the lower one";
  if (is_float(element.type)) {
    double low = a[0].as_double(), high = a[1].as_double();
    result = Number::of(low + (high - low) * unit_interval(bits));
    return nullptr;
  }
  if (a[0].is_decimal || a[1].is_decimal) return "bounds of integers are integers";
  auto span = checked_subtract(a[1].integer, a[0].integer);
  if (!span || *span >= (Int128(1) << 64)) return overflow_message;
  UInt128 choices = UInt128(*span) + 1;
  // choices <= 2^64: the product with 64 bits fits, except for 2^64 itself, which needs no scaling.
  UInt128 chosen = choices >> 64 ? UInt128(bits) : (UInt128(bits) * choices) >> 64;
  result = Number(a[0].integer + Int128(chosen));
  return nullptr;
}

// The sum of twelve uniform numbers minus 6 has deviation 1 and needs no logarithm, whose last bit differs between
// libraries. It is exact: twelve 32-bit numbers sum up to 36 bits.
const char* normal(Arguments a, const ElementContext& element, Number& result) {
  if (!is_float(element.type)) return "only for buffers of floating-point numbers";
  uint64_t seed = 0;
  if (const char* failure = seed_of(a[2], seed)) return failure;
  constexpr unsigned draws = 6; // of two numbers each
  uint64_t sum = 0;
  for (unsigned i = 0; i < draws; ++i) {
    uint64_t bits = random_bits(seed, element.index * draws + i);
    sum += (bits & 0xffffffffu) + (bits >> 32);
  }
  double standard = static_cast<double>(static_cast<int64_t>(sum) - (int64_t{6} << 32)) * 0x1p-32;
  result = Number::of(a[0].as_double() + a[1].as_double() * standard);
  return nullptr;
}

const char* random_words(Arguments a, const ElementContext& element, Number& result) {
  uint64_t seed = 0;
  if (const char* failure = seed_of(a[0], seed)) return failure;
  const uint64_t bits = random_bits(seed, element.index);
  std::array<std::byte, sizeof bits> bytes;
  std::memcpy(bytes.data(), &bits, sizeof bits);
  result = decode(element.type, bytes.data());
  return nullptr;
}

const char* permutation(Arguments a, const ElementContext& element, Number& result) {
  uint64_t seed = 0;
  if (const char* failure = seed_of(a[0], seed)) return failure;
  result = Number(Int128(permuted(seed, element.index, element.count)));
  return nullptr;
}

const char* iota(Arguments a, const ElementContext& element, Number& result) {
  Number start = a.size() > 0 ? a[0] : Number(0), step = a.size() > 1 ? a[1] : Number(1);
  if (start.is_decimal || step.is_decimal) {
    result = Number::of(start.as_double() + step.as_double() * static_cast<double>(element.index));
    return nullptr;
  }
  auto distance = checked_multiply(step.integer, Int128(element.index));
  return set(result, distance ? checked_add(start.integer, *distance) : std::nullopt);
}

const char* zeros(Arguments, const ElementContext&, Number& result) {
  result = Number(0);
  return nullptr;
}

const char* constant(Arguments a, const ElementContext&, Number& result) {
  result = a[0];
  return nullptr;
}

constexpr FunctionRow rows[] = {
    {"min", 1, unbounded_arguments, minimum},
    {"max", 1, unbounded_arguments, maximum},
    {"abs", 1, 1, absolute},
    {"ceil_div", 2, 2, ceil_div},
    {"round_up", 2, 2, round_up},
    {"log2", 1, 1, log2_of},
    {"pow", 2, 2, power},
    {"sqrt", 1, 1, square_root},
    {"exp", 1, 1, by_library<std::exp>},
    {"log", 1, 1, by_library<std::log>},
    {"sin", 1, 1, by_library<std::sin>},
    {"cos", 1, 1, by_library<std::cos>},
    {"int", 1, 1, to_integer},
    {"float", 1, 1, to_decimal},
    {"uniform", 2, 2, uniform, true, true},
    {"normal", 2, 2, normal, true, true},
    {"random_bits", 0, 0, random_words, true, true},
    {"permutation", 0, 0, permutation, true, true},
    {"iota", 0, 2, iota, false, true},
    {"zeros", 0, 0, zeros},
    {"constant", 1, 1, constant},
};

constexpr Dialect dialect{rows, true};

} // namespace

const Dialect& launch_dialect() {
  return dialect;
}

uint64_t random_bits(uint64_t seed, uint64_t index) {
  uint64_t start = mixed_bits(seed + golden_gamma);
  return mixed_bits(start + (index + 1) * golden_gamma);
}

// A Feistel network permutes the smallest range 0 .. 4^k - 1 that contains count; values beyond are permuted again.
uint64_t permuted(uint64_t seed, uint64_t index, uint64_t count) {
  if (count < 2) return 0;
  constexpr unsigned rounds = 4;
  unsigned half = (static_cast<unsigned>(std::bit_width(count - 1)) + 1) / 2;
  uint64_t mask = (uint64_t{1} << half) - 1;
  uint64_t value = index;
  do {
    uint64_t left = value >> half, right = value & mask;
    for (unsigned round = 0; round < rounds; ++round) {
      uint64_t next = left ^ (random_bits(seed + round, right) & mask);
      left = right;
      right = next;
    }
    value = left << half | right;
  } while (value >= count);
  return value;
}

} // namespace ptxrewrite::launch
