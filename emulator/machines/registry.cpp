// The machines of the emulator, from registry.def.
#include "emulator/core/machine.h"

namespace ptxrewrite::emulator {

#define MACHINE(name) const MachineModel& name##_machine();
#include "emulator/machines/registry.def"
#undef MACHINE

std::span<const MachineModel* const> machines() {
  static const MachineModel* const all[] = {
#define MACHINE(name) &name##_machine(),
#include "emulator/machines/registry.def"
#undef MACHINE
  };
  return all;
}

} // namespace ptxrewrite::emulator
