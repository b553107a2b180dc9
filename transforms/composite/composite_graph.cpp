// Nodes and candidate pairs of a block; see composite_graph.h.
#include "transforms/composite/composite_graph.h"

#include "ir/core/operand_summary.h"
#include "ir/forms/composite.h"
#include "ir/machine/prepare/first_generation.h"
#include "ir/machine/prepare/simple_steps.h"

#include <algorithm>
#include <bit>
#include <map>
#include <optional>

namespace ptxrewrite::transforms::composite {

namespace {

using ir::Form;
using ir::InstructionId;
using ir::Modifier;
using ir::Opcode;
using ir::Operand;
using ir::OperandKind;
using ir::ScalarType;
using ir::ValueId;

// Saved instructions have priority, then an intermediate result without other readers, which blocks the slot for no
// other pair, then source registers: a composite should use what the register file delivers in a cycle, three (§3.2).
constexpr int32_t gain_of_instruction = 16;
constexpr int32_t gain_of_short_life = 2;
constexpr int32_t gain_of_register = 1;

struct Half {
  std::string text;
  std::vector<Operand> sources;
};

std::optional<int64_t> power_of_two(const Operand& operand) {
  if (!operand.is(OperandKind::integer) || operand.immediate <= 0 || operand.immediate > INT32_MAX) return std::nullopt;
  auto value = static_cast<uint64_t>(operand.immediate);
  return std::has_single_bit(value) ? std::optional<int64_t>(std::countr_zero(value)) : std::nullopt;
}

std::vector<Operand> top_level_sources(const ir::Function& function, InstructionId id) {
  std::vector<Operand> sources;
  std::span<const Operand> operands = function.operands_of(id);
  unsigned skipped = function.form_of(id).definitions;
  for (size_t i = 0; i < operands.size(); i = ir::next_sibling(operands, i)) {
    if (skipped > 0) {
      --skipped;
      continue;
    }
    if (!operands[i].has(ir::OperandFlag::old_value)) sources.push_back(operands[i]);
  }
  return sources;
}

bool is_32_or_64_bit_integer(ScalarType type) {
  unsigned bits = ir::bit_width(type);
  return !ir::is_float(type) && (bits == 32 || bits == 64) && type != ScalarType::f16x2 && type != ScalarType::bf16x2 &&
         type != ScalarType::u16x2 && type != ScalarType::s16x2;
}

std::optional<Half> half_of_product(const Form& form, const std::vector<Operand>& sources) {
  std::optional<int64_t> power = power_of_two(sources[1]);
  std::string type(ir::spelling(form.type()));
  if (ir::bit_width(form.type()) != 32) return std::nullopt;
  if (form.has(Modifier::wide))
    return power ? std::optional<Half>({"shl.wide." + type, {sources[0], Operand::integer(*power)}}) : std::nullopt;
  if (form.has(Modifier::lo) && power) return Half{"shl.b32", {sources[0], Operand::integer(*power)}};
  return Half{std::string(form.mnemonic), sources};
}

// Returns the instruction as a half of a composite; nothing if it cannot be one. Unary instructions become binary ones.
std::optional<Half> half_of(const Form& form, const std::vector<Operand>& sources) {
  if (form.opaque || form.extension || form.has(Modifier::sat) || form.carry_out || form.effects.reads_carry)
    return std::nullopt;
  std::string type(ir::spelling(form.type()));
  bool suits = is_32_or_64_bit_integer(form.type());
  switch (form.opcode) {
  case Opcode::add:
  case Opcode::sub:
  case Opcode::and_:
  case Opcode::or_:
  case Opcode::xor_:
  case Opcode::shl:
  case Opcode::shr:
    if (!suits || sources.size() != 2) return std::nullopt;
    return Half{std::string(form.mnemonic), sources};
  case Opcode::neg:
    if (!suits) return std::nullopt;
    return Half{"sub." + type, {Operand::integer(0), sources[0]}};
  case Opcode::not_:
    if (!suits) return std::nullopt;
    return Half{"xor." + type, {sources[0], Operand::integer(-1)}};
  case Opcode::mul:
    return suits && sources.size() == 2 ? half_of_product(form, sources) : std::nullopt;
  case Opcode::mul24: // the machine's own multiplier
    return form.has(Modifier::lo) ? std::optional<Half>({std::string(form.mnemonic), sources}) : std::nullopt;
  case Opcode::cvt:
    return sources.size() == 1 ? std::optional<Half>({std::string(form.mnemonic), sources}) : std::nullopt;
  default:
    return std::nullopt;
  }
}

bool is_shift(std::string_view half) {
  return half.starts_with("shl") || half.starts_with("shr");
}

class GraphBuilder {
public:
  GraphBuilder(const FunctionFacts& facts, ir::BlockId block)
      : facts_(facts), function_(facts.function), block_(block) {}

