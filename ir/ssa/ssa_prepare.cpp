// Preparation of a body for SSA construction, before values are numbered: see ssa_steps.h.
#include "ir/ssa/ssa_steps.h"

#include "ir/core/module.h"
#include "ir/flow/cfg.h"

#include <algorithm>

namespace ptxrewrite::ir {

Symbol UniqueNames::unique(Symbol name) {
  if (take(name)) return name;
  std::string base(module_.text(name));
  uint32_t& suffix = next_[name.index()];
  while (true) {
    Symbol candidate = module_.intern(base + "_" + std::to_string(++suffix));
    if (take(candidate)) return candidate;
  }
}

// ---------------------------------------------------------------- unsupported bodies

namespace {

// Vector registers are split in SSA form, and an argument or result of a call cannot be spelled {a, b}.
bool passes_vector(const Function& function, InstructionId id) {
  const std::span<const Operand> operands = function.operands_of(id);
  for (size_t i = 0; i < operands.size(); i = next_sibling(operands, i)) {
    if (!operands[i].is(OperandKind::list)) continue;
    for (const Operand& inside : operands.subspan(i + 1, operands[i].group_size()))
      if (inside.is(OperandKind::value) && function.values[inside.as_value()].vector_width != 1) return true;
  }
  return false;
}

} // namespace

Status check_ssa_readable(const Function& function) {
  for (VariableId id : function.variables.ids())
    if (function.variables[id].register_parameter)
      return Error{"parameters and results in registers have no SSA reading", function.variables[id].range};
  for (BlockId block : function.layout)
    for (InstructionId id : function.instructions_in(block)) {
      const Instruction& instruction = function.instructions[id];
      if (instruction.kind != InstructionKind::real) continue;
      if (passes_vector(function, id))
        return Error{"a call that passes a vector register has no SSA reading", instruction.range};
      if (!function.form_of(id).opaque) continue;
      return Error{"it is not known what '" + std::string(function.form_of(id).mnemonic) + "' writes",
                   instruction.range};
    }
  return {};
}

// ---------------------------------------------------------------- results

void drop_second_of_equal_results(Function& function) {
  for (BlockId block : function.layout)
    for (InstructionId id : function.instructions_in(block)) {
      const std::span<const Operand> old = function.operands_of(id);
      if (old.size() < 3 || !old[0].is(OperandKind::pair) || !old[1].is_definition() || old[1] != old[2]) continue;
      std::vector<Operand> operands(old.begin(), old.end());
      operands[2] = Operand();
      operands[2].kind = OperandKind::sink;
      function.set_operands(id, operands);
    }
}

// ---------------------------------------------------------------- vector registers

namespace {

class VectorScalariser {
public:
  explicit VectorScalariser(Function& function) : function_(function) {}

  void run() {
    // New components have width 1 and get indices from `count` on.
    uint32_t count = static_cast<uint32_t>(function_.values.size());
    first_component_.resize(count);
    bool any = false;
    for (uint32_t i = 0; i < count; ++i) {
      const Value vector = function_.values[ValueId(i)];
      if (vector.vector_width == 1) continue;
      any = true;
      std::string base = function_.value_name(ValueId(i));
      for (unsigned k = 0; k < vector.vector_width; ++k) {
        Value component = vector;
        component.vector_width = 1;
        component.name = function_.module().intern(base + "_" + "xyzw"[k]);
        component.number = Value::no_number;
        ValueId id = function_.add_value(component);
        if (k == 0) first_component_[i] = id;
      }
    }
    if (!any) return;
    for (BlockId block : function_.layout)
      for (InstructionId id : function_.instructions_in(block))
        rewrite(id);
  }

private:
  bool is_vector(const Operand& operand) const {
    return operand.is(OperandKind::value) && function_.values[operand.as_value()].vector_width > 1;
  }

  void rewrite(InstructionId id) {
    std::span<const Operand> old = function_.operands_of(id);
    if (std::none_of(old.begin(), old.end(), [&](const Operand& operand) { return is_vector(operand); })) return;
    list_.clear();
    append(std::vector<Operand>(old.begin(), old.end()), 0, old.size());
    function_.set_operands(id, list_);
  }

