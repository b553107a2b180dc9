// Determined by assembling accesses of local variables with and without known addresses, and sums that are computed
// twice, in one block and in several: see tidy.h.
#include "ir/machine/prepare/tidy.h"

#include "ir/core/module.h"
#include "ir/core/special_registers.h"
#include "ir/machine/figures/expansion.h"
#include "ir/machine/prepare/constant_bank.h"
#include "ir/machine/prepare/sections.h"

#include <algorithm>
#include <bit>
#include <map>
#include <tuple>

namespace ptxrewrite::ir {

namespace {

struct Place {
  VariableId variable;
  int64_t offset = 0;
};

struct Access {
  InstructionId id;
  VariableId variable;
  int64_t offset = 0;
  int64_t bytes = 0;
  unsigned element = 0; // bytes
  bool stores = false;

  bool overlaps(const Access& other) const {
    return variable == other.variable && offset < other.offset + other.bytes && other.offset < offset + bytes;
  }
  bool is_same_word(const Access& other) const {
    return variable == other.variable && offset == other.offset && bytes == other.bytes && bytes == element;
  }
};

// Instructions by hash; unlike HashIndex, it keeps those of one hash in the order of insertion.
class InstructionTable {
public:
  // To be called before instructions are added, with the greatest number that will be.
  void reserve(size_t count) {
    slots_.assign(std::bit_ceil(2 * count + 1), {});
    entries_.reserve(count);
  }
  // The first instruction with this hash for which `fits` is true; adds `id` and returns an invalid one if there is
  // none.
  template <class Fits> InstructionId find_or_add(uint64_t hash, InstructionId id, Fits&& fits) {
    size_t at = hash & (slots_.size() - 1);
    while (slots_[at].first != none && slots_[at].hash != hash)
      at = (at + 1) & (slots_.size() - 1);
    Slot& slot = slots_[at];
    for (uint32_t i = slot.first; i != none; i = entries_[i].next)
      if (fits(entries_[i].id)) return entries_[i].id;
    const auto added = static_cast<uint32_t>(entries_.size());
    entries_.push_back({id, none});
    (slot.first == none ? slot.first : entries_[slot.last].next) = added;
    slot.last = added;
    slot.hash = hash;
    return {};
  }

private:
  static constexpr uint32_t none = UINT32_MAX;
  struct Slot {
    uint64_t hash = 0;
    uint32_t first = none, last = none;
  };
  struct Entry {
    InstructionId id;
    uint32_t next;
  };
  std::vector<Slot> slots_;
  std::vector<Entry> entries_;
};

class Tidier {
public:
  Tidier(const Function& function, const ControlFlow& flow, const DominatorTree& dominators,
         uint32_t compute_capability, DefinitionsBetweenSteps& definitions, bool across_blocks)
      : function_(function), flow_(flow), dominators_(dominators), definitions_(definitions),
        equal_(function.values.size()), copy_of_(function.values.size()), gone_(function.instructions.size()),
        moves_(function.instructions.size()), in_section_(instructions_in_sections(function)),
        capability_(compute_capability), across_blocks_(across_blocks) {}

  bool run() {
    computed_.reserve(find_calls());
    if (std::ranges::any_of(function_.variables,
                            [](const Variable& variable) { return variable.space == StateSpace::local; }))
      find_local_variables();
    for (BlockId block : flow_.reverse_postorder())
      visit(block);
    drop_unread_stores();
    return changes_;
  }

  Tidied result() { return {std::move(moves_), std::move(gone_), std::move(equal_), crosses_blocks_}; }

private:
  ValueId known_as(ValueId value) const {
    while (equal_[value.index()])
      value = equal_[value.index()];
    return value;
  }

  void remove(InstructionId id) {
    gone_[id.index()] = true;
    changes_ = true;
  }

  const ValueDefinitions& values() { return definitions_.of(function_); }

  const Form* form(InstructionId id) const {
    return function_.instructions[id].kind == InstructionKind::real ? &function_.form_of(id) : nullptr;
  }

  // --- local variables ---

  bool is_local(SymbolRef symbol) const {
    return symbol.kind() == SymbolRef::Kind::local_variable &&
           function_.variables[symbol.variable()].space == StateSpace::local;
  }

  // The position in a local variable that the value points to; nullopt if unknown.
  std::optional<Place> place_of(const Operand& operand) const {
    if (operand.is(OperandKind::symbol) && is_local(operand.as_symbol()))
      return Place{operand.as_symbol().variable(), 0};
    if (operand.is(OperandKind::value)) return places_[operand.as_value().index()];
    return std::nullopt;
  }

