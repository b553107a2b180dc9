// A program of the driver API that repeats launches with changing addresses: 20 with three taps, 5 with two, one with
// another grid; 6 of a library's kernel with one tap; a kernel that uses a variable of its module, 6 times; and one
// with more dynamic shared memory than a kernel gets unasked, 7 times. The truth is the host's, which is exact.
#include "tests/applications/check.h"

#include <algorithm>
#include <cuda.h>
#include <iterator>
#include <vector>

static const char* const sums = R"(.version 7.0
.target sm_70
.address_size 64
.visible .entry sum_taps(.param .u64 in, .param .u64 out, .param .u32 w, .param .u32 h, .param .u32 taps)
{
  .reg .pred %p<3>; .reg .b32 %r<15>; .reg .b64 %rd<7>; .reg .f32 %f<3>;
  ld.param.u64 %rd1, [in]; ld.param.u64 %rd2, [out];
  ld.param.u32 %r1, [w]; ld.param.u32 %r2, [h]; ld.param.u32 %r3, [taps];
  mov.u32 %r4, %ctaid.x; mov.u32 %r5, %ntid.x; mov.u32 %r6, %tid.x; mad.lo.s32 %r7, %r4, %r5, %r6;
  mov.u32 %r8, %ctaid.y;
  setp.ge.s32 %p1, %r7, %r1; @%p1 bra done;
  setp.ge.s32 %p1, %r8, %r2; @%p1 bra done;
  neg.s32 %r9, %r3; mov.f32 %f1, 0f00000000; mul.lo.s32 %r10, %r8, %r1; sub.s32 %r14, %r1, 1;
again:
  add.s32 %r11, %r7, %r9; max.s32 %r11, %r11, 0; min.s32 %r11, %r11, %r14; add.s32 %r12, %r10, %r11;
  mul.wide.s32 %rd3, %r12, 4; add.s64 %rd4, %rd1, %rd3; ld.global.f32 %f2, [%rd4]; add.f32 %f1, %f1, %f2;
  add.s32 %r9, %r9, 1; setp.le.s32 %p2, %r9, %r3; @%p2 bra again;
  add.s32 %r13, %r10, %r7; mul.wide.s32 %rd5, %r13, 4; add.s64 %rd6, %rd2, %rd5; st.global.f32 [%rd6], %f1;
done:
  ret;
}
)";

static const char* const tally = R"(.version 7.0
.target sm_70
.address_size 64
.visible .global .u32 launches = 0;
.visible .entry tally(.param .u32 step)
{
  .reg .b32 %r<3>;
  ld.param.u32 %r1, [step];
  atom.global.add.u32 %r2, [launches], %r1;
  ret;
}
)";

// out[i] = in[31 - i], through the last 32 of 16,384 words of shared memory.
static const char* const turned = R"(.version 7.0
.target sm_70
.address_size 64
.extern .shared .align 4 .b8 tile[];
.visible .entry turn(.param .u64 in, .param .u64 out, .param .u32 words)
{
  .reg .b32 %r<12>; .reg .b64 %rd<7>;
  ld.param.u64 %rd1, [in]; ld.param.u64 %rd2, [out]; ld.param.u32 %r1, [words];
  mov.u32 %r2, %tid.x; mov.u32 %r3, tile;
  mul.wide.u32 %rd3, %r2, 4; add.s64 %rd4, %rd1, %rd3; ld.global.u32 %r4, [%rd4];
  add.s32 %r5, %r1, 31; sub.s32 %r5, %r5, %r2; rem.u32 %r5, %r5, %r1; // 31 - tid
  shl.b32 %r6, %r5, 2; add.s32 %r7, %r3, %r6; st.shared.u32 [%r7+65408], %r4;
  bar.sync 0;
  shl.b32 %r9, %r2, 2; add.s32 %r10, %r3, %r9; ld.shared.u32 %r11, [%r10+65408];
  add.s64 %rd5, %rd2, %rd3; st.global.u32 [%rd5], %r11;
  ret;
}
)";

constexpr int width = 70, height = 5;

static std::vector<float> summed(const std::vector<float>& in, int taps) {
  std::vector<float> out(in.size());
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      for (int i = -taps; i <= taps; ++i)
        out[y * width + x] += in[y * width + std::clamp(x + i, 0, width - 1)];
  return out;
}

