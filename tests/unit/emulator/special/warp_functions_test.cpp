// Values exchanged between lanes, against the manual's rules computed one lane at a time; with lanes that arrive on
// different paths, with different masks, or not at all.
#include "tests/unit/emulator/lane_kernel.h"

#include <bit>
#include <cmath>
#include <random>
#include <set>

namespace ptxrewrite::emulator::warp_functions_test {
namespace {

std::vector<uint32_t> random_words(size_t count, uint32_t seed, uint32_t limit = 0) {
  std::mt19937 random(seed);
  std::vector<uint32_t> words(count);
  for (uint32_t& word : words)
    word = limit ? static_cast<uint32_t>(random()) % limit : static_cast<uint32_t>(random());
  return words;
}

// PTX ISA 9.7.9.6, in terms of bits: a lane's number is segment bits, then bits inside the segment.
struct Shuffled {
  uint32_t value;
  bool valid;
};
Shuffled expect_shuffle(const std::string& mode, const std::vector<uint32_t>& a, int lane, uint32_t b, uint32_t c,
                        uint32_t members) {
  const int distance = static_cast<int>(b % 32), clamp = static_cast<int>(c % 32);
  const int segment_bits = static_cast<int>(c / 256 % 32);
  int first = 0, limit = 0;
  for (int bit = 16; bit; bit /= 2) {
    const bool of_segment = segment_bits & bit;
    if (of_segment && (lane & bit)) first += bit;
    if (of_segment ? (lane & bit) : (clamp & bit)) limit += bit;
  }
  int source = 0;
  bool valid = false;
  if (mode == "up") {
    source = lane - distance;
    valid = source >= limit;
  } else {
    if (mode == "down") source = lane + distance;
    if (mode == "bfly") source = lane ^ distance;
    if (mode == "idx") {
      source = first;
      for (int bit = 1; bit < 32; bit *= 2)
        if (!(segment_bits & bit) && (distance & bit)) source |= bit;
    }
    valid = source <= limit;
  }
  const int from = valid ? source : lane;
  return {a[static_cast<size_t>((members >> from) & 1 ? from : lane)], valid};
}

TEST_CASE("shfl.sync in all modes, with whatever clamps and segments") {
  for (const std::string mode : {"up", "down", "bfly", "idx"}) {
    LaneInputs in{random_words(64, 1), random_words(64, 2), random_words(64, 3), {}};
    for (size_t i = 0; i < 32; ++i)
      in.c[i] = mode == "up" ? 0 : 31; // the first warp with CUDA's default, the second at random
    LaneResults out = run_lanes("shfl.sync." + mode + ".b32 %d|%p0, %a, %b, %c, -1;\nselp.u32 %q, 1, 0, %p0;", in);
    REQUIRE_MESSAGE(out.run.ok(), out.run.error << out.run.failure());
    for (size_t thread = 0; thread < 64; ++thread) {
      const std::vector<uint32_t> warp(in.a.begin() + static_cast<ptrdiff_t>(thread / 32 * 32), in.a.end());
      const Shuffled expected =
          expect_shuffle(mode, warp, static_cast<int>(thread % 32), in.b[thread], in.c[thread], ~0u);
      CAPTURE(thread);
      CHECK(out.d[thread] == expected.value);
      CHECK(out.q[thread] == expected.valid);
    }
  }
}

TEST_CASE("shfl without a predicate and of immediates") {
  LaneInputs in{random_words(32, 5), {}, {}, {}};
  LaneResults out = run_lanes("shfl.sync.down.b32 %d, %a, 4, 0x1f, 0xffffffff;\n"
                              "shfl.sync.bfly.b32 %q, %a, 1, 0x1c1f, 0xffffffff;",
                              in);
  REQUIRE(out.run.ok());
  for (size_t lane = 0; lane < 32; ++lane) {
    CHECK(out.d[lane] == in.a[lane < 28 ? lane + 4 : lane]);
    CHECK(out.q[lane] == in.a[lane ^ 1]);
  }
}

TEST_CASE("shfl and vote without .sync take the lanes that are there") {
  LaneInputs in{random_words(32, 6), {}, {}, {}};
  LaneResults out = run_lanes("setp.lt.u32 %p1, %thread, 20;\n"
                              "@%p1 shfl.idx.b32 %d|%p0, %a, 19, 31;\n"
                              "setp.lt.u32 %p2, %a, 0x80000000;\n"
                              "@%p1 vote.ballot.b32 %q, %p2;",
                              in, {}, ".version 6.0\n.target sm_60\n");
  REQUIRE_MESSAGE(out.run.ok(), out.run.error);
  uint32_t ballot = 0;
  for (uint32_t lane = 0; lane < 20; ++lane)
    if (in.a[lane] < 0x80000000) ballot += 1u << lane;
  for (size_t lane = 0; lane < 32; ++lane) {
    CHECK(out.d[lane] == (lane < 20 ? in.a[19] : 0xdeadbeef));
    CHECK(out.q[lane] == (lane < 20 ? ballot : 0xdeadbeef));
  }
}

// Undefined by the manual; here the lane keeps its own value.
TEST_CASE("shfl from lanes that do not take part") {
  for (const std::string mode : {"up", "down", "bfly", "idx"}) {
    LaneInputs in{random_words(32, 8), random_words(32, 9), {}, {}};
    const uint32_t c = mode == "up" ? 0 : 31;
    LaneResults out =
        run_lanes("setp.lt.u32 %p1, %thread, 20;\n@%p1 shfl." + mode + ".b32 %d, %a, %b, " + std::to_string(c) + ";",
                  in, {}, ".version 6.0\n.target sm_60\n");
    REQUIRE_MESSAGE(out.run.ok(), out.run.error);
    unsigned absent = 0;
    for (size_t lane = 0; lane < 20; ++lane) {
      const Shuffled taken = expect_shuffle(mode, in.a, static_cast<int>(lane), in.b[lane], c, (1u << 20) - 1);
      const Shuffled of_all = expect_shuffle(mode, in.a, static_cast<int>(lane), in.b[lane], c, ~0u);
      absent += taken.value != of_all.value;
      CHECK(out.d[lane] == taken.value);
    }
    CHECK((absent > 0) == (mode != "up"));
  }
}

TEST_CASE("lanes meet at different shfl instructions and with what they hold there") {
  LaneInputs in{random_words(32, 7), {}, {}, {}};
  // Odd lanes provide a + 1 on one path, even ones a + 2 on the other, later.
  LaneResults out = run_lanes(R"(
  and.b32 %r1, %thread, 1;
  setp.eq.u32 %p1, %r1, 1;
  @%p1 bra ODD;
  add.u32 %r2, %a, 2;
  shfl.sync.bfly.b32 %d|%p0, %r2, 3, 31, -1;
  selp.u32 %q, 20, 0, %p0;
  bra DONE;
ODD:
  add.u32 %r3, %a, 1;
  shfl.sync.bfly.b32 %r4|%p2, %r3, 3, 31, -1;
  mov.u32 %d, %r4;
  selp.u32 %q, 10, 0, %p2;
DONE:
)",
                              in);
  REQUIRE_MESSAGE(out.run.ok(), out.run.error << out.run.failure());
  for (size_t lane = 0; lane < 32; ++lane) {
    const size_t from = lane ^ 3;
    CHECK(out.d[lane] == in.a[from] + (from % 2 ? 1 : 2));
    CHECK(out.q[lane] == (lane % 2 ? 10 : 20));
  }
}

TEST_CASE("lanes meet inside a function that they called from different places") {
  LaneInputs in{random_words(32, 8), {}, {}, {}};
  LaneResults out = run_lanes(R"(
  setp.lt.u32 %p1, %thread, 11;
  @%p1 bra LOW;
  { .param .b32 argument; .param .b32 result;
    st.param.b32 [argument], %a;
    call (result), exchange, (argument);
    ld.param.b32 %d, [result]; }
  bra DONE;
LOW:
  add.u32 %r1, %a, 5;
  { .param .b32 argument; .param .b32 result;
    st.param.b32 [argument], %r1;
    call (result), exchange, (argument);
    ld.param.b32 %d, [result]; }
DONE:
)",
                              in, R"(
.func (.param .b32 out) exchange(.param .b32 in)
{
  .reg .b32 %x, %y;
  ld.param.b32 %x, [in];
  shfl.sync.idx.b32 %y, %x, 0, 31, -1;
  add.u32 %y, %y, %x;
  st.param.b32 [out], %y;
  ret;
}
)");
  REQUIRE_MESSAGE(out.run.ok(), out.run.error << out.run.failure());
  for (size_t lane = 0; lane < 32; ++lane)
    CHECK(out.d[lane] == in.a[0] + 5 + in.a[lane] + (lane < 11 ? 5 : 0));
}

