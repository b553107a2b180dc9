// The scalar unit of composite-hpca13 §4: a register of a warp whose 32 lanes hold the same value is stored in one
// entry of a scalar register file, and an instruction with only such sources is executed once, on a separate pipeline.
//
//   ScalarUnit unit({.warps = 16, .registers = 20});
//   if (unit.issue(warp, sources, capable, 1)) ...    // goes to the scalar pipeline
//   unit.write(warp, destination, all_lanes, equal);  // the result of either pipeline
//
// The implementation is in the header, because it runs for every instruction of every warp. The rules (§4.2):
//  * The scalar bit of a register is set by a write of equal values to all lanes, and cleared by any other write.
//  * The scalar register file is indexed by warp x registers of the kernel + register: registers beyond its last entry
//    have no entry and are never scalar.
//  * A register whose bit is set is read from the scalar file by both pipelines; the result of the SIMT pipeline is
//    written there, too, if its comparison stage finds all lanes equal.
//  * The scalar pipeline only writes the scalar file, so an instruction on a part of the lanes runs on the SIMT
//    pipeline. Its write moves a scalar register to the vector
//    file, to which the value of the other lanes has to be copied: an expansion. (The paper does not say how these
//    lanes are handled.)
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ptxrewrite::emulator {

// A register of the kernel, numbered like an assembler does.
struct HardwareRegister {
  uint32_t number = 0; // in the register file; or among the registers that are not in it
  uint8_t words = 1;   // of 32 bits; 0: a predicate
  bool in_file =
      true; // false: a predicate, or a value that is an operand in another place (a constant bank, a literal)
  bool operator==(const HardwareRegister&) const = default;
};

// The index space of per-register bits: all registers of all warps on an SM.
struct RegisterSpace {
  uint32_t warps = 0;
  uint32_t registers = 0; // 32-bit registers of the kernel's register file
  uint32_t others = 0;    // registers outside of it
  size_t size() const { return size_t(warps) * per_warp(); }
  size_t per_warp() const { return size_t(registers) + others; }
  size_t place_of(uint32_t warp, HardwareRegister of) const {
    return warp * per_warp() + (of.in_file ? of.number : registers + of.number);
  }
};

// Accesses count 32-bit words of whole warps.
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

  // `count` instructions of the warp read `sources`; `capable`: other operands are uniform, and the scalar pipeline can
  // execute them for all lanes. Returns whether it executes them. Counters are scaled by `times`.
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
  // Returns whether the scalar file holds the destination afterwards.
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
  // Another warp occupies the slot from now on.
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
