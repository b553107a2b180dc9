// DAC's machine as a MachineModel of the emulator: the kernels that run on it, their batches of blocks, and the
// launches that implement a launch on it.
#include "emulator/core/observer.h"
#include "emulator/machines/dac/affine_decode.h"
#include "emulator/machines/dac/affine_machine.h"

#include <fmt/format.h>

#include <algorithm>

namespace ptxrewrite::emulator {
namespace {

using ProgramPointer = std::shared_ptr<const AffineProgram>; // in KernelImage::machines

// Adds the counters that DAC's machine does not have: the instructions of the other stream, and its loads.
void complete(const Counters& counters, AffineCounters& affine) {
  affine.body = counters.warp_instructions - affine.affine;
  const FunctionCounters& rows = counters.functions.front();
  for (ir::BlockId block : rows.source->layout)
    for (ir::InstructionId id : rows.source->instructions_in(block)) {
      if (!rows.source->is_opcode(id, ir::Opcode::ld)) continue;
      const ir::StateSpace space = rows.source->form_of(id).space;
      const InstructionCounters& row = rows.instructions[id.index()];
      if (space == ir::StateSpace::global || space == ir::StateSpace::local || space == ir::StateSpace::none ||
          space == ir::StateSpace::generic)
        affine.loads += row.executions - row.guarded_off;
    }
}

// If the machine gives up, AffineCounters::fallbacks is set, and the contents of memory are unspecified.
class AffineRun final : public MachineRun {
public:
  AffineRun(ProgramPointer program, const AffineSettings& settings, AffineCheck* check)
      : program_(std::move(program)), settings_(settings), check_(check) {}

  std::unique_ptr<BlockMachine> attach(Block&) override { return std::make_unique<AffineBlock>(*machine_); }
  bool runs_side_by_side() const override { return true; }
  void run(BlockSource& blocks) override {
    AffineMachine machine(blocks, *program_, settings_, check_);
    machine_ = &machine;
    run_batches(blocks);
    counters_ = std::move(machine.counters());
    if (machine.gave_up().empty()) return;
    counters_.fallbacks = 1;
    counters_.fallback_reason = machine.gave_up();
  }

  bool count(const DecodedFunction& function, FunctionCounters& rows) override {
    if (&function != &program_->function()) return false;
    for (size_t i = 0; i < std::min(rows.instructions.size(), counters_.executions.size()); ++i) {
      rows.instructions[i].executions = counters_.executions[i];
      rows.instructions[i].lanes = counters_.lanes[i];
    }
    return true;
  }

  void finish(LaunchResult& result) override {
    complete(result.counters, counters_);
    result.machines.set(std::move(counters_));
  }

private:
  // Runs batches of resident blocks: SM number s of n has the blocks s, s + n, s + 2 n ...
  void run_batches(BlockSource& blocks) {
    const LaunchState& launch = blocks.launch();
    const LaunchRequest& request = *launch.request;
    const uint64_t counted_for = request.multiprocessors ? request.multiprocessors : emulated_sm_count;
    const uint64_t multiprocessors = settings_.multiprocessors ? settings_.multiprocessors : counted_for;
    const uint64_t resident = settings_.resident_blocks ? settings_.resident_blocks
                                                        : default_resident_blocks(launch.threads, launch.shared_bytes);
    bool goes_on = true;
    for (uint64_t first = 0; first < blocks.count() && goes_on; first += multiprocessors * resident)
      for (uint64_t sm = 0; sm < multiprocessors && first + sm < blocks.count() && goes_on; ++sm) {
        std::vector<uint64_t> batch;
        for (uint64_t n = first + sm; n < blocks.count() && batch.size() < resident; n += multiprocessors)
          batch.push_back(blocks.number(n));
        if (!blocks.has_fuel_for(batch.front(), static_cast<uint32_t>(batch.size()))) return;
        goes_on = machine_->run_batch(batch);
        for (auto& block : machine_->blocks())
          blocks.take_fuel(block->clock);
        for (auto& block : machine_->blocks())
          blocks.take_output(*block);
      }
    if (machine_->failure()) blocks.fail(*machine_->failure());
  }

  ProgramPointer program_;
  AffineSettings settings_;
  AffineCheck* check_;
  AffineCounters counters_;
  AffineMachine* machine_ = nullptr; // while it runs
};

// In check mode or with a fallback a launch consists of several: of the kernel in DAC's form, and of its original.
class AffineLaunch {
public:
  AffineLaunch(LaunchHost& host, KernelImage& image, const LaunchRequest& request)
      : host_(host), image_(image), request_(request), plain_(request),
        settings_(request.machines.get<AffineSettings>()), program_(image.machines.get<ProgramPointer>()) {
    plain_.kernel = program_->original();
  }

