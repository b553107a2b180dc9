#include "evaluate/score/score_estimators.h"

#include "evaluate/score/score_energy.h"
#include "support/text/table.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace ptxrewrite::evaluate {
namespace {

struct Row {
  const char* title;
  const char* key; // in JSON
  double (*clocks)(const ScoredKernel&);
};
constexpr Row rows[] = {
    {"interval model", "interval_model", [](const ScoredKernel& kernel) { return kernel.clocks; }},
    {"counting instructions", "instructions", [](const ScoredKernel& kernel) { return kernel.estimates.instructions; }},
    {"roofline", "roofline", [](const ScoredKernel& kernel) { return kernel.estimates.roofline; }},
    {"MWP-CWP", "mwp_cwp", [](const ScoredKernel& kernel) { return kernel.estimates.mwp_cwp; }},
};

} // namespace

std::string estimators_text(const ScoredFile& file, const std::string& kernel) {
  const std::vector<const ScoredKernel*> versions = in_versions(file, kernel);
  TextTable table{{{kernel + ": clocks by", false}}, {}};
  for (size_t i = 0; i < versions.size(); ++i) {
    if (!versions[i]) continue;
    table.columns.push_back({file.versions[i].name, true});
    if (i) table.columns.push_back({"speed-up", true});
  }
  for (const Row& row : rows) {
    std::vector<std::string> cells{row.title};
    for (size_t i = 0; i < versions.size(); ++i) {
      if (!versions[i]) continue;
      const double clocks = row.clocks(*versions[i]);
      cells.push_back(fmt::format("{:.0f}", clocks));
      if (i) cells.push_back(versions[0] && clocks > 0 ? fmt::format("{:.3f}", row.clocks(*versions[0]) / clocks) : "");
    }
    table.rows.push_back(std::move(cells));
  }
  return table.text();
}

nlohmann::ordered_json estimators_json(const ScoredKernel& kernel) {
  nlohmann::ordered_json clocks = nlohmann::ordered_json::object();
  for (const Row& row : rows)
    clocks[row.key] = row.clocks(kernel);
  return clocks;
}

} // namespace ptxrewrite::evaluate
