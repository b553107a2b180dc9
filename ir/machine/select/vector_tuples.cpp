// Determined by assembling stores of equal, repeated, reversed, joined and literal elements: see vector_tuples.h and
// tests/unit/ir/machine/vector_tuples_test.cpp, which has the figures.
#include "ir/machine/select/vector_tuples.h"

#include "ir/machine/fuse/constant_operands.h"
#include "ir/machine/prepare/rule_helpers.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

namespace ptxrewrite::ir {

namespace {

struct Element {
  ValueId value;       // invalid: a literal of the instruction
  int64_t literal = 0; // of the instruction
  bool is_literal = false, is_zero = false;
  auto operator<=>(const Element&) const = default;
};

using Tuple = std::vector<Element>;

// A place in a tuple, by index.
struct Home {
  size_t tuple = 0, place = 0;
};

class TupleMoves {
public:
  explicit TupleMoves(LoweringContext& context) : context_(context) {}

  void visit(InstructionId id) {
    const Form& form = *context_.form(id);
    if ((form.opcode != Opcode::ld && form.opcode != Opcode::st) || form.vector_width == 1 ||
        bit_width(form.type()) < 32 || is_param(form.space))
      return;
    const Tuple elements = elements_of(id);
    if (elements.empty()) return;
    if (form.opcode == Opcode::ld)
      settle(elements);
    else
      weigh_store(id, elements, bit_width(form.type()) / 32);
  }

private:
  Tuple elements_of(InstructionId id) const {
    Tuple elements;
    const std::span<const Operand> operands = context_.function.operands_of(id);
    for (size_t i = 0; i < operands.size(); i = next_sibling(operands, i)) {
      if (!operands[i].is(OperandKind::vector)) continue;
      for (size_t part = i + 1; part < next_sibling(operands, i); ++part)
        elements.push_back(element_of(operands[part]));
    }
    return elements;
  }

  Element element_of(const Operand& operand) const {
    if (!operand.is(OperandKind::value)) {
      const bool known = operand.is_constant();
      return {ValueId(), known ? operand.immediate : 0, true, known && operand.immediate == 0};
    }
    const ValueId value = operand.as_value();
    const bool is_literal = context_.source_of(value) == ValueSource::literal;
    return {value, 0, is_literal, is_literal && literal_is_zero(context_, value)};
  }

  bool is_read(const Element& element) const {
    return element.value && (context_.values.merges(element.value) ||
                             std::ranges::any_of(context_.values.readers(element.value), [&](InstructionId reader) {
                               return context_.needed[reader.index()];
                             }));
  }

  static bool repeats_a_value(const Tuple& elements) {
    std::set<ValueId> seen;
    return std::ranges::any_of(
        elements, [&](const Element& element) { return !element.is_literal && !seen.insert(element.value).second; });
  }

  // True if no element has to be moved: the other registers of its tuple hold elements of this store, at the same
  // places, or values that are not read any more.
  bool fits(const Tuple& elements) const {
    for (size_t place = 0; place < elements.size(); ++place) {
      const auto found = homes_.find(elements[place].value);
      if (found == homes_.end()) continue;
      const Tuple& tuple = tuples_[found->second.tuple];
      const size_t width = std::min(tuple.size(), elements.size());
      if (place % width != found->second.place % width) return false;
      const size_t first = place - place % width, first_of_tuple = found->second.place - found->second.place % width;
      for (size_t i = 0; i < width; ++i)
        if (tuple[first_of_tuple + i] != elements[first + i] && is_read(tuple[first_of_tuple + i])) return false;
    }
    return true;
  }

  // Two zeros are written by one instruction. weigh_constants has counted one move of a literal that is not zero and is
  // read through a register.
  unsigned moved_literals(const Tuple& elements) {
    unsigned moves = 0;
    for (size_t i = 0; i < elements.size(); ++i) {
      if (!elements[i].is_literal) continue;
      const bool with_previous = i % 2 == 1 && elements[i].is_zero && elements[i - 1].is_zero;
      const bool counted = !elements[i].is_zero && elements[i].value && counted_.insert(elements[i].value).second;
      if (!counted && !with_previous) ++moves;
    }
    return moves;
  }

  unsigned moved_values(const Tuple& elements) const {
    std::set<ValueId> fresh;
    return static_cast<unsigned>(std::ranges::count_if(elements, [&](const Element& element) {
      return !element.is_literal && (homes_.contains(element.value) || !fresh.insert(element.value).second);
    }));
  }

  // `words` of an element.
  void weigh_store(InstructionId id, const Tuple& elements, unsigned words) {
    if (std::ranges::all_of(elements, &Element::is_zero)) return;
    const bool repeats = repeats_a_value(elements);
    if (!repeats && !stored_.insert(elements).second) return;
    context_.move_constant(id, static_cast<uint16_t>(moved_literals(elements) * words));
    if (repeats || !fits(elements))
      context_.costs[id.index()].weight += static_cast<uint16_t>(moved_values(elements) * words);
    settle(elements);
  }

  // Registers of values that are in no tuple yet are allocated in this one.
  void settle(const Tuple& elements) {
    for (size_t place = 0; place < elements.size(); ++place)
      if (!elements[place].is_literal) homes_.try_emplace(elements[place].value, Home{tuples_.size(), place});
    tuples_.push_back(elements);
  }

  LoweringContext& context_;
  std::map<ValueId, Home> homes_;
  std::vector<Tuple> tuples_;
  std::set<Tuple> stored_;
  std::set<ValueId> counted_; // literals whose first move is part of weigh_constants
};

} // namespace

void weigh_vector_tuples(LoweringContext& context) {
  if (!context.facts.contents.accesses_vectors) return;
  TupleMoves moves(context);
  context.for_each_needed([&](InstructionId id) { moves.visit(id); });
}

} // namespace ptxrewrite::ir
