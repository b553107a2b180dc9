// Counts machine instructions: first by rows of expand.def, then by fusions; see lowering.h.
#include "ir/machine/select/lowering.h"

#include "ir/core/module.h"
#include "ir/flow/cfg.h"
#include "ir/flow/dominators.h"
#include "ir/machine/figures/expansion.h"
#include "ir/machine/figures/generations.h"
#include "ir/machine/figures/heuristics.h"
#include "ir/machine/fuse/constant_operands.h"
#include "ir/machine/fuse/fusion.h"
#include "ir/machine/fuse/operand_slots.h"
#include "ir/machine/fuse/scaled_arguments.h"
#include "ir/machine/fuse/uniform_base.h"
#include "ir/machine/fuse/wide_arithmetic.h"
#include "ir/machine/prepare/called_functions.h"
#include "ir/machine/prepare/canonical.h"
#include "ir/machine/prepare/conditions.h"
#include "ir/machine/prepare/first_generation.h"
#include "ir/machine/prepare/fold.h"
#include "ir/machine/prepare/low_words.h"
#include "ir/machine/prepare/needed.h"
#include "ir/machine/prepare/overwritten_stores.h"
#include "ir/machine/prepare/rule_helpers.h"
#include "ir/machine/prepare/sections.h"
#include "ir/machine/prepare/tidy.h"
#include "ir/machine/prepare/uniform.h"
#include "ir/machine/select/branches.h"
#include "ir/machine/select/combined_atomics.h"
#include "ir/machine/select/convergence.h"
#include "ir/machine/select/divisions.h"
#include "ir/machine/select/double_spacing.h"
#include "ir/machine/select/edge_copies.h"
#include "ir/machine/select/guarded_accesses.h"
#include "ir/machine/select/linear_operands.h"
#include "ir/machine/select/lowering_trace.h"
#include "ir/machine/select/predicate_registers.h"
#include "ir/machine/select/shared_vectors.h"
#include "ir/machine/select/split_pointers.h"
#include "ir/machine/select/uniform_datapath.h"
#include "ir/machine/select/unrolling.h"
#include "ir/machine/select/vector_tuples.h"

#include <bitset>
#include <map>
#include <set>

namespace ptxrewrite::ir {

class Lowerer {
public:
  // `definitions`: of the function. `moves`: by InstructionId, or empty: see tidy.h. `trace`: nullptr if not requested.
  // `written`: see LoweringContext.
  Lowerer(const Function& function, const ControlFlow& flow, const DominatorTree& dominators,
          ValueDefinitions definitions, uint32_t compute_capability, Lowering& result, LoweringTrace* trace,
          std::vector<bool> moves = {}, const Function* written = nullptr)
      : function_(function), capability_(compute_capability), result_(result), moves_(std::move(moves)), flow_(flow),
        dominators_(dominators), post_dominators_(function, flow_),
        together_(function, flow_, dominators_, post_dominators_, UniformSources::read),
        uniform_(UniformValues::computed_among(together_)),
        values_(function, std::move(definitions)), context_{function,
                                                            flow_,
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
                                                            {}},
        scaled_arguments_(context_, dominators_), tracer_(context_, trace) {
    context_.written = written;
    context_.uniform_values = &uniform_;
    context_.in_section.assign(function.instructions.size(), false);
    context_.uniform.assign(function.instructions.size(), false);
    context_.layout_places.resize(function.blocks.size());
    for (uint32_t place = 0; place < function.layout.size(); ++place)
      context_.layout_places[function.layout[place].index()] = place;
    if (is_first_generation()) context_.low_halves = low_halves(function);
  }

