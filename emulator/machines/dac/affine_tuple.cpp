#include "emulator/machines/dac/affine_tuple.h"

#include "emulator/semantics/integer.h"

#include <algorithm>

namespace ptxrewrite::emulator {
namespace {

bool all_zero(const IndexOffsets& offsets, unsigned count) {
  return std::all_of(offsets.begin(), offsets.begin() + count, [](uint64_t offset) { return offset == 0; });
}

uint64_t sum_at(uint64_t base, const IndexOffsets& offsets, const ThreadPosition& position) {
  for (unsigned i = 0; i < index_components; ++i)
    base += offsets[i] * position[i];
  return base;
}

// The remainder as a 64-bit number with the sign of the dividend.
uint64_t remainder_of(uint64_t dividend, uint64_t divisor, unsigned bits, bool is_signed) {
  using semantics::rem;
  switch (bits) {
  case 16:
    return is_signed ? static_cast<uint64_t>(rem(static_cast<int16_t>(dividend), static_cast<int16_t>(divisor)))
                     : rem(static_cast<uint16_t>(dividend), static_cast<uint16_t>(divisor));
  case 32:
    return is_signed ? static_cast<uint64_t>(rem(static_cast<int32_t>(dividend), static_cast<int32_t>(divisor)))
                     : rem(static_cast<uint32_t>(dividend), static_cast<uint32_t>(divisor));
  default:
    return is_signed ? static_cast<uint64_t>(rem(static_cast<int64_t>(dividend), static_cast<int64_t>(divisor)))
                     : rem(dividend, divisor);
  }
}

AffineTuple scaled(AffineTuple a, uint64_t factor) {
  a.base = low_bits(a.base * factor, a.bits);
  for (uint64_t& offset : a.offsets)
    offset = low_bits(offset * factor, a.bits);
  if (a.modulo) a.modulo->scale = low_bits(a.modulo->scale * factor, a.bits);
  return a;
}

} // namespace

AffineTuple AffineTuple::scalar(uint64_t value, unsigned bits) {
  AffineTuple tuple;
  tuple.bits = bits;
  tuple.base = low_bits(value, bits);
  return tuple;
}

AffineTuple AffineTuple::index(unsigned component) {
  AffineTuple tuple;
  tuple.offsets[component] = 1;
  return tuple;
}

bool AffineTuple::is_scalar() const {
  return all_zero(modulo ? modulo->offsets : offsets, index_components);
}

bool AffineTuple::is_block_scalar() const {
  return all_zero(modulo ? modulo->offsets : offsets, thread_components);
}

uint64_t AffineTuple::at(const ThreadPosition& position) const {
  if (!modulo) return low_bits(sum_at(base, offsets, position), bits);
  const uint64_t dividend = sum_at(modulo->base, modulo->offsets, position);
  return low_bits(base + modulo->scale * remainder_of(dividend, modulo->divisor, modulo->bits, modulo->is_signed),
                  bits);
}

std::optional<AffineTuple> add(const AffineTuple& a, const AffineTuple& b) {
  if ((a.modulo && !b.is_scalar()) || (b.modulo && !a.is_scalar())) return std::nullopt;
  AffineTuple sum = a.modulo ? a : b; // at most one operand is a mod tuple
  const AffineTuple& other = a.modulo ? b : a;
  sum.base = low_bits(a.base + b.base, a.bits);
  for (unsigned i = 0; i < index_components; ++i)
    sum.offsets[i] = low_bits(sum.offsets[i] + other.offsets[i], a.bits);
  return sum;
}

std::optional<AffineTuple> subtract(const AffineTuple& a, const AffineTuple& b) {
  return add(a, negate(b));
}

std::optional<AffineTuple> multiply(const AffineTuple& a, const AffineTuple& b) {
  if (a.is_scalar()) return scaled(b, a.at({}));
  if (b.is_scalar()) return scaled(a, b.at({}));
  return std::nullopt;
}

std::optional<AffineTuple> shift_left(const AffineTuple& a, const AffineTuple& amount) {
  if (!amount.is_scalar()) return std::nullopt;
  const uint64_t places = amount.at({});
  return scaled(a, places < a.bits ? uint64_t(1) << places : 0);
}

std::optional<AffineTuple> remainder(const AffineTuple& a, const AffineTuple& divisor, bool is_signed) {
  if (!divisor.is_scalar()) return std::nullopt;
  const uint64_t by = divisor.at({});
  if (a.is_scalar()) return AffineTuple::scalar(remainder_of(a.at({}), by, a.bits, is_signed), a.bits);
  if (a.modulo) return std::nullopt;
  AffineTuple result;
  result.bits = a.bits;
  result.modulo = AffineTuple::Modulo{a.bits, is_signed, a.base, a.offsets, by, 1};
  return result;
}

AffineTuple negate(const AffineTuple& a) {
  return scaled(a, ~uint64_t(0));
}

// Offsets are differences, which may be negative for all types.
AffineTuple convert(const AffineTuple& a, unsigned bits, bool is_signed) {
  AffineTuple result = a;
  result.bits = bits;
  const bool widens = bits > a.bits;
  auto moved = [&](uint64_t value, bool with_sign) {
    return low_bits(widens && with_sign ? sign_extended(value, a.bits) : value, bits);
  };
  result.base = moved(a.base, is_signed);
  for (uint64_t& offset : result.offsets)
    offset = moved(offset, true);
  if (result.modulo) result.modulo->scale = moved(result.modulo->scale, true);
  return result;
}

} // namespace ptxrewrite::emulator
