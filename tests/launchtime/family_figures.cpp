// The gains of families of launch-time rewrites on any PTX files: a table by family and for -O, over all files, those
// that may have been used to make rules, and the half that is held out (by a hash of the file's name).
//
//   family_figures [--families memory --families -O ...] [--arch sm_80] [--ptxas] [--jobs N] [--rows FILE]
//                  [--worst N] [--list FAMILY] FILE_OR_FOLDER ...
//
// --ptxas: passes choose by ptxas, which is slow. --rows keeps a row for each kernel and file; a later run with the
// same file measures only missing rows. Exit code 1 if a file fails: a crash, a text that ptxas rejects or that
// does not read back; 77 without ptxas.
#include "cli/options.h"
#include "support/ptxas.h"
#include "tests/launchtime/family_rows.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>
#include <set>

namespace {

using namespace ptxrewrite;
using namespace ptxrewrite::tests;

std::vector<std::string> ptx_files(const std::vector<std::string>& paths) {
  std::set<std::string> files;
  for (const std::string& path : paths)
    if (!std::filesystem::is_directory(path))
      files.insert(path);
    else
      for (const auto& entry : std::filesystem::recursive_directory_iterator(path))
        if (entry.path().extension() == ".ptx") files.insert(entry.path().string());
  return {files.begin(), files.end()};
}

// A geometric mean of ratios.
class Mean {
public:
  void add(double after, double before) {
    if (after <= 0 || before <= 0) return;
    sum_ += std::log(after / before);
    ++count_;
    worst_ = std::max(worst_, after / before);
  }
  double value() const { return count_ ? std::exp(sum_ / double(count_)) : 1; }
  double worst() const { return worst_; }

private:
  double sum_ = 0, worst_ = 0;
  size_t count_ = 0;
};

struct Summary {
  size_t kernels = 0, changed = 0, variants = 0, longer = 0, spilling = 0, failures = 0, files = 0;
  Mean changed_code, all_code, changed_weight, all_weight;
  double pass_seconds = 0, ptxas_seconds = 0;
};

bool is_failure(const FileRow& row) {
  return !row.failure.empty() && !row.failure.starts_with("original ") && !row.failure.starts_with("not read:");
}

template <class Takes> std::map<std::string, Summary> summarise(const FamilyRows& rows, Takes takes) {
  std::map<std::string, Summary> summaries;
  for (const KernelRow& row : rows.kernels) {
    if (!takes(row.file)) continue;
    Summary& to = summaries[row.candidate];
    ++to.kernels;
    to.changed += row.changed;
    to.variants += row.is_variant;
    to.all_code.add(row.instructions_after, row.instructions_before);
    to.all_weight.add(row.weighted_after, row.weighted_before);
    if (!row.changed) continue;
    to.changed_code.add(row.instructions_after, row.instructions_before);
    to.changed_weight.add(row.weighted_after, row.weighted_before);
    to.longer += row.instructions_after > row.instructions_before;
    to.spilling += row.spills_after > row.spills_before;
  }
  for (const FileRow& row : rows.files) {
    if (!takes(row.file)) continue;
    Summary& to = summaries[row.candidate];
    ++to.files;
    to.failures += is_failure(row);
    to.pass_seconds += row.pass_seconds;
    to.ptxas_seconds += row.ptxas_seconds;
  }
  return summaries;
}

void print(const char* title, const std::map<std::string, Summary>& summaries) {
  std::printf("\n%s\n%-10s %6s %7s %7s %8s | %8s %8s %8s %7s | %8s %8s | %6s %8s | %9s\n", title, "family", "files",
              "kernels", "changed", "variants", "changed", "all", "worst", "longer", "weighted", "all", "spills",
              "failures", "passes/as");
  for (const auto& [name, s] : summaries)
    std::printf("%-10s %6zu %7zu %7zu %8zu | %8.4f %8.4f %8.4f %7zu | %8.4f %8.4f | %6zu %8zu | %9.4f\n", name.c_str(),
                s.files, s.kernels, s.changed, s.variants, s.changed_code.value(), s.all_code.value(),
                s.changed_code.worst(), s.longer, s.changed_weight.value(), s.all_weight.value(), s.spilling,
                s.failures, s.ptxas_seconds > 0 ? s.pass_seconds / s.ptxas_seconds : 0.0);
}

void print_kernel(const KernelRow& row) {
  std::printf("  %-10s %4u -> %4u  weighted %8.0f -> %8.0f%s  %s in %s\n", row.candidate.c_str(),
              row.instructions_before, row.instructions_after, row.weighted_before, row.weighted_after,
              row.spills_after > row.spills_before ? "  spills" : "", row.kernel.substr(0, 60).c_str(),
              row.file.c_str());
}

void print_worst(const FamilyRows& rows, size_t most) {
  std::vector<KernelRow> longer;
  for (const KernelRow& row : rows.kernels)
    if (row.changed && row.instructions_after > row.instructions_before) longer.push_back(row);
  std::ranges::sort(longer, std::greater{}, [](const KernelRow& row) {
    return double(row.instructions_after) / double(row.instructions_before);
  });
  std::printf("\nchanged kernels that are longer: %zu\n", longer.size());
  for (size_t i = 0; i < std::min(most, longer.size()); ++i)
    print_kernel(longer[i]);
}

size_t print_failures(const FamilyRows& rows) {
  std::map<std::string, std::vector<std::string>> by_cause;
  size_t failures = 0;
  for (const FileRow& row : rows.files) {
    if (row.failure.empty()) continue;
    failures += is_failure(row);
    by_cause[(is_failure(row) ? row.candidate + ": " : std::string("left out: ")) + row.failure].push_back(row.file);
  }
  if (!by_cause.empty()) std::printf("\nfailures, and what was left out:\n");
  for (const auto& [cause, files] : by_cause)
    std::printf("  %4zu %s  [%s]\n", files.size(), cause.c_str(), files.front().c_str());
  return failures;
}

} // namespace