  // `only_exchanges`: until has_slow_exchanges() is known.
  void run(bool only_exchanges = false) {
    result_.costs_.assign(function_.instructions.size(), {});
    if (function_.is_entry) result_.prologue_ = 1; // the stack pointer
    context_.needed = needed_instructions(function_, flow_, values_);
    context_.list_needed();
    tracer_.start();
    for_each_needed([&](InstructionId id) { weigh_alone(id); });
    mark_sections();
    tracer_.alone();
    step("movement", [&] { for_each_needed([&](InstructionId id) { weigh_movement(id); }); });
    step("fusion", [&] { for_each_needed([&](InstructionId id) { fuse_with_readers(id); }); });
    weigh_constants_and_uniform_work();
    if (contents().names_variables)
      step("named address", [&] { for_each_needed([&](InstructionId id) { weigh_named_address(id); }); });
    if (has(capability_, MachineFact::paired_coordinates) && contents().has(InstructionClass::texture))
      step("texture coordinates", [&] { weigh_coordinates(); });
    step("combined atomics", [&] { weigh_combined_atomics(context_, uniform_); });
    weigh_system_values();
    step("pairs of zeros", [&] { weigh_zero_pairs(context_); });
    step("guarded accesses", [&] { weigh_guarded_accesses(context_, together_); });
    step("branches", [&] { weigh_branches(context_, post_dominators_, together_); });
    if (!context_.based_sums.empty()) step("uniform bases", [&] { weigh_uniform_bases(context_); });
    if (!is_first_generation()) {
      step("copies at edges", [&] { weigh_edge_copies(context_, uniform_); });
      step("moved predicates", [&] { weigh_moved_predicates(context_); });
    }
    if (has(capability_, MachineFact::separate_lanes))
      step("waiting loop", [&] { weigh_waiting_loops(context_, flow_, together_); });
    step("spacing of double precision", [&] { result_.subroutines_ += weigh_double_spacing(context_, result_.idle_); });
    result_.register_units_.assign(function_.values.size(), 0);
    for (ValueId value : function_.values.ids())
      result_.register_units_[value.index()] = units_of(value);
    if (has(capability_, MachineFact::uniform_datapath)) keep_parameters_uniform();
    result_.needed_ = context_.needed;
    result_.predicated_ = context_.predicated;
    if (has(capability_, MachineFact::separate_lanes)) {
      const uint32_t slow_paths = slow_paths_of_exchanges(context_, flow_, post_dominators_, together_);
      has_slow_exchanges_ = slow_paths > 0;
      result_.subroutines_ += slow_paths;
    }
    if (only_exchanges) return;
    if (function_.is_ssa) measure_unrolling();
    if (function_.is_ssa && !is_first_generation()) weigh_split_pointers(context_, result_);
    if (function_.is_entry) add_called_functions();
    tracer_.finish();
    result_.absorbed_ = std::move(context_.absorbed);
    result_.without_constant_ = std::move(context_.without_constant);
  }

  bool has_slow_exchanges() const { return has_slow_exchanges_; }

private:
  template <class Step> void step(std::string_view name, Step&& run) {
    run();
    tracer_.changes(name);
  }

  void weigh_constants_and_uniform_work() {
    if (has_uniform_work()) context_.uniform = on_uniform_datapath(context_, uniform_);
    step("constant operand", [&] { weigh_constants(context_); });
    step("linear operands", [&] { weigh_linear_operands(context_); });
    step("joined shared accesses", [&] { join_shared_accesses(context_); });
    if (!is_first_generation()) step("narrow elements", [&] { weigh_narrow_vectors(context_); });
    if (!is_first_generation()) step("vector tuples", [&] { weigh_vector_tuples(context_); });
    if (!is_first_generation()) step("shared reciprocal", [&] { share_reciprocals(context_); });
    if (has(capability_, MachineFact::uniform_datapath))
      step("uniform datapath", [&] { for_each_needed([&](InstructionId id) { move_to_uniform(id); }); });
    if (has_uniform_work()) step("uniform load", [&] { weigh_uniform_loads(context_); });
    step("operand slots", [&] { weigh_operand_slots(context_); });
  }

  void measure_unrolling() {
    for (const Unrolling& unrolling : unrolled_loops(context_, together_)) {
      result_.unrolled_ += unrolling.instructions;
      if (unrolling.copies == 1) continue;
      for (BlockId copied : unrolling.blocks) {
        uint32_t& copies = result_.copies_.try_emplace(copied, 1).first->second;
        copies *= unrolling.copies;
      }
    }
  }

  // A kernel includes the code of each function that it calls, once.
  void add_called_functions() {
    if (!contents().names_functions) return;
    for (const Function* called : called_functions(function_))
      result_.subroutines_ += lower(*called, capability_).static_instructions();
  }

