// Pairs the transfers of DAC's two streams and checks the rules of their text.
#include "ir/forms/dac.h"

#include "ir/core/kernel_parameters.h"
#include "ir/core/module.h"
#include "ir/flow/cfg.h"

#include <algorithm>
#include <map>

namespace ptxrewrite::ir {

namespace {

struct QueueWord {
  RegisterClass register_class;
  std::string_view spelling;
};
constexpr QueueWord queue_words[] = {
    {RegisterClass::queued_data, "dac.deq.data"},
    {RegisterClass::queued_address, "dac.deq.addr"},
    {RegisterClass::queued_predicate, "dac.deq.pred"},
    {RegisterClass::taken_predicate, "dac.take.pred"},
};

CrossingKind crossing_of(RegisterClass queue) {
  switch (queue) {
  case RegisterClass::queued_data:
    return CrossingKind::data;
  case RegisterClass::queued_address:
    return CrossingKind::address;
  case RegisterClass::queued_predicate:
    return CrossingKind::predicate;
  default:
    return CrossingKind::given_predicate;
  }
}

// The number of a dac.* instruction: its first integer.
uint32_t number_of(const Function& function, InstructionId id) {
  for (const Operand& operand : function.operands_of(id))
    if (operand.is(OperandKind::integer)) return static_cast<uint32_t>(operand.immediate);
  return 0;
}

void add_instruction_crossing(const Function& stream, BlockId block, InstructionId id, std::vector<Crossing>& list) {
  Crossing crossing;
  crossing.instruction = id;
  crossing.block = block;
  const Form& form = stream.form_of(id);
  switch (form.opcode) {
  case Opcode::dac_enq:
    crossing.sends = true;
    crossing.kind = form.has(Modifier::data)   ? CrossingKind::data
                    : form.has(Modifier::addr) ? CrossingKind::address
                                               : CrossingKind::predicate;
    break;
  case Opcode::dac_deq:
    crossing.kind = CrossingKind::predicate;
    break;
  case Opcode::dac_give:
    crossing.sends = true;
    crossing.kind = CrossingKind::given_predicate;
    break;
  case Opcode::dac_take:
    crossing.kind = CrossingKind::given_predicate;
    break;
  default:
    return;
  }
  crossing.number = number_of(stream, id);
  list.push_back(crossing);
}

std::string_view words_of(CrossingKind kind, bool sends) {
  switch (kind) {
  case CrossingKind::data:
    return sends ? "dac.enq.data" : "dac.deq.data";
  case CrossingKind::address:
    return sends ? "dac.enq.addr" : "dac.deq.addr";
  case CrossingKind::predicate:
    return sends ? "dac.enq.pred" : "dac.deq.pred";
  case CrossingKind::given_predicate:
    return sends ? "dac.give.pred" : "dac.take.pred";
  }
  return "";
}

std::string text_of(const Crossing& crossing) {
  return std::string(words_of(crossing.kind, crossing.sends)) + " " + std::to_string(crossing.number);
}

class StreamChecker {
public:
  explicit StreamChecker(const Function& kernel) : kernel_(kernel), affine_(kernel.affine_stream.get()) {}

  std::vector<FormFinding> run() {
    check_place();
    check_body();
    if (affine_) {
      check_affine();
      check_pairs();
    }
    return std::move(findings_);
  }

private:
  void report(bool in_affine_stream, InstructionId id, std::string message) {
    findings_.push_back({in_affine_stream, id, std::move(message)});
  }

  // The section has to occur once, at the start of the body.
  void check_place() {
    bool found = false, real = false;
    for (BlockId block : kernel_.layout)
      for (InstructionId id : kernel_.instructions_in(block)) {
        const InstructionKind kind = kernel_.instructions[id].kind;
        real = real || kind == InstructionKind::real;
        if (kind != InstructionKind::section_begin ||
            static_cast<SectionKind>(kernel_.operands_of(id)[0].immediate) != SectionKind::dac_affine)
          continue;
        if (found) report(false, id, "the kernel has an affine stream already");
        if (!affine_) report(false, id, "the section has no instructions of its own");
        if (real || block != kernel_.entry()) report(false, id, "the affine stream stands in front of the body");
        if (!kernel_.is_entry) report(false, id, "only kernels have an affine stream");
        found = true;
      }
    if (affine_ && !found) report(false, {}, "the affine stream has no place in the body");
    if (affine_ && affine_->is_ssa != kernel_.is_ssa) report(true, {}, "only one of the streams is in SSA form");
  }

