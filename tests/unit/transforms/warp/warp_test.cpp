// The pass `warp`: found in its patterns, refused one step outside of them, and its obligations.
#include "grammar/reader.h"
#include "ir/core/print.h"
#include "transforms/manager/pipeline.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

using namespace ptxrewrite;

namespace {

struct Ran {
  std::string text;
  transforms::PipelineReport report;
  bool has(const std::string& part) const { return text.find(part) != std::string::npos; }
  size_t count(const std::string& part) const {
    size_t found = 0;
    for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
      ++found;
    return found;
  }
};

Ran run(const std::string& text, const std::string& passes = "warp(force)") {
  Diagnostics diagnostics;
  std::unique_ptr<ir::Module> module = grammar::read_module(SourceFile("test.ptx", text), diagnostics);
  std::string messages;
  for (const Diagnostic& diagnostic : diagnostics.list())
    messages += diagnostic.message + "\n";
  REQUIRE_MESSAGE(module, messages << text);
  transforms::RunOptions options;
  options.verify_each = true;
  options.run_ptxas = false;
  Result<transforms::PipelineReport> report =
      transforms::run_pipeline(*module, *transforms::parse_pipeline(passes), options);
  REQUIRE_MESSAGE(report, report.error().message);
  return {ir::print(*module), *std::move(report)};
}

std::string kernel(const std::string& body, const std::string& target = "sm_80", const std::string& directive = "") {
  return ".version 8.0\n.target " + target + "\n.address_size 64\n.visible .entry k(.param .u64 p, .param .u32 n)\n" +
         directive +
         "\n{\n.reg .b64 %rd<9>;\n.reg .b32 %r<60>;\n.reg .pred %p<20>;\n"
         "ld.param.u64 %rd1, [p];\nld.param.u32 %r50, [n];\nmov.u32 %r51, %tid.x;\nmul.wide.u32 %rd2, %r51, 4;\n"
         "add.s64 %rd3, %rd1, %rd2;\nld.global.u32 %r1, [%rd3];\n" +
         body + "ret;\n}\n";
}

struct Tree {
  std::string mode = "bfly", step = "add.s32", segment = "31", mask = "-1";
  std::vector<unsigned> offsets{16, 8, 4, 2, 1};
};

// A reduction from %r1 to %r11.
std::string shuffles(const Tree& tree) {
  std::string text;
  for (size_t i = 0; i < tree.offsets.size(); ++i) {
    const std::string from = "%r" + std::to_string(2 * i + 1), got = "%r" + std::to_string(2 * i + 2),
                      to = "%r" + std::to_string(2 * i + 3);
    text += "shfl.sync." + tree.mode + ".b32 " + got + "|%p1, " + from + ", " + std::to_string(tree.offsets[i]) + ", " +
            tree.segment + ", " + tree.mask + ";\n" + tree.step + " " + to + ", " + from + ", " + got + ";\n";
  }
  return text;
}

const std::string store = "st.global.u32 [%rd3], %r11;\n";
const std::string store_by_lane_zero = "and.b32 %r40, %r51, 31;\nsetp.ne.s32 %p2, %r40, 0;\n@%p2 bra END;\n"
                                       "st.global.u32 [%rd3], %r11;\nEND:\n";

Ran bfly(const Tree& tree, const std::string& target = "sm_80") {
  return run(kernel(shuffles(tree) + store, target));
}

} // namespace

