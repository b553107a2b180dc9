// The figures of a machine that are guesses, to see what hangs on them.
#pragma once

#include "ir/machine/machine.h"

#include <string_view>
#include <vector>

namespace ptxrewrite::timing {

struct Guess {
  std::string_view name; // "latency.l2"
  const ir::Figure& (*read)(const ir::Machine&) = nullptr;
  ir::Figure& (*write)(ir::Machine&) = nullptr;
};

// Those that the machine has and that are guesses.
std::vector<Guess> guesses_of(const ir::Machine& machine);
// The machine with one of its figures `factor` times as large.
ir::Machine with_figure(const ir::Machine& machine, const Guess& guess, double factor);

} // namespace ptxrewrite::timing
