// The invariants of the IR. Each finding names its rule:
//
//   layout        the layout contains each of its blocks once, all are flagged in_layout, and a body has an entry block
//   links         the instructions of a block form one doubly linked list and refer to their block
//   handles       operands, guards, edges and lists refer to existing rows; groups end where their operands end
//   operands      the operands of a known instruction match its form in the ISA table, destinations are flagged
//   guard         guards are predicates
//   terminator    no real instruction follows an unguarded branch, ret, exit or trap, or a guarded branch, in its block
//   target        branches and the tables they use refer to blocks in the layout
//   edges         successor edges are the terminator's targets in order, then the fall-through edge if control can
//                 leave at the end; it leads to the next block in the layout
//   scopes        braces are balanced, and so are sections; sections are not nested
//   declarations  a local variable is declared once, and not both in the header and in the body
//   names         without scopes, names of labels, tables, prototypes, variables and registers in use are distinct
//   sections, crf, dac   the rules of a hardware form hold (ir/forms/forms.def); all other rules also hold for the
//                 affine stream of a kernel
//   provenance    provenance numbers are below the number of source instructions
//   not-ssa       outside SSA form: no block parameters, edge arguments, old values, undefined values
//   ssa-scopes    SSA form: no scopes, no register declarations, no vector registers
//   ssa-entry     SSA form: the entry block has neither predecessors nor parameters
//   ssa-single    SSA form: a value has at most one definition; an undefined value has none, other used values have one
//   ssa-dominance SSA form: definitions dominate uses; an edge argument is used at the end of the edge's source
//   ssa-arguments SSA form: an edge has one argument per parameter of its target, of the same type and register class
//   ssa-old-value SSA form: an instruction that keeps old values has one for each register it writes, of the same type
//                 and register class, after its other operands; no other instruction has any
#include "ir/verify/verify.h"

#include "ir/core/operand_summary.h"
#include "ir/core/print.h"
#include "ir/flow/dominators.h"
#include "ir/forms/registry.h"

#include <unordered_map>

namespace ptxrewrite::ir {

namespace {

class Verifier {
public:
  explicit Verifier(const Function& function) : function_(function) {}

  std::vector<VerifierFinding> run() {
    if (!function_.has_body) return {};
    // Later rules assume that earlier ones hold.
    check_layout();
    if (findings_.empty()) check_handles();
    if (!findings_.empty()) return std::move(findings_);
    for (BlockId block : function_.layout)
      for (InstructionId id : function_.instructions_in(block))
        check_instruction(id);
    check_terminators();
    if (findings_.empty()) check_edges();
    check_scopes();
    check_declarations();
    if (findings_.empty()) check_names();
    if (findings_.empty()) check_affine_stream();
    if (findings_.empty() && !is_affine_stream_) check_hardware_forms();
    if (!findings_.empty()) return std::move(findings_);
    if (function_.is_ssa)
      check_ssa();
    else
      check_not_ssa();
    return std::move(findings_);
  }

private:
  // ---- reporting

  static constexpr size_t finding_limit = 100;

  void report(std::string_view rule, std::string message, InstructionId id = {}) {
    if (findings_.size() >= finding_limit) return;
    findings_.push_back({std::string(rule), std::move(message), id});
  }
  void report_at(std::string_view rule, InstructionId id, const std::string& message) {
    std::string where = "in block " + function_.block_name(function_.instructions[id].block) + ", ";
    report(rule, where + describe(id) + ": " + message, id);
  }
  void report_in(std::string_view rule, BlockId block, const std::string& message) {
    report(rule, "block " + function_.block_name(block) + ": " + message);
  }
  std::string describe(InstructionId id) const {
    const Instruction& instruction = function_.instructions[id];
    std::string text = "statement " + std::to_string(id.index());
    if (instruction.kind == InstructionKind::real && handles_are_sound_)
      text = "'" + print_instruction(function_, id) + "'";
    return text;
  }

  // ---- layout, links, handles

