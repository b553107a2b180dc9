#include "emulator/observe/linearity.h"
#include "emulator/observe/redundancy.h"
#include "evaluate/common/rewrite.h"
#include "grammar/reader.h"
#include "launch/launch_file.h"
#include "support/file_io.h"
#include "tests/paper/measure.h"
#include "tests/paper/paper_operands.h"
#include "tests/paper/weights.h"

#include <algorithm>
#include <map>

namespace ptxrewrite::tests {
namespace {

bool has_results(const ir::Function& function, ir::InstructionId id) {
  return std::ranges::any_of(function.operands_of(id), [](const ir::Operand& operand) {
    return operand.is(ir::OperandKind::value) && operand.is_definition();
  });
}

// WP, TB and LN of one launch in one run.
class IdealMachines final : public emulator::Observer {
public:
  IdealMachines(const ir::Function& entry, const emulator::LaunchRequest& request) : linearity_(entry, request) {}

  void before(emulator::Block& block, emulator::Warp& warp, const emulator::MicroOp& op) override {
    redundancy_.before(block, warp, op);
    linearity_.before(block, warp, op);
  }
  void block_ended(emulator::Block& block) override {
    redundancy_.block_ended(block);
    linearity_.block_ended(block);
  }

  IdealCounts counts(const emulator::InstructionWeight& weights) const {
    IdealCounts sum;
    for (const auto& [number, row] : redundancy_.rows()) {
      const uint64_t weight = weights(*row.function, row.instruction);
      const bool results = has_results(*row.function, row.instruction);
      sum.baseline += weight * row.lanes;
      sum.within_warps += weight * (results ? row.lanes - row.uniform_lanes + row.uniform : row.lanes);
      sum.within_blocks += weight * (results ? row.lanes - row.repeated_lanes : row.lanes);
    }
    for (const emulator::LinearityRow& row : linearity_.rows()) {
      if (!row.function) continue;
      const uint64_t weight = weights(*row.function, row.instruction);
      sum.linear += weight * row.needed;
      if (!row.linear) sum.not_linear += weight * row.lanes;
      if (row.uniform) sum.scalar_warps += weight * row.executions;
    }
    return sum;
  }

private:
  emulator::RedundancyStudy redundancy_;
  emulator::LinearityStudy linearity_;
};

// Observes the launches of a module one after the other.
class Studies {
public:
  Studies(const ir::Module& module, Weights& weights) : module_(module), weights_(weights) {}

