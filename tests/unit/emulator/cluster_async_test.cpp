// Asynchronous operations on other blocks of a cluster, performed at once and late (LaunchRequest::late_copies). The
// kernels are those of tests/clusters/async.ptx; their results are computed here on the host.
#include "support/file_io.h"
#include "tests/unit/emulator/run_ptx.h"
#include "tests/unit/paths.h"

namespace ptxrewrite::emulator::cluster_async_test {
namespace {

std::string text_of(const std::string& name) {
  Result<std::string> text = read_file(tests::source_path("tests/clusters/" + name + ".ptx"));
  REQUIRE(text);
  return *text;
}

std::vector<uint32_t> words(size_t count) {
  std::vector<uint32_t> values(count);
  uint32_t seed = 17;
  for (uint32_t& value : values)
    value = seed = seed * 1664525 + 1013904223;
  return values;
}

LaunchRequest request(std::string kernel, uint32_t blocks, uint32_t size, bool late, bool reversed = false) {
  LaunchRequest made{.kernel = std::move(kernel), .grid = {blocks}, .block = {64}};
  made.cluster = Dimensions{size};
  made.late_copies = late;
  made.reversed = reversed;
  return made;
}

constexpr uint32_t sizes[] = {1, 2, 4, 8, 16};

// Word i of the block that copies its words to the block of word i.
std::vector<uint32_t> from_the_one_before(const std::vector<uint32_t>& in, uint32_t size) {
  std::vector<uint32_t> expected(in.size());
  for (size_t i = 0; i < in.size(); ++i) {
    const size_t block = i / 64, first = block / size * size, before = first + (block - first + size - 1) % size;
    expected[i] = in[before * 64 + i % 64];
  }
  return expected;
}

TEST_CASE("st.async and bulk copies into the next block") {
  const std::string text = text_of("async");
  for (const char* kernel : {"push", "bulk_push"})
    for (uint32_t size : sizes)
      for (bool late : {false, true})
        for (bool reversed : {false, true}) {
          CAPTURE(kernel);
          CAPTURE(size);
          CAPTURE(late);
          const std::vector<uint32_t> in = words(64 * 2 * size);
          const PtxRun run = run_ptx(text, request(kernel, 2 * size, size, late, reversed),
                                     {buffer_of(in), zeros<uint32_t>(in.size())});
          REQUIRE(run.error == "");
          REQUIRE(run.failure() == "");
          CHECK(run.buffer<uint32_t>(1) == from_the_one_before(in, size));
        }
}

TEST_CASE("bulk copies to the blocks of a mask") {
  const std::string text = text_of("async");
  for (uint32_t size : sizes)
    for (uint32_t mask : {1u, 2u, 3u, 0x5555u, 0x8001u, 0xffffu}) {
      const uint32_t in_cluster = mask & ((1u << size) - 1);
      for (bool late : {false, true}) {
        CAPTURE(size);
        CAPTURE(mask);
        CAPTURE(late);
        const uint32_t blocks = 2 * size;
        const std::vector<uint32_t> in = words(64 * blocks);
        std::vector<uint32_t> expected(in.size());
        for (size_t i = 0; i < in.size(); ++i) {
          const size_t block = i / 64, rank = block % size;
          expected[i] = (in_cluster >> rank) & 1 ? in[(block - rank) * 64 + i % 64] : static_cast<uint32_t>(block);
        }
        const PtxRun run = run_ptx(text, request("spread", blocks, size, late),
                                   {buffer_of(in), zeros<uint32_t>(in.size()), in_cluster});
        REQUIRE(run.ok());
        CHECK(run.buffer<uint32_t>(1) == expected);
      }
      if (mask == in_cluster) continue;
      const PtxRun wrong = run_ptx(text, request("spread", size, size, false),
                                   {zeros<uint32_t>(64 * size), zeros<uint32_t>(64 * size), mask});
      CHECK(wrong.failure() ==
            "a copy to the blocks of mask " + std::to_string(mask) + ", in a cluster of " + std::to_string(size));
    }
}

TEST_CASE("red.async: four reductions of all words of a cluster") {
  const std::string text = text_of("async");
  for (uint32_t size : sizes) {
    CAPTURE(size);
    const std::vector<uint32_t> in = words(64 * 3 * size);
    std::vector<uint32_t> expected;
    for (size_t first = 0; first < in.size(); first += 64 * size) {
      uint32_t sum = 0, any = 0;
      int32_t most = INT32_MIN;
      uint64_t wide = 0;
      for (size_t i = first; i < first + 64 * size; ++i) {
        sum += in[i];
        any |= in[i];
        most = std::max(most, static_cast<int32_t>(in[i]));
        wide += in[i];
      }
      expected.insert(expected.end(), {sum, static_cast<uint32_t>(most), any, static_cast<uint32_t>(wide)});
    }
    const PtxRun run =
        run_ptx(text, request("combine", 3 * size, size, false), {buffer_of(in), zeros<uint32_t>(expected.size())});
    REQUIRE(run.error == "");
    REQUIRE(run.failure() == "");
    CHECK(run.buffer<uint32_t>(1) == expected);
  }
}

TEST_CASE("threads of all blocks arrive at one mbarrier") {
  const std::string text = text_of("async");
  for (uint32_t size : sizes)
    for (bool reversed : {false, true}) {
      CAPTURE(size);
      const std::vector<uint32_t> in = words(64 * 2 * size);
      const PtxRun run = run_ptx(text, request("gather", 2 * size, size, false, reversed),
                                 {buffer_of(in), zeros<uint32_t>(in.size())});
      REQUIRE(run.ok());
      CHECK(run.buffer<uint32_t>(1) == in);
    }
}

TEST_CASE("requests to cancel: every block of the grid gets its turn once") {
  const std::string text = text_of("cancel");
  for (uint32_t size : sizes) {
    const PtxRun run = run_ptx(text, request("cancel", 4 * size, size, false), {zeros<uint32_t>(4 * size)});
    REQUIRE(run.error == "");
    REQUIRE(run.failure() == "");
    CHECK(run.buffer<uint32_t>(0) == std::vector<uint32_t>(4 * size, 1));
  }
  LaunchRequest alone{.kernel = "cancel", .grid = {5}, .block = {64}};
  const PtxRun run = run_ptx(text, alone, {zeros<uint32_t>(5)});
  REQUIRE(run.ok());
  CHECK(run.buffer<uint32_t>(0) == std::vector<uint32_t>(5, 1));
}

// Blocks of 32 threads in clusters of two; thread 0 of block 0 makes the error.
std::string failure_of(const std::string& body) {
  const std::string text =
      ".version 8.6\n.target sm_90\n.address_size 64\n.visible .entry k() {\n.reg .b32 %r<8>;\n.reg .b64 %d<4>;\n.reg "
      ".pred %p<4>;\n.shared .align 16 .b8 place[64];\n.shared .align 8 .b64 full;\nmov.u32 %r0, %tid.x;\nmov.u32 "
      "%r1, %cluster_ctarank;\nor.b32 %r2, %r0, %r1;\nsetp.ne.u32 %p0, %r2, 0;\nsetp.ne.u32 %p1, %r0, 0;\nmov.u32 "
      "%r3, place;\nmov.u32 %r4, full;\n@!%p1 mbarrier.init.shared::cta.b64 [%r4], 1;\nbarrier.cluster.arrive;\n"
      "barrier.cluster.wait;\n@%p0 bra done;\nmapa.shared::cluster.u32 %r5, %r3, 1;\nmapa.shared::cluster.u32 %r6, "
      "%r4, 1;\n" +
      body + "\ndone:\nbarrier.cluster.arrive;\nbarrier.cluster.wait;\nret;\n}\n";
  LaunchRequest launch{.kernel = "k", .grid = {2}, .block = {32}};
  launch.cluster = Dimensions{2};
  const PtxRun run = run_ptx(text, launch);
  CHECK(run.error == "");
  return run.failure();
}

TEST_CASE("asynchronous operations at wrong places") {
  const std::string store = "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 ";
  CHECK(failure_of(store + "[%r5], %r0, [%r6];") == ""); // more bytes than are expected so far: the count is signed
  CHECK(failure_of(store + "[%r5], %r0, [%r4];") ==
        "bytes for block 1 of the cluster, counted at an mbarrier in block 0");
  CHECK(failure_of("mapa.shared::cluster.u32 %r7, %r3, 2;\n" + store + "[%r7], %r0, [%r6];")
            .find("the cluster has 2 blocks") != std::string::npos);
  CHECK(failure_of(store + "[%r5 + 2], %r0, [%r6];").find("not a multiple of 4") != std::string::npos);
  CHECK(failure_of("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r5], [%r3], 16, [%r4];") ==
        "bytes for block 1 of the cluster, counted at an mbarrier in block 0");
  CHECK(failure_of("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r5], [%r5], 16, [%r6];")
            .find("which only shared::cluster reaches") != std::string::npos);
  CHECK(failure_of("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r5];").find("not initialised") !=
        std::string::npos);
  CHECK(failure_of("mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [%r6], 16;") == "");
}

} // namespace
} // namespace ptxrewrite::emulator::cluster_async_test
