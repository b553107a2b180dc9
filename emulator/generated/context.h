// State of a warp and its block that generated code reads: filled in before the code is entered.
#pragma once

#include "emulator/core/block.h"

#include <cstddef>

namespace ptxrewrite::emulator::generated {

// How the addresses of a full warp's lanes lie: at one place; one access' bytes apart; likewise for each half of the
// warp; otherwise.
enum class LanePlaces : uint8_t { same, line, halves_same, halves_line, any };

// The address pattern that the code of a load or store assumes, and the pattern of accesses that differed.
struct AddressGuess {
  uint32_t op = 0;           // micro-operation
  uint8_t address_bytes = 8; // of a lane's address
  uint64_t size = 4;         // bytes that a lane accesses
  LanePlaces places = LanePlaces::any;
  LanePlaces found = LanePlaces::any; // the last time that it was wrong
  uint32_t wrong = 0;                 // how often; host threads count it by atomic_ref
  bool varies = false;                // the wrong ones were not alike
};
// How `size` bytes at each lane's address lie; the addresses have `bytes` bytes.
LanePlaces places_of(const std::byte* addresses, unsigned bytes, uint64_t size);

// Called by generated code: the handler of one micro-operation, for the lanes of `mask`.
using CallOne = const MicroOp* (*)(Warp* warp, const MicroOp* op, uint32_t mask);
// The same for an access that is not as guessed.
using CallAccess = const MicroOp* (*)(Warp* warp, const MicroOp* op, uint32_t mask, AddressGuess* guess);

// Generated code contains no address of the process: it finds everything from here, so that it can be kept on disk.
struct CodeContext {
  std::byte* registers = nullptr; // of the activation
  const std::byte* thread_specials = nullptr;
  const std::byte* block_specials = nullptr;
  const std::byte* parameters = nullptr;
  std::byte* shared = nullptr;
  uint64_t shared_bytes = 0;
  const MemoryRange* ranges = nullptr; // of memory operation i: at byte i * sizeof(AccessSite)
  const MicroOp* ops = nullptr;        // of the function: generated code names micro-operations by their place in it
  const std::byte* constant_bank = nullptr;
  const void* tables = nullptr; // LaneTables, of code that DirectEmitter has written
  CallOne call = nullptr;
  CallAccess call_access = nullptr;
  AddressGuess* guesses = nullptr; // of the code
  RegionCounter* regions = nullptr;
  GuardCounter* guards = nullptr;
  const MicroOp* meeting = nullptr; // where the lanes reconverge; nullptr: nowhere in this activation
  int64_t fuel = 0;                 // in and out
  const MicroOp* next = nullptr;    // quick code: where a call that failed goes on
  Warp* warp = nullptr;
  uint32_t active = 0;
  uint32_t live = 0;
};

// Returns the micro-operation to continue with, as a Handler does; or not_for_this_warp: nothing was executed.
using Code = const MicroOp* (*)(CodeContext*);
inline const MicroOp* const not_for_this_warp = reinterpret_cast<const MicroOp*>(uintptr_t(1));

} // namespace ptxrewrite::emulator::generated
