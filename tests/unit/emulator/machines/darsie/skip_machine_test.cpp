// DARSIE's machine (darsie sections 4.3 to 4.5) on kernels with hand-written marks, so that counts can be computed by
// hand. A mark that is wrong on purpose shows the value that a follower takes.
#include "emulator/machines/darsie/skip_counters.h"
#include "tests/unit/emulator/run_ptx.h"

#include <fmt/format.h>

#include <map>
#include <numeric>

namespace ptxrewrite::tests::skip_machine_test {

using namespace ptxrewrite;
using namespace ptxrewrite::emulator;

namespace {

// out[linear thread] = %r9; `body` computes %r9 in blocks of any shape. Registers %r, %p, %rd are declared.
std::string storing_kernel(const std::string& body, const std::string& more = {}) {
  return kernel("k", ".param .u64 out", ".reg .b32 %r<64>; .reg .b64 %rd<24>; .reg .pred %p<8>;\n" + more + R"(
      mov.u32 %r20, %tid.x;
      mov.u32 %r21, %tid.y;
      mov.u32 %r22, %ntid.x;
      mad.lo.u32 %r23, %r21, %r22, %r20;
      shr.u32 %r24, %r23, 5;
)" + body + R"(
      ld.param.u64 %rd20, [out];
      mad.wide.u32 %rd21, %r23, 4, %rd20;
      st.global.u32 [%rd21], %r9;
      ret;)");
}

struct SkipRun {
  PtxRun run;
  std::vector<uint32_t> out;
  const SkipCounters& skips() const { return run.result.machines.get<SkipCounters>(); }
};

SkipRun run_on_machine(const std::string& text, Dimensions block, std::optional<SkipSettings> settings,
                       uint32_t threads = 1024) {
  SkipRun made;
  LaunchRequest request{.kernel = "k", .block = block, .fuel = 1'000'000};
  if (settings) request.machines.set(*settings);
  made.run = run_ptx(text, request, {zeros<uint32_t>(threads)});
  INFO(made.run.error, made.run.failure());
  if (made.run.error.empty()) made.out = made.run.buffer<uint32_t>(0);
  return made;
}

// Runs the machine in all variants and several orders of warps, with and without check mode, and compares memory with a
// plain run. Returns the sum of all counters.
SkipCounters check_all_orders(const std::string& text, Dimensions block, uint64_t orders = 12) {
  const SkipRun plain = run_on_machine(text, block, std::nullopt);
  REQUIRE(plain.run.ok());
  SkipCounters sum;
  for (SkipVariant variant : all_skip_variants)
    for (uint64_t seed = 0; seed < orders; ++seed)
      for (bool check : {true, false}) {
        const SkipRun skipping =
            run_on_machine(text, block, SkipSettings{.variant = variant, .check = check, .order_seed = seed});
        INFO(spelling(variant), " order ", seed, " check ", check, " ", skipping.run.failure());
        REQUIRE(skipping.run.ok());
        CHECK(skipping.out == plain.out);
        CHECK(skipping.run.result.counters.warp_instructions == plain.run.result.counters.warp_instructions);
        CHECK(skipping.run.result.counters.thread_instructions == plain.run.result.counters.thread_instructions);
        CHECK(skipping.skips().executed + skipping.skips().all_skipped() ==
              plain.run.result.counters.warp_instructions);
        CHECK(skipping.skips().most_registers <= 32);
        sum += skipping.skips();
      }
  return sum;
}

const std::string two_redundant = storing_kernel(R"(
      mov.u32 %r1, %tid.x;       //@ darsie CR x affine
      mul.lo.u32 %r2, %r1, %r1;  //@ darsie CR x unstructured
      mov.u32 %r3, %ntid.x;      //@ darsie DR uniform
      add.u32 %r4, %r3, %r2;     //@ darsie CR x unstructured
      add.u32 %r9, %r4, %r21;    //@ darsie V
)");

} // namespace

TEST_CASE("skipping: one warp executes for all; what is conditional needs the block's shape") {
  struct Shape {
    Dimensions block;
    uint64_t uniform, affine, unstructured;
  };
  // Followers: full warps except the leader. 8 x 5 threads are a full warp and a quarter of one, without followers; 16
  // x 7 are three full warps and a half.
  for (const Shape& shape :
       {Shape{{16, 16}, 7, 7, 14}, Shape{{32, 4}, 3, 3, 6}, Shape{{256, 1}, 7, 0, 0}, Shape{{24, 8}, 5, 0, 0},
        Shape{{64, 2}, 3, 0, 0}, Shape{{8, 5}, 0, 0, 0}, Shape{{16, 7}, 2, 2, 4}, Shape{{32, 1}, 0, 0, 0}}) {
    const SkipRun plain = run_on_machine(two_redundant, shape.block, std::nullopt);
    const SkipRun skipping = run_on_machine(two_redundant, shape.block, SkipSettings{});
    INFO(shape.block.x, " x ", shape.block.y);
    REQUIRE(skipping.run.ok());
    CHECK(skipping.out == plain.out);
    CHECK(skipping.skips().skipped == std::array{shape.uniform, shape.affine, shape.unstructured});
    check_all_orders(two_redundant, shape.block, 3);
  }
}

TEST_CASE("skipping: a follower takes the leader's lanes, and check mode tells when they are not its own") {
  const std::string wrong = storing_kernel(R"(
      mov.u32 %r1, %tid.y;     //@ darsie DR uniform
      add.u32 %r9, %r1, 100;   //@ darsie V
)");
  const SkipRun taken = run_on_machine(wrong, {32, 4}, SkipSettings{});
  REQUIRE(taken.run.ok());
  for (uint32_t thread = 0; thread < 128; ++thread)
    CHECK(taken.out[thread] == 100); // warp 0's
  const SkipRun checked = run_on_machine(wrong, {32, 4}, SkipSettings{.check = true});
  CHECK(checked.run.failure() ==
        "warp 1 skips a redundant instruction: '%r1' would be 0x1 in its lane 0, and the shared result is 0x0");
  REQUIRE(checked.run.result.failure);
  const SourceRange range = checked.run.result.failure->range;
  CHECK(wrong.substr(range.begin, range.end - range.begin).starts_with("mov.u32 %r1, %tid.y"));
  CHECK(checked.run.result.failure->kernel == "k");
  // Without sharing only the order of the warps differs.
  const SkipRun apart = run_on_machine(wrong, {32, 4}, SkipSettings{.share = false});
  CHECK(apart.out[127] == 103);
  CHECK(apart.skips().skipped == taken.skips().skipped);
}

TEST_CASE("skipping: predicates, 64 bits, several results, guards whose old value stays") {
  const SkipCounters sum = check_all_orders(storing_kernel(R"(
      mov.u32 %r1, %tid.x;               //@ darsie CR x affine
      setp.lt.u32 %p1, %r1, 7;           //@ darsie CR x unstructured
      mov.u32 %r2, 5;                    //@ darsie DR uniform
 @%p1 add.u32 %r2, %r1, %r2;             //@ darsie CR x unstructured
      cvt.u64.u32 %rd1, %r2;             //@ darsie CR x unstructured
      mul.lo.u64 %rd2, %rd1, 0x100000001; //@ darsie CR x unstructured
      mov.b64 {%r3, %r4}, %rd2;          //@ darsie CR x unstructured
      sub.u32 %r9, %r3, %r21;            //@ darsie V
      add.u32 %r9, %r9, %r4;             //@ darsie V
)"),
                                            {16, 12});
  CHECK(sum.all_skipped() > 0);
}

TEST_CASE("skipping: the majority goes on, the others execute until a barrier brings them back") {
  const std::string text = storing_kernel(R"(
      mov.u32 %r9, 0;
      setp.eq.u32 %p1, %r24, 1;   //@ darsie V
 @%p1 bra OTHER;
      mov.u32 %r1, %ntid.y;       //@ darsie DR uniform
      add.u32 %r9, %r1, 1;        //@ darsie V
      bra.uni JOIN;
OTHER:
      mov.u32 %r9, 77;            //@ darsie DR uniform
JOIN:
      mov.u32 %r2, %ntid.y;       //@ darsie DR uniform
      add.u32 %r9, %r9, %r2;      //@ darsie V
      bar.sync 0;
      mov.u32 %r3, %nctaid.x;     //@ darsie DR uniform
      add.u32 %r9, %r9, %r3;      //@ darsie V
)");
  const SkipRun skipping = run_on_machine(text, {32, 4}, SkipSettings{});
  REQUIRE(skipping.run.ok());
  // Three warps on the path: 2 + 2 followers; one off the path executes two instructions; then 3 followers.
  CHECK(skipping.skips().all_skipped() == 7);
  CHECK(skipping.skips().off_path == 2);
  CHECK(skipping.skips().left_path == 1);
  CHECK(skipping.skips().branch_syncs == 1);
  CHECK(skipping.skips().branch_waits == 4);
  // No warp waits, so the single warp has its own path.
  const SkipRun free = run_on_machine(text, {32, 4}, SkipSettings{.variant = SkipVariant::no_branch_sync});
  CHECK(free.skips().branch_syncs == 0);
  CHECK(free.skips().all_skipped() == 7);
  check_all_orders(text, {32, 4});
}

TEST_CASE("skipping: paper-marks leaves out marks that the paper does not have") {
  // %laneid and the sum are the same in all four warps, but not by the paper's rules: 2 instructions x 3 followers.
  const std::string text = storing_kernel("mov.u32 %r1, %laneid;\nadd.u32 %r9, %r1, 1;\n");
  const SkipRun all = run_on_machine(text, {32, 4}, SkipSettings{});
  const SkipRun paper = run_on_machine(text, {32, 4}, SkipSettings{.variant = SkipVariant::paper_marks});
  REQUIRE(all.run.ok());
  REQUIRE(paper.run.ok());
  CHECK(all.skips().all_skipped() == paper.skips().all_skipped() + 6);
  CHECK(paper.skips().all_skipped() > 0); // tid.x, which both mark
  CHECK(all.out == paper.out);
}

TEST_CASE("skipping: lanes that part take their warp off the path; a value of one history is not another's") {
  const std::string text = storing_kernel(R"(
      mov.u32 %r9, 0;
      mov.u32 %r1, 0;             //@ darsie DR uniform
LOOP:
      add.u32 %r1, %r1, 3;        //@ darsie DR uniform
      shl.b32 %r2, %r1, %r1;      //@ darsie DR uniform
      add.u32 %r9, %r9, %r2;      //@ darsie V
      setp.gt.u32 %p1, %r1, %r23; //@ darsie V
 @%p1 bra OUT;
      setp.lt.u32 %p2, %r1, 40;   //@ darsie DR uniform
 @%p2 bra LOOP;
OUT:
)");
  const SkipCounters sum = check_all_orders(text, {32, 4});
  CHECK(sum.left_path > 0);
  CHECK(sum.all_skipped() > 0);
}

TEST_CASE("skipping: loops that end by exit alone have no branch to wait at") {
  const std::string text = kernel("k", ".param .u64 out", R"(
      .reg .b32 %r<64>; .reg .b64 %rd<24>; .reg .pred %p<8>;
      mov.u32 %r23, %tid.x;
      shr.u32 %r24, %r23, 5;
      ld.param.u64 %rd20, [out];
      mad.wide.u32 %rd21, %r23, 4, %rd20;
      mov.u32 %r1, 0;          //@ darsie DR uniform
LOOP:
      add.u32 %r1, %r1, 5;     //@ darsie DR uniform
      st.global.u32 [%rd21], %r1;
      setp.gt.u32 %p1, %r1, 60;
 @%p1 exit;
      bra LOOP;)");
  const SkipCounters sum = check_all_orders(text, {128});
  CHECK(sum.all_skipped() > 0);
  CHECK(sum.branch_syncs == 0);
}

TEST_CASE("skipping: a barrier in different trips of a loop puts nobody on the other's path") {
  // Even warps pass it in trips 0, 2, 4 ..., odd ones in 1, 3, 5 ...: they wait for each other nevertheless.
  const std::string text = storing_kernel(R"(
      mov.u32 %r9, 0;
      and.b32 %r5, %r24, 1;
      mov.u32 %r1, 0;             //@ darsie DR uniform
LOOP:
      and.b32 %r2, %r1, 1;        //@ darsie DR uniform
      setp.ne.u32 %p1, %r2, %r5;  //@ darsie V
 @%p1 bra BEHIND;
      bar.sync 0;
      mul.lo.u32 %r3, %r1, 10;    //@ darsie DR uniform
      add.u32 %r9, %r9, %r3;      //@ darsie V
BEHIND:
      add.u32 %r1, %r1, 1;        //@ darsie DR uniform
      setp.lt.u32 %p2, %r1, 6;    //@ darsie DR uniform
 @%p2 bra LOOP;
)");
  const SkipRun plain = run_on_machine(text, {32, 4}, std::nullopt);
  CHECK(plain.out[0] == 60);
  CHECK(plain.out[32] == 90);
  const SkipCounters sum = check_all_orders(text, {32, 4});
  CHECK(sum.all_skipped() > 0);
}

TEST_CASE("skipping: a load leaves the table with any store of the block, and with fences if it may be global") {
  const std::string shared = ".shared .align 4 .u32 cell[64];\n";
  const std::string text = storing_kernel(R"(
      mov.u32 %r1, cell;            //@ darsie DR uniform
      ld.shared.u32 %r2, [%r1];     //@ darsie DR uniform
      mad.lo.u32 %r3, %r24, 4, %r1;
      st.shared.u32 [%r3+4], %r2;
      ld.shared.u32 %r4, [%r1];     //@ darsie DR uniform
      add.u32 %r9, %r4, %r2;
)",
                                          shared);
  const SkipCounters sum = check_all_orders(text, {32, 8});
  CHECK(sum.skipped_loads > 0);
  CHECK(sum.dropped_by_store > 0);
  CHECK(sum.stale > 0);
  CHECK(sum.stale_wrong == 0);
  const std::string fenced = storing_kernel(R"(
      ld.param.u64 %rd1, [out];     //@ darsie DR uniform
      ld.global.u32 %r2, [%rd1+2048];    //@ darsie DR uniform
      membar.gl;
      add.u32 %r9, %r2, 1;
)");
  CHECK(check_all_orders(fenced, {32, 8}).dropped_by_fence > 0);
}

