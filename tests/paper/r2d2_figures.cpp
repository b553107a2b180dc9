// The tables of R2D2 over samples, beside the paper's figures (r2d2-isca23).
//
//   r2d2_figures [--machine titanv] [--size SIZE] [--json] [--no-legal] [--passes P] LAUNCH_FILE ...
//   r2d2_figures --check LAUNCH_FILE ...        checks the invariants; exit code 1 if one is violated
//
// First table: machine-level warp instructions of the original and of the hardware form, and the ideal machines. Second
// table: the legal form by ptxas.
#include "cli/options.h"
#include "tests/paper/checks.h"
#include "tests/paper/report.h"
#include "tests/paper/sample_tool.h"

#include "support/ptxas.h"
#include "support/text/json_text.h"

#include <nlohmann/json.hpp>

#include <cstdio>

namespace {

using namespace ptxrewrite;
using namespace ptxrewrite::tests;

struct Options {
  std::vector<std::string> files;
  std::string machine = "titanv", size;
  std::vector<std::string> passes = {"r2d2"};
  std::vector<std::string> architectures = {"sm_80", "sm_90"};
  bool json = false, legal = true, hardware = true, check = false;
};

int complain(const std::string& sample, const std::string& message) {
  std::fprintf(stderr, "%s: %s\n", sample.c_str(), message.c_str());
  return 1;
}

int hardware_table(const Options& options, nlohmann::ordered_json& document) {
  const ir::Machine* machine = ir::find_machine(options.machine);
  if (!machine) return complain("r2d2_figures", ir::unknown_machine(options.machine));
  std::vector<HardwareMeasurement> rows;
  int code = 0;
  for (const std::string& file : options.files) {
    Result<evaluate::LaunchInput> input = read_sample(file, options.size);
    if (!input) {
      std::fprintf(stderr, "%s: left out: %s\n", sample_of(file).c_str(), input.error().message.c_str());
      continue;
    }
    Result<HardwareMeasurement> row = measure_hardware(*input, sample_of(file), *machine, true);
    if (!row) {
      code = complain(sample_of(file), row.error().message);
      continue;
    }
    if (options.check)
      for (const std::string& broken : broken_rules(*row, *input, *machine))
        code = complain(row->sample, broken);
    rows.push_back(std::move(*row));
  }
  if (options.json)
    document["hardware"] = hardware_json(rows, *machine);
  else
    std::fputs(hardware_text(rows, *machine).c_str(), stdout);
  return code;
}

int legal_tables(const Options& options, nlohmann::ordered_json& document) {
  int code = 0;
  for (const std::string& passes : options.passes)
    for (const std::string& architecture : options.architectures) {
      std::vector<LegalMeasurement> rows;
      for (const std::string& file : options.files) {
        Result<evaluate::LaunchInput> input = read_sample(file, options.size);
        if (!input) continue; // reported already
        Result<LegalMeasurement> row = measure_legal(*input, sample_of(file), passes, architecture);
        if (row)
          rows.push_back(std::move(*row));
        else
          code = complain(sample_of(file), row.error().message);
      }
      if (options.json)
        document["legal"].push_back(legal_json(rows, passes, architecture));
      else
        std::printf("\n%s", legal_text(rows, passes, architecture).c_str());
    }
  return code;
}

} // namespace

int main(int count, char** arguments) {
  Options options;
  cli::Application application("R2D2 over samples, beside the paper's figures");
  application.add_option("LAUNCH_FILE", options.files, "launch files of samples").required();
  application.add_option("--machine", options.machine, "for the hardware form (default titanv)");
  application.add_option("--size", options.size, "of the launch files that have it (default: their own)");
  application.add_option("--passes", options.passes, "for the legal form (default r2d2)").one_each();
  application.add_option("--arch", options.architectures, "for the legal form (default sm_80 sm_90)").one_each();
  application.add_flag("--json", options.json, "print JSON");
  application.add_flag("!--no-legal", options.legal, "without the second table");
  application.add_flag("!--no-hardware", options.hardware, "without the first table");
  application.add_flag("--check", options.check, "check what has to hold");
  if (std::optional<int> code = application.parse(count, arguments)) return *code;
  nlohmann::ordered_json document = nlohmann::ordered_json::object();
  int code = options.hardware ? hardware_table(options, document) : 0;
  if (options.legal && !find_ptxas())
    std::fputs("no ptxas: no table of the legal form\n", stderr);
  else if (options.legal)
    code = std::max(code, legal_tables(options, document));
  if (options.json) std::puts(json_text(document).c_str());
  return code;
}
