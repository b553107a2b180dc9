// The limit studies on values: properties of lane arrays, kernels whose redundancy is known by construction, and the
// same counts as the observers that look at every value individually.
#include "emulator/observe/value_study.h"

#include "emulator/observe/redundancy.h"
#include "emulator/observe/repeat_table.h"
#include "support/mix.h"
#include "tests/unit/emulator/run_ptx.h"

#include <map>
#include <random>
#include <set>

namespace ptxrewrite::tests::value_study_test {

using namespace ptxrewrite;
using namespace ptxrewrite::emulator;

namespace {

template <class T, class F> LaneFacts facts_of(F value, const WarpShape& shape, uint32_t mask = full_mask) {
  alignas(64) std::array<T, 32> lanes;
  for (unsigned lane = 0; lane < 32; ++lane)
    lanes[lane] = static_cast<T>(value(lane));
  const auto* bytes = reinterpret_cast<const std::byte*>(lanes.data());
  return mask == full_mask ? lane_facts(bytes, sizeof(T) * 8, shape) : lane_facts_in(bytes, sizeof(T) * 8, shape, mask);
}

template <class T> void check_widths() {
  const WarpShape row = WarpShape::of(1, 256, 1), tile = WarpShape::of(3, 16, 16), cube = WarpShape::of(0, 4, 4);
  const LaneFacts seven = facts_of<T>([](unsigned) { return 7; }, row);
  CHECK(seven.uniform());
  CHECK(seven.affine());
  CHECK(seven.narrow());
  CHECK(!seven.negative());
  CHECK(seven.hash() == uniform_facts(7, sizeof(T) * 8).hash());
  CHECK(!facts_of<T>([](unsigned lane) { return lane == 31 ? 8 : 7; }, row).uniform());
  CHECK(facts_of<T>([](unsigned lane) { return 5 - 3 * static_cast<int>(lane); }, row).affine());
  CHECK(!facts_of<T>([](unsigned lane) { return lane == 17 ? 9 : 3 * lane; }, row).affine());
  CHECK(!facts_of<T>([](unsigned lane) { return lane * lane; }, row).affine());
  // Two rows of 16: 2 x + 50 y.
  auto in_tile = [](unsigned lane) { return 100 + 2 * (lane % 16) + 50 * (lane / 16); };
  CHECK(facts_of<T>(in_tile, tile).affine());
  CHECK(!facts_of<T>(in_tile, row).affine());
  CHECK(facts_of<T>([](unsigned lane) { return lane; }, tile).affine());
  // Two planes of 4 x 4: x - y + 9 z.
  auto in_cube = [](unsigned lane) {
    return static_cast<int>(lane % 4 + 9 * (lane / 16)) - static_cast<int>(lane / 4 % 4);
  };
  CHECK(facts_of<T>(in_cube, cube).affine());
  CHECK(!facts_of<T>(in_cube, tile).affine());
  // One stride from lane to lane, also across the ends of rows and planes.
  const WarpShape ragged = WarpShape::of(1, 12, 40), thin = WarpShape::of(0, 1, 64);
  for (const WarpShape& shape : {row, tile, cube, ragged, thin})
    CHECK(facts_of<T>([](unsigned lane) { return 9 + 3 * lane; }, shape).consecutive());
  CHECK(seven.consecutive());
  CHECK(!facts_of<T>(in_tile, tile).consecutive());
  CHECK(!facts_of<T>([](unsigned lane) { return lane % 16; }, tile).consecutive());
  CHECK(!facts_of<T>([](unsigned lane) { return lane / 16; }, tile).consecutive());
  CHECK(!facts_of<T>(in_cube, cube).consecutive());
  CHECK(!facts_of<T>([](unsigned lane) { return (32 + lane) % 12; }, ragged).consecutive());
  CHECK(facts_of<T>([](unsigned lane) { return (32 + lane) % 12; }, ragged).affine());
  CHECK(!facts_of<T>([](unsigned lane) { return lane * lane; }, row).consecutive());
  CHECK(facts_of<T>([](unsigned lane) { return lane % 16; }, tile, 0xffff).consecutive());
  CHECK(!facts_of<T>([](unsigned lane) { return lane % 16; }, tile, 0x1ffff).consecutive());
  // Only the lanes of the mask count.
  CHECK(facts_of<T>([](unsigned lane) { return lane < 8 ? 7 : lane; }, row, 0xff).uniform());
  CHECK(facts_of<T>([](unsigned lane) { return lane < 8 ? 7 : lane; }, row, 0xff).hash() == seven.hash());
  CHECK(facts_of<T>([](unsigned lane) { return lane < 8 ? 3 * lane : 1; }, row, 0xff).affine());
  CHECK(!facts_of<T>([](unsigned lane) { return lane < 8 ? 3 * lane : 1; }, row, 0x1ff).affine());
}

} // namespace

TEST_CASE("lane arrays that are uniform, affine in the thread index, or neither") {
  check_widths<uint8_t>();
  check_widths<uint16_t>();
  check_widths<uint32_t>();
  check_widths<uint64_t>();
}

TEST_CASE("a narrow array has the same sign extension in all lanes") {
  const WarpShape shape = WarpShape::of(0, 256, 1);
  auto narrow = [&](auto value) { return facts_of<uint32_t>(value, shape); };
  CHECK(narrow([](unsigned lane) { return 65535 - lane; }).narrow());
  CHECK(!narrow([](unsigned lane) { return 65536 - lane; }).narrow());
  const LaneFacts negative = narrow([](unsigned lane) { return -1 - static_cast<int>(lane); });
  CHECK(negative.narrow());
  CHECK(negative.negative());
  // Positive and negative: their upper halves differ.
  CHECK(!narrow([](unsigned lane) { return static_cast<int>(lane) - 16; }).narrow());
  CHECK(!facts_of<uint64_t>([](unsigned lane) { return (uint64_t(1) << 32) + lane; }, shape).narrow());
}

TEST_CASE("hashes tell arrays apart that differ in one lane or in the order of two") {
  const WarpShape shape = WarpShape::of(0, 256, 1);
  std::set<uint64_t> seen;
  size_t arrays = 0;
  auto put = [&](auto value) {
    seen.insert(facts_of<uint32_t>(value, shape).hash());
    ++arrays;
  };
  put([](unsigned lane) { return lane; });
  for (unsigned changed = 0; changed < 32; ++changed)
    for (unsigned bit = 0; bit < 32; ++bit)
      put([&](unsigned lane) { return lane ^ (lane == changed ? 1u << bit : 0); });
  for (unsigned first = 0; first < 32; ++first)
    for (unsigned second = first + 1; second < 32; ++second) {
      // Swapping 2n and 2n + 1 is changing bit 0 of both, which no array above does.
      put([&](unsigned lane) { return lane == first ? second : lane == second ? first : lane; });
    }
  CHECK(seen.size() == arrays);
}

TEST_CASE("a table of repeats says what a map of sets says") {
  RepeatTable table;
  std::mt19937_64 random(5);
  for (unsigned round = 0; round < 3; ++round) {
    std::map<uint64_t, std::set<uint32_t>> truth;
    for (unsigned i = 0; i < 5000; ++i) {
      const uint64_t hash = mixed_bits(random() % 900);
      const auto warp = static_cast<uint32_t>(random() % 32);
      std::set<uint32_t>& warps = truth[hash];
      const bool others = warps.size() > warps.count(warp);
      CHECK(table.repeats(hash, warp) == others);
      warps.insert(warp);
    }
    table.clear();
  }
}

namespace {

struct Studied {
  PtxRun run;
  std::vector<ValueRow> rows;
  // The row of the first instruction that contains the text.
  const ValueRow& row(std::string_view text) const {
    for (const ValueRow& row : rows) {
      if (!row.function) continue;
      const SourceRange range = row.function->instructions[row.instruction].range;
      if (run.module->source.text().substr(range.begin, range.end - range.begin).find(text) != std::string_view::npos)
        return row;
    }
    FAIL("not executed: ", text);
    return rows.front();
  }
};

// Runs two observers at once: the study, and its reference.
class Both final : public Observer {
public:
  Both(Observer& one, Observer& other) : one_(one), other_(other) {}
  bool wants(const Block& block) override { return one_.wants(block) && other_.wants(block); }
  void before(Block& block, Warp& warp, const MicroOp& op) override {
    one_.before(block, warp, op), other_.before(block, warp, op);
  }
  void after(Block& block, Warp& warp, const MicroOp& op, uint32_t mask) override {
    one_.after(block, warp, op, mask), other_.after(block, warp, op, mask);
  }
  void passed(Block& block, Warp& warp, const MicroOp& op) override {
    one_.passed(block, warp, op), other_.passed(block, warp, op);
  }
  void block_ended(Block& block) override { one_.block_ended(block), other_.block_ended(block); }

private:
  Observer &one_, &other_;
};

// Runs the study, and compares WP and TB with the observer that looks at each value individually.
Studied study(std::string text, LaunchRequest request, const std::vector<Argument>& arguments,
              uint64_t resident_blocks = 1) {
  ValueStudy values({.resident_blocks = [=](uint64_t) { return resident_blocks; }});
  RedundancyStudy redundancy;
  Both both(values, redundancy);
  request.observer = &both;
  Studied studied{run_ptx(std::move(text), request, arguments), {}};
  REQUIRE(studied.run.error == "");
  REQUIRE(studied.run.failure() == "");
  studied.rows = values.rows();
  CHECK(values.forgotten_instances() == 0);
  for (uint32_t number = 0; number < studied.rows.size(); ++number) {
    const ValueRow& row = studied.rows[number];
    const auto known = redundancy.rows().find(number);
    const RedundancyRow slow = known == redundancy.rows().end() ? RedundancyRow() : known->second;
    CAPTURE(number);
    CHECK(row.executed == WorkCount{slow.executions, slow.lanes});
    CHECK(row.uniform == WorkCount{slow.uniform, slow.uniform_lanes});
    CHECK(row.repeated == WorkCount{slow.repeated, slow.repeated_lanes});
  }
  return studied;
}

constexpr size_t uniform = 0, affine = 1, unstructured = 2;

} // namespace

TEST_CASE("redundancy at warp, block and grid level, by kinds, of a kernel without branches") {
  // Three blocks of 16 x 8 threads, four warps each, two blocks resident. Each instruction is executed 12 times.
  const Studied studied = study(kernel("k", ".param .u64 table, .param .u32 n", R"(
  .reg .b64 %rd<9>; .reg .b32 %r<30>; .reg .pred %p<9>;
  ld.param.u64 %rd1, [table];
  ld.param.u32 %r1, [n];
  mov.u32 %r2, %tid.x;
  mov.u32 %r3, %tid.y;
  mov.u32 %r4, %ctaid.x;
  add.u32 %r5, %r1, 7;       // the same everywhere
  add.u32 %r6, %r4, 7;       // one value in a block
  mul.lo.u32 %r7, %r2, 12;   // 0, 12, 24 .. 180 twice in every warp
  mul.lo.u32 %r8, %r3, 12;   // affine, another vector in every warp
  mad.wide.u32 %rd2, %r2, 4, %rd1;
  ld.global.u32 %r9, [%rd2]; // an affine address
  add.u32 %r10, %r9, 1;      // what the table holds, in every warp
  xor.b32 %r11, %r9, %r4;    // the same, another one in every block
  mul.lo.u32 %r12, %r2, %r2; // affine sources, a result that is not
  st.global.u32 [%rd2], %r9;
  setp.lt.u32 %p1, %r2, 4;
  mov.u32 %r13, %r7;
  @%p1 add.u32 %r13, %r7, 1;
  ret;)"),
                                {.kernel = "k", .grid = {3}, .block = {16, 8}},
                                {buffer_of<uint32_t>({3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3}), 9u}, 2);
  struct Expected {
    const char* text;
    uint64_t warp, uniform, affine, unstructured, grid, reused, dac, dac_once, consecutive = 0;
  };
  // All 12 executions, or none; reused are all but the first warp's. Batches: blocks 0 and 1, block 2.
  for (const Expected& expected : {
           Expected{"add.u32 %r5", 12, 12, 0, 0, 12, 9, 12, 2, 12},
           Expected{"add.u32 %r6", 12, 12, 0, 0, 0, 9, 12, 2, 12},
           Expected{"mov.u32 %r2", 0, 0, 12, 0, 12, 0, 12, 2},
           Expected{"mul.lo.u32 %r7", 0, 0, 12, 0, 12, 0, 12, 2},
           Expected{"mul.lo.u32 %r8", 0, 0, 0, 0, 0, 0, 12, 2},
           Expected{"ld.param.u32", 12, 12, 0, 0, 12, 0, 0, 0},
           Expected{"ld.global.u32", 0, 0, 12, 0, 12, 0, 0, 0},
           Expected{"add.u32 %r10", 0, 0, 0, 12, 12, 0, 0, 0},
           Expected{"xor.b32", 0, 0, 0, 12, 0, 0, 0, 0},
           Expected{"mul.lo.u32 %r12", 0, 0, 12, 0, 12, 0, 0, 0},
           Expected{"st.global", 0, 0, 0, 0, 0, 0, 0, 0},
           Expected{"setp.lt", 0, 0, 12, 0, 12, 0, 12, 2},
           // The guard is neither uniform nor affine, but equal in all warps, like the old value of %r13.
           Expected{"@%p1 add", 0, 0, 0, 12, 12, 0, 0, 0},
       }) {
    CAPTURE(expected.text);
    const ValueRow& row = studied.row(expected.text);
    CHECK(row.executed.warps == 12);
    CHECK(row.warp_redundant.warps == expected.warp);
    CHECK(row.block[uniform].all.warps == expected.uniform);
    CHECK(row.block[affine].all.warps == expected.affine);
    CHECK(row.block[unstructured].all.warps == expected.unstructured);
    const uint64_t in_block = expected.uniform + expected.affine + expected.unstructured;
    CHECK(row.block[uniform].once.warps + row.block[affine].once.warps + row.block[unstructured].once.warps ==
          in_block / 4);
    CHECK(row.grid.all.warps == expected.grid);
    CHECK(row.grid.once.warps == expected.grid / 12);
    CHECK(row.reused.warps == expected.reused);
    CHECK(row.affine.all.warps == expected.dac);
    CHECK(row.affine.once.warps == expected.dac_once);
    CHECK(row.consecutive.all.warps == expected.consecutive);
    CHECK(row.consecutive.once.warps == expected.consecutive / 6);
    const uint64_t lanes = row.executed.lanes / 12;
    CHECK(row.block[unstructured].all.lanes == expected.unstructured * lanes);
    CHECK(row.grid.once.lanes == expected.grid / 12 * lanes);
  }
  CHECK(studied.row("@%p1 add").executed.lanes == 12 * 8);
}

TEST_CASE("instances are matched by how often a warp has come to an instruction") {
  // Warp w of two makes 2 + w trips; the counter is equal in both while both are in the loop.
  const Studied studied = study(kernel("k", "", R"(
  .reg .b32 %r<9>; .reg .pred %p<3>;
  mov.u32 %r1, %tid.x;
  shr.u32 %r2, %r1, 5;
  add.u32 %r3, %r2, 2;
  mov.u32 %r4, 0;
LOOP:
  add.u32 %r4, %r4, 1;
  setp.lt.u32 %p1, %r4, %r3;
  @%p1 bra LOOP;
  ret;)"),
                                {.kernel = "k", .block = {64}}, {});
  const ValueRow& step = studied.row("add.u32 %r4");
  CHECK(step.executed.warps == 5);
  CHECK(step.trips == 3);
  CHECK(step.block[uniform].all.warps == 4); // trips 0 and 1
  CHECK(step.block[uniform].once.warps == 2);
  CHECK(step.warp_redundant.warps == 5);
  CHECK(studied.row("setp").block[uniform].all.warps == 0); // the bound differs
  CHECK(studied.row("bra").block[uniform].all.warps == 0);  // has no result
}

TEST_CASE("nothing is redundant in diverged lanes, nor behind the end of some") {
  const Studied studied = study(kernel("k", "", R"(
  .reg .b32 %r<9>; .reg .pred %p<3>;
  mov.u32 %r1, %laneid;
  setp.lt.u32 %p1, %r1, 16;
  @%p1 bra SMALL;
  add.u32 %r2, 1, 1;
  bra MEET;
SMALL:
  add.u32 %r2, 2, 2;
MEET:
  add.u32 %r3, 3, 3;
  setp.gt.u32 %p2, %r1, 30;
  @%p2 exit;
  add.u32 %r4, 4, 4;
  ret;)"),
                                {.kernel = "k", .block = {64}}, {});
  for (const char* diverged : {"add.u32 %r2, 1", "add.u32 %r2, 2", "add.u32 %r4"}) {
    CAPTURE(diverged);
    const ValueRow& row = studied.row(diverged);
    CHECK(row.executed.warps == 2);
    CHECK(row.uniform.warps == 2); // WP and TB still count
    CHECK(row.repeated.warps == 1);
    CHECK(row.warp_redundant.warps == 0);
    CHECK(row.block[uniform].all.warps == 0);
    CHECK(row.reused.warps == 0);
    CHECK(row.affine.all.warps == 0);
  }
  CHECK(studied.row("add.u32 %r3").block[uniform].all.warps == 2);
}

TEST_CASE("a load is redundant only where it reads the same, atomics and clocks never are") {
  const Studied studied = study(kernel("k", ".param .u64 out", R"(
  .reg .b64 %rd<9>; .reg .b32 %r<9>;
  ld.param.u64 %rd1, [out];
  ld.global.u32 %r1, [%rd1];   // each warp finds what the ones before have counted
  ld.global.u32 %r2, [%rd1+4]; // nobody writes it
  atom.global.add.u32 %r3, [%rd1], 1;
  mov.u32 %r4, %clock;
  ret;)"),
                                {.kernel = "k", .block = {64}}, {zeros<uint32_t>(2)});
  CHECK(studied.row("%r1, [%rd1]").block[uniform].all.warps == 0);
  CHECK(studied.row("%r2, [%rd1+4]").block[uniform].all.warps == 2);
  CHECK(studied.row("atom").block[uniform].all.warps == 0);
  CHECK(studied.row("%clock").block[uniform].all.warps == 0);
}

TEST_CASE("an instruction whose guard lets nobody through in any warp is redundant, and counted") {
  const Studied studied = study(kernel("k", ".param .u32 n", R"(
  .reg .b32 %r<9>; .reg .pred %p<3>;
  ld.param.u32 %r1, [n];
  setp.eq.u32 %p1, %r1, 5;
  @%p1 add.u32 %r2, %r1, 1;
  ret;)"),
                                {.kernel = "k", .block = {96}}, {9u});
  const ValueRow& add = studied.row("add.u32");
  CHECK(add.executed.warps == 0);
  CHECK(add.guarded_off == 3);
  CHECK(add.block[uniform].all == WorkCount{3, 0});
  CHECK(add.block[uniform].once == WorkCount{1, 0});
}

TEST_CASE("a sample of the blocks: one of each group, all in the same proportions") {
  ValueStudy values({.resident_blocks = {}, .listener = nullptr, .sample = 4});
  const PtxRun run = run_ptx(kernel("k", "", R"(
  .reg .b32 %r<9>;
  mov.u32 %r1, %tid.x;
  add.u32 %r2, 1, 2;
  ret;)"),
                             {.kernel = "k", .grid = {30}, .block = {64}, .observer = &values});
  REQUIRE(run.ok());
  CHECK(sampled_blocks(30, 4) == 8);
  CHECK(sampled_blocks(13, 4) == 4);
  CHECK(sampled_blocks(5, 4) == 2);
  CHECK(sampled_blocks(4, 4) == 4); // too few groups: all blocks
  CHECK(sampled_blocks(1, 4) == 1);
  const Studied studied{run, values.rows()};
  const ValueRow& add = studied.row("add.u32");
  CHECK(add.executed == WorkCount{16, 512});
  CHECK(add.block[uniform].all == WorkCount{16, 512});
  CHECK(add.block[uniform].once == WorkCount{8, 256});
  CHECK(add.grid.all == WorkCount{16, 512});
  CHECK(add.grid.once == WorkCount{1, 32});
  // The launch itself is complete.
  CHECK(run.counters("add.u32").executions == 60);
}

TEST_CASE("values that change behind the study's back are looked at again: calls, barriers, shuffles of split warps") {
  study(kernel("k", ".param .u64 out", R"(
  .reg .b64 %rd<9>; .reg .b32 %r<20>; .reg .pred %p<5>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x;
  mov.u32 %r9, 0;
AGAIN:
  { .param .b32 a; .param .b32 b;
    st.param.b32 [a], %r1;
    call (b), twice, (a);
    ld.param.b32 %r2, [b]; }
  add.u32 %r3, %r2, %r9;
  and.b32 %r4, %r3, 1;
  setp.eq.u32 %p1, %r4, 1;
  barrier.red.popc.u32 %r5, 0, %p1;
  add.u32 %r6, %r5, %r9;
  setp.lt.u32 %p2, %r1, 40;
  @%p2 bra LOW;
  shfl.sync.idx.b32 %r7, %r3, 3, 31, 0xffffffff;
  bra MEET;
LOW:
  shfl.sync.idx.b32 %r8, %r3, 3, 31, 0xffffffff;
MEET:
  add.u32 %r10, %r7, %r8;
  add.u32 %r1, %r10, %r6;
  add.u32 %r9, %r9, 1;
  setp.lt.u32 %p3, %r9, 4;
  @%p3 bra AGAIN;
  mad.wide.u32 %rd2, %r9, 4, %rd1;
  st.global.u32 [%rd2], %r1;
  ret;)",
               R"(
.func (.param .b32 r) twice(.param .b32 n) {
  .reg .b32 %r<9>;
  ld.param.u32 %r1, [n];
  add.u32 %r2, %r1, %r1;
  st.param.b32 [r], %r2;
  ret;
})"),
        {.kernel = "k", .grid = {2}, .block = {72}}, {zeros<uint32_t>(8)});
}

