// The memory family: its rewrites, the cases one step outside of its rules, and its launch predicates against brute
// force: buffers moved over one another byte by byte, with every thread run.
#include "grammar/reader.h"
#include "ir/core/print.h"
#include "launch/variants.h"
#include "support/file_io.h"
#include "tests/unit/paths.h"
#include "tests/unit/transforms/kernel_evaluator.h"
#include "transforms/manager/pipeline.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

using namespace ptxrewrite;
using ptxrewrite::tests::KernelEvaluator;

namespace {

struct Rewritten {
  std::unique_ptr<ir::Module> module;
  std::string text;
  transforms::PipelineReport report;
};

Rewritten rewrite(const std::string& text, const std::string& passes = "memory(force)") {
  Diagnostics diagnostics;
  Rewritten result;
  result.module = grammar::read_module(SourceFile("test.ptx", text), diagnostics);
  REQUIRE_MESSAGE(result.module, text);
  auto pipeline = transforms::parse_pipeline(passes);
  REQUIRE(pipeline);
  transforms::RunOptions options;
  options.verify_each = true;
  options.run_ptxas = false;
  auto report = transforms::run_pipeline(*result.module, *pipeline, options);
  REQUIRE_MESSAGE(report, report.error().message);
  result.report = *std::move(report);
  ir::print(*result.module, result.text);
  return result;
}

// Parameters n, x, y, z; %r4 is the thread's number in the grid; the pointers are %rd1 to %rd3.
std::string kernel(const std::string& body, const std::string& target = "sm_80", const std::string& version = "8.0") {
  return ".version " + version + "\n.target " + target +
         "\n.address_size 64\n.visible .entry k(.param .u32 n, .param .u64 x, .param .u64 y, .param .u64 z)\n{\n"
         ".reg .pred %p<9>; .reg .b16 %h<20>; .reg .b32 %r<60>; .reg .f32 %f<40>; .reg .b64 %rd<40>; .reg .f64 %d<9>;\n"
         ".shared .align 16 .b8 tile[256];\n"
         "ld.param.u32 %r1, [n]; ld.param.u64 %rd4, [x]; ld.param.u64 %rd5, [y]; ld.param.u64 %rd6, [z];\n"
         "cvta.to.global.u64 %rd1, %rd4; cvta.to.global.u64 %rd2, %rd5; cvta.to.global.u64 %rd3, %rd6;\n"
         "mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r5, %tid.x; mad.lo.s32 %r4, %r2, %r3, %r5;\n"
         "setp.ge.s32 %p1, %r4, %r1; @%p1 bra DONE;\n" +
         body + "\nDONE: ret;\n}\n";
}

// The thread's element of 4 bytes in each buffer: %rd11 to %rd13.
const std::string elements = "mul.wide.s32 %rd10, %r4, 4; add.s64 %rd11, %rd1, %rd10; add.s64 %rd12, %rd2, %rd10;"
                             "add.s64 %rd13, %rd3, %rd10;\n";
// Four of them: %rd21, %rd22.
const std::string quads = "mul.wide.s32 %rd20, %r4, 16; add.s64 %rd21, %rd1, %rd20; add.s64 %rd22, %rd2, %rd20;\n";
const std::string four_loads = "ld.global.f32 %f1, [%rd21]; ld.global.f32 %f2, [%rd21+4]; ld.global.f32 %f3, [%rd21+8];"
                               "ld.global.f32 %f4, [%rd21+12];\n";
const std::string four_stores =
    "st.global.f32 [%rd22], %f1; st.global.f32 [%rd22+4], %f2; st.global.f32 [%rd22+8], %f3;"
    "st.global.f32 [%rd22+12], %f4;\n";
const std::string behind_a_store = elements + "ld.global.f32 %f1, [%rd11]; st.global.f32 [%rd12], %f1;"
                                              "ld.global.u32 %r40, [%rd11]; st.global.u32 [%rd13], %r40;";

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++found;
  return found;
}

size_t read_only_loads(const std::string& body) {
  return count(rewrite(kernel(body)).text, "ld.global.nc.");
}
size_t vectors(const std::string& body) {
  const std::string text = rewrite(kernel(body)).text;
  return count(text, ".v2.") + count(text, ".v4.") + count(text, ".v8.");
}

const ir::Function& function_named(const ir::Module& module, const std::string& name) {
  for (const auto& function : module.functions)
    if (module.text(function->name) == name) return *function;
  FAIL("no function " << name);
  return *module.functions.front();
}

struct Trial {
  bool chosen = false;
  bool takes_unaligned = false; // the variant without conditions on alignment
  bool apart = false;           // no byte that a read-only load reads is written
  bool aligned = true;          // all vector accesses
  bool ranges_apart = false;    // and is not between written ones
};

