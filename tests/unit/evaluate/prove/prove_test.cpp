// Proofs of rewrites: the term arithmetic by evaluation, the solver on statements known to be true or false, and the
// whole on correct passes and on wrong ones.
#include "evaluate/prove/exact_forms.h"
#include "evaluate/prove/solver.h"
#include "ir/core/builder.h"
#include "tests/unit/evaluate/prove/prove_text.h"
#include "tests/unit/paths.h"

#include <doctest/doctest.h>

#include <fstream>
#include <random>
#include <sstream>

namespace ptxrewrite::tests::prove_test {

using namespace ptxrewrite;
using namespace ptxrewrite::prove;

namespace {

UInt128 cut(UInt128 value, unsigned width) {
  return width >= 128 ? value : value & ((UInt128(1) << width) - 1);
}
UInt128 extended(UInt128 value, unsigned from) {
  const UInt128 sign = UInt128(1) << (from - 1);
  return (cut(value, from) ^ sign) - sign;
}

UInt128 evaluate(const Terms& terms, TermId id, const std::map<std::string, UInt128>& leaves);

// The operations that Terms creates itself.
UInt128 evaluate_operation(const Terms& terms, const Atom& atom, const std::map<std::string, UInt128>& leaves) {
  std::vector<UInt128> values;
  for (TermId operand : atom.operands)
    values.push_back(evaluate(terms, operand, leaves));
  const unsigned width = terms.width(atom.operands[0]);
  if (atom.name == "zero") return values[0] == 0;
  if (atom.name == "ult") return values[0] < values[1];
  if (atom.name == "slt")
    return static_cast<ir::Int128>(extended(values[0], width)) < static_cast<ir::Int128>(extended(values[1], width));
  if (atom.name == "select") return values[0] != 0 ? values[1] : values[2];
  FAIL("no such operation here: " << atom.name);
  return 0;
}

// A term's value for given values of its leaves, by the definitions of the atoms.
UInt128 evaluate(const Terms& terms, TermId id, const std::map<std::string, UInt128>& leaves) {
  UInt128 sum = 0;
  for (const auto& [monomial, coefficient] : terms[id].coefficients) {
    UInt128 product = coefficient;
    for (AtomId factor : monomial) {
      const Atom& atom = terms.atom(factor);
      UInt128 value = 0;
      switch (atom.kind) {
      case AtomKind::leaf:
        value = cut(leaves.at(atom.name), atom.width);
        break;
      case AtomKind::sign_extend:
        value = cut(extended(evaluate(terms, atom.operands[0], leaves), terms.width(atom.operands[0])), atom.width);
        break;
      case AtomKind::zero_extend:
        value = evaluate(terms, atom.operands[0], leaves);
        break;
      case AtomKind::truncate:
        value = cut(evaluate(terms, atom.operands[0], leaves), atom.width);
        break;
      case AtomKind::product:
        value = evaluate(terms, atom.operands[0], leaves) * evaluate(terms, atom.operands[1], leaves);
        break;
      case AtomKind::operation:
        value = evaluate_operation(terms, atom, leaves);
      }
      product *= value;
    }
    sum += product;
  }
  return cut(sum, terms.width(id));
}

Outcome judged(Terms& terms, TermId a, TermId b, std::vector<Assumption> assumptions = {}) {
  return Solver(terms, 10'000'000).prove_equal(a, b, assumptions).outcome;
}

// Below the default: most of the time goes to questions that stay open with either.
constexpr unsigned small_effort = 3'000'000;

std::vector<KernelProof> proofs_of(const std::string& text, const std::string& passes, transforms::OutputForm form,
                                   unsigned effort = ProofSettings{}.effort) {
  ProofSettings settings;
  settings.run.form = form;
  settings.effort = effort;
  return prove_text(text, passes, settings);
}

std::string sample(const std::string& name) {
  std::ifstream stream(tests::source_path("samples/" + name + "/" + name + ".ptx"));
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

// Wrong on purpose: one address of each kernel is off by 4.
transforms::Change shift_one_address(ir::Function& function, transforms::PassContext&) {
  for (ir::BlockId block : function.layout)
    for (ir::InstructionId id : function.instructions_in(block)) {
      if (!function.is_opcode(id, ir::Opcode::st)) continue;
      for (ir::Operand& operand : function.operands_of(id))
        if (operand.is(ir::OperandKind::address)) {
          operand.immediate += 4;
          function.changed();
          return transforms::Change::changed;
        }
    }
  return transforms::Change::unchanged;
}
// Wrong on purpose: exchanges the first two stores.
transforms::Change swap_stores(ir::Function& function, transforms::PassContext&) {
  for (ir::BlockId block : function.layout) {
    ir::InstructionId first;
    for (ir::InstructionId id : function.instructions_in(block)) {
      if (!function.is_opcode(id, ir::Opcode::st)) continue;
      if (first) {
        const std::span<const ir::Operand> old = function.operands_of(first);
        const std::vector<ir::Operand> operands(old.begin(), old.end());
        const ir::Instruction copy = function.instructions[first];
        function.insert_before(function.instructions[id].next, function.add_instruction(copy, operands));
        function.remove(first);
        function.changed();
        return transforms::Change::changed;
      }
      first = id;
    }
  }
  return transforms::Change::unchanged;
}

// Right only if the widened sum of the kernel `widening` is not negative: `claim` is the kind of discharge.
transforms::Change widen_unsigned(ir::Function& function, transforms::PassContext& context) {
  for (ir::BlockId block : function.layout)
    for (ir::InstructionId id : function.instructions_in(block)) {
      if (!function.is_opcode(id, ir::Opcode::mul) || !function.form_of(id).has(ir::Modifier::wide)) continue;
      const std::span<const ir::Operand> old = function.operands_of(id);
      const std::vector<ir::Operand> operands(old.begin(), old.end());
      ir::Builder builder(function);
      builder.before(id).standing_for(id);
      builder.emit("mul.wide.u32", operands);
      function.remove(id);
      function.changed();
      const std::string_view claim = context.options.text("claim", "");
      const std::string_view range = context.options.text("range", "0 <= sext32(P1) + tid.x <= 2147483647");
      if (!claim.empty())
        context.ledger.push_back(
            {"widening",
             "not negative",
             "test",
             claim == "proved" ? transforms::Discharge::proved : transforms::Discharge::launch_checked,
             "",
             {},
             std::string(range)});
      return transforms::Change::changed;
    }
  return transforms::Change::unchanged;
}

// Exchanges parts of every vector access of global memory.
transforms::Change exchange_parts(ir::Function& function, transforms::PassContext&) {
  transforms::Change change = transforms::Change::unchanged;
  for (ir::BlockId block : function.layout)
    for (ir::InstructionId id : function.instructions_in(block)) {
      if (function.instructions[id].kind != ir::InstructionKind::real ||
          function.form_of(id).space != ir::StateSpace::global || function.form_of(id).vector_width < 2)
        continue;
      const std::span<ir::Operand> operands = function.operands_of(id);
      for (size_t i = 0; i + 2 < operands.size(); ++i)
        if (operands[i].is(ir::OperandKind::vector)) std::swap(operands[i + 1], operands[i + 2]);
      function.changed();
      change = transforms::Change::changed;
    }
  return change;
}
const transforms::RegisterPass exchanging_pass({"test-exchange-parts", "wrong: exchanges parts", exchange_parts});
const transforms::RegisterPass swapping_pass({"test-swap-stores", "wrong: swaps stores", swap_stores});
const transforms::RegisterPass widening_pass({"test-widen-unsigned",
                                              "widens as unsigned",
                                              widen_unsigned,
                                              {{"claim", "proved or launch"}, {"range", "exact statement"}}});
const transforms::RegisterPass wrong_pass({"test-shift-one-address", "wrong: shifts an address", shift_one_address});

} // namespace

TEST_CASE("sums, products, extensions and truncations have the values that their operands say") {
  std::mt19937_64 random(7);
  Terms terms;
  const std::vector<std::string> names{"a", "b", "c"};
  for (int round = 0; round < 400; ++round) {
    std::vector<TermId> made;
    std::map<std::string, UInt128> leaves;
    for (const std::string& name : names) {
      leaves[name] = (UInt128(random()) << 64 | random()) >> (random() % 3 * 48);
      made.push_back(terms.leaf(name, 32));
    }
    std::vector<UInt128> wanted;
    for (TermId leaf : made)
      wanted.push_back(evaluate(terms, leaf, leaves));
    for (int step = 0; step < 14; ++step) {
      const size_t i = random() % made.size(), j = random() % made.size();
      const unsigned width = terms.width(made[i]);
      TermId term;
      UInt128 value = 0;
      switch (random() % 6) {
      case 0:
        if (terms.width(made[j]) != width) continue;
        term = terms.add(made[i], made[j]), value = wanted[i] + wanted[j];
        break;
      case 1:
        if (terms.width(made[j]) != width || terms[made[i]].coefficients.size() > 6) continue;
        term = terms.multiply(made[i], made[j]), value = wanted[i] * wanted[j];
        break;
      case 2:
        term = terms.subtract(terms.literal(width, random() % 7), made[i]);
        value = evaluate(terms, term, leaves);
        CHECK(cut(value + wanted[i], width) < 7);
        break;
      case 3:
        if (width == 128) continue;
        term = terms.sign_extend(made[i], 2 * width), value = extended(wanted[i], width);
        break;
      case 4:
        if (width == 128) continue;
        term = terms.zero_extend(made[i], 2 * width), value = wanted[i];
        break;
      default:
        if (width == 16) continue;
        term = terms.truncate(made[i], width / 2), value = wanted[i];
        break;
      }
      value = cut(value, terms.width(term));
      REQUIRE(evaluate(terms, term, leaves) == value);
      CHECK(cut(value, terms.trailing_zeros(term)) == 0);
      made.push_back(term);
      wanted.push_back(value);
    }
    const std::map<AtomId, TermId> with{{*terms.as_atom(terms.leaf("a", 32)), terms.leaf("b", 32)}};
    auto replaced = leaves;
    replaced["a"] = leaves["b"];
    CHECK(evaluate(terms, terms.substitute(made.back(), with), leaves) == evaluate(terms, made.back(), replaced));
  }
}

TEST_CASE("an extension goes into a sum where the sum is known not to wrap, and not else") {
  if (!Solver::available()) return;
  Terms terms;
  const TermId n = terms.leaf("P1", 32), x = terms.leaf("%tid.x", 32), y = terms.leaf("%ctaid.y", 32);
  const TermId index = terms.add(x, terms.multiply(n, y));
  const TermId wide = terms.sign_extend(index, 64);
  const TermId split =
      terms.add(terms.zero_extend(x, 64), terms.multiply(terms.sign_extend(n, 64), terms.zero_extend(y, 64)));
  CHECK(judged(terms, wide, split) == Outcome::refuted);
  const TermId exact =
      terms.add(terms.zero_extend(x, 128), terms.multiply(terms.sign_extend(n, 128), terms.zero_extend(y, 128)));
  CHECK(judged(terms, wide, split, {{exact, ir::signed_range(32)}}) == Outcome::proved);
  // One more than the maximum of a signed 32-bit number is out of range.
  ir::Interval too_wide = ir::signed_range(32);
  too_wide.high += 1;
  CHECK(judged(terms, wide, split, {{exact, too_wide}}) == Outcome::refuted);
  // For unsigned numbers it is another extension.
  CHECK(judged(terms, terms.zero_extend(index, 64), split, {{exact, ir::signed_range(32)}}) == Outcome::refuted);
  CHECK(judged(terms, terms.scale(terms.add(wide, terms.literal(64, 3)), 4),
               terms.add(terms.scale(split, 4), terms.literal(64, 12)),
               {{exact, ir::signed_range(32)}}) == Outcome::proved);
}

TEST_CASE("conditions and choices have the values that their operands say") {
  std::mt19937_64 random(11);
  Terms terms;
  const TermId a = terms.leaf("a", 32), b = terms.leaf("b", 32), bit = terms.leaf("bit", 1);
  for (int round = 0; round < 2000; ++round) {
    // Small numbers are frequent, so that equality occurs.
    auto number = [&] { return UInt128(random() % 4 == 0 ? random() : random() % 5 - 2); };
    const std::map<std::string, UInt128> leaves{{"a", number()}, {"b", number()}, {"bit", random() & 1}};
    auto sum = [&] {
      return terms.add(terms.add(terms.scale(a, random() % 5 - 2), terms.scale(b, random() % 5 - 2)),
                       terms.literal(32, random() % 5 - 2));
    };
    TermId x = sum(), y = sum();
    if (random() & 1) {
      const bool is_signed = random() & 1;
      x = terms.resize(x, 64, is_signed), y = terms.resize(y, 64, is_signed);
      if (random() & 1) y = terms.literal(64, random() % 5 - 2);
    }
    const unsigned width = terms.width(x);
    const UInt128 left = evaluate(terms, x, leaves), right = evaluate(terms, y, leaves);
    const auto signed_left = static_cast<ir::Int128>(extended(left, width));
    const auto signed_right = static_cast<ir::Int128>(extended(right, width));
    CHECK(evaluate(terms, terms.is_zero(terms.subtract(x, y)), leaves) == (left == right));
    CHECK(evaluate(terms, terms.less(x, y, true), leaves) == (signed_left < signed_right));
    CHECK(evaluate(terms, terms.less(x, y, false), leaves) == (left < right));
    const TermId condition = random() & 1 ? bit : terms.negation(bit);
    const bool first = evaluate(terms, condition, leaves) != 0;
    CHECK(evaluate(terms, terms.select(condition, x, y), leaves) == (first ? left : right));
    CHECK(terms.select(condition, x, y) == terms.select(terms.negation(condition), y, x));
    // A choice between sums is a sum with a choice.
    CHECK(terms.select(condition, terms.add(x, x), terms.add(x, y)) == terms.add(x, terms.select(condition, x, y)));
  }
}

TEST_CASE("extensions taken apart are the same bits wherever the assumed ranges hold") {
  std::mt19937_64 random(5);
  size_t assumed = 0, taken_apart = 0;
  for (int round = 0; round < 300; ++round) {
    Terms terms;
    Bounds bounds(terms, {});
    ExactForms exact(terms, bounds, [](AtomKind kind, unsigned from, unsigned, const ir::Interval& range) {
      return within(range, kind == AtomKind::sign_extend ? ir::signed_range(from) : ir::unsigned_range(from));
    });
    std::map<std::string, UInt128> leaves{
        {"%tid.x", random() % 1024}, {"%ctaid.y", random() % 65535}, {"trip", random() % 100}, {"bit", random() & 1}};
    leaves["n"] = random() % 2 ? cut(random() % 20 - 10, 32) : cut(random(), 32);
    const TermId x = terms.leaf("%tid.x", 32, true), y = terms.leaf("%ctaid.y", 32, true), n = terms.leaf("n", 32),
                 trip = terms.leaf("trip", 64), bit = terms.leaf("bit", 1);
    bounds.limit(*terms.as_atom(trip), 99);
    auto literal = [&] { return terms.literal(32, random() % 9 - 4); };
    TermId index = terms.add(terms.multiply(n, random() & 1 ? y : x), terms.multiply(literal(), x));
    index = terms.add(index, terms.multiply(literal(), terms.truncate(trip, 32)));
    if (random() & 1) index = terms.select(bit, index, terms.add(x, literal()));
    const TermId shifted = terms.add(index, literal());
    // The exact sum, as in a pass's ledger, with a range that is true here.
    const TermId value = bounds.exact(index, true);
    const auto number = static_cast<ir::Int128>(evaluate(terms, value, leaves));
    const ir::Interval range = random() & 1 ? ir::signed_range(32) : ir::unsigned_range(32);
    if (number >= range.low && number <= range.high) {
      exact.assume({value, range});
      ++assumed;
    }
    for (const bool is_signed : {true, false})
      for (const unsigned width : {64u, 128u}) {
        const TermId wide = terms.resize(shifted, width, is_signed);
        std::set<size_t> used;
        const TermId rewritten = exact.rewrite(wide, used);
        taken_apart += rewritten != wide;
        REQUIRE(evaluate(terms, rewritten, leaves) == evaluate(terms, wide, leaves));
      }
  }
  CHECK(assumed > 50);
  CHECK(taken_apart > 100);
}

TEST_CASE("what is right is never called not equal: the narrowed idioms, whose counters and divisions are of 64 bits") {
  std::ifstream stream(tests::source_path("tests/launchtime/idioms/narrow.ptx"));
  std::ostringstream text;
  text << stream.rdbuf();
  size_t changed = 0;
  for (const KernelProof& proof : proofs_of(text.str(), "narrow(force)", transforms::OutputForm::legal, small_effort)) {
    changed += proof.changed;
    CHECK_MESSAGE(proof.outcome() != Outcome::refuted, proof.kernel);
    // Depends on products of 64 and of 32 bits having the same low bits.
    if (Solver::available() && proof.kernel == "wide_walk__plain") CHECK(proof.outcome() == Outcome::proved);
  }
  CHECK(changed > 4);
}

TEST_CASE("bytes that are loaded as words are not called not equal") {
  std::ifstream stream(tests::source_path("tests/launchtime/idioms/bytes.ptx"));
  std::ostringstream text;
  text << stream.rdbuf();
  for (const char* passes : {"memory(force)", "composite"})
    for (const KernelProof& proof : proofs_of(text.str(), passes, transforms::OutputForm::legal, small_effort))
      CHECK_MESSAGE(proof.outcome() != Outcome::refuted, proof.kernel << " by " << passes);
}

TEST_CASE("a wrong address is shown by a launch") {
  for (const char* name : {"vecadd", "stencil", "mvt", "atax"})
    for (const KernelProof& proof : proofs_of(sample(name), "test-shift-one-address", transforms::OutputForm::legal)) {
      CHECK(proof.outcome() == Outcome::refuted);
      CHECK(proof.problems[0].detail.find("in the original and") != std::string::npos);
    }
}

TEST_CASE("what the hardware says of indices is known: they are small and not negative") {
  if (!Solver::available()) return;
  Terms terms;
  const TermId x = terms.leaf("%tid.x", 32), other = terms.leaf("P1", 32);
  CHECK(judged(terms, terms.sign_extend(x, 64), terms.zero_extend(x, 64)) == Outcome::proved);
  CHECK(judged(terms, terms.sign_extend(other, 64), terms.zero_extend(other, 64)) == Outcome::refuted);
  CHECK(judged(terms, terms.truncate(x, 16), terms.leaf("P2", 16)) == Outcome::refuted);
}

TEST_CASE("r2d2's hardware form takes the addresses of the original; a wrong pass is found out") {
  for (const char* name : {"vecadd", "backprop", "stencil"}) {
    const std::string text = sample(name);
    size_t rewritten = 0;
    for (const KernelProof& proof : proofs_of(text, "r2d2", transforms::OutputForm::hardware)) {
      rewritten += proof.changed;
      CHECK(proof.changed == (proof.identical + proof.proved + proof.problems.size() > 0));
      if (Solver::available()) CHECK_MESSAGE(proof.holds(), proof.kernel << ": " << proof.problems[0].text);
    }
    CHECK(rewritten > 0);
    for (const KernelProof& proof : proofs_of(text, "test-shift-one-address", transforms::OutputForm::legal)) {
      CHECK(proof.changed);
      REQUIRE(proof.problems.size() == 1);
      if (Solver::available()) CHECK(proof.problems[0].outcome == Outcome::refuted);
    }
  }
}

namespace {

// `mul.wide.s32` of P1 + tid.x, stored to twice.
const std::string widening = R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry widening(.param .u64 p, .param .u32 n)
{
	.reg .b32 %r<4>;
	.reg .b64 %rd<4>;
	ld.param.u64 %rd1, [p];
	ld.param.u32 %r1, [n];
	mov.u32 %r2, %tid.x;
	add.s32 %r3, %r1, %r2;
	mul.wide.s32 %rd2, %r3, 4;
	add.s64 %rd3, %rd1, %rd2;
	st.global.u32 [%rd3], %r1;
	st.global.u32 [%rd3+4], %r2;
	ret;
}
)";

Outcome verdict(const std::string& text, const std::string& passes) {
  const std::vector<KernelProof> proofs = proofs_of(text, passes, transforms::OutputForm::legal);
  REQUIRE(proofs.size() == 1);
  CHECK(proofs[0].changed);
  return proofs[0].outcome();
}

} // namespace

TEST_CASE("a rewrite that is right under a condition is refuted without it, and by a ledger that claims it is proved") {
  if (!Solver::available()) return;
  CHECK(verdict(widening, "test-widen-unsigned") == Outcome::refuted);
  // The launcher checks it: then it is right.
  CHECK(verdict(widening, "test-widen-unsigned(claim=launch)") == Outcome::proved);
  // "Proved" is not justified: n may be negative.
  CHECK(verdict(widening, "test-widen-unsigned(claim=proved)") == Outcome::refuted);
}

TEST_CASE("divisions of 64 bits and of 32 agree where both numbers fit, and nowhere else") {
  Terms terms;
  const TermId x = terms.leaf("x", 64), y = terms.leaf("y", 64);
  auto divided = [&](const char* name, unsigned width, TermId a, TermId b) {
    return terms.operation(name, width, {a, b});
  };
  const TermId wide = divided("div.s64.0", 64, x, y), whole = divided("div.u64.0", 64, x, y);
  const TermId narrow = terms.zero_extend(divided("div.u32.0", 32, terms.truncate(x, 32), terms.truncate(y, 32)), 64);
  auto in = [&](TermId value, ir::Int128 low, ir::Int128 high) {
    return Assumption{terms.sign_extend(value, 128), {low, high}};
  };
  CHECK(judged(terms, wide, narrow, {in(x, 0, UINT32_MAX), in(y, 1, UINT32_MAX)}) == Outcome::proved);
  CHECK(judged(terms, whole, narrow, {in(x, 0, UINT32_MAX), in(y, 1, UINT32_MAX)}) == Outcome::proved);
  CHECK(judged(terms, wide, whole, {in(x, 0, INT64_MAX), in(y, 1, INT64_MAX)}) == Outcome::proved);
  CHECK(judged(terms, wide, narrow, {in(x, 0, int64_t(UINT32_MAX) + 1), in(y, 1, UINT32_MAX)}) != Outcome::proved);
  CHECK(judged(terms, wide, narrow, {in(x, 0, UINT32_MAX), in(y, 0, UINT32_MAX)}) != Outcome::proved);
  CHECK(judged(terms, wide, whole, {in(x, -1, INT64_MAX), in(y, 1, INT64_MAX)}) != Outcome::proved);
  CHECK(judged(terms, divided("rem.s64.0", 64, x, y), narrow, {in(x, 0, 9), in(y, 1, 9)}) != Outcome::proved);
}

TEST_CASE("instructions on bytes and bit fields give the solver what the ISA manual says they give") {
  if (!Solver::available()) return;
  Terms terms;
  struct Row {
    const char* name;
    std::vector<uint64_t> operands;
    uint32_t result; // by hand, from the manual's text
  };
  const Row rows[] = {{"prmt.b32.0", {0x33221100, 0x77665544, 0xf640}, 0x00664400},
                      {"prmt.b32.0", {0x80000000, 0, 0xb333}, 0xff808080},
                      {"popc.b32.0", {0xf0f}, 8},
                      {"bfe.u32.0", {0xf00, 8, 4}, 0xf},
                      {"bfe.s32.0", {0xf00, 8, 4}, 0xffffffff},
                      {"bfe.s32.0", {0x80000000, 28, 8}, 0xfffffff8},
                      {"bfe.u32.0", {0xffffffff, 40, 8}, 0},
                      {"bfi.b32.0", {0xff, 0x12345678, 8, 4}, 0x12345f78},
                      {"dp4a.s32.s32.0", {0xff020304, 0x01010101, 10}, 18},
                      {"dp4a.u32.u32.0", {0xff020304, 0x01010101, 10}, 274},
                      {"shf.l.wrap.b32.0", {0x80000001, 0x12345678, 36}, 0x23456788},
                      {"shf.r.clamp.b32.0", {0x80000001, 0x12345678, 40}, 0x12345678},
                      {"lop3.b32.0", {12, 10, 9, 0x96}, 15},
                      {"vabsdiff4.u32.u32.u32.add.0", {0x01ff0305, 0x02000100, 100}, 363},
                      {"cvt.pack.sat.u8.s32.b32.0", {300, 0xfffffffb, 0x1234}, 0x1234ff00},
                      {"szext.clamp.s32.0", {0xff, 4}, 0xffffffff},
                      {"abs.s32.0", {0xfffffff0}, 16},
                      {"sad.u32.0", {3, 10, 1}, 8}};
  for (const Row& row : rows) {
    CAPTURE(row.name);
    std::vector<TermId> operands;
    for (uint64_t operand : row.operands)
      operands.push_back(terms.literal(32, operand));
    const TermId made = terms.operation(row.name, 32, operands);
    CHECK(judged(terms, made, terms.literal(32, row.result)) == Outcome::proved);
    CHECK(judged(terms, made, terms.literal(32, row.result ^ 0x10u)) == Outcome::refuted);
  }
  // An unknown value is not refuted by one of its possible values.
  const TermId x = terms.leaf("x", 32);
  CHECK(judged(terms, terms.operation("sin.approx.f32.0", 32, {x}), x) == Outcome::unknown);
}

TEST_CASE("operands that arrive by a queue are open, not refuted") {
  // DAC's hardware form takes addresses and predicates from queues filled by another stream.
  for (const KernelProof& proof : proofs_of(sample("vecadd"), "dac", transforms::OutputForm::hardware)) {
    CHECK(proof.outcome() == Outcome::unknown);
    CHECK(proof.problems.size() >= 3); // three addresses
  }
}

TEST_CASE("stores to one place that change places are found out; stores that are apart may do so") {
  for (const char* offset : {"", "+3", "+4"}) {
    std::string text = widening;
    text.replace(text.find("+4]"), 2, offset);
    const std::vector<KernelProof> proofs = proofs_of(text, "test-swap-stores", transforms::OutputForm::legal);
    REQUIRE(proofs.size() == 1);
    CHECK(proofs[0].changed);
    CHECK(proofs[0].holds() == (std::string(offset) == "+4"));
  }
}

TEST_CASE("vectors and read-only loads do what the accesses that they stand for do; exchanged parts are found out") {
  for (const char* name : {"mvt", "mm2", "lavamd", "aes", "particlefilter"}) {
    size_t changed = 0;
    for (const KernelProof& proof : proofs_of(sample(name), "memory(force)", transforms::OutputForm::legal)) {
      CHECK_MESSAGE(proof.holds(), proof.kernel << ": " << proof.problems[0].text);
      changed += proof.changed;
    }
    CHECK(changed > 0);
    size_t wrong = 0;
    for (const KernelProof& proof :
         proofs_of(sample(name), "memory(force),test-exchange-parts", transforms::OutputForm::legal, small_effort))
      wrong += !proof.holds();
    CHECK(wrong > 0);
  }
}

TEST_CASE("r2d2's legal form takes the addresses of the original, whichever candidates it is made of") {
  if (!Solver::available()) return;
  // Truncated and extended counters, joins, host-computed parameters, recomputed inductions.
  for (const char* name : {"mri_q", "recursive_gaussian", "stencil", "kmeans"})
    for (const char* passes : {"r2d2(force)", "r2d2(force,candidates=3)", "r2d2(force,candidates=2+5)"})
      for (const KernelProof& proof : proofs_of(sample(name), passes, transforms::OutputForm::legal))
        CHECK_MESSAGE(proof.holds(), proof.kernel << ": " << proof.problems[0].text);
}

} // namespace ptxrewrite::tests::prove_test
