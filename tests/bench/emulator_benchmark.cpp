// Speed of the emulator: thread instructions per second on whole kernels, and nanoseconds per warp instruction by
// class.
//
//   emulator_benchmark [--engine ENGINE] kernel LAUNCH_FILE SIZE KERNEL [ROUNDS]
//       one launch of the plan, on 1 and on 2 host threads
//   emulator_benchmark [--engine ENGINE] classes [TURNS] [NAME]
//       one instruction at a time, in a loop of TURNS turns; only classes whose name contains NAME
//   emulator_benchmark compile quick|portable|full PTX_FILE...
//       what making code of all kernels of each file costs, in processor time
// ENGINE: auto, interpreter, generated; quick, full: code of that tier alone.
//
// Times cover only the launch (buffers are filled, and results written once, before), the best of the rounds, which
// alternate between 1 and 2 threads. Peak memory is that of the process without the buffers.
#include "cuda/session.h"
#include "emulator/core/engine.h"
#include "grammar/reader.h"
#include "launch/launch_file.h"
#include "support/file_io.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <sys/resource.h>

namespace {

using namespace ptxrewrite;

double peak_megabytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

int complain(const std::string& message) {
  std::fprintf(stderr, "emulator_benchmark: %s\n", message.c_str());
  return 1;
}

std::unique_ptr<ir::Module> read(const std::string& name, std::string text) {
  Diagnostics diagnostics;
  return grammar::read_module(SourceFile(name, std::move(text)), diagnostics);
}

int bench_kernel(const std::string& path, const std::string& size, const std::string& kernel, int rounds) {
  Result<std::string> text = read_file(path);
  if (!text) return complain(text.error().message);
  Diagnostics diagnostics;
  SourceFile source(path, *text);
  auto file = launch::read_launch_file(source, diagnostics);
  auto plan = file ? launch::make_plan(*file, {.size = size, .target = {}}, diagnostics) : std::nullopt;
  if (!plan) return complain(diagnostics.list().empty() ? "no plan" : render(diagnostics.list()[0], source));
  Result<std::string> ptx = read_file(plan->ptx);
  auto module = ptx ? read(plan->ptx, *ptx) : nullptr;
  if (!module) return complain("cannot read " + plan->ptx);
  double bytes = 0;
  for (const launch::Buffer& buffer : plan->buffers)
    bytes += static_cast<double>(buffer.bytes());
  std::erase_if(plan->launches, [&](const launch::Launch& launch) { return launch.kernel != kernel; });
  if (plan->launches.empty()) return complain("no launch of " + kernel);
  plan->launches.resize(1);
  plan->launches.push_back(plan->launches[0]); // the first launch allocates the memory that kernels write
  double best[2] = {1e9, 1e9};
  emulator::Counters counters;
  for (int round = 0; round < rounds; ++round)
    for (unsigned threads = 1; threads <= 2; ++threads) {
      auto device = cuda::make_emulator_device({.host_threads = threads});
      auto result = cuda::run_plan(*plan, *module, *device);
      if (!result) return complain(result.error().message);
      if (result->failed_launch) return complain(result->runs.back().failure->message);
      best[threads - 1] = std::min(best[threads - 1], result->runs[1].seconds);
      counters = std::move(result->runs[1].counters);
    }
  const double millions = static_cast<double>(counters.thread_instructions) * 1e-6;
  std::printf(
      "%-28s %-11s %9.1f M instructions  %7.0f M/s on 1 core  %5.2f ns per warp instruction  %4.2fx on 2 cores  "
      "peak memory %.0f MB = buffers %.0f MB + %.0f MB\n",
      kernel.c_str(), emulator::word_of(emulator::default_engine()).c_str(), millions, millions / best[0],
      best[0] * 1e9 / static_cast<double>(counters.warp_instructions), best[0] / best[1], peak_megabytes(),
      bytes / 1048576, peak_megabytes() - bytes / 1048576);
  return 0;
}

struct InstructionClass {
  const char* name;
  std::string instruction;    // written `copies` times in the loop
  unsigned instructions = 1;  // executed by a warp for it
  unsigned multiply_adds = 0; // of a matrix product
  unsigned warps = 1;         // that execute it together
  const char* target = "sm_90";
  std::string before, after; // the loop
};

// A wgmma with 128 columns that is waited for; its sums are the registers from 50 on.
std::string group_product(const std::string& form, char registers, const std::string& operands,
                          const std::string& sparse = "") {
  std::string text = "wgmma.fence.sync.aligned; wgmma.mma_async" + sparse + ".sync.aligned." + form + " {";
  for (int i = 0; i < 64; ++i)
    text += (i ? ", %" : "%") + std::string(1, registers) + std::to_string(50 + i);
  return text + "}, " + operands + "; wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;";
}

// A tcgen05.mma of 128 rows and columns, issued by one lane. `types`: of sums, A and B in the instruction descriptor.
// `scales`: their columns in tensor memory, for block-scaled kinds.
InstructionClass tensor_product(const char* name, const std::string& kind, uint32_t types, unsigned k,
                                const std::string& scales = "") {
  constexpr uint32_t size = 128;
  InstructionClass row{name, "@%p1 tcgen05.mma.cta_group::1.kind::" + kind + " [%r35], %rd13, %rd13, %r36" + scales +
                                 ", %p1;"};
  row.multiply_adds = size * size * k;
  row.target = "sm_100a";
  const uint32_t rows = scales.empty() ? size / 16 << 24 : size / 128 << 27;
  row.before = "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r8], 256; ld.shared.b32 %r35, [%r8];\n"
               "or.b64 %rd13, %rd12, 0x400000000000; setp.eq.u32 %p1, %r9, 0; mov.b32 %r36, " +
               std::to_string(types | size / 8 << 17 | rows) +
               ";\n"
               "add.u32 %r37, %r35, 128;\n";
  row.after = "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r35, 256;\n";
  return row;
}

// The same with a sparse A, whose metadata are all alike: the first two of four elements are stored.
InstructionClass sparse_tensor_product(const char* name, const std::string& kind, uint32_t types, unsigned stored) {
  constexpr uint32_t is_sparse = 1 << 2;
  InstructionClass row = tensor_product(name, kind, types | is_sparse, stored);
  row.instruction = "@%p1 tcgen05.mma.sp.cta_group::1.kind::" + kind + " [%r35], %rd13, %rd13, [%r37], %r36, %p1;";
  row.before += "mov.b32 %r38, 0x44444444; tcgen05.st.sync.aligned.32x32b.x8.b32 [%r37], "
                "{%r38, %r38, %r38, %r38, %r38, %r38, %r38, %r38}; tcgen05.wait::st.sync.aligned;\n";
  return row;
}

// %r10-12 hold pairs of f16 near one; %r1-3, %rd1-3, %f1-3, %d1-3, %h1-2 (b16), %p1-2 hold any values; %rd4 and %r4 are
// each lane's address in global and shared memory, %rd5 and %r5 scattered ones, %rd8 and %r13 two rows of 16 elements,
// %rd9 one element for each of these rows; %r14 is the address of a row of 16 bytes.
const InstructionClass classes[] = {
    {"add.u32", "add.u32 %r1, %r1, %r2;"},
    {"mul.lo.u32", "mul.lo.u32 %r1, %r1, %r2;"},
    {"mad.lo.u32", "mad.lo.u32 %r1, %r1, %r2, %r3;"},
    {"mul.wide.u32", "mul.wide.u32 %rd1, %r1, %r2;"},
    {"add.u64", "add.u64 %rd1, %rd1, %rd2;"},
    {"mul.lo.u64", "mul.lo.u64 %rd1, %rd1, %rd2;"},
    {"div.u32", "div.u32 %r1, %r2, %r3;"},
    {"shl.b32", "shl.b32 %r1, %r1, 3;"},
    {"lop3.b32", "lop3.b32 %r1, %r1, %r2, %r3, 0x96;"},
    {"prmt.b32", "prmt.b32 %r1, %r1, %r2, 0x5410;"},
    {"setp.lt.s32", "setp.lt.s32 %p1, %r1, %r2;"},
    {"selp.b32", "selp.b32 %r1, %r1, %r2, %p1;"},
    {"mov.b32", "mov.b32 %r1, %r2;"},
    {"cvt.rn.f32.s32", "cvt.rn.f32.s32 %f1, %r1;"},
    {"add.f32", "add.f32 %f1, %f1, %f2;"},
    {"fma.rn.f32", "fma.rn.f32 %f1, %f1, %f2, %f3;"},
    {"fma.rn.ftz.f32", "fma.rn.ftz.f32 %f1, %f1, %f2, %f3;"},
    {"div.rn.f32", "div.rn.f32 %f1, %f2, %f3;"},
    {"sqrt.approx.f32", "sqrt.approx.f32 %f1, %f2;"},
    {"ex2.approx.f32", "ex2.approx.f32 %f1, %f2;"},
    {"sin.approx.f32", "sin.approx.f32 %f1, %f2;"},
    {"fma.rn.f64", "fma.rn.f64 %d1, %d1, %d2, %d3;"},
    {"fma.rn.f16x2", "fma.rn.f16x2 %r10, %r10, %r11, %r12;"},
    {"ld.global.f32, neighbours", "ld.global.f32 %f1, [%rd4];"},
    {"ld.global.f32, scattered", "ld.global.f32 %f1, [%rd5];"},
    {"ld.global.v4.f32", "ld.global.v4.f32 {%f1, %f4, %f5, %f6}, [%rd6];"},
    {"st.global.f32, neighbours", "st.global.f32 [%rd4], %f2;"},
    {"ld.shared.f32, neighbours", "ld.shared.f32 %f1, [%r4];"},
    {"ld.shared.f32, scattered", "ld.shared.f32 %f1, [%r5];"},
    {"atom.global.add.u32", "red.global.add.u32 [%rd4], %r2;"},
    {"ld.global.f32, two rows", "ld.global.f32 %f1, [%rd8];"},
    {"ld.global.f32, one of a row", "ld.global.f32 %f1, [%rd9];"},
    {"ld.shared.f32, two rows", "ld.shared.f32 %f1, [%r13];"},
    {"ld.f32 (generic)", "ld.f32 %f1, [%rd4];"},
    {"ld.local.u32", "ld.local.u32 %r1, [%r15];"},
    {"st.local.u32", "st.local.u32 [%r15], %r1;"},
    {"guarded ld.global.f32", "@%p2 ld.global.f32 %f1, [%rd4];"},
    {"st.global.f32, scattered", "st.global.f32 [%rd5], %f2;"},
    {"st.global.f32, two rows", "st.global.f32 [%rd8], %f2;"},
    {"st.global.v4.f32", "st.global.v4.f32 [%rd6], {%f1, %f4, %f5, %f6};"},
    {"ld.global.v4, all scattered", "ld.global.v4.f32 {%f1, %f4, %f5, %f6}, [%rd10];"},
    {"shfl.sync.bfly", "shfl.sync.bfly.b32 %r1, %r1, 1, 31, 0xffffffff;"},
    {"shfl.sync.down", "shfl.sync.down.b32 %r1, %r1, 4, 31, 0xffffffff;"},
    {"shfl.sync.idx, any lanes", "shfl.sync.idx.b32 %r1, %r1, %r7, 31, 0xffffffff;"},
    {"vote.sync.ballot", "vote.sync.ballot.b32 %r1, %p1, 0xffffffff;"},
    {"redux.sync.add", "redux.sync.add.u32 %r1, %r2, 0xffffffff;"},
    {"match.any.sync", "match.any.sync.b32 %r1, %r11, 0xffffffff;"},
    {"atom.shared.add.u32", "atom.shared.add.u32 %r1, [%r4], %r2;"},
    {"atom.global.add.f32", "atom.global.add.f32 %f4, [%rd4], %f2;"},
    {"atom.global.cas.b32", "atom.global.cas.b32 %r1, [%rd4], %r2, %r3;"},
    {"call of a function",
     "{ .param .b32 a; .param .b32 b; st.param.b32 [a], %r1; call.uni (b), f, (a); "
     "ld.param.b32 %r1, [b]; }",
     7},
    {"ldmatrix.x4", "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r20, %r21, %r22, %r23}, [%r14];"},
    {"ldmatrix.x4.trans", "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%r20, %r21, %r22, %r23}, [%r14];"},
    {"stmatrix.x4", "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%r14], {%r20, %r21, %r22, %r23};"},
    {"movmatrix", "movmatrix.sync.aligned.m8n8.trans.b16 %r20, %r21;"},
    {"mma.m16n8k16 f16, f32",
     "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f10, %f11, %f12, %f13}, "
     "{%r24, %r25, %r26, %r27}, {%r28, %r29}, {%f10, %f11, %f12, %f13};",
     1, 2048},
    {"mma.m16n8k16 f16, f16",
     "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%r30, %r31}, "
     "{%r24, %r25, %r26, %r27}, {%r28, %r29}, {%r30, %r31};",
     1, 2048},
    {"mma.m16n8k8 f16, f32",
     "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f10, %f11, %f12, %f13}, "
     "{%r24, %r25}, {%r28}, {%f10, %f11, %f12, %f13};",
     1, 1024},
    {"mma.m16n8k16 bf16",
     "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f10, %f11, %f12, %f13}, "
     "{%r24, %r25, %r26, %r27}, {%r28, %r29}, {%f10, %f11, %f12, %f13};",
     1, 2048},
    {"mma.m16n8k8 tf32",
     "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f10, %f11, %f12, %f13}, "
     "{%r24, %r25, %r26, %r27}, {%r28, %r29}, {%f10, %f11, %f12, %f13};",
     1, 1024},
    {"mma.m16n8k32 e4m3",
     "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%f10, %f11, %f12, %f13}, "
     "{%r24, %r25, %r26, %r27}, {%r28, %r29}, {%f10, %f11, %f12, %f13};",
     1, 4096},
    {"mma.m16n8k32 s8",
     "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%r30, %r31, %r32, %r33}, "
     "{%r24, %r25, %r26, %r27}, {%r28, %r29}, {%r30, %r31, %r32, %r33};",
     1, 4096},
    {"mma.m16n8k64 s4",
     "mma.sync.aligned.m16n8k64.row.col.s32.s4.s4.s32 {%r30, %r31, %r32, %r33}, "
     "{%r24, %r25, %r26, %r27}, {%r28, %r29}, {%r30, %r31, %r32, %r33};",
     1, 8192},
    {"mma.m16n8k256 b1",
     "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.xor.popc {%r30, %r31, %r32, %r33}, "
     "{%r24, %r25, %r26, %r27}, {%r28, %r29}, {%r30, %r31, %r32, %r33};",
     1, 32768},
    {"mma.m8n8k4 f64", "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%d4, %d5}, {%d1}, {%d2}, {%d4, %d5};", 1, 256},
    {"wmma.m16n16k16 f16, f32",
     "wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32 {%f10, %f11, %f12, %f13, %f14, %f15, %f16, %f17}, "
     "{%r24, %r25, %r26, %r27, %r24, %r25, %r26, %r27}, {%r24, %r25, %r26, %r27, %r24, %r25, %r26, %r27}, "
     "{%f10, %f11, %f12, %f13, %f14, %f15, %f16, %f17};",
     1, 4096},
    {"mma.sp.m16n8k32 f16",
     "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {%f10, %f11, %f12, %f13}, "
     "{%r24, %r25, %r26, %r27}, {%r24, %r25, %r28, %r29}, {%f10, %f11, %f12, %f13}, %r16, 0x0;",
     1, 2048},
    {"mma.m16n8k32 mxf8f6f4",
     "mma.sync.aligned.kind::mxf8f6f4.block_scale.scale_vec::1X.m16n8k32.row.col.f32.e4m3.e4m3.f32.ue8m0 "
     "{%f10, %f11, %f12, %f13}, {%r24, %r25, %r26, %r27}, {%r28, %r29}, {%f10, %f11, %f12, %f13}, "
     "%r34, {0, 0}, %r34, {0, 0};",
     1, 4096, 1, "sm_120a"},
    {"mma.m16n8k64 mxf4nvf4",
     "mma.sync.aligned.kind::mxf4nvf4.block_scale.scale_vec::4X.m16n8k64.row.col.f32.e2m1.e2m1.f32.ue4m3 "
     "{%f10, %f11, %f12, %f13}, {%r24, %r25, %r26, %r27}, {%r28, %r29}, {%f10, %f11, %f12, %f13}, "
     "%r35, {0, 0}, %r35, {0, 0};",
     1, 8192, 1, "sm_120a"},
    {"mma.m16n8k64 mxf4",
     "mma.sync.aligned.kind::mxf4.block_scale.scale_vec::2X.m16n8k64.row.col.f32.e2m1.e2m1.f32.ue8m0 "
     "{%f10, %f11, %f12, %f13}, {%r24, %r25, %r26, %r27}, {%r28, %r29}, {%f10, %f11, %f12, %f13}, "
     "%r34, {0, 0}, %r34, {0, 0};",
     1, 8192, 1, "sm_120a"},
    {"mma.sp.m16n8k128 mxf4nvf4",
     "mma.sp::ordered_metadata.sync.aligned.kind::mxf4nvf4.block_scale.scale_vec::4X.m16n8k128.row.col.f32.e2m1.e2m1."
     "f32.ue4m3 {%f10, %f11, %f12, %f13}, {%r24, %r25, %r26, %r27}, {%r28, %r29, %r28, %r29}, "
     "{%f10, %f11, %f12, %f13}, %r16, 0x0, %r35, {0, 0}, %r35, {0, 0};",
     1, 8192, 1, "sm_120a"},
    {"mma.sp.m16n8k64 mxf8f6f4",
     "mma.sp::ordered_metadata.sync.aligned.kind::mxf8f6f4.block_scale.scale_vec::1X.m16n8k64.row.col.f32.e4m3.e4m3."
     "f32.ue8m0 {%f10, %f11, %f12, %f13}, {%r24, %r25, %r26, %r27}, {%r28, %r29, %r28, %r29}, "
     "{%f10, %f11, %f12, %f13}, %r16, 0x0, %r34, {0, 0}, %r34, {0, 0};",
     1, 4096, 1, "sm_120a"},
    {"mma.m16n8k32 e2m3 e3m2",
     "mma.sync.aligned.kind::f8f6f4.m16n8k32.row.col.f32.e2m3.e3m2.f32 {%f10, %f11, %f12, %f13}, "
     "{%r24, %r25, %r26, %r27}, {%r28, %r29}, {%f10, %f11, %f12, %f13};",
     1, 4096, 1, "sm_120a"},
    {"mma.sp.m16n8k64 s8",
     "mma.sp.sync.aligned.m16n8k64.row.col.s32.s8.s8.s32 {%r30, %r31, %r32, %r33}, "
     "{%r24, %r25, %r26, %r27}, {%r24, %r25, %r28, %r29}, {%r30, %r31, %r32, %r33}, %r16, 0x0;",
     1, 4096},
    {"mma.sp.m16n8k128 s4",
     "mma.sp.sync.aligned.m16n8k128.row.col.s32.s4.s4.s32 {%r30, %r31, %r32, %r33}, "
     "{%r24, %r25, %r26, %r27}, {%r24, %r25, %r28, %r29}, {%r30, %r31, %r32, %r33}, %r16, 0x0;",
     1, 8192},
    {"mma.sp.m16n8k64 e4m3",
     "mma.sp.sync.aligned.m16n8k64.row.col.f32.e4m3.e4m3.f32 {%f10, %f11, %f12, %f13}, "
     "{%r24, %r25, %r26, %r27}, {%r24, %r25, %r28, %r29}, {%f10, %f11, %f12, %f13}, %r16, 0x0;",
     1, 4096, 1, "sm_89"},
    {"mma.sp.m16n8k16 tf32",
     "mma.sp.sync.aligned.m16n8k16.row.col.f32.tf32.tf32.f32 {%f10, %f11, %f12, %f13}, "
     "{%r24, %r25, %r26, %r27}, {%r24, %r25, %r28, %r29}, {%f10, %f11, %f12, %f13}, %r16, 0x0;",
     1, 1024},
    {"mma.m8n8k16 s8", "mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%r30, %r31}, {%r24}, {%r28}, {%r30, %r31};", 1,
     1024},
    {"mma.m8n8k4 f16",
     "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 {%f10, %f11, %f12, %f13, %f14, %f15, %f16, %f17}, "
     "{%r24, %r25}, {%r28, %r29}, {%f10, %f11, %f12, %f13, %f14, %f15, %f16, %f17};",
     1, 1024},
    {"wmma.m16n16k16 s8",
     "wmma.mma.sync.aligned.row.col.m16n16k16.s32.s8.s8.s32 {%r36, %r37, %r38, %r39, %r40, %r41, %r42, %r43}, "
     "{%r24, %r25}, {%r26, %r27}, {%r36, %r37, %r38, %r39, %r40, %r41, %r42, %r43};",
     1, 4096},
    {"wmma.m8n8k4 f64", "wmma.mma.sync.aligned.row.col.m8n8k4.f64.f64.f64.f64 {%d4, %d5}, {%d1}, {%d2}, {%d4, %d5};", 1,
     256},
    {"wgmma.m64n128k16 bf16", group_product("m64n128k16.f32.bf16.bf16", 'f', "%rd12, %rd12, 1, 1, 1, 0, 0"), 1,
     64 * 128 * 16, 4, "sm_90a"},
    {"wgmma.m64n128k8 tf32", group_product("m64n128k8.f32.tf32.tf32", 'f', "%rd12, %rd12, 1, 1, 1"), 1, 64 * 128 * 8, 4,
     "sm_90a"},
    {"wgmma.m64n128k256 b1", group_product("m64n128k256.s32.b1.b1.and.popc", 'r', "%rd12, %rd12, 1"), 1, 64 * 128 * 256,
     4, "sm_90a"},
    {"wgmma.sp.m64n128k32 f16",
     group_product("m64n128k32.f32.f16.f16", 'f', "%rd12, %rd12, %r16, 0, 1, 1, 1, 0, 0", ".sp"), 1, 64 * 128 * 16, 4,
     "sm_90a"},
    {"wgmma.sp.m64n128k64 e4m3",
     group_product("m64n128k64.f32.e4m3.e4m3", 'f', "%rd12, %rd12, %r16, 0, 1, 1, 1", ".sp"), 1, 64 * 128 * 32, 4,
     "sm_90a"},
    {"wgmma.sp.m64n128k64 s8", group_product("m64n128k64.s32.s8.s8", 'r', "%rd12, %rd12, %r16, 0, 1", ".sp"), 1,
     64 * 128 * 32, 4, "sm_90a"},
    tensor_product("tcgen05.mma m128n128k8 tf32", "tf32", 1 << 4 | 2 << 7 | 2 << 10, 8),
    {"wgmma.m64n128k16 f16", group_product("m64n128k16.f32.f16.f16", 'f', "%rd12, %rd12, 1, 1, 1, 0, 0"), 1,
     64 * 128 * 16, 4, "sm_90a"},
    {"wgmma.m64n128k32 e4m3", group_product("m64n128k32.f32.e4m3.e4m3", 'f', "%rd12, %rd12, 1, 1, 1"), 1, 64 * 128 * 32,
     4, "sm_90a"},
    {"wgmma.m64n128k32 s8", group_product("m64n128k32.s32.s8.s8", 'r', "%rd12, %rd12, 1"), 1, 64 * 128 * 32, 4,
     "sm_90a"},
    tensor_product("tcgen05.mma m128n128k16 f16", "f16", 1 << 4, 16),
    tensor_product("tcgen05.mma m128n128k32 e4m3", "f8f6f4", 1 << 4, 32),
    tensor_product("tcgen05.mma m128n128k32 s8", "i8", 2 << 4 | 1 << 7 | 1 << 10, 32),
    tensor_product("tcgen05.mma m128n128k32 mxf8", "mxf8f6f4.block_scale.scale_vec::1X", 1 << 23, 32,
                   ", [%r37], [%r37]"),
    tensor_product("tcgen05.mma m128n128k64 mxf4", "mxf4.block_scale.scale_vec::2X", 1 << 23 | 1 << 7 | 1 << 10, 64,
                   ", [%r37], [%r37]"),
    sparse_tensor_product("tcgen05.mma.sp m128n128k32 f16", "f16", 1 << 4, 16),
    sparse_tensor_product("tcgen05.mma.sp m128n128k64 e4m3", "f8f6f4", 1 << 4, 32),
    {"mma.m16n8k16 f64",
     "mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%d10, %d11, %d12, %d13}, "
     "{%d1, %d2, %d3, %d1, %d2, %d3, %d1, %d2}, {%d1, %d2, %d3, %d1}, {%d10, %d11, %d12, %d13};",
     1, 2048},
    {"bar.sync", "bar.sync 0;"},
    {"guarded add", "@%p2 add.u32 %r1, %r1, %r2;"},
};
constexpr int copies = 50;

std::string kernel_text(const InstructionClass& row, int copies_to_write, int turns) {
  std::string text = ".version 8.8\n.target " + std::string(row.target) +
                     "\n.address_size 64\n"
                     ".func (.param .b32 r) f(.param .b32 a)\n{\n.reg .b32 %x; ld.param.b32 %x, [a]; "
                     "add.u32 %x, %x, 1; st.param.b32 [r], %x; ret;\n}\n"
                     ".visible .entry k(.param .u64 data)\n{\n"
                     ".reg .b32 %r<120>; .reg .b64 %rd<14>; .reg .f32 %f<120>; .reg .f64 %d<14>; .reg .b16 %h<4>;\n"
                     ".reg .pred %p<4>; .shared .align 16 .b8 s[8192]; .local .align 16 .b8 own[64];\n"
                     "ld.param.u64 %rd6, [data]; mov.u32 %r9, %tid.x; mul.wide.u32 %rd7, %r9, 4;\n"
                     "add.u64 %rd4, %rd6, %rd7; shl.b32 %r4, %r9, 2; mov.u32 %r8, s; add.u32 %r4, %r4, %r8;\n"
                     "mul.lo.u32 %r7, %r9, 13; and.b32 %r7, %r7, 31; shl.b32 %r7, %r7, 2; add.u32 %r5, %r7, %r8;\n"
                     "mul.wide.u32 %rd7, %r7, 1; add.u64 %rd5, %rd6, %rd7; shl.b32 %r7, %r9, 4;\n"
                     "mul.wide.u32 %rd7, %r7, 1; add.u64 %rd6, %rd6, %rd7;\n"
                     "mov.u32 %r1, %r9; add.u32 %r2, %r9, 77; add.u32 %r3, %r9, 5; mul.wide.u32 %rd1, %r9, 3;\n"
                     "add.u64 %rd2, %rd1, 7; add.u64 %rd3, %rd1, 9; mov.f32 %f1, 0f3F800000;\n"
                     "mov.f32 %f2, 0f3F400000; mov.f32 %f3, 0f3E800000; mov.f64 %d1, 0d3FF0000000000000;\n"
                     "mov.f64 %d2, 0d3FE0000000000000; mov.f64 %d3, 0d3FD0000000000000; setp.lt.u32 %p1, %r9, 16;\n"
                     "setp.lt.u32 %p2, %r9, 16; mov.b32 %r10, 0x3C003C00; mov.b32 %r11, 0x38003A00;\n"
                     "mov.b32 %r12, 0x34003400; mov.u32 %r15, own;\n"
                     "and.b32 %r17, %r9, 15; shr.u32 %r18, %r9, 4; mul.lo.u32 %r18, %r18, 512;\n"
                     "mad.lo.u32 %r17, %r17, 4, %r18; add.u32 %r13, %r17, %r8; ld.param.u64 %rd11, [data];\n"
                     "cvt.u64.u32 %rd7, %r17; add.u64 %rd8, %rd11, %rd7; cvt.u64.u32 %rd7, %r18;\n"
                     "add.u64 %rd9, %rd11, %rd7; mul.lo.u32 %r17, %r9, 13; and.b32 %r17, %r17, 31;\n"
                     "mul.wide.u32 %rd7, %r17, 16; add.u64 %rd10, %rd11, %rd7; shl.b32 %r17, %r9, 4;\n"
                     "add.u32 %r14, %r8, %r17; mov.b32 %r16, 0xe4e4e4e4; mov.b32 %r24, 0x3C003800;\n"
                     "mov.b32 %r25, 0x38003A00; mov.b32 %r26, 0x3A003800; mov.b32 %r27, 0x34003800;\n"
                     "mov.b32 %r28, 0x38003C00; mov.b32 %r29, 0x3A003400; mov.b32 %r34, 0x7f7f7f7f;\n"
                     "mov.b32 %r35, 0x38383838;\n"
                     // Descriptor of a matrix at the start of shared memory, whose eight rows lie every 256 bytes.
                     "shr.u32 %r17, %r8, 4; cvt.u64.u32 %rd12, %r17; or.b64 %rd12, %rd12, 0x1000080000;\n"
                     "mov.u32 %r6, 0;\n" +
                     row.before + "L:\n";
  for (int i = 0; i < copies_to_write; ++i)
    text += row.instruction + "\n";
  text += "add.u32 %r6, %r6, 1; setp.lt.u32 %p3, %r6, " + std::to_string(turns) + "; @%p3 bra L;\n" + row.after +
          "ret;\n}\n";
  return text;
}

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// Returns the processor seconds of one launch, the best of several; negative if it cannot be run. Elapsed time would
// depend on other processes.
double time_kernel(const std::string& text, unsigned warps) {
  auto module = read("class.ptx", text);
  if (!module) return -1;
  emulator::DeviceMemory memory;
  auto program = emulator::Program::load(*module, memory);
  Result<uint64_t> data = memory.allocate(65536, "data");
  if (!program || !data) return -1;
  emulator::LaunchRequest request;
  request.kernel = "k";
  request.block = {32 * warps};
  request.host_threads = 1;
  request.parameters.resize(8);
  std::memcpy(request.parameters.data(), &*data, 8);
  double best = 1e9;
  for (int round = 0; round < 15; ++round) {
    const double start = processor_seconds();
    auto result = (*program)->launch(request);
    if (!result || result->failure) return -1;
    best = std::min(best, processor_seconds() - start);
  }
  return best;
}

// Returns exit code 1 if a class is not emulated.
int bench_classes(int turns, const std::string& wanted) {
  int code = 0;
  std::printf("%-28s %s  %s  %s\n", "instruction", "ns per warp instruction", "M thread instructions/s", "GMAC/s");
  for (const InstructionClass& row : classes) {
    if (std::string(row.name).find(wanted) == std::string::npos) continue;
    const double empty = time_kernel(kernel_text(row, 0, turns), row.warps);
    const double seconds = time_kernel(kernel_text(row, copies, turns), row.warps);
    if (seconds < 0) {
      std::printf("%-28s not emulated\n", row.name);
      code = 1;
    } else {
      const double nanoseconds = (seconds - empty) * 1e9 / copies / turns;
      std::printf("%-28s %23.2f  %23.0f", row.name, nanoseconds / row.instructions,
                  32e3 * row.instructions / nanoseconds);
      if (row.multiply_adds) std::printf("  %6.1f", row.multiply_adds / nanoseconds);
      std::printf("\n");
    }
  }
  return code;
}

// Returns exit code 77 if there is no generator. Processor milliseconds per 1,000 PTX instructions, a line for each
// file: all kernels of it together.
int bench_compile(const std::string& tier, const std::vector<std::string>& paths) {
  if (const std::string reason = emulator::why_no_generator(); !reason.empty()) return complain(reason), 77;
  double logarithms = 0, worst = 0;
  unsigned files = 0;
  std::printf("%-32s %s\n", "file",
              "instructions  micro-operations  functions  ms per 1,000: plan + write + passes + selection = all");
  for (const std::string& path : paths) {
    Result<std::string> text = read_file(path);
    auto module = text ? read(path, *text) : nullptr;
    if (!module) return complain("cannot read " + path);
    emulator::DeviceMemory memory;
    auto program = emulator::Program::load(*module, memory);
    if (!program) return complain(program.error().message);
    emulator::CompileCost sum;
    for (const auto& function : module->functions) {
      if (!function->is_entry) continue;
      auto image = (*program)->decoded(module->text(function->name));
      if (image)
        sum.add(emulator::compile_cost(**image, tier == "full" ? emulator::CodeTier::full : emulator::CodeTier::quick,
                                       tier == "portable")
                    .value());
    }
    if (sum.instructions == 0) continue;
    const double each = 1e3 / static_cast<double>(sum.instructions);
    std::printf("%-32s %12llu %17llu %10llu  %12.1f + %5.1f + %6.1f + %9.1f = %5.1f\n",
                path.substr(path.rfind('/') + 1).c_str(), (unsigned long long)sum.instructions,
                (unsigned long long)sum.micro_operations, (unsigned long long)sum.functions, sum.plan * each,
                sum.write * each, sum.passes * each, sum.selection * each, sum.total() * each);
    std::fflush(stdout);
    logarithms += std::log(sum.total() * each);
    worst = std::max(worst, sum.total() * each);
    ++files;
  }
  std::printf("%u files: geometric mean %.1f ms per 1,000 instructions, worst %.1f\n", files,
              std::exp(logarithms / std::max(files, 1u)), worst);
  return 0;
}

} // namespace

