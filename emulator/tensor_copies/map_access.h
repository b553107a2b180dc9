// Tensor maps in a kernel's memory, and the operands that name them.
#pragma once

#include "emulator/special/async_access.h"
#include "emulator/tensor_copies/tensor_map_object.h"

#include <optional>
#include <vector>

namespace ptxrewrite::emulator {

// The map at a generic address: in parameters, constant or global memory. It need not be a legal map. False: there is
// none, and the block has failed.
bool read_tensor_map_at(Warp& warp, const MicroOp& op, unsigned lane, uint64_t address, ir::TensorMap& map);

// `[map, {coordinates}]`, with an address that stands for the map's, sizes and strides between them where the
// instruction overrides the map: `[map, address, {sizes}, {low strides}, high strides, {coordinates}]`.
struct MapOperand {
  AddressSource address; // generic
  std::vector<ir::Operand> coordinates;
  std::optional<ir::Operand> new_address, high_strides;
  std::vector<ir::Operand> sizes, low_strides;
};
// Nothing: the decoder has been told what is not emulated.
std::optional<MapOperand> decode_map_operand(Decoder& decoder, unsigned top_level_index);

void decode_tensor_copy(Decoder& decoder, ir::InstructionId);
void decode_bulk_reduction(Decoder& decoder, ir::InstructionId);

} // namespace ptxrewrite::emulator
