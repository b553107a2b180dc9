// mbarriers of layout v1: reports of asynchronous copies, primary and conditional phases (PTX ISA 9.3 and 9.4); bulk
// copies of chosen bytes; mbarriers of several blocks.
#include "tests/unit/emulator/run_ptx.h"

namespace ptxrewrite::emulator::mbarrier_report_test {
namespace {

// One thread with 64 bytes of global memory at %in and of shared memory at %tile, an mbarrier at %bar; what it leaves
// in %r0 to %r7 and in shared memory comes back.
struct Copied {
  PtxRun run;
  std::vector<uint32_t> numbers;
  std::vector<uint8_t> tile;
  uint32_t operator[](size_t i) const { return numbers.at(i); }
};

Copied run_barrier(const std::string& body, std::vector<uint8_t> in, bool late = false,
                   const char* target = ".version 9.4\n.target sm_107f\n") {
  in.resize(64);
  const std::string text = std::string(target) + R"(.address_size 64
.visible .entry k(.param .u64 in, .param .u64 out)
{
  .shared .align 128 .b8 tile[64];
  .shared .align 8 .b64 bar;
  .reg .b32 %r<16>, %tile, %bar, %x;
  .reg .b64 %in, %out, %s<4>;
  .reg .b8 %v<4>;
  .reg .b16 %h<4>;
  .reg .pred %p, %q;
  ld.param.u64 %in, [in];
  ld.param.u64 %out, [out];
  mov.u32 %tile, tile;
  mov.u32 %bar, bar;
  mov.b32 %x, 0xeeeeeeee;
  st.shared.v4.b32 [%tile], {%x, %x, %x, %x};
  st.shared.v4.b32 [%tile+16], {%x, %x, %x, %x};
  st.shared.v4.b32 [%tile+32], {%x, %x, %x, %x};
  st.shared.v4.b32 [%tile+48], {%x, %x, %x, %x};
  fence.proxy.async;
)" + body + R"(
  st.global.v4.b32 [%out], {%r0, %r1, %r2, %r3};
  st.global.v4.b32 [%out+16], {%r4, %r5, %r6, %r7};
  mov.u32 %x, 0;
SHOW:
  add.u32 %tile, %tile, 0;
  ld.shared.b32 %r8, [%tile];
  st.global.b32 [%out+32], %r8;
  add.u32 %tile, %tile, 4;
  add.u64 %out, %out, 4;
  add.u32 %x, %x, 4;
  setp.lt.u32 %p, %x, 64;
  @%p bra SHOW;
  ret;
}
)";
  Copied copied;
  LaunchRequest request{.kernel = "k", .block = {1}};
  request.late_copies = late;
  copied.run = run_ptx(text, request, {buffer_of(in), zeros<uint8_t>(96)});
  if (!copied.run.ok()) return copied;
  const std::vector<uint8_t> out = copied.run.buffer<uint8_t>(1);
  copied.numbers.resize(8);
  std::memcpy(copied.numbers.data(), out.data(), 32);
  copied.tile.assign(out.begin() + 32, out.end());
  return copied;
}

std::vector<uint8_t> counted(size_t count = 64) {
  std::vector<uint8_t> bytes(count);
  for (size_t i = 0; i < count; ++i)
    bytes[i] = static_cast<uint8_t>(i + 1);
  return bytes;
}

const char* const start_of_phase = "  mbarrier.arrive.expect_tx.shared.b64 _, [%bar], 64;\n";
// %r0: the primary phase is over; %r1: there was a report; %r2: its value; %r3: the conditional phase is over.
std::string tests(int parity) {
  const std::string p = std::to_string(parity);
  return "  mbarrier.test_wait.parity.phase_type::primary.shared.b64 %p|%q, %v0, [%bar], " + p +
         ";\n  selp.b32 %r0, 1, 0, %p;\n  selp.b32 %r1, 1, 0, %q;\n  cvt.u32.u8 %r2, %v0;\n"
         "  mbarrier.test_wait.parity.phase_type::conditional.shared.b64 %p, [%bar], " +
         p + ";\n  selp.b32 %r3, 1, 0, %p;\n";
}
std::string reporting_copy(const char* kind) {
  return std::string("  cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.mbarrier::report::") + kind +
         " [%tile], [%in], 64, [%bar];\n";
}

TEST_CASE("layouts of mbarriers") {
  Copied run = run_barrier(R"(
  mbarrier.init.layout::v1.shared.b64 [%bar], 511;
  mbarrier.check_layout.layout::v1.shared.b64 %p, [%bar];
  selp.b32 %r0, 1, 0, %p;
  mbarrier.check_layout.layout::v0.shared.b64 %p, [%bar];
  selp.b32 %r1, 1, 0, %p;
  mbarrier.arrive.shared.b64 %s0, [%bar], 11;
  mbarrier.arrive.shared.b64 %s1, [%bar], 500;
  mbarrier.test_wait.shared.b64 %p, [%bar], %s0;
  selp.b32 %r2, 1, 0, %p;
  mbarrier.test_wait.shared.b64 %p, [%bar], %s1;
  selp.b32 %r3, 1, 0, %p;
  mbarrier.arrive.shared.b64 %s0, [%bar];
  mbarrier.test_wait.shared.b64 %p, [%bar], %s0;
  selp.b32 %r4, 1, 0, %p;
  mbarrier.init.layout::v0.shared.b64 [%bar], 512;
  mbarrier.check_layout.layout::v0.shared.b64 %p, [%bar];
  selp.b32 %r5, 1, 0, %p;
  mbarrier.arrive.shared.b64 %s0, [%bar], 12;
  mbarrier.arrive.shared.b64 %s0, [%bar], 100;
  mbarrier.pending_count.layout::v0.b64 %r6, %s0;
)",
                           {});
  REQUIRE_MESSAGE(run.run.ok(), run.run.error << run.run.failure());
  CHECK(run.numbers == std::vector<uint32_t>{1, 0, 1, 1, 0, 1, 500, 0});
  CHECK(run_barrier("mbarrier.init.layout::v1.shared.b64 [%bar], 512;", {}).run.failure() ==
        "mbarrier of 512 arrivals");
}

