// Every rule of composite's legal form, proved for all inputs: pattern and replacement are stated over bit-vectors, and
// Z3 finds no operands, and no literals under the rule's conditions, for which they differ. Planted wrong rules must be
// refuted.
//
// A tree of any shape is covered row by row: BYTES and LOGIC state the effect of one instruction on operands whose
// bytes or tables are known, so that the description of a tree follows by induction over its instructions.
#include "transforms/composite/composite_rules.h"

#include <chrono>
#include <cstdio>
#include <map>
#include <string>

#ifdef PTXREWRITE_HAS_Z3
#include "tests/rules/statements.h"

namespace ptxrewrite::tests {
namespace {

using namespace transforms::legal::composite;
using z3::expr;

constexpr unsigned effort = 400'000'000; // steps of Z3 for one row: a limit independent of the machine's speed

// One row's unknowns, by name.
class Statement {
public:
  explicit Statement(z3::context& context) : context_(context) {}

  expr unknown(const std::string& name, unsigned bits) {
    auto row = unknowns_.find(name);
    if (row == unknowns_.end()) row = unknowns_.emplace(name, context_.bv_const(name.c_str(), bits)).first;
    return row->second;
  }
  void define(const std::string& name, const expr& value) { unknowns_.emplace(name, value); }
  // A literal that the condition limits to 8 bits is those 8 bits, extended, which simplifies the query for Z3.
  void narrow(const RuleExpression& condition);
  expr number(uint64_t value) { return context_.bv_val(value, 32); }
  expr value_of(const RuleTerm& term);
  // Numbers; conditions are 1 and 0.
  expr value_of(const RuleExpression& expression);
  expr holds(const RuleExpression& condition) { return value_of(condition) != number(0); }

private:
  expr flag(const expr& condition) { return z3::ite(condition, number(1), number(0)); }
  expr binary(const std::string& what, const expr& x, const expr& y);

