#include "evaluate/exec/studying.h"

#include "cuda/context/context.h"
#include "cuda/context/log.h"
#include "support/file_io.h"
#include "support/text/json_text.h"

#include <nlohmann/json.hpp>

namespace ptxrewrite::evaluate {
namespace {

void add_scores(const ScoredFile& scored, KernelStudy& kernel) {
  for (size_t i = 0; i < scored.versions.size(); ++i) {
    if (i == kernel.scores.size()) kernel.scores.push_back({.version = scored.versions[i].name});
    for (const ScoredKernel& one : scored.versions[i].kernels)
      kernel.scores[i].add(one);
  }
}

} // namespace

StudyingHook::StudyingHook(StudyingSettings settings, std::shared_ptr<LaunchImages> images)
    : settings_(std::move(settings)), images_(std::move(images)) {
  found_.machine = settings_.machine;
  found_.score_machine = settings_.score_machine;
}

KernelStudy& StudyingHook::kernel_of(const cuda::Kernel& kernel) {
  const auto [place, is_new] = places_.try_emplace(&kernel, found_.kernels.size());
  if (is_new) found_.kernels.push_back({.kernel = kernel.name});
  return found_.kernels[place->second];
}

Status StudyingHook::look_at(const LaunchInput& input, KernelStudy& kernel) {
  cuda::ErrorPlace place = cuda::ErrorPlace::launch_file;
  std::optional<StudyRun> studied;
  if (settings_.study) {
    Result<StudyRun> run = study(input, {*settings_.machine, std::nullopt, false, {}}, place);
    if (!run) return run.error();
    if (run->failure) return Error{"it fails: " + run->failure->message, {}};
    studied = *std::move(run);
  }
  if (settings_.score_machine) {
    ScoreSettings settings{.machine = *settings_.score_machine,
                           .passes = {},
                           .run_ptxas = false, // no other process may be started inside the program
                           .session = session_.get(),
                           .changes = {}};
    if (!settings_.passes.empty()) settings.passes.push_back(settings_.passes);
    Result<ScoreRun> run = score(input, settings, place);
    if (!run) return run.error();
    if (run->failure) return Error{"it fails: " + run->failure->message, {}};
    add_scores(run->scored, kernel);
    for (const ScoredKernel& one : run->scored.versions.front().kernels)
      modelled_seconds_ += one.seconds;
  }
  if (studied) {
    if (!kernel.study) kernel.study.emplace();
    *kernel.study += studied->result;
  }
  ++kernel.studied;
  return {};
}

void StudyingHook::before(cuda::LaunchCall& call) {
  KernelStudy& kernel = kernel_of(call.kernel);
  ++kernel.launches;
  Result<LaunchInput*> input = images_->of(call);
  const Status status = input ? look_at(**input, kernel) : Status(input.error());
  if (!status) ++kernel.reasons[status.error().message];
}

void StudyingHook::after(const cuda::LaunchCall& call, const emulator::LaunchResult& result) {
  KernelStudy& kernel = kernel_of(call.kernel);
  kernel.warp_instructions += result.counters.warp_instructions;
  kernel.thread_instructions += result.counters.thread_instructions;
}

std::optional<double> StudyingHook::modelled_seconds() const {
  return settings_.score_machine ? std::optional(modelled_seconds_) : std::nullopt;
}

cuda::ReportPart StudyingHook::report() {
  if (!settings_.html.empty())
    if (Status status = write_file(settings_.html, program_study_html(found_)); !status)
      cuda::log(cuda::LogLevel::error, "{}", status.error().message);
  return {program_study_text(found_), "study", json_text(program_study_json(found_))};
}

} // namespace ptxrewrite::evaluate
