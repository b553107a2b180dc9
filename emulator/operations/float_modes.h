// Common code of float operations: modifiers that arrive as flags, and packed operands.
//
// Modifiers that matter for speed have separate rows and are template parameters of the function. The others arrive in
// Flags; by_rounding and similar functions turn them into template parameters.
#pragma once

#include "emulator/core/lanes.h"
#include "emulator/semantics/float.h"
#include "emulator/semantics/half.h"

#include <bit>
#include <cstdint>

namespace ptxrewrite::emulator {

// Halves are stored as bits, pairs with the lower element in the lower bits.
template <class Half> struct HalfStorage {
  using Stored = uint16_t;
  static constexpr Half load(Stored stored) { return {stored}; }
  static constexpr Stored store(Half value) { return value.bits; }
};
template <class Half> struct HalfPairStorage {
  using Stored = uint32_t;
  static constexpr semantics::Pair<Half> load(Stored stored) {
    return {Half{static_cast<uint16_t>(stored)}, Half{static_cast<uint16_t>(stored >> 16)}};
  }
  static constexpr Stored store(semantics::Pair<Half> value) {
    return value.low.bits | static_cast<uint32_t>(value.high.bits) << 16;
  }
};
template <> struct LaneStorage<semantics::Float16> : HalfStorage<semantics::Float16> {};
template <> struct LaneStorage<semantics::BFloat16> : HalfStorage<semantics::BFloat16> {};
template <> struct LaneStorage<semantics::Float16x2> : HalfPairStorage<semantics::Float16> {};
template <> struct LaneStorage<semantics::BFloat16x2> : HalfPairStorage<semantics::BFloat16> {};
template <> struct LaneStorage<semantics::Pair<uint16_t>> {
  using Stored = uint32_t;
  static constexpr semantics::Pair<uint16_t> load(Stored stored) {
    return {static_cast<uint16_t>(stored), static_cast<uint16_t>(stored >> 16)};
  }
  static constexpr Stored store(semantics::Pair<uint16_t> value) {
    return value.low | static_cast<uint32_t>(value.high) << 16;
  }
};
template <> struct LaneStorage<semantics::Float32x2> {
  using Stored = uint64_t;
  static constexpr semantics::Float32x2 load(Stored stored) {
    return {std::bit_cast<float>(static_cast<uint32_t>(stored)),
            std::bit_cast<float>(static_cast<uint32_t>(stored >> 32))};
  }
  static constexpr Stored store(semantics::Float32x2 value) {
    return std::bit_cast<uint32_t>(value.low) | static_cast<uint64_t>(std::bit_cast<uint32_t>(value.high)) << 32;
  }
};

// Calls function.template operator()<mode>() with the instruction's rounding, by default to nearest even.
template <class Function> constexpr auto by_rounding(Flags flags, Function function) {
  using semantics::Rounding;
  if (flags.has(flag_rz)) return function.template operator()<Rounding::toward_zero>();
  if (flags.has(flag_rm)) return function.template operator()<Rounding::down>();
  if (flags.has(flag_rp)) return function.template operator()<Rounding::up>();
  return function.template operator()<Rounding::nearest_even>();
}

template <class T> constexpr T flushed_by(Flags flags, T a) {
  return flags.has(flag_ftz) ? semantics::flushed(a) : a;
}
template <class T> constexpr T saturated_by(Flags flags, T a) {
  return flags.has(flag_sat) ? semantics::saturated(a) : a;
}

// Functions of one, two and three numbers applied to both elements of packed operands, as used in rows.
template <auto function, class T> inline constexpr auto each_of_one = &semantics::on_pair<function, T>;
template <auto function, class T>
inline constexpr auto each_of_two = &semantics::on_pair<function, T, semantics::Pair<T>>;
template <auto function, class T>
inline constexpr auto each_of_three = &semantics::on_pair<function, T, semantics::Pair<T>, semantics::Pair<T>>;

} // namespace ptxrewrite::emulator
