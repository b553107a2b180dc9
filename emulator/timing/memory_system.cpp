#include "emulator/timing/memory_system.h"

#include <algorithm>
#include <span>

namespace ptxrewrite::timing {
namespace {

constexpr uint32_t kib = 1024;

// Available sizes of shared memory in KiB (occupancy tables of CUDA 13).
constexpr uint32_t steps_70[] = {0, 8, 16, 32, 64, 96};
constexpr uint32_t steps_75[] = {32, 64};
constexpr uint32_t steps_80[] = {0, 8, 16, 32, 64, 100, 132, 164};
constexpr uint32_t steps_90[] = {0, 8, 16, 32, 64, 100, 132, 164, 196, 228};

std::span<const uint32_t> carve_outs(uint32_t capability) {
  if (capability >= 90) return steps_90;
  if (capability >= 80) return steps_80;
  if (capability >= 75) return steps_75;
  return steps_70;
}

} // namespace

uint64_t l1_bytes(const ir::Machine& machine, uint64_t shared_bytes_per_sm) {
  if (!machine.memory.l1_kib.known) return 0;
  const auto whole = static_cast<uint64_t>(machine.memory.l1_kib.value) * kib;
  if (machine.compute_capability < 70) return whole;
  const std::span<const uint32_t> steps = carve_outs(machine.compute_capability);
  const auto fits = std::find_if(steps.begin(), steps.end(),
                                 [&](uint32_t step) { return uint64_t(step) * kib >= shared_bytes_per_sm; });
  const uint64_t shared = uint64_t(fits == steps.end() ? steps.back() : *fits) * kib;
  return whole > shared ? whole - shared : 0;
}

bool bypasses_l1(const ir::Machine& machine, const ir::Form& form) {
  using enum ir::Modifier;
  if (form.space == ir::StateSpace::local) return false;
  if (form.kind == ir::InstructionClass::texture || form.kind == ir::InstructionClass::surface) return false;
  if (form.has(cg) || form.has(cv) || form.effects.atomic || form.effects.volatile_result) return true;
  const uint32_t capability = machine.compute_capability;
  const bool read_only_alone = capability >= 30 && capability < 70 && capability != 60;
  return read_only_alone && !form.has(nc);
}

double l2_slice_bytes_per_clock(const ir::Machine& machine) {
  return machine.compute_capability < 70 ? 32 : 64;
}

MemorySystem memory_system(const ir::Machine& machine, uint64_t shared_bytes_per_block, uint32_t resident_blocks) {
  MemorySystem memory;
  const uint64_t shared = (shared_bytes_per_block + machine.occupancy.shared_reserved) * resident_blocks;
  memory.l1_bytes = l1_bytes(machine, shared);
  memory.l2_bytes = machine.memory.l2_kib.known ? static_cast<uint64_t>(machine.memory.l2_kib.value) * kib : 0;
  memory.l2_slices = machine.memory.l2_slices.known ? static_cast<uint32_t>(machine.memory.l2_slices.value) : 0;
  memory.resident_blocks = std::max(resident_blocks, 1u);
  memory.bypasses_l1 = [&machine](const Site& site) {
    return site.function->instructions[site.instruction].kind == ir::InstructionKind::real &&
           bypasses_l1(machine, site.function->form_of(site.instruction));
  };
  return memory;
}

} // namespace ptxrewrite::timing
