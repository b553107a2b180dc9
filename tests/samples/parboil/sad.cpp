// Sums of absolute differences for every displacement, each block size directly from the pixels.
#include "tests/samples/reference.h"

#include <algorithm>
#include <cstdlib>
#include <tuple>

namespace {

constexpr int reach = 16, places_across = 2 * reach + 1, places = places_across * places_across;

struct Block {
  int64_t left, top, width, height;
};

struct Frames {
  std::span<const uint16_t> current, reference;
  int64_t width, height;

  // The reference frame is extended by its border pixels.
  int difference(int64_t x, int64_t y, int64_t dx, int64_t dy) const {
    const int64_t row = std::clamp<int64_t>(y + dy, 0, height - 1), column = std::clamp<int64_t>(x + dx, 0, width - 1);
    return std::abs(int{current[y * width + x]} - int{reference[row * width + column]});
  }

  void fill(std::span<uint16_t> sads, const Block& block) const {
    for (int place = 0; place < places; ++place) {
      const int dy = place / places_across - reach, dx = place % places_across - reach;
      int sum = 0;
      for (int64_t y = block.top; y < block.top + block.height; ++y)
        for (int64_t x = block.left; x < block.left + block.width; ++x)
          sum += difference(x, y, dx, dy);
      sads[place] = static_cast<uint16_t>(sum);
    }
  }
};

} // namespace

REFERENCE(sad) {
  const int64_t padded = data.value("padded");
  const Frames frames{data.u16("current"), data.u16("reference"), data.value("width"), data.value("height")};
  // Ordered by macroblock; within one by 8x8 block if blocks are not larger; else by row.
  for (const auto& [name, width, height] : {std::tuple<const char*, int, int>{"sads_4x4", 4, 4},
                                            {"sads_8x4", 8, 4},
                                            {"sads_4x8", 4, 8},
                                            {"sads_8x8", 8, 8},
                                            {"sads_16x8", 16, 8},
                                            {"sads_8x16", 8, 16},
                                            {"sads_16x16", 16, 16}}) {
    auto out = data.u16(name);
    const int unit = std::max({8, width, height});
    size_t block = 0;
    for (int64_t macroblock = 0; macroblock < data.value("macroblocks"); ++macroblock) {
      const int64_t left = macroblock % data.value("across") * 16, top = macroblock / data.value("across") * 16;
      for (int unit_y = 0; unit_y < 16; unit_y += unit)
        for (int unit_x = 0; unit_x < 16; unit_x += unit)
          for (int y = unit_y; y < unit_y + unit; y += height)
            for (int x = unit_x; x < unit_x + unit; x += width)
              frames.fill(out.subspan(padded * block++, places), {left + x, top + y, width, height});
    }
  }
}
