#include "cuda/fatbin/fatbinary.h"

#include "cuda/fatbin/unpack.h"

#include <fmt/format.h>

#include <cstring>

namespace ptxrewrite::cuda {
namespace {

constexpr size_t header_bytes = 16;
constexpr size_t smallest_entry_header = 64;

// Flags of an entry.
constexpr uint64_t flag_lz4 = 0x2000;
constexpr uint64_t flag_zstd = 0x8000;

template <class T> T at(std::span<const std::byte> bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

FatEntryKind kind_of(uint16_t number) {
  if (number == 1) return FatEntryKind::ptx;
  if (number == 2) return FatEntryKind::machine_code;
  return FatEntryKind::other;
}

// Reads the entry at the beginning of `bytes`; `taken`: offset of the next one.
Result<FatEntry> read_entry(std::span<const std::byte> bytes, size_t& taken) {
  if (bytes.size() < smallest_entry_header)
    return Error{fmt::format("fat binary: {} bytes are left, too few for the head of an entry", bytes.size()), {}};
  FatEntry entry;
  entry.kind = kind_of(at<uint16_t>(bytes, 0));
  const uint64_t head = at<uint32_t>(bytes, 4);
  const uint64_t payload = at<uint64_t>(bytes, 8);
  const uint64_t packed = at<uint32_t>(bytes, 16);
  entry.architecture = at<uint32_t>(bytes, 28);
  const uint64_t flags = at<uint64_t>(bytes, 40);
  if (head < smallest_entry_header || head > bytes.size() || payload > bytes.size() - head)
    return Error{fmt::format("fat binary: an entry of {} + {} bytes where {} are left", head, payload, bytes.size()),
                 {}};
  entry.payload = bytes.subspan(head, payload);
  entry.unpacked_bytes = payload;
  if (flags & (flag_lz4 | flag_zstd)) {
    entry.packing = flags & flag_zstd ? FatPacking::zstd : FatPacking::lz4;
    entry.unpacked_bytes = at<uint64_t>(bytes, 56);
    if (packed > payload)
      return Error{fmt::format("fat binary: an entry of {} bytes with {} packed bytes", payload, packed), {}};
    if (packed) entry.payload = entry.payload.first(packed);
  }
  taken = head + payload;
  return entry;
}

} // namespace

Result<std::span<const std::byte>> fat_binary_at(const std::byte* header) {
  if (!header) return Error{"no fat binary: a null pointer", {}};
  const std::span head(header, header_bytes);
  if (at<uint32_t>(head, 0) != fat_header_magic)
    return Error{fmt::format("no fat binary: it starts with {:#010x}", at<uint32_t>(head, 0)), {}};
  const uint64_t bytes = at<uint64_t>(head, 8);
  if (bytes > UINT64_MAX / 2) return Error{fmt::format("no fat binary: one of {} bytes", bytes), {}};
  return std::span(header, at<uint16_t>(head, 6) + bytes);
}

Result<std::vector<FatEntry>> read_fat_binary(std::span<const std::byte> bytes) {
  if (bytes.size() < header_bytes || at<uint32_t>(bytes, 0) != fat_header_magic)
    return Error{"no fat binary: it does not start as one", {}};
  const size_t head = at<uint16_t>(bytes, 6);
  const uint64_t body = at<uint64_t>(bytes, 8);
  if (head < header_bytes || head > bytes.size() || body > bytes.size() - head)
    return Error{fmt::format("fat binary of {} + {} bytes, of which {} are there", head, body, bytes.size()), {}};
  std::vector<FatEntry> entries;
  for (std::span<const std::byte> rest = bytes.subspan(head, body); !rest.empty();) {
    size_t taken = 0;
    Result<FatEntry> entry = read_entry(rest, taken);
    if (!entry) return entry.error();
    entries.push_back(*entry);
    rest = rest.subspan(taken);
  }
  return entries;
}

Result<std::string> contents_of(const FatEntry& entry) {
  if (entry.unpacked_bytes > largest_unpacked_entry)
    return Error{fmt::format("fat binary: an entry of {} bytes", entry.unpacked_bytes), {}};
  return unpack(entry.packing, entry.payload, entry.unpacked_bytes);
}

Result<std::string> ptx_of(const FatEntry& entry) {
  Result<std::string> text = contents_of(entry);
  if (!text) return text;
  // nvcc pads the text with zero bytes.
  while (!text->empty() && text->back() == '\0')
    text->pop_back();
  return text;
}

const FatEntry* best_ptx(std::span<const FatEntry> entries, uint32_t compute_capability) {
  const FatEntry* best = nullptr;
  for (const FatEntry& entry : entries)
    if (entry.kind == FatEntryKind::ptx && entry.architecture <= compute_capability &&
        (!best || entry.architecture > best->architecture))
      best = &entry;
  return best;
}

} // namespace ptxrewrite::cuda
