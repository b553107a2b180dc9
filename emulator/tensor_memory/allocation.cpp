// tcgen05.alloc, dealloc and relinquish_alloc_permit (PTX ISA 9.7.16.7): a warp allocates columns of tensor memory
// and deallocates them. Each block has its own tensor memory, so an allocation that does not fit waits for a dealloc
// by another warp of its block; without one the launch ends as a deadlock. With .cta_group::2 the first block of a pair
// that allocates does so for both, and the other one gets the same columns with its own alloc; each block deallocates
// its own columns. An allocation with .exclusive and another one wait for each other.
#include "emulator/core/check.h"
#include "emulator/core/watch.h"
#include "emulator/special/async_access.h"
#include "emulator/special/collective.h"
#include "emulator/tensor_memory/instructions.h"
#include "emulator/tensor_memory/tensor_memory.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>

namespace ptxrewrite::emulator {
namespace {

constexpr uint32_t flag_exclusive = 1u << 18; // above flag_pair

// With .exclusive a multiple of 32 (PTX ISA 9.4), else a power of two.
bool is_legal_size(uint32_t columns, bool exclusive) {
  return columns >= least_tensor_columns && columns <= tensor_columns &&
         (exclusive ? columns % least_tensor_columns == 0 : std::has_single_bit(columns));
}

const MicroOp* fail(const Collective& all, std::string message) {
  return all.warp().block->fail(all.warp(), all.op(), static_cast<unsigned>(std::countr_zero(all.lanes())),
                                std::move(message));
}

unsigned group_of(const MicroOp& op) {
  return op.flags & flag_pair ? 2 : 1;
}

bool is_same_in_all_lanes(const Collective& all, const uint32_t* values) {
  const uint32_t first = values[std::countr_zero(all.lanes())];
  for (unsigned lane = 0; lane < warp_size; ++lane)
    if (all.has(lane) && values[lane] != first) return false;
  return true;
}

// Returns columns for the warp's block, or nullopt if none are free now.
std::optional<uint32_t> take_columns(const TensorPair& pair, TensorMemory& own, uint32_t columns, const Warp& warp,
                                     const MicroOp& op) {
  if (!own.granted.empty()) {
    TensorMemory::Allocation mine = own.granted.front();
    if (mine.columns != columns) return tensor_columns; // the blocks of the pair disagree
    own.granted.pop_front();
    mine.warp = warp.index;
    mine.op = &op;
    own.allocate(mine);
    return mine.begin;
  }
  TensorMemory* other = &own == pair.even ? pair.odd : pair.even;
  const bool exclusive = op.flags & flag_exclusive;
  const uint32_t begin = own.find_free(columns, other);
  if (begin == tensor_columns || own.excludes(exclusive)) return std::nullopt;
  const TensorMemory::Allocation made{begin, columns, warp.index, &op, exclusive};
  own.allocate(made);
  if (!other) return begin;
  other->allocate(made);
  other->granted.push_back(made);
  return begin;
}

// op.source: address where the result is written, number of columns.
const MicroOp* allocate(Warp& running, const MicroOp& instruction) {
  bool waits = false;
  const MicroOp* next = execute_together(running, instruction, {}, [&](const Collective& all) {
    Warp& warp = all.warp();
    const MicroOp& op = all.op();
    const auto lane = static_cast<unsigned>(std::countr_zero(all.lanes()));
    TensorPair pair;
    if (!find_tensor_pair(warp, op, group_of(op), pair)) return;
    TensorMemory* own = own_tensor_memory(warp, op, group_of(op));
    uint32_t storage[warp_size];
    const uint32_t* sizes = all.values(1, storage);
    if (!is_same_in_all_lanes(all, sizes))
      return (void)fail(all, "lanes of the warp allocate different numbers of columns");
    const uint32_t columns = sizes[lane];
    const bool exclusive = op.flags & flag_exclusive;
    if (!is_legal_size(columns, exclusive))
      return (void)fail(all, fmt::format("an allocation of {} columns of tensor memory, which is no {} from 32 to 512",
                                         columns, exclusive ? "multiple of 32" : "power of two"));
    if (own->has_relinquished)
      return (void)fail(all, "tcgen05.alloc in a block that has given up the right to allocate");
    uint64_t address = lane_address(warp, op.source[0], op.flags & flag_narrow_first, op.immediate, lane);
    const auto space = static_cast<Space>(op.flags & 0xff);
    // PTX ISA 6.4.1: truncated to the width of addresses in shared memory. ThunderKittens passes a generic address.
    if (space == Space::shared) address = static_cast<uint32_t>(address);
    std::byte* to = lane_bytes(warp, op, lane, space, address, 4, 4, "tcgen05.alloc");
    if (!to) return;
    const std::optional<uint32_t> begin = take_columns(pair, *own, columns, warp, op);
    if (!begin && !warp.gathered.empty())
      return (void)fail(all, "an allocation of tensor memory that has to wait, by lanes that come to it apart");
    if (!begin) return (void)(waits = true);
    if (*begin == tensor_columns) return (void)fail(all, "the blocks of a pair allocate different numbers of columns");
    if (warp.block->watch_memory) {
      uint64_t addresses[warp_size];
      std::fill_n(addresses, warp_size, address);
      const uint32_t mask = std::exchange(warp.mask, 1u << lane);
      const bool good = watch_access(warp, op, space, addresses, 4, AccessKind::store);
      warp.mask = mask;
      if (!good) return;
    }
    std::memcpy(to, &*begin, sizeof *begin);
  });
  return waits ? running.yield(&instruction) : next;
}

// op.source: the address, the number of columns.
const MicroOp* deallocate(Warp& running, const MicroOp& instruction) {
  return execute_together(running, instruction, {}, [](const Collective& all) {
    Warp& warp = all.warp();
    const MicroOp& op = all.op();
    TensorMemory* own = own_tensor_memory(warp, op, group_of(op));
    if (!own) return;
    uint32_t address_storage[warp_size], size_storage[warp_size];
    const uint32_t* addresses = all.values(0, address_storage);
    const uint32_t* sizes = all.values(1, size_storage);
    if (!is_same_in_all_lanes(all, addresses) || !is_same_in_all_lanes(all, sizes))
      return (void)fail(all, "lanes of the warp deallocate different columns");
    const uint32_t address = addresses[std::countr_zero(all.lanes())], columns = sizes[std::countr_zero(all.lanes())];
    const TensorMemory::Allocation* allocation = address < tensor_columns ? own->allocation_at(address) : nullptr;
    const bool exclusive = op.flags & flag_exclusive;
    if (!allocation || allocation->columns != columns || allocation->exclusive != exclusive)
      return (void)fail(all,
                        fmt::format("tcgen05.dealloc of {} columns at {:#x} of tensor memory, which is no allocation{}",
                                    columns, address, exclusive ? " with .exclusive" : ""));
    own->deallocate(address);
  });
}

const MicroOp* relinquish(Warp& running, const MicroOp& instruction) {
  return execute_together(running, instruction, {}, [](const Collective& all) {
    if (TensorMemory* own = own_tensor_memory(all.warp(), all.op(), group_of(all.op()))) own->has_relinquished = true;
  });
}

} // namespace

void decode_tensor_allocation(Decoder& decoder) {
  const ir::Form& form = decoder.form();
  const uint32_t flags =
      (form.has(ir::Modifier::cta_group_2) ? flag_pair : 0) | (form.has(ir::Modifier::exclusive) ? flag_exclusive : 0);
  if (form.has(ir::Modifier::relinquish_alloc_permit)) {
    decoder.emit(&relinquish).flags = flags;
    return;
  }
  const auto word = [&](unsigned index) {
    return decoder.source(decoder.operands()[decoder.top_level(index)], lanes_of_bits(32));
  };
  if (form.has(ir::Modifier::dealloc)) {
    const LaneRef address = word(0), columns = word(1);
    MicroOp& op = decoder.emit(&deallocate);
    op.flags = flags;
    op.source[0] = address;
    op.source[1] = columns;
    return;
  }
  const AddressSource to = address_source(decoder, 0);
  const LaneRef columns = word(1);
  MicroOp& op = decoder.emit(&allocate);
  op.flags = static_cast<uint32_t>(decode_space(form.space)) | (to.narrow ? flag_narrow_first : 0) | flags;
  op.source[0] = to.base;
  op.source[1] = columns;
  op.immediate = to.offset;
}

} // namespace ptxrewrite::emulator
