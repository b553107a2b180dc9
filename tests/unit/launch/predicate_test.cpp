// Launch predicates: values, refused texts, and agreement with the analysis that prints them, whose own evaluator works
// on the expression instead of its text. tests/launch compares with Python's integers.
#include "launch/predicate.h"

#include "grammar/reader.h"
#include "ir/analysis/linear/linear.h"
#include "ir/ssa/ssa.h"
#include "support/file_io.h"
#include "tests/unit/paths.h"

#include <doctest/doctest.h>

#include <cstring>
#include <filesystem>
#include <random>

namespace ptxrewrite::tests::predicate_test {

using namespace ptxrewrite;
using namespace ptxrewrite::launch;

namespace {

template <class T> std::vector<std::byte> bytes_of_value(T value) {
  std::vector<std::byte> bytes(sizeof value);
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

LaunchFacts example() {
  LaunchFacts facts;
  facts.parameters = {bytes_of_value<int32_t>(-5), bytes_of_value<uint64_t>(0xffffffff00000003u),
                      bytes_of_value<uint16_t>(7)};
  facts.parameters.push_back(facts.parameters[1]);
  facts.parameters.back().insert(facts.parameters.back().end(), 4, std::byte{1});
  facts.block = {16, 8, 1};
  facts.grid = {100, 1, 3};
  return facts;
}

std::string value_of(const std::string& text) {
  Result<LaunchExpression> expression = LaunchExpression::parse(text);
  if (!expression) return "error: " + expression.error().message;
  Result<Int128> value = expression->evaluate(example());
  return value ? launch::to_string(*value) : "error: " + value.error().message;
}

LaunchFacts facts_of_launch(const ir::LaunchValues& launch) {
  LaunchFacts facts;
  for (const auto& parameter : launch.parameters) {
    std::vector<std::byte> bytes(parameter.size());
    std::memcpy(bytes.data(), parameter.data(), parameter.size());
    facts.parameters.push_back(std::move(bytes));
  }
  facts.block = {launch.block[0], launch.block[1], launch.block[2]};
  facts.grid = {launch.grid[0], launch.grid[1], launch.grid[2]};
  return facts;
}

} // namespace

TEST_CASE("symbols") {
  CHECK(value_of("P0") == "4294967291"); // parameters are unsigned bits
  CHECK(value_of("sext32(P0)") == "-5");
  CHECK(value_of("P1") == "18446744069414584323");
  CHECK(value_of("sext32(P1)") == "3");
  CHECK(value_of("P2") == "7");
  CHECK(value_of("P3@8") == "16843009");
  CHECK(value_of("sext32(P3@4)") == "-1");
  CHECK(value_of("P3@11") == "1");
  CHECK(value_of("ntid.x + 100*ntid.y + 10000*ntid.z") == "10816");
  CHECK(value_of("nctaid.x * nctaid.z + nctaid.w") == "300");
  CHECK(value_of("P4") == "error: P4: the kernel has no such parameter");
  CHECK(value_of("P3@12") == "error: P3@12: the parameter has no such byte");
  for (const char* wrong : {"P", "Px", "P-1", "p0", "n", "tid.x", "ntid", "ntid.q", "P99999", "P0@", "P0@x"}) {
    INFO(wrong);
    CHECK(!LaunchExpression::parse(wrong));
  }
}

TEST_CASE("extensions and high products") {
  CHECK(value_of("sext16(40000)") == "-25536");
  CHECK(value_of("zext16(-1)") == "65535");
  CHECK(value_of("trunc32(-1)") == "4294967295");
  CHECK(value_of("sext64(zext64(-1))") == "-1");
  CHECK(value_of("zext64(-1)") == "18446744073709551615");
  CHECK(value_of("sext1(1) + zext1(3)") == "0");
  CHECK(value_of("mulhi_s32(-1, 1)") == "-1");
  CHECK(value_of("mulhi_u32(-1, -1)") == "4294967294");
  CHECK(value_of("mulhi_u64(-1, -1)") == "18446744073709551614");
  CHECK(value_of("mulhi_s64(sext64(1 << 63), sext64(1 << 63))") == "4611686018427387904");
  CHECK(value_of("log2(1) + 100*log2(2) + 10000*log2(3) + 1000000*log2(4)") == "2010100");
  CHECK(value_of("log2(P1)") == "63");
  CHECK(value_of("log2(1 << 126)") == "126");
  CHECK(value_of("log2(0)") == "error: log2 wants a number above 0");
  CHECK(value_of("log2(sext32(P0))") == "error: log2 wants a number above 0");
}

TEST_CASE("what has no value fulfils nothing") {
  for (const char* text : {"1 / (P2 - 7) == 0 || 1", "P1*P1*P1*P1 >= 0", "P9 == P9", "1 << P0 >= 0"}) {
    INFO(text);
    Result<LaunchExpression> expression = LaunchExpression::parse(text);
    REQUIRE(expression);
    CHECK(!expression->holds(example()));
  }
  CHECK(LaunchExpression::parse("P2 == 7 && ntid.x == 16")->holds(example()));
  CHECK(!LaunchExpression::parse("P2 == 7 && ntid.x == 17")->holds(example()));
  CHECK(!LaunchExpression::parse("1.5 > 1"));
  CHECK(LaunchExpression::parse("P0 + P7")->parameter_count() == 8);
}

// Long: all kinds of expressions in sequence.
TEST_CASE("random expressions of the analysis print texts that evaluate to the same") {
  using namespace ir;
  std::mt19937 random(11);
  auto pick = [&](uint32_t count) { return std::uniform_int_distribution<uint32_t>(0, count - 1)(random); };
  constexpr ExpressionKind kinds[] = {ExpressionKind::divide_signed,
                                      ExpressionKind::divide_unsigned,
                                      ExpressionKind::remainder_signed,
                                      ExpressionKind::remainder_unsigned,
                                      ExpressionKind::shift_left,
                                      ExpressionKind::shift_right_signed,
                                      ExpressionKind::shift_right_unsigned,
                                      ExpressionKind::minimum_signed,
                                      ExpressionKind::minimum_unsigned,
                                      ExpressionKind::maximum_signed,
                                      ExpressionKind::maximum_unsigned,
                                      ExpressionKind::multiply_high_signed,
                                      ExpressionKind::multiply_high_unsigned,
                                      ExpressionKind::and_,
                                      ExpressionKind::or_,
                                      ExpressionKind::xor_};
  unsigned compared = 0, without_value = 0;
  std::array<unsigned, std::size(kinds)> seen{};
  for (unsigned round = 0; round < 1500; ++round) {
    ir::LaunchValues launch;
    launch.block = {1 + pick(1024), 1 + pick(4), 1};
    launch.grid = {1 + pick(1u << 30), 1 + pick(65535), 1};
    for (unsigned i = 0; i < 3; ++i)
      launch.add_parameter(pick(2) ? pick(50) : (uint64_t(random()) << 32 | random()), 8);
    ExpressionPool pool;
    std::vector<ExpressionId> known[3]; // of 16, 32 and 64 bits
    constexpr unsigned widths[] = {16, 32, 64};
    for (unsigned i = 0; i < 3; ++i) {
      known[0].push_back(pool.parameter(16, i, 6));
      known[1].push_back(pool.parameter(32, i, 4));
      known[2].push_back(pool.parameter(64, i, 0));
    }
    known[0].push_back(pool.literal(16, 0xfffe));
    known[1].push_back(pool.special(SpecialRegister::ntid, 0, 32));
    known[1].push_back(pool.special(SpecialRegister::nctaid, 1, 32));
    known[2].push_back(pool.literal(64, pick(100)));
    for (unsigned step = 0; step < 10; ++step) {
      const unsigned size = pick(3);
      auto any = [&](unsigned of) { return known[of][pick(static_cast<uint32_t>(known[of].size()))]; };
      const ExpressionId a = any(size), b = any(size);
      ExpressionId made;
      switch (pick(8)) {
      case 0:
        made = pool.add(a, b);
        break;
      case 1:
        made = pool.subtract(a, pool.multiply_literal(b, random()));
        break;
      case 2:
        made = pool.multiply(a, b);
        break;
      case 3:
        if (size == 2) {
          known[1].push_back(pool.truncate(a, 32));
          continue;
        }
        known[size + 1].push_back(pool.extend(a, widths[size + 1], pick(2) != 0));
        continue;
      case 4:
        made = pool.select(pool.compare(Comparison(pick(6)), a, b), a, b);
        break;
      default: {
        const unsigned kind = pick(std::size(kinds));
        const bool shift = kinds[kind] == ExpressionKind::shift_left ||
                           kinds[kind] == ExpressionKind::shift_right_signed ||
                           kinds[kind] == ExpressionKind::shift_right_unsigned;
        made = pool.binary(kinds[kind], a, shift ? pool.literal(32, pick(widths[size])) : b);
        ++seen[kind];
        break;
      }
      }
      known[size].push_back(made);
    }
    for (const auto& list : known)
      for (ExpressionId id : list) {
        if (pool.too_large(id) || !pool[id].evaluable) continue;
        const std::string text = pool.print_predicate(id);
        INFO(text);
        Result<LaunchExpression> expression = LaunchExpression::parse(text);
        REQUIRE(expression);
        std::optional<ir::Int128> truth = pool.evaluate_signed(id, launch);
        Result<launch::Int128> value = expression->evaluate(facts_of_launch(launch));
        if (!truth || !value) {
          ++without_value; // a division by zero, or an intermediate result of more than 128 bits
          continue;
        }
        ++compared;
        CHECK((*value == *truth));
      }
  }
  CHECK(compared > 20000);
  CHECK(without_value < compared / 5);
  for (unsigned count : seen)
    CHECK(count > 100);
}

TEST_CASE("the launch predicates of all samples parse, and say what the analysis says") {
  std::mt19937 random(4);
  auto pick = [&](uint32_t count) { return std::uniform_int_distribution<uint32_t>(0, count - 1)(random); };
  unsigned predicates = 0, held = 0, failed = 0;
  for (const auto& folder : std::filesystem::directory_iterator(tests::source_path("samples"))) {
    const auto path = folder.path() / folder.path().filename().replace_extension(".ptx");
    Result<std::string> text = read_file(path.string());
    if (!text) continue;
    Diagnostics diagnostics;
    auto module = grammar::read_module(SourceFile(path.string(), *text), diagnostics);
    REQUIRE(module);
    for (const auto& function : module->functions) {
      if (!function->is_entry || !ir::construct_ssa(*function)) continue;
      ir::LinearForms forms(*function);
      for (ir::ObligationId id : forms.all_obligations().ids()) {
        if (forms.obligation(id).proved) continue;
        const std::string predicate = forms.launch_predicate(id);
        CHECK(forms.has_launch_predicate(id) == !predicate.empty());
        if (predicate.empty()) continue;
        INFO(path.string() << ": " << predicate);
        Result<LaunchExpression> expression = LaunchExpression::parse(predicate);
        REQUIRE(expression);
        ++predicates;
        for (unsigned round = 0; round < 50; ++round) {
          ir::LaunchValues launch;
          launch.block = {1 + pick(256), 1 + pick(4), 1};
          launch.grid = {pick(2) ? 1 + pick(100) : 1 + pick(1u << 31 >> 1), 1 + pick(100), 1};
          for (ir::VariableId parameter : function->variable_lists.view(function->signature.parameters)) {
            const uint64_t value = pick(3) ? pick(3000) : uint64_t(random()) << 32 | random();
            launch.add_parameter(value, byte_width(function->variables[parameter].type));
          }
          Result<launch::Int128> value = expression->evaluate(facts_of_launch(launch));
          // 1 << P1 with a large P1 is 0 in 32 bits, and too large for our exact integers.
          if (!value) continue;
          CHECK((*value != 0) == forms.evaluate(id, launch));
          ++(*value != 0 ? held : failed);
        }
      }
    }
  }
  CHECK(predicates > 10);
  CHECK(held > 100);
  CHECK(failed > 100);
}

} // namespace ptxrewrite::tests::predicate_test
