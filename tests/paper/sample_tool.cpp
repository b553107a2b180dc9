#include "tests/paper/sample_tool.h"

#include <cstdio>
#include <filesystem>

namespace ptxrewrite::tests {

std::string sample_of(const std::string& launch_file) {
  return std::filesystem::path(launch_file).parent_path().filename().string();
}

SampleTool::SampleTool(const std::string& about, std::string paper_gpu, const std::string& about_check)
    : application(about), gpu(std::move(paper_gpu)) {
  application.add_option("LAUNCH_FILE", files, "launch files of samples").required();
  application.add_option("--size", size, "of the launch files that have it (default: their own)");
  application.add_option("--gpu", gpu, "the machine (default: the paper's)");
  application.add_flag("--json", json, "print JSON");
  application.add_flag("--check", check, about_check);
}

const ir::Machine* SampleTool::machine(const std::string& name) {
  const ir::Machine* found = ir::find_machine(name);
  if (!found) {
    std::fprintf(stderr, "%s\n", ir::unknown_machine(name).c_str());
    code_ = 2;
  }
  return found;
}

void SampleTool::for_each_sample(const std::function<Status(evaluate::LaunchInput&, const std::string&)>& measure) {
  for (const std::string& file : files) {
    Result<evaluate::LaunchInput> input = read_sample(file, size);
    if (!input) {
      complain(sample_of(file), input.error().message);
      continue;
    }
    if (Status status = measure(*input, sample_of(file)); !status) complain(sample_of(file), status.error().message);
  }
}

void SampleTool::complain(const std::string& sample, const std::string& message) {
  std::fprintf(stderr, "%s: %s\n", sample.c_str(), message.c_str());
  code_ = 1;
}

} // namespace ptxrewrite::tests
