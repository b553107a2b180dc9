// The figures of a machine that are guesses, to see what hangs on them.
#pragma once

#include "emulator/timing/model.h"
#include "ir/machine/figures/machine_fields.h"

#include <string_view>
#include <vector>

namespace ptxrewrite::timing {

// A machine and what launches cost on it.
struct TimedMachine {
  ir::Machine machine;
  LaunchCost launch;
};

struct Guess {
  std::string_view name; // "latency.l2"
  const ir::MachineField* field = nullptr;
};

// Those that the machine has and that are guesses.
std::vector<Guess> guesses_of(const ir::Machine& machine);
// The figure as the machine has it.
double value_of(const Guess& guess, const ir::Machine& machine);
// The machine with one of its figures `factor` times as large.
TimedMachine with_figure(const ir::Machine& machine, const Guess& guess, double factor);

} // namespace ptxrewrite::timing
