// Limits on the host's resources: memory, the kernels' heap, instructions. Kernels that exceed them end in a fault or a
// refusal that names the request and its size.
#include "emulator/memory/kernel_heap.h"
#include "emulator/memory/memory_budget.h"
#include "tests/unit/emulator/run_ptx.h"

#include <algorithm>
#include <map>
#include <random>

namespace ptxrewrite::tests::limits_test {

using namespace ptxrewrite;
using namespace ptxrewrite::emulator;

namespace {

constexpr uint64_t mebibyte = uint64_t(1) << 20;

const char* const system_functions = R"(
.extern .func (.param .b64 p) malloc(.param .b64 bytes);
.extern .func free(.param .b64 p);
)";

// Launches `text` on a device of `limit` bytes. Returns the error or the failure, "" on success.
std::string outcome(const std::string& text, LaunchRequest request, uint64_t limit) {
  Diagnostics diagnostics;
  const auto module = grammar::read_module(SourceFile("test.ptx", text), diagnostics);
  REQUIRE(module);
  DeviceMemory memory(limit);
  Result<std::unique_ptr<Program>> program = Program::load(*module, memory);
  if (!program) return program.error().message;
  Result<LaunchResult> result = (*program)->launch(request);
  // All memory is given back, except the heap and the module's variables.
  if (!result) return result.error().message;
  return result->failure ? result->failure->message : std::string();
}

TEST_CASE("a budget is never exceeded, and what is given back can be taken again") {
  MemoryBudget budget(100);
  CHECK(budget.try_take(60));
  CHECK_FALSE(budget.try_take(41));
  CHECK_FALSE(budget.try_take(UINT64_MAX)); // sums do not wrap
  CHECK(budget.try_take(40));
  CHECK(budget.used() == 100);
  budget.give_back(40);
  {
    MemoryShare share(budget);
    CHECK(share.try_grow(30));
    CHECK_FALSE(share.try_grow(30));
    CHECK(budget.used() == 90);
  }
  CHECK(budget.used() == 60);
  CHECK(
      budget.take(50, "'tile'").error().message ==
      "'tile' asks for 50 bytes of the host's memory; of the 100 bytes that a launch may take (--memory) 40 are left");
}

TEST_CASE("the heap gives out what is free, and nothing twice") {
  constexpr uint64_t begin = 4096, size = 1 << 16;
  KernelHeap heap(begin, size);
  std::map<uint64_t, uint64_t> held;
  std::mt19937_64 random(1);
  for (int i = 0; i < 20'000; ++i) {
    if (!held.empty() && random() % 2) {
      const auto one = std::next(held.begin(), static_cast<std::ptrdiff_t>(random() % held.size()));
      heap.give_back(one->first, one->second);
      held.erase(one);
      continue;
    }
    const uint64_t bytes = random() % 2000;
    const uint64_t address = heap.take(bytes);
    if (address == 0) continue;
    CHECK(address % 16 == 0);
    CHECK(address >= begin);
    CHECK(address + bytes <= begin + size);
    const auto after = held.lower_bound(address);
    if (after != held.end()) CHECK(address + bytes < after->first);
    if (after != held.begin()) CHECK(std::prev(after)->first + std::prev(after)->second < address);
    held[address] = bytes;
  }
  for (const auto& [address, bytes] : held)
    heap.give_back(address, bytes);
  CHECK(heap.take(size - 16) == begin); // all parts are merged again
  CHECK(heap.take(1) == 0);
  CHECK(KernelHeap(begin, size).take(UINT64_MAX - 3) == 0);
}

// Allocates 1,000,000 bytes `turns` times and counts the successful allocations; frees each if `frees`.
std::string allocating(const std::string& turns, bool frees) {
  return kernel("k", ".param .u64 out",
                R"(
  .reg .b64 %rd<8>; .reg .b32 %r<8>; .reg .pred %p<4>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, 0;
  mov.u32 %r2, 0;
AGAIN:
  mov.u64 %rd3, 1000000;
  { .param .b64 p; .param .b64 b; st.param.b64 [b], %rd3; call (p), malloc, (b); ld.param.b64 %rd4, [p]; }
  setp.eq.u64 %p1, %rd4, 0;
  @%p1 bra NEXT;
  add.u32 %r1, %r1, 1;
  st.u32 [%rd4], %r1;
)" + std::string(frees ? "{ .param .b64 b; st.param.b64 [b], %rd4; call free, (b); }\n" : "") +
                    R"(NEXT:
  add.u32 %r2, %r2, 1;
  setp.lt.u32 %p2, %r2, )" +
                    turns + R"(;
  @%p2 bra AGAIN;
  st.global.u32 [%rd1], %r1;
  ret;)",
                system_functions);
}

TEST_CASE("malloc returns null when the heap of 8 MiB is used up, as CUDA's does") {
  PtxRun run = run_ptx(allocating("100", false), {.kernel = "k"}, {zeros<uint32_t>(1)});
  CHECK(run.ok());
  CHECK(run.buffer<uint32_t>(0)[0] == 8);
  run = run_ptx(allocating("100", true), {.kernel = "k"}, {zeros<uint32_t>(1)});
  CHECK(run.ok());
  CHECK(run.buffer<uint32_t>(0)[0] == 100);
}

