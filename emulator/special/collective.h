// Instructions that several lanes of a warp execute together: shfl, vote, match, redux, mma ... The lanes may arrive
// by different paths: in other splits, at another instruction with the same qualifiers, in another activation of the
// function (PTX ISA 9.7.9.6: "the same qualifiers and the same membermask").
#pragma once

#include "emulator/core/block.h"
#include "emulator/core/lanes.h"

#include <cstring>

namespace ptxrewrite::emulator {

// The lanes that execute the instruction together, and their operands.
class Collective {
public:
  // `own`: those of the lanes that belong to the running split.
  Collective(Warp& warp, const MicroOp& op, uint32_t lanes, uint32_t own)
      : warp_(warp), op_(op), lanes_(lanes), own_(own) {}

  uint32_t lanes() const { return lanes_; }
  bool has(unsigned lane) const { return (lanes_ >> lane) & 1; }
  Warp& warp() const { return warp_; }
  const MicroOp& op() const { return op_; }

  // Returns the values of a source; uses `storage` if the lanes come from several places.
  template <class T> const T* values(unsigned source, T (&storage)[warp_size]) const {
    return values_at(storage, [source](const MicroOp& op, const Activation&) { return op.source[source]; });
  }
  // The same for an entry of the operand list at op.extra.
  template <class T> const T* listed(unsigned index, T (&storage)[warp_size]) const {
    return values_at(storage, [index](const MicroOp& op, const Activation& activation) {
      return activation.function->lists[op.extra + index];
    });
  }
  // Further data from the decoder: entry op.auxiliary of the function's descriptions.
  template <class T> const T& description() const {
    return *static_cast<const T*>(warp_.activation->function->descriptions[op_.auxiliary].get());
  }
  // Returns a predicate source, for the participating lanes.
  uint32_t predicate(unsigned source) const {
    uint32_t mask = warp_.predicate(op_.source[source]) & own_;
    for_others([&](const GatheredLanes& other) { mask |= warp_.predicate(other.op->source[source]) & other.mask; });
    return mask;
  }

  // Writes compute(lane) to a destination, if the instruction has this destination.
  template <class T, class Compute> void write(unsigned destination, Compute&& compute) const {
    write_at<T>([destination](const MicroOp& op, const Activation&) { return op.destination[destination]; }, compute);
  }
  // Where a destination of the operand list is written as a whole: no lane is missing, none comes from elsewhere.
  // nullptr otherwise.
  template <class T> T* whole_listed(unsigned index) const {
    if (own_ != full_mask || !warp_.gathered.empty()) return nullptr;
    const LaneRef target = warp_.activation->function->lists[op_.extra + index];
    return target ? warp_.lanes<T>(target) : nullptr;
  }
  template <class T, class Compute> void write_listed(unsigned index, Compute&& compute) const {
    write_at<T>([index](const MicroOp& op,
                        const Activation& activation) { return activation.function->lists[op.extra + index]; },
                compute);
  }

private:
  template <class T, class Where> const T* values_at(T (&storage)[warp_size], Where&& where) const {
    const T* own = warp_.lanes<T>(where(op_, *warp_.activation));
    if (warp_.gathered.empty()) return own;
    std::memcpy(storage, own, sizeof storage);
    for_others([&](const GatheredLanes& other) {
      const T* values = warp_.lanes<T>(where(*other.op, *other.activation));
      for (unsigned lane = 0; lane < warp_size; ++lane)
        if ((other.mask >> lane) & 1) storage[lane] = values[lane];
    });
    return storage;
  }
  template <class T, class Where, class Compute> void write_at(Where&& where, Compute&& compute) const {
    if (LaneRef target = where(op_, *warp_.activation)) detail::write_lanes<T>(warp_, target, own_, compute);
    for_others([&](const GatheredLanes& other) {
      if (LaneRef target = where(*other.op, *other.activation))
        detail::write_lanes<T>(warp_, target, other.mask, compute);
    });
  }
  // Calls body for each of the other splits, with the split's registers as the warp's.
  template <class Body> void for_others(Body&& body) const {
    if (warp_.gathered.empty()) return;
    std::byte*& registers = warp_.base[static_cast<unsigned>(LaneBase::registers)];
    std::byte* own = registers;
    for (const GatheredLanes& other : warp_.gathered) {
      registers = other.activation->registers;
      body(other);
    }
    registers = own;
  }

  Warp& warp_;
  const MicroOp& op_;
  uint32_t lanes_;
  uint32_t own_;
};

namespace detail {
// Groups of lanes of the running split with the same members.
struct LaneGroups {
  std::array<uint32_t, warp_size> lanes{};
  unsigned count = 0;
};
// Handles lanes with different members. Returns true if each group is complete in itself. Returns false after splitting
// the running split; `members` is then the member mask of its lanes.
bool complete_groups(Warp& warp, const MicroOp& op, const uint32_t* member_lanes, LaneGroups& groups,
                     uint32_t& members);
const MicroOp* not_a_member(Warp& warp, const MicroOp& op, uint32_t members);
} // namespace detail

// Calls `body(Collective)` once all live lanes in `members` have arrived. `members` is a source with a mask for
// each lane; if invalid, all lanes of the warp are members. Returns the handler's result.
template <class Body> const MicroOp* execute_together(Warp& warp, const MicroOp& op, LaneRef members, Body&& body) {
  uint32_t wanted = full_mask;
  if (members) {
    const uint32_t* masks = warp.lanes<uint32_t>(members);
    wanted = masks[std::countr_zero(warp.mask)];
    bool same = true;
    if (members.base() != LaneBase::constants)
      for (unsigned lane = 0; lane < warp_size; ++lane)
        same &= masks[lane] == wanted || ((warp.mask >> lane) & 1) == 0;
    detail::LaneGroups groups;
    if (!same && detail::complete_groups(warp, op, masks, groups, wanted)) {
      warp.gathered.clear();
      for (unsigned i = 0; i < groups.count; ++i)
        body(Collective(warp, op, groups.lanes[i], groups.lanes[i]));
      return &op + 1;
    }
    if (warp.mask & ~wanted) [[unlikely]]
      return detail::not_a_member(warp, op, wanted);
  }
  uint32_t together = 0;
  const MicroOp* next = nullptr;
  if (!warp.gather(op, wanted, together, next)) return next;
  body(Collective(warp, op, together, warp.mask));
  return warp.state == WarpState::failed ? nullptr : &op + 1;
}

} // namespace ptxrewrite::emulator
