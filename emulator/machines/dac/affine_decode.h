// DAC's queues as instructions of the body read them.
#pragma once

#include "emulator/core/micro_op.h"

namespace ptxrewrite::emulator {

class Decoder;
class OperationTable;

// In front of the current instruction: takes from the queues what its guard and its operands are.
void decode_dequeues(Decoder& decoder);

void add_affine_operations(OperationTable& table);

enum class QueueAccess : uint8_t { none, address, predicate, give };
QueueAccess queue_access(const MicroOp& op);

} // namespace ptxrewrite::emulator
