// The tables of LinearForms and arithmetic on forms. Private to ir/analysis/linear*.cpp and report.cpp.
#pragma once

#include "ir/analysis/linear/linear.h"
#include "ir/analysis/linear/relation.h"
#include "ir/flow/dominators.h"
#include "support/hash_index.h"
#include "support/stable_table.h"

#include <map>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

namespace ptxrewrite::ir {

// The set of threads in which a value is the same (in the same trip).
enum class Level : uint8_t { launch, block, thread };

struct ObligationSetTag;
using ObligationSetId = Id<ObligationSetTag>;

// A range that a form must stay in for a result to be valid; recorded only in the last pass over the instructions.
struct Demand {
  LinearFormId form;
  Interval range;
};

struct LinearForms::State {
  explicit State(const Function& function_to_analyse);

  const Function& function;
  ControlFlow flow;
  DominatorTree dominators;
  LoopForest loops;
  DefUse def_use;

  ExpressionPool pool;
  StableTable<LinearFormId, LinearForm> forms; // stable references: callers hold one while they request others
  Table<ValueId, LinearFormId> value_form;     // invalid if not visited
  Table<ObligationId, RangeObligation> obligations;
  std::unordered_map<ObligationId, std::string> statements; // of obligations, when asked for
  Table<ValueId, ObligationSetId> value_obligations;
  Table<ObligationSetId, PoolSpan> obligation_sets;
  SpanPool<ObligationId> obligation_lists;
  std::vector<TripBound> trip_bounds;     // by LoopId
  std::vector<unsigned> parameter_number; // of local VariableId; UINT32_MAX: not a kernel parameter
  LaunchLimits limits;
  bool settled = false;                   // forms are final
  std::vector<Demand>* demands = nullptr; // receives the demands that arithmetic raises
  std::map<std::pair<ValueId, uint64_t>, ValueId> edge_group_owner;
  std::map<ObligationId, std::string> predicate_texts; // filled on demand by launch_predicate()

  // --- forms ---
  LinearFormId intern(const LinearForm& form);
  LinearFormId any(unsigned width);
  LinearFormId block_uniform(unsigned width, bool varies);
  LinearFormId uniform(ExpressionId expression); // constant or launch-uniform
  LinearFormId index_form(unsigned place, unsigned width);
  // Sets the class from the coefficients; `any` if they are invalid as coefficients.
  LinearFormId classified(LinearForm form);
  const LinearForm& at(LinearFormId id) const { return forms[id]; }
  // The expression of a launch-uniform form.
  std::optional<ExpressionId> scalar(LinearFormId id) const;
  Level level(LinearFormId id) const;
  bool varies(LinearFormId id) const;

  LinearFormId add(LinearFormId a, LinearFormId b);
  LinearFormId subtract(LinearFormId a, LinearFormId b) { return add(a, negate(b)); }
  LinearFormId negate(LinearFormId a);
  LinearFormId multiply(LinearFormId a, LinearFormId b);
  LinearFormId scale(LinearFormId a, ExpressionId factor);
  LinearFormId shift_left(LinearFormId a, LinearFormId amount);
  LinearFormId widen(LinearFormId a, unsigned width, bool is_signed);
  LinearFormId truncate(LinearFormId a, unsigned width);
  LinearFormId convert(LinearFormId a, unsigned width, bool is_signed);
  LinearFormId bitwise(ExpressionKind kind, LinearFormId a, LinearFormId b);
  LinearFormId remainder(LinearFormId a, LinearFormId b, bool is_signed);
  // Selects `if_true` where the condition's bit is set.
  LinearFormId choose(const FormCondition& condition, LinearFormId if_true, LinearFormId if_false);
  // A launch-uniform condition: coefficients become selects.
  LinearFormId select(ExpressionId condition, LinearFormId if_true, LinearFormId if_false);
  LinearFormId with_loop_offset(LinearFormId a, LoopId loop, ExpressionId step);

