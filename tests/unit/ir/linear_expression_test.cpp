// Expressions against plain arithmetic, and the two ways of evaluating an obligation for a launch against each other:
// the evaluator, and the text of the side file, read here by a separate small evaluator.
#include "ir/analysis/linear/expression.h"
#include "ir/analysis/linear/linear.h"
#include "tests/unit/ir/linear_interpreter.h"

#include "grammar/reader.h"
#include "ir/ssa/ssa.h"

#include <doctest/doctest.h>

#include <random>

namespace ptxrewrite::tests::linear_expression_test {

using namespace ptxrewrite;
using namespace ptxrewrite::ir;

namespace {

// Evaluates the side file's expressions in exact integers. Words of more than 128 bits make the result unknown.
class PredicateReader {
public:
  PredicateReader(std::string_view text, const LaunchValues& launch) : text_(text), launch_(launch) {}
  std::optional<bool> holds() {
    Int128 value = conjunction();
    skip();
    REQUIRE(at_ == text_.size());
    if (overflow_) return std::nullopt;
    return value != 0;
  }

private:
  void skip() {
    while (at_ < text_.size() && text_[at_] == ' ')
      ++at_;
  }
  bool take(std::string_view word) {
    skip();
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }
  void need(std::string_view word) {
    bool taken = take(word);
    INFO(text_ << " at " << at_);
    REQUIRE(taken);
  }
  Int128 conjunction() {
    Int128 value = comparison();
    while (take("&&"))
      value = (comparison() != 0) & (value != 0);
    return value;
  }
  Int128 comparison() {
    Int128 left = sum();
    if (take("<=")) return left <= sum();
    if (take(">=")) return left >= sum();
    if (take("==")) return left == sum();
    if (take("<")) return left < sum();
    if (take(">")) return left > sum();
    return left;
  }
  Int128 sum() {
    Int128 value = product();
    for (;;) {
      if (take("+"))
        overflow_ |= __builtin_add_overflow(value, product(), &value);
      else if (take("-"))
        overflow_ |= __builtin_sub_overflow(value, product(), &value);
      else
        return value;
    }
  }
  Int128 product() {
    Int128 value = unary();
    for (;;) {
      if (take("*")) {
        overflow_ |= __builtin_mul_overflow(value, unary(), &value);
      } else if (take("/")) {
        Int128 by = unary();
        overflow_ |= by == 0;
        value = by == 0 ? 0 : value / by;
      } else if (take("%")) {
        Int128 by = unary();
        overflow_ |= by == 0;
        value = by == 0 ? 0 : value % by;
      } else {
        return value;
      }
    }
  }
  Int128 unary() {
    if (take("-")) return -unary();
    if (take("(")) {
      Int128 value = conjunction();
      need(")");
      return value;
    }
    for (unsigned width : {16u, 32u, 64u}) {
      if (take("sext" + std::to_string(width) + "(")) return extension(width, true);
      if (take("zext" + std::to_string(width) + "(")) return extension(width, false);
    }
    if (take("max(")) return pair(true);
    if (take("min(")) return pair(false);
    if (take("nctaid.")) return launch_.grid[static_cast<size_t>(text_[at_++] - 'x')];
    if (take("ntid.")) return launch_.block[static_cast<size_t>(text_[at_++] - 'x')];
    if (take("P")) {
      size_t number = static_cast<size_t>(digits());
      uint64_t value = 0;
      for (size_t i = launch_.parameters.at(number).size(); i-- > 0;)
        value = value << 8 | launch_.parameters[number][i];
      return Int128(value);
    }
    return digits();
  }
  Int128 extension(unsigned width, bool is_signed) {
    Int128 value = sum();
    need(")");
    uint64_t bits = static_cast<uint64_t>(value);
    if (width < 64) bits &= (uint64_t(1) << width) - 1;
    if (is_signed && bits >> (width - 1)) return Int128(bits) - (Int128(1) << width);
    return Int128(bits);
  }
  Int128 pair(bool larger) {
    Int128 a = sum();
    need(",");
    Int128 b = sum();
    need(")");
    return larger == (a > b) ? a : b;
  }
  Int128 digits() {
    skip();
    Int128 value = 0;
    bool some = false;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_, some = true)
      value = value * 10 + (text_[at_] - '0');
    INFO(text_ << " at " << at_);
    REQUIRE(some);
    return value;
  }

