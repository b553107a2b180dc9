// Launches in clusters: communication between blocks, and errors. The kernels of tests/clusters are those accepted by
// ptxas (tests/golden/clusters/assembles.golden); their results are computed here on the host.
#include "tests/unit/emulator/run_ptx.h"

#include "emulator/machines/darsie/skip_counters.h"
#include "support/file_io.h"
#include "tests/unit/paths.h"

#include <doctest/doctest.h>

#include <map>
#include <numeric>

namespace ptxrewrite::emulator::cluster_test {
namespace {

std::string text_of(std::string_view name) {
  Result<std::string> text = read_file(tests::source_path("tests/clusters/" + std::string(name) + ".ptx"));
  REQUIRE(text);
  return *text;
}

std::vector<uint32_t> numbers(size_t count, uint32_t seed) {
  std::vector<uint32_t> values(count);
  for (uint32_t& value : values)
    value = seed = seed * 1664525 + 1013904223;
  for (uint32_t& value : values)
    value >>= 12;
  return values;
}

LaunchRequest request(std::string kernel, Dimensions grid, std::optional<Dimensions> cluster, Dimensions block = {64}) {
  LaunchRequest made{.kernel = std::move(kernel), .grid = grid, .block = block};
  made.cluster = cluster;
  return made;
}

// Kernels of one block size, with a shared array `tile` of 64 words.
std::string small(std::string_view body, std::string_view directives = "", std::string_view more = "") {
  return ".version 8.6\n.target sm_90\n.address_size 64\n" + std::string(more) + ".visible .entry k(.param .u64 out) " +
         std::string(directives) +
         " {\n.reg .b64 %d<8>;\n.reg .b32 %r<8>;\n.reg .pred %p<4>;\n.shared .align 16 .u32 tile[64];\n"
         "ld.param.u64 %d0, [out];\nmov.u32 %r0, %tid.x;\nmov.u32 %r1, %cluster_ctarank;\n" +
         std::string(body) + "\nret;\n}\n";
}
constexpr const char* sync = "barrier.cluster.arrive;\nbarrier.cluster.wait;\n";

TEST_CASE("registers of clusters, by the manual's formulas") {
  const std::string text = text_of("registers");
  struct Shape {
    Dimensions grid, cluster;
  };
  std::vector<Shape> shapes = {{{6, 1, 1}, {1, 1, 1}}, {{16, 1, 1}, {16, 1, 1}}};
  for (uint32_t x = 1; x <= 3; ++x)
    for (uint32_t y = 1; y <= 2; ++y)
      for (uint32_t z = 1; z <= 2; ++z)
        for (uint32_t times = 1; times <= 3; ++times)
          shapes.push_back({{x * times, y * (4 - times), z * 2}, {x, y, z}});
  for (const auto& [grid, size] : shapes)
    for (const bool reversed : {false, true}) {
      CAPTURE(size.x);
      CAPTURE(size.y);
      CAPTURE(size.z);
      CAPTURE(grid.x);
      CAPTURE(grid.y);
      CAPTURE(reversed);
      LaunchRequest launch = request("registers", grid, size, {1});
      launch.reversed = reversed;
      const PtxRun run = run_ptx(text, launch, {zeros<uint32_t>(15 * grid.count())});
      REQUIRE(run.error == "");
      REQUIRE(run.failure() == "");
      const std::vector<uint32_t> seen = run.buffer<uint32_t>(0);
      std::vector<uint32_t> expected;
      for (uint32_t z = 0; z < grid.z; ++z)
        for (uint32_t y = 0; y < grid.y; ++y)
          for (uint32_t x = 0; x < grid.x; ++x) {
            const uint32_t rank = x % size.x + size.x * (y % size.y) + size.x * size.y * (z % size.z);
            const uint32_t words[15] = {x / size.x,
                                        y / size.y,
                                        z / size.z,
                                        grid.x / size.x,
                                        grid.y / size.y,
                                        grid.z / size.z,
                                        x % size.x,
                                        y % size.y,
                                        z % size.z,
                                        size.x,
                                        size.y,
                                        size.z,
                                        rank,
                                        size.x * size.y * size.z,
                                        2 * rank + 1};
            expected.insert(expected.end(), std::begin(words), std::end(words));
          }
      CHECK(seen == expected);
      CHECK(run.result.counters.blocks == grid.count());
    }
  // Without a cluster size each block is its own cluster, and not an explicit one.
  const PtxRun run = run_ptx(text, request("registers", {3, 2}, std::nullopt, {1}), {zeros<uint32_t>(15 * 6)});
  REQUIRE(run.ok());
  const std::vector<uint32_t> seen = run.buffer<uint32_t>(0);
  const std::vector<uint32_t> last(seen.begin() + 15 * 5, seen.end());
  CHECK(last == std::vector<uint32_t>{2, 1, 0, 3, 2, 1, 0, 0, 0, 1, 1, 1, 0, 1, 0});
}

const std::vector<Dimensions> sizes = {{1}, {2}, {4}, {8}, {16}};

TEST_CASE("histogram over the shared memory of a cluster") {
  const std::string text = text_of("exchange");
  for (const Dimensions& size : sizes) {
    CAPTURE(size.x);
    const uint32_t blocks = size.x * 3;
    const std::vector<uint32_t> values = numbers(512 * blocks, 7);
    std::vector<uint32_t> expected(256 * 3);
    for (size_t i = 0; i < values.size(); ++i)
      ++expected[i / (512 * size.x) * 256 + values[i] % 256];
    const PtxRun run =
        run_ptx(text, request("histogram", {blocks}, size), {buffer_of(values), zeros<uint32_t>(256 * 3)});
    REQUIRE(run.ok());
    CHECK(run.buffer<uint32_t>(1) == expected);
  }
}

TEST_CASE("reduction: every block reads the sums of all others") {
  const std::string text = text_of("exchange");
  for (const Dimensions& size : sizes) {
    CAPTURE(size.x);
    const uint32_t blocks = size.x * 2;
    const std::vector<uint32_t> values = numbers(64 * blocks, 3);
    std::vector<uint32_t> expected(blocks);
    for (uint32_t block = 0; block < blocks; ++block)
      for (size_t i = 0; i < values.size(); ++i)
        if (i / 64 / size.x == block / size.x) expected[block] += values[i];
    const PtxRun run = run_ptx(text, request("reduce", {blocks}, size), {buffer_of(values), zeros<uint32_t>(blocks)});
    REQUIRE(run.ok());
    CHECK(run.buffer<uint32_t>(1) == expected);
  }
}

TEST_CASE("ring: blocks hand their words round") {
  const std::string text = text_of("exchange");
  for (const Dimensions& size : sizes)
    for (uint32_t steps = 0; steps < 5; ++steps) {
      CAPTURE(size.x);
      CAPTURE(steps);
      const uint32_t blocks = size.x * 2;
      const std::vector<uint32_t> values = numbers(64 * blocks, 11);
      std::vector<uint32_t> expected(values.size());
      for (size_t i = 0; i < values.size(); ++i) {
        const size_t block = i / 64, first = block / size.x * size.x, from = (block - first + steps) % size.x + first;
        expected[from * 64 + i % 64] = values[i];
      }
      const PtxRun run =
          run_ptx(text, request("ring", {blocks}, size), {buffer_of(values), zeros<uint32_t>(values.size()), steps});
      REQUIRE(run.ok());
      CHECK(run.buffer<uint32_t>(1) == expected);
    }
}

TEST_CASE("halo: neighbours' words by generic addresses") {
  const std::string text = text_of("exchange");
  for (const Dimensions& size : sizes) {
    CAPTURE(size.x);
    const uint32_t blocks = size.x * 2;
    const size_t row = 64 * size.x;
    const std::vector<uint32_t> values = numbers(64 * blocks, 5);
    std::vector<uint32_t> expected = values;
    for (size_t i = 0; i < values.size(); ++i) {
      if (i % row != 0) expected[i] += values[i - 1];
      if (i % row != row - 1) expected[i] += values[i + 1];
    }
    const PtxRun run =
        run_ptx(text, request("halo", {blocks}, size), {buffer_of(values), zeros<uint32_t>(values.size())});
    REQUIRE(run.ok());
    CHECK(run.buffer<uint32_t>(1) == expected);
  }
}

TEST_CASE("grids, clusters and directives that do not fit together") {
  const auto refusal = [](const std::string& directives, Dimensions grid, std::optional<Dimensions> cluster) {
    return run_ptx(small("", directives), request("k", grid, cluster), {zeros<uint32_t>(1)}).error;
  };
  const std::optional<Dimensions> none;
  CHECK(refusal("", {4}, Dimensions{2}) == "");
  CHECK(refusal("", {3}, Dimensions{2}) == "a grid of 3 x 1 x 1 blocks, which is no multiple of clusters of 2 x 1 x 1");
  CHECK(refusal("", {4, 3}, Dimensions{1, 2}) ==
        "a grid of 4 x 3 x 1 blocks, which is no multiple of clusters of 1 x 2 x 1");
  CHECK(refusal(".reqnctapercluster 2", {3}, none) ==
        "a grid of 3 x 1 x 1 blocks, which is no multiple of clusters of 2 x 1 x 1");
  CHECK(refusal(".reqnctapercluster 2", {4}, none) == "");
  CHECK(refusal(".reqnctapercluster 2", {4}, Dimensions{2}) == "");
  CHECK(refusal(".reqnctapercluster 2", {4}, Dimensions{4}) ==
        "kernel 'k' runs in clusters of 2 x 1 x 1 blocks (.reqnctapercluster), not of 4 x 1 x 1");
  CHECK(refusal(".explicitcluster", {4}, none) ==
        "kernel 'k' takes the size of its clusters from its launch (.explicitcluster), which has none");
  CHECK(refusal(".explicitcluster", {4}, Dimensions{2}) == "");
  CHECK(refusal(".maxclusterrank 4", {8}, Dimensions{2, 2}) != ""); // grid.y is 1
  CHECK(refusal(".maxclusterrank 4", {8, 2}, Dimensions{2, 2}) == "");
  CHECK(refusal(".maxclusterrank 4", {8}, Dimensions{8}) ==
        "clusters of 8 x 1 x 1 blocks: those of kernel 'k' (.maxclusterrank) may have 1 to 4");
  CHECK(refusal("", {32}, Dimensions{32}) == "clusters of 32 x 1 x 1 blocks: a cluster may have 1 to 16");
  CHECK(refusal("", {65536, 65535}, Dimensions{65536, 65535}) != "");
  CHECK(refusal("", {4}, Dimensions{0}) == "clusters of 0 x 1 x 1 blocks: a cluster may have 1 to 16");
}

TEST_CASE("a grid that counts clusters") {
  const std::string text =
      small("atom.global.add.u32 %r2, [%d0], 1;", ".reqntid 64 .reqnctapercluster 2, 2 .blocksareclusters");
  const PtxRun run = run_ptx(text, request("k", {3, 2}, std::nullopt), {zeros<uint32_t>(1)});
  REQUIRE(run.ok());
  CHECK(run.buffer<uint32_t>(0)[0] == 3 * 2 * 4 * 64);
}

TEST_CASE("barrier.cluster without a cluster, and with lanes that come apart or end") {
  // Even lanes end earlier; odd lanes arrive and wait in two places.
  const std::string body = R"(and.b32 %r2, %r0, 1;
setp.eq.u32 %p0, %r2, 0;
@%p0 ret;
and.b32 %r2, %r0, 2;
setp.eq.u32 %p0, %r2, 0;
@%p0 bra other;
barrier.cluster.arrive;
barrier.cluster.wait;
bra join;
other:
barrier.cluster.arrive.relaxed;
barrier.cluster.wait.acquire;
join:
atom.global.add.u32 %r3, [%d0], 1;)";
  for (const std::optional<Dimensions>& size : {std::optional<Dimensions>(), {Dimensions{1}}, {Dimensions{4}}}) {
    const PtxRun run = run_ptx(small(body), request("k", {4}, size, {96}), {zeros<uint32_t>(1)});
    CHECK(run.error == "");
    CHECK(run.failure() == "");
    CHECK(run.buffer<uint32_t>(0)[0] == 4 * 48);
  }
}

TEST_CASE("a block that arrives early does its own work before it waits") {
  // Block 0 arrives, counts to its own, waits; no thread passes the wait before all have arrived.
  const std::string body = R"(mov.u32 %r2, tile;
mapa.shared::cluster.u32 %r3, %r2, 0;
barrier.cluster.arrive.release;
barrier.cluster.wait.acquire;
atom.relaxed.cluster.shared::cluster.add.u32 %r4, [%r3], 1;
barrier.cluster.arrive.release;
mul.lo.u32 %r5, %r0, 3;
barrier.cluster.wait.acquire;
ld.shared::cluster.u32 %r4, [%r3];
setp.ne.u32 %p0, %r4, 256;
@%p0 trap;
barrier.cluster.arrive;
barrier.cluster.wait;)";
  CHECK(run_ptx(small(body), request("k", {8}, Dimensions{4}), {zeros<uint32_t>(1)}).failure() == "");
}

