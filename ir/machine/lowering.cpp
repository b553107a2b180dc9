// Counts machine instructions: rows of weights.def first, then what folds away; see lowering.h.
#include "ir/machine/lowering.h"

#include "ir/analysis/cfg.h"
#include "ir/analysis/dominators.h"
#include "ir/composite.h"
#include "ir/machine/convergence.h"
#include "ir/machine/divisions.h"
#include "ir/machine/first_generation.h"
#include "ir/machine/known_branches.h"
#include "ir/machine/linear_operands.h"
#include "ir/machine/lowering_rules.h"
#include "ir/machine/shared_vectors.h"
#include "ir/machine/uniform.h"
#include "ir/machine/unrolling.h"
#include "ir/machine/weights.h"
#include "ir/module.h"

#include <algorithm>
#include <bitset>
#include <map>
#include <set>

namespace ptxrewrite::ir {

namespace {

constexpr uint32_t first_uniform_datapath = 75;
constexpr uint32_t first_separate_lanes = 70;    // each lane has a program counter of its own
constexpr uint32_t first_clean_barriers = 80;    // what gathers lanes is not cleared before each use
constexpr uint32_t first_combined_atomics = 70;  // lanes of a warp elect one that does the atomic operation for all
constexpr uint32_t first_warp_reductions = 80;   // redux
constexpr uint32_t first_loaded_parameters = 90; // operands no longer name constant banks, a load brings them

// May its result be an operand that is not in a register? Instructions that compute have one place for such an operand.
bool has_constant_operand(const Form& form) {
  switch (form.kind) {
  case InstructionClass::integer:
  case InstructionClass::extended_precision:
  case InstructionClass::floating_point:
  case InstructionClass::half_precision:
  case InstructionClass::mixed_precision:
  case InstructionClass::comparison:
  case InstructionClass::half_comparison:
  case InstructionClass::selection:
  case InstructionClass::logic:
  case InstructionClass::shift:
  case InstructionClass::conversion:
  case InstructionClass::data_movement:
  case InstructionClass::control_flow:
    return true;
  case InstructionClass::extension:
    return is_composite(form); // one of its operands (composite-hpca13 §3.3)
  default:
    return false;
  }
}

} // namespace

class Lowerer {
public:
  Lowerer(const Function& function, uint32_t compute_capability, Lowering& result)
      : function_(function), capability_(compute_capability), result_(result),
        in_section_(function.instructions.size()), flow_(function), dominators_(function, flow_),
        post_dominators_(function, flow_), uniform_(function, flow_, post_dominators_),
        together_(function, flow_, post_dominators_, UniformSources::read),
        values_(function), context_{function,
                                    values_,
                                    compute_capability,
                                    result.costs_,
                                    std::vector<bool>(function.instructions.size()),
                                    std::vector<bool>(function.instructions.size()),
                                    std::vector<bool>(function.instructions.size()),
                                    dominators_,
                                    std::vector<ValueId>(function.values.size()),
                                    {},
                                    std::vector<bool>(function.instructions.size()),
                                    {}} {
    if (is_first_generation()) context_.low_halves = low_halves(function);
  }

  void run() {
    result_.costs_.assign(function_.instructions.size(), {});
    if (function_.is_entry) result_.prologue_ = 1; // the stack pointer
    if (function_.is_ssa) known_ = known_branches(context_);
    mark_needed();
    for_each_needed([&](InstructionId id) { weigh_alone(id); });
    mark_sections();
    for_each_needed([&](InstructionId id) { weigh_movement(id); });
    for_each_needed([&](InstructionId id) { apply_rules(id); });
    for_each_needed([&](InstructionId id) { weigh_constant(id); });
    for_each_needed([&](InstructionId id) { weigh_linear_operand(id); });
    join_shared_accesses(context_);
    if (!is_first_generation()) share_reciprocals(context_);
    if (capability_ < first_loaded_parameters && !is_first_generation())
      for_each_needed([&](InstructionId id) { weigh_wide_literal(id); });
    if (capability_ >= first_loaded_parameters) for_each_needed([&](InstructionId id) { weigh_long_literals(id); });
    if (capability_ >= first_uniform_datapath) for_each_needed([&](InstructionId id) { move_to_uniform(id); });
    for_each_needed([&](InstructionId id) { weigh_named_address(id); });
    if (capability_ >= first_combined_atomics) for_each_needed([&](InstructionId id) { weigh_combined_atomic(id); });
    weigh_system_values();
    weigh_branches();
    if (capability_ >= first_separate_lanes) weigh_waiting_loops(context_, flow_, together_);
    result_.register_units_.assign(function_.values.size(), 0);
    for (ValueId value : function_.values.ids())
      result_.register_units_[value.index()] = units_of(value);
    result_.needed_ = context_.needed;
    drop_unreached();
    if (capability_ >= first_separate_lanes)
      result_.subroutines_ += slow_paths_of_exchanges(context_, flow_, post_dominators_, together_);
    if (function_.is_ssa) measure_unrolling();
    if (function_.is_entry) add_called_functions();
    result_.absorbed_ = std::move(context_.absorbed);
    result_.without_constant_ = std::move(context_.without_constant);
  }

private:
  void measure_unrolling() {
    for (BlockId block : function_.layout) {
      if (!flow_.reachable(block) || !reached(block)) continue;
      Unrolling unrolling = unrolling_of(context_, together_, block);
      result_.unrolled_ += unrolling.instructions;
      for (BlockId copied : unrolling.blocks)
        if (unrolling.copies > 1) result_.copies_[copied] = unrolling.copies;
    }
  }