int main(int argc, char** argv) {
  if (argc > 2 && std::string(argv[1]) == "--engine") {
    const std::string engine = argv[2];
    if (engine == "quick" || engine == "full") {
      emulator::default_engine() = emulator::Engine::generated;
      emulator::default_tier() = engine == "full" ? emulator::CodeTier::full : emulator::CodeTier::quick;
    } else {
      emulator::default_engine() = emulator::engine_of(engine).value_or(emulator::Engine::automatic);
    }
    argc -= 2;
    argv += 2;
  }
  const std::string mode = argc > 1 ? argv[1] : "";
  if (mode == "classes") return bench_classes(argc > 2 ? std::atoi(argv[2]) : 2000, argc > 3 ? argv[3] : "");
  if (mode == "compile" && argc >= 4) return bench_compile(argv[2], {argv + 3, argv + argc});
  if (mode == "kernel" && argc >= 5) return bench_kernel(argv[2], argv[3], argv[4], argc > 5 ? std::atoi(argv[5]) : 5);
  std::fprintf(stderr, "usage: emulator_benchmark [--engine ENGINE] kernel LAUNCH_FILE SIZE KERNEL [ROUNDS]\n"
                       "       emulator_benchmark [--engine ENGINE] classes [TURNS] [NAME]\n"
                       "       emulator_benchmark compile quick|full PTX_FILE...\n");
  return 2;
}
