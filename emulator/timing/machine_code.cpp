#include "emulator/timing/machine_code.h"

#include "emulator/core/micro_op.h"
#include "ir/forms/composite.h"
#include "ir/machine/figures/expansion.h"
#include "ir/machine/figures/latency.h"
#include "ir/machine/figures/matrix_work.h"
#include "ir/machine/figures/special_work.h"

#include <algorithm>
#include <array>
#include <map>

namespace ptxrewrite::timing {
namespace {

using emulator::warp_size;

constexpr std::array<std::string_view, cause_count> cause_names = {
    "issue",
    "integer unit",
    "fp32 unit",
    "fp64 unit",
    "special unit",
    "matrix unit",
    "affine units",
    "scalar unit",
    "barrier unit",
    "memory port",
    "instruction fetch",
    "staging entries",
    "expansion units",
    "L2 bandwidth",
    "DRAM bandwidth",
    "wait: integer",
    "wait: fp32",
    "wait: fp64",
    "wait: special",
    "wait: matrix",
    "wait: shared memory",
    "wait: constant memory",
    "wait: L1",
    "wait: L2",
    "wait: DRAM",
    "wait: affine queues",
    "wait: staged registers",
    "linear parts",
    "outstanding misses",
    "affine warp",
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
    return Cause::wait_special;
  case ir::Pipe::matrix:
    return Cause::wait_matrix;
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

// Loads and atomics whose result comes from the caches or from DRAM; texture fetches if L1 holds texels.
bool loads_global(const ir::Machine& machine, const ir::Form& form) {
  using enum ir::InstructionClass;
  if (form.kind == texture || form.kind == surface) return form.effects.reads_memory && machine.memory.l1_kib.known;
  return form.effects.reads_memory && (form.kind == load || form.kind == atomic || form.kind == matrix_wmma) &&
         is_global(form.space);
}

void set_memory(const ir::Machine& machine, const ir::Form& form, SiteCode& code) {
  using enum ir::InstructionClass;
  code.is_memory = form.kind == load || form.kind == store || form.kind == atomic || form.kind == matrix_move ||
                   form.kind == matrix_wmma || form.kind == async_copy || form.kind == texture || form.kind == surface;
  if (loads_global(machine, form)) {
    code.waits = Waits::for_global_memory;
    code.wait = Cause::wait_l1;
    code.latency = machine.latency.l1.known ? machine.latency.l1.value : machine.latency.dram.value;
  } else if (form.kind == texture || form.kind == surface) {
    // Caches that hold only textures are not simulated: every access hits.
    code.wait = Cause::wait_l1;
    code.latency = machine.latency.l1.known ? machine.latency.l1.value : machine.latency.dram.value;
  } else if (form.space == ir::StateSpace::constant || ir::is_param(form.space)) {
    code.wait = Cause::wait_constant;
    code.latency = machine.latency.constant.value;
  } else {
    code.wait = Cause::wait_shared;
    code.latency = ir::shared_latency(machine, form.space).value;
  }
}

double clocks_at(const ir::Figure& throughput) {
  return throughput.known && throughput.value > 0 ? double{warp_size} / throughput.value : 0;
}

// If 64-bit conversions have the throughput of double precision and that is low (compute capability 3.0, 5.x, 6.1, 7.5,
// 8.6), the fp64 units execute them, so that both share these units: calculate_temp of tests/silicon, set B, takes the
// sum of both times.
bool converts_in_fp64_unit(const ir::Machine& machine, const ir::Form& form) {
  if (form.kind != ir::InstructionClass::conversion) return false;
  const bool wide = std::ranges::any_of(form.types, [](ir::ScalarType type) { return ir::bit_width(type) == 64; });
  const ir::ThroughputFacts& facts = machine.throughput;
  return wide && facts.fp64.known && facts.convert64.known && facts.fp64.value == facts.convert64.value;
}

// The unit of the arithmetic instructions in an expansion around special instructions.
Cause arithmetic_unit(const ir::Form& form) {
  using enum ir::InstructionClass;
  const bool integer_type = form.kind == integer || form.kind == logic || form.kind == conversion;
  if (integer_type) return Cause::unit_integer;
  return ir::bit_width(form.type(0)) == 64 ? Cause::unit_fp64 : Cause::unit_fp32;
}

// Distributes the instructions of an expansion to the special unit and the arithmetic unit.
void split_expansion(const ir::Machine& machine, const ir::Form& form, const ir::InstructionCost& cost,
                     SiteCode& code) {
  const uint16_t special = ir::special_instructions(form, cost);
  if (cost.weight <= 1 || special == 0 || special == cost.weight) return;
  const ir::ThroughputFacts& facts = machine.throughput;
  if (code.unit == Cause::unit_special) {
    code.other_unit = arithmetic_unit(form);
    code.other_weight = cost.weight - special;
    code.other_clocks = clocks_at(code.other_unit == Cause::unit_integer ? facts.integer_add
                                  : code.other_unit == Cause::unit_fp64  ? facts.fp64
                                                                         : facts.fp32);
  } else if (code.unit == Cause::unit_integer || code.unit == Cause::unit_fp32 || code.unit == Cause::unit_fp64) {
    code.other_unit = Cause::unit_special;
    code.other_weight = special;
    code.other_clocks = clocks_at(facts.special_function);
  }
}

SiteCode code_of(const ir::Machine& machine, const ir::Form& form, const ir::InstructionCost& cost) {
  SiteCode code;
  code.weight = cost.weight;
  code.uniform = cost.uniform;
  code.instructions = code.weight + code.uniform;
  if (code.instructions == 0) {
    code.is_absent = form.space == ir::StateSpace::local &&
                     (form.kind == ir::InstructionClass::load || form.kind == ir::InstructionClass::store);
    return code;
  }
  code.unit = unit_of(cost.pipe);
  code.wait = wait_of(cost.pipe);
  code.step_latency = latency_of(machine.latency, cost.pipe);
  const ir::Figure latency = ir::latency(machine, form);
  code.latency = latency.known ? latency.value : code.step_latency;
  ir::Figure throughput = ir::throughput(machine, form);
  // Conversions between integers are integer instructions, whichever unit converts floating point.
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
  if (ir::is_composite(form)) {
    // The two halves pass the unit one after the other.
    code.latency *= 2;
  }
  if (code.unit == Cause::unit_special && converts_in_fp64_unit(machine, form)) code.unit = Cause::unit_fp64;
  if (code.unit != Cause::issue) code.unit_clocks = clocks_at(throughput) * (ir::is_composite(form) ? 2 : 1);
  if (const ir::Figure& rate = machine.throughput.matrix_async;
      form.opcode == ir::Opcode::tcgen05 && ir::is_async_product(form) && rate.known)
    code.multiplication_clocks = ir::tensor_memory_product_time(form) / rate.value;
  split_expansion(machine, form, cost, code);
  return code;
}

// Costs for CodeIs::ptx. Linear registers stay operands of their readers: R2D2's machine provides them.
ir::InstructionCost cost_as_ptx(const ir::Machine& machine, const ir::Function& function, ir::InstructionId id,
                                const ir::Lowering& lowering) {
  if (function.instructions[id].kind != ir::InstructionKind::real || function.is_opcode(id, ir::Opcode::r2d2_mov) ||
      (!lowering.needed(id) && lowering.cost(id).weight == 0))
    return lowering.cost(id);
  const ir::Form& form = function.form_of(id);
  // Parameters are in constant memory, which has its own port.
  const ir::Pipe pipe = ir::is_param(form.space)
                            ? ir::Pipe::issue
                            : ir::expansion_of(form, static_cast<uint32_t>(machine.compute_capability), false).pipe();
  return {1, 0, pipe};
}

// Costs for CodeIs::apart.
ir::InstructionCost cost_apart(const ir::Function& function, ir::InstructionId id, const ir::Lowering& lowering) {
  const ir::InstructionCost& cost = lowering.cost(id);
  if (function.instructions[id].kind != ir::InstructionKind::real || !lowering.needed(id) || cost.weight) return cost;
  const ir::Form& form = function.form_of(id);
  const bool accesses = form.kind == ir::InstructionClass::load || form.kind == ir::InstructionClass::store;
  return accesses && ir::is_shared(form.space) ? ir::InstructionCost{1, 0, ir::Pipe::memory} : cost;
}

using CostOf = std::function<ir::InstructionCost(const ir::Function&, ir::InstructionId)>;

// The registers that are in the register file: those written by a machine instruction. The others are operands from
// other places (parameters, results absorbed by their readers). Predicates have a file of their own.
std::vector<bool> registers_in_file(const ir::Function& function, const CostOf& cost) {
  std::vector<bool> in_file(function.values.size());
  for (ir::BlockId block : function.layout)
    for (ir::InstructionId id : function.instructions_in(block)) {
      if (function.instructions[id].kind != ir::InstructionKind::real || cost(function, id).weight == 0) continue;
      ir::for_each_definition(function, id, [&](ir::ValueId value) {
        in_file[value.index()] = function.values[value].type != ir::ScalarType::pred;
      });
    }
  return in_file;
}

// The space read by a plain load, which the assembler may move up.
AccessSpace early_load(const ir::Form& form) {
  const bool plain = form.kind == ir::InstructionClass::load && !form.effects.volatile_result;
  if (!plain) return AccessSpace::none;
  if (form.space == ir::StateSpace::constant || ir::is_param(form.space) || form.has(ir::Modifier::nc))
    return AccessSpace::constant;
  return ir::is_shared(form.space) ? AccessSpace::shared
         : is_global(form.space)   ? AccessSpace::global
                                   : AccessSpace::none;
}

// The space that a store writes: loads that may read it stay after the store. A generic store counts as global; it may
// write shared memory, but in code by nvcc the loads of that memory are then generic, too.
AccessSpace stored(const ir::Form& form) {
  if (form.kind != ir::InstructionClass::store) return AccessSpace::none;
  return ir::is_shared(form.space) ? AccessSpace::shared : AccessSpace::global;
}

// Whether loads are not moved across this instruction.
bool ends_piece(const ir::Form& form) {
  using enum ir::InstructionClass;
  return form.kind == barrier || form.kind == fence || form.kind == mbarrier || form.kind == control_flow ||
         form.effects.atomic || form.effects.volatile_result;
}

// By instruction: the piece of straight-line code and the position in it. `pieces`: the number of pieces so far.
struct StraightCode {
  std::vector<uint32_t> piece, place;
};
StraightCode straight_code(const ir::Function& function, uint32_t& pieces) {
  StraightCode code;
  code.piece.resize(function.instructions.size());
  code.place.resize(function.instructions.size());
  uint32_t place = 0;
  for (ir::BlockId block : function.layout) {
    ++pieces;
    for (ir::InstructionId id : function.instructions_in(block)) {
      code.piece[id.index()] = pieces;
      code.place[id.index()] = place++;
      const bool real = function.instructions[id].kind == ir::InstructionKind::real;
      if (real && ends_piece(function.form_of(id))) ++pieces;
    }
  }
  return code;
}

uint32_t words_of(const ir::Value& value) {
  return std::max(ir::bit_width(value.type) / 32, 1u) * value.vector_width;
}

} // namespace

std::string_view spelling(Cause cause) {
  return cause_names[static_cast<size_t>(cause)];
}

std::vector<bool> MachineCode::absent_accesses() const {
  if (std::ranges::none_of(sites_, &SiteCode::is_absent)) return {};
  std::vector<bool> absent;
  for (const SiteCode& site : sites_)
    absent.push_back(site.is_absent);
  return absent;
}

MachineCode::MachineCode(const ir::Machine& machine, std::span<const Site> sites, const LoweringOf& lowering,
                         CodeIs code_is) {
  const CostOf cost = [&](const ir::Function& function, ir::InstructionId id) {
    if (code_is == CodeIs::ptx) return cost_as_ptx(machine, function, id, lowering(function));
    return code_is == CodeIs::apart ? cost_apart(function, id, lowering(function)) : lowering(function).cost(id);
  };
  struct FunctionFacts {
    uint32_t first_register = 0;
    std::vector<bool> in_file;
    StraightCode straight;
  };
  std::map<const ir::Function*, FunctionFacts> facts;
  sites_.resize(sites.size());
  for (size_t number = 0; number < sites.size(); ++number) {
    const ir::Function* function = sites[number].function;
    if (!function) continue;
    const ir::InstructionId id = sites[number].instruction;
    const auto [place, is_new] = facts.try_emplace(function);
    if (is_new) {
      place->second = {register_count_, registers_in_file(*function, cost), straight_code(*function, piece_count_)};
      register_count_ += static_cast<uint32_t>(function->values.size());
    }
    if (function->instructions[id].kind != ir::InstructionKind::real) continue;
    // No-operations take issue slots alone.
    const uint16_t idle = code_is == CodeIs::ptx ? uint16_t{0} : lowering(*function).idle_instructions(id);
    ir::InstructionCost own = cost(*function, id);
    own.weight = static_cast<uint16_t>(own.weight - idle);
    SiteCode& code = sites_[number] = code_of(machine, function->form_of(id), own);
    code.instructions += idle;
    const auto& [base, in_file, straight] = place->second;
    code.piece = straight.piece[id.index()];
    code.place = straight.place[id.index()];
    code.copies = lowering(*function).copies_of(function->instructions[id].block);
    if (code.instructions) {
      code.early_load = early_load(function->form_of(id));
      code.stores = stored(function->form_of(id));
    }
    // The operands of an absorbed instruction are read by its readers.
    const bool is_read = code.weight || (code_is != CodeIs::ptx && lowering(*function).absorbed(id));
    auto words = [&](ir::ValueId value) { return in_file[value.index()] ? words_of(function->values[value]) : 0; };
    code.first_use = static_cast<uint32_t>(registers_.size());
    ir::for_each_use(*function, id, [&](ir::ValueId value) {
      registers_.push_back(base + value.index());
      if (is_read) code.read_words += words(value);
    });
    code.uses = static_cast<uint32_t>(registers_.size()) - code.first_use;
    code.first_definition = static_cast<uint32_t>(registers_.size());
    ir::for_each_definition(*function, id, [&](ir::ValueId value) {
      registers_.push_back(base + value.index());
      if (code.weight) code.written_words += words(value);
    });
    code.definitions = static_cast<uint32_t>(registers_.size()) - code.first_definition;
  }
}

} // namespace ptxrewrite::timing
