// The table of DAC's hardware form over samples, beside the paper's figures (dac-isca17 §5.3 to §5.5, Figs. 17 to 19).
//
//   dac_figures [--size SIZE] [--json] LAUNCH_FILE ...
//   dac_figures --check LAUNCH_FILE ...     checks the invariants; exit code 1 if one is violated
//
// Counts are of machine instructions of a GTX 480, the paper's machine, for the original and both streams alike, and of
// PTX instructions, because the lowering for Fermi folds as later machines do. Batches of the affine warp are the
// blocks resident on an SM.
#include "emulator/machines/dac/affine_counters.h"
#include "emulator/machines/dac/compact_affine.h"
#include "emulator/machines/dac/stride_prefetcher.h"
#include "evaluate/common/rewrite.h"
#include "support/text/json_text.h"
#include "support/text/table.h"
#include "tests/paper/sample_tool.h"
#include "tests/paper/weights.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

namespace {

using namespace ptxrewrite;
using namespace ptxrewrite::tests;
using json = nlohmann::ordered_json;

// Samples that are also the paper's benchmarks (Table 2).
struct Benchmark {
  std::string_view sample, acronym;
  bool memory_bound = false;
};
constexpr std::array benchmarks = {Benchmark{"coulomb", "CP"},
                                   Benchmark{"sha1", "STO"},
                                   Benchmark{"aes", "AES"},
                                   Benchmark{"mri_q", "MQ"},
                                   Benchmark{"fft", "FFT"},
                                   Benchmark{"backprop", "BP"},
                                   Benchmark{"srad_v1", "SR1"},
                                   Benchmark{"hotspot", "HS"},
                                   Benchmark{"pathfinder", "PF"},
                                   Benchmark{"black_scholes", "BS"},
                                   Benchmark{"libor", "LIB", true},
                                   Benchmark{"sgemm", "SG", true},
                                   Benchmark{"stencil", "ST", true},
                                   Benchmark{"histo", "HI", true},
                                   Benchmark{"spmv", "SPV", true},
                                   Benchmark{"bplus_tree", "BT", true},
                                   Benchmark{"lud", "LUD", true},
                                   Benchmark{"srad_v2", "SR2", true},
                                   Benchmark{"streamcluster", "SC", true},
                                   Benchmark{"kmeans", "KM", true},
                                   Benchmark{"bfs", "BFS", true},
                                   Benchmark{"cfd", "CFD", true},
                                   Benchmark{"monte_carlo", "MC", true},
                                   Benchmark{"mersenne_twister", "MT", true},
                                   Benchmark{"scalar_product", "SP", true},
                                   Benchmark{"convolution_separable", "CS", true}};

const Benchmark* benchmark_of(std::string_view sample) {
  auto found = std::ranges::find(benchmarks, sample, &Benchmark::sample);
  return found == benchmarks.end() ? nullptr : &*found;
}

double ratio(uint64_t part, uint64_t whole) {
  return whole ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

// Warp instructions of one kind: machine or PTX instructions.
struct Streams {
  uint64_t baseline = 0; // of the original
  uint64_t affine = 0;   // of the affine stream
  uint64_t body = 0;     // of the other stream, or of the original if that ran

  double executed() const { return ratio(affine + body, baseline); }   // Fig. 17
  double affine_share() const { return ratio(affine, affine + body); } // likewise
  uint64_t replaced() const { return baseline > body ? baseline - body : 0; }
  double replaced_per_affine() const { return ratio(replaced(), affine); }
  double coverage() const { return ratio(replaced(), baseline); } // Fig. 18
};

struct Row {
  std::string sample;
  Streams machine, ptx;
  size_t launches = 0, decoupled = 0;
  uint64_t original_loads = 0; // of those launches: no affine warp
  emulator::AffineCounters counts;
  uint64_t affine_units = 0;           // of the baseline: executed by CAE's units
  emulator::PrefetchCounts prefetcher; // MTA's
  std::vector<std::string> reasons;

  double early_loads() const { return ratio(counts.early_loads, counts.loads + original_loads); } // Fig. 19
  uint64_t predicates() const {
    return counts.predicate_cases[0] + counts.predicate_cases[1] + counts.predicate_cases[2];
  }
};

// CAE and MTA, which observe a run of the original.
class Comparators final : public emulator::Observer {
public:
  explicit Comparators(uint32_t multiprocessors) : prefetcher_(multiprocessors) {}
  void before(emulator::Block& block, emulator::Warp& warp, const emulator::MicroOp& op) override {
    units_.before(block, warp, op);
    prefetcher_.before(block, warp, op);
  }
  void after(emulator::Block& block, emulator::Warp& warp, const emulator::MicroOp& op, uint32_t mask) override {
    units_.after(block, warp, op, mask);
  }
  void block_ended(emulator::Block& block) override { units_.block_ended(block); }

  void add_to(Row& row, Weights& weights) const {
    for (const auto& [number, one] : units_.rows())
      row.affine_units += weights(*one.function, one.instruction) * one.affine;
    row.prefetcher += prefetcher_.counts();
  }

private:
  emulator::CompactAffine units_;
  emulator::PrefetchStudy prefetcher_;
};

uint64_t loads_of(const emulator::Counters& counters) {
  uint64_t sum = 0;
  for (const emulator::FunctionCounters& rows : counters.functions)
    for (ir::BlockId block : rows.source->layout)
      for (ir::InstructionId id : rows.source->instructions_in(block)) {
        if (!rows.source->is_opcode(id, ir::Opcode::ld)) continue;
        const ir::StateSpace space = rows.source->form_of(id).space;
        if (space == ir::StateSpace::global || space == ir::StateSpace::local || space == ir::StateSpace::none ||
            space == ir::StateSpace::generic)
          sum += rows.instructions[id.index()].executions - rows.instructions[id.index()].guarded_off;
      }
  return sum;
}

void add_run(const cuda::SessionRun& one, Weights& weights, Row& row) {
  ++row.launches;
  const auto* counts = one.machines.find<emulator::AffineCounters>();
  const bool is_decoupled = counts && counts->fallbacks == 0;
  for (const emulator::FunctionCounters& rows : one.counters.functions) {
    // The affine stream is the only function owned by another one.
    const bool is_affine = is_decoupled && &rows == &one.counters.functions.back();
    uint64_t sum = 0, sum_ptx = 0;
    for (ir::BlockId block : rows.source->layout)
      for (ir::InstructionId id : rows.source->instructions_in(block))
        if (rows.source->instructions[id].kind == ir::InstructionKind::real) {
          sum += weights(*rows.source, id) * rows.instructions[id.index()].executions;
          sum_ptx += rows.instructions[id.index()].executions;
        }
    (is_affine ? row.machine.affine : row.machine.body) += sum;
    (is_affine ? row.ptx.affine : row.ptx.body) += sum_ptx;
  }
  if (is_decoupled)
    ++row.decoupled;
  else
    row.original_loads += loads_of(one.counters);
  if (counts) row.counts += *counts;
  std::vector<std::string> reasons = one.reasons;
  if (counts && !counts->fallback_reason.empty()) reasons.push_back(counts->fallback_reason);
  for (const std::string& reason : reasons)
    if (std::ranges::find(row.reasons, reason) == row.reasons.end()) row.reasons.push_back(reason);
}

Result<Row> measure(const evaluate::LaunchInput& input, const std::string& name, const ir::Machine& machine,
                    bool check) {
  Row row;
  row.sample = name;
  Weights weights(machine);
  cuda::EmulatorOptions options{.machine = &machine};
  std::unique_ptr<Comparators> comparators;
  auto finish = [&] {
    if (comparators) comparators->add_to(row, weights);
  };
  options.observer = [&](const emulator::LaunchRequest&) {
    finish();
    comparators = std::make_unique<Comparators>(machine.sms);
    return comparators.get();
  };
  Result<cuda::SessionResult> original = run_sample(input, *input.module, nullptr, options);
  if (!original) return original.error();
  finish();
  options.observer = {};
  for (const cuda::SessionRun& one : original->runs) {
    row.machine.baseline += emulator::section_counts(one.counters, weights.function()).total().warps;
    const auto one_each = [](const ir::Function&, ir::InstructionId) { return uint64_t{1}; };
    row.ptx.baseline += emulator::section_counts(one.counters, one_each).total().warps;
  }
  options.machines.set(emulator::AffineSettings{.check = check});
  Result<evaluate::Rewritten> rewritten = evaluate::rewrite(*input.module, "dac", transforms::OutputForm::hardware, {});
  if (!rewritten) return rewritten.error();
  const ir::Module& module = rewritten->module ? *rewritten->module : *input.module;
  Result<launch::Variants> variants = launch::Variants::of(module, nullptr);
  if (!variants) return variants.error();
  Result<cuda::SessionResult> hardware = run_sample(input, module, &*variants, options);
  if (!hardware) return hardware.error();
  for (const cuda::SessionRun& one : hardware->runs)
    add_run(one, weights, row);
  return row;
}

std::vector<std::string> broken_rules(const Row& row) {
  std::vector<std::string> broken;
  auto require = [&](bool holds, std::string what) {
    if (!holds) broken.push_back(std::move(what));
  };
  // In PTX: machine instructions can be more, if the assembler merges neighbouring accesses of the original only.
  require(row.counts.body <= row.counts.baseline,
          fmt::format("the body executes {} PTX instructions, the original {}", row.counts.body, row.counts.baseline));
  require(row.counts.early_loads <= row.counts.loads, "more loads by the affine warp than loads");
  require(row.counts.lead == 0 || row.counts.early_loads > 0, "a lead without early loads");
  require(row.counts.early_loads == 0 || row.counts.requested_lines > 0, "early loads that request nothing");
  return broken;
}

double geometric_mean(const std::vector<double>& values) {
  double sum = 0;
  for (double value : values)
    sum += std::log(std::max(value, 1e-6));
  return values.empty() ? 0 : std::exp(sum / static_cast<double>(values.size()));
}

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (double value : values)
    sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

std::string per_cent(double value) {
  return fmt::format("{:.1f}", 100 * value);
}

struct Averages {
  std::vector<double> executed, affine, coverage_compute, units_compute, loads_memory, prefetched_memory;
  uint64_t replaced = 0, affine_instructions = 0;
  std::array<uint64_t, 3> cases{};

  void add(const Row& row, const Streams& streams, const Benchmark* benchmark) {
    executed.push_back(streams.executed());
    affine.push_back(streams.affine_share());
    replaced += streams.replaced();
    affine_instructions += streams.affine;
    for (size_t i = 0; i < cases.size(); ++i)
      cases[i] += row.counts.predicate_cases[i];
    if (benchmark && !benchmark->memory_bound) {
      coverage_compute.push_back(streams.coverage());
      units_compute.push_back(ratio(row.affine_units, row.machine.baseline));
    }
    if (benchmark && benchmark->memory_bound) {
      loads_memory.push_back(row.early_loads());
      prefetched_memory.push_back(row.prefetcher.coverage());
    }
  }
  double case_share(size_t most) const {
    uint64_t all = cases[0] + cases[1] + cases[2], some = 0;
    for (size_t i = 0; i <= most; ++i)
      some += cases[i];
    return all ? static_cast<double>(some) / static_cast<double>(all) : 0;
  }
};

std::string paper_text(const std::vector<Row>& rows) {
  Averages ours, ptx, all;
  for (const Row& row : rows) {
    const Benchmark* benchmark = benchmark_of(row.sample);
    all.add(row, row.machine, benchmark);
    if (!benchmark) continue;
    ours.add(row, row.machine, benchmark);
    ptx.add(row, row.ptx, benchmark);
  }
  auto per_affine = [](const Averages& one) {
    return one.affine_instructions ? fmt::format("{:.1f}", double(one.replaced) / double(one.affine_instructions))
                                   : std::string("-");
  };
  TextTable table{{{"figure"}, {"paper", true}, {"its benchmarks here", true}, {"of PTX", true}, {"all samples", true}},
                  {}};
  auto add = [&](const char* figure, const char* paper, const std::string& here, const std::string& here_ptx,
                 const std::string& everywhere) {
    table.rows.push_back({figure, paper, here, here_ptx, everywhere});
  };
  auto three = [&](const char* figure, const char* paper, const auto& text) {
    add(figure, paper, text(ours), text(ptx), text(all));
  };
  three("warp instructions, to the baseline's (Fig. 17)", "0.74",
        [](const Averages& one) { return fmt::format("{:.2f}", geometric_mean(one.executed)); });
  three("of them on the affine warp, %", "4.6", [](const Averages& one) { return per_cent(mean(one.affine)); });
  three("instructions that one of them replaces", "9", per_affine);
  add("coverage, compute-bound, % (Fig. 18)", "34", per_cent(mean(ours.coverage_compute)),
      per_cent(mean(ptx.coverage_compute)), "");
  add("the same of CAE's affine units, %", "25", per_cent(mean(ours.units_compute)), "", "");
  add("global and local loads by the affine warp, memory-bound, % (Fig. 19)", "79.8", per_cent(mean(ours.loads_memory)),
      "", "");
  add("misses that MTA covers, memory-bound, % (Fig. 20)", "-", per_cent(mean(ours.prefetched_memory)), "", "");
  add("predicates by one comparison for a block, % (4.3)", "64", per_cent(ours.case_share(0)), "",
      per_cent(all.case_share(0)));
  add("predicates by at most two comparisons, %", "93", per_cent(ours.case_share(1)), "", per_cent(all.case_share(1)));
  return table.text();
}

std::string text_of(const std::vector<Row>& rows, const ir::Machine& machine) {
  TextTable table{{{"sample"},
                   {"paper's"},
                   {"baseline", true},
                   {"body", true},
                   {"affine", true},
                   {"executed", true},
                   {"affine %", true},
                   {"replaced", true},
                   {"coverage %", true},
                   {"of PTX %", true},
                   {"early loads %", true},
                   {"lead", true},
                   {"CAE %", true},
                   {"MTA %", true},
                   {"scalar/ends/lanes %"},
                   {"decoupled"}},
                  {}};
  std::string notes;
  for (const Row& row : rows) {
    const Benchmark* benchmark = benchmark_of(row.sample);
    const std::string cases =
        row.predicates()
            ? fmt::format("{:.0f}/{:.0f}/{:.0f}", 100 * ratio(row.counts.predicate_cases[0], row.predicates()),
                          100 * ratio(row.counts.predicate_cases[1], row.predicates()),
                          100 * ratio(row.counts.predicate_cases[2], row.predicates()))
            : "-";
    table.rows.push_back(
        {row.sample, benchmark ? std::string(benchmark->acronym) : "", std::to_string(row.machine.baseline),
         std::to_string(row.machine.body), std::to_string(row.machine.affine),
         fmt::format("{:.2f}", row.machine.executed()), per_cent(row.machine.affine_share()),
         fmt::format("{:.1f}", row.machine.replaced_per_affine()), per_cent(row.machine.coverage()),
         per_cent(row.ptx.coverage()), per_cent(row.early_loads()), fmt::format("{:.1f}", row.counts.lead_in_trips()),
         per_cent(ratio(row.affine_units, row.machine.baseline)), per_cent(row.prefetcher.coverage()), cases,
         fmt::format("{} of {}", row.decoupled, row.launches)});
    for (const std::string& reason : row.reasons)
      notes += row.sample + ": the original ran: " + reason + '\n';
  }
  return fmt::format("Machine instructions of {}\n", machine.name) + table.text() + notes + '\n' + paper_text(rows);
}

json json_of(const std::vector<Row>& rows, const ir::Machine& machine) {
  json list = json::array();
  for (const Row& row : rows) {
    json one = {{"sample", row.sample},
                {"baseline", row.machine.baseline},
                {"baseline_ptx", row.ptx.baseline},
                {"body", row.machine.body},
                {"body_ptx", row.ptx.body},
                {"affine", row.machine.affine},
                {"affine_ptx", row.ptx.affine},
                {"executed", row.machine.executed()},
                {"affine_share", row.machine.affine_share()},
                {"replaced_per_affine", row.machine.replaced_per_affine()},
                {"coverage", row.machine.coverage()},
                {"coverage_ptx", row.ptx.coverage()},
                {"early_load_share", row.early_loads()},
                {"cae_coverage", ratio(row.affine_units, row.machine.baseline)},
                {"mta_coverage", row.prefetcher.coverage()},
                {"launches", row.launches},
                {"decoupled", row.decoupled}};
    for (const emulator::NamedAffineCount& count : emulator::named_counts(row.counts))
      one["machine"][count.name] = count.count;
    if (!row.reasons.empty()) one["original_ran"] = row.reasons;
    list.push_back(std::move(one));
  }
  return {{"machine", machine.name}, {"rows", list}};
}

} // namespace

int main(int count, char** arguments) {
  SampleTool tool("DAC's two streams over samples, beside the paper's figures", "gtx480",
                  "compare what leaves the queues with the original; check what has to hold");
  if (std::optional<int> code = tool.application.parse(count, arguments)) return *code;
  const ir::Machine* machine = tool.machine();
  if (!machine) return tool.exit_code();
  std::vector<Row> rows;
  tool.for_each_sample([&](evaluate::LaunchInput& input, const std::string& sample) -> Status {
    Result<Row> row = measure(input, sample, *machine, tool.check);
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
