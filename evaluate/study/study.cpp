#include "evaluate/study/study.h"

#include "emulator/machines/r2d2/section_counts.h"
#include "emulator/observe/linearity.h"
#include "evaluate/common/rewrite.h"
#include "evaluate/launches/machine_weights.h"
#include "evaluate/study/study_averages.h"
#include "evaluate/study/study_launches.h"
#include "ir/analysis/redundancy/redundancy.h"
#include "ir/machine/figures/occupancy.h"
#include "ir/machine/prepare/first_generation.h"
#include "ir/machine/registers/registers.h"
#include "launch/signature.h"

#include <algorithm>
#include <cctype>
#include <functional>
#include <map>
#include <memory>

namespace ptxrewrite::evaluate {
namespace {

using emulator::WorkCount;

constexpr std::array<TechniqueInfo, technique_count> infos = {{
    {"warp", "one value for all lanes of a warp", "darsie Fig. 1"},
    {"block", "one vector of values for all warps of a block", "darsie Fig. 1"},
    {"grid", "one vector of values for all warps of the grid", "darsie Fig. 1"},
    {"uniform", "share of 'block' whose sources are uniform", "darsie Fig. 2"},
    {"affine", "share of 'block' whose sources are affine in the thread index", "darsie Fig. 2"},
    {"unstructured", "share of 'block' with other sources", "darsie Fig. 2"},
    {"UV", "uniform instructions except memory reuse a result at issue", "darsie 5"},
    {"DAC-IDEAL", "affine in a warp (base, stride): executed once per batch of blocks", "darsie 5"},
    {"DAC-IDEAL-3D", "affine in x, y and z: executed once per batch of blocks", "dac 4.4"},
    {"WP", "a warp with uniform sources executes one lane", "r2d2 2.2"},
    {"TB", "a warp reuses the result of an earlier warp of its block", "r2d2 2.2"},
    {"LN", "linear values cost their coefficient, thread and block parts", "r2d2 2.2"},
    {"scalar", "uniform instructions execute on a scalar pipeline", "composite 4"},
    {"sliced", "16-bit instructions issue in pairs; every partner is found", "composite 5"},
    {"sliced-chance", "16-bit instructions issue in pairs; schedulers do not search", "composite 5"},
    {"composite", "two dependent integer instructions execute as one", "composite 3"},
    {"DARSIE", "instructions that its machine skips", "darsie 4"},
    {"DARSIE+Scalar", "DARSIE, and a scalar pipeline for uniform instructions", "r2d2 5"},
}};

WorkCount weighed(const WorkCount& count, uint64_t weight) {
  return {count.warps * weight, count.lanes * weight};
}
WorkCount less(const WorkCount& from, const WorkCount& what) {
  return {from.warps - what.warps, from.lanes - what.lanes};
}

// Adds up one static instruction under all techniques.
class RowSums {
public:
  RowSums(StudyResult& result, const WorkCount& baseline, uint64_t weight)
      : result_(result), baseline_(baseline), weight_(weight) {}
  // `found` is redundant; `once` of it must still be executed.
  void add(Technique technique, const WorkCount& found, const WorkCount& once) {
    WorkCount left = less(baseline_, found);
    left += once;
    StudyRow& row = result_.rows[static_cast<size_t>(technique)];
    row.left += weighed(left, weight_);
    row.redundant += weighed(found, weight_);
  }

private:
  StudyResult& result_;
  WorkCount baseline_;
  uint64_t weight_;
};

// The observers of one launch, and the data needed to evaluate them.
struct ObservedLaunch {
  ObservedLaunch(emulator::ValueStudyOptions options, emulator::DatapathOptions datapath_options,
                 const emulator::LinearAnalysis& forms, const emulator::LaunchRequest& request)
      : datapath(std::move(datapath_options)), values(with_listener(std::move(options))),
        linear(forms, request), block{request.block.x, request.block.y, request.block.z} {}

