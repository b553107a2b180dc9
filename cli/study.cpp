#include "cli/study.h"

#include "cli/machine_weights.h"
#include "emulator/linearity.h"
#include "ir/machine/occupancy.h"
#include "ir/machine/registers.h"
#include "launch/signature.h"

#include <algorithm>
#include <cctype>
#include <ctime>
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

void count_row(const emulator::ValueRow& row, const ObservedLaunch& launch, uint32_t number, uint64_t weight,
               StudyResult& result) {
  using enum Technique;
  const WorkCount baseline{row.executed.warps + row.guarded_off, row.executed.lanes};
  RowSums sums(result, baseline, weight);
  if (launch.multi_dimensional) result.multi_dimensional += weighed(baseline, weight);
  const WorkCount none;
  // A warp instruction stays one, of a single thread.
  auto one_thread_each = [](const WorkCount& count) { return WorkCount{count.warps, count.warps}; };
  // Stores, branches and barriers are executed as they are.
  sums.add(within_warps, row.has_results ? row.uniform : none, row.has_results ? one_thread_each(row.uniform) : none);
  sums.add(within_blocks, row.has_results ? row.repeated : none, none);
  sums.add(warp, row.warp_redundant, one_thread_each(row.warp_redundant));
  emulator::Redundant in_block;
  for (size_t kind = 0; kind < emulator::redundancy_kinds; ++kind) {
    sums.add(static_cast<Technique>(static_cast<size_t>(uniform) + kind), row.block[kind].all, row.block[kind].once);
    in_block += row.block[kind];
  }
  sums.add(block, in_block.all, in_block.once);
  sums.add(grid, row.grid.all, row.grid.once);
  sums.add(reuse, row.reused, none);
  sums.add(dac_ideal, row.affine.all, row.affine.once);

  emulator::LinearityRow parts;
  parts.executions = row.executed.warps;
  parts.lanes = row.executed.lanes;
  launch.linear.finish(parts, number, row.trips);
  const WorkCount found = parts.linear ? WorkCount{0, parts.lanes} : none;
  sums.add(linear, found, parts.linear ? WorkCount{0, parts.needed} : none);

  // A scalar instruction is one thread instruction, beside the SIMT pipeline.
  const std::vector<WorkCount>& scalar_executions = launch.datapath.scalar_executions();
  const WorkCount on_scalar = number < scalar_executions.size() ? scalar_executions[number] : none;
  sums.add(scalar, on_scalar, {0, on_scalar.warps});
}

// Pairs of warp instructions take one turn; threads stay as they are.
void count_slices(const emulator::DatapathCounts& counts, const WorkCount& baseline, StudyResult& result) {
  auto set = [&](Technique technique, uint64_t paired) {
    StudyRow& row = result.rows[static_cast<size_t>(technique)];
    row.left += {baseline.warps - paired / 2, baseline.lanes};
    row.redundant += {paired, 0};
  };
  set(Technique::sliced, counts.paired);
  set(Technique::sliced_by_chance, static_cast<uint64_t>(counts.paired_by_chance));
  result.datapath += counts;
}

// Looks on at one launch after the other.
class Observers {
public:
  Observers(const ir::Module& module, const ir::Machine& machine)
      : module_(module), machine_(machine), weights_(machine) {
    result_.rows[static_cast<size_t>(Technique::linear)].counts_warps = false;
  }

  emulator::Observer* next(const emulator::LaunchRequest& request) {
    finish();
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
        emulator::ValueStudyOptions{.resident_blocks = resident},
        emulator::DatapathOptions{.resident_blocks = resident, .instruction = instruction}, *entry, request);
    return &running_->values;
  }

  void finish() {
    if (!running_) return;
    const std::vector<emulator::ValueRow>& rows = running_->values.rows();
    const WorkCount before = result_.baseline;
    for (uint32_t number = 0; number < rows.size(); ++number)
      if (rows[number].function)
        count_row(rows[number], *running_, number, weights_(*rows[number].function, rows[number].instruction), result_);
    count_slices(running_->datapath.counts(), less(result_.baseline, before), result_);
    result_.forgotten_instances += running_->values.forgotten_instances();
    running_.reset();
  }

  StudyResult take() {
    finish();
    return std::move(result_);
  }

private:
  uint32_t registers_of(const ir::Function& kernel) {
    auto [place, is_new] = registers_.try_emplace(&kernel);
    if (is_new) place->second = ir::register_need(kernel, machine_.compute_capability).registers;
    return place->second;
  }

  const ir::Module& module_;
  const ir::Machine& machine_;
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

Result<Pass> run_launches(const LaunchInput& input, const EmulatorOptions& options, ErrorPlace& place) {
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
    pass.seconds += processor_seconds() - start;
    if (!run) return run.error();
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
  forgotten_instances += other.forgotten_instances;
  seconds += other.seconds;
  plain_seconds += other.plain_seconds;
  return *this;
}

Result<StudyRun> study(const LaunchInput& input, const ir::Machine& machine, bool measure_cost, ErrorPlace& place) {
  EmulatorOptions options;
  options.host_threads = 1;
  options.machine = &machine;
  StudyRun run;
  double plain_seconds = 0;
  if (measure_cost) {
    Result<Pass> plain = run_launches(input, options, place);
    if (!plain) return plain.error();
    plain_seconds = plain->seconds;
  }
  Observers observers(*input.module, machine);
  options.observer = [&](const emulator::LaunchRequest& request) { return observers.next(request); };
  Result<Pass> studied = run_launches(input, options, place);
  if (!studied) return studied.error();
  run.failure = std::move(studied->failure);
  const double start = processor_seconds();
  run.result = observers.take();
  run.result.seconds = studied->seconds + processor_seconds() - start;
  run.result.plain_seconds = plain_seconds;
  return run;
}

} // namespace ptxrewrite::cli