  // Handles a copy of an address, or an address plus a literal.
  bool computes_place(InstructionId id) {
    const Form* known = form(id);
    if (!known || function_.instructions[id].guard) return false;
    const std::span<const Operand> operands = function_.operands_of(id);
    const bool adds = known->opcode == Opcode::add && operands.size() == 3 && operands[2].is(OperandKind::integer);
    if (!adds && !(known->opcode == Opcode::mov && operands.size() == 2)) return false;
    std::optional<Place> place = place_of(operands[1]);
    if (!place || !operands[0].is(OperandKind::value)) return false;
    if (adds) place->offset += operands[2].immediate;
    places_[operands[0].as_value().index()] = place;
    return true;
  }

  // True for an access of the variable's elements at a known position.
  bool is_access(InstructionId id) {
    const Form* known = form(id);
    if (!known || (known->opcode != Opcode::ld && known->opcode != Opcode::st) || known->space != StateSpace::local)
      return false;
    if (known->effects.volatile_result || known->effects.atomic) return false;
    const std::span<const Operand> operands = function_.operands_of(id);
    for (size_t i = 0; i < operands.size(); i = next_sibling(operands, i)) {
      if (!operands[i].is(OperandKind::address)) continue;
      if (operands[i].group_size() != 1) return false;
      const std::optional<Place> place = place_of(operands[i + 1]);
      if (!place) return false;
      const unsigned element = byte_width(known->type());
      const Access access{id,
                          place->variable,
                          place->offset + operands[i].immediate,
                          int64_t{element} * known->vector_width,
                          element,
                          known->opcode == Opcode::st};
      accesses_[place->variable].push_back(access);
      access_by_instruction_[id] = access;
      return !stores_place(operands, i);
    }
    return false;
  }

  // True if an address is stored.
  bool stores_place(std::span<const Operand> operands, size_t address) const {
    for (size_t i = 0; i < operands.size(); ++i)
      if ((i < address || i > address + 1) && place_of(operands[i])) return true;
    return false;
  }

  void find_local_variables() {
    places_.resize(function_.values.size());
    std::vector<bool> escapes(function_.variables.size());
    auto escape = [&](const Operand& operand) {
      if (std::optional<Place> place = place_of(operand)) escapes[place->variable.index()] = true;
    };
    for (BlockId block : flow_.reverse_postorder()) // in SSA form a definition precedes its uses
      for (InstructionId id : function_.instructions_in(block))
        if (form(id) && !computes_place(id) && !is_access(id)) // declarations of variables have no form
          for (const Operand& operand : function_.operands_of(id))
            escape(operand);
    for (BlockId block : flow_.reverse_postorder())
      for (EdgeId edge : function_.successors(block))
        for (ValueId argument : function_.arguments(edge))
          escape(Operand::value(argument));
    for (const auto& [variable, accesses] : accesses_)
      if (!escapes[variable.index()]) keep_in_registers(accesses);
  }

  // ptxas 13.0 promotes a variable if all accesses use 32-bit words, or all use 16-bit words.
  void keep_in_registers(const std::vector<Access>& accesses) {
    const unsigned element = accesses.front().element;
    if (element != 4 && element != 2) return;
    if (std::ranges::any_of(accesses, [&](const Access& access) { return access.element != element; })) return;
    for (const Access& access : accesses) {
      moves_[access.id.index()] = true;
      changes_ = true;
      const Access* only = nullptr;
      size_t stores = 0;
      for (const Access& other : accesses) {
        if (!other.overlaps(access)) continue;
        stores += other.stores;
        if (other.stores) only = &other;
      }
      if (!access.stores && stores == 1 && only->is_same_word(access)) written_by_[access.id] = only->id;
    }
  }

  // Drops stores to promoted variables if the values of all loads are known.
  void drop_unread_stores() {
    for (const auto& [variable, accesses] : accesses_)
      for (const Access& store : accesses)
        if (store.stores && moves_[store.id.index()] && std::ranges::none_of(accesses, [&](const Access& load) {
              return !load.stores && !gone_[load.id.index()] && load.overlaps(store);
            }))
          remove(store.id);
  }

  // --- equal values ---

  bool comes_before(InstructionId a, InstructionId b) const {
    const BlockId upper = function_.instructions[a].block, lower = function_.instructions[b].block;
    if (upper != lower) return dominators_.dominates(upper, lower);
    for (InstructionId id = a; id; id = function_.instructions[id].next)
      if (id == b) return true;
    return false;
  }