  // Where the function is only declared, the one that defines it; nullptr if none does.
  static const Function* body_of(const Function& declared) {
    if (declared.has_body) return &declared;
    const Module& module = declared.module();
    for (const std::unique_ptr<Function>& function : module.functions)
      if (function->has_body && function->name == declared.name) return function.get();
    return nullptr;
  }

  // A kernel holds the code of each function that it calls, once.
  void add_called_functions() {
    const Module& module = function_.module();
    std::vector<const Function*> work{&function_};
    std::set<const Function*> seen;
    while (!work.empty()) {
      const Function& caller = *work.back();
      work.pop_back();
      for (BlockId block : caller.layout)
        for (InstructionId id : caller.instructions_in(block)) {
          if (!caller.is_opcode(id, Opcode::call)) continue;
          for (const Operand& operand : caller.operands_of(id)) {
            if (!operand.is(OperandKind::symbol) || operand.as_symbol().kind() != SymbolRef::Kind::function) continue;
            const Function* called = body_of(module.function(operand.as_symbol().function()));
            if (!called || called->is_entry || !seen.insert(called).second) continue;
            result_.subroutines_ += lower(*called, capability_).static_instructions();
            work.push_back(called);
          }
        }
    }
  }

  bool reached(BlockId block) const { return known_.reached.empty() || known_.reached[block.index()]; }

  // Blocks that no run comes to are not in the code.
  void drop_unreached() {
    for (BlockId block : function_.layout) {
      if (reached(block)) continue;
      for (InstructionId id : function_.instructions_in(block)) {
        context_.needed[id.index()] = false;
        cost(id) = {};
      }
    }
  }

  bool is_first_generation() const { return capability_ < first_generation_end; }

  template <class Visit> void for_each_needed(Visit&& visit) {
    for (BlockId block : function_.layout) {
      if (!flow_.reachable(block)) continue;
      for (InstructionId id : function_.instructions_in(block))
        if (context_.needed[id.index()] && context_.form(id) && !in_section_[id.index()])
          visit(id); // rows have no form
    }
  }

  InstructionCost& cost(InstructionId id) { return result_.costs_[id.index()]; }

  // Everything that an instruction with an effect, or control, depends on.
  void mark_needed() {
    std::vector<std::vector<InstructionId>> writers(function_.values.size());
    std::vector<std::vector<ValueId>> arguments(function_.values.size()); // of block parameters
    std::vector<InstructionId> work;
    std::vector<bool> value_needed(function_.values.size());
    std::vector<ValueId> value_work;
    auto need = [&](InstructionId id) {
      if (context_.needed[id.index()]) return;
      context_.needed[id.index()] = true;
      work.push_back(id);
    };
    for (BlockId block : function_.layout) {
      if (!flow_.reachable(block)) continue;
      for (EdgeId edge : function_.successors(block)) {
        std::span<const ValueId> parameters = function_.parameters(function_.edges[edge].to);
        std::span<const ValueId> given = function_.arguments(edge);
        for (size_t i = 0; i < std::min(parameters.size(), given.size()); ++i)
          arguments[parameters[i].index()].push_back(given[i]);
      }
      for (InstructionId id : function_.instructions_in(block)) {
        for_each_definition(function_, id, [&](ValueId value) { writers[value.index()].push_back(id); });
        const Form* form = context_.form(id);
        bool removable = form && (form->effects.pure() || (form->opcode == Opcode::ld && !form->effects.atomic &&
                                                           !form->effects.volatile_result));
        if (form && !removable) need(id);
      }
    }
    auto need_value = [&](ValueId value) {
      if (value_needed[value.index()]) return;
      value_needed[value.index()] = true;
      value_work.push_back(value);
    };
    while (!work.empty() || !value_work.empty()) {
      if (!value_work.empty()) {
        ValueId value = value_work.back();
        value_work.pop_back();
        for (InstructionId id : writers[value.index()])
          need(id);
        for (ValueId argument : arguments[value.index()])
          need_value(argument);
        continue;
      }
      InstructionId id = work.back();
      work.pop_back();
      for_each_use(function_, id, need_value);
    }
  }

