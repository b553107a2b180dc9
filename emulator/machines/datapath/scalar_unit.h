// The scalar unit of composite-hpca13 §4: a register of a warp whose 32 lanes hold the same value lives in one entry of
// a scalar register file, and an instruction that takes nothing else is executed once, on a pipeline of its own.
//
//   ScalarUnit unit({.warps = 16, .registers = 20});
//   if (unit.issue(warp, sources, capable, 1)) ...    // goes to the scalar pipeline
//   unit.write(warp, destination, all_lanes, equal);  // what it or the SIMT pipeline has made of it
//
// All of it stands in the header, because it is done for every instruction of every warp. The rules (§4.2):
//  * The scalar bit of a register is set by a write of equal values to all lanes, and cleared by any other write.
//  * The scalar register file is indexed by warp x registers of the kernel + register: what lies beyond its last entry
//    has no place there and is never scalar.
//  * A register whose bit is set is read from the scalar file by both pipelines; the result of the SIMT pipeline goes
//    there, too, when its comparison stage finds it equal.
//  * The scalar pipeline writes the scalar file alone, so an instruction of part of the lanes is the SIMT pipeline's.
//  It
//    leaves a scalar register to the vector file, to which the other lanes' value has to be copied: an expansion. (The
//    paper does not say what becomes of them.)
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ptxrewrite::emulator {

// A register of the kernel as an assembler would number it.
struct HardwareRegister {
  uint32_t number = 0; // in the register file; or among those that are not in it
  uint8_t words = 1;   // of 32 bits; 0: a predicate
  bool in_file =
      true; // false: a predicate, or a value that is an operand in another place (a constant bank, a literal)
  bool operator==(const HardwareRegister&) const = default;
};

// What units keep bits of: all registers of all warps on an SM.
struct RegisterSpace {
  uint32_t warps = 0;
  uint32_t registers = 0; // of the kernel's register file, of 32 bits
  uint32_t others = 0;    // registers that are not in it
  size_t size() const { return size_t(warps) * per_warp(); }
  size_t per_warp() const { return size_t(registers) + others; }
  size_t place_of(uint32_t warp, HardwareRegister of) const {
    return warp * per_warp() + (of.in_file ? of.number : registers + of.number);
  }
};

// Accesses count words of whole warps.
struct ScalarCounters {
  uint64_t scalar_reads = 0, scalar_writes = 0;
  uint64_t vector_reads = 0, vector_writes = 0;
  uint64_t expansions = 0; // words copied from the scalar to the vector file
  uint64_t issued = 0;     // instructions on the scalar pipeline
};

class ScalarUnit {
public:
  explicit ScalarUnit(const RegisterSpace& space, uint32_t entries = 512)
      : space_(space), entries_(entries), bits_(space.size()) {}

  // `count` instructions of the warp read `sources`; whatever else they take is the same in all lanes if `capable`, and
  // the unit has a pipeline for them, in all lanes. To the scalar pipeline? All of it is counted `times`.
  bool issue(uint32_t warp, std::span<const HardwareRegister> sources, bool capable, uint64_t count,
             uint64_t times = 1) {
    bool all = capable;
    for (const HardwareRegister& source : sources) {
      const bool scalar = is_scalar(warp, source);
      if (source.in_file) (scalar ? counters_.scalar_reads : counters_.vector_reads) += source.words * times;
      all = all && scalar;
    }
    if (all) counters_.issued += count * times;
    return all;
  }
  // Returns whether the scalar file holds it now.
  bool write(uint32_t warp, HardwareRegister destination, bool all_lanes, bool equal, uint64_t times = 1) {
    uint8_t& bit = bits_[space_.place_of(warp, destination)];
    const bool scalar = all_lanes && equal && has_entry(warp, destination);
    if (destination.in_file) {
      if (bit && !all_lanes) counters_.expansions += destination.words * times;
      (scalar ? counters_.scalar_writes : counters_.vector_writes) += destination.words * times;
    }
    bit = scalar;
    return scalar;
  }
  bool is_scalar(uint32_t warp, HardwareRegister of) const { return bits_[space_.place_of(warp, of)] != 0; }
  // The warp is another one's now.
  void start(uint32_t warp) {
    const auto first = bits_.begin() + static_cast<ptrdiff_t>(warp * space_.per_warp());
    std::fill_n(first, space_.per_warp(), uint8_t(0));
  }

  const ScalarCounters& counters() const { return counters_; }

private:
  bool has_entry(uint32_t warp, HardwareRegister of) const {
    return !of.in_file || uint64_t(warp) * space_.registers + of.number + of.words <= entries_;
  }

  RegisterSpace space_;
  uint32_t entries_;
  std::vector<uint8_t> bits_;
  ScalarCounters counters_;
};

} // namespace ptxrewrite::emulator