  // The single value that is stored or loaded; invalid if it is not a register.
  ValueId accessed(InstructionId id) const {
    const Operand& operand =
        form(id)->opcode == Opcode::st ? function_.operands_of(id).back() : function_.operands_of(id).front();
    return operand.is(OperandKind::value) && form(id)->vector_width == 1 ? operand.as_value() : ValueId();
  }

  // Forwards known values to loads: from the only store to the word, or from the last store to it or load of it in the
  // block.
  void forward(InstructionId id) {
    if (accesses_.empty()) return;
    auto found = access_by_instruction_.find(id);
    if (found == access_by_instruction_.end()) {
      if (const Form* known = form(id); known && (known->effects.barrier || known->effects.call)) in_memory_.clear();
      return;
    }
    const Access& access = found->second;
    const bool guarded = bool(function_.instructions[id].guard);
    if (!access.stores && !guarded) {
      InstructionId source;
      for (const Access& one : in_memory_)
        if (one.is_same_word(access)) source = one.id;
      if (auto written = written_by_.find(id);
          !source && written != written_by_.end() && comes_before(written->second, id))
        source = written->second;
      if (source && replace_by(id, source)) return;
    }
    if (access.stores) std::erase_if(in_memory_, [&](const Access& one) { return one.overlaps(access); });
    if (!guarded) in_memory_.push_back(access);
  }

  bool replace_by(InstructionId load, InstructionId source) {
    const ValueId known = accessed(source), loaded = accessed(load);
    if (!known || !loaded || function_.instructions[source].guard) return false;
    if (bit_width(function_.values[loaded].type) != bit_width(function_.values[known].type)) return false;
    equal_[loaded.index()] = known;
    remove(load);
    return true;
  }

  bool may_be_equal(InstructionId id) const {
    const Form* known = form(id);
    if (!known || known->definitions != 1 || function_.instructions[id].guard) return false;
    if (known->kind == InstructionClass::extension || known->kind == InstructionClass::opaque) return false;
    if (known->opcode == Opcode::setp) return false; // predicates are scarce: compares are recomputed
    if (!known->effects.pure() && !reads_constant_bank(function_, id)) return false;
    for (const Operand& operand : function_.operands_of(id))
      if (operand.has(OperandFlag::old_value)) return false;
    if (reads_volatile_register(function_, id)) return false;
    return function_.operands_of(id)[0].is(OperandKind::value);
  }

  // Value number: the same for registers that are copies of one value.
  uint32_t number_of(ValueId value) const {
    value = known_as(value);
    const ValueId original = copy_of_[value.index()];
    return original ? original.index() : value.index();
  }

  // Signedness is irrelevant if the result is not wider than the operands.
  bool is_same_work(FormId a, FormId b) const {
    if (a == b) return true;
    const Form &first = ir::form(a), &second = ir::form(b);
    if (first.opcode != second.opcode || first.modifiers.size() != second.modifiers.size()) return false;
    auto signless = [](const Form& one) {
      if (one.carry_out || one.has(Modifier::sat) || is_float(one.type())) return false;
      return one.opcode == Opcode::add || one.opcode == Opcode::sub ||
             (one.opcode == Opcode::mul && one.has(Modifier::lo));
    };
    return signless(first) && signless(second) && bit_width(first.type()) == bit_width(second.type());
  }

  static bool commutes(const Form& form) {
    switch (form.opcode) {
    case Opcode::add:
    case Opcode::mul:
    case Opcode::and_:
    case Opcode::or_:
    case Opcode::xor_:
    case Opcode::min:
    case Opcode::max:
      return !form.carry_out;
    default:
      return false;
    }
  }

  // Operands with registers by value number, commutative pairs in ascending order.
  void number_sources(InstructionId id, std::vector<Operand>& sources) const {
    sources.clear();
    for (const Operand& operand : function_.operands_of(id).subspan(1))
      sources.push_back(numbered(operand));
    auto place = [](const Operand& one) { return std::tuple(one.kind, one.id, one.immediate); };
    if (sources.size() == 2 && commutes(*form(id)) && place(sources[1]) < place(sources[0]))
      std::swap(sources[0], sources[1]);
  }

  // True if an instruction computes the same value as another one, whose numbered operands are in `sources_`.
  bool computes_same(InstructionId a, InstructionId b) {
    if (!is_same_work(function_.instructions[a].form, function_.instructions[b].form)) return false;
    const ValueId first = function_.operands_of(a)[0].as_value(), second = function_.operands_of(b)[0].as_value();
    if (bit_width(function_.values[first].type) != bit_width(function_.values[second].type)) return false;
    number_sources(a, others_);
    return others_ == sources_;
  }