namespace {

// Compares all fields of the rows. The branch back, whose guard is false only in the last trip, is scaled with it.
void check_same_rows(const std::vector<ValueRow>& whole, const std::vector<ValueRow>& sampled) {
  REQUIRE(whole.size() == sampled.size());
  for (size_t number = 0; number < whole.size(); ++number) {
    CAPTURE(number);
    const ValueRow &one = whole[number], &other = sampled[number];
    CHECK(one.executed == other.executed);
    CHECK(one.guarded_off == other.guarded_off);
    CHECK(one.trips == other.trips);
    if (one.has_results) {
      CHECK(one.uniform == other.uniform);
      CHECK(one.repeated == other.repeated);
    }
    CHECK(one.warp_redundant == other.warp_redundant);
    for (size_t kind = 0; kind < redundancy_kinds; ++kind) {
      CHECK(one.block[kind].all == other.block[kind].all);
      CHECK(one.block[kind].once == other.block[kind].once);
    }
    CHECK(one.grid.all == other.grid.all);
    CHECK(one.grid.once == other.grid.once);
    CHECK(one.reused == other.reused);
    CHECK(one.affine.all == other.affine.all);
    CHECK(one.affine.once == other.affine.once);
    CHECK(one.consecutive.all == other.consecutive.all);
    CHECK(one.consecutive.once == other.consecutive.once);
  }
}

// A loop of `n` trips with the same redundancy in every trip, including a guard that is never true and half warps.
const char* const regular_loop = R"(
  .reg .b64 %rd<9>; .reg .b32 %r<20>; .reg .pred %p<5>;
  ld.param.u64 %rd1, [table];
  ld.param.u32 %r1, [n];
  mov.u32 %r2, %tid.x;
  mov.u32 %r3, %tid.y;
  mov.u32 %r4, 0;
  setp.eq.u32 %p2, %r1, 0;
LOOP:
  mad.wide.u32 %rd2, %r2, 4, %rd1;
  ld.global.u32 %r5, [%rd2];
  add.u32 %r6, %r5, %r4;
  mul.lo.u32 %r7, %r3, %r4;
  mad.lo.u32 %r8, %r4, 64, %r7;
  @%p2 add.u32 %r9, %r8, 1;
  setp.lt.u32 %p3, %r2, 8;
  @%p3 bra SOME;
  add.u32 %r10, %r8, %r2;
SOME:
  add.u32 %r4, %r4, 1;
  setp.lt.u32 %p1, %r4, %r1;
  @%p1 bra LOOP;
  ret;)";

} // namespace

