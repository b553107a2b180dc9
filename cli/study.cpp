#include "cli/study.h"

#include "cli/machine_weights.h"
#include "emulator/linearity.h"
#include "ir/machine/occupancy.h"
#include "ir/machine/registers.h"
#include "launch/signature.h"

#include <algorithm>
#include <cctype>
#include <ctime>
#include <functional>
#include <map>
#include <memory>

namespace ptxrewrite::cli {
namespace {

using emulator::WorkCount;

constexpr std::array<TechniqueInfo, technique_count> infos = {{
    {"warp", "same scalars in all lanes of the warp", "darsie Fig. 1"},
    {"block", "same vectors in all warps of the block", "darsie Fig. 1"},
    {"grid", "same vectors in all warps of the grid", "darsie Fig. 1"},
    {"uniform", "of block: all sources uniform", "darsie Fig. 2"},
    {"affine", "of block: sources affine in the thread index", "darsie Fig. 2"},
    {"unstructured", "of block: any other sources", "darsie Fig. 2"},
    {"UV", "uniform ones, reused at issue; no memory operations", "darsie 5"},
    {"DAC-IDEAL", "affine ones, once per batch of resident blocks", "darsie 5"},
    {"WP", "one thread instruction where a warp's sources agree", "r2d2 2.2"},
    {"TB", "none where an earlier warp of the block has done the same", "r2d2 2.2"},
    {"LN", "parts of linear values only", "r2d2 2.2"},
    {"scalar", "on the scalar pipeline, the rest is left", "composite 4"},
    {"sliced", "16-bit ones in pairs, all partners found", "composite 5"},
    {"sliced-chance", "16-bit ones in pairs, partners met by chance", "composite 5"},
}};

WorkCount weighed(const WorkCount& count, uint64_t weight) {
  return {count.warps * weight, count.lanes * weight};
}
WorkCount less(const WorkCount& from, const WorkCount& what) {
  return {from.warps - what.warps, from.lanes - what.lanes};
}

// One static instruction under all techniques.
class RowSums {
public:
  RowSums(StudyResult& result, const WorkCount& baseline, uint64_t weight)
      : result_(result), baseline_(baseline), weight_(weight) {
    result_.baseline += weighed(baseline, weight);
  }
  // `found` is redundant, `once` of it is executed all the same.
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

// The observers of one launch, and what it is to be counted by.
struct ObservedLaunch {
  ObservedLaunch(emulator::ValueStudyOptions options, emulator::DatapathOptions datapath_options,
                 const ir::Function& entry, const emulator::LaunchRequest& request)
      : datapath(std::move(datapath_options)), values(with_listener(std::move(options))), linear(entry, request),
        multi_dimensional(request.block.y > 1 || request.block.z > 1) {}

