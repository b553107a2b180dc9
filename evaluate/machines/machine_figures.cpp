#include "evaluate/machines/machine_figures.h"

#include <nlohmann/json.hpp>

#include <cstdio>

namespace ptxrewrite::evaluate {

using ir::FiguresByFunction;
using ir::MachineFigures;

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

} // namespace ptxrewrite::evaluate
