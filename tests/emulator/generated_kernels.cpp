// Generated code against the interpreter on handwritten kernels: the same memory, counters, failures and texts, in
// launches of whole and partial warps, with insufficient fuel, and with accesses out of bounds.
//
//   emulator_generated_kernels [--verbose]
#include "emulator/core/engine.h"
#include "grammar/reader.h"
#include "support/log.h"

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

namespace {

using namespace ptxrewrite;
using namespace ptxrewrite::emulator;

struct Case {
  const char* name;
  const char* body; // of kernel k(.u64 a, .u64 b, .u64 c, .u32 n)
  std::vector<Dimensions> blocks = {{128}, {100}, {16, 16}, {33}, {8, 8}, {1}};
  uint32_t n = 1000;
  uint64_t fuel = default_fuel;
};

const char* const vecadd = R"(
  mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;
  mad.lo.s32 %r4, %r1, %r2, %r3;
  setp.ge.s32 %p1, %r4, %r0;
  @%p1 bra DONE;
  mul.wide.s32 %rd4, %r4, 4;
  add.s64 %rd5, %rd1, %rd4; add.s64 %rd6, %rd2, %rd4; add.s64 %rd7, %rd3, %rd4;
  ld.global.f32 %f1, [%rd5]; ld.global.f32 %f2, [%rd6];
  add.f32 %f3, %f1, %f2;
  st.global.f32 [%rd7], %f3;
DONE:
  ret;
)";

const char* const matmul = R"(
  mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; and.b32 %r3, %r1, 15;
  shl.b32 %r4, %r2, 6; mul.wide.u32 %rd4, %r4, 4; add.s64 %rd5, %rd1, %rd4;
  mul.wide.u32 %rd6, %r3, 4; add.s64 %rd7, %rd2, %rd6;
  mov.f32 %f1, 0f00000000; mov.u32 %r5, 0;
LOOP:
  ld.global.f32 %f2, [%rd5]; ld.global.f32 %f3, [%rd7];
  fma.rn.f32 %f1, %f2, %f3, %f1;
  ld.global.f32 %f4, [%rd5+4]; ld.global.f32 %f5, [%rd7+64];
  fma.rn.f32 %f1, %f4, %f5, %f1;
  add.s64 %rd5, %rd5, 8; add.s64 %rd7, %rd7, 128;
  add.u32 %r5, %r5, 2; setp.lt.u32 %p1, %r5, 30;
  @%p1 bra LOOP;
  mov.u32 %r6, %ntid.x; mad.lo.u32 %r7, %r2, %r6, %r1; mul.wide.u32 %rd8, %r7, 4; add.s64 %rd9, %rd3, %rd8;
  st.global.f32 [%rd9], %f1;
  ret;
)";

const char* const reduction = R"(
  mov.u32 %r1, %tid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.y; mad.lo.u32 %r1, %r3, %r2, %r1;
  mul.wide.u32 %rd4, %r1, 4; add.s64 %rd5, %rd1, %rd4; ld.global.f32 %f1, [%rd5];
  shl.b32 %r4, %r1, 2; mov.u32 %r5, sums; add.u32 %r6, %r4, %r5; st.shared.f32 [%r6], %f1;
  bar.sync 0;
  mov.u32 %r7, 64;
LOOP:
  setp.ge.u32 %p1, %r1, %r7;
  @%p1 bra NEXT;
  shl.b32 %r8, %r7, 2; add.u32 %r9, %r6, %r8; ld.shared.f32 %f2, [%r9]; ld.shared.f32 %f3, [%r6];
  add.f32 %f3, %f3, %f2; st.shared.f32 [%r6], %f3;
NEXT:
  bar.sync 0;
  shr.u32 %r7, %r7, 1; setp.ne.u32 %p2, %r7, 0;
  @%p2 bra LOOP;
  add.s64 %rd6, %rd3, %rd4; ld.shared.f32 %f4, [%r6]; st.global.f32 [%rd6], %f4;
  ret;
)";

const char* const guards = R"(
  mov.u32 %r1, %tid.x; mov.u32 %r2, 0; mov.u32 %r3, 7;
  mul.wide.u32 %rd4, %r1, 4; add.s64 %rd5, %rd1, %rd4; add.s64 %rd6, %rd3, %rd4;