TEST_CASE("skipping: stores that change what is loaded; IGNORE-STORE counts what it would get wrong") {
  // Each warp reads the cell and then writes it: a warp reads the value of the previous warp.
  const std::string text = storing_kernel(R"(
      mov.u32 %r1, cell;            //@ darsie DR uniform
      ld.shared.u32 %r2, [%r1];     //@ darsie DR uniform
      add.u32 %r3, %r24, 1;
      st.shared.u32 [%r1], %r3;
      mov.u32 %r9, %r2;
)",
                                          ".shared .align 4 .u32 cell[4];\n");
  SkipCounters standard, ignoring;
  for (uint64_t seed = 1; seed < 40; ++seed)
    for (SkipVariant variant : {SkipVariant::standard, SkipVariant::ignore_store, SkipVariant::no_branch_sync}) {
      SkipSettings settings{.variant = variant, .order_seed = seed};
      const SkipRun skipping = run_on_machine(text, {32, 8}, settings);
      settings.check = true;
      const SkipRun checked = run_on_machine(text, {32, 8}, settings);
      settings.check = settings.share = false;
      const SkipRun apart = run_on_machine(text, {32, 8}, settings);
      INFO(spelling(variant), " order ", seed, " ", checked.run.failure());
      REQUIRE(skipping.run.ok());
      REQUIRE(checked.run.ok());
      CHECK(skipping.out == apart.out);
      CHECK(checked.out == apart.out);
      (variant == SkipVariant::ignore_store ? ignoring : standard) += skipping.skips();
    }
  CHECK(standard.dropped_by_store > 0);
  CHECK(standard.stale == 0);
  CHECK(ignoring.stale_wrong > 0);
  CHECK(ignoring.dropped_by_store == 0);
}

