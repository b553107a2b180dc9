// Walks a block from its end to its start, see pressure.h.
#include "ir/machine/registers/pressure.h"

#include "ir/core/module.h"
#include "ir/machine/figures/generations.h"
#include "ir/machine/figures/heuristics.h"
#include "ir/machine/prepare/called_functions.h"
#include "ir/machine/registers/temporaries.h"

#include <algorithm>
#include <set>

namespace ptxrewrite::ir {

namespace {

uint32_t words_of(ScalarType type, uint32_t elements = 1) {
  return (bit_width(type) + 31) / 32 * elements;
}

bool is_access(const Form& form) {
  return !is_param(form.space) && (form.kind == InstructionClass::load || form.kind == InstructionClass::store ||
                                   form.kind == InstructionClass::atomic || form.kind == InstructionClass::texture);
}

bool reads_late(const Form& form) {
  return !is_param(form.space) && (form.kind == InstructionClass::store || form.kind == InstructionClass::atomic);
}

} // namespace

BlockPressure::BlockPressure(const Function& function, const ControlFlow& flow, const Lowering& lowering,
                             uint32_t compute_capability, const CalledWords& called)
    : function_(function), flow_(flow), lowering_(lowering), capability_(compute_capability), called_(called),
      loads_parameters_(has(compute_capability, MachineFact::loaded_parameters)),
      reads_through_(heuristic(compute_capability, Heuristic::read_through) > 0), definition_(function.values.size()),
      live_(function.values.size()), parameter_(function.values.size()), sharing_(function.values.size()) {
  for (BlockId block : function.layout)
    for (InstructionId id : function.instructions_in(block))
      for_each_definition(function, id, [&](ValueId value) { definition_[value.index()] = id; });
  if (loads_parameters_) find_loop_constants();
}

// A constant that an instruction in a loop loads has its register in all of the loop.
void BlockPressure::find_loop_constants() {
  const LoopForest forest(function_, flow_, DominatorTree(function_, flow_));
  if (forest.loops().empty()) return;
  loop_of_.resize(function_.blocks.size());
  loop_constants_.resize(forest.loops().size());
  loop_words_.resize(forest.loops().size());
  for (BlockId block : function_.layout) {
    const LoopId loop = loop_of_[block.index()] = forest.innermost(block);
    if (!loop) continue;
    for (InstructionId id : function_.instructions_in(block))
      for (const Constant& constant : constants_read(id))
        if (constant.loaded && loop_constants_[loop.index()].insert(constant).second)
          loop_words_[loop.index()] += constant.words;
  }
}

// True for instructions whose result occupies no register: copies without cost, and instructions that are fused into
// all of their readers. Not for a fused selp: it becomes a predicated instruction that writes the result's register.
bool BlockPressure::is_transparent(InstructionId id) const {
  if (!reads_through_ || !is_real(id) || function_.instructions[id].guard) return false;
  if (lowering_.absorbed(id)) return !function_.is_opcode(id, Opcode::selp);
  if (!function_.is_opcode(id, Opcode::mov) && !function_.is_opcode(id, Opcode::cvta)) return false;
  const InstructionCost& cost = lowering_.cost(id);
  const std::span<const Operand> operands = function_.operands_of(id);
  if (cost.weight > 0 || cost.uniform > 0 || operands.size() != 2 || !operands[1].is(OperandKind::value)) return false;
  const auto width = [&](size_t i) { return function_.values[operands[i].as_value()].vector_width; };
  return width(0) == width(1);
}

// Visits the values in whose registers a reader of `value` finds its operand.
template <class Visit> void BlockPressure::for_each_source(ValueId value, Visit&& visit, int depth) const {
  constexpr int longest_chain = 8; // of transparent instructions
  const InstructionId id = definition_[value.index()];
  const ValueId rest = lowering_.without_constant(value);
  if (depth == longest_chain || !id || !is_transparent(id))
    visit(value);
  else if (rest)
    for_each_source(rest, visit, depth + 1);
  else
    for_each_use(function_, id, [&](ValueId operand) { for_each_source(operand, visit, depth + 1); });
}

void BlockPressure::add_sources(ValueId value) {
  for_each_source(value, [&](ValueId source) { add(source); });
}

void BlockPressure::start(const std::vector<ValueId>& live_out) {
  for (ValueId value : touched_) {
    live_[value.index()] = false;
    sharing_[parameter_[value.index()] ? parameter_[value.index()].index() : value.index()] = 0;
    parameter_[value.index()] = {};
  }
  touched_.clear();
  now_ = highest_ = {};
  for (ValueId value : live_out)
    add_sources(value);
}

void BlockPressure::add(ValueId value) {
  if (live_[value.index()] || function_.values[value].is_undefined) return;
  live_[value.index()] = true;
  touched_.push_back(value);
  change(value, true);
  highest_.registers = std::max(highest_.registers, now_.registers);
  highest_.predicates = std::max(highest_.predicates, now_.predicates);
}

void BlockPressure::remove(ValueId value) {
  if (!live_[value.index()]) return;
  live_[value.index()] = false;
  change(value, false);
}

void BlockPressure::change(ValueId value, bool added) {
  if (const ValueId parameter = parameter_[value.index()]) value = parameter;
  uint32_t& sharing = sharing_[value.index()];
  const bool alone = (added ? sharing++ : --sharing) == 0;
  if (!alone) return;
  const bool predicate = function_.values[value].type == ScalarType::pred;
  uint32_t& count = predicate ? now_.predicates : now_.registers;
  const uint32_t units = predicate ? 1 : lowering_.register_units(value);
  count += added ? units : 0 - units;
}

// Words that a called function needs beside those that are live across the call.
uint32_t BlockPressure::words_of_called(InstructionId id) const {
  if (!function_.is_opcode(id, Opcode::call)) return 0;
  uint32_t words = 0;
  for (const Operand& operand : function_.operands_of(id)) {
    if (!operand.is(OperandKind::symbol) || operand.as_symbol().kind() != SymbolRef::Kind::function) continue;
    const Function& called = function_.module().function(operand.as_symbol().function());
    const auto found = called_.find(called.name);
    if (found != called_.end())
      words = std::max(words, found->second);
    else if (!definition_of(called))
      words = std::max(words, words_of_outside_call());
  }
  return words;
}

// The figures count all registers of a kernel; those that are reserved are added later.
uint32_t BlockPressure::words_of_outside_call() const {
  const auto figure = [&](Heuristic which) { return heuristic(capability_, which); };
  const uint32_t reserved = figure(Heuristic::reserved_registers);
  const uint32_t all =
      std::max(figure(Heuristic::outside_call) + now_.registers, figure(Heuristic::outside_call_least));
  return all - std::min(all, reserved + now_.registers);
}

// A definition occupies its register even if unread; a guarded one keeps the old contents.
void BlockPressure::step(InstructionId id) {
  before_ = after_ = now_.registers;
  if (is_real(id) && !lowering_.needed(id)) return;
  if (is_transparent(id)) {
    bool is_read = false; // at the end of a chain that for_each_source() does not follow further
    for_each_definition(function_, id, [&](ValueId value) { is_read |= live_[value.index()]; });
    if (!is_read) return;
  }
  for_each_definition(function_, id, [&](ValueId value) { add(value); });
  after_ = now_.registers;
  if (function_.is_ssa || !function_.instructions[id].guard)
    for_each_definition(function_, id, [&](ValueId value) { remove(value); });
  const uint32_t in_call = now_.registers + words_of_called(id);
  for_each_use(function_, id, [&](ValueId value) { add_sources(value); });
  const uint32_t temporaries = is_real(id) ? temporary_words(function_, id, capability_, spare_) : 0;
  before_ = std::max(in_call, now_.registers + temporaries);
  highest_.registers = std::max(highest_.registers, before_);
}

RegisterNeed BlockPressure::of_values(const std::vector<ValueId>& live_out, std::span<const InstructionId> order) {
  start(live_out);
  spare_ = false;
  for (size_t i = order.size(); i-- > 0;)
    step(order[i]);
  return highest_;
}

// For each position: true if the instruction waits for a load, as its first reader.
std::vector<bool> BlockPressure::waits_for_loads(std::span<const InstructionId> order) const {
  std::vector<bool> waits(order.size());
  std::set<ValueId> loaded;
  for (size_t i = 0; i < order.size(); ++i) {
    for_each_use(function_, order[i], [&](ValueId value) { waits[i] = loaded.erase(value) > 0 || waits[i]; });
    if (!is_real(order[i])) continue;
    const Form& form = function_.form_of(order[i]);
    if (form.kind == InstructionClass::texture ||
        (form.kind == InstructionClass::load && (form.space == StateSpace::global || form.space == StateSpace::none)))
      for_each_definition(function_, order[i], [&](ValueId value) { loaded.insert(value); });
  }
  return waits;
}

// For each position: the last position whose instruction is issued at most `distance` instructions after it, and before
// the next one that waits for a load or at a barrier.
std::vector<size_t> BlockPressure::last_within(uint32_t distance, std::span<const InstructionId> order) const {
  std::vector<size_t> issued(order.size()), last(order.size());
  for (size_t i = 0, count = 0; i < order.size(); ++i) {
    issued[i] = count;
    if (is_real(order[i])) count += lowering_.cost(order[i]).weight;
  }
  const std::vector<bool> waits = waits_for_loads(order);
  const bool ends_waits = heuristic(capability_, Heuristic::passed_stores) > 0;
  const auto ends = [&](size_t i) {
    return ends_waits && is_real(order[i]) && function_.form_of(order[i]).effects.barrier;
  };
  const auto calls = [&](size_t i) {
    return ends_waits && is_real(order[i]) && function_.form_of(order[i]).effects.call;
  };
  const auto leaves = [&](size_t from, size_t to) {
    return function_.instructions[order[from]].block != function_.instructions[order[to]].block;
  };
  for (size_t i = 0, end = 0; i < order.size(); ++i) {
    end = std::max(end, i);
    while (end + 1 < order.size() && issued[end + 1] - issued[i] <= distance && !ends(end) && !calls(end + 1) &&
           !(waits[end + 1] && leaves(i, end + 1)))
      ++end;
    last[i] = end;
  }
  return last;
}

// Parameters, addresses of variables and literals other than zero, also by copies of them.
std::optional<BlockPressure::Constant> BlockPressure::constant_of(ValueId value) const {
  constexpr int most_copies = 8;
  const Value& row = function_.values[value];
  if (row.type == ScalarType::pred || lowering_.register_units(value) > 0) return std::nullopt;
  Constant constant{.words = words_of(row.type, row.vector_width)};
  for (int i = 0; i < most_copies; ++i) {
    const InstructionId id = definition_[value.index()];
    if (!id || !is_real(id) || function_.instructions[id].guard) return std::nullopt;
    const Form& form = function_.form_of(id);
    if (lowering_.cost(id).uniform > 0 && form.kind != InstructionClass::load && form.opcode != Opcode::mov) {
      constant.key = {uniform, value.index()};
      return constant;
    }
    const bool is_word =
        (is_param(form.space) && function_.is_entry) || (form.space == StateSpace::constant && reads_through_);
    if (form.kind == InstructionClass::load && is_word) {
      constant.key = {parameter, value.index()};
      constant.loaded = loads_parameters_ && lowering_.cost(id).weight > 0;
      return constant;
    }
    if (form.opcode != Opcode::mov && form.opcode != Opcode::cvta) return std::nullopt;
    const auto operands = function_.operands_of(id);
    const auto source = std::ranges::find_if(operands, [](const Operand& one) { return !one.is_definition(); });
    if (source == operands.end()) return std::nullopt;
    if (source->is_constant()) {
      constant.key = {literal, source->immediate};
      return source->immediate == 0 ? std::nullopt : std::optional(constant);
    }
    if (source->is(OperandKind::symbol)) {
      constant.key = {address, value.index()};
      return constant;
    }
    if (!source->is(OperandKind::value)) return std::nullopt;
    value = source->as_value();
  }
  return std::nullopt;
}

std::vector<BlockPressure::Constant> BlockPressure::constants_read(InstructionId id) const {
  std::vector<Constant> constants;
  if (!is_real(id)) return constants;
  const Form& form = function_.form_of(id);
  const bool access = is_access(form);
  if (!(access || loads_parameters_) || form.opcode == Opcode::mov || form.opcode == Opcode::cvta) return constants;
  const std::span<const Operand> operands = function_.operands_of(id);
  const bool uniform_address = access && has(capability_, MachineFact::uniform_addresses) && !is_shared(form.space);
  for (size_t i = 0; i < operands.size(); ++i) {
    const Operand& operand = operands[i];
    if (operand.is(OperandKind::address) && uniform_address) i += operand.group_size();
    if (!operand.is(OperandKind::value) || operand.is_definition()) continue;
    const ValueId rest = lowering_.without_constant(operand.as_value());
    const std::optional<Constant> constant = constant_of(rest ? rest : operand.as_value());
    if (constant && (access || constant->loaded)) constants.push_back(*constant);
  }
  if (form.kind == InstructionClass::store && operands.back().is_constant() && operands.back().immediate != 0) {
    const uint32_t words = words_of(form.type());
    const bool is_odd =
        reads_through_ && access && !uniform_address && !is_shared(form.space) && words == 1; // as stored words
    constants.push_back({{literal, operands.back().immediate}, words + (is_odd ? 1 : 0)});
  }
  return constants;
}

// By point.
std::vector<uint32_t> BlockPressure::words_of_constants(std::span<const InstructionId> order,
                                                        const std::vector<size_t>& late) const {
  std::vector<uint32_t> words(2 * order.size() + 1); // differences modulo 2^32 first
  std::map<Constant, Span> spans;
  const LoopId loop =
      order.empty() || loop_of_.empty() ? LoopId() : loop_of_[function_.instructions[order[0]].block.index()];
  if (loop) words[0] = loop_words_[loop.index()];
  for (size_t i = 0; i < order.size(); ++i)
    for (const Constant& constant : constants_read(order[i])) {
      if (loop && loop_constants_[loop.index()].contains(constant)) continue;
      Span& span = spans.try_emplace(constant, Span{before(i), before(i)}).first->second;
      const bool waits = reads_late(function_.form_of(order[i]));
      span.last = std::max(span.last, waits ? after(late[i]) : reads_through_ ? before(i) : after(i));
    }
  for (const auto& [constant, span] : spans) {
    words[span.first] += constant.words;
    words[span.last + 1] -= constant.words;
  }
  for (size_t i = 1; i < words.size(); ++i)
    words[i] += words[i - 1];
  return words;
}

// Visits the values that its predecessors pass to the block, and the parameters.
template <class Visit> void BlockPressure::for_each_argument(BlockId block, Visit&& visit) const {
  const std::span<const ValueId> parameters = function_.parameters(block);
  for (EdgeId edge : flow_.predecessors(block)) {
    const std::span<const ValueId> arguments = function_.arguments(edge);
    for (size_t i = 0; i < std::min(arguments.size(), parameters.size()); ++i)
      visit(arguments[i], parameters[i]);
  }
}

// Updates the live set from the start of the block to the end of the code that precedes it. Arguments of a block
// parameter that are dead after the block's start share the parameter's register.
void BlockPressure::enter(BlockId block) {
  std::vector<ValueId> live;
  for (ValueId parameter : function_.parameters(block)) {
    if (live_[parameter.index()]) live.push_back(parameter);
    remove(parameter);
  }
  for_each_argument(block, [&](ValueId argument, ValueId parameter) {
    if (std::ranges::find(live, parameter) == live.end()) return;
    for_each_source(argument, [&](ValueId source) {
      if (!live_[source.index()] && lowering_.register_units(source) == lowering_.register_units(parameter))
        parameter_[source.index()] = parameter;
      add(source);
    });
  });
}

// Position of the last reader by value, and how many there are; the operand of a folded sum is read with the sum.
void BlockPressure::find_last_readers(const std::vector<ValueId>& live_out, const StraightCode& code) {
  last_reader_.resize(function_.values.size());
  readers_.resize(function_.values.size());
  const auto for_each_read = [&](InstructionId id, auto&& visit) {
    for_each_use(function_, id, [&](ValueId value) {
      for (; value; value = lowering_.without_constant(value))
        visit(value);
    });
  };
  for (InstructionId id : code.order)
    for_each_read(id, [&](ValueId value) { readers_[value.index()] = 0; });
  auto start = code.starts.begin();
  for (size_t i = 0; i <= code.order.size(); ++i) {
    for (; start != code.starts.end() && start->position == i; ++start)
      for_each_argument(start->block, [&](ValueId argument, ValueId) { last_reader_[argument.index()] = i; });
    if (i == code.order.size()) break;
    for_each_read(code.order[i], [&](ValueId value) {
      last_reader_[value.index()] = i;
      ++readers_[value.index()];
    });
  }
  for (const ValueId value : live_out)
    last_reader_[value.index()] = code.order.size();
}

// The result of a load replaces a part of its address; the rest of the pair waits for another single word. An address
// that several instructions read is not replaced: none of the loads is known to be the last one.
uint32_t BlockPressure::words_beside_load(InstructionId id, size_t position) const {
  uint32_t result = 0, address = 0;
  bool is_shared_address = false;
  for_each_definition(function_, id, [&](ValueId value) { result += lowering_.register_units(value); });
  for_each_use(function_, id, [&](ValueId value) {
    while (const ValueId rest = lowering_.without_constant(value))
      value = rest;
    if (last_reader_[value.index()] != position) return;
    address += lowering_.register_units(value);
    is_shared_address = is_shared_address || (lowering_.register_units(value) == 2 && readers_[value.index()] > 1);
  });
  return is_shared_address ? address : address - std::min(address, result);
}

// The results of a fetch that are read replace coordinates; the others wait, among them copies of coordinates that are
// read again.
uint32_t BlockPressure::words_beside_fetch(InstructionId id, size_t position) const {
  uint32_t result = 0, coordinates = 0;
  for_each_definition(function_, id, [&](ValueId value) {
    if (last_reader_[value.index()] > position) result += lowering_.register_units(value);
  });
  for_each_use(function_, id, [&](ValueId value) {
    const uint32_t words = lowering_.register_units(value);
    coordinates += words == 1 ? 1 : 0; // the handle has two
  });
  return coordinates - std::min(coordinates, result);
}

// A single word that is stored has an odd register, and the even one beside it stays free; not if the address is in
// uniform registers, so that there are no pairs.
uint32_t BlockPressure::words_beside_store(InstructionId id, size_t position) const {
  const Form& form = function_.form_of(id);
  const Operand& data = function_.operands_of(id).back();
  if (is_param(form.space) || is_shared(form.space) || form.vector_width > 1 || !data.is(OperandKind::value)) return 0;
  const ValueId value = data.as_value();
  if (has(capability_, MachineFact::uniform_addresses)) {
    uint32_t address = 0;
    for_each_use(function_, id, [&](ValueId operand) {
      while (const ValueId rest = lowering_.without_constant(operand))
        operand = rest;
      if (operand != value) address += lowering_.register_units(operand);
    });
    if (address == 0) return 0;
  }
  return last_reader_[value.index()] == position && lowering_.register_units(value) == 1 ? 1 : 0;
}

// By point: free words that are not used while others are free.
std::vector<uint32_t> BlockPressure::words_beside(std::span<const InstructionId> order,
                                                  const std::vector<size_t>& late) const {
  std::vector<uint32_t> words(2 * order.size() + 1); // differences modulo 2^32 first
  if (!heuristic(capability_, Heuristic::words_in_pairs)) return words;
  for (size_t i = 0; i < order.size(); ++i) {
    if (!is_real(order[i])) continue;
    const InstructionClass kind = function_.form_of(order[i]).kind;
    const uint32_t beside = kind == InstructionClass::load      ? words_beside_load(order[i], i)
                            : kind == InstructionClass::store   ? words_beside_store(order[i], i)
                            : kind == InstructionClass::texture ? words_beside_fetch(order[i], i)
                                                                : 0;
    words[kind == InstructionClass::store ? before(i) : after(i)] += beside; // free from the load on
    words[after(late[i]) + 1] -= beside;
  }
  for (size_t i = 1; i < words.size(); ++i)
    words[i] += words[i - 1];
  return words;
}

uint32_t BlockPressure::with_pending(const std::vector<ValueId>& live_out, const StraightCode& code) {
  const std::vector<InstructionId>& order = code.order;
  const std::vector<size_t> late = last_within(heuristic(capability_, Heuristic::pending_access), order);
  const std::vector<uint32_t> constants = words_of_constants(order, late);
  find_last_readers(live_out, code);
  const std::vector<uint32_t> beside = words_beside(order, late);
  std::vector<std::vector<InstructionId>> ends(order.size());
  for (size_t i = 0; i < order.size(); ++i)
    if (late[i] > i && is_real(order[i]) && reads_late(function_.form_of(order[i]))) ends[late[i]].push_back(order[i]);
  start(live_out);
  spare_ = true;
  uint32_t highest = 0;
  auto block = code.starts.rbegin();
  for (size_t i = order.size(); i-- > 0;) {
    for (; block != code.starts.rend() && block->position > i; ++block)
      enter(block->block);
    highest_ = now_;
    for (InstructionId store : ends[i])
      for_each_use(function_, store, [&](ValueId value) {
        add_sources(value);
        if (const ValueId rest = lowering_.without_constant(value)) add_sources(rest);
      });
    step(order[i]);
    const auto others_at = [&](size_t point) { return constants[point] + beside[point]; };
    highest = std::max({highest, before_ + others_at(before(i)), after_ + others_at(after(i))});
  }
  return highest;
}

} // namespace ptxrewrite::ir
