// Address of a byte of a box in shared memory (PTX ISA 5.5.7, "Swizzling Modes").
//
// Shared memory is divided into lines of 128 bytes. Chunks are permuted within a span of 32, 64 or 128 bytes of their
// line, by a pattern that depends on the line's number: the address bits that number chunks in the span are exclusive-
// ored with as many bits starting at bit 7. A chunk is 16 bytes, or 32 or 64 in spans of 128 bytes.
// One mode also swaps the halves of every 16 bytes in odd lines.
#pragma once

#include "ir/isa/tensor_map.h"

#include <cstdint>

namespace ptxrewrite::emulator {

struct Swizzle {
  uint32_t chunks = 1; // per span; 1: no swizzle
  uint32_t chunk_bytes = 16;
  uint32_t flip_bytes = 0; // size of the pieces that are swapped in odd lines
  // Number of bytes that always stay adjacent.
  uint32_t granule() const { return flip_bytes != 0 ? flip_bytes : chunk_bytes; }
};

constexpr Swizzle swizzle_of(ir::SwizzleSpan span, ir::SwizzleAtom atom) {
  Swizzle swizzle;
  switch (atom) {
  case ir::SwizzleAtom::bytes16:
    break;
  case ir::SwizzleAtom::bytes32_flip8:
    swizzle.flip_bytes = 8;
    swizzle.chunk_bytes = 32;
    break;
  case ir::SwizzleAtom::bytes32:
    swizzle.chunk_bytes = 32;
    break;
  case ir::SwizzleAtom::bytes64:
    swizzle.chunk_bytes = 64;
    break;
  }
  switch (span) {
  case ir::SwizzleSpan::none:
    return {};
  case ir::SwizzleSpan::bytes96: // pairs of chunks, as in spans of 32 bytes
  case ir::SwizzleSpan::bytes32:
    swizzle.chunks = 32 / swizzle.chunk_bytes;
    break;
  case ir::SwizzleSpan::bytes64:
    swizzle.chunks = 64 / swizzle.chunk_bytes;
    break;
  case ir::SwizzleSpan::bytes128:
    swizzle.chunks = 128 / swizzle.chunk_bytes;
    break;
  }
  return swizzle;
}

inline constexpr uint32_t line_bytes = 128;

// `address`: in shared memory, before the swizzle.
constexpr uint32_t swizzled(const Swizzle& swizzle, uint32_t address) {
  const uint32_t line = address / line_bytes;
  address ^= (line & (swizzle.chunks - 1)) * swizzle.chunk_bytes;
  return address ^ (line & 1) * swizzle.flip_bytes;
}

} // namespace ptxrewrite::emulator
