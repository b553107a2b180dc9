// Two operations, of which the second one takes the first one's result: quick code executes them together. Each pair
// with the result needed later and not, and as each operand of the second one, interpreted and as generated code.
//
//   operation_pairs [--verbose]
//
// Exit code 77: there is no generator.
#include "grammar/reader.h"
#include "support/log.h"
#include "tests/engines/access_launch.h"
#include "tests/fuzz/random.h"

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

namespace ptxrewrite::test {
namespace {

struct Operation {
  const char* name;
  unsigned sources; // %s, of 5 bits, may be a further one
  const char* last = "";
};
// Of 32 bits to 32 bits.
const Operation narrow[] = {{"add.u32", 2},
                            {"sub.u32", 2},
                            {"neg.s32", 1},
                            {"abs.s32", 1},
                            {"mul.lo.u32", 2},
                            {"mul.hi.s32", 2},
                            {"and.b32", 2},
                            {"not.b32", 1},
                            {"min.s32", 2},
                            {"shl.b32", 1, ", %s"},
                            {"shf.l.wrap.b32", 2, ", %s"},
                            {"shf.r.clamp.b32", 2, ", %s"},
                            {"add.f32", 2},
                            {"mul.ftz.f32", 2},
                            {"max.f32", 2},
                            {"fma.rn.f32", 2, ", %a"},
                            {"mad.lo.s32", 2, ", %b"}};
// Of 64 bits to 64 bits.
const Operation wide[] = {
    {"add.s64", 2}, {"sub.s64", 2},         {"neg.s64", 1}, {"mul.lo.s64", 2}, {"xor.b64", 2},
    {"not.b64", 1}, {"shr.u64", 1, ", %s"}, {"min.s64", 2}, {"add.f64", 2},    {"fma.rn.f64", 2, ", %la"}};
// Of 32 bits to 64 bits.
const char* const widening[] = {"mul.wide.s32", "mul.wide.u32"};
const char* const comparisons[] = {"setp.ge.s32", "setp.lt.u32", "setp.ne.s32", "setp.le.f32", "setp.neu.f32"};
const char* const wide_comparisons[] = {"setp.lt.s64", "setp.eq.u64"};

// `operands`: of as many as it may have.
std::string instruction(const Operation& operation, const std::string& result, const std::string& a,
                        const std::string& b) {
  return std::string(operation.name) + " " + result + ", " + a + (operation.sources > 1 ? ", " + b : "") +
         operation.last + "; ";
}

// All pairs with this first operation, which writes %x or %lx.
std::string pairs_with(const std::string& first, bool is_wide) {
  const std::string x = is_wide ? "%lx" : "%x", y = is_wide ? "%ly" : "%y", b = is_wide ? "%lb" : "%b";
  const std::string sum = is_wide ? "mad.lo.s64 %lsum, %lsum, 31, %ly;" : "mad.lo.u32 %sum, %sum, 31, %y;";
  const std::string needs = is_wide ? "xor.b64 %lsum, %lsum, %lx;" : "xor.b32 %sum, %sum, %x;";
  std::string text;
  const auto add = [&](const std::string& second, const std::string& after) {
    for (const bool is_needed : {false, true})
      text += first + second + after + (is_needed ? needs : "") + "\n";
  };
  const auto operands = [&](const auto& make) {
    make(x, b);
    make(b, x);
    make(x, x);
  };
  const auto add_operation = [&](const Operation& operation) {
    if (operation.sources == 1) return add(instruction(operation, y, x, ""), sum);
    operands(
        [&](const std::string& left, const std::string& right) { add(instruction(operation, y, left, right), sum); });
    add(instruction(operation, x, x, b), needs); // over the first one's result
  };
  if (is_wide)
    for (const Operation& operation : wide)
      add_operation(operation);
  else
    for (const Operation& operation : narrow)
      add_operation(operation);
  if (!is_wide)
    for (const char* name : widening)
      add(std::string(name) + " %ly, %x, %b; ", "mad.lo.s64 %lsum, %lsum, 31, %ly;");
  const auto add_comparison = [&](const std::string& name) {
    operands([&](const std::string& left, const std::string& right) {
      add(name + " %q, " + left + ", " + right + "; ", "selp.u32 %y, 3, 5, %q; mad.lo.u32 %sum, %sum, 31, %y;");
    });
  };
  if (is_wide)
    for (const char* name : wide_comparisons)
      add_comparison(name);
  else
    for (const char* name : comparisons)
      add_comparison(name);
  return text;
}

std::string kernel_of(const std::string& first, bool is_wide) {
  return ".version 8.0\n.target sm_80\n.address_size 64\n"
         ".visible .entry k(.param .u64 table, .param .u64 buffer, .param .u64 results, .param .u32 turns)\n{\n"
         ".reg .b32 %a, %b, %s, %x, %y, %sum, %t, %i, %n; .reg .b64 %la, %lb, %lx, %ly, %lsum, %lt, %lr, %lo;\n"
         ".reg .pred %p, %q;\n"
         "ld.param.u64 %lt, [table]; ld.param.u64 %lr, [results]; ld.param.u32 %n, [turns]; mov.u32 %t, %tid.x;\n"
         "mul.wide.u32 %lo, %t, 4; add.u64 %lt, %lt, %lo; add.u64 %lr, %lr, %lo; add.u64 %lr, %lr, %lo;\n"
         "mov.u32 %sum, 0; mov.u64 %lsum, 0; mov.u32 %i, 0;\nLOOP:\n"
         "ld.global.u32 %a, [%lt]; ld.global.u32 %b, [%lt+128]; and.b32 %s, %b, 63;\n"
         "mov.b64 %la, {%a, %b}; mov.b64 %lb, {%b, %a};\n" +
         pairs_with(first, is_wide) +
         "cvt.u64.u32 %lo, %sum; xor.b64 %lsum, %lsum, %lo; st.global.u64 [%lr], %lsum; add.u64 %lr, %lr, 256;\n"
         "add.u64 %lt, %lt, 128; add.u32 %i, %i, 1; setp.lt.u32 %p, %i, %n; @%p bra LOOP;\nret;\n}\n";
}

int run() {
  if (!has_generator()) return 77;
  constexpr uint32_t lanes = 32, turns = 24;
  AccessData data;
  fuzz::Random random(5);
  constexpr uint32_t edges[] = {0, 1, 31, 32, 0x7fffffff, 0x80000000, 0xffffffff, 0x7f800000, 0x7fc00001, 0x00000001};
  for (uint32_t i = 0; i < lanes * (turns + 1); ++i)
    data.table.push_back(random.below(3) ? random.next() : edges[random.below(std::size(edges))]);
  data.buffer.resize(64);
  data.results.resize(size_t(turns) * lanes * 8);
  std::vector<std::pair<std::string, bool>> firsts;
  for (const Operation& operation : narrow)
    firsts.emplace_back(instruction(operation, "%x", "%a", "%b"), false);
  firsts.emplace_back("sub.u32 %x, %a, 77; ", false);
  for (const Operation& operation : wide)
    firsts.emplace_back(instruction(operation, "%lx", "%la", "%lb"), true);
  for (const char* name : widening)
    firsts.emplace_back(std::string(name) + " %lx, %a, %b; ", true);
  EngineTally tally;
  int wrong = 0;
  for (const auto& [first, is_wide] : firsts) {
    Diagnostics diagnostics;
    const auto module = grammar::read_module(SourceFile("pairs.ptx", kernel_of(first, is_wide)), diagnostics);
    if (!module) {
      std::printf("%s: not read: %s\n", first.c_str(), diagnostics.list()[0].message.c_str());
      return 1;
    }
    ++tally.kernels;
    const AccessShape shape{lanes, 1, turns};
    const EngineRun interpreted = launch_accesses(*module, shape, data, AccessWay::predicted);
    wrong += !tally.add(first + "quick code", interpreted, launch_accesses(*module, shape, data, AccessWay::quick));
  }
  return tally.finish("pairs") | (wrong != 0);
}

} // namespace
} // namespace ptxrewrite::test

int main(int count, char** arguments) {
  if (count > 1 && std::strcmp(arguments[1], "--verbose") == 0) ptxrewrite::start_logging("debug");
  return ptxrewrite::test::run();
}
