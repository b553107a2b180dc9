// The instructions without side effects of random kernels, one row each: their text, the kinds of their registers, and
// their function. The functions are written from the PTX ISA manual (and, where the manual is silent, from ptxas'
// folding), independently of ir/ and emulator/: they are the reference for the emulator.
#pragma once

#include "tests/fuzz/kernels/kernel_program.h"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace ptxrewrite::fuzz {

// Values are bit patterns, truncated to the width of their kind, predicates 0 or 1.
using Evaluate = std::function<void(const uint64_t* in, uint64_t* out)>;

// Letters in `results`: the kinds p h(b16) r(b32) d(b64) e(f16) w(f16x2) f(f32) g(f64) a(pointer) s(shared pointer).
// Letters in `sources`: the same; h r d f g may be immediates, H R D are registers only, and
//   c   a shift count: b32, often small          n       an immediate 0..255
//   k   a count below 256
//   !   a predicate, maybe negated               u v x   divisors: b16, b32, b64, positive in either signedness
//   j y Y  f16, f32, f64 that is not NaN: the bits of a NaN must not get into integers
struct Operation {
  std::string text;    // "add.s32", or with placeholders: "setp.lt.and.s32 $0|$1, $2, $3, $4"; results first
  std::string results; // one letter each
  std::string sources;
  std::string group;        // its group for counting and drawing
  Evaluate evaluate;        // empty: approximate, results may differ between machines
  bool is_sequence = false; // several instructions: results must not be sources
  // Where wrapping has a meaning: whether the exact result is outside of the type's range, and also outside of the
  // signed range of as many bits, which excludes negative numbers in unsigned types.
  std::function<bool(const uint64_t* in)> wraps = nullptr;

  bool has_places() const { return text.find('$') != std::string::npos; }
};

const std::vector<Operation>& operations();
// Index of the row with that text and those letters; ends the program if there is none.
uint32_t operation_named(std::string_view text, std::string_view results, std::string_view sources);

Kind kind_of_letter(char letter);

// Pieces of the table.
std::vector<Operation> integer_operations();
std::vector<Operation> bit_operations();
std::vector<Operation> conversion_operations();
std::vector<Operation> float_operations();
std::vector<Operation> half_operations();

} // namespace ptxrewrite::fuzz