  const FunctionContents& contents() const { return context_.facts.contents; }
  bool is_first_generation() const { return capability_ < first_generation_end; }

  template <class Visit> void for_each_needed(Visit&& visit) { context_.for_each_needed(visit); }

  InstructionCost& cost(InstructionId id) { return result_.costs_[id.index()]; }

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

  // True for accesses of a local variable that is in a register.
  bool is_move(InstructionId id) const { return !moves_.empty() && moves_[id.index()]; }

  void weigh_alone(InstructionId id) {
    const Form* form = context_.form(id);
    if (!form || is_move(id)) return;
    const Expansion& alone = expansion_of(*form, capability_, context_.last_is_literal(id));
    const uint16_t order = is_memory(*form) ? instructions_of_order(*form, capability_) : uint16_t{};
    cost(id) = {static_cast<uint16_t>(alone.instructions + order), 0, alone.pipe()};
    if (alone.subroutine != Subroutine::none) weigh_subroutine(id, alone.subroutine);
    if (extracts_bytes(id)) cost(id).weight = 1;
    if (form->opcode == Opcode::call) weigh_call(id);
    if (form->opcode == Opcode::st && is_param(form->space)) weigh_argument(id);
    if (is_first_generation() && alone.subroutine == Subroutine::none) weigh_first_generation(id, *form);
    if (has(capability_, MachineFact::split_products)) weigh_split_product(id, *form);
    if (has(capability_, MachineFact::separate_lanes)) scaled_arguments_.weigh(id, *form);
    if (form->opcode == Opcode::mul24 || form->opcode == Opcode::mad24) weigh_short_product(id, *form);
  }

  // Each factor of 24 bits is extracted once; a constant is moved into a register before, a literal is extracted by the
  // assembler.
  void weigh_short_product(InstructionId id, const Form& form) {
    if (!has(capability_, MachineFact::separate_lanes) || form.has(Modifier::hi)) return;
    for (size_t i : {0, 1}) {
      const Operand* factor = context_.source(id, i);
      if (!factor || !factor->is(OperandKind::value) || context_.is_literal(factor)) {
        --cost(id).weight;
        continue;
      }
      auto [place, first] = short_factors_.try_emplace(std::pair(factor->as_value(), is_signed(form.type())), id);
      const bool known = !first && dominators_.dominates(function_.instructions[place->second].block,
                                                         function_.instructions[id].block);
      if (known)
        --cost(id).weight;
      else if (!has(capability_, MachineFact::loaded_parameters) &&
               context_.source_of(factor->as_value()) == ValueSource::constant_bank)
        ++cost(id).weight;
    }
  }

  void weigh_subroutine(InstructionId id, Subroutine which) {
    const SubroutineSize subroutine = size_of(which);
    if (!appended_.test(static_cast<size_t>(which))) {
      appended_.set(static_cast<size_t>(which));
      result_.subroutines_ += subroutine.instructions;
    }
    result_.subroutines_ += subroutine.at_place;
    // Lanes that take the slow path reconverge after it.
    if (subroutine.at_place > 0) result_.subroutines_ += fact(capability_, MachineFact::barrier_clearing);
    if (!loads_operands(id)) result_.subroutines_ += subroutine.moves;
    result_.subroutines_ -= subroutine.executed; // counted with the instruction
    cost(id).weight += subroutine.executed;
  }

  // A 32-bit product with a literal needs fewer XMADs than one of two registers; a product with a power of two is a
  // shift.
  void weigh_split_product(InstructionId id, const Form& form) {
    if ((form.opcode != Opcode::mul && form.opcode != Opcode::mad) || !form.has(Modifier::lo) || !is_int32(form))
      return;
    const Operand* factor = context_.source(id, 1);
    if (!factor || !factor->is(OperandKind::integer)) return;
    if (is_power_of_two(factor))
      cost(id).weight = 1;
    else if (factor->immediate > -(1 << 15) && factor->immediate < 1 << 16)
      cost(id).weight = 2;
  }

