// Compares the contents of a buffer after two runs: bit for bit, or with the tolerance that the launch file allows.
#pragma once

#include "launch/launch_plan.h"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace ptxrewrite::cuda {

struct ElementDifference {
  uint64_t index = 0; // with `atomics = true`: the index after sorting
  std::string original, rewritten;
};

struct BufferComparison {
  std::string buffer;
  uint64_t elements = 0;
  uint64_t differing = 0;
  std::vector<ElementDifference> first;

  bool same() const { return differing == 0; }
};

// The bytes in the order in which they are compared: sorted by value if the launch file says `atomics = true`.
std::vector<std::byte> in_comparable_order(const launch::Buffer& buffer, std::span<const std::byte> bytes);

// Both must have buffer.bytes() bytes. Keeps the first `most` differences.
BufferComparison compare(const launch::Buffer& buffer, std::span<const std::byte> original,
                         std::span<const std::byte> rewritten, size_t most);

} // namespace ptxrewrite::cuda
