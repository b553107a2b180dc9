#include "cuda/buffer_text.h"

#include "launch/scalar_bytes.h"

#include <fmt/format.h>

namespace ptxrewrite::cuda {

std::string element_text(ir::ScalarType type, const std::byte* bytes) {
  const launch::Number number = launch::decode(type, bytes);
  if (is_bit_type(type)) return fmt::format("{:#x}", static_cast<uint64_t>(number.integer));
  if (!number.is_decimal) return launch::to_string(number.integer);
  const int digits = type == ir::ScalarType::f64   ? 17
                     : type == ir::ScalarType::f32 ? 9
                     : type == ir::ScalarType::f16 ? 5
                                                   : 4;
  // Finds the shortest text that reads back as the same number, with at most the digits that its type can need.
  std::byte again[8];
  for (int some = 1; some <= digits; ++some) {
    std::string text = fmt::format("{:.{}g}", number.decimal, some);
    const double read = std::strtod(text.c_str(), nullptr);
    if (launch::encode(type, launch::Number::of(read), again).empty() &&
        launch::decode(type, again).decimal == number.decimal)
      return text;
  }
  return fmt::format("{:.{}g}", number.decimal, digits);
}

std::string head_text(ir::ScalarType type, std::span<const std::byte> bytes, size_t most) {
  const size_t size = byte_width(type), count = bytes.size() / size;
  std::string text;
  for (size_t i = 0; i < count && i < most; ++i)
    text += (i ? " " : "") + element_text(type, bytes.data() + i * size);
  return count > most ? text + (text.empty() ? "..." : " ...") : text;
}

std::string checksum_text(std::span<const std::byte> bytes) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (std::byte byte : bytes)
    hash = (hash ^ std::to_integer<uint64_t>(byte)) * 0x100000001b3u;
  return fmt::format("{:016x}", hash);
}

} // namespace ptxrewrite::cuda
