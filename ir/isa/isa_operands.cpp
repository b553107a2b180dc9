// Operand checks. The rules for register types are those of ptxas (facts: every operand of every form was tried with
// every register type), which in places are laxer than the manual's; an operand that ptxas accepts is never rejected.
#include "ir/isa/isa_operands.h"

#include <algorithm>

namespace ptxrewrite::ir {

using table::ImmediateRule;
using table::OperandTerm;

namespace {

constexpr uint64_t bit(ScalarType type) {
  return uint64_t(1) << static_cast<unsigned>(type);
}
static_assert(scalar_type_count <= 64);

template <class Predicate> uint64_t types_where(Predicate predicate) {
  uint64_t mask = 0;
  for (unsigned i = 1; i < scalar_type_count; ++i)
    if (predicate(ScalarType(i))) mask |= bit(ScalarType(i));
  return mask;
}

bool is_plain_number(ScalarType type) {
  return is_bit_type(type) || is_integer(type);
}

// Register types that are allowed where an instruction specifies type `type`.
uint64_t same_size_types(ScalarType type) {
  unsigned bits = bit_width(type);
  if (type == ScalarType::pred) return bit(type) | bit(ScalarType::f16x2);
  if (is_bit_type(type))
    return types_where([&](ScalarType t) { return t != ScalarType::pred && bit_width(t) == bits; });
  if (is_integer(type) || type == ScalarType::u16x2 || type == ScalarType::s16x2) {
    uint64_t mask = types_where([&](ScalarType t) { return is_plain_number(t) && bit_width(t) == bits; });
    return bits == 32 ? mask | bit(ScalarType::f16x2) : mask;
  }
  // Sub-byte and packed numbers are held in the next larger bit register.
  return types_where([&](ScalarType t) { return is_bit_type(t) && bit_width(t) == std::max(8u, bits); }) | bit(type);
}

uint64_t wider_types(ScalarType type) {
  unsigned bits = bit_width(type);
  auto large = [&](ScalarType t) { return t != ScalarType::pred && bit_width(t) >= bits && bit_width(t) <= 128; };
  if (is_bit_type(type)) return types_where(large);
  if (is_integer(type))
    return types_where([&](ScalarType t) { return large(t) && (is_plain_number(t) || t == ScalarType::f16x2); });
  return types_where([&](ScalarType t) { return large(t) && is_bit_type(t); }) | bit(type);
}

ScalarType twice_as_wide(ScalarType type) {
  switch (type) {
  case ScalarType::u16:
    return ScalarType::u32;
  case ScalarType::s16:
    return ScalarType::s32;
  case ScalarType::u32:
    return ScalarType::u64;
  case ScalarType::s32:
    return ScalarType::s64;
  default:
    return type;
  }
}

// Types that may hold an address: integers and bits of the sizes that `base` allows.
uint64_t base_types(char base) {
  if (base == 'x') return ~uint64_t(0);
  return types_where([&](ScalarType t) {
    if (!is_plain_number(t)) return false;
    switch (bit_width(t)) {
    case 16:
      return base == 'a';
    case 32:
      return base == 'a' || base == 'b' || base == 't';
    case 64:
      return base == 'a' || base == 'b' || base == 'h';
    default:
      return false;
    }
  });
}

// The number in a word: 4 for .v4 and .x4, 2 for .2d.
unsigned number_of(Modifier word) {
  unsigned number = 0;
  for (char c : spelling(word))
    if (c >= '0' && c <= '9') number = number * 10 + static_cast<unsigned>(c - '0');
  return number;
}

// The number of elements of a vector whose size a slot's word determines.
unsigned element_count(const OperandTerm& term, Modifier word) {
  const unsigned number = number_of(word);
  switch (term.count_operation) {
  case '*':
    return number * term.count_amount;
  case '/':
    return (number + term.count_amount - 1) / term.count_amount;
  case '-':
    return number - std::min(number, term.count_amount);
  default:
    return number;
  }
}

class ShapeCompiler {
public:
  ShapeCompiler(const table::Match& match, std::span<const Modifier> words, StateSpace space)
      : match_(match), words_(words), space_(space) {}

