// Asynchronous copies that look at the data they move and report to their mbarrier (PTX ISA 9.4,
// .mbarrier::report::validity): producers mark data that is not there yet by values that data never has.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ptxrewrite::emulator {

enum class DataReport : uint8_t {
  none,
  minus_zero_4, // per_16bytes::8: one element of each 16 bytes is -0, of 4 bits
  minus_zero_8,
  minus_zero_16,
  minus_zero_32,
  all_ones, // per_element::ff: all bits of an element are set
};

// Public text does not say which element of the 16 bytes is looked at, nor which number is reported: here the first
// one, and 1.
inline constexpr uint8_t reported_value = 1;

// `bytes` bytes of a copy's data, the first of which has this offset in it, with elements of that many bits.
bool has_reported_data(DataReport report, const std::byte* data, uint64_t offset, uint64_t bytes,
                       unsigned element_bits);

} // namespace ptxrewrite::emulator