// Launches by the rewritten kernel's side file: the variant runs only if it was chosen.
Trial try_launch(const Rewritten& rewritten, const std::string& name, const ir::LaunchValues& launch) {
  const ir::Module& module = *rewritten.module;
  auto variants = launch::Variants::of(module, nullptr);
  REQUIRE(variants);
  std::vector<std::byte> block;
  const launch::Signature signature = launch::signature_of(function_named(module, name));
  block.resize(signature.bytes);
  for (size_t i = 0; i < launch.parameters.size(); ++i)
    for (size_t byte = 0; byte < launch.parameters[i].size(); ++byte)
      block[signature.parameters[i].offset + byte] = std::byte(launch.parameters[i][byte]);
  auto choice = variants->choose(name, block, {launch.grid[0], launch.grid[1], launch.grid[2]},
                                 {launch.block[0], launch.block[1], launch.block[2]});
  REQUIRE(choice);
  Trial trial;
  const std::string entry(module.text(choice->entry->name));
  trial.chosen = entry == name + "__memory";
  trial.takes_unaligned = entry == name + "__memory_unaligned";
  std::set<uint64_t> read, written;
  for (const auto& trace : KernelEvaluator(function_named(module, name + "__memory"), launch).run())
    for (const auto& event : trace) {
      const ir::Form& form = ir::form(ir::known_form(event.mnemonic));
      const unsigned bytes = ir::bit_width(form.type()) / 8 * form.vector_width;
      if (form.space != ir::StateSpace::global) continue;
      if (form.vector_width > 1 && event.address % bytes != 0) trial.aligned = false;
      for (unsigned i = 0; i < bytes; ++i) {
        if (form.opcode != ir::Opcode::ld) written.insert(event.address + i);
        if (form.has(ir::Modifier::nc)) read.insert(event.address + i);
      }
    }
  trial.apart = true;
  for (uint64_t byte : read)
    trial.apart &= !written.contains(byte);
  trial.ranges_apart =
      !read.empty() && !written.empty() && (*read.rbegin() < *written.begin() || *written.rbegin() < *read.begin());
  return trial;
}

ir::LaunchValues launch_of(uint32_t block, uint32_t grid,
                           std::initializer_list<std::pair<uint64_t, unsigned>> parameters) {
  ir::LaunchValues launch;
  launch.block = {block, 1, 1};
  launch.grid = {grid, 1, 1};
  for (auto [value, bytes] : parameters)
    launch.add_parameter(value, bytes);
  return launch;
}

} // namespace

TEST_CASE("loads of what is not written become read-only, under a condition") {
  Rewritten rewritten = rewrite(kernel(behind_a_store));
  CHECK(count(rewritten.text, "ld.global.nc.f32") == 1);
  CHECK(count(rewritten.text, "ld.global.nc.u32") == 1);
  CHECK(count(rewritten.text, "//@ memory original k") == 1);
  CHECK(count(rewritten.text, "//@ memory requires P2 >= 4*sext32(P0) + P1 || P1 >= 4*sext32(P0) + P2") == 1);
  CHECK(count(rewritten.text, "//@ memory requires P3 >= 4*sext32(P0) + P1 || P1 >= 4*sext32(P0) + P3") == 1);
  for (const transforms::Obligation& entry : rewritten.report.ledger)
    CHECK(entry.discharge == transforms::Discharge::launch_checked);
}

TEST_CASE("loads are left alone where they may read what is written, by this kernel or by others") {
  CHECK(read_only_loads(behind_a_store) == 2);
  // The same pointer.
  CHECK(read_only_loads(elements + "ld.global.f32 %f1, [%rd11]; st.global.f32 [%rd11], %f1;"
                                   "ld.global.f32 %f2, [%rd11]; st.global.f32 [%rd11], %f2;") == 0);
  // The kernel writes to an address known only at run time.
  CHECK(read_only_loads(behind_a_store + "ld.global.u32 %r10, [%rd11]; mul.wide.s32 %rd30, %r10, 4;"
                                         "add.s64 %rd31, %rd2, %rd30; st.global.u32 [%rd31], 1;") == 0);
  // The kernel reads from an address known only at run time: that load stays, others may change.
  const std::string gather = "ld.global.u32 %r10, [%rd11]; mul.wide.s32 %rd30, %r10, 4; add.s64 %rd31, %rd3, %rd30;"
                             "st.global.f32 [%rd12], 0f00000000; ld.global.f32 %f1, [%rd31];"
                             "ld.global.f32 %f2, [%rd11]; add.f32 %f3, %f1, %f2; st.global.f32 [%rd12], %f3;";
  CHECK(read_only_loads(elements + gather) == 2);
  CHECK(read_only_loads("ld.volatile.global.u32 %r10, [%rd3];" + behind_a_store) == 0);
  CHECK(read_only_loads("ld.acquire.gpu.global.u32 %r10, [%rd3];" + behind_a_store) == 0);
  CHECK(read_only_loads("atom.global.add.u32 %r10, [%rd3], 1; membar.gl;" + behind_a_store) == 0);
  CHECK(read_only_loads("red.global.add.u32 [%rd3], 1; membar.gl;" + behind_a_store) == 2);
  CHECK(read_only_loads("atom.global.add.u32 %r10, [%rd3], 1;" + behind_a_store) == 2);
  CHECK(read_only_loads("bar.sync 0;" + behind_a_store) == 2);
  CHECK(read_only_loads("ld.volatile.shared.u32 %r10, [tile];" + behind_a_store) == 2);
  // A store of bytes whose number is an operand.
  const auto in_bulk = [](const std::string& body) {
    return count(rewrite(kernel(body + behind_a_store, "sm_100", "8.6")).text, "global.nc");
  };
  CHECK(in_bulk("") == 2);
  CHECK(in_bulk("st.bulk.weak.shared::cta [tile], 64, 0;") == 2);
  CHECK(in_bulk("st.bulk.weak [%rd5], 64, 0;") == 0);
  CHECK(count(rewrite(kernel("griddepcontrol.wait;" + behind_a_store, "sm_90")).text, "global.nc") == 0);
  CHECK(count(rewrite(kernel(behind_a_store, "sm_30", "6.0")).text, "global.nc") == 0);
  // No write precedes them.
  CHECK(read_only_loads(elements + "ld.global.f32 %f1, [%rd11]; st.global.f32 [%rd12], %f1;") == 0);
  // Without a launcher no rewrite may depend on the launch.
  CHECK(count(rewrite(kernel(behind_a_store), "memory(force,discharge=proved)").text, "global.nc") == 0);
}

