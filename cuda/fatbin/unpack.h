// Decompresses the payloads of fat binaries: LZ4 blocks and zstd frames.
#pragma once

#include "cuda/fatbin/fatbinary.h"

namespace ptxrewrite::cuda {

// Fails if the data does not decompress to `bytes` bytes, or if this build does not support the format.
Result<std::string> unpack(FatPacking packing, std::span<const std::byte> packed, uint64_t bytes);

} // namespace ptxrewrite::cuda