  BlockGraph run() {
    add_nodes();
    add_reads();
    bound_places();
    for (uint32_t node = 0; node < graph_.nodes.size(); ++node)
      if (!graph_.nodes[node].half.empty()) add_pairs(node);
    return std::move(graph_);
  }

private:
  // --- nodes ---

  // The number of machine instructions that the instruction itself takes.
  uint32_t weight(InstructionId id) const {
    const ir::InstructionCost& cost = facts_.lowering.cost(id);
    return facts_.lowering.absorbed(id) ? 0 : cost.weight;
  }

  void add_nodes() {
    // Sections of other hardware forms are not changed.
    InstructionId start;
    for (InstructionId id : function_.instructions_in(block_))
      if (function_.instructions[id].kind == ir::InstructionKind::section_end) start = id;
    bool inside = !start;
    for (InstructionId id : function_.instructions_in(block_)) {
      if (inside)
        add_instruction(id);
      else
        finish({id, {}, {}, {}, {}, -1});
      if (id == start) inside = true;
    }
  }

  void add_instruction(InstructionId id) {
    const ir::Instruction& instruction = function_.instructions[id];
    Node node{id, {}, {}, {}, {}, -1};
    std::span<const Operand> operands = function_.operands_of(id);
    if (instruction.kind == ir::InstructionKind::real && function_.form_of(id).definitions == 1 && !operands.empty() &&
        operands[0].is(OperandKind::value) && !operands[0].selector) {
      node.result = operands[0].as_value();
      if (add_steps(id, node.result)) return;
      describe_half(id, node);
    }
    finish(std::move(node));
  }

  void finish(Node node) {
    auto number = static_cast<int32_t>(graph_.nodes.size());
    if (node.expansion < 0)
      ir::for_each_definition(function_, node.instruction, [&](ValueId value) { writer_[value.index()] = number; });
    else if (node.result)
      writer_[node.result.index()] = number;
    graph_.nodes.push_back(std::move(node));
  }

  void describe_half(InstructionId id, Node& node) {
    if (weight(id) != 1) return;
    std::optional<Half> half = half_of(function_.form_of(id), top_level_sources(function_, id));
    if (!half) return;
    for (const Operand& source : half->sources) {
      bool usable = (source.is(OperandKind::value) && !source.selector &&
                     function_.values[source.as_value()].register_class == ir::RegisterClass::general) ||
                    source.is(OperandKind::integer);
      if (!usable || needs_its_reader(source)) return;
      node.sources.push_back({source, -1});
    }
    node.half = std::move(half->text);
  }

  // Is the operand's definition absorbed by this reader, and so costs no instruction?
  bool needs_its_reader(const Operand& operand) const {
    if (!operand.is(OperandKind::value)) return false;
    InstructionId id = facts_.def_use.definition(operand.as_value()).instruction;
    return id && facts_.lowering.absorbed(id) && !function_.is_opcode(id, Opcode::cvt);
  }

