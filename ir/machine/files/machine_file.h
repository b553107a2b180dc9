// Users' machines: TOML files that specify all figures of a machine, or the differences from an existing machine
// (docs/machines.md).
//
//   base = "h200"            # figures that are not here are this machine's; without it all have to be here
//   [latency]
//   dram = "562?"            # "?": a guess; "none": the chip has no such unit
//   [energy]                 # optional: a set of coefficients of its own, in pJ by event (energy_sets.h)
//   static_watt = 70
#pragma once

#include "ir/machine/figures/machine_text.h"
#include "ir/machine/files/energy_sets.h"
#include "support/diagnostic.h"

#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace ptxrewrite::ir {

struct MachineFile : MachineText {
  std::optional<EnergySet> energy;
};

// True if `name` is the path of such a file, rather than the name of a machine.
bool is_machine_path(std::string_view name);

// Returns nullptr on errors, which are in the diagnostics. A machine without a name is named after its file.
std::unique_ptr<MachineFile> read_machine_file(const SourceFile& source, Diagnostics& diagnostics);

// The text of a file that reads back as this machine. `remarks`: adds units and meanings as comments. `energy`: nullptr
// if there is none.
std::string machine_toml(const Machine& machine, const EnergySet* energy = nullptr, bool remarks = true);

} // namespace ptxrewrite::ir
