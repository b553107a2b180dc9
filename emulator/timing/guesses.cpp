#include "emulator/timing/guesses.h"

#include <array>

namespace ptxrewrite::timing {
namespace {

#define FIGURE(part)                                                                                                   \
  Guess {                                                                                                              \
#part, [](const ir::Machine& machine)                                                                              \
                -> const ir::Figure& { return machine.part; }, [](ir::Machine &                                        \
                                                                  machine) -> ir::Figure& { return machine.part; }     \
  }
constexpr std::array figures = {
    FIGURE(issue_rate),
    FIGURE(memory.l1_kib),
    FIGURE(memory.l2_kib),
    FIGURE(memory.achieved_dram_gb_per_second),
    FIGURE(memory.l1_bytes_per_clock),
    FIGURE(memory.l2_bytes_per_clock),
    FIGURE(memory.outstanding_misses),
    FIGURE(throughput.integer_add),
    FIGURE(throughput.integer_multiply_add),
    FIGURE(throughput.shift),
    FIGURE(throughput.logic),
    FIGURE(throughput.compare),
    FIGURE(throughput.convert32),
    FIGURE(throughput.convert8),
    FIGURE(throughput.convert64),
    FIGURE(throughput.population_count),
    FIGURE(throughput.bit_field_extract),
    FIGURE(throughput.shuffle),
    FIGURE(throughput.fp32),
    FIGURE(throughput.fp64),
    FIGURE(throughput.special_function),
    FIGURE(throughput.load_store),
    FIGURE(throughput.barrier),
    FIGURE(latency.integer),
    FIGURE(latency.integer_multiply_add),
    FIGURE(latency.fp32),
    FIGURE(latency.fp64),
    FIGURE(latency.special_function),
    FIGURE(latency.shared),
    FIGURE(latency.l1),
    FIGURE(latency.l2),
    FIGURE(latency.dram),
    FIGURE(latency.constant),
};
#undef FIGURE

} // namespace

std::vector<Guess> guesses_of(const ir::Machine& machine) {
  std::vector<Guess> found;
  for (const Guess& figure : figures)
    if (figure.read(machine).known && figure.read(machine).guess) found.push_back(figure);
  return found;
}

ir::Machine with_figure(const ir::Machine& machine, const Guess& guess, double factor) {
  ir::Machine changed = machine;
  guess.write(changed).value *= factor;
  return changed;
}

} // namespace ptxrewrite::timing
