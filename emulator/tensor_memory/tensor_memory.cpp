#include "emulator/tensor_memory/tensor_memory.h"

#include "emulator/core/check.h"
#include "emulator/memory/mbarrier_word.h"

#include <fmt/format.h>

#include <algorithm>

namespace ptxrewrite::emulator {

TensorMemory::TensorMemory(Block& block) : block_(block), share_(block.launch->memory->budget()) {}

TensorMemory* TensorMemory::of(Block& block, Warp& warp, const MicroOp& op) {
  if (block.tensor_unit) return static_cast<TensorMemory*>(block.tensor_unit.get());
  auto made = std::make_unique<TensorMemory>(block);
  constexpr uint64_t cell_bytes = uint64_t(tensor_lanes) * tensor_columns * sizeof(uint32_t);
  constexpr uint64_t records = uint64_t(tensor_columns) * (tensor_lanes / lanes_of_record);
  const uint64_t bytes = cell_bytes + (block.checker ? records * sizeof(TensorRecord) : 0);
  if (!made->share_.try_grow(bytes)) {
    warp.block->fail(warp, op, 0, made->share_.budget().refusal(bytes, "the tensor memory of a block").message);
    return nullptr;
  }
  made->cells_.resize(cell_bytes / sizeof(uint32_t));
  if (block.checker) made->records_.resize(records);
  block.tensor_unit = std::move(made);
  return static_cast<TensorMemory*>(block.tensor_unit.get());
}

void TensorMemory::start_block() {
  std::ranges::fill(cells_, 0); // undefined in PTX; zeroed so that runs are reproducible
  std::ranges::fill(records_, TensorRecord{});
  allocations_.fill({});
  is_allocated_.fill(false);
  operations_.clear();
  stores_.clear();
  operation_numbers_.fill(0);
  serials_ = {};
  granted.clear();
  has_relinquished = false;
  group = 0;
}

// --- allocations ---

uint32_t TensorMemory::find_free(uint32_t columns, const TensorMemory* other) const {
  for (uint32_t begin = 0; begin + columns <= tensor_columns; begin += least_tensor_columns) {
    bool is_free = true;
    for (uint32_t i = begin; i < begin + columns && is_free; ++i)
      is_free = !is_allocated_[i] && (!other || !other->is_allocated_[i]);
    if (is_free) return begin;
  }
  return tensor_columns;
}

bool TensorMemory::excludes(bool exclusive) const {
  return std::ranges::any_of(allocations_, [&](const Allocation& allocation) {
    return allocation.columns != 0 && (exclusive || allocation.exclusive);
  });
}

void TensorMemory::allocate(const Allocation& allocation) {
  allocations_[allocation.begin / least_tensor_columns] = allocation;
  std::fill_n(is_allocated_.begin() + allocation.begin, allocation.columns, true);
}

const TensorMemory::Allocation* TensorMemory::allocation_at(uint32_t column) const {
  if (column >= tensor_columns || column % least_tensor_columns) return nullptr;
  const Allocation& found = allocations_[column / least_tensor_columns];
  return found.columns ? &found : nullptr;
}

void TensorMemory::deallocate(uint32_t begin) {
  Allocation& allocation = allocations_[begin / least_tensor_columns];
  std::fill_n(is_allocated_.begin() + begin, allocation.columns, false);
  allocation = {};
}

bool TensorMemory::is_allocated(uint32_t column, uint32_t columns) const {
  if (column >= tensor_columns || columns > tensor_columns - column) return false;
  return std::all_of(is_allocated_.begin() + column, is_allocated_.begin() + column + columns,
                     [](bool allocated) { return allocated; });
}

// --- operations ---

void TensorMemory::carry_out(const TensorOperation& operation) {
  switch (operation.kind) {
  case TensorOperation::Kind::product:
    return emulator::carry_out(operation.product);
  case TensorOperation::Kind::copy:
    return emulator::carry_out(operation.copy);
  case TensorOperation::Kind::shift:
    return emulator::carry_out(operation.shift);
  }
}

bool TensorMemory::has_room(Warp& warp, const MicroOp& op, unsigned lane) const {
  if (!is_late() || operations_.size() + stores_.size() < most_pending) return true;
  warp.block->fail(warp, op, lane,
                   "more operations on tensor memory that nothing has waited for than the emulator keeps");
  return false;
}

void TensorMemory::issue(TensorOperation operation) {
  if (!operation.barrier && !is_late()) return carry_out(operation);
  operations_.push_back(operation);
}

std::string TensorMemory::complete(std::byte* barrier) {
  std::string wrong;
  for (;;) {
    const auto commit = std::ranges::find(operations_, barrier, &TensorOperation::barrier);
    if (commit == operations_.end()) return wrong;
    // Completes all earlier operations of the thread in order, including other commits.
    const uint32_t thread = commit->thread;
    const auto others = std::stable_partition(
        operations_.begin(), commit + 1, [&](const TensorOperation& operation) { return operation.thread == thread; });
    const std::vector<TensorOperation> done(operations_.begin(), others);
    operations_.erase(operations_.begin(), others);
    for (const TensorOperation& operation : done) {
      if (!operation.barrier) {
        carry_out(operation);
        continue;
      }
      std::string found =
          change_barrier(operation.barrier, [](BarrierWord& word) { return arrive_at_barrier(word, 1); });
      if (wrong.empty()) wrong = std::move(found);
    }
  }
}

void TensorMemory::wait_for_stores(uint32_t warp) {
  for (const LateStore& store : stores_) {
    if (store.warp != warp) continue;
    for (uint32_t lane = 0; lane < warp_size; ++lane)
      if (store.lanes >> lane & 1) cells_[store.places[lane]] = store.values[lane];
  }
  std::erase_if(stores_, [&](const LateStore& store) { return store.warp == warp; });
}

bool TensorMemory::has_waited_for(const TensorAccess& access, bool loads) const {
  // A warp waits with its own block's memory; cells in other blocks are accessed only by products.
  return access.serial <= serials_[access.warp % 32][loads];
}

void TensorMemory::warp_ended(const Warp& warp) {
  wait_for_stores(warp.index);
}

void TensorMemory::block_ended(Warp& last) {
  // Commits to mbarriers of other blocks of the cluster still arrive there.
  while (!operations_.empty()) {
    const auto commit =
        std::ranges::find_if(operations_, [](const TensorOperation& o) { return o.barrier != nullptr; });
    if (commit == operations_.end()) break;
    (void)complete(commit->barrier);
  }
  operations_.clear();
  if (!block_.checker) return;
  for (const Allocation& allocation : allocations_)
    if (allocation.columns)
      block_.checker->tensor_memory_misuse(
          last, *allocation.op,
          fmt::format("the {} columns from {} on are still allocated when the block ends", allocation.columns,
                      allocation.begin),
          std::nullopt);
}

// --- addresses ---

TensorMemory* own_tensor_memory(Warp& warp, const MicroOp& op, unsigned group) {
  Block& block = *warp.block;
  TensorMemory* own = TensorMemory::of(block, warp, op);
  if (!own) return nullptr;
  if (own->group && own->group != group) {
    block.fail(warp, op, static_cast<unsigned>(std::countr_zero(warp.mask)),
               fmt::format(".cta_group::{} in a block that has executed tcgen05 instructions with .cta_group::{}",
                           group, own->group));
    return nullptr;
  }
  own->group = group;
  return own;
}

bool find_tensor_pair(Warp& warp, const MicroOp& op, unsigned group, TensorPair& pair) {
  Block& block = *warp.block;
  const auto lane = static_cast<unsigned>(std::countr_zero(warp.mask));
  TensorMemory* own = own_tensor_memory(warp, op, group);
  pair = {own, nullptr};
  if (!own || group == 1) return own != nullptr;
  const uint32_t other = block.cluster_rank ^ 1;
  if (!block.cluster || other >= block.cluster->blocks.size()) {
    block.fail(warp, op, lane, ".cta_group::2 in a block that has no other one in its cluster to make a pair with");
    return false;
  }
  if (block.cluster->has_exited[other]) {
    block.fail(warp, op, lane, ".cta_group::2 while the other block of the pair has exited");
    return false;
  }
  TensorMemory* peer = TensorMemory::of(*block.cluster->blocks[other], warp, op);
  pair = block.cluster_rank % 2 == 0 ? TensorPair{own, peer} : TensorPair{peer, own};
  return peer != nullptr;
}

bool is_in_allocation(Warp& warp, const MicroOp& op, unsigned lane, const TensorMemory& memory, const char* what,
                      TensorAddress address, uint32_t lanes, uint32_t columns) {
  std::string wrong;
  if (address.lane >= tensor_lanes || lanes > tensor_lanes - address.lane)
    wrong = fmt::format("lanes {} to {}, of {}", address.lane, uint64_t(address.lane) + lanes - 1, tensor_lanes);
  else if (address.column >= tensor_columns || columns > tensor_columns - address.column)
    wrong =
        fmt::format("columns {} to {}, of {}", address.column, uint64_t(address.column) + columns - 1, tensor_columns);
  else if (!memory.is_allocated(address.column, columns))
    wrong = fmt::format("columns {} to {}, which are not all allocated", address.column, address.column + columns - 1);
  if (wrong.empty()) return true;
  warp.block->fail(warp, op, lane, fmt::format("{} in tensor memory takes {}", what, wrong),
                   FaultKind::illegal_address);
  return false;
}

} // namespace ptxrewrite::emulator
