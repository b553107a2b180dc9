#include "evaluate/score/score_regless.h"

#include "evaluate/common/rewrite.h"
#include "evaluate/study/study_launches.h"

#include <fmt/format.h>

#include <algorithm>

namespace ptxrewrite::evaluate {
namespace {

std::string passes_for(const ir::Machine& machine, uint32_t entries) {
  const transforms::RegLessOptions options = regless_options(machine, entries);
  return fmt::format("regless(machine={},live={},bank={})", options.compute_capability, options.regions.live,
                     options.regions.per_bank);
}

// Numbers of a function's instructions in a recording; UINT32_MAX if not recorded.
std::vector<uint32_t> numbers_of(const ir::Function& kernel, const timing::Recording& recording) {
  std::vector<uint32_t> numbers(kernel.instructions.size(), UINT32_MAX);
  for (uint32_t number = 0; number < recording.sites.size(); ++number)
    if (recording.sites[number].function == &kernel) numbers[recording.sites[number].instruction.index()] = number;
  return numbers;
}

const emulator::FunctionCounters* counters_of(const ir::Function& kernel, const timing::ModelInput& input) {
  const auto& functions = input.counters.functions;
  const auto found = std::ranges::find(functions, &kernel, &emulator::FunctionCounters::source);
  return found == functions.end() ? nullptr : &*found;
}

double share(uint64_t part, uint64_t whole) {
  return whole ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

void set_counts(const emulator::StagingCounters& counts, timing::StagingRun& run) {
  using emulator::PreloadSource;
  const auto preloads = [&](PreloadSource source) {
    return static_cast<double>(counts.preloads[static_cast<size_t>(source)]);
  };
  run.metadata = static_cast<double>(counts.metadata);
  run.l1_loads = static_cast<double>(counts.l1_loads);
  run.l1_stores = static_cast<double>(counts.l1_stores);
  run.read_below_l1 = static_cast<double>(counts.read_below_l1);
  run.written_below_l1 = static_cast<double>(counts.below_l1 - counts.read_below_l1);
  run.entry_reads = static_cast<double>(counts.entry_reads);
  run.entry_writes = static_cast<double>(counts.entry_writes);
  run.tag_lookups = static_cast<double>(counts.tag_lookups);
  run.compressor_lookups =
      preloads(PreloadSource::compressor) + preloads(PreloadSource::l1) + preloads(PreloadSource::memory);
  run.compressor_reads = preloads(PreloadSource::compressor);
  run.compressor_writes = static_cast<double>(counts.compressed);
}

timing::StagedRegion staged_region(const emulator::RegionRuns& runs) {
  using emulator::PreloadSource;
  const auto slowest = [&](PreloadSource source) {
    return share(runs.slowest[static_cast<size_t>(source)], runs.runs);
  };
  timing::StagedRegion region;
  region.from_compressor = slowest(PreloadSource::compressor);
  region.from_l1 = slowest(PreloadSource::l1);
  region.from_memory = slowest(PreloadSource::memory);
  region.lookups = share(runs.lookups, runs.runs);
  region.operand_waits = share(runs.operand_waits, runs.runs);
  return region;
}

} // namespace

transforms::RegLessOptions regless_options(const ir::Machine& machine, uint32_t entries) {
  constexpr uint32_t most = 255; // registers per thread
  transforms::RegLessOptions options;
  options.compute_capability = machine.compute_capability;
  options.regions.live = std::clamp(entries / 16, 1u, most);
  options.regions.per_bank = std::clamp(entries / 32, 1u, most);
  return options;
}

std::vector<StagingConfiguration> paper_configurations() {
  const uint32_t lines = emulator::StagingSettings().compressor_lines;
  return {{"RegLess", 512, lines}, {"RegLess without compressor", 512, 0}};
}

Result<std::unique_ptr<RegLessScorer>> RegLessScorer::make(const LaunchInput& input, const ir::Machine& machine,
                                                           std::vector<StagingConfiguration> configurations,
                                                           cuda::ErrorPlace& place) {
  std::unique_ptr<RegLessScorer> scorer(new RegLessScorer(machine, std::move(configurations)));
  if (Status status = scorer->run(input, place); !status) return status.error();
  return scorer;
}

Status RegLessScorer::run(const LaunchInput& input, cuda::ErrorPlace& place) {
  std::map<uint32_t, std::unique_ptr<ir::Module>> annotated; // by entries
  for (const StagingConfiguration& configuration : configurations_) {
    std::unique_ptr<ir::Module>& module = annotated[configuration.entries];
    if (!module) {
      place = cuda::ErrorPlace::module;
      Result<Rewritten> rewritten =
          rewrite(*input.module, passes_for(machine_, configuration.entries), transforms::OutputForm::annotated, {});
      if (!rewritten) return rewritten.error();
      if (!rewritten->module) return Error{"no kernel of it can be annotated for RegLess", {}};
      module = std::move(rewritten->module);
    }
    cuda::EmulatorOptions options;
    options.host_threads = 1;
    options.machines.set(emulator::StagingSettings{.entries = configuration.entries,
                                                   .compressor_lines = configuration.compressor_lines,
                                                   .multiprocessors = machine_.sms});
    std::vector<emulator::StagingCounters>& runs = runs_.emplace_back();
    Result<LaunchPass> pass = run_launches(input, *module, options, place, [&](const cuda::SessionRun& run) {
      runs.push_back(run.machines.get<emulator::StagingCounters>());
    });
    if (!pass) return pass.error();
    if (pass->failure) {
      failure_ = std::move(pass->failure);
      return {};
    }
  }
  return {};
}

emulator::StagingCounters RegLessScorer::total(size_t configuration) const {
  emulator::StagingCounters sum;
  if (configuration < runs_.size())
    for (emulator::StagingCounters counters : runs_[configuration]) {
      counters.by_region.clear(); // counters of different kernels cannot be added
      sum += counters;
    }
  return sum;
}

std::vector<std::string> RegLessScorer::names() const {
  std::vector<std::string> names;
  for (const StagingConfiguration& configuration : configurations_)
    names.push_back(configuration.name);
  for (std::string_view name : {rfv_name, rfh_name, no_file_name})
    names.emplace_back(name);
  return names;
}

const transforms::RegLessPlan* RegLessScorer::plan_of(const ir::Function& kernel, uint32_t entries) {
  const auto [place, is_new] = plans_.try_emplace({&kernel, entries});
  if (is_new)
    if (Result<transforms::RegLessPlan> plan = transforms::plan_regless(kernel, regless_options(machine_, entries)))
      place->second = std::move(*plan);
  return place->second ? &*place->second : nullptr;
}

timing::StagingRun RegLessScorer::staging_run(size_t configuration, size_t launch, const ir::Function& kernel,
                                              const timing::Recording& recording) {
  const StagingConfiguration& settings = configurations_[configuration];
  timing::StagingRun run;
  run.entries = settings.entries;
  run.compressor_lines = settings.compressor_lines;
  const transforms::RegLessPlan* plan = plan_of(kernel, settings.entries);
  // A kernel that fails on the machine ends all runs: later configurations have none.
  if (!plan || configuration >= runs_.size() || launch >= runs_[configuration].size()) return run;
  const emulator::StagingCounters& counts = runs_[configuration][launch];
  set_counts(counts, run);
  const std::vector<uint32_t> numbers = numbers_of(kernel, recording);
  for (size_t i = 0; i < plan->regions.size(); ++i) {
    const ir::Region& region = plan->regions[i];
    run.regions.push_back(i < counts.by_region.size() ? staged_region(counts.by_region[i]) : timing::StagedRegion{});
    run.regions.back().banks = region.banks;
    for (uint32_t place = region.begin; place < region.end; ++place) {
      const ir::InstructionId id = plan->program.blocks[region.block].instructions[place].id;
      if (id.index() < numbers.size() && numbers[id.index()] != UINT32_MAX)
        run.regions.back().sites.push_back(numbers[id.index()]);
    }
  }
  return run;
}

timing::RenamedFile RegLessScorer::renamed_file(const ir::Function& kernel, const timing::ModelInput& input,
                                                bool is_new) {
  const timing::Recording& recording = input.recording;
  timing::RenamedFile file;
  file.registers = machine_.occupancy.registers / 32 / 2;
  file.mapped.resize(recording.sites.size());
  const transforms::RegLessPlan* plan = plan_of(kernel, emulator::StagingSettings().entries);
  if (!plan) return file;
  const std::vector<uint32_t> numbers = numbers_of(kernel, recording);
  const std::vector<emulator::RenamedRow> rows =
      emulator::renamed_registers(plan->program, ir::WarpLiveness(plan->program));
  if (const emulator::FunctionCounters* counters = counters_of(kernel, input); counters && is_new)
    comparators_.renaming += emulator::count_renaming(rows, *counters);
  uint16_t mapped = 0; // for instructions without machine registers
  for (size_t i = 0; i < std::min(rows.size(), numbers.size()); ++i) {
    if (rows[i].mapped) mapped = rows[i].mapped;
    if (numbers[i] != UINT32_MAX) file.mapped[numbers[i]] = mapped;
  }
  return file;
}

timing::HierarchicalFile RegLessScorer::hierarchical_file(const ir::Function& kernel, const timing::ModelInput& input,
                                                          bool is_new) {
  const timing::Recording& recording = input.recording;
  timing::HierarchicalFile file;
  file.sites.resize(recording.sites.size());
  const transforms::RegLessPlan* plan = plan_of(kernel, emulator::StagingSettings().entries);
  if (!plan) return file;
  emulator::HierarchySettings settings;
  settings.operand_entries = file.operand_entries;
  const std::array<double, timing::register_levels> shares = timing::energy_of_levels(machine_, file);
  for (size_t level = 0; level < shares.size(); ++level) {
    settings.read_energy[level] = timing::register_read_pj * shares[level];
    settings.write_energy[level] = timing::register_write_pj * shares[level];
  }
  const ir::Lowering& lowering = weights_.lowering(kernel);
  const auto is_private = [&](ir::InstructionId id) {
    const ir::Pipe pipe = lowering.cost(id).pipe;
    return pipe == ir::Pipe::integer || pipe == ir::Pipe::fp32 || pipe == ir::Pipe::issue;
  };
  const std::vector<emulator::HierarchyRow> rows =
      emulator::place_in_hierarchy(plan->program, ir::WarpLiveness(plan->program), settings, is_private);
  if (const emulator::FunctionCounters* counters = counters_of(kernel, input); counters && is_new)
    comparators_.hierarchy += emulator::count_hierarchy(rows, *counters);
  const std::vector<uint32_t> numbers = numbers_of(kernel, recording);
  for (size_t i = 0; i < std::min(rows.size(), numbers.size()); ++i)
    if (numbers[i] != UINT32_MAX)
      file.sites[numbers[i]] = {rows[i].reads, rows[i].writes, rows[i].fills, rows[i].registers_read,
                                rows[i].registers_written};
  return file;
}

std::vector<timing::Technique> RegLessScorer::techniques(size_t launch, const ir::Function& kernel,
                                                         const timing::ModelInput& input) {
  std::vector<timing::Technique> techniques;
  const bool is_new = counted_.insert(launch).second; // on another machine the accesses are the same
  for (size_t i = 0; i < configurations_.size(); ++i)
    techniques.push_back(timing::regless_technique(input, staging_run(i, launch, kernel, input.recording),
                                                   &caches_[{&input.machine, i}]));
  techniques.push_back(timing::renamed_technique(input, renamed_file(kernel, input, is_new)));
  techniques.push_back(timing::hierarchical_technique(input, hierarchical_file(kernel, input, is_new)));
  techniques.push_back(timing::without_register_energy(input));
  return techniques;
}

} // namespace ptxrewrite::evaluate
