#include "ir/machine/known_branches.h"

#include <optional>

namespace ptxrewrite::ir {

namespace {

class Numbers {
public:
  explicit Numbers(const LoweringContext& context) : context_(context) {}

  // Computed with 32 bits; nothing for what is not known or not computed so.
  std::optional<int64_t> number(const Operand* operand, int depth = 0) const {
    if (!operand || depth > most_steps) return std::nullopt;
    if (operand->is(OperandKind::integer)) return operand->immediate;
    InstructionId id = context_.definition(operand);
    const Form* form = id ? context_.form(id) : nullptr;
    if (!form || context_.function.instructions[id].guard || is_float(form->type()) || bit_width(form->type()) != 32)
      return std::nullopt;
    std::optional<int64_t> a = number(context_.source(id, 0), depth + 1);
    if (!a || form->opcode == Opcode::mov) return a;
    std::optional<int64_t> b = number(context_.source(id, 1), depth + 1);
    if (!b) return std::nullopt;
    return compute(*form, *a, *b);
  }

  // Of a comparison.
  std::optional<bool> truth(ValueId predicate) const {
    InstructionId id = context_.values.definition(predicate);
    const Form* form = id ? context_.form(id) : nullptr;
    if (!form || form->opcode != Opcode::setp || is_float(form->type()) || bit_width(form->type()) != 32 ||
        context_.function.instructions[id].guard || form->has(Modifier::and_) || form->has(Modifier::or_) ||
        form->has(Modifier::xor_))
      return std::nullopt;
    std::optional<int64_t> a = number(context_.source(id, 0)), b = number(context_.source(id, 1));
    if (!a || !b) return std::nullopt;
    a = as_type(*form, *a);
    b = as_type(*form, *b);
    if (form->has(Modifier::eq)) return a == b;
    if (form->has(Modifier::ne)) return a != b;
    if (form->has(Modifier::lt)) return a < b;
    if (form->has(Modifier::le)) return a <= b;
    if (form->has(Modifier::gt)) return a > b;
    if (form->has(Modifier::ge)) return a >= b;
    return std::nullopt;
  }

private:
  static constexpr int most_steps = 16;

  static int64_t as_type(const Form& form, int64_t number) {
    if (is_signed(form.type())) return static_cast<int32_t>(number);
    return static_cast<uint32_t>(number);
  }

  static std::optional<int64_t> compute(const Form& form, int64_t a, int64_t b) {
    switch (form.opcode) {
    case Opcode::add:
      return as_type(form, a + b);
    case Opcode::sub:
      return as_type(form, a - b);
    case Opcode::and_:
      return as_type(form, a & b);
    case Opcode::shl:
      if (b < 0 || b > 31) return 0;
      return as_type(form, a << b);
    case Opcode::shr:
      if (b < 0 || b > 31) return std::nullopt;
      return as_type(form, a) >> b;
    default:
      return std::nullopt;
    }
  }

  const LoweringContext& context_;
};

} // namespace

KnownBranches known_branches(const LoweringContext& context) {
  const Function& function = context.function;
  const Numbers numbers(context);
  KnownBranches known{std::vector<bool>(function.blocks.size()), std::vector<bool>(function.blocks.size())};
  std::vector<BlockId> work{function.entry()};
  while (!work.empty()) {
    BlockId block = work.back();
    work.pop_back();
    if (known.reached[block.index()]) continue;
    known.reached[block.index()] = true;
    std::span<const EdgeId> edges = function.successors(block);
    InstructionId last = function.terminator(block);
    std::optional<bool> guard;
    if (edges.size() == 2 && last && function.is_opcode(last, Opcode::bra) && function.instructions[last].guard)
      guard = numbers.truth(function.instructions[last].guard);
    known.decided[block.index()] = guard.has_value();
    for (size_t i = 0; i < edges.size(); ++i) {
      // The first edge is the branch's, the second one leads on.
      const bool taken = guard && *guard != function.instructions[last].guard_negated;
      if (!guard || taken == (i == 0)) work.push_back(function.edges[edges[i]].to);
    }
  }
  return known;
}

} // namespace ptxrewrite::ir