  z3::context& context_;
  std::map<std::string, expr> unknowns_;
};

expr Statement::value_of(const RuleTerm& term) {
  switch (term.kind) {
  case RuleTerm::Kind::variable:
    return unknown(term.text, term.bits);
  case RuleTerm::Kind::literal:
    return number(term.number);
  case RuleTerm::Kind::name:
    return unknown(term.text, 32);
  case RuleTerm::Kind::computed:
    return value_of(term.expression);
  case RuleTerm::Kind::application:
    break;
  }
  std::vector<expr> operands;
  for (const RuleTerm& operand : term.operands)
    operands.push_back(value_of(operand));
  return stated(term.text, operands);
}

expr Statement::binary(const std::string& what, const expr& x, const expr& y) {
  if (what == "+") return x + y;
  if (what == "-") return x - y;
  if (what == "*") return x * y;
  if (what == "&") return x & y;
  if (what == "|") return x | y;
  if (what == "^") return x ^ y;
  if (what == "<<") return z3::shl(x, y);
  if (what == ">>") return z3::lshr(x, y);
  if (what == "==") return flag(x == y);
  if (what == "!=") return flag(x != y);
  if (what == "<") return flag(z3::ult(x, y));
  if (what == ">") return flag(z3::ugt(x, y));
  if (what == "<=") return flag(z3::ule(x, y));
  if (what == ">=") return flag(z3::uge(x, y));
  if (what == "&&") return flag(x != number(0) && y != number(0));
  if (what == "||") return flag(x != number(0) || y != number(0));
  throw std::out_of_range("operator " + what);
}

expr Statement::value_of(const RuleExpression& expression) {
  if (expression.kind == RuleExpression::Kind::number) return number(expression.number);
  if (expression.kind == RuleExpression::Kind::name) return unknown(expression.text, 32);
  const expr x = value_of(expression.operands[0]);
  if (expression.kind == RuleExpression::Kind::fact) {
    const expr variable = unknown(expression.variable, 32);
    if (expression.text == "zeros") return flag((variable & x) == number(0));
    return flag(sign_extension(variable, x) == variable);
  }
  if (expression.text == "~") return ~x;
  if (expression.text == "ones") return low_ones(x);
  if (expression.text == "popc") return population(x);
  const expr y = value_of(expression.operands[1]);
  if (expression.text == "?:") return z3::ite(x != number(0), y, value_of(expression.operands[2]));
  return binary(expression.text, x, y);
}

// "x < 256" and "x + 128 < 256"
void Statement::narrow(const RuleExpression& condition) {
  auto is = [](const RuleExpression& what, const char* operation, uint32_t right) {
    return what.kind == RuleExpression::Kind::operation && what.text == operation && what.operands.size() == 2 &&
           what.operands[1].kind == RuleExpression::Kind::number && what.operands[1].number == right;
  };
  if (!is(condition, "<", 256)) return;
  const RuleExpression& left = condition.operands[0];
  const bool is_signed = is(left, "+", 128);
  const RuleExpression& literal = is_signed ? left.operands[0] : left;
  if (literal.kind != RuleExpression::Kind::name) return;
  const expr byte = context_.bv_const(literal.text.c_str(), 8);
  define(literal.text, is_signed ? z3::sext(byte, 24) : z3::zext(byte, 24));
}

enum class Verdict : uint8_t { proved, refuted, undecided, vacuous };

struct Proof {
  Verdict verdict = Verdict::undecided;
  std::string counterexample;
};

Proof prove(z3::context& context, const expr& left, const expr& right, const std::vector<expr>& assumptions) {
  z3::solver solver(context, "QF_BV");
  solver.set("rlimit", effort);
  for (const expr& assumption : assumptions)
    solver.add(assumption);
  // Unsatisfiable conditions would prove anything.
  if (solver.check() == z3::unsat) return {Verdict::vacuous, {}};
  solver.add(left != right);
  switch (solver.check()) {
  case z3::unsat:
    return {Verdict::proved, {}};
  case z3::unknown:
    return {Verdict::undecided, solver.reason_unknown()};
  case z3::sat:
    break;
  }
  std::string values;
  const z3::model model = solver.get_model();
  for (unsigned i = 0; i < model.num_consts(); ++i)
    values += model.get_const_decl(i).name().str() + " = " +
              model.get_const_interp(model.get_const_decl(i)).to_string() + " ";
  return {Verdict::refuted, values};
}

bool same(const RuleTerm& a, const RuleTerm& b) {
  return a.kind == b.kind && a.text == b.text && a.number == b.number &&
         std::equal(a.operands.begin(), a.operands.end(), b.operands.begin(), b.operands.end(), same);
}

// Squares of differences of bytes as squares of vabsdiff4's bytes, proved for all bytes by squares_agree(). Z3 does not
// find it for a sum of four such squares.
bool squares_agree() {
  for (uint32_t a = 0; a < 256; ++a)
    for (uint32_t b = 0; b < 256; ++b)
      if ((a - b) * (a - b) != (a < b ? b - a : a - b) * (a < b ? b - a : a - b)) return false;
  return true;
}
RuleTerm with_known_squares(RuleTerm term) {
  for (RuleTerm& operand : term.operands)
    operand = with_known_squares(std::move(operand));
  if (term.text != "mad.lo.s32" || term.operands[0].text != "sub.s32" || !same(term.operands[0], term.operands[1]))
    return term;
  const RuleTerm &a = term.operands[0].operands[0], &b = term.operands[0].operands[1];
  if (!a.text.starts_with("byte") || a.text != b.text || !a.text.ends_with(".u32")) return term;
  RuleTerm difference{RuleTerm::Kind::application, "vabsdiff4.u32.u32.u32", 32, 0, {}, {}};
  difference.operands = {a.operands[0], b.operands[0], RuleTerm{}};
  RuleTerm byte{RuleTerm::Kind::application, a.text, 32, 0, {}, {difference}};
  term.operands[0] = term.operands[1] = byte;
  return term;
}

Proof prove(const Rule& rule) {
  z3::context context;
  Statement statement(context);
  for (const RuleExpression& condition : rule.conditions)
    statement.narrow(condition);
  const expr pattern = statement.value_of(with_known_squares(rule.pattern)),
             replacement = statement.value_of(rule.replacement);
  std::vector<expr> assumptions;
  for (const RuleExpression& condition : rule.conditions)
    assumptions.push_back(statement.holds(condition));
  return prove(context, pattern, replacement, assumptions);
}

Proof prove(const ByteRule& rule) {
  z3::context context;
  Statement statement(context);
  expr value = statement.value_of(rule.pattern);
  if (value.get_sort().bv_size() == 16) value = z3::zext(value, 16);
  expr described = context.bv_val(0, 1);
  for (size_t i = 0; i < rule.bytes.size(); ++i) {
    const Byte& byte = rule.bytes[i];
    expr bits = context.bv_val(0, 8);
    if (byte.kind != Byte::Kind::zero) {
      const std::string narrow = std::string(1, byte.variable) + "16";
      const bool is_narrow = rule.text.find(narrow) != std::string::npos;
      bits = statement.unknown(is_narrow ? narrow : std::string(1, byte.variable), is_narrow ? 16 : 32)
                 .extract(8 * byte.index + 7, 8 * byte.index);
      if (byte.kind == Byte::Kind::sign) bits = z3::sext(bits.extract(7, 7), 7);
    }
    described = i == 0 ? bits : z3::concat(bits, described);
  }
  std::vector<expr> assumptions;
  for (const RuleExpression& condition : rule.conditions)
    assumptions.push_back(statement.holds(condition));
  return prove(context, value, described, assumptions);
}

// For all tables at once: a, b and c are any functions of x, y and z. One bit suffices, since all bits are independent.
Proof prove(const LogicRule& rule) {
  z3::context context;
  Statement statement(context);
  const expr x = statement.unknown("x", 1), y = statement.unknown("y", 1), z = statement.unknown("z", 1);
  std::vector<expr> assumptions;
  for (const char* name : {"A", "B", "C"}) {
    const expr table = statement.unknown(name, 32);
    assumptions.push_back(z3::ult(table, context.bv_val(256, 32)));
    statement.define(std::string(1, static_cast<char>(name[0] + ('a' - 'A'))), stated_lop3(x, y, z, table));
  }
  const expr table = statement.value_of(rule.table) & context.bv_val(0xff, 32);
  return prove(context, statement.value_of(rule.pattern), stated_lop3(x, y, z, table), assumptions);
}

struct Lemma {
  const char *name, *left, *right, *condition;
};

// Assumptions of the matcher outside of the rows.
constexpr Lemma lemmas[] = {
    {"the first input's table", "lop3.b32(a, b, c, 0xf0)", "add.s32(a, 0)", ""},
    {"the second input's table", "lop3.b32(a, b, c, 0xcc)", "add.s32(b, 0)", ""},
    {"the third input's table", "lop3.b32(a, b, c, 0xaa)", "add.s32(c, 0)", ""},
    {"a complement's table", "lop3.b32(a, b, c, 0x0f)", "not.b32(a)", ""},
    {"no bits", "lop3.b32(a, b, c, 0)", "and.b32(a, 0)", ""},
    {"all bits", "lop3.b32(a, b, c, 0xff)", "or.b32(a, -1)", ""},
    {"xor of disjoint bytes", "xor.b32(a, and.b32(b, #(~m)))", "or.b32(a, and.b32(b, #(~m)))", "zeros(a, ~m)"},
    {"sum of disjoint bytes", "add.s32(a, and.b32(b, #(~m)))", "or.b32(a, and.b32(b, #(~m)))", "zeros(a, ~m)"},
    {"a copy", "prmt.b32(a, b, 0x3210)", "add.s32(a, 0)", ""},
    {"bytes of both", "prmt.b32(a, b, 0x7610)", "or.b32(and.b32(a, 0xffff), and.b32(b, 0xffff0000))", ""},
    {"a sign", "prmt.b32(a, b, 0x8888)", "shr.s32(shl.b32(a, 24), 31)", ""},
};

// Each has one error.
constexpr Lemma planted[] = {
    {"rotate by 31 - n", "or.b32(shl.b32(a, #n), shr.u32(b, #m))", "shf.l.wrap.b32(b, a, #n)", "n + m == 31"},
    {"rotate the wrong way", "or.b32(shl.b32(a, #n), shr.u32(b, #m))", "shf.r.wrap.b32(b, a, #n)",
     "n + m == 32 && n > 0 && n < 32"},
    {"rotate without a bound", "or.b32(shl.b32(a, c), shr.u32(b, sub.s32(32, c)))", "shf.l.wrap.b32(b, a, c)", ""},
    {"negated amount in a sum", "add.s32(shl.b32(a, and.b32(c, 31)), shr.u32(a, and.b32(neg.s32(c), 31)))",
     "shf.l.wrap.b32(a, a, c)", ""},
    {"sign extension of n bits", "shr.s32(shl.b32(a, #n), #n)", "szext.clamp.s32(a, #n)", "n > 0 && n < 32"},
    {"mask of no bits", "shr.u32(-1, sub.s32(32, b))", "bmsk.clamp.b32(0, b)", ""},
    {"difference that overflows", "abs.s32(sub.s32(a, b))", "sad.s32(a, b, 0)", ""},
    {"unsigned difference", "sub.s32(max.s32(a, b), min.s32(a, b))", "sad.u32(a, b, 0)", ""},
    {"choice the other way", "or.b32(and.b32(a, #k), and.b32(b, #m))", "lop3.b32(a, b, #m, 0xe4)", "k == ~m"},
    {"choice that overlaps", "or.b32(and.b32(a, #k), and.b32(b, #m))", "lop3.b32(a, b, #m, 0xd8)", "k == m"},
    {"negation for complement", "add.s32(not.b32(a), b)", "sub.s32(b, a)", ""},
    {"signs lost", "mul.lo.s64(cvt.s64.s32(a), cvt.s64.s32(b))", "mul.wide.u32(a, b)", ""},
    {"sum of bytes that overlap", "add.s32(a, and.b32(b, #(~m)))", "or.b32(a, and.b32(b, #(~m)))", "zeros(a, m)"},
    {"signed differences of bytes", "abs.s32(sub.s32(byte0.s32(a), byte0.s32(b)))",
     "byte0.u32(vabsdiff4.u32.u32.u32(a, b, 0))", ""},
    {"rotate by none of the other", "selp.b32(b, shf.l.wrap.b32(b, a, c), setp.eq.s32(and.b32(c, 31), 0))",
     "shf.l.wrap.b32(b, a, c)", ""},
    {"clamp that NaN passes", "cvt.rzi.u32.f32(max.f32(min.f32(a, 0x437f0000), 0))",
     "and.b32(cvt.pack.sat.u8.s32.b32(0, cvt.rzi.s32.f32(a), 0), 255)", ""},
    {"nan", "min.f32(min.f32(a, b), c)", "max.f32(a, b, c)", ""},
};

class Report {
public:
  void add(const std::string& name, const Proof& proof, Verdict wanted) {
    const auto now = std::chrono::steady_clock::now();
    const double seconds = std::chrono::duration<double>(now - last_).count();
    last_ = now;
    ++count_;
    if (proof.verdict == wanted) {
      if (seconds > 1) std::printf("%.1f s: %s\n", seconds, name.c_str());
      return;
    }
    static constexpr const char* words[] = {"proved", "refuted", "undecided", "vacuous"};
    std::printf("%s: %s %s\n", name.c_str(), words[static_cast<size_t>(proof.verdict)], proof.counterexample.c_str());
    ++failures_;
  }
  void section(const char* what) {
    std::printf("%zu %s\n", count_, what);
    count_ = 0;
  }
  int failures() const { return failures_; }

private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
  size_t count_ = 0;
  int failures_ = 0;
};

Rule rule_of(const Lemma& lemma) {
  return parse_rule(Family::logic, lemma.name, lemma.left, lemma.condition, lemma.right, 0, 0, 0).front();
}

Proof prove(const Synonym& synonym) {
  z3::context context;
  std::vector<expr> operands;
  const bool is_wide = synonym.canonical.ends_with("64");
  const bool shifts = synonym.canonical.starts_with("sh");
  for (const char* name : {"a", "b", "c"})
    operands.push_back(context.bv_const(name, is_wide && !(shifts && *name == 'b') ? 64 : 32));
  if (synonym.canonical.starts_with("selp")) operands[2] = context.bv_const("p", 1);
  return prove(context, stated(std::string(synonym.canonical), operands), stated(std::string(synonym.other), operands),
               {});
}

int prove_all() {
  Report report;
  if (!squares_agree()) return 1;
  for (const Rule& rule : rules())
    report.add(rule.name + ": " + rule.pattern_text, prove(rule), Verdict::proved);
  report.section("rules proved");
  for (const Synonym& synonym : synonyms())
    report.add(std::string(synonym.other), prove(synonym), Verdict::proved);
  report.section("synonyms proved");
  for (const ByteRule& rule : byte_rules())
    report.add(rule.text, prove(rule), Verdict::proved);
  report.section("byte moves proved");
  for (const LogicRule& rule : logic_rules())
    report.add(rule.text, prove(rule), Verdict::proved);
  report.section("bitwise operations proved, for all tables");
  for (const Lemma& lemma : lemmas)
    report.add(lemma.name, prove(rule_of(lemma)), Verdict::proved);
  report.section("lemmas proved");
  for (const Lemma& lemma : planted)
    report.add(lemma.name, prove(rule_of(lemma)), Verdict::refuted);
  report.section("planted errors refuted");
  return report.failures() == 0 ? 0 : 1;
}

} // namespace
} // namespace ptxrewrite::tests

int main() {
  return ptxrewrite::tests::prove_all();
}

#else

int main() {
  std::puts("built without Z3: skipped");
  return 77;
}

#endif
