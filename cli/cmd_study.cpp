// `ptxrewrite study`: measures the redundancy in a run, and the instructions that remain under the papers' techniques.
#include "cli/command.h"
#include "cli/device_options.h"
#include "cli/launch_options.h"
#include "evaluate/common/module_input.h"
#include "evaluate/common/progress.h"
#include "evaluate/launches/launch_input.h"
#include "evaluate/study/study_report.h"
#include "support/text/json_text.h"
#include "support/text/near_names.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <memory>

namespace ptxrewrite::cli::study_command {
namespace {

struct StudyOptions {
  std::vector<std::string> files;
  LaunchInputOptions input;
  DeviceOptions device;
  std::vector<std::string> only;
  StudyReportOptions report;
  std::optional<uint64_t> sample;
  bool json = false;
};

// Describes a contradiction between the options; "" if there is none.
std::string contradiction(const StudyOptions& options) {
  return contradiction_of_files(options.files, options.input);
}

// The techniques of --only, in table order. Fails for an unknown name.
Result<std::vector<Technique>> techniques_of(const std::vector<std::string>& names) {
  std::vector<Technique> found;
  for (const std::string& name : names) {
    const std::optional<Technique> technique = find_technique(name);
    if (!technique) {
      std::vector<std::string> known;
      std::string all;
      for (size_t i = 0; i < technique_count; ++i) {
        known.emplace_back(info_of(static_cast<Technique>(i)).name);
        all += (i ? ", " : "") + known.back();
      }
      const std::string near = near_names(name, known);
      return Error{
          "--only: there is no row '" + name + "'" + (near.starts_with("; did") ? near : "; there are: " + all), {}};
    }
    found.push_back(*technique);
  }
  std::ranges::sort(found);
  found.erase(std::ranges::unique(found).begin(), found.end());
  return found;
}

// Adds a file that ran without a fault to `studied`; returns the exit code.
int study_file(const StudyOptions& options, const std::string& path, const ir::Machine& machine, const Session& session,
               std::vector<StudiedFile>& studied) {
  std::optional<LaunchInput> input = read_launch_input(path, options.input, session);
  if (!input) return exit_diagnostics;
  if (Status status = cuda::check_memory(input->plan, 1); !status) {
    show(status.error(), input->plan.source, session);
    return exit_diagnostics;
  }
  cuda::ErrorPlace place = cuda::ErrorPlace::launch_file;
  const StudySettings settings{.machine = machine,
                               .sample = options.sample,
                               .measure_cost = options.report.cost,
                               .only = options.report.only,
                               .paper_marks = !options.report.paper.empty()};
  Result<StudyRun> run = study(*input, settings, place);
  if (!run) {
    show_session_error(run.error(), place, *input, session);
    return exit_diagnostics;
  }
  if (run->failure) {
    show(run->failure->to_diagnostic(), input->module->source, session);
    return exit_fault;
  }
  studied.push_back({path, input->plan.size, run->result});
  return exit_ok;
}

int run_study(StudyOptions& options, const Session& session) {
  if (std::string wrong = contradiction(options); !wrong.empty()) return usage_error("study", wrong);
  const MachineChoice choice = machine_of(options.device, "study", session);
  if (choice.code != exit_ok) return choice.code;
  Result<std::vector<Technique>> only = techniques_of(options.only);
  if (!only) return usage_error("study", only.error().message);
  options.report.only = std::move(*only);
  int code = exit_ok;
  std::vector<StudiedFile> studied;
  nlohmann::ordered_json files = nlohmann::ordered_json::array();
  Progress progress(options.files.size());
  for (size_t i = 0; i < options.files.size(); ++i) {
    progress.show(i, options.files[i]);
    const size_t before = studied.size();
    const int file_code = study_file(options, options.files[i], *choice.machine, session, studied);
    code = std::max(code, file_code);
    progress.clear();
    if (studied.size() == before) continue;
    if (options.json)
      files.push_back(study_json(studied.back(), *choice.machine, options.report));
    else
      std::printf("%s%s", before ? "\n" : "", study_text(studied.back(), *choice.machine, options.report).c_str());
    std::fflush(stdout);
  }
  const bool averages = studied.size() > 1 || (!options.report.paper.empty() && !studied.empty());
  if (options.json) {
    nlohmann::ordered_json document = {{"files", std::move(files)}};
    if (averages) document["averages"] = averages_json(studied, options.report);
    std::puts(json_text(document).c_str());
  } else if (!studied.empty()) {
    if (averages) std::printf("\n%s", averages_text(studied, options.report).c_str());
    std::printf("\n%s", study_notes().c_str());
  }
  return code;
}

Action set_up(Options& command, const Session& session) {
  auto options = std::make_shared<StudyOptions>();
  command.add_option("FILE", options->files, "launch files, or PTX files with --grid, --block and --arg");
  add_launch_input_options(command, options->input);
  add_limit_options(command);
  add_direct_launch_options(command, options->input.direct);
  command.add_option("-k,--kernel", options->input.kernels, "only launches of such kernels").type_name("GLOB");
  options->device.gpu = "titanv";
  command
      .add_option("--gpu", options->device.gpu,
                  "the GPU whose machine instructions are counted, and whose SMs hold blocks: titanv (default), "
                  "gtx1080ti, fx5800, sm_80, FILE.toml ...")
      .type_name("GPU");
  command.add_option("--only", options->only, "only these rows: block,WP,DAC-IDEAL ...")
      .type_name("ROW,...")
      .delimiter(',');
  command.add_option("--paper", options->report.paper, "set a paper's averages beside ours: darsie, r2d2 or composite")
      .one_of(papers_of_study())
      .type_name("NAME");
  command
      .add_option("--sample", options->sample,
                  "look at the values of one block of N, in launches of more than N blocks; 1: of all; default: by the "
                  "launch's size, and in long loops at one trip of 8")
      .range(1, 1 << 20)
      .type_name("N");
  command.add_flag("--time", options->report.cost, "run without studies, too, and show their cost");
  command.add_flag("--json", options->json, "print JSON");
  return [options, &session] { return run_study(*options, session); };
}

const RegisterCommand registration(
    {.name = "study",
     .about = "count the redundant part of a run, and the part that remains with the papers' techniques",
     .example =
         "ptxrewrite study samples/backprop/backprop.toml\n"
         "  ptxrewrite study samples/*/*.toml --only block,DAC-IDEAL --paper darsie\n"
         "All rows come from one run on the emulator and count machine instructions. docs/studies.md has the rules.",
     .place = 80,
     .set_up = set_up});

} // namespace

} // namespace ptxrewrite::cli::study_command
