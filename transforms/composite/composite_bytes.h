// Byte permutes: trees of shifts, masks and sums that only move bytes become prmt instructions, one for each two
// sources.
#pragma once

#include "transforms/composite/composite_editor.h"

#include <array>
#include <optional>
#include <vector>

namespace ptxrewrite::transforms::legal::composite {

// Rewrites the computation of `root` if it only moves bytes and the rewriting saves machine instructions; with `force`,
// if it moves bytes through at least two instructions.
bool permute_bytes(Editor& editor, ir::InstructionId root, bool force);

// An operand that is one byte of a register, extended to 32 bits, by whatever instructions.
struct ExtendedByte {
  ir::Operand source;
  unsigned index = 0;
  bool is_signed = false;
  std::vector<ir::InstructionId> inside; // the instructions that extract the byte
};
std::optional<ExtendedByte> as_extended_byte(const Editor& editor, const ir::Operand& operand);

// A register assembled from the low bytes of four others.
struct FourBytes {
  std::array<ir::Operand, 4> sources;    // lowest byte first
  std::vector<ir::InstructionId> inside; // the instructions that assemble it, the root first
};
std::optional<FourBytes> as_four_bytes(const Editor& editor, ir::InstructionId root);

} // namespace ptxrewrite::transforms::legal::composite
