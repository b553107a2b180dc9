// Selects the figure of a machine for an instruction, see latency.h.
#include "ir/machine/figures/latency.h"

#include "ir/machine/figures/expansion.h"
#include "ir/machine/figures/matrix_work.h"

#include <algorithm>

namespace ptxrewrite::ir {

namespace {

constexpr double lanes_of_warp = 32;

bool multiplies(const Form& form) {
  switch (form.opcode) {
  case Opcode::mul:
  case Opcode::mad:
  case Opcode::mul24:
  case Opcode::mad24:
  case Opcode::madc:
  case Opcode::dp2a:
  case Opcode::dp4a:
    return true;
  default:
    return false;
  }
}

Figure memory_latency(const Machine& machine, const Form& form) {
  if (form.kind == InstructionClass::store) return {};
  if (is_shared(form.space)) return shared_latency(machine, form.space);
  if (form.space == StateSpace::constant || is_param(form.space)) return machine.latency.constant;
  if (form.kind == InstructionClass::atomic)
    return machine.latency.l2.known ? machine.latency.l2 : machine.latency.dram;
  return machine.latency.l1.known ? machine.latency.l1 : machine.latency.dram;
}

// The rate of conversions depends on the widest type involved.
Figure convert_throughput(const Machine& machine, const Form& form) {
  unsigned widest = 0;
  for (ScalarType type : form.types)
    widest = std::max(widest, bit_width(type));
  const ThroughputFacts& facts = machine.throughput;
  return widest == 64 ? facts.convert64 : bit_width(form.type(1)) == 8 ? facts.convert8 : facts.convert32;
}

// Lanes per clock, such that the machine instructions of the product take as long as its multiplications.
Figure matrix_throughput(const Machine& machine, const Form& form) {
  Figure figure = is_async_product(form) ? machine.throughput.matrix_async : machine.throughput.matrix;
  const double products = matrix_products(form) / expansion_of(form, machine.compute_capability, false).instructions;
  if (!figure.known || products == 0) return {};
  figure.value *= lanes_of_warp / products;
  return figure;
}

Figure integer_throughput(const Machine& machine, const Form& form) {
  const ThroughputFacts& facts = machine.throughput;
  if (multiplies(form)) return facts.integer_multiply_add;
  switch (form.opcode) {
  case Opcode::popc:
    return facts.population_count;
  case Opcode::bfe:
  case Opcode::bfi:
  case Opcode::bfind:
  case Opcode::brev:
  case Opcode::clz:
    return facts.bit_field_extract;
  default:
    break;
  }
  switch (form.kind) {
  case InstructionClass::logic:
    return facts.logic;
  case InstructionClass::shift:
    return facts.shift;
  case InstructionClass::comparison:
  case InstructionClass::selection:
    return facts.compare;
  default:
    return facts.integer_add;
  }
}

} // namespace

Figure shared_latency(const Machine& machine, StateSpace space) {
  const bool is_remote = space == StateSpace::shared_cluster && machine.latency.shared_cluster.known;
  return is_remote ? machine.latency.shared_cluster : machine.latency.shared;
}

Figure latency(const Machine& machine, const Form& form) {
  switch (form.kind) {
  case InstructionClass::load:
  case InstructionClass::store:
  case InstructionClass::atomic:
    return memory_latency(machine, form);
  case InstructionClass::warp_shuffle:
    return machine.latency.shared;
  case InstructionClass::barrier:
  case InstructionClass::fence:
  case InstructionClass::control_flow:
    return {};
  case InstructionClass::conversion:
    return machine.latency.special_function;
  default:
    break;
  }
  switch (expansion_of(form, machine.compute_capability, false).pipe()) {
  case Pipe::fp32:
    return machine.latency.fp32;
  case Pipe::fp64:
    return machine.latency.fp64;
  case Pipe::special:
    return machine.latency.special_function;
  case Pipe::matrix:
    return machine.latency.matrix;
  case Pipe::integer:
    return multiplies(form) ? machine.latency.integer_multiply_add : machine.latency.integer;
  case Pipe::issue:
    return machine.latency.integer;
  default:
    return {};
  }
}

Figure throughput(const Machine& machine, const Form& form) {
  const ThroughputFacts& facts = machine.throughput;
  switch (form.kind) {
  case InstructionClass::warp_shuffle:
    return facts.shuffle;
  case InstructionClass::barrier:
    return facts.barrier;
  case InstructionClass::conversion:
    return convert_throughput(machine, form);
  default:
    break;
  }
  switch (expansion_of(form, machine.compute_capability, false).pipe()) {
  case Pipe::fp32:
    return facts.fp32;
  case Pipe::fp64:
    return facts.fp64;
  case Pipe::special:
    return form.opcode == Opcode::popc ? facts.population_count : facts.special_function;
  case Pipe::memory:
    return facts.load_store;
  case Pipe::matrix:
    return matrix_throughput(machine, form);
  case Pipe::integer:
    return integer_throughput(machine, form);
  default:
    return {};
  }
}

} // namespace ptxrewrite::ir
