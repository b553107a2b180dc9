// Unsupported instructions are refused before anything runs: the error has the instruction's name and its position.
#include "tests/unit/emulator/run_ptx.h"

namespace ptxrewrite::emulator::unsupported_test {
namespace {

struct Refusal {
  std::string message;
  std::string text; // that the error points to
  uint32_t line = 0;
};

// The kernel stores a word first; the instruction is in the sixth line of its text.
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
  CHECK(stored[0] == std::byte(0)); // nothing was executed
  CHECK_FALSE((*program)->check_supported("k"));
  const SourceRange range = result.error().range;
  return {result.error().message, text.substr(range.begin, range.end - range.begin),
          module->source.locate(range.begin).line};
}

TEST_CASE("instructions of asynchronous units and several GPUs") {
  struct Row {
    const char* target;
    const char* instruction;
    const char* message;
  };
  const Row rows[] = {
      {"sm_100a", "tcgen05.mma.cta_group::1.kind::f16.ashift [%r0], [%r1], %d0, %r2, %q;",
       "matrices A that are shifted (.ashift): public text does not say whether the product takes their rows before or "
       "after the shift; they are not emulated"},
      {"sm_90", "tex.2dms.v4.f32.s32 {%f0, %f1, %f2, %f3}, [%d0, {%r0, %r1, %r2, %r3}];",
       "multi-sample textures are not emulated: CUDA makes none"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.instruction);
    const Refusal refusal = refusal_of(row.target, row.instruction);
    CHECK(refusal.message == row.message);
    CHECK(refusal.line == 6);
    CHECK(refusal.text.find(std::string(row.instruction).substr(0, 8)) == 0);
  }
}

TEST_CASE("an instruction that the table does not know") {
  const Refusal refusal = refusal_of("sm_90", "frobnicate.u32 %r0, %r1;");
  CHECK(refusal.message.find("frobnicate.u32") != std::string::npos);
  CHECK(refusal.line == 6);
}

TEST_CASE("a function that only might be called is looked at, too") {
  PtxRun run = run_ptx(kernel("k", "", "  .reg .pred %p;\n  setp.eq.u32 %p, 1, 2;\n  @%p call never;\n  ret;",
                              ".func never() { .reg .u64 %d; .reg .u32 %r; "
                              "tex.2dms.v4.u32.s32 {%r, %r, %r, %r}, [%d, {%r, %r, %r, %r}]; ret; }\n"),
                       {.kernel = "k"});
  CHECK(run.error == "multi-sample textures are not emulated: CUDA makes none");
}

} // namespace
} // namespace ptxrewrite::emulator::unsupported_test
