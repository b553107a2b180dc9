// The machine that a user names: --gpu of commands that need no device.
#pragma once

#include "cli/command.h"
#include "ir/machine/figures/machine.h"

#include <string>

namespace ptxrewrite::cli {

// What a name of a machine stands for.
struct MachineChoice {
  const ir::Machine* machine = nullptr; // nullptr: none is named
  int code = exit_ok;                   // what the command returns where something was wrong: it was shown
};
// A machine by its name, a target ("sm_80"), or the path of a file with one (machine_file.h), which then lives as long
// as the program.
MachineChoice find_machine(const std::string& command, const std::string& name, const Session& session);

} // namespace ptxrewrite::cli
