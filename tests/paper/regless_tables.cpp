// RegLess's tables over samples beside what the paper prints (MICRO 2017: Table 2, Figs. 2, 3, 13 to 19), on its
// machine, a GTX 980.
//
//   regless_tables [--size SIZE] [--entries N,...] [--passes PASSES] [--json] LAUNCH_FILE ...
//   regless_tables --check LAUNCH_FILE ...     what has to hold whatever the figures are; exit code 1 if it does not
//
// What registers do comes from RegLess's machine on the emulator, with its own count of cycles, in which warps compete
// for entries (emulator/hardware/staging_machine.h). Run time and energy come from the timing model.
#include "cli/json_text.h"
#include "cli/rewrite.h"
#include "tests/paper/regless_rows.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <filesystem>

namespace {

using namespace ptxrewrite;
using namespace ptxrewrite::tests;

std::string sample_of(const std::string& launch_file) {
  return std::filesystem::path(launch_file).parent_path().filename().string();
}

// Every capacity with the compressor and without, and at the paper's with the lines of its Table 1, too.
std::vector<cli::StagingConfiguration> configurations_of(const std::vector<uint32_t>& entries) {
  std::vector<cli::StagingConfiguration> all;
  for (uint32_t size : entries)
    for (uint32_t lines : {12u, 16u, 0u})
      if (lines != 16 || size == paper_entries) all.push_back({staging_name(size, lines), size, lines});
  return all;
}

// The text as passes make it.
Status prepare(cli::LaunchInput& input, const std::string& passes) {
  if (passes.empty()) return {};
  Result<cli::Rewritten> rewritten = cli::rewrite(*input.module, passes, transforms::OutputForm::legal, {});
  if (!rewritten) return rewritten.error();
  if (rewritten->module) input.module = std::move(rewritten->module);
  return {};
}

} // namespace

int main(int count, char** arguments) {
  std::vector<std::string> files;
  std::string size, passes, gpu = "gtx980";
  std::vector<uint32_t> entries = {paper_entries};
  bool as_json = false, check = false;
  CLI::App application("RegLess's tables over samples, beside the paper's figures");
  application.add_option("LAUNCH_FILE", files)->required();
  application.add_option("--size", size, "of the launch files that have it (default: their own)");
  application.add_option("--gpu", gpu, "the machine (default: the paper's)");
  application.add_option("--entries", entries, "capacities of an SM's staging units (512)")
      ->delimiter(',')
      ->allow_extra_args(false);
  application.add_option("--passes", passes, "run first, for all: \"schedule(force,goal=loads,live=32)\"");
  application.add_flag("--json", as_json, "print JSON");
  application.add_flag("--check", check, "check what has to hold");
  CLI11_PARSE(application, count, arguments);
  const ir::Machine* machine = ir::find_machine(gpu);
  if (!machine) {
    std::fprintf(stderr, "%s\n", ir::unknown_machine(gpu).c_str());
    return 2;
  }
  std::vector<RegLessRow> rows;
  int code = 0;
  auto complain = [&](const std::string& sample, const std::string& message) {
    std::fprintf(stderr, "%s: %s\n", sample.c_str(), message.c_str());
    code = 1;
  };
  const std::vector<cli::StagingConfiguration> configurations = configurations_of(entries);
  for (const std::string& file : files) {
    Result<cli::LaunchInput> input = read_sample(file, size);
    if (!input) {
      complain(sample_of(file), input.error().message);
      continue;
    }
    if (Status status = prepare(*input, passes); !status) {
      complain(sample_of(file), status.error().message);
      continue;
    }
    Result<RegLessRow> row = measure_regless(*input, sample_of(file), *machine, configurations);
    if (!row) {
      complain(sample_of(file), row.error().message);
      continue;
    }
    if (check)
      for (const std::string& broken : broken_rules(*row))
        complain(row->sample, broken);
    rows.push_back(std::move(*row));
  }
  if (rows.empty()) return code;
  if (as_json)
    std::puts(cli::json_text(regless_json(rows)).c_str());
  else
    std::fputs(regless_text(rows).c_str(), stdout);
  return code;
}
