// The time of asynchronous copies: at once or as late as possible. Kernels with correct waits must have equal results;
// those without must differ. And bulk copies, counted at mbarriers and in groups.
#include "tests/unit/emulator/run_ptx.h"

#include <numeric>

namespace ptxrewrite::emulator::copies_test {
namespace {

std::vector<uint32_t> numbers(size_t count) {
  std::vector<uint32_t> values(count);
  std::iota(values.begin(), values.end(), 1000);
  return values;
}

// Each of 32 threads adds up 8 of its numbers, 32 apart, through its own ring of two slots. The n-th trip waits until
// `left` of the younger groups are open.
PtxRun run_ring(unsigned left, bool late) {
  return run_ptx(kernel("k", ".param .u64 in, .param .u64 out", R"(
  .reg .b32 %t, %n, %slot, %next, %x, %sum;
  .reg .b64 %p, %o;
  .reg .pred %more;
  mov.u32 %t, %tid.x;
  mul.wide.u32 %o, %t, 4;
  ld.param.u64 %p, [in];
  add.u64 %p, %p, %o;
  mov.u32 %slot, ring;
  shl.b32 %x, %t, 2;
  add.u32 %slot, %slot, %x;
  xor.b32 %next, %slot, 128;
  mov.u32 %n, 0;
  mov.u32 %sum, 0;
  cp.async.ca.shared.global [%slot], [%p], 4;
  cp.async.commit_group;
LOOP:
  add.u64 %p, %p, 128;
  add.u32 %n, %n, 1;
  setp.lt.u32 %more, %n, 8;
  @%more cp.async.ca.shared.global [%next], [%p], 4;
  cp.async.commit_group;
  cp.async.wait_group )" + std::to_string(left) + R"(;
  ld.shared.u32 %x, [%slot];
  add.u32 %sum, %sum, %x;
  xor.b32 %slot, %slot, 128;
  xor.b32 %next, %next, 128;
  @%more bra LOOP;
  ld.param.u64 %p, [out];
  add.u64 %p, %p, %o;
  st.global.u32 [%p], %sum;
  ret;)",
                        ".shared .align 256 .b8 ring[256];\n"),
                 {.kernel = "k", .block = {32}, .late_copies = late},
                 {buffer_of(numbers(8 * 32)), zeros<uint32_t>(32)});
}

// Numbers 1000 + t + 32 i for i = 0..7.
bool sums_are_right(const PtxRun& run) {
  REQUIRE_MESSAGE(run.ok(), run.error << run.failure());
  const std::vector<uint32_t> out = run.buffer<uint32_t>(1);
  for (uint32_t t = 0; t < 32; ++t)
    if (out[t] != 8 * (1000 + t) + 32 * 28) return false;
  return true;
}

TEST_CASE("a ring of copies gives the same whenever they take place, if it waits for the right group") {
  for (const unsigned left : {0u, 1u})
    for (const bool late : {false, true}) {
      CAPTURE(left);
      CAPTURE(late);
      CHECK(sums_are_right(run_ring(left, late)));
    }
  CHECK(sums_are_right(run_ring(2, false)));
  CHECK_FALSE(sums_are_right(run_ring(2, true))); // waits for one group too few
}

// Thread 0 copies 256 bytes to shared memory; warp 1 adds 1 to each number and thread 0 copies them back.
PtxRun run_bulk(const std::string& wait_for_bytes, const std::string& wait_for_group, bool late,
                const std::string& bytes = "256", const std::string& from = "%in") {
  return run_ptx(kernel("k", ".param .u64 in, .param .u64 out",
                        R"(
  .reg .b32 %t, %x, %a, %m, %size;
  .reg .b64 %in, %out, %state;
  .reg .pred %p, %first, %second;
  mov.u32 %t, %tid.x;
  setp.eq.u32 %first, %t, 0;
  setp.ge.u32 %second, %t, 32;
  mov.u32 %a, area;
  mov.u32 %m, full;
  mov.u32 %size, )" + bytes +
                            R"(;
  ld.param.u64 %in, [in];
  ld.param.u64 %out, [out];
  @%first mbarrier.init.shared.b64 [%m], 1;
  bar.sync 0;
  @!%first bra COPIED;
  mbarrier.arrive.expect_tx.shared.b64 %state, [%m], %size;
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%a], [)" +
                            from + R"(], %size, [%m];
COPIED:
)" + wait_for_bytes + R"(
  bar.sync 0;
  sub.u32 %x, %t, 32;
  shl.b32 %x, %x, 3;
  add.u32 %m, %a, %x;
  @!%second bra CHANGED;
  ld.shared.u32 %x, [%m];
  add.u32 %x, %x, 1;
  st.shared.u32 [%m], %x;
  ld.shared.u32 %x, [%m+4];
  add.u32 %x, %x, 1;
  st.shared.u32 [%m+4], %x;
  fence.proxy.async.shared::cta;
CHANGED:
  bar.sync 0;
  @!%first bra DONE;
  cp.async.bulk.global.shared::cta.bulk_group [%out], [%a], 256;
  cp.async.bulk.commit_group;
)" + wait_for_group + R"(
  st.shared.u32 [%a+8], 7;
DONE:
  ret;)",
                        ".shared .align 128 .b8 area[256];\n.shared .align 8 .b64 full;\n"),
                 {.kernel = "k", .block = {64}, .late_copies = late}, {buffer_of(numbers(64)), zeros<uint32_t>(64)});
}