// The sample is the first element of each 16 bytes (ours). -0: the sign bit and nothing else.
TEST_CASE("copies that report about their data") {
  struct Row {
    const char* kind;
    size_t place;
    std::vector<uint8_t> mark;
    bool reports;
  };
  const Row rows[] = {
      {"validity::per_16bytes::80000000", 16, {0, 0, 0, 0x80}, true},
      {"validity::per_16bytes::80000000", 20, {0, 0, 0, 0x80}, false},
      {"validity::per_16bytes::80000000", 48, {1, 0, 0, 0x80}, false},
      {"validity::per_16bytes::8000", 48, {0, 0x80}, true},
      {"validity::per_16bytes::8000", 48, {0x80, 0}, false},
      {"validity::per_16bytes::80", 0, {0x80}, true},
      {"validity::per_16bytes::80", 0, {0x81}, false},
      {"validity::per_16bytes::8", 32, {0x38}, true},
      {"validity::per_16bytes::8", 32, {0x83}, false},
      {"disabled", 0, {0, 0, 0, 0x80}, false},
  };
  for (const Row& row : rows)
    for (const bool late : {false, true}) {
      CAPTURE(row.kind);
      CAPTURE(row.place);
      CAPTURE(late);
      std::vector<uint8_t> in = counted();
      std::copy(row.mark.begin(), row.mark.end(), in.begin() + static_cast<std::ptrdiff_t>(row.place));
      const Copied run = run_barrier("  mbarrier.init.layout::v1.shared.b64 [%bar], 1;\n" +
                                         std::string(start_of_phase) + reporting_copy(row.kind) + tests(0),
                                     in, late);
      REQUIRE_MESSAGE(run.run.ok(), run.run.error << run.run.failure());
      CHECK(run.tile == in);
      CHECK(run[0] == 1);
      CHECK(run[1] == row.reports);
      CHECK((run[2] != 0) == row.reports);
      CHECK(run[3] == !row.reports); // the conditional phase goes on
    }
  CHECK(run_barrier("  mbarrier.init.shared.b64 [%bar], 1;\n" + std::string(start_of_phase) +
                        reporting_copy("validity::per_16bytes::80"),
                    counted())
            .run.failure() == "a copy that reports to an mbarrier of another layout than v1");
}

