// Runs the engines of `study` and `score` on each launch of a program, with copies of its memory: `exec --study`,
// `--score`.
#pragma once

#include "evaluate/exec/launch_image.h"
#include "evaluate/exec/program_study.h"

#include <map>
#include <memory>
#include <optional>
#include <string>

namespace ptxrewrite::evaluate {

struct StudyingSettings {
  bool study = false;
  const ir::Machine* machine = nullptr;       // the program's machine
  const ir::Machine* score_machine = nullptr; // nullptr: no scores
  std::string passes;                         // a version to compare with the original; "" if none
  std::string html;                           // path of the page; "" if none
};

class StudyingHook final : public cuda::LaunchHook {
public:
  StudyingHook(StudyingSettings settings, std::shared_ptr<LaunchImages> images);

  void before(cuda::LaunchCall& call) override;
  void after(const cuda::LaunchCall& call, const emulator::LaunchResult& result) override;
  cuda::ReportPart report() override;
  // Times of the program's own versions; launches that cannot be scored take no time.
  std::optional<double> modelled_seconds() const override;

private:
  KernelStudy& kernel_of(const cuda::Kernel& kernel);
  // Fails with the reason why the launch is left out.
  Status look_at(const LaunchInput& input, KernelStudy& kernel);

  StudyingSettings settings_;
  std::shared_ptr<LaunchImages> images_;
  std::shared_ptr<ScoreSession> session_ = make_score_session();
  ProgramStudy found_;
  std::map<const cuda::Kernel*, size_t> places_; // index in found_.kernels
  double modelled_seconds_ = 0;
};

} // namespace ptxrewrite::evaluate