  // --- bounds ---
  // Bounds of the exact integer value in all launches; nullopt if unknown.
  std::optional<Interval> form_bounds(const LinearForm& form, const LaunchLimits& facts,
                                      const std::array<Interval, form_index::count>& index_ranges) const;
  std::array<Interval, form_index::count> index_ranges(const LaunchLimits& facts) const;
  std::optional<Interval> form_bounds(const LinearForm& form) const {
    return form_bounds(form, limits, index_ranges(limits));
  }
  // Bounds for threads that reach a block, using the branches that dominate it.
  std::optional<Interval> form_bounds_in(const LinearForm& form, BlockId block);
  // The largest trip number of a loop, in all launches or in one; nullopt if unknown.
  std::optional<Int128> most_trips(LoopId loop, const LaunchLimits& facts) const;
  std::optional<Int128> most_trips(LoopId loop, const LaunchValues& launch) const;

  // --- control (linear_control.cpp) ---
  // The predicate or index that decides the branch at the end of a block; invalid if there is none.
  ValueId branch_selector(BlockId block) const;
  // The same if it is the guard of a two-way branch; successor 0 is taken if the guard is true.
  ValueId branch_predicate(BlockId block) const;
  InstructionId terminator(BlockId block) const;
  Level branch_level(BlockId block) const;
  bool branch_varies(BlockId block) const;
  Level condition_level(const FormCondition& condition) const;
  // The block in which a condition is evaluated.
  BlockId condition_block(const FormCondition& condition) const;
  struct JoinRegion {
    std::vector<BlockId> branches; // multi-way blocks that decide on which forward edge the join is entered
    bool too_large = false;
  };
  const JoinRegion& join_region(BlockId join);
  LinearFormId leave_loops(LinearFormId form, ValueId value, BlockId block);
  LinearFormId form_in(ValueId value, BlockId block);
  // The unguarded setp that computes a predicate or its opposite: unoptimised code has `not.pred` before
  // branches.
  struct PredicateTest {
    InstructionId setp; // invalid: no such setp
    bool negated = false;
  };
  PredicateTest test_of(ValueId predicate) const;
  TripBound find_trip_bound(LoopId loop);
  std::optional<ExpressionId> exact_trips(const TripBound& bound, LoopId loop);
  // Launch-uniform predicates and index ranges that hold in `block` because of dominating branches.
  struct Facts {
    std::vector<ExpressionId> conditions; // width 1, true
    std::vector<std::pair<unsigned, Interval>> indices;
  };
  const Facts& facts_in(BlockId block);
  // The first block, from `block` up the dominator tree, that is entered once and whose immediate dominator ends in a
  // two-way branch by a predicate; invalid if there is none.
  BlockId nearest_branch_side(BlockId block);
  bool entered_once(BlockId block) const;
  std::vector<unsigned> edge_groups(ValueId block_parameter) const;
  LinearFormId join(BlockId block, unsigned index, std::span<const EdgeId> edge_list);

  // --- obligations (obligation.cpp) ---
  ObligationId require(LinearFormId form, Interval range, InstructionId instruction);
  ObligationId require_expression(ExpressionId expression, Interval range, InstructionId instruction);
  bool evaluate(const RangeObligation& obligation, const LaunchValues& launch) const;
  // Exact bounds of a form in one launch; nullopt if unknown or beyond 128 bits.
  std::optional<Interval> bounds_in(const LinearForm& form, const LaunchValues& launch) const;
  std::optional<Interval> exact_value(ExpressionId expression, const LaunchValues& launch) const;
  std::string predicate(const RangeObligation& obligation) const;
  bool has_predicate(const RangeObligation& obligation) const; // not empty, found without the text
  // True if the form consists of parameters, block and grid extents and literals only, including trip bounds.
  bool is_evaluable(const LinearForm& form) const;
  // Mostly several ranges are required of a form, one after the other.
  struct RequiredBounds {
    LinearFormId form;
    std::optional<Interval> everywhere;
    BlockId block; // invalid: not asked for
    std::optional<Interval> in_block;
  } last_bounds;
  ObligationSetId make_set(std::vector<ObligationId>& list);
  ObligationSetId united(ObligationSetId a, ObligationSetId b);
  static constexpr size_t obligation_limit = 64; // a form with more obligations becomes `any`

