// Conversion of lane arrays to another width: truncation, or extension by zeros or the sign.
#pragma once

#include "emulator/core/micro_op.h"

namespace ptxrewrite::emulator {

// Widths 8, 16, 32, 64, 128 bits. Returns nullptr if both widths are the same.
Handler resize_handler(unsigned from_bits, unsigned to_bits, bool is_signed);
// A plain copy of lane arrays of one width; 1 is a predicate.
Handler copy_handler(unsigned bits);
Handler invert_predicate_handler();

} // namespace ptxrewrite::emulator
