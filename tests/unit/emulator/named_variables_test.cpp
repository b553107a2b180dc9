// Variables by name: in generic loads and stores, declared in a function's body, and parameters of functions by their
// address.
#include "tests/unit/emulator/run_ptx.h"

#include <set>

namespace ptxrewrite::emulator::named_variables_test {
namespace {

using Words = std::vector<uint32_t>;

// Runs 4 threads with 4 words each; rd: the address of the thread's words, t: its number.
Words words_after(const std::string& body, const std::string& more = {}, bool check = false) {
  const std::string text = kernel("k", ".param .u64 out", R"(
  .reg .b64 rd, l<8>; .reg .b32 t, x<16>; .reg .pred p<4>;
  mov.u32 t, %tid.x;
  ld.param.u64 rd, [out];
  mad.wide.u32 rd, t, 16, rd;
)" + body + "\nret;",
                                  more);
  PtxRun run = run_ptx(text, {.kernel = "k", .block = {4}, .check = check}, {zeros<uint32_t>(16)});
  CHECK(run.error == "");
  CHECK(run.failure() == "");
  CHECK(run.result.findings.empty());
  return run.ok() ? run.buffer<uint32_t>(0) : Words();
}

// One word per thread, the rest zero.
template <class Value> Words one_each(Value value) {
  Words words(16);
  for (uint32_t thread = 0; thread < 4; ++thread)
    words[thread * 4] = value(thread);
  return words;
}

} // namespace

TEST_CASE("generic loads and stores by the name of a variable of any space") {
  const Words thread_number = one_each([](uint32_t thread) { return thread + 7; });
  CHECK(words_after(".local .b32 own[2]; add.u32 x0, t, 7; st.u32 [own+4], x0; ld.u32 x1, [own+4];"
                    "ld.local.u32 x2, [own+4]; add.u32 x1, x1, x2; sub.u32 x1, x1, x0; st.global.u32 [rd], x1;",
                    {}, true) == thread_number);
  CHECK(words_after(".shared .b32 all[8]; setp.eq.u32 p0, t, 0; @p0 st.u32 [all+4], 7; bar.sync 0;"
                    "ld.u32 x0, [all+4]; add.u32 x0, x0, t; st.global.u32 [rd], x0;") == thread_number);
  CHECK(words_after("ld.u32 x0, [there+8]; add.u32 x0, x0, t; st.u32 [rd], x0;",
                    ".global .b32 there[4] = {5, 6, 7};") == thread_number);
  CHECK(words_after(".shared .b32 sum; st.u32 [sum], 0; bar.sync 0; atom.add.u32 x0, [sum], 2; red.add.u32 [sum], 1;"
                    "bar.sync 0; ld.u32 x0, [sum]; st.global.u32 [rd], x0;") == one_each([](uint32_t) { return 12u; }));
}

TEST_CASE("variables of global and constant memory that a body declares") {
  const Words expected = one_each([](uint32_t thread) { return 3 + thread; });
  CHECK(words_after(".global .b32 from[4] = {1, 2, 3, 4}; ld.global.b32 x0, [from+8]; add.u32 x0, x0, t;"
                    "st.global.b32 [rd], x0;") == expected);
  CHECK(words_after("{ .const .b32 from[] = {1, 2, 3}; ld.const.b32 x0, [from+8]; add.u32 x0, x0, t; }"
                    "st.global.b32 [rd], x0;",
                    ".const .b32 other[5] = {9, 9, 9, 9, 9};") == expected);
  // Two with the same name in two blocks of the body, and another one outside.
  CHECK(words_after("{ .global .b32 n = 1; ld.global.b32 x0, [n]; } { .global .b32 n = 2; ld.global.b32 x1, [n]; }"
                    "ld.global.b32 x2, [n]; mad.lo.u32 x0, x1, 10, x0; mad.lo.u32 x0, x2, 100, x0;"
                    "st.global.b32 [rd], x0;",
                    ".global .b32 n = 3;") == one_each([](uint32_t) { return 321u; }));
  // One variable for all threads, whose address may be taken.
  CHECK(words_after(".global .b32 sum; mov.u64 l0, sum; red.global.add.u32 [l0], 1; bar.sync 0;"
                    "ld.volatile.global.u32 x0, [sum]; st.global.u32 [rd], x0;") ==
        one_each([](uint32_t) { return 4u; }));
  // In a device function.
  CHECK(words_after("call (x0), f, (t); st.global.u32 [rd], x0;",
                    ".func (.reg .u32 r) f(.reg .u32 i) { .reg .b64 a; .global .u32 table[4] = {3, 4, 5, 6};"
                    "mov.u64 a, table; mad.wide.u32 a, i, 4, a; ld.global.u32 r, [a]; ret; }") == expected);
}

