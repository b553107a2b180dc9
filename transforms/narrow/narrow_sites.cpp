// Finds the instructions that become narrower, and rewrites them.
#include "transforms/narrow/narrow_sites.h"

#include "ir/edit/dead_code.h"
#include "transforms/common/value_bounds.h"
#include "transforms/narrow/range_tests.h"
#include "transforms/narrow/twins.h"

#include <algorithm>

namespace ptxrewrite::transforms {

namespace {

using ir::BlockId;
using ir::InstructionId;
using ir::Int128;
using ir::Interval;
using ir::Modifier;
using ir::Operand;
using ir::OperandKind;
using ir::Operation;
using ir::ScalarType;
using ir::ValueId;
using legal::RangeProof;

constexpr const char* raised_by = "narrow: fewer bits";

enum class Kind : uint8_t { division, comparison, product, unsigned_division, sign };

struct NarrowSite {
  InstructionId id;
  Kind kind = Kind::division;
  bool is_signed = false; // for comparisons and products: of signed 32-bit numbers
  std::vector<RangeProof> proofs;
};

constexpr Interval small_unsigned{0, Int128(UINT32_MAX)};
constexpr Interval small_signed{Int128(INT32_MIN), Int128(INT32_MAX)};

class Narrowing {
public:
  Narrowing(legal::Attempt& attempt, legal::SiteFilter& sites, ir::LinearForms& forms)
      : attempt_(attempt), filter_(sites), function_(attempt.function()), forms_(forms), bounds_(forms_, attempt) {
    find_pointers();
  }

  bool run();

private:
  void find_pointers();
  bool mentions_pointer(const Operand& operand) const;
  bool is_uniform(InstructionId id, const Operand& operand) const;
  bool is_register(const Operand& operand, unsigned width) const;

  std::optional<NarrowSite> site_at(InstructionId id);
  std::optional<NarrowSite> division(InstructionId id, const ir::Form& form);
  std::optional<NarrowSite> comparison(InstructionId id, const ir::Form& form);
  std::optional<NarrowSite> product(InstructionId id, const ir::Form& form);
  std::optional<NarrowSite> sign(InstructionId id, const ir::Form& form);
  bool prove(NarrowSite& site, const Operand& operand, Interval range);
  bool prove_factors(NarrowSite& site, std::span<const Operand> factors);
  bool take(const NarrowSite& site);
  void take_products(const std::vector<NarrowSite>& candidates);
  std::set<ValueId> read_whole(const std::set<InstructionId>& also) const;

  void rewrite(const NarrowSite& site, Twins& twins, ValueId quotient);
  void simplify_rounding(InstructionId sign);
  void rewrite_product(InstructionId id, bool is_signed, Twins& twins);

