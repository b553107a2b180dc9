#include "evaluate/score/score.h"

#include "emulator/machines/dac/affine_counters.h"
#include "emulator/machines/darsie/skip_counters.h"
#include "emulator/timing/memory_system.h"
#include "evaluate/common/rewrite.h"
#include "evaluate/launches/machine_weights.h"
#include "evaluate/score/affine_technique.h"
#include "evaluate/score/linear_technique.h"
#include "evaluate/score/score_comparators.h"
#include "evaluate/score/score_regless.h"
#include "evaluate/study/study_launches.h"
#include "ir/machine/figures/figures.h"
#include "ir/machine/figures/occupancy.h"
#include "ir/machine/registers/registers.h"
#include "launch/signature.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <functional>
#include <iterator>
#include <list>
#include <map>
#include <memory>

namespace ptxrewrite::evaluate {
namespace {

double processor_seconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

// Register counts of kernels: from ptxas if it supports the target, otherwise estimated.
class RegisterCounts {
public:
  RegisterCounts(const ir::Module& module, const ir::Machine& machine, bool run_ptxas) : machine_(machine) {
    if (!run_ptxas || machine.compute_capability < oldest_of_ptxas) return;
    const std::string architecture = "sm_" + std::to_string(machine.compute_capability);
    if (Result<ir::FiguresByFunction> figures = ir::machine_figures(module.source.text(), architecture))
      figures_ = std::move(*figures);
  }
  struct Count {
    uint32_t registers = 0;
    bool by_ptxas = false;
  };
  const Count& of(const ir::Module& module, const ir::Function& kernel) {
    if (const auto known = counts_.find(&kernel); known != counts_.end()) return known->second;
    Count count;
    if (const auto found = figures_.find(module.text(kernel.name)); found != figures_.end())
      count = {found->second.registers, true};
    else
      count = {ir::register_need(kernel, machine_.compute_capability).registers, false};
    return counts_.emplace(&kernel, count).first->second;
  }

private:
  static constexpr uint32_t oldest_of_ptxas = 75; // of CUDA 13
  const ir::Machine& machine_;
  ir::FiguresByFunction figures_;
  std::map<const ir::Function*, Count> counts_; // of the kernels queried
};

// The SMs on which the first version was sampled, by launch of the plan: the other versions use the same ones, so that
// different samples do not appear as differences between versions.
struct LookedAt {
  uint64_t blocks = 0;
  std::vector<uint32_t> sms;
};

// State that launches leave for later ones on the same machine.
struct MachineState {
  timing::CacheState caches;
  struct KnownCode {
    std::vector<timing::Site> sites;
    timing::MachineCode code;
  };
  std::list<KnownCode> codes;
};

// State of one version of a program's modules.
struct VersionMemory {
  explicit VersionMemory(const ScoreSettings& settings) : weights(settings.machine, settings.experiment.assembler) {}

  RegisterCounts& registers_of(const ir::Module& module, const ScoreSettings& settings) {
    std::unique_ptr<RegisterCounts>& counts = registers[&module];
    if (!counts) counts = std::make_unique<RegisterCounts>(module, settings.machine, settings.run_ptxas);
    return *counts;
  }

  MachineWeights weights;
  std::vector<MachineState> states;         // by machine: the first one is the unchanged machine
  std::map<std::string, uint64_t> launches; // so far, by kernel
  std::map<const ir::Module*, std::unique_ptr<RegisterCounts>> registers;
};

} // namespace

class ScoreSession {
public:
  VersionMemory& version(const std::string& name, const ScoreSettings& settings) {
    std::unique_ptr<VersionMemory>& memory = versions_[name];
    if (!memory) memory = std::make_unique<VersionMemory>(settings);
    return *memory;
  }
  Result<const Rewritten*> rewritten(const ir::Module& module, const std::string& passes, transforms::OutputForm form) {
    auto [place, is_new] = rewritten_.try_emplace({&module, passes});
    if (is_new) {
      place->second.second = Error{"the passes failed", {}}; // replaced if they succeed
      Result<Rewritten> made = rewrite(module, passes, form, {});
      if (made) {
        place->second.first = *std::move(made);
        place->second.second.reset();
      } else
        place->second.second = made.error();
    }
    if (place->second.second) return *place->second.second;
    return &place->second.first;
  }

private:
  std::map<std::string, std::unique_ptr<VersionMemory>> versions_;
  std::map<std::pair<const ir::Module*, std::string>, std::pair<Rewritten, std::optional<Error>>> rewritten_;
};

std::shared_ptr<ScoreSession> make_score_session() {
  return std::make_shared<ScoreSession>();
}

namespace {

// Times one version of a module, launch by launch.
class Scorer {
public:
  Scorer(const ir::Module& module, const ScoreSettings& settings, const launch::LaunchPlan& plan, VersionMemory& memory,
         std::vector<LookedAt>& looked_at, ScoredVersion& version)
      : module_(module), settings_(settings), machine_(settings.machine), plan_(plan), looked_at_(looked_at),
        memory_(memory), version_(version) {}

