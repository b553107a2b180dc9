#include "emulator/core/machine.h"

namespace ptxrewrite::emulator {

Result<std::unique_ptr<MachineRun>> MachineModel::begin(KernelImage&, const LaunchRequest&) const {
  return std::make_unique<MachineRun>();
}

Result<LaunchResult> MachineModel::launch(LaunchHost& host, KernelImage& image, const LaunchRequest& request) const {
  Result<std::unique_ptr<MachineRun>> run = begin(image, request);
  if (!run) return run.error();
  return host.run(image, request, run->get());
}

const MachineModel* find_machine(std::string_view name) {
  for (const MachineModel* machine : machines())
    if (machine->name() == name) return machine;
  return nullptr;
}

} // namespace ptxrewrite::emulator
