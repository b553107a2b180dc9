// Addresses that are a constant plus a per-lane 64-bit value, for machines with [R.64+UR] accesses (uniform_base.h).
// The rules were derived from ptxas output for sm_75: sums of a kernel parameter and an extended, loaded, shifted or
// multiplied value, each read by every kind of memory access.
#include "ir/machine/fuse/uniform_base.h"

#include "ir/machine/figures/generations.h"
#include "ir/machine/prepare/rule_helpers.h"
#include "ir/machine/prepare/uniform.h"

#include <algorithm>
#include <set>
#include <utility>

namespace ptxrewrite::ir {

namespace {

struct Terms {
  ValueId base, offset; // base: a constant
};

// Invalid if the terms are not a constant and a value that differs between lanes.
Terms terms_of(const LoweringContext& context, InstructionId sum) {
  Terms terms;
  for (size_t i : {0, 1}) {
    const Operand* operand = context.source(sum, i);
    if (!operand || !operand->is(OperandKind::value)) return {};
    const ValueId value = operand->as_value();
    const bool constant = context.source_of(value) == ValueSource::constant_bank;
    (constant ? terms.base : terms.offset) = value;
  }
  if (!terms.base || !terms.offset || context.values.merges(terms.base)) return {};
  if (context.source_of(terms.offset) != ValueSource::computed) return {};
  return context.uniform_values->uniform(terms.offset) ? Terms{} : terms;
}

bool names_both(const Form& form) {
  return (form.kind == InstructionClass::load || form.kind == InstructionClass::store) &&
         (form.space == StateSpace::global || form.space == StateSpace::none);
}

bool adds_constant(const LoweringContext& context, InstructionId access) {
  for (const Operand& operand : context.function.operands_of(access))
    if (operand.is(OperandKind::address)) return operand.immediate != 0;
  return false;
}

// `offsets`: the accesses may add a constant, too.
bool only_accesses_read(const LoweringContext& context, ValueId value, bool offsets, int depth = 0) {
  constexpr int longest = 4; // sums whose constant the access adds
  return all_readers(context, value, [&](InstructionId reader) {
    const Form* form = context.form(reader);
    if (!form) return false;
    if (context.reads_as_address(reader, value))
      return names_both(*form) && (offsets || !adds_constant(context, reader));
    return offsets && depth < longest && is_left_to_accesses(context, reader) &&
           only_accesses_read(context, context.result(reader), offsets, depth + 1);
  });
}

template <class Visit> void for_each_access(const LoweringContext& context, ValueId value, Visit&& visit) {
  for (InstructionId reader : context.values.readers(value)) {
    if (!context.needed[reader.index()]) continue;
    if (context.reads_as_address(reader, value))
      visit(reader);
    else
      for_each_access(context, context.result(reader), visit);
  }
}

// The block where the straight code begins that the block is in: predicated blocks belong to the one before.
BlockId start_of(const LoweringContext& context, BlockId block) {
  const size_t longest = context.function.layout.size();
  for (size_t i = 0; i < longest; ++i) {
    const auto& before = context.flow.predecessors(block);
    const auto from = [&](EdgeId edge) { return context.function.edges[edge].from; };
    const bool predicated = context.predicated[block.index()] && before.size() == 1;
    const auto joined =
        std::ranges::find_if(before, [&](EdgeId edge) { return predicated || context.predicated[from(edge).index()]; });
    if (joined == before.end()) return block;
    block = from(*joined);
  }
  return block;
}

// True if the kernel computes uniform values, or accesses memory at a constant: else ptxas uses no uniform registers.
bool has_uniform_registers(const LoweringContext& context) {
  bool result = false;
  context.for_each_needed([&](InstructionId id) {
    const ValueId value = context.result(id);
    const bool computes =
        value && context.uniform_values->uniform(value) && context.source_of(value) == ValueSource::computed;
    result = result || computes;
    if (result || !is_memory(*context.form(id)) || is_param(context.form(id)->space)) return;
    for_each_use(context.function, id, [&](ValueId used) {
      result = result || (context.source_of(used) == ValueSource::constant_bank && context.reads_as_address(id, used));
    });
  });
  return result;
}

} // namespace

bool is_uniform_base(const LoweringContext& context, InstructionId id) {
  if (!has(context.capability, MachineFact::uniform_addresses) || !context.uniform_values) return false;
  const Form* form = context.form(id);
  if (!form || !is_add(*form) || !is_int64(*form) || context.function.instructions[id].guard) return false;
  if (context.absorbs[id.index()] || !context.result(id)) return false;
  const Terms terms = terms_of(context, id);
  if (!terms.base) return false;
  const InstructionId offset = context.values.definition(terms.offset);
  const bool extends = offset && context.function.is_opcode(offset, Opcode::cvt) &&
                       !is_signed(context.form(offset)->type(1)); // [R.U32+UR] has no place for a constant
  if (!only_accesses_read(context, context.result(id), !extends)) return false;
  if (!context.uses_uniform_registers) context.uses_uniform_registers = has_uniform_registers(context);
  return *context.uses_uniform_registers;
}

bool uniform_base(LoweringContext& context, InstructionId id) {
  if (!is_uniform_base(context, id)) return false;
  context.without_constant[context.result(id).index()] = terms_of(context, id).offset;
  context.based_sums.push_back(id);
  return true;
}

void weigh_uniform_bases(LoweringContext& context) {
  std::set<std::pair<ValueId, BlockId>> loaded;
  for (InstructionId sum : context.based_sums) {
    const ValueId base = context.root_of(terms_of(context, sum).base);
    for_each_access(context, context.result(sum), [&](InstructionId access) {
      const BlockId start = start_of(context, context.function.instructions[access].block);
      if (loaded.emplace(base, start).second) context.costs[sum.index()].uniform += 1;
    });
  }
}

} // namespace ptxrewrite::ir
