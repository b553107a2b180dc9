// Instructions of thread block clusters. The cluster machine (cluster_run.h) adds them to the operation table.
#pragma once

#include "emulator/core/operation.h"

namespace ptxrewrite::emulator {

void add_cluster_barrier_operations(OperationTable& table);
void add_cluster_address_operations(OperationTable& table);
void add_async_store_operations(OperationTable& table);
void add_launch_control_operations(OperationTable& table);

} // namespace ptxrewrite::emulator
