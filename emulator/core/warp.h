// One warp while it runs: its registers, which of its lanes execute, and how lanes that went different ways meet again.
//
// Lanes that execute together are a `Split`. A branch that lanes disagree on makes two splits under one `Meeting`: the
// immediate post-dominator of the branch, where the lanes wait for one another and go on as one split (PTX ISA leaves
// reconvergence open; any choice is right outside `.sync` instructions, which gather their lanes by themselves). Lanes
// that wait at a meeting are let go on alone when the others cannot come, or spin: so a lane that holds a lock always
// gets to release it, as on hardware with independent thread scheduling (PTX ISA 3.2).
#pragma once

#include "emulator/core/micro_op.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ptxrewrite::emulator {

struct Block;
struct DecodedFunction;

// One call of a function by some lanes of a warp: its registers and local variables.
struct Activation {
  std::byte* registers = nullptr; // lane arrays, then lane-major parameter bytes
  const DecodedFunction* function = nullptr;
  Activation* caller = nullptr;
  uint64_t local_offset = 0;  // of its local variables in each lane's local memory
  uint64_t stack_pointer = 0; // first free byte behind them: alloca takes from here
};

inline constexpr uint32_t no_meeting = UINT32_MAX;

// A place where the lanes of `expected` meet before they go on under `parent`.
struct Meeting {
  const MicroOp* at = nullptr;
  Activation* activation = nullptr; // in which `at` is to be executed
  Activation* callee = nullptr;     // not null: a call; lanes arrive by returning, and the activation ends with it
  uint32_t expected = 0;
  uint32_t arrived = 0;
  uint32_t parent = no_meeting;
  bool in_use = false;
};

enum class SplitState : uint8_t {
  runnable,
  at_barrier,         // of the block: `wait` is its number and, from bit 8, how many warps it takes (0: all)
  at_warp_sync,       // until all live lanes of `wait` stand at the same instruction
  at_warp_group,      // until the other warps of the warp group have issued a product that it waits for
                      // (special/warp_group.h)
  at_cluster_barrier, // barrier.cluster.wait: the lanes of `wait` until all threads of the cluster have arrived
};

struct Split {
  const MicroOp* next = nullptr;
  Activation* activation = nullptr;
  uint32_t mask = 0;
  uint32_t meeting = no_meeting;
  SplitState state = SplitState::runnable;
  uint32_t wait = 0; // barrier number, or member mask
};

// Lanes of another split that execute a `.sync` instruction together with the running one.
struct GatheredLanes {
  const MicroOp* op = nullptr; // theirs: the same instruction, or another one with the same qualifiers
  Activation* activation = nullptr;
  uint32_t mask = 0;
};

enum class WarpState : uint8_t {
  runnable,
  waiting,  // all splits wait for the block's other warps
  yielded,  // spins: others first
  finished, // no live lanes
  failed,   // Block::failure says why
};

struct Warp {
  // --- what every handler touches ---
  std::byte* base[lane_base_count] = {};
  uint32_t mask = 0;   // lanes that execute the current micro-operation: active and guard true
  uint32_t active = 0; // lanes of the running split
  Activation* activation = nullptr;
  Block* block = nullptr;

  // --- control flow ---
  uint32_t live = 0;    // lanes that have not exited
  uint32_t members = 0; // lanes that exist: fewer than 32 in the last warp of a block
  uint32_t meeting = no_meeting;
  uint32_t patience = 0; // turns of a spin loop before others get a chance
  WarpState state = WarpState::runnable;
  uint32_t index = 0;   // in the block
  uint32_t depth = 0;   // activations besides the root
  bool arrived = false; // counted at the barrier where all of its live lanes stand
  // barrier.cluster: lanes that have arrived in this phase, and lanes whose phase is over and that have yet to wait.
  uint32_t cluster_arrived = 0, cluster_passed = 0;
  std::vector<Split> splits; // all but the running one
  std::vector<Meeting> meetings;
  std::vector<GatheredLanes> gathered; // by the latest gather()
  Activation root;
  const MicroOp* start = nullptr;
  std::vector<uint64_t> past_states; // hashes of the states in which it yielded last

  template <class T> T* lanes(LaneRef ref) const { return reinterpret_cast<T*>(base[ref.base_index()] + ref.offset()); }
  uint32_t& predicate(LaneRef ref) const { return *lanes<uint32_t>(ref); }

  // --- control.cpp ---
  // The lanes of warp.mask go to `target`, the other active ones to `fall_through`; they meet at `meet_at` (may be
  // null).
  const MicroOp* diverge(const MicroOp* target, const MicroOp* fall_through, const MicroOp* meet_at);
  // The running split stands at a meeting's place: join those already there.
  const MicroOp* arrive(const MicroOp* here);
  // The lanes of `lanes` end.
  const MicroOp* exit_lanes(uint32_t lanes, const MicroOp* following);
  // The running split is over or parked: the micro-operation of the next one that can run, or null with `state` set.
  const MicroOp* next_split();
  // The running split stops before `next` in the given state; another goes on.
  const MicroOp* park(const MicroOp* next, SplitState split_state, uint32_t wait);
  // Lets other splits of the warp, then other warps, have a turn.
  const MicroOp* yield(const MicroOp* next);
  void resume(const Split& split);
  // Lanes that the guard of `op` lets execute.
  uint32_t guard_mask(const MicroOp& op) const;
  // For `.sync` instructions: do all live lanes of `members` stand at `op`, or at another one with the same qualifiers
  // (the same handler and flags)? Then `together` are those that execute it now, and `gathered` says where those of
  // other splits are. False: this split waits, and `next` is what to execute instead (may be null; may be `op` again,
  // for other lanes). special/collective.h is the way to use it.
  bool gather(const MicroOp& op, uint32_t members, uint32_t& together, const MicroOp*& next);
  uint32_t new_meeting(const Meeting& meeting);
  // Lets go of the lanes that wait at the youngest meeting whose others cannot come. False: there is none.
  bool release_waiting();
  // Lanes have ended: what waited at a `.sync` instruction for them need not any more.
  bool wake_gathered();
  // Lanes that ended, or that left `within` by returning, are expected there no more.
  void remove_from_meetings(uint32_t lanes, const Activation* within = nullptr);
};

} // namespace ptxrewrite::emulator
