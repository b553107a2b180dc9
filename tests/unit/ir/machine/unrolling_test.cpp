// Loops that the assembler unrolls, against ptxas: for loops with more and more work, the longest one that is unrolled,
// with many kinds of additional work. A loop is unrolled if a longer one has much less code.
#include "ir/machine/figures/figures.h"
#include "ir/machine/select/lowering.h"
#include "ir/ssa/ssa.h"
#include "support/ptxas.h"
#include "tests/unit/grammar/read.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <map>

namespace ptxrewrite::tests::unrolling_test {

using namespace ptxrewrite;
using namespace ptxrewrite::ir;

namespace {

constexpr const char* header = ".version 8.0\n.target sm_75\n.address_size 64\n.const .align 4 .b8 table[64];\n";

std::string repeated(const std::string& text, unsigned times) {
  std::string all;
  for (unsigned i = 0; i < times; ++i)
    all += text;
  return all;
}

// The counter is %r1; without `trips` it starts with a parameter; %rd1 changes, %rd2 and %r6 do not, %r5 is zero.
std::string kernel(unsigned number, const std::string& beside, unsigned sums, unsigned trips, bool left_in_middle) {
  const std::string start = trips ? "mov.u32 %r1, " + std::to_string(trips) + ";\n" : "ld.param.u32 %r1, [n];\n";
  return ".visible .entry k" + std::to_string(number) +
         "(.param .u64 p, .param .u64 q, .param .u32 n)\n{\n"
         ".reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<20>; .reg .b64 %rd<20>; .reg .f32 %f<9>;\n"
         "ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q]; cvta.to.global.u64 %rd1, %rd1;\n"
         "cvta.to.global.u64 %rd2, %rd2; mov.f32 %f1, 0f00000000; mov.u32 %r2, %ctaid.y; add.s64 %rd5, %rd1, 320;\n"
         "setp.ne.s32 %p2, %r2, 7; mov.u32 %r5, 0; mov.u32 %r6, %ctaid.x; mov.b64 %rd8, 0;\n" +
         start + "again: ld.global.f32 %f2, [%rd1];\n" + repeated("fma.rn.f32 %f1, %f1, %f1, %f2;\n", sums) + beside +
         (left_in_middle
              ? "\nsetp.eq.s32 %p1, %r1, 1; @%p1 bra done;\n"
                "add.s64 %rd1, %rd1, 64; add.s32 %r1, %r1, -1; bra.uni again;\ndone:\n"
              : "\nadd.s64 %rd1, %rd1, 64; add.s32 %r1, %r1, -1; setp.ne.s32 %p1, %r1, 0; @%p1 bra again;\n") +
         "st.global.f32 [%rd2], %f1; st.global.u32 [%rd2+4], %r5; st.global.u32 [%rd2+12], %r6;\n"
         "st.global.u64 [%rd2+16], %rd8; ret;\n}\n";
}

struct Case {
  const char* name;
  std::string beside;
  bool left_in_middle = false;
};

std::vector<Case> cases() {
  const std::string loads = "ld.global.f32 %f3, [%rd1+4]; add.f32 %f1, %f1, %f3;"
                            "ld.global.f32 %f4, [%rd1+8]; add.f32 %f1, %f1, %f4;";
  return {
      {"nothing", ""},
      {"two loads", loads},
      {"a counter", "add.s32 %r5, %r5, 4;"},
      {"a pointer", "ld.global.f32 %f3, [%rd5]; add.f32 %f1, %f1, %f3; add.s64 %rd5, %rd5, 64;"},
      {"a pointer by a register", "ld.global.f32 %f3, [%rd5]; add.f32 %f1, %f1, %f3; add.s64 %rd5, %rd5, %rd2;"},
      {"an address", "mul.wide.s32 %rd6, %r1, 4; add.s64 %rd7, %rd2, %rd6; ld.global.f32 %f3, [%rd7];"
                     "add.f32 %f1, %f1, %f3;"},
      {"a wide product and sum", "mad.wide.s32 %rd8, %r1, %r6, %rd8;"},
      {"a store", "st.global.f32 [%rd2+64], %f1;"},
      {"guarded prefetches", "@%p2 prefetch.global.L2 [%rd1+256]; @%p2 prefetch.global.L2 [%rd1+512];"},
      {"a byte", "ld.global.u8 %h1, [%rd1+1]; cvt.u32.u16 %r7, %h1; add.s32 %r6, %r6, %r7;"},
      {"bytes compared", "ld.global.u8 %h1, [%rd1+1]; ld.global.u8 %h2, [%rd5]; setp.ne.s16 %p3, %h1, %h2;"
                         "selp.u32 %r7, 1, 0, %p3; add.s32 %r6, %r6, %r7;"},
      {"a sign", "abs.f32 %f3, %f2; add.f32 %f1, %f1, %f3;"},
      {"a skipped block", "setp.gt.f32 %p3, %f1, %f2; @%p3 bra over; add.f32 %f1, %f1, %f2; xor.b64 %rd8, %rd8, %rd1;"
                          "over:"},
      {"a skipped store", "setp.gt.f32 %p3, %f1, %f2; @%p3 bra over; st.global.f32 [%rd2+64], %f1; over:"},
      {"barriers", repeated("bar.sync 0;", 2)},
      {"an exit in the middle", "", true},
      {"constants", "ld.const.f32 %f3, [table+4]; add.f32 %f1, %f1, %f3;"},
  };
}

// Only with a known number of trips.
std::vector<Case> known_cases() {
  return {
      {"four barriers", repeated("bar.sync 0;", 4)},
      {"numbers of the trip", "shl.b32 %r7, %r1, 2; add.s32 %r7, %r7, 4; xor.b32 %r6, %r6, %r7;"},
      {"shared memory at the trip's place", "ld.shared.f32 %f3, [%r1+4]; add.f32 %f1, %f1, %f3;"},
      {"shared memory at a moving place", "ld.shared.f32 %f3, [%r5]; add.f32 %f1, %f1, %f3; add.s32 %r5, %r5, 4;"},
      {"a store to shared memory", "shl.b32 %r7, %r1, 2; st.shared.f32 [%r7+4], %f1;"},
      {"a table by the trip", "shl.b32 %r7, %r1, 2; ld.const.f32 %f3, [%r7]; add.f32 %f1, %f1, %f3;"},
      {"shared memory anywhere", "ld.shared.f32 %f3, [%r6]; add.f32 %f1, %f1, %f3; add.s32 %r6, %r6, 4;"},
  };
}

struct Longest {
  unsigned by_ptxas = 0, estimated = 0;
};

// The last of the sizes before the code gets much shorter.
template <class Size> unsigned last_copied(const std::vector<unsigned>& sums, Size&& size_of) {
  for (size_t i = sums.size() - 1; i > 0; --i)
    if (size_of(sums[i]) + 10 < size_of(sums[i - 1])) return sums[i - 1];
  return 0;
}

Longest longest_copied(const Case& one, uint32_t capability, unsigned trips, const std::vector<unsigned>& sums) {
  std::string text = header;
  for (unsigned count : sums)
    text += kernel(count, one.beside, count, trips, one.left_in_middle);
  Result<FiguresByFunction> real = machine_figures(text, "sm_" + std::to_string(capability));
  REQUIRE_MESSAGE(real.ok(), one.name);
  ReadText read(text);
  REQUIRE_MESSAGE(read.ok(), read.messages());
  std::map<std::string, uint64_t> estimated;
  for (const std::unique_ptr<Function>& function : read.module->functions) {
    REQUIRE(construct_ssa(*function).ok());
    estimated[std::string(read.module->text(function->name))] = lower(*function, capability).static_instructions();
  }
  auto name = [](unsigned count) { return "k" + std::to_string(count); };
  return {last_copied(sums, [&](unsigned count) { return real->at(name(count)).instructions; }),
          last_copied(sums, [&](unsigned count) { return estimated.at(name(count)); })};
}

std::vector<unsigned> all_from_to(unsigned first, unsigned last, unsigned step) {
  std::vector<unsigned> all;
  for (unsigned i = first; i <= last; i += step)
    all.push_back(i);
  return all;
}

} // namespace

TEST_CASE("loops of unknown length that are copied") {
  if (!find_ptxas()) {
    MESSAGE("skipped: no ptxas");
    return;
  }
  for (const Case& one : cases()) {
    const Longest longest = longest_copied(one, 80, 0, all_from_to(30, 47, 1));
    INFO(std::string(one.name));
    CHECK(longest.by_ptxas > 0);
    CHECK(longest.estimated == longest.by_ptxas);
  }
}

TEST_CASE("loops of known length of which nothing is left") {
  if (!find_ptxas()) {
    MESSAGE("skipped: no ptxas");
    return;
  }
  for (uint32_t capability : {75u, 90u})
    for (unsigned trips : {3u, 8u, 24u}) {
      if (capability == 90 && trips != 8) continue;
      std::vector<Case> all = known_cases();
      all.push_back({"nothing", ""});
      if (trips == 8) all.push_back({"an exit in the middle", known_cases().back().beside, true});
      for (const Case& one : all) {
        const unsigned longest_known = trips == 3 ? 210 : trips == 8 ? 105 : 60;
        const Longest longest =
            longest_copied(one, capability, trips, all_from_to(longest_known / 5, longest_known, longest_known / 30));
        INFO("sm_" << capability << ", " << trips << " trips, " << std::string(one.name) << ": up to "
                   << longest.by_ptxas << " by ptxas, " << longest.estimated << " estimated");
        CHECK(longest.by_ptxas > 0);
        CHECK(std::abs(static_cast<int>(longest.estimated) - static_cast<int>(longest.by_ptxas)) <=
              static_cast<int>(longest.by_ptxas / 7));
      }
    }
}

TEST_CASE("some copies in a loop are made of one block only") {
  if (!find_ptxas()) {
    MESSAGE("skipped: no ptxas");
    return;
  }
  const std::string skipped = "setp.gt.f32 %p3, %f1, %f2; @%p3 bra over; xor.b32 %r6, %r6, %r1; over:";
  const Longest of_one_block = longest_copied({"one block", ""}, 80, 1000, all_from_to(50, 80, 1));
  CHECK(of_one_block.by_ptxas > 50);
  CHECK(of_one_block.estimated == of_one_block.by_ptxas);
  const Longest of_several = longest_copied({"a skipped block", skipped}, 80, 1000, all_from_to(4, 80, 4));
  CHECK(of_several.by_ptxas == 0);
  CHECK(of_several.estimated == 0);
}

TEST_CASE("loops that are left behind a skipped block are not copied") {
  if (!find_ptxas()) {
    MESSAGE("skipped: no ptxas");
    return;
  }
  const std::string skipped = "setp.gt.f32 %p3, %f1, %f2; @%p3 bra over; xor.b32 %r6, %r6, %r1; over:";
  const Longest in_middle = longest_copied({"left in the middle", skipped, true}, 80, 8, all_from_to(10, 90, 4));
  CHECK(in_middle.by_ptxas == 0);
  CHECK(in_middle.estimated == 0);
  const Longest at_end = longest_copied({"left at the end", skipped, false}, 80, 8, all_from_to(10, 90, 4));
  CHECK(at_end.by_ptxas > 0);
  CHECK(std::abs(static_cast<int>(at_end.estimated) - static_cast<int>(at_end.by_ptxas)) <= 8);
}

TEST_CASE("what a loop's limit may be where threads wait for each other") {
  if (!find_ptxas()) {
    MESSAGE("skipped: no ptxas");
    return;
  }
  struct Limit {
    const char* name;
    std::string before, inside; // the loop and in it: sets %r9
  };
  const std::vector<Limit> limits = {
      {"a parameter", "ld.param.u32 %r9, [n];", ""},
      {"the block's shape", "mov.u32 %r9, %ntid.x;", ""},
      {"a parameter that each trip reads", "", "ld.param.u32 %r9, [n];"},
      {"a variable", "ld.const.u32 %r9, [table];", ""},
      {"computed", "ld.param.u32 %r9, [n]; shr.u32 %r9, %r9, 4;", ""},
      {"computed in each trip", "", "ld.param.u32 %r9, [n]; add.u32 %r9, %r9, 5;"},
      {"the block's place", "mov.u32 %r9, %ctaid.x;", ""},
      {"loaded", "ld.global.u32 %r9, [%rd2];", ""},
  };
  const std::vector<std::pair<const char*, std::string>> bodies = {
      {"nothing", ""}, {"a barrier", "bar.sync 0;"}, {"an atomic", "atom.shared.add.u32 %r8, [%r5], 1;"}};
  for (uint32_t capability : {80u, 90u, 120u}) {
    std::string text = ".version 9.0\n.target sm_" + std::to_string(capability) +
                       "\n.address_size 64\n.const .align 4 .b8 table[64];\n";
    unsigned number = 0;
    for (const auto& [what, body] : bodies)
      for (const Limit& limit : limits)
        // The counter is copied at the end of a trip, as by front ends that name each assignment's result.
        text += ".visible .entry k" + std::to_string(number++) +
                "(.param .u64 p, .param .u64 q, .param .u32 n)\n{\n.reg .pred %p<3>; .reg .b32 %r<10>; .reg .b64 "
                "%rd<9>; .reg .f32 %f<3>;\nld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q]; mov.u32 %r1, 0; mov.u32 "
                "%r5, 16;\nmov.f32 %f1, 0f00000000; " +
                limit.before + "\nagain: " + limit.inside +
                "\nsetp.ge.s32 %p1, %r1, %r9; @%p1 bra done;\nmul.wide.s32 %rd3, %r1, 4; add.s64 %rd4, %rd1, %rd3; "
                "ld.global.f32 %f2, [%rd4];\n" +
                body +
                "\nadd.f32 %f1, %f1, %f2; add.s32 %r2, %r1, 1; mov.u32 %r1, %r2; bra again;\ndone:\n"
                "st.global.f32 [%rd2], %f1; ret;\n}\n";
    Result<FiguresByFunction> real = machine_figures(text, "sm_" + std::to_string(capability));
    REQUIRE(real.ok());
    ReadText read(text);
    REQUIRE_MESSAGE(read.ok(), read.messages());
    unsigned copied = 0;
    number = 0;
    for (const auto& [what, body] : bodies)
      for (const Limit& limit : limits) {
        Function& function = *read.module->functions[number];
        REQUIRE(construct_ssa(function).ok());
        // Rolled loops are 16 to 30 instructions long, copies make them at least 50.
        constexpr uint64_t longest_rolled = 40;
        const bool by_ptxas = real->at("k" + std::to_string(number++)).instructions > longest_rolled;
        const bool estimated = lower(function, capability).static_instructions() > longest_rolled;
        INFO("sm_" << capability << ", " << std::string(what) << ", limit: " << std::string(limit.name));
        CHECK(estimated == by_ptxas);
        copied += by_ptxas;
      }
    CHECK(copied > 8);
    CHECK(copied < number);
  }
}

// The distance between the limits is 2^64 - 1: no signed number, so the trips count as unknown.
TEST_CASE("a loop from the smallest to the largest number has no known trip count") {
  const auto copied = [](const std::string& start) {
    ReadText text(".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p, .param .u64 n)\n{\n"
                  ".reg .pred %p<3>; .reg .b64 %rd<9>;\nld.param.u64 %rd1, [p]; " +
                  start +
                  "\nagain: st.global.u64 [%rd1], %rd3; add.s64 %rd1, %rd1, 64; add.s64 %rd3, %rd3, 1;\n"
                  "setp.ne.s64 %p1, %rd3, 9223372036854775807; @%p1 bra again; ret;\n}\n");
    REQUIRE_MESSAGE(text.ok(), text.messages());
    REQUIRE(construct_ssa(text.function()).ok());
    return lower(text.function(), 80).unrolled_instructions();
  };
  CHECK(copied("mov.b64 %rd3, -9223372036854775808;") == copied("ld.param.u64 %rd3, [n];"));
}

} // namespace ptxrewrite::tests::unrolling_test
