// Lane arrays of one width to another: truncation, or extension by zeros or the sign.
#pragma once

#include "emulator/core/micro_op.h"

namespace ptxrewrite::emulator {

// Widths 8, 16, 32, 64, 128 bits. Null when both are the same and nothing is to do.
Handler resize_handler(unsigned from_bits, unsigned to_bits, bool is_signed);
// Plain copy of lane arrays of one width; 1 is a predicate.
Handler copy_handler(unsigned bits);
Handler invert_predicate_handler();

} // namespace ptxrewrite::emulator
