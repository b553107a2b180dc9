// mma of eight or sixteen rows and wmma by whole warps, which hosts with AVX-512 carry out in registers, against the
// same product with the lanes at two places, which takes the general way: the same bits for all forms and any words in
// the registers.
#include "tests/unit/emulator/run_ptx.h"

#include <fmt/format.h>

#include <random>

namespace ptxrewrite::emulator::matrix_paths_test {
namespace {

struct Form {
  std::string words; // after mma or with wmma
  unsigned a = 4, b = 2, c = 4;
  unsigned selectors = 0; // of a sparse A
  bool scaled = false;
  unsigned bits = 32; // of registers
};

std::string list(char name, unsigned count) {
  std::string text = fmt::format("{{%{}0", name);
  for (unsigned i = 1; i < count; ++i)
    text += fmt::format(", %{}{}", name, i);
  return text + "}";
}

// Registers a, b, c and the metadata are rows of 32 words at `in`, the results rows at `out`.
std::string product_kernel(const Form& form, unsigned selector, bool apart) {
  const char* opcode = form.words.starts_with('.') ? "mma" : "";
  std::string product = fmt::format("{}{} {}, {}, {}, {}", opcode, form.words, list('d', form.c), list('a', form.a),
                                    list('b', form.b), list('c', form.c));
  // Single registers may be in braces.
  if (form.selectors) product += fmt::format(", {}, {:#x}", apart ? "{%m0}" : "%m0", selector);
  if (form.scaled) product += apart ? ", {%s0}, {0, 0}, {%s1}, {0, 0}" : ", %s0, {0, 0}, %s1, {0, 0}";
  std::string body =
      fmt::format("  .reg .b{} %a<8>, %b<4>, %c<8>, %d<8>;\n  .reg .b32 %m<1>, %s<2>, %lane;\n  .reg .b64 %rd<4>;\n"
                  "  .reg .pred %p;\n  mov.u32 %lane, %tid.x;\n  mul.wide.u32 %rd0, %lane, {};\n",
                  form.bits, form.bits / 8) +
      "  ld.param.u64 %rd1, [in];\n  add.u64 %rd1, %rd1, %rd0;\n  ld.param.u64 %rd2, [out];\n"
      "  add.u64 %rd2, %rd2, %rd0;\n";
  unsigned row = 0;
  for (const auto& [name, count] : {std::pair('a', form.a), std::pair('b', form.b), std::pair('c', form.c)})
    for (unsigned i = 0; i < count; ++i)
      body += fmt::format("  ld.global.b{} %{}{}, [%rd1+{}];\n", form.bits, name, i, row++ * 4 * form.bits);
  for (const char* name : {"m0", "s0", "s1"})
    if (form.bits == 32) body += fmt::format("  ld.global.u32 %{}, [%rd1+{}];\n", name, row++ * 128);
  if (apart) body += "  setp.lt.u32 %p, %lane, 13;\n  @%p bra LOWER;\n  " + product + ";\n  bra END;\nLOWER:\n";
  body += "  " + product + ";\nEND:\n";
  for (unsigned i = 0; i < form.c; ++i)
    body += fmt::format("  st.global.b{} [%rd2+{}], %d{};\n", form.bits, i * 4 * form.bits, i);
  std::string text = kernel("k", ".param .u64 in, .param .u64 out", body + "  ret;\n");
  return text;
}

std::string replaced(std::string text, std::string_view what, std::string_view by) {
  const size_t at = text.find(what);
  REQUIRE(at != std::string::npos);
  return text.replace(at, what.size(), by);
}

std::vector<uint32_t> results_of(const Form& form, const std::string& kernel, const std::vector<uint32_t>& words) {
  const PtxRun run =
      run_ptx(kernel, {.kernel = "k", .block = {32}}, {buffer_of(words), zeros<uint32_t>(form.c * form.bits)});
  REQUIRE(run.error == "");
  REQUIRE(run.failure() == "");
  return run.buffer<uint32_t>(1);
}

std::vector<uint32_t> results(const Form& form, unsigned selector, bool apart, const std::vector<uint32_t>& words) {
  return results_of(form, product_kernel(form, selector, apart), words);
}

std::vector<Form> dense_forms() {
  std::vector<Form> forms = {{".sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"},
                             {".sync.aligned.m16n8k16.row.col.f16.f16.f16.f16", 4, 2, 2},
                             {".sync.aligned.m16n8k8.row.col.f32.f16.f16.f32", 2, 1},
                             {".sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32", 2, 1},
                             {".sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"},
                             {".sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"},
                             {".sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32", 2, 1},
                             {".sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32"},
                             {".sync.aligned.m16n8k16.row.col.f16.e5m2.e4m3.f16", 2, 1, 2}};
  for (const char* a : {"e4m3", "e5m2", "e3m2", "e2m3", "e2m1"})
    for (const char* b : {"e4m3", "e5m2", "e3m2", "e2m3", "e2m1"})
      forms.push_back({fmt::format(".sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.{}.{}.f32", a, b)});
  for (const char* layouts : {"row.col", "row.row", "col.col", "col.row"}) {
    forms.push_back({fmt::format(".sync.aligned.m8n8k4.{}.f32.f16.f16.f32", layouts), 2, 2, 8});
    forms.push_back({fmt::format(".sync.aligned.m8n8k4.{}.f16.f16.f16.f16", layouts), 2, 2, 4});
  }
  for (const char* a : {"s8", "u8"})
    for (const char* b : {"s8", "u8"})
      for (const char* clamps : {"", ".satfinite"}) {
        forms.push_back({fmt::format(".sync.aligned.m16n8k32.row.col{}.s32.{}.{}.s32", clamps, a, b)});
        forms.push_back({fmt::format(".sync.aligned.m16n8k16.row.col{}.s32.{}.{}.s32", clamps, a, b), 2, 1});
        forms.push_back({fmt::format(".sync.aligned.m16n8k64.row.col{}.s32.{}4.{}4.s32", clamps, a[0], b[0])});
        forms.push_back({fmt::format(".sync.aligned.m16n8k32.row.col{}.s32.{}4.{}4.s32", clamps, a[0], b[0]), 2, 1});
        forms.push_back({fmt::format(".sync.aligned.m8n8k16.row.col{}.s32.{}.{}.s32", clamps, a, b), 1, 1, 2});
        forms.push_back({fmt::format(".sync.aligned.m8n8k32.row.col{}.s32.{}4.{}4.s32", clamps, a[0], b[0]), 1, 1, 2});
      }
  return forms;
}

std::vector<Form> sparse_forms() {
  std::vector<Form> forms = {{".sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32", 4, 4, 4, 2},
                             {".sp.sync.aligned.m16n8k32.row.col.f16.f16.f16.f16", 4, 4, 2, 2},
                             {".sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", 2, 2, 4, 4},
                             {".sp.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", 2, 2, 4, 4},
                             {".sp.sync.aligned.m16n8k32.row.col.f32.bf16.bf16.f32", 4, 4, 4, 2},
                             {".sp.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", 2, 2, 4, 4},
                             {".sp.sync.aligned.m16n8k16.row.col.f32.tf32.tf32.f32", 4, 4, 4, 2},
                             {".sp.sync.aligned.m16n8k64.row.col.f32.e4m3.e5m2.f32", 4, 4, 4, 1},
                             {".sp.sync.aligned.m16n8k64.row.col.s32.s8.u8.s32", 4, 4, 4, 1},
                             {".sp.sync.aligned.m16n8k64.row.col.satfinite.s32.u8.u8.s32", 4, 4, 4, 1},
                             {".sp.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32", 2, 2, 4, 2},
                             {".sp.sync.aligned.m16n8k128.row.col.s32.s4.s4.s32", 4, 4, 4, 1},
                             {".sp.sync.aligned.m16n8k128.row.col.satfinite.s32.u4.s4.s32", 4, 4, 4, 1},
                             {".sp.sync.aligned.m16n8k64.row.col.s32.s4.u4.s32", 2, 2, 4, 2}};
  for (const char* a : {"e4m3", "e3m2", "e2m1"})
    forms.push_back({fmt::format(".sp::ordered_metadata.sync.aligned.m16n8k64.row.col.kind::f8f6f4.f32.{}.e2m3.f32", a),
                     4, 4, 4, 1});
  return forms;
}

// Metadata of a lane: two of four units, in ascending order, eight times.
uint32_t pairs_of_indices(std::mt19937& random) {
  constexpr uint32_t pairs[] = {0b0100, 0b1000, 0b1100, 0b1001, 0b1101, 0b1110};
  uint32_t word = 0;
  for (unsigned i = 0; i < 8; ++i)
    word = word << 4 | pairs[random() % std::size(pairs)];
  return word;
}

void check_form(const Form& form, unsigned seeds) {
  CAPTURE(form.words);
  for (unsigned seed = 0; seed < seeds; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    std::vector<uint32_t> words((form.a + form.b + form.c + 3) * form.bits);
    // Any words are mostly large numbers and, in f16, a NaN in each sum; without some bits they are near one.
    for (uint32_t& word : words)
      word = static_cast<uint32_t>(random()) & (seed % 2 ? 0xffffffff : 0xbfbfbfbf);
    // In f64 few words are special ones, and few sums are NaNs.
    for (size_t i = 1; form.bits == 64 && seed % 4 == 3 && i < words.size(); i += 2)
      words[i] = random() % 8 ? words[i] & 0xbfffffff : words[i] | 0x7ff00000;
    for (size_t i = 1; form.bits == 64 && seed % 4 == 2 && i < words.size(); i += 2)
      words[i] &= random() % 2 ? 0x800fffff : 0x801fffff; // subnormal numbers, and ones near them
    // Any words select some unit twice; with these indices no pair does.
    if (form.selectors && seed % 4 < 2)
      for (unsigned lane = 0; lane < 32; ++lane)
        words[(form.a + form.b + form.c) * 32 + lane] = pairs_of_indices(random);
    // Any words are scales of which some are too large or small for whole warps; between 2^-31 and 2^32 none is.
    if (form.scaled && seed % 4 < 2)
      for (size_t i = words.size() - 64; i < words.size(); ++i)
        words[i] = (words[i] & 0x3f3f3f3f) + 0x60606060;
    const unsigned selector = form.selectors ? seed % form.selectors : 0;
    CHECK(results(form, selector, false, words) == results(form, selector, true, words));
  }
}

TEST_CASE("dense products of sixteen rows by whole warps and by warps in two parts have the same bits") {
  for (const Form& form : dense_forms())
    check_form(form, 8);
}

TEST_CASE("sparse products of sixteen rows likewise, for any metadata") {
  for (const Form& form : sparse_forms())
    check_form(form, 8);
}

TEST_CASE("products of f64 likewise, in all directions of rounding") {
  for (const char* rounding : {"", ".rz", ".rm", ".rp"}) {
    const auto form = [&](const char* shape, unsigned a, unsigned b, unsigned c) {
      const std::string words = fmt::format(".sync.aligned.{}.row.col{}.f64.f64.f64.f64", shape, rounding);
      check_form({words, a, b, c, 0, false, 64}, 16);
    };
    form("m8n8k4", 1, 1, 2);
    form("m16n8k4", 2, 1, 4);
    form("m16n8k8", 4, 2, 4);
    form("m16n8k16", 8, 4, 4);
    check_form({fmt::format("wmma.mma.sync.aligned.row.col.m8n8k4{}.f64.f64.f64.f64", rounding), 1, 1, 2, 0, false, 64},
               16);
  }
}

TEST_CASE("results that are not wanted, and operands that are constants") {
  for (const Form& form : {Form{".sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"},
                           Form{".sp.sync.aligned.m16n8k16.row.col.f32.tf32.tf32.f32", 4, 4, 4, 2}}) {
    CAPTURE(form.words);
    std::mt19937 random(7);
    std::vector<uint32_t> words((form.a + form.b + form.c + 3) * 32);
    for (uint32_t& word : words)
      word = static_cast<uint32_t>(random()) & 0xbfbfbfbf;
    const std::string whole = product_kernel(form, 0, false);
    std::vector<uint32_t> wanted = results_of(form, whole, words);
    std::fill_n(wanted.begin() + 32, 32, 0); // nothing is written to the second register
    CHECK(results_of(form, replaced(whole, "{%d0, %d1", "{%d0, _"), words) == wanted);
    std::fill_n(words.begin(), 32, 0x3c003c00);
    std::fill_n(words.begin() + (form.a + form.b) * 32, 32, 0x3fc00000);
    const std::string constants = replaced(replaced(whole, "{%a0", "{0x3c003c00"), "{%c0", "{0f3fc00000");
    CHECK(results_of(form, constants, words) == results_of(form, whole, words));
  }
}

TEST_CASE("packed products of bytes likewise") {
  for (const char* type : {"s8", "u8"})
    for (const char* clamps : {"", ".satfinite"})
      check_form({fmt::format("wmma.mma.sync.aligned.row.col.m16n16k16.s32.{0}.{0}.s32{1}", type, clamps), 2, 2, 8}, 8);
}

TEST_CASE("block-scaled products by whole warps and by warps in two parts have the same bits") {
  for (const char* kind : {"mxf4nvf4.block_scale.scale_vec::4X.m16n8k64.row.col.f32.e2m1.e2m1.f32.ue4m3",
                           "mxf4nvf4.block_scale.scale_vec::2X.m16n8k64.row.col.f32.e2m1.e2m1.f32.ue8m0",
                           "mxf4.block_scale.scale_vec::2X.m16n8k64.row.col.f32.e2m1.e2m1.f32.ue8m0",
                           "mxf8f6f4.block_scale.scale_vec::1X.m16n8k32.row.col.f32.e4m3.e2m3.f32.ue8m0"})
    check_form({fmt::format(".sync.aligned.kind::{}", kind), 4, 2, 4, 0, true}, 8);
  for (const char* kind : {"mxf4nvf4.block_scale.scale_vec::4X.m16n8k128.row.col.f32.e2m1.e2m1.f32.ue4m3",
                           "mxf4nvf4.block_scale.scale_vec::2X.m16n8k128.row.col.f32.e2m1.e2m1.f32.ue8m0",
                           "mxf4.block_scale.scale_vec::2X.m16n8k128.row.col.f32.e2m1.e2m1.f32.ue8m0",
                           "mxf8f6f4.block_scale.scale_vec::1X.m16n8k64.row.col.f32.e5m2.e4m3.f32.ue8m0"})
    check_form({fmt::format(".sp::ordered_metadata.sync.aligned.kind::{}", kind), 4, 4, 4, 1, true}, 8);
}

// Scales of A 2^104 times as large and of B 2^104 times as small leave the product as it is.
TEST_CASE("block-scaled products with moderate and with extreme scales have the same bits") {
  std::vector<Form> forms = {
      {".sync.aligned.kind::mxf4.block_scale.scale_vec::2X.m16n8k64.row.col.f32.e2m1.e2m1.f32.ue8m0", 4, 2, 4, 0, true},
      {".sp::ordered_metadata.sync.aligned.kind::mxf8f6f4.block_scale.scale_vec::1X.m16n8k64.row.col.f32.e4m3.e5m2.f32."
       "ue8m0",
       4, 4, 4, 1, true}};
  for (const char* types : {"e4m3.e4m3", "e5m2.e4m3", "e2m3.e5m2", "e2m1.e3m2"})
    forms.push_back({fmt::format(".sync.aligned.kind::mxf8f6f4.block_scale.scale_vec::1X.m16n8k32.row.col.f32.{}.f32."
                                 "ue8m0",
                                 types),
                     4, 2, 4, 0, true});
  for (const Form& form : forms)
    for (unsigned seed = 0; seed < 8; ++seed) {
      CAPTURE(form.words);
      CAPTURE(seed);
      std::mt19937 random(seed);
      const size_t scales = (form.a + form.b + form.c + 1) * 32;
      std::vector<uint32_t> words(scales + 64);
      for (size_t i = 0; i < scales; ++i)
        words[i] = i / 32 == scales / 32 - 1 ? 0x44444444 : static_cast<uint32_t>(random()) & 0xbfbfbfbf;
      std::vector<uint32_t> extreme = words;
      for (size_t i = 0; i < 64; ++i)
        for (unsigned byte = 0; byte < 4; ++byte) {
          const auto code = static_cast<uint32_t>(i < 32 ? 124 + random() % 20 : 105 + random() % 20);
          words[scales + i] |= code << (8 * byte);
          extreme[scales + i] |= (i < 32 ? code + 104 : code - 104) << (8 * byte);
        }
      CHECK(results(form, 0, false, words) == results(form, 0, false, extreme));
    }
}

} // namespace
} // namespace ptxrewrite::emulator::matrix_paths_test