TEST_CASE("a buffer moved over the other byte by byte: the predicate holds where it must and only there") {
  Rewritten rewritten = rewrite(kernel(behind_a_store));
  size_t chosen = 0;
  for (int64_t distance = -70; distance <= 70; ++distance)
    for (uint32_t n : {1u, 3u, 8u}) {
      const uint64_t x = 0x10000, y = x + static_cast<uint64_t>(distance);
      Trial trial = try_launch(rewritten, "k", launch_of(4, 2, {{n, 4}, {x, 8}, {y, 8}, {0x20000, 8}}));
      CAPTURE(distance);
      CHECK(trial.chosen == trial.apart);
      CHECK(trial.apart == (distance >= int64_t(4 * n) || distance <= -int64_t(4 * n)));
      chosen += trial.chosen;
    }
  CHECK(chosen > 100);
  // No thread, a negative number of elements, addresses that wrap, more threads than numbers: the original runs.
  for (uint32_t n : {0u, 0xffffffffu, 0x80000000u})
    CHECK(!try_launch(rewritten, "k", launch_of(4, 2, {{n, 4}, {0x10000, 8}, {0x20000, 8}, {0x30000, 8}})).chosen);
  CHECK(!try_launch(rewritten, "k", launch_of(4, 2, {{8, 4}, {0xfffffffffffffff0, 8}, {0x20000, 8}, {0x30000, 8}}))
             .chosen);
  CHECK(try_launch(rewritten, "k", launch_of(4, 2, {{8, 4}, {0x10000, 8}, {0x20000, 8}, {0x30000, 8}})).chosen);
}

TEST_CASE("sums in memory: rows of a matrix in loops of four trips and of one") {
  const std::string text = *read_file(tests::source_path("samples/mvt/mvt.ptx"));
  Rewritten rewritten = rewrite(text);
  size_t chosen = 0, aliased = 0, unaligned = 0;
  for (const std::string name : {"mvt_rows", "mvt_columns"})
    for (uint32_t n : {1u, 2u, 4u, 7u, 8u, 12u})
      for (int64_t moved = -8; moved <= 300; moved += 4)
        for (uint64_t a : {uint64_t(0x10000), uint64_t(0x10004)}) {
          const uint64_t sums = 0x10000 + static_cast<uint64_t>(moved);
          const ir::LaunchValues launch = launch_of(4, (n + 3) / 4, {{n, 4}, {a, 8}, {sums, 8}, {0x8000, 8}});
          Trial trial = try_launch(rewritten, name, launch);
          CAPTURE(n);
          CAPTURE(moved);
          if (trial.chosen) CHECK((trial.apart && trial.aligned));
          // Rows need n a multiple of 4, for their vectors.
          const bool fits = name == "mvt_columns" || (n % 4 == 0 && a % 16 == 0);
          if (!trial.chosen) CHECK((!trial.ranges_apart || !fits));
          // The variant without vectors keeps the read-only loads where only the alignment fails. The two read the same
          // bytes.
          if (trial.takes_unaligned) CHECK((trial.apart && !fits));
          if (!trial.chosen && !trial.takes_unaligned) CHECK(!trial.ranges_apart);
          chosen += trial.chosen;
          unaligned += trial.takes_unaligned;
          aliased += !trial.apart;
        }
  CHECK(chosen > 200);
  CHECK(unaligned > 200);
  CHECK(aliased > 100);
}

TEST_CASE("a variant without alignment conditions is tried after the one with them, if it is one") {
  const std::string in_between = "ld.global.f32 %f5, [%rd21+64]; st.global.f32 [%rd13], %f5;";
  const Rewritten both = rewrite(kernel(elements + quads + four_loads + four_stores + in_between));
  const std::string& text = both.text;
  const size_t original = text.find(".entry k("), first = text.find(".entry k__memory("),
               second = text.find(".entry k__memory_unaligned(");
  REQUIRE(second != std::string::npos);
  CHECK((original < first && first < second));
  CHECK(count(text, "//@ memory original k\n") == 2);
  CHECK(count(text.substr(first, second - first), " % 16 == 0") == 2);
  CHECK(count(text.substr(first, second - first), ".v4.") == 2);
  CHECK(count(text.substr(second), " % ") == 0);
  CHECK(count(text.substr(second), ".v4.") == 0);
  CHECK(count(text.substr(second), "ld.global.nc.f32") == 5);
  // Its conditions stand under its own name.
  size_t own = 0;
  for (const transforms::Obligation& entry : both.report.ledger)
    if (entry.function == "k__memory_unaligned") {
      ++own;
      CHECK(entry.reason.find(" % ") == std::string::npos);
    }
  CHECK(own > 0);
  // Only vectors, or only read-only loads: no third form.
  CHECK(count(rewrite(kernel(quads + four_loads + four_stores)).text, ".entry") == 2);
  CHECK(count(rewrite(kernel(behind_a_store)).text, ".entry") == 2);
  // Later passes extend both variants and rewrite the original, where that depends on no launch.
  const std::string narrowed = rewrite(kernel(elements + quads + four_loads + four_stores + in_between +
                                              "div.s32 %r20, %r4, 3; st.global.u32 [%rd13], %r20;"),
                                       "memory(force),narrow(force)")
                                   .text;
  CHECK(count(narrowed, ".entry") == 3);
  CHECK(count(narrowed, "//@ narrow original") == 0);
  CHECK(count(narrowed, "//@ narrow requires") % 2 == 0);
  CHECK(count(narrowed, "div.u32") == 2);
}