TEST_CASE("skipping: 32 registers; who finds none waits for the stragglers, or executes for itself") {
  // Forty values that are live at the same time.
  std::string body = "mov.u32 %r9, 0;\n";
  for (int i = 0; i < 40; ++i)
    body += "add.u32 %r" + std::to_string(i < 20 ? i + 30 : i - 20 + 70) + ", %r22, " + std::to_string(i) +
            "; //@ darsie DR uniform\n";
  for (int i = 0; i < 40; ++i)
    body += "mad.lo.u32 %r9, %r9, 3, %r" + std::to_string(i < 20 ? i + 30 : i - 20 + 70) + ";\n";
  std::string text = storing_kernel(body);
  text.replace(text.find("%r<64>"), 6, "%r<99>");
  const SkipRun living = run_on_machine(text, {32, 8}, SkipSettings{});
  CHECK(living.skips().all_skipped() == 32 * 7);
  CHECK(living.skips().no_register == 8 * 8);
  CHECK(living.skips().most_registers == 32);
  CHECK(living.skips().register_syncs == 0); // it would free none
  check_all_orders(text, {32, 8}, 6);
  // Forty literals that are live at the same time: machine code has no registers for them, nor for parameters.
  for (const char* row : {"mov.u32 %r{}, {};", "ld.param.u32 %r{}, [out];"}) {
    body = "mov.u32 %r9, 0;\n";
    for (int i = 0; i < 40; ++i)
      body += fmt::format(fmt::runtime(row), i < 20 ? i + 30 : i + 50, i) + " //@ darsie DR uniform\n";
    body += "add.u32 %r99, %r22, 1; //@ darsie DR uniform\n";
    for (int i = 0; i < 40; ++i)
      body += fmt::format("mad.lo.u32 %r9, %r9, 3, %r{};\n", i < 20 ? i + 30 : i + 50);
    text = storing_kernel(body + "add.u32 %r9, %r9, %r99;\n");
    text.replace(text.find("%r<64>"), 6, "%r<110>");
    const SkipRun operands = run_on_machine(text, {32, 8}, SkipSettings{});
    CHECK(operands.skips().all_skipped() == 41 * 7);
    CHECK(operands.skips().no_register == 0);
    CHECK(operands.skips().most_registers == 1);
    check_all_orders(text, {32, 8}, 3);
  }
  // One register that is written repeatedly: versions wait for the slowest warp.
  body = "mov.u64 %rd1, 1; //@ darsie DR uniform\n";
  for (int i = 0; i < 24; ++i)
    body += "add.u32 %r" + std::to_string(i + 30) + ", %r22, 7; //@ darsie DR uniform\n";
  for (int i = 0; i < 80; ++i)
    body += "mad.lo.u64 %rd1, %rd1, 3, 5; //@ darsie DR uniform\nadd.u32 %r25, %r22, %r24;\n";
  body += "cvt.u32.u64 %r9, %rd1;\n";
  for (int i = 0; i < 24; ++i)
    body += "mad.lo.u32 %r9, %r9, 3, %r" + std::to_string(i + 30) + ";\n";
  const SkipCounters versions = check_all_orders(storing_kernel(body), {32, 8}, 30);
  CHECK(versions.most_versions > 2);
  CHECK(versions.no_entry > 0);
  CHECK(versions.evictions > 0);
  CHECK(versions.register_syncs > 0);
}

