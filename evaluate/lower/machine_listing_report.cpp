#include "evaluate/lower/machine_listing_report.h"

#include "support/text/table.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>

namespace ptxrewrite::evaluate {

namespace {

std::string joined(const std::vector<std::string>& parts, const char* between) {
  std::string text;
  for (const std::string& part : parts)
    text += (text.empty() ? "" : between) + part;
  return text;
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
                          issued ? std::to_string(line.instructions) : "", machine_names_text(line),
                          std::string(line.pipe), line.latency ? rounded(*line.latency) : "",
                          joined(line.remarks, "; ")});
  }
  return table;
}

// Lists the assembler's instructions instead of units, latencies and remarks: one per row, starting in the row of their
// line.
void add_sass_rows(TextTable& table, std::vector<std::string> row, const std::vector<std::string>& sass) {
  constexpr size_t most = 8;
  row.push_back(sass.empty() ? "" : std::to_string(sass.size()));
  for (size_t i = 0; i < std::max<size_t>(sass.size(), 1); ++i) {
    if (i > 0) row.assign(row.size(), "");
    const bool is_rest = i == most - 1 && sass.size() > most;
    std::string text;
    if (is_rest)
      text = "and " + std::to_string(sass.size() - i) + " more";
    else if (i < sass.size())
      text = sass[i];
    std::vector<std::string> with_text = row;
    with_text.push_back(std::move(text));
    table.rows.push_back(std::move(with_text));
    if (is_rest) break;
  }
}

TextTable table_with_sass(const MachineListing& listing, const std::string& assembler) {
  TextTable table{{{"line", true}, {"PTX"}, {"n", true}, {"machine"}, {"n", true}, {assembler}}, {}};
  if (!listing.sass_elsewhere.empty())
    add_sass_rows(table, {"", "of no line: entry, subroutines", "", ""}, listing.sass_elsewhere);
  for (const MachineListingLine& line : listing.lines) {
    if (line.is_label) {
      table.rows.push_back({"", line.ptx, "", "", "", joined(line.remarks, "; ")});
      continue;
    }
    add_sass_rows(table,
                  {line.line ? std::to_string(line.line) : "", (line.line ? "  " : "  + ") + line.ptx,
                   line.instructions > 0 ? std::to_string(line.instructions) : "", machine_names_text(line)},
                  line.sass);
  }
  return table;
}

// The terms of the sum, without those that are 0.
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

std::string machine_names_text(const MachineListingLine& line) {
  constexpr size_t most = 8;
  const size_t shown = std::min(line.machine.size(), most);
  std::string names = joined({line.machine.begin(), line.machine.begin() + static_cast<std::ptrdiff_t>(shown)}, " ");
  if (line.instructions > shown)
    names += (names.empty() ? "" : " ") + ("+" + std::to_string(line.instructions - shown));
  return names;
}

std::string machine_listing_text(const MachineListing& listing, const ir::Machine& machine, const std::string& target,
                                 const std::string& assembler) {
  std::string text = (listing.is_entry ? "kernel " : "function ") + listing.function + " on " +
                     std::string(machine.name) + ", " + target + "\n\n" +
                     (listing.has_sass ? table_with_sass(listing, assembler) : table_of(listing)).text() + '\n' +
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
    if (listing.has_sass) row["sass"] = line.sass;
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
  if (listing.has_sass) document["sass_elsewhere"] = listing.sass_elsewhere;
  document["lines"] = std::move(lines);
  return document;
}

} // namespace ptxrewrite::evaluate
