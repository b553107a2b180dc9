// The steps for each hostile kernel: checks of its text, and commands of the program on it.
#pragma once

#include "tests/fuzz/hostile/command_runner.h"
#include "tests/fuzz/hostile/hostile_kernel.h"
#include "tests/fuzz/text_checks.h"

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

namespace ptxrewrite::fuzz {

// One command line. KERNEL stands for the kernel's file, OUT for an output file, LAUNCH for the words that launch the
// kernel or for a launch template's file.
struct HostileStep {
  const char* words;
  unsigned one_in = 1;  // one of this many kernels, chosen by the seed
  bool runs = false;    // needs a kernel that terminates
  bool decides = false; // tests whether it terminates
};
std::span<const HostileStep> hostile_steps();

struct StepCounts {
  std::array<uint64_t, 6> by_code{}; // exit codes 0 to 4, and others
};

// The choice of a kernel's steps: the seed decides, and all steps occur over many seeds.
struct StepChoice {
  bool all = false;
  unsigned few = 0; // this many besides the deciding one, all steps equally often; 0: each with its own probability
};
bool takes_step(const StepChoice& choice, uint64_t seed, size_t step);

class HostileKernelTest {
public:
  // Files go to `folder`. `announce` is called before each step, `count` after it.
  HostileKernelTest(CommandRunner& runner, std::string folder) : runner_(runner), folder_(std::move(folder)) {}
  std::function<void(const std::string& step)> announce;
  std::function<void(size_t step, int code)> count;
  std::function<void(const std::string& step, const std::string& what)> fail;

  void test(const HostileKernel& kernel, const StepChoice& choice);
  TextTally text; // of all kernels

private:
  std::vector<std::string> words_of(const HostileStep& step, const HostileKernel& kernel) const;
  bool make_launch(const HostileKernel& kernel);
  bool ends(const HostileKernel& kernel);
  void weigh(const HostileKernel& kernel);
  void take(size_t index, const HostileKernel& kernel);
  CommandOutcome command(const std::vector<std::string>& words);

  CommandRunner& runner_;
  std::string folder_;
  bool launches_ = false, ends_ = false; // of the current kernel
};

} // namespace ptxrewrite::fuzz