  bool add_steps(InstructionId id, ValueId result) {
    if (function_.instructions[id].guard) return false;
    std::vector<Operand> sources = top_level_sources(function_, id);
    std::vector<ir::SimpleStep> steps = ir::simple_steps(function_.form_of(id), sources);
    if (steps.empty() || weight(id) != steps.size()) return false;
    for (const Operand& source : sources)
      if ((!source.is(OperandKind::value) && !source.is(OperandKind::integer)) || source.selector ||
          needs_its_reader(source))
        return false;
    auto first = static_cast<int32_t>(graph_.nodes.size());
    auto last = first + static_cast<int32_t>(steps.size()) - 1;
    for (const ir::SimpleStep& step : steps) {
      Node node{id, std::string(step.mnemonic), {}, std::string(step.mnemonic), {}, last};
      for (const ir::StepOperand& operand : {step.a, step.b}) {
        if (operand.kind == ir::StepOperand::Kind::step)
          node.sources.push_back({{}, first + static_cast<int32_t>(operand.index)});
        else if (operand.kind == ir::StepOperand::Kind::literal)
          node.sources.push_back({Operand::integer(operand.literal), -1});
        else
          node.sources.push_back({sources[operand.index], -1});
      }
      if (static_cast<int32_t>(graph_.nodes.size()) == last) node.result = result;
      finish(std::move(node));
    }
    return true;
  }

  // --- dependences ---

  int32_t writer(ValueId value) const {
    auto found = writer_.find(value.index());
    return found == writer_.end() ? -1 : found->second;
  }

  void add_reads() {
    graph_.problem.reads.resize(graph_.nodes.size());
    graph_.problem.clobbers.resize(graph_.nodes.size());
    for (uint32_t i = 0; i < graph_.nodes.size(); ++i) {
      const Node& node = graph_.nodes[i];
      std::vector<uint32_t>& reads = graph_.problem.reads[i];
      auto add = [&](int32_t from) {
        if (from >= 0 && std::ranges::find(reads, static_cast<uint32_t>(from)) == reads.end())
          reads.push_back(static_cast<uint32_t>(from));
      };
      if (node.expansion >= 0) {
        for (const Source& source : node.sources)
          add(source.step >= 0                        ? source.step
              : source.operand.is(OperandKind::value) ? writer(source.operand.as_value())
                                                      : -1);
        // The instruction, if it stays, is at the position of the last step, and may read operands that no step needs
        // (lop3).
        if (node.expansion != static_cast<int32_t>(i)) continue;
      }
      ir::for_each_use(function_, node.instruction, [&](ValueId value) { add(writer(value)); });
      if (node.expansion >= 0) continue;
      if (function_.instructions[node.instruction].kind != ir::InstructionKind::real) continue;
      const Form& form = function_.form_of(node.instruction);
      graph_.problem.clobbers[i] = form.opaque || form.effects.call || ir::is_composite(form);
    }
  }

  // Composites are placed after the sections of another hardware form, and before the end of the block.
  void bound_places() {
    InstructionId end = function_.terminator(block_);
    for (uint32_t i = 0; i < graph_.nodes.size(); ++i) {
      InstructionId id = graph_.nodes[i].instruction;
      if (function_.instructions[id].kind == ir::InstructionKind::section_end) graph_.problem.begin = i + 1;
      if (id == end) graph_.problem.end = i;
    }
  }

  // --- pairs ---

  void add_pairs(uint32_t second) {
    const Node& node = graph_.nodes[second];
    for (unsigned position = 0; position < node.sources.size(); ++position) {
      const Source& source = node.sources[position];
      int32_t first = source.step >= 0                        ? source.step
                      : source.operand.is(OperandKind::value) ? writer(source.operand.as_value())
                                                              : -1;
      if (first >= 0 && !graph_.nodes[static_cast<size_t>(first)].half.empty())
        add_pair(static_cast<uint32_t>(first), second, position);
    }
  }