  // True if the operands are loaded only for this instruction, directly to the registers of the subroutine.
  bool loads_operands(InstructionId id) const {
    for (size_t i = 0; const Operand* operand = context_.source(id, i); ++i) {
      if (!operand->is(OperandKind::value)) continue;
      const InstructionId before = context_.definition(operand);
      const Form* form = before ? context_.form(before) : nullptr;
      if (!form || form->kind != InstructionClass::load || values_.only_reader(operand->as_value()) != id) return false;
    }
    return true;
  }

  void weigh_first_generation(InstructionId id, const Form& form) {
    std::vector<Operand> sources;
    for (size_t i = 0; const Operand* operand = context_.source(id, i); ++i)
      if (!operand->is_group()) sources.push_back(*operand);
    ValueId result = context_.result(id);
    bool low_half = result && context_.low_halves[result.index()];
    if (std::optional<uint16_t> weight = first_generation_weight(form, sources, low_half)) cost(id).weight = *weight;
  }

  // Driver functions (printf, malloc) have no fixed position: their address is loaded, the return address computed.
  void weigh_call(InstructionId id) {
    const uint16_t way_there_and_back = !has(capability_, MachineFact::loaded_parameters) ? 9 : 4;
    for (const Operand& operand : function_.operands_of(id))
      if (operand.is(OperandKind::symbol) && operand.as_symbol().kind() == SymbolRef::Kind::function &&
          !definition_of(function_.module().function(operand.as_symbol().function())))
        cost(id).weight = way_there_and_back;
  }

  // Arguments are moved to the registers that the function expects; constants are loaded there directly.
  void weigh_argument(InstructionId id) {
    uint16_t words = 0;
    for (size_t i = 0; const Operand* operand = context_.source(id, i); ++i) {
      if (operand->is(OperandKind::address) || operand->is_group()) continue;
      const bool constant =
          operand->is(OperandKind::value) && context_.source_of(operand->as_value()) != ValueSource::computed;
      if (!constant || has(capability_, MachineFact::loaded_parameters))
        words += static_cast<uint16_t>(std::max(1u, bit_width(context_.form(id)->type()) / 32));
    }
    cost(id).weight = words;
  }

  // True if no read of the same special register dominates this one.
  bool is_first_read(InstructionId id, const Operand& special) {
    constexpr size_t most = 16; // reads that are remembered
    const BlockId block = function_.instructions[id].block;
    std::vector<BlockId>& reads = special_registers_[std::pair(special.id, special.selector)];
    const bool once = heuristic(capability_, Heuristic::reads_per_path) == 0;
    if (std::ranges::any_of(reads, [&](BlockId read) { return once || dominators_.dominates(read, block); }))
      return false;
    if (reads.size() < most) reads.push_back(block);
    return true;
  }

  // Copies, address conversions, special registers: free, or one read per path.
  void weigh_movement(InstructionId id) {
    const Form& form = *context_.form(id);
    if (form.opcode == Opcode::cvta) {
      cost(id).weight = 0;
      return;
    }
    if (form.opcode != Opcode::mov && form.opcode != Opcode::cvt) return;
    const Operand* operand = context_.source(id, 0);
    const bool special = operand && operand->is(OperandKind::special_register);
    if (form.opcode == Opcode::cvt && !special) return;
    if (special) {
      const bool first = is_first_read(id, *operand);
      // Block indices are read into uniform registers on machines where all operands may be uniform.
      bool uniform = has(capability_, MachineFact::loaded_parameters) &&
                     info(static_cast<SpecialRegister>(operand->id)).uniformity == Uniformity::block;
      uint16_t reads = first ? 1 : 0;
      cost(id) = uniform ? InstructionCost{0, reads, Pipe::uniform} : InstructionCost{reads, 0, Pipe::special};
      // Its low half is masked, once.
      if (!is_first_generation() && bit_width(form.type(form.opcode == Opcode::cvt ? 1 : 0)) == 16)
        cost(id).weight += halves_.emplace(operand->id, operand->selector).second ? 1 : 0;
      return;
    }
    // A copy is an alias; the halves of a pair are in the pair's registers already. Only a guarded copy needs a move,
    // because some lanes keep the old value.
    unsigned bits = bit_width(form.type());
    bool moves = function_.instructions[id].guard && form.type() != ScalarType::pred;
    cost(id).weight = static_cast<uint16_t>(moves ? (bits + 31) / 32 : 0);
  }

