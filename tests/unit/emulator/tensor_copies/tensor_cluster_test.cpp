// Tensor copies into the shared memory of other blocks of a cluster: to one of them by its address, and to several by a
// mask (.multicast::cluster: the same offsets in each).
#include "tests/unit/emulator/tensor_copies/tensor_run.h"

#include <algorithm>

namespace ptxrewrite::emulator::tensor_cluster_test {
namespace {

constexpr uint32_t tile_bytes = 512, blocks = 4;

// The blocks that wait for the copy, by %cluster_ctarank, and their numbers of bytes.
struct Expected {
  uint32_t blocks = 0; // a mask
  uint32_t bytes = tile_bytes;
};

// Blocks that expect bytes wait for them; all store their shared memory. Block 1 issues `copy`, with %tile and %bar in
// its own shared memory, %other and %obar in that of block 3, %pbar in that of block 0.
std::string cluster_kernel(const std::string& copy, const Expected& expected) {
  return R"(.version 8.6
.target sm_100a
.address_size 64
.visible .entry k(.param .align 64 .b8 map[128], .param .u64 out) .reqnctapercluster 4
{
  .shared .align 128 .b8 area[512];
  .shared .align 8 .b64 bar;
  .reg .b32 %t, %tile, %bar, %other, %obar, %pbar, %rank, %x, %i, %bit;
  .reg .b64 %map, %out, %o;
  .reg .pred %p, %q, %wants, %issues;
  mov.b64 %map, map;
  cvta.param.u64 %map, %map;
  ld.param.u64 %out, [out];
  mov.u32 %tile, area;
  mov.u32 %bar, bar;
  mov.u32 %rank, %cluster_ctarank;
  mapa.shared::cluster.u32 %other, %tile, 3;
  mapa.shared::cluster.u32 %obar, %bar, 3;
  mapa.shared::cluster.u32 %pbar, %bar, 0;
  shl.b32 %bit, 1, %rank;
  and.b32 %bit, %bit, )" +
         std::to_string(expected.blocks) + R"(;
  setp.ne.u32 %wants, %bit, 0;
  setp.eq.u32 %issues, %rank, 1;
  mov.u32 %t, %tid.x;
  setp.eq.u32 %q, %t, 0;
  @%q mbarrier.init.shared.b64 [%bar], 1;
  fence.mbarrier_init.release.cluster;
  barrier.cluster.arrive.aligned;
  barrier.cluster.wait.aligned;
  and.pred %issues, %issues, %q;
  and.pred %p, %wants, %q;
  @%p mbarrier.arrive.expect_tx.shared.b64 _, [%bar], )" +
         std::to_string(expected.bytes) + R"(;
  @!%issues bra ISSUED;
)" + copy +
         R"(
ISSUED:
  @!%wants bra SHOW;
WAIT:
  mbarrier.try_wait.parity.shared.b64 %p, [%bar], 0;
  @!%p bra WAIT;
SHOW:
  barrier.cluster.arrive.aligned;
  barrier.cluster.wait.aligned;
  mov.u32 %x, %ctaid.x;
  mul.wide.u32 %o, %x, 512;
  add.u64 %out, %out, %o;
  mul.wide.u32 %o, %t, 16;
  add.u64 %out, %out, %o;
  shl.b32 %i, %t, 4;
  add.u32 %tile, %tile, %i;
  .reg .b32 %r<4>;
  ld.shared.v4.b32 {%r0, %r1, %r2, %r3}, [%tile];
  st.global.v4.b32 [%out], {%r0, %r1, %r2, %r3};
  ret;
}
)";
}

