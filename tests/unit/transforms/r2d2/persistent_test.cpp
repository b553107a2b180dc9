// R2D2's legal form, candidate 4: one resident wave of blocks loops over the grid. Rewritten kernels run on the
// emulator beside their originals; kernels that must not be rewritten are unchanged, with a reason.
#include "emulator/core/emulator.h"
#include "ir/core/print.h"
#include "launch/persistent_grid.h"
#include "launch/variants.h"
#include "tests/unit/transforms/r2d2/r2d2_fixture.h"
#include "transforms/manager/pipeline.h"

#include <cstring>

namespace ptxrewrite::tests::persistent_test {

using namespace ptxrewrite;
using namespace ptxrewrite::tests;

namespace {

constexpr uint32_t words = 4096;

std::string module_text(const std::string& body, const std::string& variables = "") {
  return ".version 8.0\n.target sm_80\n.address_size 64\n" + variables +
         "\n.visible .entry k(.param .u64 data, .param .u32 n)\n"
         "{\n.reg .pred %p<9>;\n.reg .b16 %h<9>;\n.reg .b32 %r<40>;\n.reg .b64 %rd<40>;\n" +
         body + "}\n";
}

struct Rewritten {
  std::string text;
  transforms::PipelineReport report;
  bool remarked(std::string_view part) const {
    for (const transforms::Remark& remark : report.remarks)
      if (remark.text.find(part) != std::string::npos) return true;
    return false;
  }
};

Rewritten rewrite(const std::string& text, const std::string& passes = "r2d2(persistent)") {
  std::unique_ptr<ir::Module> module = read_text(text);
  Result<transforms::Pipeline> pipeline = transforms::parse_pipeline(passes);
  REQUIRE(pipeline);
  Result<transforms::PipelineReport> report = transforms::run_pipeline(*module, *pipeline, {.verify_each = true});
  REQUIRE_MESSAGE(report, report.error().message);
  return {ir::print(*module), std::move(*report)};
}

struct Outcome {
  std::string entry;
  std::string failure;
  uint64_t blocks = 0;
  std::vector<uint32_t> memory;
};

// Runs `k` on a buffer of zeros; a persistent variant gets as many blocks as are resident.
Outcome run(const std::string& text, launch::Dim3 grid, launch::Dim3 block, uint64_t resident) {
  std::unique_ptr<ir::Module> module = read_text(text);
  emulator::DeviceMemory memory(uint64_t(1) << 28);
  auto program = emulator::Program::load(*module, memory);
  REQUIRE(program);
  Result<uint64_t> address = memory.allocate(words * 4, "data");
  REQUIRE(address);
  std::vector<std::byte> parameters(12);
  const uint32_t n = 3;
  std::memcpy(parameters.data(), &*address, 8);
  std::memcpy(parameters.data() + 8, &n, 4);
  Result<launch::Variants> variants = launch::Variants::of(*module, nullptr);
  REQUIRE(variants);
  Result<launch::VariantChoice> choice = variants->choose("k", parameters, grid, block);
  REQUIRE(choice);
  if (choice->grid == launch::GridMode::persistent) grid = launch::persistent_grid(grid, resident);
  emulator::LaunchRequest request;
  Outcome outcome;
  request.kernel = outcome.entry = module->text(choice->entry->name);
  request.grid = {grid.x, grid.y, grid.z};
  request.block = {block.x, block.y, block.z};
  request.parameters = choice->parameter_block;
  request.check = true;
  request.fuel = 1'000'000;
  auto result = (*program)->launch(request);
  REQUIRE_MESSAGE(result, result.error().message);
  if (result->failure) outcome.failure = result->failure->message;
  if (!result->findings.empty()) outcome.failure = result->findings.front().where.message;
  outcome.blocks = result->counters.blocks;
  outcome.memory.resize(words);
  REQUIRE(memory.read(*address, std::as_writable_bytes(std::span(outcome.memory))));
  return outcome;
}

// Checks that the kernel is made persistent, with equal results in these grids for any number of resident blocks.
void check_same(const std::string& text, const std::vector<launch::Dim3>& grids, launch::Dim3 block) {
  const Rewritten rewritten = rewrite(text);
  INFO(rewritten.text);
  REQUIRE(rewritten.text.find("grid persistent") != std::string::npos);
  for (const launch::Dim3& grid : grids) {
    const Outcome expected = run(text, grid, block, 1);
    REQUIRE(expected.failure == "");
    for (uint64_t resident : {1, 2, 3, 8, 1000}) {
      CAPTURE(resident);
      CAPTURE(grid.x);
      CAPTURE(grid.y);
      CAPTURE(grid.z);
      const Outcome actual = run(rewritten.text, grid, block, resident);
      CHECK(actual.entry == "k__r2d2");
      CHECK(actual.failure == "");
      CHECK(actual.blocks == std::min<uint64_t>(resident, grid.count()));
      CHECK(actual.memory == expected.memory);
    }
  }
}

void check_refused(const std::string& text, std::string_view reason) {
  const Rewritten rewritten = rewrite(text);
  INFO(rewritten.text);
  CHECK(rewritten.text.find("persistent") == std::string::npos);
  CHECK(rewritten.text == rewrite(text, "r2d2").text);
  CAPTURE(reason);
  bool found = rewritten.remarked(std::string("not made persistent: ") + std::string(reason));
  for (const transforms::Remark& remark : rewritten.report.remarks)
    if (!found) MESSAGE(remark.text);
  CHECK(found);
}

// r1 = linear index of the thread in the grid, in any grid; rd3 = the address of its word in data.
const std::string linear_index = R"(
mov.u32 %r10, %ctaid.x;
mov.u32 %r11, %ctaid.y;
mov.u32 %r12, %ctaid.z;
mov.u32 %r13, %nctaid.x;
mov.u32 %r14, %nctaid.y;
mad.lo.u32 %r15, %r12, %r14, %r11;
mad.lo.u32 %r16, %r15, %r13, %r10;
mov.u32 %r17, %ntid.x;
mov.u32 %r18, %tid.x;
mad.lo.u32 %r1, %r16, %r17, %r18;
ld.param.u64 %rd1, [data];
mul.wide.u32 %rd2, %r1, 4;
add.s64 %rd3, %rd1, %rd2;
)";

// The same for a one-dimensional grid.
const std::string linear_index_x = R"(
mov.u32 %r10, %ctaid.x;
mov.u32 %r17, %ntid.x;
mov.u32 %r18, %tid.x;
mad.lo.u32 %r1, %r10, %r17, %r18;
ld.param.u64 %rd1, [data];
mul.wide.u32 %rd2, %r1, 4;
add.s64 %rd3, %rd1, %rd2;
)";