// A consumer that waits for the conditional phase takes data that is copied once more and is complete then.
TEST_CASE("a phase with a report and one without") {
  std::vector<uint8_t> in = counted();
  in[16] = 0x80;
  const std::string copy = reporting_copy("validity::per_16bytes::80");
  const Copied run =
      run_barrier("  mbarrier.init.layout::v1.shared.b64 [%bar], 1;\n" + std::string(start_of_phase) + copy + tests(0) +
                      "  shl.b32 %r4, %r1, 4;\n  or.b32 %r4, %r4, %r3;\n"
                      "  mov.b32 %x, 7;\n  st.global.b32 [%in+16], %x;\n  fence.proxy.async;\n" +
                      start_of_phase + copy + tests(1) +
                      "  mbarrier.test_wait.parity.phase_type::conditional.shared.b64 %p, [%bar], 0;\n"
                      "  selp.b32 %r5, 1, 0, %p;\n",
                  in);
  REQUIRE_MESSAGE(run.run.ok(), run.run.error << run.run.failure());
  CHECK(run[4] == 0x10); // the first phase: a report, not over on condition
  CHECK(run[0] == 1);
  CHECK(run[1] == 0);
  CHECK(run[5] == 1);
}

TEST_CASE("bulk copies of chosen bytes") {
  const std::vector<uint8_t> in = counted();
  for (const bool late : {false, true}) {
    // Bits of the mask: bytes of each 16.
    Copied run = run_barrier(R"(
  cp.async.bulk.global.shared::cta.bulk_group.cp_mask [%in], [%tile], 64, 0x8001;
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group 0;
  ld.global.v4.b32 {%r0, %r1, %r2, %r3}, [%in+48];
)",
                             in, late, ".version 9.0\n.target sm_100a\n");
    REQUIRE_MESSAGE(run.run.ok(), run.run.error << run.run.failure());
    CHECK(run[0] == 0x343332ee); // bytes 49 to 64 but the first and the last one
    CHECK(run[1] == 0x38373635);
    CHECK(run[3] == 0xee3f3e3d);
    // Bytes at the ends that may lie outside of the allocation: 64 bytes from 8 before it.
    run = run_barrier(R"(
  mbarrier.init.shared.b64 [%bar], 1;
  mbarrier.arrive.expect_tx.shared.b64 _, [%bar], 64;
  mov.b32 %r0, 3;
  cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.ignore_oob [%tile], [%in], 64, %r0, 14, [%bar];
  mbarrier.test_wait.parity.shared.b64 %p, [%bar], 0;
  selp.b32 %r0, 1, 0, %p;
)",
                      in, late, ".version 9.2\n.target sm_100a\n");
    REQUIRE_MESSAGE(run.run.ok(), run.run.error << run.run.failure());
    CHECK(run[0] == 1); // all 64 bytes are counted
    for (size_t i = 0; i < 64; ++i)
      CHECK(run.tile[i] == (i < 3 || i >= 50 ? 0xee : in[i]));
  }
  const auto beyond = [](const char* ignored) {
    return run_barrier("  mbarrier.init.shared.b64 [%bar], 1;\n  add.u64 %in, %in, 16;\n"
                       "  cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.ignore_oob [%tile], [%in], 64, "
                       "0, " +
                           std::string(ignored) + ", [%bar];\n",
                       counted(), false, ".version 9.2\n.target sm_100a\n")
        .run.failure();
  };
  CHECK(beyond("15").find("bulk load") != std::string::npos); // one byte too many is read
}

