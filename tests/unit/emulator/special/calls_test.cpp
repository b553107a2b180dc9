// Calls: arguments and results, divergence, recursion, function pointers, threads that end inside functions, and the
// system's functions: vprintf, malloc, free, __assertfail.
#include "tests/unit/emulator/run_ptx.h"

#include <set>

namespace ptxrewrite::tests::calls_test {

using namespace ptxrewrite;
using namespace ptxrewrite::emulator;

namespace {

// %r1: thread, %rd1: the address of its word in `out`.
std::string calling(const std::string& body, const std::string& functions) {
  return kernel("k", ".param .u64 out", R"(
  .reg .b64 %rd<9>; .reg .b32 %r<30>; .reg .pred %p<9>;
  mov.u32 %r1, %tid.x;
  ld.param.u64 %rd1, [out];
  mad.wide.u32 %rd1, %r1, 4, %rd1;
)" + body,
                functions);
}

PtxRun run_threads(const std::string& text, uint32_t threads) {
  PtxRun run = run_ptx(text, {.kernel = "k", .block = {threads}, .fuel = 10'000'000}, {zeros<uint32_t>(threads)});
  REQUIRE(run.error == "");
  CHECK(run.failure() == "");
  return run;
}

template <class Function> std::vector<uint32_t> for_threads(uint32_t threads, Function&& function) {
  std::vector<uint32_t> values(threads);
  for (uint32_t i = 0; i < threads; ++i)
    values[i] = function(i);
  return values;
}

constexpr const char* fibonacci = R"(
.func (.param .b32 result) fib(.param .b32 n) {
  .reg .b32 %r<9>; .reg .pred %p;
  .local .align 4 .b8 keep[4];
  ld.param.u32 %r1, [n];
  st.local.u32 [keep], %r1;
  setp.lt.u32 %p, %r1, 2;
  @%p bra SMALL;
  sub.u32 %r2, %r1, 1;
  { .param .b32 a; .param .b32 b;
    st.param.b32 [a], %r2;
    call (b), fib, (a);
    ld.param.b32 %r3, [b]; }
  ld.local.u32 %r1, [keep];
  sub.u32 %r2, %r1, 2;
  { .param .b32 a; .param .b32 b;
    st.param.b32 [a], %r2;
    call (b), fib, (a);
    ld.param.b32 %r4, [b]; }
  add.u32 %r5, %r3, %r4;
  st.param.b32 [result], %r5;
  ret;
SMALL:
  st.param.b32 [result], %r1;
  ret;
}
)";

constexpr const char* call_fibonacci = R"(
  rem.u32 %r2, %r1, 10;
  { .param .b32 a; .param .b32 b;
    st.param.b32 [a], %r2;
    call (b), fib, (a);
    ld.param.b32 %r3, [b]; }
  st.global.u32 [%rd1], %r3;
  ret;)";

uint32_t fib(uint32_t n) {
  return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

} // namespace

TEST_CASE("a call in one side of a branch, its lanes meet the others behind it") {
  PtxRun run = run_threads(calling(R"(
  and.b32 %r2, %r1, 1;
  setp.eq.u32 %p1, %r2, 0;
  mov.u32 %r3, 5;
  @%p1 bra JOIN;
  { .param .b32 a; .param .b32 b;
    st.param.b32 [a], %r1;
    call (b), twice, (a);
    ld.param.b32 %r3, [b]; }
JOIN:
  st.global.u32 [%rd1], %r3;
  ret;)",
                                   R"(
.func (.param .b32 result) twice(.param .b32 n) {
  .reg .b32 %r<4>;
  ld.param.u32 %r1, [n];
  add.u32 %r2, %r1, %r1;
  st.param.b32 [result], %r2;
  ret;
})"),
                           50);
  CHECK(run.buffer<uint32_t>(0) == for_threads(50, [](uint32_t i) { return i % 2 ? 2 * i : 5u; }));
  CHECK(run.counters("st.global").executions == 2);
  CHECK(run.counters("add.u32 %r2, %r1, %r1").executions == 2);
  CHECK(run.counters("add.u32 %r2, %r1, %r1").lanes == 25);
}

