// Whole vector registers are the list of their elements, in all positions: expected values are written with scalar
// registers' numbers.
#include "tests/unit/emulator/run_ptx.h"

namespace ptxrewrite::emulator::vector_registers_test {
namespace {

using Words = std::vector<uint32_t>;

// Runs one thread with x0 .. x3 = 10 .. 13 and rd = the address of 8 words, initialised to 1 .. 8.
Words words_after(const std::string& body, const std::string& functions = {}) {
  const std::string text = kernel("k", ".param .u64 out", R"(
  .reg .b64 rd, l<4>; .reg .b32 x<16>; .reg .b16 h<8>; .reg .pred p<4>;
  .reg .v4 .b32 v, u; .reg .v2 .b32 w; .reg .v2 .b16 hv; .reg .v4 .b16 hw; .reg .v4 .b8 bv; .reg .v2 .b64 dv;
  .reg .b128 q; .reg .v4 .f32 fv;
  ld.param.u64 rd, [out];
  mov.u32 x0, 10; mov.u32 x1, 11; mov.u32 x2, 12; mov.u32 x3, 13;
)" + body + "\nret;",
                                  functions);
  PtxRun run = run_ptx(text, {.kernel = "k"}, {buffer_of(Words{1, 2, 3, 4, 5, 6, 7, 8})});
  CHECK(run.error == "");
  CHECK(run.failure() == "");
  return run.ok() ? run.buffer<uint32_t>(0) : Words();
}

} // namespace

TEST_CASE("a whole vector register is stored and loaded") {
  CHECK(words_after("mov.v4.b32 v, {x0, x1, x2, x3}; st.global.v4.b32 [rd], v;") == Words{10, 11, 12, 13, 5, 6, 7, 8});
  CHECK(words_after("ld.global.v4.b32 v, [rd]; st.global.v4.b32 [rd+16], {v.w, v.z, v.y, v.x};") ==
        Words{1, 2, 3, 4, 4, 3, 2, 1});
  CHECK(words_after("ld.global.v2.b32 w, [rd+8]; st.global.v2.b32 [rd], w; st.global.b32 [rd+8], w.y;") ==
        Words{3, 4, 4, 4, 5, 6, 7, 8});
  CHECK(words_after("ld.global.v2.b64 dv, [rd]; st.global.v2.b64 [rd+16], dv;") == Words{1, 2, 3, 4, 1, 2, 3, 4});
  // Under a guard, and of narrow elements.
  CHECK(words_after("mov.v4.b32 v, {x0, x1, x2, x3}; setp.eq.u32 p0, x0, 11; @p0 ld.global.v4.b32 v, [rd];"
                    "@!p0 st.global.v4.b32 [rd], v;") == Words{10, 11, 12, 13, 5, 6, 7, 8});
  CHECK(words_after("ld.global.v4.b8 bv, [rd+4]; st.global.v4.b8 [rd], {bv.w, bv.x, bv.x, bv.y};") ==
        Words{0x00020200, 2, 3, 4, 5, 6, 7, 8});
}

TEST_CASE("a move of vectors reads all elements before it writes any") {
  CHECK(words_after("mov.v4.b32 {x3, x0, x1, x2}, {x0, x1, x2, x3}; st.global.v4.b32 [rd], {x0, x1, x2, x3};") ==
        Words{11, 12, 13, 10, 5, 6, 7, 8});
  CHECK(words_after("mov.v2.b32 {x0, x1}, {x1, x0}; st.global.v2.b32 [rd], {x0, x1};") ==
        Words{11, 10, 3, 4, 5, 6, 7, 8});
  CHECK(words_after("mov.v4.b32 v, {x0, x1, x2, x3}; mov.v4.b32 v, {v.y, v.z, v.w, v.x}; st.global.v4.b32 [rd], v;") ==
        Words{11, 12, 13, 10, 5, 6, 7, 8});
  CHECK(words_after("mov.v4.b32 v, {x0, x1, x2, x3}; mov.v4.b32 u, v; st.global.v4.b32 [rd], u;") ==
        Words{10, 11, 12, 13, 5, 6, 7, 8});
  CHECK(words_after("setp.ne.u32 p0, x0, 10; @p0 mov.v2.b32 {x0, x1}, {x1, x0}; st.global.v2.b32 [rd], {x0, x1};") ==
        Words{10, 11, 3, 4, 5, 6, 7, 8});
  // If a register occurs twice among the results, the last element is kept.
  CHECK(words_after("mov.v2.b32 {x4, x4}, {x0, x1}; st.global.b32 [rd], x4;") == Words{11, 2, 3, 4, 5, 6, 7, 8});
  CHECK(words_after("mov.v4.b32 {x0, _, x1, x1}, {x1, x2, x0, x3}; st.global.v2.b32 [rd], {x0, x1};") ==
        Words{11, 13, 3, 4, 5, 6, 7, 8});
}