bool numbers_are_one_more(const PtxRun& run) {
  REQUIRE_MESSAGE(run.ok(), run.error << run.failure());
  std::vector<uint32_t> expected = numbers(64);
  for (uint32_t& number : expected)
    ++number;
  return run.buffer<uint32_t>(1) == expected;
}

const std::string wait_for_phase = "WAIT:\n  mbarrier.try_wait.parity.shared.b64 %p, [%m], 0;\n  @!%p bra WAIT;";
const std::string wait_for_read = "  cp.async.bulk.wait_group.read 0;";

TEST_CASE("bulk copies to shared memory and back") {
  for (const bool late : {false, true}) {
    CAPTURE(late);
    CHECK(numbers_are_one_more(run_bulk(wait_for_phase, wait_for_read, late)));
    CHECK(numbers_are_one_more(run_bulk(wait_for_phase, "  cp.async.bulk.wait_group 0;", late)));
    // Groups of the other kind are not waited for.
    CHECK(numbers_are_one_more(run_bulk(wait_for_phase, "  cp.async.wait_all;", late)) == !late);
  }
  // Reads before the bytes arrive; stores before the bytes are read.
  CHECK(numbers_are_one_more(run_bulk("", wait_for_read, false)));
  CHECK_FALSE(numbers_are_one_more(run_bulk("", wait_for_read, true)));
  CHECK_FALSE(numbers_are_one_more(run_bulk(wait_for_phase, "", true)));
}

TEST_CASE("bulk copies that go wrong") {
  CHECK(run_bulk(wait_for_phase, "", false, "24").failure() == "bulk copy of 24 bytes, which is not a multiple of 16");
  CHECK(run_bulk(wait_for_phase, "", false, "128", "%in+8").failure().find("not a multiple of 16") !=
        std::string::npos);
  CHECK(run_bulk(wait_for_phase, "", false, "256", "%in+16").failure().find("bulk load of 256 bytes") !=
        std::string::npos);
  CHECK(run_bulk(wait_for_phase, "", false, "512", "%in").failure().find("bulk") != std::string::npos);
}

// PTX ISA, mbarrier.init: any other operation on an object that is not initialised is undefined. The fault is raised
// when the copy is issued, for copies performed at once and for late ones, even if no thread waits for it.
TEST_CASE("bulk operations that complete at an mbarrier that is not initialised") {
  const std::string operations[] = {
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%a], [%in], 16, [%m];",
      "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%a], [%a+16], 16, [%m];",
      "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u32 [%a], [%a+16], 16, [%m];"};
  for (const std::string& operation : operations)
    for (const bool late : {false, true}) {
      CAPTURE(operation);
      CAPTURE(late);
      const PtxRun run = run_ptx(kernel("k", ".param .u64 in", R"(
  .reg .b32 %a, %m;
  .reg .b64 %in;
  mov.u32 %a, area;
  mov.u32 %m, full;
  ld.param.u64 %in, [in];
)" + operation + "\n  ret;",
                                        ".shared .align 128 .b8 area[256];\n.shared .align 8 .b64 full;\n"),
                                 {.kernel = "k", .block = {1}, .late_copies = late}, {buffer_of(numbers(4))});
      CHECK_MESSAGE(run.failure() == "an mbarrier that is not initialised", run.error);
    }
}

// One thread copies a number and arrives at the barrier when the copy is done.
PtxRun run_arrival(const std::string& arrive, unsigned expected, const std::string& wait, bool late) {
  return run_ptx(kernel("k", ".param .u64 in, .param .u64 out", R"(
  .reg .b32 %x, %a, %m;
  .reg .b64 %in, %out;
  .reg .pred %p;
  mov.u32 %a, area;
  mov.u32 %m, full;
  ld.param.u64 %in, [in];
  ld.param.u64 %out, [out];
  mbarrier.init.shared.b64 [%m], )" + std::to_string(expected) + R"(;
  cp.async.ca.shared.global [%a], [%in+4], 4;
)" + arrive + wait + R"(
  ld.shared.u32 %x, [%a];
  st.global.u32 [%out], %x;
  ret;)",
                        ".shared .align 128 .b8 area[256];\n.shared .align 8 .b64 full;\n"),
                 {.kernel = "k", .block = {1}, .late_copies = late}, {buffer_of(numbers(4)), zeros<uint32_t>(1)});
}

TEST_CASE("cp.async.mbarrier.arrive lets a phase end when the copies are done") {
  const std::string counted = "  cp.async.mbarrier.arrive.noinc.shared.b64 [%m];\n";
  const std::string added = "  cp.async.mbarrier.arrive.shared.b64 [%m];\n  mbarrier.arrive.shared.b64 _, [%m];\n";
  for (const std::string& arrive : {counted, added})
    for (const bool late : {false, true}) {
      CAPTURE(arrive);
      CAPTURE(late);
      PtxRun run = run_arrival(arrive, 1, wait_for_phase, late);
      REQUIRE_MESSAGE(run.ok(), run.error << run.failure());
      CHECK(run.buffer<uint32_t>(1)[0] == 1001);
      run = run_arrival(arrive, 1, "", late);
      REQUIRE_MESSAGE(run.ok(), run.error << run.failure());
      CHECK(run.buffer<uint32_t>(1)[0] == (late ? 0 : 1001));
    }
}

} // namespace
} // namespace ptxrewrite::emulator::copies_test
