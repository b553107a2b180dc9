// One dimension (mode) of a matrix layout as CuTe describes it: shapes and strides. Tests use it as a second
// description of layouts, independent of the emulator's computation.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace ptxrewrite::emulator_test {

// A coordinate is decomposed by the shapes, the first one varying fastest; the offset is the sum of digit times stride.
struct Mode {
  std::vector<std::pair<uint32_t, uint32_t>> parts; // shape, stride
  uint32_t offset(uint32_t coordinate) const {
    uint32_t sum = 0;
    for (const auto& [shape, stride] : parts) {
      sum += coordinate % shape * stride;
      coordinate /= shape;
    }
    return sum;
  }
};
inline constexpr uint32_t any = 1 << 20; // the last shape of a mode

} // namespace ptxrewrite::emulator_test
