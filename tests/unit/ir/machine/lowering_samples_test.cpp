// The estimates of ir/machine against what ptxas makes of our samples: size of the code, registers, and which of two
// versions of a kernel is the longer one. The bounds are what is reached, rounded up.
#include "ir/machine/figures.h"
#include "ir/machine/lowering.h"
#include "ir/machine/registers.h"
#include "ir/ssa.h"
#include "support/file_io.h"
#include "support/ptxas.h"
#include "tests/unit/grammar/read.h"
#include "tests/unit/paths.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <regex>

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

// Prints the estimates that are far off, and gives the mean absolute errors of code size and registers.
std::pair<double, double> compare_with_ptxas(uint32_t capability) {
  std::vector<double> sizes, registers;
  for (const std::string& text : sample_texts()) {
    Result<FiguresByFunction> figures = machine_figures(text, "sm_" + std::to_string(capability));
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

// Versions of one text with the same meaning.
struct Rewrite {
  const char* name;
  const char* pattern;
  const char* replacement; // {n} is a number of its own
};

constexpr Rewrite rewrites[] = {
    {"shift for a wide multiply", R"(mul\.wide\.s32\s+(%\w+), (%\w+), 4;)",
     "cvt.s64.s32 %extra_d{n}, $2; shl.b64 $1, %extra_d{n}, 2;"},
    {"product and sum apart", R"(fma\.rn\.f32\s+(%\w+), (%\w+), (%\w+), (%\w+);)",
     "mul.rn.f32 %extra_f{n}, $2, $3; add.rn.f32 $1, %extra_f{n}, $4;"},
    {"multiply-add in two", R"(mad\.lo\.s32\s+(%\w+), (%\w+), (%\w+), (%\w+);)",
     "mul.lo.s32 %extra_r{n}, $2, $3; add.s32 $1, %extra_r{n}, $4;"},
    {"compare and select for a minimum", R"((max|min)\.s32\s+(%\w+), (%\w+), (-?%?\w+);)",
     "setp.lt.s32 %extra_p{n}, $3, $4; selp.b32 $2, $3, $4, %extra_p{n};"},
    {"exact reciprocal", R"(div\.rn\.f32\s+(%\w+), (%\w+), (%\w+);)",
     "rcp.rn.f32 %extra_f{n}, $3; mul.f32 $1, %extra_f{n}, $2;"},
    {"fast division", R"(div\.rn\.f32\s+(%\w+), (%\w+), (%\w+);)", "div.approx.f32 $1, $2, $3;"},
    {"volatile loads", R"(ld\.shared\.f32)", "ld.volatile.shared.f32"},
    {"an addition to what is stored", R"(st\.global\.f32\s+\[(%\w+)(\+\d+)?\], (%\w+);)",
     "add.f32 %extra_f{n}, $3, $3; st.global.f32 [$1$2], %extra_f{n};"},
    {"conversion of indices", R"(cvt\.s64\.s32\s+(%\w+), (%\w+);)",
     "shr.s32 %extra_r{n}, $2, 31; mov.b64 $1, {$2, %extra_r{n}};"},
};

std::string apply(const Rewrite& rewrite, const std::string& text) {
  std::regex pattern(rewrite.pattern);
  std::string out;
  unsigned number = 0;
  auto begin = std::sregex_iterator(text.begin(), text.end(), pattern);
  size_t position = 0;
  for (auto match = begin; match != std::sregex_iterator(); ++match) {
    out += text.substr(position, static_cast<size_t>(match->position()) - position);
    std::string replaced = match->format(rewrite.replacement);
    for (size_t place; (place = replaced.find("{n}")) != std::string::npos;)
      replaced.replace(place, 3, std::to_string(number));
    ++number;
    out += replaced;
    position = static_cast<size_t>(match->position() + match->length());
  }
  if (number == 0) return {};
  out += text.substr(position);
  std::string count = "<" + std::to_string(number) + ">; ";
  std::string declarations = "\n.reg .b64 %extra_d" + count + ".reg .b32 %extra_r" + count + ".reg .f32 %extra_f" +
                             count + ".reg .pred %extra_p" + count + "\n";
  // After the brace that opens each entry's body.
  for (size_t entry = out.find(".entry"); entry != std::string::npos; entry = out.find(".entry", entry + 1)) {
    size_t brace = out.find("\n{", entry);
    out.insert(brace + 2, declarations);
  }
  return out;
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
  for (uint32_t capability : {80u, 90u}) {
    auto [sizes, registers] = compare_with_ptxas(capability);
    CHECK(sizes < 0.07);
    CHECK(registers < 0.19);
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
    for (const Rewrite& rewrite : rewrites) {
      std::string changed = apply(rewrite, text);
      if (changed.empty()) continue;
      Result<FiguresByFunction> real_after = machine_figures(changed, "sm_80");
      REQUIRE_MESSAGE(real_after.ok(), rewrite.name);
      for (const auto& [name, found] : estimate(changed, 80)) {
        int64_t real = int64_t{real_after->at(name).instructions} - real_before->at(name).instructions;
        int64_t guessed = int64_t{found.instructions} - before.at(name).instructions;
        if (real == 0 && guessed == 0) continue;
        ++compared;
        right += sign(real) == sign(guessed);
        if (sign(real) != sign(guessed))
          std::printf("%-24s %-32s %+5d by ptxas, %+5d estimated\n", name.c_str(), rewrite.name, static_cast<int>(real),
                      static_cast<int>(guessed));
      }
    }
  }
  std::printf("sign right in %d of %d pairs\n", right, compared);
  CHECK(compared > 100);
  CHECK(right >= 0.9 * compared);
}
