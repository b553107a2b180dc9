// Kernels specialised for one launch beside their originals: machine instructions and registers by ptxas, and the
// same memory on the emulator.
//
//   specialised_figures [--verify-only] [--arch sm_80] LAUNCH_FILE...
//
// Each kernel of a launch file is specialised for its first launch there, smallest size: for its block alone, and for
// block, grid and integer parameters. Then the whole file runs, in its shapes: the variant if the launch matches,
// else the original. Exit code 1 if memory differs, or if no variant ever ran.
#include "evaluate/launches/launch_input.h"
#include "evaluate/verify/verify.h"
#include "ir/core/print.h"
#include "ir/machine/figures/figures.h"
#include "support/text/table.h"
#include "transforms/common/choice.h"

#include <cmath>
#include <cstdio>
#include <cstring>
#include <set>

namespace {

using namespace ptxrewrite;

struct Options {
  bool verify_only = false;
  std::vector<std::string> architectures;
  std::vector<std::string> files;
};

struct Totals {
  size_t kernels = 0, fewer = 0, more = 0, lost = 0;
  double logarithms = 0;      // of instructions after / before
  double kept_logarithms = 0; // the same, but with the original if the variant is worse
  int64_t registers = 0;      // after - before
};

std::string extents(const launch::Dim3& shape) {
  return std::to_string(shape.x) + 'x' + std::to_string(shape.y) + 'x' + std::to_string(shape.z);
}

// `,param.1=128` for each integer that the launch passes.
std::string parameters_of(const launch::Launch& launch) {
  std::string text;
  for (size_t i = 0; i < launch.arguments.size(); ++i) {
    const launch::Argument& argument = launch.arguments[i];
    const bool integer = ir::is_integer(argument.type) || ir::is_bit_type(argument.type);
    if (argument.kind != launch::Argument::Kind::bytes || !integer || argument.bytes.size() > 8) continue;
    uint64_t value = 0;
    std::memcpy(&value, argument.bytes.data(), argument.bytes.size());
    text += ",param." + std::to_string(i) + '=' + std::to_string(value);
  }
  return text;
}

// Pipelines by the known part of the launch.
std::vector<std::pair<const char*, std::string>> cases_of(const launch::Launch& launch) {
  const std::string block = "block=" + extents(launch.block);
  return {{"block", "darsie(force,specialise=\"" + block + "\")"},
          {"launch",
           "darsie(force,specialise=\"" + block + ",grid=" + extents(launch.grid) + parameters_of(launch) + "\")"}};
}

bool verify(const evaluate::LaunchInput& input, const std::string& kernel, const std::string& passes) {
  evaluate::VerifySettings settings;
  settings.run.functions = kernel;
  settings.run.verify_each = true;
  settings.derived_shapes = false;
  evaluate::Verifier verifier(input, settings);
  cuda::ErrorPlace place{};
  if (Status status = verifier.run_original(place); !status) {
    std::fprintf(stderr, "%s: %s\n", kernel.c_str(), status.error().message.c_str());
    return false;
  }
  const evaluate::CaseResult result = verifier.verify({passes, transforms::OutputForm::legal});
  const bool ran = result.launches > result.fallbacks;
  if (result.verdict == evaluate::Verdict::identical && ran) return true;
  if (result.verdict == evaluate::Verdict::unchanged) { // refused: by its directives, or launched by the module
    std::printf("%s: not specialised\n", kernel.c_str());
    return true;
  }
  std::fprintf(stderr, "%s after %s: %s %s\n", kernel.c_str(), passes.c_str(),
               ran ? "differs" : "the variant never ran", result.reason.c_str());
  return false;
}

// The variant alone: the original beside it is unchanged.
std::optional<std::string> variant_text(const std::string& path, const std::string& kernel, const std::string& passes) {
  Console session;
  const std::optional<evaluate::LaunchInput> input = evaluate::read_launch_input(path, {.size = "small"}, session);
  auto pipeline = transforms::parse_pipeline(passes);
  if (!input || !pipeline) return std::nullopt;
  transforms::RunOptions run;
  run.functions = kernel;
  if (!transforms::run_pipeline(*input->module, *pipeline, run)) return std::nullopt;
  return print(*input->module);
}

void measure(const std::string& path, const std::string& original, const std::string& kernel, const char* what,
             const std::string& passes, const Options& options, std::map<std::string, Totals>& totals,
             TextTable& table) {
  const auto text = variant_text(path, kernel, passes);
  if (!text) return;
  std::vector<std::string> row{kernel, what};
  for (const std::string& architecture : options.architectures) {
    const auto before = ir::machine_figures(original, architecture), after = ir::machine_figures(*text, architecture);
    if (!before || !after || !before->contains(kernel) || !after->contains(kernel + "__darsie")) {
      row.insert(row.end(), {"-", "-", "-", "-"});
      continue;
    }
    const ir::MachineFigures old = before->at(kernel), now = after->at(kernel + "__darsie");
    for (uint32_t number : {old.instructions, now.instructions, old.registers, now.registers})
      row.push_back(std::to_string(number));
    Totals& total = totals[architecture + ' ' + what];
    ++total.kernels;
    total.fewer += now.instructions < old.instructions;
    total.more += now.instructions > old.instructions;
    const double logarithm = std::log(double(now.instructions) / double(old.instructions));
    total.logarithms += logarithm;
    if (transforms::legal::loses({.figures = {{architecture, now}}}, {.figures = {{architecture, old}}}))
      ++total.lost;
    else
      total.kept_logarithms += logarithm;
    total.registers += int64_t(now.registers) - int64_t(old.registers);
  }
  table.rows.push_back(std::move(row));
}

bool examine(const std::string& path, const Options& options, std::map<std::string, Totals>& totals, TextTable& table) {
  Console session;
  const std::optional<evaluate::LaunchInput> input = evaluate::read_launch_input(path, {.size = "small"}, session);
  if (!input) return false;
  const std::string original = print(*input->module);
  std::set<std::string> done;
  bool is_right = true;
  for (const launch::Launch& launch : input->plan.launches) {
    if (!done.insert(launch.kernel).second) continue;
    for (const auto& [what, passes] : cases_of(launch)) {
      is_right = verify(*input, launch.kernel, passes) && is_right;
      if (!options.verify_only) measure(path, original, launch.kernel, what, passes, options, totals, table);
    }
  }
  return is_right;
}

} // namespace

