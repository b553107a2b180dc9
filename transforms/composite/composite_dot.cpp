// A sum of any shape is flattened into products, absolute differences and plain summands; sums and products of 32 bits
// wrap, so that their order does not matter. A row of family dot names four of them; the matching ones are removed from
// the sum, and the remaining ones are summed again as the third operand of dp4a or vabsdiff4.
#include "transforms/composite/composite_dot.h"

#include "transforms/composite/composite_bytes.h"
#include "transforms/composite/composite_match.h"

#include <algorithm>

namespace ptxrewrite::transforms::legal::composite {

namespace {

using ir::InstructionId;
using ir::Operand;
using ir::OperandKind;
using ir::ScalarType;

// Longer sums are not taken apart further: each of their instructions is the root of a sum itself.
constexpr size_t most_taken_apart = 128;

// A plain summand is a product with 1.
struct Summand {
  enum class Kind : uint8_t { plain, product, difference } kind = Kind::plain;
  Operand a, b;
  std::optional<ExtendedByte> a_byte, b_byte;
  std::string_view mnemonic; // for a difference: "sad.u32"
};

bool is_difference(std::string_view mnemonic) {
  return mnemonic == "sad.u32" || mnemonic == "sad.s32";
}
bool is_sum(std::string_view mnemonic) {
  return mnemonic == "add.s32" || mnemonic == "mad.lo.s32" || mnemonic == "mul.lo.s32" || is_difference(mnemonic);
}

class Sum {
public:
  Sum(Editor& editor, InstructionId root) : editor_(editor), root_(root) { take_apart(root); }

  // Are at least two summands results of instructions? Every row needs two that are extracted from registers.
  bool is_worth_trying() const;
  // Is a summand or factor a byte, or a difference of bytes? Every row has some.
  bool has_bytes() const;
  // Finds the summands and factors that are one byte of a register. Call before apply().
  void find_bytes();
  bool apply(const Rule& row);

private:
  void take_apart(InstructionId id);
  void add_summand(const Operand& operand);
  void add(Summand::Kind kind, const Operand& a, const Operand& b, std::string_view mnemonic);
  // Does the summand match the head of the row's term, with the existing bindings?
  bool fits(const Summand& summand, const RuleTerm& wanted, Match& bound, bool swapped) const;
  bool fits(const Operand& operand, const std::optional<ExtendedByte>& byte, const RuleTerm& wanted,
            Match& bound) const;
  bool reads_byte(const Operand& operand, unsigned depth = 2) const;
  size_t extractions(const Operand& operand, unsigned depth = 3) const;
  Operand rest(const std::vector<bool>& taken);
  void emit(const Rule& row, Match bound, const std::vector<bool>& taken);