  void check_layout() {
    if (function_.layout.empty()) report("layout", "a body without blocks");
    std::vector<bool> seen(function_.blocks.size(), false), linked(function_.instructions.size(), false);
    for (BlockId block : function_.layout) {
      if (!function_.blocks.contains(block)) {
        report("layout", "a block that does not exist");
        continue;
      }
      if (seen[block.index()]) report_in("layout", block, "is there twice");
      if (!function_.blocks[block].in_layout) report_in("layout", block, "is not marked as being in the layout");
      if (!seen[block.index()]) check_links(block, linked);
      seen[block.index()] = true;
    }
    for (BlockId block : function_.blocks.ids())
      if (function_.blocks[block].in_layout && !seen[block.index()])
        report_in("layout", block, "is marked as being in the layout, but is not");
    if (!findings_.empty()) return;
    for (InstructionId id : function_.instructions.ids())
      if (function_.instructions[id].block && !linked[id.index()])
        report("links", "statement " + std::to_string(id.index()) + " believes to be in a block", id);
  }

  void check_links(BlockId block, std::vector<bool>& linked) {
    InstructionId previous;
    for (InstructionId id = function_.blocks[block].first; id; id = function_.instructions[id].next) {
      if (!function_.instructions.contains(id) || linked[id.index()]) {
        report_in("links", block, "the list of instructions runs astray");
        return;
      }
      linked[id.index()] = true;
      const Instruction& instruction = function_.instructions[id];
      if (instruction.block != block || instruction.previous != previous)
        report_in("links", block, "statement " + std::to_string(id.index()) + " is linked wrongly");
      previous = id;
    }
    if (function_.blocks[block].last != previous) report_in("links", block, "the last instruction is not the last one");
  }

  template <class Pool> static bool inside(const Pool& pool, PoolSpan span) {
    return uint64_t{span.offset} + span.count <= pool.size();
  }

  void check_handles() {
    handles_are_sound_ = false;
    for (BlockId block : function_.layout) {
      const Block& row = function_.blocks[block];
      if (!inside(function_.edge_lists, row.successors) || !inside(function_.value_lists, row.parameters)) {
        report_in("handles", block, "a list is outside its pool");
        continue;
      }
      for (ValueId value : function_.parameters(block))
        if (!function_.values.contains(value)) report_in("handles", block, "a parameter that does not exist");
      for (EdgeId edge : function_.successors(block))
        check_edge_handles(block, edge);
      for (InstructionId id : function_.instructions_in(block))
        check_operand_handles(id);
    }
    handles_are_sound_ = findings_.empty();
  }

  void check_edge_handles(BlockId block, EdgeId edge) {
    if (!function_.edges.contains(edge)) return report_in("handles", block, "an edge that does not exist");
    const Edge& row = function_.edges[edge];
    if (!function_.blocks.contains(row.to)) report_in("handles", block, "an edge to nowhere");
    if (!inside(function_.value_lists, row.arguments)) return report_in("handles", block, "a list is outside its pool");
    for (ValueId value : function_.arguments(edge))
      if (!function_.values.contains(value)) report_in("handles", block, "an argument that does not exist");
  }

  void check_operand_handles(InstructionId id) {
    const Instruction& instruction = function_.instructions[id];
    if (!inside(function_.operands, instruction.operands))
      return report_at("handles", id, "the operands are outside the pool");
    if (instruction.guard && !function_.values.contains(instruction.guard))
      report_at("handles", id, "a guard that does not exist");
    std::span<const Operand> operands = function_.operands_of(id);
    std::vector<size_t> ends{operands.size()};
    for (size_t i = 0; i < operands.size(); ++i) {
      while (ends.size() > 1 && ends.back() == i)
        ends.pop_back();
      if (operands[i].is_group()) {
        ends.push_back(i + 1 + operands[i].group_size());
        if (ends.back() > ends[ends.size() - 2]) return report_at("handles", id, "a group ends outside");
      }
      if (!exists(operands[i])) report_at("handles", id, "operand " + std::to_string(i) + " names what does not exist");
    }
    size_t needed = instruction.kind == InstructionKind::linear_row ? 3 : needs_operand(instruction.kind) ? 1 : 0;
    if (operands.size() < needed) report_at("handles", id, "an operand is missing");
  }

