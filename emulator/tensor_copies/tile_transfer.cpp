#include "emulator/tensor_copies/tile_transfer.h"

#include <algorithm>
#include <cstring>

namespace ptxrewrite::emulator {
namespace {

// The NaN for elements beyond a tensor's ends. For f16 and bf16 it is the NaN of fma.oob; its bits in wider types are
// not public, so they repeat the 16 bits here.
constexpr uint16_t out_of_bounds_nan = 0x7ff7;

// Rounds to nearest even, to 10 fraction bits; infinities and NaNs are unchanged.
constexpr uint32_t rounded_to_tf32(uint32_t bits) {
  if ((bits & 0x7f800000) == 0x7f800000) return bits;
  const uint32_t odd = bits >> 13 & 1;
  return (bits + 0xfff + odd) & ~uint32_t(0x1fff);
}

constexpr uint32_t flushed(uint32_t bits) {
  return (bits & 0x7f800000) == 0 ? bits & 0x80000000 : bits;
}

// Applies `change` to each word, for element types that a copy converts.
template <class Change> void change_words(std::byte* place, uint32_t bytes, Change&& change) {
  for (uint32_t i = 0; i < bytes; i += 4) {
    uint32_t word;
    std::memcpy(&word, place + i, sizeof word);
    word = change(word);
    std::memcpy(place + i, &word, sizeof word);
  }
}

void convert(ir::TensorElement element, std::byte* place, uint32_t bytes) {
  switch (element) {
  case ir::TensorElement::f32_ftz:
    return change_words(place, bytes, [](uint32_t word) { return flushed(word); });
  case ir::TensorElement::tf32:
    return change_words(place, bytes, [](uint32_t word) { return rounded_to_tf32(word); });
  case ir::TensorElement::tf32_ftz:
    return change_words(place, bytes, [](uint32_t word) { return flushed(rounded_to_tf32(flushed(word))); });
  default:
    return; // moved unchanged
  }
}

void fill_beyond(ir::TensorFill with, std::byte* place, uint32_t bytes) {
  if (with == ir::TensorFill::zeros) {
    std::memset(place, 0, bytes);
    return;
  }
  for (uint32_t i = 0; i < bytes; i += 2)
    std::memcpy(place + i, &out_of_bounds_nan, 2);
}

// PTX ISA 5.5.1.1, .b6p2x16: the low 6 bits of each byte, adjacent in global memory.
void store_six_bits(std::byte* global, const std::byte* shared, uint32_t bytes) {
  for (uint32_t done = 0; done < bytes; done += 3, shared += 4) {
    uint32_t packed = 0;
    for (unsigned i = 0; i < 4; ++i)
      packed |= (std::to_integer<uint32_t>(shared[i]) & 0x3f) << 6 * i;
    for (unsigned i = 0; i < 3; ++i)
      global[done + i] = static_cast<std::byte>(packed >> 8 * i);
  }
}

void move(const TileTransfer& transfer, std::byte* global, std::byte* shared, uint32_t bytes) {
  switch (transfer.kind) {
  case TransferKind::load:
    if (!global) return fill_beyond(transfer.fill, shared, bytes);
    std::memcpy(shared, global, bytes);
    return convert(transfer.element, shared, bytes);
  case TransferKind::store:
    if (!global) return;
    if (transfer.element == ir::TensorElement::b6x16_p32) return store_six_bits(global, shared, bytes);
    std::memcpy(global, shared, bytes);
    return convert(transfer.element, global, bytes);
  case TransferKind::reduce:
    if (global) transfer.reduce(global, shared, bytes, transfer.concurrent);
    return;
  }
}

} // namespace

bool reports(const TileTransfer& transfer, std::span<const FoundRun> runs) {
  return transfer.report != DataReport::none && std::ranges::any_of(runs, [&](const FoundRun& run) {
           return run.global && has_reported_data(transfer.report, run.global, run.offset, run.bytes,
                                                  ir::element_bits(transfer.element));
         });
}

void carry_out(const TileTransfer& transfer, std::span<const FoundRun> runs) {
  if (transfer.swizzle.chunks == 1) {
    for (const FoundRun& run : runs)
      move(transfer, run.global, transfer.shared + run.offset, run.bytes);
    return;
  }
  const uint32_t granule = transfer.swizzle.granule();
  for (const FoundRun& run : runs)
    for (uint32_t done = 0; done < run.bytes;) {
      const uint32_t address = transfer.start + run.offset + done;
      const uint32_t bytes = std::min(run.bytes - done, granule - address % granule);
      move(transfer, run.global ? run.global + done : nullptr,
           transfer.shared + (swizzled(transfer.swizzle, address) - transfer.start), bytes);
      done += bytes;
    }
}

} // namespace ptxrewrite::emulator
