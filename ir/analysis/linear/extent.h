// The bytes that the memory accesses of a kernel touch, as expressions over one launch: address bounds of each access
// over all threads and trips that execute it, and whether addresses are multiples of a number.
//
//   AccessExtents extents(forms);
//   if (auto bytes = extents.bytes_of(instruction, address_operand, 4))
//     extents.text(bytes->low), extents.text(bytes->high), bytes->conditions
//
// Derived from linear forms, narrowed by dominating branches (`i < n`), by trip bounds of loops, and for registers read
// after their loop by the bounds inside the loop. All numbers are exact integers; the conditions include that registers
// can hold them. Bounds apply to accesses that execute: in a launch in which no thread executes an access, its bounds
// are arbitrary.
#pragma once

#include "ir/analysis/linear/exact_sum.h"
#include "ir/analysis/linear/linear.h"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace ptxrewrite::ir {

// Conditions in the side file's language; all must hold.
using LaunchConditions = std::set<std::string>;

struct ByteRange {
  ExactSum low, high;              // [low, high), in integers congruent to the addresses modulo 2^64
  std::optional<unsigned> pointer; // the pointer parameter that the address is relative to
  LaunchConditions conditions;     // conditions under which the bounds hold
};

struct Residue {
  uint64_t value = 0;
  LaunchConditions conditions;
};

class AccessExtents {
public:
  explicit AccessExtents(LinearForms& forms);

  // The bytes of `[base + offset]`, `bytes` long. Returns nullopt if they depend on values computed at run time.
  std::optional<ByteRange> bytes_of(InstructionId access, size_t address, unsigned bytes);
  // The residue of every address of the access modulo a power of two, under the returned conditions; nullopt if it does
  // not follow from the launch. The conditions make pointers and sizes multiples of it; literals are added up.
  std::optional<Residue> residue_of(InstructionId access, size_t address, unsigned modulus);
  // Conditions that make the obligations true in the threads that execute the instructions that raised them.
  std::optional<LaunchConditions> discharge(std::span<const ObligationId> obligations);

  const Quantities& quantities() const { return quantities_; }
  std::string text(const ExactSum& sum) const { return quantities_.text(sum); }
  // True if `a` <= `b` in every launch in which the access executes. Adds the conditions for this to `conditions`.
  bool is_at_most(InstructionId access, const ExactSum& a, const ExactSum& b, LaunchConditions& conditions);
  ExactSum maximum(const ExactSum& a, const ExactSum& b) { return quantities_.maximum(a, b, {}); }
  ExactSum minimum(const ExactSum& a, const ExactSum& b) { return quantities_.minimum(a, b, {}); }

private:
  // An index that a form varies with: 1 to 6 (form_index), or loop_place + the number of a loop.
  using Place = uint32_t;
  static constexpr Place loop_place = 16;
  using Places = std::map<Place, ExactSum>;

  // The sum of coefficients times indices is at most `bound`, in every thread that reaches the scope.
  struct Fact {
    Places coefficients;
    ExactSum bound;
    LaunchConditions conditions;
  };
  // Facts that hold when a block executes.
  struct Scope {
    BlockId block;
    QuantityRanges ranges;
    std::map<QuantityId, LaunchConditions> range_conditions;
    std::vector<std::pair<ExactSum, LaunchConditions>> not_negative; // depend on the launch only
    std::vector<Fact> facts;
    std::map<ValueId, uint64_t> at_least; // unsigned lower bounds of registers that are compared with numbers
  };
  struct Span {
    ExactSum low, high;
    bool is_point() const { return low == high; }
  };
  enum class Reading : uint8_t { modular, as_signed, as_unsigned };
  // A form in exact integers, congruent to it modulo 2^width.
  struct Affine {
    Places coefficients;
    Span constant;
  };
  // One query: its scope and the conditions for its answer.
  static constexpr unsigned form_depth = 12, expression_depth = 24; // of nested queries
  struct Query {
    const Scope* scope = nullptr;
    LaunchConditions conditions;
    unsigned depth = 0;
  };

