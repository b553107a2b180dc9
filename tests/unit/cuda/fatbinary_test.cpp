// Fat binaries: entries as nvcc writes them (from programs of CUDA 11 to 13), packed by the libraries' own compressors;
// damaged bytes of all kinds end in an error.
#include "cuda/fatbin/fatbinary.h"

#include <doctest/doctest.h>
#include <lz4.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>

namespace ptxrewrite::tests::fatbinary_test {

using namespace ptxrewrite;
using namespace ptxrewrite::cuda;

namespace {

const std::string text = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() { ret; }\n" +
                         std::string(500, '\n') + "// the end";

template <class T> void put(std::vector<std::byte>& bytes, size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

std::vector<std::byte> bytes_of(const std::string& string) {
  const auto* begin = reinterpret_cast<const std::byte*>(string.data());
  return {begin, begin + string.size()};
}

std::vector<std::byte> packed(FatPacking packing, const std::string& string) {
  std::vector<char> out(string.size() + 1024);
  size_t size = 0;
  if (packing == FatPacking::zstd)
    size = ZSTD_compress(out.data(), out.size(), string.data(), string.size(), 3);
  else
    size = static_cast<size_t>(
        LZ4_compress_default(string.data(), out.data(), static_cast<int>(string.size()), static_cast<int>(out.size())));
  return bytes_of(std::string(out.data(), size));
}

// An entry with a header of 64 bytes, and a payload whose length is a multiple of 8 bytes.
std::vector<std::byte> entry(uint16_t kind, uint32_t architecture, FatPacking packing, const std::string& string) {
  std::vector<std::byte> payload = packing == FatPacking::none ? bytes_of(string) : packed(packing, string);
  const auto packed_bytes = static_cast<uint32_t>(payload.size());
  payload.resize((payload.size() + 7) / 8 * 8);
  std::vector<std::byte> bytes(64);
  put<uint16_t>(bytes, 0, kind);
  put<uint16_t>(bytes, 2, 0x101);
  put<uint32_t>(bytes, 4, 64);
  put<uint64_t>(bytes, 8, payload.size());
  put<uint32_t>(bytes, 16, packing == FatPacking::none ? 0 : packed_bytes);
  put<uint32_t>(bytes, 28, architecture);
  put<uint64_t>(bytes, 40, 0x11 | (packing == FatPacking::zstd ? 0x8000 : packing == FatPacking::lz4 ? 0x2000 : 0));
  put<uint64_t>(bytes, 56, packing == FatPacking::none ? 0 : string.size());
  bytes.insert(bytes.end(), payload.begin(), payload.end());
  return bytes;
}

std::vector<std::byte> fat_binary(std::initializer_list<std::vector<std::byte>> entries) {
  std::vector<std::byte> bytes(16);
  for (const std::vector<std::byte>& one : entries)
    bytes.insert(bytes.end(), one.begin(), one.end());
  put<uint32_t>(bytes, 0, 0xba55ed50);
  put<uint16_t>(bytes, 4, 1);
  put<uint16_t>(bytes, 6, 16);
  put<uint64_t>(bytes, 8, bytes.size() - 16);
  return bytes;
}

} // namespace

TEST_CASE("PTX of a fat binary, plain and packed") {
  for (FatPacking packing : {FatPacking::none, FatPacking::lz4, FatPacking::zstd}) {
    const std::vector<std::byte> bytes =
        fat_binary({entry(2, 80, FatPacking::none, "machine code"), entry(1, 80, packing, text)});
    const Result<std::vector<FatEntry>> entries = read_fat_binary(bytes);
    REQUIRE(entries.ok());
    REQUIRE(entries->size() == 2);
    CHECK((*entries)[0].kind == FatEntryKind::machine_code);
    CHECK((*entries)[1].kind == FatEntryKind::ptx);
    CHECK((*entries)[1].packing == packing);
    const Result<std::string> got = ptx_of((*entries)[1]);
    REQUIRE(got.ok());
    CHECK(*got == text);
  }
}

TEST_CASE("the newest PTX that a GPU can run is taken") {
  const std::vector<std::byte> bytes =
      fat_binary({entry(1, 90, FatPacking::zstd, text), entry(1, 75, FatPacking::zstd, text),
                  entry(1, 80, FatPacking::zstd, text), entry(2, 86, FatPacking::none, "machine code")});
  const Result<std::vector<FatEntry>> entries = read_fat_binary(bytes);
  REQUIRE(entries.ok());
  CHECK(best_ptx(*entries, 100)->architecture == 90);
  CHECK(best_ptx(*entries, 89)->architecture == 80);
  CHECK(best_ptx(*entries, 75)->architecture == 75);
  CHECK(best_ptx(*entries, 70) == nullptr);
}

TEST_CASE("fat binaries that end too early are refused, wherever they end") {
  const std::vector<std::byte> whole = fat_binary({entry(1, 80, FatPacking::zstd, text)});
  for (size_t size = 0; size < whole.size(); ++size)
    CHECK_FALSE(read_fat_binary(std::span(whole).first(size)).ok());
}

TEST_CASE("whatever the bytes, reading ends in entries or an error") {
  for (FatPacking packing : {FatPacking::none, FatPacking::lz4, FatPacking::zstd}) {
    const std::vector<std::byte> whole = fat_binary({entry(1, 80, packing, text), entry(1, 90, packing, text)});
    size_t refused = 0;
    for (size_t at = 0; at < whole.size(); ++at)
      for (uint8_t value : {0x00, 0x01, 0x7f, 0x80, 0xff}) {
        std::vector<std::byte> bytes = whole;
        bytes[at] = std::byte(value);
        const Result<std::vector<FatEntry>> entries = read_fat_binary(bytes);
        if (!entries) {
          ++refused;
          continue;
        }
        for (const FatEntry& one : *entries)
          if (const Result<std::string> got = ptx_of(one); !got) ++refused;
      }
    CHECK(refused > 0);
  }
}

TEST_CASE("entries that unpack to far more than text does are refused") {
  // Packed to less than a 4096th: no PTX is that compressible.
  const std::vector<std::byte> bomb = fat_binary({entry(1, 80, FatPacking::zstd, std::string(1 << 26, '\n'))});
  const Result<std::vector<FatEntry>> packed_entries = read_fat_binary(bomb);
  REQUIRE(packed_entries.ok());
  CHECK_FALSE(ptx_of(packed_entries->front()).ok());
  std::vector<std::byte> bytes = fat_binary({entry(1, 80, FatPacking::zstd, text)});
  for (uint64_t claimed : {uint64_t(1) << 30, uint64_t(1) << 40, UINT64_MAX}) {
    put<uint64_t>(bytes, 16 + 56, claimed);
    const Result<std::vector<FatEntry>> entries = read_fat_binary(bytes);
    REQUIRE(entries.ok());
    CHECK_FALSE(ptx_of(entries->front()).ok());
  }
}

TEST_CASE("a fat binary in memory is found by its own header") {
  const std::vector<std::byte> bytes = fat_binary({entry(1, 80, FatPacking::zstd, text)});
  const Result<std::span<const std::byte>> found = fat_binary_at(bytes.data());
  REQUIRE(found.ok());
  CHECK(found->size() == bytes.size());
  CHECK_FALSE(fat_binary_at(nullptr).ok());
  CHECK_FALSE(fat_binary_at(bytes.data() + 16).ok());
}

} // namespace ptxrewrite::tests::fatbinary_test
