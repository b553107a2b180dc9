// tcgen05.ld, tcgen05.st and their waits (PTX ISA 9.7.16.8): a warp moves registers to or from its quarter of the lanes
// of tensor memory. With late copies a store takes place when the warp waits for it. A load writes its registers at
// issue: compilers use them before the wait (LLVM moves it behind), and ptxas waits for them.
#include "emulator/core/check.h"
#include "emulator/semantics/min_max.h"
#include "emulator/semantics/sparse_groups.h"
#include "emulator/special/async_access.h"
#include "emulator/special/collective.h"
#include "emulator/special/matrix.h"
#include "emulator/tensor_memory/cell_check.h"
#include "emulator/tensor_memory/instructions.h"
#include "emulator/tensor_memory/tensor_memory.h"
#include "emulator/tensor_memory/transfer_places.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace ptxrewrite::emulator {
namespace {

enum class LoadReduction : uint8_t { none, f32, u32, s32 };

struct Transfer {
  TransferShape shape = TransferShape::lanes32;
  uint32_t registers = 1;
  bool packs = false;
  uint32_t second_half = 0; // column offset from the address, for lanes16_32b_twice
  AddressSource address;
  LoadReduction reduction = LoadReduction::none; // of ld.red: its result is in an additional last register
  bool takes_max = false, takes_magnitude = false, keeps_nan = false;
  uint32_t index_registers = 0, kept_registers = 0; // of .spcompress, the first in the list
  uint32_t columns() const { return transfer_columns(shape, registers) * (packs ? 2 : 1); }
};

// Start of the transfer of one warp, after it has been checked.
struct Place {
  TensorMemory* memory = nullptr;
  TensorAddress address;
};

// Moves an address in another warp's lanes to the warp's own quarter, as GPUs do; the manual does not allow it, and
// code that ptxas makes for -G stops there.
void move_to_quarter(Warp& warp, const MicroOp& op, uint32_t lanes, uint32_t& lane) {
  const uint32_t quarter = warp.index % 4 * lanes_of_quarter, own = quarter + lane % lanes_of_quarter;
  if (own != lane && warp.block->checker)
    warp.block->checker->tensor_memory_misuse(
        warp, op,
        fmt::format("the address is that of lanes {} to {}, where warp {} has none: its quarter are lanes {} to {}",
                    lane, lane + lanes - 1, warp.index, quarter, quarter + lanes_of_quarter - 1),
        std::nullopt);
  lane = own;
}

// Returns false if the block has failed.
bool find_place(const Collective& all, Place& place) {
  Warp& warp = all.warp();
  const MicroOp& op = all.op();
  const auto& transfer = all.description<Transfer>();
  const auto first = static_cast<unsigned>(std::countr_zero(all.lanes()));
  const auto fail = [&](std::string message) {
    warp.block->fail(warp, op, first, std::move(message), FaultKind::illegal_address);
    return false;
  };
  const auto address_of = [&](unsigned lane) {
    return static_cast<uint32_t>(
        lane_address(warp, transfer.address.base, transfer.address.narrow, transfer.address.offset, lane));
  };
  const uint32_t bits = address_of(first);
  for (const GatheredLanes& other : warp.gathered)
    if (other.op != &op || other.activation != warp.activation)
      return fail("lanes of one warp execute different instructions on tensor memory that are .aligned");
  for (unsigned lane = 0; lane < warp_size; ++lane)
    if (all.has(lane) && address_of(lane) != bits)
      return fail("an address in tensor memory that differs between lanes of the warp");
  place.memory = TensorMemory::of(*warp.block, warp, op);
  if (!place.memory) return false;
  place.address = tensor_address(bits);
  const uint32_t lanes = transfer_lanes(transfer.shape);
  uint32_t& lane = place.address.lane;
  if (lane % lanes || lane >= tensor_lanes)
    return fail(fmt::format("warp {} accesses lanes {} to {} of tensor memory, which has 128, {} at a time", warp.index,
                            lane, uint64_t(lane) + lanes - 1, lanes));
  move_to_quarter(warp, op, lanes, lane);
  if (!is_in_allocation(warp, op, first, *place.memory, "an access", place.address, lanes, transfer.columns()))
    return false;
  if (transfer.shape != TransferShape::lanes16_32b_twice) return true;
  const uint64_t second = uint64_t(place.address.column) + transfer.second_half;
  return is_in_allocation(warp, op, first, *place.memory, "an access",
                          {lane, static_cast<uint32_t>(std::min<uint64_t>(second, tensor_columns))}, lanes,
                          transfer.columns());
}

// Returns lane and column of register `index` of a thread.
TensorAddress cell_of(const Transfer& transfer, const Place& place, unsigned thread, uint32_t index) {
  const TransferPlace there = transfer_place(transfer.shape, thread, index);
  return {place.address.lane + there.lane, place.address.column + there.column * (transfer.packs ? 2 : 1) +
                                               (there.is_second ? transfer.second_half : 0)};
}

void check_transfer(const Collective& all, const Transfer& transfer, const Place& place, CellUse use) {
  Warp& warp = all.warp();
  if (!warp.block->checker) return;
  CellRange range{groups_of(place.address.lane, transfer_lanes(transfer.shape)), place.address.column,
                  transfer.columns()};
  check_cells(warp, all.op(), *place.memory, range, use, 0);
  if (transfer.shape != TransferShape::lanes16_32b_twice) return;
  range.column += transfer.second_half;
  check_cells(warp, all.op(), *place.memory, range, use, 0);
}

uint32_t load_cell(const Transfer& transfer, TensorMemory& memory, TensorAddress at) {
  if (!transfer.packs) return memory.cell(at.lane, at.column);
  return (memory.cell(at.lane, at.column) & 0xffff) | memory.cell(at.lane, at.column + 1) << 16;
}

void store_cell(const Transfer& transfer, TensorMemory& memory, TensorAddress at, uint32_t value) {
  if (!transfer.packs) {
    memory.cell(at.lane, at.column) = value;
    return;
  }
  memory.cell(at.lane, at.column) = value & 0xffff;
  memory.cell(at.lane, at.column + 1) = value >> 16;
}

uint32_t reduced(const Transfer& transfer, uint32_t a, uint32_t b) {
  switch (transfer.reduction) {
  case LoadReduction::s32: {
    const auto x = static_cast<int32_t>(a), y = static_cast<int32_t>(b);
    return static_cast<uint32_t>(transfer.takes_max ? std::max(x, y) : std::min(x, y));
  }
  case LoadReduction::u32:
    return transfer.takes_max ? std::max(a, b) : std::min(a, b);
  case LoadReduction::f32: {
    const auto x = std::bit_cast<float>(a), y = std::bit_cast<float>(b);
    const bool x_nan = x != x, y_nan = y != y;
    if ((x_nan || y_nan) && (transfer.keeps_nan || (x_nan && y_nan))) return 0x7fffffff;
    if (x_nan || y_nan) return x_nan ? b : a;
    // -0 is less than +0.
    const bool x_less = x < y || (x == y && a >> 31 > b >> 31);
    return x_less != transfer.takes_max ? a : b;
  }
  case LoadReduction::none:
    return a;
  }
  return a;
}

const MicroOp* load_registers(Warp& running, const MicroOp& instruction) {
  return execute_together(running, instruction, {}, [](const Collective& all) {
    const auto& transfer = all.description<Transfer>();
    Place place;
    if (!find_place(all, place)) return;
    all.warp().block->take_fuel(transfer.registers / 4);
    check_transfer(all, transfer, place, CellUse::load);
    std::array<uint32_t, warp_size> result{};
    for (uint32_t index = 0; index < transfer.registers; ++index) {
      std::array<uint32_t, warp_size> values;
      for (unsigned lane = 0; lane < warp_size; ++lane) {
        values[lane] = load_cell(transfer, *place.memory, cell_of(transfer, place, lane, index));
        const uint32_t value = transfer.takes_magnitude ? values[lane] & 0x7fffffff : values[lane];
        if (transfer.reduction != LoadReduction::none)
          result[lane] = index == 0 ? value : reduced(transfer, result[lane], value);
      }
      all.write_listed<uint32_t>(index, [&](unsigned lane) { return values[lane]; });
    }
    if (transfer.reduction != LoadReduction::none)
      all.write_listed<uint32_t>(transfer.registers, [&](unsigned lane) { return result[lane]; });
  });
}

constexpr uint32_t most_columns = 128; // of a load

// Of each four columns of a lane two are kept (semantics/sparse_groups.h), unchanged.
const MicroOp* load_compressed(Warp& running, const MicroOp& instruction) {
  return execute_together(running, instruction, {}, [](const Collective& all) {
    const auto& transfer = all.description<Transfer>();
    Place place;
    if (!find_place(all, place)) return;
    all.warp().block->take_fuel(transfer.registers);
    check_transfer(all, transfer, place, CellUse::load);
    const uint32_t outputs = transfer.index_registers + transfer.kept_registers;
    std::array<std::array<uint32_t, most_columns>, warp_size> written{};
    std::array<uint32_t, warp_size> result{};
    for (unsigned lane = 0; lane < warp_size; ++lane) {
      std::array<uint32_t, most_columns> bits;
      for (uint32_t index = 0; index < transfer.registers; ++index) {
        bits[index] = load_cell(transfer, *place.memory, cell_of(transfer, place, lane, index));
        const uint32_t value = transfer.takes_magnitude ? bits[index] & 0x7fffffff : bits[index];
        result[lane] = index == 0 ? value : reduced(transfer, result[lane], value);
      }
      const std::span<uint32_t> indices(written[lane].data(), transfer.index_registers);
      uint32_t* kept = written[lane].data() + transfer.index_registers;
      for (uint32_t group = 0; group < transfer.registers / semantics::sparse_group; ++group) {
        const uint32_t* four = bits.data() + group * semantics::sparse_group;
        std::array<double, semantics::sparse_group> values;
        for (unsigned i = 0; i < semantics::sparse_group; ++i)
          values[i] =
              static_cast<double>(std::bit_cast<float>(transfer.takes_magnitude ? four[i] & 0x7fffffff : four[i]));
        const std::array<unsigned, 2> two = semantics::two_of_four(values, transfer.takes_max);
        for (unsigned i = 0; i < 2; ++i) {
          semantics::set_packed_field(indices, group * 2 + i, 2, two[i]);
          kept[group * 2 + i] = four[two[i]];
        }
      }
    }
    for (uint32_t index = 0; index < outputs; ++index)
      all.write_listed<uint32_t>(index, [&](unsigned lane) { return written[lane][index]; });
    if (transfer.reduction != LoadReduction::none)
      all.write_listed<uint32_t>(outputs, [&](unsigned lane) { return result[lane]; });
  });
}

const MicroOp* store_registers(Warp& running, const MicroOp& instruction) {
  return execute_together(running, instruction, {}, [](const Collective& all) {
    const auto& transfer = all.description<Transfer>();
    Place place;
    if (!find_place(all, place) || !place.memory->has_room(all.warp(), all.op(), 0)) return;
    all.warp().block->take_fuel(transfer.registers / 4);
    check_transfer(all, transfer, place, CellUse::store);
    for (uint32_t index = 0; index < transfer.registers; ++index) {
      uint32_t storage[warp_size];
      const uint32_t* values = all.listed(index, storage);
      if (place.memory->is_late() && !transfer.packs) {
        LateStore late;
        late.warp = all.warp().index;
        late.lanes = all.lanes();
        std::copy_n(values, warp_size, late.values.begin());
        for (unsigned lane = 0; lane < warp_size; ++lane) {
          const TensorAddress at = cell_of(transfer, place, lane, index);
          late.places[lane] = at.column * tensor_lanes + at.lane;
        }
        place.memory->add_store(late);
        continue;
      }
      for (unsigned lane = 0; lane < warp_size; ++lane)
        if (all.has(lane)) store_cell(transfer, *place.memory, cell_of(transfer, place, lane, index), values[lane]);
    }
  });
}

// op.immediate: nonzero for loads.
const MicroOp* wait_for_transfers(Warp& running, const MicroOp& instruction) {
  return execute_together(running, instruction, {}, [](const Collective& all) {
    TensorMemory* memory = TensorMemory::of(*all.warp().block, all.warp(), all.op());
    if (!memory) return;
    if (all.op().immediate == 0) memory->wait_for_stores(all.warp().index);
    memory->note_wait(all.warp().index, all.op().immediate != 0);
  });
}

// --- decoding ---

TransferShape shape_of(const ir::Form& form) {
  using enum ir::Modifier;
  if (form.has(_16x64b)) return TransferShape::lanes16_64b;
  if (form.has(_16x128b)) return TransferShape::lanes16_128b;
  if (form.has(_16x256b)) return TransferShape::lanes16_256b;
  if (form.has(_16x32bx2)) return TransferShape::lanes16_32b_twice;
  return TransferShape::lanes32;
}

uint32_t repetitions_of(const ir::Form& form) {
  using enum ir::Modifier;
  constexpr ir::Modifier words[] = {x1, x2, x4, x8, x16, x32, x64, x128};
  for (unsigned i = 0; i < std::size(words); ++i)
    if (form.has(words[i])) return 1u << i;
  return 1;
}

LoadReduction reduction_of(const ir::Form& form) {
  if (!form.has(ir::Modifier::red)) return LoadReduction::none;
  for (ir::ScalarType type : form.types) {
    if (type == ir::ScalarType::f32) return LoadReduction::f32;
    if (type == ir::ScalarType::s32) return LoadReduction::s32;
  }
  return LoadReduction::u32;
}

// Destinations of .spcompress: words of indices, kept columns, and with .red the reduction.
void decode_compressed_load(Decoder& decoder, Transfer transfer) {
  const bool reduces = transfer.reduction != LoadReduction::none;
  std::vector<LaneRef> list;
  for (unsigned operand = 0; operand < (reduces ? 3u : 2u); ++operand)
    for (const ir::Operand& named : matrix_registers(decoder, operand)) {
      if (operand < 2) ++(operand == 0 ? transfer.index_registers : transfer.kept_registers);
      list.push_back(decoder.destination(named, lanes_of_bits(32)));
    }
  if (transfer.registers > most_columns || transfer.kept_registers * 2 != transfer.registers ||
      transfer.index_registers * 32 < transfer.registers)
    return decoder.unsupported("a compressed load with another number of registers than its shape has");
  transfer.address = address_source(decoder, reduces ? 3 : 2);
  const uint32_t first = decoder.add_list(list);
  const uint32_t description = add_description(decoder, transfer);
  MicroOp& op = decoder.emit(&load_compressed);
  op.extra = first;
  op.auxiliary = description;
}

} // namespace

