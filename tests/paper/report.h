// Shows measurements beside the paper's figures, as text and as JSON.
#pragma once

#include "tests/paper/measure.h"

#include <nlohmann/json_fwd.hpp>

#include <span>
#include <string>

namespace ptxrewrite::tests {

std::string hardware_text(std::span<const HardwareMeasurement> rows, const ir::Machine& machine);
nlohmann::ordered_json hardware_json(std::span<const HardwareMeasurement> rows, const ir::Machine& machine);

std::string legal_text(std::span<const LegalMeasurement> rows, const std::string& passes,
                       const std::string& architecture);
nlohmann::ordered_json legal_json(std::span<const LegalMeasurement> rows, const std::string& passes,
                                  const std::string& architecture);

} // namespace ptxrewrite::tests