  void append(const std::vector<Operand>& old, size_t begin, size_t end) {
    for (size_t i = begin; i < end; i = next_sibling(old, i)) {
      size_t head = list_.size();
      list_.push_back(old[i]);
      if (old[i].is_group()) {
        append(old, i + 1, next_sibling(old, i));
        list_[head].id = static_cast<uint32_t>(list_.size() - head - 1);
      } else if (is_vector(old[i])) {
        component(old[i], head);
      }
    }
  }

  // V.y is one component; V by itself is all components in braces.
  void component(const Operand& operand, size_t head) {
    ValueId first = first_component_[operand.id];
    Operand one = operand;
    one.selector = no_selector;
    if (operand.selector != no_selector) {
      one.id = first.index() + (operand.selector & 3u);
      list_[head] = one;
      return;
    }
    unsigned width = function_.values[operand.as_value()].vector_width;
    list_[head] = Operand::group(OperandKind::vector, width);
    for (unsigned k = 0; k < width; ++k) {
      one.id = first.index() + k;
      list_.push_back(one);
    }
  }

  Function& function_;
  std::vector<ValueId> first_component_;
  std::vector<Operand> list_;
};

} // namespace

void scalarise_vector_registers(Function& function) {
  VectorScalariser(function).run();
}

// ---------------------------------------------------------------- unreachable code, scopes

namespace {

// Entities that the reachable code refers to, whose declarations have to stay.
struct Mentioned {
  std::vector<bool> variables, tables, prototypes;

  Mentioned(const Function& function, const ControlFlow& flow)
      : variables(function.variables.size()), tables(function.label_tables.size()),
        prototypes(function.prototypes.size()) {
    for (BlockId block : flow.reverse_postorder())
      for (InstructionId id : function.instructions_in(block)) {
        if (function.instructions[id].kind != InstructionKind::real) continue;
        for (const Operand& operand : function.operands_of(id))
          note(operand);
      }
    for (VariableId id : function.variables.ids())
      if (variables[id.index()])
        for (const Operand& operand : function.initialisers.view(function.variables[id].initialiser))
          note(operand);
  }

  void note(const Operand& operand) {
    if (operand.is(OperandKind::symbol) && operand.as_symbol().kind() == SymbolRef::Kind::local_variable)
      variables[operand.as_symbol().variable().index()] = true;
    if (operand.is(OperandKind::label_table)) tables[operand.id] = true;
    if (operand.is(OperandKind::prototype)) prototypes[operand.id] = true;
  }

