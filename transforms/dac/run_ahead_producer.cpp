// Emits the producer warp, the ring that it fills, and the code of the other warps that replaces the loads.
#include "transforms/dac/run_ahead_producer.h"

#include "ir/core/insertion.h"
#include "ir/core/last_return.h"
#include "ir/core/module.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

namespace ptxrewrite::transforms::legal {

namespace {

using ir::BlockId;
using ir::EdgeId;
using ir::InstructionId;
using ir::InstructionKind;
using ir::Opcode;
using ir::Operand;
using ir::OperandKind;
using ir::ScalarType;
using ir::SpecialRegister;
using ir::ValueId;

constexpr unsigned barrier_bytes = 8;
constexpr unsigned block_barriers = 16; // the number that PTX supports
constexpr std::array<std::string_view, 3> extents = {"ntid.x", "ntid.y", "ntid.z"};

Operand sink() {
  Operand operand;
  operand.kind = OperandKind::sink;
  return operand;
}

uint64_t stage_bytes(const ProducerPlan& producer) {
  uint64_t bytes = 0;
  for (const RunAheadLoad& load : producer.plan.loads)
    bytes += uint64_t(producer.threads) * load.bytes;
  return bytes;
}

// The array begins with two mbarriers for each stage: the full ones, then the empty ones.
uint64_t first_slot(const ProducerPlan& producer) {
  constexpr uint64_t line = 128;
  return (2 * barrier_bytes * producer.stages + line - 1) / line * line;
}

class ProducerRewriter {
public:
  ProducerRewriter(Attempt& attempt, const ProducerPlan& producer)
      : attempt_(attempt), function_(attempt.function()), producer_(producer), plan_(producer.plan),
        builder_(function_) {}

  void run();

private:
  using Values = std::map<ValueId, ValueId>;

  ValueId emit(std::string_view mnemonic, std::initializer_list<Operand> sources);
  ValueId test(std::string_view mnemonic, std::initializer_list<Operand> sources);
  void on_barrier(std::string_view mnemonic, std::vector<Operand> before, ValueId stage, int64_t offset,
                  std::vector<Operand> behind = {});
  Symbol new_name(std::string_view stem);
  void branch(BlockId from, BlockId target, ValueId when, bool holds);

  void make_entry();
  void read_parameters();
  void initialise_barriers();
  uint32_t unused_barrier() const;
  void replace_thread_index();
  void replace_operand(InstructionId id, size_t operand);
  void count_barriers();
  void adjust_directives();

  void copy_slice(const RunAheadSlice& slice, Values& values);
  ValueId taken(const RunAheadSlice& slice, Values& values, EdgeId edge);
  ValueId reached(const RunAheadSlice& slice, Values& values, BlockId block);
  void make_producer();
  void make_rows(const Values& values, ValueId stage);

  void make_wait();
  void read_slots();
  // The stage after `stage`, and the parity to wait for.
  std::pair<ValueId, ValueId> advance(ValueId stage, ValueId parity);

