// Loads and stores whose lanes' addresses lie in every way (consecutive, alike, in runs, anywhere, some lanes
// inactive), stay as they were for some rounds and change, against an array on the host that is read and written lane
// by lane.
#include "tests/unit/emulator/run_ptx.h"

#include <algorithm>
#include <fmt/format.h>
#include <random>

namespace ptxrewrite::emulator::memory_patterns_test {
namespace {

constexpr uint32_t threads = 72, rounds = 60, data_bytes = 1024, inactive = 0xffffffff;

struct Place {
  const char* name;     // of the state space; empty: generic
  const char* variable; // of the kernel; empty: the buffer
  bool narrow = false;  // the address is in a register of 32 bits
  bool of_lane = false; // each lane has its own bytes
};
const Place places[] = {
    {".global", "", false, false},     {"", "", false, false},     {".shared", "tile", true, false},
    {".shared", "tile", false, false}, {"", "tile", false, false}, {".local", "own", true, true},
    {".local", "own", false, true},    {"", "own", false, true},
};

struct Access {
  unsigned bits, count;
  unsigned bytes() const { return bits / 8 * count; }
  std::string words() const {
    return (count > 1 ? fmt::format(".v{}", count) : std::string()) + fmt::format(".b{}", bits);
  }
  // {%v0, %v1}
  std::string elements() const {
    std::string list = "%v0";
    for (unsigned i = 1; i < count; ++i)
      list += fmt::format(", %v{}", i);
    return count > 1 ? "{" + list + "}" : list;
  }
};

// Byte offsets of all threads in all rounds.
std::vector<uint32_t> offsets_for(const Access& access, std::mt19937& random) {
  std::vector<uint32_t> offsets(rounds * threads);
  const unsigned size = access.bytes(), slots = data_bytes / size;
  uint32_t way = 0, mask = 0, left = 0;
  std::vector<uint32_t> scattered(32);
  for (uint32_t round = 0; round < rounds; ++round) {
    if (left == 0) {
      left = 1 + random() % 5;
      way = random() % 8;
      mask = random() % 2 ? 0xffffffff : random() % 2 ? 0xffffffffu >> random() % 32 : static_cast<uint32_t>(random());
      for (uint32_t& slot : scattered)
        slot = static_cast<uint32_t>(random()) % (slots - 32);
    }
    --left;
    for (uint32_t warp = 0; warp * 32 < threads; ++warp) {
      const uint32_t moved = static_cast<uint32_t>(random()) % 16;
      for (uint32_t lane = 0; lane < 32 && warp * 32 + lane < threads; ++lane) {
        const uint32_t run = way < 6 ? 16u >> way % 3 : 32; // 16, 8, 4
        uint32_t slot = 0;
        if (way < 3)
          slot = scattered[lane / run] + lane % run; // consecutive runs
        else if (way < 6)
          slot = scattered[lane / run]; // runs of one address
        else if (way == 6)
          slot = lane; // consecutive
        else
          slot = round % 2 ? scattered[lane] : scattered[0]; // any, or one address
        uint32_t& offset = offsets[round * threads + warp * 32 + lane];
        offset = mask >> lane & 1 ? (slot + moved) % slots * size : inactive;
      }
    }
  }
  return offsets;
}

// `body` of a round finds %address (64 bits) or %narrow, %p, %v<4> and %where, the byte of the results that it may
// write.
std::string rounds_kernel(const Place& place, const std::string& body) {
  const bool has_variable = *place.variable;
  const std::string own = place.of_lane ? ".local" : ".shared";
  std::string text = R"(
  .reg .b32 %r<20>, %narrow, %round, %lane;
  .reg .b64 %rd<20>, %address, %base, %where, %v<4>;
  .reg .pred %p, %q;
  .shared .align 16 .b8 tile[1024];
  .local .align 16 .b8 own[1024];
  mov.u32 %lane, %tid.x;
  ld.param.u64 %base, [data];
  mov.u32 %round, 0;
)";
  // The variable gets the buffer's bytes; each word of a lane's own ones is different by the lane.
  if (has_variable)
    text += fmt::format(R"(
  mov.u32 %r1, {0};
  mov.u32 %r2, 0;
  mov.u64 %rd1, %base;
FILL:
  ld.global.u32 %r3, [%rd1];
  {1}
  st{2}.u32 [%r1], %r3;
  add.u32 %r1, %r1, 4;
  add.u64 %rd1, %rd1, 4;
  add.u32 %r2, %r2, 1;
  setp.lt.u32 %q, %r2, 256;
  @%q bra FILL;
  bar.sync 0;
  mov.u64 %base, {0};
  {3}
)",
                        place.variable, place.of_lane ? "add.u32 %r3, %r3, %lane;" : "", own,
                        *place.name ? "" : fmt::format("cvta{}.u64 %base, %base;", own));
  text += R"(
ROUND:
  bar.sync 0;
  mad.lo.u32 %r4, %round, 72, %lane;
  mul.wide.u32 %rd2, %r4, 4;
  ld.param.u64 %rd3, [table];
  add.u64 %rd3, %rd3, %rd2;
  ld.global.u32 %r5, [%rd3];
  setp.ne.u32 %p, %r5, 0xffffffff;
  cvt.u64.u32 %rd4, %r5;
  add.u64 %address, %base, %rd4;
  cvt.u32.u64 %narrow, %address;
  mul.wide.u32 %where, %r4, 32;
  ld.param.u64 %rd5, [out];
  add.u64 %where, %where, %rd5;
)";
  text += body + R"(
  add.u32 %round, %round, 1;
  setp.lt.u32 %q, %round, 60;
  @%q bra ROUND;
  bar.sync 0;
)";
  // The variable's bytes go back: of lane n to the n-th 1024 bytes.
  if (has_variable)
    text += fmt::format(R"(
  mov.u32 %r1, {0};
  mov.u32 %r2, 0;
  ld.param.u64 %rd1, [data];
  {1}
BACK:
  ld{2}.u32 %r3, [%r1];
  st.global.u32 [%rd1], %r3;
  add.u32 %r1, %r1, 4;
  add.u64 %rd1, %rd1, 4;
  add.u32 %r2, %r2, 1;
  setp.lt.u32 %q, %r2, 256;
  @%q bra BACK;
)",
                        place.variable,
                        place.of_lane ? "mul.wide.u32 %rd2, %lane, 1024;\n  add.u64 %rd1, %rd1, %rd2;" : "", own);
  return kernel("k", ".param .u64 data, .param .u64 table, .param .u64 out", text + "  ret;\n");
}

