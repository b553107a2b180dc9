// Translates terms to Z3 expressions.
#include "evaluate/prove/solver.h"

#include <algorithm>
#include <functional>

#ifdef PTXREWRITE_HAS_Z3
#include "evaluate/prove/instruction_meanings.h"
#endif

namespace ptxrewrite::prove {

constexpr const char* no_solver = "Z3 is not available";

#ifdef PTXREWRITE_HAS_Z3

// Z3 does not enforce its resource limit during simplification.
constexpr size_t most_atoms = 300;
constexpr uint64_t most_efforts = 5; // limit for all queries of a kernel; further queries are not made

struct Solver::State {
  State(Terms& all, unsigned steps) : terms(all), effort(steps) {}

  z3::expr literal(UInt128 value, unsigned width) {
    const auto low = static_cast<uint64_t>(value);
    if (width <= 64) return context.bv_val(low, width);
    return z3::concat(context.bv_val(static_cast<uint64_t>(value >> 64), width - 64), context.bv_val(low, 64));
  }

  z3::expr translate(TermId id) {
    if (auto known = translated.find(id); known != translated.end()) return known->second;
    const Term term = terms[id];
    z3::expr sum = literal(0, term.width);
    bool first = true;
    for (const auto& [monomial, coefficient] : term.coefficients) {
      z3::expr product = monomial.empty() ? literal(coefficient, term.width) : of_monomial(monomial);
      if (!monomial.empty() && coefficient != 1) product = literal(coefficient, term.width) * product;
      sum = first ? product : sum + product;
      first = false;
    }
    translated.insert_or_assign(id, sum);
    return sum;
  }

  z3::expr of_monomial(const Monomial& monomial) {
    if (monomial.size() == 1) return of_atom(monomial[0]);
    if (auto known = products.find(monomial); known != products.end()) return known->second;
    if (multiplies) {
      z3::expr whole = of_atom(monomial[0]);
      for (size_t i = 1; i < monomial.size(); ++i)
        whole = whole * of_atom(monomial[i]);
      products.insert_or_assign(monomial, whole);
      return whole;
    }
    const unsigned width = terms.atom(monomial[0]).width;
    z3::expr product = context.bv_const(("product" + std::to_string(products.size())).c_str(), width);
    products.insert_or_assign(monomial, product);
    return product;
  }

  z3::expr of_atom(AtomId id) {
    if (auto known = atoms.find(id); known != atoms.end()) return known->second;
    const Atom row = terms.atom(id);
    z3::expr value = context.bv_const(row.name.empty() ? "_" : row.name.c_str(), row.width);
    if (row.kind != AtomKind::leaf) {
      std::vector<z3::expr> operands;
      for (TermId operand : row.operands)
        operands.push_back(translate(operand));
      value = combine(row, operands);
    }
    atoms.insert_or_assign(id, value);
    return value;
  }

  z3::expr combine(const Atom& row, const std::vector<z3::expr>& operands) {
    auto more = [&] { return row.width - operands[0].get_sort().bv_size(); };
    switch (row.kind) {
    case AtomKind::sign_extend:
      return z3::sext(operands[0], more());
    case AtomKind::zero_extend:
      return z3::zext(operands[0], more());
    case AtomKind::truncate:
      return operands[0].extract(row.width - 1u, 0);
    case AtomKind::product:
      return operands[0] * operands[1];
    case AtomKind::leaf:
    case AtomKind::operation:
      break;
    }
    if (row.name == "and") return operands[0] & operands[1];
    if (row.name == "or") return operands[0] | operands[1];
    if (row.name == "xor") return operands[0] ^ operands[1];
    if (row.name == "shl") return z3::shl(operands[0], operands[1]);
    if (row.name == "lshr") return z3::lshr(operands[0], operands[1]);
    if (row.name == "ashr") return z3::ashr(operands[0], operands[1]);
    if (row.name == "select") return z3::ite(operands[0] == context.bv_val(1, 1), operands[1], operands[2]);
    if (row.name == "zero" || row.name == "slt" || row.name == "ult") {
      const z3::expr holds = row.name == "zero"  ? operands[0] == literal(0, operands[0].get_sort().bv_size())
                             : row.name == "slt" ? operands[0] < operands[1]
                                                 : z3::ult(operands[0], operands[1]);
      return z3::ite(holds, context.bv_val(1, 1), context.bv_val(0, 1));
    }
    if (row.name == "smin") return z3::ite(operands[0] < operands[1], operands[0], operands[1]);
    if (row.name == "smax") return z3::ite(operands[0] < operands[1], operands[1], operands[0]);
    if (row.name == "umin") return z3::ite(z3::ult(operands[0], operands[1]), operands[0], operands[1]);
    if (row.name == "umax") return z3::ite(z3::ult(operands[0], operands[1]), operands[1], operands[0]);
    if (const std::optional<z3::expr> meaning = meaning_of(row.name, operands);
        meaning && meaning->get_sort().bv_size() == row.width)
      return *meaning;
    z3::sort_vector domain(context);
    z3::expr_vector arguments(context);
    for (const z3::expr& operand : operands) {
      domain.push_back(operand.get_sort());
      arguments.push_back(operand);
    }
    if (operands.empty()) return context.bv_const(row.name.c_str(), row.width);
    return context.function(row.name.c_str(), domain, context.bv_sort(row.width))(arguments);
  }

