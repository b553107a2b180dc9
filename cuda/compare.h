// Comparing what two runs left in a buffer: bit for bit, or as far as the launch file allows.
#pragma once

#include "launch/launch_plan.h"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace ptxrewrite::cuda {

struct ElementDifference {
  uint64_t index = 0; // with `atomics = true`: the place after sorting
  std::string original, rewritten;
};

struct BufferComparison {
  std::string buffer;
  uint64_t elements = 0;
  uint64_t differing = 0;
  std::vector<ElementDifference> first;

  bool same() const { return differing == 0; }
};

// The bytes as they are compared: sorted by value where the launch file says `atomics = true`.
std::vector<std::byte> in_comparable_order(const launch::Buffer& buffer, std::span<const std::byte> bytes);

// Both have buffer.bytes() bytes. Keeps the first `most` differences.
BufferComparison compare(const launch::Buffer& buffer, std::span<const std::byte> original,
                         std::span<const std::byte> rewritten, size_t most);

} // namespace ptxrewrite::cuda
