// The emulator's instructions: flat, typed micro-operations that a kernel is decoded into once, before it runs.
//
// A register is an array of 32 lanes of its width ("lane array"), 64-byte aligned; a predicate is one 32-bit mask with
// bit i for lane i. A micro-operation refers to lane arrays by LaneRef: a byte offset from one of a few bases of the
// warp, so that immediates, special registers and registers are read by the same code.
#pragma once

#include "ir/core/entities.h"

#include <cstdint>

namespace ptxrewrite::emulator {

inline constexpr unsigned warp_size = 32;
inline constexpr uint32_t full_mask = 0xffffffffu;

// The base of a lane array.
enum class LaneBase : uint32_t {
  registers,      // of the current function activation
  constants,      // of the program: immediates and addresses, one array per distinct value
  thread_special, // %tid, %laneid, ...: the same for this warp of every block
  block_special,  // %ctaid, ...: the same for every warp of this block
};
inline constexpr unsigned lane_base_count = 4;

class LaneRef {
public:
  constexpr LaneRef() = default;
  constexpr LaneRef(LaneBase base, uint32_t byte_offset) : bits_(byte_offset | static_cast<uint32_t>(base)) {}

  static constexpr uint32_t alignment = 64;
  constexpr bool valid() const { return bits_ != UINT32_MAX; }
  constexpr explicit operator bool() const { return valid(); }
  constexpr LaneBase base() const { return static_cast<LaneBase>(bits_ & 3u); }
  constexpr uint32_t base_index() const { return bits_ & 3u; }
  constexpr uint32_t offset() const { return bits_ & ~63u; }
  constexpr bool operator==(const LaneRef&) const = default;

private:
  uint32_t bits_ = UINT32_MAX; // offset is a multiple of 64, the base is in the low bits
};

struct Warp;
struct MicroOp;

// Executes `op` for the lanes of warp.mask (never empty). Returns the next micro-operation: `&op + 1` for straight-line
// code, or nullptr if the warp cannot continue now (Warp::state tells why).
using Handler = const MicroOp* (*)(Warp& warp, const MicroOp& op);

// The modifiers that handlers test at run time.
enum ModifierFlag : uint32_t {
  flag_ftz = 1u << 0,
  flag_sat = 1u << 1,
  flag_relu = 1u << 2,
  flag_rn = 1u << 3,
  flag_rz = 1u << 4,
  flag_rm = 1u << 5,
  flag_rp = 1u << 6,
  flag_rna = 1u << 7,
  flag_nan = 1u << 8,
  flag_xorsign_abs = 1u << 9,
  flag_abs = 1u << 10,
  flag_oob = 1u << 11,
  flag_satfinite = 1u << 12,
  flag_rni = 1u << 13,
  flag_rzi = 1u << 14,
  flag_rmi = 1u << 15,
  flag_rpi = 1u << 16,
  flag_approx = 1u << 17,
  flag_full = 1u << 18,
  flag_rs = 1u << 19,
  // A comparison is a set of outcomes: .le is less | equal, .neu less | greater | unordered.
  flag_less = 1u << 20,
  flag_equal = 1u << 21,
  flag_greater = 1u << 22,
  flag_unordered = 1u << 23,
  // The operation that combines a comparison with a predicate; none set: no predicate.
  flag_and = 1u << 24,
  flag_or = 1u << 25,
  flag_xor = 1u << 26,
};

struct MicroOp {
  Handler handler = nullptr;
  LaneRef guard; // lanes whose bit is set execute
  bool guard_negated = false;
  uint8_t count = 0;           // elements of a vector access ...; depends on the handler
  bool is_instruction = false; // the main operation of an instruction, not an additional one
  bool counts_guard = false;   // the guard of the main operation: its lanes are counted
  LaneRef destination[2];
  LaneRef source[4];
  uint32_t flags = 0; // ModifierFlag
  uint32_t extra = 0; // first entry of the function's list of further LaneRefs, or handler-specific
  int64_t immediate = 0;
  uint32_t instruction = 0; // index of the static instruction (DecodedFunction::instructions) this belongs to
  uint32_t auxiliary = 0;
};
static_assert(sizeof(MicroOp) == 64);

} // namespace ptxrewrite::emulator
