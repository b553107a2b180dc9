// The order in which the warps of a block take turns at barriers: interpreted and as generated code, against the order
// that emulator/README.md gives.
//
//   barrier_turns [--verbose]
//
// Between two barriers each warp replaces a number in shared memory by a function of it and of its own number, which no
// barrier orders: the number tells who came when. Some kernels end warps early, part the lanes of some, use several
// barriers, run out of fuel, or store out of bounds: the first warp in that order to do so is the one reported. Without
// LLVM the interpreter is tested alone.
#include "grammar/reader.h"
#include "support/log.h"
#include "tests/engines/engine_run.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

namespace ptxrewrite::test {
namespace {

constexpr uint32_t turns = 40;

struct Shape {
  uint32_t warps = 1, missing_lanes = 0; // of the last warp
  bool ends = false;                     // warp w in turn 7 + 5 w, but warp 1 never
  bool parts = false;                    // the lanes of every third warp, before its turn
  bool alternates = false;               // between barriers 0 and 3
  bool spins = false;                    // all even warps but the last one, until the last one has come
  uint64_t fuel = 0;                     // 0: enough
  bool differs = false;                  // a register holds one number in the lanes of most warps, not in every third
  bool reads_clock = false;              // at the end; the host does not know what that is
  uint32_t faults_from = 32;             // this warp and all above it store out of bounds in turn 23
  uint32_t threads() const { return warps * 32 - missing_lanes; }
  bool faults() const { return faults_from < warps; }
};

std::string name_of(const Shape& shape) {
  return std::to_string(shape.threads()) + " threads" + (shape.ends ? ", warps end" : "") +
         (shape.parts ? ", lanes part" : "") + (shape.alternates ? ", two barriers" : "") +
         (shape.spins ? ", warps spin" : "") + (shape.fuel ? ", fuel " + std::to_string(shape.fuel) : "") +
         (shape.differs ? ", lanes differ" : "") + (shape.reads_clock ? ", clock" : "") +
         (shape.faults() ? ", warp " + std::to_string(shape.faults_from) + " faults" : "");
}

// Parameter: results, a number of 32 bits for each thread.
std::string text_of(const Shape& shape) {
  std::string text = ".version 8.0\n.target sm_80\n.address_size 64\n"
                     ".visible .entry k(.param .u64 results)\n{\n"
                     ".reg .b32 %t, %w, %i, %x, %y, %s, %d, %end, %own; .reg .b64 %r, %o; .reg .pred %p, %q;\n"
                     ".shared .align 4 .b8 number[4]; .shared .align 4 .b8 come[4];\n"
                     "ld.param.u64 %r, [results]; mov.u32 %t, %tid.x; mul.wide.u32 %o, %t, 4; add.u64 %r, %r, %o;\n"
                     "shr.u32 %w, %t, 5; mov.u32 %s, number; mov.u32 %i, 0; mov.u32 %x, 0; mov.u32 %own, 0;\n"
                     "mad.lo.u32 %end, %w, 5, 7; setp.eq.u32 %p, %w, 1; selp.u32 %end, 1000, %end, %p;\n"
                     "rem.u32 %y, %w, 3; setp.eq.u32 %p, %y, 2; mov.u32 %d, %w; @%p mov.u32 %d, %t;\nLOOP:\n";
  if (shape.ends) text += "setp.ge.u32 %p, %i, %end; @%p bra DONE;\n";
  if (shape.parts)
    text += "rem.u32 %y, %w, 3; setp.eq.u32 %p, %y, 1; and.b32 %y, %t, 8; setp.eq.and.u32 %p, %y, 0, %p;\n"
            "@%p bra APART; add.u32 %own, %own, 3; bra MEET;\nAPART: add.u32 %own, %own, 5; xor.b32 %own, %own, %i;\n"
            "MEET:\n";
  if (shape.differs) text += "add.u32 %own, %own, %d;\n";
  if (shape.faults())
    text += "setp.eq.u32 %p, %i, 23; setp.ge.and.u32 %p, %w, " + std::to_string(shape.faults_from) +
            ", %p; selp.b64 %o, 0x100000, 0, %p; add.u64 %o, %r, %o; st.global.u32 [%o], %own;\n";
  const std::string last = std::to_string(shape.warps - 1);
  if (shape.spins)
    text += "and.b32 %y, %w, 1; setp.eq.u32 %p, %y, 0; setp.ne.and.u32 %p, %w, " + last +
            ", %p; @!%p bra COME;\nSPIN: ld.volatile.shared.u32 %y, [come]; setp.le.u32 %p, %y, %i; @%p bra SPIN;\n"
            "COME: setp.eq.u32 %p, %w, " +
            last + "; add.u32 %y, %i, 1; @%p st.volatile.shared.u32 [come], %y;\n";
  text += "ld.shared.u32 %x, [%s]; mul.lo.u32 %x, %x, 31; add.u32 %x, %x, %w; add.u32 %x, %x, 1;\n"
          "st.shared.u32 [%s], %x; xor.b32 %own, %own, %x; add.u32 %y, %own, %i; shl.b32 %own, %y, 1;\n";
  text += shape.alternates ? "and.b32 %y, %i, 1; setp.eq.u32 %q, %y, 0; @%q bra OTHER; bar.sync 0; bra PAST;\n"
                             "OTHER: bar.sync 3;\nPAST:\n"
                           : "bar.sync 0;\n";
  return text + "add.u32 %i, %i, 1; setp.lt.u32 %p, %i, " + std::to_string(turns) + "; @%p bra LOOP;\nDONE:\n" +
         (shape.reads_clock ? "mov.u32 %y, %clock; xor.b32 %own, %own, %y;\n" : "") +
         "st.global.u32 [%r], %own;\nret;\n}\n";
}

// The order in which warps run up to the next barrier: first the warps with a higher index than the one that arrived
// last, then the others from index 0, the last to arrive at the end.
std::vector<uint32_t> order_of(const Shape& shape, uint32_t turn) {
  std::vector<uint32_t> early, late;
  for (uint32_t warp = 0; warp < shape.warps; ++warp)
    (shape.spins && warp % 2 == 0 && warp + 1 < shape.warps ? late : early).push_back(warp);
  if (turn == 0 || late.empty()) {
    early.insert(early.end(), late.begin(), late.end());
    return early;
  }
  std::vector<uint32_t> order;
  for (uint32_t i = 1; i <= shape.warps; ++i)
    order.push_back((late.back() + i) % shape.warps);
  return order;
}

std::vector<uint32_t> expected_of(const Shape& shape) {
  std::vector<uint32_t> own(shape.threads());
  uint32_t number = 0;
  for (uint32_t turn = 0; turn < turns; ++turn)
    for (const uint32_t warp : order_of(shape, turn)) {
      if (shape.ends && warp != 1 && turn >= 7 + 5 * warp) continue;
      number = number * 31 + warp + 1;
      for (uint32_t thread = warp * 32; thread < std::min((warp + 1) * 32, shape.threads()); ++thread) {
        uint32_t& value = own[thread];
        if (shape.parts) value = warp % 3 == 1 && (thread & 8) == 0 ? (value + 5) ^ turn : value + 3;
        if (shape.differs) value += warp % 3 == 2 ? thread : warp;
        value = ((value ^ number) + turn) << 1;
      }
    }
  return own;
}

enum class Way : uint8_t { interpreted, quick, portable, full };

EngineRun launch(const ir::Module& module, const Shape& shape, Way way) {
  EngineRun run;
  emulator::DeviceMemory memory(uint64_t(1) << 30);
  auto program = emulator::Program::load(module, memory);
  const size_t bytes = shape.threads() * 4;
  const auto results = memory.allocate(bytes, "results");
  if (!program || !results) {
    run.refused = "no program";
    return run;
  }
  emulator::LaunchRequest request;
  request.kernel = "k";
  request.block = {shape.threads()};
  request.host_threads = 1;
  if (shape.fuel) request.fuel = shape.fuel;
  request.machines.set(
      emulator::EngineSetting{way == Way::interpreted ? emulator::Engine::interpreter : emulator::Engine::generated,
                              {},
                              way == Way::full ? emulator::CodeTier::full : emulator::CodeTier::quick,
                              way == Way::portable});
  request.parameters.resize(8);
  std::memcpy(request.parameters.data(), &*results, 8);
  const UsesEngine counted(emulator::default_engine());
  take_result((*program)->launch(request), run);
  run.generated = counted.generated();
  (void)memory.read(*results, run.memory.emplace_back(bytes));
  return run;
}

// Returns the number of ways that are wrong.
int test(const Shape& shape, bool with_generator, EngineTally& tally) {
  Diagnostics diagnostics;
  const auto module = grammar::read_module(SourceFile("turns.ptx", text_of(shape)), diagnostics);
  if (!module) {
    std::printf("%s: not read: %s\n", name_of(shape).c_str(), diagnostics.list()[0].message.c_str());
    return 1;
  }
  ++tally.kernels;
  int wrong = 0;
  const EngineRun interpreted = launch(*module, shape, Way::interpreted);
  const std::string first_fault = "thread " + std::to_string(shape.faults_from * 32) + ",0,0";
  if (shape.faults() && interpreted.failure.find(first_fault) == std::string::npos && ++wrong)
    std::printf("%s: not %s: %s\n", name_of(shape).c_str(), first_fault.c_str(), interpreted.failure.c_str());
  if (!shape.fuel && !shape.reads_clock && !shape.faults()) {
    const std::vector<uint32_t> numbers = expected_of(shape);
    const auto bytes = std::as_bytes(std::span(numbers));
    EngineRun expected, memory_only = interpreted;
    expected.memory.emplace_back(bytes.begin(), bytes.end());
    memory_only.counters = {};
    if (const std::string what = difference(expected, memory_only); !what.empty() && ++wrong)
      std::printf("%s, host and interpreter: %s\n", name_of(shape).c_str(), what.c_str());
  }
  if (!with_generator) return wrong;
  wrong += !tally.add(name_of(shape) + ", quick code", interpreted, launch(*module, shape, Way::quick));
  wrong += !tally.add(name_of(shape) + ", quick code by LLVM", interpreted, launch(*module, shape, Way::portable));
  wrong += !tally.add(name_of(shape) + ", full code", interpreted, launch(*module, shape, Way::full));
  return wrong;
}

int run() {
  const bool with_generator = has_generator();
  EngineTally tally;
  int wrong = 0;
  for (const uint32_t warps : {1u, 2u, 5u, 32u})
    for (const uint32_t missing : {0u, 9u})
      for (const bool ends : {false, true})
        for (const bool parts : {false, true})
          for (const bool alternates : {false, true}) {
            wrong += test({warps, missing, ends, parts, alternates}, with_generator, tally);
            if (!ends) wrong += test({warps, missing, false, parts, alternates, true}, with_generator, tally);
          }
  for (const uint32_t warps : {4u, 7u})
    for (const bool parts : {false, true}) {
      wrong += test({.warps = warps, .parts = parts, .differs = true}, with_generator, tally);
      wrong += test({.warps = warps, .parts = parts, .reads_clock = true}, with_generator, tally);
    }
  for (const uint32_t first : {0u, 1u, 2u, 6u}) // the first warp's failure is the launch's
    for (const bool parts : {false, true})
      wrong += test({.warps = 7, .parts = parts, .faults_from = first}, with_generator, tally);
  for (const uint64_t fuel : {30u, 200u, 999u, 1500u, 1501u, 1502u, 1503u, 1510u})
    wrong += test({4, 0, false, true, false, false, fuel}, with_generator, tally);
  for (uint64_t fuel = 1'460; fuel < 1'560; fuel += 3) // in turns that all warps take by code
    wrong += test({4, 0, false, false, false, false, fuel}, with_generator, tally);
  if (with_generator) return tally.finish("turns") | (wrong != 0);
  std::printf("%d kernels, %d wrong\n", static_cast<int>(tally.kernels), wrong);
  return wrong != 0;
}

} // namespace
} // namespace ptxrewrite::test

int main(int count, char** arguments) {
  if (count > 1 && std::strcmp(arguments[1], "--verbose") == 0) ptxrewrite::start_logging("debug");
  return ptxrewrite::test::run();
}