  // Each barrier that gathers lanes again is cleared first (BMOV) where lanes have been separate for the first time.
  uint32_t barrier_clearing() const {
    return capability_ >= first_separate_lanes && capability_ < first_clean_barriers ? 1 : 0;
  }

  // Of bit fields, both the place and the length.
  bool last_is_literal(InstructionId id) const {
    const Operand *last = nullptr, *before = nullptr;
    for (size_t i = 0; const Operand* operand = context_.source(id, i); ++i) {
      before = last;
      last = operand;
    }
    const Opcode opcode = context_.form(id)->opcode;
    const bool is_field = opcode == Opcode::bfe || opcode == Opcode::bfi;
    return context_.is_literal(last) && (!is_field || context_.is_literal(before));
  }

  // Bytes and halves of a word are extracted by one permutation or mask.
  bool extracts_bytes(InstructionId id) const {
    if (!function_.is_opcode(id, Opcode::bfe) || bit_width(context_.form(id)->type()) != 32) return false;
    const Operand* place = context_.source(id, 1);
    const Operand* length = context_.source(id, 2);
    if (!place || !length || !place->is(OperandKind::integer) || !length->is(OperandKind::integer)) return false;
    if (length->immediate != 8 && length->immediate != 16)
      return place->immediate == 0 && !is_signed(context_.form(id)->type());
    return place->immediate % length->immediate == 0;
  }

  void weigh_alone(InstructionId id) {
    const Form* form = context_.form(id);
    if (!form) return;
    FormWeight weight = weight_of(*form, capability_, last_is_literal(id));
    if (!reached(function_.instructions[id].block)) weight.subroutine = Subroutine::none;
    SubroutineSize subroutine = size_of(weight.subroutine);
    if (weight.subroutine != Subroutine::none && !appended_.test(static_cast<size_t>(weight.subroutine))) {
      appended_.set(static_cast<size_t>(weight.subroutine));
      result_.subroutines_ += subroutine.instructions;
    }
    result_.subroutines_ += subroutine.at_place;
    // Lanes that take the slow path are gathered behind it.
    if (subroutine.at_place > 0) result_.subroutines_ += barrier_clearing();
    result_.subroutines_ -= subroutine.executed; // counted with the instruction
    cost(id) = {static_cast<uint16_t>(weight.instructions + subroutine.executed), 0, weight.pipe};
    if (extracts_bytes(id)) cost(id).weight = 1;
    if (form->opcode == Opcode::call) weigh_call(id);
    if (form->opcode == Opcode::st && is_param(form->space)) weigh_argument(id);
    if (is_first_generation() && weight.subroutine == Subroutine::none) weigh_first_generation(id, *form);
  }

  void weigh_first_generation(InstructionId id, const Form& form) {
    std::vector<Operand> sources;
    for (size_t i = 0; const Operand* operand = context_.source(id, i); ++i)
      if (!operand->is_group()) sources.push_back(*operand);
    ValueId result = context_.result(id);
    bool low_half = result && context_.low_halves[result.index()];
    if (std::optional<uint16_t> weight = first_generation_weight(form, sources, low_half)) cost(id).weight = *weight;
  }

  // What the driver provides (printf, malloc) is anywhere: its address is loaded, and the way back computed.
  void weigh_call(InstructionId id) {
    const uint16_t way_there_and_back = capability_ < first_loaded_parameters ? 9 : 4;
    for (const Operand& operand : function_.operands_of(id))
      if (operand.is(OperandKind::symbol) && operand.as_symbol().kind() == SymbolRef::Kind::function &&
          !body_of(function_.module().function(operand.as_symbol().function())))
        cost(id).weight = way_there_and_back;
  }

