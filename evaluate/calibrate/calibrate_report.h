// Results of a calibration as text and as JSON.
#pragma once

#include "evaluate/calibrate/calibrate.h"

#include <nlohmann/json_fwd.hpp>

#include <span>
#include <string>

namespace ptxrewrite::evaluate {

std::string calibration_text(const Calibration& calibration);
// Points that the fit did not see, and how well each estimator agrees with them.
std::string validation_text(std::span<const MeasuredPoint> points);
nlohmann::ordered_json calibration_json(const Calibration& calibration, std::span<const MeasuredPoint> points);

} // namespace ptxrewrite::evaluate
