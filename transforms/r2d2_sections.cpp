// Generates the coefficient, thread-index and block-index sections and the table of linear registers.
#include "transforms/r2d2_sections.h"

#include "ir/insertion.h"
#include <cassert>
#include <charconv>
#include <limits>
#include <map>
#include <tuple>

namespace ptxrewrite::transforms::r2d2 {

namespace {

using ir::ExpressionId;
using ir::ExpressionKind;
using ir::InstructionKind;
using ir::Operand;
using ir::OperandKind;
using ir::RegisterClass;
using ir::ValueId;
namespace FormIndex = ir::FormIndex;

std::string word(unsigned width) {
  return std::to_string(width);
}

// A fresh 64-bit register of a hardware class: the classes have no narrower ones.
ValueId add_register(ir::Function& function, RegisterClass register_class, std::string_view prefix, uint32_t number) {
  ir::Value value;
  value.type = ir::ScalarType::b64;
  value.register_class = register_class;
  value.name = function.module().intern(prefix);
  value.number = number;
  return function.add_value(value);
}

Operand signed_literal(uint64_t value, unsigned width) {
  return Operand::integer(ir::signed_value(value, width));
}

// Bits that `mul.wide.s32`, `cvt.s64.s32`, `add.s32` and the like write.
unsigned result_width(std::string_view mnemonic) {
  if (mnemonic.find(".wide.") != mnemonic.npos) return 64;
  bool conversion = mnemonic.starts_with("cvt.");
  std::string_view type = conversion ? mnemonic.substr(4) : mnemonic.substr(mnemonic.rfind('.') + 1);
  unsigned width = 0;
  std::from_chars(type.data() + 1, type.data() + type.size(), width);
  return width;
}

// Mnemonic without type for the atom kinds that are one instruction on two operands; null for others.
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
    return add_register(*function_, RegisterClass::coefficient, "%cr", number);
  bool wide = width == 64;
  return builder_->new_value(wide         ? ir::ScalarType::b64
                             : width > 16 ? ir::ScalarType::b32
                                          : ir::ScalarType::b16,
                             wide         ? "%rd"
                             : width > 16 ? "%r"
                                          : "%rs");
}

Operand CoefficientWriter::emit(const std::string& mnemonic, std::initializer_list<Operand> sources) {
  // Different expressions may take the same step.
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

  // One extended 32-bit atom: the widening multiplication does it in one step.
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

// A sum that was written and lacks fewer terms of this one than this one has. Addresses of one array differ in one.
std::optional<ExpressionId> CoefficientWriter::nearest_sum(ExpressionId id) {
  constexpr size_t most_looked_at = 128; // of the last ones
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
  sums_.push_back(id); // only now: what it is made of must not be built on it
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
    // A plain register is the best addend to start from.
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

std::optional<WideProduct> wide_product(const ir::ExpressionPool& pool, ExpressionId expression) {
  const ir::Expression& row = pool[expression];
  if (row.width != 64) return std::nullopt;
  ExpressionId extended = expression;
  int64_t literal = 1;
  if (row.kind == ExpressionKind::sum) {
    if (row.offset != 0 || pool.terms(expression).size() != 1) return std::nullopt;
    const ir::ExpressionTerm& term = pool.terms(expression)[0];
    if (pool.factors(term.monomial).size() != 1) return std::nullopt;
    extended = pool.factors(term.monomial)[0];
    literal = ir::signed_value(term.coefficient, 64);
  }
  const bool is_signed = pool[extended].kind == ExpressionKind::sign_extend;
  if (!is_signed && pool[extended].kind != ExpressionKind::zero_extend) return std::nullopt;
  ExpressionId factor = pool.operands(extended)[0];
  const bool fits = is_signed ? literal == static_cast<int32_t>(literal)
                              : literal == static_cast<int64_t>(static_cast<uint32_t>(literal));
  if (pool.width(factor) != 32 || !fits) return std::nullopt;
  return WideProduct{factor, literal, is_signed};
}

namespace {

class SectionWriter {
public:
  SectionWriter(ir::Function& function, const Plan& plan, ir::ExpressionPool& pool)
      : function_(function), plan_(plan), pool_(pool), builder_(ir::builder_at_code_start(function)), coefficients_(function, builder_, pool) {}

  EmittedSections run();

private:
  void write_coefficients();
  void write_thread_parts();
  void write_block_parts();
  void write_rows();
  // Index register in 64 bits, read once per section.
  Operand index_register(unsigned component);
  bool is_narrow(const Group& group, std::span<const unsigned> places) const;
  // addend + sum of coefficient * index over three places from `first`; integer 0 when there is nothing. Counts the
  // rounds of each (operation, index) in `packing_`.
  Operand combine(const Group& group, unsigned first, Operand addend, RegisterClass register_class,
                  std::optional<uint32_t> final_number);
  ValueId fresh(RegisterClass register_class, std::optional<uint32_t> number);
  // Of a part's 64 bits a 32-bit form needs the low half: equal literals make equal parts, and one operation serves
  // both widths.
  using PartKey = std::pair<bool, uint64_t>; // of a literal: itself; else the expression
  PartKey part_key(ExpressionId coefficient) const {
    std::optional<uint64_t> literal = pool_.literal_value(coefficient);
    if (!literal) return {false, coefficient.index()};
    return {true, static_cast<uint64_t>(ir::signed_value(*literal, pool_.width(coefficient)))};
  }
  Operand coefficient_of(ExpressionId coefficient) const {
    return pool_.is_zero(coefficient) ? Operand::integer(0) : operand_.at(coefficient);
  }
  void begin(ir::SectionKind kind) {
    builder_.emit_marker(InstructionKind::section_begin, {Operand::integer(static_cast<int64_t>(kind))});
  }
  void end() { builder_.emit_marker(InstructionKind::section_end, {}); }

  ir::Function& function_;
  const Plan& plan_;
  ir::ExpressionPool& pool_;
  ir::Builder builder_;
  CoefficientWriter coefficients_;
  EmittedSections out_;
  std::map<ExpressionId, Operand> operand_;       // every coefficient that a part uses
  std::vector<Operand> bases_, threads_, blocks_; // by group
  std::array<std::optional<Operand>, 6> indices_{};
  uint32_t next_thread_ = 0, next_block_ = 0;
  size_t* instructions_ = nullptr; // of the section being written
  std::map<std::pair<std::string, unsigned>, size_t> packing_;
  std::map<std::tuple<unsigned, PartKey, uint32_t>, Operand> partial_sums_; // thread parts: index, coefficient, addend
  std::optional<unsigned> block_place_;                                     // a block index that some row multiplies
};

ValueId SectionWriter::fresh(RegisterClass register_class, std::optional<uint32_t> number) {
  bool thread = register_class == RegisterClass::thread_index;
  uint32_t& next = thread ? next_thread_ : next_block_;
  return add_register(function_, register_class, thread ? "%tr" : "%br", number ? *number : next++);
}

Operand SectionWriter::index_register(unsigned component) {
  std::optional<Operand>& place = indices_[component];
  if (place) return *place;
  bool thread = component < 3;
  ValueId target = fresh(thread ? RegisterClass::thread_index : RegisterClass::block_index, std::nullopt);
  ir::SpecialRegister special = thread ? ir::SpecialRegister::tid : ir::SpecialRegister::ctaid;
  const char* mnemonic = thread ? "mov.u32" : "cvt.u64.u32";
  builder_.emit(mnemonic, {Operand::definition(target),
                           Operand::special(static_cast<uint32_t>(special), ir::component_selector(component % 3))});
  ++*instructions_;
  ++packing_[{mnemonic, component}];
  place = Operand::value(target);
  return *place;
}

// Does the part fit into 32 bits, so that the register needs no more? With literals for all blocks that there can be;
// of a 32-bit form nobody reads more. Such a part is the same whichever form it was computed for.
bool SectionWriter::is_narrow(const Group& group, std::span<const unsigned> places) const {
  constexpr std::array<int64_t, 3> highest{1023, 1023, 63};
  constexpr int64_t most = std::numeric_limits<int32_t>::max();
  int64_t low = 0, high = 0;
  bool literals = true;
  for (unsigned place : places) {
    const ExpressionId coefficient = group.coefficients[place];
    const std::optional<uint64_t> literal = pool_.literal_value(coefficient);
    literals = literals && literal.has_value();
    if (!literal) continue;
    const int64_t factor = ir::signed_value(*literal, pool_.width(coefficient));
    if (factor < -most || factor > most) return false;
    const int64_t extreme = factor * highest[place - FormIndex::tid_x];
    (extreme < 0 ? low : high) += extreme;
  }
  return -low <= most && high <= most && (literals || group.width == 32);
}

Operand SectionWriter::combine(const Group& group, unsigned first, Operand addend, RegisterClass register_class,
                               std::optional<uint32_t> final_number) {
  std::vector<unsigned> places;
  for (unsigned place = first; place < first + 3; ++place)
    if (!pool_.is_zero(group.coefficients[place])) places.push_back(place);
  bool has_addend = !(addend.is(OperandKind::integer) && addend.immediate == 0);
  const bool thread = register_class == RegisterClass::thread_index;
  std::vector<unsigned> summed; // places of the sum so far
  // An index times one is the index itself; it starts the sum where no other addend does.
  if (!has_addend && thread) {
    for (size_t i = 0; i < places.size(); ++i) {
      if (!pool_.is_literal(group.coefficients[places[i]], 1)) continue;
      addend = index_register(places[i] - FormIndex::tid_x);
      summed.push_back(places[i]);
      places.erase(places.begin() + static_cast<std::ptrdiff_t>(i));
      break;
    }
  }
  // A row without a block index takes part in the multiplications of the others: one instruction for all lanes.
  if (places.empty() && has_addend && register_class == RegisterClass::block_index && block_place_)
    places.push_back(*block_place_);
  if (places.empty() && has_addend) {
    ValueId target = fresh(register_class, final_number);
    builder_.emit("mov.b64", {Operand::definition(target), addend});
    ++*instructions_;
    ++packing_[{"mov", 0}];
    return Operand::value(target);
  }
  for (size_t i = 0; i < places.size(); ++i) {
    Operand index = index_register(places[i] - FormIndex::tid_x);
    bool last = i + 1 == places.size();
    // Thread parts may begin alike.
    const std::tuple key{places[i], part_key(group.coefficients[places[i]]),
                         addend.is(OperandKind::value) ? addend.id : UINT32_MAX};
    summed.push_back(places[i]);
    if (thread)
      if (auto found = partial_sums_.find(key); found != partial_sums_.end()) {
        addend = found->second;
        continue;
      }
    ValueId target = fresh(register_class, last ? final_number : std::nullopt);
    builder_.emit(thread && is_narrow(group, summed) ? "mad.lo.s32" : "mad.lo.s64",
                  {Operand::definition(target), index, coefficient_of(group.coefficients[places[i]]), addend});
    ++*instructions_;
    ++packing_[{"mad" + std::to_string(i), places[i]}];
    addend = Operand::value(target);
    partial_sums_.emplace(key, addend);
  }
  return addend;
}

void SectionWriter::write_coefficients() {
  begin(ir::SectionKind::r2d2_coefficient);
  for (const Group& group : plan_.groups) {
    for (unsigned place = FormIndex::tid_x; place < FormIndex::count; ++place)
      operand_[group.coefficients[place]] = coefficients_.write(group.coefficients[place]);
    bases_.push_back(coefficients_.write(group.coefficients[FormIndex::constant]));
  }
  for (const Site& site : plan_.sites) {
    SiteOperands operands;
    ExpressionId difference = site.coefficients[FormIndex::constant];
    if (site.uniform) {
      operands.linear = coefficients_.write_to_register(difference).as_value();
      out_.sites.push_back(operands);
      continue;
    }
    if (site.group != none)
      difference = pool_.subtract(difference, plan_.groups[site.group].coefficients[FormIndex::constant]);
    SplitConstant split = split_constant(pool_, difference);
    // A literal that does not fit an address's immediate goes into the coefficient register.
    if (split.literal == static_cast<int32_t>(split.literal)) {
      operands.immediate = split.literal;
      operands.coefficient = coefficients_.write(split.symbolic);
    } else {
      operands.coefficient = coefficients_.write_to_register(difference);
    }
    assert(!site.moves() || !operands.coefficient.is(OperandKind::value));
    out_.sites.push_back(operands);
  }
  for (const Increment& increment : plan_.increments) {
    ExpressionId step = increment.chain.back().step;
    std::optional<WideProduct> wide = wide_product(pool_, step);
    out_.steps.push_back({coefficients_.write(wide ? wide->factor : step), wide});
  }
  end();
}

void SectionWriter::write_thread_parts() {
  begin(ir::SectionKind::r2d2_thread);
  instructions_ = &out_.sizes.thread_instructions;
  std::map<std::array<PartKey, 3>, Operand> shared;
  for (const Group& group : plan_.groups) {
    std::array<PartKey, 3> key{part_key(group.coefficients[FormIndex::tid_x]),
                               part_key(group.coefficients[FormIndex::tid_y]),
                               part_key(group.coefficients[FormIndex::tid_z])};
    auto [row, is_new] = shared.try_emplace(key, Operand::integer(0));
    if (is_new)
      row->second = combine(group, FormIndex::tid_x, Operand::integer(0), RegisterClass::thread_index, std::nullopt);
    threads_.push_back(row->second);
  }
  end();
  out_.sizes.thread_registers = next_thread_;
}

// The block part of linear register i is %br i: lane i of the warp computes it.
void SectionWriter::write_block_parts() {
  begin(ir::SectionKind::r2d2_block);
  instructions_ = &out_.sizes.block_instructions;
  packing_.clear();
  next_block_ = static_cast<uint32_t>(plan_.groups.size());
  for (const Group& group : plan_.groups)
    for (unsigned place = FormIndex::ctaid_x; place < FormIndex::count && !block_place_; ++place)
      if (!pool_.is_zero(group.coefficients[place])) block_place_ = place;
  for (uint32_t i = 0; i < plan_.groups.size(); ++i) {
    blocks_.push_back(combine(plan_.groups[i], FormIndex::ctaid_x, bases_[i], RegisterClass::block_index, i));
    out_.sizes.block_registers += !blocks_.back().is(OperandKind::integer);
  }
  end();
  out_.sizes.block_registers += next_block_ - plan_.groups.size();
  for (const auto& [operation, rows] : packing_)
    out_.sizes.block_warp_instructions += (rows + 15) / 16;
}

void SectionWriter::write_rows() {
  std::vector<ValueId> registers;
  for (uint32_t i = 0; i < plan_.groups.size(); ++i) {
    registers.push_back(add_register(function_, RegisterClass::linear, "%lr", i));
    builder_.emit_marker(InstructionKind::linear_row, {Operand::definition(registers[i]), threads_[i], blocks_[i]});
  }
  for (size_t i = 0; i < plan_.sites.size(); ++i)
    if (plan_.sites[i].group != none) out_.sites[i].linear = registers[plan_.sites[i].group];
}

EmittedSections SectionWriter::run() {
  write_coefficients();
  write_thread_parts();
  write_block_parts();
  write_rows();
  out_.sizes.coefficient_instructions = coefficients_.instruction_count();
  out_.sizes.coefficient_registers = coefficients_.register_count();
  return std::move(out_);
}

} // namespace

EmittedSections emit_sections(ir::Function& function, const Plan& plan, ir::ExpressionPool& pool) {
  return SectionWriter(function, plan, pool).run();
}

} // namespace ptxrewrite::transforms::r2d2