  // Arguments are moved to where the function expects them; constants come there at once.
  void weigh_argument(InstructionId id) {
    uint16_t words = 0;
    for (size_t i = 0; const Operand* operand = context_.source(id, i); ++i) {
      if (operand->is(OperandKind::address) || operand->is_group()) continue;
      const bool constant =
          operand->is(OperandKind::value) && context_.source_of(operand->as_value()) != ValueSource::computed;
      if (!constant || capability_ >= first_loaded_parameters)
        words += static_cast<uint16_t>(std::max(1u, bit_width(context_.form(id)->type()) / 32));
    }
    cost(id).weight = words;
  }

  // Registers of 32 bits that hold the value, whoever keeps it.
  unsigned words_of(ValueId value) const {
    if (is_first_generation() && context_.low_halves[value.index()]) return 1;
    return std::max(1u, (bit_width(function_.values[value].type) + 31) / 32);
  }

  // Copies, address conversions, special registers: free, or one read for the whole kernel.
  void weigh_movement(InstructionId id) {
    const Form& form = *context_.form(id);
    if (form.opcode == Opcode::cvta) {
      cost(id).weight = 0;
      return;
    }
    if (form.opcode != Opcode::mov) return;
    const Operand* operand = context_.source(id, 0);
    if (operand && operand->is(OperandKind::special_register)) {
      auto [place, first] = special_registers_.try_emplace(std::pair(operand->id, operand->selector), id);
      // Indices of the block are read into uniform registers where all operands may come from there.
      bool uniform = capability_ >= first_loaded_parameters &&
                     info(static_cast<SpecialRegister>(operand->id)).uniformity == Uniformity::block;
      uint16_t reads = first ? 1 : 0;
      cost(id) = uniform ? InstructionCost{0, reads, Pipe::uniform} : InstructionCost{reads, 0, Pipe::special};
      return;
    }
    // A register is renamed; the halves of a pair have been its registers before. Only where some lanes keep what the
    // register held, something has to be moved.
    unsigned bits = bit_width(form.type());
    bool moves = function_.instructions[id].guard && form.type() != ScalarType::pred;
    cost(id).weight = static_cast<uint16_t>(moves ? (bits + 31) / 32 : 0);
  }

  // The sections of a hardware form run as they are written: the paper's machine issues each of their instructions.
  void mark_sections() {
    bool inside = false;
    for (BlockId block : function_.layout)
      for (InstructionId id : function_.instructions_in(block)) {
        InstructionKind kind = function_.instructions[id].kind;
        if (kind == InstructionKind::section_begin) inside = true;
        if (kind == InstructionKind::section_end) inside = false;
        if (inside && kind == InstructionKind::real) {
          in_section_[id.index()] = true;
          cost(id).weight = 1;
        }
      }
  }

  void apply_rules(InstructionId id) {
    if (function_.instructions[id].guard && !context_.result(id)) return;
    for (const LoweringRule& rule : lowering_rules())
      if ((rule.first_generation || !is_first_generation()) && rule.apply(context_, id)) {
        context_.absorbed[id.index()] = true;
        cost(id).weight = 0;
        return;
      }
  }

  // Can the reader name the value without a register?
  bool reads_without_register(InstructionId reader, ValueId value, ValueSource source) {
    const Form* form = context_.form(reader);
    if (!form) return true;
    if (form->opcode == Opcode::mov || form->opcode == Opcode::cvta) return true; // its own result answers for it
    if (context_.reads_as_address(reader, value)) return false;
    bool is_zero = source == ValueSource::literal && literal_is_zero(value);
    if (is_zero) return true;
    // Distance, clamp and the mask of all lanes stand in the instruction word.
    if (form->kind == InstructionClass::warp_shuffle && source == ValueSource::literal)
      return context_.source(reader, 0)->as_value() != value;
    if (!has_constant_operand(*form)) return false;
    // One such operand to an instruction: the last one.
    bool last = false;
    for (size_t i = 0; const Operand* operand = context_.source(reader, i); ++i) {
      if (operand->is(OperandKind::value) && context_.source_of(operand->as_value()) != ValueSource::computed)
        last = operand->as_value() == value;
      if (operand->is_constant()) last = false;
    }
    return last;
  }

  bool literal_is_zero(ValueId value) const {
    InstructionId id = values_.definition(value);
    const Operand* operand = id ? context_.source(id, 0) : nullptr;
    return operand && operand->is_constant() && operand->immediate == 0;
  }

