#include "emulator/timing/energy.h"

#include "ir/forms/composite.h"

namespace ptxrewrite::timing {
namespace {

constexpr double pico = 1e-12;

bool multiplies(ir::Opcode opcode) {
  using enum ir::Opcode;
  switch (opcode) {
  case mul:
  case mad:
  case madc:
  case mul24:
  case mad24:
  case fma:
  case div:
  case dp2a:
  case dp4a:
    return true;
  default:
    return false;
  }
}

class Events {
public:
  void add(EnergyEvent event, double times) { counts_[static_cast<size_t>(event)] += times; }
  const EventCounts& get() const { return counts_; }

private:
  EventCounts counts_{};
};

// `scale`: the factor from the blocks that were looked at to all blocks.
void add_memory(const AccessCounts& shared_memory, const SectorCounts& sectors, double scale, Events& events) {
  using enum EnergyEvent;
  auto add = [&](EnergyEvent event, double times) { events.add(event, scale * times); };
  const auto read_misses = static_cast<double>(sectors.reads - sectors.l1_hits);
  const double from_dram = static_cast<double>(sectors.dram) + sectors.cold;
  const auto writes = static_cast<double>(sectors.writes), write_hits = static_cast<double>(sectors.l2_write_hits);
  add(EnergyEvent::shared, static_cast<double>(shared_memory.port_clocks));
  add(l1_read_hit, static_cast<double>(sectors.l1_hit_lines));
  add(l1_read_miss, static_cast<double>(sectors.read_lines - sectors.l1_hit_lines));
  add(l1_write_hit, static_cast<double>(sectors.l1_write_hits));
  add(l1_write_miss, static_cast<double>(sectors.write_lines - sectors.l1_write_hits));
  // Flits of reads: a request and the returned data; of writes: a header and the written data.
  add(noc_flit, static_cast<double>(sectors.read_lines - sectors.l1_hit_lines) + read_misses +
                    static_cast<double>(sectors.write_lines) + writes);
  add(l2_read_hit, read_misses - from_dram);
  add(l2_read_miss, from_dram);
  add(l2_write_hit, write_hits);
  add(l2_write_miss, writes - write_hits);
  add(dram_read, from_dram);
}

} // namespace

EnergyEvent unit_event(Cause unit, const ir::Form& form) {
  const bool product = multiplies(form.opcode);
  switch (unit) {
  case Cause::unit_integer:
    return product ? EnergyEvent::int_mul : EnergyEvent::int_alu;
  case Cause::unit_fp32:
    return product ? EnergyEvent::fp_mul : EnergyEvent::fp32;
  case Cause::unit_fp64:
    return product ? EnergyEvent::dp_mul : EnergyEvent::fp64;
  case Cause::unit_matrix:
    return EnergyEvent::tensor;
  case Cause::unit_special:
    break;
  default:
    return form.kind == ir::InstructionClass::texture ? EnergyEvent::tex : EnergyEvent::count;
  }
  switch (form.opcode) {
  case ir::Opcode::lg2:
    return EnergyEvent::lg2;
  case ir::Opcode::sin:
  case ir::Opcode::cos:
    return EnergyEvent::sin;
  case ir::Opcode::ex2:
  case ir::Opcode::tanh:
    return EnergyEvent::ex2;
  case ir::Opcode::sqrt:
  case ir::Opcode::rsqrt:
  case ir::Opcode::rcp:
  case ir::Opcode::div:
    return EnergyEvent::sqrt;
  default:
    return EnergyEvent::int_alu; // conversions, counting of bits
  }
}

EventCounts events_of(const ModelInput& input) {
  using enum EnergyEvent;
  const Recording& recording = input.recording;
  Events events;
  for_each_site(input, [&](uint32_t number, const emulator::InstructionCounters& counts) {
    const Site& site = recording.sites[number];
    const SiteCode& code = input.code[number];
    const double share = input.technique ? 1 - input.technique->at(number).skipped : 1;
    const double executions = share * static_cast<double>(counts.executions);
    const double lanes = share * static_cast<double>(counts.lanes);
    for (EnergyEvent event : {ibuffer, sched, icache_hit, opcoll})
      events.add(event, executions * code.instructions);
    events.add(rf_read, lanes * code.read_words);
    events.add(rf_write, lanes * code.written_words);
    if (code.instructions == 0) return;
    const ir::Form& form = site.function->form_of(site.instruction);
    // Both halves of a composite instruction use the unit.
    if (const EnergyEvent event = unit_event(code.unit, form); event != EnergyEvent::count)
      events.add(event, lanes * code.weight * (ir::is_composite(form) ? 2 : 1));
    if (code.wait == Cause::wait_constant) events.add(const_hit, executions);
    if (const auto seen = static_cast<double>(recording.executions[number]); seen > 0)
      add_memory(recording.shared[number], traffic_of(input).sectors[number],
                 (executions - share * static_cast<double>(counts.guarded_off)) / seen, events);
  });
  const double of_technique = input.technique ? input.technique->dram_write_bytes : 0;
  events.add(dram_write, (demand_of(input).dram_write_bytes - of_technique) / sector_bytes);
  EventCounts all = events.get();
  if (input.technique)
    for (size_t i = 0; i < energy_event_count; ++i)
      all[i] += input.technique->events[i];
  return all;
}

Energy energy(const EnergySet& set, const EventCounts& events, double seconds) {
  Energy sum;
  for (size_t i = 0; i < energy_event_count; ++i) {
    const double joule = set.pj[i] * events[i] * pico;
    const auto event = static_cast<EnergyEvent>(i);
    if (event <= EnergyEvent::opcoll)
      sum.front_end += joule;
    else if (event <= EnergyEvent::rf_write)
      sum.registers += joule;
    else if (event <= EnergyEvent::tex)
      sum.units += joule;
    else
      sum.memory += joule;
  }
  sum.constant = set.static_watt * seconds;
  return sum;
}

} // namespace ptxrewrite::timing
