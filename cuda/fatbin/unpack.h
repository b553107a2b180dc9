// Packed bytes of fat binaries: LZ4 blocks and zstd frames.
#pragma once

#include "cuda/fatbin/fatbinary.h"

namespace ptxrewrite::cuda {

// Error: bytes that do not unpack to `bytes` bytes, or a way of packing that this build does not know.
Result<std::string> unpack(FatPacking packing, std::span<const std::byte> packed, uint64_t bytes);

} // namespace ptxrewrite::cuda
