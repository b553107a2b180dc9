// Launch-uniform expressions, of which the coefficients of linear forms consist.
//
// An expression is an element of Z/2^width (width = 1 for predicates, else 8, 16, 32 or 64) and is hash-consed: equal
// ids mean equal expressions. Sums of products have a normal form; all operations but ring arithmetic (division,
// extension, minimum, ...) are atoms inside such sums. Extensions stay explicit nodes, so that code generated from an
// expression computes the same bits as the original PTX; only print_short() omits them.
#pragma once

#include "ir/core/entities.h"
#include "ir/flow/loops.h"
#include "ir/isa/isa.h"
#include "support/hash_index.h"
#include "support/span_pool.h"

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ptxrewrite::ir {

class Function;

__extension__ typedef __int128 Int128; // exact arithmetic on sums of products of 64-bit numbers

struct ExpressionTag;
using ExpressionId = Id<ExpressionTag>;
struct MonomialTag;
using MonomialId = Id<MonomialTag>; // a product of atoms, sorted, with repetition

enum class ExpressionKind : uint8_t {
  sum,       // constant + sum of coefficient * monomial; a literal is a sum without terms. All other kinds are atoms
  parameter, // bytes of a kernel parameter: payload = parameter number, offset = first byte
  special,   // launch-uniform special register: payload = SpecialRegister, offset = component 0..3
  symbol,    // address of a variable in its own space: payload = SymbolRef bits
  window,    // offset that cvta adds for a state space other than global: payload = StateSpace
  sign_extend,
  zero_extend,
  truncate,
  divide_signed,
  divide_unsigned,
  remainder_signed,
  remainder_unsigned,
  shift_left, // PTX shifts: amounts above the width are clamped, the amount has 32 bits
  shift_right_signed,
  shift_right_unsigned,
  minimum_signed,
  minimum_unsigned,
  maximum_signed,
  maximum_unsigned,
  multiply_high_signed,
  multiply_high_unsigned,
  product, // of two sums whose expanded product would be too long
  and_,
  or_,
  xor_,
  compare, // width 1: payload = Comparison
  select,  // operands: condition, value if true, value if false
  load,    // read-only load from a launch-uniform address: payload = StateSpace, offset = byte offset
  value,   // a launch-uniform SSA value without an expression: payload = ValueId, offset = 1 if it may differ between
           // trips of the loops around its definition
};

enum class Comparison : uint8_t {
  equal,
  not_equal,
  less_signed,
  less_equal_signed,
  less_unsigned,
  less_equal_unsigned
};

struct Expression {
  ExpressionKind kind = ExpressionKind::sum;
  uint8_t width = 0;          // bits
  uint8_t trailing_zeros = 0; // low bits that are zero in every launch
  bool varies = false;        // contains a value atom that may differ between trips
  bool evaluable = true;      // consists of parameters, special registers and literals only
  uint32_t payload = 0;
  uint32_t size = 1;  // nodes of the expression written out as a tree
  int64_t offset = 0; // sums: the constant, reduced to the width, zero-extended
  PoolSpan operands;  // atoms: ExpressionPool::operands
  PoolSpan terms;     // sums: ExpressionPool::terms
};

struct ExpressionTerm {
  uint64_t coefficient = 0; // reduced to the width of the sum, never 0
  MonomialId monomial;
};

// The values of one launch, with which launch-uniform expressions are evaluated.
struct LaunchValues {
  std::array<uint32_t, 3> block{1, 1, 1};       // ntid
  std::array<uint32_t, 3> grid{1, 1, 1};        // nctaid
  std::vector<std::vector<uint8_t>> parameters; // bytes, little endian, in the order of the kernel's signature

  // Appends a scalar parameter.
  void add_parameter(uint64_t value, unsigned bytes);
};

// Signed bounds of an integer, both inclusive.
struct Interval {
  Int128 low = 0;
  Int128 high = 0;
  bool operator==(const Interval&) const = default;
};
Interval signed_range(unsigned width);
Interval unsigned_range(unsigned width);

// Ranges of launch symbols that hold in all launches. Atoms that are not in `narrowed` have the range of their width.
struct LaunchLimits {
  std::array<Interval, 3> block; // ntid: 1..1024 x 1024 x 64, or as .reqntid / .maxntid limit it
  std::array<Interval, 3> grid;  // nctaid
  // Signed-representative ranges of atoms that a dominating condition implies.
  std::vector<std::pair<ExpressionId, Interval>> narrowed;
};

class ExpressionPool {
public:
  const Expression& operator[](ExpressionId id) const { return expressions_[id]; }
  std::span<const ExpressionTerm> terms(ExpressionId id) const { return terms_.view(expressions_[id].terms); }
  std::span<const ExpressionId> operands(ExpressionId id) const { return operands_.view(expressions_[id].operands); }
  std::span<const ExpressionId> factors(MonomialId id) const { return factors_.view(monomials_[id.index()]); }
  size_t size() const { return expressions_.size(); }
  unsigned width(ExpressionId id) const { return expressions_[id].width; }

  // The value of a literal, zero-extended.
  std::optional<uint64_t> literal_value(ExpressionId id) const;
  bool is_literal(ExpressionId id, uint64_t value) const;
  bool is_zero(ExpressionId id) const {
    const Expression& row = expressions_[id];
    return row.kind == ExpressionKind::sum && row.terms.empty() && row.offset == 0;
  }
  // Number of low bits that are zero in every launch; the width for 0.
  unsigned trailing_zeros(ExpressionId id) const { return expressions_[id].trailing_zeros; }
  // Larger expressions cost too much: the analysis replaces them by opaque values.
  static constexpr uint32_t size_limit = 256;
  bool too_large(ExpressionId id) const { return expressions_[id].size > size_limit; }

  ExpressionId literal(unsigned width, uint64_t value);
  ExpressionId zero(unsigned width);
  ExpressionId parameter(unsigned width, unsigned index, unsigned byte_offset);
  ExpressionId special(SpecialRegister special_register, unsigned component, unsigned width);
  ExpressionId symbol(SymbolRef ref, unsigned width);
  ExpressionId window(StateSpace space, unsigned width);
  ExpressionId load(StateSpace space, ExpressionId address, int64_t offset, unsigned width);
  ExpressionId value(ValueId value, unsigned width, bool varies);

  // Ring arithmetic. Operands have one width.
  ExpressionId add(ExpressionId a, ExpressionId b);
  ExpressionId subtract(ExpressionId a, ExpressionId b);
  ExpressionId negate(ExpressionId a);
  ExpressionId multiply(ExpressionId a, ExpressionId b);
  ExpressionId multiply_literal(ExpressionId a, uint64_t factor);

  ExpressionId sign_extend(ExpressionId a, unsigned width);
  ExpressionId zero_extend(ExpressionId a, unsigned width);
  ExpressionId truncate(ExpressionId a, unsigned width); // exact: distributes over sums
  ExpressionId extend(ExpressionId a, unsigned width, bool is_signed) {
    return is_signed ? sign_extend(a, width) : zero_extend(a, width);
  }
  // An atom of any two-operand kind; folds literals if the result is defined.
  ExpressionId binary(ExpressionKind kind, ExpressionId a, ExpressionId b);
  ExpressionId compare(Comparison comparison, ExpressionId a, ExpressionId b);
  ExpressionId logical_not(ExpressionId a); // width 1
  ExpressionId select(ExpressionId condition, ExpressionId if_true, ExpressionId if_false);

  // Calls `visit(ExpressionId)` for every atom of the expression, including nested ones; may visit one repeatedly.
  void for_each_atom(ExpressionId id, const std::function<void(ExpressionId)>& visit) const;

  // The value in a launch, zero-extended; nullopt if the expression is not evaluable, a parameter is missing or PTX
  // leaves the result undefined (division by zero).
  std::optional<uint64_t> evaluate(ExpressionId id, const LaunchValues& launch) const;
  // As above, as a signed number.
  std::optional<Int128> evaluate_signed(ExpressionId id, const LaunchValues& launch) const;
  // Bounds of the signed representative in all launches within the limits.
  Interval interval(ExpressionId id, const LaunchLimits& limits) const;

  // `64*(P1+1)`: extensions are omitted, integer factors of a sum are factored out. `names` supplies names of symbols
  // and values; may be null.
  std::string print_short(ExpressionId id, const Function* names = nullptr) const;
  // `4*sext64(16*P1+16)`: including every extension.
  std::string print_exact(ExpressionId id, const Function* names = nullptr) const;
  // The signed representative as an expression in exact integers for the side file: `sext32(16*P1+16)`. Only for
  // evaluable expressions.
  std::string print_predicate(ExpressionId id) const;

private:
  ExpressionId intern(Expression row, std::span<const ExpressionId> operand_list,
                      std::span<const ExpressionTerm> term_list);
  ExpressionId intern_sum(unsigned width, uint64_t constant, std::vector<ExpressionTerm>& term_list);
  ExpressionId atom(ExpressionKind kind, unsigned width, uint32_t payload, int64_t offset,
                    std::initializer_list<ExpressionId> operand_list);
  MonomialId intern_monomial(std::span<const ExpressionId> sorted);
  MonomialId monomial_of(ExpressionId atom_id);
  void append_terms(ExpressionId id, uint64_t factor, std::vector<ExpressionTerm>& out, uint64_t& constant);
  void describe(Expression& row, std::span<const ExpressionId> operand_list,
                std::span<const ExpressionTerm> term_list) const;
  ExpressionId simplify_binary(ExpressionKind kind, ExpressionId a, ExpressionId b);
  std::optional<uint64_t> evaluate_atom(ExpressionId id, const LaunchValues& launch) const;
  Interval atom_interval(ExpressionId id, const LaunchLimits& limits) const;

  Table<ExpressionId, Expression> expressions_;
  std::vector<PoolSpan> monomials_;
  SpanPool<ExpressionTerm> terms_;
  SpanPool<ExpressionId> operands_;
  SpanPool<ExpressionId> factors_;
  HashIndex index_, monomial_index_;
  std::vector<ExpressionTerm> term_list_; // of the sum under construction; keeps its memory
  std::array<ExpressionId, 65> zeros_{};  // by width
  static constexpr size_t small_literals = 17;
  std::array<std::array<ExpressionId, small_literals>, 2> small_{}; // literals of 32 and of 64 bits, when made
};

// The result of a two-operand atom kind for integers of `width` bits; nullopt if PTX leaves it undefined.
std::optional<uint64_t> apply_binary(ExpressionKind kind, unsigned width, uint64_t a, uint64_t b);
bool apply_comparison(Comparison comparison, unsigned width, uint64_t a, uint64_t b);
// The low `width` bits; the same sign-extended.
constexpr uint64_t low_bits(uint64_t value, unsigned width) {
  return width >= 64 ? value : value & ((uint64_t(1) << width) - 1);
}
constexpr int64_t signed_value(uint64_t value, unsigned width) {
  return width >= 64 ? static_cast<int64_t>(value) : static_cast<int64_t>(value << (64 - width)) >> (64 - width);
}
std::string to_string(Int128 value);

} // namespace ptxrewrite::ir
