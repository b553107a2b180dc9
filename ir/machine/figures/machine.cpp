// The machines of machines/*.toml, with look-up by name and target.
#include "ir/machine/figures/machine.h"

#include "ir/machine/figures/machine_files.h"
#include "ir/machine/figures/machine_text.h"
#include "support/text/near_names.h"

#include <algorithm>
#include <cassert>
#include <cctype>
#include <charconv>
#include <cstdio>
#include <deque>
#include <optional>
#include <vector>

namespace ptxrewrite::ir {

namespace {

struct KnownMachines {
  std::deque<MachineText> texts; // own the names
  std::vector<Machine> machines; // sorted
};

KnownMachines read_machines() {
  KnownMachines known;
  for (const MachineFileText& file : machine_files()) {
    const SourceFile source(std::string(file.name), std::string(file.text));
    Diagnostics diagnostics;
    const std::optional<Node> document = read_document(source, diagnostics);
    MachineText& text = known.texts.emplace_back();
    if (document) read_machine_text(*document, std::string(file.name), {}, text, diagnostics);
    for (const Diagnostic& diagnostic : diagnostics.list())
      std::fputs(render(diagnostic, source).c_str(), stderr);
    assert(!diagnostics.has_errors() && "a machine of the program's own");
    known.machines.push_back(text.machine);
  }
  std::stable_sort(known.machines.begin(), known.machines.end(), [](const Machine& a, const Machine& b) {
    return std::pair(a.compute_capability, a.name) < std::pair(b.compute_capability, b.name);
  });
  return known;
}

// Never freed: pointers to machines are valid until the program ends.
const std::vector<Machine>& known_machines() {
  static const auto* const known = new KnownMachines(read_machines());
  return known->machines;
}

std::string folded(std::string_view name) {
  std::string key;
  for (unsigned char c : name)
    if (c != ' ' && c != '-' && c != '_') key += static_cast<char>(std::tolower(c));
  return key;
}

// Number of insertions, deletions and replacements that turn one word into the other.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j)
    row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1])});
      diagonal = above;
    }
  }
  return row[b.size()];
}

} // namespace

std::span<const Machine> all_machines() {
  return known_machines();
}

const Machine* find_machine(std::string_view name) {
  std::string key = folded(name);
  for (const Machine& machine : known_machines())
    if (folded(machine.name) == key) return &machine;
  return nullptr;
}

std::string unknown_machine(std::string_view name) {
  std::string key = folded(name);
  std::vector<std::string> names;
  for (const Machine& machine : known_machines())
    names.push_back(folded(machine.name));
  std::stable_sort(names.begin(), names.end(), [&](const std::string& a, const std::string& b) {
    return edit_distance(key, a) < edit_distance(key, b);
  });
  const std::string near = near_names(key, names);
  std::string message = "unknown machine '" + std::string(name) + "'";
  message += near.starts_with("; did") ? near + " There are " : "; there are ";
  for (size_t i = 0; i < names.size(); ++i)
    message += (i ? ", " : "") + names[i];
  return message;
}

const Machine& machine_for(uint32_t compute_capability) {
  const Machine* best = &known_machines().front();
  for (const Machine& machine : known_machines())
    if (machine.compute_capability <= compute_capability && machine.compute_capability > best->compute_capability)
      best = &machine;
  return *best;
}

uint32_t compute_capability_of(std::string_view architecture) {
  size_t underscore = architecture.find('_');
  if (underscore == std::string_view::npos) return 0;
  uint32_t number = 0;
  std::from_chars(architecture.data() + underscore + 1, architecture.data() + architecture.size(), number);
  return number;
}

} // namespace ptxrewrite::ir