TEST_CASE("lanes of one instruction under different masks") {
  // Groups of 4, 4, 8 and 16 lanes, by value: lanes of a group find each other with match and add up.
  LaneInputs in{random_words(32, 9), {}, {}, {}};
  for (uint32_t lane = 0; lane < 32; ++lane)
    in.b.push_back(lane % 8 == 0 ? 1 : lane % 4 == 1 ? 2 : 3);
  LaneResults out = run_lanes("match.any.sync.b32 %q, %b, -1;\nredux.sync.add.u32 %d, %a, %q;", in);
  REQUIRE_MESSAGE(out.run.ok(), out.run.error << out.run.failure());
  for (size_t lane = 0; lane < 32; ++lane) {
    uint32_t mask = 0, sum = 0;
    for (size_t other = 0; other < 32; ++other)
      if (in.b[other] == in.b[lane]) {
        mask |= 1u << other;
        sum += in.a[other];
      }
    CHECK(out.q[lane] == mask);
    CHECK(out.d[lane] == sum);
  }
}

TEST_CASE("groups that are incomplete on each way meet across the ways") {
  // Each half of the warp is a group; odd and even lanes arrive separately.
  LaneInputs in{random_words(32, 10), {}, {}, {}};
  for (uint32_t lane = 0; lane < 32; ++lane)
    in.m.push_back(lane < 16 ? 0xffffu : 0xffff0000u);
  LaneResults out = run_lanes(R"(
  and.b32 %r1, %thread, 1;
  setp.eq.u32 %p1, %r1, 1;
  @%p1 bra ODD;
  vote.sync.ballot.b32 %d, %p1, %m;
  redux.sync.xor.b32 %q, %a, %m;
  bra DONE;
ODD:
  vote.sync.ballot.b32 %d, %p1, %m;
  redux.sync.xor.b32 %q, %a, %m;
DONE:
)",
                              in);
  REQUIRE_MESSAGE(out.run.ok(), out.run.error << out.run.failure());
  for (size_t lane = 0; lane < 32; ++lane) {
    uint32_t expected = 0;
    for (size_t other = lane / 16 * 16; other < lane / 16 * 16 + 16; ++other)
      expected ^= in.a[other];
    CHECK(out.d[lane] == (lane < 16 ? 0xaaaau : 0xaaaa0000u));
    CHECK(out.q[lane] == expected);
  }
}

