// One running warp: its registers, its executing lanes, and the reconvergence of diverged lanes.
//
// Lanes that execute together are a `Split`. A divergent branch makes two splits under one `Meeting`: the immediate
// post-dominator of the branch, where the lanes wait for one another and continue as one split (PTX ISA leaves
// reconvergence open; any choice is right outside of `.sync` instructions, which gather their lanes themselves). Lanes
// that wait at a meeting are released if the others cannot arrive, or spin: so a lane that holds a lock always gets to
// release it, as on hardware with independent thread scheduling (PTX ISA 3.2).
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
  uint64_t local_offset = 0;  // start of its local variables in each lane's local memory
  uint64_t stack_pointer = 0; // first free byte after them: alloca allocates from here
};

inline constexpr uint32_t no_meeting = UINT32_MAX;

// A place where the lanes of `expected` reconverge before they continue under `parent`.
struct Meeting {
  const MicroOp* at = nullptr;
  Activation* activation = nullptr; // the activation that executes `at`
  Activation* callee = nullptr;     // not nullptr: a call; lanes arrive by returning, and the activation ends with it
  uint32_t expected = 0;
  uint32_t arrived = 0;
  uint32_t parent = no_meeting;
  bool in_use = false;
};

enum class SplitState : uint8_t {
  runnable,
  at_barrier,         // of the block: `wait` is its number and, from bit 8, the number of warps (0: all)
  at_warp_sync,       // until all live lanes of `wait` are at the same instruction
  at_warp_group,      // until the other warps of the warp group have issued a product that it waits for
                      // (special/warp_group.h)
  at_cluster_barrier, // barrier.cluster.wait: the lanes of `wait`, until all threads of the cluster have arrived
};

struct Split {
  const MicroOp* next = nullptr;
  Activation* activation = nullptr;
  uint32_t mask = 0;
  uint32_t meeting = no_meeting;
  SplitState state = SplitState::runnable;
  uint32_t wait = 0; // barrier number, or member mask
};

// Lanes of another split that execute a `.sync` instruction together with the running split.
struct GatheredLanes {
  const MicroOp* op = nullptr; // of these lanes: the same instruction, or another one with the same qualifiers
  Activation* activation = nullptr;
  uint32_t mask = 0;
};

enum class WarpState : uint8_t {
  runnable,
  waiting,  // all splits wait for the block's other warps
  yielded,  // spins: other warps run first
  finished, // no live lanes
  failed,   // Block::failure has the reason
};

struct Warp {
  // --- used by every handler ---
  std::byte* base[lane_base_count] = {};
  uint32_t mask = 0;   // lanes that execute the current micro-operation: active with a true guard
  uint32_t active = 0; // lanes of the running split
  Activation* activation = nullptr;
  Block* block = nullptr;

  // --- control flow ---
  uint32_t live = 0;    // lanes that have not exited
  uint32_t members = 0; // existing lanes: fewer than 32 in the last warp of some blocks
  uint32_t meeting = no_meeting;
  uint32_t patience = 0; // turns of a spin loop before other splits or warps run
  WarpState state = WarpState::runnable;
  uint32_t index = 0;   // in the block
  uint32_t depth = 0;   // activations besides the root
  bool arrived = false; // counted as arrived at the barrier where all of its live lanes are
  // barrier.cluster: lanes that have arrived in this phase, and lanes whose phase is over but that have not waited.
  uint32_t cluster_arrived = 0, cluster_passed = 0;
  // If not null, all live lanes of the warp wait at a barrier of the block, or were released by it, and continue at
  // this micro-operation. They are no entry of `splits`.
  const MicroOp* behind_barrier = nullptr;
  std::vector<Split> splits; // all but the running one
  std::vector<Meeting> meetings;
  std::vector<GatheredLanes> gathered; // by the latest gather()
  Activation root;
  const MicroOp* start = nullptr;
  std::vector<uint64_t> past_states; // hashes of the latest states in which it yielded

  template <class T> T* lanes(LaneRef ref) const { return reinterpret_cast<T*>(base[ref.base_index()] + ref.offset()); }
  uint32_t& predicate(LaneRef ref) const { return *lanes<uint32_t>(ref); }

  // --- control.cpp ---
  // The lanes of warp.mask go to `target`, the other active ones to `fall_through`; they reconverge at `meet_at` (may
  // be nullptr).
  const MicroOp* diverge(const MicroOp* target, const MicroOp* fall_through, const MicroOp* meet_at);
  // The running split has reached a meeting: joins the lanes already there.
  const MicroOp* arrive(const MicroOp* here);
  // Ends the lanes of `lanes`.
  const MicroOp* exit_lanes(uint32_t lanes, const MicroOp* following);
  // The running split has ended or is parked: the next operation of another split, or nullptr with `state` set.
  const MicroOp* next_split();
  // The running split stops before `next` in the given state; another one continues.
  const MicroOp* park(const MicroOp* next, SplitState split_state, uint32_t wait);
  // Lets other splits of the warp, then other warps, run.
  const MicroOp* yield(const MicroOp* next);
  void resume(const Split& split);
  // The active lanes whose guard for `op` is true.
  uint32_t guard_mask(const MicroOp& op) const;
  // For `.sync` instructions: returns whether all live lanes of `members` are at `op`, or at another one with the same
  // qualifiers (the same handler and flags). Then `together` are the lanes that execute it now, and `gathered`
  // describes those of other splits. False: this split waits, and `next` is executed instead (may be nullptr; may be
  // `op` again, for other lanes). Use it by way of special/collective.h.
  bool gather(const MicroOp& op, uint32_t members, uint32_t& together, const MicroOp*& next);
  uint32_t new_meeting(const Meeting& meeting);
  // Releases the lanes waiting at the youngest meeting whose other lanes cannot arrive. Returns false if there is none.
  bool release_waiting();
  // Lanes have ended: wakes splits that waited for them at a `.sync` instruction.
  bool wake_gathered();
  // Lanes that ended, or that left `within` by returning, are no longer expected.
  void remove_from_meetings(uint32_t lanes, const Activation* within = nullptr);
};

} // namespace ptxrewrite::emulator
