// Bounds of addresses against all threads of small launches, run one by one: for random kernels and launches, no access
// may be outside of its bounds if the bounds' conditions hold. And bounds of usual kernels, computed by hand.
#include "ir/analysis/linear/extent.h"

#include "grammar/reader.h"
#include "ir/ssa/ssa.h"
#include "launch/predicate.h"
#include "tests/unit/transforms/kernel_evaluator.h"

#include <doctest/doctest.h>

#include <random>

using namespace ptxrewrite;
using ptxrewrite::tests::KernelEvaluator;

namespace {

struct Kernel {
  std::unique_ptr<ir::Module> module;
  ir::Function* function = nullptr;
};

Kernel read_kernel(const std::string& body, const std::string& registers = "") {
  const std::string text =
      ".version 8.0\n.target sm_80\n.address_size 64\n"
      ".visible .entry k(.param .u32 n, .param .u32 m, .param .u32 s, .param .u64 x, .param .u64 y)\n{\n"
      ".reg .pred %p<40>; .reg .b32 %r<200>; .reg .b64 %rd<200>;" +
      registers +
      "\nld.param.u32 %r1, [n]; ld.param.u32 %r2, [m]; ld.param.u32 %r3, [s];\n"
      "ld.param.u64 %rd1, [x]; cvta.to.global.u64 %rd2, %rd1; ld.param.u64 %rd3, [y]; cvta.to.global.u64 %rd4, %rd3;\n"
      "mov.u32 %r4, %tid.x; mov.u32 %r5, %ctaid.x; mov.u32 %r6, %ntid.x; mad.lo.s32 %r7, %r5, %r6, %r4;\n"
      "mov.u32 %r8, %tid.y; mov.u32 %r9, %nctaid.x; mul.lo.s32 %r10, %r6, %r9;\n" +
      body + "\nDONE: ret;\n}\n";
  Diagnostics diagnostics;
  Kernel kernel;
  kernel.module = grammar::read_module(SourceFile("test.ptx", text), diagnostics);
  REQUIRE_MESSAGE(kernel.module, text);
  for (const auto& function : kernel.module->functions)
    if (function->is_entry) kernel.function = function.get();
  REQUIRE(ir::construct_ssa(*kernel.function));
  return kernel;
}

struct AccessText {
  ir::InstructionId instruction;
  unsigned bytes = 0;
  std::string low, high;
  ir::LaunchConditions conditions;
};

// The bounds of all accesses to global memory for which they are known.
std::vector<AccessText> extents_of(const ir::Function& function, size_t* unknown = nullptr) {
  ir::LinearForms forms(function);
  ir::AccessExtents extents(forms);
  std::vector<AccessText> list;
  for (ir::BlockId block : function.layout)
    for (ir::InstructionId id : function.instructions_in(block)) {
      if (function.instructions[id].kind != ir::InstructionKind::real) continue;
      const ir::Form& form = function.form_of(id);
      if (form.space != ir::StateSpace::global || !(form.effects.reads_memory || form.effects.writes_memory)) continue;
      const auto operands = function.operands_of(id);
      size_t address = 0;
      while (!operands[address].is(ir::OperandKind::address))
        ++address;
      const unsigned bytes = ir::bit_width(form.type()) / 8;
      auto range = extents.bytes_of(id, address, bytes);
      if (range)
        list.push_back({id, bytes, extents.text(range->low), extents.text(range->high), range->conditions});
      else if (unknown)
        ++*unknown;
    }
  return list;
}

launch::LaunchFacts facts_of(const ir::LaunchValues& launch) {
  launch::LaunchFacts facts;
  for (const auto& bytes : launch.parameters) {
    std::vector<std::byte> row;
    for (uint8_t byte : bytes)
      row.push_back(std::byte(byte));
    facts.parameters.push_back(row);
  }
  facts.block = {launch.block[0], launch.block[1], launch.block[2]};
  facts.grid = {launch.grid[0], launch.grid[1], launch.grid[2]};
  return facts;
}

bool holds(const ir::LaunchConditions& conditions, const launch::LaunchFacts& facts) {
  for (const std::string& condition : conditions) {
    auto expression = launch::LaunchExpression::parse(condition);
    REQUIRE_MESSAGE(expression, condition);
    if (!expression->holds(facts)) return false;
  }
  return true;
}

std::optional<ir::Int128> value_of(const std::string& text, const launch::LaunchFacts& facts) {
  auto expression = launch::LaunchExpression::parse(text);
  REQUIRE_MESSAGE(expression, text);
  auto value = expression->evaluate(facts);
  return value ? std::optional<ir::Int128>(*value) : std::nullopt;
}

struct Tally {
  size_t accesses = 0; // inside of bounds
  size_t refused = 0;  // accesses and launches whose conditions do not hold
  size_t exact = 0;    // bounds that are reached on both sides
};

// Runs the launch; every access must be within its bounds, modulo 2^64.
void check_launch(const ir::Function& function, const std::vector<AccessText>& list, const ir::LaunchValues& launch,
                  Tally& tally, const std::string& note) {
  const launch::LaunchFacts facts = facts_of(launch);
  std::vector<tests::ThreadTrace> traces;
  try {
    traces = KernelEvaluator(function, launch).run();
  } catch (const std::runtime_error&) {
    return; // too long
  }
  for (const AccessText& access : list) {
    if (!holds(access.conditions, facts)) {
      ++tally.refused;
      continue;
    }
    auto low = value_of(access.low, facts), high = value_of(access.high, facts);
    bool any = false, lowest = false, highest = false;
    for (const tests::ThreadTrace& trace : traces)
      for (const tests::MemoryEvent& event : trace) {
        if (event.instruction != access.instruction) continue;
        any = true;
        REQUIRE(low);
        REQUIRE(high);
        // As an offset from the lower bound: bounds are integers, addresses wrap.
        const uint64_t offset = event.address - static_cast<uint64_t>(*low);
        const bool inside = *high - *low >= access.bytes && ir::Int128(offset) <= *high - *low - access.bytes;
        if (!inside) FAIL_CHECK(note << "\n" << access.low << " .. " << access.high);
        if (!inside) return;
        ++tally.accesses;
        lowest |= offset == 0;
        highest |= ir::Int128(offset) == *high - *low - access.bytes;
      }
    tally.exact += any && lowest && highest;
  }
}

ir::LaunchValues launch_of(uint32_t block, uint32_t grid, uint32_t n, uint32_t m, uint32_t s, uint32_t block_y = 1) {
  ir::LaunchValues launch;
  launch.block = {block, block_y, 1};
  launch.grid = {grid, 1, 1};
  launch.add_parameter(n, 4);
  launch.add_parameter(m, 4);
  launch.add_parameter(s, 4);
  launch.add_parameter(0x10000, 8);
  launch.add_parameter(0x7fff0000, 8);
  return launch;
}

// Bounds of the only access, as text.
std::string bounds(const std::string& body) {
  Kernel kernel = read_kernel(body);
  auto list = extents_of(*kernel.function);
  REQUIRE(list.size() == 1);
  return list[0].low + " .. " + list[0].high;
}

// --- random kernels ---

class Generator {
public:
  explicit Generator(unsigned seed) : random_(seed) {}

