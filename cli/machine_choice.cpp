#include "cli/machine_choice.h"

#include "evaluate/common/machine_input.h"
#include "support/ptxas.h"

namespace ptxrewrite::cli {

MachineChoice find_machine(const std::string& command, const std::string& name, const Session& session) {
  if (name.empty()) return {};
  Result<const ir::Machine*> machine = machine_named(name, session);
  if (!machine) return {nullptr, usage_error(command, machine.error().message)};
  return {*machine, *machine ? exit_ok : exit_diagnostics};
}

CodeTarget code_target(const std::string& command, const std::string& gpu, const ir::Module& module,
                       const Session& session, int& code) {
  if (gpu.empty()) {
    const uint32_t capability = ir::compute_capability_of(target_architecture(module.source.text()));
    return {&ir::machine_for(capability), capability};
  }
  const MachineChoice choice = find_machine(command, gpu, session);
  code = choice.code;
  if (!choice.machine) return {};
  // For a target that is newer than all machines, code is generated for the target itself.
  const uint32_t capability = ir::compute_capability_of(gpu);
  return {choice.machine, capability ? capability : choice.machine->compute_capability};
}

} // namespace ptxrewrite::cli