  emulator::DatapathStudy datapath;
  emulator::ValueStudy values;
  emulator::LinearParts linear;
  std::array<uint32_t, 3> block;
  bool multi_dimensional() const { return block[1] > 1 || block[2] > 1; }
  const std::vector<ir::DarsieMark>* marks = nullptr; // of the kernel

private:
  emulator::ValueStudyOptions with_listener(emulator::ValueStudyOptions options) {
    options.listener = &datapath;
    return options;
  }
};

// `counters`: of all blocks. Sampled counts are scaled to all blocks by the number of executions of the instruction.
void count_row(const emulator::ValueRow& row, const emulator::InstructionCounters& counters,
               const ObservedLaunch& launch, uint32_t number, uint64_t weight, StudyResult& result) {
  using enum Technique;
  const WorkCount baseline{counters.executions, counters.lanes};
  const emulator::Scale scale({row.executed.warps + row.guarded_off, row.executed.lanes}, baseline);
  RowSums sums(result, baseline, weight);
  result.baseline += weighed(baseline, weight);
  if (launch.multi_dimensional()) result.multi_dimensional += weighed(baseline, weight);
  const WorkCount none;
  // A warp instruction remains one, with a single thread.
  auto one_thread_each = [](const WorkCount& count) { return WorkCount{count.warps, count.warps}; };
  // Stores, branches and barriers are executed unchanged.
  const WorkCount same = row.has_results ? scale(row.uniform) : none;
  sums.add(within_warps, same, one_thread_each(same));
  sums.add(within_blocks, row.has_results ? scale(row.repeated) : none, none);
  const WorkCount in_warp = scale(row.warp_redundant);
  sums.add(warp, in_warp, one_thread_each(in_warp));
  emulator::Redundant in_block;
  for (size_t kind = 0; kind < emulator::redundancy_kinds; ++kind) {
    const emulator::Redundant of_kind = scale(row.block[kind]);
    sums.add(static_cast<Technique>(static_cast<size_t>(uniform) + kind), of_kind.all, of_kind.once);
    in_block += of_kind;
  }
  sums.add(block, in_block.all, in_block.once);
  // Executed once, regardless of the number of blocks.
  const WorkCount in_grid = scale(row.grid.all);
  sums.add(grid, in_grid, in_grid.warps ? row.grid.once : none);
  sums.add(reuse, scale(row.reused), none);
  auto on_affine_unit = [&](Technique technique, const emulator::Redundant& count) {
    sums.add(technique, count.all, {count.once.warps, count.once.warps});
  };
  on_affine_unit(dac_ideal, scale(row.consecutive));
  on_affine_unit(dac_ideal_3d, scale(row.affine));

  emulator::LinearityRow parts;
  parts.executions = counters.executions - counters.guarded_off;
  parts.lanes = counters.lanes;
  launch.linear.finish(parts, number, row.trips);
  const WorkCount found = parts.linear ? WorkCount{0, parts.lanes} : none;
  sums.add(linear, found, parts.linear ? WorkCount{0, parts.needed} : none);

  // A scalar instruction is one thread instruction, outside the SIMT pipeline.
  const WorkCount on_scalar = scale(launch.values.of_all_trips(number, launch.datapath.scalar_executions(number)));
  sums.add(scalar, on_scalar, {0, on_scalar.warps});
}

InstructionRedundancy redundancy_of(const emulator::ValueRow& row, const emulator::InstructionCounters& counters) {
  const emulator::Scale scale({row.executed.warps + row.guarded_off, row.executed.lanes},
                              {counters.executions, counters.lanes});
  emulator::Redundant in_block;
  for (const emulator::Redundant& of_kind : row.block)
    in_block += scale(of_kind);
  return {counters.executions, in_block.all.warps};
}

// Counts the instructions that the warps of a block compute alike, and those that marks declare as such.
void count_marks(const emulator::ValueRow& row, const emulator::InstructionCounters& counters, ir::DarsieMark mark,
                 uint64_t weight, MarkAgreement& marks) {
  const emulator::Scale scale({row.executed.warps + row.guarded_off, row.executed.lanes},
                              {counters.executions, counters.lanes});
  const auto marked_kind = static_cast<size_t>(mark.kind);
  if (mark.is_definite()) marks.marked[marked_kind] += counters.executions * weight;
  for (size_t kind = 0; kind < emulator::redundancy_kinds; ++kind) {
    const uint64_t measured = scale(row.block[kind].all).warps * weight;
    marks.measured[kind] += measured;
    if (!mark.is_definite()) continue;
    marks.measured_marked[kind] += measured;
    marks.marked_measured[marked_kind] += measured;
  }
}

// DARSIE skips whole warps. In DARSIE+Scalar, remaining instructions with the same scalars in all lanes use a scalar
// pipeline (r2d2-isca23 §5); if the same instructions are both skipped and uniform, these executions are assumed to
// coincide.
void count_skipped(const emulator::ValueRow& row, const emulator::InstructionCounters& counters, uint64_t skipped,
                   uint64_t weight, StudyResult& result) {
  RowSums sums(result, {counters.executions, counters.lanes}, weight);
  auto lanes_of = [&](uint64_t warps) { return std::min<uint64_t>(warps * emulator::warp_size, counters.lanes); };
  sums.add(Technique::darsie, {skipped, lanes_of(skipped)}, {});
  const bool memory = row.function->form_of(row.instruction).effects.reads_memory;
  const uint64_t executed = row.executed.warps + row.guarded_off;
  const uint64_t uniform =
      memory || executed == 0
          ? 0
          : static_cast<uint64_t>(static_cast<double>(row.warp_redundant.warps) *
                                  static_cast<double>(counters.executions) / static_cast<double>(executed));
  const uint64_t scalar = uniform - std::min(uniform, skipped);
  sums.add(Technique::darsie_scalar, {skipped + scalar, lanes_of(skipped + scalar)}, {0, scalar});
}

// A pair of warp instructions counts as one; thread counts do not change. `factor`: from the sample to all.
void count_slices(const emulator::DatapathCounts& counts, double factor, const WorkCount& baseline,
                  StudyResult& result) {
  auto set = [&](Technique technique, uint64_t paired) {
    StudyRow& row = result.rows[static_cast<size_t>(technique)];
    row.left += {baseline.warps - paired / 2, baseline.lanes};
    row.redundant += {paired, 0};
  };
  set(Technique::sliced, static_cast<uint64_t>(static_cast<double>(counts.paired) * factor));
  set(Technique::sliced_by_chance, static_cast<uint64_t>(counts.paired_by_chance * factor));
  result.datapath += counts;
}

// Observes launches, one at a time.
class Observers {
public:
  // Adds counts to `result`.
  Observers(const ir::Module& module, const StudySettings& settings, StudyResult& result)
      : module_(module), machine_(settings.machine), sample_(settings.sample), kernel_(settings.kernel),
        weights_(settings.machine), result_(result) {}

