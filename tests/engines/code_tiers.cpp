// When code is made, and of which tier: decided by what has been executed, and the same in every run.
//
//   code_tiers [--verbose]
//
// A long kernel in short launches stays interpreted; a loop becomes quick code, and full code once it has run long
// enough, within one launch or in several, of one process or several, and is full code at once when it is loaded
// again; code of a kernel is not made again from each of its entries. All with the interpreter's memory and counters.
// Exit code 77: there is no LLVM.
#include "grammar/reader.h"
#include "support/log.h"
#include "tests/engines/engine_run.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

namespace ptxrewrite::test {
namespace {

using emulator::CodeTier;
using emulator::Engine;

constexpr uint32_t threads = 32; // one warp: an entry by another warp would also request full code

std::string head() {
  return ".version 8.0\n.target sm_80\n.address_size 64\n"
         ".visible .entry k(.param .u64 data, .param .u32 turns)\n{\n"
         ".reg .b32 %r<8>; .reg .b64 %rd<4>; .reg .pred %p;\n"
         "ld.param.u64 %rd1, [data]; ld.param.u32 %r1, [turns]; mov.u32 %r2, %tid.x;\n"
         "mul.wide.u32 %rd2, %r2, 4; add.u64 %rd1, %rd1, %rd2; ld.global.u32 %r3, [%rd1]; mov.u32 %r4, 0;\n";
}
std::string long_kernel() {
  std::string text = head();
  for (int i = 0; i < 2000; ++i)
    text += i % 50 == 49 ? "bar.warp.sync 0xffffffff;\n" : "mad.lo.u32 %r3, %r3, %r1, " + std::to_string(i) + ";\n";
  return text + "st.global.u32 [%rd1], %r3;\nret;\n}\n";
}
// `first` tells loops of equal cost apart.
std::string loop_kernel(int first = 0) {
  std::string text = head() + "LOOP:\n";
  for (int i = first; i < first + 16; ++i)
    text += "mad.lo.u32 %r3, %r3, %r2, " + std::to_string(i) + ";\n";
  return text + "ld.global.u32 %r5, [%rd1]; xor.b32 %r3, %r3, %r5; add.u32 %r4, %r4, 1;\n"
                "setp.lt.u32 %p, %r4, %r1; @%p bra LOOP;\nst.global.u32 [%rd1], %r3;\nret;\n}\n";
}

// The warp's lanes part at each of many branches, so that the interpreter enters code at each of them; from each, the
// rest of the kernel can be reached.
constexpr int branches = 150;
std::string branching_kernel() {
  std::string text = head();
  for (int i = 0; i < branches; ++i) {
    const std::string label = "AT" + std::to_string(i);
    text += "setp.lt.u32 %p, %r2, " + std::to_string(1 + i % 31) + ";\n@%p bra " + label + ";\n";
    for (int k = 0; k < 4; ++k)
      text += "mad.lo.u32 %r3, %r3, %r1, " + std::to_string(i + k) + ";\n";
    text += label + ": add.u32 %r3, %r3, " + std::to_string(i) + "; xor.b32 %r3, %r3, %r2;\n";
  }
  return text + "st.global.u32 [%rd1], %r3;\nret;\n}\n";
}

struct Requests {
  uint64_t quick = 0, full = 0;
  uint64_t quick_operations = 0;
};
Requests requests_so_far() {
  const emulator::CodeWork &quick = emulator::code_work(CodeTier::quick), &full = emulator::code_work(CodeTier::full);
  return {quick.requests, full.requests, quick.micro_operations};
}

struct Outcome {
  EngineRun run;
  Requests requests; // made by the launches
};

Outcome launch(const std::string& text, Engine engine, uint32_t turns, int launches) {
  Outcome outcome;
  Diagnostics diagnostics;
  const auto module = grammar::read_module(SourceFile("tiers.ptx", text), diagnostics);
  emulator::DeviceMemory memory(uint64_t(1) << 30);
  auto program = module ? emulator::Program::load(*module, memory) : Error{"not read", {}};
  auto data = memory.allocate(threads * 4, "data");
  if (!program || !data) {
    outcome.run.refused = "no program";
    return outcome;
  }
  std::vector<uint32_t> contents(threads);
  for (uint32_t i = 0; i < threads; ++i)
    contents[i] = i * 77 + 5;
  (void)memory.write(*data, std::as_bytes(std::span(contents)));
  emulator::LaunchRequest request;
  request.kernel = "k";
  request.block = {threads};
  request.host_threads = 1;
  request.parameters.resize(12);
  std::memcpy(request.parameters.data(), &*data, 8);
  std::memcpy(request.parameters.data() + 8, &turns, 4);
  request.machines.set(emulator::EngineSetting{engine});
  const UsesEngine counted(emulator::default_engine());
  const Requests before = requests_so_far();
  for (int i = 0; i < launches; ++i)
    take_result((*program)->launch(request), outcome.run);
  const Requests after = requests_so_far();
  outcome.requests = {after.quick - before.quick, after.full - before.full,
                      after.quick_operations - before.quick_operations};
  outcome.run.generated = counted.generated();
  (void)memory.read(*data, outcome.run.memory.emplace_back(threads * 4));
  return outcome;
}

struct Expected {
  const char* what;
  std::string text;
  Engine engine;
  uint32_t turns;
  int launches;
  bool quick, full;                      // is such code requested
  uint64_t most_operations = UINT64_MAX; // that quick code is written for
};

// Code that an earlier run has left on disk would be used at once.
class EmptyCache {
public:
  EmptyCache() {
    std::string name = (std::filesystem::temp_directory_path() / "code_tiers_XXXXXX").string();
    folder_ = mkdtemp(name.data());
    setenv("PTXREWRITE_CACHE", folder_.c_str(), 1);
  }
  ~EmptyCache() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  EmptyCache(const EmptyCache&) = delete;
  EmptyCache& operator=(const EmptyCache&) = delete;

private:
  std::filesystem::path folder_;
};

// A loop that runs in one process after the other: full code is made when all of them together have executed enough.
// Returns false if it is made too early, too late, or again.
bool counts_processes() {
  constexpr int processes = 4, makes_full = 2;
  constexpr uint32_t turns = 90'000; // 210,000 are worth full code
  std::fflush(stdout);
  for (int number = 0; number < processes; ++number) {
    const pid_t child = fork();
    if (child == 0) {
      const Outcome outcome = launch(loop_kernel(100), Engine::generated, turns, 1);
      const bool as_expected = outcome.run.refused.empty() && outcome.requests.quick == 1 &&
                               outcome.requests.full == (number == makes_full ? 1 : 0) &&
                               (outcome.requests.quick_operations == 0) == (number > makes_full);
      if (!as_expected)
        std::printf("process %d: %d requests of quick code, %d of full code, %d micro-operations\n", number,
                    static_cast<int>(outcome.requests.quick), static_cast<int>(outcome.requests.full),
                    static_cast<int>(outcome.requests.quick_operations));
      std::fflush(stdout);
      _exit(as_expected ? 0 : 1);
    }
    int status = -1;
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) return false;
  }
  return true;
}

int run() {
  const EmptyCache cache;
  if (!has_generator()) return 77;
  const Expected cases[] = {
      // 2,000 instructions, 400 times: each instruction is executed too seldom to be worth compiling.
      {"short launches of a long kernel", long_kernel(), Engine::automatic, 1, 400, false, false},
      {"a short loop", loop_kernel(), Engine::automatic, 100, 1, false, false},
      {"a loop worth quick code", loop_kernel(), Engine::automatic, 20'000, 1, true, false},
      {"a short loop, code wanted", loop_kernel(), Engine::generated, 1'000, 1, true, false},
      {"a long loop, code wanted", loop_kernel(), Engine::generated, 600'000, 1, true, true},
      {"the same again", loop_kernel(), Engine::generated, 600'000, 1, true, false, 0},
      {"the first part of a long loop", loop_kernel(200), Engine::generated, 180'000, 1, true, false},
      {"the second part, loaded again", loop_kernel(200), Engine::generated, 180'000, 1, true, true},
      {"the third part", loop_kernel(200), Engine::generated, 180'000, 1, true, false, 0},
      // Full warps and others, each with and without uniform registers; 8 instructions for each branch.
      {"entries in the middle of a kernel", branching_kernel(), Engine::generated, 1, 20, true, false,
       4 * 9 * branches},
  };
  int wrong = 0;
  for (const Expected& expected : cases) {
    const Outcome interpreted = launch(expected.text, Engine::interpreter, expected.turns, expected.launches);
    const Outcome by_code = launch(expected.text, expected.engine, expected.turns, expected.launches);
    std::string what = difference(interpreted.run, by_code.run);
    if (!interpreted.run.refused.empty()) what = "refused: " + interpreted.run.refused;
    if (what.empty() &&
        ((by_code.requests.quick != 0) != expected.quick || (by_code.requests.full != 0) != expected.full))
      what = "requests of quick code: " + std::to_string(by_code.requests.quick) +
             ", of full code: " + std::to_string(by_code.requests.full);
    if (what.empty() && by_code.requests.quick_operations > expected.most_operations)
      what = "quick code of " + std::to_string(by_code.requests.quick_operations) + " micro-operations";
    const bool mixes = expected.full && by_code.run.generated < by_code.run.counters.warp_instructions * 9 / 10;
    if (what.empty() && mixes) what = "code executed only " + std::to_string(by_code.run.generated);
    std::printf("%s: %s\n", expected.what, what.empty() ? "as expected" : what.c_str());
    wrong += !what.empty();
  }
  const bool counted = counts_processes();
  std::printf("a long loop in several processes: %s\n", counted ? "as expected" : "wrong");
  return wrong != 0 || !counted;
}

} // namespace
} // namespace ptxrewrite::test

int main(int count, char** arguments) {
  if (count > 1 && std::strcmp(arguments[1], "--verbose") == 0) ptxrewrite::start_logging("debug");
  return ptxrewrite::test::run();
}
