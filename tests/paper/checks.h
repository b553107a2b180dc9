// What has to hold in a measurement whatever its figures are.
#pragma once

#include "tests/paper/measure.h"

#include <string>
#include <vector>

namespace ptxrewrite::tests {

// What is broken, in words; empty when all holds. Runs the hardware form again where a rule is about another machine.
std::vector<std::string> broken_rules(const HardwareMeasurement& row, const evaluate::LaunchInput& input,
                                      const ir::Machine& machine);

} // namespace ptxrewrite::tests