  // True if the instruction declares an entity that is mentioned.
  bool declares(const Function& function, InstructionId id) const {
    std::span<const Operand> operands = function.operands_of(id);
    switch (function.instructions[id].kind) {
    case InstructionKind::declare_variable:
      return variables[operands[0].as_symbol().variable().index()];
    case InstructionKind::label_table:
      return tables[operands[0].id];
    case InstructionKind::prototype:
      return prototypes[operands[0].id];
    default:
      return false;
    }
  }
};

// True for a table that names unreachable blocks, which are about to be removed; no reachable brx uses it.
bool is_dead_table(const Function& function, const ControlFlow& flow, InstructionId id) {
  if (function.instructions[id].kind != InstructionKind::label_table) return false;
  const LabelTable& table = function.label_tables[LabelTableId(function.operands_of(id)[0].id)];
  std::span<const Operand> targets = function.operands.view(table.operands);
  return std::any_of(targets.begin(), targets.end(), [&](const Operand& target) {
    return target.is(OperandKind::block) && !flow.reachable(target.as_block());
  });
}

bool is_scope_or_registers(InstructionKind kind) {
  return kind == InstructionKind::scope_begin || kind == InstructionKind::scope_end ||
         kind == InstructionKind::declare_values;
}

// Debug sections refer to labels of the body, so labels have to stay if the module has such sections.
bool has_sections(const Module& module) {
  return std::any_of(module.items.begin(), module.items.end(), [](const Item& item) {
    return item.kind == ItemKind::verbatim && (item.text.starts_with(".section") || item.text.starts_with("@@DWARF"));
  });
}

} // namespace

void drop_unreachable_and_scopes(Function& function) {
  ControlFlow flow(function);
  if (!flow.predecessors(function.entry()).empty()) {
    BlockId entry = function.add_block();
    function.place_block_before(entry, function.entry());
    EdgeId edge = function.add_edge(entry, function.layout[1]);
    function.set_successors(entry, {&edge, 1}, true);
    flow = ControlFlow(function);
  }
  Mentioned mentioned(function, flow);
  bool all_reachable = flow.reverse_postorder().size() == function.layout.size();
  bool keep_labels = !all_reachable && has_sections(function.module());
  std::vector<InstructionId> moved;
  std::vector<BlockId> kept;
  for (BlockId block : function.layout) {
    bool reachable = flow.reachable(block);
    for (InstructionId id : function.instructions_in(block)) {
      if (reachable && !is_scope_or_registers(function.instructions[id].kind) && !is_dead_table(function, flow, id))
        continue;
      if (!reachable && mentioned.declares(function, id)) moved.push_back(id);
      function.remove(id);
    }
    if (reachable || (keep_labels && function.blocks[block].label)) kept.push_back(block);
    if (reachable) continue;
    function.set_successors(block, {}, false);
    if (kept.empty() || kept.back() != block) function.blocks[block].in_layout = false;
  }
  function.layout = std::move(kept);
  function.changed();
  InstructionId first = function.blocks[function.entry()].first;
  for (InstructionId id : moved)
    if (first)
      function.insert_before(first, id);
    else
      function.append(function.entry(), id);
}

// ---------------------------------------------------------------- names

void take_names(const Function& function, UniqueNames& names) {
  for (VariableId id : function.variables.ids())
    names.take(function.variables[id].name);
  for (BlockId block : function.layout) {
    names.take(function.blocks[block].label);
    for (InstructionId id : function.instructions_in(block)) {
      InstructionKind kind = function.instructions[id].kind;
      for (const Operand& operand : function.operands_of(id)) {
        if (operand.is(OperandKind::symbol)) {
          SymbolRef symbol = operand.as_symbol();
          const Module& module = function.module();
          if (symbol.kind() == SymbolRef::Kind::module_variable) names.take(module.variables[symbol.variable()].name);
          if (symbol.kind() == SymbolRef::Kind::function) names.take(module.function(symbol.function()).name);
          if (symbol.kind() == SymbolRef::Kind::undeclared) names.take(symbol.name());
        }
        if (operand.is(OperandKind::label_table) && kind == InstructionKind::label_table)
          names.take(function.label_tables[LabelTableId(operand.id)].label);
        if (operand.is(OperandKind::prototype) && kind == InstructionKind::prototype)
          names.take(function.prototypes[PrototypeId(operand.id)].label);
      }
    }
  }
}

namespace {

// Names from outside of the body that reachable code uses.
void take_outer_names(const Function& function, UniqueNames& names) {
  const Module& module = function.module();
  auto take_list = [&](PoolSpan list) {
    for (VariableId id : function.variable_lists.view(list))
      names.take(function.variables[id].name);
  };
  take_list(function.signature.results);
  take_list(function.signature.parameters);
  for (BlockId block : function.layout)
    for (InstructionId id : function.instructions_in(block))
      for (const Operand& operand : function.operands_of(id)) {
        if (!operand.is(OperandKind::symbol)) continue;
        SymbolRef symbol = operand.as_symbol();
        if (symbol.kind() == SymbolRef::Kind::module_variable) names.take(module.variables[symbol.variable()].name);
        if (symbol.kind() == SymbolRef::Kind::function) names.take(module.function(symbol.function()).name);
        if (symbol.kind() == SymbolRef::Kind::undeclared) names.take(symbol.name());
      }
}

} // namespace

void make_names_unique(Function& function) {
  UniqueNames names(function.module());
  take_outer_names(function, names);
  // Labels first, so that they keep their names: debug sections may refer to them.
  for (BlockId block : function.layout)
    if (Symbol& label = function.blocks[block].label) label = names.unique(label);
  for (BlockId block : function.layout)
    for (InstructionId id : function.instructions_in(block)) {
      std::span<const Operand> operands = function.operands_of(id);
      Symbol* name = nullptr;
      switch (function.instructions[id].kind) {
      case InstructionKind::declare_variable:
        name = &function.variables[operands[0].as_symbol().variable()].name;
        break;
      case InstructionKind::label_table:
        name = &function.label_tables[LabelTableId(operands[0].id)].label;
        break;
      case InstructionKind::prototype:
        name = &function.prototypes[PrototypeId(operands[0].id)].label;
        break;
      default:
        continue;
      }
      if (*name) *name = names.unique(*name);
    }
  function.changed();
}

} // namespace ptxrewrite::ir