TEST_CASE("the original beside a variant keeps rewrites that depend on no launch") {
  // Two adjacent loads at a multiple of 8 of the shared-memory-like literal address are vectors in any launch.
  const std::string always = "ld.global.f32 %f11, [%rd31]; ld.global.f32 %f12, [%rd31+4]; add.f32 %f13, %f11, %f12;"
                             "st.global.f32 [%rd13], %f13;";
  const std::string at = "cvta.to.global.u64 %rd30, %rd4; and.b64 %rd31, %rd30, -16;\n";
  const Rewritten both = rewrite(kernel(elements + quads + at + four_loads + four_stores + always));
  const size_t original = both.text.find(".entry k("), first = both.text.find(".entry k__memory(");
  REQUIRE(first != std::string::npos);
  REQUIRE(original < first);
  CHECK(count(both.text.substr(original, first - original), "ld.global.v2.f32") == 1);
  CHECK(count(both.text.substr(original, first - original), ".v4.") == 0);
  CHECK(count(both.text.substr(original, first - original), ".nc.") == 0);
}

TEST_CASE("a read-only load of an address that was loaded before becomes a move") {
  const std::string first = "ld.global.f32 %f1, [%rd11]; st.global.f32 [%rd12], %f1;";
  const auto loads = [&](const std::string& body) {
    const std::string text = rewrite(kernel(elements + body)).text;
    return count(text.substr(text.find(".entry k__")), "ld.global.nc.f32");
  };
  const std::string second = "ld.global.f32 %f2, [%rd11]; st.global.f32 [%rd13], %f2;";
  CHECK(loads(first + second) == 1);
  CHECK(loads(first + "bar.sync 0;" + second) == 1);
  CHECK(loads(first + "setp.eq.s32 %p2, %r5, 3; @%p2 bra DONE;" + second) == 1);
  // Another address, another register, a guard, a first load on one path only.
  CHECK(loads(first + "ld.global.f32 %f2, [%rd11+64]; st.global.f32 [%rd13], %f2;") == 2);
  CHECK(loads(first + "add.s64 %rd30, %rd11, 4; ld.global.f32 %f2, [%rd30]; st.global.f32 [%rd13], %f2;") == 2);
  CHECK(loads(first + "setp.eq.s32 %p2, %r5, 3; @%p2 ld.global.f32 %f2, [%rd11]; @%p2 st.global.f32 [%rd13], %f2;") ==
        2);
  const std::string sometimes =
      "setp.eq.s32 %p2, %r5, 3; @%p2 bra OTHER;" + first + "OTHER: st.global.f32 [%rd12+64], 0f00000000;";
  CHECK(loads(sometimes + "setp.eq.s32 %p3, %r5, 2; @%p3 bra DONE;" + second) == 2);
  // The second one is executed in any case: in front of the branch, too.
  CHECK(loads(sometimes + second) == 1);
  // Data that the kernel writes is not constant.
  CHECK(count(rewrite(kernel(elements + "ld.global.f32 %f1, [%rd11]; st.global.f32 [%rd11], %f1;"
                                        "ld.global.f32 %f2, [%rd11]; st.global.f32 [%rd11+4], %f2;"))
                  .text,
              "mov.b32") == 0);
}

TEST_CASE("a read-only load of the same address in every trip leaves its loop") {
  const auto before_loop = [](const std::string& head, const std::string& rest, const std::string& step) {
    const std::string text = rewrite(kernel(elements + "mov.u32 %r20, 0; mov.u64 %rd35, %rd1;\nAGAIN: " + head +
                                            "st.global.f32 [%rd12], %f1; " + rest + step +
                                            "add.s32 %r20, %r20, 1; setp.lt.s32 %p2, %r20, 8; @%p2 bra AGAIN;"))
                                 .text;
    const std::string variant = text.substr(std::min(text.size(), text.find(".entry k__")));
    const size_t loop = variant.find("AGAIN:"), load = variant.find("ld.global.nc.f32");
    return load != std::string::npos && load < loop;
  };
  const std::string load = "ld.global.f32 %f1, [%rd1]; ";
  CHECK(before_loop(load, "", ""));
  CHECK(before_loop("add.s32 %r21, %r20, 3; " + load, "", ""));
  // An address that changes, code that may not be reached, a guard.
  CHECK(!before_loop("ld.global.f32 %f1, [%rd35]; ", "", "add.s64 %rd35, %rd35, 4; "));
  CHECK(!before_loop("bar.sync 0; " + load, "", ""));
  CHECK(!before_loop("setp.eq.s32 %p3, %r5, 3; mov.f32 %f1, 0f00000000; @%p3 " + load, "", ""));
  CHECK(!before_loop("setp.eq.s32 %p3, %r5, 3; @%p3 bra DONE; " + load, "", ""));
}

namespace {

// Accesses in a launch, by thread: address, and whether it is a load.
using Accesses = std::vector<std::vector<std::pair<uint64_t, bool>>>;
Accesses accesses_of(const Rewritten& rewritten, const std::string& name, const ir::LaunchValues& launch) {
  Accesses all;
  for (const auto& trace : KernelEvaluator(function_named(*rewritten.module, name), launch).run()) {
    all.emplace_back();
    for (const auto& event : trace) {
      const ir::Form& form = ir::form(ir::known_form(event.mnemonic));
      if (form.space == ir::StateSpace::global) all.back().emplace_back(event.address, form.opcode == ir::Opcode::ld);
    }
  }
  return all;
}

} // namespace