TEST_CASE("warp: a butterfly over the whole warp is one redux, whatever the order of its offsets") {
  const struct {
    const char *step, *redux;
  } rows[] = {{"add.s32", "add.s32"}, {"add.u32", "add"},     {"min.s32", "min.s32"},
              {"min.u32", "min.u32"}, {"max.s32", "max.s32"}, {"max.u32", "max.u32"},
              {"and.b32", "and.b32"}, {"or.b32", "or.b32"},   {"xor.b32", "xor.b32"}};
  for (const auto& row : rows) {
    CAPTURE(std::string(row.step));
    Tree tree;
    tree.step = row.step;
    const Ran ran = bfly(tree);
    CHECK(ran.count("redux.sync." + std::string(row.redux)) == 1);
    CHECK(ran.has("//@ warp requires ntid.x * ntid.y * ntid.z % 32 == 0\n"));
    CHECK(ran.count("shfl") == 5); // the original's
  }
  CHECK(bfly({.offsets = {1, 2, 4, 8, 16}}).has("redux"));
  CHECK(bfly({.offsets = {4, 16, 1, 8, 2}}).has("redux"));
}

// Shuffles by the definition in the PTX ISA, on how often each lane's number is in a total.
TEST_CASE("warp: whatever the order of the offsets, each lane is in the total once") {
  constexpr unsigned lanes = 32;
  using Counts = std::array<unsigned, lanes>;
  std::array<unsigned, 5> offsets{1, 2, 4, 8, 16};
  do {
    for (const bool is_down : {false, true}) {
      std::array<Counts, lanes> totals{};
      for (unsigned lane = 0; lane < lanes; ++lane)
        totals[lane][lane] = 1;
      for (unsigned offset : offsets) {
        const std::array<Counts, lanes> before = totals;
        for (unsigned lane = 0; lane < lanes; ++lane) {
          const unsigned other = is_down ? (lane + offset < lanes ? lane + offset : lane) : lane ^ offset;
          for (unsigned one = 0; one < lanes; ++one)
            totals[lane][one] += before[other][one];
        }
      }
      Counts once;
      once.fill(1);
      for (unsigned lane = 0; lane < (is_down ? 1 : lanes); ++lane)
        CHECK(totals[lane] == once);
    }
  } while (std::ranges::next_permutation(offsets).found);
}

TEST_CASE("warp: what is no sum over all 32 lanes once stays") {
  CHECK_FALSE(bfly({.offsets = {16, 8, 4, 2}}).has("redux"));
  CHECK_FALSE(bfly({.offsets = {16, 8, 4, 2, 2}}).has("redux"));
  CHECK_FALSE(bfly({.offsets = {31, 0, 0, 0, 0}}).has("redux"));
  CHECK_FALSE(bfly({.offsets = {16, 8, 4, 3, 1}}).has("redux"));
  CHECK_FALSE(bfly({.segment = "4127"}).has("redux")); // segments of 16 lanes
  CHECK_FALSE(bfly({.segment = "30"}).has("redux"));
  CHECK_FALSE(bfly({.mask = "0x7fffffff"}).has("redux"));
  CHECK_FALSE(bfly({.mask = "%r50"}).has("redux"));
  CHECK_FALSE(bfly({.mode = "up", .segment = "0"}).has("redux"));
  CHECK_FALSE(bfly({.step = "mul.lo.s32"}).has("redux"));
  CHECK_FALSE(bfly({.step = "sub.s32"}).has("redux"));
  CHECK_FALSE(bfly({.step = "add.sat.s32"}).has("redux"));
}

TEST_CASE("warp: a tree that someone reads inside stays, and so does one of two kinds of steps") {
  CHECK_FALSE(run(kernel(shuffles({}) + store + "st.global.u32 [%rd3+4], %r5;\n")).has("redux"));
  CHECK_FALSE(run(kernel(shuffles({}) + store + "st.global.u32 [%rd3+4], %r6;\n")).has("redux"));
  // The first one's source may have other readers.
  CHECK(run(kernel(shuffles({}) + store + "st.global.u32 [%rd3+4], %r1;\n")).has("redux"));
  std::string mixed = shuffles({});
  mixed.replace(mixed.rfind("add.s32"), 7, "max.s32");
  CHECK_FALSE(run(kernel(mixed + store)).has("redux"));
  // Whether the source lane takes part is unknown.
  CHECK_FALSE(
      run(kernel(shuffles({}) + store + "selp.u32 %r30, 1, 0, %p1;\nst.global.u32 [%rd3+4], %r30;\n")).has("redux"));
}

