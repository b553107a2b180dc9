// The figures of a machine as TOML text: those of the program (machines/*.toml) and those of users (docs/machines.md).
#pragma once

#include "ir/machine/figures/machine.h"
#include "support/diagnostic.h"
#include "support/text/document.h"

#include <functional>
#include <string>

namespace ptxrewrite::ir {

// Owns what the machine's names point to: stays where it is.
struct MachineText {
  MachineText() = default;
  MachineText(const MachineText&) = delete;
  MachineText& operator=(const MachineText&) = delete;

  std::string name, chip;
  Machine machine;
  size_t said = 0; // figures that the text says itself
};

// A section that is none of a machine's figures, and who reads it.
struct ExtraSection {
  std::string name;
  std::function<void(const Node& table)> read;
};

// What is wrong goes to the diagnostics. Without a name of its own the machine gets `default_name`.
void read_machine_text(const Node& document, const std::string& default_name, const ExtraSection& extra,
                       MachineText& text, Diagnostics& diagnostics);

// Text that reads back as this machine. `remarks`: units and meanings as comments.
std::string machine_text(const Machine& machine, bool remarks);

} // namespace ptxrewrite::ir