TEST_CASE("a read-only load of one address on several paths is executed in front of them, if the launch takes one") {
  const auto body = [](const std::string& first, const std::string& between, const std::string& second) {
    return elements + "st.global.f32 [%rd12+64], 0f00000000; and.b32 %r20, %r1, 3; and.b32 %r21, %r5, 3;\n" + first +
           " @%p2 bra OTHER; ld.global.f32 %f1, [%rd3]; st.global.f32 [%rd12], %f1;\nOTHER: " + between + second +
           " @%p3 bra LAST; ld.global.f32 %f2, [%rd3]; st.global.f32 [%rd12+128], %f2;\nLAST:";
  };
  const std::string by_rest = "setp.eq.s32 %p2, %r20, 0;", by_size = "setp.lt.u32 %p3, %r1, 6;";
  const Rewritten rewritten = rewrite(kernel(body(by_rest, "", by_size)));
  const std::string text = rewritten.text.substr(rewritten.text.find(".entry k__"));
  REQUIRE(count(text, "ld.global.nc.f32") == 1);
  CHECK(text.find("ld.global.nc.f32") < text.find("bra"
                                                  " \tOTHER"));
  size_t chosen = 0;
  for (uint32_t n = 1; n < 13; ++n) {
    CAPTURE(n);
    const ir::LaunchValues launch = launch_of(4, 3, {{n, 4}, {0, 8}, {0x20000, 8}, {0x30000, 8}});
    const Trial trial = try_launch(rewritten, "k", launch);
    // Every thread below n loads, or none does.
    const Accesses original = accesses_of(rewritten, "k", launch);
    const bool loads = std::ranges::any_of(original[0], [](const auto& access) { return access.second; });
    CHECK(loads == (n % 4 != 0 || n >= 6));
    CHECK(trial.chosen == loads);
    if (!trial.chosen) continue;
    ++chosen;
    const Accesses variant = accesses_of(rewritten, "k__memory", launch);
    for (size_t thread = 0; thread < variant.size(); ++thread) {
      std::set<std::pair<uint64_t, bool>> a(original[thread].begin(), original[thread].end()),
          b(variant[thread].begin(), variant[thread].end());
      CHECK(a == b);
    }
  }
  CHECK(chosen == 11);
  const auto loads = [&](const std::string& one) {
    const std::string changed = rewrite(kernel(one)).text;
    return count(changed.substr(changed.find(".entry k__")), "ld.global.nc.f32");
  };
  // Ways that threads choose or that depend on data, a barrier in between, an endless loop.
  CHECK(loads(body("setp.eq.s32 %p2, %r21, 0;", "", "setp.lt.u32 %p3, %r21, 2;")) == 2);
  CHECK(loads(body("ld.global.u32 %r22, [%rd3+8]; setp.eq.s32 %p2, %r22, 0;", "", "setp.lt.u32 %p3, %r22, 6;")) == 2);
  CHECK(loads(body(by_rest, "bar.sync 0;", by_size)) == 1);
  CHECK(loads(body("setp.eq.s32 %p2, %r21, 0;", "bar.sync 0;", by_size)) == 2);
  CHECK(loads(body("setp.eq.s32 %p2, %r21, 0;", "", by_size)) == 1);
  CHECK(loads(body("setp.eq.s32 %p2, %r21, 0;", "@%p2 ret;", by_size)) == 2);
  CHECK(loads(body("setp.eq.s32 %p2, %r21, 0;",
                   "AGAIN: ld.volatile.shared.u32 %r23, [tile]; setp.ne.s32 %p4, %r23, 0; @%p4 bra AGAIN;", by_size)) ==
        2);
}

