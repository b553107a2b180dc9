// Counts the work of a trip and estimates its clocks.
#include "transforms/dac/run_ahead_cost.h"

#include "ir/machine/figures/latency.h"
#include "ir/machine/figures/occupancy.h"
#include "ir/machine/registers/registers.h"

#include <algorithm>
#include <cmath>

namespace ptxrewrite::transforms::legal {

namespace {

using ir::BlockId;
using ir::InstructionId;
using ir::InstructionKind;
using ir::ValueId;

constexpr unsigned warp_size = 32;
constexpr double sector = 32;      // bytes per memory transaction
constexpr double inner_trips = 10; // of an inner loop, and of the loop itself, if the count is unknown
constexpr double default_latency = 400;
constexpr double least_gain = 0.10; // relative to the clocks: the model is coarse

double known(const ir::Figure& figure, double fallback) {
  return figure.known ? figure.value : fallback;
}

} // namespace

bool RunAheadEstimate::wins() const {
  return after <= before * (1 - least_gain);
}

double trip_clocks(const ir::Machine& machine, const TripWork& work, unsigned warps, double hidden) {
  const double issue_rate = machine.schedulers * known(machine.issue_rate, 1);
  const double issue = warps * work.instructions / issue_rate;
  const double exposed = std::max(work.staying_latency, work.ahead_latency - hidden);
  const double chain = work.instructions / known(machine.issue_rate, 1) + std::max(exposed, 0.0);
  const double dram = known(machine.memory.achieved_dram_gb_per_second, 100) * 1000 / machine.clock_mhz / machine.sms;
  const double l2 = known(machine.memory.l2_bytes_per_clock, dram);
  return std::max({issue, chain, warps * work.dram_bytes / dram, warps * work.l2_bytes / l2});
}

RunAheadCost::RunAheadCost(const ir::LinearForms& forms, const ir::Machine& machine,
                           std::shared_ptr<const ir::Lowering> lowering, unsigned threads, uint64_t shared_bytes)
    : forms_(forms), function_(forms.function()), machine_(machine), threads_(threads), shared_bytes_(shared_bytes),
      lowering_(std::move(lowering)),
      registers_(ir::register_need(function_, *lowering_, machine.compute_capability).registers) {
  for (BlockId block : function_.layout)
    for (InstructionId id : function_.instructions_in(block))
      for (const ir::Operand& operand : function_.operands_of(id)) {
        if (!operand.is(ir::OperandKind::special_register)) continue;
        const auto special = static_cast<ir::SpecialRegister>(operand.id);
        const unsigned component = operand.selector & 3;
        if (component == 3) continue;
        if (special == ir::SpecialRegister::tid) indices_read_[ir::form_index::tid_x + component] = true;
        if (special == ir::SpecialRegister::ctaid) indices_read_[ir::form_index::ctaid_x + component] = true;
      }
}

bool RunAheadCost::is_shared_with_others(const ir::LinearForm& form) const {
  if (!form.has_coefficients()) return false;
  for (unsigned place = 1; place < ir::form_index::count; ++place)
    if (indices_read_[place] && forms_.expressions().is_zero(form.coefficients[place])) return true;
  return false;
}

// Adds the memory traffic of a load: how often it reads a new sector, and how much of it one warp reads.
double RunAheadCost::latency_of(const RunAheadLoad& load, TripWork& work) const {
  const ir::ExpressionPool& pool = forms_.expressions();
  const ir::LinearForm& form = forms_.address_form(load.instruction, load.address);
  double fresh = 1, span = warp_size * load.bytes;
  for (const ir::LoopOffset& offset : form.loops())
    if (const auto step = pool.literal_value(offset.step);
        step && offset.loop == forms_.loops().innermost(load.block)) {
      const auto stride = std::fabs(double(ir::signed_value(*step, form.width)));
      fresh = std::min(1.0, std::max(stride, double(load.bytes)) / sector);
    }
  if (form.has_coefficients()) {
    const auto lanes = pool.literal_value(form.coefficients[ir::form_index::tid_x]);
    const double stride = lanes ? std::fabs(double(ir::signed_value(*lanes, form.width))) : sector;
    span = stride == 0 ? sector : warp_size * std::min(stride, sector);
  }
  const double hit = known(machine_.latency.l1, known(machine_.latency.dram, default_latency));
  double miss = known(machine_.latency.dram, default_latency);
  work.l2_bytes += span * fresh;
  if (is_shared_with_others(form))
    miss = known(machine_.latency.l2, miss);
  else
    work.dram_bytes += span * fresh;
  return hit + fresh * (miss - hit);
}

TripWork RunAheadCost::work_of(const RunAheadPlan& plan) const {
  TripWork work;
  const uint32_t depth = forms_.loops().loops()[plan.loop].depth;
  for (BlockId block : forms_.loops().loops()[plan.loop].blocks) {
    const double times = std::pow(inner_trips, forms_.loops().depth(block) - depth);
    for (InstructionId id : function_.instructions_in(block)) {
      const ir::InstructionCost& cost = lowering_->cost(id);
      work.instructions += times * (cost.weight + cost.uniform);
      if (function_.instructions[id].kind != InstructionKind::real || cost.weight == 0) continue;
      const ir::Form& form = function_.form_of(id);
      const bool ahead = std::ranges::any_of(plan.loads, [&](const auto& load) { return load.instruction == id; });
      if (!ahead && form.effects.reads_memory && !ir::is_param(form.space))
        work.staying_latency = std::max(work.staying_latency, times * known(ir::latency(machine_, form), 0));
    }
  }
  for (const RunAheadLoad& load : plan.loads)
    work.ahead_latency = std::max(work.ahead_latency, latency_of(load, work));
  return work;
}

double RunAheadCost::slice_instructions(const RunAheadPlan& plan) const {
  double sum = 0;
  for (InstructionId id : plan.slice.instructions) {
    const ir::InstructionCost& cost = lowering_->cost(id);
    sum += cost.weight + cost.uniform;
  }
  return sum + double(plan.loads.size());
}

unsigned RunAheadCost::warps_with(unsigned threads, uint32_t registers, uint64_t shared_bytes) const {
  const uint32_t warps = ir::occupancy(machine_, {threads, registers, static_cast<uint32_t>(shared_bytes)}).warps;
  return most_warps_ == 0 ? warps : std::min(warps, most_warps_);
}

RunAheadEstimate RunAheadCost::estimate(const RunAheadPlan& plan, const RunAheadChoice& choice,
                                        uint64_t more_shared) const {
  RunAheadEstimate estimate;
  const TripWork before = work_of(plan);
  estimate.warps_before = warps_with(threads_, registers_, shared_bytes_);
  estimate.before = trip_clocks(machine_, before, estimate.warps_before, 0);

  TripWork after = before;
  // The producer's slice runs on another warp, but also takes issue slots of the schedulers.
  const bool by_producer = choice.form == RunAheadForm::producer;
  const double consumers = double(threads_) / warp_size;
  const double slice = slice_instructions(plan) / (by_producer ? consumers : 1);
  after.instructions += slice;
  uint32_t registers = registers_ + 1;
  if (!by_producer)
    for (uint32_t parameter : plan.slice.parameters)
      registers += lowering_->register_units(function_.parameters(plan.header)[parameter]);
  double remaining = 0;
  switch (choice.form) {
  case RunAheadForm::ring: {
    constexpr double group = 2, pointers = 3, pointer_registers = 4; // commit and wait; for each ring
    after.instructions += group + pointers;
    registers += pointer_registers;
    remaining = known(machine_.latency.shared, 30);
    break;
  }
  case RunAheadForm::registers:
    for (const RunAheadLoad& load : plan.loads)
      registers += choice.distance * (load.bytes + 3) / 4;
    after.instructions += double(choice.distance - 1) * double(plan.loads.size());
    after.instructions -= double(plan.loads.size()); // the loads themselves are moved
    break;
  case RunAheadForm::producer: {
    constexpr double wait_and_arrive = 4, stage = 6, stage_registers = 4;
    after.instructions += wait_and_arrive + stage;
    registers += stage_registers;
    remaining = known(machine_.latency.shared, 30);
    break;
  }
  case RunAheadForm::prefetch:
    // A prefetch brings data only to the second-level cache.
    remaining = known(machine_.latency.l2, before.ahead_latency);
    break;
  }
  const unsigned producers = by_producer ? warp_size : 0;
  estimate.warps = warps_with(threads_ + producers, registers, shared_bytes_ + more_shared);
  if (by_producer) estimate.warps = unsigned(estimate.warps * consumers / (consumers + 1));
  if (estimate.warps == 0) {
    estimate.after = INFINITY;
    return estimate;
  }
  // The trips in between hide latency for as long as they take, at least the time without any waiting.
  after.staying_latency = std::max(before.staying_latency, remaining);
  const double unhindered = trip_clocks(machine_, after, estimate.warps, after.ahead_latency);
  estimate.after = trip_clocks(machine_, after, estimate.warps, choice.distance * unhindered);
  // With fewer warps, the same work takes more rounds.
  estimate.after *= double(std::max(estimate.warps_before, 1u)) / estimate.warps;
  const double front = choice.distance * slice / inner_trips;
  estimate.after += estimate.warps_before * front / (machine_.schedulers * known(machine_.issue_rate, 1));
  return estimate;
}

} // namespace ptxrewrite::transforms::legal
