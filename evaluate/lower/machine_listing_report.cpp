#include "evaluate/lower/machine_listing_report.h"

#include "support/text/table.h"

#include <nlohmann/json.hpp>

#include <cmath>
#include <cstdio>

namespace ptxrewrite::evaluate {

namespace {

std::string joined(const std::vector<std::string>& parts, const char* between) {
  std::string text;
  for (const std::string& part : parts)
    text += (text.empty() ? "" : between) + part;
  return text;
}

// What has no name is counted: "MUFU.RCP +7".
std::string names_of(const MachineListingLine& line) {
  std::string names = joined(line.machine, " ");
  const auto known = static_cast<uint32_t>(line.machine.size());
  if (line.instructions > known)
    names += (names.empty() ? "" : " ") + ("+" + std::to_string(line.instructions - known));
  return names;
}

std::string rounded(double number) {
  char text[32];
  std::snprintf(text, sizeof text, "%.0f", std::round(number));
  return text;
}

TextTable table_of(const MachineListing& listing) {
  TextTable table{{{"line", true}, {"PTX"}, {"n", true}, {"machine"}, {"unit"}, {"clocks", true}, {"remarks"}}, {}};
  for (const MachineListingLine& line : listing.lines) {
    if (line.is_label) {
      table.rows.push_back({"", line.ptx, "", "", "", "", joined(line.remarks, "; ")});
      continue;
    }
    const bool issued = line.instructions > 0;
    table.rows.push_back({line.line ? std::to_string(line.line) : "", (line.line ? "  " : "  + ") + line.ptx,
                          issued ? std::to_string(line.instructions) : "", names_of(line), std::string(line.pipe),
                          line.latency ? rounded(*line.latency) : "", joined(line.remarks, "; ")});
  }
  return table;
}

// Rows of the sum, those that are 0 left out.
std::string totals_of(const MachineListing& listing) {
  uint32_t in_lines = 0;
  for (const MachineListingLine& line : listing.lines)
    in_lines += line.instructions;
  std::string text = std::to_string(listing.instructions) + " machine instructions: " + std::to_string(in_lines) +
                     " of the lines above";
  const std::pair<uint32_t, const char*> others[] = {
      {listing.prologue, " at the entry"},
      {listing.prologue_uniform, " at the entry on the uniform datapath"},
      {listing.subroutines, " of subroutines and slow paths"},
      {listing.copies, " of further copies of loops"},
  };
  for (const auto& [count, what] : others)
    if (count) text += ", " + std::to_string(count) + what;
  text += "; " + std::to_string(listing.uniform) + " of them on the uniform datapath\n";
  text += std::to_string(listing.registers) + " registers, " + std::to_string(listing.predicates) + " predicates\n";
  if (listing.spill_stores + listing.spill_loads)
    text += "local memory: " + std::to_string(listing.spill_stores) + " stores and " +
            std::to_string(listing.spill_loads) + " loads of values that find no register, among the lines\n";
  if (listing.registers_wanting) text += std::to_string(listing.registers_wanting) + " registers are wanting even so\n";
  return text;
}

} // namespace

std::string machine_listing_text(const MachineListing& listing, const ir::Machine& machine, const std::string& target,
                                 const std::string& assembler) {
  std::string text = (listing.is_entry ? "kernel " : "function ") + listing.function + " on " +
                     std::string(machine.name) + ", " + target + "\n\n" + table_of(listing).text() + '\n' +
                     totals_of(listing);
  if (listing.ptxas) {
    const int difference = static_cast<int>(listing.instructions) - static_cast<int>(listing.ptxas->instructions);
    char share[32];
    std::snprintf(share, sizeof share, "%+.1f %%", 100.0 * difference / std::max(1u, listing.ptxas->instructions));
    text += assembler + ": " + std::to_string(listing.ptxas->instructions) + " machine instructions (the model " +
            share + "), " + std::to_string(listing.ptxas->registers) + " registers\n";
  }
  return text;
}

nlohmann::ordered_json machine_listing_json(const MachineListing& listing, const ir::Machine& machine,
                                            const std::string& target, const std::string& assembler) {
  nlohmann::ordered_json lines = nlohmann::ordered_json::array();
  for (const MachineListingLine& line : listing.lines) {
    if (line.is_label) continue;
    nlohmann::ordered_json row{{"line", line.line},
                               {"ptx", line.ptx},
                               {"instructions", line.instructions},
                               {"uniform", line.uniform},
                               {"machine", line.machine}};
    row["unit"] = line.pipe.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(line.pipe);
    row["latency"] = line.latency ? nlohmann::ordered_json(*line.latency) : nlohmann::ordered_json();
    row["remarks"] = line.remarks;
    lines.push_back(std::move(row));
  }
  nlohmann::ordered_json document{{"function", listing.function},
                                  {"is_kernel", listing.is_entry},
                                  {"machine", machine.name},
                                  {"target", target},
                                  {"instructions", listing.instructions},
                                  {"uniform", listing.uniform},
                                  {"prologue", listing.prologue},
                                  {"prologue_uniform", listing.prologue_uniform},
                                  {"subroutines", listing.subroutines},
                                  {"copies", listing.copies},
                                  {"registers", listing.registers},
                                  {"predicates", listing.predicates},
                                  {"spill_stores", listing.spill_stores},
                                  {"spill_loads", listing.spill_loads},
                                  {"registers_wanting", listing.registers_wanting}};
  document["ptxas"] = listing.ptxas ? nlohmann::ordered_json{{"release", assembler},
                                                             {"instructions", listing.ptxas->instructions},
                                                             {"registers", listing.ptxas->registers},
                                                             {"spilled_bytes", listing.ptxas->spilled_bytes}}
                                    : nlohmann::ordered_json();
  document["lines"] = std::move(lines);
  return document;
}

} // namespace ptxrewrite::evaluate