TEST_CASE("lanes that have ended, or never were, are not waited for") {
  LaneInputs in{random_words(32 + 7, 11), {}, {}, {}};
  LaneResults out = run_lanes(R"(
  and.b32 %r1, %thread, 31;
  setp.eq.u32 %p1, %r1, 5;
  @%p1 exit;
  setp.ne.u32 %p2, %r1, 2;
  vote.sync.all.pred %p3, %p2, -1;
  vote.sync.ballot.b32 %d, 1, -1;
  selp.u32 %q, 1, 0, %p3;
)",
                              in);
  REQUIRE_MESSAGE(out.run.ok(), out.run.error << out.run.failure());
  for (size_t thread = 0; thread < 39; ++thread) {
    const bool ended = thread % 32 == 5;
    CHECK(out.d[thread] == (ended ? 0xdeadbeef : thread < 32 ? 0xffffffdfu : 0x5fu));
    CHECK(out.q[thread] == (ended ? 0xdeadbeef : 0u));
  }
}

TEST_CASE("lanes end while others wait for them") {
  // Lanes leave a loop one by one; the remaining ones continue voting.
  LaneInputs in;
  for (uint32_t lane = 0; lane < 32; ++lane)
    in.a.push_back((lane * 7) % 32);
  LaneResults out = run_lanes(R"(
  mov.u32 %r1, 0;
  mov.u32 %d, 0;
LOOP:
  setp.eq.u32 %p1, %r1, %a;
  @%p1 st.global.u32 [%out0], %d;
  @%p1 exit;
  bar.warp.sync -1;
  vote.sync.ballot.b32 %r2, 1, -1;
  popc.b32 %r3, %r2;
  add.u32 %d, %d, %r3;
  add.u32 %r1, %r1, 1;
  bra LOOP;
)",
                              in);
  REQUIRE_MESSAGE(out.run.ok(), out.run.error << out.run.failure());
  for (size_t lane = 0; lane < 32; ++lane) {
    uint32_t expected = 0;
    for (uint32_t turn = 0; turn < in.a[lane]; ++turn)
      expected += 31 - turn;
    CHECK(out.d[lane] == expected);
  }
}