  // Sections of a hardware form execute as written: the paper's machine issues each of their instructions.
  void mark_sections() {
    const std::vector<bool> inside = instructions_in_sections(function_);
    if (inside.empty()) return;
    for (BlockId block : function_.layout)
      for (InstructionId id : function_.instructions_in(block))
        if (inside[id.index()] && function_.instructions[id].kind == InstructionKind::real) {
          context_.in_section[id.index()] = true;
          cost(id).weight = 1;
        }
    context_.list_needed();
  }

  void fuse_with_readers(InstructionId id) {
    if (function_.instructions[id].guard && !context_.result(id)) return;
    const AppliedFusion fusion = apply_fusions(context_, id);
    if (fusion.name.empty()) return;
    context_.absorbed[id.index()] = true;
    cost(id).weight = 0;
    tracer_.absorbed(id, fusion.name, fusion.by_source);
  }

  // True if the uniform datapath loads operands from constant banks: not on machines that load all parameters.
  bool has_uniform_work() const {
    return has(capability_, MachineFact::uniform_datapath) && !has(capability_, MachineFact::loaded_parameters);
  }

  // Moves integer work on values that are the same in all lanes to the uniform datapath, which runs once per warp.
  void move_to_uniform(InstructionId id) {
    const Form& form = *context_.form(id);
    InstructionCost& at = cost(id);
    if (at.weight == 0 || function_.instructions[id].guard || !form.effects.pure()) return;
    const bool extreme = is_extreme(context_, id);
    bool suits = extreme || form.kind == InstructionClass::integer || form.kind == InstructionClass::logic ||
                 form.kind == InstructionClass::shift || context_.is_uniform(id);
    if (!suits || is_float(form.type()) || form.type() == ScalarType::pred) return;
    ValueId value = context_.result(id);
    if (!value || !uniform_.uniform(value)) return;
    if (has_uniform_work() && bit_width(form.type()) == 32 && !context_.is_uniform(id)) return;
    const bool reads_there = context_.is_uniform(id) || reads_uniform_registers(id);
    if (reads_there) in_uniform_registers_.insert(id);
    const bool is_wide = is_wide_multiply_add(context_, id) && !values_.merges(value); // else a pointer of a loop
    const bool as_pairs = fact(capability_, MachineFact::wide_sum) == 1;
    const bool moved =
        is_wide ? !as_pairs && is_moved_for_lanes(value)
                : at.weight == 2 && context_.words_of(value) == 2 && reads_there && is_moved_for_accesses(value);
    at = {0, static_cast<uint16_t>(at.weight + (extreme ? 1 : 0)), Pipe::uniform}; // a compare and a selection
    if (moved) at.weight = 2;
  }

  // True if accesses or wide multiply-adds read both words: IADD3 and LEA read uniform registers.
  bool is_moved_for_lanes(ValueId value) const {
    if (is_moved_for_accesses(value)) return true;
    return std::ranges::any_of(values_.readers(value), [&](InstructionId reader) {
      const Form* form = context_.form(reader);
      if (!form || !context_.needed[reader.index()] || form->opcode != Opcode::add) return false;
      for (size_t i : {0, 1}) {
        const InstructionId term = context_.definition(context_.source(reader, i));
        if (term && context_.absorbed[term.index()] && context_.form(term)->has(Modifier::wide)) return true;
      }
      return false;
    });
  }

  // True if all that it reads is in constant banks, uniform registers or the instruction.
  bool reads_uniform_registers(InstructionId id, int depth = 0) const {
    constexpr int longest = 3; // chain of absorbed instructions
    for (size_t i = 0; const Operand* operand = context_.source(id, i); ++i) {
      if (operand->is_constant()) continue;
      const InstructionId from = context_.definition(operand);
      if (!from || !context_.form(from)) return false;
      const ValueSource source = context_.source_of(operand->as_value());
      if (source == ValueSource::literal) return false; // a place in local memory
      if (source == ValueSource::constant_bank || in_uniform_registers_.contains(from)) continue;
      const bool passes = context_.absorbed[from.index()] || function_.is_opcode(from, Opcode::mov);
      if (!passes || depth == longest || !reads_uniform_registers(from, depth + 1)) return false;
    }
    return true;
  }