TEST_CASE("addresses that differ by a launch constant are computed from one another where no index wraps") {
  // Rows of n elements: i, i+n, i+2n, i+3n.
  const auto body = [](const std::string& last) {
    std::string text = elements + "ld.global.f32 %f1, [%rd11]; st.global.f32 [%rd12], %f1;\n";
    for (int row = 1; row < 4; ++row) {
      const std::string before = row == 1 ? "4" : std::to_string(19 + row), r = std::to_string(20 + row),
                        a = std::to_string(20 + row), b = std::to_string(30 + row);
      text += "add.s32 %r" + r + ", %r" + before + ", %r1; mul.wide.s32 %rd" + a + ", %r" + r + ", 4; add.s64 %rd" + b +
              ", %rd1, %rd" + a + "; ld.global.f32 %f2, [%rd" + b + "]; st.global.f32 [%rd12], %f2;\n";
    }
    return text + last;
  };
  const std::string step = "mul.wide.s32 %rd36, %r1, 4; add.s64 %rd37, %rd12, %rd36; st.global.f32 [%rd37], %f2;";
  const auto products = [](const std::string& text) { return count(text.substr(text.find(".entry k__")), "mul.wide"); };
  const Rewritten rewritten = rewrite(kernel(body(step)));
  CHECK(products(rewritten.text) == 3); // the first index, the step, and the step again at its place
  // No step in the kernel; indices that are read elsewhere.
  CHECK(products(rewrite(kernel(body(""))).text) == 4);
  std::string read = step;
  for (int row = 1; row < 4; ++row)
    read += "st.global.u32 [%rd12], %r" + std::to_string(20 + row) + "; st.global.u64 [%rd12], %rd" +
            std::to_string(20 + row) + ";";
  CHECK(products(rewrite(kernel(body(read))).text) == 5);
  // The same conditions where no load is read-only, because one store's address is not known.
  const std::string unknown = "ld.global.u32 %r40, [%rd12]; mul.wide.s32 %rd38, %r40, 4; add.s64 %rd39, %rd2, %rd38;"
                              "st.global.u32 [%rd39], 1;\n";
  const std::string alone = rewrite(kernel(quads + four_loads + four_stores + body(step) + unknown)).text;
  CHECK(count(alone, "ld.global.nc.") == 0);
  CHECK(products(alone) == 5);                                  // four and that of the store's address
  CHECK(count(alone, "requires sext32(P0) <= 536870912") == 1); // the last one, n - 1 + 3 n, is below 2^31
  size_t chosen = 0, wrapped = 0;
  for (uint32_t n :
       {1u, 2u, 5u, 8u, 1000u, 0x1ffffffeu, 0x1fffffffu, 0x20000000u, 0x2aaaaaaau, 0x3fffffffu, 0x7ffffffeu})
    for (uint64_t x : {uint64_t(0x10000), uint64_t(1) << 36}) {
      CAPTURE(n);
      const ir::LaunchValues launch = launch_of(4, 2, {{n, 4}, {x, 8}, {uint64_t(1) << 45, 8}, {0, 8}});
      const Trial trial = try_launch(rewritten, "k", launch);
      const bool wraps = std::min<uint64_t>(n, 8) - 1 + 3 * uint64_t(n) > 0x7fffffff;
      wrapped += wraps;
      if (wraps) CHECK(!trial.chosen);
      if (!trial.chosen) continue;
      ++chosen;
      const Accesses original = accesses_of(rewritten, "k", launch),
                     variant = accesses_of(rewritten, "k__memory", launch);
      CHECK(original == variant);
    }
  CHECK(chosen > 9);
  CHECK(wrapped > 5);
}

TEST_CASE("adjacent accesses become vectors, under a condition on the pointer") {
  Rewritten rewritten = rewrite(kernel(quads + four_loads + four_stores));
  CHECK(count(rewritten.text, "ld.global.v4.f32") == 1);
  CHECK(count(rewritten.text, "st.global.v4.f32") == 1);
  CHECK(count(rewritten.text, "//@ memory requires P1 % 16 == 0") == 1);
  CHECK(count(rewritten.text, "//@ memory requires P2 % 16 == 0") == 1);
  for (uint64_t x = 0; x < 33; ++x) {
    Trial trial = try_launch(rewritten, "k", launch_of(4, 2, {{8, 4}, {0x10000 + x, 8}, {0x20000, 8}, {0, 8}}));
    CHECK(trial.chosen == (x % 16 == 0));
    CHECK(trial.chosen == trial.aligned);
  }
}

TEST_CASE("accesses that are not adjacent, or that something stands between, are not joined") {
  CHECK(vectors(quads + four_loads + four_stores) == 2);
  const std::string hole = "ld.global.f32 %f1, [%rd21]; ld.global.f32 %f2, [%rd21+8];";
  CHECK(vectors(quads + hole + "st.global.f32 [%rd22], %f1; st.global.f32 [%rd22+8], %f2;") == 0);
  // Three loads: two of them are merged.
  const std::string three = "ld.global.f32 %f1, [%rd21]; ld.global.f32 %f2, [%rd21+4]; ld.global.f32 %f3, [%rd21+8];"
                            "add.f32 %f1, %f1, %f2; add.f32 %f1, %f1, %f3; st.global.f32 [%rd22], %f1;";
  CHECK(vectors(quads + three) == 1);
  // Their first address is no multiple of 8 if the pointer is one.
  const std::string odd = "ld.global.f32 %f1, [%rd21+4]; ld.global.f32 %f2, [%rd21+8]; add.f32 %f1, %f1, %f2;"
                          "st.global.f32 [%rd22], %f1;";
  CHECK(vectors(quads + odd) == 0);
  // A thread's pair starts at every fourth byte.
  CHECK(vectors(elements + "ld.global.f32 %f1, [%rd11]; ld.global.f32 %f2, [%rd11+4]; add.f32 %f1, %f1, %f2;"
                           "st.global.f32 [%rd12], %f1;") == 0);
  const std::string first = "ld.global.f32 %f1, [%rd21];", second = "ld.global.f32 %f2, [%rd21+4];",
                    use = "add.f32 %f3, %f1, %f2; st.global.f32 [%rd22], %f3;";
  CHECK(vectors(quads + first + second + use) == 1);
  CHECK(vectors(quads + first + "bar.sync 0;" + second + use) == 0);
  CHECK(vectors(quads + first + "membar.gl;" + second + use) == 0);
  CHECK(vectors(quads + first + "red.global.add.u32 [%rd22], 1;" + second + use) == 0);
  CHECK(vectors(quads + first + "st.shared.f32 [tile], %f1;" + second + use) == 1);
  // A store that the second load would have to pass: elsewhere in the same buffer, or in conflict.
  CHECK(vectors(quads + first + "st.global.f32 [%rd21+8], %f1;" + second + use) == 1);
  CHECK(vectors(quads + first + "st.global.f32 [%rd21+4], %f1;" + second + use) == 0);
  CHECK(vectors(quads + first + "st.global.f32 [%rd21+1], %f1;" + second + use) == 0);
  // Through another pointer: only with read-only loads, which the launch condition permits.
  const std::string between = first + "st.global.f32 [%rd22], %f1;" + second + use;
  CHECK(vectors(quads + between) == 1);
  CHECK(count(rewrite(kernel(quads + between)).text, "ld.global.nc.v2.f32") == 1);
  // Stores: stored locations may not be read in between, nor written again.
  const std::string value = "ld.global.f32 %f1, [%rd21];";
  const std::string a = "st.global.f32 [%rd22], %f1;", b = "st.global.f32 [%rd22+4], %f1;";
  CHECK(vectors(quads + value + a + b) == 1);
  CHECK(vectors(quads + value + a + "ld.global.f32 %f2, [%rd22];" + b + "st.global.f32 [%rd22+64], %f2;") == 0);
  CHECK(vectors(quads + value + a + "st.global.f32 [%rd22+2], %f1;" + b) == 0);
  CHECK(vectors(quads + value + a + "@%p1 bra DONE;" + b) == 0);
  CHECK(vectors(quads + value + "@%p1 " + a + "@%p1 " + b) == 0);
  CHECK(vectors(quads + "ld.volatile.global.f32 %f1, [%rd21]; ld.volatile.global.f32 %f2, [%rd21+4];" + use) == 0);
  CHECK(vectors(quads + "ld.relaxed.gpu.global.f32 %f1, [%rd21]; ld.relaxed.gpu.global.f32 %f2, [%rd21+4];" + use) ==
        0);
}