  static bool needs_operand(InstructionKind kind) {
    switch (kind) {
    case InstructionKind::annotation:
    case InstructionKind::declare_values:
    case InstructionKind::declare_variable:
    case InstructionKind::label_table:
    case InstructionKind::prototype:
    case InstructionKind::section_begin:
      return true;
    default:
      return false;
    }
  }

  bool exists(const Operand& operand) const {
    const Module& module = function_.module();
    switch (operand.kind) {
    case OperandKind::value:
      return function_.values.contains(operand.as_value());
    case OperandKind::block:
      return function_.blocks.contains(operand.as_block());
    case OperandKind::label_table:
      return function_.label_tables.contains(LabelTableId(operand.id));
    case OperandKind::prototype:
      return function_.prototypes.contains(PrototypeId(operand.id));
    case OperandKind::text:
      return operand.id < module.strings.size();
    case OperandKind::symbol:
      switch (operand.as_symbol().kind()) {
      case SymbolRef::Kind::module_variable:
        return module.variables.contains(operand.as_symbol().variable());
      case SymbolRef::Kind::local_variable:
        return function_.variables.contains(operand.as_symbol().variable());
      case SymbolRef::Kind::function:
        return operand.as_symbol().function().index() < module.functions.size();
      case SymbolRef::Kind::undeclared:
        return operand.as_symbol().name().index() < module.strings.size();
      }
      return false;
    default:
      return true;
    }
  }

  // ---- single instructions

  void check_instruction(InstructionId id) {
    const Instruction& instruction = function_.instructions[id];
    if (instruction.guard && function_.values[instruction.guard].type != ScalarType::pred)
      report_at("guard", id, "the guard is no predicate");
    if (instruction.provenance && instruction.provenance.index() >= function_.source_instruction_count)
      report_at("provenance", id, "the source has no instruction " + std::to_string(instruction.provenance.index()));
    if (instruction.kind != InstructionKind::real) return;
    const Form& shape = function_.form_of(id);
    if (shape.opaque) return;
    std::span<const OperandSummary> summaries = summaries_.of(function_, id);
    if (std::optional<OperandError> wrong = check_operands(shape, summaries)) report_at("operands", id, wrong->message);
    unsigned written = definition_count(shape, summaries);
    std::span<const Operand> operands = function_.operands_of(id);
    for (size_t index = 0; index < operands.size(); index = next_sibling(operands, index)) {
      bool destination = written > 0;
      if (written > 0) --written;
      bool address = operands[index].is(OperandKind::address);
      for (size_t i = index; i < next_sibling(operands, index); ++i)
        if (operands[i].is(OperandKind::value) && operands[i].is_definition() != (destination && !address))
          report_at("operands", id,
                    destination ? "a destination is not marked as written" : "a source is marked as written");
    }
  }

  void check_affine_stream() {
    if (!function_.affine_stream) return;
    Verifier inner(*function_.affine_stream);
    inner.is_affine_stream_ = true;
    for (VerifierFinding& finding : inner.run())
      report(finding.rule, "affine stream: " + finding.message);
  }

  void check_hardware_forms() {
    for (auto& [rule, finding] : check_forms(function_))
      if (finding.in_affine_stream || !finding.instruction)
        report(rule, std::move(finding.message));
      else
        report_at(rule, finding.instruction, finding.message);
  }

  // ---- control flow

