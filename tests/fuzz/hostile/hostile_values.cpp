// Values: all kinds of instructions on registers that are written twice, partially, or not at all.
#include "tests/fuzz/hostile/hostile_writer.h"

#include <array>

namespace ptxrewrite::fuzz {

namespace {

using Writer = HostileWriter;

constexpr std::array integer_operations = {"add.s32", "sub.u32", "mul.lo.s32", "and.b32", "or.b32",
                                           "xor.b32", "min.s32", "max.u32",    "div.s32", "rem.u32",
                                           "shl.b32", "shr.s32", "mul.hi.u32"};
constexpr std::array wide_operations = {"add.s64", "sub.s64", "mul.lo.u64", "and.b64", "xor.b64", "div.u64", "rem.s64"};

void integers(Writer& out) {
  for (size_t i = 0, n = 1 + out.random.below(5); i < n; ++i) {
    const std::string target = out.target('r'), source = out.source('r');
    if (out.random.one_in(3))
      out.line("{}{} {}, {}, {};", out.guard(), out.random.pick(integer_operations), target, source,
               static_cast<int32_t>(out.edge()));
    else
      out.line("{}{} {}, {}, {};", out.guard(), out.random.pick(integer_operations), target, source, out.source('r'));
  }
}

void wide_integers(Writer& out) {
  for (size_t i = 0, n = 1 + out.random.below(4); i < n; ++i)
    out.line("{}{} {}, {}, {};", out.guard(), out.random.pick(wide_operations), out.target('l'),
             out.is_defined ? "%l" + std::to_string(3 + out.random.below(5)) : out.source('l'),
             out.random.one_in(3) ? std::to_string(static_cast<int64_t>(out.edge()))
                                  : "%l" + std::to_string(3 + out.random.below(5)));
}

// Index arithmetic as compilers write it: candidates for r2d2 and dac.
void index(Writer& out) {
  const std::string index = out.target('r'), address = out.target('l');
  out.line("mad.lo.s32 {}, %r2, {}, %r0;", index, 1 + out.random.below(300));
  if (out.random.one_in(2))
    out.line("mul.wide.s32 {}, {}, 4;", address, index);
  else
    out.line("cvt.s64.s32 {}, {};\n  shl.b64 {}, {}, {};", address, index, address, address, out.random.below(66));
  const std::string place = out.target('l');
  out.line("add.s64 {}, %l0, {};", place, address);
  if (out.random.one_in(2)) out.line("add.s64 {}, %l0, {};", place, address); // the same sum to the same register
  if (!out.is_defined) out.line("{}ld.global.u32 {}, [{}];", out.guard(), out.target('r'), place);
}

// One register, several writers, the last under a guard.
void rewritten(Writer& out) {
  const std::string target = out.target('r');
  out.line("add.s32 {}, %r0, {};", target, out.edge() & 0xffff);
  out.line("add.s32 {}, %r0, {};", target, out.edge() & 0xffff);
  out.line("@{} add.s32 {}, {}, 1;", out.source('p'), target, target);
  out.line("@!{} mov.u32 {}, %tid.x;", out.source('p'), target);
}

// %r40 and above are never written by the prologue.
void unwritten(Writer& out) {
  const size_t which = 40 + out.random.below(4);
  switch (out.random.below(5)) {
  case 0:
    return out.line("mad.lo.s32 {}, %r{}, 0, {};", out.target('r'), which, out.source('r'));
  case 1:
    return out.line("@%p{} mov.u32 {}, %r{};", 8 + out.random.below(4), out.target('r'), which);
  case 2:
    return out.line("selp.b32 {}, %r{}, %r{}, %p{};", out.target('r'), which, which + 1, 8 + out.random.below(4));
  case 3:
    return out.line("cvt.u64.u32 {}, %r{};\n  add.s64 {}, %l0, {};", out.target('l'), which, out.target('l'),
                    out.source('l'));
  default:
    return out.line("add.s32 %r{}, %r{}, 1;", which, which);
  }
}

// A register that is written on one path only.
void partly_written(Writer& out) {
  const std::string skip = out.label();
  const size_t which = 44 + out.random.below(4);
  out.line("@{} bra {};", out.source('p'), skip);
  out.line("mov.u32 %r{}, {};", which, out.edge() & 0xffffffff);
  out.place(skip);
  out.line("add.s32 {}, %r{}, {};", out.target('r'), which, out.source('r'));
}

void carries(Writer& out) {
  out.line("add.cc.u32 {}, {}, {};", out.target('r'), out.source('r'), out.source('r'));
  if (out.random.one_in(3)) integers(out);
  if (out.random.one_in(3)) out.line("addc.cc.u32 {}, {}, {};", out.target('r'), out.source('r'), out.source('r'));
  if (out.random.one_in(4) && !out.is_defined) out.line("bar.sync 0;");
  out.line("addc.u32 {}, {}, {};", out.target('r'), out.source('r'), out.source('r'));
}

void predicates(Writer& out) {
  constexpr std::array comparisons = {"lt", "eq", "ge", "ne", "gt"};
  out.line("{}setp.{}.s32 {}, {}, {};", out.guard(), out.random.pick(comparisons), out.target('p'), out.source('r'),
           out.source('r'));
  out.line("setp.{}.u32 %p{}|%p{}, {}, {};", out.random.pick(comparisons), 3 + out.random.below(2),
           5 + out.random.below(2), out.source('r'), static_cast<uint32_t>(out.edge()));
  out.line("setp.lt.and.f32 {}, {}, {}, {}{};", out.target('p'), out.source('f'), out.source('f'),
           out.random.one_in(2) ? "!" : "", out.source('p'));
  out.line("xor.pred {}, {}, {};", out.target('p'), out.source('p'), out.source('p'));
  out.line("selp.f32 {}, {}, {}, {};", out.target('f'), out.source('f'), out.source('f'), out.source('p'));
}

void packs(Writer& out) {
  out.line("mov.b64 {}, {{{}, {}}};", out.target('l'), out.source('r'), out.source('r'));
  out.line("mov.b64 {{%r3, %r4}}, {};", "%l" + std::to_string(3 + out.random.below(5)));
  out.line("mov.b32 {}, {{{}, {}}};", out.target('r'), out.source('h'), out.source('h'));
  out.line("mov.b32 {{{}, _}}, {};", out.target('h'), out.source('r'));
  out.line("mov.b128 {}, {{{}, {}}};", out.target('q'), out.source('l'), out.source('l'));
  out.line("prmt.b32 {}, {}, {}, {};", out.target('r'), out.source('r'), out.source('r'), out.edge() & 0xffff);
}

// Registers of vector type, whole and by their elements.
void vectors(Writer& out) {
  const std::string wide = out.name("wide"), pair = out.name("pair");
  out.declarations += fmt::format("  .reg .v4 .b32 {};\n  .reg .v2 .f32 {};\n", wide, pair);
  if (out.is_defined || out.random.chance(0.7)) {
    out.line("mov.v4.b32 {}, {{%r0, %r1, {}, {}}};", wide, out.source('r'), out.source('r'));
    out.line("mov.v2.f32 {}, {{{}, {}}};", pair, out.source('f'), out.source('f'));
  }
  if (out.random.one_in(2)) out.line("mov.v4.b32 {}, {{{}.w, {}.x, {}.y, {}.z}};", wide, wide, wide, wide, wide);
  out.line("{}add.u32 {}.y, {}.x, {};", out.guard(), wide, wide, out.source('r'));
  out.line("st.global.v4.b32 [%l2], {};", wide);
  out.line("ld.global.v4.b32 {}, [%l0+{}];", wide, 16 * out.random.below(4));
  out.line("add.f32 {}, {}.x, {}.y;", out.target('f'), pair, pair);
  out.line("mov.u32 {}, {}.w;", out.target('r'), wide);
}

void floats(Writer& out) {
  constexpr std::array operations = {"add.f32", "mul.rn.f32", "fma.rn.f32", "min.f32", "sub.ftz.f32", "div.rn.f32"};
  const std::string operation = out.random.pick(operations);
  out.line("{}{} {}, {}, {}{};", out.guard(), operation, out.target('f'), out.source('f'), out.source('f'),
           operation.starts_with("fma") ? ", 0f7F800000" : "");
  out.line("cvt.rzi.s32.f32 {}, {};", out.target('r'), out.source('f'));
  out.line("fma.rn.f64 {}, {}, {}, 0dFFF0000000000000;", out.target('d'), out.source('d'), out.source('d'));
}

void special_registers(Writer& out) {
  constexpr std::array names = {"%tid.y",       "%ntid.x",  "%nctaid.x", "%laneid",
                                "%lanemask_lt", "%ctaid.z", "%ntid.z",   "WARP_SZ"};
  constexpr std::array loose = {"%clock",           "%smid", "%warpid",           "%nsmid", "%gridid", "%envreg3",
                                "%total_smem_size", "%pm0",  "%dynamic_smem_size"};
  out.line("mov.u32 {}, {};", out.target('r'),
           out.is_defined || out.random.one_in(2) ? out.random.pick(names) : out.random.pick(loose));
  if (!out.is_defined && out.random.one_in(3))
    out.line("mov.u64 {}, {};", out.target('l'), out.random.one_in(2) ? "%globaltimer" : "%clock64");
}

void pure_statements(Writer& out) {
  for (size_t i = 0, n = 1 + out.random.below(4); i < n && !out.material.pure.empty(); ++i)
    out.raw(out.guard() + out.fold_registers(out.random.pick(out.material.pure)));
}
void runnable_statements(Writer& out) {
  for (size_t i = 0, n = 1 + out.random.below(3); i < n && !out.material.runnable.empty(); ++i)
    out.raw(out.guard() + out.fold_registers(out.random.pick(out.material.runnable)));
}
void any_statements(Writer& out) {
  for (size_t i = 0, n = 1 + out.random.below(3); i < n && !out.material.statements.empty(); ++i) {
    const std::string& statement = out.random.pick(out.material.statements);
    out.raw(out.random.one_in(2) ? out.fold_registers(statement) : statement);
  }
}

constexpr std::array features = {
    HostileFeature{"integers", integers, true},
    HostileFeature{"wide integers", wide_integers, true},
    HostileFeature{"index", index, true},
    HostileFeature{"rewritten", rewritten, true},
    HostileFeature{"unwritten", unwritten},
    HostileFeature{"partly written", partly_written},
    HostileFeature{"carries", carries, true},
    HostileFeature{"predicates", predicates, true},
    HostileFeature{"packs", packs, true},
    HostileFeature{"vectors", vectors, true},
    HostileFeature{"floats", floats, true},
    HostileFeature{"special registers", special_registers, true},
    HostileFeature{"pure statements", pure_statements, true},
    HostileFeature{"runnable statements", runnable_statements},
    HostileFeature{"any statements", any_statements},
};

} // namespace

std::span<const HostileFeature> value_features() {
  return features;
}

} // namespace ptxrewrite::fuzz