TEST_CASE("votes under partial masks") {
  LaneInputs in{random_words(32, 12), {}, {}, {}};
  for (const uint32_t mask : {0x1u, 0xf0f0u, 0x80000001u, 0xffffffffu, 0x7ffffffeu})
    for (const uint32_t limit : {0u, 0x40000000u, 0xffffffffu}) {
      const std::string members = std::to_string(mask), below = std::to_string(limit);
      LaneResults out = run_lanes(
          "mov.u32 %r1, 1;\nshl.b32 %r1, %r1, %thread;\nand.b32 %r1, %r1, " + members +
              ";\nsetp.ne.u32 %p1, %r1, 0;\nsetp.le.u32 %p2, %a, " + below +
              ";\n@!%p1 bra DONE;\nvote.sync.ballot.b32 %d, !%p2, " + members + ";\nvote.sync.any.pred %p3, %p2, " +
              members + ";\nvote.sync.all.pred %p4, %p2, " + members + ";\nvote.sync.uni.pred %p5, %p2, " + members +
              ";\nselp.u32 %q, 1, 0, %p3;\n@%p4 or.b32 %q, %q, 2;\n@%p5 or.b32 %q, %q, 4;\n"
              "DONE:\n",
          in);
      REQUIRE_MESSAGE(out.run.ok(), out.run.error << out.run.failure());
      uint32_t no = 0, count = 0, yes = 0;
      for (uint32_t lane = 0; lane < 32; ++lane)
        if (mask & (1u << lane)) {
          ++count;
          if (in.a[lane] <= limit)
            ++yes;
          else
            no |= 1u << lane;
        }
      const uint32_t votes = (yes > 0 ? 1 : 0) + (yes == count ? 2 : 0) + (yes == 0 || yes == count ? 4 : 0);
      for (uint32_t lane = 0; lane < 32; ++lane) {
        const bool member = mask & (1u << lane);
        CHECK(out.d[lane] == (member ? no : 0xdeadbeef));
        CHECK(out.q[lane] == (member ? votes : 0xdeadbeef));
      }
    }
}