TensorRun run_cluster(const std::string& copy, const Expected& expected, bool late) {
  TensorRun run;
  Diagnostics diagnostics;
  auto module = grammar::read_module(SourceFile("test.ptx", cluster_kernel(copy, expected)), diagnostics);
  if (!module) {
    for (const Diagnostic& diagnostic : diagnostics.list())
      run.error += diagnostic.message + "\n";
    return run;
  }
  DeviceMemory memory;
  auto program = Program::load(*module, memory);
  REQUIRE(program);
  run.tensor = random_bytes(2048, 1);
  const uint64_t tensor = *memory.allocate(run.tensor.size(), "tensor"),
                 out = *memory.allocate(2 * blocks * tile_bytes, "out");
  REQUIRE(memory.write(tensor, run.tensor));
  ir::TensorMap map;
  map.address = tensor;
  map.rank = 2;
  map.dims = {64, 32};
  map.strides = {0, 64};
  map.box = {64, 8};
  map.element_strides = {1, 1};
  LaunchRequest request{.kernel = "k", .grid = {2 * blocks}, .block = {32}};
  request.late_copies = late;
  request.parameters.resize(136);
  const TensorMapObject object = encode_tensor_map(map);
  std::memcpy(request.parameters.data(), object.data(), object.size());
  std::memcpy(request.parameters.data() + 128, &out, 8);
  auto result = (*program)->launch(request);
  if (!result) {
    run.error = result.error().message;
    return run;
  }
  if (result->failure) run.failure = result->failure->message;
  run.shared.resize(2 * blocks * tile_bytes);
  REQUIRE(memory.read(out, run.shared));
  return run;
}

// Blocks of `mask` in both clusters have rows 4 and on of the tensor, the others zeros.
void check(const TensorRun& run, uint32_t mask) {
  REQUIRE_MESSAGE(run.error.empty(), run.error);
  REQUIRE_MESSAGE(run.failure.empty(), run.failure);
  for (uint32_t block = 0; block < 2 * blocks; ++block) {
    CAPTURE(block);
    const auto found = run.shared.begin() + block * tile_bytes;
    if (mask >> block % blocks & 1)
      CHECK(std::equal(found, found + tile_bytes, run.tensor.begin() + 4 * 64));
    else
      CHECK(std::all_of(found, found + tile_bytes, [](std::byte byte) { return byte == std::byte(0); }));
  }
}

std::string copy_text(const std::string& places, const std::string& more = "", const std::string& operand = "") {
  return "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes" + more + " [" +
         places.substr(0, places.find(' ')) + "], [%map, {0, 4}], [" + places.substr(places.find(' ') + 1) + "]" +
         operand + ";\n";
}

TEST_CASE("a tensor copy to another block, and to several") {
  for (const bool late : {false, true}) {
    check(run_cluster(copy_text("%tile %bar"), {2}, late), 2);
    check(run_cluster(copy_text("%other %obar"), {8}, late), 8);
    for (const uint32_t mask : {1u, 2u, 10u, 15u})
      check(run_cluster(copy_text("%tile %bar", ".multicast::cluster", ", " + std::to_string(mask)), {mask}, late),
            mask);
  }
}

// PTX ISA, cp.async.bulk.tensor, .cta_group::2: the mbarrier is in the destination's block or in the other one of its
// pair; with a mask, each destination's bytes are counted in that block of its pair whose rank has the parity of the
// mbarrier's.
TEST_CASE("a tensor copy that the other block of a pair counts") {
  for (const bool late : {false, true}) {
    check(run_cluster(copy_text("%tile %pbar", ".cta_group::2"), {1}, late), 2);
    check(run_cluster(copy_text("%tile %bar", ".cta_group::2"), {2}, late), 2);
    const auto multicast = [&](const std::string& barrier, uint32_t mask) {
      return copy_text("%tile " + barrier, ".multicast::cluster.cta_group::2", ", " + std::to_string(mask));
    };
    check(run_cluster(multicast("%pbar", 15), {5, 2 * tile_bytes}, late), 15);
    check(run_cluster(multicast("%bar", 15), {10, 2 * tile_bytes}, late), 15);
    check(run_cluster(multicast("%pbar", 10), {5}, late), 10);
    check(run_cluster(multicast("%obar", 5), {10}, late), 5);
  }
}

TEST_CASE("tensor copies to blocks that there are not, and with a barrier elsewhere") {
  const auto failure = [](const std::string& text) { return run_cluster(text, {}, false).failure; };
  CHECK(failure(copy_text("%tile %bar", ".multicast::cluster", ", 16")) ==
        "a copy to the blocks of mask 16, in a cluster of 4");
  CHECK_FALSE(failure(copy_text("%other %bar")).empty());
  CHECK_FALSE(failure(copy_text("%tile %obar")).empty());
  CHECK(failure(copy_text("%tile %obar", ".cta_group::2")) ==
        "bytes for block 1 of the cluster, counted at an mbarrier in block 3");
  CHECK(failure(copy_text("%tile %pbar", ".cta_group::1")) ==
        "bytes for block 1 of the cluster, counted at an mbarrier in block 0");
}

} // namespace
} // namespace ptxrewrite::emulator::tensor_cluster_test
