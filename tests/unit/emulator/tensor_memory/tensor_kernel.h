// A kernel around a few tcgen05 instructions: 128 threads copy an image to shared memory and another one to tensor
// memory, run the instructions under test, and store all of tensor memory.
#pragma once

#include "tests/unit/emulator/run_ptx.h"

#include <string>
#include <vector>

namespace ptxrewrite::emulator::tensor_memory_test {

// By lane and column.
struct TensorImage {
  uint32_t columns = 0;
  std::vector<uint32_t> cells;
  explicit TensorImage(uint32_t count) : columns(count), cells(128 * count) {}
  uint32_t& at(uint32_t lane, uint32_t column) { return cells[lane * columns + column]; }
  uint32_t at(uint32_t lane, uint32_t column) const { return cells[lane * columns + column]; }
};

inline std::string registers(const char* prefix, unsigned count) {
  std::string text = "{";
  for (unsigned i = 0; i < count; ++i)
    text += (i ? ", " : "") + std::string(prefix) + std::to_string(i);
  return text + "}";
}

struct TensorKernel {
  unsigned group = 1;
  std::string target = "sm_100a";
  std::string version = "8.8";
  // Executed by thread 0, between a fence and the commit: %tm is the first column of tensor memory, %x0 to %x7 are
  // parameters of 64 bits, and %w0 to %w7 their low halves; %yes and %no are predicates.
  std::string operations;
  std::string before, behind;  // by all threads, before the operations and after their end
  uint32_t columns = 64;       // a multiple of 32 below 512
  unsigned blocks = 1;         // of one cluster
  std::vector<uint8_t> shared; // of all blocks, in sequence
  std::vector<uint64_t> parameters;
  std::string wait = "WAIT:\n  mbarrier.try_wait.parity.shared::cta.b64 %done, [bar], 0;\n  @!%done bra WAIT;\n"
                     "  tcgen05.fence::after_thread_sync;\n";
  std::string commit;     // empty: to the block's mbarrier
  std::string deallocate; // empty: by warp 0
  std::string begin;      // executed first
};

// kind::ti16 came with Rubin.
inline void choose_target(TensorKernel& kernel, std::string_view kind) {
  if (kind != "ti16") return;
  kernel.target = "sm_107a";
  kernel.version = "9.4";
}

inline std::string kernel_text(const TensorKernel& kernel) {
  const std::string group = ".cta_group::" + std::to_string(kernel.group);
  const std::string bytes = std::to_string(std::max<size_t>(kernel.shared.size() / kernel.blocks, 16));
  const std::string row = std::to_string(kernel.columns * 4), chunks = std::to_string(kernel.columns);
  std::string text = ".version " + kernel.version + "\n.target " + kernel.target +
                     "\n.address_size 64\n.visible .entry k(.param .u64 image, "
                     ".param .u64 cells, .param .u64 out";
  for (unsigned i = 0; i < 8; ++i)
    text += ", .param .u64 x" + std::to_string(i);
  text += ")\n{\n  .shared .align 1024 .b8 tile[" + bytes +
          "];\n  .shared .align 8 .b64 bar;\n  .shared .align 4 .b32 place;\n"
          "  .reg .b32 %r<32>, %w<8>, %tm, %t, %warp, %mine, %i, %s, %v, %rank, %block;\n"
          "  .reg .b64 %x<8>, %p, %o, %q;\n  .reg .pred %done, %more, %first, %one, %yes, %no;\n"
          "  setp.eq.u32 %yes, 0, 0;\n  setp.ne.u32 %no, 0, 0;\n  mov.u32 %t, %tid.x;\n  shr.u32 %warp, %t, 5;\n"
          "  setp.eq.u32 %one, %t, 0;\n  setp.eq.u32 %first, %warp, 0;\n  mov.u32 %block, %ctaid.x;\n";
  for (unsigned i = 0; i < 8; ++i) {
    const std::string n = std::to_string(i);
    text += "  ld.param.u64 %x" + n + ", [x" + n + "];\n  cvt.u32.u64 %w" + n + ", %x" + n + ";\n";
  }
  text += kernel.begin;
  text += "  @%one mbarrier.init.shared::cta.b64 [bar], 1;\n";
  // Shared memory: each block has an image of its own.
  text += "  ld.param.u64 %p, [image];\n  mul.wide.u32 %o, %block, " + bytes +
          ";\n  add.u64 %p, %p, %o;\n  mul.wide.u32 %o, %t, 4;\n  add.u64 %p, %p, %o;\n  shl.b32 %i, %t, 2;\n"
          "  mov.u32 %s, tile;\n  add.u32 %s, %s, %i;\nIMAGE:\n  setp.ge.u32 %more, %i, " +
          bytes +
          ";\n  @%more bra FILLED;\n  ld.global.u32 %v, [%p];\n  st.shared.u32 [%s], %v;\n  add.u64 %p, %p, 512;\n"
          "  add.u32 %s, %s, 512;\n  add.u32 %i, %i, 512;\n  bra IMAGE;\nFILLED:\n  fence.proxy.async;\n";
  text += "  @!%first bra ALLOCATED;\n  tcgen05.alloc" + group +
          ".sync.aligned.shared::cta.b32 [place], 512;\n  tcgen05.relinquish_alloc_permit" + group +
          ".sync.aligned;\nALLOCATED:\n  tcgen05.fence::before_thread_sync;\n  bar.sync 0;\n"
          "  tcgen05.fence::after_thread_sync;\n  ld.shared.u32 %tm, [place];\n  shl.b32 %mine, %warp, 21;\n"
          "  add.u32 %mine, %mine, %tm;\n";
  // Tensor memory: a row of %columns words for each thread.
  const std::string rows = "  mul.lo.u32 %i, %block, 128;\n  add.u32 %i, %i, %t;\n  mul.wide.u32 %o, %i, " + row +
                           ";\n  add.u64 %p, %p, %o;\n";
  text += "  ld.param.u64 %p, [cells];\n" + rows + "  mov.u32 %i, 0;\n  mov.u32 %s, %mine;\nCELLS:\n";
  for (unsigned i = 0; i < 32; ++i)
    text += "  ld.global.u32 %r" + std::to_string(i) + ", [%p + " + std::to_string(4 * i) + "];\n";
  text += "  tcgen05.st.sync.aligned.32x32b.x32.b32 [%s], " + registers("%r", 32) +
          ";\n  add.u64 %p, %p, 128;\n  add.u32 %s, %s, 32;\n  add.u32 %i, %i, 32;\n  setp.lt.u32 %more, %i, " +
          chunks + ";\n  @%more bra CELLS;\n  tcgen05.wait::st.sync.aligned;\n";
  text += kernel.before;
  text += "  tcgen05.fence::before_thread_sync;\n  bar.sync 0;\n";
  if (!kernel.operations.empty() || !kernel.commit.empty()) {
    text += "  @!%one bra ISSUED;\n  tcgen05.fence::after_thread_sync;\n" + kernel.operations;
    text += kernel.commit.empty() ? "  tcgen05.commit" + group + ".mbarrier::arrive::one.shared::cluster.b64 [bar];\n"
                                  : kernel.commit;
    text += "ISSUED:\n" + kernel.wait;
  }
  text += kernel.behind;
  text += "  ld.param.u64 %p, [out];\n" + rows + "  mov.u32 %i, 0;\n  mov.u32 %s, %mine;\nOUT:\n";
  text +=
      "  tcgen05.ld.sync.aligned.32x32b.x32.b32 " + registers("%r", 32) + ", [%s];\n  tcgen05.wait::ld.sync.aligned;\n";
  for (unsigned i = 0; i < 32; ++i)
    text += "  st.global.u32 [%p + " + std::to_string(4 * i) + "], %r" + std::to_string(i) + ";\n";
  text += "  add.u64 %p, %p, 128;\n  add.u32 %s, %s, 32;\n  add.u32 %i, %i, 32;\n  setp.lt.u32 %more, %i, " + chunks +
          ";\n  @%more bra OUT;\n  tcgen05.fence::before_thread_sync;\n  bar.sync 0;\n"
          "  tcgen05.fence::after_thread_sync;\n";
  text += kernel.deallocate.empty()
              ? "  @!%first bra DONE;\n  tcgen05.dealloc" + group + ".sync.aligned.b32 %tm, 512;\nDONE:\n"
              : kernel.deallocate;
  return text + "  ret;\n}\n";
}

// `cells`: of all blocks, in sequence.
inline PtxRun run_tensor_kernel(const TensorKernel& kernel, const std::vector<uint32_t>& cells,
                                LaunchRequest request = {}) {
  request.kernel = "k";
  request.block = {128};
  request.grid = {kernel.blocks};
  if (kernel.blocks > 1) request.cluster = Dimensions{kernel.blocks};
  std::vector<uint8_t> image = kernel.shared;
  image.resize(std::max<size_t>(image.size(), 16 * kernel.blocks));
  std::vector<Argument> arguments = {buffer_of(image), buffer_of(cells), zeros<uint32_t>(cells.size())};
  std::vector<uint64_t> parameters = kernel.parameters;
  parameters.resize(8);
  for (uint64_t parameter : parameters)
    arguments.emplace_back(std::in_place_type<uint64_t>, parameter);
  return run_ptx(kernel_text(kernel), request, arguments);
}

} // namespace ptxrewrite::emulator::tensor_memory_test
