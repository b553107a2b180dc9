#include "cuda/compare.h"

#include "cuda/buffer_text.h"
#include "launch/scalar_bytes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace ptxrewrite::cuda {

namespace {

uint64_t bits_of(const std::byte* element, size_t size) {
  uint64_t bits = 0;
  std::memcpy(&bits, element, size);
  return bits;
}

// Sorts elements by value; equal values (0 and -0, NaNs) by their bits.
std::vector<std::byte> sorted(ir::ScalarType type, std::span<const std::byte> bytes) {
  const size_t size = byte_width(type);
  std::vector<uint64_t> elements;
  for (size_t at = 0; at + size <= bytes.size(); at += size)
    elements.push_back(bits_of(bytes.data() + at, size));
  const bool is_negative_bigger = is_float(type) || is_signed(type);
  const uint64_t sign = uint64_t{1} << (size * 8 - 1);
  const uint64_t mask = sign | (sign - 1);
  // Maps bits to unsigned numbers in the order of the values: flips the sign bit of two's complement, and all bits of
  // negative floating-point numbers.
  auto key = [&](uint64_t bits) {
    if (!is_negative_bigger) return bits;
    if (is_float(type) && (bits & sign)) return ~bits & mask;
    return bits ^ sign;
  };
  std::ranges::sort(elements, {}, key);
  std::vector<std::byte> out(elements.size() * size);
  for (size_t i = 0; i < elements.size(); ++i)
    std::memcpy(out.data() + i * size, &elements[i], size);
  return out;
}

bool within(const launch::Tolerance& tolerance, double original, double rewritten) {
  if (std::isnan(original) && std::isnan(rewritten)) return true;
  if (!std::isfinite(original) || !std::isfinite(rewritten)) return original == rewritten;
  const double distance = std::fabs(original - rewritten);
  return distance <= tolerance.absolute || distance <= tolerance.relative * std::fabs(original);
}

// The element's value; for floating point also its bits, because the value alone may not distinguish two elements.
std::string shown(ir::ScalarType type, const std::byte* element) {
  std::string text = element_text(type, element);
  if (!is_float(type)) return text;
  return text + fmt::format(" ({:#0{}x})", bits_of(element, byte_width(type)), 2 + 2 * byte_width(type));
}

} // namespace

std::vector<std::byte> in_comparable_order(const launch::Buffer& buffer, std::span<const std::byte> bytes) {
  if (buffer.any_order) return sorted(buffer.type, bytes);
  return {bytes.begin(), bytes.end()};
}

BufferComparison compare(const launch::Buffer& buffer, std::span<const std::byte> original,
                         std::span<const std::byte> rewritten, size_t most) {
  BufferComparison comparison;
  comparison.buffer = buffer.name;
  const size_t size = buffer.element_bytes();
  comparison.elements = original.size() / size;
  if (std::ranges::equal(original, rewritten)) return comparison;
  std::vector<std::byte> sorted_original, sorted_rewritten;
  if (buffer.any_order) {
    sorted_original = sorted(buffer.type, original);
    sorted_rewritten = sorted(buffer.type, rewritten);
    original = sorted_original;
    rewritten = sorted_rewritten;
  }
  const size_t count = std::min(original.size(), rewritten.size()) / size;
  for (size_t i = 0; i < count; ++i) {
    const std::byte* a = original.data() + i * size;
    const std::byte* b = rewritten.data() + i * size;
    if (std::memcmp(a, b, size) == 0) continue;
    if (!buffer.tolerance.exact() && within(buffer.tolerance, launch::decode(buffer.type, a).as_double(),
                                            launch::decode(buffer.type, b).as_double()))
      continue;
    if (comparison.first.size() < most) comparison.first.push_back({i, shown(buffer.type, a), shown(buffer.type, b)});
    ++comparison.differing;
  }
  if (original.size() != rewritten.size()) ++comparison.differing;
  return comparison;
}

} // namespace ptxrewrite::cuda