  emulator::Observer* next(const emulator::LaunchRequest& request) {
    const ir::Function* entry = launch::find_kernel(module_, request.kernel);
    if (!entry || (!kernel_.empty() && kernel_ != request.kernel)) return nullptr;
    const auto threads = static_cast<uint32_t>(request.block.count());
    auto resident = [this, entry, threads](uint64_t shared_bytes) -> uint64_t {
      return ir::occupancy(machine_, {threads, registers_of(*entry), static_cast<uint32_t>(shared_bytes)}).blocks;
    };
    auto instruction = [this](const ir::Function& function, ir::InstructionId id) {
      return datapath_instruction(function, id, weights_.lowering(function).cost(id));
    };
    emulator::ValueStudyOptions options =
        sample_ ? emulator::ValueStudyOptions{.sample = *sample_} : emulator::adaptive_sample();
    options.resident_blocks = resident;
    const KernelFacts& kernel = facts_of(*entry, instruction);
    running_ = std::make_unique<ObservedLaunch>(std::move(options),
                                                emulator::DatapathOptions{.resident_blocks = resident,
                                                                          .instruction = instruction,
                                                                          .numbers = &kernel.register_numbers},
                                                kernel.linear, request);
    running_->marks = &kernel.marks;
    return &running_->values;
  }

