// The queues between DAC's affine warp and the other warps of an SM (dac-isca17 §4.1, §4.8): the affine tuple queue,
// and for each warp a queue of addresses and one of predicates, filled from it by the expansion units.
#pragma once

#include "emulator/machines/dac/affine_expansion.h"

#include <cstddef>
#include <deque>
#include <memory>
#include <vector>

namespace ptxrewrite::emulator {

inline constexpr size_t tuple_queue_entries = 24;
inline constexpr unsigned warp_queue_entries = 192; // of all warps of an SM, for each of the two kinds

// The entries of one warp if the SM holds `warps` warps.
constexpr unsigned entries_of_warp(unsigned warps) {
  return warps == 0 || warp_queue_entries / warps == 0 ? 1 : warp_queue_entries / warps;
}

// A FIFO of limited capacity.
template <class Record> class BoundedQueue {
public:
  explicit BoundedQueue(size_t capacity) : capacity_(capacity) {}

  bool full() const { return records_.size() >= capacity_; }
  bool empty() const { return records_.empty(); }
  size_t size() const { return records_.size(); }
  const Record& front() const { return records_.front(); }
  void push(Record record) { records_.push_back(std::move(record)); }
  Record pop() {
    Record record = std::move(records_.front());
    records_.pop_front();
    return record;
  }

private:
  size_t capacity_;
  std::deque<Record> records_;
};

enum class TupleKind : uint8_t { data, address, predicate, barrier };

// An entry of the affine tuple queue: the operand of an enq, for the threads that executed it.
struct QueuedTuple {
  TupleKind kind = TupleKind::data;
  uint32_t site = 0;
  ThreadSet threads;
  std::vector<AffineValue::Part> address; // data, address: at most four tuples of 64 or 32 bits
  unsigned bytes = 0;                     // accessed by a thread
  ThreadSet bits;                         // predicate
  uint64_t number = 0;                    // number of earlier entries of the site
};

// The affine tuple queue. Each warp has its own positions in it, one for addresses and one for predicates, so that a
// warp whose queue is full, or that has not passed a barrier, does not block others; an entry is removed when all warps
// that it concerns have passed it.
class TupleQueue {
public:
  TupleQueue(size_t capacity, uint32_t warps) : capacity_(capacity), next_{std::vector<uint64_t>(warps), {}} {
    next_[1].assign(warps, 0);
  }

  bool full() const { return entries_.size() >= capacity_; }
  bool empty() const { return entries_.empty(); }
  size_t size() const { return entries_.size(); }
  void push(QueuedTuple tuple);
  // The warp's next entry of addresses (and barriers) or of predicates; nullptr if there is none.
  const QueuedTuple* next(uint32_t warp, bool predicates);
  // Advances the warp past that entry.
  void pass(uint32_t warp, bool predicates);

private:
  struct Entry {
    QueuedTuple tuple;
    uint32_t waiting = 0; // warps that it concerns and that have not passed it
  };
  bool concerns(const QueuedTuple& tuple, uint32_t warp, bool predicates) const {
    return (tuple.kind == TupleKind::predicate) == predicates && tuple.threads[warp] != 0;
  }

  size_t capacity_;
  uint64_t first_ = 0; // number of entries_.front()
  std::deque<Entry> entries_;
  std::array<std::vector<uint64_t>, 2> next_; // by kind and warp: number of the next entry to examine
};

} // namespace ptxrewrite::emulator