  Editor& editor_;
  InstructionId root_;
  std::vector<Summand> summands_;
  size_t taken_apart_ = 0; // instructions
};

void Sum::add_summand(const Operand& operand) {
  const InstructionId id = editor_.computation(operand);
  const bool is_ours = id && taken_apart_ < most_taken_apart && editor_.readers(operand.as_value()) == 1 &&
                       editor_.function().instructions[id].block == editor_.function().instructions[root_].block;
  if (is_ours && is_sum(canonical(editor_.mnemonic(id)))) {
    take_apart(id);
    return;
  }
  if (operand.is(OperandKind::integer) && operand.immediate == 0) return;
  summands_.push_back({Summand::Kind::plain, operand, Operand::integer(1), std::nullopt, std::nullopt, {}});
}

void Sum::add(Summand::Kind kind, const Operand& a, const Operand& b, std::string_view mnemonic) {
  summands_.push_back({kind, a, b, std::nullopt, std::nullopt, mnemonic});
}

bool Sum::is_worth_trying() const {
  return std::ranges::count_if(summands_, [&](const Summand& summand) {
           return editor_.computation(summand.a) || editor_.computation(summand.b);
         }) >= 2;
}

void Sum::find_bytes() {
  for (Summand& summand : summands_) {
    summand.a_byte = as_extended_byte(editor_, summand.a);
    summand.b_byte = as_extended_byte(editor_, summand.b);
  }
}

bool is_of_bytes(std::string_view mnemonic) {
  return mnemonic == "sub.s32" || mnemonic == "abs.s32";
}

bool Sum::reads_byte(const Operand& operand, unsigned depth) const {
  if (as_extended_byte(editor_, operand)) return true;
  const InstructionId id = editor_.computation(operand);
  return id && depth > 0 && is_of_bytes(canonical(editor_.mnemonic(id))) &&
         std::ranges::any_of(editor_.sources(id), [&](const Operand& source) { return reads_byte(source, depth - 1); });
}

bool Sum::has_bytes() const {
  return std::ranges::any_of(summands_,
                             [&](const Summand& summand) { return reads_byte(summand.a) || reads_byte(summand.b); });
}

void Sum::take_apart(InstructionId id) {
  ++taken_apart_;
  const std::span<const Operand> view = editor_.sources(id);
  const std::vector<Operand> sources(view.begin(), view.end());
  const std::string_view mnemonic = canonical(editor_.mnemonic(id));
  if (mnemonic == "add.s32") {
    add_summand(sources[0]);
    add_summand(sources[1]);
    return;
  }
  add(is_difference(mnemonic) ? Summand::Kind::difference : Summand::Kind::product, sources[0], sources[1], mnemonic);
  if (sources.size() == 3) add_summand(sources[2]);
}

bool binds(Bindings<Operand>& variables, std::string_view name, const Operand& operand) {
  const Operand& bound = *variables.try_emplace(name, operand).first;
  return bound.kind == operand.kind && bound.id == operand.id;
}

// "byte2.s32(a)"
bool fits_byte(const std::optional<ExtendedByte>& byte, const RuleTerm& wanted, Match& bound) {
  if (!byte) return false;
  const unsigned index = static_cast<unsigned>(wanted.text[4] - '0');
  const bool is_signed = wanted.text.ends_with(".s32");
  return byte->index == index && byte->is_signed == is_signed &&
         binds(bound.variables, wanted.operands[0].text, byte->source);
}

bool Sum::fits(const Operand& operand, const std::optional<ExtendedByte>& byte, const RuleTerm& wanted,
               Match& bound) const {
  if (wanted.is_byte) return fits_byte(byte, wanted, bound);
  const InstructionId id = editor_.computation(operand);
  if (!id || editor_.mnemonic_id(id) != wanted.mnemonic) return false;
  const std::span<const Operand> sources = editor_.sources(id);
  if (sources.size() != wanted.operands.size()) return false;
  for (size_t i = 0; i < sources.size(); ++i)
    if (!fits(sources[i], as_extended_byte(editor_, sources[i]), wanted.operands[i], bound)) return false;
  return true;
}

bool Sum::fits(const Summand& summand, const RuleTerm& wanted, Match& bound, bool swapped) const {
  const RuleTerm &first = wanted.operands[0], &second = wanted.operands[1];
  const Operand &a = swapped ? summand.b : summand.a, &b = swapped ? summand.a : summand.b;
  if (!fits(a, swapped ? summand.b_byte : summand.a_byte, first, bound)) return false;
  if (wanted.text == "add.s32") return summand.kind == Summand::Kind::plain && !swapped;
  if (is_difference(wanted.text) ? summand.mnemonic != wanted.text : summand.kind == Summand::Kind::difference)
    return false;
  if (second.kind == RuleTerm::Kind::application)
    return fits(b, swapped ? summand.a_byte : summand.b_byte, second, bound);
  const std::optional<uint32_t> literal = editor_.literal(b);
  return literal && bound.literals.try_emplace(second.text, *literal).second;
}

// The number of instructions that extract bytes only for this summand.
size_t Sum::extractions(const Operand& operand, unsigned depth) const {
  const InstructionId id = editor_.computation(operand);
  if (!id || depth == 0 || editor_.literal(operand) || editor_.readers(operand.as_value()) != 1) return 0;
  size_t count = 1;
  const std::string_view mnemonic = canonical(editor_.mnemonic(id));
  if (is_of_bytes(mnemonic))
    for (const Operand& source : editor_.sources(id))
      count += extractions(source, depth - 1);
  return count;
}

// Matches the head of the row's term and then its remainder: mad.lo.s32(x, y, rest), sad.u32(x, y, rest), add.s32(x,
// rest).
bool Sum::apply(const Rule& row) {
  std::vector<bool> taken(summands_.size());
  Match bound;
  size_t found = 0, wanted = 0, removed = 0;
  for (const RuleTerm* term = &row.pattern; term->kind == RuleTerm::Kind::application; term = &term->operands.back()) {
    ++wanted;
    for (size_t i = 0; i < summands_.size() && found < wanted; ++i) {
      if (taken[i]) continue;
      for (const bool swapped : {false, true}) {
        Match tried = bound;
        if (taken[i] || !fits(summands_[i], *term, tried, swapped)) continue;
        bound = std::move(tried);
        taken[i] = true;
        ++found;
        removed += extractions(summands_[i].a) + extractions(summands_[i].b);
      }
    }
    const RuleTerm& second = term->operands[1];
    if (found == wanted) continue;
    // Only a product with a literal may be missing from the sum.
    if (second.kind != RuleTerm::Kind::name) return false;
    --wanted;
    bound.literals.try_emplace(second.text, 0);
  }
  // Compares one multiply-add for each product and its extractions with one instruction and possibly the move of a
  // literal.
  if (found < 2 || found + removed < 4) return false;
  const Meaning meaning{[&](const std::string& name) { return bound.literals.at(name); }, {}};
  for (const RuleExpression& condition : row.conditions)
    if (!evaluate(condition, meaning)) return false;
  emit(row, std::move(bound), taken);
  return true;
}

// Emits the sum of the summands that are not taken.
Operand Sum::rest(const std::vector<bool>& taken) {
  std::optional<Operand> sum;
  auto plain = [](Operand operand) {
    if (operand.is(OperandKind::value)) operand.flags = ir::OperandFlag::none;
    return operand;
  };
  for (size_t i = 0; i < summands_.size(); ++i) {
    if (taken[i]) continue;
    const Operand a = plain(summands_[i].a), b = plain(summands_[i].b);
    const bool is_plain = summands_[i].kind == Summand::Kind::plain;
    if (is_plain && !sum) {
      sum = a;
      continue;
    }
    const std::vector<Operand> operands =
        is_plain ? std::vector{*sum, a} : std::vector{a, b, sum.value_or(Operand::integer(0))};
    const bool is_difference = summands_[i].kind == Summand::Kind::difference;
    sum = Operand::value(editor_.emit(is_plain        ? "add.s32"
                                      : is_difference ? summands_[i].mnemonic
                                                      : std::string_view("mad.lo.s32"),
                                      ScalarType::b32, operands));
  }
  return sum.value_or(Operand::integer(0));
}

void Sum::emit(const Rule& row, Match bound, const std::vector<bool>& taken) {
  editor_.begin(root_);
  Operand sum = rest(taken);
  // The video instructions accept only registers.
  if (row.replacement.text.starts_with("vabsdiff4") && !sum.is(OperandKind::value))
    sum = Operand::value(editor_.emit("mov.b32", ScalarType::b32, std::vector{sum}));
  bound.variables.insert_or_assign(row.replacement.operands[2].text, sum);
  bound.inside = {root_};
  replace(editor_, row, bound);
}

} // namespace

const Rule* combine_products(Editor& editor, InstructionId root, std::span<const RuleRow* const> rows) {
  if (rows.empty() || !editor.is_computation(root)) return nullptr;
  const std::string_view mnemonic = canonical(editor.mnemonic(root));
  if (mnemonic == "mul.lo.s32" || !is_sum(mnemonic)) return nullptr;
  Sum sum(editor, root);
  if (!sum.is_worth_trying() || !sum.has_bytes()) return nullptr;
  sum.find_bytes();
  for (const RuleRow* row : rows)
    for (const Rule& rule : rules_of(*row))
      if (sum.apply(rule)) return &rule;
  return nullptr;
}

} // namespace ptxrewrite::transforms::legal::composite
