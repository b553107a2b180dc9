// What is not emulated is refused before anything runs: with the instruction's name and its place in the text.
#include "tests/unit/emulator/run_ptx.h"

namespace ptxrewrite::emulator {
namespace {

struct Refusal {
  std::string message;
  std::string text; // that the error points to
  uint32_t line = 0;
};

// The kernel stores a word first; the instruction stands in its sixth line of text.
Refusal refusal_of(const std::string& target, const std::string& instruction) {
  const std::string text = ".version 8.7\n.target " + target +
                           "\n.address_size 64\n.visible .entry k(.param .u64 p) { .reg .b64 %d<8>; .reg .b32 %r<8>; "
                           ".reg .f32 %f<8>; .reg .pred %q; .shared .align 16 .b8 area[256];\n"
                           "ld.param.u64 %d0, [p]; st.global.u32 [%d0], 1;\n" +
                           instruction + "\nret; }\n";
  Diagnostics diagnostics;
  auto module = grammar::read_module(SourceFile("test.ptx", text), diagnostics);
  for (const Diagnostic& diagnostic : diagnostics.list())
    MESSAGE(diagnostic.message);
  REQUIRE(module);
  DeviceMemory memory;
  auto program = Program::load(*module, memory);
  REQUIRE(program);
  const uint64_t word = *memory.allocate(4, "word");
  LaunchRequest request{.kernel = "k"};
  request.parameters.resize(8);
  std::memcpy(request.parameters.data(), &word, sizeof word);
  Result<LaunchResult> result = (*program)->launch(request);
  REQUIRE_FALSE(result);
  std::byte stored[4];
  REQUIRE(memory.read(word, stored));
  CHECK(stored[0] == std::byte(0)); // nothing has run
  CHECK_FALSE((*program)->check_supported("k"));
  const SourceRange range = result.error().range;
  return {result.error().message, text.substr(range.begin, range.end - range.begin),
          module->source.locate(range.begin).line};
}

TEST_CASE("instructions of asynchronous units, clusters and several GPUs") {
  struct Row {
    const char* target;
    const char* instruction;
    const char* message;
  };
  const Row rows[] = {
      {"sm_100a", "tcgen05.wait::ld.sync.aligned;", "'tcgen05.wait::ld.sync.aligned' is not emulated"},
      {"sm_90", "multimem.ld_reduce.relaxed.gpu.global.add.u32 %r0, [%d0];",
       "'multimem.ld_reduce.relaxed.gpu.global.add.u32' is not emulated"},
      {"sm_90", "barrier.cluster.arrive;", "barriers of clusters are not emulated"},
      {"sm_90", "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%d0], [%r0], 16;",
       "bulk reductions are not emulated"},
      {"sm_90", "mapa.u64 %d1, %d0, 0;", "'mapa.u64' is not emulated"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.instruction);
    const Refusal refusal = refusal_of(row.target, row.instruction);
    CHECK(refusal.message == row.message);
    CHECK(refusal.line == 6);
    CHECK(refusal.text.find(std::string(row.instruction).substr(0, 8)) == 0);
  }
}

TEST_CASE("a kernel that runs in clusters of several blocks") {
  auto refusal = [](const std::string& directives, const std::string& body) {
    const std::string text = ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 out) " +
                             directives +
                             "\n{ .reg .b64 %a; .reg .b32 %r<4>; .reg .pred %q;\nld.param.u64 %a, [out];\n" + body +
                             "\nst.global.u32 [%a], %r1; ret; }\n";
    PtxRun run = run_ptx(text, {.kernel = "k", .grid = {2}}, {zeros<uint32_t>(1)});
    if (run.ok()) CHECK(run.buffer<uint32_t>(0)[0] == 1);
    return run.error;
  };
  const std::string count = "mov.u32 %r1, %cluster_nctarank;";
  CHECK(refusal(".reqnctapercluster 2", count) ==
        "kernel 'k' runs in clusters of 2 x 1 x 1 blocks (.reqnctapercluster), which are not emulated");
  CHECK(refusal(".reqnctapercluster 1, 2", "mov.u32 %r1, 1;") ==
        "kernel 'k' runs in clusters of 1 x 2 x 1 blocks (.reqnctapercluster), which are not emulated");
  CHECK(refusal(".reqntid 32 .reqnctapercluster 1, 1, 4 .blocksareclusters", count) ==
        "kernel 'k' runs in clusters of 1 x 1 x 4 blocks (.reqnctapercluster), which are not emulated");
  CHECK(refusal(".explicitcluster", "mov.u32 %r1, 1;") ==
        "kernel 'k' takes the size of its clusters from its launch (.explicitcluster), which is not emulated");
  CHECK(refusal(".reqnctapercluster 1, 1, 1", count) == "");
  CHECK(refusal(".explicitcluster .reqnctapercluster 1", count) == "");
  CHECK(refusal("", count) == "");
  // Each register that tells of clusters.
  for (const char* one : {"%cluster_nctarank", "%cluster_nctaid.x", "%cluster_nctaid.y", "%cluster_nctaid.z"})
    CHECK(refusal("", std::string("mov.u32 %r1, ") + one + ";") == "");
  for (const char* read : {"%clusterid.x", "%nclusterid.y", "%cluster_ctaid.x", "%cluster_nctaid.z", "%cluster_ctarank",
                           "%cluster_nctarank"})
    CHECK(refusal(".maxclusterrank 4", std::string("mov.u32 %r1, ") + read + ";") ==
          "kernel 'k' may run in clusters of up to 4 blocks (.maxclusterrank) and looks at them here; clusters are not "
          "emulated");
  CHECK(refusal(".maxclusterrank 4", "mov.pred %q, %is_explicit_cluster; selp.u32 %r1, 2, 1, %q;") != "");
  CHECK(refusal(".maxclusterrank 4", "mov.u32 %r1, 1;") == "");
  CHECK(refusal(".maxclusterrank 1", count) == "");
}

TEST_CASE("an instruction that the table does not know") {
  const Refusal refusal = refusal_of("sm_90", "frobnicate.u32 %r0, %r1;");
  CHECK(refusal.message.find("frobnicate.u32") != std::string::npos);
  CHECK(refusal.line == 6);
}

TEST_CASE("a function that only might be called is looked at, too") {
  PtxRun run = run_ptx(kernel("k", "", "  .reg .pred %p;\n  setp.eq.u32 %p, 1, 2;\n  @%p call never;\n  ret;",
                              ".func never() { barrier.cluster.wait; ret; }\n"),
                       {.kernel = "k"});
  CHECK(run.error == "barriers of clusters are not emulated");
}

} // namespace
} // namespace ptxrewrite::emulator