TEST_CASE("warp: redux needs PTX 7.0 and sm_80, votes neither") {
  CHECK_FALSE(bfly({}, "sm_75").has("redux"));
  const std::string flag = "setp.gt.u32 %p5, %r1, %r50;\nselp.u32 %r1, 1, 0, %p5;\n";
  const Ran ran = run(kernel(flag + shuffles({}) + store, "sm_70"));
  CHECK(ran.has("vote.sync.ballot.b32"));
  CHECK(ran.has("popc.b32"));
}

TEST_CASE("warp: minima and maxima of floats are redux where the target has it") {
  const auto floats = [](const std::string& step, const std::string& target, const std::string& mode = "bfly",
                         const std::string& behind = "st.global.f32 [%rd3], %f1;\n") {
    std::string body = ".reg .f32 %f<9>;\nmov.b32 %f1, %r1;\n";
    for (const char* lane : {"16", "8", "4", "2", "1"})
      body += "mov.b32 %r2, %f1;\nshfl.sync." + mode + ".b32 %r3|%p1, %r2, " + lane + ", 31, -1;\nmov.b32 %f2, %r3;\n" +
              step + " %f1, %f1, %f2;\n";
    std::string text = kernel(body + behind, target);
    text.replace(text.find("8.0"), 3, "8.6");
    return run(text);
  };
  for (const char* step : {"min.f32", "max.f32", "min.NaN.f32", "max.NaN.f32"}) {
    CAPTURE(std::string(step));
    const Ran ran = floats(step, "sm_100a");
    CHECK(ran.count("redux.sync." + std::string(step)) == 1);
    CHECK(ran.has("//@ warp requires ntid.x * ntid.y * ntid.z % 32 == 0\n"));
    CHECK_FALSE(floats(step, "sm_100").has("redux"));
    CHECK_FALSE(floats(step, "sm_90").has("redux"));
  }
  // Sums depend on their order; flushed subnormal numbers, absolute values and signs are not those of redux.
  for (const char* step : {"add.f32", "max.ftz.f32", "min.ftz.NaN.f32", "max.xorsign.abs.f32", "mul.f32"})
    CHECK_FALSE(floats(step, "sm_100a").has("redux"));
  // The shuffled bits have another reader.
  CHECK_FALSE(
      floats("max.f32", "sm_100a", "bfly", "st.global.u32 [%rd3], %r3;\nst.global.f32 [%rd3+4], %f1;\n").has("redux"));
  CHECK_FALSE(
      floats("max.f32", "sm_100a", "bfly", "st.global.u32 [%rd3], %r2;\nst.global.f32 [%rd3+4], %f1;\n").has("redux"));
  CHECK_FALSE(floats("max.f32", "sm_100a", "down").has("redux")); // every lane reads it
}

TEST_CASE("warp: reductions of 0s and 1s are votes") {
  const std::string yes = "setp.gt.u32 %p5, %r1, %r50;\nselp.u32 %r1, 1, 0, %p5;\n",
                    no = "setp.gt.u32 %p5, %r1, %r50;\nselp.b32 %r1, 0, 1, %p5;\n";
  const auto reduced = [&](const std::string& flag, const char* step) {
    return run(kernel(flag + shuffles({.step = step}) + store));
  };
  CHECK(reduced(yes, "add.s32").has("popc.b32"));
  CHECK(reduced(no, "add.s32").has(", !%p"));
  for (const char* step : {"or.b32", "max.s32", "max.u32"})
    CHECK(reduced(yes, step).has("vote.sync.any.pred"));
  for (const char* step : {"and.b32", "min.s32", "min.u32"})
    CHECK(reduced(yes, step).has("vote.sync.all.pred"));
  CHECK(reduced(yes, "xor.b32").has("redux.sync.xor.b32"));
  CHECK(reduced("setp.gt.u32 %p5, %r1, %r50;\nselp.u32 %r1, 2, 0, %p5;\n", "add.s32").has("redux.sync.add.s32"));
}

