// What waits between DAC's affine warp and the other warps of an SM (dac-isca17 §4.1, §4.8): the affine tuple queue,
// and for each warp a queue of addresses and one of predicates, fed from it by the expansion units.
#pragma once

#include "emulator/machines/dac/affine_expansion.h"

#include <cstddef>
#include <deque>
#include <memory>
#include <vector>

namespace ptxrewrite::emulator {

inline constexpr size_t tuple_queue_entries = 24;
inline constexpr unsigned warp_queue_entries = 192; // of all warps of an SM, for each of the two kinds

// A warp's part of the entries of an SM that holds `warps` of them.
constexpr unsigned entries_of_warp(unsigned warps) {
  return warps == 0 || warp_queue_entries / warps == 0 ? 1 : warp_queue_entries / warps;
}

// First in, first out.
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

// An entry of the affine tuple queue: what an enq is about, for the threads that executed it.
struct QueuedTuple {
  TupleKind kind = TupleKind::data;
  uint32_t site = 0;
  ThreadSet threads;
  std::vector<AffineValue::Part> address; // data, address: at most four tuples of 64 or 32 bits
  unsigned bytes = 0;                     // that a thread accesses there
  ThreadSet bits;                         // predicate
  uint64_t number = 0;                    // how many of the site came before
};

// The affine tuple queue. Each warp is at a place of its own in it, one for addresses and one for predicates, because a
// warp whose queue is full, or that stands before a barrier, must not hold up others; an entry leaves when all warps
// that it is for have their part.
class TupleQueue {
public:
  TupleQueue(size_t capacity, uint32_t warps) : capacity_(capacity), next_{std::vector<uint64_t>(warps), {}} {
    next_[1].assign(warps, 0);
  }

  bool full() const { return entries_.size() >= capacity_; }
  bool empty() const { return entries_.empty(); }
  size_t size() const { return entries_.size(); }
  void push(QueuedTuple tuple);
  // The next one for the warp, of addresses (and barriers) or of predicates; null: there is none.
  const QueuedTuple* next(uint32_t warp, bool predicates);
  // The warp has its part of that one.
  void pass(uint32_t warp, bool predicates);

private:
  struct Entry {
    QueuedTuple tuple;
    uint32_t waiting = 0; // warps that have not passed it
  };
  bool concerns(const QueuedTuple& tuple, uint32_t warp, bool predicates) const {
    return (tuple.kind == TupleKind::predicate) == predicates && tuple.threads[warp] != 0;
  }

  size_t capacity_;
  uint64_t first_ = 0; // number of entries_.front()
  std::deque<Entry> entries_;
  std::array<std::vector<uint64_t>, 2> next_; // by kind and warp: number of the entry to look at next
};

} // namespace ptxrewrite::emulator
