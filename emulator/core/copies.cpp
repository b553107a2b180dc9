// Decides which pending copies are carried out when a thread waits.
#include "emulator/core/copies.h"

#include "emulator/memory/mbarrier_word.h"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace ptxrewrite::emulator {

namespace {

void copy_chosen_bytes(const PendingCopy& copy) {
  for (uint32_t i = copy.skipped_front; i < copy.bytes - copy.skipped_back; ++i)
    if (copy.byte_mask >> i % 16 & 1) copy.to[i] = copy.from[i];
}

} // namespace

void carry_out(const PendingCopy& copy) {
  if (copy.byte_mask != 0xffff || copy.skipped_front != 0 || copy.skipped_back != 0) return copy_chosen_bytes(copy);
  if (copy.wanted) std::memmove(copy.to, copy.from, copy.wanted);
  std::memset(copy.to + copy.wanted, 0, copy.bytes - copy.wanted);
}

bool reports(const PendingCopy& copy) {
  constexpr unsigned bits_of_plain_data = 8;
  return has_reported_data(copy.report, copy.to, 0, copy.bytes, bits_of_plain_data);
}

std::string complete_copy(std::byte* barrier, uint32_t bytes, bool reports) {
  return change_barrier(barrier, [&](BarrierWord& word) {
    std::string wrong = reports ? report_to_barrier(word, reported_value) : std::string();
    return wrong.empty() ? complete_bytes(word, bytes) : wrong;
  });
}

void LateCopies::start_block() {
  entries_.clear();
  pieces_ = 0;
  for (std::vector<uint32_t>& groups : groups_)
    std::fill(groups.begin(), groups.end(), 0);
}

std::string LateCopies::add(CopyKind kind, uint32_t thread, const PendingCopy& copy, std::byte* barrier) {
  if (barrier)
    if (std::string wrong = check_initialised(barrier); !wrong.empty()) return wrong;
  push(kind, thread, copy, barrier, nullptr, 1);
  return {};
}

std::string LateCopies::add(CopyKind kind, uint32_t thread, std::unique_ptr<LateWork> work, uint32_t bytes,
                            size_t pieces, std::byte* barrier) {
  if (barrier)
    if (std::string wrong = check_initialised(barrier); !wrong.empty()) return wrong;
  push(kind, thread, {nullptr, nullptr, bytes, bytes}, barrier, std::move(work), pieces);
  return {};
}

void LateCopies::push(CopyKind kind, uint32_t thread, const PendingCopy& copy, std::byte* barrier,
                      std::unique_ptr<LateWork> work, size_t pieces) {
  const uint32_t group = groups_[static_cast<unsigned>(kind)][thread];
  entries_.push_back({kind, false, thread, group, barrier, copy, std::move(work), pieces});
  pieces_ += pieces;
}

template <class Chosen> void LateCopies::carry_out_if(Chosen&& chosen) {
  carry_out_if(chosen, [](const Entry&) {});
}

template <class Chosen, class After> void LateCopies::carry_out_if(Chosen&& chosen, After&& after) {
  const auto kept = std::stable_partition(entries_.begin(), entries_.end(), [&](const Entry& e) { return !chosen(e); });
  std::for_each(kept, entries_.end(), [&](const Entry& entry) {
    pieces_ -= entry.pieces;
    if (entry.work)
      entry.work->carry_out();
    else
      carry_out(entry.copy);
    after(entry);
  });
  entries_.erase(kept, entries_.end());
}

void LateCopies::wait(CopyKind kind, uint32_t thread, uint32_t but) {
  const uint32_t closed = groups_[static_cast<unsigned>(kind)][thread];
  carry_out_if([&](const Entry& entry) {
    return entry.kind == kind && entry.thread == thread && !entry.barrier && uint64_t(entry.group) + but < closed;
  });
}

void LateCopies::wait_for_all(CopyKind kind, uint32_t thread) {
  carry_out_if([&](const Entry& entry) { return entry.kind == kind && entry.thread == thread && !entry.barrier; });
}

void LateCopies::arrive_when_done(uint32_t thread, std::byte* barrier) {
  entries_.push_back({CopyKind::plain, true, thread, 0, barrier, {}, nullptr, 1});
  ++pieces_;
}

std::string LateCopies::complete(std::byte* barrier) {
  std::string wrong;
  const auto note = [&](std::string message) {
    if (wrong.empty()) wrong = std::move(message);
  };
  // An arrival waits for the copies that its thread has issued before it.
  for (size_t at = 0; at < entries_.size(); ++at) {
    if (!entries_[at].arrival || entries_[at].barrier != barrier) continue;
    const uint32_t thread = entries_[at].thread;
    std::vector<Entry> later(std::make_move_iterator(entries_.begin() + static_cast<std::ptrdiff_t>(at) + 1),
                             std::make_move_iterator(entries_.end()));
    entries_.resize(at);
    --pieces_;
    wait_for_all(CopyKind::plain, thread);
    at = entries_.size() - 1; // the loop continues after the entries that were kept
    entries_.insert(entries_.end(), std::make_move_iterator(later.begin()), std::make_move_iterator(later.end()));
    note(change_barrier(barrier, [](BarrierWord& word) { return arrive_at_barrier(word, 1); }));
  }
  carry_out_if([&](const Entry& entry) { return entry.barrier == barrier && !entry.arrival; },
               [&](const Entry& entry) {
                 const bool report = entry.work ? entry.work->reports() : reports(entry.copy);
                 note(complete_copy(barrier, entry.copy.bytes, report));
               });
  return wrong;
}

// Copies into other blocks of a cluster are still counted at the mbarriers of those blocks.
void LateCopies::finish() {
  carry_out_if([](const Entry& entry) { return !entry.arrival && !entry.barrier; });
  const auto counted = [](const Entry& entry) { return entry.barrier != nullptr; };
  for (;;) {
    const auto at = std::find_if(entries_.begin(), entries_.end(), counted);
    if (at == entries_.end()) break;
    (void)complete(at->barrier);
  }
  entries_.clear();
  pieces_ = 0;
}

} // namespace ptxrewrite::emulator