TEST_CASE("warp: shfl.down leaves the total in lane 0, who alone may read it") {
  const std::string down = shuffles({.mode = "down"});
  CHECK_FALSE(run(kernel(down + store)).has("redux"));
  const Ran alone = run(kernel(down + store_by_lane_zero));
  CHECK(alone.has("redux.sync.add.s32"));
  CHECK(alone.has("//@ warp requires ntid.x % 32 == 0\n"));
  CHECK_FALSE(run(kernel(down + store_by_lane_zero + "st.global.u32 [%rd3+4], %r11;\n")).has("redux"));
  const std::string guarded = "setp.eq.s32 %p2, %r51, 0;\n@%p2 st.global.u32 [%rd3], %r11;\n";
  CHECK(run(kernel(down + guarded)).has("redux"));
  CHECK_FALSE(run(kernel(down + "setp.eq.s32 %p2, %r51, 1;\n@%p2 st.global.u32 [%rd3], %r11;\n")).has("redux"));
  CHECK_FALSE(run(kernel(down + "setp.eq.s32 %p2, %r51, 0;\n@!%p2 st.global.u32 [%rd3], %r11;\n")).has("redux"));
  // %laneid identifies lane 0 in blocks of any shape.
  const Ran lane =
      run(kernel("mov.u32 %r41, %laneid;\n" + down + "setp.eq.s32 %p2, %r41, 0;\n@%p2 st.global.u32 [%rd3], %r11;\n"));
  CHECK(lane.has("//@ warp requires ntid.x * ntid.y * ntid.z % 32 == 0\n"));
  // One of two conditions suffices to name lane 0 if both must hold, not if either may.
  const std::string two = "setp.eq.s32 %p2, %r51, 0;\nsetp.eq.s32 %p3, %r50, 7;\n";
  CHECK(run(kernel(down + two + "and.pred %p4, %p2, %p3;\n@%p4 st.global.u32 [%rd3], %r11;\n")).has("redux"));
  CHECK_FALSE(run(kernel(down + two + "or.pred %p4, %p2, %p3;\n@%p4 st.global.u32 [%rd3], %r11;\n")).has("redux"));
}

TEST_CASE("warp: a broadcast of lane 0's total is the total") {
  const std::string down = shuffles({.mode = "down"});
  const auto broadcast = [&](const std::string& lane) {
    return run(kernel(down + "shfl.sync.idx.b32 %r12|%p3, %r11, " + lane + ", 31, -1;\nst.global.u32 [%rd3], %r12;\n"));
  };
  CHECK(broadcast("0").has("redux"));
  CHECK(broadcast("0").count("shfl.sync.idx") == 1); // the original's
  CHECK_FALSE(broadcast("1").has("redux"));
}

