// RegLess's tables over samples beside the paper's (MICRO 2017: Table 2, Figs. 2, 3, 13 to 19), on its machine, a GTX
// 980.
//
//   regless_tables [--size SIZE] [--entries N,...] [--passes PASSES] [--today MACHINE] [--json] LAUNCH_FILE ...
//   regless_tables --check LAUNCH_FILE ...     checks the invariants; exit code 1 if one is violated
//
// --today measures the samples on a second machine, too, and adds a column. The paper's 512 entries are a quarter of
// the registers of its machine, and of each since.
//
// Register counts come from RegLess's machine on the emulator, with its own cycles, in which warps compete for entries
// (emulator/machines/regless/staging_machine.h). Run time and energy come from the timing model.
#include "evaluate/common/rewrite.h"
#include "support/text/json_text.h"
#include "tests/paper/regless_rows.h"
#include "tests/paper/sample_tool.h"

#include <nlohmann/json.hpp>

#include <cstdio>

namespace {

using namespace ptxrewrite;
using namespace ptxrewrite::tests;

// Every capacity with and without the compressor, and the paper's capacity also with the lines of its Table 1.
std::vector<evaluate::StagingConfiguration> configurations_of(const std::vector<uint32_t>& entries) {
  std::vector<evaluate::StagingConfiguration> all;
  for (uint32_t size : entries)
    for (uint32_t lines : {12u, 16u, 0u})
      if (lines != 16 || size == paper_entries) all.push_back({staging_name(size, lines), size, lines});
  return all;
}

// The text after the passes.
Status prepare(evaluate::LaunchInput& input, const std::string& passes) {
  if (passes.empty()) return {};
  Result<evaluate::Rewritten> rewritten = evaluate::rewrite(*input.module, passes, transforms::OutputForm::legal, {});
  if (!rewritten) return rewritten.error();
  if (rewritten->module) input.module = std::move(rewritten->module);
  return {};
}

} // namespace

int main(int count, char** arguments) {
  std::string passes, today;
  std::vector<uint32_t> entries = {paper_entries};
  SampleTool tool("RegLess's tables over samples, beside the paper's figures", "gtx980");
  tool.application.add_option("--entries", entries, "capacities of an SM's staging units (512)")
      .delimiter(',')
      .one_each();
  tool.application.add_option("--passes", passes, "run first, for all: \"schedule(force,goal=loads,live=32)\"");
  tool.application.add_option("--today", today, "a machine of today, for a further column");
  if (std::optional<int> code = tool.application.parse(count, arguments)) return *code;
  const ir::Machine* machine = tool.machine();
  if (!machine) return tool.exit_code();
  const ir::Machine* machine_of_today = today.empty() ? nullptr : tool.machine(today);
  if (!today.empty() && !machine_of_today) return tool.exit_code();
  std::vector<RegLessRow> rows, rows_of_today;
  const std::vector<evaluate::StagingConfiguration> configurations = configurations_of(entries);
  const auto measure = [&](const evaluate::LaunchInput& input, const std::string& sample, const ir::Machine& on,
                           const std::vector<evaluate::StagingConfiguration>& sizes) -> Result<RegLessRow> {
    Result<RegLessRow> row = measure_regless(input, sample, on, sizes);
    if (row && tool.check)
      for (const std::string& broken : broken_rules(*row))
        tool.complain(sample, std::string(on.name) + ": " + broken);
    return row;
  };
  tool.for_each_sample([&](evaluate::LaunchInput& input, const std::string& sample) -> Status {
    if (Status status = prepare(input, passes); !status) return status;
    Result<RegLessRow> row = measure(input, sample, *machine, configurations);
    if (!row) return row.error();
    if (machine_of_today) {
      Result<RegLessRow> other = measure(input, sample, *machine_of_today, configurations_of({paper_entries}));
      if (!other) return other.error();
      rows_of_today.push_back(std::move(*other));
    }
    rows.push_back(std::move(*row));
    return {};
  });
  if (rows.empty()) return tool.exit_code();
  if (tool.json)
    std::puts(json_text(regless_json(rows)).c_str());
  else
    std::fputs(regless_text(rows, rows_of_today).c_str(), stdout);
  return tool.exit_code();
}
