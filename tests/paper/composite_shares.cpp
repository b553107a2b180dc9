// The table of composite instructions over samples, beside the paper's figures (composite-hpca13 §6, Fig. 9).
//
//   composite_shares [--size SIZE] [--json] LAUNCH_FILE ...
//   composite_shares --check LAUNCH_FILE ...     checks the invariants; exit code 1 if one is violated
//   composite_shares --products split --shared-operands LAUNCH_FILE ...     with facts of GT200 (gt200.h)
//
// Counts are of machine instructions of FX5800, the paper's machine, for the original and the hardware form alike.
#include "emulator/machines/composite/composite_registers.h"
#include "evaluate/common/rewrite.h"
#include "support/text/json_text.h"
#include "support/text/table.h"
#include "tests/paper/gt200.h"
#include "tests/paper/sample_tool.h"
#include "tests/paper/weights.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstdio>

namespace {

using namespace ptxrewrite;
using namespace ptxrewrite::tests;
using json = nlohmann::ordered_json;

// Samples that are also the paper's benchmarks (Table 3).
struct Benchmark {
  std::string_view sample, acronym;
};
constexpr std::array benchmarks = {Benchmark{"convolution_texture", "CT"},
                                   Benchmark{"dct8x8", "DCT"},
                                   Benchmark{"binomial_options", "BOP"},
                                   Benchmark{"nlm", "NL"},
                                   Benchmark{"recursive_gaussian", "RGS"},
                                   Benchmark{"black_scholes", "BLK"},
                                   Benchmark{"srad_v1", "SR2"},
                                   Benchmark{"srad_v2", "SR1"},
                                   Benchmark{"nbody", "NB"},
                                   Benchmark{"ray", "RAY"},
                                   Benchmark{"sgemm", "BLS"},
                                   Benchmark{"dwt2d", "DWT"},
                                   Benchmark{"histo", "HST"},
                                   Benchmark{"sad", "SAD"},
                                   Benchmark{"backprop", "BP"},
                                   Benchmark{"nw", "NW"},
                                   Benchmark{"matmul", "MM"},
                                   Benchmark{"aes", "AES"},
                                   Benchmark{"sha1", "SHA"},
                                   Benchmark{"hotspot", "HSP"}};

std::string_view acronym_of(std::string_view sample) {
  auto found = std::ranges::find(benchmarks, sample, &Benchmark::sample);
  return found == benchmarks.end() ? std::string_view() : found->acronym;
}

// Energy per access (composite-hpca13 Table 4), in nJ: the main register file delivers 128 bits at a time, four lanes;
// the composite one 32 bits.
constexpr double main_access = 2.8e-2 / 4, slot_read = 7.1e-4, slot_write = 7.4e-4;
constexpr double lanes = 32;

struct Row {
  std::string sample;
  uint64_t baseline = 0; // warp instructions
  uint64_t hardware = 0;
  uint64_t main_accesses = 0; // of the baseline's warps: registers of 32 bits read and written
  emulator::CompositeCounts counts;

