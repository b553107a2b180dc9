// The estimates of ir/machine against what ptxas makes of our samples: size of the code, registers, and which of two
// versions of a kernel is the longer one. The bounds are what is reached, rounded up.
#include "ir/machine/figures.h"
#include "ir/machine/lowering.h"
#include "ir/machine/registers.h"
#include "ir/ssa.h"
#include "support/file_io.h"
#include "support/ptxas.h"
#include "tests/paper/versions.h"
#include "tests/unit/grammar/read.h"
#include "tests/unit/paths.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>

using namespace ptxrewrite;
using namespace ptxrewrite::ir;

namespace {

std::vector<std::string> sample_texts() {
  std::vector<std::string> paths;
  for (const auto& folder : std::filesystem::directory_iterator(tests::source_path("samples")))
    if (folder.is_directory())
      for (const auto& file : std::filesystem::directory_iterator(folder.path()))
        if (file.path().extension() == ".ptx") paths.push_back(file.path());
  std::ranges::sort(paths);
  std::vector<std::string> texts;
  for (const std::string& path : paths)
    texts.push_back(read_file(path).value());
  return texts;
}

struct Estimate {
  uint32_t instructions = 0;
  uint32_t registers = 0;
};

std::map<std::string, Estimate> estimate(const std::string& ptx, uint32_t capability, bool ssa = true) {
  ReadText text(ptx);
  REQUIRE_MESSAGE(text.ok(), text.messages());
  std::map<std::string, Estimate> estimates;
  for (const auto& function : text.module->functions) {
    if (!function->has_body || !function->is_entry) continue;
    if (ssa) REQUIRE(construct_ssa(*function).ok());
    estimates[std::string(text.module->text(function->name))] = {lower(*function, capability).static_instructions(),
                                                                 register_need(*function, capability).registers};
  }
  return estimates;
}

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (double value : values)
    sum += std::fabs(value);
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

// The samples are written for sm_80: an older machine is given the same text under its own name.
std::string for_target(std::string text, uint32_t capability) {
  const std::string written = ".target " + target_architecture(text);
  if (capability < 80) text.replace(text.find(written), written.size(), ".target sm_" + std::to_string(capability));
  return text;
}

// Prints the estimates that are far off, and gives the mean absolute errors of code size and registers.
std::pair<double, double> compare_with_ptxas(uint32_t capability) {
  std::vector<double> sizes, registers;
  for (const std::string& sample : sample_texts()) {
    const std::string text = for_target(sample, capability);
    Result<FiguresByFunction> figures = machine_figures(text, "sm_" + std::to_string(capability));
    if (!figures && capability < 80) continue; // what came later
    REQUIRE(figures.ok());
    for (const auto& [name, found] : estimate(text, capability)) {
      const MachineFigures& real = figures->at(name);
      double size = static_cast<double>(found.instructions) / real.instructions - 1;
      sizes.push_back(size);
      registers.push_back(static_cast<double>(found.registers) / real.registers - 1);
      if (std::fabs(size) > 0.15)
        std::printf("sm_%u %-24s %5u instructions, %5u estimated (%+.0f %%)\n", capability, name.c_str(),
                    real.instructions, found.instructions, 100 * size);
    }
  }
  REQUIRE(sizes.size() > 100);
  std::printf("sm_%u: %zu kernels, mean absolute error %.1f %% of instructions, %.1f %% of registers\n", capability,
              sizes.size(), 100 * mean(sizes), 100 * mean(registers));
  return {mean(sizes), mean(registers)};
}

int sign(int64_t value) {
  return value > 0 ? 1 : value < 0 ? -1 : 0;
}

} // namespace

TEST_CASE("estimated code size and registers against ptxas") {
  if (!find_ptxas()) {
    MESSAGE("skipped: no ptxas");
    return;
  }
  for (uint32_t capability : {75u, 80u, 90u}) {
    auto [sizes, registers] = compare_with_ptxas(capability);
    CHECK(sizes < 0.07);
    CHECK(registers < 0.21);
  }
}

TEST_CASE("which of two versions is longer") {
  if (!find_ptxas()) {
    MESSAGE("skipped: no ptxas");
    return;
  }
  int compared = 0, right = 0;
  for (const std::string& text : sample_texts()) {
    auto before = estimate(text, 80);
    Result<FiguresByFunction> real_before = machine_figures(text, "sm_80");
    REQUIRE(real_before.ok());
    for (const auto& [version, changed] : tests::versions_of(text)) {
      Result<FiguresByFunction> real_after = machine_figures(changed, "sm_80");
      REQUIRE_MESSAGE(real_after.ok(), version);
      for (const auto& [name, found] : estimate(changed, 80)) {
        int64_t real = int64_t{real_after->at(name).instructions} - real_before->at(name).instructions;
        int64_t guessed = int64_t{found.instructions} - before.at(name).instructions;
        if (real == 0 && guessed == 0) continue;
        ++compared;
        right += sign(real) == sign(guessed);
        if (sign(real) != sign(guessed))
          std::printf("%-24s %-32s %+5d by ptxas, %+5d estimated\n", name.c_str(), version.c_str(),
                      static_cast<int>(real), static_cast<int>(guessed));
      }
    }
  }
  std::printf("sign right in %d of %d pairs\n", right, compared);
  CHECK(compared > 100);
  CHECK(right >= 0.9 * compared);
}