  // Collects every product inside a term, at any depth.
  void collect(TermId id, std::set<Monomial>& found, std::set<AtomId>& leaves, std::set<TermId>& seen) {
    if (!seen.insert(id).second) return;
    for (const auto& [monomial, coefficient] : terms[id].coefficients) {
      if (monomial.size() > 1) found.insert(monomial);
      for (AtomId factor : monomial) {
        if (terms.atom(factor).kind == AtomKind::leaf) leaves.insert(factor);
        const std::vector<TermId> operands = terms.atom(factor).operands;
        for (TermId operand : operands)
          collect(operand, found, leaves, seen);
      }
    }
  }

  // The low bits of a product are the product of the low bits: the definition of the narrow product if it is one,
  // otherwise an axiom. For factors that are not extensions, only if the narrow product occurs.
  void link(const Monomial& monomial, unsigned narrow, const std::set<Monomial>& found, std::vector<z3::expr>& axioms,
            std::set<Monomial>& further) {
    TermId product;
    bool are_extensions = true;
    for (AtomId factor : monomial) {
      const Atom& row = terms.atom(factor);
      const bool is_extension = row.kind == AtomKind::sign_extend || row.kind == AtomKind::zero_extend;
      are_extensions &= is_extension && terms.width(row.operands[0]) <= narrow;
      const TermId one = terms.from_atom(factor);
      product = product ? terms.multiply(product, one) : one;
    }
    const TermId cut = terms.truncate(product, narrow);
    const auto occurs = [&](const auto& part) { return part.first.size() < 2 || found.contains(part.first); };
    if (!are_extensions && !std::ranges::all_of(terms[cut].coefficients, occurs)) return;
    const z3::expr low = of_monomial(monomial).extract(narrow - 1, 0);
    const Term& term = terms[cut];
    if (term.coefficients.size() == 1 && term.coefficients.begin()->second == 1) {
      const Monomial& inner = term.coefficients.begin()->first;
      if (inner.size() > 1 && products.try_emplace(inner, low).second) {
        further.insert(inner);
        return;
      }
    }
    axioms.push_back(low == translate(cut));
  }

  void add_axioms(TermId a, TermId b, const std::vector<Assumption>& assumptions, z3::solver& solver) {
    std::set<Monomial> found;
    std::set<AtomId> leaves;
    std::set<TermId> seen;
    collect(a, found, leaves, seen);
    collect(b, found, leaves, seen);
    for (const Assumption& assumption : assumptions)
      collect(assumption.value, found, leaves, seen);
    std::vector<z3::expr> axioms;
    // Widest first, so that narrower products are parts of wider ones.
    for (unsigned width : multiplies ? std::vector<unsigned>() : std::vector<unsigned>{128, 64, 32}) {
      std::set<Monomial> further;
      for (const Monomial& monomial : found)
        if (terms.atom(monomial[0]).width == width)
          for (unsigned narrow : {64u, 32u, 16u})
            if (narrow < width) link(monomial, narrow, found, axioms, further);
      found.insert(further.begin(), further.end());
    }
    for (const z3::expr& axiom : axioms)
      solver.add(axiom);
    for (AtomId leaf : leaves)
      add_launch_facts(leaf, solver);
  }