  // --- text ---
  const std::string& statement(ObligationId id);
  std::string sum_text(const LinearForm& form) const;
  std::string loop_name(LoopId loop) const { return "k" + std::to_string(loop.index()); }

  HashIndex forms_by_hash;
  std::vector<LinearFormId> any_forms;     // by width
  std::vector<LinearFormId> uniform_forms; // by ExpressionId: those that were asked for
  std::map<std::vector<ObligationId>, ObligationSetId> set_index;
  std::map<std::pair<ObligationSetId, ObligationSetId>, ObligationSetId> union_index;
  std::map<std::tuple<uint32_t, uint32_t, Int128, Int128, uint32_t>, ObligationId> obligation_index;
  std::unordered_map<BlockId, JoinRegion> regions;
  std::vector<uint32_t> region_visits; // by block: the last region that included it
  std::vector<BlockId> branch_sides;   // of nearest_branch_side(), by block
  std::unordered_map<BlockId, Facts> facts;

private:
  template <class Operation> LinearFormId lifted(LinearFormId a, LinearFormId b, Operation&& operation);
};

// Computes the forms of the values that an instruction writes: the transfer function of the analysis.
class LinearTransfer {
public:
  explicit LinearTransfer(LinearForms::State& state) : state_(state) {}

  // Computes forms of the instruction's definitions, in operand order; returns false if an operand is not visited yet.
  bool compute(InstructionId id, std::vector<std::pair<ValueId, LinearFormId>>& results);
  // The form of one operand read with `width` bits; invalid if not visited.
  LinearFormId operand(InstructionId id, const Operand& operand, unsigned width);
  // The form of an address group in the width of its base register.
  LinearFormId address(InstructionId id, size_t group);

private:
  LinearFormId special(const Operand& operand, unsigned width);
  LinearFormId known_operation(InstructionId id, const Form& form, unsigned width);
  LinearFormId integer_operation(InstructionId id, const Form& form, unsigned width);
  LinearFormId multiply_add(InstructionId id, const Form& form, unsigned width);
  LinearFormId predicate_operation(InstructionId id, const Form& form);
  LinearFormId conversion(InstructionId id, const Form& form, unsigned width);
  LinearFormId address_conversion(InstructionId id, const Form& form, unsigned width);
  LinearFormId opaque(InstructionId id, ValueId definition);
  LinearFormId scalar_binary(ExpressionKind kind, LinearFormId a, LinearFormId b);
  bool reads_kernel_parameter(LinearFormId place) const;
  void load(InstructionId id, const Form& form, std::vector<std::pair<ValueId, LinearFormId>>& results);
  LinearFormId loaded(InstructionId id, const Form& form, size_t group, unsigned element, ValueId definition);
  bool function_writes_memory();
  LinearFormId merged(InstructionId id, LinearFormId fresh, LinearFormId old, ValueId definition);
  bool operand_levels(InstructionId id, Level& level, bool& varies);
  void collect(InstructionId id);

  LinearForms::State& state_;
  std::vector<ValueId> definitions_;
  std::vector<Operand> sources_;     // top-level source operands; a group is represented by its head
  std::vector<size_t> source_index_; // their indices in the operand list
  std::vector<ValueId> old_values_;
  bool unvisited_ = false;
  std::optional<bool> writes_memory_; // by function_writes_memory()
};

// Runs the analysis: fills value_form, obligations, trip_bounds.
void solve_linear_forms(LinearForms::State& state);

} // namespace ptxrewrite::ir
