// Emits corner sums as 64-bit instructions and duplicates kernel bodies.
#include "transforms/common/kernel_guard.h"

#include "ir/core/builder.h"
#include "ir/core/last_return.h"
#include "ir/core/module.h"
#include "transforms/common/expression_writer.h"

#include <algorithm>
#include <array>

namespace ptxrewrite::transforms::legal {

namespace {

using ir::BlockId;
using ir::EdgeId;
using ir::ExpressionId;
using ir::InstructionId;
using ir::Int128;
using ir::Interval;
using ir::Operand;
using ir::ValueId;
namespace form_index = ir::form_index;

// Limits that every launch satisfies; .reqntid and .maxntid would only narrow them.
ir::LaunchLimits hardware_limits() {
  ir::LaunchLimits limits;
  limits.block = {Interval{1, 1024}, Interval{1, 1024}, Interval{1, 64}};
  limits.grid = {Interval{1, INT32_MAX}, Interval{1, 65535}, Interval{1, 65535}};
  return limits;
}

// The largest possible value of an index.
Int128 last_index(unsigned place) {
  const ir::LaunchLimits limits = hardware_limits();
  unsigned component = place - form_index::tid_x;
  return (component < 3 ? limits.block[component] : limits.grid[component - 3]).high - 1;
}

bool fits_64(Int128 value) {
  return value >= INT64_MIN && value <= INT64_MAX;
}

// The smallest and largest sums over the launch box, as 64-bit expressions.
struct Corners {
  ExpressionId low, high;
};

Corners corners_of(ir::ExpressionPool& pool, const ir::LinearForm& form) {
  Corners sums;
  sums.low = sums.high = pool.sign_extend(form.coefficients[form_index::constant], 64);
  for (unsigned place = form_index::tid_x; place < form_index::count; ++place) {
    if (pool.is_zero(form.coefficients[place])) continue;
    unsigned component = place - form_index::tid_x;
    ExpressionId extent =
        pool.special(component < 3 ? ir::SpecialRegister::ntid : ir::SpecialRegister::nctaid, component % 3, 32);
    ExpressionId last = pool.subtract(pool.zero_extend(extent, 64), pool.literal(64, 1));
    ExpressionId product = pool.multiply(pool.sign_extend(form.coefficients[place], 64), last);
    Interval sign = pool.interval(form.coefficients[place], hardware_limits());
    ExpressionId zero = pool.literal(64, 0);
    if (sign.low < 0)
      sums.low =
          pool.add(sums.low, sign.high <= 0 ? product : pool.binary(ir::ExpressionKind::minimum_signed, product, zero));
    if (sign.high > 0)
      sums.high =
          pool.add(sums.high, sign.low >= 0 ? product : pool.binary(ir::ExpressionKind::maximum_signed, product, zero));
  }
  return sums;
}

// Appends copies of the blocks of one function to another that has the same variables.
class BodyCopy {
public:
  BodyCopy(const ir::Function& from, ir::Function& to) : from_(from), to_(to) {}

  void run();
  BlockId block(BlockId original) const { return blocks_[original.index()]; }

private:
  Symbol label_for(Symbol old);
  void copy_instruction(InstructionId id, BlockId block);
  std::vector<ValueId> mapped(std::span<const ValueId> list) const {
    std::vector<ValueId> out;
    for (ValueId value : list)
      out.push_back(values_[value.index()]);
    return out;
  }

