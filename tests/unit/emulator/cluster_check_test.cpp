// --check in launches in clusters: kernels that order their accesses have no findings; with an order removed, the
// finding names the place.
#include "support/file_io.h"
#include "tests/unit/emulator/run_ptx.h"
#include "tests/unit/paths.h"

namespace ptxrewrite::emulator::cluster_check_test {
namespace {

std::string text_of(const std::string& name) {
  Result<std::string> text = read_file(tests::source_path("tests/clusters/" + name + ".ptx"));
  REQUIRE(text);
  return *text;
}

const std::string arrive = "barrier.cluster.arrive", wait = "barrier.cluster.wait";

// Replaces the n-th `what` after `after` by `by`.
std::string with(std::string text, const std::string& after, const std::string& what, const std::string& by,
                 unsigned n = 0) {
  size_t at = text.find(after);
  REQUIRE(at != std::string::npos);
  for (unsigned i = 0; i <= n; ++i) {
    at = text.find(what, at + (i != 0));
    REQUIRE(at != std::string::npos);
  }
  return text.replace(at, what.size(), by);
}

PtxRun check(const std::string& text, const std::string& kernel, uint32_t size, std::vector<Argument> more = {},
             uint32_t threads = 64) {
  LaunchRequest request{.kernel = kernel, .grid = {2 * size}, .block = {threads}};
  request.cluster = Dimensions{size};
  request.check = true;
  std::vector<Argument> arguments = {zeros<uint32_t>(512 * 2 * size), zeros<uint32_t>(512 * 2 * size)};
  if (kernel == "cancel") arguments.pop_back();
  arguments.insert(arguments.end(), more.begin(), more.end());
  PtxRun run = run_ptx(text, request, arguments);
  REQUIRE(run.error == "");
  return run;
}

std::vector<std::string> findings(const PtxRun& run) {
  std::vector<std::string> all;
  for (const Finding& finding : run.result.findings)
    all.push_back(finding.where.message);
  return all;
}

bool is_told(const PtxRun& run, const std::string& what) {
  for (const Finding& finding : run.result.findings)
    if (finding.where.message.find(what) != std::string::npos) {
      if (what.empty())
        MESSAGE(finding.where.message, " line ", run.module->source.locate(finding.where.range.begin).line);
      INFO(finding.where.message);
      return true;
    }
  for (const Finding& finding : run.result.findings)
    MESSAGE(finding.where.message);
  if (!run.failure().empty()) MESSAGE(run.failure());
  return false;
}

TEST_CASE("kernels that order what their blocks do are told nothing") {
  struct Row {
    const char* file;
    const char* kernel;
    std::vector<Argument> more;
  };
  const Row rows[] = {
      {"exchange", "histogram", {}},     {"exchange", "reduce", {}}, {"exchange", "ring", {uint32_t(3)}},
      {"exchange", "halo", {}},          {"async", "push", {}},      {"async", "bulk_push", {}},
      {"async", "combine", {}},          {"async", "gather", {}},    {"cancel", "cancel", {}},
      {"async", "spread", {uint32_t(1)}}};
  for (const Row& row : rows) {
    const std::string text = text_of(row.file);
    for (uint32_t size : {1u, 2u, 4u, 16u}) {
      CAPTURE(row.kernel);
      CAPTURE(size);
      const PtxRun run = check(text, row.kernel, size, row.more);
      CHECK(run.failure() == "");
      CHECK_FALSE(is_told(run, ""));
    }
  }
}

TEST_CASE("words that are handed on without a barrier") {
  // ring: the barrier of each step becomes a barrier of the block.
  std::string text = with(text_of("exchange"), "st.shared::cluster.u32 [%place]",
                          "barrier.cluster.arrive.release.aligned;", "bar.sync 0;");
  text = with(text, "bar.sync 0;\n  barrier.cluster.wait", "barrier.cluster.wait.acquire.aligned;", "");
  text = with(text, "finish:", "  ret;", arrive + ";\n" + wait + ";\n  ret;");
  const PtxRun run = check(text, "ring", 2, {uint32_t(1)});
  CHECK(is_told(run, "race: shared"));
  CHECK(is_told(run, "of block 1 of the cluster"));
  REQUIRE(run.result.findings.size() >= 1);
  bool names_other = false;
  for (const Finding& finding : run.result.findings)
    names_other = names_other || (finding.other && finding.other->block.x != finding.where.block.x);
  CHECK(names_other);
}

TEST_CASE("a barrier whose arrival releases nothing") {
  const std::string text = with(text_of("exchange"), "st.shared::cluster.u32 [%place]",
                                "barrier.cluster.arrive.release.aligned;", "barrier.cluster.arrive.relaxed.aligned;");
  CHECK(is_told(check(text, "ring", 4, {uint32_t(1)}), "with nothing that orders the two"));
}

TEST_CASE("another block's shared memory before it is known to have started") {
  std::string text = with(text_of("exchange"), "ring(", "barrier.cluster.arrive.aligned;", "");
  text = with(text, "ring(", "barrier.cluster.wait.aligned;", "");
  CHECK(is_told(check(text, "ring", 2, {uint32_t(1)}), "with nothing that says that the block has started"));
}

TEST_CASE("a barrier that orders nothing still says that all blocks have started") {
  // PTX ISA 9.7.13.4: .relaxed removes memory ordering, not the waiting. The start barrier of `ring` only ensures that
  // the blocks exist.
  const std::string text =
      with(text_of("exchange"), "ring(", "barrier.cluster.arrive.aligned;", "barrier.cluster.arrive.relaxed.aligned;");
  const PtxRun run = check(text, "ring", 2, {uint32_t(1)});
  CHECK(!is_told(run, "with nothing that says that the block has started"));
}

TEST_CASE("another block's shared memory when it may have ended") {
  std::string text = with(text_of("exchange"), "st.u32 [%at]", "barrier.cluster.arrive;", "");
  text = with(text, "st.global.u32 [%out], %sum;", "barrier.cluster.wait;", "");
  const PtxRun run = check(text, "halo", 2);
  // On the emulator block 1 still reads after block 0 has ended, or block 0 reads in block 1, which is about to end.
  CHECK((run.failure().find("has exited") != std::string::npos ||
         is_told(run, "with nothing that keeps the block from ending before")));
}

TEST_CASE("the release of one, the acquire of another: what an mbarrier of another block orders") {
  // gather: each thread's word is released by its arrival at the first block's mbarrier. If an arrival precedes its
  // store, the reads race.
  const std::string store = "st.shared::cluster.u32 [%to], %a;\n",
                    arrival = "  mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%bar];\n";
  const std::string text = text_of("async");
  const std::string swapped = with(text, "gather(", store + arrival, arrival + "  " + store);
  CHECK(is_told(check(swapped, "gather", 2), "race: shared"));
}

TEST_CASE("words of another block that nothing has written") {
  const std::string text =
      ".version 8.6\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 a, .param .u64 b) {\n.reg .b32 "
      "%r<4>;\n.shared .align 4 .u32 word;\nmov.u32 %r0, %cluster_ctarank;\nxor.b32 %r0, %r0, 1;\nmov.u32 %r1, word;\n"
      "mapa.shared::cluster.u32 %r1, %r1, %r0;\nbarrier.cluster.arrive;\nbarrier.cluster.wait;\n"
      "ld.shared::cluster.u32 %r2, [%r1];\nbarrier.cluster.arrive;\nbarrier.cluster.wait;\nret;\n}\n";
  CHECK(findings(check(text, "k", 2)) ==
        std::vector<std::string>{"4 of the 4 bytes read at shared 0x0 ('word') were never written in that block"});
  // Written by the block that later reads it, in the other block's memory.
  const std::string written = with(text, "ld.shared::cluster", "ld.shared::cluster.u32 %r2, [%r1];",
                                   "st.shared::cluster.u32 [%r1], 5;\nld.shared::cluster.u32 %r2, [%r1];");
  CHECK(findings(check(written, "k", 2, {}, 32)) == std::vector<std::string>{});
}

TEST_CASE("warps of one block that only another block orders") {
  // Warp 0 of block 0 writes a word of its own and arrives at block 1's mbarrier; block 1 then arrives at block 0's,
  // for which warp 1 waits before it reads the word.
  const std::string text = R"(.version 8.6
.target sm_90
.address_size 64
.visible .entry k(.param .u64 a, .param .u64 b)
{
  .reg .b32 %r<8>;
  .reg .pred %p<4>;
  .shared .align 8 .b64 full;
  .shared .align 4 .u32 word;
  mov.u32 %r0, %tid.x;
  mov.u32 %r1, %cluster_ctarank;
  mov.u32 %r2, full;
  setp.eq.u32 %p0, %r0, 0;
  @%p0 mbarrier.init.shared::cta.b64 [%r2], 1;
  barrier.cluster.arrive;
  barrier.cluster.wait;
  xor.b32 %r3, %r1, 1;
  mapa.shared::cluster.u32 %r4, %r2, %r3;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra second;
  setp.ge.u32 %p2, %r0, 32;
  @%p2 bra reader;
  @%p0 st.shared.u32 [word], 7;
  @%p0 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r4];
  bra done;
reader:
  mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p3, [%r2], 0;
  @!%p3 bra reader;
  ld.shared.u32 %r5, [word];
  bra done;
second:
  @!%p0 bra done;
again:
  mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p3, [%r2], 0;
  @!%p3 bra again;
  mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r4];
done:
  barrier.cluster.arrive;
  barrier.cluster.wait;
  ret;
}
)";
  CHECK(findings(check(text, "k", 2)) == std::vector<std::string>{});
  // The reader does not wait.
  CHECK(is_told(check(with(text, "reader:", "@!%p3 bra reader;", ""), "k", 2), "race: shared"));
}

