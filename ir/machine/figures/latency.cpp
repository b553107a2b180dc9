// The figures of a machine that the rows of isa.def name, see latency.h.
#include "ir/machine/figures/latency.h"

#include "ir/machine/figures/expansion.h"
#include "ir/machine/figures/matrix_work.h"

namespace ptxrewrite::ir {

namespace {

constexpr double lanes_of_warp = 32;

// Lanes per clock, such that the machine instructions of the product take as long as its multiplications.
Figure matrix_throughput(const Machine& machine, const Form& form) {
  Figure figure = is_async_product(form) ? machine.throughput.matrix_async : machine.throughput.matrix;
  const double products = matrix_products(form) / expansion_of(form, machine.compute_capability, false).instructions;
  if (!figure.known || products == 0) return {};
  figure.value *= lanes_of_warp / products;
  return figure;
}

} // namespace

Figure shared_latency(const Machine& machine, StateSpace space) {
  const bool is_remote = space == StateSpace::shared_cluster && machine.latency.shared_cluster.known;
  return is_remote ? machine.latency.shared_cluster : machine.latency.shared;
}

Figure latency(const Machine& machine, const Form& form) {
  const LatencyFacts& facts = machine.latency;
  const LatencyField field = row_of(expansion_of(form, machine.compute_capability, false).principal).latency;
  if (!field) return {};
  if (field == &LatencyFacts::shared) return shared_latency(machine, form.space);
  const bool is_cached = field == &LatencyFacts::l1 || field == &LatencyFacts::l2;
  return is_cached && !(facts.*field).known ? facts.dram : facts.*field;
}

Figure throughput(const Machine& machine, const Form& form) {
  const RateField field = row_of(expansion_of(form, machine.compute_capability, false).principal).rate;
  if (!field) return {};
  return field == &ThroughputFacts::matrix ? matrix_throughput(machine, form) : machine.throughput.*field;
}

} // namespace ptxrewrite::ir