TEST_CASE("blocks that spin on the shared memory of one another") {
  // A token is passed once around the cluster; each block waits for its own word to change.
  const std::string body = R"(mov.u32 %r2, tile;
setp.eq.u32 %p1, %r1, 0;
add.u32 %r3, %r1, 1;
mov.u32 %r4, %cluster_nctarank;
rem.u32 %r3, %r3, %r4;
mapa.shared::cluster.u32 %r5, %r2, %r3;
barrier.cluster.arrive;
barrier.cluster.wait;
setp.ne.u32 %p0, %r0, 0;
@%p0 bra done;
mov.u32 %r7, 1;
@%p1 st.relaxed.cluster.shared::cluster.u32 [%r5], %r7;
spin:
ld.acquire.cluster.shared::cta.u32 %r6, [%r2];
setp.eq.u32 %p0, %r6, 0;
@%p0 bra spin;
add.u32 %r6, %r6, 1;
@!%p1 st.release.cluster.shared::cluster.u32 [%r5], %r6;
@%p1 st.global.u32 [%d0], %r6;
done:
barrier.cluster.arrive;
barrier.cluster.wait;)";
  const PtxRun run = run_ptx(small(body), request("k", {16}, Dimensions{8}), {zeros<uint32_t>(1)});
  CHECK(run.error == "");
  CHECK(run.failure() == "");
  CHECK(run.buffer<uint32_t>(0)[0] == 9);
  // No block passes the token on.
  const std::string stuck = [&] {
    std::string text = body;
    return text.replace(text.find("@%p1 st.relaxed"), 4, "@%p0");
  }();
  const PtxRun never = run_ptx(small(stuck), request("k", {8}, Dimensions{8}), {zeros<uint32_t>(1)});
  REQUIRE(never.result.failure);
  CHECK(never.result.failure->kind == FailureKind::deadlock);
}

