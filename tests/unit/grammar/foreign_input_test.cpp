// Input that is not PTX is identified by one message; PTX is never taken for another format.
#include "tests/unit/grammar/read.h"

#include <doctest/doctest.h>

namespace ptxrewrite::tests::foreign_input_test {

using namespace ptxrewrite;

namespace {

// The only message, or the number of messages.
std::string only_message(std::string text) {
  ReadText read(std::move(text));
  const auto& list = read.diagnostics.list();
  if (read.ok() || list.size() != 1) return std::to_string(list.size()) + " messages";
  return list.front().message;
}

} // namespace

TEST_CASE("what is no PTX is named once") {
  std::string elf = "\x7f"
                    "ELF\x02\x01\x01";
  elf.resize(64);
  std::string cubin = elf;
  cubin[18] = static_cast<char>(190); // e_machine: EM_CUDA
  const std::pair<std::string, const char*> cases[] = {
      {elf, "ELF"},
      {cubin, "cubin"},
      {std::string("\x50\xed\x55\xba\x01\0\x10\0", 8), "fat binary"},
      {"!<arch>\n/               0", "library of object files"},
      {"BC\xc0\xde\x35\x14", "LLVM bitcode"},
      {std::string("\xff\xfe.\0v\0", 6), "UTF-16"},
      {"; ModuleID = 'k.bc'\nsource_filename = \"k.cu\"\n", "LLVM IR"},
      {"define void @k() {\n  ret void\n}\ntarget triple = \"nvptx64\"\n", "LLVM IR"},
      {"// a kernel\n#include <cstdio>\n__global__ void k() {}\n", "CUDA"},
      {"/* .version 8.0 */ extern \"C\" __global__ void k() {}\n", "CUDA"},
      {"template <int N>\n__device__ int f() { return N; }\n", "CUDA"},
  };
  for (const auto& [text, what] : cases) {
    CAPTURE(what);
    CHECK(only_message(text).find(what) != std::string::npos);
  }
}

TEST_CASE("words of other languages in comments, strings and names of PTX do no harm") {
  CHECK(ReadText(kernel("mov.u32 %r1, 1;", "// __global__ #include template\n")).ok());
  CHECK(ReadText("// __global__\n/* #include */\n" + kernel("template: bra template;")).ok());
}

} // namespace ptxrewrite::tests::foreign_input_test
