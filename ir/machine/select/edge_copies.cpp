// Determined by assembling loops that start from one value twice, and from a value that is read in them and after them:
// see edge_copies.h.
#include "ir/machine/select/edge_copies.h"

#include "ir/flow/liveness.h"
#include "ir/machine/figures/generations.h"
#include "ir/machine/prepare/rule_helpers.h"

#include <algorithm>

namespace ptxrewrite::ir {

namespace {

// True if the value is in a general per-lane register.
bool is_kept(const LoweringContext& context, ValueId value) {
  const Value& row = context.function.values[value];
  if (row.register_class != RegisterClass::general || row.type == ScalarType::pred || row.is_undefined) return false;
  if (context.source_of(value) != ValueSource::computed || context.without_constant[value.index()]) return false;
  const InstructionId definition = context.values.definition(value);
  return !definition || (!context.absorbed[definition.index()] && context.costs[definition.index()].uniform == 0);
}

// Follows copies to their source: a copy is an alias until both are needed.
ValueId original_of(const LoweringContext& context, ValueId value) {
  constexpr int most_copies = 8;
  for (int step = 0; step < most_copies; ++step) {
    const InstructionId copy = context.values.definition(value);
    if (!copy || !context.function.is_opcode(copy, Opcode::mov) || context.function.instructions[copy].guard) break;
    const Operand* source = context.source(copy, 0);
    if (!source || source->is_group() || !source->is(OperandKind::value)) break;
    value = source->as_value();
  }
  return value;
}

bool is_read(const LoweringContext& context, ValueId value) {
  return context.values.merges(value) || std::ranges::any_of(context.values.readers(value), [&](InstructionId reader) {
           return context.needed[reader.index()];
         });
}

// True if the value is computed on the uniform datapath. From Hopper on, values that memory instructions read (as
// address or data) are computed per lane.
bool is_uniform_work(const LoweringContext& context, ValueId value) {
  const InstructionId id = context.values.definition(value);
  if (!id) return false;
  if (!has(context.capability, MachineFact::loaded_parameters)) return context.is_uniform(id);
  if (context.absorbed[id.index()] || context.costs[id.index()].uniform == 0) return false;
  return std::ranges::none_of(context.values.readers(value), [&](InstructionId reader) {
    const Form* form = context.form(reader);
    return form && context.needed[reader.index()] && is_memory(*form);
  });
}

// The last real instruction of the block, to which the costs of leaving it are added.
InstructionId last_of(const LoweringContext& context, BlockId block) {
  InstructionId id = context.function.blocks[block].last;
  while (id && !context.form(id))
    id = context.function.instructions[id].previous;
  return id;
}

} // namespace

void weigh_edge_copies(LoweringContext& context, const UniformValues& uniform) {
  const Function& function = context.function;
  if (!function.is_ssa) return;
  // Liveness of the values on edges only.
  std::vector<bool> passed(function.values.size());
  bool any = false;
  for (BlockId block : function.layout)
    for (EdgeId edge : function.successors(block))
      for (ValueId value : function.arguments(edge)) {
        passed[value.index()] = passed[original_of(context, value).index()] = true;
        any = true;
      }
  if (!any) return;
  const Liveness liveness(function, context.flow, &passed);
  for (BlockId block : function.layout) {
    if (!context.flow.reachable(block)) continue;
    for (EdgeId edge : function.successors(block)) {
      const BlockId target = function.edges[edge].to;
      const std::span<const ValueId> given = function.arguments(edge), parameters = function.parameters(target);
      for (size_t i = 0; i < given.size(); ++i) {
        const ValueId original = original_of(context, given[i]);
        const InstructionId last = last_of(context, block);
        if (last && !context.predicated[block.index()] && !uniform.uniform(parameters[i]) &&
            is_uniform_work(context, original) && is_read(context, parameters[i]))
          context.costs[last.index()].weight += static_cast<uint16_t>(context.words_of(given[i]));
        if (given[i] == parameters[i] || !is_read(context, parameters[i]) || !is_kept(context, original)) continue;
        bool twice = liveness.is_live_in(target, given[i]) || liveness.is_live_in(target, original);
        for (size_t j = 0; j < i; ++j)
          twice |= original_of(context, given[j]) == original && is_read(context, parameters[j]);
        if (twice && last) context.costs[last.index()].weight += static_cast<uint16_t>(context.words_of(given[i]));
      }
    }
  }
}

} // namespace ptxrewrite::ir