  // Values that are no registers at first cost where some reader needs them in one, at their definition.
  void weigh_constant(InstructionId id) {
    ValueId value = context_.result(id);
    const Form& form = *context_.form(id);
    if (!value) return;
    ValueSource source = context_.source_of(value);
    if (source == ValueSource::computed) return;
    InstructionCost& at = cost(id);
    at.weight = 0;
    at.pipe = Pipe::issue;
    bool loads = source == ValueSource::constant_bank && capability_ >= first_loaded_parameters;
    bool starts = form.opcode == Opcode::ld || form.opcode == Opcode::mov;
    bool in_register = values_.merges(value);
    for (InstructionId reader : values_.readers(value))
      in_register |= context_.needed[reader.index()] && !reads_without_register(reader, value, source);
    if (loads) {
      // One load brings it, wherever it is read.
      const Operand* operand = context_.source(id, 0);
      if (!starts || !operand || operand->is(OperandKind::value)) return;
      bool uniform = bit_width(function_.values[value].type) <= 32;
      at = uniform ? InstructionCost{0, 1, Pipe::uniform} : InstructionCost{1, 0, Pipe::memory};
      return;
    }
    if (in_register) at.weight = static_cast<uint16_t>(words_of(value));
  }

  // The factor of a wide multiply-add whose addend is a parameter must be in a register: ptxas moves it there anew in
  // each block, even in loops.
  void weigh_wide_literal(InstructionId id) {
    const Form& form = *context_.form(id);
    if (form.opcode != Opcode::mul || !form.has(Modifier::wide) || !context_.absorbed[id.index()]) return;
    const Operand* factor = context_.source(id, 1);
    if (!context_.is_literal(factor)) return;
    for (InstructionId reader : values_.readers(context_.result(id))) {
      const Operand* a = context_.source(reader, 0);
      const Operand* b = context_.source(reader, 1);
      bool parameter = false;
      for (const Operand* operand : {a, b})
        parameter |= operand && operand->is(OperandKind::value) &&
                     context_.source_of(operand->as_value()) == ValueSource::constant_bank;
      if (!parameter) continue;
      BlockId block = function_.instructions[reader].block;
      auto& places = literal_places_[factor->is_constant() ? factor->immediate : -1];
      if (std::ranges::find(places, block) != places.end()) continue;
      places.push_back(block);
      ++cost(reader).weight;
    }
  }

  // A literal of 64 bits whose low word is not zero stands in a constant bank before 9.0; then it is moved into two
  // registers, once in a block.
  void weigh_long_literals(InstructionId id) {
    const Form& form = *context_.form(id);
    if (form.type() != ScalarType::f64 || !has_constant_operand(form) || form.opcode == Opcode::mov) return;
    if (context_.absorbed[id.index()]) return;
    for (size_t i = 0; const Operand* operand = context_.source(id, i); ++i) {
      const Operand* found = literal_behind(operand);
      if (!found || (found->immediate & UINT32_MAX) == 0) continue;
      if (literals_.insert({function_.instructions[id].block, found->immediate}).second)
        cost(id).weight = static_cast<uint16_t>(cost(id).weight + 2);
    }
  }

  // The literal itself, or the one that the register holds.
  const Operand* literal_behind(const Operand* operand) const {
    for (int step = 0; operand && step < 4; ++step) {
      if (operand->is_constant()) return operand;
      InstructionId definition = context_.definition(operand);
      if (!definition || !function_.is_opcode(definition, Opcode::mov)) return nullptr;
      operand = context_.source(definition, 0);
    }
    return nullptr;
  }

  // A sum of linear registers that all its readers name themselves.
  void weigh_linear_operand(InstructionId id) {
    if (!function_.is_opcode(id, Opcode::r2d2_mov)) return;
    ValueId value = context_.result(id);
    if (!value || function_.instructions[id].guard || values_.merges(value) || values_.readers(value).empty()) return;
    LinearOperand sum = linear_sum(id);
    if (sum.adds && bit_width(context_.form(id)->type()) != 32) return;
    for (InstructionId reader : values_.readers(value)) {
      if (!context_.needed[reader.index()]) continue;
      if (context_.absorbed[reader.index()] || !reads_linear_operand(function_, reader, value, sum)) return;
      if (sum.adds && context_.reads_sum[reader.index()]) return;
      if (!holds_until(id, reader)) return;
    }
    for (InstructionId reader : values_.readers(value))
      if (sum.adds) context_.reads_sum[reader.index()] = true;
    context_.absorbed[id.index()] = true;
    cost(id).weight = 0;
  }