std::string failure_of(const std::string& body, Dimensions size = {2}) {
  return run_ptx(small(body), request("k", {size.x * 2}, size), {zeros<uint32_t>(1)}).failure();
}

TEST_CASE("addresses that are not in the cluster") {
  const std::string start = "mov.u32 %r2, tile;\nmov.u32 %r3, 2;\nmapa.shared::cluster.u32 %r3, %r2, %r3;\n";
  CHECK(failure_of(start + "ld.shared::cluster.u32 %r4, [%r3];").find("out of bounds: the cluster has 2 blocks") !=
        std::string::npos);
  // A rank that does not fit into an address is not in the cluster either.
  for (const char* rank : {"256", "0xffffffff", "16", "255"})
    CHECK(failure_of(std::string("mov.u32 %r2, tile;\nmapa.shared::cluster.u32 %r3, %r2, ") + rank +
                     ";\nst.shared::cluster.u32 [%r3], 1;")
              .find("the cluster has 2 blocks") != std::string::npos);
  // After the end of the other block's shared memory.
  const std::string other = "mov.u32 %r2, tile;\nxor.b32 %r3, %r1, 1;\nmapa.shared::cluster.u32 %r3, %r2, %r3;\n";
  CHECK(failure_of(other + "red.relaxed.cluster.shared::cluster.add.u32 [%r3 + 256], 1;")
            .find("of the cluster has 256 bytes of shared memory") != std::string::npos);
  CHECK(failure_of(other + "ld.shared::cluster.u32 %r4, [%r3 + 252];\n" + sync) == "");
  CHECK(failure_of(other + "ld.shared::cluster.u32 %r4, [%r3 + 2];").find("not a multiple of 4") != std::string::npos);
  // .shared is .shared::cta, which contains only the block's own memory.
  CHECK(failure_of(other + "ld.shared.u32 %r4, [%r3];").find("which only shared::cluster reaches") !=
        std::string::npos);
  // Generic addresses of other windows.
  CHECK(failure_of("mapa.u64 %d1, %d0, 1;").find("of no shared memory") != std::string::npos);
  CHECK(failure_of("getctarank.u64 %r2, %d0;") != "");
  CHECK(failure_of("cvta.shared.u64 %d1, tile;\nmapa.u64 %d1, %d1, 5;\nld.u32 %r2, [%d1];")
            .find("the cluster has 2 blocks") != std::string::npos);
}