std::vector<std::byte> random_bytes(size_t count, std::mt19937& random) {
  std::vector<std::byte> bytes(count);
  for (std::byte& byte : bytes)
    byte = static_cast<std::byte>(random());
  return bytes;
}

// What each thread sees: one array, or one a thread.
std::vector<std::vector<std::byte>> host_memory(const Place& place, const std::vector<std::byte>& data) {
  std::vector<std::vector<std::byte>> memory(place.of_lane ? threads : 1, {data.begin(), data.begin() + data_bytes});
  for (uint32_t lane = 0; lane < memory.size() && place.of_lane; ++lane)
    for (size_t i = 0; i < data_bytes; i += 4) {
      uint32_t word = 0;
      std::memcpy(&word, &memory[lane][i], 4);
      word += lane;
      std::memcpy(&memory[lane][i], &word, 4);
    }
  return memory;
}

const Access accesses[] = {{8, 1},  {16, 1}, {32, 1}, {64, 1}, {8, 2}, {8, 4},
                           {16, 2}, {16, 4}, {32, 2}, {32, 4}, {64, 2}};

void check_loads(const Place& place, const Access& access, unsigned seed) {
  CAPTURE(place.name);
  CAPTURE(place.variable);
  CAPTURE(access.words());
  CAPTURE(seed);
  std::mt19937 random(seed);
  const auto data = random_bytes(data_bytes * threads, random);
  const auto offsets = offsets_for(access, random);
  std::string body;
  for (unsigned i = 0; i < access.count; ++i)
    body += fmt::format("  mov.u64 %v{}, 0x1122334455667788;\n", i);
  body += fmt::format("  @%p ld{}{} {}, [{}];\n", place.name, access.words(), access.elements(),
                      place.narrow ? "%narrow" : "%address");
  for (unsigned i = 0; i < access.count; ++i)
    body += fmt::format("  st.global.u64 [%where+{}], %v{};\n", i * 8, i);
  const PtxRun run = run_ptx(rounds_kernel(place, body), {.kernel = "k", .block = {threads}},
                             {Buffer{data}, buffer_of(offsets), zeros<uint64_t>(rounds * threads * 4)});
  REQUIRE(run.error == "");
  REQUIRE(run.failure() == "");
  const auto memory = host_memory(place, data);
  const auto results = run.buffer<uint64_t>(2);
  size_t wrong = 0;
  for (uint32_t i = 0; i < rounds * threads; ++i)
    for (unsigned element = 0; element < access.count; ++element) {
      uint64_t expected = 0x1122334455667788;
      if (offsets[i] != inactive) {
        expected = 0;
        std::memcpy(&expected, &memory[place.of_lane ? i % threads : 0][offsets[i] + element * access.bits / 8],
                    access.bits / 8);
      }
      wrong += results[i * 4 + element] != expected;
    }
  CHECK(wrong == 0);
}

