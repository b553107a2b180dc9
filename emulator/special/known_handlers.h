// Describes micro-operations of these families by their handlers, for code generators (emulator/generated) that replace
// them by other code. The fields of MicroOp that a handler uses are described there.
#pragma once

#include "emulator/core/micro_op.h"

#include <optional>

namespace ptxrewrite::emulator {

// ld and st (special/memory.cpp).
struct MemoryHandler {
  enum Kind : uint8_t { load, store, fixed_load, slot_load, slot_store };
  Kind kind = load;
  unsigned bytes = 4;       // of an element
  bool narrow_base = false; // 32-bit addresses
};
std::optional<MemoryHandler> memory_handler(Handler handler);

// Moves part `extra` of a register of `whole` bits to or from a register of `part` bits (special/move.cpp).
struct PartHandler {
  bool inserts = false;
  unsigned whole = 64, part = 32;
};
std::optional<PartHandler> part_handler(Handler handler);

// Is this a barrier at which all warps of the block wait, without a guard (special/barrier.cpp)? source[0] is its
// number.
bool is_plain_barrier(const MicroOp& op);

// Is this a bra that does not wait for other threads (special/control.cpp)? `immediate` is its target.
bool is_plain_branch(const MicroOp& op);

} // namespace ptxrewrite::emulator
