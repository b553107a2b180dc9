// Tests the results of the linear-form analysis against the emulator: in every thread of launches of the samples and of
// random kernels.
//
//   check_forms LAUNCH_FILE...           in all shapes of the launch file, smallest size
//   check_forms --kernels N [--first S]  random kernels about index arithmetic, every other one about anything
//   ... --spoil                          forms are changed on purpose: then there must be mismatches
//
// Exit code 1 if a value differs from its form, or if almost nothing was compared.
#include "evaluate/launches/launch_input.h"
#include "launch/shapes.h"
#include "tests/forms/form_checker.h"
#include "tests/fuzz/kernels/differential.h"
#include "tests/fuzz/kernels/kernel_generator.h"
#include "tests/fuzz/kernels/kernel_print.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

using namespace ptxrewrite;
using tests::FormChecker;
using tests::FormCounts;

constexpr uint64_t fuel = 3'000'000; // warp instructions per block, for shapes that a kernel does not support

struct Tally {
  FormCounts counts;
  uint64_t launches = 0, mismatches = 0;
  size_t most_shown = 3;

  void add(const FormChecker& checker, const std::string& name) {
    counts.add(checker.counts());
    mismatches += checker.mismatches().size();
    for (size_t i = 0; i < checker.mismatches().size() && i < most_shown; ++i)
      std::fprintf(stderr, "%s: %s\n", name.c_str(), checker.mismatches()[i].c_str());
  }
};

bool check_sample(const std::string& path, bool spoil, Tally& tally) {
  Console session;
  const std::optional<evaluate::LaunchInput> input = evaluate::read_launch_input(path, {.size = "small"}, session);
  if (!input) return false;
  FormChecker checker(*input->module);
  if (spoil) checker.spoil();
  uint64_t launches = 0;
  for (const launch::LaunchShape& shape : launch::shapes(input->plan)) {
    const launch::LaunchPlan plan = launch::with_shape(input->plan, shape);
    cuda::EmulatorOptions options;
    if (shape.derived) options.fuel = fuel;
    options.observer = [&](const emulator::LaunchRequest&) {
      checker.new_launch();
      ++launches;
      return &checker;
    };
    const auto device = cuda::make_emulator_device(options);
    // A kernel may fault in an unsupported shape; the values computed before are compared.
    const auto result = cuda::run_plan(plan, *input->module, *device);
    if (!shape.derived && (!result || result->failed_launch)) {
      std::fprintf(stderr, "%s, %s: does not run\n", path.c_str(), shape.name.c_str());
      return false;
    }
  }
  tally.launches += launches;
  tally.add(checker, path);
  return true;
}

bool check_kernel(const fuzz::Kernel& kernel, bool spoil, Tally& tally) {
  std::string failed;
  const auto module = fuzz::read_text(fuzz::print_module(kernel), failed);
  if (!module) return false;
  FormChecker checker(*module);
  if (spoil) checker.spoil();
  for (const fuzz::Shape& shape : kernel.shapes) {
    checker.new_launch();
    ++tally.launches;
    if (!fuzz::emulate(*module, kernel, shape, &checker).failed.empty()) return false;
  }
  tally.add(checker, kernel.name);
  return true;
}

} // namespace

int main(int argc, char** argv) {
  Tally tally;
  uint64_t first = 1, count = 0;
  bool is_right = true, spoil = false;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--kernels") == 0 && i + 1 < argc) {
      count = std::strtoull(argv[++i], nullptr, 10);
    } else if (std::strcmp(argv[i], "--first") == 0 && i + 1 < argc) {
      first = std::strtoull(argv[++i], nullptr, 10);
    } else if (std::strcmp(argv[i], "--spoil") == 0) {
      spoil = true;
      tally.most_shown = 0;
    } else {
      is_right = check_sample(argv[i], spoil, tally) && is_right;
    }
  }
  for (uint64_t seed = first; seed < first + count; ++seed) {
    const fuzz::Knobs knobs = seed % 2 == 0 ? fuzz::index_knobs() : fuzz::Knobs();
    is_right = check_kernel(fuzz::generate_kernel(seed, knobs), spoil, tally) && is_right;
  }
  const FormCounts& counts = tally.counts;
  std::printf(
      "%llu launches: %llu values as their forms say, %llu of them with thread or block indices, %llu in loops, "
      "%llu under obligations; %llu the same in all threads; %llu not compared, for their obligations; "
      "%llu mismatches\n",
      static_cast<unsigned long long>(tally.launches), static_cast<unsigned long long>(counts.values),
      static_cast<unsigned long long>(counts.with_threads), static_cast<unsigned long long>(counts.with_loops),
      static_cast<unsigned long long>(counts.obliged), static_cast<unsigned long long>(counts.uniform),
      static_cast<unsigned long long>(counts.unfulfilled), static_cast<unsigned long long>(tally.mismatches));
  if (counts.lost != 0)
    std::printf("%llu ways between blocks were lost\n", static_cast<unsigned long long>(counts.lost));
  const bool is_much = counts.values > 1000 && counts.with_threads > 0;
  return is_right && is_much && counts.lost == 0 && (tally.mismatches != 0) == spoil ? 0 : 1;
}