void check_stores(const Place& place, const Access& access, unsigned seed) {
  CAPTURE(place.name);
  CAPTURE(place.variable);
  CAPTURE(access.words());
  CAPTURE(seed);
  std::mt19937 random(seed);
  const auto data = random_bytes(data_bytes * threads, random);
  const auto offsets = offsets_for(access, random);
  const auto value = [&](uint32_t number, unsigned element) {
    return number * uint64_t(0x9e3779b97f4a7c15) + element * uint64_t(0x0123456789abcdef);
  };
  std::string body = "  cvt.u64.u32 %rd6, %r4;\n  mul.lo.u64 %v0, %rd6, 0x9e3779b97f4a7c15;\n";
  for (unsigned i = 1; i < access.count; ++i)
    body += fmt::format("  add.u64 %v{}, %v{}, 0x0123456789abcdef;\n", i, i - 1);
  body += fmt::format("  @%p st{}{} [{}], {};\n", place.name, access.words(), place.narrow ? "%narrow" : "%address",
                      access.elements());
  const PtxRun run = run_ptx(rounds_kernel(place, body), {.kernel = "k", .block = {threads}},
                             {Buffer{data}, buffer_of(offsets), zeros<uint64_t>(1)});
  REQUIRE(run.error == "");
  REQUIRE(run.failure() == "");
  auto memory = host_memory(place, data);
  for (uint32_t i = 0; i < rounds * threads; ++i)
    for (unsigned element = 0; element < access.count && offsets[i] != inactive; ++element) {
      const uint64_t stored = value(i, element);
      std::memcpy(&memory[place.of_lane ? i % threads : 0][offsets[i] + element * access.bits / 8], &stored,
                  access.bits / 8);
    }
  for (size_t i = 0; i < memory.size(); ++i)
    CHECK(std::equal(memory[i].begin(), memory[i].end(),
                     run.buffers[0].begin() + static_cast<ptrdiff_t>(i * data_bytes)));
}

TEST_CASE("loads of all patterns, sizes and spaces") {
  for (const Place& place : places)
    for (const Access& access : accesses)
      for (unsigned seed = 0; seed < 2; ++seed)
        check_loads(place, access, seed);
}

TEST_CASE("stores of all patterns, sizes and spaces: of two lanes at one place the higher one counts") {
  for (const Place& place : places)
    for (const Access& access : accesses)
      for (unsigned seed = 0; seed < 2; ++seed)
        check_stores(place, access, seed);
}

// An access that moves by `step` bytes in each round, lane n at n / run * distance + n % run * 4.
std::string walking_kernel(const std::string& access, const std::string& declaration, const std::string& base) {
  return kernel("k", ".param .u64 data, .param .u32 turns, .param .u32 start, .param .u32 step",
                fmt::format(R"(
  .reg .b32 %r<10>, %v;
  .reg .b64 %rd<10>, %address;
  .reg .pred %p;
  {}
  {}
  mov.u32 %r1, %tid.x;
  ld.param.u32 %r2, [start];
  ld.param.u32 %r3, [turns];
  ld.param.u32 %r4, [step];
  and.b32 %r5, %r1, 15;
  shr.u32 %r6, %r1, 4;
  mul.lo.u32 %r6, %r6, 128;
  mad.lo.u32 %r5, %r5, 4, %r6;
  add.u32 %r5, %r5, %r2;
  cvt.s64.s32 %rd2, %r5;
  add.u64 %address, %rd1, %rd2;
  cvt.s64.s32 %rd3, %r4;
L:
  {}
  add.u64 %address, %address, %rd3;
  sub.u32 %r3, %r3, 1;
  setp.ne.u32 %p, %r3, 0;
  @%p bra L;
  ret;
)",
                            declaration, base, access));
}