  // Versions timed with the same recording, each by a technique of the model, in the order of `versions`.
  using Derive = std::function<std::vector<timing::Technique>(const cuda::SessionRun&, const ir::Function& kernel,
                                                              const timing::ModelInput&)>;
  void derive(Derive techniques, std::vector<ScoredVersion>& versions) {
    derive_ = std::move(techniques);
    derived_ = &versions;
  }

  // Sets the instructions that each launch of the plan skips on DARSIE's machine.
  void set_skips(std::vector<emulator::SkipCounters> skips) { skips_ = std::move(skips); }

  // Returns the observer for the next launch. Fewer blocks are sampled per launch if a kernel is launched many times.
  emulator::Observer* next(const std::string& kernel) {
    timing::SampleRules rules;
    if (++memory_.launches[kernel] > few_launches) rules.few_blocks = few_blocks_of_many_launches;
    timing::RecorderOptions options{.port = timing::port_law(machine_),
                                    .sms = machine_.sms,
                                    .everything = settings_.exact,
                                    .sampled = settings_.sampled,
                                    .textures = machine_.memory.l1_kib.known,
                                    .rules = rules};
    if (const size_t launch = launched_++; launch < looked_at_.size()) {
      options.chosen_of = looked_at_[launch].blocks;
      options.chosen_sms = looked_at_[launch].sms;
    }
    recorder_ = recorder_ ? std::make_unique<timing::Recorder>(options, std::move(*recorder_))
                          : std::make_unique<timing::Recorder>(options);
    return recorder_.get();
  }