TEST_CASE("warp: lanes that may have left are not counted on") {
  // The condition differs between threads.
  const std::string leaves = "setp.ge.s32 %p9, %r51, %r50;\n@%p9 bra END;\n";
  CHECK_FALSE(run(kernel(leaves + shuffles({}) + store + "END:\n")).has("redux"));
  CHECK_FALSE(run(kernel("setp.ge.s32 %p9, %r51, %r50;\n@%p9 ret;\n" + shuffles({}) + store)).has("redux"));
  CHECK_FALSE(run(kernel("setp.ge.s32 %p9, %r51, %r50;\n@%p9 exit;\n" + shuffles({}) + store)).has("redux"));
  // The condition is block-uniform, then warp-uniform.
  const std::string block = "mov.u32 %r45, %ctaid.x;\nsetp.ge.s32 %p9, %r45, %r50;\n@%p9 bra END;\n";
  CHECK(run(kernel(block + shuffles({}) + store + "END:\n")).has("redux"));
  const std::string warp = "mov.u32 %r46, %ntid.x;\nmov.u32 %r45, %ctaid.x;\nmad.lo.s32 %r47, %r45, %r46, %r51;\n"
                           "shr.u32 %r48, %r47, 5;\nsetp.ge.u32 %p9, %r48, %r50;\n@%p9 bra END;\n";
  const Ran by_warp = run(kernel(warp + shuffles({}) + store + "END:\n"));
  CHECK(by_warp.has("redux"));
  CHECK(by_warp.has("//@ warp requires ntid.x % 32 == 0\n"));
  CHECK(run(kernel("setp.gt.u32 %p9, %r51, 63;\n@%p9 bra END;\n" + shuffles({}) + store + "END:\n")).has("redux"));
  CHECK_FALSE(
      run(kernel("setp.gt.u32 %p9, %r51, 64;\n@%p9 bra END;\n" + shuffles({}) + store + "END:\n")).has("redux"));
  CHECK_FALSE(
      run(kernel("setp.lt.u32 %p9, %r51, 63;\n@%p9 bra END;\n" + shuffles({}) + store + "END:\n")).has("redux"));
  // One of two numbers in a register differs between lanes.
  CHECK_FALSE(run(kernel("mov.b64 %rd5, {%r50, %r51};\nsetp.gt.u64 %p9, %rd5, 7;\n@%p9 bra END;\n" + shuffles({}) +
                         store + "END:\n"))
                  .has("redux"));
  CHECK(run(kernel("mov.b64 %rd5, {%r50, %r50};\nsetp.gt.u64 %p9, %rd5, 7;\n@%p9 bra END;\n" + shuffles({}) + store +
                   "END:\n"))
            .has("redux"));
  // Lanes that diverge and reconverge are all present.
  const std::string meets = "setp.ge.s32 %p9, %r51, %r50;\n@%p9 bra MEET;\nst.global.u32 [%rd3+8], %r51;\nMEET:\n";
  CHECK(run(kernel(meets + shuffles({}) + store)).has("redux"));
}

TEST_CASE("warp: a loop that lanes leave one by one ends the warp's company, one that they leave together does not") {
  const auto in_loop = [&](const std::string& bound) {
    return kernel("mov.u32 %r30, 0;\nLOOP:\nld.global.u32 %r1, [%rd3];\n" + shuffles({}) + store +
                  "add.s32 %r30, %r30, 1;\nsetp.lt.s32 %p9, %r30, " + bound + ";\n@%p9 bra LOOP;\n");
  };
  CHECK(run(in_loop("%r50")).has("redux"));
  CHECK_FALSE(run(in_loop("%r51")).has("redux"));
  // After such a loop all lanes are present again, but with different numbers of trips.
  const std::string behind = "mov.u32 %r30, 0;\nLOOP:\nadd.s32 %r30, %r30, 1;\nsetp.lt.s32 %p9, %r30, %r51;\n"
                             "@%p9 bra LOOP;\n";
  CHECK(run(kernel(behind + shuffles({}) + store)).has("redux"));
  CHECK_FALSE(run(kernel(behind + "setp.gt.s32 %p10, %r30, 9;\n@%p10 bra END;\n" + shuffles({}) + store + "END:\n"))
                  .has("redux"));
}

