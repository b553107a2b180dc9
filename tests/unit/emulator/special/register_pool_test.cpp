// setmaxnreg against sums of the register file: 65,536 registers, shared by the threads that the kernel's directives
// name, in units of eight.
#include "tests/unit/emulator/run_ptx.h"

namespace ptxrewrite::emulator::register_pool_test {
namespace {

// Two warp groups: the first one executes `first`, the second one `second`; thread 0 of each stores 1.
PtxRun run_groups(const std::string& directives, const std::string& first, const std::string& second) {
  return run_ptx(".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 out)\n" + directives +
                     R"(
{
  .reg .b64 %rd<4>; .reg .b32 %r<4>; .reg .pred %p<2>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd2, %r1, 4;
  add.u64 %rd1, %rd1, %rd2;
  setp.ge.u32 %p1, %r1, 128;
  @%p1 bra SECOND;
)" + first + "\n  bra DONE;\nSECOND:\n" +
                     second + "\nDONE:\n  mov.u32 %r2, 1;\n  st.global.u32 [%rd1], %r2;\n  ret;\n}\n",
                 {.kernel = "k", .block = {256}, .fuel = 1'000'000}, {zeros<uint32_t>(256)});
}
std::string set(const char* action, unsigned registers) {
  return std::string("  setmaxnreg.") + action + ".sync.aligned.u32 " + std::to_string(registers) + ";";
}

} // namespace

TEST_CASE("a warp group takes what another one hands back, in either order") {
  for (const char* directives : {".maxnreg 128", ".maxntid 512", ".reqntid 256\n.minnctapersm 2"})
    for (unsigned taken : {192u, 200u}) {
      CAPTURE(directives);
      CAPTURE(taken);
      const PtxRun forth = run_groups(directives, set("inc", taken), set("dec", 56));
      CHECK(forth.failure() == "");
      CHECK(forth.buffer<uint32_t>(0) == std::vector<uint32_t>(256, 1));
      CHECK(run_groups(directives, set("dec", 56), set("inc", taken)).failure() == "");
    }
}

TEST_CASE("more registers than the block has: the group waits for ever") {
  // 128 threads keep 56, and 128 threads want 208: 8 more than the block's 256 for a pair of threads.
  const PtxRun run =
      run_groups(".maxnreg 128", set("inc", 208) + "\n  bar.sync 0;", set("dec", 56) + "\n  bar.sync 0;");
  CHECK(run.failure() != "");
}

TEST_CASE("registers of warps that have ended are free") {
  CHECK(run_groups(".maxnreg 128", set("inc", 208), set("dec", 56)).failure() == "");
}

TEST_CASE("inc to fewer and dec to more registers than a warp has") {
  CHECK(run_groups(".maxnreg 128", set("dec", 56) + "\n" + set("inc", 48), "")
            .failure()
            .starts_with("setmaxnreg.inc to 48 registers by a warp that has 56"));
  CHECK(run_groups(".maxnreg 128", set("dec", 136), "")
            .failure()
            .starts_with("setmaxnreg.dec to 136 registers by a warp that has 128"));
}

TEST_CASE("ptxas may give threads fewer registers than the directives allow") {
  CHECK(run_groups(".maxnreg 128", set("inc", 120), set("dec", 40)).failure() == "");
}

TEST_CASE("without directives only ptxas knows the number, and nothing is checked") {
  CHECK(run_groups("", set("inc", 256), set("inc", 256)).failure() == "");
}

} // namespace ptxrewrite::emulator::register_pool_test