  OperandShape compile(const table::ShapeText& text) {
    OperandShape shape;
    shape.definitions = text.definitions;
    for (size_t i = 0; i < text.operands.size(); ++i) {
      const auto& operand = text.operands[i];
      if (!is_present(operand)) continue;
      is_source_ = i >= text.definitions;
      shape.operands.push_back(pattern(operand));
    }
    return shape;
  }

private:
  bool is_present(const table::OperandText& operand) const {
    return operand.condition == Modifier::none ||
           std::find(words_.begin(), words_.end(), operand.condition) != words_.end();
  }

  OperandPattern pattern(const table::OperandText& text) {
    OperandPattern result;
    for (const OperandTerm& term : text.alternatives)
      add(term, result);
    // If the instruction type decides, integers accept no floating-point constants and vice versa.
    for (const OperandTerm& term : text.alternatives) {
      if (term.kind == SummaryKind::register_ && term.slot.empty()) limit_float_constants(term.type, result);
      if (term.slot.empty() || term.kind == SummaryKind::address) continue;
      Modifier word = slot_word(term.kind == SummaryKind::register_ ? term.slot : element_slot(term));
      if (!is_type(word)) continue;
      ScalarType type = ScalarType(word);
      SummaryKind wrong = is_float(type) ? SummaryKind::integer_immediate
                          : is_integer(type) || (is_bit_type(type) && bit_width(type) < 32)
                              ? SummaryKind::float_immediate
                              : SummaryKind::string;
      std::erase_if(result.alternatives, [&](const Alternative& alternative) {
        return alternative.kind == wrong ||
               (alternative.kind == SummaryKind::float_immediate && is_float(type) && bit_width(type) < 32);
      });
      limit_float_constants(type, result);
    }
    return result;
  }

  // For bit types, a floating-point constant has its own size: 32 bits for 0f..., 64 for 0d... and decimal ones.
  static void limit_float_constants(ScalarType type, OperandPattern& pattern_of) {
    if (!is_bit_type(type)) return;
    for (Alternative& alternative : pattern_of.alternatives)
      if (alternative.kind == SummaryKind::float_immediate)
        alternative.type = bit_width(type) == 64 ? ScalarType::f64 : ScalarType::f32;
  }

  // The type slot of `{vec type}`.
  static std::string_view element_slot(const OperandTerm& term) {
    const auto& alternatives = term.elements.front().alternatives;
    return alternatives.empty() ? std::string_view() : alternatives.front().slot;
  }

  Modifier slot_word(std::string_view name) const {
    for (size_t i = 0; i < match_.row->slots.size(); ++i)
      if (match_.row->slots[i].name == name) return match_.binding[i];
    return Modifier::none;
  }

  ScalarType first_type() const {
    for (Modifier word : words_)
      if (is_type(word)) return ScalarType(word);
    return ScalarType::none;
  }

  void add(const OperandTerm& term, OperandPattern& pattern_to) {
    Alternative alternative;
    alternative.kind = term.kind;
    alternative.negatable = term.negatable;
    alternative.minus = term.minus;
    alternative.minus_required = term.minus_required;
    alternative.selector = term.selector;
    switch (term.kind) {
    case SummaryKind::register_:
      register_types(term, alternative);
      break;
    case SummaryKind::integer_immediate:
      alternative.rule = term.rule;
      alternative.values = &term.values;
      break;
    case SummaryKind::address:
      address(term, alternative);
      break;
    case SummaryKind::vector:
      vector(term, pattern_to);
      return;
    case SummaryKind::predicate_pair:
      for (const auto& element : term.elements)
        alternative.elements.push_back(pattern(element));
      break;
    default:
      break;
    }
    pattern_to.alternatives.push_back(std::move(alternative));
  }

  void register_types(const OperandTerm& term, Alternative& alternative) {
    ScalarType type = term.type;
    if (!term.slot.empty()) {
      Modifier word = slot_word(term.slot);
      type = is_type(word) ? ScalarType(word) : ScalarType::none;
    }
    if (term.twice) type = twice_as_wide(type);
    alternative.type = type;
    alternative.types = term.wider ? wider_types(type) | same_size_types(type) : same_size_types(type);
  }

