// The estimates of ir/machine against ptxas' results for our samples: size of the code, registers, and the longer one
// of two versions of a kernel. The bounds are the measured values, rounded to the worse side.
#include "ir/machine/figures/figures.h"
#include "ir/machine/registers/registers.h"
#include "ir/machine/select/lowering.h"
#include "ir/ssa/ssa.h"
#include "support/file_io.h"
#include "support/ptxas.h"
#include "tests/paper/signs.h"
#include "tests/paper/versions.h"
#include "tests/unit/grammar/read.h"
#include "tests/unit/paths.h"
#include "transforms/manager/pipeline.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>

namespace ptxrewrite::tests::lowering_samples_test {

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
  uint32_t registers_by_lowering = 0; // by the lowering that the size is from
};

std::map<std::string, Estimate> estimate(const std::string& ptx, uint32_t capability, bool ssa = true) {
  ReadText text(ptx);
  REQUIRE_MESSAGE(text.ok(), text.messages());
  std::map<std::string, Estimate> estimates;
  for (const auto& function : text.module->functions) {
    if (!function->has_body || !function->is_entry) continue;
    if (ssa) REQUIRE(construct_ssa(*function).ok());
    const Lowering lowering = lower(*function, capability);
    estimates[std::string(text.module->text(function->name))] = {
        lowering.static_instructions(), register_need(*function, capability).registers,
        register_need(*function, lowering, capability).registers};
  }
  return estimates;
}

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (double value : values)
    sum += std::fabs(value);
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

// The samples are written for sm_80: other machines get the same text with their own name.
std::string for_target(std::string text, uint32_t capability) {
  const std::string written = ".target " + target_architecture(text);
  if (capability < 80) text.replace(text.find(written), written.size(), ".target sm_" + std::to_string(capability));
  return text;
}

struct Errors {
  double sizes = 0, registers = 0, registers_by_lowering = 0; // mean absolute ones
};

// Prints the estimates with large errors.
Errors compare_with_ptxas(uint32_t capability) {
  std::vector<double> sizes, registers, by_lowering;
  for (const std::string& sample : sample_texts()) {
    const std::string text = for_target(sample, capability);
    Result<FiguresByFunction> figures = machine_figures(text, "sm_" + std::to_string(capability));
    if (!figures && capability < 80) continue; // features of later machines
    REQUIRE(figures.ok());
    for (const auto& [name, found] : estimate(text, capability)) {
      const MachineFigures& real = figures->at(name);
      double size = static_cast<double>(found.instructions) / real.instructions - 1;
      sizes.push_back(size);
      registers.push_back(static_cast<double>(found.registers) / real.registers - 1);
      by_lowering.push_back(static_cast<double>(found.registers_by_lowering) / real.registers - 1);
      if (std::fabs(size) > 0.15)
        std::printf("sm_%u %-24s %5u instructions, %5u estimated (%+.0f %%)\n", capability, name.c_str(),
                    real.instructions, found.instructions, 100 * size);
    }
  }
  REQUIRE(sizes.size() > 100);
  const Errors errors{mean(sizes), mean(registers), mean(by_lowering)};
  std::printf("sm_%u: %zu kernels, mean absolute error %.1f %% of instructions, %.1f %% of registers, %.1f %% by the "
              "lowering alone\n",
              capability, sizes.size(), 100 * errors.sizes, 100 * errors.registers, 100 * errors.registers_by_lowering);
  return errors;
}

// Our passes' versions of samples; the names are the pipelines.
constexpr const char* pipelines[] = {"r2d2(force)",
                                     "r2d2(force,candidates=2)",
                                     "r2d2(force,persistent)",
                                     "dac(force,form=ring)",
                                     "dac(force,form=prefetch)",
                                     "dac(force,form=producer)",
                                     "darsie(force,specialise=\"block=256\")",
                                     "composite(force)",
                                     "spill(limit=24)",
                                     "schedule(force,goal=loads)"};

