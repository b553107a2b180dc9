// The figures of a machine as TOML text: of built-in machines (machines/*.toml) and of users' (docs/machines.md).
#pragma once

#include "ir/machine/figures/machine.h"
#include "support/diagnostic.h"
#include "support/text/document.h"

#include <functional>
#include <string>

namespace ptxrewrite::ir {

// Owns the strings that the machine's names refer to, so it cannot be copied.
struct MachineText {
  MachineText() = default;
  MachineText(const MachineText&) = delete;
  MachineText& operator=(const MachineText&) = delete;

  std::string name, chip;
  Machine machine;
  size_t said = 0; // figures that the text specifies itself
};

// A section that does not contain figures of the machine, and the function that reads it.
struct ExtraSection {
  std::string name;
  std::function<void(const Node& table)> read;
};

// Reports errors to the diagnostics. If the text has no name, the machine is called `default_name`.
void read_machine_text(const Node& document, const std::string& default_name, const ExtraSection& extra,
                       MachineText& text, Diagnostics& diagnostics);

// A text that reads back as this machine. `remarks`: adds units and meanings as comments.
std::string machine_text(const Machine& machine, bool remarks);

} // namespace ptxrewrite::ir
