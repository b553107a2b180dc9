#include "support/packed_file.h"

#include <zstd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <vector>

namespace ptxrewrite {
namespace {

constexpr size_t longest_header = 18; // of a zstd frame
constexpr int packing_level = 3;

Error unreadable(const std::string& path) {
  return {path + ": cannot be read", {}};
}
Error damaged(const std::string& path) {
  return {path + ": is not what zstd packs, or is damaged", {}};
}
Error too_short(const std::string& path, uint64_t wanted) {
  return {path + ": has fewer than " + std::to_string(wanted) + " bytes", {}};
}

Status unpack(const std::string& path, std::ifstream& file, std::span<std::byte> bytes) {
  const std::unique_ptr<ZSTD_DStream, decltype(&ZSTD_freeDStream)> stream(ZSTD_createDStream(), ZSTD_freeDStream);
  if (!stream) return Error{path + ": no memory to unpack it", {}};
  std::vector<char> piece(ZSTD_DStreamInSize());
  ZSTD_outBuffer out{bytes.data(), bytes.size(), 0};
  while (out.pos < out.size) {
    file.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    ZSTD_inBuffer in{piece.data(), static_cast<size_t>(file.gcount()), 0};
    if (in.size == 0) return too_short(path, bytes.size());
    while (in.pos < in.size && out.pos < out.size)
      if (ZSTD_isError(ZSTD_decompressStream(stream.get(), &out, &in))) return damaged(path);
  }
  return {};
}

} // namespace

bool is_packed_name(const std::string& path) {
  return path.ends_with(".zst");
}

Result<uint64_t> unpacked_size(const std::string& path) {
  std::error_code error;
  const uint64_t size = std::filesystem::file_size(path, error);
  if (error) return unreadable(path);
  if (!is_packed_name(path)) return size;
  std::ifstream file(path, std::ios::binary);
  char header[longest_header];
  file.read(header, sizeof header);
  const unsigned long long content = ZSTD_getFrameContentSize(header, static_cast<size_t>(file.gcount()));
  if (content == ZSTD_CONTENTSIZE_ERROR) return damaged(path);
  if (content == ZSTD_CONTENTSIZE_UNKNOWN) return Error{path + ": does not say how many bytes it holds", {}};
  return uint64_t{content};
}

Status read_unpacked(const std::string& path, std::span<std::byte> bytes) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return unreadable(path);
  if (is_packed_name(path)) return unpack(path, file, bytes);
  file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  if (!file || static_cast<size_t>(file.gcount()) != bytes.size()) return too_short(path, bytes.size());
  return {};
}

Result<std::string> packed(std::span<const std::byte> bytes) {
  std::string out(ZSTD_compressBound(bytes.size()), '\0');
  const size_t size = ZSTD_compress(out.data(), out.size(), bytes.data(), bytes.size(), packing_level);
  if (ZSTD_isError(size)) return Error{std::string("packing fails: ") + ZSTD_getErrorName(size), {}};
  out.resize(size);
  return out;
}

} // namespace ptxrewrite
