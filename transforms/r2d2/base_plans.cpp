// Groups accesses by the varying part of their addresses, and chooses an offset for each group; see base_plans.h.
#include "transforms/r2d2/base_plans.h"

#include "transforms/common/address_forms.h"
#include "transforms/r2d2/r2d2_plan.h"
#include "transforms/r2d2/r2d2_sections.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <unordered_map>

namespace ptxrewrite::transforms::legal {

namespace {

using ir::BlockId;
using ir::ExpressionId;
using ir::InstructionId;
using ir::LinearForm;
using ir::ObligationId;
using ir::ValueId;
namespace form_index = ir::form_index;

// Accesses whose forms differ only in the constant.
struct AccessClass {
  LinearForm form; // of the first access
  std::vector<BaseAccess> accesses;
};

class BasePlanner {
public:
  BasePlanner(const ir::Function& kernel, AnalysisCache& analyses, const DischargePolicy& policy, bool inductions,
              const std::vector<uint32_t>& positions)
      : policy_(policy), function_(kernel), inductions_(inductions), forms_(analyses.of<ir::LinearForms>(kernel)),
        pool_(forms_.expressions()), addresses_(analyses.of<AddressedAccesses>(kernel)), positions_(positions) {}

  std::vector<BasePlan> plan();

private:
  void collect_accesses();
  void collect_offsets();
  std::optional<SharedOffset> match(const AccessClass& accesses, ValueId value);
  bool widens_to(SharedOffset& offset, const LinearForm& address);
  std::optional<SharedOffset> choose_offset(const AccessClass& accesses, std::vector<BaseAccess>& served);
  ObligationId in_range(const SharedOffset& offset, InstructionId access);
  std::optional<SharedOffset> build_offset(const AccessClass& accesses);
  std::vector<BaseGroup> group_by_base(const std::vector<BaseAccess>& accesses, const SharedOffset& offset);
  bool reaches(ValueId value, const BaseAccess& access) const;
  std::vector<uint32_t> offsets_like(const AccessClass& accesses);
  std::optional<ExpressionId> narrowed(ExpressionId wide, uint64_t scale);
  void plan_class(AccessClass& accesses);

  uint32_t position(InstructionId id) const { return positions_[id.index()]; }
  BlockId home(ValueId value) const { return forms_.def_use().definition(value).block; }

