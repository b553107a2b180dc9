#include "evaluate/score/score_energy.h"

#include "support/text/table.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

namespace ptxrewrite::evaluate {
namespace {

using json = nlohmann::ordered_json;

constexpr double same_energy = 1e-9; // relative to the baseline's

timing::Energy energy_of(const ir::EnergySet& set, const ScoredKernel& kernel) {
  return timing::energy(set, kernel.events, kernel.powered_seconds);
}

constexpr double same_time = 1e-6; // relative to the other's

// 1: a is slower than b; -1: faster; 0: equal. `change`: index of the changed machine; SIZE_MAX: the unchanged one.
int order_of(const ScoredKernel& a, const ScoredKernel& b, size_t change) {
  auto clocks = [&](const ScoredKernel& of) { return change < of.clocks_if.size() ? of.clocks_if[change] : of.clocks; };
  const double difference = clocks(a) - clocks(b);
  return std::abs(difference) <= same_time * clocks(b) ? 0 : difference > 0 ? 1 : -1;
}

// Increase of `now` over `before`, in per cent.
double more(double now, double before) {
  return before > 0 ? 100 * (now / before - 1) : 0;
}

// Two versions whose order changes with a guess: `now_faster` was the slower one.
struct Turn {
  double margin = 0; // change of the guess: -0.3
  size_t now_faster = 0, now_slower = 0;
};

struct GuessEffect {
  std::string_view figure;
  double value = 0;
  double less = 0, more = 0; // change of the baseline's time, in per cent
  std::vector<Turn> turns;
};

void find_turns(const std::vector<const ScoredKernel*>& versions, size_t change, double margin,
                std::vector<Turn>& turns) {
  for (size_t a = 0; a < versions.size(); ++a)
    for (size_t b = 0; b < a; ++b) {
      if (!versions[a] || !versions[b]) continue;
      const int before = order_of(*versions[a], *versions[b], SIZE_MAX);
      const int now = order_of(*versions[a], *versions[b], change);
      if (before * now < 0) turns.push_back(now < 0 ? Turn{margin, a, b} : Turn{margin, b, a});
    }
}

std::string turns_text(const ScoredFile& file, const std::vector<Turn>& turns) {
  std::string text;
  for (const Turn& turn : turns)
    text += fmt::format("{}at {:+.0f} %: {} before {}", text.empty() ? "" : "; ", 100 * turn.margin,
                        file.versions[turn.now_faster].name, file.versions[turn.now_slower].name);
  return text.empty() ? "stays" : text;
}

std::vector<GuessEffect> effects(const ScoredFile& file, const std::string& kernel) {
  const std::vector<const ScoredKernel*> versions = in_versions(file, kernel);
  const std::vector<timing::Guess> guesses = timing::guesses_of(*file.machine);
  std::vector<GuessEffect> found;
  if (versions.empty() || !versions[0] || versions[0]->clocks_if.size() < 2 * guesses.size()) return found;
  for (size_t i = 0; i < guesses.size(); ++i) {
    const ScoredKernel& baseline = *versions[0];
    found.push_back({guesses[i].name,
                     timing::value_of(guesses[i], *file.machine),
                     more(baseline.clocks_if[2 * i], baseline.clocks),
                     more(baseline.clocks_if[2 * i + 1], baseline.clocks),
                     {}});
    find_turns(versions, 2 * i, -guess_margin, found.back().turns);
    find_turns(versions, 2 * i + 1, guess_margin, found.back().turns);
  }
  return found;
}

} // namespace

std::vector<const ScoredKernel*> in_versions(const ScoredFile& file, const std::string& kernel) {
  std::vector<const ScoredKernel*> found;
  for (const ScoredVersion& version : file.versions) {
    const auto place = std::ranges::find(version.kernels, kernel, &ScoredKernel::kernel);
    found.push_back(place == version.kernels.end() ? nullptr : &*place);
  }
  return found;
}

const timing::EnergySet& applying_set(const ir::Machine& machine) {
  const std::span<const timing::EnergySet> sets = timing::energy_sets();
  if (const auto own = std::ranges::find(sets, machine.name, &timing::EnergySet::name); own != sets.end()) return *own;
  constexpr uint32_t volta = 70, fermi = 20;
  const std::string_view chip = machine.compute_capability >= volta   ? "QV100"
                                : machine.compute_capability >= fermi ? "GTX480"
                                                                      : "QuadroFX5600";
  const auto nearest = std::ranges::find_if(
      sets, [&](const timing::EnergySet& set) { return set.name.find(chip) != std::string_view::npos; });
  return nearest == sets.end() ? sets.front() : *nearest;
}

SignVerdict energy_sign(const ScoredKernel& baseline, const ScoredKernel& version) {
  bool less = false, greater = false;
  for (const ir::EnergySet& set : ir::energy_sets()) {
    const double before = energy_of(set, baseline).all(), now = energy_of(set, version).all();
    if (std::abs(now - before) <= same_energy * before) continue;
    (now < before ? less : greater) = true;
  }
  if (less && greater) return SignVerdict::disagree;
  return less ? SignVerdict::less_everywhere : greater ? SignVerdict::more_everywhere : SignVerdict::same;
}

std::string_view spelling(SignVerdict verdict) {
  switch (verdict) {
  case SignVerdict::same:
    return "the same";
  case SignVerdict::less_everywhere:
    return "less: survives";
  case SignVerdict::more_everywhere:
    return "more: survives";
  case SignVerdict::disagree:
    break;
  }
  return "sets disagree";
}

std::string energy_text(const ScoredFile& file, const std::string& kernel) {
  const std::vector<const ScoredKernel*> versions = in_versions(file, kernel);
  TextTable table{{{kernel + ": energy in uJ", false}}, {}};
  for (size_t i = 0; i < versions.size(); ++i) {
    if (!versions[i]) continue;
    table.columns.push_back({file.versions[i].name, true});
    if (i == 0)
      for (const char* part : {"front end %", "registers %", "units %", "memory %", "static %"})
        table.columns.push_back({part, true});
    else
      table.columns.push_back({"%", true});
  }
  for (const ir::EnergySet& set : ir::energy_sets()) {
    std::vector<std::string> row{std::string(set.name)};
    const timing::Energy baseline = energy_of(set, *versions[0]);
    for (size_t i = 0; i < versions.size(); ++i) {
      if (!versions[i]) continue;
      const timing::Energy energy = energy_of(set, *versions[i]);
      row.push_back(fmt::format("{:.4g}", energy.all() * 1e6));
      if (i == 0)
        for (double part : {energy.front_end, energy.registers, energy.units, energy.memory, energy.constant})
          row.push_back(fmt::format("{:.1f}", energy.all() > 0 ? 100 * part / energy.all() : 0));
      else
        row.push_back(fmt::format("{:+.1f}", more(energy.all(), baseline.all())));
    }
    table.rows.push_back(std::move(row));
  }
  std::string out = table.text();
  for (size_t i = 1; i < versions.size(); ++i)
    if (versions[i])
      out += fmt::format("{} against baseline: {}\n", file.versions[i].name,
                         spelling(energy_sign(*versions[0], *versions[i])));
  return out;
}

json energy_json(const ScoredKernel& kernel) {
  json sets = json::object();
  for (const ir::EnergySet& set : ir::energy_sets()) {
    const timing::Energy energy = energy_of(set, kernel);
    sets[std::string(set.name)] = {{"joule", energy.all()},         {"front_end", energy.front_end},
                                   {"registers", energy.registers}, {"units", energy.units},
                                   {"memory", energy.memory},       {"static", energy.constant}};
  }
  return sets;
}

std::string sensitivity_text(const ScoredFile& file, const std::string& kernel) {
  TextTable table{{{kernel + ": guess", false},
                   {"value", true},
                   {fmt::format("clocks at -{:.0f} %", 100 * guess_margin), true},
                   {fmt::format("at +{:.0f} %", 100 * guess_margin), true},
                   {"order of versions", false}},
                  {}};
  for (const GuessEffect& effect : effects(file, kernel))
    table.rows.push_back({std::string(effect.figure), fmt::format("{:g}", effect.value),
                          fmt::format("{:+.1f} %", effect.less), fmt::format("{:+.1f} %", effect.more),
                          file.versions.size() < 2 ? "-" : turns_text(file, effect.turns)});
  return table.rows.empty() ? kernel + ": no figure of " + std::string(file.machine->name) + " is a guess\n"
                            : table.text();
}

json sensitivity_json(const ScoredFile& file, const std::string& kernel) {
  json rows = json::array();
  for (const GuessEffect& effect : effects(file, kernel)) {
    json turns = json::array();
    for (const Turn& turn : effect.turns)
      turns.push_back({{"at", turn.margin},
                       {"faster", file.versions[turn.now_faster].name},
                       {"slower", file.versions[turn.now_slower].name}});
    rows.push_back({{"figure", effect.figure},
                    {"value", effect.value},
                    {"clocks_percent_at_less", effect.less},
                    {"clocks_percent_at_more", effect.more},
                    {"order_stays", effect.turns.empty()},
                    {"turns", std::move(turns)}});
  }
  return rows;
}

} // namespace ptxrewrite::evaluate
