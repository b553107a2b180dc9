// Computes the highest sum of widths of live values, see registers.h.
#include "ir/machine/registers/registers.h"

#include "ir/core/module.h"
#include "ir/flow/liveness.h"
#include "ir/machine/figures/heuristics.h"
#include "ir/machine/prepare/called_functions.h"
#include "ir/machine/registers/issue_order.h"
#include "ir/machine/registers/pressure.h"
#include "ir/machine/registers/schedule.h"
#include "ir/machine/registers/sinking.h"
#include "ir/machine/select/lowering.h"
#include "ir/ssa/ssa.h"

#include <algorithm>
#include <span>
#include <utility>

namespace ptxrewrite::ir {

namespace {

std::vector<InstructionId> text_order(const Function& function, BlockId block) {
  std::vector<InstructionId> order;
  for (InstructionId id : function.instructions_in(block))
    order.push_back(id);
  return order;
}

// The highest pressure of a function in its order, and with loads early and stores pending.
struct Pressures {
  RegisterNeed least;   // as ordered
  uint32_t pending = 0; // if there are registers to spare
};

// End (a layout index) of the code without branches that begins with the block at `first`: predicated blocks and the
// blocks that follow them, as long as all predecessors of each block are in that code.
size_t end_of_straight_code(const Function& function, const ControlFlow& flow, const Lowering& lowering, size_t first) {
  const auto entered_from = [&](BlockId block, size_t end) {
    const auto& edges = flow.predecessors(block);
    const std::span<const BlockId> code(&function.layout[first], end - first);
    return !edges.empty() && std::ranges::all_of(edges, [&](EdgeId edge) {
      return std::ranges::find(code, function.edges[edge].from) != code.end();
    });
  };
  constexpr size_t longest = 64; // blocks
  size_t end = first + 1;
  while (end < function.layout.size() && end - first < longest) {
    const BlockId block = function.layout[end];
    const bool joins = lowering.predicated(block) || lowering.predicated(function.layout[end - 1]);
    if (!joins || !entered_from(block, end)) break;
    ++end;
  }
  return end;
}

// `issued`: nullptr for the order of the text.
StraightCode straight_code(const Function& function, std::span<const BlockId> blocks, IssueOrder* issued) {
  StraightCode code;
  for (BlockId block : blocks) {
    if (block != blocks.front()) code.starts.push_back({code.order.size(), block});
    const std::vector<InstructionId> order = issued ? issued->of(block) : text_order(function, block);
    code.order.insert(code.order.end(), order.begin(), order.end());
  }
  return code;
}

Pressures pressures_of(const Function& function, const Lowering& lowering, uint32_t compute_capability,
                       const CalledWords& called, bool issued_early) {
  Pressures result;
  const ControlFlow flow(function);
  const Liveness liveness(function, flow);
  const uint32_t near_words = heuristic(compute_capability, Heuristic::near_words);
  const bool passes_stores = heuristic(compute_capability, Heuristic::passed_stores) > 0;
  BlockPressure pressure(function, flow, lowering, compute_capability, called);
  IssueOrder issued(function, lowering, passes_stores);
  for (BlockId block : function.layout) {
    const RegisterNeed need = pressure.of_values(liveness.live_out(block), text_order(function, block));
    result.least.registers = std::max(result.least.registers, need.registers);
    result.least.predicates = std::max(result.least.predicates, need.predicates);
  }
  for (size_t first = 0, end = 0; function.is_ssa && first < function.layout.size(); first = end) {
    end = passes_stores ? end_of_straight_code(function, flow, lowering, first) : first + 1;
    const std::span<const BlockId> blocks(&function.layout[first], end - first);
    const uint32_t ahead = issued_early ? 0 : loaded_ahead(function, lowering, blocks, near_words, passes_stores);
    const StraightCode code = straight_code(function, blocks, issued_early ? nullptr : &issued);
    result.pending = std::max(result.pending, pressure.with_pending(liveness.live_out(blocks.back()), code) + ahead);
  }
  return result;
}

// Hardware forms have registers of their own, which are not scheduled.
bool is_hardware_form(const Function& function) {
  return std::ranges::any_of(function.values,
                             [](const Value& value) { return value.register_class != RegisterClass::general; });
}

// If registers are free, stores are pending and results are not overwritten at once; single words are in odd registers,
// so that the number is even.
uint32_t with_reserved(uint32_t least, uint32_t pending, uint32_t compute_capability) {
  const auto figure = [&](Heuristic which) { return heuristic(compute_capability, which); };
  uint32_t all = pending + figure(Heuristic::reserved_registers);
  if (figure(Heuristic::words_in_pairs)) all = (all + 1) / 2 * 2;
  return std::max(least + figure(Heuristic::least_reserved), std::min(all, figure(Heuristic::overlap_registers)));
}

// The smaller of two orders' needs: of the text and of early loads. If registers are free, loads are early.
RegisterNeed need_of(const Function& function, uint32_t compute_capability, OrdersTried orders,
                     const CalledWords& called) {
  const Pressures pressures =
      pressures_of(function, lower_as_written(function, compute_capability), compute_capability, called, false);
  RegisterNeed need = pressures.least;
  uint32_t pending = std::max(need.registers, pressures.pending);
  if (orders == OrdersTried::all && function.is_ssa && !is_hardware_form(function)) {
    Function early = function;
    schedule(early, compute_capability, {.goal = ScheduleGoal::early_loads, .live_limit = 255});
    const Pressures of_early =
        pressures_of(early, lower_as_written(early, compute_capability), compute_capability, called, true);
    need.registers = std::min(need.registers, of_early.least.registers);
    pending = std::max(pending, of_early.pending);
  }
  need.live = need.registers;
  need.registers = with_reserved(need.live, pending, compute_capability);
  return need;
}

RegisterNeed smaller(const RegisterNeed& a, const RegisterNeed& b) {
  return b.registers < a.registers ? b : a;
}

// With computations at their readers, but those of predicates; in a function that needs many registers, with the best
// of their places and orders.
RegisterNeed need_of_either(const Function& function, uint32_t compute_capability, OrdersTried orders,
                            const CalledWords& called) {
  Function sunk = function;
  sink_computations(sunk, false);
  const RegisterNeed need = need_of(sunk, compute_capability, orders, called);
  if (orders == OrdersTried::one || need.registers <= heuristic(compute_capability, Heuristic::overlap_registers))
    return need;
  Function few = sunk;
  sunk = function;
  sink_computations(sunk, true);
  const RegisterNeed best = smaller(smaller(need, need_of(sunk, compute_capability, orders, called)),
                                    need_of(function, compute_capability, orders, called));
  schedule(few, compute_capability, {.goal = ScheduleGoal::few_registers});
  return smaller(best, need_of(few, compute_capability, orders, called));
}

// Larger functions are lowered for one order alone: each further one takes as long as lowering them.
constexpr size_t few_instructions = 20'000;

// Without the functions that it calls.
RegisterNeed own_need(const Function& function, uint32_t compute_capability, OrdersTried orders,
                      const CalledWords& called) {
  if (function.instructions.size() > few_instructions) orders = OrdersTried::one;
  if (function.module().hardware_form) return need_of(function, compute_capability, orders, called);
  Function copy = function;
  if (!copy.is_ssa && !construct_ssa(copy).ok()) return need_of(function, compute_capability, orders, called);
  Function prepared = copy;
  prepare_for_lowering(prepared, compute_capability);
  const RegisterNeed need = need_of_either(prepared, compute_capability, orders, called);
  if (orders == OrdersTried::one || need.registers <= most_registers(compute_capability)) return need;
  // Values are not kept for reuse if they do not fit.
  return smaller(need, need_of_either(copy, compute_capability, orders, called));
}

// Instructions of called functions that are looked at: all kernels of a file may call the same ones.
constexpr size_t most_of_called = 4'000;

// By a lowering of this function: for its text with computations at their readers.
RegisterNeed need_by(const Function& function, const Lowering& lowering, uint32_t compute_capability,
                     const CalledWords& called) {
  Function sunk = function;
  if (sunk.is_ssa && !function.module().hardware_form) sink_computations(sunk, false);
  const Pressures pressures = pressures_of(sunk, lowering, compute_capability, called, false);
  RegisterNeed need = pressures.least;
  need.registers = with_reserved(need.registers, std::max(need.registers, pressures.pending), compute_capability);
  return need;
}

struct StatedBlock {
  uint32_t threads = 0; // 0: not stated
  uint32_t blocks = 0;  // that are to be resident on an SM; 0: not stated
  uint32_t registers = UINT32_MAX;
};

StatedBlock stated_block(const Function& function) {
  constexpr uint64_t most_threads = 1 << 16; // far beyond what a launch may have
  StatedBlock stated;
  for (const FunctionDirective& directive : function.directives) {
    const std::string_view name = function.module().text(directive.name);
    if (directive.count == 0) continue;
    if (name == ".maxnreg") stated.registers = std::min(stated.registers, directive.numbers[0]);
    if (name == ".minnctapersm") stated.blocks = directive.numbers[0];
    if (name != ".maxntid" && name != ".reqntid") continue;
    uint64_t threads = 1;
    for (uint8_t i = 0; i < directive.count; ++i)
      threads = std::min(threads * std::max(directive.numbers[i], 1U), most_threads);
    stated.threads = static_cast<uint32_t>(threads);
  }
  return stated;
}

// The most registers per thread with which an SM's register file holds that many threads.
uint32_t registers_for(uint64_t threads) {
  constexpr uint64_t all = 65'536, granularity = 8;
  return static_cast<uint32_t>(std::max(all / std::max<uint64_t>(threads, 1), 2 * granularity) / granularity *
                               granularity);
}

// If a kernel is bound by memory accesses and needs far more registers than its limit, ptxas allocates only the
// `resident` registers that allow full occupancy, and spills the remaining values.
bool waits_in_all_threads(const Function& function, uint32_t compute_capability, uint32_t beyond, uint32_t resident) {
  uint64_t accesses = 0, all = 0;
  for (BlockId block : function.layout)
    for (InstructionId id : function.instructions_in(block)) {
      if (function.instructions[id].kind != InstructionKind::real) continue;
      const Form& form = function.form_of(id);
      ++all;
      if (is_param(form.space) || is_shared(form.space)) continue;
      accesses += form.kind == InstructionClass::load || form.kind == InstructionClass::store ||
                  form.kind == InstructionClass::atomic || form.kind == InstructionClass::texture;
    }
  const auto figure = [&](Heuristic which) -> uint64_t { return heuristic(compute_capability, which); };
  return accesses * figure(Heuristic::waiting_accesses) >= all &&
         beyond * all >= resident * all + figure(Heuristic::waiting_work) * (all - accesses);
}

uint32_t limit_of(const Function& function, uint32_t compute_capability, uint32_t registers) {
  constexpr uint32_t fewest = 16;
  const auto figure = [&](Heuristic which) -> uint64_t { return heuristic(compute_capability, which); };
  const StatedBlock stated = stated_block(function);
  uint32_t limit = std::min(most_registers(compute_capability), std::max(stated.registers, fewest));
  if (stated.threads == 0) return limit;
  limit = std::min(limit, registers_for(uint64_t{stated.threads} * std::max(stated.blocks, 1U)));
  if (registers <= limit || stated.blocks > 0 || stated.threads > figure(Heuristic::waiting_block)) return limit;
  const uint32_t resident =
      registers_for(std::min(figure(Heuristic::resident_threads), figure(Heuristic::resident_blocks) * stated.threads));
  const bool waits = waits_in_all_threads(function, compute_capability, registers - limit, resident);
  return waits ? std::min(limit, resident) : limit;
}

// With the functions that it calls, up to the limit of its machine and its directives. `lowering`: of the function, or
// nullptr: it is prepared and lowered for this.
RegisterNeed whole_need(const Function& function, const Lowering* lowering, uint32_t compute_capability,
                        OrdersTried orders) {
  std::vector<const Function*> functions = called_functions(function);
  size_t looked_at = 0;
  std::erase_if(functions, [&](const Function* called) {
    looked_at += called->instructions.size();
    return looked_at > most_of_called;
  });
  // Those that call none first, as far as they do not call each other in circles.
  CalledWords called;
  uint32_t registers = 0, predicates = 0;
  for (size_t i = functions.size(); i-- > 0;) {
    const RegisterNeed need = own_need(*functions[i], compute_capability, orders, called);
    registers = std::max(registers, need.registers);
    predicates = std::max(predicates, need.predicates);
    called[functions[i]->name] = need.live;
  }
  RegisterNeed need = lowering ? need_by(function, *lowering, compute_capability, called)
                               : own_need(function, compute_capability, orders, called);
  need.registers = std::max(need.registers, registers);
  need.predicates = std::max(need.predicates, predicates);
  need.limit = limit_of(function, compute_capability, need.registers);
  need.beyond = need.registers - std::min(need.registers, need.limit);
  need.registers = std::min(need.registers, need.limit);
  return need;
}

} // namespace

RegisterNeed register_need(const Function& function, uint32_t compute_capability, OrdersTried orders) {
  return whole_need(function, nullptr, compute_capability, orders);
}

RegisterNeed register_need(const Function& function, const Lowering& lowering, uint32_t compute_capability) {
  return whole_need(function, &lowering, compute_capability, OrdersTried::one);
}

} // namespace ptxrewrite::ir
