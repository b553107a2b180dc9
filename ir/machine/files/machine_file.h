// Machines of users: files in TOML that say all figures of a machine, or what differs from one that there is
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

// Is this the path of such a file, rather than the name of a machine?
bool is_machine_path(std::string_view name);

// nullptr where something is wrong: the diagnostics have it. Without a name of its own the machine has the file's.
std::unique_ptr<MachineFile> read_machine_file(const SourceFile& source, Diagnostics& diagnostics);

// The text of a file that reads back as this machine. `remarks`: units and meanings as comments. `energy`: nullptr:
// none.
std::string machine_toml(const Machine& machine, const EnergySet* energy = nullptr, bool remarks = true);

} // namespace ptxrewrite::ir