const std::string shared_tile = ".shared .align 4 .b8 tile[128];\n";

} // namespace

TEST_CASE("a body that ends without ret") {
  const std::vector<launch::Dim3> grids = {{1, 1, 1}, {7, 1, 1}, {20, 1, 1}};
  check_same(module_text(linear_index_x + "st.global.u32 [%rd3], %r1;\n"), grids, {32, 1, 1});
  check_same(module_text(linear_index_x + "setp.lt.u32 %p1, %r1, 40;\n@%p1 ret;\nst.global.u32 [%rd3], %r1;\n"), grids,
             {32, 1, 1});
  // The last instruction is a guarded return: the other threads return nevertheless.
  check_same(module_text(linear_index_x + "st.global.u32 [%rd3], %r1;\nsetp.lt.u32 %p1, %r1, 40;\n@%p1 exit;\n"), grids,
             {32, 1, 1});
  // Threads that exit early do not wait for those at the barrier; in the next round they would meet.
  check_refused(module_text(linear_index_x + "setp.lt.u32 %p1, %r18, 40;\n@%p1 bra OUT;\nbar.sync 0;\nOUT:\n"
                                             "st.global.u32 [%rd3], %r1;\n"),
                "");
}

TEST_CASE("Every block of a grid of one, two or three dimensions runs once") {
  // Adds, so that a block that runs twice is detected.
  check_same(module_text(linear_index + "add.u32 %r2, %r1, 7;\nred.global.add.u32 [%rd3], %r2;\nret;\n"),
             {{1, 1, 1}, {7, 1, 1}, {9, 1, 1}, {64, 1, 1}, {1, 9, 1}, {3, 5, 1}, {1, 1, 7}, {2, 3, 5}, {5, 2, 3}},
             {8, 1, 1});
  check_same(module_text(linear_index_x + "add.u32 %r2, %r1, 7;\nred.global.add.u32 [%rd3], %r2;\nret;\n"),
             {{1, 1, 1}, {7, 1, 1}, {9, 1, 1}, {33, 1, 1}}, {40, 1, 1});
}

