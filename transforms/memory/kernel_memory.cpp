#include "transforms/memory/kernel_memory.h"

#include "ir/core/module.h"

namespace ptxrewrite::transforms::memory {

namespace {

using ir::InstructionId;
using ir::InstructionKind;
using ir::Modifier;
using ir::Opcode;
using ir::Operand;
using ir::OperandKind;
using ir::StateSpace;

// Asynchronous accesses, or those whose size is an operand.
bool is_asynchronous(const ir::Form& form) {
  return form.has(Modifier::async) || form.has(Modifier::bulk);
}

bool is_elsewhere(StateSpace space) {
  return ir::is_shared(space) || space == StateSpace::local || space == StateSpace::constant || ir::is_param(space);
}

bool has_order(const ir::Form& form) {
  return form.has(Modifier::acquire) || form.has(Modifier::release) || form.has(Modifier::acq_rel) ||
         form.has(Modifier::sc);
}

// Device functions of the runtime that write to no memory that a kernel can name.
bool is_harmless_call(const ir::Function& function, InstructionId id) {
  for (const Operand& operand : function.operands_of(id)) {
    if (!operand.is(OperandKind::symbol)) continue;
    const ir::SymbolRef ref = operand.as_symbol();
    if (ref.kind() != ir::SymbolRef::Kind::function) continue;
    const ir::Function& callee = *function.module().functions[ref.function().index()];
    const std::string_view name = function.module().text(callee.name);
    return !callee.has_body && (name == "vprintf" || name == "__assertfail");
  }
  return false;
}

size_t address_of(const ir::Function& function, InstructionId id) {
  const auto operands = function.operands_of(id);
  size_t i = 0;
  while (i < operands.size() && !operands[i].is(OperandKind::address))
    i = ir::next_sibling(operands, i);
  return i;
}

class Scan {
public:
  explicit Scan(const ir::Function& function) : function_(function) {}

  KernelMemory run() {
    for (ir::BlockId block : function_.layout)
      for (InstructionId id : function_.instructions_in(block))
        if (function_.instructions[id].kind == InstructionKind::real) look_at(id);
    if (!returning_atomic_.empty() && !fence_.empty())
      waits(returning_atomic_ + " and " + fence_ + " may synchronise with other grids");
    return std::move(memory_);
  }

private:
  void look_at(InstructionId id) {
    const ir::Form& form = function_.form_of(id);
    const auto what = [&] { return "'" + std::string(form.mnemonic) + "'" + line_of(function_, id); };
    if (form.opaque) {
      unknown(what() + " is not known");
      return waits(what() + " is not known");
    }
    if (form.effects.call) {
      if (is_harmless_call(function_, id)) return;
      unknown("what is called by " + what() + " may write to memory");
      return waits("what is called by " + what() + " may wait for others");
    }
    if (form.opcode == Opcode::griddepcontrol && form.has(Modifier::wait)) return waits(what() + " waits for a grid");
    if (form.opcode == Opcode::fence || form.opcode == Opcode::membar) {
      // Two addresses may then refer to the same location.
      if (form.has(Modifier::proxy)) unknown(what() + " is about more than addresses");
      if (!form.has(Modifier::cta)) fence_ = what();
      return;
    }
    if (is_elsewhere(form.space)) return;
    const bool is_load = form.opcode == Opcode::ld, is_store = form.opcode == Opcode::st,
               is_reduction = form.opcode == Opcode::red, is_atomic = form.opcode == Opcode::atom;
    if ((!is_load && !is_store && !is_reduction && !is_atomic) || is_asynchronous(form)) {
      if (form.effects.writes_memory) unknown(what() + " writes to memory");
      return;
    }
    if (form.effects.writes_memory && form.effects.barrier) return unknown(what() + " writes to memory");
    const bool strong = form.effects.volatile_result || (form.effects.atomic && (is_load || is_store));
    if (is_load && strong) waits(what() + " may see what others write");
    if (is_atomic) {
      returning_atomic_ = what();
      if (has_order(form)) waits(what() + " may synchronise with other grids");
    }
    Access access;
    access.instruction = id;
    access.address = address_of(function_, id);
    access.bytes = (ir::bit_width(form.type()) + 7) / 8 * form.vector_width;
    access.reads = is_load || is_atomic;
    access.writes = !is_load;
    access.plain = (is_load || is_store) && !strong && form.space == StateSpace::global && !form.has(Modifier::nc);
    const auto operands = function_.operands_of(id);
    const bool usable =
        access.address < operands.size() && operands[access.address].group_size() == 1 && access.bytes != 0;
    if (!usable) {
      if (access.writes) unknown(what() + " has an address of its own kind");
      return;
    }
    memory_.accesses.push_back(access);
  }

  void unknown(const std::string& why) {
    if (memory_.unknown_writes.empty()) memory_.unknown_writes = why;
  }
  void waits(const std::string& why) {
    if (memory_.waits_for_others.empty()) memory_.waits_for_others = why;
  }

  const ir::Function& function_;
  KernelMemory memory_;
  std::string returning_atomic_, fence_;
};

} // namespace

std::string line_of(const ir::Function& function, InstructionId id) {
  const SourceRange range = function.instructions[id].range;
  if (range.empty()) return {};
  return " in line " + std::to_string(function.module().source.locate(range.begin).line);
}

KernelMemory scan_memory(const ir::Function& function) {
  return Scan(function).run();
}

bool orders_memory(const ir::Function& function, InstructionId id) {
  if (function.instructions[id].kind != InstructionKind::real) return false;
  const ir::Form& form = function.form_of(id);
  const ir::Effects& effects = form.effects;
  if (form.opaque || effects.call || effects.barrier || effects.terminates) return true;
  const bool accesses = effects.reads_memory || effects.writes_memory;
  if (!accesses || is_elsewhere(form.space)) return effects.convergent && accesses;
  const bool simple = form.opcode == Opcode::ld || form.opcode == Opcode::st;
  return !simple || is_asynchronous(form) || effects.atomic || effects.volatile_result;
}

} // namespace ptxrewrite::transforms::memory