  void add_pair(uint32_t first, uint32_t second, unsigned position) {
    const Node &early = graph_.nodes[first], &late = graph_.nodes[second];
    std::optional<std::string> mnemonic = fused_mnemonic(early, late, position);
    if (!mnemonic || !same_guard(early, late) || !operands_fit(early, late, position)) return;
    if (late.result && ir::bit_width(function_.values[late.result].type) == 64 &&
        !facts_.low_halves[late.result.index()])
      return;
    std::optional<bool> others = other_readers(first, second);
    if (!others) return;
    int32_t gain = gain_of_instruction + (*others ? 0 : gain_of_short_life) +
                   gain_of_register * source_registers(early, late, position);
    graph_.problem.pairs.push_back({first, second, gain});
    graph_.fusions.push_back({std::move(*mnemonic), position});
  }

  // Returns "crf.xor.b32.shr.u32" or the like, if the instruction table has it.
  std::optional<std::string> fused_mnemonic(const Node& early, const Node& late, unsigned position) const {
    std::string second = late.half;
    if (position == 1) {
      if (second.starts_with("sub"))
        second.insert(0, 1, 'r');
      else if (is_shift(second))
        return std::nullopt;
    }
    std::string mnemonic = "crf." + early.half + "." + second;
    Result<ir::FormId> form = ir::resolve_form(mnemonic);
    return form && !ir::form(*form).opaque ? std::optional(mnemonic) : std::nullopt;
  }

  bool same_guard(const Node& a, const Node& b) const {
    const ir::Instruction &x = function_.instructions[a.instruction], &y = function_.instructions[b.instruction];
    return x.guard == y.guard && (!x.guard || x.guard_negated == y.guard_negated);
  }

  static int32_t source_registers(const Node& early, const Node& late, unsigned position) {
    auto is_register = [](const Source& source) { return source.step >= 0 || source.operand.is(OperandKind::value); };
    auto count = static_cast<int32_t>(std::ranges::count_if(early.sources, is_register));
    for (unsigned i = 0; i < late.sources.size(); ++i)
      count += i != position && is_register(late.sources[i]);
    return count;
  }

  // At most three source registers (§3.2), one literal that is not a shift amount, one operand in memory (§3.3).
  bool operands_fit(const Node& early, const Node& late, unsigned position) const {
    unsigned literals = 0, in_memory = 0;
    auto count = [&](const Node& node, unsigned index) {
      const Source& source = node.sources[index];
      if (source.step >= 0) return;
      if (source.operand.is(OperandKind::integer)) literals += !(index == 1 && is_shift(node.half));
      in_memory += is_in_memory(source.operand);
    };
    for (unsigned index = 0; index < early.sources.size(); ++index)
      count(early, index);
    for (unsigned index = 0; index < late.sources.size(); ++index)
      if (index != position) count(late, index);
    return literals <= 1 && in_memory <= 1;
  }

  // On this machine, kernel parameters are operands in shared memory.
  bool is_in_memory(const Operand& operand) const {
    if (!operand.is(OperandKind::value)) return false;
    InstructionId id = facts_.def_use.definition(operand.as_value()).instruction;
    return id && function_.is_opcode(id, Opcode::ld) && facts_.lowering.cost(id).weight == 0;
  }

  // Are there readers of the first half other than the second half? Returns nothing if one of them cannot read the
  // slot.
  std::optional<bool> other_readers(uint32_t first, uint32_t second) const {
    const Node& early = graph_.nodes[first];
    if (!early.result) { // a step: read only by steps of its own instruction
      unsigned uses = 0;
      bool others = false;
      for (uint32_t i = first + 1; i <= static_cast<uint32_t>(early.expansion); ++i)
        for (const Source& source : graph_.nodes[i].sources)
          if (source.step == static_cast<int32_t>(first)) {
            uses += i == second;
            others |= i != second;
          }
      return uses == 1 ? std::optional(others) : std::nullopt;
    }
    unsigned uses = 0;
    bool others = false;
    for (const ir::Use& use : facts_.def_use.uses(early.result)) {
      if (!use.instruction) return std::nullopt; // another block
      if (use.instruction == graph_.nodes[second].instruction && graph_.nodes[second].expansion < 0) {
        ++uses;
        continue;
      }
      if (use.instruction != graph_.nodes[second].instruction && !can_read_slot(use, early)) return std::nullopt;
      others = true;
    }
    if (graph_.nodes[second].expansion >= 0) return readers_among_steps(first, second);
    return uses == 1 ? std::optional(others) : std::nullopt;
  }