void decode_tensor_transfer(Decoder& decoder) {
  using enum ir::Modifier;
  const ir::Form& form = decoder.form();
  const bool is_load = form.has(ld);
  Transfer transfer;
  transfer.shape = shape_of(form);
  transfer.registers = repetitions_of(form) * transfer_registers(transfer.shape);
  transfer.packs = form.has(pack_16b) || form.has(unpack_16b);
  transfer.reduction = reduction_of(form);
  transfer.takes_max = form.has(max);
  transfer.takes_magnitude = form.has(abs);
  transfer.keeps_nan = form.has(NaN);
  if (form.has(spcompress)) return decode_compressed_load(decoder, transfer);
  const bool is_twice = transfer.shape == TransferShape::lanes16_32b_twice;
  const bool reduces = transfer.reduction != LoadReduction::none;
  const unsigned address = is_load ? (reduces ? 2 : 1) : 0;
  const unsigned registers = is_load ? 0 : is_twice ? 2 : 1;
  if (is_twice)
    transfer.second_half = static_cast<uint32_t>(
        std::clamp<int64_t>(decoder.operands()[decoder.top_level(address + 1)].immediate, 0, tensor_columns));
  const std::vector<ir::Operand> named = matrix_registers(decoder, registers);
  if (named.size() != transfer.registers)
    return decoder.unsupported("a transfer of tensor memory with another number of registers than its shape has");
  transfer.address = address_source(decoder, address);
  std::vector<LaneRef> list;
  for (const ir::Operand& operand : named) {
    list.push_back(is_load ? decoder.destination(operand, lanes_of_bits(32))
                           : decoder.source(operand, lanes_of_bits(32)));
  }
  if (reduces)
    for (const ir::Operand& operand : matrix_registers(decoder, 1))
      list.push_back(decoder.destination(operand, lanes_of_bits(32)));
  const uint32_t first = decoder.add_list(list);
  const uint32_t description = add_description(decoder, transfer);
  MicroOp& op = decoder.emit(is_load ? &load_registers : &store_registers);
  op.extra = first;
  op.auxiliary = description;
}

void decode_tensor_wait(Decoder& decoder) {
  const bool loads = decoder.form().has(ir::Modifier::wait_ld);
  decoder.emit(&wait_for_transfers).immediate = loads;
}

} // namespace ptxrewrite::emulator
