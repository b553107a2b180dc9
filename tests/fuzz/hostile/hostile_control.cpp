// Control flow that compilers do not generate, and calls of addresses that are no functions.
#include "tests/fuzz/hostile/hostile_writer.h"

#include <array>

namespace ptxrewrite::fuzz {

namespace {

using Writer = HostileWriter;

void diamond(Writer& out) {
  const std::string other = out.label(), end = out.label();
  out.line("setp.lt.u32 {}, {}, {};", "%p3", out.source('r'), out.random.below(40));
  out.line("@%p3 bra {};", other);
  out.line("add.s32 %r3, {}, 1;", out.source('r'));
  if (out.random.one_in(2)) out.line("bra{} {};", out.random.one_in(2) && !out.is_defined ? ".uni" : "", end);
  out.place(other);
  out.line("xor.b32 %r4, {}, {};", out.source('r'), out.random.below(100));
  out.place(end);
}

// A terminating loop, sometimes with steps that a loop analysis may take for a counter.
void counted_loop(Writer& out) {
  const std::string head = out.label();
  const std::string counter = out.name("%count");
  out.declarations += fmt::format("  .reg .b32 {0};\n  .reg .pred {0}_p;\n", counter);
  out.line("mov.u32 {}, {};", counter, out.random.below(3));
  out.place(head);
  out.line("add.s32 %r3, %r3, {};", counter);
  if (out.random.one_in(2)) out.line("mul.wide.u32 %l3, {}, 4;\n  add.s64 %l4, %l0, %l3;", counter);
  out.line("add.s32 {}, {}, {};", counter, counter, 1 + out.random.below(3));
  out.line("setp.lt.u32 {}_p, {}, {};", counter, counter, out.random.below(12));
  out.line("@{}_p bra {};", counter, head);
}

// Two ways into one loop.
void irreducible(Writer& out) {
  const std::string first = out.label(), second = out.label();
  const std::string counter = out.name("%count");
  out.declarations += fmt::format("  .reg .b32 {0};\n  .reg .pred {0}_p;\n", counter);
  out.line("mov.u32 {}, 0;\n  @{} bra {};", counter, out.source('p'), second);
  out.place(first);
  out.line("add.s32 %r3, %r3, 1;");
  out.place(second);
  out.line("add.s32 {0}, {0}, 1;\n  setp.lt.u32 {0}_p, {0}, {1};\n  @{0}_p bra {2};", counter, out.random.below(9),
           first);
}

void endless(Writer& out) {
  const std::string head = out.label();
  out.place(head);
  if (out.random.one_in(2)) out.line("add.s32 %r3, %r3, 1;");
  if (out.random.one_in(4)) out.line("bar.sync 0;");
  if (out.random.one_in(4)) out.line("ld.volatile.global.u32 %r4, [%l0];\n  setp.ne.s32 %p3, %r4, 0;");
  out.line("{}bra {};", out.random.one_in(3) ? "" : fmt::format("@{} ", out.source('p')), head);
}

void labels(Writer& out) {
  for (size_t i = 0, n = 1 + out.random.below(3); i < n; ++i)
    out.place(out.label());
  if (!out.random.one_in(3)) return;
  const std::string next = out.label();
  out.line("bra {};", next);
  if (out.random.one_in(2)) out.line("add.s32 %r3, %r3, 1;"); // unreachable
  out.place(next);
}

void early_end(Writer& out) {
  constexpr std::array ends = {"ret", "exit", "trap", "brkpt", "ret.uni"};
  out.line("@{}{} {};", out.random.one_in(2) ? "!" : "", out.source('p'), out.random.pick(ends));
}

void indirect_branch(Writer& out) {
  const std::string table = out.label(), first = out.label(), second = out.label();
  out.line("{}: .branchtargets {}, {}{};", table, first, second, out.random.one_in(3) ? ", " + first : "");
  out.line("rem.u32 %r5, %r0, {};", 1 + out.random.below(4)); // the index may be beyond the table
  if (out.random.one_in(4)) out.line("mov.u32 %r5, {};", out.edge() & 0xffffffff);
  out.line("{}brx.idx{} %r5, {};", out.guard(), out.random.one_in(4) ? ".uni" : "", table);
  out.place(first);
  out.line("add.s32 %r3, %r3, 1;");
  out.place(second);
}

void call(Writer& out) {
  out.line("{{\n    .param .b32 a;\n    .param .b32 b;\n    st.param.b32 [a], {};\n    {}call{} (b), {}, (a);\n    "
           "ld.param.b32 {}, [b];\n  }}",
           out.source('r'), out.is_defined ? "" : out.guard(), out.random.one_in(3) && !out.is_defined ? ".uni" : "",
           out.is_defined || out.random.one_in(2) ? "fn1"
           : out.random.one_in(2)                 ? "fn2"
                                                  : "recursive",
           out.target('r'));
}

void indirect_call(Writer& out) {
  constexpr std::array functions = {"fn1", "fn2", "recursive", "none", "gvar", "vprintf"};
  const std::string prototype = out.label();
  out.line("{}: .callprototype (.param .b{} _) _ (.param .b{} _{});", prototype, out.random.one_in(4) ? 64 : 32,
           out.random.one_in(4) ? 64 : 32, out.random.one_in(4) ? ", .param .b32 _" : "");
  if (out.random.one_in(3))
    out.line("mov.u64 %l3, {};", out.wild_address());
  else
    out.line("mov.u64 %l3, {};", out.random.pick(functions));
  if (out.random.one_in(3)) out.line("@%p3 mov.u64 %l3, {};", out.random.pick(functions));
  out.line("{{\n    .param .b32 a;\n    .param .b32 b;\n    st.param.b32 [a], %r4;\n    call (b), %l3, (a), {};\n    "
           "ld.param.b32 %r4, [b];\n  }}",
           prototype);
}

void control_with_effect(Writer& out) {
  constexpr std::array lines = {"nanosleep.u32 1000000000;",
                                "griddepcontrol.wait;",
                                "griddepcontrol.launch_dependents;",
                                "setmaxnreg.inc.sync.aligned.u32 64;",
                                "setmaxnreg.dec.sync.aligned.u32 24;",
                                "pmevent 3;",
                                "fence.sc.gpu;",
                                "membar.sys;",
                                "fence.proxy.async;"};
  out.raw(out.guard() + out.random.pick(lines));
}

constexpr std::array features = {HostileFeature{"diamond", diamond, true},
                                 HostileFeature{"counted loop", counted_loop, true},
                                 HostileFeature{"irreducible", irreducible, true},
                                 HostileFeature{"endless", endless},
                                 HostileFeature{"labels", labels, true},
                                 HostileFeature{"early end", early_end},
                                 HostileFeature{"indirect branch", indirect_branch},
                                 HostileFeature{"call", call, true},
                                 HostileFeature{"indirect call", indirect_call},
                                 HostileFeature{"control with effect", control_with_effect}};

} // namespace

std::span<const HostileFeature> control_features() {
  return features;
}

} // namespace ptxrewrite::fuzz
