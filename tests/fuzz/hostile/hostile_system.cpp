// Calls of the driver's functions with invalid arguments.
#include "tests/fuzz/hostile/hostile_writer.h"

#include <array>

namespace ptxrewrite::fuzz {

namespace {

using Writer = HostileWriter;

void print(Writer& out) {
  constexpr std::array formats = {
      "%d %s\n", "%n%n",         "%*d", "%.*f %lld", "%2147483647d", "%.2147483647f", "%s%s%s%s%s%s", "%-+ #0999x",
      "%p %a",   "%hhd%zd%jd",   "%",   "%%%",       "%c%c",         "%99999999999d", "%.d%-",        "%5$d",
      "%lls",    "no conversion"};
  const std::string text = out.random.pick(formats), name = out.name("format");
  std::string bytes;
  for (const char c : text)
    bytes += fmt::format("{}, ", static_cast<int>(c));
  // The end of the string may be missing.
  const bool ends = !out.random.one_in(5);
  if (!ends) bytes.resize(bytes.size() - 2);
  out.module += fmt::format(".global .align 1 .b8 {}[{}] = {{{}{}}};\n", name, text.size() + (ends ? 1 : 0), bytes,
                            ends ? "0" : "");
  out.line("mov.u64 %l3, {};\n  cvta.global.u64 %l3, %l3;", name);
  if (out.random.one_in(6)) out.line("mov.u64 %l3, {};", out.wild_address());
  out.line("st.local.u64 [lvar], {};\n  mov.u64 %l4, lvar;\n  cvta.local.u64 %l4, %l4;", out.source('l'));
  if (out.random.one_in(6)) out.line("mov.u64 %l4, {};", out.wild_address());
  out.line("{{\n    .param .b64 f;\n    .param .b64 v;\n    .param .b32 r;\n    st.param.b64 [f], %l3;\n    "
           "st.param.b64 [v], %l4;\n"
           "    {}call (r), vprintf, (f, v);\n    ld.param.b32 %r3, [r];\n  }}",
           out.guard());
}

void heap(Writer& out) {
  const bool loops = out.random.one_in(4);
  const std::string head = out.label();
  if (loops) out.place(head);
  if (out.random.one_in(2)) out.line("mov.u64 %l4, {};", out.random.one_in(2) ? out.random.below(1000) : out.edge());
  out.line("{{\n    .param .b64 a;\n    .param .b64 r;\n    st.param.b64 [a], %l4;\n    {}call (r), malloc, (a);\n    "
           "ld.param.b64 %l3, [r];\n  }}",
           out.guard());
  if (out.random.one_in(2)) out.line("st.u32 [%l3+{}], %r4;", out.random.one_in(2) ? 0 : out.edge() & 0xfffc);
  for (size_t i = 0, n = out.random.below(3); i < n; ++i)
    out.line("{{\n    .param .b64 a;\n    st.param.b64 [a], %l{};\n    {}call free, (a);\n  }}",
             out.random.one_in(3) ? out.random.below(5) : 3, out.guard());
  if (loops) out.line("bra {};", head);
}

void assertion(Writer& out) {
  out.line(
      "{{\n    .param .b64 a;\n    .param .b64 b;\n    .param .b32 c;\n    .param .b64 d;\n    .param .b64 e;\n    "
      "st.param.b64 [a], {};\n"
      "    st.param.b64 [b], %l0;\n    st.param.b32 [c], -1;\n    st.param.b64 [d], {};\n    st.param.b64 [e], 1;\n"
      "    @%p{} call __assertfail, (a, b, c, d, e);\n  }}",
      out.wild_address(), out.wild_address(), out.random.below(8));
}

constexpr std::array features = {HostileFeature{"print", print}, HostileFeature{"heap", heap},
                                 HostileFeature{"assertion", assertion}};

} // namespace

std::span<const HostileFeature> system_features() {
  return features;
}

} // namespace ptxrewrite::fuzz