TEST_CASE("vectors of other widths") {
  const std::string doubles = quads + "ld.global.f64 %d1, [%rd21]; ld.global.f64 %d2, [%rd21+8];"
                                      "add.f64 %d1, %d1, %d2; st.global.f64 [%rd22], %d1;";
  CHECK(count(rewrite(kernel(doubles)).text, "ld.global.v2.f64") == 1);
  const std::string bytes = "add.s64 %rd30, %rd1, %rd20; add.s64 %rd31, %rd2, %rd20;";
  const std::string words = quads + bytes +
                            "ld.global.u8 %h1, [%rd30]; ld.global.u8 %h2, [%rd30+1];"
                            "ld.global.u8 %h3, [%rd30+2]; ld.global.u8 %h4, [%rd30+3];"
                            "st.global.u8 [%rd31], %h4; st.global.u8 [%rd31+1], %h3;"
                            "st.global.u8 [%rd31+2], %h2; st.global.u8 [%rd31+3], %h1;";
  CHECK(count(rewrite(kernel(words)).text, "ld.global.v4.u8") == 1);
  CHECK(count(rewrite(kernel(words)).text, "st.global.b32") == 1);
  CHECK(count(rewrite(kernel(words)).text, "requires P1 % 4 == 0") == 1);
}

TEST_CASE("eight or sixteen bytes are loaded as words, under a condition on the pointer") {
  for (const auto& [type, bytes, in_halves] : {std::tuple("u8", 16, false), {"s8", 16, false}, {"s8", 8, true}}) {
    CAPTURE(type);
    const std::string size = std::to_string(bytes);
    std::string body =
        "mul.wide.s32 %rd20, %r4, " + size + "; add.s64 %rd21, %rd1, %rd20; add.s64 %rd22, %rd2, %rd20;\n";
    std::string sum = "mov.u32 %r50, 0;\n";
    for (int i = 0; i < bytes; ++i) {
      const std::string half = "%h" + std::to_string(i + 1), word = "%r" + std::to_string(i + 20);
      body +=
          std::string("ld.global.") + type + " " + (in_halves ? half : word) + ", [%rd21+" + std::to_string(i) + "];\n";
      if (in_halves) sum += "cvt.s32.s16 " + word + ", " + half + ";\n";
      sum += "mad.lo.s32 %r50, %r50, 3, " + word + ";\n";
    }
    const Rewritten rewritten = rewrite(kernel(body + sum + "st.global.u32 [%rd22], %r50;\n"));
    CHECK(count(rewritten.text, bytes == 16 ? "ld.global.v4.b32" : "ld.global.v2.b32") == 1);
    CHECK(count(rewritten.text, "requires P1 % " + size + " == 0") == 1);
    for (uint64_t x = 0; x < 17; ++x) {
      Trial trial = try_launch(rewritten, "k", launch_of(4, 2, {{8, 4}, {0x10000 + x, 8}, {0x20000, 8}, {0, 8}}));
      CHECK(trial.chosen == (x % static_cast<uint64_t>(bytes) == 0));
    }
  }
}

TEST_CASE("eight words are one vector where the target has it") {
  std::string body = "mul.wide.s32 %rd20, %r4, 32; add.s64 %rd21, %rd1, %rd20; add.s64 %rd22, %rd2, %rd20;\n";
  for (int i = 0; i < 8; ++i)
    body += "ld.global.f32 %f" + std::to_string(i) + ", [%rd21+" + std::to_string(4 * i) + "];\n";
  for (int i = 0; i < 8; ++i)
    body += "st.global.f32 [%rd22+" + std::to_string(4 * i) + "], %f" + std::to_string(7 - i) + ";\n";
  const std::string wide = rewrite(kernel(body, "sm_100", "8.8")).text;
  CHECK(count(wide, "ld.global.v8.f32") == 1);
  CHECK(count(wide, "st.global.v8.f32") == 1);
  CHECK(count(wide, "requires P1 % 32 == 0") == 1);
  // One step outside: an older version, an older target.
  for (const auto& [target, version] : {std::pair("sm_100", "8.7"), std::pair("sm_90", "8.8")}) {
    const std::string text = rewrite(kernel(body, target, version)).text;
    CHECK(count(text, ".v8.") == 0);
    CHECK(count(text, "ld.global.v4.f32") == 2);
  }
}

