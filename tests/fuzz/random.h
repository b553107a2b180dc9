// Random choices that are the same on every machine, unlike the standard distributions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>

namespace ptxrewrite::fuzz {

class Random {
public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t next() { // splitmix64
    uint64_t z = (state_ += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  // Nearly uniform in [0, bound); 0 if bound is 0.
  size_t below(size_t bound) { return bound == 0 ? 0 : static_cast<size_t>(next() % bound); }
  // Both ends included.
  int64_t between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(below(static_cast<size_t>(high - low + 1)));
  }
  bool one_in(size_t n) { return below(n) == 0; }
  bool chance(double probability) { return static_cast<double>(next() >> 11) * 0x1p-53 < probability; }
  // An element of a non-empty container.
  template <class Container> const auto& pick(const Container& from) { return from[below(std::size(from))]; }

private:
  uint64_t state_;
};

} // namespace ptxrewrite::fuzz
