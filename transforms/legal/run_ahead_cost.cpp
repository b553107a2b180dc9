// Counts a trip's work and weighs it.
#include "transforms/legal/run_ahead_cost.h"

#include "ir/machine/latency.h"
#include "ir/machine/occupancy.h"
#include "ir/machine/registers.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace ptxrewrite::transforms::legal {

namespace {

using ir::BlockId;
using ir::InstructionId;
using ir::InstructionKind;
using ir::ValueId;

constexpr double warp_size = 32;
constexpr double sector = 32;       // bytes that come from memory at a time
constexpr double inner_trips = 10;  // of an inner loop, and of the loop itself, where nobody knows
constexpr double least_gain = 0.10; // of the clocks: the model is coarse

double known(const ir::Figure& figure, double fallback) {
  return figure.known ? figure.value : fallback;
}

} // namespace

bool RunAheadEstimate::wins() const {
  return after <= before * (1 - least_gain);
}

std::string RunAheadEstimate::text() const {
  char line[96];
  std::snprintf(line, sizeof line, "%.0f to %.0f clocks a trip of %u and %u warps", before, after, warps_before, warps);
  return line;
}

double trip_clocks(const ir::Machine& machine, const TripWork& work, unsigned warps, double hidden) {
  const double issue_rate = machine.schedulers * known(machine.issue_rate, 1);
  const double issue = warps * work.instructions / issue_rate;
  const double exposed = std::max(work.staying_latency, work.ahead_latency - hidden);
  const double chain = work.instructions / known(machine.issue_rate, 1) + std::max(exposed, 0.0);
  const ir::Figure& dram = machine.memory.achieved_dram_gb_per_second;
  const double bytes_per_clock = known(dram, 100) * 1000 / machine.clock_mhz / machine.sms;
  return std::max({issue, chain, warps * work.bytes / bytes_per_clock});
}

RunAheadCost::RunAheadCost(const ir::LinearForms& forms, const ir::Machine& machine, unsigned threads,
                           uint64_t shared_bytes)
    : forms_(forms), function_(forms.function()), machine_(machine), threads_(threads), shared_bytes_(shared_bytes),
      lowering_(ir::lower(function_, machine.compute_capability)),
      registers_(ir::register_need(function_, machine.compute_capability).registers) {}

// In how many trips another sector is read, and how much of it by one warp.
double RunAheadCost::latency_of(const RunAheadLoad& load, double& bytes) const {
  const ir::ExpressionPool& pool = forms_.expressions();
  const ir::LinearForm& form = forms_.address_form(load.instruction, load.address);
  double fresh = 1, span = warp_size * load.bytes;
  for (const ir::LoopOffset& offset : form.loops())
    if (const auto step = pool.literal_value(offset.step);
        step && offset.loop == forms_.loops().innermost(load.block)) {
      const auto stride = static_cast<double>(std::llabs(ir::signed_value(*step, form.width)));
      fresh = std::min(1.0, std::max(stride, double(load.bytes)) / sector);
    }
  if (form.has_coefficients()) {
    const auto lanes = pool.literal_value(form.coefficients[ir::FormIndex::tid_x]);
    const double stride = lanes ? std::fabs(double(ir::signed_value(*lanes, form.width))) : sector;
    span = warp_size * std::min(stride, sector);
    if (stride == 0) span = sector;
  }
  bytes = span * fresh;
  const double hit = known(machine_.latency.l1, known(machine_.latency.dram, 400));
  return hit + fresh * (known(machine_.latency.dram, 400) - hit);
}

