// Pairs of f32 operations on adjacent numbers -> one operation on f32x2 (sm_100).
#pragma once

#include "ir/core/function.h"

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace ptxrewrite::transforms::packed {

// Operations of one block to be done in pairs, in execution order.
struct FloatPairs {
  struct Pair {
    ir::InstructionId first, second;
    bool at_first = false; // whether the pair is placed at its first operation or at its second
  };
  std::vector<Pair> pairs;
};

// Returns one entry for each block with such pairs. Numbers are adjacent if a vector load or a pair produces them
// together, or if a loop carries the results of a pair.
std::vector<FloatPairs> find_float_pairs(const ir::Function& function);

// "4 fma.rn.f32, 2 add.f32 -> f32x2"
std::string description(const ir::Function& function, const FloatPairs& pairs);
void replace(ir::Function& function, const FloatPairs& pairs);

// Do the module's version and target support operations on f32x2?
bool has_float_pairs(const ir::Module& module);

} // namespace ptxrewrite::transforms::packed
