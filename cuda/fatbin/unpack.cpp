#include "cuda/fatbin/unpack.h"

#include <fmt/format.h>
#include <lz4.h>
#include <zstd.h>

#include <climits>

namespace ptxrewrite::cuda {
namespace {

Error damaged(const char* format, uint64_t packed, uint64_t bytes) {
  return Error{fmt::format("fat binary: {} bytes of {} do not unpack to {} bytes", packed, format, bytes), {}};
}

Result<std::string> unpack_lz4(std::span<const std::byte> packed, uint64_t bytes) {
  if (packed.size() > INT_MAX || bytes > INT_MAX) return damaged("LZ4", packed.size(), bytes);
  std::string text(bytes, '\0');
  const int got = LZ4_decompress_safe(reinterpret_cast<const char*>(packed.data()), text.data(),
                                      static_cast<int>(packed.size()), static_cast<int>(bytes));
  if (got < 0 || static_cast<uint64_t>(got) != bytes) return damaged("LZ4", packed.size(), bytes);
  return text;
}

Result<std::string> unpack_zstd(std::span<const std::byte> packed, uint64_t bytes) {
  std::string text(bytes, '\0');
  const size_t got = ZSTD_decompress(text.data(), text.size(), packed.data(), packed.size());
  if (ZSTD_isError(got) || got != bytes) return damaged("zstd", packed.size(), bytes);
  return text;
}

} // namespace

Result<std::string> unpack(FatPacking packing, std::span<const std::byte> packed, uint64_t bytes) {
  // The formats expand data by at most a few hundred times on average: a small entry that claims to be huge is damaged.
  if (packing != FatPacking::none && bytes / 4096 > packed.size()) return damaged("packed text", packed.size(), bytes);
  switch (packing) {
  case FatPacking::none:
    return std::string(reinterpret_cast<const char*>(packed.data()), packed.size());
  case FatPacking::lz4:
    return unpack_lz4(packed, bytes);
  case FatPacking::zstd:
    return unpack_zstd(packed, bytes);
  }
  return damaged("packed text", packed.size(), bytes);
}

} // namespace ptxrewrite::cuda
