#include "launch/scalar_bytes.h"

#include <bit>
#include <cmath>
#include <cstring>

namespace ptxrewrite::launch {

using ir::ScalarType;

namespace {

constexpr ScalarType plain_type_list[] = {ScalarType::s8,  ScalarType::s16,  ScalarType::s32, ScalarType::s64,
                                          ScalarType::u8,  ScalarType::u16,  ScalarType::u32, ScalarType::u64,
                                          ScalarType::b8,  ScalarType::b16,  ScalarType::b32, ScalarType::b64,
                                          ScalarType::f16, ScalarType::bf16, ScalarType::f32, ScalarType::f64};

// A 16-bit binary format with `fraction_bits` bits for the fraction.
uint16_t to_small_float(double value, int fraction_bits) {
  const int exponent_bits = 15 - fraction_bits;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const uint16_t infinity = static_cast<uint16_t>(((1 << exponent_bits) - 1) << fraction_bits);
  if (std::isnan(value)) return static_cast<uint16_t>(sign | infinity | (1 << (fraction_bits - 1)));
  const double size = std::fabs(value);
  if (std::isinf(size)) return sign | infinity;
  if (size == 0) return sign;
  int exponent = 0;
  std::frexp(size, &exponent); // size = m * 2^exponent, 0.5 <= m < 1
  exponent = std::max(exponent - 1, 1 - bias);
  // The fraction as an integer; rint rounds ties to even. All steps before it are exact.
  const double scaled = std::rint(std::ldexp(size, fraction_bits - exponent));
  // A carry out of the fraction increments the exponent.
  const double bits = scaled + std::ldexp(static_cast<double>(exponent + bias - 1), fraction_bits);
  return bits >= infinity ? sign | infinity : static_cast<uint16_t>(sign | static_cast<uint16_t>(bits));
}

double from_small_float(uint16_t bits, int fraction_bits) {
  const int exponent_bits = 15 - fraction_bits;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = (bits >> fraction_bits) & ((1 << exponent_bits) - 1);
  const int fraction = bits & ((1 << fraction_bits) - 1);
  double size = 0;
  if (exponent == (1 << exponent_bits) - 1)
    size = fraction ? std::nan("") : INFINITY;
  else if (exponent == 0)
    size = std::ldexp(fraction, 1 - bias - fraction_bits);
  else
    size = std::ldexp(fraction + (1 << fraction_bits), exponent - bias - fraction_bits);
  return bits & 0x8000 ? -size : size;
}

template <class T> void put(T value, std::byte* out) {
  std::memcpy(out, &value, sizeof value);
}
template <class T> T get(const std::byte* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

std::string encode_integer(ScalarType type, const Number& number, std::byte* out) {
  if (number.is_decimal)
    return to_string(number) + " is no integer, which " + std::string(spelling(type)) + " wants: use int(...)";
  const unsigned bits = bit_width(type);
  const Int128 low = is_unsigned(type) ? Int128(0) : -(Int128(1) << (bits - 1));
  const Int128 high = (is_signed(type) ? Int128(1) << (bits - 1) : Int128(1) << bits) - 1;
  if (number.integer < low || number.integer > high)
    return to_string(number.integer) + " does not fit " + std::string(spelling(type)) + " (" + to_string(low) + " to " +
           to_string(high) + ")";
  const uint64_t value = static_cast<uint64_t>(number.integer);
  std::memcpy(out, &value, bits / 8); // little-endian
  return {};
}

} // namespace

static_assert(std::endian::native == std::endian::little, "buffers are laid out as on a GPU");

bool is_plain_type(ScalarType type) {
  for (ScalarType plain : plain_type_list)
    if (plain == type) return true;
  return false;
}

std::span<const ScalarType> plain_types() {
  return plain_type_list;
}

std::string plain_type_names() {
  std::string names;
  for (ScalarType plain : plain_type_list)
    names += (names.empty() ? "" : ", ") + std::string(spelling(plain));
  return names;
}

uint16_t to_half(double value) {
  return to_small_float(value, 10);
}
uint16_t to_bfloat(double value) {
  return to_small_float(value, 7);
}
double from_half(uint16_t bits) {
  return from_small_float(bits, 10);
}
double from_bfloat(uint16_t bits) {
  return from_small_float(bits, 7);
}

std::string encode(ScalarType type, const Number& number, std::byte* out) {
  if (!is_float(type)) return encode_integer(type, number, out);
  const double value = number.as_double();
  bool infinite = false;
  switch (type) {
  case ScalarType::f16:
    put(to_half(value), out);
    infinite = std::isinf(from_half(get<uint16_t>(out)));
    break;
  case ScalarType::bf16:
    put(to_bfloat(value), out);
    infinite = std::isinf(from_bfloat(get<uint16_t>(out)));
    break;
  case ScalarType::f32:
    put(static_cast<float>(value), out);
    infinite = std::isinf(get<float>(out));
    break;
  default:
    put(value, out);
    break;
  }
  if (infinite && !std::isinf(value)) return to_string(number) + " does not fit " + std::string(spelling(type));
  return {};
}

Number decode(ScalarType type, const std::byte* bytes) {
  switch (type) {
  case ScalarType::f16:
    return Number::of(from_half(get<uint16_t>(bytes)));
  case ScalarType::bf16:
    return Number::of(from_bfloat(get<uint16_t>(bytes)));
  case ScalarType::f32:
    return Number::of(get<float>(bytes));
  case ScalarType::f64:
    return Number::of(get<double>(bytes));
  default:
    break;
  }
  uint64_t value = 0;
  std::memcpy(&value, bytes, byte_width(type));
  return Number(is_signed(type) ? sign_extended(Int128(value), bit_width(type)) : Int128(value));
}

} // namespace ptxrewrite::launch
