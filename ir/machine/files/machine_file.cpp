#include "ir/machine/files/machine_file.h"

#include "ir/machine/figures/machine_fields.h"
#include "support/text/document.h"
#include "support/text/near_names.h"

#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <vector>

namespace ptxrewrite::ir {
namespace {

constexpr std::string_view energy_section = "energy", static_power = "static_watt";

void read_energy(const Node& table, MachineFile& file, Diagnostics& diagnostics) {
  if (!table.is(NodeKind::table)) {
    diagnostics.error(table.range, fmt::format("{}: expected a table, found {}", energy_section, describe(table.kind)));
    return;
  }
  EnergySet& set = file.energy.emplace();
  for (const Member& member : table.members) {
    double* to = member.key == static_power ? &set.static_watt : nullptr;
    std::vector<std::string> known = {std::string(static_power)};
    for (size_t i = 0; i < energy_event_count; ++i) {
      known.emplace_back(spelling(static_cast<EnergyEvent>(i)));
      if (known.back() == member.key) to = &set.pj[i];
    }
    const Node& node = member.value;
    const double value = node.is(NodeKind::integer) ? static_cast<double>(node.integer) : node.decimal;
    const bool fits = (node.is(NodeKind::integer) || node.is(NodeKind::decimal)) && value >= 0 && value <= 1e12;
    if (!to)
      diagnostics.error(member.key_range, fmt::format("{}: '{}' is no event{}", energy_section, member.key,
                                                      near_names(member.key, known)));
    else if (!fits)
      diagnostics.error(node.range, fmt::format("{}.{}: expected a number from 0 to 1e12 ({})", energy_section,
                                                member.key, to == &set.static_watt ? "W" : "pJ"));
    else
      *to = value;
  }
}

} // namespace

bool is_machine_path(std::string_view name) {
  return name.ends_with(".toml") || name.find('/') != std::string_view::npos;
}

std::unique_ptr<MachineFile> read_machine_file(const SourceFile& source, Diagnostics& diagnostics) {
  const std::optional<Node> document = read_document(source, diagnostics);
  if (!document) return nullptr;
  auto file = std::make_unique<MachineFile>();
  const ExtraSection energy{std::string(energy_section),
                            [&](const Node& table) { read_energy(table, *file, diagnostics); }};
  read_machine_text(*document, std::filesystem::path(source.name()).stem().string(), energy, *file, diagnostics);
  if (diagnostics.has_errors()) return nullptr;
  if (file->energy) file->energy->name = file->name, file->energy->about = "of the machine's file";
  return file;
}

std::string machine_toml(const Machine& machine, const EnergySet* energy, bool remarks) {
  std::string out = machine_text(machine, remarks);
  if (!energy) return out;
  out += fmt::format("\n[{}]{}\n{} = {}\n", energy_section, remarks ? " # pJ by event" : "", static_power,
                     number_text(energy->static_watt));
  for (size_t i = 0; i < energy_event_count; ++i)
    if (energy->pj[i] > 0)
      out += fmt::format("{} = {}\n", spelling(static_cast<EnergyEvent>(i)), number_text(energy->pj[i]));
  return out;
}

} // namespace ptxrewrite::ir