  const ir::Function& from_;
  ir::Function& to_;
  std::vector<BlockId> blocks_;
  std::vector<ValueId> values_;
};

Symbol BodyCopy::label_for(Symbol old) {
  ir::Module& module = to_.module();
  const std::string stem = old ? std::string(module.text(old)) : "$L_" + std::string(module.text(to_.name));
  std::string label = stem + "_original";
  for (unsigned number = 2; module.strings.find(label); ++number)
    label = stem + "_original" + std::to_string(number);
  return module.intern(label);
}

void BodyCopy::copy_instruction(InstructionId id, BlockId block) {
  ir::Instruction copy = from_.instructions[id];
  std::vector<Operand> operands;
  for (Operand operand : from_.operands_of(id)) {
    if (operand.is(ir::OperandKind::value))
      operand.id = values_[operand.id].index();
    else if (operand.is(ir::OperandKind::block))
      operand.id = blocks_[operand.id].index();
    operands.push_back(operand);
  }
  if (copy.guard) copy.guard = values_[copy.guard.index()];
  copy.previous = copy.next = {};
  copy.block = {};
  copy.operands = {};
  to_.append(block, to_.add_instruction(copy, operands));
}

void BodyCopy::run() {
  for (ValueId value : from_.values.ids())
    values_.push_back(to_.add_value(from_.values[value]));
  blocks_.resize(from_.blocks.size());
  for (BlockId block : from_.layout) {
    blocks_[block.index()] = to_.add_block(label_for(from_.blocks[block].label));
    to_.place_block(blocks_[block.index()]);
  }
  for (BlockId block : from_.layout) {
    BlockId copy = blocks_[block.index()];
    to_.set_parameters(copy, mapped(from_.parameters(block)));
    for (InstructionId id : from_.instructions_in(block)) {
      ir::InstructionKind kind = from_.instructions[id].kind;
      if (kind != ir::InstructionKind::declare_variable && kind != ir::InstructionKind::prototype)
        copy_instruction(id, copy);
    }
    std::vector<EdgeId> edges;
    for (EdgeId edge : from_.successors(block))
      edges.push_back(to_.add_edge(copy, blocks_[from_.edges[edge].to.index()], mapped(from_.arguments(edge))));
    to_.set_successors(copy, edges, from_.blocks[block].falls_through);
  }
}

} // namespace

bool KernelGuard::can_test(const ir::LinearForms& forms, ir::ObligationId id) {
  const ir::RangeObligation& obligation = forms.obligation(id);
  const ir::Function& function = forms.function();
  if (obligation.kind != ir::RangeObligation::Kind::form_range || !function.label_tables.empty()) return false;
  const ir::LinearForm& form = forms.form(obligation.form);
  if (!form.has_coefficients() || form.loop_count != 0 || form.kind == ir::ValueClass::divergent_linear ||
      form.kind == ir::ValueClass::mod_linear || form.varies || form.width != 32)
    return false;
  // Every partial sum must fit, in any order of addition.
  const ir::ExpressionPool& pool = forms.expressions();
  Int128 magnitude = Int128(1) << 31;
  for (unsigned place = 0; place < form_index::count; ++place) {
    if (!CoefficientWriter::expressible(pool, form.coefficients[place])) return false;
    if (place == form_index::constant || pool.is_zero(form.coefficients[place])) continue;
    Interval bounds = pool.interval(form.coefficients[place], hardware_limits());
    magnitude += std::max(bounds.high, -bounds.low) * last_index(place);
  }
  return fits_64(magnitude) && fits_64(obligation.range.low) && fits_64(obligation.range.high);
}

void KernelGuard::require(ValueId sum, std::string_view comparison, int64_t bound) {
  ir::Builder builder(*guarded_);
  builder.at_end(test_);
  ValueId holds = builder.emit_value("setp." + std::string(comparison) + ".s64", ir::ScalarType::pred,
                                     {Operand::value(sum), Operand::integer(bound)}, "%p");
  all_hold_ = all_hold_.valid() ? builder.emit_value("and.pred", ir::ScalarType::pred,
                                                     {Operand::value(all_hold_), Operand::value(holds)}, "%p")
                                : holds;
}

void KernelGuard::test(ir::LinearForms& forms, ir::ObligationId id) {
  if (!guarded_) {
    guarded_.emplace(*source_);
    BlockId entry = guarded_->entry();
    test_ = guarded_->add_block();
    guarded_->place_block_before(test_, entry);
    guarded_->set_successors(test_, std::vector{guarded_->add_edge(test_, entry)}, true);
  }
  const ir::RangeObligation& obligation = forms.obligation(id);
  Corners sums = corners_of(forms.expressions(), forms.form(obligation.form));
  ir::Builder builder(*guarded_);
  builder.at_end(test_);
  CoefficientWriter writer(*guarded_, builder, forms.expressions(), ir::RegisterClass::general);
  Operand low = writer.write_to_register(sums.low), high = writer.write_to_register(sums.high);
  require(low.as_value(), "ge", static_cast<int64_t>(obligation.range.low));
  require(high.as_value(), "le", static_cast<int64_t>(obligation.range.high));
}

size_t KernelGuard::instruction_count() const {
  size_t count = 0;
  if (guarded_)
    for (InstructionId id : guarded_->instructions_in(test_))
      count += guarded_->instructions[id].kind == ir::InstructionKind::real;
  return count + !empty();
}

void KernelGuard::attach(ir::Function& rewritten) const {
  BlockId body = rewritten.entry();
  // Control must not fall through from the rewritten body into the original one.
  ir::spell_last_return(rewritten);
  BodyCopy copy(*guarded_, rewritten);
  copy.run();
  BlockId test = copy.block(test_), original = copy.block(guarded_->layout[1]);
  // The copied test becomes the entry; it falls through to the copied body.
  std::erase(rewritten.layout, test);
  rewritten.blocks[test].in_layout = false;
  rewritten.blocks[test].label = {};
  rewritten.place_block_before(test, body);
  InstructionId first = rewritten.blocks[test].first;
  for (InstructionId id : rewritten.instructions_in(body)) {
    ir::InstructionKind kind = rewritten.instructions[id].kind;
    if (kind != ir::InstructionKind::declare_variable && kind != ir::InstructionKind::prototype) continue;
    rewritten.remove(id);
    rewritten.insert_before(first, id);
  }
  // The last predicate that the test writes tells whether all conditions hold.
  ValueId all_hold;
  ir::for_each_definition(rewritten, rewritten.blocks[test].last, [&](ValueId value) { all_hold = value; });
  ir::Builder builder(rewritten);
  builder.at_end(test).guarded_by(all_hold, true).emit("bra", {Operand::block(original)});
  rewritten.set_successors(test, std::vector{rewritten.add_edge(test, original), rewritten.add_edge(test, body)}, true);
  rewritten.changed();
}

} // namespace ptxrewrite::transforms::legal