TEST_CASE("registers as parameters, several results, a guarded call") {
  PtxRun run = run_threads(calling(R"(
  setp.lt.u32 %p1, %r1, 10;
  mov.u32 %r3, 1;
  mov.u32 %r4, 2;
  @%p1 call (%r3, %r4), divide, (%r1, 3);
  mad.lo.u32 %r5, %r3, 100, %r4;
  st.global.u32 [%rd1], %r5;
  ret;)",
                                   R"(
.func (.reg .u32 %q, .reg .u32 %m) divide(.reg .u32 %a, .reg .u32 %b) {
  div.u32 %q, %a, %b;
  rem.u32 %m, %a, %b;
  ret;
})"),
                           33);
  CHECK(run.buffer<uint32_t>(0) == for_threads(33, [](uint32_t i) { return i < 10 ? i / 3 * 100 + i % 3 : 102u; }));
  CHECK(run.counters("call").lanes == 10);
  CHECK(run.counters("call").guarded_off == 1);
  CHECK(run.counters("div.u32").executions == 1);
}

TEST_CASE("lanes that return early wait for the others at the call") {
  PtxRun run = run_threads(calling(R"(
  { .param .b32 a; .param .b32 b;
    st.param.b32 [a], %r1;
    call (b), steps, (a);
    ld.param.b32 %r3, [b]; }
  st.global.u32 [%rd1], %r3;
  ret;)",
                                   R"(
.func (.param .b32 result) steps(.param .b32 n) {
  .reg .b32 %r<9>; .reg .pred %p<4>;
  ld.param.u32 %r1, [n];
  mov.u32 %r2, 0;
LOOP:
  st.param.b32 [result], %r2;
  setp.ge.u32 %p1, %r2, %r1;
  @%p1 ret;
  add.u32 %r2, %r2, 3;
  setp.lt.u32 %p2, %r2, 12;
  @%p2 bra LOOP;
  mov.u32 %r2, 77;
  st.param.b32 [result], %r2;
  ret;
})"),
                           20);
  CHECK(run.buffer<uint32_t>(0) == for_threads(20, [](uint32_t i) {
          for (uint32_t at = 0; at < 12; at += 3)
            if (at >= i) return at;
          return 77u;
        }));
  CHECK(run.counters("st.global").executions == 1);
}

TEST_CASE("recursion, with other depths in every lane") {
  PtxRun run = run_threads(calling(call_fibonacci, fibonacci), 64);
  CHECK(run.buffer<uint32_t>(0) == for_threads(64, [](uint32_t i) { return fib(i % 10); }));
  CHECK(run.counters("st.global").executions == 2);
}

TEST_CASE("mutual recursion") {
  PtxRun run = run_threads(calling(R"(
  { .param .b32 a; .param .b32 b;
    st.param.b32 [a], %r1;
    call (b), even, (a);
    ld.param.b32 %r3, [b]; }
  st.global.u32 [%rd1], %r3;
  ret;)",
                                   R"(
.func (.param .b32 result) odd(.param .b32 n);
.func (.param .b32 result) even(.param .b32 n) {
  .reg .b32 %r<9>; .reg .pred %p;
  ld.param.u32 %r1, [n];
  mov.u32 %r2, 1;
  setp.eq.u32 %p, %r1, 0;
  @%p bra DONE;
  sub.u32 %r1, %r1, 1;
  { .param .b32 a; .param .b32 b;
    st.param.b32 [a], %r1;
    call (b), odd, (a);
    ld.param.b32 %r2, [b]; }
DONE:
  st.param.b32 [result], %r2;
  ret;
}
.func (.param .b32 result) odd(.param .b32 n) {
  .reg .b32 %r<9>; .reg .pred %p;
  ld.param.u32 %r1, [n];
  mov.u32 %r2, 0;
  setp.eq.u32 %p, %r1, 0;
  @%p bra DONE;
  sub.u32 %r1, %r1, 1;
  { .param .b32 a; .param .b32 b;
    st.param.b32 [a], %r1;
    call (b), even, (a);
    ld.param.b32 %r2, [b]; }
DONE:
  st.param.b32 [result], %r2;
  ret;
})"),
                           40);
  CHECK(run.buffer<uint32_t>(0) == for_threads(40, [](uint32_t i) { return i % 2 == 0 ? 1u : 0u; }));
}

