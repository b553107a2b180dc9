// Uniform base + 32-bit offset: accesses whose addresses have the same thread, block and loop part but different
// launch-uniform parts, such as the rows and planes of a stencil or several arrays at one index, all become
//
//     mul.wide.s32  scaled, offset, scale                 once
//     add.s64       address, scaled, base_i               base_i the same for all threads of the launch
//
// with one 32-bit offset for all of them. The machine computes each sum and product in one instruction, with the base
// as an operand from the constant bank or a uniform register (ptxas splits mad.wide into two or three), whereas the
// original computes an index for each access, or keeps one induction variable for each. The offset is an existing value
// of the kernel if there is one, otherwise it is computed at the entry. It is widened as signed or unsigned, so it
// needs no bias; an obligation of this rewrite is that it does not wrap.
//
// Candidate 5 creates the offset as a new induction variable of the loop around the accesses, for kernels that advance
// one 64-bit pointer for each access, or compute indices in every trip.
#include "transforms/r2d2/uniform_base.h"

#include "ir/core/builder.h"
#include "ir/edit/dead_code.h"
#include "transforms/common/cost.h"
#include "transforms/r2d2/r2d2_plan.h"
#include "transforms/r2d2/r2d2_sections.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <unordered_map>
#include <unordered_set>

namespace ptxrewrite::transforms::legal {

namespace {

using ir::BlockId;
using ir::ExpressionId;
using ir::InstructionId;
using ir::LinearForm;
using ir::ObligationId;
using ir::Operand;
using ir::ValueId;
namespace form_index = ir::form_index;

constexpr std::string_view reason = "r2d2: uniform base and 32-bit offset";
// The range of address immediates that all SASS loads and stores support: 24 bits, signed.
constexpr int64_t immediate_limit = int64_t(1) << 23;

struct Access {
  InstructionId instruction;
  size_t address = 0; // operand index
  ValueId base;
  ExpressionId constant; // of the address's form
};

// Accesses whose forms differ only in the constant.
struct AccessClass {
  LinearForm form; // of the first access
  std::vector<Access> accesses;
};

// A 32-bit value that, widened and scaled, equals the varying part of a class's addresses up to a constant.
struct Offset {
  ValueId value;   // invalid: to be computed at the entry
  LinearForm form; // 32 bits
  int64_t scale = 1;
  BlockId home; // the block that defines it
  bool is_signed = true;
};

// Accesses of a class with the same base.
struct BaseGroup {
  ExpressionId base;
  std::vector<std::pair<Access, int64_t>> accesses; // with their immediates
};

class UniformBases {
public:
  UniformBases(const Trial& trial, const UniformBaseOptions& options, bool inductions)
      : trial_(trial), attempt_(trial.attempt), function_(trial.attempt.function()), options_(options),
        inductions_(inductions), forms_(trial.analyses.of<ir::LinearForms>(trial.kernel)), pool_(forms_.expressions()),
        builder_(function_), writer_(function_, builder_, pool_, ir::RegisterClass::general) {}

  bool run();

private:
  void collect_accesses();
  void collect_offsets();
  std::optional<Offset> match(const AccessClass& accesses, ValueId value);
  bool widens_to(Offset& offset, const LinearForm& address);
  std::optional<Offset> choose_offset(const AccessClass& accesses, std::vector<Access>& served);
  ObligationId in_range(const Offset& offset, const Access& access);
  std::optional<Offset> build_offset(const AccessClass& accesses);
  std::vector<BaseGroup> group_by_base(const std::vector<Access>& accesses, const Offset& offset);
  bool pays(const std::vector<BaseGroup>& groups, const Offset& offset);
  InstructionId place_for(const BaseGroup& group, const Offset& offset) const;
  BlockId block_of(const BaseGroup& group, const Offset& offset) const;
  void number_instructions();
  uint32_t position(InstructionId id) const { return position_[id.index()]; }
  bool reaches(ValueId value, const Access& access) const;
  std::vector<uint32_t> offsets_like(const AccessClass& accesses);
  void write_offset(Offset& offset);
  void write_induction(Offset& offset, Operand start);
  bool is_induction(const Offset& offset) const { return !offset.value.valid() && offset.form.loop_count != 0; }
  std::optional<ExpressionId> narrowed(ExpressionId wide, uint64_t scale);
  ValueId scaled_offset(const Offset& offset, BlockId block, InstructionId place);
  void rewrite(const std::vector<BaseGroup>& groups, Offset& offset);
  void try_class(AccessClass& accesses);