  std::string text() {
    values_ = {"%r1", "%r2", "%r3", "%r4", "%r7", "%r7", "%r8", "3", "0"};
    statements(3 + pick(4), 0);
    return body_;
  }

private:
  unsigned pick(unsigned limit) { return static_cast<unsigned>(random_() % limit); }
  std::string reg() { return "%r" + std::to_string(next_++); }
  std::string value() { return values_[pick(static_cast<unsigned>(values_.size()))]; }
  std::string variable() {
    for (;;)
      if (std::string one = value(); one[0] == '%') return one;
  }
  void line(const std::string& text) { body_ += text + ";\n"; }

  void derive() {
    const std::string d = reg(), a = variable(), b = value(), number = std::to_string(1 + pick(7));
    switch (pick(9)) {
    case 0:
      line("add.s32 " + d + ", " + a + ", " + b);
      break;
    case 1:
      line("sub.s32 " + d + ", " + a + ", " + b);
      break;
    case 2:
      line("mul.lo.s32 " + d + ", " + a + ", " + b);
      break;
    case 3:
      line("mad.lo.s32 " + d + ", " + a + ", " + number + ", " + b);
      break;
    case 4:
      line("shl.b32 " + d + ", " + a + ", " + std::to_string(pick(3)));
      break;
    case 5:
      line("and.b32 " + d + ", " + a + ", " + (pick(2) ? "3" : "-4"));
      break;
    case 6:
      line("shr.u32 " + d + ", " + a + ", 1");
      break;
    case 7:
      line("min.s32 " + d + ", " + a + ", " + b);
      break;
    default:
      line("shr.s32 " + d + ", " + a + ", 2");
      break;
    }
    values_.push_back(d);
  }
  std::string compare() {
    static constexpr const char* relations[] = {"lt", "le", "gt", "ge", "eq", "ne"};
    const std::string p = "%p" + std::to_string(predicate_++);
    line("setp." + std::string(relations[pick(6)]) + (pick(2) ? ".s32 " : ".u32 ") + p + ", " + variable() + ", " +
         value());
    return p;
  }
  std::string condition() {
    std::string p = compare();
    if (pick(3) != 0 || predicate_ > 30) return p;
    const std::string q = compare(), both = "%p" + std::to_string(predicate_++);
    line((pick(2) ? "and.pred " : "or.pred ") + both + ", " + p + ", " + q);
    return both;
  }
  void access() {
    const std::string wide = "%rd" + std::to_string(next_wide_++), sum = "%rd" + std::to_string(next_wide_++);
    if (pick(4) == 0)
      line("mul.wide.u32 " + wide + ", " + variable() + ", 4");
    else
      line("mul.wide.s32 " + wide + ", " + variable() + ", 4");
    line("add.s64 " + sum + ", " + (pick(2) ? "%rd2" : "%rd4") + ", " + wide);
    const std::string guard = pick(5) == 0 && predicate_ < 30 ? "@" + compare() + " " : "";
    line(guard + "st.global.u32 [" + sum + (pick(3) ? "" : "+8") + "], 1");
  }
  void guarded(unsigned depth) {
    const std::string label = "L" + std::to_string(label_++);
    line("@" + std::string(pick(2) ? "" : "!") + condition() + " bra " + label);
    const size_t before = values_.size();
    statements(1 + pick(3), depth + 1);
    values_.resize(before);
    body_ += label + ":\n";
  }
  void loop(unsigned depth) {
    const std::string label = "L" + std::to_string(label_++), out = "L" + std::to_string(label_++), k = reg(),
                      p = "%p" + std::to_string(predicate_++);
    const std::string limit = variable(), step = pick(3) ? std::to_string(1 + pick(3)) : pick(2) ? "%r10" : "%r6";
    const unsigned kind = pick(4);
    line("mov.u32 " + k + ", " + (kind == 3 ? limit : value()));
    if (kind == 1) {
      line("setp.ge.s32 " + p + ", " + k + ", " + limit);
      line("@" + p + " bra " + out);
    }
    body_ += label + ":\n";
    if (kind == 0) { // tested at its head
      line("setp." + std::string(pick(2) ? "ge" : "gt") + (pick(2) ? ".s32 " : ".u32 ") + p + ", " + k + ", " + limit);
      line("@" + p + " bra " + out);
    }
    const size_t before = values_.size();
    values_.push_back(k);
    values_.push_back(k);
    statements(1 + pick(2), depth + 1);
    values_.resize(before);
    if (kind == 3) {
      line("add.s32 " + k + ", " + k + ", -" + std::to_string(1 + pick(4)));
      line("setp." + std::string(pick(2) ? "ne" : "gt") + ".s32 " + p + ", " + k + ", 0");
    } else {
      line("add.s32 " + k + ", " + k + ", " + step);
      line("setp." + std::string(pick(2) ? "lt" : "le") + (pick(2) ? ".s32 " : ".u32 ") + p + ", " + k + ", " + limit);
    }
    if (kind == 0)
      line("bra " + label);
    else
      line("@" + p + " bra " + label);
    body_ += out + ":\n";
    if (pick(2)) values_.push_back(k); // the value after the loop
  }
  void statements(unsigned count, unsigned depth) {
    for (unsigned i = 0; i < count; ++i) {
      const unsigned kind = pick(8);
      if (kind < 2)
        derive();
      else if (kind < 4 && depth < 3 && predicate_ < 28)
        guarded(depth);
      else if (kind < 5 && depth < 2 && predicate_ < 28)
        loop(depth);
      else
        access();
    }
  }

