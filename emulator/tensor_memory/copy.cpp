// tcgen05.cp (PTX ISA 9.7.16.9.2): copies rows of a K-major matrix, given by a descriptor, from shared memory to tensor
// memory. With .cta_group::2 each of the two blocks copies from its own shared memory to its own tensor memory.
#include "emulator/core/check.h"
#include "emulator/core/watch.h"
#include "emulator/special/async_access.h"
#include "emulator/special/matrix.h"
#include "emulator/tensor_memory/cell_check.h"
#include "emulator/tensor_memory/instructions.h"
#include "emulator/tensor_memory/shared_operand.h"
#include "emulator/tensor_memory/tensor_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace ptxrewrite::emulator {
namespace {

struct CopyOperands {
  CopyForm form;
  AddressSource target;
  LaneRef source;
};

bool is_source_in_shared(Warp& warp, const MicroOp& op, unsigned lane, const Block& block, const CopyForm& form,
                         uint64_t descriptor, uint32_t number) {
  SharedOperand operand;
  if (std::string wrong = read_shared_operand(descriptor, false, operand); !wrong.empty()) {
    warp.block->fail(warp, op, lane, "tcgen05.cp: " + wrong);
    return false;
  }
  for (unsigned row = 0; row < form.rows; ++row)
    for (unsigned chunk = 0; chunk < form.chunks; ++chunk) {
      const uint64_t address = chunk_address(operand, false, row, chunk);
      if (!contains(0, block.shared_bytes, address, chunk_bytes)) {
        warp.block->fail(warp, op, lane,
                         fmt::format("the descriptor of tcgen05.cp describes 16 bytes at shared {:#x}, of {} bytes of "
                                     "shared memory",
                                     address, block.shared_bytes),
                         FaultKind::illegal_address);
        return false;
      }
      if (!warp.block->watch_memory || &block != warp.block) continue;
      uint64_t addresses[warp_size];
      std::fill_n(addresses, warp_size, address);
      const uint32_t mask = std::exchange(warp.mask, 1u << lane);
      const bool good = watch_product_reads(warp, op, addresses, chunk_bytes, number);
      warp.mask = mask;
      if (!good) return false;
    }
  return true;
}

bool issue_copy(Warp& warp, const MicroOp& op, unsigned lane) {
  const auto& operands = *static_cast<const CopyOperands*>(warp.activation->function->descriptions[op.auxiliary].get());
  const CopyForm& form = operands.form;
  TensorPair pair;
  if (!find_tensor_pair(warp, op, form.group, pair)) return false;
  TensorMemory* own = own_tensor_memory(warp, op, form.group);
  const uint32_t number = own->next_operation(warp.index);
  TensorOperation operation;
  operation.thread = warp.index * warp_size + lane;
  operation.kind = TensorOperation::Kind::copy;
  operation.copy = {&form, pair.even, pair.odd, warp.lanes<uint64_t>(operands.source)[lane],
                    static_cast<uint32_t>(lane_address(warp, operands.target.base, operands.target.narrow,
                                                       operands.target.offset, lane))};
  const TensorAddress target = tensor_address(operation.copy.target);
  const uint32_t lanes = form.lane(form.rows - 1, form.copies - 1) + 1;
  for (TensorMemory* memory : {pair.even, pair.odd}) {
    if (!memory) continue;
    if (!is_in_allocation(warp, op, lane, *memory, "tcgen05.cp", target, lanes, form.chunks * chunk_bytes / 4) ||
        !is_source_in_shared(warp, op, lane, memory->block(), form, operation.copy.source, number))
      return false;
  }
  if (warp.block->checker) {
    CellRange range{0, target.column, form.chunks * chunk_bytes / 4};
    for (unsigned row = 0; row < form.rows; ++row)
      for (unsigned copy = 0; copy < form.copies; ++copy)
        range.groups = static_cast<uint8_t>(range.groups | groups_of(target.lane + form.lane(row, copy), 1));
    for (TensorMemory* memory : {pair.even, pair.odd})
      if (memory) check_cells(warp, op, *memory, range, CellUse::operation_write, number);
  }
  warp.block->take_fuel(form.rows * form.chunks / 8);
  if (!own->has_room(warp, op, lane)) return false;
  own->issue(std::move(operation));
  return true;
}

const MicroOp* copy_down(Warp& warp, const MicroOp& op) {
  return for_each_lane(warp, op, [&](unsigned lane) { return issue_copy(warp, op, lane); });
}

CopyForm form_of(const ir::Form& form) {
  using enum ir::Modifier;
  CopyForm made;
  made.group = form.has(cta_group_2) ? 2 : 1;
  made.unpacked_bits = form.has(b6x16_p32) ? 6 : form.has(b4x16_p64) ? 4 : 0;
  made.chunks = form.has(_128x256b) || form.has(_4x256b) ? 2 : 1;
  made.rows = 128;
  if (form.has(_4x256b)) {
    made.rows = 4;
    made.lanes = CopyForm::Lanes::one_of_quarter;
  } else if (form.has(_64x128b)) {
    made.rows = 64;
    made.copies = 2;
    made.lanes = form.has(warpx2_02_13) ? CopyForm::Lanes::halves_apart : CopyForm::Lanes::pairs_apart;
  } else if (form.has(_32x128b)) {
    made.rows = 32;
    made.copies = 4;
    made.lanes = CopyForm::Lanes::quarters_apart;
  }
  return made;
}

} // namespace

void decode_tensor_copy_down(Decoder& decoder) {
  CopyOperands operands;
  operands.form = form_of(decoder.form());
  operands.target = address_source(decoder, 0);
  operands.source = decoder.source(decoder.operands()[decoder.top_level(1)], lanes_of_bits(64));
  const uint32_t description = add_description(decoder, std::move(operands));
  MicroOp& op = decoder.emit(&copy_down);
  op.auxiliary = description;
}

} // namespace ptxrewrite::emulator
