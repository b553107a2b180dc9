// Files of raw bytes, plain or compressed by zstd (with names that end in .zst).
#pragma once

#include "support/result.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace ptxrewrite {

bool is_packed_name(const std::string& path);
// Size of the uncompressed contents in bytes. Errors: unreadable, not compressed as named, or no size recorded.
Result<uint64_t> unpacked_size(const std::string& path);
// Reads the first bytes of the contents, as many as fit. Returns an error as above, or if the contents are shorter.
Status read_unpacked(const std::string& path, std::span<std::byte> bytes);
// Compresses bytes to the contents of such a file. Returns an error if memory is insufficient.
Result<std::string> packed(std::span<const std::byte> bytes);

} // namespace ptxrewrite
