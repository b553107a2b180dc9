// Bit-vector terms for proofs: sums of products of atoms, in one normal form per value of Z/2^width.
//
// Addresses are mostly ring arithmetic, which is hard for a bit-level solver as soon as two unknowns are multiplied. So
// the ring laws are applied here, and the solver is left with the remaining operations: extensions of sums that may
// wrap, comparisons, bitwise operations. Hash-consed: equal IDs mean equal terms.
#pragma once

#include "ir/analysis/linear/expression.h"
#include "support/ids.h"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace ptxrewrite::prove {

__extension__ typedef unsigned __int128 UInt128;

// The signed number that `width` bits (1 to 128) represent in two's complement.
inline ir::Int128 as_signed(UInt128 value, unsigned width) {
  const unsigned unused = 128 - width;
  return static_cast<ir::Int128>(value << unused) >> unused;
}

struct TermTag;
using TermId = Id<TermTag>; // a sum
struct AtomTag;
using AtomId = Id<AtomTag>;

enum class AtomKind : uint8_t {
  leaf,        // an unknown with a name
  sign_extend, // of operands[0]
  zero_extend,
  truncate,  // low bits of operands[0], which is a single atom
  product,   // of operands, if the expanded product would be too long
  operation, // any other operation, identified by `name`; equal operands give equal results
};

struct Atom {
  AtomKind kind = AtomKind::leaf;
  uint8_t width = 0;
  std::string name;
  std::vector<TermId> operands;
  auto operator<=>(const Atom&) const = default;
};

using Monomial = std::vector<AtomId>; // sorted, with repetition; empty: 1

struct Term {
  uint8_t width = 0;
  std::map<Monomial, UInt128> coefficients; // never 0; reduced to the width
  auto operator<=>(const Term&) const = default;
};

class Terms {
public:
  const Term& operator[](TermId id) const { return terms_[id.index()]; }
  const Atom& atom(AtomId id) const { return atoms_[id.index()]; }
  unsigned width(TermId id) const { return terms_[id.index()].width; }

  TermId literal(unsigned width, UInt128 value);
  std::optional<UInt128> literal_value(TermId id) const;
  // `nonnegative`: its highest bit is 0.
  TermId leaf(std::string name, unsigned width, bool nonnegative = false);
  // States that the leaf is at most `highest`.
  void bound(TermId leaf, uint64_t highest);
  TermId operation(std::string name, unsigned width, std::vector<TermId> operands);

  // "and", "or", "xor" of two terms; a sum if there are no carries.
  TermId bitwise(const std::string& name, TermId a, TermId b);
  // Unsigned shift by a literal: a sum of parts that lie beside each other loses the lower ones.
  TermId shift_right(TermId a, unsigned amount);
  // `width` bits from the bit `first` on.
  TermId field(TermId a, unsigned first, unsigned width) { return truncate(shift_right(a, first), width); }
  // 1 bit. Equivalent conditions have one normal form: "not equal", "greater" and so on are 1 plus one of these.
  TermId is_zero(TermId a);
  TermId less(TermId a, TermId b, bool is_signed);
  TermId negation(TermId bit) { return add(bit, literal(1, 1)); }
  // Returns `if_set` if the bit is set, else `if_not`: represented as `if_not` plus a multiple of an operation that is
  // 0 if the bit is not set.
  TermId select(TermId bit, TermId if_set, TermId if_not);
  TermId add(TermId a, TermId b);
  TermId subtract(TermId a, TermId b) { return add(a, scale(b, ~UInt128(0))); }
  TermId scale(TermId a, UInt128 factor);
  TermId multiply(TermId a, TermId b);
  TermId sign_extend(TermId a, unsigned width) { return extend(a, width, AtomKind::sign_extend); }
  TermId zero_extend(TermId a, unsigned width) { return extend(a, width, AtomKind::zero_extend); }
  TermId truncate(TermId a, unsigned width);
  // Extends with the given signedness, or truncates, to any width.
  TermId resize(TermId a, unsigned width, bool is_signed);
  // Number of low bits that are zero for all values of the unknowns.
  unsigned trailing_zeros(TermId a) const;

  // The term with leaves replaced; each replacement has the leaf's width.
  TermId substitute(TermId in, const std::map<AtomId, TermId>& with);
  // All atoms that occur, at any depth.
  void collect_atoms(TermId in, std::set<AtomId>& found) const;
  // The term's atom if the term is a single atom.
  std::optional<AtomId> as_atom(TermId id) const;
  TermId from_atom(AtomId id);
  // The same operation on other operands of the same widths.
  TermId remade(AtomId id, std::vector<TermId> operands);

  // Readable text; deeply nested parts are omitted.
  std::string print(TermId id) const { return print(id, 6); }

private:
  TermId substitute(TermId in, const std::map<AtomId, TermId>& with, std::map<TermId, TermId>& done);
  TermId replaced(AtomId atom, const std::map<AtomId, TermId>& with, std::map<TermId, TermId>& done);
  std::string print(TermId id, unsigned depth) const;
  ir::Int128 content(TermId a) const;
  TermId divided(TermId a, ir::Int128 by);
  TermId intern(Term term);
  AtomId intern(Atom atom);
  TermId extend(TermId a, unsigned width, AtomKind kind);
  bool stays_signed(TermId a) const;
  std::optional<UInt128> greatest(TermId a) const;
  TermId truncate_atom(AtomId atom, unsigned width);

  static constexpr size_t most_monomials = 128;
  std::vector<Term> terms_;
  std::map<Term, TermId> term_index_;
  std::vector<Atom> atoms_;
  std::map<Atom, AtomId> atom_index_;
  std::set<AtomId> nonnegative_;
  std::map<AtomId, uint64_t> highest_;
};

} // namespace ptxrewrite::prove
