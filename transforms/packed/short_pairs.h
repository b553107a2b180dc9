// Pairs of 16-bit integers: sums, minima and maxima of both halves of a word -> u16x2, s16x2 (sm_90 and later).
//
//   ld.v2.u16 {a, b}; ld.v2.u16 {c, d}; st.v2.u16 {max(a, c), max(b, d)}  ->  max.s16x2
//
// Compilers extend shorts to 32 bits, compute there, and cut the result: the low half of a sum depends only on low
// halves, and a minimum of two extended numbers is the extended minimum if both were extended in the same way.
#pragma once

#include "ir/core/function.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ptxrewrite::transforms::packed {

// An expression on pairs: an operation on two earlier nodes, or a leaf.
struct PairNode {
  std::string_view mnemonic; // of the operation; empty: a leaf
  size_t left = 0, right = 0;
  ir::Operand lower, upper; // of a leaf: 16-bit registers or literals
};

// A pair of registers that an instruction reads as neighbours: a vector store, or a move of two halves to a word.
struct ShortPair {
  ir::InstructionId root;
  size_t place = 0;            // operand index of the lower half; the upper one follows
  std::vector<PairNode> nodes; // operands first
};

// Does the module's target have these instructions?
bool has_short_pairs(const ir::Module& module);
std::vector<ShortPair> find_short_pairs(const ir::Function& function);
std::string description(const ShortPair& pair);
void replace(ir::Function& function, const ShortPair& pair);

} // namespace ptxrewrite::transforms::packed
