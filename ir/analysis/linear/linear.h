// Determines which values of a kernel are linear in the thread and block indices, with which coefficients, and the
// conditions (obligations) under which this is true.
//
//   LinearForms forms(function);                       // SSA form
//   const LinearForm& f = forms.form(value);           // as seen inside the loops around the definition
//   if (f.has_coefficients()) ... f.coefficients[form_index::tid_y] ...
//   for (ObligationId o : forms.obligations(value)) ... forms.obligation(o).proved, .evaluate(...)
//
// A form is valid for every thread of a launch in which all its obligations are true. Arithmetic is modular (PTX
// wraps); only steps that are not ring homomorphisms, such as widening, raise obligations.
#pragma once

#include "ir/analysis/linear/expression.h"
#include "ir/core/function.h"
#include "ir/flow/def_use.h"
#include "ir/flow/loops.h"

#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace ptxrewrite::ir {

struct LinearFormTag;
using LinearFormId = Id<LinearFormTag>;
struct ObligationTag;
using ObligationId = Id<ObligationTag>;

// From strongest to weakest.
enum class ValueClass : uint8_t {
  constant,
  launch_uniform,
  block_uniform,
  linear,
  linear_loop,      // linear + trip numbers of enclosing loops times launch-uniform steps
  mod_linear,       // (linear mod divisor) * multiplier + addend
  divergent_linear, // one of up to 4 linear forms, chosen by up to 2 conditions
  any,
};
std::string_view spelling(ValueClass value_class);

// Indices of a coefficient vector.
namespace form_index {
enum : unsigned { constant, tid_x, tid_y, tid_z, ctaid_x, ctaid_y, ctaid_z, count };
}

struct LoopOffset {
  LoopId loop;
  ExpressionId step; // added once per trip; trip 0 is the first
  bool operator==(const LoopOffset&) const = default;
};

// A condition that selects among the alternatives of a divergent-linear value.
struct FormCondition {
  enum class Kind : uint8_t {
    predicate, // bit = the predicate `value`
    edge,      // bit = bit `bit` of the group number of the edge on which the join of block parameter `value` was
               // entered; see LinearForms::edge_groups
    compare,   // bit = the instruction (min, max, abs, slct) selected its second alternative
  };
  Kind kind = Kind::predicate;
  uint8_t bit = 0;
  uint16_t reserved = 0; // no padding: forms are compared as bytes
  ValueId value;
  InstructionId instruction;
  bool operator==(const FormCondition&) const = default;
};

// Plain data; expression and form ids belong to the LinearForms that created it.
struct LinearForm {
  static constexpr unsigned max_loops = 4;

  ValueClass kind = ValueClass::any;
  uint8_t width = 0; // bits; 1 for predicates
  uint8_t loop_count = 0;
  uint8_t condition_count = 0;
  bool signed_remainder = false; // mod_linear
  // May differ between trips other than by a loop offset: launch_uniform and block_uniform only. All threads in the
  // same trip of the loops around the definition have the same value.
  bool varies = false;
  uint16_t reserved = 0;
  // All seven, in Z/2^width. Present for constant .. linear_loop, except block-uniform values without a form.
  std::array<ExpressionId, form_index::count> coefficients{};
  std::array<LoopOffset, max_loops> loop_offsets{};

  LinearFormId dividend; // mod_linear: (dividend mod divisor) * multiplier + addend
  ExpressionId divisor, multiplier, addend;

  std::array<LinearFormId, 4> alternatives{}; // divergent_linear: 1 << condition_count of them; bit i of the index
  std::array<FormCondition, 2> conditions{};  // is conditions[i]

  bool has_coefficients() const { return coefficients[0].valid(); }
  std::span<const LoopOffset> loops() const { return {loop_offsets.data(), loop_count}; }
  bool operator==(const LinearForm& other) const { return std::memcmp(this, &other, sizeof *this) == 0; }
};
static_assert(std::has_unique_object_representations_v<LinearForm>);

// The condition under which a loop continues, which determines its trip count: `tested + trip * step` REL `limit`.
struct TripBound {
  bool known = false;
  bool exact = false;                            // the only exit: the last trip is the one in which the test fails
  Comparison relation = Comparison::less_signed; // stays in the loop while tested REL limit; not `equal`
  bool reversed = false;                         // while limit REL tested
  LinearFormId tested;                           // in trip 0, without this loop's offset
  ExpressionId step;
  ExpressionId limit;
};

// Indices of one thread, and the trip numbers of its loops.
struct ThreadPosition {
  std::array<uint32_t, 3> tid{};
  std::array<uint32_t, 3> ctaid{};
  std::vector<std::pair<LoopId, uint64_t>> trips;
  std::vector<std::pair<FormCondition, bool>> conditions;
};