static void launch(CUfunction kernel, CUdeviceptr in, CUdeviceptr out, int taps, unsigned blocks) {
  int w = width, h = height;
  void* arguments[] = {&in, &out, &w, &h, &taps};
  DRIVER(cuLaunchKernel(kernel, blocks, height, 1, 32, 1, 1, 0, nullptr, arguments, nullptr));
}

struct Repetition {
  int times, taps;
  unsigned blocks;
};

static void repeat_sums(CUfunction kernel, const std::vector<Repetition>& repetitions) {
  std::vector<float> host(width * height), back(host.size());
  for (size_t i = 0; i < host.size(); ++i)
    host[i] = static_cast<float>(i * i % 31);
  const size_t bytes = host.size() * sizeof(float);
  CUdeviceptr first, others[3];
  DRIVER(cuMemAlloc(&first, bytes));
  for (CUdeviceptr& other : others)
    DRIVER(cuMemAlloc(&other, bytes));
  DRIVER(cuMemcpyHtoD(first, host.data(), bytes));
  for (const Repetition& one : repetitions)
    for (int i = 0; i < one.times; ++i) {
      DRIVER(cuMemsetD8(others[i % 3], 0xff, bytes));
      launch(kernel, first, others[i % 3], one.taps, one.blocks);
      DRIVER(cuMemcpyDtoH(back.data(), others[i % 3], bytes));
      EXPECT(back == summed(host, one.taps));
    }
}

static void repeat_tally(CUmodule module, CUfunction kernel) {
  for (int i = 0; i < 6; ++i) {
    int step = 5;
    void* arguments[] = {&step};
    DRIVER(cuLaunchKernel(kernel, 2, 1, 1, 32, 1, 1, 0, nullptr, arguments, nullptr));
  }
  CUdeviceptr address;
  unsigned counted = 0;
  DRIVER(cuModuleGetGlobal(&address, nullptr, module, "launches"));
  DRIVER(cuMemcpyDtoH(&counted, address, sizeof counted));
  EXPECT(counted == 6 * 2 * 32 * 5);
}

static void repeat_turn(CUfunction kernel) {
  constexpr int words = 16384;
  CUdeviceptr in, out;
  DRIVER(cuMemAlloc(&in, 32 * sizeof(int)));
  DRIVER(cuMemAlloc(&out, 32 * sizeof(int)));
  int host[32], back[32], number = words;
  for (int i = 0; i < 32; ++i)
    host[i] = i * i;
  DRIVER(cuMemcpyHtoD(in, host, sizeof host));
  DRIVER(cuFuncSetAttribute(kernel, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, words * 4));
  void* arguments[] = {&in, &out, &number};
  for (int i = 0; i < 7; ++i) {
    DRIVER(cuMemsetD8(out, 0xff, sizeof back));
    DRIVER(cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, words * 4, nullptr, arguments, nullptr));
    DRIVER(cuMemcpyDtoH(back, out, sizeof back));
    EXPECT(std::equal(back, back + 32, std::make_reverse_iterator(host + 32)));
  }
}

int main() {
  CUdevice device;
  CUcontext context;
  CUmodule module, other;
  CUfunction kernel;
  DRIVER(cuInit(0));
  DRIVER(cuDeviceGet(&device, 0));
  DRIVER(cuDevicePrimaryCtxRetain(&context, device));
  DRIVER(cuCtxSetCurrent(context));
  DRIVER(cuModuleLoadData(&module, sums));
  DRIVER(cuModuleGetFunction(&kernel, module, "sum_taps"));
  repeat_sums(kernel, {{20, 3, 3}, {5, 2, 3}, {1, 3, 4}});
  CUlibrary library;
  CUkernel of_library;
  DRIVER(cuLibraryLoadData(&library, sums, nullptr, nullptr, 0, nullptr, nullptr, 0));
  DRIVER(cuLibraryGetKernel(&of_library, library, "sum_taps"));
  repeat_sums(reinterpret_cast<CUfunction>(of_library), {{6, 1, 3}});
  DRIVER(cuModuleLoadData(&other, tally));
  DRIVER(cuModuleGetFunction(&kernel, other, "tally"));
  repeat_tally(other, kernel);
  DRIVER(cuModuleUnload(module));
  DRIVER(cuModuleUnload(other));
  DRIVER(cuModuleLoadData(&module, turned));
  DRIVER(cuModuleGetFunction(&kernel, module, "turn"));
  repeat_turn(kernel);
  DRIVER(cuModuleUnload(module));
  DRIVER(cuLibraryUnload(library));
  std::puts("right");
}
