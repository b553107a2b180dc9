// Pairs of f32 operations on numbers that lie side by side -> one operation on f32x2 (sm_100).
#pragma once

#include "ir/core/function.h"

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace ptxrewrite::transforms::packed {

// Operations of one block that are done in pairs, in the order in which they are.
struct FloatPairs {
  struct Pair {
    ir::InstructionId first, second;
    bool at_first = false; // the pair is done where the first one stands, else where the second one does
  };
  std::vector<Pair> pairs;
};

// One entry for each block that has such pairs. Numbers lie side by side where a vector load or a pair brings them, and
// where a loop carries what a pair has made.
std::vector<FloatPairs> find_float_pairs(const ir::Function& function);

// "4 fma.rn.f32, 2 add.f32 -> f32x2"
std::string description(const ir::Function& function, const FloatPairs& pairs);
void replace(ir::Function& function, const FloatPairs& pairs);

// Does the module's version and target have operations on f32x2?
bool has_float_pairs(const ir::Module& module);

} // namespace ptxrewrite::transforms::packed
