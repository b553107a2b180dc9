#include "evaluate/diff/machine_difference.h"

#include "evaluate/common/listing.h"
#include "evaluate/lower/machine_listing_report.h"
#include "ir/core/module.h"
#include "support/text/table.h"
#include "transforms/manager/pipeline.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

namespace ptxrewrite::evaluate {

namespace {

// Instructions by unit; those outside of the lines count as "other".
std::map<std::string, uint32_t, std::less<>> by_unit(const MachineListing& listing) {
  std::map<std::string, uint32_t, std::less<>> units;
  for (const MachineListingLine& line : listing.lines) {
    if (line.instructions > line.uniform) units[std::string(line.pipe)] += line.instructions - line.uniform;
    if (line.uniform) units["uniform"] += line.uniform;
  }
  const uint32_t other = listing.prologue + listing.subroutines + listing.copies;
  if (other) units["other"] += other;
  if (listing.prologue_uniform) units["uniform"] += listing.prologue_uniform;
  return units;
}

// `2  MOV IMAD.WIDE  add.s64 %rd3, %rd1, %rd2;`: counts and names are columns of the text, so that equal lines have
// equal texts.
ListingLine shown_line(const MachineListingLine& line) {
  ListingLine shown;
  if (line.is_label) {
    shown.text = line.ptx;
    return shown;
  }
  constexpr size_t count_width = 3, names_width = 24;
  const std::string count = line.instructions ? std::to_string(line.instructions) : "";
  shown.text.assign(count_width - std::min(count_width, count.size()), ' ');
  shown.text += count + "  " + machine_names_text(line);
  shown.text.resize(std::max(shown.text.size(), count_width + 2 + names_width), ' ');
  shown.text += "  " + line.ptx;
  shown.source_line = line.line;
  shown.is_instruction = true;
  return shown;
}

std::vector<ListingLine> shown_lines(const MachineListing& listing) {
  std::vector<ListingLine> lines;
  for (const MachineListingLine& line : listing.lines)
    if (!line.is_label || !line.ptx.empty()) lines.push_back(shown_line(line));
  return lines;
}

std::string title_of(const MachinePair& pair) {
  const std::string &before = pair.before.function, &after = pair.after.function;
  return before.empty() || after.empty() || before == after ? (before.empty() ? after : before)
                                                            : before + " -> " + after;
}

std::string figure(const MachineListing& listing, uint32_t value) {
  return listing.function.empty() ? "" : std::to_string(value);
}

std::string change(const MachinePair& pair) {
  if (pair.before.function.empty() || pair.after.function.empty() || pair.before.instructions == 0) return "";
  char text[32];
  std::snprintf(text, sizeof text, "%+.1f %%",
                100.0 * (static_cast<double>(pair.after.instructions) / pair.before.instructions - 1));
  return text;
}

TextTable totals(const std::vector<MachinePair>& pairs) {
  TextTable table{{{"function"},
                   {"machine before", true},
                   {"after", true},
                   {"change", true},
                   {"registers before", true},
                   {"after", true},
                   {"spills before", true},
                   {"after", true}},
                  {}};
  for (const MachinePair& pair : pairs) {
    const MachineListing &before = pair.before, &after = pair.after;
    table.rows.push_back({title_of(pair), figure(before, before.instructions), figure(after, after.instructions),
                          change(pair), figure(before, before.registers), figure(after, after.registers),
                          figure(before, before.spill_stores + before.spill_loads),
                          figure(after, after.spill_stores + after.spill_loads)});
  }
  return table;
}

TextTable units(const std::vector<MachinePair>& pairs) {
  TextTable table{{{"function"}, {"unit"}, {"before", true}, {"after", true}}, {}};
  for (const MachinePair& pair : pairs) {
    const auto before = by_unit(pair.before), after = by_unit(pair.after);
    std::set<std::string> names;
    for (const auto* side : {&before, &after})
      for (const auto& [name, count] : *side)
        names.insert(name);
    for (const std::string& name : names) {
      const auto old_count = before.find(name), new_count = after.find(name);
      const uint32_t left = old_count == before.end() ? 0 : old_count->second;
      const uint32_t right = new_count == after.end() ? 0 : new_count->second;
      if (left != right) table.rows.push_back({title_of(pair), name, std::to_string(left), std::to_string(right)});
    }
  }
  return table;
}

nlohmann::ordered_json side_json(const MachineListing& listing) {
  if (listing.function.empty()) return {};
  return {{"function", listing.function},       {"instructions", listing.instructions},
          {"uniform", listing.uniform},         {"registers", listing.registers},
          {"predicates", listing.predicates},   {"spill_stores", listing.spill_stores},
          {"spill_loads", listing.spill_loads}, {"by_unit", by_unit(listing)}};
}

} // namespace

std::vector<MachinePair> pair_machine_listings(const ir::Module& before, const ir::Module& after,
                                               const std::string& glob, const ir::Machine& machine,
                                               uint32_t compute_capability) {
  std::map<std::string, const ir::Function*, std::less<>> left;
  std::map<std::string, std::string, std::less<>> variant_of, original_of; // by name
  for (const auto& function : before.functions)
    if (function->has_body) left.emplace(before.text(function->name), function.get());
  for (const FunctionListing& function : list_module(after, "*").functions)
    if (!function.variant_of.empty() && left.contains(function.variant_of)) {
      variant_of.emplace(function.variant_of, function.name);
      original_of.emplace(function.name, function.variant_of);
    }
  const auto listed = [&](const ir::Function* function) {
    return function ? machine_listing(*function, machine, compute_capability) : MachineListing();
  };
  std::vector<MachinePair> pairs;
  for (const auto& function : after.functions) {
    const std::string name(after.text(function->name));
    const auto original = original_of.find(name);
    const std::string& partner = original == original_of.end() ? name : original->second;
    const bool is_kept_copy = original == original_of.end() && variant_of.contains(name);
    auto found = is_kept_copy ? left.end() : left.find(partner);
    if (!function->has_body || is_kept_copy || !transforms::matches_glob(glob, partner)) continue;
    pairs.push_back({listed(found == left.end() ? nullptr : found->second), listed(function.get())});
    if (found != left.end()) left.erase(found);
  }
  for (const auto& [name, function] : left)
    if (transforms::matches_glob(glob, name) && !variant_of.contains(name)) pairs.push_back({listed(function), {}});
  return pairs;
}

DifferenceReport machine_difference(const std::vector<MachinePair>& pairs) {
  DifferenceReport report;
  for (const MachinePair& pair : pairs) {
    Difference part{title_of(pair), shown_lines(pair.before), shown_lines(pair.after), {}, {}};
    part.rows = align(part.left, part.right, Alignment::text);
    part.counts = count(part.rows, part.left, part.right);
    report.parts.push_back(std::move(part));
  }
  return report;
}

std::string machine_summary_text(const std::vector<MachinePair>& pairs, const Palette& palette) {
  if (pairs.empty()) return "";
  std::string text = std::string(palette.bold()) + totals(pairs).text();
  text.insert(text.find('\n'), palette.reset());
  const TextTable by_units = units(pairs);
  if (!by_units.rows.empty()) text += "\nunits whose count changes\n" + by_units.text();
  return text;
}

nlohmann::ordered_json machine_difference_json(const std::vector<MachinePair>& pairs, const DifferenceReport& report) {
  nlohmann::ordered_json document = difference_json(report);
  nlohmann::ordered_json& functions = document["functions"];
  for (size_t i = 0; i < pairs.size(); ++i)
    functions[i]["machine"] = {{"before", side_json(pairs[i].before)}, {"after", side_json(pairs[i].after)}};
  return document;
}

} // namespace ptxrewrite::evaluate
