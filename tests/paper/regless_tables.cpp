// RegLess's tables over samples beside the paper's (MICRO 2017: Table 2, Figs. 2, 3, 13 to 19), on its machine, a GTX
// 980.
//
//   regless_tables [--size SIZE] [--entries N,...] [--passes PASSES] [--json] LAUNCH_FILE ...
//   regless_tables --check LAUNCH_FILE ...     checks the invariants; exit code 1 if one is violated
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
  std::string passes;
  std::vector<uint32_t> entries = {paper_entries};
  SampleTool tool("RegLess's tables over samples, beside the paper's figures", "gtx980");
  tool.application.add_option("--entries", entries, "capacities of an SM's staging units (512)")
      .delimiter(',')
      .one_each();
  tool.application.add_option("--passes", passes, "run first, for all: \"schedule(force,goal=loads,live=32)\"");
  if (std::optional<int> code = tool.application.parse(count, arguments)) return *code;
  const ir::Machine* machine = tool.machine();
  if (!machine) return tool.exit_code();
  std::vector<RegLessRow> rows;
  const std::vector<evaluate::StagingConfiguration> configurations = configurations_of(entries);
  tool.for_each_sample([&](evaluate::LaunchInput& input, const std::string& sample) -> Status {
    if (Status status = prepare(input, passes); !status) return status;
    Result<RegLessRow> row = measure_regless(input, sample, *machine, configurations);
    if (!row) return row.error();
    if (tool.check)
      for (const std::string& broken : broken_rules(*row))
        tool.complain(sample, broken);
    rows.push_back(std::move(*row));
    return {};
  });
  if (rows.empty()) return tool.exit_code();
  if (tool.json)
    std::puts(json_text(regless_json(rows)).c_str());
  else
    std::fputs(regless_text(rows).c_str(), stdout);
  return tool.exit_code();
}
