#include "emulator/timing/guesses.h"

#include <array>

namespace ptxrewrite::timing {
namespace {

// clang-format off
#define FIGURE(part)                                                                                                   \
  Guess {                                                                                                              \
    #part, [](const TimedMachine& on) -> const ir::Figure& { return on.part; },                                        \
        [](TimedMachine& on) -> ir::Figure& { return on.part; }                                                        \
  }
// clang-format on
constexpr std::array figures = {
    FIGURE(launch.constant),
    FIGURE(launch.per_block),
    FIGURE(machine.issue_rate),
    FIGURE(machine.memory.l1_kib),
    FIGURE(machine.memory.l2_kib),
    FIGURE(machine.memory.achieved_dram_gb_per_second),
    FIGURE(machine.memory.l1_bytes_per_clock),
    FIGURE(machine.memory.l2_bytes_per_clock),
    FIGURE(machine.memory.outstanding_misses),
    FIGURE(machine.throughput.integer_add),
    FIGURE(machine.throughput.integer_multiply_add),
    FIGURE(machine.throughput.shift),
    FIGURE(machine.throughput.logic),
    FIGURE(machine.throughput.compare),
    FIGURE(machine.throughput.convert32),
    FIGURE(machine.throughput.convert8),
    FIGURE(machine.throughput.convert64),
    FIGURE(machine.throughput.population_count),
    FIGURE(machine.throughput.bit_field_extract),
    FIGURE(machine.throughput.shuffle),
    FIGURE(machine.throughput.fp32),
    FIGURE(machine.throughput.fp64),
    FIGURE(machine.throughput.special_function),
    FIGURE(machine.throughput.load_store),
    FIGURE(machine.throughput.barrier),
    FIGURE(machine.latency.integer),
    FIGURE(machine.latency.integer_multiply_add),
    FIGURE(machine.latency.fp32),
    FIGURE(machine.latency.fp64),
    FIGURE(machine.latency.special_function),
    FIGURE(machine.latency.shared),
    FIGURE(machine.latency.l1),
    FIGURE(machine.latency.l2),
    FIGURE(machine.latency.dram),
    FIGURE(machine.latency.constant),
};
#undef FIGURE

} // namespace

std::vector<Guess> guesses_of(const ir::Machine& machine) {
  const TimedMachine on{machine, launch_cost(machine)};
  std::vector<Guess> found;
  for (const Guess& figure : figures)
    if (figure.read(on).known && figure.read(on).guess) found.push_back(figure);
  return found;
}

double value_of(const Guess& guess, const ir::Machine& machine) {
  return guess.read({machine, launch_cost(machine)}).value;
}

TimedMachine with_figure(const ir::Machine& machine, const Guess& guess, double factor) {
  TimedMachine changed{machine, launch_cost(machine)};
  guess.write(changed).value *= factor;
  return changed;
}

} // namespace ptxrewrite::timing