LOOP:
  and.b32 %r4, %r1, 3; setp.eq.u32 %p1, %r4, 1; setp.lt.u32 %p2, %r2, 3;
  @%p1 add.u32 %r3, %r3, %r2;
  @!%p1 ld.global.u32 %r5, [%rd5];
  @%p2 xor.b32 %r3, %r3, 5;
  @!%p2 ld.global.u32 %r6, [%rd1];
  @%p1 st.global.u32 [%rd6], %r3;
  @%p2 st.global.u32 [%rd3+2048], %r2;
  shfl.sync.bfly.b32 %r7, %r3, 1, 31, 0xffffffff;
  add.u32 %r3, %r3, %r7;
  add.u32 %r2, %r2, 1; setp.lt.u32 %p3, %r2, %r4; @%p3 bra LOOP;
  add.u32 %r3, %r3, %r5; add.u32 %r3, %r3, %r6; st.global.u32 [%rd6], %r3;
  ret;
)";

const char* const out_of_bounds = R"(
  mov.u32 %r1, %tid.x; mov.u32 %r2, 0; mul.wide.u32 %rd4, %r1, 4; add.s64 %rd5, %rd1, %rd4;
  add.s64 %rd6, %rd3, %rd4;
LOOP:
  ld.global.u32 %r3, [%rd5]; add.u32 %r4, %r3, %r2; st.global.u32 [%rd6], %r4;
  add.s64 %rd5, %rd5, 1024; add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 100; @%p1 bra LOOP;
  ret;
)";

const char* const vectors = R"(
  mov.u32 %r1, %tid.x; and.b32 %r1, %r1, 63; mul.wide.u32 %rd4, %r1, 16; add.s64 %rd5, %rd1, %rd4;
  add.s64 %rd6, %rd3, %rd4;
  ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd5];
  mul.f32 %f1, %f1, %f2; fma.rn.ftz.f32 %f3, %f3, %f4, %f1; min.f32 %f2, %f2, %f3;
  st.global.v4.f32 [%rd6], {%f4, %f3, %f2, %f1};
  ld.global.v2.u32 {%r2, %r3}, [%rd5+8]; mov.b64 %rd7, {%r2, %r3}; shl.b64 %rd7, %rd7, 3;
  mov.b64 {%r4, %r5}, %rd7; st.global.v2.u32 [%rd6+8], {%r5, %r4};
  ld.global.u8 %r6, [%rd5+1]; cvt.u64.u32 %rd8, %r6; add.s64 %rd9, %rd2, %rd8; st.global.u8 [%rd9], %r6;
  ld.global.nc.u16 %h1, [%rd5+2]; cvt.u32.u16 %r7, %h1; popc.b32 %r7, %r7; st.global.u32 [%rd6], %r7;
  mul.lo.u32 %r8, %r1, 13; and.b32 %r8, %r8, 63; mul.wide.u32 %rd8, %r8, 4; add.s64 %rd9, %rd1, %rd8;
  ld.global.u32 %r9, [%rd9]; add.s64 %rd9, %rd2, %rd8; st.global.u32 [%rd9], %r9;
  ret;
)";

std::vector<Case> cases() {
  std::vector<Case> all = {{"vecadd", vecadd},
                           {"matmul", matmul},
                           {"reduction", reduction, {{128}, {64, 2}}},
                           {"guards", guards},
                           {"vectors", vectors},
                           {"out_of_bounds", out_of_bounds},
                           {"out_of_fuel", matmul, {{128}, {16, 4}, {40}}, 1000, 60}};
  return all;
}

struct Outcome {
  std::string text; // refusal, failure
  Counters counters;
  std::vector<std::byte> memory;
  double seconds = 0;
};

std::string text_of(const Failure& failure) {
  return failure.message + " block " + std::to_string(failure.block.x) + " thread " + std::to_string(failure.thread.x) +
         "," + std::to_string(failure.thread.y) + " instruction " + std::to_string(failure.instruction.index());
}

