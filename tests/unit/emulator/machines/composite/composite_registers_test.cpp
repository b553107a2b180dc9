// Composite instructions on the emulator against their definition (composite-hpca13 Table 1, PTX ISA 9.7.1 and 9.7.8):
// every form, at operands 0, 1, -1, the limits of the type, and numbers of bits around and beyond the width.
#include "tests/unit/emulator/lane_kernel.h"
#include "tests/unit/emulator/semantics/edge_operands.h"

#include "emulator/machines/composite/composite_registers.h"

#include <bit>
#include <cmath>
#include <functional>

namespace ptxrewrite::tests::composite_registers_test {

using namespace ptxrewrite;
using namespace ptxrewrite::emulator;
using ptxrewrite::test::Big;

namespace {

constexpr std::string_view header = "//@ ptxrewrite hardware 1\n.version 8.7\n.target sm_90\n";

const std::vector<uint32_t> edges = {0, 1, 0xffffffffu, 0x80000000u, 0x7fffffffu, 31, 32, 33, 255, 0x12345678u};

// One thread for every combination of three operands.
LaneInputs all_combinations() {
  LaneInputs inputs;
  for (uint32_t a : edges)
    for (uint32_t b : edges)
      for (uint32_t c : edges) {
        inputs.a.push_back(a);
        inputs.b.push_back(b);
        inputs.c.push_back(c);
      }
  return inputs;
}

using Number = uint64_t; // the low bits of a result
using Compute = std::function<Number(Number, Number)>;
struct HalfForm {
  std::string name;
  Compute compute;
};

Big as_signed(Number value, unsigned bits) {
  return bits == 64 ? Big(static_cast<int64_t>(value)) : Big(static_cast<int32_t>(value));
}
Number low(Big value, unsigned bits) {
  auto all = static_cast<uint64_t>(value);
  return bits == 64 ? all : all & 0xffffffffu;
}

// Sums and differences wrap around.
std::vector<HalfForm> additions(unsigned bits, bool as_second) {
  std::vector<HalfForm> forms;
  for (std::string type : {".u", ".s"}) {
    type += std::to_string(bits);
    forms.push_back({"add" + type, [=](Number a, Number b) { return low(Big(a) + Big(b), bits); }});
    forms.push_back({"sub" + type, [=](Number a, Number b) { return low(Big(a) - Big(b), bits); }});
    if (as_second) forms.push_back({"rsub" + type, [=](Number t, Number c) { return low(Big(c) - Big(t), bits); }});
  }
  return forms;
}

const std::vector<HalfForm> logic_forms = {{"and.b32", [](Number a, Number b) { return a & b; }},
                                           {"or.b32", [](Number a, Number b) { return a | b; }},
                                           {"xor.b32", [](Number a, Number b) { return a ^ b; }}};

// Amounts beyond the width shift out all bits: the result is zeros or copies of the sign.
Number shifted_right(Number value, Number amount) {
  return amount > 31 ? 0 : (value & 0xffffffffu) >> amount;
}
const std::vector<HalfForm> shift_forms = {
    {"shl.b32", [](Number a, Number n) { return n > 31 ? 0 : low(Big(a) << n, 32); }},
    {"shr.b32", shifted_right},
    {"shr.u32", shifted_right},
    {"shr.s32", [](Number a, Number n) { return low(as_signed(a, 32) >> (n > 31 ? 31 : n), 32); }}};

// PTX ISA 9.7.1: the upper eight bits of a factor are ignored, bit 23 is its sign.
Big of_24_bits(Number value) {
  const Big kept = value % (1 << 24);
  return kept >= 1 << 23 ? kept - (1 << 24) : kept;
}

const std::vector<HalfForm> products = {
    {"mul.lo.u32", [](Number a, Number b) { return low(Big(a) * Big(b), 32); }},
    {"mul.lo.s32", [](Number a, Number b) { return low(as_signed(a, 32) * as_signed(b, 32), 32); }},
    {"mul.hi.u32", [](Number a, Number b) { return low((Big(a) * Big(b)) >> 32, 32); }},
    {"mul.hi.s32", [](Number a, Number b) { return low((as_signed(a, 32) * as_signed(b, 32)) >> 32, 32); }},
    {"mul24.lo.u32", [](Number a, Number b) { return low(Big(a % (1 << 24)) * Big(b % (1 << 24)), 32); }},
    {"mul24.lo.s32", [](Number a, Number b) { return low(of_24_bits(a) * of_24_bits(b), 32); }}};

// The float next to an integer in the direction of the rounding; ties of .rn go to the even one.
uint32_t rounded(double exact, char direction) {
  auto near = static_cast<float>(exact);
  bool above = static_cast<double>(near) > exact, below = static_cast<double>(near) < exact;
  bool down = direction == 'm' || (direction == 'z' && exact > 0),
       up = direction == 'p' || (direction == 'z' && exact < 0);
  if (above && down) near = std::nextafter(near, -INFINITY);
  if (below && up) near = std::nextafter(near, INFINITY);
  return std::bit_cast<uint32_t>(near);
}

std::vector<HalfForm> conversions() {
  std::vector<HalfForm> forms = {
      {"cvt.u32.u8", [](Number t, Number) { return t & 0xff; }},
      {"cvt.u32.u16", [](Number t, Number) { return t & 0xffff; }},
      {"cvt.s32.s8", [](Number t, Number) { return low((t & 0x80) ? Big(t & 0xff) - 256 : Big(t & 0xff), 32); }},
      {"cvt.s32.s16",
       [](Number t, Number) { return low((t & 0x8000) ? Big(t & 0xffff) - 65536 : Big(t & 0xffff), 32); }}};
  for (char direction : {'n', 'z', 'm', 'p'}) {
    std::string name = std::string("cvt.r") + direction + ".f32";
    forms.push_back({name + ".u32", [=](Number t, Number) { return rounded(static_cast<double>(t), direction); }});
    forms.push_back({name + ".s32", [=](Number t, Number) {
                       return rounded(static_cast<double>(static_cast<int32_t>(t)), direction);
                     }});
  }
  return forms;
}

// Runs `crf.FIRST.SECOND %d, %a, %b, %c` and then reads the slot.
void check_form(const HalfForm& first, const HalfForm& second, bool has_third) {
  static const LaneInputs inputs = all_combinations();
  std::string name = "crf." + first.name + "." + second.name;
  LaneResults results = run_lanes("  " + name + " %d, %a, %b" + (has_third ? ", %c" : "") + ";\n  mov.b32 %q, %crf;\n",
                                  inputs, {}, header);
  REQUIRE_MESSAGE(results.run.ok(), name << ": " << results.run.error);
  for (size_t i = 0; i < inputs.a.size(); ++i) {
    Number intermediate = first.compute(inputs.a[i], inputs.b[i]);
    Number result = second.compute(intermediate, inputs.c[i]);
    if (results.d[i] == result && results.q[i] == intermediate) continue;
    FAIL_CHECK(name << " of " << inputs.a[i] << ", " << inputs.b[i] << ", " << inputs.c[i] << " gives " << results.d[i]
                    << ", slot " << results.q[i] << "; should be " << result << ", " << intermediate);
    return;
  }
}

template <class... Lists> std::vector<HalfForm> all_of(const Lists&... lists) {
  std::vector<HalfForm> all;
  (all.insert(all.end(), lists.begin(), lists.end()), ...);
  return all;
}

} // namespace

TEST_CASE("every composite of the paper's table") {
  const std::vector<HalfForm> sums = additions(32, false), later_sums = additions(32, true);
  size_t forms = 0;
  auto check = [&](const std::vector<HalfForm>& firsts, const std::vector<HalfForm>& seconds, bool has_third) {
    for (const HalfForm& first : firsts)
      for (const HalfForm& second : seconds) {
        check_form(first, second, has_third);
        ++forms;
      }
  };
  check(products, shift_forms, true);                        // multiply-shift
  check(products, conversions(), false);                     // multiply-cvt
  check(all_of(sums, logic_forms), shift_forms, true);       // add/logic-shift
  check(all_of(sums, logic_forms), later_sums, true);        // add/logic-add
  check(all_of(sums, logic_forms), conversions(), false);    // add/logic-cvt
  check(shift_forms, all_of(later_sums, logic_forms), true); // shift-add/logic
  check(shift_forms, shift_forms, true);                     // shift-shift
  CHECK(forms == 6 * 4 + 6 * 12 + 7 * 4 + 7 * 6 + 7 * 12 + 4 * 9 + 4 * 4);
}

TEST_CASE("addresses: 64 bits, and shifts of what 32 bits extend to") {
  const LaneInputs inputs = all_combinations();
  auto wide = [](uint32_t low_word, uint32_t high_word) { return uint64_t(high_word) << 32 | low_word; };
  auto check = [&](const std::string& body, auto&& expected) {
    LaneResults results =
        run_lanes("  mov.b64 %rd0, {%a, %b};\n  mov.b64 %rd1, {%c, %a};\n  " + body + "\n  mov.b64 {%d, %q}, %rd2;\n",
                  inputs, {}, header);
    REQUIRE_MESSAGE(results.run.ok(), body << ": " << results.run.error);
    for (size_t i = 0; i < inputs.a.size(); ++i) {
      uint64_t result = expected(inputs.a[i], inputs.b[i], inputs.c[i]);
      if (wide(results.d[i], results.q[i]) == result) continue;
      FAIL_CHECK(body << " of " << inputs.a[i] << ", " << inputs.b[i] << ", " << inputs.c[i]);
      return;
    }
  };
  for (const HalfForm& second : additions(64, true)) {
    check("crf.shl.b64." + second.name + " %rd2, %rd0, %c, %rd1;",
          [&](uint32_t a, uint32_t b, uint32_t c) { return second.compute(c > 63 ? 0 : wide(a, b) << c, wide(c, a)); });
    for (unsigned amount : {0u, 2u, 31u}) {
      std::string operands = " %rd2, %b, " + std::to_string(amount) + ", %rd1;";
      check("crf.shl.wide.s32." + second.name + operands, [&](uint32_t a, uint32_t b, uint32_t c) {
        return second.compute(low(as_signed(b, 32) << amount, 64), wide(c, a));
      });
      check("crf.shl.wide.u32." + second.name + operands,
            [&](uint32_t a, uint32_t b, uint32_t c) { return second.compute(uint64_t(b) << amount, wide(c, a)); });
    }
    for (const HalfForm& first : additions(64, false))
      check("crf." + first.name + "." + second.name + " %rd2, %rd0, %rd1, %rd0;",
            [&](uint32_t a, uint32_t b, uint32_t c) {
              return second.compute(first.compute(wide(a, b), wide(c, a)), wide(a, b));
            });
  }
  for (const HalfForm& first : all_of(additions(32, false), logic_forms, shift_forms, products)) {
    check("crf." + first.name + ".shl.wide.s32 %rd2, %a, %b, 3;",
          [&](uint32_t a, uint32_t b, uint32_t) { return low(as_signed(first.compute(a, b), 32) << 3, 64); });
    check("crf." + first.name + ".shl.wide.u32 %rd2, %a, %b, 3;",
          [&](uint32_t a, uint32_t b, uint32_t) { return uint64_t(first.compute(a, b)) << 3; });
  }
  check("crf.shl.wide.s32.add.s64 %rd3, %b, 2, %rd1;\n  add.s64 %rd2, %rd0, %crf;",
        [&](uint32_t a, uint32_t b, uint32_t) { return wide(a, b) + low(as_signed(b, 32) << 2, 64); });
}

TEST_CASE("the slot: literals, guards, and a composite that reads what it overwrites") {
  LaneInputs inputs{{5, 6, 7, 8}, {1, 2, 3, 4}, {10, 20, 30, 40}, {}};
  LaneResults chain = run_lanes(R"(
  crf.add.s32.shl.b32 %r1, %a, %b, 4;
  crf.xor.b32.add.s32 %d, %crf, 255, %crf;
  mov.b32 %q, %crf;
)",
                                inputs, {}, header);
  REQUIRE(chain.run.ok());
  for (size_t i = 0; i < 4; ++i) {
    uint32_t sum = inputs.a[i] + inputs.b[i];
    CHECK(chain.d[i] == (sum ^ 255) + sum);
    CHECK(chain.q[i] == (sum ^ 255));
  }
  // Lanes whose guard is false keep the values of the slot and the register.
  LaneResults guarded = run_lanes(R"(
  setp.gt.u32 %p1, %a, 6;
  crf.add.s32.shl.b32 %d, %a, 100, 1;
  @%p1 crf.sub.s32.add.s32 %d, %a, %b, %c;
  mov.b32 %q, %crf;
)",
                                  inputs, {}, header);
  REQUIRE(guarded.run.ok());
  for (size_t i = 0; i < 4; ++i) {
    uint32_t a = inputs.a[i], b = inputs.b[i], c = inputs.c[i];
    CHECK(guarded.d[i] == (a > 6 ? a - b + c : (a + 100) << 1));
    CHECK(guarded.q[i] == (a > 6 ? a - b : a + 100));
  }
}