  LinearOperand linear_sum(InstructionId id) const {
    LinearOperand sum;
    bool immediate = false;
    for (size_t i = 0; const Operand* operand = context_.source(id, i); ++i) {
      immediate |= operand->is(OperandKind::integer);
      if (!operand->is(OperandKind::value)) continue;
      InstructionId row = values_.definition(operand->as_value());
      if (!row || function_.instructions[row].kind != InstructionKind::linear_row)
        ++sum.registers;
      else
        for (const Operand& part : function_.operands_of(row))
          sum.registers += part.is(OperandKind::value) && !part.is_definition();
    }
    sum.adds = sum.registers > 1 || immediate;
    return sum;
  }

  // Does a general register among the sum's still hold its value there? Such registers count the trips of loops.
  bool holds_until(InstructionId id, InstructionId reader) const {
    for (size_t i = 0; const Operand* operand = context_.source(id, i); ++i) {
      if (!operand->is(OperandKind::value)) continue;
      ValueId value = operand->as_value();
      if (function_.values[value].register_class != RegisterClass::general) continue;
      if (!context_.same_block(id, reader)) return false;
      std::vector<ValueId> next = next_values(value);
      for (InstructionId between = id; between && between != reader; between = function_.instructions[between].next) {
        bool written = false;
        for_each_definition(function_, between,
                            [&](ValueId one) { written |= std::ranges::find(next, one) != next.end(); });
        if (written) return false;
      }
    }
    return true;
  }

  // Which values take a register's place: the same register written again, or what edges bring to a block parameter.
  std::vector<ValueId> next_values(ValueId value) const {
    std::vector<ValueId> next{value};
    for (BlockId block : function_.layout)
      for (EdgeId edge : function_.successors(block)) {
        std::span<const ValueId> parameters = function_.parameters(function_.edges[edge].to);
        std::span<const ValueId> given = function_.arguments(edge);
        for (size_t i = 0; i < std::min(parameters.size(), given.size()); ++i)
          if (parameters[i] == value) next.push_back(given[i]);
      }
    return next;
  }

  // Integer work on values that are the same in all lanes is done once per warp, on the uniform datapath.
  void move_to_uniform(InstructionId id) {
    const Form& form = *context_.form(id);
    InstructionCost& at = cost(id);
    if (at.weight == 0 || function_.instructions[id].guard || !form.effects.pure()) return;
    bool suits = form.kind == InstructionClass::integer || form.kind == InstructionClass::logic ||
                 form.kind == InstructionClass::shift;
    if (!suits || is_float(form.type()) || form.type() == ScalarType::pred) return;
    ValueId value = context_.result(id);
    if (!value || !uniform_.uniform(value)) return;
    bool minimum = form.opcode == Opcode::min || form.opcode == Opcode::max;
    at = {0, static_cast<uint16_t>(at.weight + (minimum ? 1 : 0)), Pipe::uniform};
  }

  // An access names a global variable itself: its address comes from constant memory, once for each variable.
  void weigh_named_address(InstructionId id) {
    const Form& form = *context_.form(id);
    if (form.opcode == Opcode::mov || form.opcode == Opcode::cvta) return;
    for (const Operand& operand : function_.operands_of(id)) {
      if (!operand.is(OperandKind::symbol) || !context_.is_global_variable(operand.as_symbol())) continue;
      if (!named_variables_.insert(operand.as_symbol().variable()).second) continue;
      InstructionCost& at = cost(id);
      if (capability_ >= first_loaded_parameters)
        at.weight += 1;
      else if (capability_ >= first_uniform_datapath && capability_ < 80)
        at.uniform += 1; // addresses may be uniform registers there
      else
        at.weight += 2;
    }
  }

  // The address of a memory access is the same in all lanes.
  bool has_uniform_address(InstructionId id) {
    for (size_t i = 0; const Operand* operand = context_.source(id, i); ++i) {
      if (!operand->is(OperandKind::address)) continue;
      for (size_t member = 1; member <= operand->group_size(); ++member)
        if (operand[member].is(OperandKind::value) && !uniform_.uniform(operand[member].as_value()) &&
            context_.source_of(operand[member].as_value()) == ValueSource::computed)
          return false;
      return true;
    }
    return false;
  }