TEST_CASE("the address of a function's parameter is one of local memory") {
  const std::string call = R"(
  { .param .align 8 .b8 a[16]; .param .b32 b; .param .b64 c;
    mul.wide.u32 l0, t, 100;
    st.param.b64 [a], l0; add.u64 l0, l0, 1; st.param.b64 [a+8], l0;
    and.b32 x0, t, 1; st.param.b32 [b], x0;
    call.uni (c), f, (a, b);
    ld.param.b64 l1, [c]; }
  cvt.u32.u64 x1, l1; st.global.u32 [rd], x1;)";
  const auto element = one_each([](uint32_t thread) { return thread * 100 + (thread & 1); });
  for (const char* space : {"local", "param"}) {
    const std::string function = std::string(R"(
.func (.param .b64 r) f(.param .align 8 .b8 p[16], .param .b32 i) {
  .reg .b64 l<8>; .reg .b32 x<4>;
  mov.b64 l1, p;
  ld.param.b32 x1, [i];
  mad.wide.s32 l2, x1, 8, l1;
  ld.)") + space + R"(.b64 l3, [l2];
  st.param.b64 [r], l3;
  ret;
})";
    CHECK(words_after(call, function) == element);
    CHECK(words_after(call, function, true) == element);
  }
  // Name and address refer to the same variable, which the function may change; the caller's copy is unchanged.
  CHECK(words_after(R"(
  { .param .align 4 .b8 a[8]; .param .b32 c;
    st.param.b32 [a], 1; st.param.b32 [a+4], t;
    call (c), f, (a); ld.param.b32 x0, [c];
    call (c), f, (a); ld.param.b32 x1, [c]; }
  mad.lo.u32 x0, x0, 1000, x1; st.global.u32 [rd], x0;)",
                    R"(
.func (.param .b32 r) f(.param .align 4 .b8 p[8]) {
  .reg .b64 l<4>; .reg .b32 x<4>;
  mov.u64 l0, p; cvta.local.u64 l1, l0;
  ld.u32 x0, [l1+4]; add.u32 x0, x0, 50; st.local.u32 [l0+4], x0;
  ld.param.b32 x1, [p+4]; ld.param.b32 x2, [p]; add.u32 x1, x1, x2; st.param.b32 [r], x1;
  ret;
})",
                    true) == one_each([](uint32_t thread) { return (thread + 51) * 1001; }));
  // A result by its address, and recursion: each activation has its own variable.
  CHECK(words_after(R"(
  { .param .b32 a; .param .b32 c; st.param.b32 [a], t; call (c), sum, (a); ld.param.b32 x0, [c]; }
  st.global.u32 [rd], x0;)",
                    R"(
.func (.param .b32 r) sum(.param .b32 n) {
  .reg .b64 l<4>; .reg .b32 x<8>; .reg .pred p;
  mov.u64 l0, n; mov.u64 l1, r;
  ld.local.u32 x0, [l0]; st.local.u32 [l1], x0;
  setp.eq.u32 p, x0, 0;
  @p ret;
  sub.u32 x1, x0, 1;
  { .param .b32 a; .param .b32 c; st.param.b32 [a], x1; call (c), sum, (a); ld.param.b32 x2, [c]; }
  ld.param.u32 x3, [l0]; add.u32 x2, x2, x3; st.local.u32 [l1], x2;
  ret;
})",
                    true) == one_each([](uint32_t thread) { return thread * (thread + 1) / 2; }));
}

TEST_CASE("a buffer does not take the address that a variable of its name is to have") {
  DeviceMemory memory;
  const uint64_t wanted = global_base + (uint64_t(1) << 20);
  memory.place("v", wanted);
  const Result<uint64_t> buffer = memory.allocate(64, "v");
  REQUIRE(buffer);
  CHECK(*buffer != wanted);
  const Result<uint64_t> managed = memory.allocate_managed(64, "v");
  REQUIRE(managed);
  CHECK(*managed != wanted);
  const Result<uint64_t> variable = memory.allocate_variable(64, "v", false);
  REQUIRE(variable);
  CHECK(*variable == wanted);
  const Result<uint64_t> next = memory.allocate_variable(64, "v", false); // of another module
  REQUIRE(next);
  CHECK(*next != wanted);
}

TEST_CASE("handles of textures: given ones, and others that differ from them") {
  Diagnostics diagnostics;
  const auto module = grammar::read_module(SourceFile("t.ptx", kernel("k", "", "ret;")), diagnostics);
  REQUIRE(module);
  DeviceMemory memory;
  auto program = Program::load(*module, memory);
  REQUIRE(program);
  const TextureBinding binding{.address = global_base, .channel_bits = 8, .channels = 1, .width = 1};
  REQUIRE((*program)->bind_texture(binding, {}, texture_handle_window + 16));
  REQUIRE((*program)->bind_texture(binding, {}, texture_handle_window + 48));
  std::set<uint64_t> handles;
  for (int i = 0; i < 3; ++i) {
    const Result<uint64_t> handle = (*program)->bind_texture(binding);
    REQUIRE(handle);
    handles.insert(*handle);
  }
  CHECK(handles.size() == 3);
  CHECK_FALSE(handles.contains(texture_handle_window + 16));
  CHECK_FALSE(handles.contains(texture_handle_window + 48));
  CHECK_FALSE((*program)->bind_texture(binding, {}, texture_handle_window + 48));
}

} // namespace ptxrewrite::emulator::named_variables_test