int main(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--verify-only") == 0)
      options.verify_only = true;
    else if (std::strcmp(argv[i], "--arch") == 0 && i + 1 < argc)
      options.architectures.emplace_back(argv[++i]);
    else
      options.files.emplace_back(argv[i]);
  }
  if (options.architectures.empty()) options.architectures = {"sm_80", "sm_90"};
  TextTable table{{{"kernel"}, {"known"}}, {}};
  for (const std::string& architecture : options.architectures)
    for (const char* column : {" instructions", " after", " registers", " after"})
      table.columns.push_back({architecture + column, true});
  std::map<std::string, Totals> totals;
  bool is_right = true;
  for (const std::string& file : options.files)
    is_right = examine(file, options, totals, table) && is_right;
  if (!options.verify_only) std::fputs(table.text().c_str(), stdout);
  for (const auto& [name, total] : totals)
    std::printf(
        "%s: %zu kernels, %zu with fewer machine instructions, %zu with more, geometric mean of the ratio %.3f, "
        "%+.2f registers on average; without the %zu that the pass would not keep %.3f\n",
        name.c_str(), total.kernels, total.fewer, total.more, std::exp(total.logarithms / double(total.kernels)),
        double(total.registers) / double(total.kernels), total.lost,
        std::exp(total.kept_logarithms / double(total.kernels)));
  return is_right ? 0 : 1;
}
