// How much work quick code is, by count: bytes of machine code for an instruction, whatever the kernel's length, and
// nothing that LLVM compiles; and where it lies.
//
//   code_work
//
// Exit code 77: there is no LLVM, or quick code is LLVM's on this processor.
#include "emulator/generated/x86/code_memory.h"
#include "grammar/reader.h"
#include "tests/engines/engine_run.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

namespace ptxrewrite::test {
namespace {

using emulator::CodeTier;

// The work of the most frequent instructions, in a row.
std::string some_work(int i) {
  const std::string at = std::to_string(i % 64 * 4), number = std::to_string(i);
  return "add.s32 %r3, %r3, " + number + "; mul.lo.s32 %r4, %r3, %r2; xor.b32 %r3, %r3, %r4;\n" +
         "cvt.rn.f32.s32 %f1, %r3; fma.rn.f32 %f2, %f1, %f2, %f1; mul.wide.s32 %rd2, %r2, 4;\n" +
         "add.s64 %rd3, %rd1, %rd2; ld.global.f32 %f3, [%rd3+" + at + "]; add.f32 %f2, %f2, %f3;\n" +
         "setp.lt.s32 %p1, %r3, " + number + "; selp.b32 %r3, %r3, %r4, %p1; add.f64 %d1, %d1, %d2;\n";
}
constexpr int instructions_of_work = 12;

std::string straight(int length) {
  std::string text;
  for (int i = 0; i < length; i += instructions_of_work)
    text += some_work(i);
  return text;
}
std::string blocks(int length) {
  std::string text;
  for (int i = 0; i < length; i += instructions_of_work + 2) {
    const std::string label = "B" + std::to_string(i);
    text += "setp.eq.s32 %p2, %r3, " + std::to_string(i) + "; @%p2 bra " + label + ";\n" + some_work(i) + label + ":\n";
  }
  return text;
}
std::string loops(int length) {
  std::string text;
  for (int i = 0; i < length; i += instructions_of_work + 4) {
    const std::string label = "L" + std::to_string(i);
    text += "mov.u32 %r5, 0;\n" + label + ":\n" + some_work(i) +
            "add.u32 %r5, %r5, 1; setp.lt.u32 %p2, %r5, 2; @%p2 bra " + label + ";\n";
  }
  return text;
}

std::unique_ptr<ir::Module> module_of(const std::string& body) {
  Diagnostics diagnostics;
  return grammar::read_module(SourceFile("work.ptx", ".version 8.0\n.target sm_80\n.address_size 64\n"
                                                     ".visible .entry k(.param .u64 data)\n{\n"
                                                     ".reg .b32 %r<8>; .reg .b64 %rd<4>; .reg .f32 %f<4>;\n"
                                                     ".reg .f64 %d<4>; .reg .pred %p<4>;\n"
                                                     "ld.param.u64 %rd1, [data]; mov.u32 %r2, %tid.x;\n" +
                                                         body + "st.global.u32 [%rd1], %r3;\nret;\n}\n"),
                              diagnostics);
}

// Nothing: it cannot be decoded.
std::optional<emulator::CompileCost> cost_of(const ir::Module& module) {
  emulator::DeviceMemory memory(uint64_t(1) << 30);
  auto program = emulator::Program::load(module, memory);
  if (!program) return std::nullopt;
  auto image = (*program)->decoded("k");
  return image ? emulator::compile_cost(**image, CodeTier::quick) : std::nullopt;
}

struct Kind {
  const char* name;
  std::function<std::string(int)> body;
  double most_bytes; // of machine code per PTX instruction; the bound is above the 212 to 224 bytes measured
};

int test(const Kind& kind) {
  double before = 0;
  int wrong = 0;
  for (const int length : {1'000, 16'000}) {
    const auto module = module_of(kind.body(length));
    const auto cost = module ? cost_of(*module) : std::nullopt;
    if (!cost || cost->instructions < static_cast<uint64_t>(length) * 3 / 4) {
      std::printf("%s: no code\n", kind.name);
      return 1;
    }
    const double bytes = static_cast<double>(cost->code_bytes) / static_cast<double>(cost->instructions);
    const bool is_flat = before == 0 || bytes < before * 1.05;
    std::printf("%s of %llu instructions: %.0f bytes of code for each, in %llu functions%s\n", kind.name,
                static_cast<unsigned long long>(cost->instructions), bytes,
                static_cast<unsigned long long>(cost->functions), is_flat ? "" : ": more than for a short one");
    wrong += !is_flat || bytes > kind.most_bytes || bytes < 16;
    before = bytes;
  }
  return wrong;
}

// A launch: every micro-operation is written once, and LLVM has nothing to do.
int test_launch() {
  const auto module = module_of(straight(1'000));
  emulator::DeviceMemory memory(uint64_t(1) << 30);
  auto program = emulator::Program::load(*module, memory);
  auto data = memory.allocate(4096, "data");
  if (!program || !data) return 1;
  emulator::LaunchRequest request;
  request.kernel = "k";
  request.block = {32};
  request.grid = {8};
  request.host_threads = 1;
  request.parameters.resize(8);
  std::memcpy(request.parameters.data(), &*data, 8);
  request.machines.set(emulator::EngineSetting{emulator::Engine::generated, {}, CodeTier::quick});
  EngineRun run;
  const UsesEngine counted(emulator::default_engine());
  take_result((*program)->launch(request), run);
  const emulator::CodeWork& work = emulator::code_work(CodeTier::quick);
  std::printf("a launch: %llu micro-operations, %llu bytes, %llu modules of LLVM; %llu warp instructions by code%s\n",
              static_cast<unsigned long long>(work.micro_operations), static_cast<unsigned long long>(work.code_bytes),
              static_cast<unsigned long long>(work.modules), static_cast<unsigned long long>(counted.generated()),
              run.failure.c_str());
  const bool once = work.micro_operations >= 1'000 && work.micro_operations < 3'000;
  return !once || work.modules != 0 || counted.generated() < 4'000 || !run.failure.empty() || !run.refused.empty();
}

// Short codes that follow each other do not compete for the same sets of an instruction cache of 4 KB a way: ten of 640
// bytes take 100 lines, so none of the 64 sets has more than two of them.
int test_places() {
  constexpr size_t sets = 64, line = 64, bytes = 640;
  std::vector<emulator::generated::CodeMemory> codes;
  int used[sets] = {}, wrong = 0;
  for (int i = 0; i < 10; ++i) {
    codes.emplace_back(std::vector<uint8_t>(bytes, static_cast<uint8_t>(i)));
    const auto* start = static_cast<const uint8_t*>(codes.back().start());
    if (!start) return 1;
    for (size_t at = 0; at < bytes; at += line)
      ++used[reinterpret_cast<uintptr_t>(start + at) / line % sets];
  }
  for (size_t i = 0; i < codes.size(); ++i) {
    const auto* start = static_cast<const uint8_t*>(codes[i].start());
    wrong += !std::all_of(start, start + bytes, [&](uint8_t byte) { return byte == i; });
  }
  const int most = *std::max_element(std::begin(used), std::end(used));
  std::printf("places: at most %d lines of ten codes in a set; %d with other bytes\n", most, wrong);
  return wrong + (most > 2);
}

int run() {
  if (!has_generator() || !emulator::has_own_encoder()) return 77;
  int wrong = test_launch() + test_places();
  for (const Kind& kind : {Kind{"straight code", straight, 240}, {"blocks", blocks, 240}, {"loops", loops, 240}})
    wrong += test(kind);
  return wrong != 0;
}

} // namespace
} // namespace ptxrewrite::test

int main() {
  return ptxrewrite::test::run();
}
