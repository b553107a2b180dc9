// Common code of the tools that print a paper's table over samples: their options, and reading one sample after the
// other.
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

// The folder of a launch file, which is the name of the sample.
std::string sample_of(const std::string& launch_file);

class SampleTool {
public:
  cli::Application application;
  std::vector<std::string> files;
  std::string size, gpu;
  bool json = false, check = false;

  // `gpu`: the paper's machine; `about_check`: the description of --check.
  SampleTool(const std::string& about, std::string paper_gpu,
             const std::string& about_check = "check what has to hold");
  SampleTool(const SampleTool&) = delete;

  // Returns nullptr if there is no such machine; reports it, and the exit code is 2.
  const ir::Machine* machine() { return machine(gpu); }
  const ir::Machine* machine(const std::string& name);
  // Calls measure(input, sample) for each sample. Errors are reported, and the other samples follow.
  void for_each_sample(const std::function<Status(evaluate::LaunchInput&, const std::string& sample)>& measure);
  // Reports an error of a sample: the exit code is then 1.
  void complain(const std::string& sample, const std::string& message);
  int exit_code() const { return code_; }

private:
  int code_ = 0;
};

} // namespace ptxrewrite::tests