  // ISA manual, special registers: indices are below dimensions, which are limited.
  void add_launch_facts(AtomId leaf, z3::solver& solver) {
    const Atom row = terms.atom(leaf);
    if (row.width != 32) return;
    auto special = [&](const std::string& name) { return of_atom(*terms.as_atom(terms.leaf(name, 32))); };
    for (std::string_view component : {".x", ".y", ".z"}) {
      const std::string suffix(component);
      if (row.name == "%tid" + suffix || row.name == "%ntid" + suffix) {
        solver.add(z3::ult(special("%tid" + suffix), special("%ntid" + suffix)));
        solver.add(z3::ule(special("%ntid" + suffix), context.bv_val(suffix == ".z" ? 64 : 1024, 32)));
      }
      if (row.name == "%ctaid" + suffix || row.name == "%nctaid" + suffix) {
        solver.add(z3::ult(special("%ctaid" + suffix), special("%nctaid" + suffix)));
        solver.add(z3::ule(special("%nctaid" + suffix), context.bv_val(suffix == ".x" ? 2147483647u : 65535u, 32)));
      }
    }
  }

  z3::expr call(const std::string& name, const z3::expr& x, const z3::expr& y) {
    z3::sort_vector domain(context);
    domain.push_back(x.get_sort());
    domain.push_back(y.get_sort());
    return context.function(name.c_str(), domain, x.get_sort())(x, y);
  }

  // Divisions are uninterpreted functions with these axioms: for nonnegative numbers, signed and unsigned division
  // agree, and so do 64-bit and 32-bit division if both numbers fit 32 bits; an unsigned quotient is at most the
  // dividend, a remainder below the divisor.
  void add_division_facts(z3::solver& solver) {
    for (const auto& [id, value] : std::map<AtomId, z3::expr>(atoms)) {
      const Atom row = terms.atom(id);
      const bool is_division = row.kind == AtomKind::operation && row.operands.size() == 2 &&
                               terms.width(row.operands[0]) == row.width && terms.width(row.operands[1]) == row.width &&
                               (row.name.starts_with("div.") || row.name.starts_with("rem."));
      const std::string operation = is_division ? row.name.substr(0, 4) : "";
      const std::string type = is_division ? row.name.substr(4) : "";
      if (type == "u32.0" || type == "u64.0") {
        const z3::expr divisor = translate(row.operands[1]);
        const z3::expr fits =
            operation == "div." ? z3::ule(value, translate(row.operands[0])) : z3::ult(value, divisor);
        solver.add(z3::implies(divisor != literal(0, row.width), fits));
      }
      if (type != "s32.0" && type != "s64.0" && type != "u64.0") continue;
      const z3::expr x = translate(row.operands[0]), y = translate(row.operands[1]);
      z3::expr natural = value;
      if (type[0] == 's') {
        natural = call(operation + 'u' + type.substr(1), x, y);
        solver.add(z3::implies(x >= literal(0, row.width) && y > literal(0, row.width), value == natural));
      }
      if (row.width != 64) continue;
      const z3::expr small = literal(UInt128(1) << 32, 64);
      const z3::expr short_one = call(operation + "u32.0", x.extract(31, 0), y.extract(31, 0));
      solver.add(z3::implies(z3::ult(x, small) && z3::ult(y, small) && y != literal(0, 64),
                             natural == z3::zext(short_one, 32)));
    }
  }

  Judgement judge(TermId a, TermId b, const std::vector<Assumption>& assumptions) {
    std::set<AtomId> atoms_inside;
    terms.collect_atoms(a, atoms_inside);
    terms.collect_atoms(b, atoms_inside);
    if (atoms_inside.size() > most_atoms) return {Outcome::unknown, "too large for the solver"};
    if (spent > most_efforts * effort) return {Outcome::unknown, "the questions before took too many steps"};
    multiplies = false;
    Judgement judgement = ask(a, b, assumptions);
    if (judgement.outcome != Outcome::refuted || products.empty()) return judgement;
    // The counterexample chose the values of products. With exact products the query is harder, but it is usually
    // short.
    multiplies = true;
    Judgement exact = ask(a, b, assumptions);
    return exact.outcome == Outcome::unknown ? judgement : exact;
  }

  Judgement ask(TermId a, TermId b, const std::vector<Assumption>& assumptions) {
    z3::solver solver(context, "QF_UFBV");
    solver.set("rlimit", multiplies ? effort / 10 : effort);
    // Wide products are translated first, so that narrow ones are parts of them.
    products.clear();
    translated.clear();
    atoms.clear();
    add_axioms(a, b, assumptions, solver);
    for (const Assumption& assumption : assumptions) {
      const z3::expr value = translate(assumption.value);
      solver.add(value >= literal(static_cast<UInt128>(assumption.range.low), 128));
      solver.add(value <= literal(static_cast<UInt128>(assumption.range.high), 128));
    }
    solver.add(translate(a) != translate(b));
    add_division_facts(solver);
    const uint64_t before = steps_of(solver);
    const z3::check_result result = solver.check();
    spent += steps_of(solver) - before;
    switch (result) {
    case z3::unsat:
      return {Outcome::proved, {}};
    case z3::unknown:
      return {Outcome::unknown, solver.reason_unknown()};
    case z3::sat:
      break;
    }
    return counterexample(solver.get_model(), a, b);
  }

