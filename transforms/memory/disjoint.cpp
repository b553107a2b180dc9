#include "transforms/memory/disjoint.h"

#include "ir/core/module.h"

#include <algorithm>

namespace ptxrewrite::transforms::memory {

namespace {

using ir::ExactSum;

constexpr size_t bound_limit = 12;    // distinct bounds per range
constexpr size_t access_limit = 5000; // per kernel
const ir::Int128 address_limit = ir::Int128(1) << 64;

} // namespace

Disjointness::Disjointness(ir::AccessExtents& extents, const KernelMemory& memory, const ir::Function& function)
    : extents_(extents), memory_(memory), function_(function), refusal_(memory.unknown_writes) {
  if (memory.accesses.size() > access_limit) {
    if (refusal_.empty()) refusal_ = "the kernel has too many accesses";
    return;
  }
  for (const Access& access : memory.accesses) {
    if (!refusal_.empty()) return;
    // Only ranges of plain loads and of all writes matter.
    if (access.writes || access.plain) add(access);
  }
  for (const auto* ranges : {&reads_, &writes_})
    for (const auto& [pointer, range] : *ranges)
      if (range.lows.size() > bound_limit || range.highs.size() > bound_limit) {
        if (ranges == &writes_ && refusal_.empty()) refusal_ = "the kernel writes to too many places";
        if (ranges == &reads_) vague_reads_.insert(pointer);
      }
}

void Disjointness::add(const Access& access) {
  const auto& bytes = bytes_[access.instruction] = extents_.bytes_of(access.instruction, access.address, access.bytes);
  if (!bytes && access.writes)
    refusal_ = "no launch could tell where '" + std::string(function_.form_of(access.instruction).mnemonic) + "'" +
               line_of(function_, access.instruction) + " writes";
  if (!bytes || (!access.writes && !bytes->pointer)) return;
  if (!bytes->pointer) return add(stray_writes_.emplace_back(), access, *bytes);
  add((access.writes ? writes_ : reads_)[*bytes->pointer], access, *bytes);
}

void Disjointness::add(Range& range, const Access& access, const ir::ByteRange& bytes) {
  if (range.lows.empty()) range.instruction = access.instruction;
  range.conditions.insert(bytes.conditions.begin(), bytes.conditions.end());
  add_bound(range.lows, {bytes.low, {access.instruction}}, false, range.conditions);
  add_bound(range.highs, {bytes.high, {access.instruction}}, true, range.conditions);
}

// Omits a bound if another one includes it in every launch in which one of its accesses is executed; the other bound
// then covers these accesses as well.
void Disjointness::add_bound(std::vector<Bound>& list, Bound bound, bool is_high, ir::LaunchConditions& conditions) {
  const auto includes = [&](const Bound& outer, const Bound& inner) {
    if (const auto literal = (outer.sum - inner.sum).as_literal()) return is_high ? *literal >= 0 : *literal <= 0;
    ir::LaunchConditions needed;
    const bool all = outer.sum == inner.sum || std::ranges::all_of(inner.accesses, [&](ir::InstructionId access) {
                       return is_high ? extents_.is_at_most(access, inner.sum, outer.sum, needed)
                                      : extents_.is_at_most(access, outer.sum, inner.sum, needed);
                     });
    if (all) conditions.insert(needed.begin(), needed.end());
    return all;
  };
  const auto take_over = [&](Bound& outer, const Bound& inner) {
    // Unguarded accesses of one block are executed together: one represents all of them.
    for (ir::InstructionId access : inner.accesses) {
      const ir::Instruction& row = function_.instructions[access];
      const auto same = [&](ir::InstructionId other) {
        return function_.instructions[other].block == row.block && function_.instructions[other].guard == row.guard &&
               function_.instructions[other].guard_negated == row.guard_negated;
      };
      if (std::ranges::none_of(outer.accesses, same)) outer.accesses.push_back(access);
    }
  };
  for (Bound& other : list)
    if (includes(other, bound)) return take_over(other, bound);
  std::erase_if(list, [&](const Bound& other) {
    if (!includes(bound, other)) return false;
    take_over(bound, other);
    return true;
  });
  list.push_back(std::move(bound));
}

std::optional<unsigned> Disjointness::pointer_of(const Access& access) {
  auto found = bytes_.find(access.instruction);
  if (found == bytes_.end() || !found->second) return std::nullopt;
  return found->second->pointer;
}

ExactSum Disjointness::low_of(const Range& range) {
  ExactSum low = range.lows.front().sum;
  for (const Bound& other : range.lows)
    low = extents_.minimum(low, other.sum);
  return low;
}
ExactSum Disjointness::high_of(const Range& range) {
  ExactSum high = range.highs.front().sum;
  for (const Bound& other : range.highs)
    high = extents_.maximum(high, other.sum);
  return high;
}

void Disjointness::need(std::vector<Need>& list, const std::string& statement, const std::string& predicate,
                        ir::InstructionId instruction) const {
  const auto same = [&](const Need& row) { return row.predicate == predicate; };
  if (std::ranges::none_of(list, same)) list.push_back({statement, predicate, instruction});
}

void Disjointness::need_sound(std::vector<Need>& list, const Range& range, const std::string& name) {
  const ir::Quantities& quantities = extents_.quantities();
  for (const std::string& condition : range.conditions)
    need(list, "the addresses " + name + " are what they are counted to be", condition, range.instruction);
  const ExactSum low = low_of(range), high = high_of(range);
  auto require = [&](const ExactSum& sum, const std::string& statement) {
    const auto known = quantities.interval(sum, {});
    if (!known || known->low < 0) need(list, statement, quantities.not_negative(sum), range.instruction);
  };
  require(low, "the addresses " + name + " do not wrap");
  require(ExactSum::literal(address_limit) - high, "the addresses " + name + " do not wrap");
  require(high - low - ExactSum::literal(1), "the range " + name + " is not empty");
}

std::optional<std::vector<Need>> Disjointness::read_only(unsigned pointer) {
  const auto found = reads_.find(pointer);
  if (!refusal_.empty() || found == reads_.end() || vague_reads_.contains(pointer)) return std::nullopt;
  std::vector<Need> list;
  if (writes_.empty() && stray_writes_.empty()) return list;
  const Range& range = found->second;
  const std::string name = "read through P" + std::to_string(pointer);
  need_sound(list, range, name);
  const ExactSum low = low_of(range), high = high_of(range);
  if (low.is_broken() || high.is_broken()) return std::nullopt;
  auto keep_apart = [&](const Range& write, const std::string& write_name) {
    need_sound(list, write, write_name);
    const ExactSum write_low = low_of(write), write_high = high_of(write);
    if (write_low.is_broken() || write_high.is_broken()) return false;
    need(list, "the bytes " + name + " are apart from those " + write_name,
         extents_.quantities().not_negative(write_low - high) + " || " +
             extents_.quantities().not_negative(low - write_high),
         range.instruction);
    return true;
  };
  for (const auto& [other, write] : writes_)
    if (!keep_apart(write, "written through P" + std::to_string(other))) return std::nullopt;
  for (const Range& write : stray_writes_)
    if (!keep_apart(write, "written" + line_of(function_, write.instruction))) return std::nullopt;
  return list;
}

} // namespace ptxrewrite::transforms::memory