  emulator::DatapathStudy datapath;
  emulator::ValueStudy values;
  emulator::LinearParts linear;
  bool multi_dimensional = false;
  double blocks_per_sample = 1;

private:
  emulator::ValueStudyOptions with_listener(emulator::ValueStudyOptions options) {
    options.listener = &datapath;
    return options;
  }
};

// Work for the units that the scalar pipeline has, too (composite-hpca13 §3.1: conversions run on them).
emulator::DatapathInstruction datapath_instruction(const ir::Function& function, ir::InstructionId id,
                                                   const ir::InstructionCost& cost) {
  const uint64_t weight = uint64_t(cost.weight) + cost.uniform;
  const ir::Form& form = function.form_of(id);
  const bool integer = cost.pipe == ir::Pipe::integer || cost.pipe == ir::Pipe::uniform || cost.pipe == ir::Pipe::issue;
  const bool moves = form.opcode == ir::Opcode::cvt || form.opcode == ir::Opcode::mov;
  const bool computes = form.effects.pure();
  return {weight, computes && (integer || moves || cost.pipe == ir::Pipe::fp32), computes && integer};
}

// From the blocks that were looked at to all: by how often all blocks together have executed the instruction.
class Scale {
public:
  Scale(const WorkCount& looked_at, const WorkCount& all) : looked_at_(looked_at), all_(all) {}
  WorkCount operator()(const WorkCount& count) const {
    return {scaled(count.warps, looked_at_.warps, all_.warps), scaled(count.lanes, looked_at_.lanes, all_.lanes)};
  }
  emulator::Redundant operator()(const emulator::Redundant& count) const {
    return {(*this)(count.all), (*this)(count.once)};
  }

private:
  static uint64_t scaled(uint64_t count, uint64_t looked_at, uint64_t all) {
    if (looked_at == all || looked_at == 0) return count;
    return static_cast<uint64_t>(
        static_cast<double>(count) * static_cast<double>(all) / static_cast<double>(looked_at) + 0.5);
  }
  WorkCount looked_at_, all_;
};

// `counters`: of all blocks.
void count_row(const emulator::ValueRow& row, const emulator::InstructionCounters& counters,
               const ObservedLaunch& launch, uint32_t number, uint64_t weight, StudyResult& result) {
  using enum Technique;
  const WorkCount baseline{counters.executions, counters.lanes};
  const Scale scale({row.executed.warps + row.guarded_off, row.executed.lanes}, baseline);
  RowSums sums(result, baseline, weight);
  if (launch.multi_dimensional) result.multi_dimensional += weighed(baseline, weight);
  const WorkCount none;
  // A warp instruction stays one, of a single thread.
  auto one_thread_each = [](const WorkCount& count) { return WorkCount{count.warps, count.warps}; };
  // Stores, branches and barriers are executed as they are.
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
  // Once is once, however many blocks there are.
  const WorkCount in_grid = scale(row.grid.all);
  sums.add(grid, in_grid, in_grid.warps ? row.grid.once : none);
  sums.add(reuse, scale(row.reused), none);
  const emulator::Redundant on_affine_unit = scale(row.affine);
  sums.add(dac_ideal, on_affine_unit.all, {on_affine_unit.once.warps, on_affine_unit.once.warps});

  emulator::LinearityRow parts;
  parts.executions = counters.executions - counters.guarded_off;
  parts.lanes = counters.lanes;
  launch.linear.finish(parts, number, row.trips);
  const WorkCount found = parts.linear ? WorkCount{0, parts.lanes} : none;
  sums.add(linear, found, parts.linear ? WorkCount{0, parts.needed} : none);

  // A scalar instruction is one thread instruction, beside the SIMT pipeline.
  const std::vector<WorkCount>& scalar_executions = launch.datapath.scalar_executions();
  const WorkCount on_scalar = number < scalar_executions.size() ? scale(scalar_executions[number]) : none;
  sums.add(scalar, on_scalar, {0, on_scalar.warps});
}

// Pairs of warp instructions take one turn; threads stay as they are.
// `factor`: from the blocks that were looked at to all.
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

// Looks on at one launch after the other.
class Observers {
public:
  Observers(const ir::Module& module, const ir::Machine& machine, uint64_t sample)
      : module_(module), machine_(machine), sample_(sample), weights_(machine) {
    result_.rows[static_cast<size_t>(Technique::linear)].counts_warps = false;
  }

  emulator::Observer* next(const emulator::LaunchRequest& request) {
    const ir::Function* entry = launch::find_kernel(module_, request.kernel);
    if (!entry) return nullptr;
    const auto threads = static_cast<uint32_t>(request.block.count());
    auto resident = [this, entry, threads](uint64_t shared_bytes) -> uint64_t {
      return ir::occupancy(machine_, {threads, registers_of(*entry), static_cast<uint32_t>(shared_bytes)}).blocks;
    };
    auto instruction = [this](const ir::Function& function, ir::InstructionId id) {
      return datapath_instruction(function, id, weights_.lowering(function).cost(id));
    };
    running_ = std::make_unique<ObservedLaunch>(
        emulator::ValueStudyOptions{.resident_blocks = resident, .listener = nullptr, .sample = sample_},
        emulator::DatapathOptions{.resident_blocks = resident, .instruction = instruction}, *entry, request);
    const uint64_t blocks = request.grid.count(), looked_at = emulator::sampled_blocks(blocks, sample_);
    running_->blocks_per_sample = static_cast<double>(blocks) / static_cast<double>(looked_at);
    result_.blocks += blocks;
    result_.blocks_looked_at += looked_at;
    return &running_->values;
  }