  const DischargePolicy& policy_;
  const ir::Function& function_;
  bool inductions_; // candidate 5
  ir::LinearForms& forms_;
  ir::ExpressionPool& pool_;
  const AddressedAccesses& addresses_;
  const std::vector<uint32_t>& positions_;
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
  std::vector<BasePlan> plans_;
};

void BasePlanner::collect_accesses() {
  for (const AddressedAccess& access : addresses_.list) {
    if (ir::is_shared(function_.form_of(access.instruction).space)) continue;
    const LinearForm& form = access.form(forms_);
    if (form.width != 64 || !form.has_coefficients() || form.varies ||
        ir::bit_width(function_.values[access.base].type) != 64)
      continue;
    if (form.kind != ir::ValueClass::linear && form.kind != ir::ValueClass::linear_loop &&
        form.kind != ir::ValueClass::block_uniform)
      continue;
    if (inductions_ && form.loop_count != 1) continue;
    std::vector<uint32_t> key;
    key.reserve(form_index::count + 2 * form.loop_count);
    bool usable = CoefficientWriter::expressible(pool_, form.coefficients[form_index::constant]);
    for (unsigned place = form_index::tid_x; place < form_index::count; ++place) {
      usable &= !pool_[form.coefficients[place]].varies;
      key.push_back(form.coefficients[place].index());
    }
    for (const ir::LoopOffset& offset : form.loops()) {
      key.push_back(offset.loop.index());
      key.push_back(offset.step.index());
    }
    if (!usable || !can_discharge(policy_, forms_, forms_.obligations(access.base))) continue;
    auto [row, is_new] = class_index_.try_emplace(std::move(key), classes_.size());
    if (is_new) classes_.push_back({form, {}});
    classes_[row->second].accesses.push_back(
        {access.instruction, access.address, access.base, form.coefficients[form_index::constant]});
  }
}

void BasePlanner::collect_offsets() {
  using Key = std::array<ExpressionId, form_index::count - form_index::tid_x>;
  std::map<Key, size_t> groups;
  auto consider = [&](ValueId id) {
    const ir::Value& value = function_.values[id];
    if (value.vector_width != 1 || ir::is_float(value.type) || ir::bit_width(value.type) != 32 ||
        value.register_class != ir::RegisterClass::general)
      return;
    const LinearForm& form = forms_.form(id);
    if (form.width != 32 || !form.has_coefficients() || form.varies || form.kind < ir::ValueClass::block_uniform ||
        form.kind > ir::ValueClass::linear_loop)
      return;
    if (!can_discharge(policy_, forms_, forms_.obligations(id))) return;
    const uint32_t number = static_cast<uint32_t>(offsets_.size());
    offsets_.push_back(id);
    Key key;
    std::copy(form.coefficients.begin() + form_index::tid_x, form.coefficients.end(), key.begin());
    auto [row, is_new] = groups.try_emplace(key, offset_groups_.size());
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

// Is address = scale * widened(offset) + a launch-uniform value? Fills the scale.
bool BasePlanner::widens_to(SharedOffset& offset, const LinearForm& address) {
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

std::optional<SharedOffset> BasePlanner::match(const AccessClass& accesses, ValueId value) {
  const BaseAccess& first = accesses.accesses.front();
  SharedOffset offset;
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
ObligationId BasePlanner::in_range(const SharedOffset& offset, InstructionId access) {
  return forms_.require_range(offset.form, offset.is_signed ? ir::signed_range(32) : ir::unsigned_range(32), access);
}

// Is the value defined when control reaches the access?
bool BasePlanner::reaches(ValueId value, const BaseAccess& access) const {
  const ir::DefinitionSite& definition = forms_.def_use().definition(value);
  const BlockId block = function_.instructions[access.instruction].block;
  if (definition.block == block)
    return definition.is_parameter() || position(definition.instruction) <= position(access.instruction);
  return forms_.dominators().dominates(definition.block, block);
}

// The offsets that can be the varying part of these addresses, as indices into offsets_: leaving a loop changes only
// the constant of a form, so its coefficients and loops identify it.
std::vector<uint32_t> BasePlanner::offsets_like(const AccessClass& accesses) {
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
std::optional<SharedOffset> BasePlanner::choose_offset(const AccessClass& accesses, std::vector<BaseAccess>& served) {
  std::optional<SharedOffset> best;
  for (uint32_t number : offsets_like(accesses)) {
    const ValueId value = offsets_[number];
    if (!reaches(value, accesses.accesses.front())) continue;
    std::optional<SharedOffset> offset = match(accesses, value);
    if (!offset) continue;
    std::vector<BaseAccess> reached;
    for (BaseAccess access : accesses.accesses) {
      if (!reaches(value, access) ||
          forms_.form_at(value, function_.instructions[access.instruction].block) != offset->form)
        continue;
      access.in_range = in_range(*offset, access.instruction);
      if (can_discharge(policy_, forms_, access.in_range)) reached.push_back(access);
    }
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
std::optional<ExpressionId> BasePlanner::narrowed(ExpressionId wide, uint64_t scale) {
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
std::optional<SharedOffset> BasePlanner::build_offset(const AccessClass& accesses) {
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
  SharedOffset offset;
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
    for (const BaseAccess& access : accesses.accesses)
      if (!forms_.loops().contains(loop, function_.instructions[access.instruction].block)) return std::nullopt;
  }
  return offset;
}

std::vector<BaseGroup> BasePlanner::group_by_base(const std::vector<BaseAccess>& accesses, const SharedOffset& offset) {
  std::vector<BaseGroup> groups;
  std::unordered_map<ExpressionId, size_t> group_of;
  ExpressionId shift = pool_.multiply_literal(pool_.sign_extend(offset.form.coefficients[form_index::constant], 64),
                                              static_cast<uint64_t>(offset.scale));
  for (BaseAccess access : accesses) {
    ExpressionId base = pool_.subtract(access.constant, shift);
    SplitConstant split = split_constant(pool_, base);
    if (is_address_immediate(split.literal)) {
      base = split.symbolic;
      access.immediate = split.literal;
    }
    auto [row, is_new] = group_of.try_emplace(base, groups.size());
    if (is_new) groups.push_back({base, {}});
    groups[row->second].accesses.push_back(access);
  }
  std::erase_if(groups, [&](const BaseGroup& group) {
    return !CoefficientWriter::expressible(pool_, group.base) || pool_.is_zero(group.base);
  });
  return groups;
}

void BasePlanner::plan_class(AccessClass& accesses) {
  while (!accesses.accesses.empty()) {
    std::vector<BaseAccess> served;
    std::optional<SharedOffset> offset;
    if (!inductions_) offset = choose_offset(accesses, served);
    if (!offset) {
      offset = build_offset(accesses);
      if (offset)
        for (BaseAccess access : accesses.accesses) {
          access.in_range = in_range(*offset, access.instruction);
          if (can_discharge(policy_, forms_, access.in_range)) served.push_back(access);
        }
    }
    // The served accesses have the order of the class.
    const InstructionId first = accesses.accesses.front().instruction;
    auto next_served = served.begin();
    std::erase_if(accesses.accesses, [&](const BaseAccess& access) {
      const bool is_served = next_served != served.end() && next_served->instruction == access.instruction;
      if (is_served) ++next_served;
      return is_served || access.instruction == first;
    });
    if (!served.empty())
      if (std::vector<BaseGroup> groups = group_by_base(served, *offset); !groups.empty())
        plans_.push_back({*offset, std::move(groups)});
    if (!accesses.accesses.empty()) {
      const BaseAccess& next = accesses.accesses.front();
      accesses.form = forms_.address_form(next.instruction, next.address);
    }
  }
}

std::vector<BasePlan> BasePlanner::plan() {
  collect_accesses();
  if (!classes_.empty() && !inductions_) collect_offsets();
  for (AccessClass& accesses : classes_)
    plan_class(accesses);
  return std::move(plans_);
}

// Or an edge against the order of the blocks, which makes a loop or something like it.
bool has_loops(const ir::Function& function, const ir::ControlFlow& flow) {
  return std::ranges::any_of(flow.reverse_postorder(), [&](BlockId block) {
    return std::ranges::any_of(function.successors(block), [&](ir::EdgeId edge) {
      return flow.position(function.edges[edge].to) <= flow.position(block);
    });
  });
}

std::vector<uint32_t> positions_in_blocks(const ir::Function& function) {
  std::vector<uint32_t> positions(function.instructions.size());
  for (BlockId block : function.layout) {
    uint32_t position = 0;
    for (InstructionId id : function.instructions_in(block))
      positions[id.index()] = position++;
  }
  return positions;
}

} // namespace

std::vector<BasePlan> BasePlans::plan(AnalysisCache& analyses, bool inductions) {
  if (inductions) {
    // Without the linear forms, which cost thirty times as much.
    const ir::LinearForms* known = analyses.known<ir::LinearForms>(kernel_);
    if (!has_loops_)
      has_loops_ = known ? has_loops(kernel_, known->control_flow()) : has_loops(kernel_, ir::ControlFlow(kernel_));
    if (!*has_loops_) return {};
  }
  ir::LinearForms& forms = analyses.of<ir::LinearForms>(kernel_);
  if (forms.loops().irreducible() || !forms.control_flow().predecessors(kernel_.entry()).empty()) return {};
  if (inductions && forms.loops().loops().empty()) return {};
  if (positions.empty()) positions = positions_in_blocks(kernel_);
  return BasePlanner(kernel_, analyses, *policy_, inductions, positions).plan();
}

const std::vector<BasePlan>& BasePlans::of(AnalysisCache& analyses, const DischargePolicy& policy, bool inductions) {
  if (!policy_ || *policy_ != policy) {
    policy_ = policy;
    plans_[0].reset();
    plans_[1].reset();
  }
  std::optional<std::vector<BasePlan>>& plans = plans_[inductions ? 1 : 0];
  if (!plans) plans = plan(analyses, inductions);
  return *plans;
}

} // namespace ptxrewrite::transforms::legal