  std::string_view text_;
  const LaunchValues& launch_;
  size_t at_ = 0;
  bool overflow_ = false;
};

} // namespace

// Long: one random program, checked after each of its steps.
TEST_CASE("random expressions: normal form, extension and truncation keep the value; bounds hold it") {
  std::mt19937 random(5);
  auto pick = [&](uint32_t count) { return std::uniform_int_distribution<uint32_t>(0, count - 1)(random); };
  LaunchLimits limits;
  limits.block = {Interval{1, 1024}, Interval{1, 1024}, Interval{1, 64}};
  limits.grid = {Interval{1, (Int128(1) << 31) - 1}, Interval{1, 65535}, Interval{1, 65535}};
  unsigned checked = 0;
  for (unsigned round = 0; round < 2000; ++round) {
    LaunchValues launch;
    launch.block = {1 + pick(1024), 1 + pick(4), 1};
    launch.grid = {1 + pick(1u << 31 >> 1), 1 + pick(65535), 1};
    for (unsigned i = 0; i < 3; ++i)
      launch.add_parameter(pick(2) ? pick(50) : (uint64_t(random()) << 32 | random()), 8);
    ExpressionPool pool;
    // Each expression with its value by plain arithmetic.
    std::vector<std::pair<ExpressionId, uint64_t>> known[2]; // of 32 and of 64 bits
    auto width_of = [](unsigned wide) { return wide ? 64u : 32u; };
    auto put = [&](unsigned wide, ExpressionId id, uint64_t value) {
      known[wide].push_back({id, wide ? value : value & 0xffffffffu});
    };
    for (unsigned i = 0; i < 3; ++i) {
      uint64_t value = 0;
      for (unsigned byte = 8; byte-- > 0;)
        value = value << 8 | launch.parameters[i][byte];
      put(1, pool.parameter(64, i, 0), value);
      put(0, pool.parameter(32, i, 4), value >> 32);
    }
    put(0, pool.special(SpecialRegister::ntid, 0, 32), launch.block[0]);
    put(0, pool.special(SpecialRegister::nctaid, 1, 32), launch.grid[1]);
    for (unsigned step = 0; step < 12; ++step) {
      unsigned wide = pick(2);
      auto [a, x] = known[wide][pick(static_cast<uint32_t>(known[wide].size()))];
      auto [b, y] = known[wide][pick(static_cast<uint32_t>(known[wide].size()))];
      int64_t sx = wide ? static_cast<int64_t>(x) : static_cast<int32_t>(x);
      int64_t sy = wide ? static_cast<int64_t>(y) : static_cast<int32_t>(y);
      switch (pick(13)) {
      case 0:
        put(wide, pool.add(a, b), x + y);
        break;
      case 1:
        put(wide, pool.subtract(a, b), x - y);
        break;
      case 2:
        put(wide, pool.multiply(a, b), x * y);
        break;
      case 3:
        put(wide, pool.multiply_literal(a, 12), x * 12);
        break;
      case 4:
        put(wide, pool.add(a, pool.literal(width_of(wide), 0u - 3u)), x + (0u - 3u));
        break;
      case 5:
        if (!wide) put(1, pool.sign_extend(a, 64), static_cast<uint64_t>(sx));
        break;
      case 6:
        if (!wide) put(1, pool.zero_extend(a, 64), x);
        break;
      case 7:
        if (wide) put(0, pool.truncate(a, 32), x);
        break;
      case 8:
        put(wide, pool.binary(ExpressionKind::minimum_signed, a, b), sx < sy ? x : y);
        break;
      case 9:
        put(wide, pool.binary(ExpressionKind::maximum_unsigned, a, b), x < y ? y : x);
        break;
      case 10:
        put(wide, pool.binary(ExpressionKind::and_, a, pool.literal(width_of(wide), 0xfff0)), x & 0xfff0);
        break;
      case 11:
        put(wide, pool.binary(ExpressionKind::shift_right_signed, a, pool.literal(32, 3)),
            static_cast<uint64_t>(sx >> 3));
        break;
      case 12:
        put(wide, pool.select(pool.compare(Comparison::less_signed, a, b), a, b), sx < sy ? x : y);
        break;
      }
    }
    for (unsigned wide : {0u, 1u})
      for (auto [id, value] : known[wide]) {
        if (pool.too_large(id)) continue;
        ++checked;
        CHECK(pool.evaluate(id, launch) == std::optional<uint64_t>(value));
        Int128 number = wide ? static_cast<int64_t>(value) : static_cast<int32_t>(value);
        Interval bounds = pool.interval(id, limits);
        CHECK((bounds.low <= number && number <= bounds.high));
        CHECK((pool.trailing_zeros(id) == 0 || value % (uint64_t(1) << std::min(pool.trailing_zeros(id), 63u)) == 0));
      }
  }
  CHECK(checked > 20000);
}

