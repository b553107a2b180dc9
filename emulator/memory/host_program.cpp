#include "emulator/memory/host_program.h"

#include "emulator/memory/memory.h"

#include <algorithm>
#include <atomic>

namespace ptxrewrite::emulator {
namespace {

std::atomic<bool> runs_beside = false;
std::atomic<bool> has_ended = false;
std::atomic<uint64_t> executed_after_end = 0;
constexpr uint64_t limit_after_end = 20'000'000; // a second or two of the interpreter

} // namespace

void let_program_run_beside_kernels() {
  runs_beside = true;
}

bool shares_memory_with_program(const DeviceMemory& memory) {
  return runs_beside && !has_ended && std::ranges::any_of(memory.extents(), [&](const DeviceMemory::Extent& extent) {
           return memory.is_host_memory(extent.address);
         });
}

void program_ends() {
  has_ended = true;
}

bool has_program_ended() {
  return has_ended.load(std::memory_order_relaxed);
}

bool take_fuel_after_end(uint64_t warp_instructions) {
  return executed_after_end.fetch_add(warp_instructions, std::memory_order_relaxed) + warp_instructions <=
         limit_after_end;
}

} // namespace ptxrewrite::emulator
