#include "transforms/composite/composite_match.h"

#include "transforms/composite/composite_bytes.h"

#include "ir/core/module.h"
#include "ir/machine/figures/machine.h"

#include <algorithm>
#include <map>

namespace ptxrewrite::transforms::legal::composite {

using ir::InstructionId;
using ir::Operand;
using ir::OperandKind;
using ir::ScalarType;
using ir::ValueId;

namespace {

// One match attempt, with one operand order for each commutative operation.
class Matcher {
public:
  Matcher(const Editor& editor, unsigned orders, const Match& bound)
      : editor_(editor), orders_(orders), match_(bound) {}

  bool match(const RuleTerm& term, InstructionId id);
  unsigned commuting() const { return commuting_; }
  Match take() { return std::move(match_); }
  const Match& found() const { return match_; }

private:
  bool match(const RuleTerm& term, const Operand& operand);
  bool match_byte(const RuleTerm& term, const Operand& operand);
  bool is_suitable(const RuleTerm& variable, const Operand& operand) const;

  const Editor& editor_;
  unsigned orders_;
  unsigned commuting_ = 0; // commutative operations visited so far
  bool is_float_ = false;
  Match match_;
};

// Integer instructions do not accept registers declared as floating-point ones.
bool Matcher::is_suitable(const RuleTerm& variable, const Operand& operand) const {
  if (operand.selector != ir::no_selector || operand.has(ir::OperandFlag::negated)) return false;
  if (operand.is(OperandKind::integer)) return variable.bits > 1;
  if (!operand.is(OperandKind::value)) return false;
  const ir::Value& value = editor_.function().values[operand.as_value()];
  if (value.vector_width != 1 || value.is_undefined || value.register_class != ir::RegisterClass::general) return false;
  const bool right_kind =
      is_float_ ? value.type == ScalarType::f32 || value.type == ScalarType::b32 : !ir::is_float(value.type);
  return right_kind && ir::bit_width(value.type) == variable.bits;
}

bool Matcher::match(const RuleTerm& term, const Operand& operand) {
  switch (term.kind) {
  case RuleTerm::Kind::variable: {
    if (!is_suitable(term, operand)) return false;
    const auto [row, is_new] = match_.variables.try_emplace(term.text, operand);
    return is_new || (row->kind == operand.kind && row->id == operand.id && row->immediate == operand.immediate);
  }
  case RuleTerm::Kind::literal:
    return editor_.literal(operand) == term.number;
  case RuleTerm::Kind::name: {
    const std::optional<uint32_t> number = editor_.literal(operand);
    return number && *match_.literals.try_emplace(term.text, *number).first == *number;
  }
  case RuleTerm::Kind::application: {
    if (term.is_byte) return match_byte(term, operand);
    const InstructionId id = editor_.computation(operand);
    return id && match(term, id);
  }
  case RuleTerm::Kind::computed:
    break;
  }
  return false;
}

// Matches byte2.u32(a), and byte2.u16(a) in a 16-bit register.
bool Matcher::match_byte(const RuleTerm& term, const Operand& operand) {
  const std::optional<ExtendedByte> byte = as_extended_byte(editor_, operand);
  const unsigned bits = term.text.ends_with(".u16") ? 16 : 32;
  return byte && ir::bit_width(editor_.function().values[operand.as_value()].type) == bits &&
         byte->index == static_cast<unsigned>(term.text[4] - '0') && byte->is_signed == term.text.ends_with(".s32") &&
         match(term.operands[0], byte->source);
}

bool Matcher::match(const RuleTerm& term, InstructionId id) {
  if (editor_.mnemonic_id(id) != term.mnemonic) return false;
  is_float_ = term.is_float;
  const std::span<const Operand> sources = editor_.sources(id);
  if (sources.size() != term.operands.size()) return false;
  if (std::ranges::find(match_.inside, id) == match_.inside.end()) match_.inside.push_back(id);
  const bool swap = term.commutes && (orders_ >> commuting_++ & 1);
  for (size_t i = 0; i < sources.size(); ++i)
    if (!match(term.operands[i], sources[swap && i < 2 ? 1 - i : i])) return false;
  return true;
}

bool holds(const Editor& editor, const Match& found, std::span<const RuleExpression> conditions) {
  const Meaning meaning{[&](const std::string& name) { return found.literals.at(name); },
                        [&](const std::string& what, const std::string& variable, uint32_t number) {
                          const Operand& operand = found.variables.at(variable);
                          if (what == "fits") return editor.fits(operand, number);
                          return (editor.known_zeros(operand) & number) == number;
                        }};
  return std::ranges::all_of(conditions, [&](const RuleExpression& one) { return evaluate(one, meaning) != 0; });
}

bool may_match(const Editor& editor, const RuleTerm& term, InstructionId id);

bool may_match(const Editor& editor, const RuleTerm& term, const Operand& operand) {
  switch (term.kind) {
  case RuleTerm::Kind::variable:
    return true;
  case RuleTerm::Kind::literal:
    return editor.literal(operand) == term.number;
  case RuleTerm::Kind::name:
    return editor.literal(operand).has_value();
  case RuleTerm::Kind::application: {
    const InstructionId id = editor.computation(operand);
    return id && (term.is_byte || may_match(editor, term, id));
  }
  case RuleTerm::Kind::computed:
    break;
  }
  return false;
}

// A necessary condition for a match: opcodes and literals fit, and each operand matches by itself, in either order for
// commutative operations; bindings of variables are not compared. Rejects most rows without an allocation.
bool may_match(const Editor& editor, const RuleTerm& term, InstructionId id) {
  if (editor.mnemonic_id(id) != term.mnemonic) return false;
  const std::span<const Operand> sources = editor.sources(id);
  if (sources.size() != term.operands.size()) return false;
  const bool swaps = sources.size() > 1 && term.commutes;
  for (size_t i = 0; i < sources.size(); ++i)
    if (!may_match(editor, term.operands[i], sources[i]) &&
        !(swaps && i < 2 && may_match(editor, term.operands[i], sources[1 - i])))
      return false;
  return true;
}

// The type of a result register: a bit type, which every instruction accepts.
ScalarType result_type(std::string_view mnemonic) {
  const ir::Form& form = ir::form(ir::known_form(mnemonic));
  unsigned bits = ir::bit_width(form.type(0));
  if (form.has(ir::Modifier::wide)) bits *= 2;
  if (ir::is_float(form.type(0))) return form.type(0);
  return bits == 64 ? ScalarType::b64 : bits == 16 ? ScalarType::b16 : ScalarType::b32;
}

class Replacer {
public:
  Replacer(Editor& editor, const Match& match) : editor_(editor), match_(match) {}