  void check_terminators() {
    for (BlockId block : function_.layout) {
      bool ended = false;
      for (InstructionId id : function_.instructions_in(block)) {
        const Instruction& instruction = function_.instructions[id];
        if (instruction.kind != InstructionKind::real) continue;
        if (ended) {
          report_at("terminator", id, "follows the end of its block");
          break;
        }
        const Form& form = function_.form_of(id);
        if (form.opaque) continue; // assumed to have every effect; it ends its block only if it names labels
        ended = form.effects.branch || (form.effects.terminates && !instruction.guard);
      }
    }
  }

  void check_edges() {
    // Unreachable blocks that were kept for their labels are empty and have no successors.
    auto is_stub = [&](BlockId block) {
      return !function_.blocks[block].first && function_.blocks[block].successors.empty();
    };
    std::vector<BlockId> expected;
    for (size_t i = 0; i < function_.layout.size(); ++i) {
      BlockId block = function_.layout[i];
      const Block& row = function_.blocks[block];
      bool has_next = i + 1 < function_.layout.size();
      expected.clear();
      InstructionId terminator = function_.terminator(block);
      if (terminator && function_.form_of(terminator).effects.branch) add_targets(terminator, expected);
      bool may_continue =
          !terminator || function_.instructions[terminator].guard || function_.form_of(terminator).opaque;
      bool falls = has_next && may_continue;
      if (function_.is_ssa && is_stub(block)) falls = false;
      if (falls) expected.push_back(function_.layout[i + 1]);
      if (row.falls_through != falls)
        report_in("edges", block,
                  falls ? "control leaves at the end, but the block is not marked so"
                        : "marked as left at its end, which it is not");
      std::span<const EdgeId> edges = function_.successors(block);
      bool same = edges.size() == expected.size();
      for (size_t k = 0; same && k < edges.size(); ++k)
        same = function_.edges[edges[k]].from == block && function_.edges[edges[k]].to == expected[k];
      if (!same) report_in("edges", block, "the successors are not what the end of the block says");
    }
  }

  void add_targets(InstructionId terminator, std::vector<BlockId>& targets) {
    auto add = [&](const Operand& operand) {
      if (!operand.is(OperandKind::block)) return;
      if (!function_.blocks.contains(operand.as_block()) || !function_.blocks[operand.as_block()].in_layout)
        report_at("target", terminator, "leads to a block that is not in the layout");
      targets.push_back(operand.as_block());
    };
    for (const Operand& operand : function_.operands_of(terminator)) {
      add(operand);
      if (!operand.is(OperandKind::label_table)) continue;
      for (const Operand& target : function_.operands.view(function_.label_tables[LabelTableId(operand.id)].operands))
        add(target);
    }
  }

  // ---- scopes and names

  void check_scopes() {
    int scopes = 0;
    bool section = false;
    for (BlockId block : function_.layout)
      for (InstructionId id : function_.instructions_in(block)) {
        switch (function_.instructions[id].kind) {
        case InstructionKind::scope_begin:
          ++scopes;
          has_scopes_ = true;
          break;
        case InstructionKind::scope_end:
          if (--scopes < 0) report_at("scopes", id, "closes a scope that is not open");
          break;
        case InstructionKind::section_begin:
          if (section) report_at("scopes", id, "opens a section inside a section");
          section = true;
          break;
        case InstructionKind::section_end:
          if (!section) report_at("scopes", id, "closes a section that is not open");
          section = false;
          break;
        default:
          break;
        }
      }
    if (scopes > 0) report("scopes", "a scope is not closed");
    if (section) report("scopes", "a section is not closed");
  }

  void check_declarations() {
    std::vector<bool> declared(function_.variables.size(), false);
    for (PoolSpan list : {function_.signature.results, function_.signature.parameters})
      for (VariableId id : function_.variable_lists.view(list))
        declared[id.index()] = true;
    for (BlockId block : function_.layout)
      for (InstructionId id : function_.instructions_in(block)) {
        if (function_.instructions[id].kind != InstructionKind::declare_variable) continue;
        uint32_t variable = function_.operands_of(id)[0].as_symbol().variable().index();
        if (declared[variable]) report_at("declarations", id, "declares a variable again");
        declared[variable] = true;
      }
  }