TEST_CASE("What the kernel sees of its grid is the planned one") {
  const std::string text = module_text(linear_index + R"(
mov.u32 %r20, %nctaid.z;
mov.b32 %r21, %ctaid.y;
mov.u16 %h1, %ctaid.x;
cvt.u32.u16 %r22, %h1;
cvt.u64.u32 %rd5, %nctaid.y;
cvt.u32.u64 %r23, %rd5;
mov.u32 %r24, %ctaid.w;
mad.lo.u32 %r25, %r20, 1000, %r21;
mad.lo.u32 %r26, %r22, 100000, %r25;
mad.lo.u32 %r27, %r23, 10000000, %r26;
add.u32 %r28, %r27, %r24;
st.global.u32 [%rd3], %r28;
ret;
)");
  check_same(text, {{3, 4, 5}, {6, 2, 1}}, {4, 1, 1});
  // By hand: nctaid.z 5, ctaid (1, 2, 3), nctaid.y 4.
  const Outcome outcome = run(rewrite(text).text, {3, 4, 5}, {1, 1, 1}, 8);
  CHECK(outcome.memory[(3 * 4 + 2) * 3 + 1] == 5 * 1000 + 2 + 100000 + 40000000);
}

TEST_CASE("A dimension that the kernel does not read must have the extent 1, else the original runs") {
  const std::string text = module_text(linear_index_x + "red.global.add.u32 [%rd3], 1;\nret;\n");
  const Rewritten rewritten = rewrite(text);
  CHECK(run(rewritten.text, {5, 1, 1}, {8, 1, 1}, 2).entry == "k__r2d2");
  for (const launch::Dim3 grid : {launch::Dim3{5, 2, 1}, launch::Dim3{5, 1, 2}}) {
    const Outcome outcome = run(rewritten.text, grid, {8, 1, 1}, 2);
    CHECK(outcome.entry == "k");
    CHECK(outcome.memory[0] == 2);
  }
  size_t checked = 0, proved = 0;
  for (const transforms::Obligation& entry : rewritten.report.ledger) {
    checked += entry.discharge == transforms::Discharge::launch_checked;
    proved += entry.discharge == transforms::Discharge::proved;
  }
  CHECK(checked == 2);
  CHECK(proved == 1);
}

TEST_CASE("Returns of all kinds lead to the next virtual block") {
  check_same(module_text(linear_index_x + R"(
and.b32 %r2, %r18, 3;
setp.eq.u32 %p1, %r2, 0;
@%p1 ret;
st.global.u32 [%rd3], 1;
setp.eq.u32 %p2, %r2, 1;
@%p2 bra L;
setp.eq.u32 %p3, %r10, 2;
@!%p3 exit;
st.global.u32 [%rd3], 2;
exit;
L:
st.global.u32 [%rd3], 3;
setp.eq.u32 %p3, %r10, 1;
@%p3 ret;
st.global.u32 [%rd3], 4;
ret;
)"),
             {{6, 1, 1}, {11, 1, 1}}, {40, 1, 1});
}

TEST_CASE("Shared memory is not written again before all threads of the block have read it") {
  // A thread reads the word of its mirror image; the emulator's check mode finds races.
  const std::string text = module_text(shared_tile + linear_index_x + R"(
mov.u32 %r30, tile;
shl.b32 %r31, %r18, 2;
add.u32 %r32, %r30, %r31;
st.shared.u32 [%r32], %r1;
bar.sync 0;
sub.u32 %r33, %r17, %r18;
add.u32 %r33, %r33, -1;
shl.b32 %r34, %r33, 2;
add.u32 %r35, %r30, %r34;
ld.shared.u32 %r36, [%r35];
st.global.u32 [%rd3], %r36;
ret;
)");
  check_same(text, {{5, 1, 1}, {16, 1, 1}}, {32, 1, 1});
  const std::string rewritten = rewrite(text).text;
  size_t barriers = 0;
  for (size_t at = rewritten.find("bar.sync"); at != rewritten.npos; at = rewritten.find("bar.sync", at + 1))
    ++barriers;
  CHECK(barriers == 3); // the original's, the same in the variant, and the one between virtual blocks
}