  void finish(const cuda::SessionRun& run) {
    const double start = processor_seconds();
    timing::Recording recording = recorder_->finish();
    if (looked_at_.size() == run.launch) looked_at_.push_back({recording.blocks, recording.sms});
    if (settings_.experiment.recording) settings_.experiment.recording(recording);
    const launch::Launch& planned = plan_.launches[run.launch];
    const ir::Function* entry = launch::find_kernel(module_, run.entry);
    // DAC's machine holds as many warps as the original would (dac-isca17 4.1).
    const ir::Function* holder = entry->affine_stream ? launch::find_kernel(module_, planned.kernel) : entry;
    const RegisterCounts::Count registers =
        memory_.registers_of(module_, settings_).of(module_, holder ? *holder : *entry);
    const auto shared = static_cast<uint32_t>(recording.shared_bytes);
    const uint32_t resident = std::max(
        ir::occupancy(machine_, {static_cast<uint32_t>(planned.block.count()), registers.registers, shared}).blocks,
        1u);
    timing::Technique technique;
    if (run.launch < skips_.size()) add_skips(skips_[run.launch], run.counters, recording, technique);
    std::vector<MachineState>& states = memory_.states;
    states.resize(1 + settings_.changes.size());
    std::optional<emulator::Counters> scaled;
    if (settings_.sampled) scaled = timing::counts_of_all(run.counters, recording.blocks_run, recording.blocks);
    const emulator::Counters& counters = scaled ? *scaled : run.counters;
    const auto times = [&](const timing::TimedMachine& on, MachineState& state) {
      return times_on(on, state, {run, counters, *entry, recording, resident, technique});
    };
    const std::vector<Times> all = times({machine_, timing::launch_cost(machine_)}, states[0]);
    for (size_t i = 0; i < all.size(); ++i) {
      ScoredKernel& kernel = kernel_of(version_at(i), planned);
      if (kernel.launches == 0) {
        kernel.grid = planned.grid;
        kernel.block = planned.block;
        kernel.registers = registers.registers;
        kernel.registers_by_ptxas = registers.by_ptxas;
        kernel.shared_bytes = shared;
        kernel.first = all[i].time;
        kernel.clocks_if.resize(settings_.changes.size());
      }
      kernel.ptx_warp_instructions += counters.warp_instructions;
      kernel.ptx_thread_instructions += counters.thread_instructions;
      add(run, planned, all[i], kernel);
      add_sample(recording, kernel);
    }
    for (size_t change = 0; change < settings_.changes.size(); ++change) {
      const std::vector<Times> changed = times(settings_.changes[change], states[1 + change]);
      for (size_t i = 0; i < changed.size(); ++i)
        kernel_of(version_at(i), planned).clocks_if[change] += changed[i].time.clocks;
    }
    recorder_->reuse(std::move(recording));
    version_.model_seconds += processor_seconds() - start;
  }

private:
  static void add_skips(const emulator::SkipCounters& skips, const emulator::Counters& counters,
                        const timing::Recording& recording, timing::Technique& technique) {
    technique.sites.resize(recording.sites.size());
    // The instructions of the entry come first.
    for (const emulator::FunctionCounters& function : counters.functions)
      for (size_t i = 0; i < technique.sites.size(); ++i) {
        const timing::Site& site = recording.sites[i];
        if (site.function != function.source || i >= skips.skipped_by_instruction.size()) continue;
        if (const uint64_t all = function.instructions[site.instruction.index()].executions)
          technique.sites[i].skipped = static_cast<double>(skips.skipped_by_instruction[i]) / static_cast<double>(all);
      }
    technique.branch_syncs =
        static_cast<double>(skips.branch_syncs) / static_cast<double>(std::max<uint64_t>(recording.blocks, 1));
  }

  struct Times {
    timing::KernelTime time;
    ir::EventCounts events;
    timing::Estimates estimates;
  };
  struct OneLaunch {
    const cuda::SessionRun& run;
    const emulator::Counters& counters; // of all blocks, whether they ran or not
    const ir::Function& entry;
    const timing::Recording& recording;
    uint32_t resident;
    const timing::Technique& technique; // of the version itself
  };
  const timing::MachineCode& code_of(const ir::Machine& machine, const std::vector<timing::Site>& sites,
                                     MachineState& state) {
    for (const auto& known : state.codes)
      if (known.sites == sites) return known.code;
    timing::MachineCode code(
        machine, sites,
        [this](const ir::Function& function) -> const ir::Lowering& { return memory_.weights.lowering(function); },
        settings_.experiment.code);
    return state.codes.emplace_back(sites, std::move(code)).code;
  }

  // Times of the version, followed by those of its derived versions.
  std::vector<Times> times_on(const timing::TimedMachine& on, MachineState& state, const OneLaunch& one) {
    const timing::MachineCode& code = code_of(on.machine, one.recording.sites, state);
    timing::MemorySystem memory = timing::memory_system(on.machine, one.recording.shared_bytes, one.resident);
    memory.absent = code.absent_accesses();
    memory.cold = settings_.cold;
    const timing::Traffic traffic = timing::simulate(one.recording, memory, &state.caches);
    timing::ModelInput input{on.machine, one.counters, one.recording, traffic, code, one.resident};
    input.launch = on.launch;
    input.memory = &memory;
    std::vector<timing::Technique> techniques;
    if (!skips_.empty()) input.technique = &one.technique; // for derived versions
    if (derive_) techniques = derive_(one.run, one.entry, input);
    input.technique = nullptr;
    const auto* affine = one.run.machines.find<emulator::AffineCounters>();
    const bool as_two_streams = affine && affine->fallbacks == 0;
    techniques.insert(techniques.begin(), as_two_streams ? timing::affine_technique(input, *affine) : one.technique);
    timing::add_composite_energy(one.counters, techniques.front());
    for (timing::Technique& technique : techniques)
      timing::add_linear_phases(input, technique);
    if (settings_.experiment.technique)
      for (timing::Technique& technique : techniques)
        settings_.experiment.technique(technique, input);
    std::vector<Times> times;
    for (const timing::Technique& technique : techniques) {
      input.technique = &technique;
      timing::KernelTime time = timing::time_of(input);
      const timing::Estimates estimates = timing::estimates_of(input, time.demand);
      times.push_back({std::move(time), timing::events_of(input), estimates});
    }
    return times;
  }