  Operand numbered(Operand operand) const {
    if (operand.is(OperandKind::value)) operand.id = number_of(operand.as_value());
    constexpr auto spelling = static_cast<uint8_t>(OperandFlag::hexadecimal);
    operand.flags = static_cast<OperandFlag>(static_cast<uint8_t>(operand.flags) & ~spelling);
    return operand;
  }

  // Of an instruction whose numbered operands are in `sources_`.
  uint64_t hash_of(InstructionId id) const {
    uint64_t hash = static_cast<uint64_t>(form(id)->opcode);
    auto mix = [&](uint64_t part) {
      hash = (hash ^ part) * 0x9E3779B97F4A7C15;
      hash ^= hash >> 32;
    };
    for (const Operand& operand : sources_) {
      mix(uint64_t{operand.id} << 16 | static_cast<uint64_t>(operand.kind) << 8 | static_cast<uint8_t>(operand.flags));
      mix(static_cast<uint64_t>(operand.immediate));
    }
    return hash;
  }

  // --- calls of functions and of the slow paths that the assembler appends ---

  bool is_call(InstructionId id) const {
    const Form* known = form(id);
    if (!known || is_marked(in_section_, id)) return false;
    if (known->effects.call) return true;
    if (!may_use_subroutine(known->opcode)) return false;
    const bool literal = function_.operands_of(id).size() > 1 && function_.operands_of(id).back().is_constant();
    return expansion_of(*known, capability_, literal).subroutine != Subroutine::none;
  }

  // Returns the number of instructions.
  size_t find_calls() {
    size_t count = 0;
    calls_in_.assign(function_.blocks.size(), 0);
    calls_before_.assign(function_.instructions.size(), 0);
    for (BlockId block : function_.layout)
      for (InstructionId id : function_.instructions_in(block)) {
        calls_before_[id.index()] = calls_in_[block.index()];
        calls_in_[block.index()] += is_call(id);
        ++count;
      }
    has_calls_ = std::ranges::any_of(calls_in_, [](uint32_t calls) { return calls > 0; });
    return count;
  }

  // True if a path from the first instruction to the second, which it dominates, contains a call. Values computed
  // before a call are recomputed after it.
  bool call_between(InstructionId first, InstructionId second) const {
    if (!has_calls_) return false;
    const BlockId from = function_.instructions[first].block, to = function_.instructions[second].block;
    if (from == to) return calls_before_[first.index()] != calls_before_[second.index()];
    if (calls_before_[second.index()] > 0 || calls_in_[from.index()] > calls_before_[first.index()]) return true;
    std::vector<bool> seen(function_.blocks.size());
    std::vector<BlockId> work{to};
    seen[from.index()] = true;
    while (!work.empty()) {
      const BlockId block = work.back();
      work.pop_back();
      for (EdgeId edge : flow_.predecessors(block)) {
        const BlockId before = function_.edges[edge].from;
        if (seen[before.index()] || !flow_.reachable(before)) continue;
        if (calls_in_[before.index()] > 0) return true;
        seen[before.index()] = true;
        work.push_back(before);
      }
    }
    return false;
  }

  // An earlier instruction that computes the same value; invalid if there is none.
  InstructionId earlier(InstructionId id) {
    const BlockId block = function_.instructions[id].block;
    number_sources(id, sources_);
    return computed_.find_or_add(hash_of(id), id, [&](InstructionId one) {
      const BlockId there = function_.instructions[one].block;
      return (there == block || (across_blocks_ && dominators_.dominates(there, block))) && computes_same(one, id) &&
             !call_between(one, id);
    });
  }

  // A 64-bit shift that only one sum reads becomes part of it (LEA), before common subexpressions are searched.
  bool is_scaled_addend(InstructionId id) {
    const std::span<const Operand> operands = function_.operands_of(id);
    if (form(id)->opcode != Opcode::shl || bit_width(form(id)->type()) != 64 || !operands[2].is(OperandKind::integer))
      return false;
    const InstructionId reader = values().only_reader(operands[0].as_value());
    const Form* sum = reader ? form(reader) : nullptr;
    return sum && sum->opcode == Opcode::add && !sum->carry_out;
  }

