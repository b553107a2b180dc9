// `ptxrewrite machines`: lists machines and their figures, and checks machine files of users.
#include "cli/command.h"
#include "cli/machine_choice.h"
#include "ir/machine/figures/machine_fields.h"
#include "ir/machine/figures/occupancy.h"
#include "ir/machine/files/machine_file.h"
#include "support/text/json_text.h"
#include "support/text/table.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <memory>

namespace ptxrewrite::cli::machines_command {
namespace {

using json = nlohmann::ordered_json;

struct MachinesOptions {
  std::vector<std::string> names;
  std::vector<std::string> checked;
  bool json = false;
  bool toml = false;
};

size_t guesses_of(const ir::Machine& machine) {
  return static_cast<size_t>(std::ranges::count_if(ir::machine_fields(), [&](const ir::MachineField& field) {
    const ir::Figure figure = field.read(machine);
    return figure.known && figure.guess;
  }));
}

std::string figure_text(const ir::MachineField& field, const ir::Figure& figure) {
  if (!figure.known) return "none";
  return ir::value_text(field, figure.value) + (figure.guess ? "?" : "");
}

std::string overview() {
  TextTable table{{{"name"},
                   {"chip"},
                   {"target"},
                   {"SMs", true},
                   {"MHz", true},
                   {"L1 KiB", true},
                   {"L2 KiB", true},
                   {"DRAM GB/s", true},
                   {"achieved", true},
                   {"guesses", true}},
                  {}};
  for (const ir::Machine& machine : ir::all_machines()) {
    auto text = [](const ir::Figure& figure) {
      return figure.known ? ir::number_text(figure.value) + (figure.guess ? "?" : "") : "none";
    };
    table.rows.push_back({std::string(machine.name), std::string(machine.chip),
                          "sm_" + std::to_string(machine.compute_capability), std::to_string(machine.sms),
                          std::to_string(machine.clock_mhz), text(machine.memory.l1_kib), text(machine.memory.l2_kib),
                          text(machine.memory.dram_gb_per_second), text(machine.memory.achieved_dram_gb_per_second),
                          std::to_string(guesses_of(machine))});
  }
  return table.text();
}

// Numbers of threads per block for the table of blocks per SM by registers per thread.
constexpr uint32_t shown_threads[] = {64, 128, 256, 512, 1024};
constexpr uint32_t shown_registers[] = {16, 32, 64, 128, 255};

std::string occupancy_text(const ir::Machine& machine) {
  TextTable table{{{"registers per thread"}}, {}};
  for (uint32_t threads : shown_threads)
    table.columns.push_back({fmt::format("blocks of {}", threads), true});
  for (uint32_t registers : shown_registers) {
    if (registers > machine.occupancy.max_registers_per_thread) continue;
    std::vector<std::string> row = {std::to_string(registers)};
    for (uint32_t threads : shown_threads) {
      const ir::Occupancy held = ir::occupancy(machine, {threads, registers, 0});
      row.push_back(held.blocks ? fmt::format("{} ({} warps)", held.blocks, held.warps) : "-");
    }
    table.rows.push_back(std::move(row));
  }
  return table.text();
}

std::string machine_text(const ir::Machine& machine) {
  std::string out = fmt::format("{} ({})\n", machine.name, machine.chip);
  TextTable table{{{"figure"}, {"value", true}, {"unit"}, {"meaning"}}, {}};
  for (const ir::MachineField& field : ir::machine_fields())
    table.rows.push_back({std::string(field.name), figure_text(field, field.read(machine)), std::string(field.unit),
                          std::string(field.about)});
  out += table.text();
  out += fmt::format("?: a guess ({} of them); none: the chip has no such unit\n", guesses_of(machine));
  return out + "\nResident per SM, without shared memory\n" + occupancy_text(machine);
}

json machine_json(const ir::Machine& machine) {
  json document = {{"name", machine.name}, {"chip", machine.chip}, {"guesses", guesses_of(machine)}};
  for (const ir::MachineField& field : ir::machine_fields()) {
    const ir::Figure figure = field.read(machine);
    json entry = {{"value", nullptr}, {"unit", field.unit}, {"guess", figure.guess}};
    if (figure.known && field.kind == ir::FieldKind::flag)
      entry["value"] = figure.value != 0;
    else if (figure.known && (field.kind == ir::FieldKind::register_unit || field.kind == ir::FieldKind::capability))
      entry["value"] = ir::value_text(field, figure.value);
    else if (figure.known)
      entry["value"] = figure.value;
    document["figures"][std::string(field.name)] = std::move(entry);
  }
  return document;
}

int check_files(const std::vector<std::string>& paths, const Session& session) {
  int code = exit_ok;
  for (const std::string& path : paths) {
    // Every argument is a machine file, regardless of its name.
    const MachineChoice choice = find_machine("machines", ir::is_machine_path(path) ? path : "./" + path, session);
    code = std::max(code, choice.code);
    if (choice.machine)
      std::printf("%s: %.*s, sm_%u, %zu guesses\n", path.c_str(), static_cast<int>(choice.machine->name.size()),
                  choice.machine->name.data(), choice.machine->compute_capability, guesses_of(*choice.machine));
  }
  return code;
}

int run_machines(const MachinesOptions& options, const Session& session) {
  if (options.json && options.toml) return usage_error("machines", "--json and --toml are two formats");
  if (!options.checked.empty()) {
    if (!options.names.empty() || options.json || options.toml) return usage_error("machines", "--check stands alone");
    return check_files(options.checked, session);
  }
  std::vector<const ir::Machine*> machines;
  for (const std::string& name : options.names) {
    const MachineChoice choice = find_machine("machines", name, session);
    if (choice.code != exit_ok) return choice.code;
    machines.push_back(choice.machine);
  }
  if (options.toml) {
    if (machines.size() != 1) return usage_error("machines", "--toml writes one machine: name it");
    // A set of coefficients in a file has the machine's name.
    const auto set = std::ranges::find(ir::energy_sets(), machines.front()->name, &ir::EnergySet::name);
    const bool has_set = set != ir::energy_sets().end();
    std::printf("%s", ir::machine_toml(*machines.front(), has_set ? &*set : nullptr).c_str());
    return exit_ok;
  }
  if (machines.empty() && !options.json) {
    std::printf("%s", overview().c_str());
    return exit_ok;
  }
  if (machines.empty())
    for (const ir::Machine& machine : ir::all_machines())
      machines.push_back(&machine);
  if (options.json) {
    json document = json::array();
    for (const ir::Machine* machine : machines)
      document.push_back(machine_json(*machine));
    std::puts(json_text(document).c_str());
    return exit_ok;
  }
  for (size_t i = 0; i < machines.size(); ++i)
    std::printf("%s%s", i ? "\n" : "", machine_text(*machines[i]).c_str());
  return exit_ok;
}

Action set_up(Options& command, const Session& session) {
  auto options = std::make_shared<MachinesOptions>();
  command.add_option("NAME", options->names, "all figures of these machines, or of machines in files (FILE.toml)");
  command.add_option("--check", options->checked, "check files that hold machines").type_name("FILE.toml");
  command.add_flag("--toml", options->toml, "print a machine as a file that says the same");
  command.add_flag("--json", options->json, "print JSON");
  return [options, &session] { return run_machines(*options, session); };
}

const RegisterCommand
    registration({.name = "machines",
                  .about = "list the supported GPUs, and their figures",
                  .example = "ptxrewrite machines h200\n"
                             "  ptxrewrite machines h200 --toml >mine.toml\n"
                             "  ptxrewrite score samples/vecadd/vecadd.toml --gpu mine.toml\n"
                             "A figure with ? is a guess. docs/machines.md says how files with machines look.",
                  .place = 150,
                  .set_up = set_up});

} // namespace

} // namespace ptxrewrite::cli::machines_command