  emulator::Observer* next(const emulator::LaunchRequest& request) {
    finish();
    const ir::Function* entry = launch::find_kernel(module_, request.kernel);
    if (entry) running_ = std::make_unique<IdealMachines>(*entry, request);
    return running_.get();
  }
  // Call it after all launches.
  const IdealCounts& machine() const { return machine_; }
  const IdealCounts& ptx() const { return ptx_; }
  void finish() {
    if (running_) {
      machine_ += running_->counts(weights_.function());
      ptx_ += running_->counts([](const ir::Function&, ir::InstructionId) { return uint64_t{1}; });
    }
    running_.reset();
  }

private:
  const ir::Module& module_;
  Weights& weights_;
  std::unique_ptr<IdealMachines> running_;
  IdealCounts machine_, ptx_;
};

void add_once(std::vector<std::string>& list, const std::string& text) {
  if (!text.empty() && std::ranges::find(list, text) == list.end()) list.push_back(text);
}

// Runs the hardware form and counts it.
Status count_hardware(const evaluate::LaunchInput& input, const ir::Module& module,
                      const cuda::EmulatorOptions& options, Weights& weights, HardwareMeasurement& measured) {
  Result<launch::Variants> variants = launch::Variants::of(module, nullptr);
  if (!variants) return variants.error();
  Result<cuda::SessionResult> result = run_sample(input, module, &*variants, options);
  if (!result) return result.error();
  PaperOperands paper_operands;
  for (const cuda::SessionRun& one : result->runs) {
    auto is_move = [](const ir::Function& function, ir::InstructionId id) {
      return function.is_opcode(id, ir::Opcode::r2d2_mov);
    };
    // A move that is no machine instruction does not count as a PTX instruction either.
    auto is_operand = [&](const ir::Function& function, ir::InstructionId id) {
      return is_move(function, id) && weights(function, id) == 0;
    };
    auto words = [&](const ir::Function& function, ir::InstructionId id) -> uint64_t {
      return ir::bit_width(function.form_of(id).type()) / 32;
    };
    auto warps = [&](const emulator::InstructionWeight& weight) {
      return emulator::section_counts(one.counters, weight).total().warps;
    };
    measured.hardware += emulator::section_counts(one.counters, weights.function());
    measured.hardware_ptx += emulator::section_counts(
        one.counters, [&](const ir::Function& function, ir::InstructionId id) { return !is_operand(function, id); });
    measured.moves_ptx += warps([&](const ir::Function& function, ir::InstructionId id) {
      return is_move(function, id) && !is_operand(function, id);
    });
    measured.moves += warps([&](const ir::Function& function, ir::InstructionId id) {
      return is_move(function, id) ? weights(function, id) : 0;
    });
    measured.operands_ptx += warps(is_operand);
    measured.copies_ptx += warps([&](const ir::Function& function, ir::InstructionId id) {
      return paper_operands(function, id) && !is_operand(function, id);
    });
    measured.operands += warps([&](const ir::Function& function, ir::InstructionId id) {
      return is_operand(function, id) ? words(function, id) : 0;
    });
    const std::string& kernel = input.plan.launches[one.launch].kernel;
    measured.launches_rewritten += one.entry != kernel || !one.registers.empty();
    for (const std::string& reason : one.reasons)
      add_once(measured.reasons, reason);
    add_once(measured.registers, one.registers);
  }
  return {};
}

} // namespace

IdealCounts& IdealCounts::operator+=(const IdealCounts& other) {
  baseline += other.baseline;
  within_warps += other.within_warps;
  within_blocks += other.within_blocks;
  linear += other.linear;
  not_linear += other.not_linear;
  scalar_warps += other.scalar_warps;
  return *this;
}

double HardwareMeasurement::reduction() const {
  if (baseline_warps == 0) return 0;
  return 1 - static_cast<double>(hardware.total().warps) / static_cast<double>(baseline_warps);
}

double HardwareMeasurement::linear_share() const {
  const uint64_t all = hardware.total().warps;
  return all ? static_cast<double>(hardware.linear().warps) / static_cast<double>(all) : 0;
}

Result<evaluate::LaunchInput> read_sample(const std::string& launch_file, const std::string& size) {
  Result<std::string> text = read_file(launch_file);
  if (!text) return text.error();
  Diagnostics diagnostics;
  const SourceFile source(launch_file, *text);
  auto file = launch::read_launch_file(source, diagnostics);
  const std::string sizes = size.empty() || !file ? "" : size + "," + file->default_size;
  auto plan = file ? launch::make_plan(*file, {.size = sizes, .target = {}}, diagnostics) : std::nullopt;
  if (!plan) return Error{diagnostics.list().empty() ? "no plan" : render(diagnostics.list()[0], source), {}};
  Result<std::string> ptx = read_file(plan->ptx);
  if (!ptx) return ptx.error();
  evaluate::LaunchInput input{std::move(*plan), nullptr, std::nullopt};
  input.module = grammar::read_module(SourceFile(input.plan.ptx, std::move(*ptx)), diagnostics);
  if (!input.module) return Error{"cannot read " + input.plan.ptx, {}};
  return input;
}

Result<HardwareMeasurement> measure_hardware(const evaluate::LaunchInput& input, const std::string& name,
                                             const ir::Machine& machine, bool ideal) {
  HardwareMeasurement measured;
  measured.sample = name;
  measured.size = input.plan.size;
  Weights weights(machine);
  Studies studies(*input.module, weights);
  cuda::EmulatorOptions options{.machine = &machine};
  if (ideal) options.observer = [&](const emulator::LaunchRequest& request) { return studies.next(request); };
  Result<cuda::SessionResult> original = run_sample(input, *input.module, nullptr, options);
  if (!original) return original.error();
  studies.finish();
  measured.ideal = studies.machine();
  measured.ideal_ptx = studies.ptx();
  for (const cuda::SessionRun& one : original->runs) {
    const emulator::InstructionCount count = emulator::section_counts(one.counters, weights.function()).total();
    measured.baseline_warps += count.warps;
    measured.baseline_threads += count.threads;
    measured.baseline_ptx_warps += emulator::section_counts(one.counters).total().warps;
  }
  measured.launches = original->runs.size();

  options.observer = {};
  Result<evaluate::Rewritten> rewritten =
      evaluate::rewrite(*input.module, "r2d2", transforms::OutputForm::hardware, {});
  if (!rewritten) return rewritten.error();
  measured.rewritten = rewritten->module != nullptr;
  const ir::Module& module = measured.rewritten ? *rewritten->module : *input.module;
  if (Status status = count_hardware(input, module, options, weights, measured); !status) return status.error();
  return measured;
}

} // namespace ptxrewrite::tests
