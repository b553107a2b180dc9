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
  const TextureBinding last = level(mipmap.count - 1);
  return saturating_add(last.address - address, last.bytes());
}

} // namespace ptxrewrite::emulator
