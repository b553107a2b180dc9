#include "transforms/common/expression_writer.h"

#include <cassert>
#include <charconv>

namespace ptxrewrite::transforms {

namespace {

using ir::ExpressionId;
using ir::ExpressionKind;
using ir::Operand;
using ir::OperandKind;
using ir::RegisterClass;
using ir::ValueId;

std::string word(unsigned width) {
  return std::to_string(width);
}

Operand signed_literal(uint64_t value, unsigned width) {
  return Operand::integer(ir::signed_value(value, width));
}

// Number of bits that `mul.wide.s32`, `cvt.s64.s32`, `add.s32` and the like write.
unsigned result_width(std::string_view mnemonic) {
  if (mnemonic.find(".wide.") != mnemonic.npos) return 64;
  bool conversion = mnemonic.starts_with("cvt.");
  std::string_view type = conversion ? mnemonic.substr(4) : mnemonic.substr(mnemonic.rfind('.') + 1);
  unsigned width = 0;
  std::from_chars(type.data() + 1, type.data() + type.size(), width);
  return width;
}

// Mnemonic without type for expression kinds that are one instruction with two operands; nullptr for others.
struct BinaryOperation {
  const char* name;
  char type; // s, u or b
};
std::optional<BinaryOperation> binary_operation(ExpressionKind kind) {
  switch (kind) {
  case ExpressionKind::divide_signed:
    return BinaryOperation{"div.", 's'};
  case ExpressionKind::divide_unsigned:
    return BinaryOperation{"div.", 'u'};
  case ExpressionKind::remainder_signed:
    return BinaryOperation{"rem.", 's'};
  case ExpressionKind::remainder_unsigned:
    return BinaryOperation{"rem.", 'u'};
  case ExpressionKind::shift_left:
    return BinaryOperation{"shl.", 'b'};
  case ExpressionKind::shift_right_signed:
    return BinaryOperation{"shr.", 's'};
  case ExpressionKind::shift_right_unsigned:
    return BinaryOperation{"shr.", 'u'};
  case ExpressionKind::minimum_signed:
    return BinaryOperation{"min.", 's'};
  case ExpressionKind::minimum_unsigned:
    return BinaryOperation{"min.", 'u'};
  case ExpressionKind::maximum_signed:
    return BinaryOperation{"max.", 's'};
  case ExpressionKind::maximum_unsigned:
    return BinaryOperation{"max.", 'u'};
  case ExpressionKind::multiply_high_signed:
    return BinaryOperation{"mul.hi.", 's'};
  case ExpressionKind::multiply_high_unsigned:
    return BinaryOperation{"mul.hi.", 'u'};
  case ExpressionKind::product:
    return BinaryOperation{"mul.lo.", 's'};
  case ExpressionKind::and_:
    return BinaryOperation{"and.", 'b'};
  case ExpressionKind::or_:
    return BinaryOperation{"or.", 'b'};
  case ExpressionKind::xor_:
    return BinaryOperation{"xor.", 'b'};
  default:
    return std::nullopt;
  }
}

} // namespace

ValueId add_hardware_register(ir::Function& function, RegisterClass register_class, std::string_view prefix,
                              uint32_t number) {
  ir::Value value;
  value.type = ir::ScalarType::b64;
  value.register_class = register_class;
  value.name = function.module().intern(prefix);
  value.number = number;
  return function.add_value(value);
}

bool CoefficientWriter::expressible(const ir::ExpressionPool& pool, ExpressionId id) {
  const ir::Expression& row = pool[id];
  if (row.varies) return false;
  bool full_width = row.width == 32 || row.width == 64;
  switch (row.kind) {
  case ExpressionKind::parameter:
    return row.width >= 8;
  case ExpressionKind::special:
    return row.width == ir::bit_width(ir::info(static_cast<ir::SpecialRegister>(row.payload)).type);
  case ExpressionKind::symbol:
    return full_width;
  case ExpressionKind::window: // uniform: a variable has the same address in its window in all blocks
    return full_width && static_cast<ir::StateSpace>(row.payload) == ir::StateSpace::shared;
  case ExpressionKind::sum:
    if (!full_width) return pool.literal_value(id).has_value();
    for (const ir::ExpressionTerm& term : pool.terms(id))
      for (ExpressionId factor : pool.factors(term.monomial))
        if (!expressible(pool, factor)) return false;
    return true;
  case ExpressionKind::sign_extend:
  case ExpressionKind::zero_extend:
  case ExpressionKind::truncate:
    return full_width && pool.width(pool.operands(id)[0]) >= 8 && expressible(pool, pool.operands(id)[0]);
  default:
    if (!full_width || !binary_operation(row.kind)) return false;
    for (ExpressionId operand : pool.operands(id))
      if (!expressible(pool, operand)) return false;
    return true;
  }
}

ValueId CoefficientWriter::new_register(unsigned width) {
  uint32_t number = next_++;
  if (register_class_ == RegisterClass::coefficient)
    return add_hardware_register(*function_, RegisterClass::coefficient, "%cr", number);
  bool wide = width == 64;
  return builder_->new_value(wide         ? ir::ScalarType::b64
                             : width > 16 ? ir::ScalarType::b32
                                          : ir::ScalarType::b16,
                             wide         ? "%rd"
                             : width > 16 ? "%r"
                                          : "%rs");
}

Operand CoefficientWriter::emit(const std::string& mnemonic, std::initializer_list<Operand> sources) {
  // Different expressions may share an intermediate step.
  std::vector<uint64_t> key{ir::known_form(mnemonic).index()};
  for (const Operand& source : sources) {
    key.push_back(static_cast<uint64_t>(source.kind) << 48 | uint64_t(source.selector) << 32 | source.id);
    key.push_back(static_cast<uint64_t>(source.immediate));
  }
  if (auto found = computed_.find(key); shares() && found != computed_.end()) return found->second;
  ValueId target = new_register(result_width(mnemonic));
  std::vector<Operand> operands{Operand::definition(target)};
  operands.insert(operands.end(), sources);
  builder_->emit(mnemonic, operands);
  ++instructions_;
  return computed_[std::move(key)] = Operand::value(target);
}

Operand CoefficientWriter::write(ExpressionId id) {
  if (std::optional<uint64_t> literal = pool_->literal_value(id)) return signed_literal(*literal, pool_->width(id));
  if (auto found = written_.find(id); found != written_.end()) return found->second;
  Operand result = compute(id);
  written_.emplace(id, result);
  return result;
}

Operand CoefficientWriter::write_to_register(ExpressionId id) {
  if (auto found = written_.find(id); found != written_.end()) return found->second;
  Operand result = write(id);
  if (!result.is(OperandKind::integer)) return result;
  result = emit("mov.b" + word(pool_->width(id)), {result});
  written_.emplace(id, result);
  return result;
}

Operand CoefficientWriter::compute(ExpressionId id) {
  const ir::Expression row = (*pool_)[id];
  std::string width = word(row.width);
  switch (row.kind) {
  case ExpressionKind::sum:
    return sum(id);
  case ExpressionKind::parameter: {
    ir::VariableId variable = function_->variable_lists.view(function_->signature.parameters)[row.payload];
    ValueId target = new_register(row.width);
    std::vector<Operand> operands{Operand::definition(target)};
    ir::append_address(operands, Operand::symbol(ir::SymbolRef::local_variable(variable)), row.offset);
    builder_->emit("ld.param.u" + width, operands);
    ++instructions_;
    return Operand::value(target);
  }
  case ExpressionKind::special: {
    ir::SpecialRegister special = static_cast<ir::SpecialRegister>(row.payload);
    ir::Selector selector = ir::info(special).vector_width > 1
                                ? ir::component_selector(static_cast<unsigned>(row.offset))
                                : ir::no_selector;
    return emit("mov.u" + width, {Operand::special(row.payload, selector)});
  }
  case ExpressionKind::symbol:
    return emit("mov.u" + width, {Operand::symbol(ir::SymbolRef::from_bits(row.payload))});
  case ExpressionKind::window:
    return emit("cvta.shared.u" + width, {Operand::integer(0)});
  case ExpressionKind::sign_extend:
  case ExpressionKind::zero_extend:
  case ExpressionKind::truncate: {
    ExpressionId inner = pool_->operands(id)[0];
    const char* sign = row.kind == ExpressionKind::sign_extend ? "s" : "u";
    return emit("cvt." + (sign + width) + "." + sign + word(pool_->width(inner)), {write(inner)});
  }
  default: {
    std::optional<BinaryOperation> operation = binary_operation(row.kind);
    assert(operation && "not expressible");
    Operand a = write(pool_->operands(id)[0]);
    Operand b = write(pool_->operands(id)[1]);
    return emit(operation->name + (operation->type + width), {a, b});
  }
  }
}

// addend + coefficient * product of atoms
Operand CoefficientWriter::add_term(const ir::ExpressionTerm& term, unsigned width, std::optional<Operand> addend) {
  std::span<const ExpressionId> view = pool_->factors(term.monomial);
  std::vector<ExpressionId> factors(view.begin(), view.end());
  int64_t coefficient = ir::signed_value(term.coefficient, width);
  std::string type = "s" + word(width);

  // One extended 32-bit factor: a widening multiplication extends and multiplies in one instruction.
  const ir::Expression& first = (*pool_)[factors[0]];
  bool is_signed = first.kind == ExpressionKind::sign_extend;
  if (factors.size() == 1 && width == 64 && (is_signed || first.kind == ExpressionKind::zero_extend) &&
      pool_->width(pool_->operands(factors[0])[0]) == 32 && (addend || coefficient != 1) &&
      (is_signed ? coefficient == static_cast<int32_t>(coefficient)
                 : coefficient == static_cast<int64_t>(static_cast<uint32_t>(coefficient)))) {
    Operand inner = write(pool_->operands(factors[0])[0]);
    const char* wide = is_signed ? "wide.s32" : "wide.u32";
    if (!addend) return emit(std::string("mul.") + wide, {inner, Operand::integer(coefficient)});
    return emit(std::string("mad.") + wide, {inner, Operand::integer(coefficient), *addend});
  }

  Operand product = write(factors[0]);
  for (size_t i = 1; i + 1 < factors.size(); ++i)
    product = emit("mul.lo." + type, {product, write(factors[i])});
  Operand last = factors.size() > 1 ? write(factors.back()) : Operand::integer(coefficient);
  if (factors.size() > 1 && coefficient != 1)
    product = emit("mul.lo." + type, {product, Operand::integer(coefficient)});
  if (!addend) {
    if (factors.size() == 1 && coefficient == 1) return product;
    return emit("mul.lo." + type, {product, last});
  }
  if (factors.size() == 1 && coefficient == 1) return emit("add." + type, {product, *addend});
  if (factors.size() == 1 && coefficient == -1 && addend->is(OperandKind::value))
    return emit("sub." + type, {*addend, product});
  return emit("mad.lo." + type, {product, last, *addend});
}

// Returns an already written sum to which fewer terms must be added than this sum has. Addresses within one array often
// differ by one term.
std::optional<ExpressionId> CoefficientWriter::nearest_sum(ExpressionId id) {
  constexpr size_t most_looked_at = 128; // only the most recent ones are searched
  auto steps = [&](ExpressionId sum) -> size_t {
    if ((*pool_)[sum].kind != ExpressionKind::sum) return 1;
    return pool_->terms(sum).size() + ((*pool_)[sum].offset != 0);
  };
  std::optional<ExpressionId> best;
  size_t fewest = pool_->terms(id).size();
  for (size_t i = sums_.size(); i > 0 && sums_.size() - i < most_looked_at; --i) {
    if (pool_->width(sums_[i - 1]) != pool_->width(id)) continue;
    ExpressionId difference = pool_->subtract(id, sums_[i - 1]);
    if (steps(difference) >= fewest) continue;
    fewest = steps(difference);
    best = sums_[i - 1];
  }
  return best;
}

Operand CoefficientWriter::sum(ExpressionId id) {
  Operand result = terms_of_sum(id);
  sums_.push_back(id); // registered last: its own parts must not be derived from it
  return result;
}

Operand CoefficientWriter::terms_of_sum(ExpressionId id) {
  unsigned width = pool_->width(id);
  if (std::optional<ExpressionId> near = shares() ? nearest_sum(id) : std::nullopt) {
    ExpressionId difference = pool_->subtract(id, *near);
    Operand accumulator = write(*near);
    if ((*pool_)[difference].kind != ExpressionKind::sum)
      return emit("add.s" + word(width), {accumulator, write(difference)});
    if (uint64_t constant = static_cast<uint64_t>((*pool_)[difference].offset))
      accumulator = emit("add.s" + word(width), {accumulator, signed_literal(constant, width)});
    std::vector<ir::ExpressionTerm> terms(pool_->terms(difference).begin(), pool_->terms(difference).end());
    for (const ir::ExpressionTerm& term : terms)
      accumulator = add_term(term, width, accumulator);
    return accumulator;
  }
  uint64_t constant = static_cast<uint64_t>((*pool_)[id].offset);
  std::vector<ir::ExpressionTerm> terms(pool_->terms(id).begin(), pool_->terms(id).end());
  std::optional<Operand> accumulator;
  if (constant != 0)
    accumulator = signed_literal(constant, width);
  else {
    // Start from a plain register, which needs no instruction.
    for (size_t i = 0; i < terms.size() && terms.size() > 1; ++i) {
      std::span<const ExpressionId> factors = pool_->factors(terms[i].monomial);
      if (terms[i].coefficient != 1 || factors.size() != 1) continue;
      ExpressionKind kind = (*pool_)[factors[0]].kind;
      if (kind == ExpressionKind::sign_extend || kind == ExpressionKind::zero_extend) continue;
      accumulator = write(factors[0]);
      terms.erase(terms.begin() + static_cast<std::ptrdiff_t>(i));
      break;
    }
  }
  for (const ir::ExpressionTerm& term : terms)
    accumulator = add_term(term, width, accumulator);
  return *accumulator;
}

} // namespace ptxrewrite::transforms