TEST_CASE("match of 64 bits, and of all") {
  LaneInputs in{random_words(64, 13, 3), random_words(64, 14, 2), {}, {}};
  for (size_t lane = 32; lane < 64; ++lane)
    in.a[lane] = in.b[lane] = 77; // all lanes of the second warp agree
  LaneResults any = run_lanes("mov.b64 %rd1, {%a, %b};\nmatch.any.sync.b64 %d, %rd1, -1;", in);
  LaneResults all =
      run_lanes("mov.b64 %rd1, {%b, %a};\nmatch.all.sync.b64 %d|%p1, %rd1, -1;\nselp.u32 %q, 1, 0, %p1;", in);
  LaneResults narrow = run_lanes("match.all.sync.b32 %d|%p1, %a, -1;\nselp.u32 %q, 1, 0, %p1;", in);
  REQUIRE_MESSAGE((any.run.ok() && all.run.ok() && narrow.run.ok()), any.run.error);
  for (size_t lane = 0; lane < 64; ++lane) {
    uint32_t same = 0;
    for (size_t other = 0; other < 32; ++other) {
      const size_t at = lane / 32 * 32 + other;
      if (in.a[at] == in.a[lane] && in.b[at] == in.b[lane]) same |= 1u << other;
    }
    CHECK(any.d[lane] == same);
    for (const LaneResults* result : {&all, &narrow}) {
      CHECK(result->d[lane] == (lane < 32 ? 0 : 0xffffffff));
      CHECK(result->q[lane] == (lane < 32 ? 0 : 1));
    }
  }
}

TEST_CASE("redux of integers") {
  LaneInputs in{random_words(32, 15), {}, {}, {}};
  std::multiset<uint32_t> unsigned_values(in.a.begin(), in.a.end());
  std::multiset<int32_t> signed_values;
  uint64_t sum = 0;
  uint32_t all_ones = 0, any_ones = 0, odd_ones = 0;
  for (uint32_t value : in.a) {
    signed_values.insert(static_cast<int32_t>(value));
    sum += value;
  }
  for (uint32_t bit = 0; bit < 32; ++bit) {
    const auto ones = std::count_if(in.a.begin(), in.a.end(), [&](uint32_t value) { return value >> bit & 1; });
    if (ones == 32) all_ones |= 1u << bit;
    if (ones > 0) any_ones |= 1u << bit;
    if (ones % 2) odd_ones |= 1u << bit;
  }
  const std::pair<const char*, uint32_t> rows[] = {
      {"add.u32", static_cast<uint32_t>(sum)},
      {"add.s32", static_cast<uint32_t>(sum)},
      {"min.u32", *unsigned_values.begin()},
      {"max.u32", *unsigned_values.rbegin()},
      {"min.s32", static_cast<uint32_t>(*signed_values.begin())},
      {"max.s32", static_cast<uint32_t>(*signed_values.rbegin())},
      {"and.b32", all_ones},
      {"or.b32", any_ones},
      {"xor.b32", odd_ones},
  };
  for (const auto& [words, expected] : rows) {
    LaneResults out = run_lanes(std::string("redux.sync.") + words + " %d, %a, -1;", in);
    REQUIRE_MESSAGE(out.run.ok(), out.run.error);
    CAPTURE(words);
    CHECK(std::count(out.d.begin(), out.d.end(), expected) == 32);
  }
}