TEST_CASE("short text pulls integer factors out of sums and forgets extensions") {
  ExpressionPool pool;
  ExpressionId p1 = pool.parameter(32, 1, 0), p5 = pool.parameter(64, 5, 0);
  ExpressionId wide = pool.sign_extend(pool.add(pool.multiply_literal(p1, 16), pool.literal(32, 16)), 64);
  CHECK(pool.print_short(pool.multiply_literal(wide, 4)) == "64*(P1+1)");
  CHECK(pool.print_short(pool.add(p5, pool.multiply_literal(pool.sign_extend(p1, 64), 4))) == "P5+4*P1");
  CHECK(pool.print_short(pool.literal(32, 0xffffffff)) == "-1");
  CHECK(pool.print_exact(pool.multiply_literal(wide, 4)) == "4*sext64(16*P1+16)");
  CHECK(pool.print_predicate(wide) == "sext32(16*P1+16)");
  // Equal values that are written differently are one expression.
  CHECK(pool.subtract(pool.add(p1, p1), p1) == p1);
  CHECK(pool.multiply(pool.add(p1, pool.literal(32, 1)), pool.subtract(p1, pool.literal(32, 1))) ==
        pool.subtract(pool.multiply(p1, p1), pool.literal(32, 1)));
}

TEST_CASE("the side file's predicate says what the evaluator says, in every launch") {
  // Index forms with products of parameters, reversed indices, loops up and down, unsigned tests, several strides.
  const char* text = R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 P0, .param .u32 P1, .param .u32 P2, .param .u64 P3)
{
.reg .pred %p<20>; .reg .b32 %r<40>; .reg .b64 %rd<40>;
ld.param.u32 %r1, [P1]; ld.param.u32 %r2, [P2]; ld.param.u64 %rd20, [P3];
mov.u32 %r3, %tid.x; mov.u32 %r4, %ctaid.x; mov.u32 %r5, %ntid.x; mov.u32 %r6, %tid.y;
mad.lo.s32 %r7, %r4, %r5, %r3;   mul.wide.s32 %rd1, %r7, 4;
mad.lo.s32 %r8, %r6, %r1, %r7;   mul.wide.u32 %rd2, %r8, 4;
not.b32 %r9, %r7; add.s32 %r10, %r9, %r1; mul.wide.u32 %rd3, %r10, 8;
mul.lo.s32 %r11, %r1, %r2; mad.lo.s32 %r12, %r11, %r6, %r3; cvt.s64.s32 %rd4, %r12;
mov.u32 %r13, 0; mov.u32 %r14, %r1; mov.u32 %r15, %r2;
UP:
mad.lo.s32 %r20, %r13, %r2, %r3; mul.wide.s32 %rd5, %r20, 4; st.global.u64 [%rd20], %rd5;
add.s32 %r13, %r13, 3; setp.le.s32 %p1, %r13, %r1; @%p1 bra UP;
DOWN:
mad.lo.s32 %r21, %r14, %r2, %r3; mul.wide.u32 %rd6, %r21, 4; st.global.u64 [%rd20], %rd6;
add.s32 %r14, %r14, -2; setp.gt.s32 %p2, %r14, %r5; @%p2 bra DOWN;
UNTIL:
add.s32 %r22, %r15, %r7; mul.wide.s32 %rd7, %r22, 4; st.global.u64 [%rd20], %rd7;
add.s32 %r15, %r15, 4; setp.ne.s32 %p3, %r15, %r1; @%p3 bra UNTIL;
mov.u32 %r30, %r7;
STRIDE:
mul.wide.u32 %rd8, %r30, 4; st.global.u64 [%rd20], %rd8;
add.s32 %r30, %r30, %r2; setp.lt.u32 %p4, %r30, %r1; @%p4 bra STRIDE;
ret;
}
)";
  Diagnostics diagnostics;
  auto module = grammar::read_module(SourceFile("k.ptx", text), diagnostics);
  REQUIRE(module);
  REQUIRE(construct_ssa(*module->functions[0]).ok());
  LinearForms forms(*module->functions[0]);
  std::mt19937 random(3);
  auto pick = [&](uint32_t count) { return std::uniform_int_distribution<uint32_t>(0, count - 1)(random); };
  std::map<uint32_t, std::array<unsigned, 2>> answers;
  for (unsigned round = 0; round < 3000; ++round) {
    LaunchValues launch;
    launch.block = {1 + pick(1024), 1 + pick(8), 1};
    launch.grid = {pick(2) ? 1 + pick(100) : 1 + pick(4000000), 1, 1};
    auto value = [&]() -> uint64_t {
      switch (pick(5)) {
      case 0:
        return random();
      case 1:
        return 0u - pick(100);
      case 2:
        return 0x7fffffffu - pick(10);
      default:
        return pick(5000);
      }
    };
    launch.add_parameter(0, 8);
    launch.add_parameter(static_cast<uint32_t>(value()), 4);
    launch.add_parameter(static_cast<uint32_t>(value()), 4);
    launch.add_parameter(0, 8);
    for (ObligationId id : forms.all_obligations().ids()) {
      if (forms.obligation(id).proved) continue;
      std::string predicate = forms.launch_predicate(id);
      CHECK(forms.has_launch_predicate(id) == !predicate.empty());
      if (predicate.empty()) continue;
      auto by_text = PredicateReader(predicate, launch).holds();
      bool by_evaluator = forms.evaluate(id, launch);
      INFO(predicate);
      CHECK(by_text.value_or(false) == by_evaluator);
      ++answers[id.index()][by_evaluator];
    }
  }
  // Each of the eight index forms has a predicate, and each was true in some launch and false in another.
  CHECK(answers.size() == 8);
  for (auto& [id, counts] : answers) {
    INFO(forms.launch_predicate(ObligationId(id)));
    CHECK(counts[0] > 0);
    CHECK(counts[1] > 0);
  }
}