  ScoredVersion& version_at(size_t i) { return i == 0 ? version_ : (*derived_)[i - 1]; }
  static ScoredKernel& kernel_of(ScoredVersion& version, const launch::Launch& planned) {
    for (ScoredKernel& known : version.kernels)
      if (known.kernel == planned.kernel) return known;
    version.kernels.push_back({});
    version.kernels.back().kernel = planned.kernel;
    return version.kernels.back();
  }

  void add(const cuda::SessionRun& run, const launch::Launch& planned, const Times& times, ScoredKernel& kernel) const {
    const timing::KernelTime& time = times.time;
    ++kernel.launches;
    for (size_t i = 0; i < ir::energy_event_count; ++i)
      kernel.events[i] += times.events[i];
    kernel.estimates.add(times.estimates);
    kernel.rewritten_launches += run.entry != planned.kernel;
    kernel.clocks += time.clocks;
    kernel.seconds += time.seconds;
    kernel.powered_seconds += time.seconds / settings_.slice;
    kernel.instructions += time.demand.instructions;
    kernel.dram_bytes += time.demand.dram_bytes();
    kernel.l2_bytes += time.demand.l2_bytes;
    for (size_t i = 0; i < timing::cause_count; ++i)
      kernel.stack[i] += time.stack[i];
  }

  static void add_sample(const timing::Recording& recording, ScoredKernel& kernel) {
    kernel.blocks += recording.blocks;
    kernel.blocks_run += recording.blocks_run;
    kernel.instruction_bound =
        std::max(kernel.instruction_bound, recording.instructions_by_block.bound(recording.blocks));
    kernel.sector_bound = std::max(kernel.sector_bound, recording.sectors_by_block.bound(recording.blocks));
  }

