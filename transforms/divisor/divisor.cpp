// Pass `divisor`: division and remainder by a number that is the same for all threads of a launch become a
// multiplication and a shift by numbers that the launcher computes from the divisor (transforms/divisor/magic.h).
//
// A machine divides by an approximate reciprocal and corrects it: some 16 instructions for 32 bits, a call of 90 for
// 64. The multiplication takes 2 to 4. The range of the dividend determines the form; the divisor must not be 0, and
// for signed division it must be positive, which is checked at launch. A remainder is the dividend minus quotient *
// divisor, and quotients of the same two values are computed once. transforms/divisor/float_division.h handles
// divisions of f32 by literals.
#include "ir/core/insertion.h"
#include "ir/edit/dead_code.h"
#include "transforms/common/family.h"
#include "transforms/common/value_bounds.h"
#include "transforms/divisor/float_division.h"
#include "transforms/divisor/magic.h"

#include <map>

namespace ptxrewrite::transforms {

namespace {

using ir::BlockId;
using ir::ExpressionId;
using ir::InstructionId;
using ir::Operand;
using ir::OperandKind;
using ir::ScalarType;
using ir::ValueId;
using legal::Attempt;
using legal::BoundsOfValues;
using legal::RangeProof;
using legal::SiteFilter;

constexpr const char* raised_by = "divisor: division as multiplication";
constexpr size_t most_parameters = 60; // added to one kernel

// One division or remainder, and how it is rewritten.
struct DivisionSite {
  InstructionId id;
  bool is_remainder = false;
  unsigned width = 32; // of the instruction
  MagicForm form = MagicForm::natural32;
  Operand dividend, divisor;
  ExpressionId divisor_expression;
  std::string divisor_text; // launch expression of its value
  std::vector<ir::ObligationId> divisor_obligations;
  std::string divisor_predicate; // that it is in the form's range; empty if it always is
  std::vector<RangeProof> proofs;

  bool is_wide_form() const { return form >= MagicForm::natural64; }
};

class Divisions {
public:
  Divisions(Attempt& attempt, SiteFilter& sites)
      : attempt_(attempt), sites_(sites), function_(attempt.function()), forms_(function_), bounds_(forms_, attempt) {}

  bool run();

private:
  std::optional<DivisionSite> site_at(InstructionId id);
  bool describe_divisor(DivisionSite& site, bool is_signed);
  void limit_divisor(DivisionSite& site, bool is_signed);
  void choose_form(DivisionSite& site, bool is_signed);
  void enter(const DivisionSite& site);
  void rewrite(const DivisionSite& site);

  ValueId parameter(ScalarType type, const std::string& value);
  Operand in_32_bits(ir::Builder& builder, const Operand& operand);
  ValueId quotient(const DivisionSite& site, ir::Builder& builder);
  ValueId compute_quotient(const DivisionSite& site, ir::Builder& builder);

  // A quotient that is already computed, for reuse by instructions that it dominates.
  struct Known {
    BlockId block;
    ValueId value;
  };

