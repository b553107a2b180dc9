// Generic addresses of local memory: one number in all lanes, and other memory in each. Interpreted and as generated
// code, against what the host computes.
//
//   own_memory [--verbose]
//
// In each turn of a loop all threads store a value of their own to one address, load it again, and keep it for the next
// turn. In some kernels the address is now and then one of global memory. Without LLVM the interpreter is tested alone.
#include "grammar/reader.h"
#include "support/log.h"
#include "tests/engines/engine_run.h"

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

namespace ptxrewrite::test {
namespace {

constexpr uint32_t turns = 300, warps = 2;

struct Access {
  unsigned bytes = 4, count = 1;
  enum Lanes : uint8_t { all, some, guarded, guarded_together } executing = all; // some: a partial warp
  bool moves = false;                                                            // to global memory in every third turn
  unsigned threads() const { return 32 * warps - (executing == some ? 5 : 0); }
};

std::string name_of(const Access& access) {
  static constexpr const char* lanes[] = {"full warps", "a partial warp", "a guard", "a guard of all lanes"};
  return std::to_string(access.count) + " x " + std::to_string(access.bytes) + " bytes, " + lanes[access.executing] +
         (access.moves ? ", now and then in global memory" : "");
}

bool executes(const Access& access, uint32_t thread, uint32_t turn) {
  switch (access.executing) {
  case Access::guarded:
    return (thread & 5) != 1;
  case Access::guarded_together:
    return (turn & 3) != 1;
  case Access::all:
  case Access::some:
    break;
  }
  return true;
}

// Element `i` of what the thread stores in a turn, and of the global memory.
uint64_t stored(uint32_t thread, uint32_t turn, uint32_t i) {
  return thread * uint64_t(0x100000007) + turn * 13 + i * 29;
}
uint64_t in_global(uint32_t i) {
  return 0x1122334455667788 + i * uint64_t(0x0101010101010101);
}

std::string registers(const Access& access, const char* name) {
  std::string list;
  for (unsigned i = 0; i < access.count; ++i)
    list += (i ? ", " : "") + std::string(name) + std::to_string(i);
  return access.count == 1 ? list : "{" + list + "}";
}

// Parameters: results (a number of 64 bits for each thread), elements in global memory.
std::string text_of(const Access& access) {
  const std::string bits = std::to_string(access.bytes * 8), width = access.bytes == 1 ? "16" : bits;
  const std::string type = (access.count == 1 ? "" : ".v" + std::to_string(access.count)) + ".u" + bits;
  const std::string guard = access.executing >= Access::guarded ? "@%g " : "";
  std::string text = ".version 8.0\n.target sm_80\n.address_size 64\n"
                     ".visible .entry k(.param .u64 results, .param .u64 elements)\n{\n"
                     ".reg .b32 %t, %i, %m; .reg .b64 %lr, %le, %sp, %a, %lt, %x, %y, %sum, %kept; .reg .pred %p, %g;\n"
                     ".reg .b" +
                     width +
                     " %v<4>, %w<4>; .local .align 32 .b8 mine[64];\n"
                     "ld.param.u64 %lr, [results]; ld.param.u64 %le, [elements]; mov.u64 %sp, mine;\n"
                     "cvta.local.u64 %sp, %sp; mov.u32 %t, %tid.x; cvt.u64.u32 %lt, %t; shl.b64 %x, %lt, 3;\n"
                     "add.u64 %lr, %lr, %x; mul.lo.u64 %lt, %lt, 0x100000007; mov.u64 %sum, 0; mov.u64 %kept, 0;\n"
                     "and.b32 %m, %t, 5; setp.ne.u32 %g, %m, 1; mov.u32 %i, 0;\n";
  for (unsigned i = 0; i < access.count; ++i)
    text += "mov.b" + width + " %w" + std::to_string(i) + ", 0;\n";
  text += "LOOP:\n";
  if (access.executing == Access::guarded_together) text += "and.b32 %m, %i, 3; setp.ne.u32 %g, %m, 1;\n";
  for (unsigned i = 0; i < access.count; ++i)
    text += "mul.wide.u32 %x, %i, 13; add.u64 %x, %x, %lt; add.u64 %x, %x, " + std::to_string(i * 29) + "; cvt.u" +
            width + ".u64 %v" + std::to_string(i) + ", %x;\n";
  text += "st" + type + " [%sp+16], " + registers(access, "%v") + ";\nmov.b64 %a, %sp;\n";
  if (access.moves) text += "rem.u32 %m, %i, 3; setp.eq.u32 %p, %m, 2; selp.b64 %a, %le, %sp, %p;\n";
  text += guard + "ld" + type + " " + registers(access, "%w") + ", [%a+16];\n";
  // What has been loaded is read after a branch, and in the next turn.
  text += "setp.gt.u32 %p, %i, 1000; @%p bra LOOP;\nmad.lo.u64 %sum, %sum, 31, %kept;\n";
  for (unsigned i = 0; i < access.count; ++i)
    text += "cvt.u64.u" + width + " %kept, %w" + std::to_string(i) + "; mad.lo.u64 %sum, %sum, 31, %kept;\n";
  return text + "add.u32 %i, %i, 1; setp.lt.u32 %p, %i, " + std::to_string(turns) +
         "; @%p bra LOOP;\nst.global.u64 [%lr], %sum;\nret;\n}\n";
}

std::vector<uint64_t> expected_of(const Access& access) {
  const uint64_t mask = access.bytes == 8 ? ~uint64_t(0) : (uint64_t(1) << access.bytes * 8) - 1;
  std::vector<uint64_t> elements(8), sums(access.threads());
  for (uint32_t i = 0; i < elements.size(); ++i)
    elements[i] = in_global(i);
  for (uint32_t thread = 0; thread < sums.size(); ++thread) {
    uint64_t &sum = sums[thread], kept = 0, loaded[4] = {};
    for (uint32_t turn = 0; turn < turns; ++turn) {
      for (uint32_t i = 0; i < access.count && executes(access, thread, turn); ++i) {
        loaded[i] = stored(thread, turn, i) & mask;
        if (access.moves && turn % 3 == 2) {
          loaded[i] = 0;
          std::memcpy(&loaded[i], reinterpret_cast<const char*>(elements.data()) + 16 + i * access.bytes, access.bytes);
        }
      }
      sum = sum * 31 + kept;
      for (uint32_t i = 0; i < access.count; ++i) {
        kept = loaded[i];
        sum = sum * 31 + kept;
      }
    }
  }
  return sums;
}

enum class Way : uint8_t { interpreted, lane_by_lane, quick, portable, full };

EngineRun launch(const ir::Module& module, const Access& access, Way way) {
  EngineRun run;
  emulator::DeviceMemory memory(uint64_t(1) << 30);
  auto program = emulator::Program::load(module, memory);
  const size_t bytes = access.threads() * 8;
  const auto results = memory.allocate(bytes, "results"), elements = memory.allocate(64, "elements");
  if (!program || !results || !elements) {
    run.refused = "no program";
    return run;
  }
  std::vector<uint64_t> contents;
  for (uint32_t i = 0; i < 8; ++i)
    contents.push_back(in_global(i));
  (void)memory.write(*elements, std::as_bytes(std::span(contents)));
  emulator::LaunchRequest request;
  request.kernel = "k";
  request.block = {access.threads()};
  request.host_threads = 1;
  request.count_memory = way == Way::lane_by_lane;
  const bool is_code = way != Way::interpreted && way != Way::lane_by_lane;
  request.machines.set(emulator::EngineSetting{is_code ? emulator::Engine::generated : emulator::Engine::interpreter,
                                               {},
                                               way == Way::full ? emulator::CodeTier::full : emulator::CodeTier::quick,
                                               way == Way::portable});
  request.parameters.resize(16);
  std::memcpy(request.parameters.data(), &*results, 8);
  std::memcpy(request.parameters.data() + 8, &*elements, 8);
  const UsesEngine counted(emulator::default_engine());
  take_result((*program)->launch(request), run);
  run.generated = counted.generated();
  (void)memory.read(*results, run.memory.emplace_back(bytes));
  return run;
}

// Returns the number of ways that are wrong.
int test(const Access& access, bool with_generator, EngineTally& tally) {
  Diagnostics diagnostics;
  const auto module = grammar::read_module(SourceFile("own.ptx", text_of(access)), diagnostics);
  if (!module) {
    std::printf("%s: not read: %s\n", name_of(access).c_str(), diagnostics.list()[0].message.c_str());
    return 1;
  }
  const std::vector<uint64_t> sums = expected_of(access);
  const auto bytes = std::as_bytes(std::span(sums));
  EngineRun expected;
  expected.memory.emplace_back(bytes.begin(), bytes.end());
  ++tally.kernels;
  int wrong = 0;
  const EngineRun interpreted = launch(*module, access, Way::interpreted);
  for (const Way way : {Way::interpreted, Way::lane_by_lane}) {
    EngineRun memory_only = launch(*module, access, way);
    memory_only.counters = {};
    if (const std::string what = difference(expected, memory_only); !what.empty() && ++wrong)
      std::printf("%s, host and interpreter: %s\n", name_of(access).c_str(), what.c_str());
  }
  if (!with_generator) return wrong;
  wrong += !tally.add(name_of(access) + ", quick code", interpreted, launch(*module, access, Way::quick));
  wrong += !tally.add(name_of(access) + ", quick code by LLVM", interpreted, launch(*module, access, Way::portable));
  wrong += !tally.add(name_of(access) + ", full code", interpreted, launch(*module, access, Way::full));
  return wrong;
}

int run() {
  const bool with_generator = has_generator();
  EngineTally tally;
  int wrong = 0;
  for (const unsigned bytes : {1u, 2u, 4u, 8u})
    for (const unsigned count : {1u, 2u, 4u})
      for (const auto executing : {Access::all, Access::some, Access::guarded, Access::guarded_together})
        for (const bool moves : {false, true})
          if (bytes * count <= 16) wrong += test({bytes, count, executing, moves}, with_generator, tally);
  if (with_generator) return tally.finish("accesses") | (wrong != 0);
  std::printf("%d kernels, %d wrong\n", static_cast<int>(tally.kernels), wrong);
  return wrong != 0;
}

} // namespace
} // namespace ptxrewrite::test

int main(int count, char** arguments) {
  if (count > 1 && std::strcmp(arguments[1], "--verbose") == 0) ptxrewrite::start_logging("debug");
  return ptxrewrite::test::run();
}