TEST_CASE("of a regular loop some trips say what all trips say") {
  const LaunchRequest launch{.kernel = "k", .grid = {3}, .block = {16, 8}};
  const std::vector<Argument> arguments = {buffer_of<uint32_t>({3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3}), 400u};
  auto rows_of = [&](ValueStudy& values) {
    LaunchRequest request = launch;
    request.observer = &values;
    REQUIRE(run_ptx(kernel("k", ".param .u64 table, .param .u32 n", regular_loop), request, arguments).ok());
    return values.rows();
  };
  ValueStudy whole({}), sampled({.trip_sample = 8});
  check_same_rows(rows_of(whole), rows_of(sampled));
  CHECK(whole.executions_looked_at() == whole.executions());
  CHECK(sampled.executions() == whole.executions());
  // 16 trips and 48 of the other 384, and a few instructions before the loop.
  CHECK(sampled.executions_looked_at() * 6 < whole.executions());
  CHECK(sampled.executions_looked_at() * 7 > whole.executions());
}

TEST_CASE("which trips are looked at: the first ones, then one of each group, by all warps and in every run") {
  for (unsigned run = 0; run < 2; ++run) {
    ValueStudy sampled({.trip_sample = 4, .whole_trips = 8});
    LaunchRequest request{.kernel = "k", .block = {64}, .observer = &sampled};
    REQUIRE(run_ptx(kernel("k", ".param .u64 table, .param .u32 n", regular_loop), request,
                    {zeros<uint32_t>(64), 8 + 4 * 25u})
                .ok());
    // Two warps: 6 instructions before the loop, 12 in it, one after it.
    CHECK(sampled.executions() == 2 * (7 + 12 * (8 + 4 * 25)));
    CHECK(sampled.executions_looked_at() == 2 * (7 + 12 * (8 + 25)));
  }
}

