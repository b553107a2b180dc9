// Contents of buffers as readable text: elements, checksums.
#pragma once

#include "ir/isa/types.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace ptxrewrite::cuda {

// One element, precise enough to read back as the same bits: "-0.25", "7", "0x1f" for bit types.
std::string element_text(ir::ScalarType type, const std::byte* bytes);

// The first elements, separated by blanks, followed by "..." if there are more.
std::string head_text(ir::ScalarType type, std::span<const std::byte> bytes, size_t most);

// 64-bit FNV-1a, as 16 digits.
std::string checksum_text(std::span<const std::byte> bytes);

} // namespace ptxrewrite::cuda