// Returns "" if the passes leave the text unchanged.
std::string rewritten(const std::string& ptx, const std::string& passes) {
  ReadText text(ptx);
  REQUIRE(text.ok());
  const std::string before = print(*text.module);
  Result<transforms::Pipeline> pipeline = transforms::parse_pipeline(passes);
  REQUIRE(pipeline.ok());
  REQUIRE(transforms::run_pipeline(*text.module, *pipeline).ok());
  std::string after = print(*text.module);
  return after == before ? std::string() : after;
}

// The kernels of both texts. Empty if ptxas refuses one for this machine.
std::vector<tests::VersionPair> pairs_of(const std::string& text, const std::string& version,
                                         const std::string& changed, uint32_t capability) {
  const std::string architecture = "sm_" + std::to_string(capability);
  const std::string original = for_target(text, capability), after = for_target(changed, capability);
  std::vector<tests::VersionPair> pairs;
  Result<FiguresByFunction> real_before = machine_figures(original, architecture);
  Result<FiguresByFunction> real_after = machine_figures(after, architecture);
  if (capability < 80 && !(real_before && real_after)) return pairs; // features of later machines
  REQUIRE_MESSAGE((real_before && real_after), version);
  const auto before = estimate(original, capability);
  for (const auto& [kernel, found] : estimate(after, capability)) {
    const std::string from = tests::original_of(kernel, [&](const std::string& name) { return before.contains(name); });
    if (before.contains(from))
      pairs.push_back({version, kernel, real_before->at(from).instructions, real_after->at(kernel).instructions,
                       before.at(from).instructions, found.instructions});
  }
  return pairs;
}

void append(std::vector<tests::VersionPair>& all, const std::vector<tests::VersionPair>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

// The share of the pairs with the right order among those with a difference on either side; prints the wrong ones.
double right_share(const std::vector<tests::VersionPair>& pairs) {
  tests::SignCounts counts;
  for (const tests::VersionPair& pair : pairs)
    counts.add(pair);
  tests::print_signs(pairs, true);
  CHECK(counts.seen() > 100);
  return static_cast<double>(counts.right) / counts.seen();
}

} // namespace

TEST_CASE("estimated code size and registers against ptxas") {
  if (!find_ptxas()) {
    MESSAGE("skipped: no ptxas");
    return;
  }
  for (uint32_t capability : {75u, 80u, 90u}) {
    const Errors errors = compare_with_ptxas(capability);
    CHECK(errors.sizes < 0.062);
    CHECK(errors.registers < 0.21);
    CHECK(errors.registers_by_lowering < 0.21);
  }
}

TEST_CASE("which of two versions is longer") {
  if (!find_ptxas()) {
    MESSAGE("skipped: no ptxas");
    return;
  }
  constexpr uint32_t capabilities[] = {75, 80, 90};
  std::vector<tests::VersionPair> by_text, by_pass;
  // Each version is tested on one machine, and each pipeline with a third of the samples: all would take minutes. The
  // thirds differ, since some pipelines meet mostly samples that they change by an instruction or two: with 69 samples
  // this one has 77 %, the others 85 and 88 %.
  size_t turn = 0, sample = 0;
  for (const std::string& text : sample_texts()) {
    for (const auto& [version, changed] : tests::versions_of(text))
      append(by_text, pairs_of(text, version, changed, capabilities[turn++ % 3]));
    for (size_t i = sample++ % 3; i < std::size(pipelines); i += 3)
      if (const std::string changed = rewritten(text, pipelines[i]); !changed.empty())
        append(by_pass, pairs_of(text, pipelines[i], changed, capabilities[turn++ % 3]));
  }
  CHECK(right_share(by_text) >= 0.93);
  CHECK(right_share(by_pass) >= 0.76);
}

} // namespace ptxrewrite::tests::lowering_samples_test