  // Evaluates a finished launch; `counters` are of all its blocks, `skips` those of the same launch on DARSIE's
  // machine.
  void finish(const emulator::Counters& counters, const emulator::SkipCounters& skips) {
    if (!running_) return;
    const std::vector<emulator::ValueRow>& rows = running_->values.rows();
    std::map<const ir::Function*, const emulator::FunctionCounters*> counted;
    for (const emulator::FunctionCounters& function : counters.functions)
      counted[function.source] = &function;
    const WorkCount before = result_.baseline;
    const uint64_t executions_before = result_.executions;
    uint64_t kernel_instructions = 0; // machine instructions of the kernel itself in the sampled blocks
    result_.blocks += counters.blocks;
    result_.blocks_looked_at += running_->values.blocks_looked_at();
    result_.looked_at += running_->values.executions_looked_at();
    for (uint32_t number = 0; number < rows.size(); ++number) {
      const emulator::ValueRow& row = rows[number];
      const auto function = counted.find(row.function);
      if (!row.function || function == counted.end()) continue;
      const emulator::InstructionCounters& all = function->second->instructions[row.instruction.index()];
      if (all.executions == 0) continue;
      result_.executions += all.executions;
      result_.thread_executions += all.lanes;
      const uint64_t weight = weights_(*row.function, row.instruction);
      count_row(row, all, *running_, number, weight, result_);
      result_.by_instruction[row.function][row.instruction] += redundancy_of(row, all);
      // The instructions of the entry come first.
      if (number < running_->marks->size()) {
        kernel_instructions += row.executed.warps * weight;
        count_marks(row, all, promote((*running_->marks)[number], running_->block), weight, result_.marks);
      }
      const std::vector<uint64_t>& skipped = skips.skipped_by_instruction;
      count_skipped(row, all, number < skipped.size() ? skipped[number] : 0, weight, result_);
    }
    // The datapath's sampled trips each represent a whole group, which overestimates a loop that ends within a group.
    const emulator::DatapathCounts datapath = running_->datapath.counts();
    const double to_all_blocks = ratio(result_.executions - executions_before, running_->values.executions());
    const double to_all_trips = ratio(kernel_instructions, datapath.instructions);
    count_slices(datapath, to_all_blocks * to_all_trips, less(result_.baseline, before), result_);
    result_.forgotten_instances += running_->values.forgotten_instances();
    running_.reset();
  }

private:
  // Analyses shared by the launches of a kernel.
  struct KernelFacts {
    emulator::LinearAnalysis linear;
    emulator::RegisterNumbers register_numbers;
    std::vector<ir::DarsieMark> marks;
  };
  template <class F> const KernelFacts& facts_of(const ir::Function& kernel, const F& instruction) {
    std::unique_ptr<KernelFacts>& facts = facts_[&kernel];
    if (!facts) {
      auto in_file = [&](ir::InstructionId id) { return instruction(kernel, id).weight > 0; };
      facts = std::make_unique<KernelFacts>(emulator::LinearAnalysis(kernel),
                                            emulator::number_registers(kernel, in_file), ir::marks_of(kernel));
    }
    return *facts;
  }

  uint32_t registers_of(const ir::Function& kernel) {
    auto [place, is_new] = registers_.try_emplace(&kernel);
    if (is_new) place->second = ir::register_need(kernel, machine_.compute_capability).registers;
    return place->second;
  }

