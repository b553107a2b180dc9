// Generates the coefficient, thread-index and block-index sections and the table of linear registers.
#include "transforms/r2d2/r2d2_sections.h"

#include "ir/core/insertion.h"
#include <cassert>
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
namespace form_index = ir::form_index;

} // namespace

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
      : function_(function), plan_(plan), pool_(pool), builder_(ir::builder_at_code_start(function)),
        coefficients_(function, builder_, pool) {}

  EmittedSections run();

private:
  void write_coefficients();
  void write_thread_parts();
  void write_block_parts();
  void write_rows();
  // Index register in 64 bits, read once per section.
  Operand index_register(unsigned component);
  bool is_narrow(const Group& group, std::span<const unsigned> places) const;
  // addend + sum of coefficient * index over three places from `first`; integer 0 if the sum is empty. Counts the
  // rounds of each (operation, index) in `packing_`.
  Operand combine(const Group& group, unsigned first, Operand addend, RegisterClass register_class,
                  std::optional<uint32_t> final_number);
  ValueId fresh(RegisterClass register_class, std::optional<uint32_t> number);
  // A 32-bit form uses the low half of a part's 64 bits: equal literals make equal parts, and one operation serves both
  // widths.
  using PartKey = std::pair<bool, uint64_t>; // of a literal: its value; otherwise the expression
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
  std::map<ExpressionId, Operand> operand_;       // every coefficient used by a part
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
  return add_hardware_register(function_, register_class, thread ? "%tr" : "%br", number ? *number : next++);
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

// Does the part fit into 32 bits, so that a narrow register suffices? Decided from literals, for the largest possible
// block; of a 32-bit form only 32 bits are read. The answer does not depend on the form the part was computed for.
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
    const int64_t extreme = factor * highest[place - form_index::tid_x];
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
  std::vector<unsigned> summed; // places summed so far
  // An index times one is the index itself; it starts the sum if there is no other addend.
  if (!has_addend && thread) {
    for (size_t i = 0; i < places.size(); ++i) {
      if (!pool_.is_literal(group.coefficients[places[i]], 1)) continue;
      addend = index_register(places[i] - form_index::tid_x);
      summed.push_back(places[i]);
      places.erase(places.begin() + static_cast<std::ptrdiff_t>(i));
      break;
    }
  }
  // A row without a block index joins the multiplication of the other rows: one instruction for all lanes.
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
    Operand index = index_register(places[i] - form_index::tid_x);
    bool last = i + 1 == places.size();
    // Thread parts may share a prefix.
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
    for (unsigned place = form_index::tid_x; place < form_index::count; ++place)
      operand_[group.coefficients[place]] = coefficients_.write(group.coefficients[place]);
    bases_.push_back(coefficients_.write(group.coefficients[form_index::constant]));
  }
  for (const LinearSite& site : plan_.sites) {
    SiteOperands operands;
    ExpressionId difference = site.coefficients[form_index::constant];
    if (site.uniform) {
      operands.linear = coefficients_.write_to_register(difference).as_value();
      out_.sites.push_back(operands);
      continue;
    }
    if (site.group != none)
      difference = pool_.subtract(difference, plan_.groups[site.group].coefficients[form_index::constant]);
    SplitConstant split = split_constant(pool_, difference);
    // A literal that does not fit the immediate of an address goes into the coefficient register.
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
    std::array<PartKey, 3> key{part_key(group.coefficients[form_index::tid_x]),
                               part_key(group.coefficients[form_index::tid_y]),
                               part_key(group.coefficients[form_index::tid_z])};
    auto [row, is_new] = shared.try_emplace(key, Operand::integer(0));
    if (is_new)
      row->second = combine(group, form_index::tid_x, Operand::integer(0), RegisterClass::thread_index, std::nullopt);
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
    for (unsigned place = form_index::ctaid_x; place < form_index::count && !block_place_; ++place)
      if (!pool_.is_zero(group.coefficients[place])) block_place_ = place;
  for (uint32_t i = 0; i < plan_.groups.size(); ++i) {
    blocks_.push_back(combine(plan_.groups[i], form_index::ctaid_x, bases_[i], RegisterClass::block_index, i));
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
    registers.push_back(add_hardware_register(function_, RegisterClass::linear, "%lr", i));
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
