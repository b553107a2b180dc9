#include "emulator/tensor_copies/map_access.h"

#include "emulator/core/check.h"

#include <fmt/format.h>

#include <algorithm>

namespace ptxrewrite::emulator {
namespace {

// Returns the difference between the variable's generic address and its address in its own space.
uint64_t window_of_symbol(const Decoder& decoder, ir::SymbolRef symbol) {
  const ir::Function& function = decoder.function();
  if (symbol.kind() == ir::SymbolRef::Kind::module_variable)
    return window_of(decode_space(function.module().variables[symbol.variable()].space));
  if (symbol.kind() == ir::SymbolRef::Kind::local_variable)
    return window_of(decode_space(function.variables[symbol.variable()].space));
  return 0;
}

void check_fence(Warp& warp, const MicroOp& op, uint64_t address) {
  MemoryChecker* checker = warp.block->checker.get();
  if (!checker || std::ranges::find(checker->changed_tensor_maps(), address) == checker->changed_tensor_maps().end())
    return;
  checker->missing_fence(warp, op,
                         "the tensor map has been changed, with no fence.proxy.tensormap::generic.acquire "
                         "of it behind");
}

} // namespace

bool read_tensor_map_at(Warp& warp, const MicroOp& op, unsigned lane, uint64_t address, ir::TensorMap& map) {
  const Space space = split_generic(address).space;
  if (space == Space::shared || space == Space::local) {
    warp.block->fail(warp, op, lane,
                     fmt::format("a tensor map in {} memory; copies take them from global or constant memory or "
                                 "parameters",
                                 name_of(space)));
    return false;
  }
  const std::byte* bytes =
      lane_bytes(warp, op, lane, Space::generic, address, ir::tensor_map_bytes, ir::tensor_map_alignment, "tensor map");
  if (!bytes) return false;
  std::string wrong =
      read_tensor_map(std::span<const std::byte, ir::tensor_map_bytes>(bytes, ir::tensor_map_bytes), map);
  if (wrong.empty()) {
    check_fence(warp, op, address);
    return true;
  }
  warp.block->fail(warp, op, lane, fmt::format("tensor map at {:#x}: {}", address, wrong));
  return false;
}

std::optional<MapOperand> decode_map_operand(Decoder& decoder, unsigned top_level_index) {
  const size_t position = decoder.top_level(top_level_index);
  const std::span<const ir::Operand> operands = decoder.operands();
  if (position >= operands.size() || !operands[position].is(ir::OperandKind::address) ||
      operands[position].group_size() < 2) {
    decoder.unsupported("a tensor copy whose map the emulator cannot find");
    return std::nullopt;
  }
  MapOperand result;
  const ir::Operand& base = operands[position + 1];
  std::vector<size_t> parts; // parts after the base
  for (size_t i = position + 2; i < ir::next_sibling(operands, position); i = ir::next_sibling(operands, i))
    parts.push_back(i);
  const auto elements = [&](size_t at) {
    if (!operands[at].is(ir::OperandKind::vector)) return std::vector<ir::Operand>{operands[at]};
    const auto inside = operands.subspan(at + 1, operands[at].group_size());
    return std::vector<ir::Operand>(inside.begin(), inside.end());
  };
  result.coordinates = elements(parts.back());
  const ir::Operand& place = operands[parts.front()]; // the part after the base
  if (parts.size() > 1) result.new_address = operands[parts[0]];
  if (parts.size() > 2) result.sizes = elements(parts[1]);
  if (parts.size() > 4) {
    result.low_strides = elements(parts[2]);
    result.high_strides = operands[parts[3]];
  }
  if (base.is(ir::OperandKind::value)) {
    result.address.base = decoder.source(base, lanes_of_bits(64));
    result.address.offset = operands[position].immediate;
  } else if (place.is(ir::OperandKind::vector)) {
    const Decoder::Address address = decoder.address(position);
    result.address.base = address.constant ? decoder.constant(0, 64) : address.base;
    result.address.offset = address.offset;
    const bool is_generic = decode_space(decoder.form().space) == Space::generic; // the offset includes the window
    if (address.is_symbol && !is_generic)
      result.address.offset += static_cast<int64_t>(window_of_symbol(decoder, address.symbol));
  } else {
    decoder.unsupported("a tensor copy by a map that is named, with a coordinate that is no vector");
    return std::nullopt;
  }
  return result;
}

} // namespace ptxrewrite::emulator