  // True if accesses read both words of the uniform value: they read only registers of the lanes.
  bool is_moved_for_accesses(ValueId value, int depth = 0) const {
    constexpr int longest = 4; // sums whose constant the access adds
    if (has(capability_, MachineFact::uniform_addresses)) return false;
    return std::ranges::any_of(values_.readers(value), [&](InstructionId reader) {
      const Form* form = context_.form(reader);
      if (!form || !context_.needed[reader.index()]) return false;
      if (is_memory(*form)) return form->space == StateSpace::global || form->space == StateSpace::none;
      return depth < longest && context_.absorbed[reader.index()] && is_left_to_accesses(context_, reader) &&
             is_moved_for_accesses(context_.result(reader), depth + 1);
    });
  }

  // Accesses that name a global variable read its address from constant memory, once per variable.
  void weigh_named_address(InstructionId id) {
    const Form& form = *context_.form(id);
    if (form.opcode == Opcode::mov || form.opcode == Opcode::cvta) return;
    for (const Operand& operand : function_.operands_of(id)) {
      if (!operand.is(OperandKind::symbol) || !context_.is_global_variable(operand.as_symbol())) continue;
      if (!named_variables_.insert(operand.as_symbol().variable()).second) continue;
      InstructionCost& at = cost(id);
      if (has(capability_, MachineFact::loaded_parameters))
        at.weight += 1;
      else if (has(capability_, MachineFact::uniform_addresses))
        at.uniform += 1; // addresses may be uniform registers
      else
        at.weight += 2;
    }
  }

  // If several textures are read at one coordinate, each but the first needs a copy of it.
  void weigh_coordinates() {
    std::set<ValueId> placed;
    for_each_needed([&](InstructionId id) {
      if (context_.form(id)->kind != InstructionClass::texture) return;
      std::vector<ValueId> coordinates;
      for (const Operand& operand : function_.operands_of(id))
        if (operand.is(OperandKind::value) && !operand.is_definition() && context_.words_of(operand.as_value()) == 1)
          coordinates.push_back(operand.as_value()); // the texture handle has two words
      if (coordinates.size() < 2) return;
      for (ValueId coordinate : coordinates)
        cost(id).weight += placed.insert(coordinate).second ? 0 : 1;
    });
  }

  // Values that the system keeps in constant memory for all kernels: the descriptor of global memory and, from 9.0 on,
  // the position of the block in its cluster's shared memory.
  void weigh_system_values() {
    if (!function_.is_entry) return;
    const bool asks_for_shared = !has(capability_, MachineFact::known_shared_places);
    bool global = false, shared = false;
    bool local = has_local_variables();
    for_each_needed([&](InstructionId id) {
      const Form& form = *context_.form(id);
      bool memory = form.kind == InstructionClass::load || form.kind == InstructionClass::store ||
                    form.kind == InstructionClass::atomic;
      local |= memory && form.space == StateSpace::local && !is_move(id);
      global |= memory && (form.space == StateSpace::global || form.space == StateSpace::none);
      if (form.opcode == Opcode::cvta && form.space == StateSpace::local && cost(id).weight > 0) weigh_local_window(id);
      if (!asks_for_shared || shared) return;
      for (const Operand& operand : function_.operands_of(id))
        shared |= operand.is(OperandKind::symbol) && names_shared(operand.as_symbol());
    });
    if (local) result_.prologue_ += 1; // the stack pointer is adjusted
    if (global && has(capability_, MachineFact::global_descriptor)) result_.prologue_uniform_ += 1;
    if (shared) result_.prologue_uniform_ += 3;
  }

  // True if the function has local variables and none of their accesses became moves between registers.
  bool has_local_variables() const {
    return std::ranges::any_of(function_.variables,
                               [](const Variable& variable) { return variable.space == StateSpace::local; }) &&
           std::ranges::find(moves_, true) == moves_.end();
  }