TEST_CASE("a vector that is moved from one register is its parts, each with zeros above it") {
  CHECK(words_after(
            "mov.u32 x4, 0x84838281; mov.v4.b32 {x0, x1, x2, x3}, x4; st.global.v4.b32 [rd], {x0, x1, x2, x3};") ==
        Words{0x81, 0x82, 0x83, 0x84, 5, 6, 7, 8});
  CHECK(words_after("mov.v4.u32 v, 7; st.global.v4.b32 [rd], v;") == Words{7, 0, 0, 0, 5, 6, 7, 8});
}

TEST_CASE("of two results in one predicate the first stays") {
  CHECK(words_after("setp.eq.u32 p0|p0, x0, 10; selp.u32 x4, 1, 2, p0; st.global.b32 [rd], x4;"
                    "setp.eq.and.u32 p1|p1, x0, 11, p0; selp.u32 x4, 1, 2, p1; st.global.b32 [rd+4], x4;") ==
        Words{1, 2, 3, 4, 5, 6, 7, 8});
}

TEST_CASE("a whole vector register is packed and unpacked") {
  CHECK(words_after("mov.v2.b32 w, {x0, x1}; mov.b64 l0, w; st.global.b64 [rd], l0;") ==
        Words{10, 11, 3, 4, 5, 6, 7, 8});
  CHECK(words_after("ld.global.b64 l0, [rd+8]; mov.b64 w, l0; st.global.v2.b32 [rd], {w.y, w.x};") ==
        Words{4, 3, 3, 4, 5, 6, 7, 8});
  CHECK(words_after("mov.u32 x4, 0x80017fff; mov.b32 hv, x4; mov.b32 x5, {hv.y, hv.x}; st.global.b32 [rd], x5;") ==
        Words{0x7fff8001, 2, 3, 4, 5, 6, 7, 8});
  CHECK(words_after("ld.global.b64 l0, [rd]; mov.b64 hw, l0; mov.b64 l1, hw; st.global.b64 [rd+8], l1;") ==
        Words{1, 2, 1, 2, 5, 6, 7, 8});
  CHECK(words_after("mov.u32 x4, 0x04030201; mov.b32 bv, x4; mov.b32 x5, {bv.w, bv.z, bv.y, bv.x};"
                    "st.global.b32 [rd], x5;") == Words{0x01020304, 2, 3, 4, 5, 6, 7, 8});
  CHECK(words_after("mov.v4.b32 v, {x0, x1, x2, x3}; mov.b128 q, v; st.global.b128 [rd], q;") ==
        Words{10, 11, 12, 13, 5, 6, 7, 8});
}

TEST_CASE("a whole vector register in an atomic operation") {
  CHECK(words_after("mov.b32 x4, 0f3f800000; mov.v4.b32 v, {x4, x4, x4, x4}; mov.v4.b32 u, {x0, x0, x0, x0};"
                    "mov.b32 fv.x, x4; mov.b32 fv.y, x4; mov.b32 fv.z, x4; mov.b32 fv.w, 0f40000000;"
                    "st.global.v4.b32 [rd], v; atom.global.add.v4.f32 fv, [rd], fv; st.global.v4.f32 [rd+16], fv;") ==
        Words{0x40000000, 0x40000000, 0x40000000, 0x40400000, 0x3f800000, 0x3f800000, 0x3f800000, 0x3f800000});
}

TEST_CASE("a register parameter that is a vector arrives whole, and so does a result") {
  const std::string function = R"(
.func (.reg .v4 .u32 r, .reg .u32 sum) f(.reg .u32 first, .reg .v4 .u32 in) {
  add.u32 sum, in.x, in.y; add.u32 sum, sum, in.z; mad.lo.u32 sum, in.w, 100, sum; add.u32 sum, sum, first;
  mov.v4.u32 r, {in.w, in.z, in.y, in.x};
  ret;
})";
  CHECK(words_after("mov.v4.u32 v, {x0, x1, x2, x3}; call (u, x4), f, (5, v); st.global.b32 [rd+16], x4;"
                    "st.global.v4.b32 [rd], u;",
                    function) == Words{13, 12, 11, 10, 1338, 6, 7, 8});
  CHECK(words_after("mov.v4.u32 v, {x0, x1, x2, x3}; call (_, x4), f, (-1, v); st.global.b32 [rd], x4;"
                    "mov.u32 x5, 0; st.global.b32 [rd+4], x5;",
                    function) == Words{1332, 0, 3, 4, 5, 6, 7, 8});
}

} // namespace ptxrewrite::emulator::vector_registers_test
