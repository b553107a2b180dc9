#include "evaluate/calibrate/calibrate_report.h"

#include "support/text/table.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>

namespace ptxrewrite::evaluate {
namespace {

using json = nlohmann::ordered_json;

const char* spelling(FitState state) {
  switch (state) {
  case FitState::fitted:
    return "fitted";
  case FitState::from_driver:
    return "from_driver";
  case FitState::not_shown:
    break;
  }
  return "not_shown";
}

std::string percent(double share) {
  return fmt::format("{:.1f}", 100 * share);
}
// For errors after scaling, which require a factor from other suites.
std::string scaled_percent(double share) {
  return share < 0 ? "-" : percent(share);
}

double error(double estimate, double measured) {
  return measured > 0 ? estimate / measured - 1 : 0;
}

std::string figures_text(const Calibration& calibration) {
  TextTable table{{{"figure"}, {"before", true}, {"now", true}, {"+- %", true}, {"unit"}, {"by"}}, {}};
  std::string not_shown;
  for (const FittedFigure& figure : calibration.figures) {
    if (figure.state == FitState::not_shown) {
      not_shown += (not_shown.empty() ? "" : ", ") + std::string(figure.field->name);
      continue;
    }
    const bool by_driver = figure.state == FitState::from_driver;
    table.rows.push_back({std::string(figure.field->name), fmt::format("{:.5g}", figure.before),
                          fmt::format("{:.5g}", figure.value), by_driver ? "" : percent(figure.uncertainty),
                          std::string(figure.field->unit), by_driver ? "the driver" : figure.probe});
  }
  std::string out = table.text();
  if (!not_shown.empty())
    out += "left as they were, because their probes' times hardly depend on them: " + not_shown + '\n';
  return out;
}

} // namespace

std::string calibration_text(const Calibration& calibration) {
  const GpuFacts& facts = calibration.facts;
  std::string out = fmt::format("{}, compute capability {}.{}, {} SMs at {:.0f} MHz; from {}\n\n", facts.name,
                                facts.compute_capability / 10, facts.compute_capability % 10, facts.sms,
                                facts.clock_mhz, calibration.machine.name);
  out += figures_text(calibration);
  TextTable table{{{"probe"}, {"clocks measured", true}, {"before", true}, {"%", true}, {"now", true}, {"%", true}},
                  {}};
  for (const ProbeCheck& check : calibration.probes)
    table.rows.push_back({check.probe, fmt::format("{:.0f}", check.measured), fmt::format("{:.0f}", check.before),
                          fmt::format("{:+.1f}", 100 * error(check.before, check.measured)),
                          fmt::format("{:.0f}", check.after),
                          fmt::format("{:+.1f}", 100 * error(check.after, check.measured))});
  out += '\n' + table.text();
  if (!calibration.energy) return out + "\nenergy is not counted here\n";
  const EnergyFit& energy = *calibration.energy;
  TextTable coefficients{{{"energy of"}, {"pJ", true}}, {}};
  for (size_t i = 0; i < ir::energy_event_count; ++i)
    if (energy.pj[i] > 0)
      coefficients.rows.push_back(
          {std::string(timing::spelling(static_cast<ir::EnergyEvent>(i))), fmt::format("{:.3g}", energy.pj[i])});
  return out + fmt::format("\n{}static power {:.1f} W; mean error {} % over {} probes, {} % of probes left out of the "
                           "fit\n",
                           coefficients.text(), energy.static_watt, percent(energy.error), calibration.energy_rows,
                           percent(energy.error_left_out));
}

std::string validation_text(std::span<const MeasuredPoint> points) {
  if (points.empty()) return {};
  std::set<std::string> suites;
  TextTable of_points{{{"suite"}, {"kernel"}, {"measured us", true}}, {}};
  for (const char* name : estimator_names)
    of_points.columns.push_back({fmt::format("{} %", name), true});
  for (const MeasuredPoint& point : points) {
    suites.insert(point.suite);
    std::vector<std::string> row = {point.suite, point.name, fmt::format("{:.2f}", point.seconds * 1e6)};
    for (double estimate : point.estimates)
      row.push_back(fmt::format("{:+.1f}", 100 * error(estimate, point.seconds)));
    of_points.rows.push_back(std::move(row));
  }
  TextTable table{{{"estimator"},
                   {"MAPE %", true},
                   {"90th percentile %", true},
                   {"Spearman", true},
                   {"Kendall tau", true},
                   {"MAPE % with a factor", true},
                   {"90th percentile %", true}},
                  {}};
  for (size_t i = 0; i < estimator_names.size(); ++i) {
    const Agreement found = agreement(points, i);
    table.rows.push_back({estimator_names[i], percent(found.mape), percent(found.p90),
                          fmt::format("{:.3f}", found.spearman), fmt::format("{:.3f}", found.kendall),
                          scaled_percent(found.mape_scaled), scaled_percent(found.p90_scaled)});
  }
  return fmt::format("{}\n{} kernels of {} suites, none of which a figure was fitted to\n{}"
                     "with a factor: one for all kernels of a suite, from those of the others\n",
                     of_points.text(), points.size(), suites.size(), table.text());
}

json calibration_json(const Calibration& calibration, std::span<const MeasuredPoint> points) {
  const GpuFacts& facts = calibration.facts;
  json document = {{"device",
                    {{"name", facts.name},
                     {"compute_capability", facts.compute_capability},
                     {"multiprocessors", facts.sms},
                     {"clock_mhz", facts.clock_mhz},
                     {"l2_bytes", facts.l2_bytes}}},
                   {"base", calibration.machine.name},
                   {"figures", json::array()},
                   {"probes", json::array()},
                   {"kernels", json::array()},
                   {"estimators", json::array()}};
  for (const FittedFigure& figure : calibration.figures)
    document["figures"].push_back({{"figure", figure.field->name},
                                   {"state", spelling(figure.state)},
                                   {"before", figure.before},
                                   {"now", figure.value},
                                   {"uncertainty", figure.uncertainty},
                                   {"probe", figure.probe}});
  for (const ProbeCheck& check : calibration.probes)
    document["probes"].push_back(
        {{"probe", check.probe}, {"measured_clocks", check.measured}, {"before", check.before}, {"now", check.after}});
  for (const MeasuredPoint& point : points)
    document["kernels"].push_back(
        {{"suite", point.suite}, {"kernel", point.name}, {"seconds", point.seconds}, {"estimates", point.estimates}});
  if (calibration.energy) {
    json& energy = document["energy"] = {{"static_watt", calibration.energy->static_watt},
                                         {"error", calibration.energy->error},
                                         {"error_left_out", calibration.energy->error_left_out}};
    for (size_t i = 0; i < ir::energy_event_count; ++i)
      if (calibration.energy->pj[i] > 0)
        energy["pj"][std::string(timing::spelling(static_cast<ir::EnergyEvent>(i)))] = calibration.energy->pj[i];
  }
  for (size_t i = 0; i < estimator_names.size() && !points.empty(); ++i) {
    const Agreement found = agreement(points, i);
    json one = {{"estimator", estimator_names[i]},
                {"mape", found.mape},
                {"p90", found.p90},
                {"spearman", found.spearman},
                {"kendall", found.kendall}};
    if (found.mape_scaled >= 0) one["mape_scaled"] = found.mape_scaled, one["p90_scaled"] = found.p90_scaled;
    document["estimators"].push_back(std::move(one));
  }
  return document;
}

} // namespace ptxrewrite::evaluate