  // Lanes that do the same atomic operation to one place: they elect one, which adds for all.
  void weigh_combined_atomic(InstructionId id) {
    const Form& form = *context_.form(id);
    if (form.kind != InstructionClass::atomic || is_float(form.type()) || bit_width(form.type()) != 32) return;
    const bool adds = form.has(Modifier::add), extreme = form.has(Modifier::min) || form.has(Modifier::max);
    if ((!adds && !extreme) || !has_uniform_address(id)) return;
    const ValueId old = context_.result(id);
    const bool used = old && !(values_.readers(old).empty() && !values_.merges(old));
    const Operand* given = context_.source(id, 1);
    const bool same = !given->is(OperandKind::value) ||
                      context_.source_of(given->as_value()) != ValueSource::computed ||
                      uniform_.uniform(given->as_value());
    if (used && !(adds && same)) return;
    if (!same && capability_ < first_warp_reductions) return;
    // Who is there, the first of them, how many or their sum, am I that one; and for each his place among them.
    constexpr uint16_t election = 4, place = 5;
    cost(id).weight = static_cast<uint16_t>(cost(id).weight + election + (used ? place : 0) + (lane_known_ ? 0 : 1));
    lane_known_ = true;
  }

  // What the machine keeps in constant memory for all kernels: the descriptor of global memory, and from 9.0 on where
  // in its cluster's shared memory the block is.
  void weigh_system_values() {
    if (!function_.is_entry) return;
    bool global = false, shared = false;
    for_each_needed([&](InstructionId id) {
      const Form& form = *context_.form(id);
      bool memory = form.kind == InstructionClass::load || form.kind == InstructionClass::store ||
                    form.kind == InstructionClass::atomic;
      global |= memory && (form.space == StateSpace::global || form.space == StateSpace::none);
      for (const Operand& operand : function_.operands_of(id))
        shared |= operand.is(OperandKind::symbol) && names_shared(operand.as_symbol());
    });
    if (global && capability_ >= 80) result_.prologue_uniform_ += 1;
    if (shared && capability_ >= 90) result_.prologue_uniform_ += 3;
  }

  bool names_shared(SymbolRef symbol) const {
    if (symbol.kind() == SymbolRef::Kind::local_variable)
      return is_shared(function_.variables[symbol.variable()].space);
    return symbol.kind() == SymbolRef::Kind::module_variable &&
           is_shared(function_.module().variables[symbol.variable()].space);
  }

  uint8_t units_of(ValueId id) const {
    const Value& value = function_.values[id];
    if (value.type == ScalarType::pred || value.register_class != RegisterClass::general) return 0;
    unsigned width = words_of(id) * value.vector_width;
    InstructionId definition = values_.definition(id);
    if (!definition || function_.instructions[definition].kind != InstructionKind::real)
      return static_cast<uint8_t>(width);
    const InstructionCost& made = result_.cost(definition);
    if (!context_.needed[definition.index()] || made.uniform > 0) return 0;
    if (context_.source_of(id) != ValueSource::computed && !in_section_[definition.index()])
      return static_cast<uint8_t>(capability_ < first_loaded_parameters && made.weight > 0 ? width : 0);
    if (context_.absorbed[definition.index()]) {
      if (context_.without_constant[id.index()]) return 0;                            // the register of the rest
      if (width > 1 && bit_width(context_.form(definition)->type(1)) <= 32) return 1; // what is to be extended
    }
    return static_cast<uint8_t>(width);
  }

  // --- control ---

  InstructionId last_real(BlockId block) const {
    InstructionId id = function_.blocks[block].last;
    while (id && function_.instructions[id].kind != InstructionKind::real)
      id = function_.instructions[id].previous;
    return id;
  }

  // Issued by the block's instructions, its branch left out.
  uint32_t body_weight(BlockId block) const {
    uint32_t sum = 0;
    InstructionId last = last_real(block);
    for (InstructionId id : function_.instructions_in(block))
      if (id != last || !function_.is_opcode(id, Opcode::bra)) sum += result_.cost(id).weight;
    return sum;
  }

  // How much may be issued under a predicate: found by assembling longer and longer code behind a branch.
  uint32_t longest_predicated(BlockId block, BlockId skipped) const {
    constexpr uint32_t with_stores = 8, with_stores_for_all_lanes = 6, with_loads = 20, else_longest = 12;
    bool loads = false;
    for (InstructionId id : function_.instructions_in(skipped)) {
      const Form* form = context_.form(id);
      if (!form) continue;
      if (form->effects.writes_memory || form->effects.atomic)
        return together_.branch_is_uniform(block) ? with_stores_for_all_lanes : with_stores;
      loads |= form->kind == InstructionClass::load && !is_param(form->space);
    }
    return loads ? with_loads : else_longest;
  }