TEST_CASE("function pointers: lanes with the same target go together, also recursively") {
  const char* functions = R"(
.func (.param .b32 result) add_one(.param .b32 n) {
  .reg .b32 %r<9>;
  ld.param.u32 %r1, [n];
  add.u32 %r1, %r1, 1;
  st.param.b32 [result], %r1;
  ret;
}
.func (.param .b32 result) triple(.param .b32 n) {
  .reg .b32 %r<9>;
  ld.param.u32 %r1, [n];
  mul.lo.u32 %r1, %r1, 3;
  st.param.b32 [result], %r1;
  ret;
}
.func (.param .b32 result) count_down(.param .b32 n) {
  .reg .b32 %r<9>; .reg .b64 %rd<3>; .reg .pred %p;
  ld.param.u32 %r1, [n];
  setp.eq.u32 %p, %r1, 0;
  mov.u32 %r2, 1000;
  @%p bra DONE;
  mov.u64 %rd1, count_down;
  sub.u32 %r1, %r1, 1;
  { .param .b32 a; .param .b32 b;
    st.param.b32 [a], %r1;
    proto: .callprototype (.param .b32 _) _ (.param .b32 _);
    call (b), %rd1, (a), proto;
    ld.param.b32 %r2, [b]; }
  add.u32 %r2, %r2, 1;
DONE:
  st.param.b32 [result], %r2;
  ret;
}
.global .u64 table[3] = {add_one, triple, count_down};
)";
  PtxRun run = run_threads(calling(R"(
  rem.u32 %r2, %r1, 4;
  setp.ne.u32 %p1, %r2, 3;
  mov.u64 %rd2, table;
  @%p1 mad.wide.u32 %rd2, %r2, 8, %rd2;
  ld.global.u64 %rd3, [%rd2];
  mov.u32 %r3, 7;
  { .param .b32 a; .param .b32 b;
    st.param.b32 [a], %r1;
    proto: .callprototype (.param .b32 _) _ (.param .b32 _);
    @%p1 call (b), %rd3, (a), proto;
    ld.param.b32 %r3, [b]; }
  @!%p1 mov.u32 %r3, 9;
  st.global.u32 [%rd1], %r3;
  ret;)",
                                   functions),
                           45);
  CHECK(run.buffer<uint32_t>(0) == for_threads(45, [](uint32_t i) {
          const uint32_t by_case[] = {i + 1, 3 * i, 1000 + i, 9};
          return by_case[i % 4];
        }));
  CHECK(run.counters("st.global").executions == 2);
  CHECK(run.counters("@%p1 call").lanes == 34);
  CHECK(run.counters("@%p1 call").executions == 2);
  CHECK(run.counters("add.u32 %r1, %r1, 1").executions == 2);
  // An invalid function pointer.
  PtxRun wrong = run_ptx(calling(R"(
  mov.u64 %rd3, 12345;
  proto: .callprototype _ ();
  call %rd3, proto;
  ret;)",
                                 functions),
                         {.kernel = "k"}, {zeros<uint32_t>(1)});
  CHECK(wrong.failure() == "call of 0x3039, which is no function");
}

TEST_CASE("exit inside a function ends the lane, not its neighbours") {
  PtxRun run = run_threads(calling(R"(
  call leave, (%r1);
  mov.u32 %r3, 8;
  st.global.u32 [%rd1], %r3;
  ret;)",
                                   R"(
.func leave(.reg .u32 %n) {
  .reg .b32 %r<4>; .reg .pred %p<3>;
  and.b32 %r1, %n, 3;
  setp.eq.u32 %p1, %r1, 1;
  setp.eq.u32 %p2, %r1, 2;
  @%p1 exit;
  @%p2 bra AWAY;
  ret;
AWAY:
  exit;
})"),
                           64);
  CHECK(run.buffer<uint32_t>(0) == for_threads(64, [](uint32_t i) { return i % 4 == 0 || i % 4 == 3 ? 8u : 0u; }));
  CHECK(run.counters("st.global").executions == 2);
}

