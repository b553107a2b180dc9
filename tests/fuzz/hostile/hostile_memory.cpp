// Invalid accesses: wild, misaligned, in another space, beyond the end.
#include "tests/fuzz/hostile/hostile_writer.h"

#include <array>

namespace ptxrewrite::fuzz {

namespace {

using Writer = HostileWriter;

struct Access {
  const char* type; // with its vector width
  const char* registers;
};
constexpr std::array accesses = {Access{"u8", "%r3"},           Access{"u16", "%h3"},
                                 Access{"u32", "%r4"},          Access{"b64", "%l4"},
                                 Access{"f64", "%d4"},          Access{"b128", "%q4"},
                                 Access{"v2.u32", "{%r3,%r4}"}, Access{"v4.f32", "{%f3,%f4,%f5,%f6}"},
                                 Access{"v2.b64", "{%l4,%l5}"}};
constexpr std::array spaces = {"", ".global", ".shared", ".local", ".const", ".param", ".shared::cluster"};

void access(Writer& out, const std::string& space, const std::string& address) {
  const Access& chosen = out.random.pick(accesses);
  switch (out.random.below(7)) {
  case 0:
  case 1:
    return out.line("{}ld{}.{} {}, [{}];", out.guard(), space, chosen.type, chosen.registers, address);
  case 2:
  case 3:
    return out.line("{}st{}.{} [{}], {};", out.guard(), space == ".const" || space == ".param" ? "" : space,
                    chosen.type, address, chosen.registers);
  case 4:
    return out.line("{}atom{}.add.u32 %r5, [{}], %r4;", out.guard(),
                    space == ".global" || space == ".shared" ? space : "", address);
  case 5:
    return out.line("{}red.global.max.u64 [{}], %l3;", out.guard(), address);
  default:
    return out.line("{}atom.cas.b64 %l5, [{}], %l3, %l4;", out.guard(), address);
  }
}

std::string with_offset(Writer& out, const std::string& base) {
  if (out.random.one_in(2)) return base;
  return fmt::format("{}+{}", base, static_cast<int32_t>(out.edge()));
}

void wild(Writer& out) {
  out.line("mov.u64 %l3, {};", out.wild_address());
  access(out, out.random.pick(spaces), with_offset(out, "%l3"));
}

// The thread's index is out of bounds for some lanes.
void behind_the_end(Writer& out) {
  out.line("mul.wide.u32 %l3, %r0, {};", out.random.one_in(2) ? 4 + out.random.below(100) : out.edge() & 0xffffffff);
  out.line("{} %l3, %l{}, %l3;", out.random.one_in(4) ? "sub.s64" : "add.s64", out.random.below(2));
  access(out, out.random.one_in(2) ? ".global" : "", with_offset(out, "%l3"));
}

void misaligned(Writer& out) {
  access(out, ".global", fmt::format("%l{}+{}", out.random.below(3), 1 + out.random.below(15)));
}

// An address of one space, used in another one; generic addresses in the wrong window.
void wrong_space(Writer& out) {
  constexpr std::array variables = {"svar", "lvar", "gvar", "cvar", "dyn"};
  constexpr std::array windows = {"shared", "local", "global", "const"};
  out.line("mov.u64 %l3, {};", out.random.pick(variables));
  if (out.random.one_in(2))
    out.line("cvta{}.{}.u64 %l3, %l3;", out.random.one_in(3) ? ".to" : "", out.random.pick(windows));
  if (out.random.one_in(3)) out.line("cvt.u32.u64 %r3, %l3;\n  cvt.u64.u32 %l3, %r3;");
  access(out, out.random.pick(spaces), with_offset(out, "%l3"));
  if (out.random.one_in(3)) out.line("isspacep.{} %p3, %l3;", out.random.pick(windows));
}

void by_name(Writer& out) {
  constexpr std::array names = {"svar", "lvar", "gvar", "cvar", "dyn", "p", "n"};
  const std::string name = out.random.pick(names);
  const std::string own = name == "svar" || name == "dyn" ? ".shared"
                          : name == "lvar"                ? ".local"
                          : name == "gvar"                ? ".global"
                          : name == "cvar"                ? ".const"
                                                          : ".param";
  const int64_t offset =
      out.random.one_in(2) ? static_cast<int64_t>(4 * out.random.below(64)) : static_cast<int32_t>(out.edge());
  access(out, out.random.one_in(4) && own != ".param" ? "" : own, fmt::format("{}+{}", name, offset));
}

// Within bounds, for defined kernels.
void own_memory(Writer& out) {
  out.line("ld.global.u32 {}, [%l0+{}];", out.target('r'), 4 * out.random.below(16));
  out.line("st.global.u32 [%l2+{}], {};", 4 * out.random.below(4), out.source('r'));
  out.line("st.local.b32 [lvar+{}], {};\n  ld.local.b32 {}, [lvar+{}];", 16, out.source('r'), out.target('r'), 16);
  out.line("ld.const.u32 {}, [cvar+{}];", out.target('r'), 4 * out.random.below(64));
}

void textures(Writer& out) {
  constexpr std::array lines = {"tex.1d.v4.f32.s32 {%f3,%f4,%f5,%f6}, [gtex, {%r3}];",
                                "tex.2d.v4.u32.f32 {%r3,%r4,%r5,%r6}, [%l3, {%f3,%f4}];",
                                "tex.level.2d.v4.f32.f32 {%f3,%f4,%f5,%f6}, [%l3, {%f3,%f4}], %f5;",
                                "tex.a2d.v4.f32.f32 {%f3,%f4,%f5,%f6}, [gtex, {%r3,%f3,%f4,%f5}];",
                                "tex.3d.v4.s32.s32 {%r3,%r4,%r5,%r6}, [%l3, {%r3,%r4,%r5,%r6}];",
                                "tld4.r.2d.v4.f32.f32 {%f3,%f4,%f5,%f6}, [%l3, {%f3,%f4}];",
                                "suld.b.2d.b32.trap %r3, [%l3, {%r3,%r4}];",
                                "suld.b.1d.v4.b32.zero {%r3,%r4,%r5,%r6}, [gsurf, {%r3}];",
                                "sust.b.2d.b32.clamp [%l3, {%r3,%r4}], %r5;",
                                "sust.b.1d.v2.b64.trap [gsurf, {%r3}], {%l4,%l5};",
                                "sured.b.add.1d.u32.trap [%l3, {%r3}], %r4;",
                                "txq.width.b32 %r3, [gtex];",
                                "suq.height.b32 %r3, [%l3];"};
  if (out.random.one_in(2))
    out.line("mov.u64 %l3, {};", out.random.one_in(2) ? out.wild_address() : out.random.below(8));
  else
    out.line("mov.u64 %l3, {};", out.random.one_in(2) ? "gtex" : "gsurf");
  out.raw(out.guard() + out.random.pick(lines));
}

void cache_control(Writer& out) {
  constexpr std::array lines = {
      "prefetch.global.L1 [%l3];",
      "prefetch.local.L2 [%l3];",
      "prefetchu.L1 [%l3];",
      "applypriority.global.L2::evict_normal [%l3], 128;",
      "discard.global.L2 [%l3], 128;",
      "createpolicy.range.global.L2::evict_last.L2::evict_unchanged.b64 %l4, [%l3], %r3, %r4;",
      "ld.global.nc.L1::no_allocate.v4.u32 {%r3,%r4,%r5,%r6}, [%l3];",
      "ldu.global.u32 %r3, [%l3];",
      "cp.async.bulk.prefetch.L2.global [%l3], %r3;",
      "st.bulk.shared::cta [%l3], %l4, 0;"};
  out.line("mov.u64 %l3, {};", out.wild_address());
  out.raw(out.guard() + out.random.pick(lines));
}

void stack(Writer& out) {
  out.line("stacksave.u64 %l5;");
  if (out.random.one_in(2))
    out.line("alloca.u64 %l3, {}, 16;", out.random.one_in(2) ? 16 + out.random.below(64) : out.edge() & 0x7fffffff);
  else
    out.line("alloca.u64 %l3, %l4;");
  access(out, out.random.one_in(2) ? ".local" : "", with_offset(out, "%l3"));
  out.line("{}stackrestore.u64 %l{};", out.guard(), out.random.one_in(3) ? 4 : 5);
}

constexpr std::array features = {HostileFeature{"wild address", wild},
                                 HostileFeature{"behind the end", behind_the_end},
                                 HostileFeature{"misaligned", misaligned},
                                 HostileFeature{"wrong space", wrong_space},
                                 HostileFeature{"by name", by_name},
                                 HostileFeature{"own memory", own_memory, true},
                                 HostileFeature{"textures", textures},
                                 HostileFeature{"cache control", cache_control},
                                 HostileFeature{"stack", stack}};

} // namespace

std::span<const HostileFeature> memory_features() {
  return features;
}

} // namespace ptxrewrite::fuzz