  // --- extent.cpp ---
  void add_conditions_of(const std::vector<QuantityId>& used, Query& query) const;
  std::optional<Interval> interval(const ExactSum& sum, Query& query) const;
  bool is_known_not_negative(const ExactSum& sum, Query& query) const;
  bool is_not_negative(const ExactSum& sum, Query& query) const;
  void require_not_negative(const ExactSum& sum, Query& query) const;
  bool require_within(const Span& span, Interval range, Query& query) const;
  ExactSum with_equalities(ExactSum sum, Query& query) const;
  ExactSum maximum(const ExactSum& a, const ExactSum& b, Query& query);
  ExactSum minimum(const ExactSum& a, const ExactSum& b, Query& query);
  std::optional<Affine> affine(const LinearForm& form, Query& query);
  std::optional<ExactSum> most(const Places& coefficients, Query& query);
  std::optional<ExactSum> most_by_fact(const Places& coefficients, const Fact& fact, Query& query);
  std::optional<ExactSum> most_in_box(Place place, const ExactSum& coefficient, Query& query);
  std::optional<ExactSum> last_trip(LoopId loop, Query& query);
  std::optional<ExactSum> last_trip_until_equal(const TripBound& bound, Query& query);
  std::optional<Span> span_of(const Affine& affine, Query& query);
  std::optional<Span> span_of(const LinearForm& form, Query& query);
  std::optional<Span> span_of_remainder(const LinearForm& form, Query& query);
  std::optional<LaunchConditions> conditions_of(const RangeObligation& obligation);
  bool discharge(ObligationId id, LaunchConditions& conditions);

  // --- extent_expression.cpp ---
  std::optional<Span> exact(ExpressionId id, Reading reading, Query& query);
  std::optional<Span> modular(ExpressionId id, Query& query);
  std::optional<Span> sum_of(ExpressionId id, Query& query);
  std::optional<Span> whole_part(ExpressionId id, Query& query);
  std::optional<Span> masked(ExpressionId id, Query& query);
  std::optional<Span> chosen(ExpressionId id, Query& query);
  std::optional<Span> left_behind(ExpressionId id, Query& query);
  std::optional<Span> leaf(ExpressionId id);
  std::optional<Span> product(const Span& a, const Span& b, Query& query);
  std::optional<unsigned> pointer_of(ExpressionId constant) const;

  // --- extent_scope.cpp ---
  // The scope is kept, or in `own`, while the number of trips of a loop is being determined.
  const Scope& scope_of(BlockId block, Scope& own);
  void enter(Scope& scope, BlockId above, BlockId block);
  const Scope& guarded_scope(InstructionId access, Scope& own);
  void add_predicate(Scope& scope, ValueId predicate, bool holds, unsigned depth);
  void add_comparison(Scope& scope, InstructionId compare, bool holds);
  void add_order(Scope& scope, InstructionId compare, const Operand& lesser, const Operand& greater, bool strict,
                 bool is_signed);
  void add_fact(Scope& scope, const Affine& lesser, const Affine& greater, Int128 gap,
                const LaunchConditions& conditions);
  void add_inequality(Scope& scope, InstructionId compare, const Operand& a, const Operand& b);
  void narrow(Scope& scope, const ExactSum& bound, const LaunchConditions& conditions);
  void add_loop_fact(Scope& scope, LoopId loop);
  std::optional<Fact> loop_fact(const TripBound& bound, LoopId loop, Query& query);
  bool discharge_exits(LoopId loop, Query& query);
  void raise(Scope& scope, ValueId value, uint64_t least);
  void add_least(Scope& scope, InstructionId user, const Operand& operand, uint64_t least);
  std::optional<Affine> compared(Scope& scope, InstructionId compare, const Operand& operand,
                                 LaunchConditions& conditions);

  // --- extent_alignment.cpp ---
  std::optional<uint64_t> residue_of_form(const LinearForm& form, unsigned modulus, Query& query);
  std::optional<uint64_t> residue_of_result(ValueId value, unsigned modulus, Query& query);
  std::optional<uint64_t> residue_of_parameter(ValueId value, unsigned modulus, Query& query);
  std::optional<uint64_t> residue_of_operand(const Operand& operand, unsigned modulus, Query& query);
  std::optional<uint64_t> residue_of_value(ValueId value, unsigned modulus, Query& query);

  LinearForms& forms_;
  ExpressionPool& pool_;
  const Function& function_;
  LaunchLimits limits_;
  Quantities quantities_;
  std::set<unsigned> pointers_; // parameters that cvta.to.global or an address uses directly
  std::map<BlockId, Scope> scopes_;
  std::set<LoopId> loops_in_progress_;
  std::map<ValueId, uint64_t> residues_in_progress_;
  // Remaining steps of an external query; a query that exceeds them has no answer.
  mutable size_t budget_ = 0;
  static constexpr size_t full_budget = 20000;
  bool spend() const {
    if (budget_ == 0) return false;
    --budget_;
    return true;
  }
  std::set<ObligationId> obligations_in_progress_;
  std::map<ObligationId, std::optional<LaunchConditions>> discharged_;
};

} // namespace ptxrewrite::ir