  // In check mode the original kernel runs first; if the machine is too small, the original runs at the end.
  Result<LaunchResult> run() {
    if (!plain_.kernel.empty()) {
      Result<KernelImage*> found = host_.image_of(plain_.kernel);
      if (!found) return found.error();
      original_ = *found;
    }
    if (settings_.check && !original_)
      return Error{fmt::format("'{}' cannot be checked: it does not say which kernel it was made of", request_.kernel),
                   {}};
    const auto copy = host_.memory().snapshot();
    if (!copy) return Error{copy.error().message, image_.functions.front()->source->header_range};
    before_ = *copy;
    if (settings_.check) {
      Result<LaunchResult> truth = watch_original();
      if (!truth || truth->failure) return truth;
    }
    AffineRun machine(program_, settings_, check_.get());
    Result<LaunchResult> result = host_.run(image_, request_, &machine);
    if (!result) return result;
    AffineCounters& counters = *result->machines.find<AffineCounters>();
    counters.baseline = baseline_;
    if (check_) counters.checked = check_->checked();
    if (result->failure && check_ && check_->differs()) {
      host_.memory().restore(*before_);
      check_->look_again();
      if (Result<LaunchResult> again = host_.run(*original_, plain_, nullptr); again) check_->explain(*result->failure);
    }
    return counters.fallbacks == 0 ? std::move(result) : run_original(counters.fallback_reason);
  }

private:
  // Runs the original with the check as its observer, which stores the expected queue entries.
  Result<LaunchResult> watch_original() {
    auto made = AffineCheck::make(*original_, image_, *program_, request_.block, settings_.check_data);
    if (!made) return made.error();
    check_ = *std::move(made);
    plain_.observer = check_.get();
    plain_.check = false;
    Result<LaunchResult> truth = host_.run(*original_, plain_, nullptr);
    if (!truth || truth->failure) return truth;
    baseline_ = truth->counters.warp_instructions;
    host_.memory().restore(*before_);
    return truth;
  }

  Result<LaunchResult> run_original(const std::string& reason) {
    if (!original_) return Error{fmt::format("'{}' is too much for DAC's machine: {}", request_.kernel, reason), {}};
    host_.memory().restore(*before_);
    plain_.observer = request_.observer;
    if (plain_.observer) plain_.observer->restarted();
    plain_.check = request_.check;
    Result<LaunchResult> instead = host_.run(*original_, plain_, nullptr);
    if (instead) {
      AffineCounters counters;
      counters.fallbacks = 1;
      counters.fallback_reason = reason;
      instead->machines.set(std::move(counters));
    }
    return instead;
  }

  LaunchHost& host_;
  KernelImage& image_;
  const LaunchRequest& request_;
  LaunchRequest plain_; // for the original
  const AffineSettings& settings_;
  ProgramPointer program_;
  KernelImage* original_ = nullptr; // nullptr: the text does not name it
  std::shared_ptr<const DeviceMemory::Snapshot> before_;
  std::unique_ptr<AffineCheck> check_; // nullptr: check mode is off
  uint64_t baseline_ = 0;
};

class DacModel final : public MachineModel {
public:
  std::string_view name() const override { return "dac"; }
  std::string_view title() const override { return "DAC's machine"; }
  void add_operations(OperationTable& table) const override { add_affine_operations(table); }
  std::unique_ptr<FormDecoder> form_decoder() const override { return make_queue_decoder(); }
  const ir::Function* stream_of(const ir::Function& kernel) const override { return kernel.affine_stream.get(); }
  Status prepare(KernelImage& image) const override {
    const ir::Function& kernel = *image.functions.front()->source;
    if (!kernel.affine_stream) return {};
    for (const auto& function : image.functions) {
      if (function->source != kernel.affine_stream.get()) continue;
      auto program = AffineProgram::make(kernel, *function);
      if (!program) return program.error();
      image.machines.set(*std::move(program));
    }
    return {};
  }

  bool takes(const KernelImage& image, const LaunchRequest&) const override {
    return image.machines.find<ProgramPointer>() != nullptr;
  }
  bool allows_observer() const override { return true; }
  Result<LaunchResult> launch(LaunchHost& host, KernelImage& image, const LaunchRequest& request) const override {
    return AffineLaunch(host, image, request).run();
  }
};

} // namespace

const MachineModel& dac_machine() {
  static const DacModel model;
  return model;
}

} // namespace ptxrewrite::emulator