TEST_CASE("divergent lanes have slots of their own, and accesses are counted") {
  LaneInputs inputs;
  for (uint32_t lane = 0; lane < 32; ++lane) {
    inputs.a.push_back(lane);
    inputs.b.push_back(3);
  }
  LaneResults results = run_lanes(R"(
  and.b32 %r1, %a, 1;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra odd;
  crf.add.s32.shl.b32 %d, %a, %b, 2;
  sub.s32 %q, %crf, %b;
  bra done;
odd:
  crf.sub.s32.shl.b32 %d, %a, %b, 2;
  add.s32 %q, %crf, %b;
done:
)",
                                  inputs, {}, header);
  REQUIRE(results.run.ok());
  for (uint32_t lane = 0; lane < 32; ++lane) {
    CHECK(results.q[lane] == lane);
    CHECK(results.d[lane] == ((lane & 1 ? lane - 3 : lane + 3) << 2));
  }
  // Two composites, each executed by half of the lanes; each is read by its own second half and by one instruction.
  CompositeCounts counts = composite_counts(results.run.result.counters);
  CHECK(counts.composites == 2);
  CHECK(counts.lanes == 32);
  CHECK(counts.slot_writes == 2);
  CHECK(counts.slot_reads == 4);
  CHECK(counts.main_writes_avoided == 2);
  CHECK(counts.main_reads_avoided == 4);
}

TEST_CASE("reading the slot of nothing is refused") {
  LaneInputs one{{1}, {2}, {3}, {}};
  // The verifier accepts it (rule crf); the table of instructions refuses forms that the paper does not have.
  CHECK(run_lanes("  crf.and.b32.or.b32 %d, %a, %b, %c;\n", one, {}, header).run.error.find("illegal modifier") !=
        std::string::npos);
  CHECK(run_lanes("  crf.add.s32.shl.b32 %d, %a, %b;\n", one, {}, header).run.error != "");
}

} // namespace ptxrewrite::tests::composite_registers_test