  // The total resource count of the context: used instead of time, so that proofs do not depend on the machine's speed.
  static uint64_t steps_of(z3::solver& solver) {
    const z3::stats statistics = solver.statistics();
    for (unsigned i = 0; i < statistics.size(); ++i)
      if (statistics.key(i) == "rlimit count") return statistics.is_uint(i) ? statistics.uint_value(i) : 0;
    return 0;
  }

  // A query with a single unknown.
  bool extension_is_exact(AtomKind kind, unsigned from, unsigned to, const ir::Interval& range) {
    const z3::expr number = context.bv_const("number", 128);
    const z3::expr low = number.extract(from - 1, 0);
    const z3::expr extended = kind == AtomKind::sign_extend ? z3::sext(low, to - from) : z3::zext(low, to - from);
    z3::solver solver(context, "QF_BV");
    solver.set("rlimit", effort);
    solver.add(number >= literal(static_cast<UInt128>(range.low), 128));
    solver.add(number <= literal(static_cast<UInt128>(range.high), 128));
    solver.add(extended != number.extract(to - 1, 0));
    return solver.check() == z3::unsat;
  }

  Judgement counterexample(const z3::model& model, TermId a, TermId b) {
    std::set<Monomial> ignored;
    std::set<AtomId> leaves;
    std::set<TermId> seen;
    collect(a, ignored, leaves, seen);
    collect(b, ignored, leaves, seen);
    Judgement judgement{Outcome::refuted, {}};
    std::string& text = judgement.detail;
    for (AtomId leaf : leaves) {
      const z3::expr value = model.eval(of_atom(leaf), true);
      text += (text.empty() ? "" : ", ") + terms.atom(leaf).name + " = " + value.to_string();
      if (uint64_t number = 0; value.is_numeral_u64(number)) judgement.model[terms.atom(leaf).name] = number;
    }
    return judgement;
  }

