#include "emulator/memory/host_program.h"

#include "emulator/memory/memory.h"

#include <algorithm>
#include <atomic>

namespace ptxrewrite::emulator {
namespace {

std::atomic<bool> runs_beside = false;

} // namespace

void let_program_run_beside_kernels() {
  runs_beside = true;
}

bool may_be_ended_by_program(const DeviceMemory& memory) {
  return runs_beside && std::ranges::any_of(memory.extents(), [&](const DeviceMemory::Extent& extent) {
           return memory.is_host_memory(extent.address);
         });
}

} // namespace ptxrewrite::emulator