TripWork RunAheadCost::work_of(const RunAheadPlan& plan) const {
  TripWork work;
  const uint32_t depth = forms_.loops().loops()[plan.loop].depth;
  for (BlockId block : forms_.loops().loops()[plan.loop].blocks) {
    const double times = std::pow(inner_trips, forms_.loops().depth(block) - depth);
    for (InstructionId id : function_.instructions_in(block)) {
      const ir::InstructionCost& cost = lowering_.cost(id);
      work.instructions += times * (cost.weight + cost.uniform);
      if (function_.instructions[id].kind != InstructionKind::real || cost.weight == 0) continue;
      const ir::Form& form = function_.form_of(id);
      const bool ahead = std::ranges::any_of(plan.loads, [&](const auto& load) { return load.instruction == id; });
      if (!ahead && form.effects.reads_memory && !ir::is_param(form.space))
        work.staying_latency = std::max(work.staying_latency, times * known(ir::latency(machine_, form), 0));
    }
  }
  for (const RunAheadLoad& load : plan.loads) {
    double bytes = 0;
    work.ahead_latency = std::max(work.ahead_latency, latency_of(load, bytes));
    work.bytes += bytes;
  }
  return work;
}

double RunAheadCost::slice_instructions(const RunAheadPlan& plan) const {
  double sum = 0;
  for (InstructionId id : plan.slice.instructions) {
    const ir::InstructionCost& cost = lowering_.cost(id);
    sum += cost.weight + cost.uniform;
  }
  return sum + double(plan.loads.size());
}

unsigned RunAheadCost::warps_with(uint32_t registers, uint64_t shared_bytes) const {
  return ir::occupancy(machine_, {threads_, registers, static_cast<uint32_t>(shared_bytes)}).warps;
}

RunAheadEstimate RunAheadCost::estimate(const RunAheadPlan& plan, const RunAheadChoice& choice) const {
  RunAheadEstimate estimate;
  const TripWork before = work_of(plan);
  estimate.warps_before = warps_with(registers_, shared_bytes_);
  estimate.before = trip_clocks(machine_, before, estimate.warps_before, 0);

  TripWork after = before;
  const double slice = slice_instructions(plan);
  after.instructions += slice;
  uint32_t registers = registers_ + 1;
  for (uint32_t parameter : plan.slice.parameters)
    registers += lowering_.register_units(function_.parameters(plan.header)[parameter]);
  uint64_t shared = shared_bytes_;
  double remaining = 0;
  switch (choice.form) {
  case RunAheadForm::ring: {
    constexpr double group = 2, pointers = 3, pointer_registers = 4; // commit and wait; each ring's
    shared += ring_bytes(plan, choice);
    after.instructions += group + pointers;
    registers += pointer_registers;
    remaining = known(machine_.latency.shared, 30);
    break;
  }
  case RunAheadForm::registers:
    for (const RunAheadLoad& load : plan.loads)
      registers += choice.distance * (load.bytes + 3) / 4;
    after.instructions += double(choice.distance - 1) * double(plan.loads.size());
    after.instructions -= double(plan.loads.size()); // the loads themselves have moved
    break;
  case RunAheadForm::prefetch:
    // A prefetch brings data to the second-level cache.
    remaining = known(machine_.latency.l2, before.ahead_latency);
    break;
  }
  estimate.warps = warps_with(registers, shared);
  if (estimate.warps == 0) {
    estimate.after = INFINITY;
    return estimate;
  }
  // As many trips as lie between hide what they take; a trip that is bound by the loads is longer.
  after.staying_latency = std::max(after.staying_latency, remaining);
  const double unhindered = trip_clocks(machine_, after, estimate.warps, after.ahead_latency);
  after.staying_latency = std::max(before.staying_latency, remaining);
  estimate.after = trip_clocks(machine_, after, estimate.warps, choice.distance * unhindered);
  // Fewer warps take more rounds for the same work.
  estimate.after *= double(std::max(estimate.warps_before, 1u)) / estimate.warps;
  const double front = choice.distance * slice / inner_trips;
  estimate.after += estimate.warps_before * front / (machine_.schedulers * known(machine_.issue_rate, 1));
  return estimate;
}

} // namespace ptxrewrite::transforms::legal
