#include "evaluate/report/kernel_facts.h"

#include "cuda/session.h"
#include "evaluate/diff/compare.h"
#include "evaluate/lower/machine_listing.h"
#include "grammar/reader.h"
#include "ir/machine/registers/machine_values.h"
#include "ir/ssa/ssa.h"
#include "launch/signature.h"
#include "transforms/manager/pipeline.h"

#include <algorithm>
#include <map>

namespace ptxrewrite::evaluate {
namespace {

using Counters = std::map<const ir::Function*, std::vector<emulator::InstructionCounters>>;

Result<Counters> run_with_counters(const LaunchInput& input, const ReportSettings& settings, cuda::ErrorPlace& place,
                                   std::optional<emulator::Failure>& failure) {
  cuda::EmulatorOptions emulator;
  emulator.count_memory = true;
  emulator.machine = &settings.machine;
  std::unique_ptr<cuda::Device> device = cuda::make_emulator_device(emulator);
  cuda::SessionOptions options;
  options.error_place = &place;
  Result<cuda::SessionResult> run = cuda::run_plan(input.plan, *input.module, *device, options);
  if (!run) return run.error();
  Counters sums;
  for (const cuda::SessionRun& one : run->runs) {
    if (one.failure) failure = one.failure;
    for (const emulator::FunctionCounters& function : one.counters.functions) {
      std::vector<emulator::InstructionCounters>& sum = sums[function.source];
      sum.resize(std::max(sum.size(), function.instructions.size()));
      for (size_t i = 0; i < function.instructions.size(); ++i) {
        sum[i].executions += function.instructions[i].executions;
        sum[i].lanes += function.instructions[i].lanes;
        sum[i].guarded_off += function.instructions[i].guarded_off;
        sum[i].transactions += function.instructions[i].transactions;
      }
    }
  }
  return sums;
}

// The number of live registers at each instruction, by ID; empty if the function has no SSA form.
std::vector<uint32_t> live_registers(const ir::Function& function, uint32_t compute_capability) {
  ir::Function copy(function);
  if (!copy.is_ssa && !ir::construct_ssa(copy).ok()) return {};
  const ir::ControlFlow flow(copy);
  const ir::MachineValues values(copy, flow, compute_capability);
  std::vector<int64_t> change(size_t(values.index_count()) * 2 + 3);
  for (ir::ValueId value : copy.values.ids()) {
    if (!values.in_register(value) || values.is_predicate(value)) continue;
    for (const ir::LiveRange& range : values.ranges(value)) {
      change[range.begin] += values.units(value);
      change[range.end] -= values.units(value);
    }
  }
  for (size_t point = 1; point < change.size(); ++point)
    change[point] += change[point - 1];
  std::vector<uint32_t> live(function.instructions.size());
  for (ir::BlockId block : copy.layout)
    for (ir::InstructionId id : copy.instructions_in(block))
      if (id.index() < live.size()) {
        const size_t point = size_t(values.index_of(id)) * 2;
        live[id.index()] = static_cast<uint32_t>(std::max(change[point], change[point + 1]));
      }
  return live;
}

uint32_t line_of(const ir::Function& function, ir::InstructionId id) {
  const SourceRange range = function.instructions[id].range;
  return range.empty() ? 0 : function.module().source.locate(range.begin).line;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words)
    text += (text.empty() ? "" : " ") + word;
  return text;
}

// Is the lowering's remark worth showing? All are, except the one on eliminated register copies.
bool is_worth_saying(const std::string& remark) {
  return remark != "another name for a register";
}

struct Sources {
  const ReportSettings& settings;
  const Counters& counters;
  const StudyResult& study;
};

std::vector<SourceRow> source_rows(const ir::Function& function, const Sources& sources) {
  const MachineListing listing =
      machine_listing(function, sources.settings.machine, sources.settings.machine.compute_capability);
  const std::vector<uint32_t> live = live_registers(function, sources.settings.machine.compute_capability);
  const std::vector<CudaPosition> cuda = cuda_positions(function);
  const auto counters = sources.counters.find(&function);
  const auto study = sources.study.by_instruction.find(&function);
  std::vector<SourceRow> rows;
  for (const MachineListingLine& line : listing.lines) {
    SourceRow row;
    row.is_label = line.is_label;
    row.line = line.line;
    row.text = line.ptx;
    row.machine_instructions = line.instructions;
    row.machine = joined(line.machine);
    for (const std::string& remark : line.remarks)
      if (is_worth_saying(remark)) row.remarks.push_back(remark);
    const size_t id = line.instruction.index();
    if (!line.is_label && id < function.instructions.size()) {
      row.cuda = cuda[id];
      if (id < live.size()) row.live = live[id];
      if (counters != sources.counters.end() && id < counters->second.size()) row.counters = counters->second[id];
      if (study != sources.study.by_instruction.end())
        if (const auto found = study->second.find(line.instruction); found != study->second.end())
          if (found->second.executions)
            row.redundant = double(found->second.in_block) / double(found->second.executions);
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<CudaShare> cuda_shares(const std::vector<SourceRow>& rows) {
  std::vector<CudaShare> shares;
  for (const SourceRow& row : rows)
    if (!row.is_label)
      shares.push_back(
          {row.cuda, row.line, row.counters.executions * row.machine_instructions, row.counters.transactions});
  return shares;
}

// The branch at the end of a block, if there is one.
ir::InstructionId branch_of(const ir::Function& function, ir::BlockId block) {
  ir::InstructionId last;
  for (ir::InstructionId id : function.instructions_in(block))
    if (function.instructions[id].kind == ir::InstructionKind::real) last = id;
  return last.valid() && function.is_opcode(last, ir::Opcode::bra) ? last : ir::InstructionId();
}

// The number of threads that reach a block, from one of its instructions that all of them execute.
std::optional<uint64_t> threads_in(const ir::Function& function, ir::BlockId block,
                                   const std::vector<emulator::InstructionCounters>& counters) {
  for (ir::InstructionId id : function.instructions_in(block))
    if (function.instructions[id].kind == ir::InstructionKind::real && !function.instructions[id].guard.valid())
      return counters[id.index()].lanes;
  return std::nullopt;
}

std::vector<FlowBlock> flow_blocks(const ir::Function& function, const Sources& sources,
                                   const std::vector<SourceRow>& rows) {
  std::map<uint32_t, uint64_t> machine_by_line;
  for (const SourceRow& row : rows)
    if (row.line) machine_by_line[row.line] += row.machine_instructions;
  const auto found = sources.counters.find(&function);
  std::vector<emulator::InstructionCounters> counters;
  if (found != sources.counters.end()) counters = found->second;
  counters.resize(function.instructions.size());
  std::map<ir::BlockId, size_t> index;
  for (ir::BlockId block : function.layout)
    index.emplace(block, index.size());
  std::vector<FlowBlock> blocks;
  for (ir::BlockId block : function.layout) {
    FlowBlock out;
    out.name =
        function.blocks[block].label.valid() ? function.block_name(block) : "block " + std::to_string(block.index());
    for (ir::InstructionId id : function.instructions_in(block)) {
      if (function.instructions[id].kind != ir::InstructionKind::real) continue;
      const uint32_t line = line_of(function, id);
      if (line && !out.first_line) out.first_line = line;
      out.last_line = std::max(out.last_line, line);
      ++out.instructions;
      const uint64_t executions = counters[id.index()].executions;
      out.warps = std::max(out.warps, executions);
      if (const auto machine = machine_by_line.find(line); machine != machine_by_line.end())
        out.issued += executions * machine->second;
    }
    const auto successors = function.successors(block);
    const ir::InstructionId branch = branch_of(function, block);
    const std::optional<uint64_t> here = threads_in(function, block, counters);
    for (size_t i = 0; i < successors.size(); ++i) {
      FlowEdge edge;
      edge.to = index.at(function.edges[successors[i]].to);
      edge.falls_through = function.blocks[block].falls_through && i + 1 == successors.size();
      if (successors.size() == 1)
        edge.threads = branch.valid() ? std::optional(counters[branch.index()].lanes) : here;
      else if (branch.valid() && !edge.falls_through)
        edge.threads = counters[branch.index()].lanes;
      else if (branch.valid() && here)
        edge.threads = *here - std::min(*here, counters[branch.index()].lanes);
      out.edges.push_back(edge);
    }
    blocks.push_back(std::move(out));
  }
  return blocks;
}

std::vector<TechniqueLeft> techniques_left(const StudyResult& study) {
  std::vector<TechniqueLeft> left;
  for (size_t i = 0; i < technique_count; ++i) {
    const auto technique = static_cast<Technique>(i);
    // Subclasses of `block`, which is shown in total.
    if (technique >= Technique::uniform && technique <= Technique::unstructured) continue;
    const StudyRow& row = study.row(technique);
    const TechniqueInfo& info = info_of(technique);
    if (!row.present || !study.baseline.warps || !study.baseline.lanes) continue;
    TechniqueLeft one{info.name, info.what, info.source};
    // Schedulers issue warp instructions; a technique that saves only lanes is shown by threads.
    one.by_threads = !row.counts_warps || row.left.warps >= study.baseline.warps;
    one.left = one.by_threads ? double(row.left.lanes) / double(study.baseline.lanes)
                              : double(row.left.warps) / double(study.baseline.warps);
    left.push_back(one);
  }
  std::ranges::stable_sort(left, {}, &TechniqueLeft::left);
  return left;
}

const char* discharge_text(transforms::Discharge discharge) {
  switch (discharge) {
  case transforms::Discharge::proved:
    return "proved";
  case transforms::Discharge::launch_checked:
    return "asked at launch";
  case transforms::Discharge::in_kernel:
    return "asked in the kernel";
  case transforms::Discharge::assumed:
    return "assumed";
  }
  return "assumed";
}

void add_once(std::vector<std::string>& texts, std::string text) {
  if (std::ranges::find(texts, text) == texts.end()) texts.push_back(std::move(text));
}

// Assigns remarks and conditions of the passes to their source lines, and computes the difference.
Status add_passes(const LaunchInput& input, const ReportSettings& settings, std::vector<KernelFacts>& kernels) {
  if (settings.passes.empty()) return {};
  Result<transforms::Pipeline> pipeline = transforms::parse_pipeline(settings.passes.front());
  if (!pipeline) return pipeline.error();
  Diagnostics ignored; // the same text was parsed before
  std::unique_ptr<ir::Module> module = grammar::read_module(input.module->source, ignored);
  if (!module) return Error{"the original cannot be read again", {}};
  ModuleListing before = list_module(*module, "*");
  transforms::RunOptions options;
  options.run_ptxas = settings.run_ptxas;
  Result<transforms::PipelineReport> report = transforms::run_pipeline(*module, *pipeline, options);
  if (!report) return report.error();
  auto say = [&](const std::string& function, SourceRange range, std::string text) {
    const auto kernel = std::ranges::find(kernels, function, &KernelFacts::kernel);
    if (kernel == kernels.end()) return;
    const uint32_t line = range.empty() ? 0 : input.module->source.locate(range.begin).line;
    const auto row = std::ranges::find_if(
        kernel->rows, [&](const SourceRow& one) { return line && !one.is_label && one.line == line; });
    add_once(row == kernel->rows.end() ? kernel->remarks : row->remarks, std::move(text));
  };
  for (const transforms::Remark& remark : report->remarks)
    say(remark.function, remark.range, remark.pass + ": " + remark.text);
  for (const transforms::Obligation& one : report->ledger)
    say(one.function, one.range,
        std::string(discharge_text(one.discharge)) + ": " + one.statement +
            (one.raised_by.empty() ? "" : ", needed by " + one.raised_by));
  DifferenceReport difference = compare_rewritten(std::move(before), list_module(*module, "*"), "*");
  for (KernelFacts& kernel : kernels)
    for (Difference& part : difference.parts)
      if (part.name == kernel.kernel || part.name.starts_with(kernel.kernel + " -> ")) {
        kernel.difference = std::move(part);
        kernel.has_difference = !kernel.difference.identical();
        break;
      }
  return {};
}

std::vector<std::string> kernels_of(const launch::LaunchPlan& plan) {
  std::vector<std::string> names;
  for (const launch::Launch& launch : plan.launches)
    add_once(names, launch.kernel);
  return names;
}

} // namespace

Result<ReportRun> collect_facts(const LaunchInput& input, const ReportSettings& settings, cuda::ErrorPlace& place) {
  ScoreSettings score_settings{.machine = settings.machine, .passes = settings.passes};
  score_settings.run_ptxas = settings.run_ptxas;
  Result<ScoreRun> scored = score(input, score_settings, place);
  if (!scored) return scored.error();
  ReportRun run{{std::move(scored->scored), {}}, std::move(scored->failure)};
  if (run.failure) return run;
  Result<Counters> counters = run_with_counters(input, settings, place, run.failure);
  if (!counters) return counters.error();
  CudaSources cuda(*input.module, settings.source_folders);
  for (const std::string& name : kernels_of(input.plan)) {
    StudySettings study_settings{.machine = settings.machine, .sample = std::nullopt, .kernel = name};
    Result<StudyRun> studied = study(input, study_settings, place);
    if (!studied) return studied.error();
    if (studied->failure) run.failure = studied->failure;
    KernelFacts facts;
    facts.kernel = name;
    facts.techniques = techniques_left(studied->result);
    if (const ir::Function* function = launch::find_kernel(*input.module, name)) {
      const Sources sources{settings, *counters, studied->result};
      facts.rows = source_rows(*function, sources);
      facts.cuda = lines_by_file(cuda_shares(facts.rows), cuda);
      facts.blocks = flow_blocks(*function, sources, facts.rows);
      for (const SourceRow& row : facts.rows)
        facts.most_live = std::max(facts.most_live, row.live);
    }
    run.facts.kernels.push_back(std::move(facts));
  }
  if (Status status = add_passes(input, settings, run.facts.kernels); !status) return status.error();
  return run;
}

} // namespace ptxrewrite::evaluate