TEST_CASE("each activation has its own .local variables, other functions can reach them by pointer") {
  PtxRun run = run_threads(calling(R"(
  .local .align 8 .b8 pair[8];
  mov.u64 %rd2, pair;
  cvta.local.u64 %rd2, %rd2;
  st.local.u32 [pair], %r1;
  call swap_in, (%rd2);
  ld.local.u32 %r3, [pair];
  ld.local.u32 %r4, [pair+4];
  mad.lo.u32 %r3, %r3, 1000, %r4;
  st.global.u32 [%rd1], %r3;
  ret;)",
                                   R"(
.func swap_in(.reg .u64 %at) {
  .reg .b32 %r<4>;
  .local .align 4 .b8 own[16];
  ld.u32 %r1, [%at];
  st.local.u32 [own], %r1;
  mov.u32 %r2, 5;
  st.u32 [%at], %r2;
  ld.local.u32 %r3, [own];
  st.u32 [%at+4], %r3;
  ret;
})"),
                           64);
  CHECK(run.buffer<uint32_t>(0) == for_threads(64, [](uint32_t i) { return 5000 + i; }));
}

TEST_CASE("endless recursion is a stack overflow, told as a fault of the program") {
  for (const char* locals : {"", ".local .align 4 .b8 big[4096]; st.local.u32 [big], 1;"}) {
    PtxRun run = run_ptx(
        calling(" call again;\n ret;", std::string(".func again() {\n  ") + locals + "\n  call again;\n  ret;\n}\n"),
        {.kernel = "k", .block = {40}}, {zeros<uint32_t>(40)});
    REQUIRE(run.result.failure);
    CHECK(run.result.failure->kind == FailureKind::program_fault);
    CHECK(run.failure().find("stack overflow") == 0);
    CHECK(run.result.failure->function == "again");
  }
}

TEST_CASE("printf prints in the order of blocks, warps and lanes, whatever the host threads") {
  const std::string text = kernel("k", ".param .u64 unused", R"(
  .reg .b64 %rd<9>; .reg .b32 %r<9>; .reg .f64 %d<3>;
  .local .align 8 .b8 arguments[40];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %ctaid.x;
  st.local.u32 [arguments], %r2;
  st.local.u32 [arguments+4], %r1;
  mov.f64 %d1, 0d3FF8000000000000;
  st.local.f64 [arguments+8], %d1;
  mov.u64 %rd1, -5;
  st.local.u64 [arguments+16], %rd1;
  mov.u64 %rd2, word;
  cvta.global.u64 %rd2, %rd2;
  st.local.u64 [arguments+24], %rd2;
  mov.u32 %r4, 255;
  st.local.u32 [arguments+32], %r4;
  mov.u64 %rd3, arguments;
  cvta.local.u64 %rd3, %rd3;
  mov.u64 %rd4, format;
  cvta.global.u64 %rd4, %rd4;
  { .param .b64 f; .param .b64 a; .param .b32 n;
    st.param.b64 [f], %rd4;
    st.param.b64 [a], %rd3;
    call (n), vprintf, (f, a);
    ld.param.b32 %r3, [n]; }
  ret;)",
                                  R"(
.extern .func (.param .b32 n) vprintf(.param .b64 f, .param .b64 a);
.global .align 1 .b8 format[32] = {37, 117, 58, 37, 51, 117, 32, 37, 46, 50, 102, 32, 37, 108, 108, 100, 32, 37, 115, 32,
                                   37, 120, 32, 49, 37, 37, 10, 0};
.global .align 1 .b8 word[4] = {97, 98, 99, 0};
)");
  // "%u:%3u %.2f %lld %s %x 1%%\n"
  std::string expected;
  for (int block = 0; block < 20; ++block)
    for (int thread = 0; thread < 40; ++thread) {
      char line[100];
      std::snprintf(line, sizeof line, "%u:%3u %.2f %lld %s %x 1%%\n", block, thread, 1.5, -5LL, "abc", 255);
      expected += line;
    }
  for (unsigned threads : {1u, 2u, 4u}) {
    PtxRun run = run_ptx(text, {.kernel = "k", .grid = {20}, .block = {40}, .host_threads = threads}, {uint64_t(0)});
    REQUIRE(run.error == "");
    CHECK(run.failure() == "");
    CHECK(run.result.printed == expected);
  }
}

