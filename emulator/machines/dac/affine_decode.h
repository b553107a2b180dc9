// DAC's queues as instructions of the body read them.
#pragma once

#include "emulator/core/machine.h"

namespace ptxrewrite::emulator {

// In front of an instruction: takes from the queues what its guard and its operands are.
std::unique_ptr<FormDecoder> make_queue_decoder();

void add_affine_operations(OperationTable& table);

enum class QueueAccess : uint8_t { none, address, predicate, give };
QueueAccess queue_access(const MicroOp& op);

} // namespace ptxrewrite::emulator
