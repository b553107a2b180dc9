// printf with hostile formats and pointers. The expected output is that of the host's printf.
#include "tests/unit/emulator/run_ptx.h"

#include <cstdio>

namespace ptxrewrite::tests::printf_test {

using namespace ptxrewrite;
using namespace ptxrewrite::emulator;

namespace {

// Prints `format` with the arguments in `buffer` (`at`: its address), twice the same if `count` is 2.
std::string printing(const std::string& turns = "1") {
  return kernel("k", ".param .u64 format, .param .u64 arguments, .param .u64 result", R"(
  .reg .b64 %rd<8>; .reg .b32 %r<8>; .reg .pred %p1;
  ld.param.u64 %rd1, [format];
  ld.param.u64 %rd2, [arguments];
  ld.param.u64 %rd3, [result];
  mov.u32 %r2, 0;
AGAIN:
  { .param .b64 f; .param .b64 a; .param .b32 n;
    st.param.b64 [f], %rd1;
    st.param.b64 [a], %rd2;
    call (n), vprintf, (f, a);
    ld.param.b32 %r1, [n]; }
  st.global.u32 [%rd3], %r1;
  add.u32 %r2, %r2, 1;
  setp.lt.u32 %p1, %r2, )" + turns + R"(;
  @%p1 bra AGAIN;
  ret;)",
                ".extern .func (.param .b32 n) vprintf(.param .b64 f, .param .b64 a);\n");
}

Buffer text_buffer(const std::string& text) {
  std::vector<char> bytes(text.begin(), text.end());
  bytes.push_back(0);
  return buffer_of(bytes);
}

template <class... T> Buffer packed(T... values) {
  Buffer buffer;
  const auto append = [&](auto value) {
    buffer.bytes.resize((buffer.bytes.size() + sizeof value - 1) / sizeof value * sizeof value + sizeof value);
    std::memcpy(buffer.bytes.data() + buffer.bytes.size() - sizeof value, &value, sizeof value);
  };
  (append(values), ...);
  if (buffer.bytes.empty()) buffer.bytes.resize(1);
  return buffer;
}

std::string printed(const std::string& format, const Buffer& arguments) {
  PtxRun run = run_ptx(printing(), {.kernel = "k"}, {text_buffer(format), arguments, zeros<uint32_t>(1)});
  CHECK(run.error == "");
  CHECK(run.failure() == "");
  return run.result.printed;
}

template <class... T> std::string host_printed(const char* format, T... values) {
  std::string text(20'000, '\0');
  text.resize(static_cast<size_t>(std::snprintf(text.data(), text.size(), format, values...)));
  return text;
}

std::string failure_of(const Argument& format, const Argument& arguments) {
  PtxRun run = run_ptx(printing(), {.kernel = "k"}, {format, arguments, zeros<uint32_t>(1)});
  CHECK(run.error == "");
  return run.failure();
}

TEST_CASE("conversions are those of the host") {
  CHECK(printed("%+05d|%-6x|%#o|% i", packed(42, 255, 8, -3)) == host_printed("%+05d|%-6x|%#o|% i", 42, 255, 8, -3));
  CHECK(printed("%hd %hhu %lld %llx", packed(70000, 300, int64_t(-5), int64_t(-1))) ==
        host_printed("%hd %hhu %lld %llx", static_cast<short>(70000), static_cast<unsigned char>(300), -5LL, -1LL));
  CHECK(printed("%*d|%-*d|%.*f", packed(6, 1, -6, 2, 3, 1.5)) == host_printed("%*d|%-*d|%.*f", 6, 1, -6, 2, 3, 1.5));
  CHECK(printed("%10.3e %G %a", packed(12345.678, 1e-7, 1.0)) == host_printed("%10.3e %G %a", 12345.678, 1e-7, 1.0));
  CHECK(printed("%c%c 100%%", packed(int('o'), int('k'))) == "ok 100%");
  CHECK(printed("%s", packed(uint64_t(0))) == "(null)");
  CHECK(printed("%f", packed(1.7976931348623157e308)) == host_printed("%f", 1.7976931348623157e308));
  // Text that is no conversion is printed unchanged.
  CHECK(printed("50%! of %5, %", packed(0)) == "50%! of %5, %");
}

TEST_CASE("widths and precisions are bounded") {
  for (const char* format : {"%2147483647d", "%.2147483647d", "%99999999999999999999d", "%-2147483647u"})
    CHECK(printed(format, packed(7)).size() == 4096);
  CHECK(printed("%.2147483647f", packed(0.5)).size() == 4096 + 2);
  CHECK(printed("%*d", packed(INT32_MIN, 7)) == host_printed("%-4096d", 7));
  CHECK(printed("%*d", packed(INT32_MAX, 7)) == host_printed("%4096d", 7));
  CHECK(printed("%.*f", packed(INT32_MIN, 0.0, 7)) == "0.000000"); // a negative precision counts as none
  CHECK(printed("%.2147483647f", packed(-1.7976931348623157e308)).size() == 1 + 309 + 1 + 4096);
}

TEST_CASE("pointers outside of the kernel's memory are faults") {
  CHECK(failure_of(uint64_t(0x123456789abc), zeros<uint8_t>(8)) ==
        "the string at 0x123456789abc is not in the kernel's memory, or has no end there");
  CHECK(failure_of(text_buffer("%d"), uint64_t(0x123456789abc)) ==
        "printf: argument 0 at 0x123456789abc is not in the kernel's memory");
  CHECK(failure_of(text_buffer("%d %d %lld"), zeros<uint32_t>(3)).find("argument 2 at 0x") != std::string::npos);
  CHECK(failure_of(text_buffer("%f"), UINT64_MAX - 3).find("argument 0") != std::string::npos);
  CHECK(failure_of(text_buffer("%s"), packed(uint64_t(16))).find("the string at 0x10 is not") != std::string::npos);
  CHECK(failure_of(text_buffer("%s"), packed(UINT64_MAX)).find("the string at 0xffffffffffffffff is not") !=
        std::string::npos);
  // No terminating zero: reading ends at the end of the buffer.
  CHECK(failure_of(buffer_of(std::vector<char>(256, 'x')), packed(0)).find("has no end there") != std::string::npos);
  CHECK(failure_of(text_buffer(std::string(65537, 'x')), packed(0)).find("more than 65536 bytes") != std::string::npos);
  // Without conversions arguments are not read; printf(NULL) returns -1 (CUDA programming guide).
  CHECK(failure_of(text_buffer("plain"), uint64_t(0)) == "");
  PtxRun run = run_ptx(printing(), {.kernel = "k"}, {uint64_t(0), uint64_t(0), zeros<uint32_t>(1)});
  CHECK(run.failure() == "");
  CHECK(run.buffer<int32_t>(0)[0] == -1);
}

TEST_CASE("a precision says how much of a string is read") {
  PtxRun run = run_ptx(kernel("k", ".param .u64 format, .param .u64 text", R"(
  .reg .b64 %rd<8>;
  .local .align 8 .b8 l[8];
  ld.param.u64 %rd1, [format];
  ld.param.u64 %rd2, [text];
  st.local.u64 [l], %rd2;
  mov.u64 %rd3, l;
  cvta.local.u64 %rd3, %rd3;
  { .param .b64 f; .param .b64 a; .param .b32 n;
    st.param.b64 [f], %rd1;
    st.param.b64 [a], %rd3;
    call (n), vprintf, (f, a); }
  ret;)",
                              ".extern .func (.param .b32 n) vprintf(.param .b64 f, .param .b64 a);\n"),
                       {.kernel = "k"}, {text_buffer("[%-6.4s]"), buffer_of(std::vector<char>{'a', 'b', 'c', 'd'})});
  CHECK(run.failure() == "");
  CHECK(run.result.printed == "[abcd  ]");
}

TEST_CASE("what a block and a launch print is bounded, and what is left out is said") {
  const std::string line(4095, 'x');
  PtxRun run = run_ptx(printing("400"), {.kernel = "k"}, {text_buffer(line + "\n"), uint64_t(0), zeros<uint32_t>(1)});
  CHECK(run.failure() == "");
  CHECK(run.result.printed.size() > 1 << 20);
  CHECK(run.result.printed.size() < (1 << 20) + 200);
  CHECK(run.result.printed.ends_with("\n[printf: what block 0 prints beyond 1048576 bytes is left out]\n"));
  std::string first;
  for (const unsigned threads : {1u, 2u, 4u}) {
    PtxRun many = run_ptx(printing("200"), {.kernel = "k", .grid = {40}, .host_threads = threads},
                          {text_buffer(line + "\n"), uint64_t(0), zeros<uint32_t>(1)});
    CHECK(many.failure() == "");
    CHECK(many.result.printed.size() < (17 << 20));
    CHECK(many.result.printed.ends_with(
        "\n[printf: what blocks from 20 on print is left out: a launch keeps 16777216 bytes]\n"));
    if (threads == 1) first = many.result.printed;
    CHECK(many.result.printed == first);
  }
}

} // namespace

} // namespace ptxrewrite::tests::printf_test