TEST_CASE("the limit holds for buffers, local memory, registers of calls and the heap together") {
  const std::string local = kernel("k", "", ".local .align 4 .b8 l[524288];\nst.local.u32 [l], 1;\nret;");
  // 1024 threads of 512 KiB.
  CHECK(outcome(local, {.kernel = "k", .block = {1024}}, 1024 * mebibyte) == "");
  CHECK(outcome(local, {.kernel = "k", .block = {1024}}, 256 * mebibyte)
            .find("a block with 0 bytes of shared and 536870912 of local memory asks for ") == 0);
  CHECK(outcome(allocating("1", false), {.kernel = "k", .parameters = std::vector<std::byte>(8)}, 4 * mebibyte)
            .find("the kernels' heap asks for 8388608 bytes") == 0);
  CHECK(outcome(kernel("k", "", "ret;", ".global .b8 big[1073741824];"), {.kernel = "k"}, 64 * mebibyte)
            .find("'big' asks for 1073741824 bytes") == 0);
  // A function of 512 KiB of call parameters that calls itself.
  const std::string recursion = kernel("k", "", R"(
  .reg .b32 %r<4>;
  { .param .b32 a; st.param.b32 [a], %r1; call f, (a); }
  ret;)",
                                       R"(
.func f(.param .b32 x) {
  .reg .b32 %q<4>;
  { .param .b8 big[400000]; st.param.b8 [big], 1; .param .b32 a; st.param.b32 [a], %q1; call f, (a); }
  ret;
}
)");
  CHECK(outcome(recursion, {.kernel = "k"}, 256 * mebibyte).find("bytes of the host's memory") != std::string::npos);
}

TEST_CASE("host threads share the limit: those that get none leave the blocks to the others") {
  const std::string text = kernel("k", "", ".local .align 4 .b8 l[524288];\nst.local.u32 [l], 1;\nret;");
  for (const unsigned threads : {1u, 4u, 16u})
    CHECK(outcome(text, {.kernel = "k", .grid = {40}, .block = {64}, .host_threads = threads}, 40 * mebibyte) == "");
}

TEST_CASE("an endless loop ends, and the message names it") {
  PtxRun run = run_ptx(kernel("k", "", R"(
  .reg .b32 %r<4>; .reg .pred %p;
  mov.u32 %r1, %tid.x;
  setp.lt.u32 %p, %r1, 32;
  @%p bra END;
LOOP:
  add.u32 %r1, %r1, 1;
  bra LOOP;
END:
  ret;)"),
                       {.kernel = "k", .grid = {3}, .block = {64}, .fuel = 100'000});
  REQUIRE(run.result.failure);
  const Failure& failure = *run.result.failure;
  CHECK(failure.kind == FailureKind::out_of_fuel);
  CHECK(failure.message ==
        "out of fuel: the block has executed the 100000 warp instructions that it may (--fuel allows "
        "more); warp 1 is in the loop of lines 13 to 14");
  CHECK(failure.kernel == "k");
  CHECK(failure.has_thread);
  CHECK(failure.thread.x == 32);
  CHECK(failure.block.x == 0);
  CHECK(run.module->source.locate(failure.range.begin).line == 13);
}

TEST_CASE("the loop is that of the caller where a function has none") {
  PtxRun run = run_ptx(kernel("k", "", R"(
  .reg .b32 %r<4>;
LOOP:
  { .param .b32 a; st.param.b32 [a], %r1; call f, (a); }
  bra LOOP;)",
                              R"(
.func f(.param .b32 x) {
  .reg .b32 %q<4>;
  ld.param.b32 %q1, [x];
  add.u32 %q1, %q1, 1;
  ret;
}
)"),
                       {.kernel = "k", .fuel = 1001});
  REQUIRE(run.result.failure);
  CHECK(run.failure().find("; warp 0 is in the loop of lines ") != std::string::npos);
}

TEST_CASE("grids of ever so many blocks end") {
  const std::string text = kernel("k", "", "ret;");
  for (const unsigned threads : {1u, 4u}) {
    PtxRun run =
        run_ptx(text, {.kernel = "k", .grid = {2147483647, 65535, 65535}, .host_threads = threads, .fuel = 10'000});
    REQUIRE(run.result.failure);
    CHECK(run.result.failure->kind == FailureKind::out_of_fuel);
    CHECK(run.failure().find("blocks of the launch have executed the 640000 warp instructions") != std::string::npos);
  }
}

TEST_CASE("memory operations of many bytes take fuel for them") {
  PtxRun run = run_ptx(kernel("k", "", R"(
  .shared .align 16 .b8 s[65536];
  .reg .b64 %rd<4>; .reg .b32 %r<4>; .reg .pred %p;
  mov.u32 %r1, 0;
  mov.u64 %rd1, 65536;
  mov.u32 %r2, s;
AGAIN:
  st.bulk.shared::cta [%r2], %rd1, 0;
  add.u32 %r1, %r1, 1;
  setp.lt.u32 %p, %r1, 1000;
  @%p bra AGAIN;
  ret;)"),
                       {.kernel = "k", .fuel = 100'000});
  CHECK(run.failure().find("out of fuel") == 0);
}

} // namespace

} // namespace ptxrewrite::tests::limits_test