TEST_CASE("malloc gives every thread its own memory; free of anything else is a fault") {
  const char* system = R"(
.extern .func (.param .b64 p) malloc(.param .b64 bytes);
.extern .func free(.param .b64 p);
)";
  const std::string body = R"(
  .reg .b64 %rd<9>; .reg .b32 %r<9>; .reg .pred %p<3>;
  mov.u32 %r1, %tid.x;
  ld.param.u64 %rd1, [out];
  mad.wide.u32 %rd1, %r1, 8, %rd1;
  mov.u64 %rd2, 24;
  { .param .b64 n; .param .b64 p;
    st.param.b64 [n], %rd2;
    call (p), malloc, (n);
    ld.param.b64 %rd3, [p]; }
  st.u32 [%rd3+20], %r1;
  bar.sync 0;
  ld.u32 %r2, [%rd3+20];
  st.global.u64 [%rd1], %rd3;
  setp.ne.u32 %p1, %r1, %r2;
  @%p1 trap;
)";
  auto freeing = [&](const char* address) {
    return kernel("k", ".param .u64 out",
                  body + "{ .param .b64 p; st.param.b64 [p], " + address + "; call free, (p); }\n ret;", system);
  };
  PtxRun run = run_ptx(freeing("%rd3"), {.kernel = "k", .block = {64}}, {zeros<uint64_t>(64)});
  REQUIRE(run.error == "");
  CHECK(run.failure() == "");
  const std::vector<uint64_t> places = run.buffer<uint64_t>(0);
  CHECK(std::set<uint64_t>(places.begin(), places.end()).size() == 64);
  run = run_ptx(freeing("%rd1"), {.kernel = "k", .block = {64}}, {zeros<uint64_t>(64)});
  CHECK(run.failure().find("which malloc did not return") != std::string::npos);
  // Use after free.
  run = run_ptx(kernel("k", ".param .u64 out",
                       body + "{ .param .b64 p; st.param.b64 [p], %rd3; call free, (p); }\n ld.u32 %r2, [%rd3];\n ret;",
                       system),
                {.kernel = "k", .block = {1}}, {zeros<uint64_t>(1)});
  CHECK(run.failure().find("is out of bounds") != std::string::npos);
}

TEST_CASE("a failed assertion names its expression and place") {
  PtxRun run = run_ptx(kernel("k", "", R"(
  .reg .b64 %rd<9>; .reg .b32 %r<9>; .reg .pred %p<3>;
  mov.u32 %r1, %tid.x;
  setp.ne.u32 %p1, %r1, 40;
  @%p1 bra FINE;
  mov.u64 %rd1, text;
  cvta.global.u64 %rd1, %rd1;
  { .param .b64 a; .param .b64 b; .param .b32 c; .param .b64 d; .param .b64 e;
    st.param.b64 [a], %rd1;
    add.u64 %rd2, %rd1, 4;
    st.param.b64 [b], %rd2;
    mov.u32 %r2, 17;
    st.param.b32 [c], %r2;
    add.u64 %rd3, %rd1, 9;
    st.param.b64 [d], %rd3;
    mov.u64 %rd4, 1;
    st.param.b64 [e], %rd4;
    call __assertfail, (a, b, c, d, e); }
FINE:
  ret;)",
                              R"(
.extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 e);
.global .align 1 .b8 text[16] = {120, 60, 49, 0, 109, 46, 99, 117, 0, 102, 0};
)"),
                       {.kernel = "k", .block = {64}});
  REQUIRE(run.error == "");
  CHECK(run.failure() == "m.cu:17: f: assertion `x<1' failed");
  CHECK(run.result.failure->thread.x == 40);
}

TEST_CASE("a function that is declared, but not there, is refused before anything runs") {
  PtxRun run = run_ptx(kernel("k", "", " call somewhere;\n ret;", ".extern .func somewhere();\n"), {.kernel = "k"});
  CHECK(run.error == "'somewhere' is declared, but has no body here");
}