  std::mt19937 random_;
  std::string body_;
  std::vector<std::string> values_;
  unsigned next_ = 20, next_wide_ = 20, predicate_ = 1, label_ = 0;
};

uint32_t number(std::mt19937& random) {
  static constexpr uint32_t odd_ones[] = {0, 1, 2, 0xffffffff, 0xfffffffb, 0x7fffffff, 0x80000000, 0x40000000, 65536};
  return random() % 4 == 0 ? odd_ones[random() % 9] : static_cast<uint32_t>(random() % 40);
}

} // namespace

TEST_CASE("bounds of an access behind a guard are the guard's") {
  const std::string guard = "setp.ge.s32 %p1, %r7, %r1; @%p1 bra DONE; mul.wide.s32 %rd5, %r7, 4;";
  CHECK(bounds(guard + "add.s64 %rd6, %rd2, %rd5; st.global.u32 [%rd6], 1;") == "P3 .. 4*sext32(P0) + P3");
  CHECK(bounds(guard + "add.s64 %rd6, %rd2, %rd5; st.global.u32 [%rd6+8], 1;") == "P3 + 8 .. 4*sext32(P0) + P3 + 8");
  CHECK(bounds("mul.wide.s32 %rd5, %r7, 4; add.s64 %rd6, %rd2, %rd5; st.global.u32 [%rd6], 1;") ==
        "P3 .. 4*ntid.x*nctaid.x + P3");
}