TEST_CASE("Between virtual blocks a barrier that the kernel does not use for a part of the block") {
  const std::string text = module_text(shared_tile + linear_index_x + R"(
mov.u32 %r30, tile;
setp.ge.u32 %p1, %r18, 32;
@%p1 bra L;
st.shared.u32 [%r30], %r10;
bar.sync 0, 32;
ld.shared.u32 %r31, [%r30];
st.global.u32 [%rd3], %r31;
L:
ret;
)");
  CHECK(rewrite(text).text.find("bar.sync \t1;") != std::string::npos);
  check_same(text, {{5, 1, 1}}, {64, 1, 1});
}

TEST_CASE("Pending asynchronous copies are waited for") {
  const std::string text = rewrite(module_text(shared_tile + linear_index_x + R"(
mov.u32 %r30, tile;
cp.async.ca.shared.global [%r30], [%rd3], 4;
cp.async.commit_group;
ret;
)"))
                               .text;
  const size_t wait = text.find("cp.async.wait_all");
  REQUIRE(wait != text.npos);
  CHECK(text.find("bar.sync", wait) != text.npos);
}

TEST_CASE("Thread parts and costly uniform work move in front of the loop, the block part does not") {
  const std::string text = module_text(R"(
mov.u32 %r1, %tid.x;
mov.u32 %r2, %tid.y;
ld.param.u32 %r3, [n];
mad.lo.u32 %r4, %r2, %r3, %r1;
mov.u32 %r5, %ntid.x;
div.u32 %r6, %r5, %r3;
mov.u32 %r7, %ctaid.x;
mad.lo.u32 %r8, %r7, 64, %r4;
ld.param.u64 %rd1, [data];
mul.wide.u32 %rd2, %r8, 4;
add.s64 %rd3, %rd1, %rd2;
st.global.u32 [%rd3], %r6;
ret;
)");
  // Without the candidate, which would leave the division to the launcher.
  const std::string rewritten = rewrite(text, "r2d2(persistent,candidates=1)").text;
  const std::string variant = rewritten.substr(rewritten.find("grid persistent"));
  INFO(variant);
  const size_t loop = variant.find("$L_k_block:");
  REQUIRE(loop != variant.npos);
  CHECK(variant.find("div.u32") < loop);
  CHECK(variant.find("%tid.y") < loop);
  CHECK(variant.find("%tid.x") < loop);
  CHECK(variant.find("mad.lo.u32") < loop);
  CHECK(variant.find(", 64, ") > loop);
  CHECK(variant.find("mul.wide.u32") > loop);
  check_same(text, {{5, 1, 1}, {9, 1, 1}}, {8, 8, 1});
}

TEST_CASE("Guarded instructions and loads stay where they are") {
  const std::string text = module_text(linear_index_x + R"(
ld.global.u32 %r2, [%rd1];
mov.u32 %r3, 5;
setp.eq.u32 %p1, %r18, 2;
@%p1 div.u32 %r3, %r18, %r17;
add.u32 %r4, %r2, %r3;
red.global.add.u32 [%rd3+256], %r4;
ret;
)");
  check_same(text, {{5, 1, 1}}, {8, 1, 1});
  const std::string rewritten = rewrite(text).text;
  const std::string variant = rewritten.substr(rewritten.find("$L_k_block:"));
  CHECK(variant.find("div.u32") != variant.npos);
  CHECK(variant.find("ld.global") != variant.npos);
}

TEST_CASE("Refused: what could tell virtual blocks from real ones") {
  const std::string store = "st.global.u32 [%rd3], %r1;\nret;\n";
  check_refused(module_text(linear_index_x + "mov.u64 %rd9, %gridid;\nst.global.u64 [%rd1], %rd9;\n" + store),
                "reads %gridid");
  check_refused(module_text(linear_index_x + "mov.b32 %r9, %envreg1;\nst.global.u32 [%rd1], %r9;\n" + store),
                "reads %envreg1");
  check_refused(module_text("mov.u32 %r1, %tid.x;\nld.param.u64 %rd1, [data];\nst.global.u32 [%rd1], %r1;\nret;\n"),
                "does not read the block index");
  std::string clusters = module_text(linear_index_x + store);
  clusters.replace(clusters.find("sm_80"), 5, "sm_90");
  std::string with_directive = clusters;
  with_directive.insert(with_directive.find("{\n.reg"), ".reqnctapercluster 2\n");
  check_refused(with_directive, "runs in clusters");
  clusters.insert(clusters.find("st.global"), "mov.u32 %r9, %cluster_ctaid.x;\nst.global.u32 [%rd1], %r9;\n");
  check_refused(clusters, "is about clusters");
  check_refused(module_text(linear_index_x + "LOOP:\nst.global.u32 [%rd3], %r1;\nbra LOOP;\n"), "never returns");
}

TEST_CASE("Refused: waiting for other blocks; retrying is none") {
  const auto spin = [](const std::string& read) {
    return module_text(linear_index_x + "red.global.add.u32 [%rd1], 1;\nmov.u32 %r4, %nctaid.x;\nLOOP:\n" + read +
                       "\nsetp.lt.u32 %p1, %r2, %r4;\n@%p1 bra LOOP;\nst.global.u32 [%rd3], %r1;\nret;\n");
  };
  check_refused(spin("ld.volatile.global.u32 %r2, [%rd1];"), "may wait for other blocks");
  check_refused(spin("ld.acquire.gpu.global.u32 %r2, [%rd1];"), "may wait for other blocks");
  check_refused(spin("ld.relaxed.gpu.global.u32 %r3, [%rd1];\nadd.u32 %r2, %r3, 0;"), "may wait for other blocks");
  check_refused(spin("atom.global.add.u32 %r2, [%rd1], 0;"), "may wait for other blocks");
  check_refused(spin("atom.global.cas.b32 %r2, [%rd1], 0, 0;"), "may wait for other blocks");
  // The result of the wait is a flag, tested in the next trip.
  check_refused(module_text(linear_index_x + R"(
mov.u32 %r5, 0;
LOOP:
setp.ne.u32 %p1, %r5, 0;
ld.volatile.global.u32 %r5, [%rd1];
@!%p1 bra LOOP;
ret;
)"),
                "may wait for other blocks");
  // Float addition by compare-and-swap: the expected value is that of the previous attempt.
  check_same(module_text(linear_index_x + R"(
ld.global.u32 %r2, [%rd1+1024];
LOOP:
add.u32 %r3, %r2, %r1;
atom.global.cas.b32 %r4, [%rd1+1024], %r2, %r3;
setp.ne.u32 %p1, %r4, %r2;
mov.u32 %r2, %r4;
@%p1 bra LOOP;
ret;
)"),
             {{5, 1, 1}}, {8, 1, 1});
}

TEST_CASE("Refused: a barrier or warp operation behind a return that not all threads take") {
  const auto early = [](const std::string& leave, const std::string& meet) {
    return module_text(shared_tile + linear_index_x + "ld.param.u32 %r2, [n];\nsetp.ge.u32 %p1, %r18, 16;\n" +
                       "setp.eq.u32 %p2, %r10, %r2;\n" + leave + "\n" + meet + "\nst.global.u32 [%rd3], %r1;\nret;\n" +
                       "OUT:\nret;\n");
  };
  constexpr const char* reason = "a barrier or warp operation is reachable";
  check_refused(early("@%p1 ret;", "bar.sync 0;"), reason);
  check_refused(early("@%p1 exit;", "bar.sync 0;"), reason);
  check_refused(early("@%p1 bra OUT;", "bar.sync 0;"), reason);
  check_refused(early("@%p1 bra OUT;", "bar.warp.sync -1;"), reason);
  check_refused(early("@%p1 ret;", "shfl.sync.idx.b32 %r3, %r1, 0, 31, -1;"), reason);
  check_refused(
      early("LOOP:\n@%p1 ret;\nbar.sync 0;\nadd.u32 %r2, %r2, -1;\nsetp.ne.u32 %p3, %r2, 0;\n@%p3 bra LOOP;", ""),
      reason);
  // All paths end in the same return: only the barrier shows which threads have left.
  const auto skipping = [](const std::string& test, const std::string& meet, const std::string& rest) {
    return module_text(shared_tile + linear_index_x + test + "\n@%p1 bra OUT;\n" + meet +
                       "\nst.global.u32 [%rd3], %r1;\nOUT:\n" + rest + "ret;\n");
  };
  const std::string odd = "setp.ge.u32 %p1, %r18, 16;";
  check_refused(skipping(odd, "bar.sync 0;", ""), reason);
  check_refused(skipping(odd, "bar.warp.sync -1;", ""), reason);
  check_refused(skipping(odd, "shfl.sync.idx.b32 %r3, %r1, 0, 31, -1;", "st.global.u32 [%rd1], 1;\n"), reason);
  check_refused(skipping(odd, "", "@%p1 bar.sync 0;\n"), reason);
  // No thread leaves before the last barrier, so the original's warps are complete, too.
  check_same(skipping(odd, "bar.warp.sync 0xffff;", "bar.sync 0;\n"), {{5, 1, 1}}, {32, 1, 1});
  // Whole warps leave, if a warp is a part of a row.
  for (const std::string test : {"setp.gt.u32 %p1, %r18, 31;", "shr.u32 %r20, %r18, 5;\nsetp.ne.s32 %p1, %r20, 0;"}) {
    const std::string text = skipping(test, "shfl.sync.idx.b32 %r1, %r1, 0, 31, -1;", "");
    check_same(text, {{5, 1, 1}}, {96, 1, 1});
    CHECK(run(rewrite(text).text, {5, 1, 1}, {32, 2, 1}, 2).entry == "k__r2d2");
    CHECK(run(rewrite(text).text, {5, 1, 1}, {33, 1, 1}, 2).entry == "k__r2d2");
    CHECK(run(rewrite(text).text, {5, 1, 1}, {16, 4, 1}, 2).entry == "k");
  }
  // The whole block returns: %p2 is about the block.
  check_same(early("@%p2 ret;", "bar.sync 0;"), {{6, 1, 1}}, {32, 1, 1});
  check_same(early("@%p2 bra OUT;", "shfl.sync.idx.b32 %r1, %r1, 0, 31, -1;"), {{6, 1, 1}}, {32, 1, 1});
  // After the last barrier any thread may leave.
  check_same(early("bar.sync 0;\n@%p1 ret;", ""), {{6, 1, 1}}, {32, 1, 1});
}

TEST_CASE("Refused: what outlives a virtual block") {
  const auto with = [](const std::string& text, const std::string& variables = "") {
    return module_text(shared_tile + linear_index_x + "mov.u32 %r30, tile;\n" + text +
                           "\nst.global.u32 [%rd3], %r1;\nret;\n",
                       variables);
  };
  check_refused(with("mbarrier.init.shared.b64 [%r30], 32;"), "uses asynchronous barriers");
  check_refused(with("bar.arrive 1, 64;"), "arrives at a barrier without waiting");
  check_refused(with("bar.sync %r18;"), "has a barrier whose number is computed");
  check_refused(with("call f;", ".visible .func f()\n{\nexit;\n}\n"), "calls f, which ends the thread");
  check_refused(with("call f;", ".visible .func f()\n{\n.reg .b32 %r<2>;\nmov.u32 %r1, %ctaid.x;\nret;\n}\n"),
                "calls f, which reads %ctaid");
  check_refused(with("call g;", ".extern .func g();\n"), "calls g, which is not in the module");
  check_refused(with("call f;", ".extern .func g();\n.visible .func f()\n{\ncall g;\nret;\n}\n"),
                "calls f, which calls g, which is not in the module");
  check_same(with("call f;", ".visible .func f()\n{\n.reg .b32 %r<2>;\nmov.u32 %r1, %tid.x;\nret;\n}\n"), {{5, 1, 1}},
             {8, 1, 1});
}

TEST_CASE("A variant is not made from a variant, nor from what the module launches itself") {
  const std::string text = module_text(linear_index_x + "st.global.u32 [%rd3], %r1;\nret;\n");
  const std::string once = rewrite(text).text;
  const Rewritten twice = rewrite(once);
  CHECK(twice.text == rewrite(once, "r2d2").text);
  CHECK(twice.remarked("not made persistent: it is a variant already"));
}

} // namespace ptxrewrite::tests::persistent_test
