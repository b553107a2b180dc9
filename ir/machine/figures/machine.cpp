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
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace ptxrewrite::ir {

namespace {

// A machine's file is parsed when the machine is first asked for: most runs need one machine, or none.
class KnownMachines {
public:
  KnownMachines() : files_(machine_files().begin(), machine_files().end()) {
    std::stable_sort(files_.begin(), files_.end(), [](const MachineFileText& a, const MachineFileText& b) {
      return std::pair(a.compute_capability, a.name) < std::pair(b.compute_capability, b.name);
    });
    machines_.resize(files_.size());
    texts_.resize(files_.size());
    parsed_ = std::make_unique<std::once_flag[]>(files_.size());
  }

  // Sorted by compute capability, then by name.
  const std::vector<Machine>& all() {
    for (size_t i = 0; i < files_.size(); ++i)
      (void)at(i);
    return machines_;
  }
  std::span<const MachineFileText> files() const { return files_; }
  const Machine& at(size_t i) {
    std::call_once(parsed_[i], [&] { parse(i); });
    return machines_[i];
  }

private:
  void parse(size_t i) {
    const MachineFileText& file = files_[i];
    const SourceFile source(std::string(file.file), std::string(file.text));
    Diagnostics diagnostics;
    const std::optional<Node> document = read_document(source, diagnostics);
    if (document) read_machine_text(*document, std::string(file.file), {}, texts_[i], diagnostics);
    for (const Diagnostic& diagnostic : diagnostics.list())
      std::fputs(render(diagnostic, source).c_str(), stderr);
    assert(!diagnostics.has_errors() && "a machine of the program's own");
    machines_[i] = texts_[i].machine;
    assert(machines_[i].name == file.name && machines_[i].compute_capability == file.compute_capability);
  }

  std::vector<MachineFileText> files_;
  std::deque<MachineText> texts_; // own the names
  std::vector<Machine> machines_;
  std::unique_ptr<std::once_flag[]> parsed_;
};

// Never freed: pointers to machines are valid until the program ends.
KnownMachines& known() {
  static auto* const machines = new KnownMachines;
  return *machines;
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
  return known().all();
}

const Machine* find_machine(std::string_view name) {
  std::string key = folded(name);
  for (const Machine& machine : known().all())
    if (folded(machine.name) == key) return &machine;
  return nullptr;
}

std::string unknown_machine(std::string_view name) {
  std::string key = folded(name);
  std::vector<std::string> names;
  for (const Machine& machine : known().all())
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
  const std::span<const MachineFileText> files = known().files();
  size_t best = 0;
  for (size_t i = 0; i < files.size(); ++i)
    if (files[i].compute_capability <= compute_capability &&
        files[i].compute_capability > files[best].compute_capability)
      best = i;
  return known().at(best);
}

uint32_t compute_capability_of(std::string_view architecture) {
  size_t underscore = architecture.find('_');
  if (underscore == std::string_view::npos) return 0;
  uint32_t number = 0;
  std::from_chars(architecture.data() + underscore + 1, architecture.data() + architecture.size(), number);
  return number;
}

} // namespace ptxrewrite::ir
