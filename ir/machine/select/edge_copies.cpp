// Determined by assembling loops that start from one value twice, and from a value that is read in them and after them:
// see edge_copies.h.
#include "ir/machine/select/edge_copies.h"

#include "ir/flow/liveness.h"
#include "ir/machine/figures/generations.h"
#include "ir/machine/prepare/rule_helpers.h"

#include <algorithm>
#include <optional>
#include <vector>

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

// Whether values that are passed on edges are live into blocks. Most are read only where they are defined, so that they
// are live into none.
class PassedValues {
public:
  explicit PassedValues(const LoweringContext& context)
      : context_(context), passed_elsewhere_(context.function.values.size()), far_(context.function.values.size()) {
    for (BlockId block : context.function.layout)
      for (EdgeId edge : context.function.successors(block))
        for (ValueId value : context.function.arguments(edge))
          if (block_of(value) != block) passed_elsewhere_[value.index()] = true;
  }

  // To be called for all values before the first question.
  void note(ValueId value) {
    if (far_[value.index()] || is_near(value)) return;
    far_[value.index()] = true;
  }
  bool live_into(BlockId block, ValueId value) {
    if (!far_[value.index()]) return false;
    if (!liveness_) liveness_.emplace(context_.function, context_.flow, &far_);
    return liveness_->is_live_in(block, value);
  }

private:
  BlockId block_of(ValueId value) const {
    const InstructionId definition = context_.values.definition(value);
    return definition ? context_.function.instructions[definition].block : BlockId();
  }
  bool is_near(ValueId value) const {
    const BlockId block = block_of(value);
    return block && !passed_elsewhere_[value.index()] && !context_.facts.contents.keeps_old_values &&
           std::ranges::all_of(context_.values.readers(value), [&](InstructionId reader) {
             return context_.function.instructions[reader].block == block;
           });
  }

  const LoweringContext& context_;
  std::vector<bool> passed_elsewhere_; // by ValueId: on an edge that does not leave the block of the definition
  std::vector<bool> far_;              // by ValueId
  std::optional<Liveness> liveness_;   // of the far ones
};

bool is_copied(const LoweringContext& context, ValueId given, ValueId parameter, ValueId original) {
  return given != parameter && is_read(context, parameter) && is_kept(context, original);
}

} // namespace

void weigh_edge_copies(LoweringContext& context, const UniformValues& uniform) {
  const Function& function = context.function;
  if (!function.is_ssa) return;
  if (std::ranges::all_of(function.layout, [&](BlockId block) { return function.parameters(block).empty(); })) return;
  PassedValues passed(context);
  auto for_each_argument = [&](auto&& visit) {
    for (BlockId block : function.layout) {
      if (!context.flow.reachable(block)) continue;
      for (EdgeId edge : function.successors(block))
        for (size_t i = 0; i < function.arguments(edge).size(); ++i)
          visit(block, edge, i, original_of(context, function.arguments(edge)[i]));
    }
  };
  for_each_argument([&](BlockId, EdgeId edge, size_t i, ValueId original) {
    const ValueId given = function.arguments(edge)[i];
    if (!is_copied(context, given, function.parameters(function.edges[edge].to)[i], original)) return;
    passed.note(given);
    passed.note(original);
  });
  for_each_argument([&](BlockId block, EdgeId edge, size_t i, ValueId original) {
    const BlockId target = function.edges[edge].to;
    const std::span<const ValueId> given = function.arguments(edge), parameters = function.parameters(target);
    const InstructionId last = last_of(context, block);
    if (!last) return;
    uint16_t& weight = context.costs[last.index()].weight;
    if (!context.predicated[block.index()] && !uniform.uniform(parameters[i]) && is_uniform_work(context, original) &&
        is_read(context, parameters[i]))
      weight += static_cast<uint16_t>(context.words_of(given[i]));
    if (!is_copied(context, given[i], parameters[i], original)) return;
    bool twice = passed.live_into(target, given[i]) || passed.live_into(target, original);
    for (size_t j = 0; j < i; ++j)
      twice |= original_of(context, given[j]) == original && is_read(context, parameters[j]);
    if (twice) weight += static_cast<uint16_t>(context.words_of(given[i]));
  });
}

} // namespace ptxrewrite::ir
