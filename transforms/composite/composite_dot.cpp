// A sum of any shape is flattened into products and summands; sums and products of 32 bits wrap, so that their order
// does not matter. A row of family dot names four products; those that the sum has are taken out of it, and what is
// left is summed up again as dp4a's third operand.
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

// A summand is a product by 1.
struct Product {
  Operand a, b;
  std::optional<ExtendedByte> a_byte, b_byte;
  bool is_plain = false;
};

class Sum {
public:
  Sum(Editor& editor, InstructionId root) : editor_(editor), root_(root) { take_apart(root); }

  bool apply(const Rule& row);

private:
  void take_apart(InstructionId id);
  void add_summand(const Operand& operand);
  void add_product(const Operand& a, const Operand& b);
  // Whether the product is the row's, with what is bound so far.
  bool fits(const Product& product, const Term& wanted, Match& bound, bool swapped) const;
  void emit(const Rule& row, const Match& bound, const std::vector<bool>& taken);

  Editor& editor_;
  InstructionId root_;
  std::vector<Product> products_;
};

void Sum::add_summand(const Operand& operand) {
  const InstructionId id = editor_.computation(operand);
  const bool is_ours = id && editor_.readers(operand.as_value()) == 1 &&
                       editor_.function().instructions[id].block == editor_.function().instructions[root_].block;
  const std::string_view mnemonic = id ? canonical(editor_.mnemonic(id)) : std::string_view();
  if (is_ours && (mnemonic == "add.s32" || mnemonic == "mad.lo.s32" || mnemonic == "mul.lo.s32")) {
    take_apart(id);
    return;
  }
  products_.push_back({operand, Operand::integer(1), as_extended_byte(editor_, operand), std::nullopt, true});
}

void Sum::add_product(const Operand& a, const Operand& b) {
  products_.push_back({a, b, as_extended_byte(editor_, a), as_extended_byte(editor_, b), false});
}

void Sum::take_apart(InstructionId id) {
  const std::span<const Operand> view = editor_.sources(id);
  const std::vector<Operand> sources(view.begin(), view.end());
  if (canonical(editor_.mnemonic(id)) == "add.s32") {
    add_summand(sources[0]);
    add_summand(sources[1]);
    return;
  }
  add_product(sources[0], sources[1]);
  if (sources.size() == 3) add_summand(sources[2]);
}

bool bind(std::map<std::string, Operand>& variables, const std::string& name, const Operand& operand) {
  const Operand& bound = variables.try_emplace(name, operand).first->second;
  return bound.kind == operand.kind && bound.id == operand.id;
}

// "byte2.s32(a)"
bool fits_byte(const std::optional<ExtendedByte>& byte, const Term& wanted, Match& bound) {
  if (!byte) return false;
  const unsigned index = static_cast<unsigned>(wanted.text[4] - '0');
  const bool is_signed = wanted.text.ends_with(".s32");
  return byte->index == index && byte->is_signed == is_signed &&
         bind(bound.variables, wanted.operands[0].text, byte->source);
}

bool Sum::fits(const Product& product, const Term& wanted, Match& bound, bool swapped) const {
  const Term &first = wanted.operands[0], &second = wanted.operands[1];
  if (!fits_byte(swapped ? product.b_byte : product.a_byte, first, bound)) return false;
  if (second.kind == Term::Kind::application)
    return fits_byte(swapped ? product.a_byte : product.b_byte, second, bound);
  const std::optional<uint32_t> literal = editor_.literal(swapped ? product.a : product.b);
  return literal && bound.literals.try_emplace(second.text, *literal).second;
}

bool Sum::apply(const Rule& row) {
  std::vector<bool> taken(products_.size());
  Match bound;
  size_t found = 0, products = 0, extractions = 0;
  for (const Term* term = &row.pattern; term->kind == Term::Kind::application; term = &term->operands[2]) {
    ++products;
    for (size_t i = 0; i < products_.size() && found < products; ++i) {
      if (taken[i]) continue;
      for (const bool swapped : {false, true}) {
        Match tried = bound;
        if (taken[i] || !fits(products_[i], *term, tried, swapped)) continue;
        bound = std::move(tried);
        taken[i] = true;
        ++found;
        for (const Operand& operand : {products_[i].a, products_[i].b})
          if (const InstructionId id = editor_.computation(operand); id && !editor_.literal(operand))
            extractions += editor_.readers(operand.as_value()) == 1;
      }
    }
    const Term& second = term->operands[1];
    if (found == products) continue;
    // A product by a literal that is not there; all others have to be.
    if (second.kind != Term::Kind::name) return false;
    --products;
    bound.literals.emplace(second.text, 0);
  }
  // One multiply-add for each product and its extractions against one instruction and perhaps a literal's move.
  if (found < 2 || found + extractions < 4) return false;
  const Meaning meaning{[&](const std::string& name) { return bound.literals.at(name); }, {}};
  for (const Expression& condition : row.conditions)
    if (!evaluate(condition, meaning)) return false;
  emit(row, bound, taken);
  return true;
}

void Sum::emit(const Rule& row, const Match& bound, const std::vector<bool>& taken) {
  editor_.begin(root_);
  std::optional<Operand> sum;
  auto plain = [](Operand operand) {
    if (operand.is(OperandKind::value)) operand.flags = ir::OperandFlag::none;
    return operand;
  };
  for (size_t i = 0; i < products_.size(); ++i) {
    if (taken[i]) continue;
    const Operand a = plain(products_[i].a), b = plain(products_[i].b);
    if (products_[i].is_plain && !sum) {
      sum = a;
      continue;
    }
    const std::vector<Operand> operands =
        products_[i].is_plain ? std::vector{*sum, a} : std::vector{a, b, sum.value_or(Operand::integer(0))};
    sum = Operand::value(editor_.emit(products_[i].is_plain ? "add.s32" : "mad.lo.s32", ScalarType::b32, operands));
  }
  const Meaning meaning{[&](const std::string& name) { return bound.literals.at(name); }, {}};
  const Term& weights = row.replacement.operands[1];
  const Operand second = weights.kind == Term::Kind::variable
                             ? bound.variables.at(weights.text)
                             : literal_operand("prmt.b32", evaluate(weights.expression, meaning));
  const Operand operands[] = {bound.variables.at(row.replacement.operands[0].text), second,
                              sum.value_or(Operand::integer(0))};
  editor_.finish(row.replacement.text, operands);
}

} // namespace

const Rule* combine_products(Editor& editor, InstructionId root, std::span<const Rule* const> rows) {
  if (rows.empty() || !editor.is_computation(root)) return nullptr;
  const std::string_view mnemonic = canonical(editor.mnemonic(root));
  if (mnemonic != "add.s32" && mnemonic != "mad.lo.s32") return nullptr;
  Sum sum(editor, root);
  for (const Rule* row : rows)
    if (sum.apply(*row)) return row;
  return nullptr;
}

} // namespace ptxrewrite::transforms::legal::composite
