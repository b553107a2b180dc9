// Reports of a calibration as text and as JSON.
#pragma once

#include "evaluate/calibrate/calibrate.h"

#include <nlohmann/json_fwd.hpp>

#include <span>
#include <string>

namespace ptxrewrite::evaluate {

std::string calibration_text(const Calibration& calibration);
// Points that were not part of the fit, and the agreement of each estimator with them.
std::string validation_text(std::span<const MeasuredPoint> points);
nlohmann::ordered_json calibration_json(const Calibration& calibration, std::span<const MeasuredPoint> points);

} // namespace ptxrewrite::evaluate
