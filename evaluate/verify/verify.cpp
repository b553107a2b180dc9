#include "evaluate/verify/verify.h"

#include "emulator/machines/regless/staging_plan.h"
#include "evaluate/common/rewrite.h"
#include "ir/forms/darsie_mark.h"
#include "ir/machine/registers/regless_mark.h"
#include "launch/variants.h"

#include <algorithm>
#include <array>

namespace ptxrewrite::evaluate {

namespace {

// Additional fuel: derived shapes may send a kernel into an endless loop that does not occur in its own shapes.
constexpr uint64_t spare_fuel = 10'000'000;

// Numbers of resident blocks for persistent variants, each in a separate run: few rounds, uneven last rounds, and one
// block that does everything. Other kernels run only once.
constexpr std::array<uint64_t, 3> resident_blocks = {8, 3, 1};

// Number of random warp orders, to find out whether results depend on the order.
constexpr uint64_t random_orders = 4;

// For DAC's machine, so that batches have more than one block.
constexpr uint32_t few_multiprocessors = 2;

uint64_t instructions_of(const cuda::SessionResult& result) {
  uint64_t sum = 0;
  for (const cuda::SessionRun& run : result.runs)
    sum += run.counters.warp_instructions;
  return sum;
}

std::vector<emulator::Finding> findings_of(const cuda::SessionResult& result) {
  std::vector<emulator::Finding> all;
  for (const cuda::SessionRun& run : result.runs)
    all.insert(all.end(), run.findings.begin(), run.findings.end());
  return all;
}

const emulator::Failure* failure_of(const cuda::SessionResult& result) {
  return result.failed_launch ? &*result.runs.back().failure : nullptr;
}

bool is_marked(const ir::Module& module) {
  return std::ranges::any_of(module.functions, [](const auto& function) { return ir::has_written_marks(*function); });
}

bool copies_asynchronously(const ir::Function& function) {
  for (ir::BlockId block : function.layout)
    for (ir::InstructionId id : function.instructions_in(block)) {
      const ir::Instruction& instruction = function.instructions[id];
      if (instruction.kind != ir::InstructionKind::real) continue;
      if (ir::form(instruction.form).opcode == ir::Opcode::cp) return true;
    }
  return false;
}

bool copies_asynchronously(const ir::Module& module) {
  return std::ranges::any_of(module.functions, [](const auto& function) { return copies_asynchronously(*function); });
}

bool is_annotated(const ir::Module& module) {
  return std::ranges::any_of(module.functions, [](const auto& function) { return ir::has_regless_marks(*function); });
}

// Returns the first executed kernel that RegLess's machine cannot run; "" if it can run all.
std::string unannotated_kernel(const ir::Module& module, const cuda::SessionResult& result) {
  for (const cuda::SessionRun& run : result.runs)
    if (!ir::has_regless_marks(module, run.entry)) return run.entry;
  return "";
}

bool has_affine_streams(const ir::Module& module) {
  return std::ranges::any_of(module.functions, [](const auto& function) { return bool(function->affine_stream); });
}

bool have_same_outputs(const launch::LaunchPlan& plan, const cuda::SessionResult& one,
                       const cuda::SessionResult& other) {
  for (size_t i = 0; i < plan.buffers.size(); ++i)
    if (plan.buffers[i].output && one.buffers[i] != other.buffers[i]) return false;
  for (size_t i = 0; i < plan.variables.size(); ++i)
    if (plan.variables[i].data.output && one.variables[i] != other.variables[i]) return false;
  return true;
}

void count_launches(const launch::LaunchPlan& plan, const cuda::SessionResult& rewritten,
                    const launch::Variants& variants, CaseResult& result) {
  ++result.shapes;
  for (const cuda::SessionRun& run : rewritten.runs) {
    ++result.launches;
    const std::string& kernel = plan.launches[run.launch].kernel;
    result.fallbacks += run.entry == kernel && !variants.of_kernel(kernel).empty();
    std::vector<std::string> reasons = run.reasons;
    if (const auto* affine = run.machines.find<emulator::AffineCounters>()) {
      result.affine += *affine;
      result.fallbacks += affine->fallbacks;
      if (!affine->fallback_reason.empty()) reasons.push_back(affine->fallback_reason);
    }
    for (const std::string& reason : reasons)
      if (std::ranges::find(result.reasons, reason) == result.reasons.end()) result.reasons.push_back(reason);
  }
}

} // namespace

Verifier::Verifier(const LaunchInput& input, VerifySettings settings) : input_(input), settings_(std::move(settings)) {}

Status Verifier::make_contents() {
  for (const launch::Buffer& buffer : input_.plan.buffers) {
    std::vector<std::byte> bytes(buffer.bytes());
    if (Status status = buffer.initialise(bytes); !status) return status;
    contents_.push_back(std::move(bytes));
  }
  return {};
}

emulator::MachineData Verifier::machine_settings(const RunMode& mode) const {
  emulator::MachineData machines(
      emulator::AffineSettings{.entries_per_warp = mode.affine_entries,
                               .multiprocessors = settings_.machine ? 0 : few_multiprocessors,
                               .check = !mode.ignores_queues,
                               .check_data = !mode.ignores_data});
  if (mode.skipping) machines.set(*mode.skipping);
  if (mode.staging) machines.set(*mode.staging);
  return machines;
}

Result<cuda::SessionResult> Verifier::run(const launch::LaunchPlan& plan, const ir::Module& module,
                                          const launch::Variants& variants, const RunMode& mode,
                                          cuda::ErrorPlace& place) {
  // A new device for each run, so that its state cannot affect the next run.
  std::unique_ptr<cuda::Device> emulator;
  if (!settings_.gpu)
    emulator = cuda::make_emulator_device({.check = true,
                                           .late_copies = mode.late_copies,
                                           .reversed = mode.reversed,
                                           .clock_unit = emulator::ClockUnit::reads,
                                           .host_threads = settings_.host_threads,
                                           .fuel = mode.fuel,
                                           .resident_blocks = mode.resident_blocks,
                                           .machine = settings_.machine,
                                           .machines = machine_settings(mode)});
  cuda::SessionOptions options;
  options.variants = &variants;
  options.contents = &contents_;
  options.error_place = &place;
  return cuda::run_plan(plan, module, settings_.gpu ? *settings_.gpu : *emulator, options);
}

Status Verifier::run_original(cuda::ErrorPlace& place) {
  place = cuda::ErrorPlace::launch_file;
  constexpr unsigned copies = 3; // initial contents, device memory, outputs
  if (Status status = cuda::check_memory(input_.plan, copies); !status) return status;
  if (Status status = make_contents(); !status) return status;
  Result<launch::Variants> variants =
      launch::Variants::of(*input_.module, input_.side_file ? &*input_.side_file : nullptr);
  if (!variants) return variants.error();
  own_variants_ = *std::move(variants);
  uint64_t fuel = cuda::emulator_limits().fuel;
  for (launch::LaunchShape& shape : launch::shapes(input_.plan)) {
    if (shape.derived && !settings_.derived_shapes) continue;
    // A fault would destroy the GPU's context: it only gets shapes that run cleanly on the emulator.
    if (settings_.gpu && std::ranges::find(settings_.gpu_shapes, shape.name) == settings_.gpu_shapes.end()) continue;
    launch::LaunchPlan plan = launch::with_shape(input_.plan, shape);
    Result<cuda::SessionResult> result = run(plan, *input_.module, own_variants_, {fuel, resident_blocks[0]}, place);
    const bool is_first = truths_.empty();
    if (!result && is_first) return result.error();
    const emulator::Failure* failure = result ? failure_of(*result) : nullptr;
    if (failure && is_first) {
      original_failure_ = *failure;
      return {};
    }
    const size_t findings = result ? findings_of(*result).size() : 0;
    if (is_first) original_findings_ = findings;
    if (!result || failure || (findings > 0 && shape.derived)) {
      skipped_.push_back({shape.name, !result   ? result.error().message
                                      : failure ? failure->message
                                                : findings_of(*result)[0].where.message});
      continue;
    }
    const uint64_t instructions = instructions_of(*result);
    if (is_first) fuel = 10 * instructions + spare_fuel;
    truths_.push_back(
        {std::move(shape), std::move(plan), *std::move(result), findings == 0, 10 * instructions + spare_fuel, {}});
  }
  return {};
}

std::vector<std::string> Verifier::clean_shapes() const {
  std::vector<std::string> names;
  for (const Truth& truth : truths_)
    names.push_back(truth.shape.name);
  return names;
}

void Verifier::compare_all(CaseResult& result) {
  Result<launch::Variants> variants = launch::Variants::of(*result.module, nullptr);
  if (!variants) {
    result.verdict = Verdict::differs;
    result.reason = variants.error().message;
    return;
  }
  for (Truth& truth : truths_)
    if (!compare_shape(truth, *result.module, *variants, result)) break;
  if (result.what.form == transforms::OutputForm::legal && result.differences.empty() &&
      result.verdict == Verdict::identical)
    compare_other_forms(*result.module, *variants, result);
  if (!result.differences.empty()) result.verdict = Verdict::differs;
}

CaseResult Verifier::verify(const VerifyCase& what) {
  CaseResult result;
  result.what = what;
  // Verifies the printed text, parsed again, as it would be in a file.
  Result<Rewritten> rewritten = rewrite(*input_.module, what.passes, what.form, settings_.run);
  if (!rewritten || !rewritten->module) {
    result.verdict = rewritten ? Verdict::unchanged : Verdict::differs;
    if (!rewritten) result.reason = rewritten.error().message;
    return result;
  }
  if (auto known = known_.find(rewritten->text); known != known_.end()) {
    result = known->second;
    result.what = what;
    return result;
  }
  result.module = std::move(rewritten->module);
  compare_all(result);
  known_.emplace(std::move(rewritten->text), result);
  return result;
}

std::vector<cuda::BufferComparison> Verifier::compare_buffers(const Truth& truth,
                                                              const cuda::SessionResult& other) const {
  std::vector<cuda::BufferComparison> differing;
  auto compare_one = [&](const launch::Buffer& buffer, std::span<const std::byte> original,
                         std::span<const std::byte> rewritten) {
    if (!buffer.output) return;
    cuda::BufferComparison comparison = cuda::compare(buffer, original, rewritten, settings_.most_differences);
    if (!comparison.same()) differing.push_back(std::move(comparison));
  };
  for (size_t i = 0; i < truth.plan.buffers.size(); ++i)
    compare_one(truth.plan.buffers[i], truth.result.buffers[i], other.buffers[i]);
  for (size_t i = 0; i < truth.plan.variables.size(); ++i)
    compare_one(truth.plan.variables[i].data, truth.result.variables[i], other.variables[i]);
  return differing;
}

CaseResult Verifier::compare_original(const Verifier& other) const {
  CaseResult result;
  result.what.passes = "original, emulator against GPU";
  for (const Truth& here : truths_)
    for (const Truth& there : other.truths_) {
      if (there.shape.name != here.shape.name) continue;
      ++result.shapes;
      ShapeDifference difference;
      difference.shape = here.shape.name;
      difference.buffers = compare_buffers(here, there.result);
      if (!difference.buffers.empty()) result.differences.push_back(std::move(difference));
    }
  if (!result.differences.empty()) result.verdict = Verdict::differs;
  return result;
}

ShapeDifference Verifier::difference_of(const Truth& truth, const cuda::SessionResult& rewritten,
                                        uint64_t resident) const {
  ShapeDifference difference;
  difference.shape = truth.shape.name;
  if (resident != resident_blocks[0]) difference.shape += ", resident blocks: " + std::to_string(resident);
  if (const emulator::Failure* failure = failure_of(rewritten)) {
    difference.failure = *failure;
  } else {
    if (truth.clean) difference.findings = findings_of(rewritten);
    difference.buffers = compare_buffers(truth, rewritten);
  }
  return difference;
}

// In derived shapes, blocks may write the same location; which block is last is then not determined by the kernel.
bool Verifier::order_matters(Truth& truth) {
  if (truth.order_matters) return *truth.order_matters;
  cuda::ErrorPlace place = cuda::ErrorPlace::launch_file;
  Result<cuda::SessionResult> other =
      run(truth.plan, *input_.module, own_variants_, {truth.fuel, resident_blocks[0], true}, place);
  truth.order_matters = !other || failure_of(*other) || !compare_buffers(truth, *other).empty();
  if (*truth.order_matters) skipped_.push_back({truth.shape.name, "its result depends on the order of the blocks"});
  return *truth.order_matters;
}

// Warps of a block run in random orders, blocks one after the other.
bool Verifier::warp_order_matters(Truth& truth) {
  if (truth.warp_order_matters) return *truth.warp_order_matters;
  cuda::ErrorPlace place = cuda::ErrorPlace::launch_file;
  truth.warp_order_matters = false;
  for (uint64_t seed = 1; seed <= random_orders && !*truth.warp_order_matters; ++seed) {
    const RunMode mode{truth.fuel, resident_blocks[0], false,
                       emulator::SkipSettings{.share = false, .order_seed = seed}};
    Result<cuda::SessionResult> other = run(truth.plan, *input_.module, own_variants_, mode, place);
    truth.warp_order_matters = !other || failure_of(*other) || !compare_buffers(truth, *other).empty();
  }
  return *truth.warp_order_matters;
}

// Launches that the first variant took also run the further variants that they admit, and the kept original, which may
// be rewritten too.
void Verifier::compare_other_forms(const ir::Module& module, const launch::Variants& variants, CaseResult& result) {
  for (size_t left_out = 1; left_out <= variants.most_of_a_kernel(); ++left_out) {
    const launch::Variants others = variants.without_first(left_out);
    for (const Truth& truth : truths_) {
      cuda::ErrorPlace place = cuda::ErrorPlace::launch_file;
      Result<cuda::SessionResult> rewritten = run(truth.plan, module, others, {truth.fuel, resident_blocks[0]}, place);
      if (!rewritten) {
        result.verdict = Verdict::differs;
        result.reason = rewritten.error().message;
        return;
      }
      ShapeDifference difference = difference_of(truth, *rewritten, resident_blocks[0]);
      if (!difference.failure && difference.findings.empty() && difference.buffers.empty()) continue;
      difference.shape += ", without the first " + std::to_string(left_out) + " variant(s)";
      result.differences.push_back(std::move(difference));
    }
  }
}

static bool runs_in_clusters(const launch::LaunchPlan& plan) {
  return std::ranges::any_of(
      plan.launches, [](const launch::Launch& launch) { return launch.cluster && launch.cluster->count() > 1; });
}

// Returns false if the module does not run on the device, so that other shapes need not be tried.
bool Verifier::compare_shape(Truth& truth, const ir::Module& module, const launch::Variants& variants,
                             CaseResult& result) {
  const bool is_affine = !settings_.gpu && has_affine_streams(module);
  std::string unannotated;
  for (const uint64_t resident : resident_blocks) {
    cuda::ErrorPlace place = cuda::ErrorPlace::launch_file;
    Result<cuda::SessionResult> rewritten = run(truth.plan, module, variants, {truth.fuel, resident}, place);
    if (!rewritten) {
      // Not every proposed unit is emulated; a form for GPUs must run.
      const bool may_refuse = result.what.form == transforms::OutputForm::hardware;
      result.verdict = may_refuse ? Verdict::not_run : Verdict::differs;
      result.reason = rewritten.error().message;
      return false;
    }
    unannotated = unannotated_kernel(module, *rewritten);
    const bool is_persistent =
        std::ranges::any_of(rewritten->runs, [](const cuda::SessionRun& run) { return run.is_persistent; });
    ShapeDifference difference = difference_of(truth, *rewritten, resident);
    const bool differs = difference.failure || !difference.findings.empty() || !difference.buffers.empty();
    if (differs && is_persistent && truth.shape.derived && !settings_.gpu && order_matters(truth)) return true;
    if (differs && is_affine && truth.shape.derived) {
      count_launches(truth.plan, *rewritten, variants, result);
      compare_queues(truth, module, variants, result);
      return true;
    }
    if (resident == resident_blocks[0]) count_launches(truth.plan, *rewritten, variants, result);
    if (differs) result.differences.push_back(std::move(difference));
    if (!is_persistent || differs || settings_.gpu) break;
  }
  if (is_affine) compare_short_queues(truth, module, variants, result);
  if (!settings_.gpu && copies_asynchronously(module)) compare_late_copies(truth, module, variants, result);
  if (runs_in_clusters(truth.plan)) {
    if (settings_.gpu || (!is_marked(module) && !is_annotated(module))) return true;
    result.verdict = Verdict::not_run;
    result.reason = "the papers' machines run no launches in clusters of several blocks";
    return true;
  }
  if (!settings_.gpu && is_marked(module)) compare_skipping(truth, module, variants, result);
  if (!settings_.gpu && is_annotated(module)) {
    if (unannotated.empty()) {
      compare_staging(truth, module, variants, result);
    } else {
      result.verdict = Verdict::not_run;
      result.reason = "RegLess's machine: kernel '" + unannotated + "' has no annotations";
    }
  }
  return true;
}

// In a derived shape, threads may write data that others read. The values read then depend on the order of blocks and
// warps, which differs on DAC's machine, and so may the results. The addresses and predicates from the queues do not,
// as long as control flow does not depend on these values.
void Verifier::compare_queues(Truth& truth, const ir::Module& module, const launch::Variants& variants,
                              CaseResult& result) {
  for (const uint32_t entries : {0u, 1u}) {
    cuda::ErrorPlace place = cuda::ErrorPlace::launch_file;
    RunMode mode{truth.fuel, resident_blocks[0]};
    mode.affine_entries = entries;
    mode.ignores_data = true;
    Result<cuda::SessionResult> queues = run(truth.plan, module, variants, mode, place);
    if (!queues) {
      result.verdict = Verdict::differs;
      result.reason = queues.error().message;
      return;
    }
    ShapeDifference difference = difference_of(truth, *queues, resident_blocks[0]);
    difference.shape += ", queues";
    const bool may_differ = !difference.failure && (warp_order_matters(truth) || order_matters(truth));
    if (may_differ || (!difference.failure && difference.buffers.empty())) continue;
    // The values read may even decide which threads store: then the results must be unchanged.
    mode.ignores_queues = true;
    Result<cuda::SessionResult> unchecked = run(truth.plan, module, variants, mode, place);
    if (unchecked && !failure_of(*unchecked) && compare_buffers(truth, *unchecked).empty()) continue;
    result.differences.push_back(std::move(difference));
  }
  ++result.ordered_shapes;
}

// Runs DAC's streams with one entry in each queue, so that the streams wait for each other as often as possible.
void Verifier::compare_short_queues(Truth& truth, const ir::Module& module, const launch::Variants& variants,
                                    CaseResult& result) {
  cuda::ErrorPlace place = cuda::ErrorPlace::launch_file;
  RunMode mode{truth.fuel, resident_blocks[0]};
  mode.affine_entries = 1;
  Result<cuda::SessionResult> run_short = run(truth.plan, module, variants, mode, place);
  if (!run_short) {
    result.verdict = Verdict::differs;
    result.reason = run_short.error().message;
    return;
  }
  ShapeDifference difference = difference_of(truth, *run_short, resident_blocks[0]);
  difference.shape += ", queues of one entry";
  if (!difference.failure && difference.findings.empty() && difference.buffers.empty()) return;
  if (truth.shape.derived)
    compare_queues(truth, module, variants, result);
  else
    result.differences.push_back(std::move(difference));
}

// Asynchronous copies may take place at any time before they are waited for: after the run with immediate copies, one
// run with all copies delayed.
void Verifier::compare_late_copies(const Truth& truth, const ir::Module& module, const launch::Variants& variants,
                                   CaseResult& result) {
  cuda::ErrorPlace place = cuda::ErrorPlace::launch_file;
  const RunMode mode{truth.fuel, resident_blocks[0], false, {}, true};
  Result<cuda::SessionResult> late = run(truth.plan, module, variants, mode, place);
  if (!late) return; // the run with immediate copies has already reported the error
  ShapeDifference difference = difference_of(truth, *late, resident_blocks[0]);
  if (!difference.failure && difference.findings.empty() && difference.buffers.empty()) return;
  difference.shape += ", asynchronous copies late";
  result.differences.push_back(std::move(difference));
}

// Runs with skipping, and compares each skipped instruction with the value that it would have computed.
void Verifier::compare_skipping(const Truth& truth, const ir::Module& module, const launch::Variants& variants,
                                CaseResult& result) {
  bool is_ordered = false;
  for (const emulator::SkipVariant variant : emulator::all_skip_variants) {
    cuda::ErrorPlace place = cuda::ErrorPlace::launch_file;
    RunMode mode{truth.fuel, resident_blocks[0], false, emulator::SkipSettings{.variant = variant, .check = true}};
    Result<cuda::SessionResult> skipping = run(truth.plan, module, variants, mode, place);
    if (!skipping) {
      result.verdict = Verdict::differs;
      result.reason = skipping.error().message;
      return;
    }
    for (const cuda::SessionRun& one : skipping->runs) {
      if (variant != emulator::SkipVariant::standard) break;
      const auto& skips = one.machines.get<emulator::SkipCounters>();
      result.executed += skips.executed;
      result.skipped += skips.all_skipped();
    }
    ShapeDifference difference = difference_of(truth, *skipping, resident_blocks[0]);
    difference.shape += ", skipping (" + std::string(spelling(variant)) + ")";
    if (!difference.failure && difference.findings.empty() && difference.buffers.empty()) continue;
    if (!difference.failure && difference.findings.empty()) {
      mode.skipping->check = mode.skipping->share = false; // the machine's order of warps, without skipping
      Result<cuda::SessionResult> in_order = run(truth.plan, module, variants, mode, place);
      if (in_order && !in_order->failed_launch && have_same_outputs(truth.plan, *in_order, *skipping)) {
        is_ordered = true;
        continue;
      }
    }
    result.differences.push_back(std::move(difference));
  }
  result.ordered_shapes += is_ordered;
}

// Runs with all values in staged entries, with the paper's number of entries, and with the minimum.
void Verifier::compare_staging(const Truth& truth, const ir::Module& module, const launch::Variants& variants,
                               CaseResult& result) {
  const emulator::StagingSettings usual;
  bool is_ordered = false;
  const uint32_t least = emulator::least_staging_entries(module);
  for (const uint32_t entries : {std::max(usual.entries, least), least}) {
    cuda::ErrorPlace place = cuda::ErrorPlace::launch_file;
    RunMode mode{.fuel = truth.fuel, .resident_blocks = resident_blocks[0], .staging = usual};
    mode.staging->entries = entries;
    Result<cuda::SessionResult> staged = run(truth.plan, module, variants, mode, place);
    if (!staged) {
      result.verdict = Verdict::differs;
      result.reason = staged.error().message;
      return;
    }
    result.least_entries = least;
    for (const cuda::SessionRun& one : staged->runs)
      result.regions += one.machines.get<emulator::StagingCounters>().regions;
    ShapeDifference difference = difference_of(truth, *staged, resident_blocks[0]);
    difference.shape += ", " + std::to_string(entries) + " staged entries";
    if (difference.failure && difference.failure->kind == emulator::FailureKind::not_emulated) {
      result.verdict = Verdict::not_run;
      result.reason = difference.failure->message;
      return;
    }
    if (!difference.failure && difference.findings.empty()) {
      if (difference.buffers.empty()) continue;
      mode.staging->stage = false; // the machine's order of warps, with ordinary registers
      Result<cuda::SessionResult> in_order = run(truth.plan, module, variants, mode, place);
      if (in_order && !in_order->failed_launch && have_same_outputs(truth.plan, *in_order, *staged)) {
        is_ordered = true;
        continue;
      }
    }
    result.differences.push_back(std::move(difference));
  }
  result.ordered_shapes += is_ordered;
}

} // namespace ptxrewrite::evaluate
