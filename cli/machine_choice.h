// The machine that a user names: --gpu of commands that need no device.
#pragma once

#include "cli/command.h"
#include "ir/core/module.h"
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

// What code is made for, and the machine that runs it.
struct CodeTarget {
  const ir::Machine* machine = nullptr; // nullptr: the name stands for none, and `code` was set
  uint32_t capability = 0;              // 90 for sm_90
  std::string name() const { return "sm_" + std::to_string(capability); }
};
// The machine that `gpu` names, or where it is empty the module's own target. What is wrong with the name was shown,
// and `code` is what the command returns.
CodeTarget code_target(const std::string& command, const std::string& gpu, const ir::Module& module,
                       const Session& session, int& code);

} // namespace ptxrewrite::cli
