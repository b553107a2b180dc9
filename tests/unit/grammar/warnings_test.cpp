// Text that the reader accepts but ptxas refuses gets a warning; text beyond the reader's limits is refused.
#include "tests/unit/grammar/read.h"
#include "tests/unit/paths.h"

#include <doctest/doctest.h>

#include <fstream>
#include <set>
#include <sstream>
#include <vector>

namespace ptxrewrite::tests::warnings_test {

using namespace ptxrewrite;

namespace {

std::string with_header(const std::string& version, const std::string& target, const std::string& body) {
  return ".version " + version + "\n.target " + target + "\n.address_size 64\n.visible .entry k(.param .u64 a)\n{\n" +
         ".reg .pred %p<3>; .reg .b32 %r<5>; .reg .b64 %rd<3>; .reg .f32 %f<4>;\n" + body + "\nret;\n}\n";
}

// "" without a message, the warning's text, or "refused".
std::string said(const std::string& text) {
  ReadText read(text);
  if (!read.ok()) return "refused";
  std::string all;
  for (const Diagnostic& diagnostic : read.diagnostics.list())
    all += diagnostic.message + "\n";
  return all;
}

// One instruction with each combination of optional operands.
std::vector<std::string> texture_levels(const std::string& opcode, unsigned dimensions) {
  if (opcode == "tex.level") return {", %f10", ", %i10", ", 2", ", 2.0"};
  if (opcode != "tex.grad") return {""};
  const std::string gradients[] = {"", "{%f4}", "{%f4,%f5}", "", "{%f4,%f5,%f6,%f7}"};
  return {", " + gradients[dimensions] + ", " + gradients[dimensions]};
}

} // namespace

TEST_CASE("what ptxas refuses for .version and .target is warned of, once") {
  CHECK(said(with_header("7.0", "sm_80", "vote.all.pred %p1, %p2;\nvote.all.pred %p1, %p2;")) ==
        "'vote.all.pred' needs PTX 1.2+, sm_12..sm_62; this file is PTX 7.0 for sm_80\n");
  CHECK(said(with_header("6.3", "sm_70", "vote.all.pred %p1, %p2;")) == "");
  CHECK(said(with_header("3.2", "sm_35", "cvta.shared::cluster.u64 %rd1, %rd2;")) ==
        "'cvta.shared::cluster.u64' needs PTX 7.8+, sm_90+; this file is PTX 3.2 for sm_35\n");
  CHECK(said(with_header("9.0", "sm_90", "div.f32 %f1, %f2, %f3;")).starts_with("'div.f32' needs PTX 1.0..1.3"));
  CHECK(said(with_header("9.0", "sm_90", "div.rn.f32 %f1, %f2, %f3;")) == "");
  // ptxas 13.0: "Feature 'max.f32 with 3 input operands' requires .target sm_100 or higher", "mbarrier.arrive with
  // count argument and without '.noComplete' modifier requires .target sm_90 or higher".
  CHECK(said(with_header("9.0", "sm_90", "max.f32 %f1, %f2, %f3;")) == "");
  CHECK(said(with_header("9.0", "sm_90", "max.f32 %f1, %f2, %f3, %f2;\nmax.f32 %f1, %f2, %f3, %f2;")) ==
        "'max.f32' with these operands needs PTX 8.8+, sm_100+; this file is PTX 9.0 for sm_90\n");
  CHECK(said(with_header("9.0", "sm_100", "max.f32 %f1, %f2, %f3, %f2;")) == "");
  CHECK(said(with_header("9.0", "sm_80", "mbarrier.arrive.shared.b64 _, [%rd1];")) == "");
  CHECK(said(with_header("9.0", "sm_80", "mbarrier.arrive.shared.b64 _, [%rd1], %r1;"))
            .starts_with("'mbarrier.arrive.shared.b64' with these operands needs PTX 7.8+, sm_90+"));
  // ptxas 13.5: "Feature '%cluster_ctarank' requires .target sm_90 or higher", "Feature '%locality_domain_id' requires
  // .target sm_100 or higher".
  CHECK(said(with_header("9.0", "sm_89", "mov.u32 %r1, %cluster_ctarank;\nmov.u32 %r2, %cluster_ctarank;")) ==
        "'%cluster_ctarank' needs sm_90 or later; this file is for sm_89\n");
  CHECK(said(with_header("9.0", "sm_90", "mov.u32 %r1, %cluster_ctarank;")) == "");
  CHECK(said(with_header("9.5", "sm_90a", "mov.u32 %r1, %locality_domain_id;")) ==
        "'%locality_domain_id' needs sm_100 or later; this file is for sm_90a\n");
  CHECK(said(with_header("9.5", "sm_120f", "mov.u32 %r1, %locality_domain_id;")) == "");
  CHECK(said(with_header("7.0", "sm_90", "")) == "'sm_90' needs PTX 7.8 or later\n");
  CHECK(said(with_header("8.0", "sm_80", "this_is_no_ptx %r0;\nthis_is_no_ptx %r1;"))
            .starts_with("unknown instruction 'this_is_no_ptx'"));
  CHECK(
      said(with_header("8.0", "sm_80", "future.op.u32 %r0, %r1;")).starts_with("unknown instruction 'future.op.u32'"));
}

TEST_CASE("constants: ptxas refuses a digit behind 2^63, and cuts other long ones") {
  auto of = [](const std::string& constant) { return said(kernel("mov.u64 %rd1, " + constant + ";")); };
  for (const char* fits :
       {"0xffffffffffffffff", "18446744073709551615", "01777777777777777777777", "0x0000000000000000000000001"})
    CHECK_MESSAGE(of(fits) == "", fits);
  for (const char* cut : {"0x10000000000000000", "0x1ffffffffffffffff", "92233720368547758079", "18446744073709551616"})
    CHECK_MESSAGE(of(cut).find("does not fit into 64 bits; as in ptxas, it is ") != std::string::npos, cut);
  for (const char* refused : {"0xfffffffffffffffff", "0xfffffffffffffffffff", "0x80000000000000000",
                              "92233720368547758080", "017777777777777777777777", "99999999999999999999"})
    CHECK_MESSAGE(of(refused) == "refused", refused);
}

TEST_CASE("arrays and register ranges beyond what ptxas takes") {
  CHECK(said(kernel("", ".shared .b8 x[9999999999999];\n")) == "refused");
  CHECK(said(kernel("", ".global .b64 x[2305843009213693952];\n")) == "refused");
  CHECK(said(kernel("", ".global .b8 x[4294967296][4294967296];\n")) == "refused");
  CHECK(said(kernel("", ".global .b8 x[4294967296];\n")) == "");
  CHECK(said(kernel(".reg .b32 %q<4294967295>;")) == "refused");
  CHECK(said(kernel(".reg .b32 %q<16777216>;")) == "");
}

TEST_CASE("pointers to textures as parameters, masks of generic addresses") {
  const std::string parameters = ".version 6.0\n.target sm_70, texmode_independent\n.address_size 64\n.entry k(\n"
                                 "  .param .u64 .ptr .texref p0, .param .u64 .ptr .samplerref p1,\n"
                                 "  .param .u64 .ptr .surfref p2, .param .u32 n)\n{ ret; }\n";
  CHECK(said(parameters) == "");
  const std::string printed = ir::print(*ReadText(parameters).module);
  CHECK(printed.find(".param .u64 .ptr .samplerref p1") != std::string::npos);
  const std::string masks =
      ".global .u32 p;\n.global .u8 s[4] = {0xFF(generic(p)), 0xFF00(p), 0xFF(generic(p)+4), 12};\n";
  CHECK(said(kernel("", masks)) == "");
  ReadText read(kernel("", masks));
  CHECK(ir::print(*read.module).find("(generic(p)+4), 12") != std::string::npos);
  CHECK(said(kernel("", ".global .u8 s[4] = {0xFF(generic), 0, 0, 0};\n")) == "refused");
}

TEST_CASE("optional operands of tex and tld4: what ptxas accepts, and nothing else") {
  std::set<std::string> accepted; // opcode geometry texel coordinates level options
  std::ifstream file(tests::source_path("tests/grammar/texture_operands.tsv"));
  for (std::string line; std::getline(file, line);) {
    if (line[0] == '#') continue;
    std::istringstream columns(line);
    std::string column[6];
    for (std::string& text : column)
      std::getline(columns, text, '\t');
    std::istringstream geometries(column[3]);
    for (std::string geometry; geometries >> geometry;) {
      std::istringstream texels(column[4]);
      for (std::string texel; texels >> texel;) {
        std::istringstream options(column[5]);
        for (std::string option; options >> option;)
          accepted.insert(column[0] + " " + geometry + " " + texel + " " + column[1] + " " + column[2] + " " + option);
      }
    }
  }
  const std::vector<std::string> words = {"", "{%c0}", "{%c0,%c1}", "", "{%c0,%c1,%c2,%c3}"};
  auto numbered = [&](unsigned count, const std::string& prefix) {
    std::string text = words[count];
    for (size_t at; (at = text.find("%c")) != std::string::npos;)
      text.replace(at, 2, prefix);
    return text;
  };
  size_t judged = 0, refused = 0;
  for (const char* opcode : {"tex", "tex.base", "tex.level", "tex.grad", "tld4.r", "tld4.g", "tld4.b", "tld4.a"})
    for (auto [geometry, dimensions] : {std::pair{"1d", 1u},
                                        {"2d", 2u},
                                        {"3d", 4u},
                                        {"a1d", 1u},
                                        {"a2d", 2u},
                                        {"cube", 4u},
                                        {"acube", 4u},
                                        {"2dms", 2u},
                                        {"a2dms", 2u}})
      for (const char* texel : {"v4.u32", "v4.s32", "v4.f32", "v4.f16", "v2.f16x2"})
        for (const char* coordinates : {"s32", "f32"})
          for (const std::string& level : texture_levels(opcode, dimensions))
            for (unsigned options = 0; options < 8; ++options)
              for (const char* sampler : {"", "%s, "}) {
                const std::string name = geometry, r = coordinates[0] == 'f' ? "%f" : "%i";
                const std::string vector = name.ends_with("ms")    ? "{%i0,%i1,%i2,%i3}"
                                           : name == "a1d"         ? "{%i0," + r + "1}"
                                           : name.starts_with("a") ? "{%i0," + r + "1," + r + "2," + r + "3}"
                                                                   : numbered(dimensions, r);
                const std::string texels = texel;
                const std::string results = texels == "v2.f16x2" ? "{%i12,%i13}"
                                            : texels == "v4.f16" ? "{%q0,%q1,%q2,%q3}"
                                            : texels == "v4.f32" ? "{%f12,%f13,%f14,%f15}"
                                                                 : "{%i12,%i13,%i14,%i15}";
                const std::string statement =
                    std::string(opcode) + "." + name + "." + texels + "." + coordinates + " " + results +
                    (options & 1 ? "|%p" : "") + ", [%a, " + sampler + vector + "]" + level +
                    (options & 2 ? ", " + numbered(dimensions, "%i") : "") + (options & 4 ? ", %f11" : "") + ";";
                const std::string kind = std::string(opcode) != "tex.level" ? "-"
                                         : level == ", %f10"                ? "f32"
                                         : level == ", %i10"                ? "b32"
                                         : level == ", 2"                   ? "integer"
                                                                            : "float";
                std::string chosen =
                    std::string(options & 1 ? "p" : "") + (options & 2 ? "e" : "") + (options & 4 ? "f" : "");
                if (chosen.empty()) chosen = "-";
                const bool legal = accepted.contains(std::string(opcode) + " " + name + " " + texels + " " +
                                                     coordinates + " " + kind + " " + chosen);
                const bool read =
                    ReadText(".version 9.0\n.target sm_90" + std::string(*sampler ? ", texmode_independent" : "") +
                             "\n.address_size 64\n.entry k()\n{\n.reg .b64 %a, %s; .reg .f32 %f<16>; .reg .b32 "
                             "%i<16>; .reg .pred %p; .reg .b16 %q<4>;\n" +
                             statement + "\nret;\n}\n")
                        .ok();
                ++judged;
                CHECK_MESSAGE(read == legal, statement);
                refused += !read;
              }
  CHECK(judged == 15840);
  CHECK(refused > 8000);
}

} // namespace ptxrewrite::tests::warnings_test
