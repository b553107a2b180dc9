// clusterlaunchcontrol (PTX ISA 9.7.13.18): a running cluster requests the work of one that has not started. Here every
// cluster counts as started, so that the response always is that no cluster was cancelled, as on a GPU with room for
// the whole grid. Each cluster then does its own work.
#include "emulator/cluster/operations.h"
#include "emulator/core/check.h"
#include "emulator/core/watch.h"
#include "emulator/memory/mbarrier_word.h"
#include "emulator/special/async_access.h"

#include <cstring>
#include <limits>
#include <utility>

namespace ptxrewrite::emulator {
namespace {

constexpr uint64_t response_bytes = 16;
constexpr uint32_t flag_to_all = 1u << 16; // .multicast::cluster::all

// Writes the response, opaque to kernels: bit 0: whether a cluster was cancelled, the upper three words: which one.
bool answer(Warp& warp, const MicroOp& op, unsigned lane, Space space, const CopyTarget& target) {
  Block& block = *warp.block;
  std::byte* to = lane_bytes(warp, op, lane, space, target.to, response_bytes, response_bytes, "store of a response");
  if (!to) return false;
  std::byte* barrier = lane_bytes(warp, op, lane, space, target.barrier, 8, 8, "mbarrier operation");
  if (!barrier) return false;
  if (block.watch_memory) {
    uint64_t addresses[warp_size];
    std::fill_n(addresses, warp_size, target.to);
    const uint32_t mask = std::exchange(warp.mask, 1u << lane);
    if (!watch_access(warp, op, space, addresses, response_bytes, AccessKind::store)) return false;
    warp.mask = mask;
  }
  std::memset(to, 0, response_bytes);
  if (block.checker) block.checker->release(warp, space, target.barrier);
  std::string wrong = change_barrier(barrier, [](BarrierWord& word) { return complete_bytes(word, response_bytes); });
  if (wrong.empty()) return true;
  block.fail(warp, op, lane, std::move(wrong));
  return false;
}

// op.source: address of the response, mbarrier. op.immediate: the offsets.
const MicroOp* try_cancel(Warp& warp, const MicroOp& op) {
  const auto offsets = std::bit_cast<CopyOffsets>(op.immediate);
  const auto space = static_cast<Space>(op.flags & 0xff);
  const uint64_t blocks = warp.block->cluster ? warp.block->cluster->blocks.size() : 1;
  return for_each_lane(warp, op, [&](unsigned lane) {
    CopyTarget target{lane_address(warp, op.source[0], op.flags & flag_narrow_first, offsets.to, lane),
                      lane_address(warp, op.source[1], op.flags & flag_narrow_second, offsets.from, lane)};
    if (!(op.flags & flag_to_all)) return answer(warp, op, lane, space, target);
    if (space == Space::generic) target = {split_generic(target.to).address, split_generic(target.barrier).address};
    return for_each_target(warp, op, lane, (1u << blocks) - 1, target,
                           [&](const CopyTarget& there) { return answer(warp, op, lane, Space::cluster, there); });
  });
}

// op.extra: index of the response's word.
const MicroOp* is_cancelled(Warp& warp, const MicroOp& op) {
  const auto* responses = warp.lanes<Bits128>(op.source[0]);
  detail::write_lanes<bool>(warp, op.destination[0], warp.mask,
                            [&](unsigned lane) { return (responses[lane].low & 1) != 0; });
  return &op + 1;
}

const MicroOp* first_block(Warp& warp, const MicroOp& op) {
  const auto* responses = warp.lanes<Bits128>(op.source[0]);
  detail::write_lanes<uint32_t>(warp, op.destination[0], warp.mask, [&](unsigned lane) {
    const uint64_t half = op.extra < 2 ? responses[lane].low : responses[lane].high;
    return static_cast<uint32_t>(half >> (op.extra % 2 * 32));
  });
  return &op + 1;
}

void decode_try_cancel(Decoder& decoder) {
  const AddressSource to = address_source(decoder, 0), barrier = address_source(decoder, 1);
  using Limits = std::numeric_limits<int32_t>;
  for (int64_t offset : {to.offset, barrier.offset})
    if (offset < Limits::min() || offset > Limits::max()) return decoder.unsupported("an offset of more than 32 bits");
  MicroOp& op = decoder.emit(&try_cancel);
  op.flags = static_cast<uint32_t>(decode_space(decoder.form().space)) | (to.narrow ? flag_narrow_first : 0) |
             (barrier.narrow ? flag_narrow_second : 0) |
             (decoder.form().has(ir::Modifier::multicast_cluster_all) ? flag_to_all : 0);
  op.source[0] = to.base;
  op.source[1] = barrier.base;
  op.immediate =
      std::bit_cast<int64_t>(CopyOffsets{static_cast<int32_t>(to.offset), static_cast<int32_t>(barrier.offset)});
}

void decode_query(Decoder& decoder) {
  const ir::Form& form = decoder.form();
  const std::span<const ir::Operand> operands = decoder.operands();
  const LaneRef response = decoder.source(operands[decoder.top_level(1)], lanes_of_bits(128));
  if (form.has(ir::Modifier::is_canceled)) {
    const LaneRef target = decoder.destination(operands[0], lanes_of_bits(1));
    MicroOp& op = decoder.emit(&is_cancelled);
    op.source[0] = response;
    op.destination[0] = target;
    return;
  }
  const auto emit = [&](MicroOp& op, LaneRef target, uint32_t word) {
    op.source[0] = response;
    op.destination[0] = target;
    op.extra = word;
  };
  const ir::Modifier words[] = {ir::Modifier::get_first_ctaid_x, ir::Modifier::get_first_ctaid_y,
                                ir::Modifier::get_first_ctaid_z};
  for (uint32_t i = 0; i < std::size(words); ++i)
    if (form.has(words[i])) {
      const LaneRef target = decoder.destination(operands[0], lanes_of_bits(32));
      return emit(decoder.emit(&first_block), target, i + 1);
    }
  // The three indices; the fourth element is unspecified.
  std::vector<LaneRef> targets;
  for (const ir::Operand& element : operands.subspan(1, operands[0].group_size()))
    targets.push_back(decoder.destination(element, lanes_of_bits(32)));
  for (uint32_t i = 0; i < targets.size(); ++i)
    emit(i == 0 ? decoder.emit(&first_block) : decoder.emit_further(&first_block, true), targets[i], (i + 1) % 4);
}

void decode_launch_control(Decoder& decoder, ir::InstructionId) {
  decoder.form().has(ir::Modifier::try_cancel) ? decode_try_cancel(decoder) : decode_query(decoder);
}

} // namespace

void add_launch_control_operations(OperationTable& table) {
  table.special("clusterlaunchcontrol*", &decode_launch_control);
}

} // namespace ptxrewrite::emulator