  void check_names() {
    if (has_scopes_) return;
    std::unordered_map<std::string, bool> names;
    auto take = [&](const std::string& name) {
      if (!name.empty() && !names.emplace(name, true).second) report("names", "'" + name + "' stands for two things");
    };
    auto take_symbol = [&](Symbol name) { take(std::string(function_.module().text(name))); };
    std::vector<bool> mentioned(function_.values.size(), false);
    for (PoolSpan list : {function_.signature.results, function_.signature.parameters})
      for (VariableId id : function_.variable_lists.view(list))
        if (!function_.variables[id].register_parameter) take_symbol(function_.variables[id].name);
    for (BlockId block : function_.layout) {
      take_symbol(function_.blocks[block].label);
      for (InstructionId id : function_.instructions_in(block)) {
        std::span<const Operand> operands = function_.operands_of(id);
        switch (function_.instructions[id].kind) {
        case InstructionKind::declare_variable:
          take_symbol(function_.variables[operands[0].as_symbol().variable()].name);
          break;
        case InstructionKind::label_table:
          take_symbol(function_.label_tables[LabelTableId(operands[0].id)].label);
          break;
        case InstructionKind::prototype:
          take_symbol(function_.prototypes[PrototypeId(operands[0].id)].label);
          break;
        default:
          for (const Operand& operand : operands)
            if (operand.is(OperandKind::value)) mentioned[operand.id] = true;
          if (ValueId guard = function_.instructions[id].guard) mentioned[guard.index()] = true;
        }
      }
    }
    if (function_.is_ssa) return; // names of values are hints
    for (ValueId value : function_.values.ids())
      if (mentioned[value.index()]) take(function_.value_name(value));
  }

  // ---- the two states

  void check_not_ssa() {
    for (BlockId block : function_.layout) {
      if (!function_.parameters(block).empty()) report_in("not-ssa", block, "has parameters");
      for (EdgeId edge : function_.successors(block))
        if (!function_.arguments(edge).empty()) report_in("not-ssa", block, "passes arguments");
      for (InstructionId id : function_.instructions_in(block))
        for (const Operand& operand : function_.operands_of(id)) {
          if (operand.has(OperandFlag::old_value)) report_at("not-ssa", id, "has an old value");
          if (operand.is(OperandKind::value) && function_.values[operand.as_value()].is_undefined)
            report_at("not-ssa", id, "has an undefined value");
        }
    }
  }

  // Where a value is defined: the block, and the position in it; 0 for parameters.
  struct Definition {
    BlockId block;
    uint32_t place = 0;
  };

  void check_ssa() {
    ControlFlow flow(function_);
    if (!flow.predecessors(function_.entry()).empty() || !function_.parameters(function_.entry()).empty())
      report_in("ssa-entry", function_.entry(), "the entry has predecessors or parameters");
    DominatorTree dominators(function_, flow);
    definitions_.assign(function_.values.size(), {});
    for (BlockId block : function_.layout) {
      for (ValueId value : function_.parameters(block))
        define(value, block, 0, {});
      uint32_t place = 0;
      for (InstructionId id : function_.instructions_in(block)) {
        ++place;
        check_ssa_statement(id);
        for_each_definition(function_, id, [&](ValueId value) { define(value, block, place, id); });
      }
    }
    for (BlockId block : function_.layout) {
      uint32_t place = 0;
      for (InstructionId id : function_.instructions_in(block)) {
        ++place;
        for_each_use(function_, id, [&](ValueId value) { check_use(dominators, value, block, place, id); });
      }
      for (EdgeId edge : function_.successors(block))
        check_arguments(dominators, edge);
    }
  }

  void define(ValueId value, BlockId block, uint32_t place, InstructionId id) {
    Definition& definition = definitions_[value.index()];
    std::string name = function_.value_name(value) + " (value " + std::to_string(value.index()) + ")";
    if (definition.block) return report("ssa-single", name + " is defined twice", id);
    if (function_.values[value].is_undefined) report("ssa-single", name + " is undefined and has a definition", id);
    if (function_.values[value].vector_width != 1) report("ssa-scopes", name + " is a vector register", id);
    definition = {block, place};
  }