TEST_CASE("warp: a loop that shuffles in five trips is a tree; one that does more or less is none") {
  const auto loop = [](const std::string& start, const std::string& next, const std::string& test,
                       const std::string& inside = "", const std::string& mode = "bfly",
                       const std::string& end = store) {
    std::string tail = end;
    for (size_t at = tail.find("%r11"); at != std::string::npos; at = tail.find("%r11"))
      tail.replace(at, 4, "%r1");
    return run(kernel("mov.u32 %r30, " + start + ";\nLOOP:\n" + next + "shfl.sync." + mode +
                      ".b32 %r2|%p1, %r1, %r31, 31, -1;\nadd.s32 %r1, %r1, %r2;\n" + inside + test +
                      "mov.u32 %r30, %r31;\n@%p9 bra LOOP;\n" + tail));
  };
  const std::string halved = "shr.u32 %r32, %r30, 31;\nadd.s32 %r33, %r30, %r32;\nshr.s32 %r31, %r33, 1;\n";
  const std::string more = "setp.gt.s32 %p9, %r30, 3;\n";
  const Ran ran = loop("WARP_SZ", halved, more);
  CHECK(ran.count("redux.sync.add.s32") == 1);
  CHECK(ran.count("bra") == 1); // the original's
  CHECK(loop("32", halved, more, "", "down", store_by_lane_zero).has("redux"));
  CHECK_FALSE(loop("32", halved, more, "", "down").has("redux"));
  CHECK(
      loop("0",
           "shl.b32 %r34, %r30, 1;\nadd.s32 %r35, %r34, 0;\nsetp.eq.s32 %p5, %r30, 0;\nselp.u32 %r31, 1, %r35, %p5;\n",
           "setp.lt.s32 %p9, %r31, 16;\n")
          .has("shfl")); // selections are not followed
  CHECK_FALSE(loop("16", halved, more).has("redux"));
  CHECK_FALSE(loop("64", halved, more).has("redux"));
  CHECK_FALSE(loop("32", halved, "setp.gt.s32 %p9, %r30, 7;\n").has("redux"));
  CHECK_FALSE(loop("32", halved, "setp.gt.s32 %p9, %r30, 1;\n").has("redux"));
  CHECK_FALSE(loop("%r50", halved, more).has("redux"));
  CHECK_FALSE(loop("32", halved, more, "st.global.u32 [%rd3+4], %r2;\n").has("redux"));
  CHECK_FALSE(loop("32", halved, more, "add.s32 %r1, %r1, 1;\n").has("redux"));
  CHECK_FALSE(loop("32", halved, more, "", "bfly", store + "st.global.u32 [%rd3+4], %r31;\n").has("redux"));
}

TEST_CASE("warp: .reqntid proves what else is left to the launch") {
  const std::string body = shuffles({}) + store;
  const Ran full = run(kernel(body, "sm_80", ".reqntid 64"));
  CHECK(full.has("redux"));
  CHECK_FALSE(full.has("requires"));
  CHECK(full.count(".entry") == 1);
  CHECK(run(kernel(body, "sm_80", ".reqntid 16, 16")).count(".entry") == 1);
  CHECK(run(kernel(shuffles({.mode = "down"}) + store_by_lane_zero, "sm_80", ".reqntid 16, 16"))
            .has("requires ntid.x % 32 == 0"));
}

