// What a micro-operation of these families does, from its handler: for who makes other code of it
// (emulator/generated). The fields of MicroOp that it uses are described at the handler.
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

// Part `extra` of a register of `whole` bits, to or from one of `part` bits (special/move.cpp).
struct PartHandler {
  bool inserts = false;
  unsigned whole = 64, part = 32;
};
std::optional<PartHandler> part_handler(Handler handler);

// bra that does not wait for other threads (special/control.cpp): `immediate` is the target.
bool is_plain_branch(const MicroOp& op);

} // namespace ptxrewrite::emulator
