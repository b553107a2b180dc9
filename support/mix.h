// Mixes the bits of a number to a hash. (G. L. Steele, D. Lea, C. H. Flood: "Fast splittable pseudorandom number
// generators", OOPSLA 2014: the finaliser of SplitMix64.)
#pragma once

#include <cstdint>

namespace ptxrewrite {

constexpr uint64_t mixed_bits(uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

} // namespace ptxrewrite