TEST_CASE("bounds of rows and columns: n columns behind i < n, m of them") {
  CHECK(bounds("setp.ge.s32 %p1, %r7, %r1; setp.ge.s32 %p2, %r8, %r2; or.pred %p3, %p1, %p2; @%p3 bra DONE;"
               "mad.lo.s32 %r11, %r7, %r2, %r8; mul.wide.s32 %rd5, %r11, 4; add.s64 %rd6, %rd2, %rd5;"
               "st.global.u32 [%rd6], 1;") == "P3 .. 4*sext32(P0)*sext32(P1) + P3");
}

TEST_CASE("bounds in a loop over the grid are the limit's") {
  CHECK(bounds("setp.ge.s32 %p1, %r7, %r1; @%p1 bra DONE; mov.u32 %r11, %r7;\n"
               "AGAIN: mul.wide.s32 %rd5, %r11, 4; add.s64 %rd6, %rd2, %rd5; st.global.u32 [%rd6], 1;\n"
               "add.s32 %r11, %r11, %r10; setp.lt.s32 %p2, %r11, %r1; @%p2 bra AGAIN;") == "P3 .. 4*sext32(P0) + P3");
}

TEST_CASE("bounds of a loop unrolled by four and of the rest meet at n") {
  Kernel kernel = read_kernel(
      "setp.lt.s32 %p1, %r1, 1; @%p1 bra DONE; and.b32 %r11, %r1, 3; add.s32 %r12, %r1, -1; mov.u32 %r13, 0;\n"
      "setp.lt.u32 %p2, %r12, 3; @%p2 bra REST; sub.s32 %r14, %r1, %r11; mov.u64 %rd5, %rd2;\n"
      "FOUR: st.global.u32 [%rd5], 1; st.global.u32 [%rd5+12], 1; add.s32 %r13, %r13, 4; add.s64 %rd5, %rd5, 16;\n"
      "add.s32 %r14, %r14, -4; setp.ne.s32 %p3, %r14, 0; @%p3 bra FOUR;\n"
      "REST: setp.eq.s32 %p4, %r11, 0; @%p4 bra DONE; mul.wide.s32 %rd6, %r13, 4; add.s64 %rd7, %rd2, %rd6;\n"
      "ONE: st.global.u32 [%rd7], 1; add.s64 %rd7, %rd7, 4; add.s32 %r11, %r11, -1; setp.ne.s32 %p5, %r11, 0;\n"
      "@%p5 bra ONE;");
  auto list = extents_of(*kernel.function);
  REQUIRE(list.size() == 3);
  CHECK(list[0].high == "P3 + 16*(sext32(P0) >> 2) - 12");
  CHECK(list[1].high == "P3 + 16*(sext32(P0) >> 2)");
  CHECK(list[2].high == "4*sext32(P0) + P3");
  for (uint32_t n : {0u, 1u, 3u, 4u, 5u, 8u, 23u, 0xffffffffu}) {
    Tally tally;
    check_launch(*kernel.function, list, launch_of(2, 2, n, 0, 0), tally, "n = " + std::to_string(n));
    CHECK(tally.refused == 0);
  }
}