  double share() const { return baseline ? static_cast<double>(counts.composites) / static_cast<double>(baseline) : 0; }
  double main_share_avoided() const {
    uint64_t avoided = counts.main_reads_avoided + counts.main_writes_avoided;
    return main_accesses ? static_cast<double>(avoided) / static_cast<double>(main_accesses) : 0;
  }
  // Nanojoules, in all lanes.
  double energy_saved() const {
    auto avoided = static_cast<double>(counts.main_reads_avoided + counts.main_writes_avoided);
    return lanes * (avoided * main_access - static_cast<double>(counts.slot_reads) * slot_read -
                    static_cast<double>(counts.slot_writes) * slot_write);
  }
};

// 32-bit registers that an instruction reads and writes, without predicates.
uint64_t register_accesses(const ir::Function& function, ir::InstructionId id) {
  uint64_t sum = 0;
  for (const ir::Operand& operand : function.operands_of(id)) {
    if (!operand.is(ir::OperandKind::value) || operand.has(ir::OperandFlag::old_value)) continue;
    const ir::Value& value = function.values[operand.as_value()];
    if (value.type != ir::ScalarType::pred) ++sum;
  }
  return sum;
}

Result<Row> measure(const evaluate::LaunchInput& input, const std::string& name, const ir::Machine& machine,
                    const Gt200Facts& facts) {
  Row row;
  row.sample = name;
  Weights weights(machine);
  Gt200 gt200(facts);
  const emulator::InstructionWeight weight = [&](const ir::Function& function, ir::InstructionId id) {
    return gt200(function, id, weights(function, id));
  };
  const cuda::EmulatorOptions options{.machine = &machine};
  auto count = [&](const ir::Module& module, uint64_t& sum, bool original) -> Status {
    Result<cuda::SessionResult> result = run_sample(input, module, nullptr, options);
    if (!result) return result.error();
    for (const cuda::SessionRun& one : result->runs) {
      sum += emulator::section_counts(one.counters, weight).total().warps;
      if (!original) row.counts += emulator::composite_counts(one.counters);
      if (original)
        row.main_accesses +=
            emulator::section_counts(one.counters,
                                     [&](const ir::Function& function, ir::InstructionId id) {
                                       return weights(function, id) ? register_accesses(function, id) : 0;
                                     })
                .total()
                .warps;
    }
    return {};
  };
  if (Status status = count(*input.module, row.baseline, true); !status) return status.error();
  Result<evaluate::Rewritten> rewritten =
      evaluate::rewrite(*input.module, "composite", transforms::OutputForm::hardware, {});
  if (!rewritten) return rewritten.error();
  if (!rewritten->module) {
    row.hardware = row.baseline;
    return row;
  }
  if (Status status = count(*rewritten->module, row.hardware, false); !status) return status.error();
  return row;
}

// Each composite instruction replaces two, so the saving equals the number of fusions; except for cases that the choice
// cannot know: a neighbour that the assembler would have folded into the removed instruction, and a parameter that
// needs a register beside a literal, since a composite has one place for a constant (composite-hpca13 3.3).
std::vector<std::string> broken_rules(const Row& row) {
  std::vector<std::string> broken;
  if (row.hardware > row.baseline) broken.push_back("the hardware form executes more instructions");
  if (100 * (row.baseline - std::min(row.hardware, row.baseline)) < 85 * row.counts.composites)
    broken.push_back(fmt::format("{} composites save {} instructions", row.counts.composites,
                                 static_cast<int64_t>(row.baseline) - static_cast<int64_t>(row.hardware)));
  constexpr double encryption_bar = 0.25; // spec: AES and SHA fuse a quarter of their instructions at least
  if ((row.sample == "aes" || row.sample == "sha1") && 2 * row.share() < encryption_bar)
    broken.push_back(fmt::format("{:.1f} % of the instructions are fused", 200 * row.share()));
  return broken;
}

std::string text_of(const std::vector<Row>& rows, const ir::Machine& machine) {
  TextTable table{{{"sample"},
                   {"paper's"},
                   {"warp instructions", true},
                   {"composites", true},
                   {"composite %", true},
                   {"fused %", true},
                   {"saved %", true},
                   {"slot reads", true},
                   {"MRF accesses avoided %", true},
                   {"energy saved uJ", true}},
                  {}};
  double sum = 0, paper_sum = 0, paper_saved = 0;
  size_t paper_rows = 0;
  for (const Row& row : rows) {
    double saved = row.baseline ? 1 - static_cast<double>(row.hardware) / static_cast<double>(row.baseline) : 0;
    table.rows.push_back({row.sample, std::string(acronym_of(row.sample)), std::to_string(row.baseline),
                          std::to_string(row.counts.composites), fmt::format("{:.1f}", 100 * row.share()),
                          fmt::format("{:.1f}", 200 * row.share()), fmt::format("{:.1f}", 100 * saved),
                          std::to_string(row.counts.slot_reads), fmt::format("{:.1f}", 100 * row.main_share_avoided()),
                          fmt::format("{:.2f}", row.energy_saved() / 1000)});
    sum += row.share();
    if (!acronym_of(row.sample).empty()) {
      paper_sum += row.share();
      paper_saved += saved;
      ++paper_rows;
    }
  }
  auto mean = [](double total, size_t count) { return count ? 100 * total / static_cast<double>(count) : 0; };
  auto of = [&](std::string_view sample) {
    auto found = std::ranges::find(rows, sample, &Row::sample);
    return found == rows.end() ? std::string("-") : fmt::format("{:.1f}", 100 * found->share());
  };
  std::string out = fmt::format("Machine instructions of {}\n", machine.name) + table.text() + '\n';
  TextTable paper{{{"figure"}, {"paper", true}, {"here", true}}, {}};
  paper.rows.push_back({"composites in encryption kernels, % of instructions (SHA)", "up to 35", of("sha1")});
  paper.rows.push_back({"the same (AES)", "up to 35", of("aes")});
  paper.rows.push_back({"instructions fetched, decoded and scheduled less, % (the paper's benchmarks)", "17",
                        fmt::format("{:.1f}", mean(paper_saved, paper_rows))});
  paper.rows.push_back({"composites, % of instructions (the paper's benchmarks)", "",
                        fmt::format("{:.1f}", mean(paper_sum, paper_rows))});
  paper.rows.push_back({"the same, all samples", "", fmt::format("{:.1f}", mean(sum, rows.size()))});
  return out + paper.text();
}

json json_of(const std::vector<Row>& rows, const ir::Machine& machine) {
  json list = json::array();
  for (const Row& row : rows)
    list.push_back({{"sample", row.sample},
                    {"paper", acronym_of(row.sample)},
                    {"baseline", row.baseline},
                    {"hardware", row.hardware},
                    {"composites", row.counts.composites},
                    {"composite_share", row.share()},
                    {"slot_reads", row.counts.slot_reads},
                    {"slot_writes", row.counts.slot_writes},
                    {"main_reads_avoided", row.counts.main_reads_avoided},
                    {"main_writes_avoided", row.counts.main_writes_avoided},
                    {"main_accesses", row.main_accesses},
                    {"energy_saved_nj", row.energy_saved()}});
  return {{"machine", machine.name}, {"rows", list}};
}

} // namespace