TEST_CASE("how many blocks are looked at goes by what is looked at in one") {
  // A sixth of all, two blocks at least.
  CHECK(adaptive_group(1, 1000) == 6);
  CHECK(adaptive_group(0.5, 1000) == 3);
  CHECK(adaptive_group(0.1, 1000) == 1);
  CHECK(adaptive_group(1, 7) == 4);
  CHECK(adaptive_group(1, 2) == 1);
  CHECK(adaptive_group(1, 1) == 1);
  for (uint64_t blocks = 2; blocks < 50; ++blocks)
    CHECK(sampled_blocks(blocks, adaptive_group(1, blocks)) >= 2);
}

TEST_CASE("an adaptive sample of regular blocks says what all say, with long loops and without") {
  for (const unsigned trips : {1u, 17u, 400u}) {
    CAPTURE(trips);
    LaunchRequest request{.kernel = "k", .grid = {60}, .block = {16, 8}};
    auto rows_of = [&](ValueStudy& values) {
      request.observer = &values;
      REQUIRE(
          run_ptx(kernel("k", ".param .u64 table, .param .u32 n", regular_loop), request, {zeros<uint32_t>(16), trips})
              .ok());
      return values.rows();
    };
    ValueStudy whole({}), sampled(adaptive_sample());
    const std::vector<ValueRow> all = rows_of(whole), some = rows_of(sampled);
    CHECK(sampled.blocks_looked_at() == (trips == 400 ? 60 : 10));
    CHECK(sampled.executions_looked_at() * 5 < whole.executions_looked_at());
    const uint64_t factor = whole.blocks_looked_at() / sampled.blocks_looked_at();
    for (size_t number = 0; number < all.size(); ++number) {
      CAPTURE(number);
      CHECK(all[number].executed.warps == some[number].executed.warps * factor);
      CHECK(all[number].trips == some[number].trips);
      for (size_t kind = 0; kind < redundancy_kinds; ++kind)
        CHECK(all[number].block[kind].all.lanes == some[number].block[kind].all.lanes * factor);
      CHECK(all[number].grid.all.warps == some[number].grid.all.warps * factor);
      CHECK(all[number].grid.once.warps == some[number].grid.once.warps);
      CHECK(all[number].affine.all.warps == some[number].affine.all.warps * factor);
    }
  }
}

} // namespace ptxrewrite::tests::value_study_test
