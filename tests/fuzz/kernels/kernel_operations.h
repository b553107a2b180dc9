// The instructions without side effects that random kernels are made of, one row each: how it is written, what kinds of
// registers it takes, and what it computes. The meanings are written from the PTX ISA manual (and, where the manual is
// silent, from what ptxas folds), independently of ir/ and emulator/: they are what the emulator is compared with.
#pragma once

#include "tests/fuzz/kernels/kernel_program.h"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace ptxrewrite::fuzz {

// Values are bit patterns, cut to the width of their kind, predicates 0 or 1.
using Evaluate = std::function<void(const uint64_t* in, uint64_t* out)>;

// Letters in `results`: the kinds p h(b16) r(b32) d(b64) e(f16) w(f16x2) f(f32) g(f64) a(pointer) s(shared pointer).
// Letters in `sources`: the same; h r d f g may be immediates, H R D are registers only, and
//   c   a shift count: b32, often small          n       an immediate 0..255
//   k   a count below 256
//   !   a predicate, maybe negated               u v x   divisors: b16, b32, b64, positive in either signedness
//   j y Y  f16, f32, f64 that is no NaN: the bits of a NaN must not get into integers
struct Operation {
  std::string text;    // "add.s32", or with places: "setp.lt.and.s32 $0|$1, $2, $3, $4"; results count first
  std::string results; // a letter each
  std::string sources;
  std::string group;        // what it is counted under, and drawn by
  Evaluate evaluate;        // empty: approximate, no two machines need agree
  bool is_sequence = false; // several instructions: results must not be sources
  // Where wrapping has a meaning: is the exact result out of the type's range, and out of the signed range of as many
  // bits too, so that it is not just a negative number in unsigned clothes?
  std::function<bool(const uint64_t* in)> wraps = nullptr;

  bool has_places() const { return text.find('$') != std::string::npos; }
};

const std::vector<Operation>& operations();
// Index of the row with that text and those letters; the program ends if there is none.
uint32_t operation_named(std::string_view text, std::string_view results, std::string_view sources);

Kind kind_of_letter(char letter);

// Pieces of the table.
std::vector<Operation> integer_operations();
std::vector<Operation> bit_operations();
std::vector<Operation> conversion_operations();
std::vector<Operation> float_operations();
std::vector<Operation> half_operations();

} // namespace ptxrewrite::fuzz
