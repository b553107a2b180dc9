// Decoders of the tcgen05 instructions, by function (PTX ISA 9.7.16).
#pragma once

#include "emulator/core/decode.h"

namespace ptxrewrite::emulator {

// MicroOp::flags of instructions with few operands, above a Space and the widths of addresses.
constexpr uint32_t flag_pair = 1u << 17; // .cta_group::2

void decode_tensor_allocation(Decoder& decoder); // alloc, dealloc, relinquish_alloc_permit
void decode_tensor_transfer(Decoder& decoder);   // ld, st
void decode_tensor_wait(Decoder& decoder);       // wait::ld, wait::st
void decode_tensor_product(Decoder& decoder);    // mma
void decode_tensor_copy_down(Decoder& decoder);  // cp
void decode_tensor_shift(Decoder& decoder);      // shift
void decode_tensor_commit(Decoder& decoder);
void decode_tensor_fence(Decoder& decoder);

} // namespace ptxrewrite::emulator
