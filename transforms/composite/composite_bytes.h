// Byte permutes: trees of shifts, masks and sums that only move bytes become prmt, one for each two sources.
#pragma once

#include "transforms/composite/composite_editor.h"

#include <array>
#include <optional>
#include <vector>

namespace ptxrewrite::transforms::legal::composite {

// Rewrites what `root` computes, if it only moves bytes and that saves machine instructions. `force`: if it moves them
// through at least two instructions.
bool permute_bytes(Editor& editor, ir::InstructionId root, bool force);

// The byte of a register that the operand is, extended to 32 bits, whatever instructions take it out.
struct ExtendedByte {
  ir::Operand source;
  unsigned index = 0;
  bool is_signed = false;
  std::vector<ir::InstructionId> inside; // what takes it out
};
std::optional<ExtendedByte> as_extended_byte(const Editor& editor, const ir::Operand& operand);

// A register that is put together of the low bytes of four others.
struct FourBytes {
  std::array<ir::Operand, 4> sources;    // lowest byte first
  std::vector<ir::InstructionId> inside; // what puts them together, the root first
};
std::optional<FourBytes> as_four_bytes(const Editor& editor, ir::InstructionId root);

} // namespace ptxrewrite::transforms::legal::composite
