#include "emulator/core/resize.h"

#include "emulator/core/lanes.h"

namespace ptxrewrite::emulator {
namespace {

template <class From, class To> constexpr To convert(From value) {
  if constexpr (std::is_same_v<To, Bits128>)
    return {static_cast<uint64_t>(static_cast<int64_t>(value)), std::is_signed_v<From> && value < 0 ? ~uint64_t(0) : 0};
  else if constexpr (std::is_same_v<From, Bits128>)
    return static_cast<To>(value.low);
  else
    return static_cast<To>(value);
}

template <class From> Handler from(unsigned to_bits) {
  switch (to_bits) {
  case 8:
    return lane_handler<&convert<From, uint8_t>>;
  case 16:
    return lane_handler<&convert<From, uint16_t>>;
  case 32:
    return lane_handler<&convert<From, uint32_t>>;
  case 64:
    return lane_handler<&convert<From, uint64_t>>;
  default:
    return lane_handler<&convert<From, Bits128>>;
  }
}

template <class T> constexpr T same(T value) {
  return value;
}

} // namespace

Handler resize_handler(unsigned from_bits, unsigned to_bits, bool is_signed) {
  if (from_bits == to_bits) return nullptr;
  switch (from_bits) {
  case 8:
    return is_signed ? from<int8_t>(to_bits) : from<uint8_t>(to_bits);
  case 16:
    return is_signed ? from<int16_t>(to_bits) : from<uint16_t>(to_bits);
  case 32:
    return is_signed ? from<int32_t>(to_bits) : from<uint32_t>(to_bits);
  case 64:
    return is_signed ? from<int64_t>(to_bits) : from<uint64_t>(to_bits);
  default: {
    switch (to_bits) {
    case 8:
      return lane_handler<&convert<Bits128, uint8_t>>;
    case 16:
      return lane_handler<&convert<Bits128, uint16_t>>;
    case 32:
      return lane_handler<&convert<Bits128, uint32_t>>;
    default:
      return lane_handler<&convert<Bits128, uint64_t>>;
    }
  }
  }
}

Handler copy_handler(unsigned bits) {
  switch (bits) {
  case 1:
    return lane_handler<&same<bool>>;
  case 8:
    return lane_handler<&same<uint8_t>>;
  case 16:
    return lane_handler<&same<uint16_t>>;
  case 32:
    return lane_handler<&same<uint32_t>>;
  case 64:
    return lane_handler<&same<uint64_t>>;
  default:
    return lane_handler<&same<Bits128>>;
  }
}

Handler invert_predicate_handler() {
  return lane_handler<[](bool value) { return !value; }>;
}

} // namespace ptxrewrite::emulator
