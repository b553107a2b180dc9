// Converts values to registers: gives guarded definitions old values that die there, gathers values into classes that
// share a register, inserts copies between classes, and names and declares the registers.
#include "ir/ssa/ssa.h"

#include "ir/core/insertion.h"
#include "ir/ssa/ssa_classes.h"
#include "ir/ssa/ssa_copies.h"
#include "ir/ssa/ssa_names.h"

#include <algorithm>
#include <optional>
#include <unordered_set>
#include <vector>

namespace ptxrewrite::ir {

namespace {

void rewrite_operands(Function& function, const RegisterClasses& classes, size_t known_values) {
  auto representative = [&](ValueId value) {
    // Values created with the copies are registers already.
    return value.index() < known_values ? classes.representative(value) : value;
  };
  for (BlockId block : function.layout)
    for (InstructionId id : function.instructions_in(block)) {
      Instruction& instruction = function.instructions[id];
      if (instruction.guard) instruction.guard = representative(instruction.guard);
      uint32_t kept = 0;
      for (Operand& operand : function.operands_of(id)) {
        if (operand.has(OperandFlag::old_value)) break; // old values are the last operands
        if (operand.is(OperandKind::value)) operand.id = representative(operand.as_value()).index();
        ++kept;
      }
      instruction.operands.count = kept;
    }
}

void drop_block_arguments(Function& function) {
  for (BlockId block : function.layout) {
    function.blocks[block].parameters = {};
    for (EdgeId edge : function.successors(block))
      function.edges[edge].arguments = {};
  }
}

// Empty blocks that were kept for their labels fall through to the next block again, as in the text.
void connect_label_stubs(Function& function) {
  for (size_t i = 0; i + 1 < function.layout.size(); ++i) {
    const Block& block = function.blocks[function.layout[i]];
    if (block.first || !block.successors.empty()) continue;
    EdgeId edge = function.add_edge(function.layout[i], function.layout[i + 1]);
    function.set_successors(function.layout[i], {&edge, 1}, true);
  }
}

// Passes may insert a use of a variable before its declaration, which is wherever the source had it (nvcc -G writes
// `.shared` after labels and `.loc`); PTX requires the declaration first.
class DeclarationOrder {
public:
  explicit DeclarationOrder(Function& function)
      : function_(function), variables_(function.variables.size()), prototypes_(function.prototypes.size()) {}

  void run() {
    if (!collect()) return;
    for (BlockId block : function_.layout)
      for (InstructionId id : function_.instructions_in(block)) {
        passed_[id.index()] = true;
        // The affine stream is printed here; it refers to the variables by the same handles.
        if (function_.instructions[id].kind == InstructionKind::section_begin && function_.affine_stream)
          for (BlockId inside : function_.affine_stream->layout)
            for (InstructionId use : function_.affine_stream->instructions_in(inside))
              note_uses(function_.affine_stream->operands_of(use));
        if (!is_declaration(id)) note_uses(function_.operands_of(id));
      }
    if (late_.empty()) return;
    std::erase_if(declarations_, [&](InstructionId id) { return !late_.contains(id); });
    // Keep the text's order: initialisers name earlier variables.
    for (InstructionId id : declarations_)
      function_.remove(id);
    const InstructionId place = code_start(function_);
    for (InstructionId id : declarations_)
      place ? function_.insert_before(place, id) : function_.append(function_.entry(), id);
  }

private:
  bool is_declaration(InstructionId id) const {
    const InstructionKind kind = function_.instructions[id].kind;
    return kind == InstructionKind::declare_variable || kind == InstructionKind::prototype;
  }

  bool collect() {
    for (BlockId block : function_.layout)
      for (InstructionId id : function_.instructions_in(block)) {
        if (!is_declaration(id)) continue;
        const Operand& what = function_.operands_of(id)[0];
        (what.is(OperandKind::prototype) ? prototypes_[what.id] : variables_[what.as_symbol().variable().index()]) = id;
        declarations_.push_back(id);
      }
    passed_.resize(function_.instructions.size());
    return !declarations_.empty();
  }

  void note_uses(std::span<const Operand> operands) {
    for (const Operand& operand : operands)
      if (operand.is(OperandKind::prototype))
        note_use(prototypes_[operand.id]);
      else if (operand.is(OperandKind::symbol) && operand.as_symbol().kind() == SymbolRef::Kind::local_variable)
        note_use(variables_[operand.as_symbol().variable().index()]);
  }

  // Parameters have no declaration in the body, so `declaration` is invalid for them.
  void note_use(InstructionId declaration) {
    if (!declaration || passed_[declaration.index()] || !late_.insert(declaration).second) return;
    if (function_.instructions[declaration].kind == InstructionKind::prototype) return;
    const VariableId variable = function_.operands_of(declaration)[0].as_symbol().variable();
    note_uses(function_.initialisers.view(function_.variables[variable].initialiser));
  }

  Function& function_;
  std::vector<InstructionId> variables_, prototypes_; // declaration by variable or prototype; invalid without one
  std::vector<InstructionId> declarations_;           // in the order of the text
  std::vector<bool> passed_;                          // by InstructionId
  std::unordered_set<InstructionId> late_;            // declarations that follow a use
};

} // namespace

void destruct_ssa(Function& function) {
  if (!function.is_ssa) return;
  if (function.affine_stream) destruct_ssa(*function.affine_stream);
  std::optional<LiveRanges> ranges;
  ranges.emplace(function);
  if (separate_old_values(function, *ranges)) ranges.emplace(function);
  RegisterClasses classes(function, *ranges);
  size_t known_values = function.values.size();
  insert_edge_copies(function, *ranges, classes);
  rewrite_operands(function, classes, known_values);
  drop_block_arguments(function);
  for (ValueId value : function.values.ids())
    function.values[value].is_undefined = false;
  function.is_ssa = false;
  connect_label_stubs(function);
  DeclarationOrder(function).run();
  name_and_declare_registers(function);
  function.changed();
}

} // namespace ptxrewrite::ir