Outcome run(const ir::Module& module, const Case& test, const Dimensions& block, Engine engine) {
  Outcome outcome;
  DeviceMemory memory;
  auto program = Program::load(module, memory);
  LaunchRequest request{.kernel = "k", .grid = {6}, .block = block, .host_threads = 1, .fuel = test.fuel};
  request.machines.set(EngineSetting{engine});
  request.parameters.resize(28);
  std::vector<uint64_t> buffers;
  for (unsigned i = 0; i < 3; ++i) {
    buffers.push_back(*memory.allocate(8192, "buffer" + std::to_string(i)));
    std::vector<float> values(2048);
    for (size_t j = 0; j < values.size(); ++j)
      values[j] = static_cast<float>(j % 97) * 0.37f - static_cast<float>(i);
    if (i < 2) (void)memory.write(buffers[i], std::as_bytes(std::span(values)));
    std::memcpy(request.parameters.data() + 8 * i, &buffers[i], 8);
  }
  std::memcpy(request.parameters.data() + 24, &test.n, 4);
  for (int round = 0; round < 2; ++round) {
    auto result = (*program)->launch(request);
    if (!result) {
      outcome.text = result.error().message;
      return outcome;
    }
    outcome.counters = std::move(result->counters);
    if (result->failure) outcome.text = text_of(*result->failure);
  }
  for (uint64_t buffer : buffers) {
    std::vector<std::byte> bytes(8192);
    (void)memory.read(buffer, bytes);
    outcome.memory.insert(outcome.memory.end(), bytes.begin(), bytes.end());
  }
  return outcome;
}

std::string difference(const Outcome& a, const Outcome& b) {
  if (a.text != b.text) return "'" + a.text + "' and '" + b.text + "'";
  for (size_t i = 0; i < a.memory.size(); ++i)
    if (a.memory[i] != b.memory[i]) return "memory differs at byte " + std::to_string(i);
  if (a.counters.warp_instructions != b.counters.warp_instructions ||
      a.counters.thread_instructions != b.counters.thread_instructions)
    return "executed instructions differ: " + std::to_string(a.counters.warp_instructions) + ", " +
           std::to_string(a.counters.thread_instructions) + " and " + std::to_string(b.counters.warp_instructions) +
           ", " + std::to_string(b.counters.thread_instructions);
  for (size_t f = 0; f < a.counters.functions.size(); ++f)
    for (size_t i = 0; i < a.counters.functions[f].instructions.size(); ++i) {
      const InstructionCounters &x = a.counters.functions[f].instructions[i],
                                &y = b.counters.functions[f].instructions[i];
      if (x.executions != y.executions || x.lanes != y.lanes || x.guarded_off != y.guarded_off)
        return "counters of instruction " + std::to_string(i) + " differ";
    }
  return {};
}

} // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::string(argv[1]) == "--verbose")
    start_logging("debug"); // reports what was compiled, and the time it took
  if (const std::string reason = why_no_generator(); !reason.empty()) {
    std::printf("skipped: %s\n", reason.c_str());
    return 77;
  }
  int failures = 0;
  for (const std::string& pattern : unknown_generator_rows()) {
    std::printf("the row '%s' names no operation, or several with different numbers of sources\n", pattern.c_str());
    ++failures;
  }
  for (const Case& test : cases()) {
    const std::string text =
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 a, .param .u64 b,"
        " .param .u64 c, .param .u32 n)\n{\n.reg .b32 %r<20>; .reg .b64 %rd<20>; .reg .f32 %f<20>;"
        ".reg .b16 %h<8>; .reg .pred %p<8>; .shared .align 16 .b8 sums[4096];\n"
        "ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.param.u64 %rd3, [c];"
        "ld.param.u32 %r0, [n];\n" +
        std::string(test.body) + "\n}\n";
    Diagnostics diagnostics;
    auto module = grammar::read_module(SourceFile("test.ptx", text), diagnostics);
    if (!module) {
      std::printf("%s: cannot be read: %s\n", test.name, diagnostics.list()[0].message.c_str());
      return 1;
    }
    for (const Dimensions& block : test.blocks) {
      const Outcome interpreted = run(*module, test, block, Engine::interpreter);
      const Outcome generated = run(*module, test, block, Engine::generated);
      const std::string wrong = difference(interpreted, generated);
      if (wrong.empty()) continue;
      std::printf("%s, blocks of %u x %u: %s\n", test.name, block.x, block.y, wrong.c_str());
      ++failures;
    }
  }
  std::printf("%d rows and launches are wrong\n", failures);
  return failures ? 1 : 0;
}