  // Replaces a test whether a word that is 1 if a predicate is true and 0 otherwise is not zero by that predicate.
  bool asks_for_predicate(InstructionId id) {
    const Form* known = form(id);
    const std::span<const Operand> operands = function_.operands_of(id);
    if (!known || known->opcode != Opcode::setp || known->definitions != 1 || function_.instructions[id].guard ||
        operands.size() != 3 || !known->has(Modifier::ne) || is_float(known->type()))
      return false;
    if (!operands[1].is(OperandKind::value) || !is_number(operands[2], 0)) return false;
    const InstructionId word = values().definition(known_as(operands[1].as_value()));
    if (!word || !function_.is_opcode(word, Opcode::selp) || function_.instructions[word].guard) return false;
    const std::span<const Operand> choice = function_.operands_of(word);
    if (!is_number(choice[1], 1) || !is_number(choice[2], 0) || !choice[3].is(OperandKind::value) ||
        choice[3].has(OperandFlag::negated))
      return false;
    equal_[operands[0].as_value().index()] = known_as(choice[3].as_value());
    remove(id);
    return true;
  }

  static bool is_number(const Operand& operand, int64_t number) {
    return operand.is(OperandKind::integer) && operand.immediate == number;
  }

  void visit(BlockId block) {
    in_memory_.clear();
    for (InstructionId id : function_.instructions_in(block)) {
      if (is_marked(in_section_, id)) continue;
      forward(id);
      if (gone_[id.index()] || asks_for_predicate(id) || !may_be_equal(id)) continue;
      const Form& known = *form(id);
      const ValueId result = function_.operands_of(id)[0].as_value();
      if (known.opcode == Opcode::mov && function_.operands_of(id).size() == 2 &&
          function_.operands_of(id)[1].is(OperandKind::value)) {
        copy_of_[result.index()] = ValueId(number_of(function_.operands_of(id)[1].as_value()));
        continue;
      }
      const InstructionId first = earlier(id);
      if (!first) continue;
      const ValueId same = function_.operands_of(first)[0].as_value();
      if (known.opcode == Opcode::mov || known.opcode == Opcode::ld || is_scaled_addend(id)) {
        copy_of_[result.index()] = ValueId(number_of(same)); // no work, or handled by other rules
        continue;
      }
      equal_[result.index()] = same;
      remove(id);
      crosses_blocks_ |= function_.instructions[first].block != block;
    }
  }

  const Function& function_;
  const ControlFlow& flow_;
  const DominatorTree& dominators_;
  DefinitionsBetweenSteps& definitions_;
  std::vector<std::optional<Place>> places_; // by ValueId
  std::map<VariableId, std::vector<Access>> accesses_;
  std::map<InstructionId, Access> access_by_instruction_;
  std::vector<Access> in_memory_;                     // words of local variables whose values are known in the block
  std::map<InstructionId, InstructionId> written_by_; // loads, with the only store to the word
  InstructionTable computed_;                         // by hash_of
  std::vector<Operand> sources_, others_;             // numbered operands
  std::vector<ValueId> equal_;                        // by ValueId: an equal value defined earlier
  std::vector<ValueId> copy_of_;                      // by ValueId: the value it is a copy of
  std::vector<bool> gone_, moves_;
  std::vector<bool> in_section_;       // in a section of a hardware form, executed as written
  std::vector<uint32_t> calls_in_;     // by BlockId
  std::vector<uint32_t> calls_before_; // by InstructionId: calls before it in its block
  bool has_calls_ = false;
  uint32_t capability_;
  bool across_blocks_;
  bool crosses_blocks_ = false;
  bool changes_ = false; // anything
};

} // namespace

void Tidied::apply(Function& function) const {
  auto known_as = [&](ValueId value) {
    while (equal[value.index()])
      value = equal[value.index()];
    return value;
  };
  for (BlockId block : function.layout) {
    for (EdgeId edge : function.successors(block))
      for (ValueId& argument : function.arguments(edge))
        argument = known_as(argument);
    for (InstructionId id : function.instructions_in(block)) {
      if (gone[id.index()]) {
        function.remove(id);
        continue;
      }
      if (ValueId& guard = function.instructions[id].guard) guard = known_as(guard);
      for (Operand& operand : function.operands_of(id))
        if (operand.is(OperandKind::value) && !operand.is_definition())
          operand.id = known_as(operand.as_value()).index();
    }
  }
}

std::optional<Tidied> tidied(const Function& function, const ControlFlow& flow, const DominatorTree& dominators,
                             uint32_t compute_capability, DefinitionsBetweenSteps& definitions, bool across_blocks) {
  if (!function.is_ssa || function.affine_stream) return std::nullopt;
  Tidier tidier(function, flow, dominators, compute_capability, definitions, across_blocks);
  if (!tidier.run()) return std::nullopt;
  return tidier.result();
}

} // namespace ptxrewrite::ir
