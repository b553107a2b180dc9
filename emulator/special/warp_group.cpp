// Determines when the products of a warp group take place.
#include "emulator/special/warp_group.h"

#include "emulator/core/block.h"

#include <algorithm>

namespace ptxrewrite::emulator {
namespace {
constexpr size_t most_kept = 64; // completed products
}

ProductQueues::ProductQueues(Block& block, CarryOut carry_out)
    : block_(block), carry_out_(carry_out), groups_((block.warps.size() + warps_of_group - 1) / warps_of_group) {}

void ProductQueues::start_block() {
  fenced_.clear();
  for (Group& group : groups_)
    group = {};
}

bool ProductQueues::is_complete(const GroupProduct& product) const {
  return std::ranges::all_of(product, [](const ProductPart& part) { return part.op != nullptr; });
}

// All products before `end` are complete. Products that all warps have waited for are erased from time to time.
void ProductQueues::carry_out_before(Group& group, unsigned first_warp, size_t end) {
  for (; group.done < end; ++group.done)
    carry_out_(block_, first_warp, group.products[group.done]);
  const size_t past = std::min(group.done, *std::ranges::min_element(group.waited));
  if (past == 0 || (past < group.products.size() && past < most_kept)) return;
  group.products.erase(group.products.begin(), group.products.begin() + static_cast<std::ptrdiff_t>(past));
  group.done -= past;
  group.dropped += static_cast<uint32_t>(past);
  for (unsigned warp = 0; warp < warps_of_group; ++warp) {
    group.next[warp] -= past;
    group.waited[warp] -= past;
  }
}

void ProductQueues::wake(unsigned first_warp) {
  for (unsigned number = first_warp; number < first_warp + warps_of_group; ++number) {
    Warp& warp = block_.warps[number];
    for (Split& split : warp.splits) {
      if (split.state != SplitState::at_warp_group) continue;
      split.state = SplitState::runnable;
      if (warp.state == WarpState::waiting) warp.state = WarpState::runnable;
    }
  }
}

const char* ProductQueues::issue(const Warp& warp, ProductPart part) {
  const unsigned index = warp.index % warps_of_group, first_warp = warp.index - index;
  if (first_warp + warps_of_group > block_.warps.size())
    return "the warp group has fewer than four warps: the block's threads are no multiple of 128";
  Group& group = groups_[warp.index / warps_of_group];
  part.group = group.closed[index];
  const size_t number = group.next[index];
  if (number == group.products.size()) {
    if (number == most_pending) return "the warp group has more open matrix products than the emulator keeps";
    group.products.emplace_back();
  }
  ++group.next[index];
  GroupProduct& product = group.products[number];
  for (const ProductPart& other : product) {
    if (!other.op) continue;
    if (other.op != part.op) return "another warp of the warp group executes another matrix product";
    if (other.descriptors[0] != part.descriptors[0] || other.descriptors[1] != part.descriptors[1])
      return "another warp of the warp group has another matrix descriptor here";
    if (other.adds != part.adds) return "another warp of the warp group scales D in another way here";
  }
  product[index] = part;
  if (!is_complete(product)) return nullptr;
  if (!block_.launch->request->late_copies) carry_out_before(group, first_warp, number + 1);
  wake(first_warp);
  return nullptr;
}

void ProductQueues::close_group(const Warp& warp) {
  ++groups_[warp.index / warps_of_group].closed[warp.index % warps_of_group];
}

uint32_t ProductQueues::next_number(const Warp& warp) const {
  const Group& group = groups_[warp.index / warps_of_group];
  return group.dropped + static_cast<uint32_t>(group.next[warp.index % warps_of_group]) + 1;
}

std::optional<uint32_t> ProductQueues::wait(const Warp& warp, uint64_t but) {
  const unsigned index = warp.index % warps_of_group, first_warp = warp.index - index;
  Group& group = groups_[warp.index / warps_of_group];
  size_t& end = group.waited[index];
  while (end < group.next[index] && group.products[end][index].group + but < group.closed[index]) {
    if (!is_complete(group.products[end])) return std::nullopt;
    ++end;
  }
  const uint32_t number = group.dropped + static_cast<uint32_t>(end);
  carry_out_before(group, first_warp, end);
  return number;
}

FencedRegisters& ProductQueues::fenced(const Warp& warp) {
  fenced_.resize(block_.warps.size());
  return fenced_[warp.index];
}

void ProductQueues::forget(const Warp& warp) {
  Group& group = groups_[warp.index / warps_of_group];
  const unsigned index = warp.index % warps_of_group;
  for (size_t number = group.done; number < group.next[index]; ++number)
    if (is_complete(group.products[number]))
      group.products[number][index].lanes = 0;
    else
      group.products[number][index].op = nullptr;
}

} // namespace ptxrewrite::emulator
