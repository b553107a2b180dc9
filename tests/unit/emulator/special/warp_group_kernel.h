// Kernels around wgmma.mma_async, and the layouts of its operands in CuTe's terms: shapes and strides of nested
// coordinates followed by a swizzle.
#pragma once

#include "tests/unit/emulator/cute_mode.h"
#include "tests/unit/emulator/run_ptx.h"

#include <string>
#include <utility>
#include <vector>

namespace ptxrewrite::emulator::warp_group_test {

// --- layouts ---

using emulator_test::any;
using emulator_test::Mode;

// CuTe's Swizzle<bits, 4, 3>.
inline uint32_t swizzle(uint32_t address, unsigned bits) {
  const uint32_t mask = ((1u << bits) - 1) << 7;
  return address ^ (address & mask) >> 3;
}

struct Layout {
  Mode mn, k;
  unsigned swizzle_bits = 0;
  uint32_t address(uint32_t start, uint32_t row, uint32_t column) const {
    return swizzle(start + mn.offset(row) + k.offset(column), swizzle_bits);
  }
};

// The canonical layouts of make_gmma_desc in CUTLASS's cute/arch and cute/atom headers, in bytes. `bytes`: of an
// element.
inline Layout canonical_layout(bool mn_major, unsigned swizzle_bits, uint32_t bytes, uint32_t leading,
                               uint32_t stride) {
  const uint32_t t = 16 / bytes, w = 1u << swizzle_bits;
  if (mn_major && swizzle_bits == 0) return {{{{t, bytes}, {any, stride}}}, {{{8, 16}, {any, leading}}}, 0};
  if (mn_major) return {{{{t, bytes}, {w, 16}, {any, leading}}}, {{{8, 16 * w}, {any, stride}}}, swizzle_bits};
  return {{{{8, 16 * w}, {any, stride}}}, {{{t, bytes}, {any, swizzle_bits == 0 ? leading : 16}}}, swizzle_bits};
}

inline uint64_t descriptor(uint32_t start, uint32_t leading, uint32_t stride, unsigned swizzle_bits,
                           uint64_t base_offset = 0) {
  const uint64_t mode = swizzle_bits == 0 ? 0 : 4 - swizzle_bits;
  return uint64_t(start >> 4) | uint64_t(leading >> 4) << 16 | uint64_t(stride >> 4) << 32 | base_offset << 49 |
         mode << 62;
}

// --- kernels ---

struct Form {
  std::string types = "f32.f16.f16"; // D, A, B
  unsigned n = 8, k = 16;
  bool a_in_registers = false;
  std::string behind = ", 1, 1, 0, 0"; // the predicate
  std::string satfinite;
  std::string operation; // after the types
  std::string selector;  // not empty: A is sparse
  std::string metadata;  // code that computes %m
  bool half_sums() const { return types.starts_with("f16"); }
  unsigned d_registers() const { return half_sums() ? n / 4 : n / 2; }
};

struct Input {
  std::vector<uint8_t> shared;
  uint64_t a = 0, b = 0;
  std::vector<uint32_t> a_registers = std::vector<uint32_t>(128 * 4);
  std::vector<uint32_t> d; // by thread and register
  uint32_t adds = 0;
};

inline std::string list(const char* prefix, unsigned count) {
  std::string text = "{";
  for (unsigned i = 0; i < count; ++i)
    text += (i ? ", " : "") + std::string(prefix) + std::to_string(i);
  return text + "}";
}

inline std::string instruction(const Form& form, const std::string& sums) {
  return std::string("wgmma.mma_async") + (form.selector.empty() ? "" : ".sp") + ".sync.aligned.m64n" +
         std::to_string(form.n) + "k" + std::to_string(form.k) + form.satfinite + "." + form.types + form.operation +
         " " + sums + ", " + (form.a_in_registers ? list("%a", 4) : std::string("%da")) + ", %db, " +
         (form.selector.empty() ? "" : "%m, " + form.selector + ", ") + "%adds" + form.behind + ";\n";
}

// `products`: the code between the arrival of the operands and the stores of D.
inline std::string module_text(const Form& form, size_t shared_bytes, const std::string& products) {
  const unsigned registers = form.d_registers();
  std::string text = ".version 8.7\n.target sm_90a\n.address_size 64\n.shared .align 1024 .b8 tile[" +
                     std::to_string(shared_bytes) + R"(];
.visible .entry k(.param .u64 image, .param .u64 out, .param .u64 sums, .param .u64 rows, .param .u64 pa, .param .u64 pb,
                  .param .u32 padds)
{
  .reg .b32 %d<)" + std::to_string(registers) +
                     R"(>, %a<4>, %t, %i, %s, %x, %m;
  .reg .b64 %da, %db, %p, %o;
  .reg .pred %adds, %more;
  mov.u32 %t, %tid.x;
  ld.param.u64 %p, [image];
  mul.wide.u32 %o, %t, 4;
  add.u64 %p, %p, %o;
  mov.u32 %s, tile;
  shl.b32 %i, %t, 2;
  add.u32 %s, %s, %i;
COPY:
  ld.global.u32 %x, [%p];
  st.shared.u32 [%s], %x;
  add.u64 %p, %p, 512;
  add.u32 %s, %s, 512;
  add.u32 %i, %i, 512;
  setp.lt.u32 %more, %i, )" +
                     std::to_string(shared_bytes) + R"(;
  @%more bra COPY;
  ld.param.u64 %da, [pa];
  ld.param.u64 %db, [pb];
  ld.param.u32 %x, [padds];
  setp.ne.u32 %adds, %x, 0;
  ld.param.u64 %p, [rows];
  mul.wide.u32 %o, %t, 16;
  add.u64 %p, %p, %o;
  ld.global.v4.u32 )" +
                     list("%a", 4) +
                     R"(, [%p];
  ld.param.u64 %p, [sums];
  mul.wide.u32 %o, %t, )" +
                     std::to_string(registers * 4) + ";\n  add.u64 %p, %p, %o;\n";
  for (unsigned i = 0; i < registers; ++i)
    text += "  ld.global.u32 %d" + std::to_string(i) + ", [%p + " + std::to_string(4 * i) + "];\n";
  text += products + "  ld.param.u64 %p, [out];\n  add.u64 %p, %p, %o;\n";
  for (unsigned i = 0; i < registers; ++i)
    text += "  st.global.u32 [%p + " + std::to_string(4 * i) + "], %d" + std::to_string(i) + ";\n";
  return text + "  ret;\n}\n";
}