  Terms& terms;
  unsigned effort;
  uint64_t spent = 0;      // by all queries
  bool multiplies = false; // if false, products are unknowns
  z3::context context;
  std::map<TermId, z3::expr> translated;
  std::map<AtomId, z3::expr> atoms;
  std::map<Monomial, z3::expr> products;
};

bool Solver::available() {
  return load_z3();
}

#else

struct Solver::State {
  State(Terms&, unsigned) {}
  Judgement judge(TermId, TermId, const std::vector<Assumption>&) { return {Outcome::unknown, no_solver}; }
  bool extension_is_exact(AtomKind, unsigned, unsigned, const ir::Interval&) { return false; }
};

bool Solver::available() {
  return false;
}

#endif

namespace {

// Two operations with the same name whose difference, or a multiple of it, equals the term.
struct OperationPair {
  AtomId first, second;
};
std::optional<OperationPair> as_operation_pair(const Terms& terms, TermId difference) {
  const Term& term = terms[difference];
  if (term.coefficients.size() != 2) return std::nullopt;
  const auto& [first, plus] = *term.coefficients.begin();
  const auto& [second, minus] = *term.coefficients.rbegin();
  const UInt128 zero = (plus + minus) << (128 - term.width);
  if (first.size() != 1 || second.size() != 1 || zero != 0) return std::nullopt;
  const Atom& a = terms.atom(first[0]);
  const Atom& b = terms.atom(second[0]);
  if (a.kind != b.kind || a.kind == AtomKind::leaf || a.name != b.name || a.operands.size() != b.operands.size())
    return std::nullopt;
  for (size_t i = 0; i < a.operands.size(); ++i)
    if (terms.width(a.operands[i]) != terms.width(b.operands[i])) return std::nullopt;
  return OperationPair{first[0], second[0]};
}

#ifndef PTXREWRITE_HAS_Z3
bool has_meaning(std::string_view) {
  return false;
}
#endif

// Operations that Solver::State::combine interprets.
const std::set<std::string> meaningful{"and",  "or",   "xor",  "shl",  "lshr", "ashr", "select",
                                       "smin", "smax", "umin", "umax", "zero", "slt",  "ult"};

// The operations inside the term that the solver knows only by name, with their numbers of occurrences.
std::map<std::string, size_t> unknown_operations(const Terms& terms, TermId term) {
  std::set<AtomId> inside;
  terms.collect_atoms(term, inside);
  std::map<std::string, size_t> names;
  for (AtomId id : inside)
    if (const Atom& row = terms.atom(id);
        row.kind == AtomKind::operation && !meaningful.contains(row.name) && !has_meaning(row.name))
      ++names[row.name];
  return names;
}

// Is the operation injective in each operand? Uninterpreted operations also count, because equality of their results
// can be shown in no other way.
bool is_one_to_one(const Atom& row) {
  switch (row.kind) {
  case AtomKind::sign_extend:
  case AtomKind::zero_extend:
    return true;
  case AtomKind::operation:
    return !meaningful.contains(row.name) && !has_meaning(row.name);
  default:
    return false;
  }
}

} // namespace

namespace {

// Replaces extensions whose operand is the assumed value up to a literal by the same extension of a named unknown.
TermId name_value(Terms& terms, TermId in, const Assumption& assumption, TermId name) {
  std::set<AtomId> inside;
  terms.collect_atoms(in, inside);
  std::map<AtomId, TermId> named;
  for (AtomId id : inside) {
    const Atom row = terms.atom(id);
    if (row.kind != AtomKind::sign_extend && row.kind != AtomKind::zero_extend) continue;
    const unsigned width = terms.width(row.operands[0]);
    const TermId rest = terms.subtract(row.operands[0], terms.truncate(assumption.value, width));
    if (!terms.literal_value(rest)) continue;
    const TermId value = terms.add(terms.truncate(name, width), rest);
    named[id] = terms.resize(value, row.width, row.kind == AtomKind::sign_extend);
  }
  return terms.substitute(in, named);
}

// Adds the multiple of `nothing`, which is 0, that leaves the fewest terms in the sum, at most `most`.
TermId shorten(Terms& terms, TermId sum, TermId nothing, size_t most) {
  const unsigned width = terms.width(sum);
  TermId shortest = sum;
  const Term row = terms[nothing];
  for (const auto& [monomial, coefficient] : row.coefficients) {
    auto found = terms[sum].coefficients.find(monomial);
    if (monomial.empty() || found == terms[sum].coefficients.end()) continue;
    const ir::Int128 own = as_signed(coefficient, width), wanted = as_signed(found->second, width);
    if (wanted % own != 0) continue;
    const TermId tried = terms.subtract(sum, terms.scale(nothing, static_cast<UInt128>(wanted / own)));
    if (terms[tried].coefficients.size() > most) continue;
    most = terms[tried].coefficients.size() - 1;
    shortest = tried;
  }
  return shortest;
}

} // namespace

Elimination eliminate(Terms& terms, TermId a, TermId b, const std::vector<Assumption>& assumptions) {
  Elimination result{terms.subtract(a, b), {}};
  const unsigned width = terms.width(a);
  std::vector<TermId> nothings;
  for (size_t i = 0; i < assumptions.size(); ++i) {
    const TermId name = terms.leaf("assumed" + std::to_string(i), 128);
    const TermId with_names = name_value(terms, result.difference, assumptions[i], name);
    if (with_names == result.difference) continue;
    result.difference = with_names;
    result.assumptions.push_back({name, assumptions[i].range});
    nothings.push_back(terms.subtract(terms.truncate(assumptions[i].value, width), terms.truncate(name, width)));
  }
  // First introduces each name, then repeats as long as the difference gets shorter.
  for (TermId nothing : nothings)
    result.difference = shorten(terms, result.difference, nothing, SIZE_MAX);
  for (size_t before = SIZE_MAX; terms[result.difference].coefficients.size() < before;) {
    before = terms[result.difference].coefficients.size();
    for (TermId nothing : nothings)
      result.difference = shorten(terms, result.difference, nothing, terms[result.difference].coefficients.size());
  }
  return result;
}

Solver::Solver(Terms& terms, unsigned effort)
    : terms_(terms), state_(available() ? std::make_unique<State>(terms, effort) : nullptr) {}
Solver::~Solver() = default;

Judgement Solver::judge(TermId a, TermId b, const std::vector<Assumption>& assumptions) {
  return state_ ? state_->judge(a, b, assumptions) : Judgement{Outcome::unknown, no_solver};
}

Judgement Solver::prove_equal(TermId a, TermId b, const std::vector<Assumption>& assumptions) {
  if (a == b) return {Outcome::identical, {}};
  if (auto known = known_.find({a, b, assumptions}); known != known_.end()) return known->second;
  Judgement judgement = prove_parts(a, b, assumptions);
  // A counterexample chooses the results of uninterpreted operations; if the two sides have different ones, it proves
  // nothing.
  if (judgement.outcome == Outcome::refuted && unknown_operations(terms_, a) != unknown_operations(terms_, b)) {
    judgement.outcome = Outcome::unknown;
    judgement.detail = "the two are made by operations that the solver only knows by name";
  }
  known_.insert({{a, b, assumptions}, judgement});
  return judgement;
}

bool Solver::extension_is_exact(AtomKind kind, unsigned from, unsigned to, const ir::Interval& range) {
  const ir::Interval type = kind == AtomKind::sign_extend ? ir::signed_range(from) : ir::unsigned_range(from);
  if (range.low < type.low || range.high > type.high) return false; // unlikely to hold: no query is made
  auto [row, is_new] = known_extensions_.try_emplace({kind, from, to, range.low, range.high}, false);
  if (is_new) row->second = state_ && state_->extension_is_exact(kind, from, to, range);
  return row->second;
}

// Returns the second term with its operations replaced by those of the first for which equal operands are proved, inner
// ones first, so that products of these are the same unknowns.
TermId Solver::with_shared_operations(TermId a, TermId b, const std::vector<Assumption>& assumptions) {
  constexpr size_t most_pairs = 64; // each may take the full effort of the solver
  size_t pairs = 0;
  std::set<AtomId> settled;
  for (bool found = true; found;) {
    found = false;
    std::set<AtomId> first, second;
    terms_.collect_atoms(a, first);
    terms_.collect_atoms(b, second);
    for (AtomId theirs : second) {
      if (first.contains(theirs) || !settled.insert(theirs).second) continue;
      const Atom row = terms_.atom(theirs);
      if (row.kind != AtomKind::operation) continue;
      for (AtomId ours : first) {
        const Atom like = terms_.atom(ours);
        if (like.kind != row.kind || like.name != row.name || like.width != row.width || second.contains(ours) ||
            like.operands.size() != row.operands.size())
          continue;
        if (++pairs > most_pairs) return b;
        bool equal = true;
        for (size_t i = 0; equal && i < row.operands.size(); ++i) {
          const TermId x = like.operands[i], y = row.operands[i];
          equal = terms_.width(x) == terms_.width(y) && (x == y || judge(x, y, assumptions).outcome == Outcome::proved);
        }
        if (!equal) continue;
        b = terms_.substitute(b, {{theirs, terms_.from_atom(ours)}});
        found = true;
        break;
      }
      if (found) break;
    }
  }
  return b;
}

Judgement Solver::prove_parts(TermId a, TermId b, const std::vector<Assumption>& assumptions) {
  // Compares the operands: equal operands give equal results.
  if (auto pair = as_operation_pair(terms_, terms_.subtract(a, b))) {
    const Atom first = terms_.atom(pair->first), second = terms_.atom(pair->second);
    size_t different = 0;
    Judgement last;
    for (size_t i = 0; i < first.operands.size(); ++i) {
      Judgement judgement = prove_equal(first.operands[i], second.operands[i], assumptions);
      if (judgement.outcome == Outcome::proved || judgement.outcome == Outcome::identical) continue;
      if (judgement.detail.find(" in ") == std::string::npos) // names only the innermost operands
        judgement.detail += " in " + terms_.print(first.operands[i]) + " =?= " + terms_.print(second.operands[i]);
      last = std::move(judgement);
      ++different;
    }
    if (different == 0) return {Outcome::proved, {}};
    if (different == 1 && is_one_to_one(first)) return last;
  }
  const TermId zero = terms_.literal(terms_.width(a), 0);
  const Elimination small = eliminate(terms_, a, b, assumptions);
  if (small.difference == zero) return {Outcome::proved, {}};
  if (Judgement judgement = judge(small.difference, zero, small.assumptions); judgement.outcome == Outcome::proved)
    return judgement;
  Judgement judgement = judge(a, b, assumptions);
  if (judgement.outcome == Outcome::proved) return judgement;
  const TermId shared = with_shared_operations(a, b, assumptions);
  if (shared == a) return {Outcome::proved, {}};
  if (shared != b && judge(a, shared, assumptions).outcome == Outcome::proved) return {Outcome::proved, {}};
  return judgement;
}

} // namespace ptxrewrite::prove