  BlockId home(ValueId value) const { return forms_.def_use().definition(value).block; }

  const Trial& trial_;
  Attempt& attempt_;
  ir::Function& function_;
  UniformBaseOptions options_;
  bool inductions_; // candidate 5
  ir::LinearForms& forms_;
  ir::ExpressionPool& pool_;
  std::optional<ir::ReaderCounts> counts_; // computed when a choice is first evaluated
  ir::Builder builder_;
  CoefficientWriter writer_;
  std::map<std::vector<uint32_t>, size_t> class_index_;
  std::vector<AccessClass> classes_;
  std::vector<ValueId> offsets_; // 32-bit values that vary and have a form, definitions before uses
  // Offsets with the same thread and block coefficients, as indices into offsets_; by_loop has those that advance with
  // a loop.
  struct OffsetGroup {
    LinearForm form; // of the first
    std::vector<uint32_t> all;
    std::unordered_map<ir::LoopId, std::vector<uint32_t>> by_loop;
  };
  std::vector<OffsetGroup> offset_groups_;
  std::vector<uint32_t> position_; // by InstructionId: position in its block, for the kernel's own instructions
  // The scaled offset of the class being rewritten: inserted before the instruction at `position` of its block.
  struct Product {
    ValueId value;
    BlockId block;
    uint32_t position = 0;
  };
  std::vector<Product> products_;
  InstructionId head_; // the first real instruction of the original; bases are computed before it; invalid: none
  size_t rewritten_ = 0, bases_ = 0;
};

void UniformBases::collect_accesses() {
  for (BlockId block : forms_.control_flow().reverse_postorder()) {
    for (InstructionId id : function_.instructions_in(block)) {
      std::optional<size_t> address = rewritable_address(function_, id);
      if (!address || ir::is_shared(function_.form_of(id).space)) continue;
      ValueId base = function_.operands_of(id)[*address + 1].as_value();
      const LinearForm& form = forms_.address_form(id, *address);
      if (form.width != 64 || !form.has_coefficients() || form.varies ||
          ir::bit_width(function_.values[base].type) != 64)
        continue;
      if (form.kind != ir::ValueClass::linear && form.kind != ir::ValueClass::linear_loop &&
          form.kind != ir::ValueClass::block_uniform)
        continue;
      if (inductions_ && form.loop_count != 1) continue;
      std::vector<uint32_t> key;
      bool usable = CoefficientWriter::expressible(pool_, form.coefficients[form_index::constant]);
      for (unsigned place = form_index::tid_x; place < form_index::count; ++place) {
        usable &= !pool_[form.coefficients[place]].varies;
        key.push_back(form.coefficients[place].index());
      }
      for (const ir::LoopOffset& offset : form.loops()) {
        key.push_back(offset.loop.index());
        key.push_back(offset.step.index());
      }
      if (!usable || !attempt_.can_rest_on(forms_, forms_.obligations(base))) continue;
      auto [row, is_new] = class_index_.try_emplace(std::move(key), classes_.size());
      if (is_new) classes_.push_back({form, {}});
      classes_[row->second].accesses.push_back({id, *address, base, form.coefficients[form_index::constant]});
    }
  }
}

void UniformBases::collect_offsets() {
  std::map<std::vector<uint32_t>, size_t> groups;
  auto consider = [&](ValueId id) {
    const ir::Value& value = function_.values[id];
    if (value.vector_width != 1 || ir::is_float(value.type) || ir::bit_width(value.type) != 32 ||
        value.register_class != ir::RegisterClass::general)
      return;
    const LinearForm& form = forms_.form(id);
    if (form.width != 32 || !form.has_coefficients() || form.varies || form.kind < ir::ValueClass::block_uniform ||
        form.kind > ir::ValueClass::linear_loop)
      return;
    if (!attempt_.can_rest_on(forms_, forms_.obligations(id))) return;
    const uint32_t number = static_cast<uint32_t>(offsets_.size());
    offsets_.push_back(id);
    std::vector<uint32_t> key;
    for (unsigned place = form_index::tid_x; place < form_index::count; ++place)
      key.push_back(form.coefficients[place].index());
    auto [row, is_new] = groups.try_emplace(std::move(key), offset_groups_.size());
    if (is_new) offset_groups_.push_back({form, {}, {}});
    OffsetGroup& group = offset_groups_[row->second];
    group.all.push_back(number);
    for (const ir::LoopOffset& offset : form.loops())
      group.by_loop[offset.loop].push_back(number);
  };
  for (BlockId block : forms_.control_flow().reverse_postorder()) {
    for (ValueId parameter : function_.parameters(block))
      consider(parameter);
    for (InstructionId id : function_.instructions_in(block))
      if (!function_.instructions[id].guard) ir::for_each_definition(function_, id, consider);
  }
}

void UniformBases::number_instructions() {
  position_.assign(function_.instructions.size(), 0);
  for (BlockId block : function_.layout) {
    uint32_t position = 0;
    for (InstructionId id : function_.instructions_in(block))
      position_[id.index()] = position++;
  }
}

// Is address = scale * widened(offset) + a launch-uniform value? Fills the scale.
bool UniformBases::widens_to(Offset& offset, const LinearForm& address) {
  const LinearForm& form = offset.form;
  if (form.loop_count != address.loop_count) return false;
  std::vector<std::pair<ExpressionId, ExpressionId>> pairs; // narrow, wide
  for (unsigned place = form_index::tid_x; place < form_index::count; ++place)
    pairs.emplace_back(form.coefficients[place], address.coefficients[place]);
  for (unsigned i = 0; i < form.loop_count; ++i) {
    if (form.loop_offsets[i].loop != address.loop_offsets[i].loop) return false;
    pairs.emplace_back(form.loop_offsets[i].step, address.loop_offsets[i].step);
  }
  int64_t scale = 0;
  for (auto [narrow, wide] : pairs) {
    if (pool_.is_zero(narrow) != pool_.is_zero(wide)) return false;
    if (pool_.is_zero(narrow)) continue;
    ExpressionId widened = pool_.sign_extend(narrow, 64);
    if (scale == 0) {
      // The first pair determines the only possible scale.
      auto content = [&](ExpressionId id) -> int64_t {
        if (auto literal = pool_.literal_value(id)) return static_cast<int64_t>(*literal);
        auto terms = pool_.terms(id);
        return pool_[id].kind != ir::ExpressionKind::sum ? 1
               : terms.empty()                           ? 0
                                                         : static_cast<int64_t>(terms[0].coefficient);
      };
      int64_t small = content(widened), large = content(wide);
      if (small == 0 || large == INT64_MIN || large % small != 0) return false;
      scale = large / small;
      if (scale == 0 || scale != static_cast<int32_t>(scale)) return false;
    }
    if (pool_.multiply_literal(widened, static_cast<uint64_t>(scale)) != wide) return false;
  }
  offset.scale = scale;
  return scale != 0;
}

std::optional<Offset> UniformBases::match(const AccessClass& accesses, ValueId value) {
  const Access& first = accesses.accesses.front();
  Offset offset;
  offset.value = value;
  offset.home = home(value);
  offset.form = forms_.form_at(value, function_.instructions[first.instruction].block);
  if (!offset.form.has_coefficients() || offset.form.width != 32 || !widens_to(offset, accesses.form))
    return std::nullopt;
  ObligationId as_signed = forms_.require_range(offset.form, ir::signed_range(32), first.instruction);
  ObligationId as_unsigned = forms_.require_range(offset.form, ir::unsigned_range(32), first.instruction);
  offset.is_signed = forms_.obligation(as_signed).proved || !forms_.obligation(as_unsigned).proved;
  // An unsigned widening multiplication takes an unsigned factor.
  if (!offset.is_signed && offset.scale < 0) return std::nullopt;
  return offset;
}

// The obligation that the offset can be widened at the access: a branch may prove it there but not elsewhere.
ObligationId UniformBases::in_range(const Offset& offset, const Access& access) {
  return forms_.require_range(offset.form, offset.is_signed ? ir::signed_range(32) : ir::unsigned_range(32),
                              access.instruction);
}

// Is the value defined when control reaches the access?
bool UniformBases::reaches(ValueId value, const Access& access) const {
  const ir::DefinitionSite& definition = forms_.def_use().definition(value);
  const BlockId block = function_.instructions[access.instruction].block;
  if (definition.block == block)
    return definition.is_parameter() || position(definition.instruction) <= position(access.instruction);
  return forms_.dominators().dominates(definition.block, block);
}

// The offsets that can be the varying part of these addresses, as indices into offsets_: leaving a loop changes only
// the constant of a form, so its coefficients and loops identify it.
std::vector<uint32_t> UniformBases::offsets_like(const AccessClass& accesses) {
  std::vector<uint32_t> list;
  const LinearForm& address = accesses.form;
  for (const OffsetGroup& group : offset_groups_) {
    bool same_places = true;
    for (unsigned place = form_index::tid_x; place < form_index::count; ++place)
      same_places &= pool_.is_zero(group.form.coefficients[place]) == pool_.is_zero(address.coefficients[place]);
    if (!same_places) continue;
    if (address.loop_count == 0) {
      list.insert(list.end(), group.all.begin(), group.all.end());
    } else if (auto moving = group.by_loop.find(address.loop_offsets[0].loop); moving != group.by_loop.end()) {
      list.insert(list.end(), moving->second.begin(), moving->second.end());
    }
  }
  std::ranges::sort(list);
  return list;
}

// Returns the value that serves the most accesses: defined before them, in the same trip.
std::optional<Offset> UniformBases::choose_offset(const AccessClass& accesses, std::vector<Access>& served) {
  std::optional<Offset> best;
  for (uint32_t number : offsets_like(accesses)) {
    const ValueId value = offsets_[number];
    if (!reaches(value, accesses.accesses.front())) continue;
    std::optional<Offset> offset = match(accesses, value);
    if (!offset) continue;
    std::vector<Access> reached;
    for (const Access& access : accesses.accesses)
      if (reaches(value, access) &&
          forms_.form_at(value, function_.instructions[access.instruction].block) == offset->form &&
          attempt_.can_rest_on(forms_, in_range(*offset, access)))
        reached.push_back(access);
    if (reached.empty() || (best && reached.size() <= served.size())) continue;
    best = offset;
    served = std::move(reached);
    if (served.size() == accesses.accesses.size()) break;
  }
  return best;
}

// The magnitude of a literal as a signed number: -56 is not a multiple of 20, though 2^64 - 56 is.
uint64_t magnitude(uint64_t literal) {
  return static_cast<int64_t>(literal) < 0 ? 0 - literal : literal;
}

// Returns the 32-bit expression that gives `wide` when widened and scaled.
std::optional<ExpressionId> UniformBases::narrowed(ExpressionId wide, uint64_t scale) {
  if (auto literal = pool_.literal_value(wide)) {
    int64_t factor = static_cast<int64_t>(*literal) / static_cast<int64_t>(scale);
    if (factor != static_cast<int32_t>(factor)) return std::nullopt;
    return pool_.literal(32, static_cast<uint64_t>(factor));
  }
  ir::ExpressionTerm term = pool_.terms(wide)[0];
  auto factors = pool_.factors(term.monomial);
  if (factors.size() != 1 || pool_[factors[0]].kind != ir::ExpressionKind::sign_extend) return std::nullopt;
  ExpressionId inner = pool_.operands(factors[0])[0];
  uint64_t factor = term.coefficient / scale;
  if (pool_.width(inner) != 32 || factor > INT32_MAX) return std::nullopt;
  ExpressionId narrow = pool_.multiply_literal(inner, factor);
  if (!CoefficientWriter::expressible(pool_, narrow) ||
      pool_.multiply_literal(pool_.sign_extend(narrow, 64), scale) != wide)
    return std::nullopt;
  return narrow;
}

// Builds the offset from the indices at the entry, if every coefficient is a multiple of one scale by a 32-bit
// expression; with a loop offset, as an induction variable.
std::optional<Offset> UniformBases::build_offset(const AccessClass& accesses) {
  const LinearForm& form = accesses.form;
  if (form.loop_count != (inductions_ ? 1 : 0)) return std::nullopt;
  std::vector<ExpressionId> wide(form.coefficients.begin() + form_index::tid_x, form.coefficients.end());
  if (inductions_) wide.push_back(form.loop_offsets[0].step);
  uint64_t scale = 0;
  for (ExpressionId id : wide) {
    if (auto literal = pool_.literal_value(id)) {
      scale = std::gcd(scale, magnitude(*literal));
      continue;
    }
    if (pool_[id].kind != ir::ExpressionKind::sum || pool_.terms(id).size() != 1 || pool_[id].offset != 0)
      return std::nullopt;
    scale = std::gcd(scale, pool_.terms(id)[0].coefficient);
  }
  if (scale == 0 || scale > INT32_MAX) return std::nullopt;
  Offset offset;
  offset.form.kind = form.kind;
  offset.form.width = 32;
  offset.scale = static_cast<int64_t>(scale);
  offset.home = function_.entry();
  offset.form.coefficients[form_index::constant] = pool_.literal(32, 0);
  for (size_t i = 0; i < wide.size(); ++i) {
    std::optional<ExpressionId> narrow = narrowed(wide[i], scale);
    if (!narrow) return std::nullopt;
    if (i + form_index::tid_x < form_index::count)
      offset.form.coefficients[i + form_index::tid_x] = *narrow;
    else
      offset.form.loop_offsets[0] = {form.loop_offsets[0].loop, *narrow};
  }
  if (inductions_) {
    offset.form.loop_count = 1;
    ir::LoopId loop = offset.form.loop_offsets[0].loop;
    offset.home = forms_.loops().loops()[loop].header;
    for (const Access& access : accesses.accesses)
      if (!forms_.loops().contains(loop, function_.instructions[access.instruction].block)) return std::nullopt;
  }
  return offset;
}

std::vector<BaseGroup> UniformBases::group_by_base(const std::vector<Access>& accesses, const Offset& offset) {
  std::vector<BaseGroup> groups;
  std::unordered_map<ExpressionId, size_t> group_of;
  ExpressionId shift = pool_.multiply_literal(pool_.sign_extend(offset.form.coefficients[form_index::constant], 64),
                                              static_cast<uint64_t>(offset.scale));
  for (const Access& access : accesses) {
    ExpressionId base = pool_.subtract(access.constant, shift);
    SplitConstant split = split_constant(pool_, base);
    int64_t immediate = 0;
    if (split.literal >= -immediate_limit && split.literal < immediate_limit) {
      base = split.symbolic;
      immediate = split.literal;
    }
    auto [row, is_new] = group_of.try_emplace(base, groups.size());
    if (is_new) groups.push_back({base, {}});
    groups[row->second].accesses.emplace_back(access, immediate);
  }
  std::erase_if(groups, [&](const BaseGroup& group) {
    return !CoefficientWriter::expressible(pool_, group.base) || pool_.is_zero(group.base);
  });
  return groups;
}

// A block that dominates the accesses and follows the offset, outside of loops in which the offset is invariant.
BlockId UniformBases::block_of(const BaseGroup& group, const Offset& offset) const {
  const ir::DominatorTree& dominators = forms_.dominators();
  BlockId block = function_.instructions[group.accesses.front().first.instruction].block;
  for (const auto& [access, immediate] : group.accesses)
    while (!dominators.dominates(block, function_.instructions[access.instruction].block))
      block = dominators.immediate_dominator(block);
  BlockId definition = offset.home;
  while (forms_.loops().depth(block) > forms_.loops().depth(definition) && block != definition) {
    BlockId header = forms_.loops().loops()[forms_.loops().innermost(block)].header;
    BlockId outside = dominators.immediate_dominator(header);
    if (!outside || !dominators.dominates(definition, outside)) break;
    block = outside;
  }
  return block;
}

InstructionId UniformBases::place_for(const BaseGroup& group, const Offset& offset) const {
  BlockId block = block_of(group, offset);
  InstructionId first;
  for (const auto& [access, immediate] : group.accesses)
    if (function_.instructions[access.instruction].block == block &&
        (!first || position(access.instruction) < position(first)))
      first = access.instruction;
  return first ? first : function_.terminator(block); // invalid: at the end
}

bool UniformBases::pays(const std::vector<BaseGroup>& groups, const Offset& offset) {
  if (options_.force) return true;
  if (!counts_) counts_ = reader_counts(trial_.kernel, trial_.analyses);
  const InstructionCosts& costs = trial_.analyses.of<InstructionCosts>(trial_.kernel);
  double added = 0;
  std::vector<ValueId> released;
  for (const BaseGroup& group : groups) {
    added += execution_weight(forms_.loops(), block_of(group, offset));
    if (!options_.bases_at_launch) added += pool_[group.base].size - 1;
    for (const auto& [access, immediate] : group.accesses)
      released.push_back(access.base);
  }
  if (!offset.value.valid()) {
    for (unsigned place = form_index::tid_x; place < form_index::count; ++place)
      added += !pool_.is_zero(offset.form.coefficients[place]);
    if (is_induction(offset)) added += execution_weight(forms_.loops(), offset.home);
  } else {
    counts_->add_reader(offset.value);
  }
  double removed = counts_->release(released, [&](InstructionId id) { return costs.of(id); });
  if (removed > added) return true;
  counts_->undo();
  if (offset.value.valid()) counts_->drop_reader(offset.value);
  return false;
}

void UniformBases::write_offset(Offset& offset) {
  std::optional<Operand> sum;
  for (unsigned place = form_index::tid_x; place < form_index::count; ++place) {
    ExpressionId coefficient = offset.form.coefficients[place];
    if (pool_.is_zero(coefficient)) continue;
    unsigned component = place - form_index::tid_x;
    ir::SpecialRegister special = component < 3 ? ir::SpecialRegister::tid : ir::SpecialRegister::ctaid;
    ValueId index = builder_.emit_value(
        "mov.u32", ir::ScalarType::b32,
        {Operand::special(static_cast<uint32_t>(special), ir::component_selector(component % 3))}, "%r");
    Operand factor = writer_.write(coefficient);
    if (pool_.is_literal(coefficient, 1) && !sum)
      sum = Operand::value(index);
    else
      sum = Operand::value(builder_.emit_value(
          "mad.lo.s32", ir::ScalarType::b32, {Operand::value(index), factor, sum.value_or(Operand::integer(0))}, "%r"));
  }
  if (is_induction(offset))
    write_induction(offset, sum.value_or(Operand::integer(0)));
  else
    offset.value = sum->as_value();
}

// A block parameter of the loop's header, advanced at the end of every latch.
void UniformBases::write_induction(Offset& offset, Operand start) {
  const ir::Loop& loop = forms_.loops().loops()[offset.form.loop_offsets[0].loop];
  if (!start.is(ir::OperandKind::value))
    start = Operand::value(builder_.emit_value("mov.b32", ir::ScalarType::b32, {start}, "%r"));
  Operand step = writer_.write(offset.form.loop_offsets[0].step);
  ValueId moving = builder_.new_value(ir::ScalarType::b32, "%r");
  std::span<const ValueId> old = function_.parameters(loop.header);
  std::vector<ValueId> parameters(old.begin(), old.end());
  parameters.push_back(moving);
  function_.set_parameters(loop.header, parameters);
  for (ir::EdgeId edge : forms_.control_flow().predecessors(loop.header)) {
    ValueId next = start.as_value();
    if (std::ranges::find(loop.back_edges, edge) != loop.back_edges.end()) {
      BlockId from = function_.edges[edge].from;
      if (InstructionId end = function_.terminator(from))
        builder_.before(end);
      else
        builder_.at_end(from);
      next = builder_.emit_value("add.s32", ir::ScalarType::b32, {Operand::value(moving), step}, "%r");
    }
    std::span<const ValueId> passed = function_.arguments(edge);
    std::vector<ValueId> arguments(passed.begin(), passed.end());
    arguments.push_back(next);
    function_.set_arguments(edge, arguments);
  }
  offset.value = moving;
}

// Returns the product of the offset and its scale: one already written for another base, or a new one here.
ValueId UniformBases::scaled_offset(const Offset& offset, BlockId block, InstructionId place) {
  const uint32_t here = place ? position(place) : UINT32_MAX;
  for (const Product& product : products_)
    if (product.block == block ? product.position <= here : forms_.dominators().dominates(product.block, block))
      return product.value;
  ValueId scaled = builder_.emit_value(offset.is_signed ? "mul.wide.s32" : "mul.wide.u32", ir::ScalarType::b64,
                                       {Operand::value(offset.value), Operand::integer(offset.scale)}, "%rd");
  products_.push_back({scaled, block, here});
  return scaled;
}

void UniformBases::rewrite(const std::vector<BaseGroup>& groups, Offset& offset) {
  if (offset.value.valid())
    for (ObligationId id : forms_.obligations(offset.value))
      attempt_.rest_on(forms_, id, reason, groups.front().accesses.front().first.instruction);
  // Finds places first: the definition of a new value is not in the tables.
  std::vector<std::pair<BlockId, InstructionId>> places;
  for (const BaseGroup& group : groups)
    places.emplace_back(block_of(group, offset), place_for(group, offset));
  auto go_to = [&](BlockId block, InstructionId place) {
    if (place)
      builder_.before(place);
    else
      builder_.at_end(block);
  };
  products_.clear();
  for (size_t i = 0; i < groups.size(); ++i) {
    const BaseGroup& group = groups[i];
    go_to(function_.entry(), head_);
    Operand base = writer_.write(group.base);
    if (!offset.value.valid()) write_offset(offset);
    go_to(places[i].first, places[i].second);
    const ValueId scaled = scaled_offset(offset, places[i].first, places[i].second);
    const ValueId address = builder_.emit_value("add.s64", ir::ScalarType::b64, {Operand::value(scaled), base}, "%rd");
    for (const auto& [access, immediate] : group.accesses) {
      for (ObligationId id : forms_.obligations(access.base))
        attempt_.rest_on(forms_, id, reason, access.instruction);
      attempt_.rest_on(forms_, in_range(offset, access), reason, access.instruction);
      std::span<Operand> operands = function_.operands_of(access.instruction);
      operands[access.address].immediate = immediate;
      operands[access.address + 1] = Operand::value(address);
      ++rewritten_;
    }
    ++bases_;
  }
}

void UniformBases::try_class(AccessClass& accesses) {
  while (!accesses.accesses.empty()) {
    std::vector<Access> served;
    std::optional<Offset> offset;
    if (!inductions_) offset = choose_offset(accesses, served);
    if (!offset) {
      offset = build_offset(accesses);
      if (offset)
        std::ranges::copy_if(accesses.accesses, std::back_inserter(served), [&](const Access& access) {
          return attempt_.can_rest_on(forms_, in_range(*offset, access));
        });
    }
    std::unordered_set<InstructionId> done{accesses.accesses.front().instruction};
    for (const Access& access : served)
      done.insert(access.instruction);
    if (!served.empty()) {
      std::vector<BaseGroup> groups = group_by_base(served, *offset);
      if (!groups.empty() && pays(groups, *offset)) rewrite(groups, *offset);
    }
    std::erase_if(accesses.accesses, [&](const Access& access) { return done.contains(access.instruction); });
    if (!accesses.accesses.empty()) {
      const Access& next = accesses.accesses.front();
      accesses.form = forms_.address_form(next.instruction, next.address);
    }
  }
}

bool UniformBases::run() {
  if (forms_.loops().irreducible() || !forms_.control_flow().predecessors(function_.entry()).empty()) return false;
  if (inductions_ && forms_.loops().loops().empty()) return false;
  head_ = function_.blocks[function_.entry()].first;
  while (head_ && function_.instructions[head_].kind != ir::InstructionKind::real)
    head_ = function_.instructions[head_].next;
  number_instructions();
  collect_accesses();
  if (classes_.empty()) return false;
  if (!inductions_) collect_offsets();
  for (AccessClass& accesses : classes_)
    try_class(accesses);
  if (rewritten_ == 0) return false;
  function_.changed();
  ir::remove_dead_code(function_);
  attempt_.statistics["r2d2.uniform-bases"] += static_cast<int64_t>(bases_);
  attempt_.statistics["r2d2.uniform-base-accesses"] += static_cast<int64_t>(rewritten_);
  attempt_.remark(std::to_string(rewritten_) + " addresses are " + std::to_string(bases_) +
                      " launch-uniform bases plus " +
                      (inductions_ ? "32-bit induction variables" : "shared 32-bit offsets"),
                  function_.header_range);
  return true;
}

// Or an edge against the order of the blocks, which makes a loop or something like it.
bool has_loops(const ir::Function& function) {
  const ir::ControlFlow flow(function);
  return std::ranges::any_of(flow.reverse_postorder(), [&](BlockId block) {
    return std::ranges::any_of(function.successors(block), [&](ir::EdgeId edge) {
      return flow.position(function.edges[edge].to) <= flow.position(block);
    });
  });
}

} // namespace

bool share_offsets(const Trial& trial, const UniformBaseOptions& options) {
  return UniformBases(trial, options, false).run();
}

bool share_inductions(const Trial& trial, const UniformBaseOptions& options) {
  if (!has_loops(trial.kernel)) return false; // without the linear forms, which cost thirty times as much
  return UniformBases(trial, options, true).run();
}

} // namespace ptxrewrite::transforms::legal