TEST_CASE("global memory between blocks of a cluster") {
  const std::string text = R"(.version 8.6
.target sm_90
.address_size 64
.visible .entry k(.param .u64 a, .param .u64 b)
{
  .reg .b64 %d<4>;
  .reg .b32 %r<8>;
  .reg .pred %p<4>;
  ld.param.u64 %d0, [a];
  mov.u32 %r0, %tid.x;
  mov.u32 %r1, %cluster_ctarank;
  mov.u32 %r2, %clusterid.x;
  mad.wide.u32 %d0, %r2, 4, %d0;
  or.b32 %r3, %r0, %r1;
  setp.ne.u32 %p0, %r3, 0;
  mov.u32 %r4, 9;
  @!%p0 st.global.u32 [%d0], %r4;
  barrier.cluster.arrive;
  barrier.cluster.wait;
  ld.global.u32 %r5, [%d0];
  ret;
}
)";
  CHECK(findings(check(text, "k", 4)) == std::vector<std::string>{});
  std::string without = with(text, "st.global", "barrier.cluster.arrive;", "");
  without = with(without, "st.global", "barrier.cluster.wait;", "");
  CHECK(is_told(check(without, "k", 4), "race: global"));
}

} // namespace
} // namespace ptxrewrite::emulator::cluster_check_test
