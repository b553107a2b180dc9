// Tensor maps in a kernel's memory, and the operands that refer to them.
#pragma once

#include "emulator/special/async_access.h"
#include "emulator/tensor_copies/tensor_map_object.h"

#include <optional>
#include <vector>

namespace ptxrewrite::emulator {

// Reads the map at a generic address: in parameters, constant or global memory. The map need not be legal. Returns
// false if there is no map; the block has failed then.
bool read_tensor_map_at(Warp& warp, const MicroOp& op, unsigned lane, uint64_t address, ir::TensorMap& map);

// `[map, {coordinates}]`; if the instruction overrides fields of the map, a replacement address, sizes and strides are
// between them: `[map, address, {sizes}, {low strides}, high strides, {coordinates}]`.
struct MapOperand {
  AddressSource address; // generic
  std::vector<ir::Operand> coordinates;
  std::optional<ir::Operand> new_address, high_strides;
  std::vector<ir::Operand> sizes, low_strides;
};
// Returns nullopt for operands that are not emulated, and reports them to the decoder.
std::optional<MapOperand> decode_map_operand(Decoder& decoder, unsigned top_level_index);

void decode_tensor_copy(Decoder& decoder, ir::InstructionId);
void decode_bulk_reduction(Decoder& decoder, ir::InstructionId);

} // namespace ptxrewrite::emulator