  void address(const OperandTerm& term, Alternative& alternative) {
    alternative.types = base_types(term.base);
    alternative.unified = term.unified;
    alternative.constant_base = term.constant_base || term.base == 'x' || space_ == StateSpace::local;
    alternative.symbol_base = term.base != 't';
    // If a row lists several shapes of the same bracket, pattern() expands `a|b` inside it.
    for (const auto& element : term.elements)
      if (is_present(element)) alternative.elements.push_back(pattern(element));
  }

  void vector(const OperandTerm& term, OperandPattern& pattern_to) {
    Alternative alternative;
    alternative.kind = SummaryKind::vector;
    alternative.literal_elements = is_source_;
    InstructionClass kind = match_.row->text->kind;
    // Among sources, only 256-bit stores and `mov.b32` (including vectors) accept `_` for an unused element.
    bool wide_store =
        kind == InstructionClass::store && (slot_word(term.slot) == Modifier::v8 ||
                                            (slot_word(term.slot) == Modifier::v4 && bit_width(first_type()) == 64));
    alternative.sink_elements =
        !is_source_ || wide_store || (match_.row->text->opcode == Opcode::mov && first_type() == ScalarType::b32);
    for (const auto& element : term.elements)
      alternative.elements.push_back(pattern(element));
    if (!term.slot.empty()) {
      Modifier word = slot_word(term.slot);
      if (word == Modifier::none) { // no .v2: a plain operand
        for (const Alternative& element : alternative.elements.front().alternatives)
          pattern_to.alternatives.push_back(element);
        return;
      }
      alternative.count = static_cast<uint16_t>(element_count(term, word));
    }
    if (!term.slot.empty() || !term.counts.empty()) {
      alternative.repeated = true;
      // Where any 32-bit type is allowed, ptxas accepts predicates, too.
      for (Alternative& element : alternative.elements.front().alternatives)
        if (element.kind == SummaryKind::register_ && element.type == ScalarType::b32 && term.slot.empty())
          element.types |= bit(ScalarType::pred);
      // ptxas accepts integers of the same size as floating-point elements of a vector.
      for (Alternative& element : alternative.elements.front().alternatives)
        if (element.kind == SummaryKind::register_ && is_float(element.type))
          element.types |= types_where([&](ScalarType t) {
            return is_integer(t) && bit_width(t) == bit_width(element.type) && bit_width(t) >= 32;
          });
    }
    if (term.counts.empty()) {
      if (!alternative.repeated) alternative.count = static_cast<uint16_t>(alternative.elements.size());
      pattern_to.alternatives.push_back(std::move(alternative));
      return;
    }
    for (unsigned count : term.counts) {
      alternative.count = static_cast<uint16_t>(count);
      pattern_to.alternatives.push_back(alternative);
    }
  }