TEST_CASE("a pattern that leaves its memory, or its alignment, is told as if it were the first access") {
  struct Row {
    const char* access;
    const char* declaration;
    const char* base;
  };
  const Row rows[] = {
      {"ld.global.u32 %v, [%address];", "", "ld.param.u64 %rd1, [data];"},
      {"st.global.u32 [%address], %v;", "", "ld.param.u64 %rd1, [data];"},
      {"ld.u32 %v, [%address];", "", "ld.param.u64 %rd1, [data];"},
      {"ld.shared.u32 %v, [%address];", ".shared .align 8 .b8 s[1024];", "mov.u64 %rd1, s;"},
      {"st.shared.u32 [%address], %v;", ".shared .align 8 .b8 s[1024];", "mov.u64 %rd1, s;"},
      {"ld.u32 %v, [%address];", ".shared .align 8 .b8 s[1024];", "mov.u64 %rd1, s; cvta.shared.u64 %rd1, %rd1;"},
      {"ld.local.u32 %v, [%address];", ".local .align 8 .b8 s[1024];", "mov.u64 %rd1, s;"},
      {"st.u32 [%address], %v;", ".local .align 8 .b8 s[1024];", "mov.u64 %rd1, s; cvta.local.u64 %rd1, %rd1;"},
  };
  struct Walk {
    int32_t start, step;
    uint32_t turns; // the last one is wrong
  };
  const Walk walks[] = {{512, 64, 7}, {832, 4, 2}, {128, -64, 4}, {0, 2, 2}, {0, -4, 2}};
  for (const Row& row : rows)
    for (const Walk& walk : walks) {
      CAPTURE(row.access);
      CAPTURE(row.base);
      CAPTURE(walk.start);
      const std::string text = walking_kernel(row.access, row.declaration, row.base);
      const auto run = [&](int32_t start, uint32_t turns) {
        return run_ptx(text, {.kernel = "k", .block = {32}}, {zeros<uint32_t>(256), turns, start, walk.step});
      };
      const PtxRun walked = run(walk.start, walk.turns);
      const PtxRun at_once = run(walk.start + walk.step * static_cast<int32_t>(walk.turns - 1), 1);
      REQUIRE(walked.result.failure);
      REQUIRE(at_once.result.failure);
      CHECK(walked.failure() == at_once.failure());
      CHECK(walked.result.failure->thread.x == at_once.result.failure->thread.x);
      CHECK(run(walk.start, walk.turns - 1).ok());
    }
}

TEST_CASE("a generic access with the same distances in one space after the other") {
  // Each lane's pointer is the same number of bytes into local, shared and global memory in turn.
  const std::string text = kernel("k", ".param .u64 data", R"(
  .reg .b32 %r<10>;
  .reg .b64 %rd<10>;
  .reg .pred %p;
  .shared .align 8 .b8 s[64];
  .local .align 8 .b8 own[64];
  mov.u32 %r1, %tid.x;
  st.local.u32 [own+4], %r1;
  mov.u32 %r2, 1000;
  st.shared.u32 [s+4], %r2;
  mov.u64 %rd1, own;
  cvta.local.u64 %rd1, %rd1;
  mov.u64 %rd2, s;
  cvta.shared.u64 %rd2, %rd2;
  ld.param.u64 %rd3, [data];
  mov.u32 %r3, 0;
  mov.u32 %r4, 0;
L:
  ld.u32 %r5, [%rd1+4];
  mad.lo.u32 %r4, %r4, 3, %r5;
  mov.u64 %rd4, %rd1;
  mov.u64 %rd1, %rd2;
  mov.u64 %rd2, %rd3;
  mov.u64 %rd3, %rd4;
  add.u32 %r3, %r3, 1;
  setp.lt.u32 %p, %r3, 12;
  @%p bra L;
  mul.wide.u32 %rd5, %r1, 4;
  ld.param.u64 %rd3, [data];
  add.u64 %rd3, %rd3, %rd5;
  st.global.u32 [%rd3+8], %r4;
  ret;
)");
  const PtxRun run = run_ptx(text, {.kernel = "k", .block = {32}}, {buffer_of(std::vector<uint32_t>(40, 50000))});
  REQUIRE(run.ok());
  for (uint32_t lane = 0; lane < 32; ++lane) {
    uint32_t expected = 0;
    for (unsigned turn = 0; turn < 12; ++turn)
      expected = expected * 3 + (turn % 3 == 0 ? lane : turn % 3 == 1 ? 1000 : 50000);
    CHECK(run.buffer<uint32_t>(0)[lane + 2] == expected);
  }
}

} // namespace
} // namespace ptxrewrite::emulator::memory_patterns_test
