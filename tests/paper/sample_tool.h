// What the tools that print a paper's table over samples have in common: their options, and reading one sample after
// the other.
//
//   SampleTool tool("DAC's two streams over samples", "gtx480");
//   if (std::optional<int> code = tool.application.parse(count, arguments)) return *code;
//   return tool.run([&](const evaluate::LaunchInput& input, const std::string& sample) -> Status { ... }) or print ...
#pragma once

#include "cli/options.h"
#include "ir/machine/figures/machine.h"
#include "tests/paper/measure.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace ptxrewrite::tests {

// The folder of a launch file: samples are named so.
std::string sample_of(const std::string& launch_file);

class SampleTool {
public:
  cli::Application application;
  std::vector<std::string> files;
  std::string size, gpu;
  bool json = false, check = false;

  // `gpu`: the paper's machine; `about_check`: what --check does.
  SampleTool(const std::string& about, std::string paper_gpu,
             const std::string& about_check = "check what has to hold");
  SampleTool(const SampleTool&) = delete;

  // Null: there is no such machine; that is said, and the exit code is 2.
  const ir::Machine* machine();
  // Calls measure(input, sample) for each sample. What goes wrong is said, and the others follow.
  void for_each_sample(const std::function<Status(evaluate::LaunchInput&, const std::string& sample)>& measure);
  // Says what is wrong with a sample: the exit code is 1 then.
  void complain(const std::string& sample, const std::string& message);
  int exit_code() const { return code_; }

private:
  int code_ = 0;
};

} // namespace ptxrewrite::tests