inline const std::string begin = "  fence.proxy.async;\n  bar.sync 0;\n  wgmma.fence.sync.aligned;\n";
inline const std::string end = "  wgmma.commit_group.sync.aligned;\n  wgmma.wait_group.sync.aligned 0;\n";

inline PtxRun run_products(const Form& form, const Input& input, const std::string& products,
                           LaunchRequest request = {}) {
  request.kernel = "k";
  if (request.block.x == 1) request.block = {128};
  std::vector<uint32_t> sums = input.d;
  sums.resize(request.block.x * form.d_registers());
  std::vector<uint32_t> rows = input.a_registers;
  rows.resize(request.block.x * 4);
  const Buffer out = zeros<uint32_t>(request.block.x * form.d_registers());
  return run_ptx(module_text(form, input.shared.size(), products), request,
                 {buffer_of(input.shared), out, buffer_of(sums), buffer_of(rows), input.a, input.b, input.adds});
}

inline PtxRun run_product(const Form& form, const Input& input, LaunchRequest request = {}) {
  return run_products(form, input,
                      begin + form.metadata + "  " + instruction(form, list("%d", form.d_registers())) + end,
                      std::move(request));
}

// Row and column of D in register `index` of a thread; f16: two per register, `index` counts both.
inline std::pair<unsigned, unsigned> place_of_sum(unsigned thread, unsigned index) {
  return {thread / 32 * 16 + thread % 32 / 4 + index / 2 % 2 * 8, index / 4 * 8 + thread % 4 * 2 + index % 2};
}

// Row and column of A for byte `byte` of register `reg` of a thread (PTX ISA 9.7.15.5.1, fragments of A).
inline std::pair<unsigned, unsigned> place_of_a(unsigned thread, unsigned reg, unsigned index, unsigned bits) {
  const unsigned each = 32 / bits;
  return {thread / 32 * 16 + thread % 32 / 4 + (reg % 2 ? 8 : 0), (reg < 2 ? 0 : 4 * each) + thread % 4 * each + index};
}

} // namespace ptxrewrite::emulator::warp_group_test
