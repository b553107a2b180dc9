// Decodes spcompress and spdecompress, whose rows of the table are with those of matrices (matrix_memory.cpp).
#pragma once

#include "emulator/core/decode.h"

namespace ptxrewrite::emulator {

void decode_sparse_vector(Decoder& decoder, ir::InstructionId);

} // namespace ptxrewrite::emulator