TEST_CASE("skipping: warps that wait for one another outside the path are let go") {
  // Warp 1 waits at a barrier for warp 2, which waits at another one for warp 0, which the path would keep at a branch
  // until warp 1 arrives. Hardware deadlocks there.
  const std::string text = storing_kernel(R"(
      mov.u32 %r9, 1;             //@ darsie DR uniform
      setp.eq.u32 %p1, %r24, 2;
 @%p1 bra THIRD;
      setp.eq.u32 %p2, %r24, 1;
 @%p2 barrier.sync 1, 64;
      setp.lt.u32 %p3, %r22, 1000; //@ darsie DR uniform
 @%p3 bra NEXT;
      mov.u32 %r9, 5;
NEXT:
      setp.eq.u32 %p4, %r24, 0;
 @%p4 barrier.sync 2, 64;
      bra.uni JOIN;
THIRD:
      barrier.sync 2, 64;
      barrier.sync 1, 64;
JOIN:
)");
  const SkipCounters sum = check_all_orders(text, {32, 3}, 4);
  CHECK(sum.forced_syncs > 0);
}

TEST_CASE("skipping: two ports look at as many pcs; the machine and observers exclude each other") {
  const SkipRun skipping = run_on_machine(two_redundant, {32, 8}, SkipSettings{});
  CHECK(skipping.skips().probes == 4 * 8);
  CHECK(skipping.skips().port_accesses == 4); // all warps at one pc in each round
  CHECK(skipping.skips().port_conflicts == 0);
  CHECK(check_all_orders(two_redundant, {32, 8}, 6).port_conflicts > 0);
}

} // namespace ptxrewrite::tests::skip_machine_test
