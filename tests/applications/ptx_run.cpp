// Calls gpuocelot's entry point as its clients do: memory of the process, arguments by value, results against the
// host's. With an argument, one call that has to end the process: `fault` (a null pointer), `arguments` (too few),
// `text` (no PTX).
#include "tests/applications/check.h"

#include <csignal>
#include <cstdint>
#include <string>
#include <sys/resource.h>
#include <vector>

extern "C" void ptx_run(const char* source, int count, void* values[], int block_x, int block_y, int block_z,
                        int grid_x, int grid_y, int grid_z, int dynamic_shared);

// out[y * width + x] = scale * *in[x] + y, where `in` is a table of pointers; by way of dynamic shared memory.
static const char* const text = R"(
.version 7.0
.target sm_70
.address_size 64
.extern .shared .align 4 .b8 space[];
.visible .entry gather(.param .u64 p_out, .param .u64 p_in, .param .s32 p_scale) {
  .reg .b64 %rd<8>;
  .reg .b32 %r<12>;
  ld.param.u64 %rd1, [p_out];
  ld.param.u64 %rd2, [p_in];
  ld.param.s32 %r1, [p_scale];
  mov.u32 %r2, %tid.x;
  mov.u32 %r3, %ctaid.x;
  mov.u32 %r4, %ntid.x;
  mad.lo.s32 %r5, %r3, %r4, %r2;
  mov.u32 %r6, %tid.y;
  mov.u32 %r7, %nctaid.x;
  mul.lo.s32 %r7, %r7, %r4;
  mad.wide.u32 %rd3, %r5, 8, %rd2;
  ld.u64 %rd4, [%rd3];
  ld.s32 %r8, [%rd4];
  mad.lo.s32 %r8, %r8, %r1, %r6;
  mad.lo.s32 %r9, %r6, %r4, %r2;
  shl.b32 %r9, %r9, 2;
  mov.u32 %r10, space;
  add.s32 %r9, %r9, %r10;
  st.shared.s32 [%r9], %r8;
  bar.sync 0;
  ld.shared.s32 %r8, [%r9];
  mad.lo.s32 %r6, %r6, %r7, %r5;
  mad.wide.u32 %rd5, %r6, 4, %rd1;
  st.global.s32 [%rd5], %r8;
  ret;
})";

static void* as_argument(intptr_t value) {
  return reinterpret_cast<void*>(value);
}

int main(int count, char** arguments) {
  constexpr int threads = 8, rows = 3, blocks = 5, width = threads * blocks;
  std::vector<int32_t> values(width), out(width * rows);
  std::vector<const int32_t*> table(width);
  for (int i = 0; i < width; ++i) {
    values[i] = 1000 * i - 7;
    table[i] = &values[width - 1 - i];
  }
  void* given[] = {out.data(), table.data(), as_argument(-3)};
  const std::string wrong = count > 1 ? arguments[1] : "";
  const rlimit no_core = {0, 0};
  if (!wrong.empty()) setrlimit(RLIMIT_CORE, &no_core);
  if (wrong == "fault") given[1] = nullptr;
  for (int turn = 0; turn < 3; ++turn) { // later calls find the text they know, and memory that has moved
    out.assign(out.size(), 0);
    given[0] = out.data();
    ptx_run(wrong == "text" ? "no PTX" : text, wrong == "arguments" ? 2 : 3, given, threads, rows, 1, blocks, 1, 1,
            threads * rows * 4);
    for (int y = 0; y < rows; ++y)
      for (int x = 0; x < width; ++x)
        EXPECT(out[y * width + x] == -3 * values[width - 1 - x] + y);
    std::vector<int32_t>(out).swap(out);
  }
  std::puts("right");
  return 0;
}