  void run(const RuleTerm& replacement) {
    editor_.begin(match_.inside.front());
    if (replacement.text == "pack.b64") {
      const Operand low = operand(replacement.operands[0], {}), high = operand(replacement.operands[1], {});
      editor_.finish_packed(low.as_value(), high.as_value());
      return;
    }
    const std::vector<Operand> sources = operands(replacement);
    editor_.finish(replacement.text, sources);
  }

private:
  std::vector<Operand> operands(const RuleTerm& term) {
    std::vector<Operand> list;
    for (const RuleTerm& inside : term.operands)
      list.push_back(operand(inside, term.text));
    return list;
  }
  Operand operand(const RuleTerm& term, std::string_view reader);
  Operand half(const RuleTerm& term);

  Editor& editor_;
  const Match& match_;
  std::map<std::string, std::pair<ValueId, ValueId>> halves_;
};

Operand Replacer::half(const RuleTerm& term) {
  const std::string& variable = term.operands[0].text;
  auto row = halves_.find(variable);
  if (row == halves_.end()) row = halves_.emplace(variable, editor_.emit_halves(match_.variables.at(variable))).first;
  return Operand::value(term.text == "low.b64" ? row->second.first : row->second.second);
}

Operand Replacer::operand(const RuleTerm& term, std::string_view reader) {
  switch (term.kind) {
  case RuleTerm::Kind::variable: {
    Operand bound = match_.variables.at(term.text);
    bound.flags = bound.is(OperandKind::integer) ? bound.flags : ir::OperandFlag::none;
    return bound;
  }
  case RuleTerm::Kind::literal:
    return literal_operand(reader, term.number);
  case RuleTerm::Kind::name:
    return literal_operand(reader, match_.literals.at(term.text));
  case RuleTerm::Kind::computed: {
    const Meaning meaning{[&](const std::string& name) { return match_.literals.at(name); }, {}};
    return literal_operand(reader, evaluate(term.expression, meaning));
  }
  case RuleTerm::Kind::application:
    break;
  }
  if (term.text == "low.b64" || term.text == "high.b64") return half(term);
  const std::vector<Operand> sources = operands(term);
  return Operand::value(editor_.emit(term.text, result_type(term.text), sources));
}

} // namespace

Operand literal_operand(std::string_view mnemonic, uint32_t number) {
  for (std::string_view bitwise : {"and.", "or.", "xor.", "lop3.", "prmt.", "dp4a."})
    if (mnemonic.starts_with(bitwise) && number > 9) {
      Operand operand = Operand::integer(number);
      operand.flags = ir::OperandFlag::hexadecimal;
      return operand;
    }
  return Operand::integer(static_cast<int32_t>(number));
}

std::optional<Match> match(const Editor& editor, const RuleTerm& pattern, std::span<const RuleExpression> conditions,
                           InstructionId root, const Match& bound) {
  if (!editor.is_computation(root) || !may_match(editor, pattern, root)) return std::nullopt;
  unsigned commuting = 0;
  for (unsigned orders = 0; orders < 1u << commuting || orders == 0; ++orders) {
    Matcher matcher(editor, orders, bound);
    const bool found = matcher.match(pattern, root);
    if (found && holds(editor, matcher.found(), conditions)) return matcher.take();
    // An attempt that failed early may not have visited all of them.
    commuting = std::max(commuting, matcher.commuting());
  }
  return std::nullopt;
}

void replace(Editor& editor, const Rule& rule, const Match& match) {
  Replacer(editor, match).run(rule.replacement);
}

int benefit(const Editor& editor, const Rule& rule, const Match& match) {
  const int all = static_cast<int>(editor.weight(match.inside));
  const int dying = static_cast<int>(editor.dying(match.inside.front(), match.inside));
  return static_cast<int>(rule.saves) - (all - dying);
}

bool is_available(const ir::Module& module, unsigned version, unsigned target) {
  if (module.version_major * 10u + module.version_minor < version) return false;
  return std::ranges::any_of(module.targets,
                             [&](Symbol name) { return ir::compute_capability_of(module.text(name)) >= target; });
}

} // namespace ptxrewrite::transforms::legal::composite