TEST_CASE("redux of floats") {
  const float nan = std::nanf("");
  struct Row {
    std::string words;
    std::vector<float> values;
    uint32_t expected;
  };
  const uint32_t canonical = 0x7fffffff;
  const std::vector<Row> rows = {
      {"min", {3.5f, -2.f, nan, 7.f}, std::bit_cast<uint32_t>(-2.f)},
      {"max", {3.5f, -2.f, nan, 7.f}, std::bit_cast<uint32_t>(7.f)},
      {"max.abs", {3.5f, -12.f, nan, 7.f}, std::bit_cast<uint32_t>(12.f)},
      {"min.abs", {3.5f, -2.f, 5.f, 7.f}, std::bit_cast<uint32_t>(2.f)},
      {"min.NaN", {3.5f, -2.f, nan, 7.f}, canonical},
      {"max.NaN", {3.5f, -2.f, 1.f, 7.f}, std::bit_cast<uint32_t>(7.f)},
      {"min", {nan, nan}, canonical},
      {"min", {0.f, -0.f}, std::bit_cast<uint32_t>(-0.f)},
      {"max", {-0.f, 0.f}, 0},
  };
  for (const Row& row : rows) {
    LaneInputs in;
    for (size_t lane = 0; lane < 32; ++lane)
      in.a.push_back(std::bit_cast<uint32_t>(row.values[lane % row.values.size()]));
    LaneResults out = run_lanes("mov.b32 %f0, %a;\nredux.sync." + row.words + ".f32 %f1, %f0, -1;\nmov.b32 %d, %f1;",
                                in, {}, ".version 8.7\n.target sm_100a\n");
    REQUIRE_MESSAGE(out.run.ok(), out.run.error);
    CAPTURE(row.words);
    CHECK(out.d[17] == row.expected);
  }
}

TEST_CASE("elect and activemask") {
  LaneInputs in{random_words(32, 16), {}, {}, {}};
  LaneResults out = run_lanes(R"(
  setp.ge.u32 %p1, %thread, 9;
  @!%p1 bra DONE;
  elect.sync %r1|%p2, 0xfffffe00;
  selp.u32 %d, 100, %r1, %p2;
  setp.ge.u32 %p3, %thread, 30;
  @%p3 activemask.b32 %q;
DONE:
)",
                              in);
  REQUIRE_MESSAGE(out.run.ok(), out.run.error << out.run.failure());
  for (size_t lane = 0; lane < 32; ++lane) {
    CHECK(out.d[lane] == (lane < 9 ? 0xdeadbeef : lane == 9 ? 100 : 9));
    CHECK(out.q[lane] == (lane >= 30 ? 0xc0000000u : 0xdeadbeef));
  }
}

TEST_CASE("a warp's lanes pass work on through bar.warp.sync on different ways") {
  LaneInputs in{random_words(32, 17), {}, {}, {}};
  LaneResults out = run_lanes(R"(
  mov.u32 %r2, work;
  shl.b32 %r1, %thread, 2;
  add.u32 %r1, %r1, %r2;
  setp.lt.u32 %p1, %thread, 16;
  @%p1 bra WRITER;
  bar.warp.sync -1;
  ld.shared.u32 %d, [%r1 + -64];
  bra DONE;
WRITER:
  st.shared.u32 [%r1], %a;
  bar.warp.sync -1;
DONE:
)",
                              in, ".shared .b32 work[16];\n");
  REQUIRE_MESSAGE(out.run.ok(), out.run.error << out.run.failure());
  for (size_t lane = 16; lane < 32; ++lane)
    CHECK(out.d[lane] == in.a[lane - 16]);
}

TEST_CASE("who is not in its own member mask is told so") {
  LaneInputs in{random_words(32, 18), {}, {}, {}};
  LaneResults out = run_lanes("shfl.sync.idx.b32 %d, %a, 0, 31, 0x7;", in);
  REQUIRE(out.run.result.failure);
  CHECK(out.run.failure() == "lane 3 executes this with member mask 0x00000007, which it is not in");
}

TEST_CASE("lanes that wait for one another at different things are a deadlock") {
  LaneInputs in{random_words(32, 19), {}, {}, {}};
  LaneResults out = run_lanes(R"(
  setp.lt.u32 %p1, %thread, 16;
  @%p1 bra LOW;
  vote.sync.any.pred %p2, %p1, -1;
  bra DONE;
LOW:
  redux.sync.add.u32 %d, %a, -1;
DONE:
)",
                              in);
  REQUIRE(out.run.result.failure);
  CHECK(out.run.result.failure->kind == FailureKind::deadlock);
}

} // namespace
} // namespace ptxrewrite::emulator::warp_functions_test