  // The generic address of a local variable: the place of local memory is loaded, a sum of pairs takes the high word of
  // the stack pointer, too.
  void weigh_local_window(InstructionId id) {
    const uint16_t window = fact(capability_, MachineFact::local_window);
    cost(id).uniform = static_cast<uint16_t>(cost(id).uniform + window);
    if (window > 0 && fact(capability_, MachineFact::wide_sum) == 1) ++cost(id).weight;
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
    unsigned width = context_.words_of(id) * value.vector_width;
    InstructionId definition = values_.definition(id);
    if (!definition || function_.instructions[definition].kind != InstructionKind::real)
      return static_cast<uint8_t>(width);
    const InstructionCost& made = result_.cost(definition);
    if (!context_.needed[definition.index()] || (made.uniform > 0 && made.weight == 0)) return 0;
    if (context_.source_of(id) != ValueSource::computed && !context_.in_section[definition.index()])
      return static_cast<uint8_t>(!has(capability_, MachineFact::loaded_parameters) && made.weight > 0 ? width : 0);
    if (context_.absorbed[definition.index()]) {
      if (context_.without_constant[id.index()]) return 0;                            // only without_constant has one
      if (width > 1 && bit_width(context_.form(definition)->type(1)) <= 32) return 1; // the operand to be extended
    }
    return static_cast<uint8_t>(width);
  }

  // The parameter of a block, of two words, has no register of the lanes if the uniform datapath computes all of its
  // arguments, or they are constants or other such parameters; nor has a constant that is passed to these alone.
  void keep_parameters_uniform() {
    std::vector<uint8_t>& units = result_.register_units_;
    std::vector<uint8_t> as_lanes(function_.values.size()); // of the parameters that are taken to be uniform
    for (BlockId block : function_.layout)
      for (ValueId parameter : function_.parameters(block))
        if (context_.words_of(parameter) == 2 && uniform_.uniform(parameter))
          std::swap(units[parameter.index()], as_lanes[parameter.index()]);
    const auto is_constant = [&](ValueId value) { return context_.source_of(value) != ValueSource::computed; };
    for (bool changes = true; changes;) {
      changes = false;
      for_each_argument([&](ValueId parameter, ValueId argument) {
        uint8_t& words = as_lanes[parameter.index()];
        if (words == 0 || units[argument.index()] == 0 || is_constant(argument)) return;
        std::swap(units[parameter.index()], words);
        changes = true;
      });
    }
    std::vector<bool> in_lanes(function_.values.size());
    for_each_argument([&](ValueId parameter, ValueId argument) {
      if (as_lanes[parameter.index()] == 0) in_lanes[argument.index()] = true;
    });
    for_each_argument([&](ValueId, ValueId argument) {
      if (is_constant(argument) && !in_lanes[argument.index()]) units[argument.index()] = 0;
    });
  }

  template <class Visit> void for_each_argument(Visit&& visit) const {
    for (BlockId block : function_.layout)
      for (EdgeId edge : function_.successors(block)) {
        const std::span<const ValueId> parameters = function_.parameters(function_.edges[edge].to);
        const std::span<const ValueId> arguments = function_.arguments(edge);
        for (size_t i = 0; i < std::min(parameters.size(), arguments.size()); ++i)
          visit(parameters[i], arguments[i]);
      }
  }