  void check_body() {
    for (const Crossing& crossing : crossings(kernel_)) {
      const bool belongs = crossing.kind == CrossingKind::given_predicate ? crossing.sends : !crossing.sends;
      if (!affine_)
        report(false, crossing.instruction, "'" + text_of(crossing) + "' needs an affine stream");
      else if (!belongs)
        report(false, crossing.instruction, "'" + text_of(crossing) + "' belongs into the affine stream");
      else
        check_access(crossing);
    }
    for (BlockId block : kernel_.layout)
      for (InstructionId id : kernel_.instructions_in(block))
        if (kernel_.is_opcode(id, Opcode::dac_condition))
          report(false, id, "dac.condition belongs into the affine stream");
  }

  // A dequeued address or datum takes no offset, and a datum is the address of a load.
  void check_access(const Crossing& crossing) {
    if (crossing.kind != CrossingKind::data && crossing.kind != CrossingKind::address) return;
    const Form& form = kernel_.form_of(crossing.instruction);
    std::span<const Operand> operands = kernel_.operands_of(crossing.instruction);
    if (crossing.kind == CrossingKind::data && form.opcode != Opcode::ld)
      report(false, crossing.instruction, "'" + text_of(crossing) + "' is the address of a load");
    for (size_t i = 0; i < operands.size(); ++i) {
      if (!operands[i].is(OperandKind::value) || !is_queue(kernel_.values[operands[i].as_value()].register_class))
        continue;
      const bool alone = i > 0 && operands[i - 1].is(OperandKind::address) && operands[i - 1].group_size() == 1 &&
                         operands[i - 1].immediate == 0;
      if (!alone) report(false, crossing.instruction, "'" + text_of(crossing) + "' is a whole address");
    }
  }

  void check_affine() {
    for (const Crossing& crossing : crossings(*affine_)) {
      const bool belongs = crossing.kind == CrossingKind::given_predicate ? !crossing.sends : crossing.sends;
      if (!belongs) report(true, crossing.instruction, "'" + text_of(crossing) + "' belongs into the body");
    }
    for (BlockId block : affine_->layout)
      for (InstructionId id : affine_->instructions_in(block))
        check_affine_instruction(id);
  }

  // The affine stream may only read what no thread writes, and may write nothing.
  void check_affine_instruction(InstructionId id) {
    const InstructionKind kind = affine_->instructions[id].kind;
    if (kind == InstructionKind::declare_variable)
      return report(true, id, "the affine stream has no memory of its own");
    if (kind == InstructionKind::section_begin || kind == InstructionKind::linear_row)
      return report(true, id, "the affine stream has no sections");
    if (kind != InstructionKind::real) return;
    const Form& form = affine_->form_of(id);
    if (form.opaque) return report(true, id, "the affine stream cannot have an unknown instruction");
    const Effects& effects = form.effects;
    const bool reads_constants =
        form.opcode == Opcode::ld && (is_param(form.space) || form.space == StateSpace::constant);
    if (effects.writes_memory || effects.atomic || effects.call || (effects.reads_memory && !reads_constants))
      return report(true, id, "the affine stream reads parameters and constants, and no other memory");
    for (const Operand& operand : affine_->operands_of(id))
      if (is_param(form.space) && operand.is(OperandKind::symbol) && !is_own_parameter(*affine_, operand.as_symbol()))
        report(true, id, "the affine stream reads the kernel's parameters, and no others");
  }

  struct Partners {
    std::vector<Crossing> senders, takers;
  };

  void check_pairs() {
    std::map<std::pair<CrossingKind, uint32_t>, Partners> partners;
    auto add = [&](const Crossing& crossing) {
      Partners& row = partners[{crossing.kind, crossing.number}];
      (crossing.sends ? row.senders : row.takers).push_back(crossing);
    };
    // Transfers in the wrong stream are reported with their stream and have no partner. Nor have those in unreachable
    // blocks, which SSA construction drops: their partner would wait forever.
    const ControlFlow affine_flow(*affine_), body_flow(kernel_);
    for (const Crossing& crossing : crossings(*affine_))
      if (is_in_affine(crossing) && affine_flow.reachable(crossing.block)) add(crossing);
    for (const Crossing& crossing : crossings(kernel_))
      if (!is_in_affine(crossing) && body_flow.reachable(crossing.block)) add(crossing);
    for (const auto& [key, row] : partners)
      check_pair(key.first, row);
  }

  bool is_in_affine(const Crossing& crossing) const {
    return (crossing.kind == CrossingKind::given_predicate) != crossing.sends;
  }

