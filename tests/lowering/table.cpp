// Sums and prints rows, see table.h.
#include "tests/lowering/table.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>

namespace ptxrewrite::tests {

namespace {

constexpr const char* head =
    "                     kernels      |error| of instructions, %  mean error, %    registers, %   "
    "    signs, % (of differences)";
constexpr const char* halves =
    "                looked-at    held     looked-at    held     looked-at held   looked-at  "
    "held     looked-at          held";

double percent(const SignCounts& counts) {
  return counts.changed ? 100.0 * counts.right / counts.changed : 100.0;
}

void print_line(const std::string& name, const Figures& looked_at, const Figures& held_out) {
  std::printf("%-16.16s %7zu %7zu      %6.1f   %6.1f       %+6.1f %+6.1f     %6.1f %6.1f   %5.1f (%4u)  %5.1f (%4u)\n",
              name.c_str(), looked_at.kernels, held_out.kernels, looked_at.absolute, held_out.absolute, looked_at.mean,
              held_out.mean, looked_at.registers, held_out.registers, percent(looked_at.signs), looked_at.signs.changed,
              percent(held_out.signs), held_out.signs.changed);
}

std::set<std::string> groups_of(const std::vector<KernelRow>& rows) {
  std::set<std::string> groups;
  for (const KernelRow& row : rows)
    groups.insert(row.group);
  return groups;
}

// Kernels that weigh most in the mean, and versions that the model orders wrongly.
void print_worst(const TargetTable& table, size_t worst) {
  std::vector<const KernelRow*> rows;
  for (const KernelRow& row : table.kernels)
    if (!row.held_out) rows.push_back(&row);
  std::ranges::sort(rows, std::greater{}, [](const KernelRow* row) { return std::fabs(row->error()); });
  for (size_t i = 0; i < std::min(worst, rows.size()); ++i)
    std::printf("  %-14.14s %-60.60s %6u by ptxas %6u estimated (%+4.0f %%), registers %3u %3u\n",
                rows[i]->group.c_str(), rows[i]->kernel.c_str(), rows[i]->real, rows[i]->estimated,
                100 * rows[i]->error(), rows[i]->real_registers, rows[i]->estimated_registers);
  size_t shown = 0;
  for (const SignRow& row : table.signs) {
    const VersionPair& pair = row.pair;
    const bool right =
        pair.real_change() == 0 || (pair.real_change() > 0 ? pair.estimated_change() > 0 : pair.estimated_change() < 0);
    if (row.held_out || right || shown++ >= worst) continue;
    std::printf("  wrong sign: %-32.32s %-14.14s %-50.50s %+5d of %d by ptxas, %+5d of %d estimated\n",
                pair.version.c_str(), row.group.c_str(), pair.kernel.c_str(), static_cast<int>(pair.real_change()),
                static_cast<int>(pair.real_before), static_cast<int>(pair.estimated_change()),
                static_cast<int>(pair.estimated_before));
  }
}

void print_versions(const std::vector<SignRow>& signs) {
  if (signs.empty()) return;
  const VersionSigns looked_at = version_signs(signs, false), held_out = version_signs(signs, true);
  const auto line = [](const char* name, const SignCounts& one, const SignCounts& other) {
    std::printf("  %-40.40s %5.1f (%4u)  %5.1f (%4u)\n", name, percent(one), one.changed, percent(other),
                other.changed);
  };
  std::puts("signs by version, % (of differences): looked-at, held-out");
  std::set<std::string> names;
  for (const SignRow& row : signs)
    names.insert(row.pair.version);
  const auto counts_of = [](const VersionSigns& half, const std::string& name) {
    const auto found = half.by_version.find(name);
    return found == half.by_version.end() ? SignCounts() : found->second;
  };
  for (const std::string& name : names)
    line(name.c_str(), counts_of(looked_at, name), counts_of(held_out, name));
  line("versions that only reorder instructions", looked_at.order_alone, held_out.order_alone);
  line("all others", looked_at.others, held_out.others);
}

} // namespace

VersionSigns version_signs(const std::vector<SignRow>& signs, bool held_out) {
  VersionSigns result;
  for (const SignRow& row : signs) {
    if (row.held_out != held_out) continue;
    (is_only_order(row.pair) ? result.order_alone : result.others).add(row.pair);
    result.by_version[row.pair.version].add(row.pair);
  }
  return result;
}

Figures figures_of(const std::vector<KernelRow>& kernels, const std::vector<SignRow>& signs, const std::string& group,
                   bool held_out) {
  Figures figures;
  for (const KernelRow& row : kernels) {
    if (row.held_out != held_out || (!group.empty() && row.group != group)) continue;
    ++figures.kernels;
    figures.absolute += std::fabs(row.error());
    figures.mean += row.error();
    figures.registers += std::fabs(row.register_error());
  }
  if (figures.kernels > 0)
    for (double* sum : {&figures.absolute, &figures.mean, &figures.registers})
      *sum *= 100 / static_cast<double>(figures.kernels);
  for (const SignRow& row : signs)
    if (row.held_out == held_out && (group.empty() || row.group == group)) figures.signs.add(row.pair);
  return figures;
}

void print_table(const TargetTable& table, size_t worst) {
  std::printf("%s: %zu kernels; left out: %u texts that the assembler refuses, %u that are not read, %u short kernels, "
              "%u of a name that the group had before\n%s\n%s\n",
              table.architecture.c_str(), table.kernels.size(), table.refused, table.unread, table.short_kernels,
              table.repeated, head, halves);
  for (const std::string& group : groups_of(table.kernels))
    print_line(group, figures_of(table.kernels, table.signs, group, false),
               figures_of(table.kernels, table.signs, group, true));
  print_line("all", figures_of(table.kernels, table.signs, "", false),
             figures_of(table.kernels, table.signs, "", true));
  print_versions(table.signs);
  print_worst(table, worst);
  std::puts("");
}

void print_summary(const std::vector<TargetTable>& tables) {
  std::printf("all groups by target\n%s\n%s\n", head, halves);
  std::vector<KernelRow> kernels;
  std::vector<SignRow> signs;
  for (const TargetTable& table : tables) {
    print_line(table.architecture, figures_of(table.kernels, table.signs, "", false),
               figures_of(table.kernels, table.signs, "", true));
    kernels.insert(kernels.end(), table.kernels.begin(), table.kernels.end());
    signs.insert(signs.end(), table.signs.begin(), table.signs.end());
  }
  std::printf("by group, all targets\n");
  for (const std::string& group : groups_of(kernels))
    print_line(group, figures_of(kernels, signs, group, false), figures_of(kernels, signs, group, true));
  print_line("all", figures_of(kernels, signs, "", false), figures_of(kernels, signs, "", true));
}

} // namespace ptxrewrite::tests
