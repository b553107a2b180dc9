// Files of raw bytes, as they are or packed by zstd (then their names end in .zst).
#pragma once

#include "support/result.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace ptxrewrite {

bool is_packed_name(const std::string& path);
// Bytes in the file once it is unpacked. Errors: it cannot be read, is not packed as its name says, or does not tell.
Result<uint64_t> unpacked_size(const std::string& path);
// Its first bytes, as many as there is room for. Errors: as above, or there are fewer.
Status read_unpacked(const std::string& path, std::span<std::byte> bytes);
// What such a file holds. Errors: too little memory.
Result<std::string> packed(std::span<const std::byte> bytes);

} // namespace ptxrewrite
