#include "emulator/memory/data_report.h"

#include <algorithm>

namespace ptxrewrite::emulator {
namespace {

constexpr uint64_t sampled_bytes = 16;

// An element at `data`, little endian, of 4 to 32 bits, is -0: of a number with sign and magnitude.
bool is_minus_zero(const std::byte* data, unsigned bits) {
  if (bits == 4) return (data[0] & std::byte(0xf)) == std::byte(8);
  const unsigned bytes = bits / 8;
  return data[bytes - 1] == std::byte(0x80) &&
         std::all_of(data, data + bytes - 1, [](std::byte byte) { return byte == std::byte(0); });
}

bool has_minus_zero(const std::byte* data, uint64_t offset, uint64_t bytes, unsigned bits) {
  const uint64_t element = std::max(bits / 8, 1u);
  uint64_t at = (sampled_bytes - offset % sampled_bytes) % sampled_bytes;
  for (; at + element <= bytes; at += sampled_bytes)
    if (is_minus_zero(data + at, bits)) return true;
  return false;
}

bool has_all_ones(const std::byte* data, uint64_t bytes, unsigned element_bits) {
  if (element_bits == 4)
    return std::any_of(data, data + bytes, [](std::byte byte) {
      return (byte & std::byte(0x0f)) == std::byte(0x0f) || (byte & std::byte(0xf0)) == std::byte(0xf0);
    });
  const uint64_t element = element_bits / 8;
  for (uint64_t at = 0; at + element <= bytes; at += element)
    if (std::all_of(data + at, data + at + element, [](std::byte byte) { return byte == std::byte(0xff); }))
      return true;
  return false;
}

} // namespace

bool has_reported_data(DataReport report, const std::byte* data, uint64_t offset, uint64_t bytes,
                       unsigned element_bits) {
  switch (report) {
  case DataReport::none:
    return false;
  case DataReport::minus_zero_4:
    return has_minus_zero(data, offset, bytes, 4);
  case DataReport::minus_zero_8:
    return has_minus_zero(data, offset, bytes, 8);
  case DataReport::minus_zero_16:
    return has_minus_zero(data, offset, bytes, 16);
  case DataReport::minus_zero_32:
    return has_minus_zero(data, offset, bytes, 32);
  case DataReport::all_ones:
    return has_all_ones(data, bytes, element_bits);
  }
  return false;
}

} // namespace ptxrewrite::emulator