  const Function& function_;
  uint32_t capability_;
  Lowering& result_;
  std::vector<bool> moves_;
  bool has_slow_exchanges_ = false;
  const ControlFlow& flow_;
  const DominatorTree& dominators_;
  PostDominatorTree post_dominators_;
  UniformValues together_; // branches that keep lanes converged
  UniformValues uniform_;  // values that the uniform datapath may compute
  ValueFlow values_;
  LoweringContext context_;
  ScaledArguments scaled_arguments_;
  LoweringTracer tracer_;
  std::bitset<static_cast<size_t>(Subroutine::count)> appended_;
  std::map<std::pair<uint32_t, Selector>, std::vector<BlockId>> special_registers_; // blocks that read them first
  std::set<std::pair<uint32_t, Selector>> halves_;                  // of special registers, masked so far
  std::map<std::pair<ValueId, bool>, InstructionId> short_factors_; // of 24 bits, with or without sign, by first reader
  std::set<InstructionId> in_uniform_registers_;                    // work that reads nothing else
  std::set<VariableId> named_variables_; // global variables whose address has been read by an access
};

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

Lowering lower_as_written(const Function& function, uint32_t compute_capability, LoweringTrace* trace) {
  const ControlFlow flow(function);
  const DominatorTree dominators(function, flow);
  Lowering result;
  Lowerer(function, flow, dominators, ValueDefinitions(function), compute_capability, result, trace).run();
  return result;
}

namespace {

// Runs a preparation step that returns true if it has changed the function, and returns the same.
template <class Step> bool prepare(Function& function, std::string_view name, LoweringTrace* trace, Step&& step) {
  if (!trace) return step();
  const Function before = function; // NOLINT(performance-unnecessary-copy-initialization): step() changes the function
  const bool changed = step();
  if (changed) note_preparation(trace, name, before, function);
  return changed;
}

// Returns the moves among the accesses of local variables: see tidy.h.
std::vector<bool> tidy_text(Function& function, const ControlFlow& flow, const DominatorTree& dominators,
                            DefinitionsBetweenSteps& definitions, uint32_t compute_capability, LoweringTrace* trace) {
  std::optional<Tidied> tidy = tidied(function, flow, dominators, compute_capability, definitions);
  // No values are reused across the slow paths of exchanges between lanes.
  if (tidy && tidy->crosses_blocks && has(compute_capability, MachineFact::separate_lanes) && has_exchanges(function)) {
    Lowering untidy;
    Lowerer lowerer(function, flow, dominators, definitions.of(function), compute_capability, untidy, nullptr);
    lowerer.run(true);
    if (lowerer.has_slow_exchanges()) tidy = tidied(function, flow, dominators, compute_capability, definitions, false);
  }
  if (!tidy) return {};
  prepare(function, "computed before", trace, [&] {
    tidy->apply(function);
    return true;
  });
  definitions.forget();
  return std::move(tidy->moves);
}

void canonicalise(Function& text, ControlFlow& flow, DefinitionsBetweenSteps& definitions, uint32_t compute_capability,
                  LoweringTrace* trace) {
  prepare(text, "known number", trace, [&] { return fold(text, flow, definitions); });
  if (compute_capability < first_generation_end) return;
  bool changed = prepare(text, "low word alone", trace, [&] { return shorten_to_low_words(text, definitions); });
  changed |= prepare(text, "conditions", trace, [&] { return make_predicates(text); });
  if (changed) definitions.forget();
  prepare(text, "canonical form", trace, [&] { return make_canonical(text, compute_capability, definitions); });
}

bool is_prepared(const Function& function) {
  return function.is_ssa && !function.affine_stream;
}

} // namespace

Lowering lower(const Function& function, uint32_t compute_capability, LoweringTrace* trace) {
  if (!is_prepared(function)) return lower_as_written(function, compute_capability, trace);
  Function text = function;
  ControlFlow flow(text);
  DefinitionsBetweenSteps definitions;
  canonicalise(text, flow, definitions, compute_capability, trace);
  if (compute_capability < first_generation_end) return lower_as_written(text, compute_capability, trace);
  const DominatorTree dominators(text, flow);
  std::vector<bool> moves = tidy_text(text, flow, dominators, definitions, compute_capability, trace);
  if (prepare(text, "overwritten store", trace, [&] { return drop_overwritten_stores(text); })) definitions.forget();
  Lowering result;
  Lowerer(text, flow, dominators, std::move(definitions).take(text), compute_capability, result, trace,
          std::move(moves), &function)
      .run();
  return result;
}

void prepare_for_lowering(Function& function, uint32_t compute_capability) {
  if (!is_prepared(function)) return;
  ControlFlow flow(function);
  DefinitionsBetweenSteps definitions;
  canonicalise(function, flow, definitions, compute_capability, nullptr);
  if (compute_capability < first_generation_end) return;
  const DominatorTree dominators(function, flow);
  tidy_text(function, flow, dominators, definitions, compute_capability, nullptr);
  drop_overwritten_stores(function);
}

} // namespace ptxrewrite::ir