TEST_CASE("predicates as parameters and results, of the lanes that call") {
  const std::string functions = R"(
.func (.reg .u32 a, .reg .pred b) f(.reg .u32 x) { add.u32 a, x, 1; setp.eq.u32 b, x, 5; ret; }
.func (.reg .pred b) g(.reg .u32 x, .reg .pred q) { setp.gt.and.u32 b, x, 4, q; ret; }
)";
  // p1 holds for thread 5, after g only for odd threads above 4; p3 keeps its value in threads that do not call g.
  PtxRun run = run_threads(calling(R"(
  call (%r2, %p1), f, (%r1);
  selp.u32 %r3, 1, 0, %p1;
  and.b32 %r4, %r1, 1;
  setp.eq.u32 %p2, %r4, 1;
  call (%p3), g, (%r1, %p2);
  selp.u32 %r5, 2, 0, %p3;
  setp.lt.u32 %p4, %r1, 8;
  @%p4 call (%p3), g, (9, %p4);
  selp.u32 %r6, 4, 0, %p3;
  call (_, %p5), f, (%r1);
  selp.u32 %r7, 8, 0, %p5;
  mad.lo.u32 %r2, %r2, 16, %r3;
  add.u32 %r2, %r2, %r5; add.u32 %r2, %r2, %r6; add.u32 %r2, %r2, %r7;
  st.global.u32 [%rd1], %r2;
  ret;)",
                                   functions),
                           40);
  CHECK(run.buffer<uint32_t>(0) == for_threads(40, [](uint32_t i) {
          const bool five = i == 5, odd = i > 4 && i % 2 == 1, kept = i < 8 || odd;
          return (i + 1) * 16 + five + 2 * odd + 4 * kept + 8 * five;
        }));
}

TEST_CASE("a constant argument has the type of the parameter") {
  const std::string functions = R"(
.func (.reg .f32 r) single(.reg .f32 x) { add.f32 r, x, x; ret; }
.func (.reg .f64 r) twice(.reg .f64 x) { add.f64 r, x, x; ret; }
.func (.param .b32 r) in_memory(.param .f32 x) { .reg .f32 f; ld.param.f32 f, [x]; st.param.f32 [r], f; ret; }
)";
  PtxRun run = run_threads(calling(R"(
  .reg .f32 %f<4>; .reg .f64 %d<4>;
  call (%f1), single, (1.5);
  call (%f2), single, (0f3fc00000);
  call (%d1), twice, (1.5);
  call (%d2), twice, (0d3ff8000000000000);
  call (%r2), in_memory, (3.0);
  cvt.rn.f32.f64 %f3, %d1;
  mov.b32 %r3, %f1; mov.b32 %r4, %f2; mov.b32 %r5, %f3;
  cvt.rn.f32.f64 %f3, %d2; mov.b32 %r6, %f3;
  xor.b32 %r3, %r3, %r4; xor.b32 %r5, %r5, %r6; or.b32 %r3, %r3, %r5; xor.b32 %r4, %r4, %r2; or.b32 %r3, %r3, %r4;
  add.u32 %r3, %r3, %r2;
  st.global.u32 [%rd1], %r3;
  ret;)",
                                   functions),
                           1);
  CHECK(run.buffer<uint32_t>(0)[0] == 0x40400000); // all are 3
}

TEST_CASE("the bits of a 0f constant are those of a double whose high word is zero") {
  PtxRun run = run_threads(calling(R"(
  .reg .f64 %d<4>; .reg .b32 %low, %high;
  call (%d1), same, (0f3fc00000);
  mov.b64 {%r2, %r3}, %d1;
  add.f64 %d2, 0f3fc00000, 0d0000000000000000;
  mov.b64 {%r4, %r5}, %d2;
  xor.b32 %r4, %r4, %r2; or.b32 %r3, %r3, %r4; or.b32 %r3, %r3, %r5; add.u32 %r2, %r2, %r3;
  st.global.u32 [%rd1], %r2;
  ret;)",
                                   ".func (.reg .f64 r) same(.reg .f64 x) { mov.f64 r, x; ret; }\n"),
                           1);
  CHECK(run.buffer<uint32_t>(0)[0] == 0x3fc00000);
}

} // namespace ptxrewrite::tests::calls_test
