#include "emulator/timing/machine_code.h"

#include "ir/machine/latency.h"

#include <algorithm>
#include <array>
#include <map>

namespace ptxrewrite::timing {
namespace {

constexpr double warp_size = 32;

constexpr std::array<std::string_view, cause_count> names = {
    "issue",
    "integer unit",
    "fp32 unit",
    "fp64 unit",
    "special unit",
    "matrix unit",
    "barrier unit",
    "memory port",
    "L2 bandwidth",
    "DRAM bandwidth",
    "wait: integer",
    "wait: fp32",
    "wait: fp64",
    "wait: special",
    "wait: shared memory",
    "wait: constant memory",
    "wait: L1",
    "wait: L2",
    "wait: DRAM",
    "outstanding misses",
    "barriers",
    "imbalance",
    "tail",
    "launch",
};

Cause unit_of(ir::Pipe pipe) {
  switch (pipe) {
  case ir::Pipe::integer:
    return Cause::unit_integer;
  case ir::Pipe::fp32:
    return Cause::unit_fp32;
  case ir::Pipe::fp64:
    return Cause::unit_fp64;
  case ir::Pipe::special:
    return Cause::unit_special;
  case ir::Pipe::matrix:
    return Cause::unit_matrix;
  case ir::Pipe::memory:
    return Cause::memory_port;
  default:
    return Cause::issue;
  }
}

Cause wait_of(ir::Pipe pipe) {
  switch (pipe) {
  case ir::Pipe::fp32:
    return Cause::wait_fp32;
  case ir::Pipe::fp64:
    return Cause::wait_fp64;
  case ir::Pipe::special:
  case ir::Pipe::matrix:
    return Cause::wait_special;
  default:
    return Cause::wait_integer;
  }
}

double latency_of(const ir::LatencyFacts& facts, ir::Pipe pipe) {
  switch (pipe) {
  case ir::Pipe::fp32:
    return facts.fp32.value;
  case ir::Pipe::fp64:
    return facts.fp64.value;
  case ir::Pipe::special:
    return facts.special_function.value;
  default:
    return facts.integer.value;
  }
}

bool is_global(ir::StateSpace space) {
  return space == ir::StateSpace::global || space == ir::StateSpace::local || space == ir::StateSpace::none;
}

// Loads and atomics whose result comes from the caches or from DRAM.
bool loads_global(const ir::Form& form) {
  using enum ir::InstructionClass;
  return form.effects.reads_memory && (form.kind == load || form.kind == atomic) && is_global(form.space);
}

void set_memory(const ir::Machine& machine, const ir::Form& form, SiteCode& code) {
  using enum ir::InstructionClass;
  code.is_memory = form.kind == load || form.kind == store || form.kind == atomic || form.kind == matrix_move ||
                   form.kind == async_copy || form.kind == texture || form.kind == surface;
  if (loads_global(form)) {
    code.waits = Waits::for_global_memory;
    code.wait = Cause::wait_l1;
    code.latency = machine.latency.l1.known ? machine.latency.l1.value : machine.latency.dram.value;
  } else if (form.kind == texture || form.kind == surface) {
    // Textures are not followed through the caches: they hit in L1.
    code.wait = Cause::wait_l1;
    code.latency = machine.latency.l1.known ? machine.latency.l1.value : machine.latency.dram.value;
  } else if (form.space == ir::StateSpace::constant || ir::is_param(form.space)) {
    code.wait = Cause::wait_constant;
    code.latency = machine.latency.constant.value;
  } else {
    code.wait = Cause::wait_shared;
    code.latency = machine.latency.shared.value;
  }
}

SiteCode code_of(const ir::Machine& machine, const ir::Form& form, const ir::InstructionCost& cost) {
  SiteCode code;
  code.weight = cost.weight;
  code.uniform = cost.uniform;
  code.instructions = code.weight + code.uniform;
  if (code.instructions == 0) return code;
  code.unit = unit_of(cost.pipe);
  code.wait = wait_of(cost.pipe);
  code.step_latency = latency_of(machine.latency, cost.pipe);
  const ir::Figure latency = ir::latency(machine, form);
  code.latency = latency.known ? latency.value : code.step_latency;
  ir::Figure throughput = ir::throughput(machine, form);
  // Conversions between integers are integer instructions, wherever conversions of floating point run.
  if (form.kind == ir::InstructionClass::conversion && cost.pipe == ir::Pipe::integer) {
    throughput = machine.throughput.integer_add;
    code.latency = machine.latency.integer.value;
  }
  if (cost.pipe == ir::Pipe::memory) {
    set_memory(machine, form, code);
  } else if (form.kind == ir::InstructionClass::barrier) {
    code.waits = Waits::for_barrier;
    code.unit = Cause::unit_barrier;
  }
  if (code.unit != Cause::issue && throughput.known && throughput.value > 0)
    code.unit_clocks = warp_size / throughput.value;
  return code;
}

} // namespace

std::string_view spelling(Cause cause) {
  return names[static_cast<size_t>(cause)];
}

MachineCode::MachineCode(const ir::Machine& machine, std::span<const Site> sites, const LoweringOf& lowering) {
  std::map<const ir::Function*, uint32_t> first_register;
  sites_.resize(sites.size());
  for (size_t number = 0; number < sites.size(); ++number) {
    const ir::Function* function = sites[number].function;
    if (!function) continue;
    const ir::InstructionId id = sites[number].instruction;
    const auto [place, is_new] = first_register.try_emplace(function, register_count_);
    if (is_new) register_count_ += static_cast<uint32_t>(function->values.size());
    if (function->instructions[id].kind != ir::InstructionKind::real) continue;
    SiteCode& code = sites_[number] = code_of(machine, function->form_of(id), lowering(*function).cost(id));
    const uint32_t base = place->second;
    code.first_use = static_cast<uint32_t>(registers_.size());
    ir::for_each_use(*function, id, [&](ir::ValueId value) { registers_.push_back(base + value.index()); });
    code.uses = static_cast<uint32_t>(registers_.size()) - code.first_use;
    code.first_definition = static_cast<uint32_t>(registers_.size());
    ir::for_each_definition(*function, id, [&](ir::ValueId value) { registers_.push_back(base + value.index()); });
    code.definitions = static_cast<uint32_t>(registers_.size()) - code.first_definition;
  }
}

} // namespace ptxrewrite::timing