// Four blocks: rank 0 arrives at the barriers of ranks 1 and 3, which expect one arrival and 16 bytes.
TEST_CASE("mbarriers with the same offset in several blocks") {
  const std::string text = R"(.version 9.4
.target sm_107f
.address_size 64
.visible .entry k(.param .u64 out) .reqnctapercluster 4, 1, 1
{
  .shared .align 8 .b64 bar;
  .reg .b32 %rank, %bar, %r<4>;
  .reg .b64 %out, %o;
  .reg .pred %p, %q;
  mov.u32 %rank, %cluster_ctarank;
  mov.u32 %bar, bar;
  mbarrier.init.shared.b64 [%bar], 2;
  barrier.cluster.arrive;
  barrier.cluster.wait;
  setp.ne.u32 %q, %rank, 0;
  @%q bra WAIT;
  mbarrier.expect_tx.relaxed.cluster.shared::cluster.multicast::cluster::32b.b64 [%bar], 16, 10;
  mbarrier.arrive.release.cluster.shared::cluster.multicast::cluster::32b.b64 _, [%bar], 10;
  mbarrier.arrive.expect_tx.release.cluster.shared::cluster.multicast::cluster::32b.b64 _, [%bar], 4, 10;
  mbarrier.complete_tx.relaxed.cluster.shared::cluster.multicast::cluster::32b.b64 [%bar], 20, 10;
WAIT:
  barrier.cluster.arrive;
  barrier.cluster.wait;
  mbarrier.test_wait.parity.shared.b64 %p, [%bar], 0;
  selp.b32 %r0, 1, 0, %p;
  ld.param.u64 %out, [out];
  mul.wide.u32 %o, %rank, 4;
  add.u64 %out, %out, %o;
  st.global.b32 [%out], %r0;
  ret;
}
)";
  const PtxRun run = run_ptx(text, {.kernel = "k", .grid = {4}, .block = {1}}, {zeros<uint32_t>(4)});
  REQUIRE_MESSAGE(run.ok(), run.error << run.failure());
  CHECK(run.buffer<uint32_t>(0) == std::vector<uint32_t>{0, 1, 0, 1});
}

// With one GPU an address of several replicas is that of the only one.
TEST_CASE("multimem: each is the operation on global memory") {
  const Copied run = run_barrier(R"(
  multimem.ld_reduce.relaxed.gpu.global.add.u32 %r0, [%in];
  multimem.ld_reduce.weak.global.add.acc::f32.v2.f16x2 {%r1, %r2}, [%in+8];
  mov.b32 %x, 100;
  multimem.red.relaxed.sys.global.add.u32 [%in], %x;
  multimem.red.global.max.u32 [%in+4], %x;
  multimem.st.release.gpu.global.b32 [%in+8], %x;
  ld.global.v4.b32 {%r3, %r4, %r5, %r6}, [%in];
  multimem.cp.async.bulk.global.shared::cta.bulk_group [%in], [%tile], 16;
  multimem.cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%in+16], [%tile], 16;
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group 0;
  ld.global.b32 %r6, [%in+4];
  ld.global.b32 %r7, [%in+20];
)",
                                 counted());
  REQUIRE_MESSAGE(run.run.ok(), run.run.error << run.run.failure());
  const uint32_t first = 0x04030201, second = 0x08070605;
  CHECK(run.numbers == std::vector<uint32_t>{first, 0x0c0b0a09, 0x100f0e0d, first + 100, second, 100, 0xeeeeeeee,
                                             0x18171615u + 0xeeeeeeeeu});
}

} // namespace
} // namespace ptxrewrite::emulator::mbarrier_report_test
