#include "emulator/timing/guesses.h"

namespace ptxrewrite::timing {

std::vector<Guess> guesses_of(const ir::Machine& machine) {
  std::vector<Guess> found;
  for (const ir::MachineField& field : ir::machine_fields()) {
    const ir::Figure figure = field.read(machine);
    if (figure.known && figure.guess) found.push_back({field.name, &field});
  }
  return found;
}

double value_of(const Guess& guess, const ir::Machine& machine) {
  return guess.field->read(machine).value;
}

TimedMachine with_figure(const ir::Machine& machine, const Guess& guess, double factor) {
  ir::Machine changed = machine;
  ir::Figure figure = guess.field->read(machine);
  figure.value *= factor;
  guess.field->write(changed, figure);
  return {changed, launch_cost(changed)};
}

} // namespace ptxrewrite::timing