TEST_CASE("bounds of a loop unrolled by two and of the odd trip behind it meet at n") {
  Kernel kernel = read_kernel(
      "setp.lt.s32 %p1, %r1, 1; @%p1 bra DONE; setp.lt.s32 %p4, %r2, 1; @%p4 bra DONE; and.b32 %r11, %r1, 1;\n"
      "setp.eq.s32 %p2, %r1, 1; mov.u32 %r13, 0; @%p2 bra REST; sub.s32 %r14, %r1, %r11;\n"
      "TWO: mul.lo.s32 %r15, %r13, %r2; mul.wide.s32 %rd5, %r15, 4; add.s64 %rd6, %rd2, %rd5;\n"
      "st.global.u32 [%rd6], 1; add.s32 %r13, %r13, 2; add.s32 %r14, %r14, -2; setp.ne.s32 %p3, %r14, 0;\n"
      "@%p3 bra TWO;\n"
      "REST: setp.eq.s32 %p5, %r11, 0; @%p5 bra DONE; mul.lo.s32 %r16, %r13, %r2; mul.wide.s32 %rd7, %r16, 4;\n"
      "add.s64 %rd8, %rd2, %rd7; st.global.u32 [%rd8], 1;");
  auto list = extents_of(*kernel.function);
  REQUIRE(list.size() == 2);
  // Row n - 1, without a quotient: here n is odd.
  CHECK(list[1].high == "4*sext32(P0)*sext32(P1) - 4*sext32(P1) + P3 + 4");
  for (uint32_t n : {1u, 2u, 3u, 8u, 23u}) {
    Tally tally;
    check_launch(*kernel.function, list, launch_of(2, 2, n, 5, 0), tally, "n = " + std::to_string(n));
    CHECK(tally.refused == 0);
  }
}

TEST_CASE("bounds of single trips in front of a loop unrolled by four are those of the loop before it was unrolled") {
  // for (i = thread; i < n; i += 1024): the number of trips modulo 4 first, one by one.
  Kernel kernel =
      read_kernel("not.b32 %r11, %r4; add.s32 %r12, %r11, %r1; setp.ge.s32 %p1, %r4, %r1; @%p1 bra DONE;\n"
                  "shr.u32 %r13, %r12, 10; add.s32 %r14, %r13, 1; and.b32 %r15, %r14, 3; setp.eq.s32 %p2, %r15, 0;\n"
                  "@%p2 bra DONE; mul.wide.s32 %rd5, %r4, 4; add.s64 %rd6, %rd2, %rd5; st.global.u32 [%rd6], 1;\n"
                  "setp.eq.s32 %p3, %r15, 1; @%p3 bra DONE; st.global.u32 [%rd6+4096], 1;\n"
                  "setp.eq.s32 %p4, %r15, 2; @%p4 bra DONE; st.global.u32 [%rd6+8192], 1;");
  auto list = extents_of(*kernel.function);
  REQUIRE(list.size() == 3);
  for (const AccessText& access : list)
    CHECK(access.high == "4*sext32(P0) + P3");
  for (uint32_t n : {0u, 1u, 7u, 1025u, 2050u, 3000u, 3073u, 5000u}) {
    Tally tally;
    check_launch(*kernel.function, list, launch_of(8, 1, n, 0, 0), tally, "n = " + std::to_string(n));
    CHECK(tally.refused == 0);
  }
}

TEST_CASE("bounds are not known of what memory says") {
  Kernel kernel = read_kernel("ld.global.u32 %r11, [%rd2]; mul.wide.s32 %rd5, %r11, 4; add.s64 %rd6, %rd4, %rd5;"
                              "st.global.u32 [%rd6], 1;");
  size_t unknown = 0;
  CHECK(extents_of(*kernel.function, &unknown).size() == 1);
  CHECK(unknown == 1);
}

TEST_CASE("whatever is drawn, no access leaves its bounds") {
  Tally tally;
  size_t known = 0, unknown = 0;
  for (unsigned seed = 0; seed < 500; ++seed) {
    const std::string body = Generator(seed).text();
    Kernel kernel = read_kernel(body);
    const auto list = extents_of(*kernel.function, &unknown);
    known += list.size();
    std::mt19937 random(seed);
    for (unsigned i = 0; i < 6 && !list.empty(); ++i) {
      const ir::LaunchValues launch = launch_of(1 + random() % 5, 1 + random() % 4, number(random), number(random),
                                                number(random), 1 + random() % 3);
      std::string note = "seed " + std::to_string(seed) + "\n" + body;
      for (const auto& bytes : launch.parameters)
        note += " " + std::to_string(bytes[0] | bytes[1] << 8 | bytes[2] << 16 | unsigned(bytes[3]) << 24);
      check_launch(*kernel.function, list, launch, tally, note);
    }
  }
  MESSAGE(known << " accesses with bounds, " << unknown << " without; " << tally.accesses << " inside, "
                << tally.refused << " refused, " << tally.exact << " exact");
  CHECK(known > 1000);
  CHECK(tally.accesses > 100000);
  CHECK(tally.exact > 500);
}
