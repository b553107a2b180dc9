// Decodes DAC's queues as operands of the body's instructions.
#pragma once

#include "emulator/core/machine.h"

namespace ptxrewrite::emulator {

// Emits, before an instruction, the micro-operations that take its guard and operands from the queues.
std::unique_ptr<FormDecoder> make_queue_decoder();

void add_affine_operations(OperationTable& table);

enum class QueueAccess : uint8_t { none, address, predicate, give };
QueueAccess queue_access(const MicroOp& op);

} // namespace ptxrewrite::emulator
