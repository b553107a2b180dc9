// The machine that a user names with --gpu, for commands that need no device.
#pragma once

#include "cli/command.h"
#include "ir/core/module.h"
#include "ir/machine/figures/machine.h"

#include <string>

namespace ptxrewrite::cli {

// The result of looking up a machine.
struct MachineChoice {
  const ir::Machine* machine = nullptr; // nullptr if none is named, or on an error
  int code = exit_ok;                   // the command's exit code if there was an error, which has been shown
};
// Finds a machine by its name, a target ("sm_80"), or the path of a machine file (machine_file.h), which is then kept
// until the program ends.
MachineChoice find_machine(const std::string& command, const std::string& name, const Session& session);

// The target of code generation, and the machine that runs the code.
struct CodeTarget {
  const ir::Machine* machine = nullptr; // nullptr if there is no machine with that name; `code` is then set
  uint32_t capability = 0;              // 90 for sm_90
  std::string name() const { return "sm_" + std::to_string(capability); }
};
// The machine named by `gpu`, or the module's own target if it is empty. After an error in the name, which is shown,
// `code` is the command's exit code.
CodeTarget code_target(const std::string& command, const std::string& gpu, const ir::Module& module,
                       const Session& session, int& code);

} // namespace ptxrewrite::cli