  // The launch is over; `counters` are of all its blocks.
  void finish(const emulator::Counters& counters) {
    if (!running_) return;
    const std::vector<emulator::ValueRow>& rows = running_->values.rows();
    std::map<const ir::Function*, const emulator::FunctionCounters*> counted;
    for (const emulator::FunctionCounters& function : counters.functions)
      counted[function.source] = &function;
    const WorkCount before = result_.baseline;
    for (uint32_t number = 0; number < rows.size(); ++number) {
      const emulator::ValueRow& row = rows[number];
      const auto function = counted.find(row.function);
      if (!row.function || function == counted.end()) continue;
      const emulator::InstructionCounters& all = function->second->instructions[row.instruction.index()];
      if (all.executions) count_row(row, all, *running_, number, weights_(*row.function, row.instruction), result_);
    }
    count_slices(running_->datapath.counts(), running_->blocks_per_sample, less(result_.baseline, before), result_);
    result_.forgotten_instances += running_->values.forgotten_instances();
    running_.reset();
  }

  StudyResult take() { return std::move(result_); }

private:
  uint32_t registers_of(const ir::Function& kernel) {
    auto [place, is_new] = registers_.try_emplace(&kernel);
    if (is_new) place->second = ir::register_need(kernel, machine_.compute_capability).registers;
    return place->second;
  }

  const ir::Module& module_;
  const ir::Machine& machine_;
  uint64_t sample_;
  MachineWeights weights_;
  std::map<const ir::Function*, uint32_t> registers_;
  std::unique_ptr<ObservedLaunch> running_;
  StudyResult result_;
};

// One pass over the plan, for its launches alone.
struct Pass {
  double seconds = 0; // of the processor, in launches
  std::optional<emulator::Failure> failure;
};

double processor_seconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

// `finished` is called after each launch.
Result<Pass> run_launches(const LaunchInput& input, const EmulatorOptions& options, ErrorPlace& place,
                          const std::function<void(const SessionRun&)>& finished) {
  place = ErrorPlace::launch_file;
  SessionOptions session;
  session.error_place = &place;
  std::unique_ptr<Device> device = make_emulator_device(options);
  auto memory = PlanOnDevice::make(input.plan, *device, session);
  if (!memory) return memory.error();
  if (Status status = device->load(*input.module); !status) {
    place = ErrorPlace::module;
    return status.error();
  }
  if (Status status = (*memory)->fill_variables(*input.module); !status) return status.error();
  Pass pass;
  for (size_t i = 0; i < input.plan.launches.size() && !pass.failure; ++i) {
    const double start = processor_seconds();
    Result<SessionRun> run = (*memory)->launch(i, *input.module, nullptr);
    if (!run) return run.error();
    if (!run->failure) finished(*run);
    pass.seconds += processor_seconds() - start;
    pass.failure = std::move(run->failure);
  }
  return pass;
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
  return *this;
}

StudyResult& StudyResult::operator+=(const StudyResult& other) {
  baseline += other.baseline;
  for (size_t i = 0; i < technique_count; ++i)
    rows[i] += other.rows[i];
  multi_dimensional += other.multi_dimensional;
  datapath += other.datapath;
  blocks += other.blocks;
  blocks_looked_at += other.blocks_looked_at;
  forgotten_instances += other.forgotten_instances;
  seconds += other.seconds;
  plain_seconds += other.plain_seconds;
  return *this;
}

Result<StudyRun> study(const LaunchInput& input, const StudySettings& settings, ErrorPlace& place) {
  EmulatorOptions options;
  options.host_threads = 1;
  options.machine = &settings.machine;
  StudyRun run;
  double plain_seconds = 0;
  if (settings.measure_cost) {
    Result<Pass> plain = run_launches(input, options, place, [](const SessionRun&) {});
    if (!plain) return plain.error();
    plain_seconds = plain->seconds;
  }
  Observers observers(*input.module, settings.machine, settings.sample);
  options.observer = [&](const emulator::LaunchRequest& request) { return observers.next(request); };
  Result<Pass> studied =
      run_launches(input, options, place, [&](const SessionRun& one) { observers.finish(one.counters); });
  if (!studied) return studied.error();
  run.failure = std::move(studied->failure);
  run.result = observers.take();
  run.result.seconds = studied->seconds;
  run.result.plain_seconds = plain_seconds;
  return run;
}

} // namespace ptxrewrite::cli
