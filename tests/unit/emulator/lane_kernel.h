// A kernel for tests of instructions that lanes execute together: every thread reads four words and writes two.
#pragma once

#include "tests/unit/emulator/run_ptx.h"

#include <array>

namespace ptxrewrite::emulator {

struct LaneResults {
  PtxRun run;
  std::vector<uint32_t> d, q; // of each thread; 0xdeadbeef where the kernel did not write
};

struct LaneInputs {
  std::vector<uint32_t> a, b, c, m;
};

// `body` uses %a %b %c %m (.b32), %thread and the register files %r, %f (.f32), %rd, %p, %h (.b16), and leaves results
// in %d and %q, which are stored at its end. `more` is placed before the kernel.
inline LaneResults run_lanes(std::string_view body, const LaneInputs& inputs, std::string_view more = {},
                             std::string_view header = ".version 8.7\n.target sm_90\n") {
  std::string text(header);
  text += ".address_size 64\n";
  text += more;
  text += R"(
.visible .entry k(.param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u64 pm, .param .u64 pd, .param .u64 pq)
{
  .reg .b32 %a, %b, %c, %m, %d, %q, %thread;
  .reg .b32 %r<32>;
  .reg .f32 %f<16>;
  .reg .b64 %rd<16>, %offset, %address, %out<2>;
  .reg .b16 %h<8>;
  .reg .pred %p<8>;
  mov.u32 %thread, %tid.x;
  mul.wide.u32 %offset, %thread, 4;
)";
  for (char name : {'a', 'b', 'c', 'm'}) {
    text += std::string("  ld.param.u64 %address, [p") + name + "];\n  add.u64 %address, %address, %offset;\n";
    text += std::string("  ld.global.u32 %") + name + ", [%address];\n";
  }
  text += R"(
  ld.param.u64 %out0, [pd];
  add.u64 %out0, %out0, %offset;
  ld.param.u64 %out1, [pq];
  add.u64 %out1, %out1, %offset;
  mov.u32 %d, 0xdeadbeef;
  mov.u32 %q, 0xdeadbeef;
)";
  text += body;
  text += "\n  st.global.u32 [%out0], %d;\n  st.global.u32 [%out1], %q;\n  ret;\n}\n";
  const size_t threads = inputs.a.size();
  const std::vector<uint32_t> unwritten(threads, 0xdeadbeef);
  auto sized = [&](std::vector<uint32_t> values) {
    values.resize(threads);
    return buffer_of(values);
  };
  LaneResults results;
  results.run = run_ptx(
      std::move(text), {.kernel = "k", .block = {static_cast<uint32_t>(threads)}},
      {sized(inputs.a), sized(inputs.b), sized(inputs.c), sized(inputs.m), buffer_of(unwritten), buffer_of(unwritten)});
  if (results.run.ok()) {
    results.d = results.run.buffer<uint32_t>(4);
    results.q = results.run.buffer<uint32_t>(5);
  }
  return results;
}

} // namespace ptxrewrite::emulator
