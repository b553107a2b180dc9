// Declarations of all sizes, and parameter slots that are too small or too large for their uses.
#include "tests/fuzz/hostile/hostile_writer.h"

#include <array>

namespace ptxrewrite::fuzz {

namespace {

using Writer = HostileWriter;

uint64_t size(Writer& out) {
  constexpr std::array<uint64_t, 16> sizes = {0,          1,
                                              3,          16,
                                              4096,       49152,
                                              49153,      232448,
                                              1ull << 20, 524288,
                                              1ull << 29, 2000000000,
                                              1ull << 31, (1ull << 32) - 16,
                                              1ull << 40, 140737488355312};
  return out.random.one_in(2) ? 1 + out.random.below(200) : out.random.pick(sizes);
}

void local(Writer& out) {
  const std::string name = out.name("local");
  const uint64_t bytes = size(out);
  out.declarations += fmt::format("  .local .align {} .b8 {}[{}];\n", 1u << out.random.below(6), name, bytes);
  out.line("mov.u64 %l3, {};", name);
  out.line("{}st.local.u32 [{}+{}], %r4;", out.guard(), name, out.random.one_in(2) ? 4 : bytes & 0x7ffffffc);
  if (out.random.one_in(2)) out.line("add.s64 %l3, %l3, {};\n  ld.local.u64 %l4, [%l3];", out.edge());
}

void shared(Writer& out) {
  const std::string name = out.name("shared");
  const uint64_t bytes = size(out);
  out.declarations += fmt::format("  .shared .align {} .b8 {}[{}];\n", 1u << out.random.below(8), name, bytes);
  out.line("{}st.shared.u32 [{}+{}], %r4;", out.guard(), name, out.random.one_in(2) ? 0 : bytes & 0x7ffffffc);
  if (out.random.one_in(2))
    out.line("mov.u32 %r3, {};\n  ld.shared.v4.u32 {{%r3,%r4,%r5,%r6}}, [%r3+{}];", name,
             static_cast<int32_t>(out.edge()));
}

void global(Writer& out) {
  const std::string name = out.name("global");
  const uint64_t bytes = size(out);
  out.module +=
      fmt::format(".{} .align {} .b8 {}[{}]{};\n", out.random.one_in(3) ? "const" : "global", 1u << out.random.below(6),
                  name, bytes, bytes > 3 && out.random.one_in(2) ? " = {1, 2, 255}" : "");
  out.line("mov.u64 %l3, {};\n  ld.u32 %r3, [%l3+{}];", name, out.random.one_in(2) ? bytes & 0x7fffffff : 0);
}

// Initialisers with addresses, also inside the kernel.
void initialised(Writer& out) {
  const std::string name = out.name("table");
  out.module += fmt::format(".global .align 8 .u64 {}[4] = {{gvar, gvar+{}, generic(cvar), fn1}};\n", name,
                            out.random.below(300));
  out.line("ld.global.u64 %l3, [{}+{}];", name, 8 * out.random.below(6));
  out.line("{}ld.u32 %r3, [%l3];", out.guard());
}

void slots(Writer& out) {
  const uint64_t bytes = out.random.one_in(3) ? size(out) : 16;
  const uint64_t offset = out.random.one_in(2) ? 4 * out.random.below(8) : out.edge() & 0x7ffffffc;
  constexpr std::array types = {"b32", "b64", "b8", "v2.b32"};
  const std::string function = out.name("takes");
  out.module +=
      fmt::format(".func (.param .align 16 .b8 r[{0}]) {1}(.param .align 16 .b8 x[{0}])\n{{\n  .reg .b32 %a;\n"
                  "  ld.param.b32 %a, [x+{2}];\n  st.param.b32 [r+{3}], %a;\n  ret;\n}}\n",
                  bytes, function, out.random.one_in(2) ? 0 : offset, out.random.one_in(2) ? 0 : offset);
  const std::string type = out.random.pick(types);
  out.line("{{\n    .param .align 16 .b8 a[{0}];\n    .param .align 16 .b8 b[{0}];\n    st.param.{1} [a+{2}], {3};\n"
           "    call (b), {4}, (a);\n    ld.param.{1} {3}, [b+{5}];\n  }}",
           bytes, type, offset,
           type == "b64"      ? "%l3"
           : type == "v2.b32" ? "{%r3, %r4}"
                              : "%r3",
           function, out.random.one_in(2) ? 0 : offset);
}

// A scope whose names hide outer ones.
void scopes(Writer& out) {
  const bool nested = out.random.one_in(2);
  out.line("{{\n    .reg .b32 %r3;\n    .reg .b32 %r<3>;\n    mov.u32 %r3, {};\n    {}add.s32 %r2, %r3, %r1;\n  }}",
           out.edge() & 0xffff,
           nested ? "{ .reg .pred %p3; setp.eq.s32 %p3, %r3, 0; @%p3 add.s32 %r3, %r3, 1; }\n    " : "");
}

void source_lines(Writer& out) {
  out.line(".loc 1 {} {}", 1 + out.random.below(1000), out.random.below(100));
  if (out.random.one_in(4)) out.line(".pragma \"nounroll\";");
}

constexpr std::array features = {HostileFeature{"local", local},
                                 HostileFeature{"shared", shared},
                                 HostileFeature{"global", global},
                                 HostileFeature{"initialised", initialised},
                                 HostileFeature{"slots", slots},
                                 HostileFeature{"scopes", scopes},
                                 HostileFeature{"source lines", source_lines, true}};

} // namespace

std::span<const HostileFeature> declaration_features() {
  return features;
}

} // namespace ptxrewrite::fuzz