  void check_pair(CrossingKind kind, const Partners& row) {
    for (const std::vector<Crossing>* side : {&row.senders, &row.takers})
      for (size_t i = 1; i < side->size(); ++i)
        report(is_in_affine((*side)[i]), (*side)[i].instruction, "'" + text_of((*side)[i]) + "' is there twice");
    for (const std::vector<Crossing>* side : {&row.senders, &row.takers}) {
      const std::vector<Crossing>& other = side == &row.senders ? row.takers : row.senders;
      if (side->empty() || !other.empty()) continue;
      const Crossing& alone = side->front();
      report(is_in_affine(alone), alone.instruction,
             "'" + text_of(alone) + "' has no '" + std::string(words_of(alone.kind, !alone.sends)) + "'");
    }
    if (row.senders.empty() || row.takers.empty()) return;
    if (kind == CrossingKind::data || kind == CrossingKind::address) check_forms(row.senders[0], row.takers[0]);
  }

  void check_forms(const Crossing& enqueue, const Crossing& dequeue) {
    const Form& sent = affine_->form_of(enqueue.instruction);
    const Form& taken = kernel_.form_of(dequeue.instruction);
    const bool same_space = sent.space == taken.space;
    const bool same_datum = enqueue.kind == CrossingKind::address ||
                            (sent.type() == taken.type() && sent.vector_width == taken.vector_width);
    if (!same_space || !same_datum)
      report(true, enqueue.instruction,
             "'" + std::string(sent.mnemonic) + "' and its partner '" + std::string(taken.mnemonic) +
                 "' differ in space or type");
  }

  const Function& kernel_;
  const Function* affine_;
  std::vector<FormFinding> findings_;
};

} // namespace

std::string_view queue_spelling(RegisterClass register_class) {
  for (const QueueWord& word : queue_words)
    if (word.register_class == register_class) return word.spelling;
  return "";
}

std::optional<RegisterClass> parse_queue(std::string_view spelling) {
  for (const QueueWord& word : queue_words)
    if (word.spelling == spelling) return word.register_class;
  return std::nullopt;
}

ValueId add_queue_value(Function& function, RegisterClass register_class, uint32_t number) {
  Value value;
  const bool address = register_class == RegisterClass::queued_data || register_class == RegisterClass::queued_address;
  value.type = address ? ScalarType::b64 : ScalarType::pred;
  value.register_class = register_class;
  value.is_undefined = function.is_ssa;
  value.name = function.module().intern(queue_spelling(register_class));
  value.number = number;
  return function.add_value(value);
}

bool takes_from_queue(const Function& function, InstructionId instruction) {
  bool takes = false;
  for_each_use(function, instruction, [&](ValueId value) { takes |= is_queue(function.values[value].register_class); });
  return takes;
}

std::vector<Crossing> crossings(const Function& stream) {
  std::vector<Crossing> list;
  for (BlockId block : stream.layout)
    for (InstructionId id : stream.instructions_in(block)) {
      if (stream.instructions[id].kind != InstructionKind::real) continue;
      // In execution order: the guard first.
      auto add = [&](ValueId value) {
        const Value& row = stream.values[value];
        if (is_queue(row.register_class))
          list.push_back({crossing_of(row.register_class), row.number, false, id, block});
      };
      if (ValueId guard = stream.instructions[id].guard) add(guard);
      for (const Operand& operand : stream.operands_of(id))
        if (operand.is(OperandKind::value) && !operand.has(OperandFlag::old_value)) add(operand.as_value());
      add_instruction_crossing(stream, block, id, list);
    }
  return list;
}

std::unique_ptr<Function> make_affine_stream(const Function& kernel) {
  auto stream = std::make_unique<Function>(kernel.module());
  stream->name = kernel.name;
  stream->is_entry = true;
  stream->has_body = true;
  stream->is_ssa = kernel.is_ssa;
  stream->directives = kernel.directives;
  stream->signature = kernel.signature;
  stream->variables = kernel.variables;
  stream->variable_lists = kernel.variable_lists;
  stream->dimensions = kernel.dimensions;
  stream->initialisers = kernel.initialisers;
  stream->range = kernel.range;
  stream->header_range = kernel.header_range;
  stream->source_instruction_count = kernel.source_instruction_count;
  stream->place_block(stream->add_block());
  return stream;
}

std::vector<FormFinding> check_streams(const Function& kernel) {
  return StreamChecker(kernel).run();
}

} // namespace ptxrewrite::ir