  const table::Match& match_;
  std::span<const Modifier> words_;
  StateSpace space_;
  bool is_source_ = false;
};

bool immediate_fits(const Alternative& alternative, uint64_t value) {
  auto number = static_cast<int64_t>(value);
  switch (alternative.rule) {
  case ImmediateRule::any:
    return true;
  case ImmediateRule::range:
    return number >= (*alternative.values)[0] && number <= (*alternative.values)[1];
  case ImmediateRule::set:
    return std::find(alternative.values->begin(), alternative.values->end(), number) != alternative.values->end();
  case ImmediateRule::multiple:
    return number % (*alternative.values)[0] == 0;
  }
  return true;
}

bool fits(const OperandPattern& pattern, const OperandSummary& operand);

bool register_fits(const Alternative& alternative, const OperandSummary& operand) {
  if (operand.vector_width != 1) return false;
  if (operand.negated && !alternative.negatable) return false;
  if (operand.minus ? !alternative.minus : alternative.minus_required) return false;
  if (operand.byte_selector && !alternative.selector) return false;
  if ((alternative.types & bit(operand.type)) != 0) return true;
  return operand.hardware && is_plain_number(alternative.type);
}

bool address_fits(const Alternative& alternative, const OperandSummary& operand) {
  if (operand.unified != alternative.unified) return false;
  if (operand.base == AddressBase::register_ && (alternative.types & bit(operand.type)) == 0 && !operand.hardware)
    return false;
  if (operand.base == AddressBase::immediate && !alternative.constant_base) return false;
  if (operand.base == AddressBase::symbol && !alternative.symbol_base) return false;
  if (operand.elements.size() != alternative.elements.size()) return false;
  for (size_t i = 0; i < alternative.elements.size(); ++i)
    if (!fits(alternative.elements[i], operand.elements[i])) return false;
  return true;
}

// ptxas checks the first register of a vector against the instruction, and the others against the first.
bool goes_with(ScalarType first, const OperandSummary& element) {
  if (element.negated || element.minus || element.vector_width != 1) return false;
  if (first == ScalarType::pred) return element.type == first || bit_width(element.type) == 32;
  if (element.type == ScalarType::pred) return bit_width(first) == 32 && !is_float(first);
  if (bit_width(element.type) != bit_width(first)) return false;
  return !is_float(first) || element.type == first || is_bit_type(element.type);
}

bool vector_fits(const Alternative& alternative, const OperandSummary& operand) {
  if (operand.kind == SummaryKind::register_) // a register declared .v2 or .v4, used whole
    return operand.vector_width == alternative.count && operand.vector_width > 1 && alternative.repeated &&
           std::any_of(alternative.elements.front().alternatives.begin(),
                       alternative.elements.front().alternatives.end(),
                       [&](const Alternative& element) { return (element.types & bit(operand.type)) != 0; });
  if (operand.elements.size() != alternative.count) return false;
  ScalarType first = ScalarType::none; // type of the first register
  bool literals = false;
  bool all_sinks = true;
  for (size_t i = 0; i < operand.elements.size(); ++i) {
    const OperandSummary& element = operand.elements[i];
    if (element.kind == SummaryKind::sink && alternative.sink_elements) continue;
    all_sinks = false;
    bool literal = element.kind == SummaryKind::integer_immediate || element.kind == SummaryKind::float_immediate;
    if (literal && alternative.literal_elements) {
      literals = true;
      continue;
    }
    bool is_register = element.kind == SummaryKind::register_;
    if (is_register && first != ScalarType::none) {
      if (!goes_with(first, element)) return false;
    } else if (!(is_register && literals && is_plain_number(element.type))) {
      if (!fits(alternative.repeated ? alternative.elements.front() : alternative.elements[i], element)) return false;
      if (is_register && alternative.repeated) first = element.type;
    }
  }
  return !all_sinks;
}

bool fits(const Alternative& alternative, const OperandSummary& operand) {
  if (alternative.kind == SummaryKind::vector &&
      (operand.kind == SummaryKind::vector || operand.kind == SummaryKind::register_))
    return vector_fits(alternative, operand);
  if (alternative.kind != operand.kind) return false;
  switch (operand.kind) {
  case SummaryKind::register_:
    return register_fits(alternative, operand);
  case SummaryKind::integer_immediate:
    return immediate_fits(alternative, operand.value);
  case SummaryKind::float_immediate:
    return alternative.type == ScalarType::none || alternative.type == operand.type;
  case SummaryKind::address:
    return address_fits(alternative, operand);
  case SummaryKind::predicate_pair:
    return operand.elements.size() == 2 && alternative.elements.size() == 2 &&
           fits(alternative.elements[0], operand.elements[0]) && fits(alternative.elements[1], operand.elements[1]);
  default:
    return true;
  }
}

bool fits(const OperandPattern& pattern, const OperandSummary& operand) {
  for (const Alternative& alternative : pattern.alternatives)
    if (fits(alternative, operand)) return true;
  return false;
}

std::string describe(const OperandSummary& operand) {
  switch (operand.kind) {
  case SummaryKind::register_: {
    std::string text = "a ." + std::string(spelling(operand.type)) + " register";
    if (operand.vector_width > 1) text = "a .v" + std::to_string(operand.vector_width) + " register";
    if (operand.negated) text = "a negated predicate";
    if (operand.minus) text = "a register with a minus";
    return text;
  }
  case SummaryKind::integer_immediate:
    return "the constant " + std::to_string(static_cast<int64_t>(operand.value));
  case SummaryKind::float_immediate:
    return "a floating-point constant of " + std::to_string(bit_width(operand.type)) + " bits";
  case SummaryKind::sink:
    return "the sink '_'";
  case SummaryKind::address: {
    std::string text = "an address";
    if (operand.base == AddressBase::immediate) text = "a constant address";
    if (operand.base == AddressBase::register_)
      text = "an address in a ." + std::string(spelling(operand.type)) + " register";
    for (const OperandSummary& part : operand.elements)
      text += (&part == operand.elements.data() ? " with " : " and ") + describe(part);
    return text;
  }
  case SummaryKind::vector:
    return "a vector of " + std::to_string(operand.elements.size());
  case SummaryKind::predicate_pair:
    return "a pair";
  case SummaryKind::list:
    return "a parenthesised list";
  case SummaryKind::symbol:
    return "a symbol";
  case SummaryKind::label:
    return "a label";
  case SummaryKind::special_register:
    return "a special register";
  case SummaryKind::string:
    return "this";
  }
  return "this";
}

std::string describe(const Alternative& alternative) {
  switch (alternative.kind) {
  case SummaryKind::register_:
    return "a register for ." + std::string(spelling(alternative.type));
  case SummaryKind::integer_immediate: {
    const auto* values = alternative.values;
    switch (alternative.rule) {
    case ImmediateRule::any:
      return "a constant";
    case ImmediateRule::range:
      return "a constant in [" + std::to_string((*values)[0]) + ".." + std::to_string((*values)[1]) + "]";
    case ImmediateRule::multiple:
      return "a multiple of " + std::to_string((*values)[0]);
    case ImmediateRule::set: {
      std::string text = "the constant " + std::to_string(values->front());
      for (size_t i = 1; i < values->size(); ++i)
        text += " or " + std::to_string((*values)[i]);
      return text;
    }
    }
    return "a constant";
  }
  case SummaryKind::float_immediate:
    return alternative.type == ScalarType::none
               ? "a floating-point constant"
               : "a floating-point constant of " + std::to_string(bit_width(alternative.type)) + " bits";
  case SummaryKind::sink:
    return "'_'";
  case SummaryKind::address: {
    std::string text = "an address";
    for (const OperandPattern& part : alternative.elements)
      if (!part.alternatives.empty())
        text += (&part == &alternative.elements.front() ? " with " : " and ") + describe(part.alternatives.front());
    return text;
  }
  case SummaryKind::vector:
    return "a vector of " + std::to_string(alternative.count);
  case SummaryKind::predicate_pair:
    return "a pair a|b";
  case SummaryKind::list:
    return "a parenthesised list";
  case SummaryKind::symbol:
    return "a symbol";
  case SummaryKind::label:
    return "a label";
  case SummaryKind::special_register:
    return "a special register";
  case SummaryKind::string:
    break;
  }
  return "something else";
}

OperandError explain(const Form& form, std::span<const OperandSummary> operands) {
  OperandError error;
  // The list with the longest matching prefix gives the most useful message.
  const OperandShape* best = nullptr;
  size_t best_index = 0;
  for (const OperandShape& shape : form.shapes) {
    if (shape.operands.size() != operands.size()) continue;
    size_t index = 0;
    while (index < operands.size() && fits(shape.operands[index], operands[index]))
      ++index;
    if (best == nullptr || index > best_index) {
      best = &shape;
      best_index = index;
    }
  }
  std::string name = "'" + std::string(form.mnemonic) + "'";
  if (best == nullptr) {
    std::vector<size_t> counts;
    for (const OperandShape& shape : form.shapes)
      counts.push_back(shape.operands.size());
    std::sort(counts.begin(), counts.end());
    counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
    std::string wanted;
    for (size_t i = 0; i < counts.size(); ++i)
      wanted += (i == 0 ? "" : " or ") + std::to_string(counts[i]);
    error.message = name + " takes " + wanted + (wanted == "1" ? " operand" : " operands") + ", not " +
                    std::to_string(operands.size());
    return error;
  }
  error.operand_index = static_cast<int>(best_index);
  const OperandPattern& pattern = best->operands[best_index];
  std::string wanted;
  std::vector<std::string> seen;
  for (const Alternative& alternative : pattern.alternatives) {
    std::string text = describe(alternative);
    if (std::find(seen.begin(), seen.end(), text) != seen.end() || seen.size() >= 4) continue;
    wanted += (seen.empty() ? "" : " or ") + text;
    seen.push_back(std::move(text));
  }
  error.message = "operand " + std::to_string(best_index + 1) + " of " + name + " must be " + wanted + ", not " +
                  describe(operands[best_index]);
  return error;
}

// True if a `mov` of this type may read the special register: one of the register's listed readers has its size.
bool reads_special_register(const Form& form, const SpecialRegisterInfo& special, bool whole_vector) {
  std::string_view readers = special.readers;
  while (!readers.empty()) {
    size_t end = std::min(readers.find(' '), readers.size());
    std::string_view reader = readers.substr(0, end);
    readers.remove_prefix(std::min(end + 1, readers.size()));
    if (!reader.starts_with("mov.") || reader.starts_with("mov.v4.") != whole_vector) continue;
    auto type = parse_type(reader.substr(reader.rfind('.')));
    if (type && bit_width(*type) == bit_width(form.type())) return true;
  }
  return false;
}

std::optional<OperandError> check_special_register(const Form& form, std::span<const OperandSummary> operands) {
  const OperandSummary& source = operands.back();
  if (source.kind != SummaryKind::special_register) return std::nullopt;
  const SpecialRegisterInfo& special = info(SpecialRegister(source.special));
  if (reads_special_register(form, special, form.vector_width > 1)) return std::nullopt;
  OperandError error;
  error.operand_index = static_cast<int>(operands.size()) - 1;
  error.message.append("'").append(form.mnemonic).append("' cannot read ").append(special.name);
  return error;
}

} // namespace

bool operator==(const Alternative& a, const Alternative& b) {
  auto values_equal = [&] { return a.values == b.values || (a.values && b.values && *a.values == *b.values); };
  return a.kind == b.kind && a.type == b.type && a.types == b.types && a.negatable == b.negatable &&
         a.minus == b.minus && a.minus_required == b.minus_required && a.selector == b.selector &&
         a.unified == b.unified && a.constant_base == b.constant_base && a.symbol_base == b.symbol_base &&
         a.rule == b.rule && values_equal() && a.repeated == b.repeated && a.literal_elements == b.literal_elements &&
         a.sink_elements == b.sink_elements && a.count == b.count && a.elements == b.elements;
}

std::vector<OperandShape> compile_shapes(std::span<const table::Match> matches, std::span<const Modifier> words,
                                         StateSpace space) {
  std::vector<OperandShape> shapes;
  for (const table::Match& match : matches) {
    ShapeCompiler compiler(match, words, space);
    for (const auto& text : table::shapes_of(*match.row)) {
      OperandShape shape = compiler.compile(text);
      auto known = std::ranges::find_if(shapes, [&](const OperandShape& other) {
        return other.operands == shape.operands && other.definitions == shape.definitions;
      });
      if (known == shapes.end()) known = shapes.insert(known, std::move(shape));
      known->rows.push_back(match.row);
    }
  }
  const bool rows_differ = std::ranges::any_of(matches, [&](const table::Match& match) {
    const auto &text = *match.row->text, &first = *matches.front().row->text;
    return text.version != first.version || text.targets != first.targets;
  });
  for (OperandShape& shape : shapes)
    shape.rows_differ = rows_differ;
  return shapes;
}

bool fits(const OperandShape& shape, std::span<const OperandSummary> operands) {
  if (shape.operands.size() != operands.size()) return false;
  for (size_t i = 0; i < operands.size(); ++i)
    if (!fits(shape.operands[i], operands[i])) return false;
  return true;
}

// Returns the operand list of a form that the operands match; nullptr if there is none.
static const OperandShape* fitting_shape(const Form& form, std::span<const OperandSummary> operands) {
  for (const OperandShape& shape : form.shapes)
    if (fits(shape, operands)) return &shape;
  return nullptr;
}

std::optional<OperandError> check_operands(const Form& form, std::span<const OperandSummary> operands) {
  if (form.opaque) return std::nullopt;
  if (!fitting_shape(form, operands)) return explain(form, operands);
  return form.opcode == Opcode::mov ? check_special_register(form, operands) : std::nullopt;
}

unsigned definition_count(const Form& form, std::span<const OperandSummary> operands) {
  if (form.effects.call) return !operands.empty() && operands.front().kind == SummaryKind::list ? 1 : 0;
  if (!form.definitions_vary) return form.definitions;
  const OperandShape* shape = fitting_shape(form, operands);
  return shape ? shape->definitions : form.definitions;
}

} // namespace ptxrewrite::ir