  legal::Attempt& attempt_;
  legal::SiteFilter& filter_;
  ir::Function& function_;
  ir::LinearForms& forms_;
  legal::BoundsOfValues bounds_;
  std::set<ir::ExpressionId> pointers_; // atoms that are the base of an address
  std::vector<NarrowSite> taken_;
  std::set<InstructionId> removed_;   // removed at the end
  std::set<InstructionId> taken_ids_; // instructions that will read only low halves
};

// --- facts about operands ---

// An atom with coefficient 1 in the sum of an address is its base: it is not below 2^32 in any launch.
void Narrowing::find_pointers() {
  const ir::ExpressionPool& pool = forms_.expressions();
  auto add = [&](ir::ExpressionId sum) {
    if (pool[sum].kind != ir::ExpressionKind::sum) {
      pointers_.insert(sum);
      return;
    }
    for (const ir::ExpressionTerm& term : pool.terms(sum))
      if (term.coefficient == 1 && pool.factors(term.monomial).size() == 1)
        pointers_.insert(pool.factors(term.monomial)[0]);
  };
  for (BlockId block : forms_.control_flow().reverse_postorder())
    for (InstructionId id : function_.instructions_in(block)) {
      if (function_.instructions[id].kind != ir::InstructionKind::real) continue;
      const ir::Effects& effects = function_.form_of(id).effects;
      if ((!effects.reads_memory && !effects.writes_memory && !effects.atomic) || function_.form_of(id).opaque)
        continue;
      const std::span<const Operand> operands = function_.operands_of(id);
      for (size_t i = 0; i < operands.size(); i = ir::next_sibling(operands, i)) {
        if (!operands[i].is(OperandKind::address)) continue;
        const ir::LinearForm& form = forms_.address_form(id, i);
        if (form.has_coefficients() && form.width == 64) add(form.coefficients[ir::form_index::constant]);
      }
    }
}

bool Narrowing::mentions_pointer(const Operand& operand) const {
  if (!operand.is(OperandKind::value)) return false;
  const ir::LinearForm& form = forms_.form(operand.as_value());
  if (!form.has_coefficients()) return false;
  bool found = false;
  forms_.expressions().for_each_atom(form.coefficients[ir::form_index::constant],
                                     [&](ir::ExpressionId atom) { found |= pointers_.contains(atom); });
  return found;
}

bool Narrowing::is_uniform(InstructionId id, const Operand& operand) const {
  if (!operand.is(OperandKind::value)) return true;
  return forms_.form_at(operand.as_value(), function_.instructions[id].block).kind <= ir::ValueClass::launch_uniform;
}

bool Narrowing::is_register(const Operand& operand, unsigned width) const {
  if (!operand.is(OperandKind::value) || operand.selector != ir::no_selector || operand.has(ir::OperandFlag::negated))
    return false;
  const ir::Value& value = function_.values[operand.as_value()];
  return ir::bit_width(value.type) == width && !ir::is_float(value.type) && value.vector_width == 1 &&
         value.register_class == ir::RegisterClass::general;
}

bool Narrowing::prove(NarrowSite& site, const Operand& operand, Interval range) {
  if (operand.is(OperandKind::integer)) return operand.immediate >= range.low && operand.immediate <= range.high;
  const unsigned width = ir::bit_width(function_.values[operand.as_value()].type);
  if (!is_register(operand, width) || mentions_pointer(operand)) return false;
  std::optional<RangeProof> proof = bounds_.prove(site.id, operand, range);
  if (!proof) return false;
  site.proofs.push_back(std::move(*proof));
  return true;
}

// Unsigned if no factor can be negative, otherwise signed.
bool Narrowing::prove_factors(NarrowSite& site, std::span<const Operand> factors) {
  site.is_signed = std::ranges::any_of(factors, [&](const Operand& factor) {
    const legal::ValueBounds bounds = bounds_.of(site.id, factor, 64);
    return !bounds.always || bounds.always->low < 0;
  });
  const Interval range = site.is_signed ? small_signed : small_unsigned;
  return std::ranges::all_of(factors, [&](const Operand& factor) { return prove(site, factor, range); });
}

// --- sites ---

std::optional<NarrowSite> Narrowing::division(InstructionId id, const ir::Form& form) {
  const std::span<const Operand> operands = function_.operands_of(id);
  const unsigned width = ir::bit_width(form.type());
  const bool is_signed = ir::is_signed(form.type());
  if (operands.size() != 3 || !is_register(operands[0], width) || (width != 64 && !(width == 32 && is_signed)))
    return std::nullopt;
  NarrowSite site{id, width == 64 ? Kind::division : Kind::unsigned_division, false, {}};
  const Int128 most = width == 64 ? small_unsigned.high : small_signed.high;
  if (!prove(site, operands[1], {0, most}) || !prove(site, operands[2], {1, most})) return std::nullopt;
  return site;
}

std::optional<NarrowSite> Narrowing::comparison(InstructionId id, const ir::Form& form) {
  const std::span<const Operand> operands = function_.operands_of(id);
  const bool equality = form.has(Modifier::eq) || form.has(Modifier::ne);
  const bool integers = ir::is_integer(form.type()) || (ir::is_bit_type(form.type()) && equality);
  if (form.opcode != ir::Opcode::setp || operands.size() != 3 || ir::bit_width(form.type()) != 64 || !integers ||
      !operands[0].is(OperandKind::value) || (is_uniform(id, operands[1]) && is_uniform(id, operands[2])))
    return std::nullopt;
  NarrowSite site{id, Kind::comparison, false, {}};
  if (ir::is_signed(form.type()) || equality) {
    if (!prove_factors(site, operands.subspan(1))) return std::nullopt;
  } else if (!prove(site, operands[1], small_unsigned) || !prove(site, operands[2], small_unsigned)) {
    return std::nullopt;
  }
  return site;
}

std::optional<NarrowSite> Narrowing::product(InstructionId id, const ir::Form& form) {
  const std::span<const Operand> operands = function_.operands_of(id);
  const bool is_shift = form.operation == Operation::shift_left;
  const bool is_product =
      form.has(Modifier::lo) && (form.operation == Operation::multiply || form.operation == Operation::multiply_add);
  if (ir::bit_width(form.type()) != 64 || (!is_shift && !is_product) || form.has(Modifier::cc) ||
      form.effects.reads_carry || !is_register(operands[0], 64) || is_uniform(id, operands[0]))
    return std::nullopt;
  if (operands.size() != (form.operation == Operation::multiply_add ? 4u : 3u)) return std::nullopt;
  NarrowSite site{id, Kind::product, false, {}};
  Operand second = operands[2];
  if (is_shift) {
    if (!second.is(OperandKind::integer) || second.immediate < 1 || second.immediate > 30) return std::nullopt;
    second = Operand::integer(int64_t(1) << second.immediate);
  }
  const Operand factors[] = {operands[1], second};
  if (operands[1].is(OperandKind::integer) || !prove_factors(site, factors)) return std::nullopt;
  return site;
}

std::optional<NarrowSite> Narrowing::sign(InstructionId id, const ir::Form& form) {
  const std::span<const Operand> operands = function_.operands_of(id);
  const unsigned width = ir::bit_width(form.type());
  if (operands.size() != 3 || (width != 32 && width != 64) || !is_register(operands[0], width) ||
      !is_register(operands[1], width) || !operands[2].is(OperandKind::integer) ||
      operands[2].immediate != int64_t(width) - 1)
    return std::nullopt;
  NarrowSite site{id, Kind::sign, false, {}};
  return prove(site, operands[1], {0, ir::signed_range(width).high}) ? std::optional(std::move(site)) : std::nullopt;
}

std::optional<NarrowSite> Narrowing::site_at(InstructionId id) {
  const ir::Instruction& instruction = function_.instructions[id];
  if (instruction.kind != ir::InstructionKind::real || instruction.guard) return std::nullopt;
  const ir::Form& form = function_.form_of(id);
  if (form.opaque) return std::nullopt;
  switch (form.operation) {
  case Operation::divide:
  case Operation::remainder:
    return ir::is_integer(form.type()) ? division(id, form) : std::nullopt;
  case Operation::compare:
    return comparison(id, form);
  case Operation::multiply:
  case Operation::multiply_add:
  case Operation::shift_left:
    return product(id, form);
  case Operation::shift_right:
    return sign(id, form);
  case Operation::none:
  case Operation::copy:
  case Operation::convert:
  case Operation::convert_address:
  case Operation::add:
  case Operation::subtract:
  case Operation::negate:
  case Operation::absolute:
  case Operation::multiply_24:
  case Operation::multiply_add_24:
  case Operation::minimum:
  case Operation::maximum:
  case Operation::bit_and:
  case Operation::bit_or:
  case Operation::bit_xor:
  case Operation::complement:
  case Operation::logic_of_three:
  case Operation::select:
    break;
  }
  return std::nullopt;
}

bool Narrowing::take(const NarrowSite& site) {
  const std::string mnemonic(function_.form_of(site.id).mnemonic);
  static constexpr const char* results[] = {"32 bits, unsigned", "32 bits", "wide product of 32 bits", "unsigned", "0"};
  if (!filter_.take(site.id, mnemonic + " -> " + results[static_cast<size_t>(site.kind)])) return false;
  for (const RangeProof& proof : site.proofs)
    bounds_.rest_on(attempt_, proof, raised_by, site.id);
  taken_.push_back(site);
  if (site.kind != Kind::unsigned_division) taken_ids_.insert(site.id);
  return true;
}

// --- low halves ---

std::set<ValueId> Narrowing::read_whole(const std::set<InstructionId>& also) const {
  // The third operand of a mad is added in full width.
  std::set<ValueId> whole =
      values_read_whole(function_, forms_.control_flow(), forms_.def_use(), [&](InstructionId id) {
        const bool reads_halves = taken_ids_.contains(id) || also.contains(id);
        return reads_halves && function_.form_of(id).operation != Operation::multiply_add;
      });
  return whole;
}

// A product whose high half is unused is not such a site: it becomes a 32-bit product anyway.
void Narrowing::take_products(const std::vector<NarrowSite>& candidates) {
  std::set<InstructionId> also;
  for (const NarrowSite& site : candidates)
    also.insert(site.id);
  const std::set<ValueId> whole = read_whole(also);
  for (const NarrowSite& site : candidates)
    if (whole.contains(function_.operands_of(site.id)[0].as_value())) take(site);
}

void Narrowing::rewrite_product(InstructionId id, bool is_signed, Twins& twins) {
  const std::vector<Operand> operands(function_.operands_of(id).begin(), function_.operands_of(id).end());
  const ir::Form& form = function_.form_of(id);
  std::vector<Operand> narrow{operands[0], twins.low_half(operands[1])};
  if (form.operation == Operation::shift_left)
    narrow.push_back(Operand::integer(int64_t(1) << operands[2].immediate));
  else
    narrow.push_back(twins.low_half(operands[2]));
  const bool adds = form.operation == Operation::multiply_add;
  if (adds) narrow.push_back(operands[3]);
  const std::string mnemonic = std::string(adds ? "mad" : "mul") + ".wide." + (is_signed ? "s32" : "u32");
  ir::Builder builder(function_);
  builder.before(id).standing_for(id).emit(mnemonic, narrow);
}

// Division by 2^k rounds towards zero by adding 2^k - 1 to negative numbers, and the remainder is the difference:
//   t = sign >>> (32-k);  a = x + t;  m = a & -2^k;  r = x - m
// If x is not negative, a is x, and r is x & (2^k - 1). Their computations become dead.
void Narrowing::simplify_rounding(InstructionId sign) {
  const Operand x = function_.operands_of(sign)[1];
  auto plain = [&](InstructionId id, Operation operation) {
    return id && function_.instructions[id].kind == ir::InstructionKind::real && function_.instructions[id].block &&
           !function_.instructions[id].guard && function_.form_of(id).operation == operation &&
           function_.operands_of(id).size() == 3 && is_register(function_.operands_of(id)[0], 32) &&
           ir::bit_width(function_.form_of(id).type()) == 32 && !function_.form_of(id).effects.writes_carry &&
           !function_.form_of(id).effects.reads_carry && !function_.form_of(id).has(Modifier::sat);
  };
  auto readers = [&](InstructionId id) {
    std::vector<InstructionId> list;
    for (const ir::Use& use : forms_.def_use().uses(function_.operands_of(id)[0].as_value()))
      if (use.instruction) list.push_back(use.instruction);
    return list;
  };
  if (!is_register(x, 32)) return;
  for (InstructionId bits : readers(sign)) {
    if (!plain(bits, Operation::shift_right) || ir::is_signed(function_.form_of(bits).type())) continue;
    for (InstructionId added : readers(bits)) {
      if (!plain(added, Operation::add)) continue;
      const std::vector<Operand> terms(function_.operands_of(added).begin(), function_.operands_of(added).end());
      if (terms[1] != x && terms[2] != x) continue;
      for (InstructionId mask : readers(added)) {
        if (!plain(mask, Operation::bit_and)) continue;
        const Operand literal = function_.operands_of(mask)[2];
        const int64_t low = literal.is(OperandKind::integer) ? -static_cast<int32_t>(literal.immediate) : 0;
        if (low <= 0 || (low & (low - 1)) != 0) continue;
        for (InstructionId rest : readers(mask))
          if (plain(rest, Operation::subtract) && function_.operands_of(rest)[1] == x &&
              function_.operands_of(rest)[2] == Operand::value(function_.operands_of(mask)[0].as_value())) {
            ir::Builder builder(function_);
            builder.before(rest).standing_for(rest);
            builder.emit("and.b32", {function_.operands_of(rest)[0], x, Operand::integer(low - 1)});
            removed_.insert(rest);
          }
      }
      ir::Builder builder(function_);
      builder.before(added).standing_for(added).emit("mov.b32", {terms[0], x});
      removed_.insert(added);
    }
  }
}

void Narrowing::rewrite(const NarrowSite& site, Twins& twins, ValueId quotient) {
  const InstructionId id = site.id;
  const std::vector<Operand> operands(function_.operands_of(id).begin(), function_.operands_of(id).end());
  std::string mnemonic(function_.form_of(id).mnemonic);
  const bool is_remainder = function_.form_of(id).operation == Operation::remainder;
  ir::Builder builder(function_);
  switch (site.kind) {
  case Kind::division: {
    const Operand dividend = twins.low_half(operands[1]), divisor = twins.low_half(operands[2]);
    builder.before(id).standing_for(id);
    builder.emit(is_remainder ? "rem.u32" : "div.u32", {Operand::definition(quotient), dividend, divisor});
    builder.emit("cvt.u64.u32", {operands[0], Operand::value(quotient)});
    break;
  }
  case Kind::comparison: {
    const Operand left = twins.low_half(operands[1]), right = twins.low_half(operands[2]);
    mnemonic.replace(mnemonic.rfind('.'), std::string::npos, site.is_signed ? ".s32" : ".u32");
    builder.before(id).standing_for(id).emit(mnemonic, {operands[0], left, right});
    break;
  }
  case Kind::product:
    rewrite_product(id, site.is_signed, twins);
    break;
  case Kind::unsigned_division:
    builder.before(id).standing_for(id).emit(is_remainder ? "rem.u32" : "div.u32", operands);
    break;
  case Kind::sign:
    simplify_rounding(id);
    builder.before(id).standing_for(id);
    builder.emit(ir::bit_width(function_.form_of(id).type()) == 64 ? "mov.b64" : "mov.b32",
                 {operands[0], Operand::integer(0)});
    break;
  }
}

bool Narrowing::run() {
  std::vector<NarrowSite> products;
  for (BlockId block : forms_.control_flow().reverse_postorder())
    for (InstructionId id : function_.instructions_in(block))
      if (std::optional<NarrowSite> site = site_at(id)) {
        if (site->kind == Kind::product)
          products.push_back(std::move(*site));
        else
          take(*site);
      }
  take_products(products);
  bool changed = merge_range_tests(attempt_, filter_, forms_, bounds_);
  Twins twins(function_, forms_.control_flow(), forms_.def_use(), read_whole({}));
  // Results first: a reader may precede its operand, through a loop's back edge.
  std::map<InstructionId, ValueId> quotients;
  for (const NarrowSite& site : taken_)
    if (site.kind == Kind::division) {
      const ValueId quotient = ir::Builder(function_).new_value(ScalarType::b32, "%r");
      quotients[site.id] = quotient;
      twins.set(function_.operands_of(site.id)[0].as_value(), quotient);
    }
  for (const NarrowSite& site : taken_)
    rewrite(site, twins, quotients[site.id]);
  twins.replace_truncations();
  // Removed last, because low halves are extracted after them.
  for (const NarrowSite& site : taken_)
    removed_.insert(site.id);
  for (InstructionId id : removed_)
    function_.remove(id);
  changed |= !taken_.empty();
  if (changed) {
    function_.changed();
    ir::remove_dead_code(function_);
  }
  return changed;
}

} // namespace

bool narrow_instructions(legal::Attempt& attempt, legal::SiteFilter& sites, ir::LinearForms& forms) {
  return Narrowing(attempt, sites, forms).run();
}

} // namespace ptxrewrite::transforms