int main(int count, char** arguments) {
  SampleTool tool("Composite instructions over samples, beside the paper's figures", "FX5800");
  std::string products = "whole";
  Gt200Facts facts;
  tool.application
      .add_option("--products", products,
                  "of 32 bits: whole (one instruction), split (four, unless 24 bits are enough), or split-outside (one "
                  "within a composite, four elsewhere)")
      .one_of({"whole", "split", "split-outside"});
  tool.application.add_flag("--shared-operands", facts.shared_operands, "loads from shared memory may be operands");
  if (std::optional<int> code = tool.application.parse(count, arguments)) return *code;
  facts.split_products = products != "whole";
  facts.split_in_composites = products == "split";
  const ir::Machine* machine = tool.machine();
  if (!machine) return tool.exit_code();
  std::vector<Row> rows;
  tool.for_each_sample([&](evaluate::LaunchInput& input, const std::string& sample) -> Status {
    Result<Row> row = measure(input, sample, *machine, facts);
    if (!row) return row.error();
    if (tool.check)
      for (const std::string& broken : broken_rules(*row))
        tool.complain(sample, broken);
    rows.push_back(std::move(*row));
    return {};
  });
  if (tool.json)
    std::puts(json_text(json_of(rows, *machine)).c_str());
  else
    std::fputs(text_of(rows, *machine).c_str(), stdout);
  return tool.exit_code();
}