  Attempt& attempt_;
  SiteFilter& sites_;
  ir::Function& function_;
  ir::LinearForms forms_;
  BoundsOfValues bounds_;
  std::map<std::pair<ScalarType, std::string>, ValueId> loaded_;
  std::map<std::tuple<uint32_t, ExpressionId, MagicForm>, std::vector<Known>> quotients_;
};

// --- analysis ---

// Fills the site if the divisor is the same in all threads and trips, and the launcher can compute it.
bool Divisions::describe_divisor(DivisionSite& site, bool is_signed) {
  const Operand& divisor = site.divisor;
  if (!divisor.is(OperandKind::value) || divisor.selector != ir::no_selector) return false;
  const ir::LinearForm& form = forms_.form(divisor.as_value());
  if (form.kind != ir::ValueClass::launch_uniform || !form.has_coefficients() || form.varies ||
      form.width != site.width)
    return false;
  const ExpressionId expression = form.coefficients[ir::form_index::constant];
  const ir::ExpressionPool& pool = forms_.expressions();
  if (!pool[expression].evaluable || pool[expression].varies || pool.literal_value(expression)) return false;
  site.divisor_expression = expression;
  const std::string width = std::to_string(site.width);
  site.divisor_text = pool.print_predicate(expression);
  // `zext32(sext32(P2))` is simplified to `zext32(P2)`.
  const std::string extension = "sext" + width + "(";
  const bool is_extended =
      site.divisor_text.starts_with(extension) && site.divisor_text.find(')') == site.divisor_text.size() - 1;
  if (!is_signed && is_extended)
    site.divisor_text.replace(0, 1, "z");
  else if (!is_signed)
    site.divisor_text = "zext" + width + "(" + site.divisor_text + ")";
  else if (!is_extended)
    site.divisor_text = "(" + site.divisor_text + ")";
  const auto needed = forms_.obligations(divisor.as_value());
  site.divisor_obligations.assign(needed.begin(), needed.end());
  return attempt_.can_rest_on(forms_, site.divisor_obligations);
}

void Divisions::limit_divisor(DivisionSite& site, bool is_signed) {
  const ir::Int128 least = least_divisor(site.form), largest = largest_divisor(site.form);
  const legal::ValueBounds bounds = bounds_.read(site.id, site.divisor, site.width, is_signed);
  std::string& predicate = site.divisor_predicate;
  if (bounds.always->low < least) predicate = site.divisor_text + " >= " + ir::to_string(least);
  if (bounds.always->high > largest)
    predicate += (predicate.empty() ? "" : " && ") + site.divisor_text + " <= " + ir::to_string(largest);
}

void Divisions::choose_form(DivisionSite& site, bool is_signed) {
  auto dividend_below = [&](ir::Int128 limit) {
    std::optional<RangeProof> proof = bounds_.prove(site.id, site.dividend, {0, limit - 1});
    if (proof) site.proofs.push_back(std::move(*proof));
    return proof.has_value();
  };
  if (dividend_below(ir::Int128(1) << 31))
    site.form = MagicForm::natural32;
  else if (site.width == 32)
    site.form = is_signed ? MagicForm::signed32 : MagicForm::unsigned32;
  else if (dividend_below(ir::Int128(1) << 32))
    site.form = MagicForm::unsigned32;
  else if (dividend_below(ir::Int128(1) << 63))
    site.form = MagicForm::natural64;
  else
    site.form = is_signed ? MagicForm::signed64 : MagicForm::unsigned64;
}

std::optional<DivisionSite> Divisions::site_at(InstructionId id) {
  const ir::Instruction& instruction = function_.instructions[id];
  if (instruction.kind != ir::InstructionKind::real || instruction.guard) return std::nullopt;
  const ir::Form& form = function_.form_of(id);
  const unsigned width = ir::bit_width(form.type());
  if ((form.operation != ir::Operation::divide && form.operation != ir::Operation::remainder) ||
      !ir::is_integer(form.type()) || (width != 32 && width != 64))
    return std::nullopt;
  const std::span<const Operand> operands = function_.operands_of(id);
  if (operands.size() != 3 || !operands[0].is(OperandKind::value) ||
      ir::bit_width(function_.values[operands[0].as_value()].type) != width || !operands[1].is(OperandKind::value) ||
      operands[1].selector != ir::no_selector || ir::bit_width(function_.values[operands[1].as_value()].type) != width)
    return std::nullopt;
  DivisionSite site;
  site.id = id;
  site.is_remainder = form.operation == ir::Operation::remainder;
  site.width = width;
  site.dividend = operands[1];
  site.divisor = operands[2];
  if (!describe_divisor(site, ir::is_signed(form.type()))) return std::nullopt;
  choose_form(site, ir::is_signed(form.type()));
  limit_divisor(site, ir::is_signed(form.type()));
  return site;
}

// --- rewriting ---

void Divisions::enter(const DivisionSite& site) {
  for (const RangeProof& proof : site.proofs)
    bounds_.rest_on(attempt_, proof, raised_by, site.id);
  for (ir::ObligationId id : site.divisor_obligations)
    attempt_.rest_on(forms_, id, raised_by, site.id);
  const std::string name = forms_.expressions().print_short(site.divisor_expression, &function_);
  attempt_.rest_on("the divisor " + name + " is in " + std::to_string(least_divisor(site.form)) + ".." +
                       std::to_string(largest_divisor(site.form)),
                   raised_by, site.divisor_predicate, "bounds of what it is computed from",
                   function_.instructions[site.id].range);
}

// The value of an added parameter, loaded at the kernel's entry.
ValueId Divisions::parameter(ScalarType type, const std::string& value) {
  auto [row, is_new] = loaded_.try_emplace({type, value});
  if (!is_new) return row->second;
  const ir::VariableId variable = attempt_.launch_parameter(type, value);
  const bool wide = ir::bit_width(type) == 64;
  ir::Builder builder = ir::builder_at_code_start(function_);
  row->second = builder.new_value(wide ? ScalarType::b64 : ScalarType::b32, wide ? "%rd" : "%r");
  std::vector<Operand> operands{Operand::definition(row->second)};
  ir::append_address(operands, Operand::symbol(ir::SymbolRef::local_variable(variable)));
  builder.emit(wide ? "ld.param.b64" : "ld.param.b32", operands);
  return row->second;
}

Operand Divisions::in_32_bits(ir::Builder& builder, const Operand& operand) {
  if (ir::bit_width(function_.values[operand.as_value()].type) == 32) return operand;
  return Operand::value(builder.emit_value("cvt.u32.u64", ScalarType::b32, {operand}, "%r"));
}

ValueId Divisions::compute_quotient(const DivisionSite& site, ir::Builder& builder) {
  const Magic magic = magic_of(site.form, site.divisor_text);
  const Operand m = Operand::value(parameter(magic.multiplier_type, magic.multiplier));
  const Operand shift = Operand::value(parameter(ScalarType::u32, magic.shift));
  const Operand n = site.is_wide_form() ? site.dividend : in_32_bits(builder, site.dividend);
  auto narrow = [&](const char* mnemonic, std::initializer_list<Operand> sources) {
    return Operand::value(builder.emit_value(mnemonic, ScalarType::b32, sources, "%r"));
  };
  auto wide = [&](const char* mnemonic, std::initializer_list<Operand> sources) {
    return Operand::value(builder.emit_value(mnemonic, ScalarType::b64, sources, "%rd"));
  };
  switch (site.form) {
  case MagicForm::natural32: {
    const Operand product = wide("mul.wide.u32", {n, m});
    return narrow("cvt.u32.u64", {wide("shr.u64", {product, shift})}).as_value();
  }
  case MagicForm::unsigned32: {
    const Operand addend = Operand::value(parameter(ScalarType::u64, magic.addend));
    // Not mad.wide: its 64-bit addend must be moved to registers, whereas an addition reads it from constant memory.
    const Operand total = wide("add.s64", {wide("mul.wide.u32", {n, m}), addend});
    return narrow("cvt.u32.u64", {wide("shr.u64", {total, shift})}).as_value();
  }
  case MagicForm::signed32: {
    const Operand high = narrow("mad.hi.s32", {n, m, n});
    const Operand below = narrow("shr.s32", {high, shift});
    return narrow("add.s32", {below, narrow("shr.u32", {n, Operand::integer(31)})}).as_value();
  }
  case MagicForm::natural64:
    return wide("shr.u64", {wide("mul.hi.u64", {n, m}), shift}).as_value();
  case MagicForm::unsigned64: {
    const Operand high = wide("mul.hi.u64", {n, m});
    const Operand half = wide("shr.u64", {wide("sub.s64", {n, high}), Operand::integer(1)});
    return wide("shr.u64", {wide("add.s64", {half, high}), shift}).as_value();
  }
  case MagicForm::signed64: {
    const Operand high = wide("add.s64", {wide("mul.hi.s64", {n, m}), n});
    const Operand below = wide("shr.s64", {high, shift});
    return wide("add.s64", {below, wide("shr.u64", {n, Operand::integer(63)})}).as_value();
  }
  }
  return {};
}

ValueId Divisions::quotient(const DivisionSite& site, ir::Builder& builder) {
  const BlockId block = function_.instructions[site.id].block;
  std::vector<Known>& known = quotients_[{site.dividend.id, site.divisor_expression, site.form}];
  // Dominators are visited before the blocks they dominate, and instructions of a block in order.
  for (const Known& one : known)
    if (forms_.dominators().dominates(one.block, block)) return one.value;
  known.push_back({block, compute_quotient(site, builder)});
  return known.back().value;
}

void Divisions::rewrite(const DivisionSite& site) {
  ir::Builder builder(function_);
  builder.before(site.id).standing_for(site.id);
  const Operand q = Operand::value(quotient(site, builder));
  const ValueId result = function_.operands_of(site.id)[0].as_value();
  const bool result_is_wider = site.width == 64 && !site.is_wide_form();
  if (site.is_remainder) {
    const bool wide = site.is_wide_form();
    const Operand n = wide ? site.dividend : in_32_bits(builder, site.dividend);
    const Operand d = wide ? site.divisor : in_32_bits(builder, site.divisor);
    const ScalarType type = wide ? ScalarType::b64 : ScalarType::b32;
    const char* hint = wide ? "%rd" : "%r";
    const Operand whole = Operand::value(builder.emit_value(wide ? "mul.lo.s64" : "mul.lo.s32", type, {q, d}, hint));
    if (result_is_wider) {
      const Operand rest = Operand::value(builder.emit_value("sub.s32", type, {n, whole}, hint));
      builder.emit("cvt.u64.u32", {Operand::definition(result), rest});
    } else {
      builder.emit(wide ? "sub.s64" : "sub.s32", {Operand::definition(result), n, whole});
    }
  } else if (result_is_wider) {
    builder.emit("cvt.u64.u32", {Operand::definition(result), q});
  } else {
    builder.emit(site.width == 64 ? "mov.b64" : "mov.b32", {Operand::definition(result), q});
  }
  function_.remove(site.id);
}

bool Divisions::run() {
  bool changed = false;
  for (BlockId block : forms_.control_flow().reverse_postorder())
    for (InstructionId id : function_.instructions_in(block)) {
      if (attempt_.added_parameters() >= most_parameters) break;
      std::optional<DivisionSite> site = site_at(id);
      if (!site) continue;
      const std::string text = std::string(function_.form_of(id).mnemonic) + " by " +
                               forms_.expressions().print_short(site->divisor_expression, &function_) +
                               " -> multiplication and shift";
      if (!sites_.take(id, text)) continue;
      enter(*site);
      rewrite(*site);
      changed = true;
    }
  if (changed) {
    function_.changed();
    ir::remove_dead_code(function_);
  }
  return changed;
}

// A quick check before the ranges of a whole kernel are computed.
bool divides(const ir::Function& function) {
  for (BlockId block : function.layout)
    for (InstructionId id : function.instructions_in(block)) {
      if (function.instructions[id].kind != ir::InstructionKind::real) continue;
      const ir::Form& form = function.form_of(id);
      const bool is_division = form.operation == ir::Operation::divide || form.operation == ir::Operation::remainder;
      if (is_division && ir::is_integer(form.type()) && function.operands_of(id).size() == 3 &&
          function.operands_of(id)[2].is(OperandKind::value))
        return true;
    }
  return false;
}

bool apply(Attempt& attempt, SiteFilter& sites, PassContext&) {
  const bool changed = divide_floats(attempt, sites);
  const bool may_divide = attempt.may_add_parameters() && divides(attempt.function());
  return (may_divide && Divisions(attempt, sites).run()) || changed;
}

Change run(ir::Function& function, PassContext& context) {
  return legal::run_family(function, context, {"divisor", apply});
}

const RegisterPass registration(legal::family_pass(
    "divisor", "divide by launch constants with multiplications whose numbers the launcher computes", run));

} // namespace

} // namespace ptxrewrite::transforms
