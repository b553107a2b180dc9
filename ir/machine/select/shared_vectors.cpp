// Groups accesses by base register, between instructions that may access the same shared memory: see
// shared_vectors.h.
#include "ir/machine/select/shared_vectors.h"

#include "ir/machine/figures/generations.h"

#include <algorithm>
#include <bit>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace ptxrewrite::ir {

namespace {

// An address without its literal offset: a register, a linear register and its addend, or a variable.
struct Base {
  ValueId first, second;
  uint32_t variable = 0; // used if there is no register
  auto operator<=>(const Base&) const = default;
};

constexpr unsigned variable_alignment = 4; // the assembler aligns variables so that accesses to them can be merged

// Determines the number of low bits of a value that are known to be zero.
class Alignment {
public:
  explicit Alignment(const LoweringContext& context) : context_(context), open_(context.function.values.size()) {}

  unsigned of_base(const Base& base) {
    budget_ = 200;
    unsigned bits = of(base.first, 0);
    return base.second ? std::min(bits, of(base.second, 0)) : bits;
  }

private:
  unsigned of(ValueId value, unsigned depth) {
    constexpr unsigned everything = 64, deepest = 8;
    if (open_[value.index()]) return everything; // a value that depends on itself in a loop: other edges decide
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
    if (operand->is(OperandKind::symbol)) return variable_alignment;
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

  void list_arguments() {
    has_arguments_ = true;
    if (!context_.function.is_ssa) return;
    const Function& function = context_.function;
    for (BlockId block : function.layout)
      for (EdgeId edge : function.successors(block)) {
        std::span<const ValueId> parameters = function.parameters(function.edges[edge].to);
        std::span<const ValueId> arguments = function.arguments(edge);
        for (size_t i = 0; i < std::min(parameters.size(), arguments.size()); ++i)
          arguments_[parameters[i]].push_back(arguments[i]);
      }
  }

  unsigned by_arguments(ValueId value, unsigned depth) {
    if (!has_arguments_) list_arguments();
    auto arguments = arguments_.find(value);
    if (arguments == arguments_.end()) return 0;
    unsigned bits = 64;
    for (ValueId argument : arguments->second)
      bits = std::min(bits, of(argument, depth + 1));
    return bits;
  }

  const LoweringContext& context_;
  std::vector<bool> open_;
  std::map<ValueId, std::vector<ValueId>> arguments_; // of block parameters, when first asked for
  bool has_arguments_ = false;
  unsigned budget_ = 0; // values that may still be visited
};

struct Access {
  int64_t offset;
  InstructionId id;
};

// Accesses that may be merged: same base, width and direction.
struct Kind {
  Base base;
  unsigned bytes = 0;
  bool stores = false;
  auto operator<=>(const Kind&) const = default;
};
using Accesses = std::map<Kind, std::vector<Access>>;

const Operand* stored_value(const LoweringContext& context, const Access& access) {
  return context.source(access.id, 1);
}

// Storing one register several times would require copies of it; zero needs none.
bool values_fit(const LoweringContext& context, std::span<const Access> group) {
  std::vector<ValueId> seen;
  for (const Access& access : group) {
    const Operand* value = stored_value(context, access);
    if (!value) return false;
    if (context.is_literal(value)) continue;
    if (!value->is(OperandKind::value) || std::ranges::find(seen, value->as_value()) != seen.end()) return false;
    seen.push_back(value->as_value());
  }
  return true;
}

// 16-bit values are loaded as halves of registers, which only half-precision instructions can read.
bool read_as_halves(const LoweringContext& context, const Access& access) {
  ValueId value = context.result(access.id);
  if (!value) return false;
  return std::ranges::all_of(context.values.readers(value), [&](InstructionId reader) {
    const Form* form = context.form(reader);
    return form && (form->kind == InstructionClass::half_precision || form->kind == InstructionClass::half_comparison);
  });
}

// Number of accesses of a merged group that cost nothing: splitting or joining a pair of halves costs one instruction.
size_t spared(const LoweringContext& context, const Kind& kind, std::span<const Access> group) {
  const size_t others = group.size() - 1;
  if (kind.bytes > 2 || (!kind.stores && read_as_halves(context, group[0]))) return others;
  if (kind.stores && context.is_literal(stored_value(context, group[0]))) return others;
  return others - group.size() / 2;
}

// Merges `count` neighbours if the first one is sufficiently aligned.
void join(LoweringContext& context, const Kind& kind, std::vector<Access>& accesses, unsigned count,
          unsigned alignment) {
  const int64_t bytes = kind.bytes * count;
  if (alignment < static_cast<unsigned>(std::countr_zero(static_cast<unsigned>(bytes)))) return;
  for (size_t i = 0; i + count <= accesses.size();) {
    bool neighbours = accesses[i].offset % bytes == 0;
    for (size_t k = 1; k < count; ++k)
      neighbours = neighbours && accesses[i + k].offset == accesses[i].offset + static_cast<int64_t>(kind.bytes * k);
    std::span<const Access> group = std::span(accesses).subspan(i, count);
    if (!neighbours || (kind.stores && !values_fit(context, group))) {
      ++i;
      continue;
    }
    const size_t free = spared(context, kind, group);
    for (size_t k = 1; k <= free; ++k)
      context.costs[group[k].id.index()].weight = 0;
    accesses.erase(accesses.begin() + static_cast<std::ptrdiff_t>(i),
                   accesses.begin() + static_cast<std::ptrdiff_t>(i + count));
  }
}

void join_all(LoweringContext& context, const Kind& kind, std::vector<Access>& accesses, Alignment& alignment) {
  if (accesses.size() < 2) return;
  std::ranges::sort(accesses, {}, &Access::offset);
  const unsigned bits = kind.base.first ? alignment.of_base(kind.base) : variable_alignment;
  constexpr unsigned most_bytes = 16;
  for (unsigned count : {4u, 2u})
    if (count * kind.bytes <= most_bytes) join(context, kind, accesses, count, bits);
}

// Describes a plain access to shared memory of 16 bits or more; nullopt for other instructions.
std::optional<Kind> shared_access(const LoweringContext& context, InstructionId id, int64_t& offset) {
  const Form* form = context.form(id);
  if (!form || (form->opcode != Opcode::ld && form->opcode != Opcode::st) || !is_shared(form->space) ||
      form->vector_width != 1 || form->effects.volatile_result || form->effects.atomic ||
      form->has(Modifier::volatile_) || context.function.instructions[id].guard)
    return std::nullopt;
  const unsigned bytes = byte_width(form->type());
  if (bytes < 2 || bytes > 8) return std::nullopt;
  const Operand* address = context.source(id, 0);
  if (!address || !address->is(OperandKind::address)) return std::nullopt;
  offset = address->immediate;
  const bool stores = form->opcode == Opcode::st;
  if (address->group_size() == 1 && address[1].is(OperandKind::symbol))
    return Kind{{ValueId(), ValueId(), address[1].id}, bytes, stores};
  if (!address[1].is(OperandKind::value)) return std::nullopt;
  const bool two = address->group_size() == 2 && address[2].is(OperandKind::value);
  if (address->group_size() != 1 && !two) return std::nullopt;
  return Kind{{address[1].as_value(), two ? address[2].as_value() : ValueId()}, bytes, stores};
}

void join_in_block(LoweringContext& context, BlockId block, Alignment& alignment) {
  Accesses open;
  auto close = [&](auto&& which) {
    for (auto& [kind, accesses] : open)
      if (which(kind)) join_all(context, kind, accesses, alignment);
    std::erase_if(open, [&](const auto& entry) { return which(entry.first); });
  };
  for (InstructionId id : context.function.instructions_in(block)) {
    const Form* form = context.form(id);
    if (!form || !context.needed[id.index()]) continue;
    int64_t offset = 0;
    if (std::optional<Kind> kind = shared_access(context, id, offset)) {
      // The stored bytes may be accessible through another base.
      if (kind->stores) close([&](const Kind& other) { return !other.stores || other.base != kind->base; });
      if (!kind->stores) close([&](const Kind& other) { return other.stores; });
      open[*kind].push_back({offset, id});
      continue;
    }
    const bool elsewhere = form->space == StateSpace::global || is_param(form->space) ||
                           form->space == StateSpace::constant || form->space == StateSpace::local;
    const bool accesses = form->kind == InstructionClass::load || form->effects.writes_memory || form->effects.atomic;
    if (form->effects.barrier || form->effects.call || form->opaque || (accesses && !elsewhere))
      close([&](const Kind& other) { return other.stores || form->kind != InstructionClass::load; });
  }
  close([](const Kind&) { return true; });
}

} // namespace

void join_shared_accesses(LoweringContext& context) {
  if (!context.facts.contents.accesses_shared) return;
  Alignment alignment(context);
  for (BlockId block : context.function.layout)
    join_in_block(context, block, alignment);
}

namespace {

// True if all readers that are needed pass the test.
bool all_needed_readers(const LoweringContext& context, ValueId value, auto&& test) {
  return std::ranges::all_of(context.values.readers(value), [&](InstructionId reader) {
    const Form* user = context.form(reader);
    return !context.needed[reader.index()] || (user && test(*user));
  });
}

// Cost of extracting one element from its word. Low halves are used in place unless they are extended; I2F can read a
// part of a register, but from 9.0 on not a byte.
uint16_t extraction(const LoweringContext& context, ValueId element, size_t index, const Form& load) {
  const unsigned bits = bit_width(load.type());
  const bool stored = all_needed_readers(
      context, element, [](const Form& user) { return user.opcode == Opcode::st && user.vector_width > 1; });
  const bool converted = all_needed_readers(context, element, [](const Form& user) {
    return user.opcode == Opcode::cvt && is_float(user.type(0)) && !is_float(user.type(1));
  });
  if (stored) return 0;
  if (converted) return bits == 8 && !has(context.capability, MachineFact::shifted_parts_converted) ? 1 : 0;
  if (bits == 8) return 1;
  const bool low = index % 2 == 0;
  const bool extended = !all_needed_readers(context, element, [](const Form& user) {
    return user.opcode != Opcode::cvt || is_float(user.type(0)) || bit_width(user.type(0)) < 32;
  });
  return low && !extended ? 0 : 1;
}

} // namespace

void weigh_narrow_vectors(LoweringContext& context) {
  if (!context.facts.contents.accesses_vectors) return;
  context.for_each_needed([&](InstructionId id) {
    const Form& form = *context.form(id);
    const unsigned bits = bit_width(form.type());
    if ((form.opcode != Opcode::ld && form.opcode != Opcode::st) || form.vector_width == 1 || bits >= 32 ||
        is_param(form.space))
      return;
    uint16_t& weight = context.costs[id.index()].weight;
    if (weight == 0) return;
    std::vector<ValueId> elements;
    const std::span<const Operand> operands = context.function.operands_of(id);
    for (size_t i = 0; i < operands.size(); i = next_sibling(operands, i))
      if (operands[i].is(OperandKind::vector))
        for (size_t part = i + 1; part < next_sibling(operands, i); ++part)
          elements.push_back(operands[part].is(OperandKind::value) ? operands[part].as_value() : ValueId());
    if (form.opcode == Opcode::ld) {
      for (size_t i = 0; i < elements.size(); ++i)
        if (elements[i]) weight += extraction(context, elements[i], i, form);
      return;
    }
    const bool copied = std::ranges::all_of(elements, [&](ValueId element) {
      const InstructionId made = element ? context.values.definition(element) : InstructionId();
      return made && context.function.is_opcode(made, Opcode::ld) && context.form(made)->vector_width > 1;
    });
    const unsigned words = std::max(1U, form.vector_width * bits / 32);
    if (!copied) weight += static_cast<uint16_t>(form.vector_width - words);
  });
}

} // namespace ptxrewrite::ir
