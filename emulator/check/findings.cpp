// Check mode: findings, one per instruction and kind.
#include "emulator/check/block_checker.h"

#include "ir/core/module.h"

#include <fmt/format.h>

#include <algorithm>

namespace ptxrewrite::emulator {
namespace {

Dimensions index_in(const Dimensions& grid, uint64_t number) {
  return {static_cast<uint32_t>(number % grid.x), static_cast<uint32_t>(number / grid.x % grid.y),
          static_cast<uint32_t>(number / grid.x / grid.y)};
}

} // namespace

bool BlockChecker::is_new(const MicroOp& op, FindingKind kind, Found*& found) {
  found = &found_[{op.instruction, kind}];
  if (found->last_serial == serial_) return false;
  found->last_serial = serial_;
  ++found->times;
  return !found->described;
}

void BlockChecker::describe(Found& found, const Place& here, std::string message, const std::optional<Place>& other) {
  auto failure_at = [&](const Place& place, std::string text) {
    MicroOp op;
    op.instruction = place.instruction;
    const Block& block = place.rank ? *block_->cluster->blocks[*place.rank] : *block_;
    Failure failure =
        block.describe(block.warps[place.warp], op, place.lane, std::move(text), FailureKind::program_fault);
    if (place.block) failure.block = index_in(block_->launch->request->grid, *place.block);
    return failure;
  };
  found.described = true;
  found.finding = Finding{failure_at(here, std::move(message)), 1, std::nullopt};
  if (other) found.finding->other = failure_at(*other, {});
}

void BlockChecker::report_race(Warp& warp, const LaneAccesses& access, unsigned lane, uint64_t address,
                               const ShadowAccess& other, const char* what, const char* other_what,
                               const BlockChecker& owner) {
  Found* found = nullptr;
  if (!is_new(*access.op, FindingKind::race, found)) return;
  const bool by_product = other.warp >= maximum_warps;
  const unsigned other_warp = by_product ? (other.warp - maximum_warps) * warps_of_group : other.warp;
  const std::string other_name = by_product ? fmt::format("an asynchronous matrix product of warps {}-{}", other_warp,
                                                          other_warp + warps_of_group - 1)
                                            : fmt::format("warp {}", other_warp);
  const std::string of_block = other.rank == rank_ ? "" : fmt::format(" of block {} of the cluster", other.rank);
  const std::string in_block = &owner == this ? "" : fmt::format(" of block {} of the cluster", owner.rank_);
  describe(*found, {access.op->instruction, warp.index, lane},
           fmt::format("race: shared {:#x}{}{} is {} by warp {} and {} by {}{}, with nothing that orders the two",
                       address, name_of_shared(address), in_block, what, warp.index, other_what, other_name, of_block),
           Place{other.instruction, other_warp, other.lane, std::nullopt,
                 other.rank == rank_ ? std::nullopt : std::optional<uint32_t>(other.rank)});
}

void BlockChecker::report_race(const LaneAccesses& access, const GlobalAccess& here, uint64_t address,
                               const GlobalAccess& other, const char* what, const char* other_what) {
  Found* found = nullptr;
  if (!is_new(*access.op, FindingKind::race, found)) return;
  const bool same_block = here.block == other.block;
  const std::string by = same_block ? fmt::format("by warp {}", here.warp) : "by this block";
  const std::string other_by = same_block ? fmt::format("by warp {}", other.warp) : "by another one";
  describe(*found, {here.instruction, here.warp, here.lane},
           fmt::format("race: global {:#x} ({}) is {} {} and {} {}, with nothing that orders the two", address,
                       block_->launch->memory->describe(address), what, by, other_what, other_by),
           Place{other.instruction, other.warp, other.lane, other.block});
}

// " ('tile' + 16)", or "".
std::string BlockChecker::name_of_shared(uint64_t address) const {
  const KernelImage& image = *block_->image;
  const std::pair<const ir::Function*, uint32_t>* best = nullptr;
  uint64_t best_offset = 0;
  for (const auto& [variable, offset] : image.shared_offsets)
    if (offset <= address && (!best || offset >= best_offset)) {
      best = &variable;
      best_offset = offset;
    }
  if (!best) return {};
  const ir::VariableId id(best->second);
  const Symbol name = best->first ? best->first->variables[id].name : image.module->variables[id].name;
  if (address == best_offset) return fmt::format(" ('{}')", image.module->text(name));
  return fmt::format(" ('{}' + {})", image.module->text(name), address - best_offset);
}

void BlockChecker::take_findings(FindingTable& findings) {
  for (auto& [key, found] : found_) {
    if (found.times == 0) continue;
    findings.add(key, block_->linear, found.times, std::move(found.finding));
    found.times = 0;
    found.finding.reset();
  }
}

void FindingTable::add(const Key& key, uint64_t block, uint64_t times, std::optional<Finding> finding) {
  Entry& entry = entries_[key];
  entry.times.emplace_back(block, times);
  if (block >= entry.first_block || !finding) return;
  entry.first_block = block;
  entry.finding = std::move(*finding);
}

std::vector<Finding> FindingTable::take(uint64_t last_block) {
  std::vector<Finding> findings;
  for (auto& [key, entry] : entries_) {
    if (entry.first_block > last_block) continue;
    entry.finding.times = 0;
    for (const auto& [block, times] : entry.times)
      if (block <= last_block) entry.finding.times += times;
    findings.push_back(std::move(entry.finding));
  }
  entries_.clear();
  return findings;
}

std::unique_ptr<MemoryChecker> make_memory_checker(const LaunchState& launch) {
  return std::make_unique<BlockChecker>(launch);
}

} // namespace ptxrewrite::emulator
