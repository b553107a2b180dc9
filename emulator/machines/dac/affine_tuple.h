// The value of a register of DAC's affine stream for all threads at once (dac-isca17 §3, §4.4): a base and an offset
// for each component of the thread's and the block's index.
//
// All arithmetic is exact modulo 2^bits: the tuple of a result gives each thread the value that the instruction would
// compute. The exception is widening, which is only correct if no thread's narrow value has wrapped; the compiler must
// guarantee that, and check mode detects violations.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

namespace ptxrewrite::emulator {

// %tid.x y z, %ctaid.x y z.
inline constexpr unsigned index_components = 6;
inline constexpr unsigned thread_components = 3; // the first of them differ within a block
using ThreadPosition = std::array<uint32_t, index_components>;
using IndexOffsets = std::array<uint64_t, index_components>;

struct AffineTuple {
  // The result of rem applied to base + offsets * index (§4.4: mod_base, offsets, divisor). The paper's later
  // multiplications change all fields; a separate scale is equivalent and exact modulo 2^bits.
  struct Modulo {
    unsigned bits = 32; // of the division
    bool is_signed = false;
    uint64_t base = 0;
    IndexOffsets offsets{};
    uint64_t divisor = 0;
    uint64_t scale = 1;
    bool operator==(const Modulo&) const = default;
  };

  unsigned bits = 32; // 16, 32 or 64; all fields are modulo 2^bits
  uint64_t base = 0;
  IndexOffsets offsets{};       // zero in a mod tuple, whose offsets are in `modulo`
  std::optional<Modulo> modulo; // the value is base + scale * ((modulo.base + offsets * index) mod divisor)

  static AffineTuple scalar(uint64_t value, unsigned bits);
  static AffineTuple index(unsigned component); // 32 bits

  bool is_scalar() const;       // the same in all threads
  bool is_block_scalar() const; // the same in all threads of a block
  uint64_t at(const ThreadPosition& position) const;
  bool operator==(const AffineTuple&) const = default;
};

// Operands have equal width. Returns nullopt if tuples cannot express the result (a product of two non-scalars, a mod
// tuple combined with a non-scalar, rem by a non-scalar ...).
std::optional<AffineTuple> add(const AffineTuple& a, const AffineTuple& b);
std::optional<AffineTuple> subtract(const AffineTuple& a, const AffineTuple& b);
std::optional<AffineTuple> multiply(const AffineTuple& a, const AffineTuple& b);
std::optional<AffineTuple> shift_left(const AffineTuple& a, const AffineTuple& amount); // the amount has 32 bits
std::optional<AffineTuple> remainder(const AffineTuple& a, const AffineTuple& divisor, bool is_signed);
AffineTuple negate(const AffineTuple& a);
// Converts to another width, by the signedness of the source.
AffineTuple convert(const AffineTuple& a, unsigned bits, bool is_signed);

// The low `bits` bits; then the same as a signed number.
constexpr uint64_t low_bits(uint64_t value, unsigned bits) {
  return bits >= 64 ? value : value & ((uint64_t(1) << bits) - 1);
}
constexpr uint64_t sign_extended(uint64_t value, unsigned bits) {
  const unsigned unused = 64 - bits;
  return static_cast<uint64_t>(static_cast<int64_t>(value << unused) >> unused);
}

} // namespace ptxrewrite::emulator
