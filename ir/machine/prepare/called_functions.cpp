// Walks the graph of calls, see called_functions.h.
#include "ir/machine/prepare/called_functions.h"

#include "ir/core/module.h"

#include <algorithm>
#include <set>

namespace ptxrewrite::ir {

const Function* definition_of(const Function& declared) {
  if (declared.has_body) return &declared;
  for (const std::unique_ptr<Function>& function : declared.module().functions)
    if (function->has_body && function->name == declared.name) return function.get();
  return nullptr;
}

std::vector<const Function*> called_functions(const Function& function) {
  const Module& module = function.module();
  std::vector<const Function*> result;
  if (std::ranges::none_of(module.functions,
                           [](const std::unique_ptr<Function>& other) { return other->has_body && !other->is_entry; }))
    return result;
  std::set<const Function*> seen;
  const auto add_those_of = [&](const Function& caller) {
    for (BlockId block : caller.layout)
      for (InstructionId id : caller.instructions_in(block)) {
        // A function whose address is taken may be called there.
        if (!caller.is_opcode(id, Opcode::call) && !caller.is_opcode(id, Opcode::mov)) continue;
        for (const Operand& operand : caller.operands_of(id)) {
          if (!operand.is(OperandKind::symbol) || operand.as_symbol().kind() != SymbolRef::Kind::function) continue;
          const Function* called = definition_of(module.function(operand.as_symbol().function()));
          if (called && !called->is_entry && seen.insert(called).second) result.push_back(called);
        }
      }
  };
  add_those_of(function);
  for (size_t i = 0; i < result.size(); ++i)
    add_those_of(*result[i]);
  return result;
}

} // namespace ptxrewrite::ir