TEST_CASE("shared memory of a block that has exited") {
  // Block 0 exits; block 1 accesses it after a barrier of its own block.
  const std::string body = R"(setp.eq.u32 %p0, %r1, 0;
@%p0 ret;
mov.u32 %r2, tile;
mapa.shared::cluster.u32 %r3, %r2, 0;
ld.shared::cluster.u32 %r4, [%r3];)";
  CHECK(failure_of(body) ==
        "shared::cluster load of 4 bytes at 0x0 is out of bounds: block 0 of the cluster has exited");
}

TEST_CASE("barriers of clusters that are used wrongly") {
  CHECK(failure_of("barrier.cluster.wait;") == "barrier.cluster.wait by a thread that has not arrived");
  CHECK(failure_of("barrier.cluster.arrive;\nbarrier.cluster.arrive;") ==
        "barrier.cluster.arrive by a thread that has arrived and not waited since");
  // One warp of block 1 waits for a barrier of its block that the other warp never reaches.
  const std::string stuck = R"(setp.ne.u32 %p0, %r1, 1;
setp.lt.or.u32 %p0, %r0, 32, %p0;
@%p0 bra cluster;
bar.sync 1, 64;
cluster:
barrier.cluster.arrive;
barrier.cluster.wait;)";
  const PtxRun run = run_ptx(small(stuck), request("k", {2}, Dimensions{2}), {zeros<uint32_t>(1)});
  REQUIRE(run.result.failure);
  CHECK(run.result.failure->kind == FailureKind::deadlock);
  CHECK(run.failure() ==
        "deadlock: no warp of the block can go on; warp 0 waits at the cluster's barrier in line 18; warp 1 waits "
        "at barrier 1 in line 15; the other blocks of the cluster wait at its barrier or have ended");
  CHECK(run.result.failure->block.x == 1);
}

