// Sizes and places of a texture's levels of detail.
#include "emulator/memory/texture.h"

#include <algorithm>

namespace ptxrewrite::emulator {

TextureBinding TextureBinding::level(unsigned number) const {
  TextureBinding result = *this;
  result.mipmap = {};
  const auto halve = [](uint64_t& size) {
    if (size > 1) size /= 2;
  };
  for (unsigned i = 0; i < number; ++i) {
    result.address += result.bytes();
    halve(result.width);
    halve(result.height);
    if (!layered) halve(result.depth);
  }
  return result;
}

uint64_t TextureBinding::bytes_of_levels() const {
  uint64_t sum = 0;
  for (unsigned i = 0; i < mipmap.count; ++i)
    sum = saturating_add(sum, level(i).bytes());
  return sum;
}

} // namespace ptxrewrite::emulator