int main(int count, char** arguments) {
  std::vector<std::string> paths, families;
  std::string rows_file = "family_rows.tsv", listed;
  MeasureSettings settings;
  bool by_ptxas = false;
  uint32_t worst = 10;
  cli::Application application("families of launch-time rewrites over PTX files, by ptxas and by the model");
  application.add_option("FILE_OR_FOLDER", paths, "PTX files, or folders of them").required();
  application.add_option("--families", families, "only these").one_each();
  application.add_option("--arch", settings.architecture, "what is assembled for; default sm_80");
  application.add_flag("--ptxas", by_ptxas, "passes choose by ptxas");
  application.add_option("--jobs", settings.jobs, "files at a time");
  application.add_option("--seconds", settings.seconds, "of processor time for one file");
  application.add_option("--rows", rows_file, "rows of kernels and files; gone on with if it exists");
  application.add_option("--worst", worst, "so many kernels that became longer");
  application.add_option("--list", listed, "all kernels that this family changes");
  if (std::optional<int> code = application.parse(count, arguments)) return *code;
  if (!find_ptxas()) {
    std::puts("no ptxas: skipped");
    return 77;
  }
  settings.by_model = !by_ptxas;
  const std::vector<std::string> files = ptx_files(paths);
  if (Status status = measure_files(files, candidates(families, settings.by_model), settings, rows_file); !status) {
    std::fprintf(stderr, "family_figures: %s\n", status.error().message.c_str());
    return 2;
  }
  Result<FamilyRows> rows = read_rows(rows_file);
  if (!rows) return 2;
  const std::set<std::string> wanted(files.begin(), files.end());
  std::erase_if(rows->kernels, [&](const KernelRow& row) { return !wanted.contains(row.file); });
  std::erase_if(rows->files, [&](const FileRow& row) { return !wanted.contains(row.file); });
  std::printf(
      "columns: geometric means of machine instructions after to before, over changed kernels and over all, the\n"
      "worst of the changed, how many are longer; the same by the model, weighted by loops; kernels that spill\n"
      "more; files that fail; seconds of the passes to seconds of ptxas -O3 (%s)\n",
      by_ptxas ? "without those of the ptxas that the passes run" : "the model chooses");
  print("all files", summarise(*rows, [](const std::string&) { return true; }));
  print("seen half", summarise(*rows, [](const std::string& file) { return !is_held_out(file); }));
  print("held-out half", summarise(*rows, is_held_out));
  if (!listed.empty())
    for (const KernelRow& row : rows->kernels)
      if (row.changed && row.candidate == listed) print_kernel(row);
  print_worst(*rows, worst);
  return print_failures(*rows) == 0 ? 0 : 1;
}
