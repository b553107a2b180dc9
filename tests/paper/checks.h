// Invariants of measurements, independent of their figures.
#pragma once

#include "tests/paper/measure.h"

#include <string>
#include <vector>

namespace ptxrewrite::tests {

// Descriptions of violated invariants; empty if all hold. Runs the hardware form again for rules about another machine.
std::vector<std::string> broken_rules(const HardwareMeasurement& row, const evaluate::LaunchInput& input,
                                      const ir::Machine& machine);

} // namespace ptxrewrite::tests