  static constexpr uint64_t few_launches = 2, few_blocks_of_many_launches = 4;
  const ir::Module& module_;
  const ScoreSettings& settings_;
  const ir::Machine& machine_;
  const launch::LaunchPlan& plan_;
  std::vector<LookedAt>& looked_at_;
  size_t launched_ = 0;
  VersionMemory& memory_;
  ScoredVersion& version_;
  std::unique_ptr<timing::Recorder> recorder_;
  std::vector<emulator::SkipCounters> skips_;
  Derive derive_;
  std::vector<ScoredVersion>* derived_ = nullptr;
};

// Versions derived from the recording of another one.
class Derived {
public:
  // Their names get the prefix.
  void add(std::unique_ptr<DerivedVersions> more, const std::string& prefix = {}) {
    for (const std::string& name : more->names())
      versions_.emplace_back().name = prefix + name;
    sources_.push_back(std::move(more));
  }
  // In the order of addition.
  ScoredVersion& version(size_t number) { return versions_[number]; }
  void look_on(Scorer& scorer) {
    if (sources_.empty()) return;
    scorer.derive(
        [this](const cuda::SessionRun& run, const ir::Function& kernel, const timing::ModelInput& input) {
          std::vector<timing::Technique> all;
          for (const auto& source : sources_)
            std::ranges::move(source->techniques(run.launch, kernel, input), std::back_inserter(all));
          return all;
        },
        versions_);
  }
  void move_to(std::vector<ScoredVersion>& versions) {
    for (ScoredVersion& version : versions_) {
      for (ScoredKernel& kernel : version.kernels)
        kernel.rewritten_launches = kernel.launches;
      versions.push_back(std::move(version));
    }
  }

private:
  std::vector<std::unique_ptr<DerivedVersions>> sources_;
  std::vector<ScoredVersion> versions_;
};

// Processor time of the run, the recording and the model, measured separately for one version.
struct Cost {
  double plain = HUGE_VAL, run = HUGE_VAL, model = HUGE_VAL;
};

// For short launches, the minimum over several rounds, alternating plain and observed runs, because other processes on
// the machine can take as long as the runs themselves.
Result<Cost> measured_cost(const LaunchInput& input, const ir::Module& module, const launch::Variants* variants,
                           const ScoreSettings& settings, const cuda::EmulatorOptions& options,
                           cuda::ErrorPlace& place) {
  constexpr unsigned most_rounds = 5;
  constexpr double long_enough = 0.5; // seconds
  Cost least;
  double all = 0;
  for (unsigned round = 0; round < most_rounds && all < long_enough; ++round) {
    Result<LaunchPass> plain = run_launches(
        input, module, options, place, [](const cuda::SessionRun&) {}, variants);
    if (!plain) return plain.error();
    ScoredVersion version;
    std::vector<LookedAt> looked_at;
    VersionMemory memory(settings);
    memory.registers_of(module, settings); // not part of the cost
    Scorer scorer(module, settings, input.plan, memory, looked_at, version);
    cuda::EmulatorOptions observed = options;
    observed.observer = [&](const emulator::LaunchRequest& request) { return scorer.next(request.kernel); };
    Result<LaunchPass> pass = run_launches(
        input, module, observed, place, [&](const cuda::SessionRun& run) { scorer.finish(run); }, variants);
    if (!pass) return pass.error();
    least.plain = std::min(least.plain, plain->seconds);
    least.run = std::min(least.run, pass->seconds - version.model_seconds);
    least.model = std::min(least.model, version.model_seconds);
    all += plain->seconds + pass->seconds;
  }
  return least;
}

Result<std::optional<emulator::Failure>> score_version(const LaunchInput& input, const ir::Module& module,
                                                       const launch::Variants* variants, const ScoreSettings& settings,
                                                       cuda::ErrorPlace& place, bool darsie,
                                                       std::vector<LookedAt>& looked_at, ScoreSession& session,
                                                       ScoredVersion& version, Derived& derived) {
  cuda::EmulatorOptions options;
  options.host_threads = 1;
  options.resident_blocks = 0;
  options.machine = &settings.machine;
  std::optional<Cost> cost;
  if (settings.measure_cost) {
    Result<Cost> measured = measured_cost(input, module, variants, settings, options, place);
    if (!measured) return measured.error();
    cost = *measured;
  }
  Scorer scorer(module, settings, input.plan, session.version(version.name, settings), looked_at, version);
  if (darsie) {
    cuda::EmulatorOptions skipping = options;
    const auto marks = settings.paper_marks ? emulator::SkipVariant::paper_marks : emulator::SkipVariant::standard;
    skipping.machines.set(emulator::SkipSettings{.variant = marks});
    std::vector<emulator::SkipCounters> skips;
    Result<LaunchPass> pass = run_launches(
        input, module, skipping, place,
        [&](const cuda::SessionRun& run) { skips.push_back(run.machines.get<emulator::SkipCounters>()); }, variants);
    if (!pass) return pass.error();
    if (pass->failure) return std::move(pass->failure);
    scorer.set_skips(std::move(skips));
  }
  derived.look_on(scorer);
  options.observer = [&](const emulator::LaunchRequest& request) { return scorer.next(request.kernel); };
  Result<LaunchPass> pass = run_launches(
      input, module, options, place, [&](const cuda::SessionRun& run) { scorer.finish(run); }, variants);
  if (!pass) return pass.error();
  version.functional_seconds = pass->seconds - version.model_seconds;
  if (cost) {
    version.functional_seconds = cost->run;
    version.model_seconds = cost->model;
    version.plain_seconds = cost->plain;
  }
  return std::move(pass->failure);
}

// Runs the requested comparators for a version; does nothing if none applies.
Result<std::optional<emulator::Failure>> add_comparators(const LaunchInput& input, const ir::Module& module,
                                                         const launch::Variants* variants,
                                                         const ScoreSettings& settings, cuda::ErrorPlace& place,
                                                         const std::string& prefix, Derived& derived,
                                                         bool beside_darsie = false) {
  std::vector<ComparatorInfo> wanted;
  for (const ComparatorInfo& info : comparator_infos())
    if (std::ranges::find(settings.comparators, info.option) != settings.comparators.end() &&
        (prefix.empty() || info.of_composites) && info.of_darsie == beside_darsie)
      wanted.push_back(info);
  if (wanted.empty()) return std::optional<emulator::Failure>();
  auto made = ComparatorScorer::make(input, module, variants, settings.machine, std::move(wanted), place);
  if (!made) return made.error();
  std::optional<emulator::Failure> failure = (*made)->failure();
  derived.add(*std::move(made), prefix);
  return failure;
}

} // namespace

std::vector<timing::TimedMachine> changed_machines(const ir::Machine& machine) {
  std::vector<timing::TimedMachine> changed;
  for (const timing::Guess& guess : timing::guesses_of(machine))
    for (double factor : {1 - guess_margin, 1 + guess_margin})
      changed.push_back(timing::with_figure(machine, guess, factor));
  return changed;
}

Result<ScoreRun> score(const LaunchInput& input, const ScoreSettings& settings, cuda::ErrorPlace& place) {
  ScoreRun run;
  run.scored.machine = &settings.machine;
  run.scored.slice = settings.slice;
  ScoredVersion baseline;
  baseline.name = "baseline";
  ScoreSession own;
  ScoreSession& session = settings.session ? *settings.session : own;
  Derived derived;
  std::vector<LookedAt> looked_at;
  RegLessScorer* regless = nullptr; // also in `derived`
  if (!settings.regless.empty()) {
    Result<std::unique_ptr<RegLessScorer>> made = RegLessScorer::make(input, settings.machine, settings.regless, place);
    if (!made) return made.error();
    regless = made->get();
    run.failure = regless->failure();
    derived.add(*std::move(made));
    for (size_t i = 0; i < settings.regless.size(); ++i)
      derived.version(i).staging = regless->total(i);
  }
  auto failure = add_comparators(input, *input.module, nullptr, settings, place, {}, derived);
  if (!failure) return failure.error();
  if (!run.failure) run.failure = std::move(*failure);
  failure = score_version(input, *input.module, nullptr, settings, place, false, looked_at, session, baseline, derived);
  if (!failure) return failure.error();
  if (!run.failure) run.failure = std::move(*failure);
  run.scored.versions.push_back(std::move(baseline));
  for (const std::string& passes : settings.passes) {
    if (run.failure) break;
    ScoredVersion version;
    version.name =
        passes +
        (settings.form == transforms::OutputForm::legal ? "" : std::string(" (") + form_word(settings.form) + ")");
    place = cuda::ErrorPlace::module;
    Result<const Rewritten*> found = session.rewritten(*input.module, passes, settings.form);
    if (!found) return found.error();
    const Rewritten* rewritten = *found;
    if (!rewritten->module) {
      version.kernels = run.scored.versions.front().kernels;
      version.remark = "the passes change nothing";
      run.scored.versions.push_back(std::move(version));
      continue;
    }
    Result<launch::Variants> variants = launch::Variants::of(*rewritten->module, nullptr);
    if (!variants) return variants.error();
    Derived of_version;
    if (settings.form == transforms::OutputForm::hardware) {
      failure =
          add_comparators(input, *rewritten->module, &*variants, settings, place, version.name + " and ", of_version);
      if (!failure) return failure.error();
      if (!run.failure) run.failure = std::move(*failure);
    }
    failure = score_version(input, *rewritten->module, &*variants, settings, place, false, looked_at, session, version,
                            of_version);
    if (!failure) return failure.error();
    if (!run.failure) run.failure = std::move(*failure);
    run.scored.versions.push_back(std::move(version));
    of_version.move_to(run.scored.versions);
  }
  if (settings.darsie && !run.failure) {
    ScoredVersion version;
    version.name = "DARSIE";
    Derived beside;
    failure = add_comparators(input, *input.module, nullptr, settings, place, {}, beside, true);
    if (!failure) return failure.error();
    run.failure = std::move(*failure);
    failure = score_version(input, *input.module, nullptr, settings, place, true, looked_at, session, version, beside);
    if (!failure) return failure.error();
    if (!run.failure) run.failure = std::move(*failure);
    for (ScoredKernel& kernel : version.kernels)
      kernel.rewritten_launches = kernel.launches;
    run.scored.versions.push_back(std::move(version));
    beside.move_to(run.scored.versions);
  }
  if (regless) run.comparators = regless->comparators();
  derived.move_to(run.scored.versions);
  return run;
}

} // namespace ptxrewrite::evaluate