// A condition that must hold in every thread of a launch.
struct RangeObligation {
  enum class Kind : uint8_t {
    form_range,       // the integer value of `form`, coefficients and literals read as signed, is in `range`
    expression_range, // the same for `expression`, products and sums in exact integers: an extension may move inside
  };
  Kind kind = Kind::form_range;
  LinearFormId form;
  ExpressionId expression;
  Interval range;
  InstructionId instruction; // instruction that raised it
  SourceRange source;
  bool proved = false;
  std::string_view reason;       // how it was proved; of static duration
  bool launch_checkable = false; // evaluate() may return true for some launch
};

class LinearForms {
public:
  // Computes control flow, dominators, loops and uses. `function` must be in SSA form and outlive this object.
  explicit LinearForms(const Function& function);
  ~LinearForms();
  LinearForms(LinearForms&&) noexcept;
  LinearForms& operator=(LinearForms&&) noexcept;

  const Function& function() const;
  const ControlFlow& control_flow() const;
  const DominatorTree& dominators() const;
  const LoopForest& loops() const;
  const DefUse& def_use() const;

  // The form of a value, valid inside the loops around its definition.
  const LinearForm& form(ValueId value) const;
  LinearFormId form_id(ValueId value) const;
  const LinearForm& form(LinearFormId id) const;
  // The form of a value as read in `block`, which may be outside those loops: then that of the last trip's value.
  const LinearForm& form_at(ValueId value, BlockId block) const;
  // The form of an operand of an instruction: registers, literals, special registers, symbols.
  const LinearForm& operand_form(InstructionId instruction, const Operand& operand) const;
  // The form of `[base + offset]`: `group` is the index of the address operand. Class `any` if it has no form.
  const LinearForm& address_form(InstructionId instruction, size_t group) const;

  // The conditions under which a value's form is valid, including those of its sources. Sorted.
  std::span<const ObligationId> obligations(ValueId value) const;
  const RangeObligation& obligation(ObligationId id) const;
  // "-2147483648 <= P1+tid.x <= 2147483647"
  const std::string& statement(ObligationId id) const;
  const Table<ObligationId, RangeObligation>& all_obligations() const;
  // True if the obligation is proved or certainly holds in this launch: from exact corner sums in 128 bits; an overflow
  // gives false.
  bool evaluate(ObligationId id, const LaunchValues& launch) const;
  // True if the obligation only states that numbers stay within their type. A user who guarantees that indices do not
  // overflow does not guarantee other ranges (`xor i, 32` is `i+32` if i < 32).
  bool is_about_overflow(ObligationId id) const;
  // The same test as text for the side file's `when`; empty if a launch cannot decide it.
  const std::string& launch_predicate(ObligationId id) const;
  // Not empty? Found without the text.
  bool has_launch_predicate(ObligationId id) const;
  // Adds an obligation of the caller: `form` stays in `range`, raised by `instruction`. Equal obligations are shared.
  ObligationId require_range(const LinearForm& form, Interval range, InstructionId instruction);

  // Distributes the extension `extended` (a sign_extend or zero_extend atom of a sum) over its operand: equal to it
  // under the returned obligation, which depends on parameters only.
  struct MovedExtension {
    ExpressionId expression;
    ObligationId obligation;
  };
  MovedExtension move_extension(ExpressionId extended, InstructionId instruction);

  // True if all threads of the launch (in the same trip) take the same direction at the branch that ends this block.
  bool branch_is_uniform(BlockId block) const;
  const TripBound& trip_bound(LoopId loop) const;
  // The alternative selected by each incoming edge of the parameter's block, in ControlFlow::predecessors order.
  std::vector<unsigned> edge_groups(ValueId block_parameter) const;

  // The value of a form in one thread, zero-extended; nullopt if the form has no value (any, opaque atoms, unknown trip
  // or condition).
  std::optional<uint64_t> evaluate(const LinearForm& form, const LaunchValues& launch,
                                   const ThreadPosition& thread) const;

  const ExpressionPool& expressions() const;
  ExpressionPool& expressions();

  // `{P5+4*P1, 4, 4*(P1+1), 0, 0, 64*(P1+1), 0}`, loop offsets as ` + k1*4`; short as in ExpressionPool::print_short.
  std::string print(const LinearForm& form) const;
  std::string print_exact(const LinearForm& form) const;

  struct State; // private to ir/analysis
  const State& state() const { return *state_; }

private:
  std::unique_ptr<State> state_;
};

} // namespace ptxrewrite::ir