  // Short code that a branch skips is issued under a predicate instead.
  bool is_predicated(BlockId block, BlockId skipped, BlockId target) const {
    if (flow_.predecessors(skipped).size() != 1 || function_.successors(skipped).size() != 1) return false;
    if (function_.edges[function_.successors(skipped)[0]].to != target || skipped == block) return false;
    for (InstructionId id : function_.instructions_in(skipped)) {
      const Form* form = context_.form(id);
      if (!form) continue;
      if (form->effects.barrier || form->effects.convergent || form->effects.call) return false;
      if (weight_of(*form, capability_, last_is_literal(id)).subroutine != Subroutine::none) return false;
      if (function_.instructions[id].guard) return false;
    }
    return body_weight(skipped) <= longest_predicated(block, skipped);
  }

  void weigh_branches() {
    std::vector<uint32_t> position(function_.blocks.size());
    for (uint32_t i = 0; i < function_.layout.size(); ++i)
      position[function_.layout[i].index()] = i;
    std::vector<bool> joined(function_.blocks.size());
    context_.predicated.assign(function_.blocks.size(), false);
    for (BlockId block : function_.layout) {
      InstructionId id = last_real(block);
      if (!flow_.reachable(block) || !id || !function_.is_opcode(id, Opcode::bra)) continue;
      std::span<const EdgeId> edges = function_.successors(block);
      BlockId target = function_.edges[edges[0]].to;
      if (!known_.decided.empty() && known_.decided[block.index()]) {
        cost(id).weight = 0;
        continue;
      }
      if (!function_.instructions[id].guard) {
        // To the block behind it: nothing to do.
        if (position[target.index()] == position[block.index()] + 1) cost(id).weight = 0;
        continue;
      }
      if (edges.size() != 2) continue;
      BlockId next = function_.edges[edges[1]].to;
      if (is_predicated(block, next, target)) {
        context_.predicated[next.index()] = true;
        cost(id).weight = 0;
        continue;
      }
      // Lanes that part are brought together again.
      BlockId join = post_dominators_.immediate_post_dominator(block);
      if (capability_ < 70 || !join || together_.branch_is_uniform(block) || joined[join.index()] || only_exits(join))
        continue;
      joined[join.index()] = true;
      cost(id).weight = static_cast<uint16_t>(cost(id).weight + 2 + barrier_clearing());
    }
  }

  bool only_exits(BlockId block) const {
    InstructionId id = last_real(block);
    return id && body_weight(block) <= 1 &&
           (function_.is_opcode(id, Opcode::ret) || function_.is_opcode(id, Opcode::exit));
  }

  const Function& function_;
  uint32_t capability_;
  Lowering& result_;
  std::vector<bool> in_section_; // of a hardware form, by InstructionId
  ControlFlow flow_;
  DominatorTree dominators_;
  PostDominatorTree post_dominators_;
  UniformValues uniform_;  // what the uniform datapath may compute
  UniformValues together_; // which branches keep lanes together
  ValueFlow values_;
  LoweringContext context_;
  KnownBranches known_;
  std::bitset<static_cast<size_t>(Subroutine::count)> appended_;
  std::map<std::pair<uint32_t, Selector>, InstructionId> special_registers_;
  std::set<VariableId> named_variables_;                   // global ones whose address an access has brought
  bool lane_known_ = false;                                // the lane's number has been read for an election
  std::set<std::pair<BlockId, int64_t>> literals_;         // that have been moved into registers
  std::map<int64_t, std::vector<BlockId>> literal_places_; // where a factor has been put into a register
};

std::string_view spelling(Pipe pipe) {
  switch (pipe) {
  case Pipe::issue:
    return "issue";
  case Pipe::integer:
    return "integer";
  case Pipe::fp32:
    return "fp32";
  case Pipe::fp64:
    return "fp64";
  case Pipe::special:
    return "special";
  case Pipe::memory:
    return "memory";
  case Pipe::matrix:
    return "matrix";
  case Pipe::control:
    return "control";
  case Pipe::uniform:
    return "uniform";
  }
  return {};
}

uint32_t Lowering::static_instructions() const {
  uint32_t sum = prologue_ + prologue_uniform_ + subroutines_ + unrolled_;
  for (const InstructionCost& cost : costs_)
    sum += cost.weight + cost.uniform;
  return sum;
}

uint32_t Lowering::static_uniform_instructions() const {
  uint32_t sum = prologue_uniform_;
  for (const InstructionCost& cost : costs_)
    sum += cost.uniform;
  return sum;
}

Lowering lower(const Function& function, uint32_t compute_capability) {
  Lowering result;
  Lowerer(function, compute_capability, result).run();
  return result;
}

} // namespace ptxrewrite::ir
