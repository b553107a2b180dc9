// Writes a module with a kernel for every rule of composite's legal form, and random ones that move bytes and combine
// bits, and a launch file that runs them all on edge operands: `write_kernels DIRECTORY`. `ptxrewrite verify` then runs
// the rewritten kernels.
#include "tests/fuzz/random.h"
#include "tests/rules/rule_kernels.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <vector>

namespace {

using namespace ptxrewrite;
using transforms::legal::composite::Rule;

constexpr unsigned threads = 256;
constexpr unsigned words = 64; // per thread

// Edge values, small numbers, and random ones; always the same.
std::string operands() {
  constexpr uint32_t edges[] = {0,          1,   31,     32,     33,         63,         64,         127, 128,
                                255,        256, 0x7fff, 0x8000, 0xffff,     0x7fffffff, 0x80000000, ~0u, ~1u,
                                0x7f800000, 5,   27,     0x3ff,  0xff00ff00, 0x80808080, 0x01010101};
  std::string text;
  uint32_t state = 12345;
  for (unsigned i = 0; i < threads * words; ++i) {
    state = state * 1664525 + 1013904223;
    const uint32_t choice = state >> 8;
    const uint32_t value = choice % 3 == 0 ? state ^ state << 13 : edges[choice % std::size(edges)];
    text += (i ? ", " : "") + std::to_string(value);
  }
  return text;
}

// A kernel of random instructions that move bytes and combine bits, each on earlier results.
std::string random_kernel(const std::string& name, fuzz::Random& random) {
  constexpr unsigned inputs = 4, instructions = 14;
  std::string body;
  for (unsigned i = 0; i < inputs; ++i)
    body += "ld.global.b32 %r" + std::to_string(i) + ", [%rd3+" + std::to_string(4 * i) + "];\n";
  for (unsigned i = 0; i < instructions; ++i) {
    // Mostly recent ones, so that trees get deep.
    auto source = [&] {
      const unsigned count = inputs + i;
      const unsigned back = random.one_in(3) ? static_cast<unsigned>(random.below(count))
                                             : static_cast<unsigned>(random.below(std::min(count, 4u)));
      return "%r" + std::to_string(count - 1 - back);
    };
    const std::string amount = std::to_string(8 * (1 + random.below(3)));
    static constexpr const char* masks[] = {"0xff",       "0xff00",     "0xff0000",   "0xff000000", "0xffff",
                                            "0xffff0000", "0xff00ff00", "0x00ffff00", "0x3ff00",    "0xfffc00ff"};
    std::string text;
    switch (random.below(12)) {
    case 0:
      text = "shl.b32 %d, " + source() + ", " + amount;
      break;
    case 1:
      text = std::string(random.one_in(3) ? "shr.s32" : "shr.u32") + " %d, " + source() + ", " + amount;
      break;
    case 2:
    case 3:
      text = "and.b32 %d, " + source() + ", " + random.pick(masks);
      break;
    case 4:
      text = std::string(random.one_in(2) ? "bfe.u32" : "bfe.s32") + " %d, " + source() + ", " + amount + ", 8";
      break;
    case 5:
      text = "bfi.b32 %d, " + source() + ", " + source() + ", " + amount + ", 8";
      break;
    case 6:
      text = "prmt.b32 %d, " + source() + ", " + source() + ", " + std::to_string(random.below(0x10000));
      break;
    case 7:
      text = "shf.l.wrap.b32 %d, " + source() + ", " + source() + ", " + amount;
      break;
    case 8:
      text = "lop3.b32 %d, " + source() + ", " + source() + ", " + source() + ", " + std::to_string(random.below(256));
      break;
    case 9:
      text = random.one_in(2) ? "cvt.u32.u8 %d, " + source() : "cvt.s32.s8 %d, " + source();
      break;
    default: {
      static constexpr const char* joins[] = {"or.b32", "or.b32", "xor.b32", "add.s32", "and.b32"};
      text = std::string(random.pick(joins)) + " %d, " + source() + ", " + source();
    }
    }
    text.replace(text.find("%d"), 2, "%r" + std::to_string(inputs + i));
    body += text + ";\n";
  }
  for (unsigned back : {0u, 1u, 4u})
    body += "st.global.b32 [%rd3+" + std::to_string(4 * back) + "], %r" +
            std::to_string(inputs + instructions - 1 - back) + ";\n";
  return ".visible .entry " + name +
         "(.param .u64 buffer)\n{\n.reg .b32 %r<30>;\n.reg .b64 %rd<4>;\n.reg .b32 %t;\n"
         "ld.param.u64 %rd1, [buffer];\nmov.u32 %t, %tid.x;\nmul.wide.u32 %rd2, %t, 256;\n"
         "add.s64 %rd3, %rd1, %rd2;\n" +
         body + "ret;\n}\n";
}

} // namespace

int main(int count, char** arguments) {
  if (count != 2) {
    std::puts("usage: write_kernels DIRECTORY");
    return 2;
  }
  const std::string directory = arguments[1];
  std::ofstream module(directory + "/rules.ptx"), launches(directory + "/rules.toml");
  module << tests::module_header("sm_90");
  launches << "ptx = \"rules.ptx\"\n";
  size_t kernels = 0;
  const std::string values = operands();
  auto add = [&](const std::string& name, const std::string& text) {
    module << text;
    launches << "[[launch]]\nkernel = \"" << name << "\"\ngrid = [1]\nblock = [" << threads
             << "]\nargs = [ { buffer = \"b" << kernels << "\" } ]\n[buffer.b" << kernels
             << "]\ntype = \"u32\"\ncount = " << threads * words << "\noutput = true\nvalues = [" << values << "]\n";
    ++kernels;
  };
  for (const Rule& rule : transforms::legal::composite::rules()) {
    if (rule.target > 90) continue;
    const std::string name = "rule" + std::to_string(kernels);
    if (const std::optional<std::string> text = tests::kernel_of(rule, name, false)) add(name, *text);
  }
  constexpr unsigned random_kernels = 150;
  for (unsigned seed = 1; seed <= random_kernels; ++seed) {
    fuzz::Random random(seed);
    const std::string name = "random" + std::to_string(seed);
    add(name, random_kernel(name, random));
  }
  std::printf("%zu kernels\n", kernels);
  return module && launches ? 0 : 1;
}