TEST_CASE("warp: masks of lanes, in any of their shapes") {
  const struct {
    const char *code, *mask;
  } rows[] = {
      {"shl.b32 %r2, -1, %r40;\nnot.b32 %r3, %r2;\n", "%lanemask_lt"},
      {"shl.b32 %r2, 1, %r40;\nadd.s32 %r3, %r2, -1;\n", "%lanemask_lt"},
      {"shl.b32 %r2, 1, %r40;\nsub.s32 %r3, %r2, 1;\n", "%lanemask_lt"},
      {"sub.s32 %r2, 32, %r40;\nshr.u32 %r3, -1, %r2;\n", "%lanemask_lt"},
      {"shl.b32 %r2, 2, %r40;\nadd.s32 %r3, %r2, -1;\n", "%lanemask_le"},
      {"shl.b32 %r2, -2, %r40;\nnot.b32 %r3, %r2;\n", "%lanemask_le"},
      {"xor.b32 %r2, %r40, 31;\nshr.u32 %r3, -1, %r2;\n", "%lanemask_le"},
      {"shl.b32 %r2, 1, %r40;\nneg.s32 %r3, %r2;\n", "%lanemask_ge"},
      {"shl.b32 %r3, -1, %r40;\n", "%lanemask_ge"},
      {"shl.b32 %r3, -2, %r40;\n", "%lanemask_gt"},
      {"shl.b32 %r3, 1, %r40;\n", "%lanemask_eq"},
  };
  for (const auto& row : rows) {
    CAPTURE(std::string(row.code));
    const std::string body = "and.b32 %r40, %r51, 31;\n" + std::string(row.code) + "st.global.u32 [%rd3], %r3;\n";
    const Ran ran = run(kernel(body));
    CHECK(ran.has(row.mask));
    CHECK(ran.has("//@ warp requires ntid.x % 32 == 0 || ntid.y * ntid.z == 1\n"));
    CHECK(run(kernel(body, "sm_80", ".reqntid 48")).count(".entry") == 1);
    CHECK(run(kernel(body, "sm_80", ".reqntid 48, 2")).count(".entry") == 2);
  }
  const auto has_mask = [](const std::string& code) {
    return run(kernel(code + "st.global.u32 [%rd3], %r3;\n")).has("%lanemask");
  };
  CHECK_FALSE(has_mask("and.b32 %r40, %r51, 15;\nshl.b32 %r2, 1, %r40;\nadd.s32 %r3, %r2, -1;\n"));
  CHECK_FALSE(has_mask("and.b32 %r40, %r51, 31;\nshl.b32 %r2, 3, %r40;\nadd.s32 %r3, %r2, -1;\n"));
  CHECK_FALSE(has_mask("and.b32 %r40, %r50, 31;\nshl.b32 %r2, 1, %r40;\nadd.s32 %r3, %r2, -1;\n"));
  CHECK_FALSE(has_mask("shl.b32 %r2, 1, %r51;\nadd.s32 %r3, %r2, -1;\n")); // amounts above 31
  const Ran lane = run(kernel("mov.u32 %r40, %laneid;\nshl.b32 %r2, 1, %r40;\nadd.s32 %r3, %r2, -1;\n"
                              "st.global.u32 [%rd3], %r3;\n"));
  CHECK(lane.has("%lanemask_lt"));
  CHECK(lane.count(".entry") == 1);
}

TEST_CASE("warp: a barrier of a block that is one warp") {
  const auto with = [](const std::string& barrier, const std::string& directive) {
    return run(kernel(barrier + "\n", "sm_80", directive)).has("bar.warp.sync");
  };
  CHECK(with("bar.sync 0;", ".maxntid 32"));
  CHECK(with("bar.sync 0;", ".reqntid 8, 4"));
  CHECK(with("barrier.sync.aligned 3;", ".maxntid 16"));
  CHECK_FALSE(with("bar.sync 0;", ".maxntid 33"));
  CHECK_FALSE(with("bar.sync 0;", ".maxntid 32, 2"));
  CHECK_FALSE(with("bar.sync 0;", ""));
  CHECK_FALSE(with("barrier.sync 0;", ".maxntid 32"));
  CHECK_FALSE(with("bar.sync 0, 32;", ".maxntid 32"));
  CHECK_FALSE(with("bar.arrive 0, 64;\nbar.sync 0;", ".maxntid 32"));
}

TEST_CASE("warp: nothing is taken in functions that kernels call, and behind calls") {
  const std::string text = ".version 8.0\n.target sm_80\n.address_size 64\n.func (.reg .b32 %r11) f(.reg .b32 %r1)\n{\n"
                           ".reg .b32 %r<20>;\n.reg .pred %p<3>;\n";
  std::string tree = shuffles({});
  CHECK_FALSE(run(text.substr(0, text.find(".func")) +
                  ".func (.param .b32 out) f(.param .b32 in)\n{\n.reg .b32 %r<20>;\n.reg .pred %p<3>;\n"
                  "ld.param.b32 %r1, [in];\n" +
                  tree + "st.param.b32 [out], %r11;\nret;\n}\n")
                  .has("redux"));
}
