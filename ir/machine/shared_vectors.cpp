// Groups the loads between two instructions that may write shared memory by base register, see shared_vectors.h.
#include "ir/machine/shared_vectors.h"

#include <algorithm>
#include <bit>
#include <map>
#include <utility>
#include <vector>

namespace ptxrewrite::ir {

namespace {

// An address without its literal: a register, or a linear register and what is added to it.
using Base = std::pair<ValueId, ValueId>;

// How many low bits of a value are surely zero.
class Alignment {
public:
  explicit Alignment(const LoweringContext& context) : context_(context), open_(context.function.values.size()) {
    if (!context.function.is_ssa) return;
    const Function& function = context.function;
    for (BlockId block : function.layout)
      for (EdgeId edge : function.successors(block)) {
        std::span<const ValueId> parameters = function.parameters(function.edges[edge].to);
        std::span<const ValueId> arguments = function.arguments(edge);
        for (size_t i = 0; i < std::min(parameters.size(), arguments.size()); ++i)
          arguments_[parameters[i]].push_back(arguments[i]);
      }
  }

  unsigned of_base(const Base& base) {
    budget_ = 200;
    unsigned bits = of(base.first, 0);
    return base.second ? std::min(bits, of(base.second, 0)) : bits;
  }

private:
  unsigned of(ValueId value, unsigned depth) {
    constexpr unsigned everything = 64, deepest = 8;
    if (open_[value.index()]) return everything; // a loop's own value: the other ways in decide
    if (depth == deepest || budget_ == 0) return 0;
    --budget_;
    open_[value.index()] = true;
    unsigned bits = by_definition(value, depth);
    open_[value.index()] = false;
    return bits;
  }

  unsigned of(const Operand* operand, unsigned depth) {
    if (!operand) return 0;
    if (operand->is(OperandKind::integer))
      return static_cast<unsigned>(std::countr_zero(static_cast<uint64_t>(operand->immediate)));
    if (operand->is(OperandKind::symbol)) return 4; // the assembler places variables so that it can
    return operand->is(OperandKind::value) ? of(operand->as_value(), depth + 1) : 0;
  }

  unsigned by_definition(ValueId value, unsigned depth) {
    const Function& function = context_.function;
    InstructionId id = context_.values.definition(value);
    if (!id) return by_arguments(value, depth);
    if (function.instructions[id].kind == InstructionKind::linear_row) {
      std::span<const Operand> row = function.operands_of(id);
      return std::min(of(&row[1], depth), of(&row[2], depth));
    }
    const Form* form = context_.form(id);
    if (!form || function.instructions[id].guard) return 0;
    const Operand* a = context_.source(id, 0);
    const Operand* b = context_.source(id, 1);
    switch (form->opcode) {
    case Opcode::mov:
      return of(a, depth);
    case Opcode::cvt:
      return is_float(form->type(0)) || is_float(form->type(1)) ? 0 : of(a, depth);
    case Opcode::add:
    case Opcode::sub:
    case Opcode::or_:
      return std::min(of(a, depth), of(b, depth));
    case Opcode::and_:
      return std::max(of(a, depth), of(b, depth));
    case Opcode::mul:
      return form->has(Modifier::hi) ? 0 : of(a, depth) + of(b, depth);
    case Opcode::mad:
      return form->has(Modifier::hi) ? 0 : std::min(of(a, depth) + of(b, depth), of(context_.source(id, 2), depth));
    case Opcode::shl:
      return b && b->is(OperandKind::integer) ? of(a, depth) + static_cast<unsigned>(b->immediate & 63) : 0;
    default:
      return 0;
    }
  }

  unsigned by_arguments(ValueId value, unsigned depth) {
    auto arguments = arguments_.find(value);
    if (arguments == arguments_.end()) return 0;
    unsigned bits = 64;
    for (ValueId argument : arguments->second)
      bits = std::min(bits, of(argument, depth + 1));
    return bits;
  }

  const LoweringContext& context_;
  std::vector<bool> open_;
  std::map<ValueId, std::vector<ValueId>> arguments_; // of block parameters
  unsigned budget_ = 0;                               // values still to be looked at
};

struct Load {
  int64_t offset;
  InstructionId id;
};

// Of the loads from one base, joins `count` neighbours where the first one is aligned for it.
void join(LoweringContext& context, std::vector<Load>& loads, unsigned count, unsigned alignment) {
  int64_t bytes = 4 * count;
  if (alignment < static_cast<unsigned>(std::countr_zero(static_cast<unsigned>(bytes)))) return;
  for (size_t i = 0; i + count <= loads.size();) {
    bool neighbours = loads[i].offset % bytes == 0;
    for (size_t k = 1; k < count; ++k)
      neighbours = neighbours && loads[i + k].offset == loads[i].offset + static_cast<int64_t>(4 * k);
    if (!neighbours) {
      ++i;
      continue;
    }
    for (size_t k = 1; k < count; ++k)
      context.costs[loads[i + k].id.index()].weight = 0;
    loads.erase(loads.begin() + static_cast<std::ptrdiff_t>(i), loads.begin() + static_cast<std::ptrdiff_t>(i + count));
  }
}

// The base of a plain 32-bit load from shared memory; invalid for anything else.
Base shared_base(const LoweringContext& context, InstructionId id, int64_t& offset) {
  const Form* form = context.form(id);
  if (!form || form->opcode != Opcode::ld || !is_shared(form->space) || form->vector_width != 1 ||
      byte_width(form->type()) != 4 || form->effects.volatile_result || form->effects.atomic ||
      context.function.instructions[id].guard)
    return {};
  const Operand* address = context.source(id, 0);
  if (!address || !address->is(OperandKind::address) || !address[1].is(OperandKind::value)) return {};
  const bool two = address->group_size() == 2 && address[2].is(OperandKind::value);
  if (address->group_size() != 1 && !two) return {};
  offset = address->immediate;
  return {address[1].as_value(), two ? address[2].as_value() : ValueId()};
}

void join_in_block(LoweringContext& context, BlockId block, Alignment& alignment) {
  std::map<Base, std::vector<Load>> open;
  auto close = [&] {
    for (auto& [base, loads] : open) {
      if (loads.size() < 2) continue;
      std::ranges::sort(loads, {}, &Load::offset);
      unsigned bits = alignment.of_base(base);
      join(context, loads, 4, bits);
      join(context, loads, 2, bits);
    }
    open.clear();
  };
  for (InstructionId id : context.function.instructions_in(block)) {
    const Form* form = context.form(id);
    if (!form || !context.needed[id.index()]) continue;
    int64_t offset = 0;
    if (Base base = shared_base(context, id, offset); base.first) {
      open[base].push_back({offset, id});
      continue;
    }
    bool writes = (form->effects.writes_memory || form->effects.atomic) && form->space != StateSpace::global;
    if (writes || form->effects.barrier || form->effects.call || form->opaque) close();
  }
  close();
}

} // namespace

void join_shared_loads(LoweringContext& context) {
  Alignment alignment(context);
  for (BlockId block : context.function.layout)
    join_in_block(context, block, alignment);
}

} // namespace ptxrewrite::ir