TEST_CASE("isspacep knows whose shared memory an address is in") {
  const std::string body = R"(cvta.shared.u64 %d1, tile;
mapa.u64 %d2, %d1, 1;
isspacep.shared::cta %p0, %d2;
isspacep.shared::cluster %p1, %d2;
isspacep.shared::cluster %p2, %d0;
selp.u32 %r2, 1, 0, %p0;
selp.u32 %r3, 2, 0, %p1;
selp.u32 %r4, 4, 0, %p2;
add.u32 %r2, %r2, %r3;
add.u32 %r2, %r2, %r4;
getctarank.u64 %r3, %d2;
mad.lo.u32 %r2, %r3, 8, %r2;
mad.wide.u32 %d0, %r1, 4, %d0;
st.global.u32 [%d0], %r2;)";
  const PtxRun run = run_ptx(small(body), request("k", {2}, Dimensions{2}), {zeros<uint32_t>(2)});
  REQUIRE(run.ok());
  CHECK(run.buffer<uint32_t>(0) == std::vector<uint32_t>{8 + 2, 8 + 2 + 1});
}

TEST_CASE("fuel of blocks in clusters") {
  LaunchRequest launch = request("k", {4}, Dimensions{2});
  launch.fuel = 10'000;
  const PtxRun run =
      run_ptx(small("setp.ne.u32 %p0, %r1, 1;\n@%p0 bra done;\nround: bra round;\ndone:\n" + std::string(sync)), launch,
              {zeros<uint32_t>(1)});
  REQUIRE(run.result.failure);
  CHECK(run.result.failure->kind == FailureKind::out_of_fuel);
}

TEST_CASE("what does not go with clusters is refused") {
  LaunchRequest launch = request("k", {4}, Dimensions{2});
  launch.machines = {SkipSettings{}};
  CHECK(run_ptx(small(sync), launch, {zeros<uint32_t>(1)}).error ==
        "a launch in clusters of several blocks runs without other machines");
}

} // namespace
} // namespace ptxrewrite::emulator::cluster_test
