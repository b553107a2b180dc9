// Kernels that access memory out of bounds: every kind of access at the ends of an allocation, of a window and of the
// address space ends in a fault. The layout is known from the allocations made here.
#include "emulator/memory/memory.h"
#include "support/sizes.h"
#include "tests/unit/emulator/run_ptx.h"

#include <algorithm>

namespace ptxrewrite::tests::bounds_test {

using namespace ptxrewrite;
using namespace ptxrewrite::emulator;

namespace {

constexpr uint64_t buffer_bytes = 256;

// %a: the address that the kernel accesses.
std::string accessing(const std::string& statement) {
  return kernel("k", ".param .u64 buffer, .param .u64 at", R"(
  .reg .b64 %a, %own, %rd<8>; .reg .b32 %r<8>; .reg .f32 %f<8>; .reg .f64 %fd<8>; .reg .b128 %q<4>; .reg .pred %p<4>;
  .shared .align 128 .b8 mine[1024];
  .local .align 16 .b8 own[64];
  ld.param.u64 %a, [at];
  mov.u64 %own, own;
  mov.u32 %r5, mine;
)" + statement + "\n  ret;");
}

struct Access {
  const char* space;
  uint64_t bytes;
  const char* statement;
};

// Access sizes of the ISA. cp.async reads global memory, ldmatrix shared memory.
const Access accesses[] = {
    {"global", 1, "ld.global.u8 %r1, [%a];"},
    {"global", 4, "ld.global.u32 %r1, [%a];"},
    {"global", 4, "ld.volatile.global.u32 %r1, [%a];"},
    {"global", 8, "ld.global.u64 %rd1, [%a];"},
    {"global", 8, "ld.global.v2.u32 {%r1, %r2}, [%a];"},
    {"global", 16, "ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%a];"},
    {"global", 16, "ld.global.b128 %q1, [%a];"},
    {"global", 16, "ldu.global.v4.u32 {%r1, %r2, %r3, %r4}, [%a];"},
    {"global", 4, "ld.global.u32 %r1, [%a+0];"},
    {"generic", 4, "ld.u32 %r1, [%a];"},
    {"global", 1, "st.global.u8 [%a], %r1;"},
    {"global", 8, "st.global.f64 [%a], %fd1;"},
    {"global", 16, "st.global.v2.u64 [%a], {%rd1, %rd2};"},
    {"generic", 4, "st.u32 [%a], %r1;"},
    {"global", 4, "atom.global.add.u32 %r1, [%a], 1;"},
    {"global", 8, "atom.global.cas.b64 %rd1, [%a], %rd2, %rd3;"},
    {"global", 16, "atom.global.exch.b128 %q1, [%a], %q2;"},
    {"global", 16, "atom.global.v4.f32.add {%f1, %f2, %f3, %f4}, [%a], {%f1, %f2, %f3, %f4};"},
    {"global", 4, "red.global.max.s32 [%a], %r1;"},
    {"generic", 4, "red.add.u32 [%a], %r1;"},
    {"global", 16, "cp.async.cg.shared.global [%r5], [%a], 16;"},
    {"global", 4, "cp.async.ca.shared.global [%r5], [%a], 4;"},
    {"global", 16, "mov.u32 %r7, 16;\n cp.async.bulk.global.shared::cta.bulk_group [%a], [%r5], %r7;"},
    {"shared", 4, "ld.shared.u32 %r1, [%a];"},
    {"shared", 16, "st.shared.v4.u32 [%a], {%r1, %r2, %r3, %r4};"},
    {"shared", 4, "atom.shared.add.u32 %r1, [%a], 1;"},
    {"shared", 16, "mov.u64 %rd7, 16;\n st.bulk.shared::cta [%a], %rd7, 0;"},
    {"shared", 8, "mbarrier.init.shared.b64 [%a], 1;"},
    {"shared", 8, "mbarrier.arrive.shared.b64 %rd1, [%a];"},
    {"shared", 16, "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [%a];"},
    {"shared", 16, "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%a], {%r1};"},
    {"global", 32, "wmma.load.c.sync.aligned.m16n16k16.row.global.f32 {%f1,%f1,%f1,%f1,%f1,%f1,%f1,%f1}, [%a];"},
    {"local", 4, "ld.local.u32 %r1, [%a];"},
    {"local", 8, "st.local.u64 [%a], %rd1;"},
};

struct Window {
  uint64_t begin = 0, size = 0;
};
// The accessible addresses of the space.
Window window_of(const Access& access) {
  const std::string space = access.space;
  if (space == "shared") return {0, 1024};
  if (space == "local") return {0, 64};
  return {global_base, buffer_bytes};
}

TEST_CASE("no sum of an address and a size wraps") {
  CHECK(contains(16, 16, 16, 16));
  CHECK(contains(16, 16, 32, 0));
  CHECK_FALSE(contains(16, 16, 15, 1));
  CHECK_FALSE(contains(16, 16, 17, 16));
  CHECK_FALSE(contains(16, 16, 16, UINT64_MAX));
  CHECK_FALSE(contains(16, 16, UINT64_MAX - 3, 4));  // the sum is 0
  CHECK_FALSE(contains(16, 16, UINT64_MAX - 3, 24)); // the sum is 20
  CHECK_FALSE(contains(0, 0, UINT64_MAX, 1));
  CHECK_FALSE(MemoryRange{}.contains(0, 0));
  CHECK(saturating_add(UINT64_MAX - 1, 1) == UINT64_MAX);
  CHECK(saturating_add(UINT64_MAX, 1) == UINT64_MAX);
  CHECK(saturating_multiply(uint64_t(1) << 32, uint64_t(1) << 32) == UINT64_MAX);
  CHECK(saturating_multiply(uint64_t(1) << 31, uint64_t(1) << 32) == uint64_t(1) << 63);
  CHECK(align_up(17, 16) == 32);
  CHECK(align_up(32, 16) == 32);
  CHECK(align_up(UINT64_MAX - 3, 16) == UINT64_MAX);
}

TEST_CASE("an access outside of its memory is a fault, wherever it is and whatever it is") {
  for (const Access& access : accesses) {
    const std::string text = accessing(access.statement);
    const auto [begin, size] = window_of(access);
    // Aligned for the access, so that the fault is not a misaligned address.
    const uint64_t step = access.bytes;
    const uint64_t places[] = {
        begin + size,       begin - step,      uint64_t(0) - step,         uint64_t(0) - 2 * step,
        uint64_t(0) - 1024, uint64_t(1) << 63, (uint64_t(1) << 63) - step, begin + size + (uint64_t(1) << 40),
        uint64_t(1) << 32};
    for (const unsigned threads : {1u, 32u, 33u})
      for (const bool check : {false, true})
        for (const uint64_t place : places) {
          // ldmatrix and wmma need a whole warp.
          if (threads != 32 && std::string_view(access.statement).find(".sync") != std::string_view::npos) continue;
          PtxRun run = run_ptx(text, {.kernel = "k", .block = {threads}, .check = check, .fuel = 10'000},
                               {zeros<uint8_t>(buffer_bytes), place});
          INFO(access.statement, " at ", place, ", threads: ", threads, ", check: ", check);
          REQUIRE(run.error == "");
          CHECK(run.failure().find("out of bounds") != std::string::npos);
          if (run.result.failure) {
            CHECK(run.result.failure->kernel == "k");
            CHECK(run.result.failure->has_thread);
            CHECK(run.module->source.text().substr(run.result.failure->range.begin, 3) !=
                  run.module->source.text().substr(0, 3));
          }
          CHECK(std::ranges::all_of(run.buffer<uint8_t>(0), [](uint8_t byte) { return byte == 0; }));
        }
    // Accesses inside are no fault: the first and the last one that fit.
    if (std::string_view(access.statement).find("wmma") != std::string_view::npos) continue;
    if (std::string_view(access.statement).find("mbarrier.arrive") != std::string_view::npos) continue;
    for (const uint64_t place : {begin, begin + size - step}) {
      PtxRun run = run_ptx(text, {.kernel = "k", .block = {32}, .fuel = 10'000}, {zeros<uint8_t>(buffer_bytes), place});
      INFO(access.statement, " at ", place);
      CHECK(run.error == "");
      CHECK(run.failure() == "");
    }
  }
}

TEST_CASE("a warp of which one lane leaves the memory faults in that lane") {
  const std::string text = kernel("k", ".param .u64 buffer, .param .u64 stride", R"(
  .reg .b64 %rd<8>; .reg .b32 %r<8>;
  ld.param.u64 %rd1, [buffer];
  ld.param.u64 %rd2, [stride];
  mov.u32 %r1, %tid.x;
  cvt.u64.u32 %rd3, %r1;
  mad.lo.u64 %rd4, %rd3, %rd2, %rd1;
  st.global.u32 [%rd4], %r1;
  ret;)");
  // 256 bytes: 64 words. Strides that wrap back into the buffer are caught at the lanes in between.
  const std::pair<uint64_t, uint32_t> strides[] = {
      {12, 22}, {uint64_t(0) - 4, 1}, {uint64_t(1) << 62, 1}, {(uint64_t(1) << 63) + 4, 1}, {(uint64_t(1) << 60), 1}};
  for (const auto& [stride, lane] : strides) {
    PtxRun run = run_ptx(text, {.kernel = "k", .block = {32}}, {zeros<uint8_t>(buffer_bytes), stride});
    REQUIRE(run.result.failure);
    CHECK(run.result.failure->thread.x == lane);
  }
}

TEST_CASE("local memory beyond what a thread can have is refused, whatever its size is multiplied to") {
  const auto declaring = [](const std::string& declaration) {
    return run_ptx(
        kernel("k", "", declaration + "\n.reg .b32 %r1;\nst.local.u32 [l], 1;\nld.local.u32 %r1, [l];\nret;"),
        {.kernel = "k"});
  };
  CHECK(declaring(".local .align 4 .b8 l[524288];").ok());
  CHECK(declaring(".local .align 4 .b8 l[524289];").error ==
        "'k' with 'l' needs 524289 bytes of local memory for each thread; a thread can have 524288");
  for (const char* size : {"[2000000000]", "[140737488355312]", "[9223372036854775807]"})
    CHECK(declaring(std::string(".local .align 4 .b8 l") + size + ";").error.find("bytes of local memory") !=
          std::string::npos);
  // Two variables, each of which fits alone.
  CHECK(declaring(".local .align 4 .b8 l[300000];\n.local .align 4 .b8 m[300000];").error.find("'m' needs") !=
        std::string::npos);
  CHECK(run_ptx(kernel("k", "", ".shared .b8 s[2147483647];\n.reg .b32 %r1;\nld.shared.u32 %r1, [s];\nret;"),
                {.kernel = "k"})
            .error.find("bytes of shared memory") != std::string::npos);
  CHECK(run_ptx(kernel("k", "", ".reg .b32 %r1;\nld.const.u32 %r1, [c];\nret;", ".const .b8 c[2147483647];"),
                {.kernel = "k"})
            .error.find("constant memory") != std::string::npos);
}

// --- call parameters ---

std::string calling(const std::string& argument, const std::string& parameter, const std::string& before,
                    const std::string& inside) {
  return kernel("k", "",
                R"(
  .reg .b32 %r<8>; .reg .b64 %rd<8>;
  mov.u32 %r1, 7;
  { .param .align 16 .b8 a[)" +
                    argument + "];\n" + before + "\n call f, (a); }\n ret;",
                ".func f(.param .align 16 .b8 x[" + parameter + "])\n{ .reg .b32 %q<8>; .reg .b64 %qd<8>;\n" + inside +
                    "\n ret; }\n");
}

TEST_CASE("call parameters are accessed inside their bounds or not at all") {
  const auto failure_of = [](const std::string& before, const std::string& inside) {
    PtxRun run = run_ptx(calling("16", "16", before, inside), {.kernel = "k", .block = {40}});
    CHECK(run.error == "");
    return run.failure();
  };
  CHECK(failure_of("st.param.b32 [a+12], %r1;", "ld.param.b32 %q1, [x+12];") == "");
  CHECK(failure_of("st.param.v4.b32 [a], {%r1,%r1,%r1,%r1};", "ld.param.v2.b64 {%qd1,%qd2}, [x];") == "");
  CHECK(failure_of("st.param.b32 [a+4096], %r1;", "") ==
        "store of 4 bytes at byte 4096 of call parameter 'a', which has 16 bytes");
  CHECK(failure_of("st.param.b32 [a+-4096], %r1;", "") ==
        "store of 4 bytes at byte -4096 of call parameter 'a', which has 16 bytes");
  CHECK(failure_of("st.param.v4.b32 [a+8], {%r1,%r1,%r1,%r1};", "") ==
        "store of 16 bytes at byte 8 of call parameter 'a', which has 16 bytes");
  CHECK(failure_of("st.param.b64 [a+12], %rd1;", "").find("byte 12 of call parameter") != std::string::npos);
  CHECK(failure_of("st.param.b32 [a+9223372036854775807], %r1;", "").find("of call parameter 'a'") !=
        std::string::npos);
  CHECK(failure_of("", "ld.param.b32 %q1, [x+99999996];") ==
        "load of 4 bytes at byte 99999996 of call parameter 'x', which has 16 bytes");
  CHECK(failure_of("", "ld.param.b32 %q1, [x+-4];").find("byte -4 of call parameter") != std::string::npos);
  // The assembler accepts it, and an instruction that is not executed has no effect.
  CHECK(failure_of("", ".reg .pred %p; setp.eq.u32 %p, %q1, 1;\n @%p ld.param.b32 %q1, [x+16];") == "");
}

TEST_CASE("call parameters of any size are refused or there") {
  CHECK(run_ptx(calling("524288", "16", "st.param.b32 [a], %r1;", ""), {.kernel = "k"}).ok());
  for (const char* size : {"524289", "200000000", "4294967312", "9223372036854775807"})
    CHECK(
        run_ptx(calling(size, "16", "st.param.b32 [a], %r1;", ""), {.kernel = "k"}).error.find("of call parameters") !=
        std::string::npos);
  // Sizes that do not match: the smaller one is passed, the rest is unchanged.
  CHECK(run_ptx(calling("16", "4096", "st.param.b32 [a], %r1;", "ld.param.b32 %q1, [x+4092];"), {.kernel = "k"}).ok());
}

TEST_CASE("registers of any width are arguments of the system's functions") {
  const std::string text =
      kernel("k", "", R"(
  .reg .b128 %q; .reg .b64 %rd<4>;
  mov.b128 %q, {%rd1, %rd2};
  call (%q), malloc, (%q);
  call free, (%q);
  ret;)",
             ".extern .func (.reg .b128 r) malloc(.reg .b128 bytes);\n.extern .func free(.reg .b128 p);");
  PtxRun run = run_ptx(text, {.kernel = "k", .block = {32}});
  CHECK(run.error == "");
  CHECK(run.failure() == "");
}

} // namespace

} // namespace ptxrewrite::tests::bounds_test