  Attempt& attempt_;
  ir::Function& function_;
  const ProducerPlan& producer_;
  const RunAheadPlan& plan_;
  ir::Builder builder_;
  BlockId entry_, body_, producer_block_, wait_;
  ValueId thread_, threads_; // linear index of the thread, and the original number of threads
  ValueId zero_;             // a register that is always 0
  ValueId array_;            // address of the barriers and slots
  std::array<ValueId, 3> extent_, index_;
  std::set<InstructionId> reads_index_; // instructions that read %tid
  ValueId stage_, parity_;              // for the consumers, parameters of the block that waits
};

ValueId ProducerRewriter::emit(std::string_view mnemonic, std::initializer_list<Operand> sources) {
  return builder_.emit_value(mnemonic, ScalarType::b32, sources, "%r");
}

ValueId ProducerRewriter::test(std::string_view mnemonic, std::initializer_list<Operand> sources) {
  return builder_.emit_value(mnemonic, ScalarType::pred, sources, "%p");
}

Symbol ProducerRewriter::new_name(std::string_view stem) {
  ir::Module& module = function_.module();
  // If no text of the module contains the name, it is unused in the function, too.
  const std::string prefix(stem);
  std::string name = prefix;
  for (unsigned number = 1; module.strings.find(name); ++number)
    name = prefix + '_' + std::to_string(number);
  return module.intern(name);
}

// Emits an operation on the barrier at `array + 8 * stage + offset`.
void ProducerRewriter::on_barrier(std::string_view mnemonic, std::vector<Operand> before, ValueId stage, int64_t offset,
                                  std::vector<Operand> behind) {
  const ValueId address =
      stage ? emit("mad.lo.u32", {Operand::value(stage), Operand::integer(barrier_bytes), Operand::value(array_)})
            : array_;
  ir::append_address(before, Operand::value(address), offset);
  before.insert(before.end(), behind.begin(), behind.end());
  builder_.emit(mnemonic, before);
}

// Emits the branch at the end of `from`; the caller adds the edges.
void ProducerRewriter::branch(BlockId from, BlockId target, ValueId when, bool holds) {
  builder_.at_end(from);
  builder_.guarded_by(when, !holds);
  builder_.emit("bra", {Operand::block(target)});
  builder_.unguarded();
}

// --- the block's shape ---

void ProducerRewriter::read_parameters() {
  const auto read = [&](const std::string& value) {
    const ir::VariableId parameter = attempt_.launch_parameter(ScalarType::u32, value);
    const ValueId result = builder_.new_value(ScalarType::b32, "%r");
    std::vector<Operand> operands{Operand::definition(result)};
    ir::append_address(operands, Operand::symbol(ir::SymbolRef::local_variable(parameter)));
    builder_.emit("ld.param.u32", operands);
    return result;
  };
  zero_ = emit("mov.u32", {Operand::integer(0)});
  threads_ = read("ntid.x*ntid.y*ntid.z");
  thread_ = emit("mov.u32", {Operand::special(static_cast<uint32_t>(SpecialRegister::tid), ir::component_selector(0))});
  if (!producer_.several_dimensions) {
    const ValueId one = emit("mov.u32", {Operand::integer(1)});
    extent_ = {threads_, one, one};
    index_ = {thread_, zero_, zero_};
    return;
  }
  for (size_t i = 0; i < extents.size(); ++i)
    extent_[i] = read(std::string(extents[i]));
  const ValueId row = emit("div.u32", {Operand::value(thread_), Operand::value(extent_[0])});
  index_[0] = emit("rem.u32", {Operand::value(thread_), Operand::value(extent_[0])});
  index_[1] = emit("rem.u32", {Operand::value(row), Operand::value(extent_[1])});
  index_[2] = emit("div.u32", {Operand::value(row), Operand::value(extent_[1])});
}

uint32_t ProducerRewriter::unused_barrier() const {
  std::set<int64_t> used;
  for (BlockId block : function_.layout)
    for (InstructionId id : function_.instructions_in(block))
      if (function_.is_opcode(id, Opcode::bar) || function_.is_opcode(id, Opcode::barrier))
        used.insert(function_.operands_of(id)[0].immediate);
  uint32_t number = 1;
  while (number + 1 < block_barriers && used.contains(number))
    ++number;
  return number;
}

void ProducerRewriter::initialise_barriers() {
  ir::Variable variable;
  variable.name = new_name(std::string(function_.module().text(function_.name)) + "_rows");
  variable.space = ir::StateSpace::shared;
  variable.type = ScalarType::b8;
  variable.is_array = true;
  variable.alignment = 128;
  const uint64_t bytes = producer_bytes(producer_);
  variable.dimensions = function_.dimensions.add(std::span(&bytes, 1));
  const Operand symbol = Operand::symbol(ir::SymbolRef::local_variable(function_.variables.add(variable)));
  ir::builder_at_start(function_, entry_).emit_marker(InstructionKind::declare_variable, {symbol});

  builder_.at_end(entry_);
  array_ = emit("mov.u32", {symbol});
  builder_.guarded_by(test("setp.eq.u32", {Operand::value(thread_), Operand::integer(0)}));
  for (unsigned stage = 0; stage < producer_.stages; ++stage) {
    on_barrier("mbarrier.init.shared.b64", {}, {}, stage * barrier_bytes, {Operand::integer(1)});
    on_barrier("mbarrier.init.shared.b64", {}, {}, (producer_.stages + stage) * barrier_bytes,
               {Operand::value(threads_)});
  }
  builder_.emit("fence.mbarrier_init.release.cluster", {});
  builder_.unguarded();
  builder_.emit("bar.sync", {Operand::integer(unused_barrier())});
}

void ProducerRewriter::make_entry() {
  body_ = function_.entry();
  entry_ = function_.add_block();
  function_.place_block_before(entry_, body_);
  for (InstructionId id : function_.instructions_in(body_)) {
    const InstructionKind kind = function_.instructions[id].kind;
    if (kind != InstructionKind::declare_variable && kind != InstructionKind::prototype) continue;
    function_.remove(id);
    function_.append(entry_, id);
  }
  // Control must not fall through from the body into the appended code.
  ir::spell_last_return(function_);
  producer_block_ =
      function_.add_block(new_name("$L_" + std::string(function_.module().text(function_.name)) + "_producer"));
  function_.place_block(producer_block_);
  builder_.at_end(entry_);
  read_parameters();
}

void ProducerRewriter::replace_operand(InstructionId id, size_t operand) {
  const Operand read = function_.operands_of(id)[operand];
  const unsigned component = read.selector & 3;
  const bool is_index = static_cast<SpecialRegister>(read.id) == SpecialRegister::tid;
  if (is_index) reads_index_.insert(id);
  // A 16-bit move of the special register reads its low half; from a 32-bit register it would be illegal.
  const ir::Form& form = function_.form_of(id);
  if (form.opcode == Opcode::mov && ir::bit_width(form.type()) == 16)
    function_.instructions[id].form = ir::known_form("cvt.u16.u32");
  const ValueId value = component == 3 ? zero_ : is_index ? index_[component] : extent_[component];
  function_.operands_of(id)[operand] = Operand::value(value);
}

void ProducerRewriter::replace_thread_index() {
  for (BlockId block : function_.layout) {
    if (block == entry_) continue;
    for (InstructionId id : function_.instructions_in(block)) {
      if (function_.instructions[id].kind != InstructionKind::real) continue;
      const auto operands = function_.operands_of(id);
      for (size_t i = 0; i < operands.size(); ++i) {
        if (!operands[i].is(OperandKind::special_register)) continue;
        const auto special = static_cast<SpecialRegister>(operands[i].id);
        if (special != SpecialRegister::tid && special != SpecialRegister::ntid) continue;
        replace_operand(id, i);
        break; // mov and cvt have one source
      }
    }
  }
  function_.changed();
}

// Makes the barriers of the block count the original threads.
void ProducerRewriter::count_barriers() {
  for (BlockId block : function_.layout) {
    if (block == entry_) continue;
    for (InstructionId id : function_.instructions_in(block))
      if ((function_.is_opcode(id, Opcode::bar) || function_.is_opcode(id, Opcode::barrier)) &&
          !function_.form_of(id).mnemonic.starts_with("bar.warp")) {
        const Operand number = function_.operands_of(id)[0];
        function_.set_operands(id, std::array{number, Operand::value(threads_)});
      }
  }
}

void ProducerRewriter::adjust_directives() {
  constexpr uint32_t warp = 32;
  for (ir::FunctionDirective& directive : function_.directives) {
    const std::string_view name = function_.module().text(directive.name);
    if (name != ".reqntid" && name != ".maxntid") continue;
    uint32_t product = 1;
    for (unsigned i = 0; i < directive.count; ++i)
      product *= directive.numbers[i];
    directive.numbers = {product + warp, 0, 0};
    directive.count = 1;
  }
}

// --- the producer ---

// The copy's thread index is 0, which gives the start of each row.
void ProducerRewriter::copy_slice(const RunAheadSlice& slice, Values& values) {
  const auto mapped = [&](ValueId value) {
    const auto known = values.find(value);
    return known == values.end() ? value : known->second;
  };
  for (InstructionId id : slice.instructions) {
    const ir::Instruction original = function_.instructions[id];
    const auto old = function_.operands_of(id);
    std::vector<Operand> operands(old.begin(), old.end());
    for (Operand& operand : operands) {
      if (!operand.is(OperandKind::value)) continue;
      if (operand.is_definition()) {
        const ir::Value row = function_.values[operand.as_value()];
        values[operand.as_value()] = function_.add_value(row);
      }
      operand.id = mapped(operand.as_value()).index();
    }
    builder_.standing_for(id);
    if (reads_index_.contains(id)) {
      const unsigned bits = ir::bit_width(function_.values[operands[0].as_value()].type);
      builder_.emit("mov.b" + std::to_string(bits), {operands[0], Operand::integer(0)});
      continue;
    }
    if (original.guard) builder_.guarded_by(mapped(original.guard), original.guard_negated);
    builder_.emit(function_.form_of(id).mnemonic, operands);
    builder_.unguarded();
  }
}

ValueId ProducerRewriter::taken(const RunAheadSlice& slice, Values& values, EdgeId edge) {
  const ValueId from = reached(slice, values, function_.edges[edge].from);
  const EdgeCondition condition = condition_of(function_, edge);
  if (!condition.predicate) return from;
  const auto known = values.find(condition.predicate);
  ValueId predicate = known == values.end() ? condition.predicate : known->second;
  if (!condition.holds) predicate = test("not.pred", {Operand::value(predicate)});
  return from ? test("and.pred", {Operand::value(from), Operand::value(predicate)}) : predicate;
}

// Returns an invalid ID if the block is always reached.
ValueId ProducerRewriter::reached(const RunAheadSlice& slice, Values& values, BlockId block) {
  const Reach& how = slice.reach.at(block);
  if (how.same_as) return reached(slice, values, how.same_as);
  ValueId result;
  for (size_t i = 0; i < how.edges.size(); ++i) {
    const ValueId one = taken(slice, values, how.edges[i]);
    if (!one) return {};
    result = i == 0 ? one : test("or.pred", {Operand::value(result), Operand::value(one)});
  }
  return result;
}

std::pair<ValueId, ValueId> ProducerRewriter::advance(ValueId stage, ValueId parity) {
  const ValueId next = emit("add.u32", {Operand::value(stage), Operand::integer(1)});
  const ValueId wraps = test("setp.eq.u32", {Operand::value(next), Operand::integer(producer_.stages)});
  const ValueId flip = emit("selp.b32", {Operand::integer(1), Operand::integer(0), Operand::value(wraps)});
  return {emit("selp.b32", {Operand::integer(0), Operand::value(next), Operand::value(wraps)}),
          emit("xor.b32", {Operand::value(parity), Operand::value(flip)})};
}

// Copies the rows of one trip: for each load, that of the stage.
void ProducerRewriter::make_rows(const Values& values, ValueId stage) {
  uint64_t each = 0;
  for (const RunAheadLoad& load : plan_.loads)
    each += load.bytes;
  const ValueId all = emit("mul.lo.u32", {Operand::value(threads_), Operand::integer(int64_t(each))});
  on_barrier("mbarrier.arrive.expect_tx.shared.b64", {sink()}, stage, 0, {Operand::value(all)});
  const ValueId full =
      emit("mad.lo.u32", {Operand::value(stage), Operand::integer(barrier_bytes), Operand::value(array_)});
  const ValueId slots = emit(
      "mad.lo.u32", {Operand::value(stage), Operand::integer(int64_t(stage_bytes(producer_))), Operand::value(array_)});
  uint64_t offset = first_slot(producer_);
  for (const RunAheadLoad& load : plan_.loads) {
    const auto operands = function_.operands_of(load.instruction);
    const int64_t immediate = operands[load.address].immediate;
    const ValueId base = operands[load.address + 1].as_value();
    builder_.standing_for(load.instruction);
    const ValueId bytes = emit("mul.lo.u32", {Operand::value(threads_), Operand::integer(load.bytes)});
    std::vector<Operand> list;
    ir::append_address(list, Operand::value(slots), int64_t(offset));
    ir::append_address(list, Operand::value(values.at(base)), immediate);
    list.push_back(Operand::value(bytes));
    ir::append_address(list, Operand::value(full), 0);
    builder_.emit("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes", list);
    offset += uint64_t(producer_.threads) * load.bytes;
  }
}

void ProducerRewriter::make_producer() {
  const std::string stem = "$L_" + std::string(function_.module().text(function_.name));
  const BlockId start = function_.add_block(), trip = function_.add_block(new_name(stem + "_rows"));
  const BlockId wait = function_.add_block(new_name(stem + "_empty")), issue = function_.add_block();
  const BlockId done = function_.add_block(new_name(stem + "_produced"));
  for (BlockId block : {start, trip, wait, issue, done})
    function_.place_block(block);
  const auto edges = [&](BlockId from, std::vector<EdgeId> list, bool falls_through) {
    function_.set_successors(from, list, falls_through);
  };

  // One thread of the warp does all the work.
  builder_.at_end(producer_block_);
  const ValueId others = test("setp.ne.u32", {Operand::value(thread_), Operand::value(threads_)});
  branch(producer_block_, done, others, true);
  edges(producer_block_, {function_.add_edge(producer_block_, done), function_.add_edge(producer_block_, start)}, true);

  builder_.at_end(start);
  Values values;
  copy_slice(producer_.preamble, values);
  const ValueId entered = taken(producer_.preamble, values, producer_.entry);
  const auto mapped = [](const Values& map, ValueId value) {
    const auto known = map.find(value);
    return known == map.end() ? value : known->second;
  };
  std::vector<ValueId> parameters, first;
  Values inside = values;
  for (uint32_t index : plan_.slice.parameters) {
    const ValueId parameter = function_.parameters(plan_.header)[index];
    const ir::Value row = function_.values[parameter];
    parameters.push_back(function_.add_value(row));
    inside[parameter] = parameters.back();
    first.push_back(mapped(values, function_.arguments(producer_.entry)[index]));
  }
  first.push_back(emit("mov.u32", {Operand::integer(0)}));
  first.push_back(emit("mov.u32", {Operand::integer(1)})); // on a new barrier, a wait for the phase before the first
                                                           // one succeeds at once
  const ValueId stage = builder_.new_value(ScalarType::b32, "%r"), parity = builder_.new_value(ScalarType::b32, "%r");
  parameters.push_back(stage);
  parameters.push_back(parity);
  function_.set_parameters(trip, parameters);
  if (entered) {
    branch(start, done, entered, false);
    edges(start, {function_.add_edge(start, done), function_.add_edge(start, trip, first)}, true);
  } else {
    edges(start, {function_.add_edge(start, trip, first)}, true);
  }

  builder_.at_end(trip);
  copy_slice(plan_.slice, inside);
  edges(trip, {function_.add_edge(trip, wait)}, true);

  builder_.at_end(wait);
  const ValueId empty = builder_.new_value(ScalarType::pred, "%p");
  on_barrier("mbarrier.try_wait.parity.shared.b64", {Operand::definition(empty)}, stage,
             producer_.stages * barrier_bytes, {Operand::value(parity)});
  branch(wait, wait, empty, false);
  edges(wait, {function_.add_edge(wait, wait), function_.add_edge(wait, issue)}, true);

  builder_.at_end(issue);
  make_rows(inside, stage);
  const ValueId again = taken(plan_.slice, inside, plan_.back_edge);
  std::vector<ValueId> next;
  for (uint32_t index : plan_.slice.parameters)
    next.push_back(mapped(inside, function_.arguments(plan_.back_edge)[index]));
  const auto [next_stage, next_parity] = advance(stage, parity);
  next.push_back(next_stage);
  next.push_back(next_parity);
  branch(issue, trip, again, true);
  edges(issue, {function_.add_edge(issue, trip, next), function_.add_edge(issue, done)}, true);
  builder_.at_end(done).emit("ret", {});
}

// --- the consumers ---

// Inserts a block before the loop's header that waits for the stage.
void ProducerRewriter::make_wait() {
  const BlockId header = plan_.header;
  wait_ = function_.add_block(new_name("$L_" + std::string(function_.module().text(function_.name)) + "_full"));
  function_.place_block_before(wait_, header);
  const auto old = function_.parameters(header);
  std::vector<ValueId> parameters;
  for (ValueId value : std::vector<ValueId>(old.begin(), old.end())) {
    const ir::Value row = function_.values[value];
    parameters.push_back(function_.add_value(row));
  }
  std::vector<ValueId> handed_on = parameters;
  stage_ = builder_.new_value(ScalarType::b32, "%r");
  parity_ = builder_.new_value(ScalarType::b32, "%r");
  parameters.push_back(stage_);
  parameters.push_back(parity_);
  function_.set_parameters(wait_, parameters);
  for (EdgeId edge : {producer_.entry, plan_.back_edge}) {
    function_.edges[edge].to = wait_;
    if (const InstructionId terminator = function_.terminator(function_.edges[edge].from))
      for (Operand& operand : function_.operands_of(terminator))
        if (operand.is(OperandKind::block) && operand.as_block() == header) operand = Operand::block(wait_);
  }
  builder_.at_end(wait_);
  const ValueId full = builder_.new_value(ScalarType::pred, "%p");
  on_barrier("mbarrier.try_wait.parity.shared.b64", {Operand::definition(full)}, stage_, 0, {Operand::value(parity_)});
  branch(wait_, wait_, full, false);
  function_.set_successors(
      wait_, std::array{function_.add_edge(wait_, wait_, parameters), function_.add_edge(wait_, header, handed_on)},
      true);

  builder_.at_end(header);
  for (InstructionId id : function_.instructions_in(header))
    if (function_.instructions[id].kind == InstructionKind::real) {
      builder_.before(id);
      break;
    }
  const auto [next_stage, next_parity] = advance(stage_, parity_);
  const auto append = [&](EdgeId edge, ValueId stage, ValueId parity) {
    const auto arguments = function_.arguments(edge);
    std::vector<ValueId> list(arguments.begin(), arguments.end());
    list.push_back(stage);
    list.push_back(parity);
    function_.set_arguments(edge, list);
  };
  append(producer_.entry, zero_, zero_);
  append(plan_.back_edge, next_stage, next_parity);
}

void ProducerRewriter::read_slots() {
  // builder_ is at the loop's header.
  const ValueId slots = emit("mad.lo.u32", {Operand::value(stage_), Operand::integer(int64_t(stage_bytes(producer_))),
                                            Operand::value(array_)});
  std::map<unsigned, ValueId> slot; // by size
  for (const RunAheadLoad& load : plan_.loads)
    if (!slot.contains(load.bytes))
      slot[load.bytes] =
          emit("mad.lo.u32", {Operand::value(thread_), Operand::integer(load.bytes), Operand::value(slots)});
  uint64_t offset = first_slot(producer_);
  for (const RunAheadLoad& load : plan_.loads) {
    const ir::Form& form = function_.form_of(load.instruction);
    std::string mnemonic = "ld.shared";
    if (form.vector_width > 1) mnemonic += ".v" + std::to_string(form.vector_width);
    mnemonic += "." + std::string(spelling(form.type()));
    function_.instructions[load.instruction].form = ir::known_form(mnemonic);
    const auto operands = function_.operands_of(load.instruction);
    operands[load.address].immediate = int64_t(offset);
    operands[load.address].flags = ir::OperandFlag::none;
    operands[load.address + 1] = Operand::value(slot.at(load.bytes));
    offset += uint64_t(producer_.threads) * load.bytes;
  }
  // A thread that continues has finished reading: inserted before the back branch.
  const BlockId latch = function_.edges[plan_.back_edge].from;
  if (const InstructionId terminator = function_.terminator(latch))
    builder_.before(terminator);
  else
    builder_.at_end(latch);
  on_barrier("mbarrier.arrive.shared.b64", {sink()}, stage_, producer_.stages * barrier_bytes);
}

void ProducerRewriter::run() {
  attempt_.set_producer();
  make_entry();
  replace_thread_index();
  count_barriers();
  initialise_barriers();
  // The slices are copied while the loop is as it was when planned.
  make_producer();
  make_wait();
  read_slots();
  builder_.at_end(entry_);
  const ValueId is_producer = test("setp.ge.u32", {Operand::value(thread_), Operand::value(threads_)});
  branch(entry_, producer_block_, is_producer, true);
  function_.set_successors(
      entry_, std::array{function_.add_edge(entry_, producer_block_), function_.add_edge(entry_, body_)}, true);
  adjust_directives();
  function_.changed();
}

} // namespace

uint64_t producer_bytes(const ProducerPlan& producer) {
  return first_slot(producer) + producer.stages * stage_bytes(producer);
}

void rewrite_with_producer(Attempt& attempt, const ProducerPlan& producer) {
  ProducerRewriter(attempt, producer).run();
}

} // namespace ptxrewrite::transforms::legal