  const ir::Module& module_;
  const ir::Machine& machine_;
  std::optional<uint64_t> sample_;
  std::string kernel_; // only its launches; empty: all
  MachineWeights weights_;
  std::map<const ir::Function*, uint32_t> registers_;
  std::map<const ir::Function*, std::unique_ptr<KernelFacts>> facts_;
  std::unique_ptr<ObservedLaunch> running_;
  StudyResult& result_;
};

// Runs the hardware form of `composite` on its machine (composite-hpca13 §3); adds its instructions to `result`'s row.
Status run_composite(const LaunchInput& input, const cuda::EmulatorOptions& options, const StudySettings& settings,
                     cuda::ErrorPlace& place, StudyResult& result) {
  const std::string& kernel = settings.kernel;
  StudyRow& row = result.rows[static_cast<size_t>(Technique::composite)];
  Result<Rewritten> rewritten = rewrite(*input.module, "composite", transforms::OutputForm::hardware, {});
  if (!rewritten) return rewritten.error();
  row.present = true;
  const ir::Module& module = rewritten->module ? *rewritten->module : *input.module;
  MachineWeights weights(settings.machine);
  auto weight = [&](const ir::Function& function, ir::InstructionId id) { return weights(function, id); };
  auto count = [&](const cuda::SessionRun& run) {
    const emulator::InstructionCount all = emulator::section_counts(run.counters, weight).total();
    const emulator::CompositeCounts composites = emulator::composite_counts(run.counters);
    if (!kernel.empty() && kernel != input.plan.launches[run.launch].kernel) return;
    row.left += {all.warps, all.threads};
    row.redundant += {composites.composites, composites.lanes};
    result.composites += composites;
  };
  Result<LaunchPass> pass = run_launches(input, module, options, place, count);
  if (!pass) return pass.error();
  result.machine_seconds += pass->seconds;
  return {};
}

// Runs DARSIE's skip-table machine (darsie-asplos20 §4); returns its counters, by launch.
Result<std::vector<emulator::SkipCounters>> run_darsie(const LaunchInput& input, cuda::EmulatorOptions options,
                                                       bool paper_marks, cuda::ErrorPlace& place, StudyResult& result) {
  const auto marks = paper_marks ? emulator::SkipVariant::paper_marks : emulator::SkipVariant::standard;
  options.machines.set(emulator::SkipSettings{.variant = marks});
  std::vector<emulator::SkipCounters> by_launch;
  Result<LaunchPass> pass = run_launches(input, *input.module, options, place, [&](const cuda::SessionRun& run) {
    emulator::SkipCounters sum = by_launch.emplace_back(run.machines.get<emulator::SkipCounters>());
    sum.skipped_by_instruction.clear(); // counters of different kernels cannot be added
    result.darsie += sum;
  });
  if (!pass) return pass.error();
  result.machine_seconds += pass->seconds;
  return by_launch;
}

} // namespace

const TechniqueInfo& info_of(Technique technique) {
  return infos[static_cast<size_t>(technique)];
}

std::optional<Technique> find_technique(std::string_view name) {
  auto same = [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
  };
  for (size_t i = 0; i < infos.size(); ++i)
    if (std::ranges::equal(infos[i].name, name, same)) return static_cast<Technique>(i);
  return std::nullopt;
}

StudyRow& StudyRow::operator+=(const StudyRow& other) {
  left += other.left;
  redundant += other.redundant;
  counts_warps = other.counts_warps;
  present = other.present;
  return *this;
}

MarkAgreement& MarkAgreement::operator+=(const MarkAgreement& other) {
  for (size_t kind = 0; kind < measured.size(); ++kind) {
    measured[kind] += other.measured[kind];
    measured_marked[kind] += other.measured_marked[kind];
    marked[kind] += other.marked[kind];
    marked_measured[kind] += other.marked_measured[kind];
  }
  return *this;
}

StudyResult& StudyResult::operator+=(const StudyResult& other) {
  baseline += other.baseline;
  for (const auto& [function, instructions] : other.by_instruction)
    for (const auto& [id, counts] : instructions)
      by_instruction[function][id] += counts;
  for (size_t i = 0; i < technique_count; ++i)
    rows[i] += other.rows[i];
  multi_dimensional += other.multi_dimensional;
  datapath += other.datapath;
  blocks += other.blocks;
  blocks_looked_at += other.blocks_looked_at;
  executions += other.executions;
  thread_executions += other.thread_executions;
  looked_at += other.looked_at;
  marks += other.marks;
  darsie += other.darsie;
  composites += other.composites;
  machine_seconds += other.machine_seconds;
  forgotten_instances += other.forgotten_instances;
  seconds += other.seconds;
  plain_seconds += other.plain_seconds;
  return *this;
}

bool StudySettings::wants(Technique technique) const {
  return only.empty() || std::ranges::find(only, technique) != only.end();
}

Result<StudyRun> study(const LaunchInput& input, const StudySettings& settings, cuda::ErrorPlace& place) {
  cuda::EmulatorOptions options;
  options.host_threads = 1;
  options.machine = &settings.machine;
  StudyResult result;
  auto absent = [&](Technique technique) { result.rows[static_cast<size_t>(technique)].present = false; };
  result.rows[static_cast<size_t>(Technique::linear)].counts_warps = false;
  if (settings.measure_cost) {
    Result<LaunchPass> plain = run_launches(input, *input.module, options, place, [](const cuda::SessionRun&) {});
    if (!plain) return plain.error();
    result.plain_seconds = plain->seconds;
  }
  std::vector<emulator::SkipCounters> skips;
  if (settings.wants(Technique::darsie) || settings.wants(Technique::darsie_scalar)) {
    Result<std::vector<emulator::SkipCounters>> run = run_darsie(input, options, settings.paper_marks, place, result);
    if (!run) return run.error();
    skips = std::move(*run);
  } else {
    absent(Technique::darsie), absent(Technique::darsie_scalar);
  }
  absent(Technique::composite);
  if (settings.wants(Technique::composite) && settings.machine.compute_capability < ir::first_generation_end)
    if (Status status = run_composite(input, options, settings, place, result); !status) return status.error();

  Observers observers(*input.module, settings, result);
  options.observer = [&](const emulator::LaunchRequest& request) { return observers.next(request); };
  Result<LaunchPass> studied = run_launches(input, *input.module, options, place, [&](const cuda::SessionRun& one) {
    observers.finish(one.counters, one.launch < skips.size() ? skips[one.launch] : emulator::SkipCounters());
  });
  if (!studied) return studied.error();
  result.seconds = studied->seconds;
  return StudyRun{std::move(result), std::move(studied->failure)};
}

} // namespace ptxrewrite::evaluate
