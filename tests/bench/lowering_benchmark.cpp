// Times the lowering of one kernel of N instructions, without reading and SSA form, in one thread:
//   lowering_benchmark [N] [WORDS] [REPEATS]
// The kernel loads WORDS words, sums them in rounds, and stores all: they stay live throughout. With more words than
// instructions can name (300, by default), values are spilled. Prints user seconds of the fastest repeat.
#include "grammar/reader.h"
#include "ir/machine/select/lowering.h"
#include "ir/ssa/ssa.h"
#include "transforms/registers/machine_spill.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <sys/resource.h>

namespace {

using namespace ptxrewrite;

double user_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec) + static_cast<double>(usage.ru_utime.tv_usec) * 1e-6;
}

std::string number(uint32_t value) {
  return std::to_string(value);
}

std::string kernel_of(uint32_t instructions, uint32_t words) {
  std::string text =
      ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 a)\n{\n.reg .b64 %rd<3>;"
      "\n.reg .f32 %f<" +
      number(words) + ">;\nld.param.u64 %rd1, [a];\ncvta.to.global.u64 %rd2, %rd1;\n";
  for (uint32_t i = 0; i < words; ++i)
    text += "ld.global.f32 %f" + number(i) + ", [%rd2+" + number(4 * i) + "];\n";
  text += "bar.sync 0;\n";
  for (uint32_t i = 0; i < instructions; ++i)
    text += "fma.rn.f32 %f" + number(i % words) + ", %f" + number((i * 7 + 3) % words) + ", %f" +
            number((i * 13 + 5) % words) + ", %f" + number(i % words) + ";\n";
  for (uint32_t i = 0; i < words; ++i)
    text += "st.global.f32 [%rd2+" + number(4 * i) + "], %f" + number(i) + ";\n";
  return text + "ret;\n}\n";
}

} // namespace

int main(int argc, char** argv) {
  const auto argument = [&](int index, uint32_t otherwise) {
    return argc > index ? static_cast<uint32_t>(std::max(1, std::atoi(argv[index]))) : otherwise;
  };
  const uint32_t instructions = argument(1, 100'000), words = argument(2, 300), repeats = argument(3, 1);
  Diagnostics diagnostics;
  std::unique_ptr<ir::Module> module =
      grammar::read_module(SourceFile("kernel.ptx", kernel_of(instructions, words)), diagnostics);
  if (!module) return 1;
  ir::Function& kernel = *module->functions.front();
  if (!ir::construct_ssa(kernel).ok()) return 1;
  for (const uint32_t capability : {35u, 80u, 90u, 120u}) {
    double lower = 1e9, spill = 1e9;
    uint32_t counted = 0, spilled = 0;
    for (uint32_t repeat = 0; repeat < repeats; ++repeat) {
      const double start = user_seconds();
      ir::Lowering lowering = ir::lower(kernel, capability);
      const double lowered = user_seconds();
      const transforms::MachineSpill spills = transforms::machine_spill(kernel, capability);
      transforms::add_spill(lowering, spills);
      lower = std::min(lower, lowered - start);
      spill = std::min(spill, user_seconds() - lowered);
      counted = lowering.static_instructions();
      spilled = spills.stores + spills.loads;
    }
    std::printf(
        "sm_%u: %u instructions of PTX, %u live words: lowering %.3f s, registers and spills %.3f s (bar: 0.5 s "
        "both); %u machine instructions, %u of them spills\n",
        capability, instructions, words, lower, spill, counted, spilled);
    std::fflush(stdout);
  }
}