  void check_use(const DominatorTree& dominators, ValueId value, BlockId block, uint32_t place, InstructionId id) {
    if (function_.values[value].is_undefined) return;
    std::string name = function_.value_name(value) + " (value " + std::to_string(value.index()) + ")";
    const Definition& definition = definitions_[value.index()];
    if (!definition.block) return report("ssa-single", name + " is used and has no definition", id);
    bool above = definition.block == block ? definition.place < place : dominators.dominates(definition.block, block);
    if (above) return;
    if (id)
      report_at("ssa-dominance", id, "the definition of " + name + " does not dominate this use");
    else
      report_in("ssa-dominance", block,
                "the definition of " + name + " does not dominate its end, where an edge takes it");
  }

  void check_arguments(const DominatorTree& dominators, EdgeId edge) {
    const Edge& row = function_.edges[edge];
    std::span<const ValueId> arguments = function_.arguments(edge), parameters = function_.parameters(row.to);
    if (arguments.size() != parameters.size())
      return report_in("ssa-arguments", row.from,
                       "passes " + std::to_string(arguments.size()) + " arguments to " + function_.block_name(row.to) +
                           ", which has " + std::to_string(parameters.size()) + " parameters");
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (!same_kind(arguments[i], parameters[i]))
        report_in("ssa-arguments", row.from,
                  "argument " + std::to_string(i) + " to " + function_.block_name(row.to) +
                      " has another type than the parameter");
      check_use(dominators, arguments[i], row.from, UINT32_MAX, {});
    }
  }

  bool same_kind(ValueId a, ValueId b) const {
    const Value &x = function_.values[a], &y = function_.values[b];
    return x.type == y.type && x.register_class == y.register_class;
  }

  void check_ssa_statement(InstructionId id) {
    InstructionKind kind = function_.instructions[id].kind;
    if (kind == InstructionKind::scope_begin || kind == InstructionKind::scope_end ||
        kind == InstructionKind::declare_values)
      report_at("ssa-scopes", id, "has no place in SSA form");
    std::vector<ValueId> written, old;
    bool mixed = false;
    for (const Operand& operand : function_.operands_of(id)) {
      if (operand.has(OperandFlag::old_value)) {
        old.push_back(operand.is(OperandKind::value) ? operand.as_value() : ValueId());
        mixed |= !operand.is(OperandKind::value) || operand.is_definition();
      } else {
        mixed |= !old.empty();
        if (operand.is(OperandKind::value) && operand.is_definition()) written.push_back(operand.as_value());
      }
    }
    size_t wanted = function_.keeps_old_values(id) ? written.size() : 0;
    if (mixed || old.size() != wanted)
      return report_at("ssa-old-value", id,
                       "should have " + std::to_string(wanted) + " old values behind its operands");
    for (size_t i = 0; i < wanted; ++i)
      if (!same_kind(written[i], old[i]))
        report_at("ssa-old-value", id, "an old value has another type than the register");
  }

  const Function& function_;
  std::vector<VerifierFinding> findings_;
  bool handles_are_sound_ = false;
  bool has_scopes_ = false;
  bool is_affine_stream_ = false;
  OperandSummaries summaries_;
  std::vector<Definition> definitions_;
};

} // namespace

std::vector<VerifierFinding> verify(const Function& function) {
  return Verifier(function).run();
}

std::vector<VerifierFinding> verify(const Module& module) {
  std::vector<VerifierFinding> findings;
  for (const auto& function : module.functions)
    for (VerifierFinding& finding : verify(*function)) {
      finding.message = std::string(module.text(function->name)) + ": " + finding.message;
      findings.push_back(std::move(finding));
    }
  return findings;
}

} // namespace ptxrewrite::ir