  // For a second half that is a step: other steps of its instruction may read the first half, too.
  std::optional<bool> readers_among_steps(uint32_t first, uint32_t second) const {
    ValueId value = graph_.nodes[first].result;
    unsigned uses = 0;
    for (const Source& source : graph_.nodes[second].sources)
      uses += source.step < 0 && source.operand.is(OperandKind::value) && source.operand.as_value() == value;
    if (uses != 1) return std::nullopt;
    for (uint32_t i = 0; i < graph_.nodes.size(); ++i)
      if (i != second && std::ranges::find(graph_.problem.reads[i], first) != graph_.problem.reads[i].end())
        return true;
    return false;
  }

  // Only integer and logic instructions can read the slot, which is part of their units, and only real machine
  // instructions. A 64-bit value in PTX is an address, which has one word on this machine: additions can read it.
  bool can_read_slot(const ir::Use& use, const Node& early) const {
    InstructionId id = use.instruction;
    const ir::Instruction& reader = function_.instructions[id];
    if (reader.block != block_ || reader.kind != ir::InstructionKind::real || use.index == ir::Use::guard_index ||
        weight(id) == 0)
      return false;
    const ir::Instruction& writer = function_.instructions[early.instruction];
    if (writer.guard && (reader.guard != writer.guard || reader.guard_negated != writer.guard_negated)) return false;
    const Form& form = function_.form_of(id);
    bool is_pair = ir::bit_width(function_.values[early.result].type) == 64;
    if (is_pair && form.opcode != Opcode::add && form.opcode != Opcode::sub) return false;
    switch (form.kind) {
    case ir::InstructionClass::integer:
    case ir::InstructionClass::extended_precision:
    case ir::InstructionClass::comparison:
    case ir::InstructionClass::selection:
    case ir::InstructionClass::logic:
    case ir::InstructionClass::shift:
    case ir::InstructionClass::conversion:
      break;
    default:
      return false;
    }
    std::span<const Operand> operands = function_.operands_of(id);
    if (operands[use.index].has(ir::OperandFlag::old_value) || operands[use.index].selector) return false;
    std::vector<Operand> changed(operands.begin(), operands.end());
    while (!changed.empty() && changed.back().has(ir::OperandFlag::old_value))
      changed.pop_back();
    for (size_t i = 0; i < changed.size(); i = ir::next_sibling(changed, i))
      if (i == use.index) {
        changed[i] = Operand::special(static_cast<uint32_t>(ir::SpecialRegister::crf));
        ir::OperandSummaries summaries;
        return !ir::check_operands(form, summaries.of(function_, form, changed));
      }
    return false; // inside a group
  }

  const FunctionFacts& facts_;
  const ir::Function& function_;
  ir::BlockId block_;
  BlockGraph graph_;
  std::map<uint32_t, int32_t> writer_; // by ValueId: the node that writes it
};

} // namespace

FunctionFacts::FunctionFacts(const ir::Function& which)
    : function(which), lowering(ir::lower(which, machine_capability)), def_use(which),
      low_halves(ir::low_halves(which)) {}

BlockGraph build_graph(const FunctionFacts& facts, ir::BlockId block) {
  return GraphBuilder(facts, block).run();
}

} // namespace ptxrewrite::transforms::composite