TEST_CASE("device functions: parameters, call results and stack addresses are nobody's uniform values") {
  const char* text = R"(.version 8.0
.target sm_80
.address_size 64
.func (.param .b32 result) f(.param .b32 x)
{
.reg .b32 %r<4>;
ld.param.u32 %r1, [x];
mov.u32 %r2, %tid.x;
add.s32 %r3, %r1, %r2;
st.param.b32 [result], %r3;
ret;
}
.visible .entry k(.param .u32 P0)
{
.reg .b32 %r<4>;
ld.param.u32 %r1, [P0];
{
.param .b32 argument;
st.param.b32 [argument], %r1;
.param .b32 returned;
call.uni (returned), f, (argument);
ld.param.b32 %r2, [returned];
}
st.shared.u32 [%r1], %r2;
ret;
}
)";
  Diagnostics diagnostics;
  auto module = grammar::read_module(SourceFile("k.ptx", text), diagnostics);
  REQUIRE(module);
  unsigned seen = 0;
  for (auto& function : module->functions) {
    REQUIRE(construct_ssa(*function).ok());
    LinearForms forms(*function);
    for (ValueId value : function->values.ids()) {
      if (!forms.def_use().definition(value).block) continue;
      std::string name = function->value_name(value);
      ValueClass expected = ValueClass::any;
      if (function->is_entry && name == "%r1") expected = ValueClass::launch_uniform;
      if (!function->is_entry && name == "%r2") expected = ValueClass::linear;
      INFO(name);
      CHECK(forms.form(value).kind == expected);
      ++seen;
    }
  }
  CHECK(seen == 5);
}

} // namespace ptxrewrite::tests::linear_expression_test
