#include "cli/machine_choice.h"

#include "evaluate/common/machine_input.h"

namespace ptxrewrite::cli {

MachineChoice find_machine(const std::string& command, const std::string& name, const Session& session) {
  if (name.empty()) return {};
  Result<const ir::Machine*> machine = machine_named(name, session);
  if (!machine) return {nullptr, usage_error(command, machine.error().message)};
  return {*machine, *machine ? exit_ok : exit_diagnostics};
}

} // namespace ptxrewrite::cli
