// Fat binaries, which nvcc embeds in programs: PTX and machine code for several architectures after one header.
//
//   header   u32 magic 0xba55ed50, u16 version, u16 header bytes, u64 bytes of the entries
//   entry    u16 kind (1 PTX, 2 machine code), u16 version, u32 header bytes, u64 payload bytes,
//            at +16 u32 packed bytes, at +28 u32 architecture, at +40 u64 flags, at +56 u64 unpacked bytes
//
// Programs pass a wrapper: u32 magic 0x466243b1, u32 version, pointer to the header, pointer to something else.
#pragma once

#include "support/result.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ptxrewrite::cuda {

inline constexpr uint32_t fat_wrapper_magic = 0x466243b1;
inline constexpr uint32_t fat_header_magic = 0xba55ed50;
// An entry that claims to unpack to more bytes is considered damaged.
inline constexpr uint64_t largest_unpacked_entry = uint64_t(1) << 31;

enum class FatEntryKind : uint8_t { ptx, machine_code, other };
enum class FatPacking : uint8_t { none, lz4, zstd };

struct FatEntry {
  FatEntryKind kind = FatEntryKind::other;
  uint32_t architecture = 0; // 90 for sm_90
  FatPacking packing = FatPacking::none;
  uint64_t unpacked_bytes = 0;
  std::span<const std::byte> payload; // packed; refers to the bytes that were read
};

struct FatWrapper {
  uint32_t magic;
  uint32_t version;
  const std::byte* header;
  const void* other; // version 2: a list of the linked fat binaries, terminated by a null pointer
};

// The bytes of a fat binary in memory, sized by its own header. Fails if it is not a fat binary.
Result<std::span<const std::byte>> fat_binary_at(const std::byte* header);
// Fails if the bytes are not a fat binary, or are truncated.
Result<std::vector<FatEntry>> read_fat_binary(std::span<const std::byte> bytes);
// Returns an entry's unpacked payload. Fails for damaged bytes, or for more than largest_unpacked_entry.
Result<std::string> contents_of(const FatEntry& entry);
// Returns the text of a PTX entry. Fails like contents_of.
Result<std::string> ptx_of(const FatEntry& entry);
// Returns the newest PTX that a GPU of this compute capability can run; nullptr if there is none.
const FatEntry* best_ptx(std::span<const FatEntry> entries, uint32_t compute_capability);

} // namespace ptxrewrite::cuda