TEST_CASE("bytes that are stored side by side go as words, through the shifts that made them") {
  const std::string at = "mul.wide.s32 %rd30, %r4, 4; add.s64 %rd31, %rd2, %rd30; mul.wide.s32 %rd20, %r4, 16;"
                         "add.s64 %rd32, %rd2, %rd20;";
  const auto stores = [](const std::string& a, const std::string& b, const std::string& c, const std::string& d) {
    return "st.global.u8 [%rd31], " + a + "; st.global.u8 [%rd31+1], " + b + "; st.global.u8 [%rd31+2], " + c +
           "; st.global.u8 [%rd31+3], " + d + ";";
  };
  // One reversed word: one permutation, no left shift.
  const std::string shifts = "ld.global.u32 %r10, [%rd1]; shr.u32 %r11, %r10, 24; shr.u32 %r12, %r10, 16;"
                             "shr.u32 %r13, %r10, 8;";
  const std::string reversed = rewrite(kernel(at + shifts + stores("%r11", "%r12", "%r13", "%r10"))).text;
  CHECK(count(reversed, "prmt.b32") == 1);
  CHECK(count(reversed, ", 291;") == 1);  // 0x0123
  CHECK(count(reversed, "shr.u32") == 3); // the original's
  // In original order: no permutation.
  CHECK(count(rewrite(kernel(at + shifts + stores("%r10", "%r13", "%r12", "%r11"))).text, "prmt.b32") == 0);
  // A shift by part of a byte, and one in 16-bit registers.
  CHECK(count(rewrite(kernel(at + "ld.global.u32 %r10, [%rd1]; shr.u32 %r11, %r10, 4;" +
                             stores("%r10", "%r11", "%r4", "%r1")))
                  .text,
              "prmt.b32") == 3);
  const std::string halves = "ld.global.u16 %h1, [%rd1]; shr.u16 %h2, %h1, 8; cvt.u32.u16 %r10, %h2;";
  CHECK(count(rewrite(kernel(at + halves + stores("%h1", "%h2", "%r10", "%r10"))).text, "prmt.b32") == 1);
  // An extension: its upper bytes are not the source's.
  const std::string extended = "ld.global.s8 %h1, [%rd1]; cvt.s32.s8 %r10, %h1; shr.u32 %r11, %r10, 8;";
  const std::string kept = rewrite(kernel(at + extended + stores("%r10", "%r11", "%r10", "%r11"))).text;
  CHECK(count(kept, "cvt.s32.s8") == 2);
}

TEST_CASE("addresses that memory chooses are as aligned as the instructions make them") {
  // By a loaded index times 16; by a pointer that is advanced in a loop.
  const std::string index = elements + "ld.global.u32 %r10, [%rd13]; ";
  const std::string pair = "ld.global.f32 %f1, [%rd31]; ld.global.f32 %f2, [%rd31+4]; add.f32 %f1, %f1, %f2;"
                           "st.global.f32 [%rd12], %f1;";
  const auto at = [&](const std::string& make) { return vectors(index + make + pair); };
  CHECK(at("mul.wide.s32 %rd30, %r10, 16; add.s64 %rd31, %rd1, %rd30;") == 1);
  CHECK(at("mul.wide.u32 %rd30, %r10, 8; add.s64 %rd31, %rd30, %rd1;") == 1);
  CHECK(at("mul.wide.s32 %rd30, %r10, 12; add.s64 %rd31, %rd1, %rd30;") == 0);
  CHECK(at("mul.wide.s32 %rd30, %r10, 4; add.s64 %rd31, %rd1, %rd30;") == 0);
  CHECK(at("shl.b32 %r11, %r10, 1; mul.wide.s32 %rd30, %r11, 4; add.s64 %rd31, %rd1, %rd30;") == 1);
  CHECK(at("shl.b32 %r11, %r10, 1; add.s32 %r11, %r11, 1; mul.wide.s32 %rd30, %r11, 4; add.s64 %rd31, %rd1, %rd30;") ==
        0);
  CHECK(at("mad.lo.s32 %r11, %r10, 6, 4; mul.wide.s32 %rd30, %r11, 4; add.s64 %rd31, %rd1, %rd30;") == 1);
  CHECK(at("and.b32 %r11, %r10, -8; cvt.s64.s32 %rd30, %r11; add.s64 %rd31, %rd1, %rd30;") == 1);
  CHECK(at("and.b32 %r11, %r10, 7; cvt.s64.s32 %rd30, %r11; add.s64 %rd31, %rd1, %rd30;") == 0);
  CHECK(at("cvt.s64.s32 %rd30, %r10; shl.b64 %rd30, %rd30, 3; sub.s64 %rd31, %rd1, %rd30;") == 1);
  CHECK(at("or.b32 %r11, %r10, 8; mul.wide.s32 %rd30, %r11, 4; add.s64 %rd31, %rd1, %rd30;") == 0);
  const auto loop = [&](const std::string& step) {
    return vectors(index + "mul.wide.s32 %rd30, %r10, 8; add.s64 %rd31, %rd1, %rd30;\nAGAIN: " + pair +
                   "add.s64 %rd31, %rd31, " + step +
                   "; add.s32 %r10, %r10, -1; setp.ne.s32 %p2, %r10, 0; @%p2 bra AGAIN;");
  };
  CHECK(loop("8") == 1);
  CHECK(loop("24") == 1);
  CHECK(loop("4") == 0);
  CHECK(loop("12") == 0);
}
