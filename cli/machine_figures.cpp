#include "cli/machine_figures.h"

#include "ir/machine/cubin.h"
#include "support/ptxas.h"

#include <nlohmann/json.hpp>

#include <cstdio>
#include <tuple>

namespace ptxrewrite::cli {

Result<FiguresByFunction> machine_figures(std::string_view ptx, const std::string& architecture) {
  Result<PtxasRun> run = assemble(ptx, {.arch = architecture});
  if (!run) return run.error();
  if (!run->ok)
    return Error{run->crashed     ? "ptxas crashed"
                 : run->timed_out ? "ptxas did not end in time"
                                  : "ptxas refuses the text: " + run->messages.substr(0, run->messages.find('\n')),
                 {}};
  Result<ir::Cubin> cubin = ir::read_cubin(std::move(run->cubin));
  if (!cubin) return cubin.error();
  FiguresByFunction figures;
  for (const ir::CubinFunction& function : cubin->functions) {
    MachineFigures row{function.instructions, function.registers, 0};
    const PtxasFigures* printed = run->find(function.name);
    row.spilled_bytes = function.spill_stores.value_or(printed ? printed->spill_stores : 0) +
                        function.spill_loads.value_or(printed ? printed->spill_loads : 0);
    figures.emplace(function.name, row);
  }
  return figures;
}

bool is_worse(const MachineFigures& after, const MachineFigures& before) {
  auto cost = [](const MachineFigures& f) { return std::tuple(f.spilled_bytes, f.instructions, f.registers); };
  return cost(after) > cost(before);
}

std::vector<std::string> worse_functions(const FiguresByFunction& before, const FiguresByFunction& after) {
  std::vector<std::string> names;
  for (const auto& [name, figures] : after) {
    auto old = before.find(name);
    if (old != before.end() && is_worse(figures, old->second)) names.push_back(name);
  }
  return names;
}

nlohmann::ordered_json figures_json(const FiguresByFunction& before, const FiguresByFunction& after) {
  auto row = [](const MachineFigures& f) {
    return nlohmann::ordered_json{
        {"instructions", f.instructions}, {"registers", f.registers}, {"spilled_bytes", f.spilled_bytes}};
  };
  nlohmann::ordered_json document = nlohmann::ordered_json::object();
  for (const auto& [name, now] : after) {
    if (auto old = before.find(name); old != before.end()) document[name]["before"] = row(old->second);
    document[name]["after"] = row(now);
  }
  return document;
}

std::string figures_text(const FiguresByFunction& before, const FiguresByFunction& after) {
  std::string out = "        instructions           registers       spilled bytes  function\n";
  for (const auto& [name, now] : after) {
    auto old = before.find(name);
    auto pair = [&](uint32_t MachineFigures::*figure) {
      std::string text = old == before.end() ? "-" : std::to_string(old->second.*figure);
      return text + " -> " + std::to_string(now.*figure);
    };
    char line[128];
    std::snprintf(line, sizeof line, "%20s%20s%20s  ", pair(&MachineFigures::instructions).c_str(),
                  pair(&MachineFigures::registers).c_str(), pair(&MachineFigures::spilled_bytes).c_str());
    out += line + name + '\n';
  }
  return out;
}

} // namespace ptxrewrite::cli
