// Marks what instructions with effects depend on, transitively, and removes the rest. Because marking is optimistic,
// cycles through loops (a counter used only to compute itself) are removed, too.
#include "ir/edit/dead_code.h"

#include "ir/core/kernel_parameters.h"
#include "ir/core/special_registers.h"
#include "ir/forms/dac.h"

#include <algorithm>

namespace ptxrewrite::ir {

bool removable_when_unused(const Function& function, InstructionId id) {
  if (function.instructions[id].kind != InstructionKind::real) return false;
  const Form& form = function.form_of(id);
  if (form.opaque || !(form.effects.pure() || loads_kernel_parameter(function, id))) return false;
  if (const ValueId guard = function.instructions[id].guard; guard && takes_from_queue(function, guard)) return false;
  bool writes = false;
  for (const Operand& operand : function.operands_of(id)) {
    if (operand.is_definition())
      writes = true;
    else if (is_volatile_register(operand) ||
             (operand.is(OperandKind::value) && takes_from_queue(function, operand.as_value())))
      return false;
  }
  return writes;
}

Liveliness::Liveliness(const Function& function, const ControlFlow& flow, std::span<const DefinitionSite> definitions)
    : function_(&function), flow_(&flow), definitions_(definitions) {
  for (BlockId block : function.layout)
    for (InstructionId id : function.instructions_in(block))
      if (!removable_when_unused(function, id)) roots_.push_back(id);
}

Liveliness::Result Liveliness::compute(const Ignored& ignored, std::span<const ValueId> read) const {
  const Function& function = *function_;
  Result result{std::vector<bool>(function.instructions.size()), std::vector<bool>(function.values.size())};
  std::vector<InstructionId> work = roots_;
  for (InstructionId root : roots_)
    result.instructions[root.index()] = true;
  std::vector<ValueId> parameters; // of blocks, read and to be followed
  const auto need = [&](ValueId value) {
    if (result.values[value.index()]) return;
    result.values[value.index()] = true;
    const DefinitionSite& site = definitions_[value.index()];
    if (site.is_parameter()) {
      parameters.push_back(value);
    } else if (site.instruction && !result.instructions[site.instruction.index()]) {
      result.instructions[site.instruction.index()] = true;
      work.push_back(site.instruction);
    }
  };
  const bool ignores = static_cast<bool>(ignored);
  std::ranges::for_each(read, need);
  while (!work.empty() || !parameters.empty()) {
    if (!parameters.empty()) {
      const DefinitionSite& site = definitions_[parameters.back().index()];
      parameters.pop_back();
      for (EdgeId edge : flow_->predecessors(site.block))
        if (site.parameter < function.edges[edge].arguments.count) need(function.arguments(edge)[site.parameter]);
      continue;
    }
    InstructionId id = work.back();
    work.pop_back();
    std::span<const Operand> operands = function.operands_of(id);
    for (size_t i = 0; i < operands.size(); ++i)
      if (operands[i].is(OperandKind::value) && !operands[i].is_definition() && !(ignores && ignored(id, i)))
        need(operands[i].as_value());
    if (ValueId guard = function.instructions[id].guard) need(guard);
  }
  return result;
}

ReaderCounts::ReaderCounts(const Function& function, const DefUse& def_use, const Liveliness::Result& live,
                           const Liveliness::Ignored& ignored)
    : function_(&function), def_use_(&def_use), counts_(function.values.size()) {
  for (BlockId block : function.layout) {
    for (InstructionId id : function.instructions_in(block)) {
      if (!live.needed(id)) continue;
      std::span<const Operand> operands = function.operands_of(id);
      for (size_t i = 0; i < operands.size(); ++i)
        if (operands[i].is(OperandKind::value) && !operands[i].is_definition() && !(ignored && ignored(id, i)))
          ++counts_[operands[i].as_value().index()];
      if (ValueId guard = function.instructions[id].guard) ++counts_[guard.index()];
    }
    for (EdgeId edge : function.successors(block)) {
      const std::span<const ValueId> arguments = function.arguments(edge);
      const std::span<const ValueId> parameters = function.parameters(function.edges[edge].to);
      for (size_t i = 0; i < arguments.size(); ++i)
        if (live.read(parameters[i])) ++counts_[arguments[i].index()];
    }
  }
}

double ReaderCounts::release(std::span<const ValueId> values, const Weight& weight) {
  double sum = 0;
  released_.assign(values.begin(), values.end());
  // The list grows during the walk: the operands of a dead instruction lose a reader each.
  for (size_t next = 0; next < released_.size(); ++next) {
    ValueId value = released_[next];
    assert(counts_[value.index()] != 0);
    if (--counts_[value.index()] != 0) continue;
    InstructionId definition = def_use_->definition(value).instruction;
    if (!definition || !removable_when_unused(*function_, definition)) continue;
    bool others_read = false;
    for_each_definition(*function_, definition, [&](ValueId written) { others_read |= counts_[written.index()] != 0; });
    if (others_read) continue;
    sum += weight(definition);
    for_each_use(*function_, definition, [&](ValueId read) { released_.push_back(read); });
  }
  return sum;
}

void ReaderCounts::undo() {
  for (ValueId value : released_)
    ++counts_[value.index()];
  released_.clear();
}

size_t remove_dead_code(Function& function) {
  ControlFlow flow(function);
  const std::vector<DefinitionSite> definitions = definition_sites(function);
  Liveliness::Result live = Liveliness(function, flow, definitions).compute();
  size_t removed = 0;
  for (BlockId block : function.layout) {
    for (InstructionId id : function.instructions_in(block)) {
      if (live.needed(id)) continue;
      function.remove(id);
      ++removed;
    }
    std::span<const ValueId> parameters = function.parameters(block);
    std::vector<ValueId> kept;
    std::vector<bool> keep;
    for (ValueId parameter : parameters) {
      keep.push_back(live.read(parameter));
      if (keep.back()) kept.push_back(parameter);
    }
    if (kept.size() == keep.size()) continue;
    removed += keep.size() - kept.size();
    function.set_parameters(block, kept);
    for (EdgeId edge : flow.predecessors(block)) {
      std::vector<ValueId> arguments;
      for (size_t i = 0; i < keep.size(); ++i)
        if (keep[i]) arguments.push_back(function.arguments(edge)[i]);
      function.set_arguments(edge, arguments);
    }
  }
  return removed;
}

} // namespace ptxrewrite::ir
