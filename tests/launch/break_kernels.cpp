// break-kernels: a pass that is wrong on purpose, to test that `verify` finds errors.
//   value: adds 1 to the immediate of integer additions
//   fault: moves stores by 2^30 bytes
//   race:  removes barriers
#include "ir/core/function.h"
#include "transforms/manager/pass.h"

namespace ptxrewrite::transforms {

namespace {

bool change_immediate(ir::Function& function, ir::InstructionId id) {
  for (ir::Operand& operand : function.operands_of(id))
    if (operand.is(ir::OperandKind::integer)) {
      ++operand.immediate;
      return true;
    }
  return false;
}

bool move_store(ir::Function& function, ir::InstructionId id) {
  for (ir::Operand& operand : function.operands_of(id))
    if (operand.is(ir::OperandKind::address)) {
      operand.immediate += int64_t{1} << 30;
      return true;
    }
  return false;
}

Change run(ir::Function& function, PassContext& context) {
  const std::string_view what = context.options.text("what", "value");
  bool changed = false;
  for (ir::BlockId block : function.layout)
    for (ir::InstructionId id : function.instructions_in(block)) {
      if (what == "value" && function.is_opcode(id, ir::Opcode::add)) changed |= change_immediate(function, id);
      if (what == "fault" && function.is_opcode(id, ir::Opcode::st)) changed |= move_store(function, id);
      if (what == "race" && function.is_opcode(id, ir::Opcode::bar)) {
        function.remove(id);
        changed = true;
      }
    }
  if (changed) function.changed();
  return changed ? Change::changed : Change::unchanged;
}

const RegisterPass registration(
    {"break-kernels", "for tests: makes kernels wrong", run, {{"what", "value, fault or race", PassOptionKind::text}}});

} // namespace

} // namespace ptxrewrite::transforms
