// `ptxrewrite score`: predicts the times of kernels and their rewritten versions on a machine, by the timing model.
#include "cli/command.h"
#include "cli/device_options.h"
#include "cli/launch_options.h"
#include "cli/pipeline_options.h"
#include "emulator/timing/slice.h"
#include "evaluate/common/module_input.h"
#include "evaluate/common/progress.h"
#include "evaluate/launches/launch_input.h"
#include "evaluate/score/benchmark_slice.h"
#include "evaluate/score/score_captured.h"
#include "evaluate/score/score_comparators.h"
#include "evaluate/score/score_html.h"
#include "evaluate/score/score_paper.h"
#include "evaluate/score/score_rank.h"
#include "evaluate/score/score_report.h"
#include "support/file_io.h"
#include "support/text/json_text.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <memory>
#include <sstream>

namespace ptxrewrite::cli::score_command {
namespace {

struct ScoreOptions {
  std::vector<std::string> files;
  LaunchInputOptions input;
  std::vector<std::string> gpus;
  std::vector<std::string> passes;
  std::string form = "legal";
  ScoreReportOptions report;
  bool darsie = false;
  bool regless = false;
  bool exact = false;
  bool cold = false;
  bool sampled = false;
  uint32_t slice = 1;
  std::vector<std::string> comparators;
  bool rank = false;
  bool json = false;
  std::string html;
  std::string paper;    // "" if none
  std::string captured; // folder of captures to compare with the samples; "" if none
};

struct ScoredMachine {
  const ir::Machine* machine = nullptr;
  uint32_t slice = 1;            // the machine is 1/slice of the whole
  bool as_dense = false;         // choose the slice so that grids are as dense as the benchmark's
  std::deque<ir::Machine>* made; // storage for machines to which scored files refer
};

// Adds the file's scores to `scored`; returns the exit code.
int score_file(const ScoreOptions& options, const std::string& path, const ScoredMachine& on, const Session& session,
               std::vector<ScoredFile>& scored) {
  std::optional<LaunchInput> input = read_launch_input(path, options.input, session);
  if (!input) return exit_diagnostics;
  if (Status status = cuda::check_memory(input->plan, 1); !status) {
    show(status.error(), input->plan.source, session);
    return exit_diagnostics;
  }
  const Paper* paper = find_paper(options.paper);
  const uint32_t slice = on.as_dense ? benchmark_slice(input->plan, on.machine->sms) : on.slice;
  const ir::Machine* machine =
      on.as_dense && slice > 1 ? &on.made->emplace_back(timing::slice_of(*on.machine, slice)) : on.machine;
  if (paper) machine = &on.made->emplace_back(machine_of(*paper, *machine));
  ScoreSettings settings{.machine = *machine,
                         .slice = slice,
                         .passes = options.passes,
                         .darsie = options.darsie,
                         .paper_marks = paper != nullptr,
                         .regless = options.regless ? paper_configurations() : std::vector<StagingConfiguration>(),
                         .comparators = options.comparators,
                         .measure_cost = options.report.cost,
                         .sampled = options.sampled,
                         .cold = options.cold,
                         .exact = options.exact,
                         .changes = {}};
  if (options.report.sensitivity) settings.changes = changed_machines(*machine);
  if (paper && paper->by_bound) settings.changes.push_back(with_perfect_memory(*machine));
  if (options.form == "hardware") settings.form = transforms::OutputForm::hardware;
  cuda::ErrorPlace place = cuda::ErrorPlace::launch_file;
  Result<ScoreRun> run = score(*input, settings, place);
  if (!run) {
    show_session_error(run.error(), place, *input, session);
    return exit_diagnostics;
  }
  if (run->failure) {
    show(run->failure->to_diagnostic(), input->module->source, session);
    return exit_fault;
  }
  run->scored.file = path;
  run->scored.size = input->plan.size;
  run->scored.has_perfect_memory = paper && paper->by_bound;
  run->scored.as_dense = on.as_dense;
  scored.push_back(std::move(run->scored));
  return exit_ok;
}

// Scores the captures of the benchmark that a sample represents, with all launches merged. Returns the exit code.
int score_captured(const ScoreOptions& options, const std::string& path, const ScoredMachine& on,
                   const Session& session, std::vector<ScoredFile>& originals) {
  ScoreOptions of_captures = options;
  of_captures.input.size.clear();
  std::vector<ScoredFile> launches;
  int code = exit_ok;
  for (const std::string& launch : captured_launches(options.captured, path))
    code = std::max(code, score_file(of_captures, launch, on, session, launches));
  if (!launches.empty())
    originals.push_back(merged_launches(std::move(launches), std::filesystem::path(path).stem().string()));
  return code;
}

// Adds a paper's machine and technique to the user's options.
void take_from_paper(const Paper& paper, ScoreOptions& options) {
  options.gpus = {std::string(paper.machine)};
  options.darsie = options.darsie || paper.darsie;
  options.regless = options.regless || paper.regless;
  std::istringstream comparators{std::string(paper.comparators)};
  for (std::string name; comparators >> name;)
    options.comparators.push_back(name);
  if (paper.passes.empty()) return;
  options.form = "hardware";
  options.passes.insert(options.passes.begin(), std::string(paper.passes));
}

// Shows errors in the pipelines before anything is run.
bool are_pipelines(const std::vector<std::string>& passes, const Session& session) {
  return std::ranges::all_of(passes, [&](const std::string& text) {
    PipelineOptions pipeline;
    pipeline.passes = text;
    return make_pipeline(pipeline, session).has_value();
  });
}

// Describes options that need all blocks to run, and so contradict --sample; "" if there are none.
std::string contradiction_of_sampling(const ScoreOptions& options) {
  if (!options.sampled) return {};
  const bool needs_machine = options.darsie || options.regless || !options.comparators.empty() ||
                             !options.paper.empty() || options.form == "hardware";
  if (needs_machine) return "--sample runs on no machine of a paper";
  if (options.exact) return "--sample and --exact contradict each other";
  return {};
}

// Prints the summary over all files, after the report of each file. `files`: the JSON documents of the files.
void show_all(const ScoreOptions& options, const Paper* paper, const std::vector<ScoredFile>& scored,
              const std::vector<ScoredFile>& originals, nlohmann::ordered_json files) {
  const std::vector<Ranking> rankings = options.rank ? rankings_of(scored) : std::vector<Ranking>();
  if (options.json) {
    nlohmann::ordered_json document = {{"files", std::move(files)}};
    for (const Ranking& ranking : rankings)
      document["rankings"].push_back(rank_json(ranking));
    if (paper) document["paper"] = paper_json(*paper, scored);
    if (!originals.empty()) document["paper"]["captured"] = captured_json(*paper, scored, originals);
    std::puts(json_text(document).c_str());
    return;
  }
  for (const Ranking& ranking : rankings)
    std::printf("%s%s", &ranking == &rankings.front() ? "" : "\n", rank_text(ranking).c_str());
  if (paper && !scored.empty()) {
    std::printf("%s", paper_text(*paper, scored).c_str());
    if (!originals.empty()) std::printf("\n%s", captured_text(*paper, scored, originals).c_str());
  }
}

int run_score(ScoreOptions& options, const Session& session) {
  if (std::string wrong = contradiction_of_files(options.files, options.input); !wrong.empty())
    return usage_error("score", wrong);
  if (std::string wrong = contradiction_of_sampling(options); !wrong.empty()) return usage_error("score", wrong);
  if (!are_pipelines(options.passes, session)) return exit_usage;
  const Paper* paper = find_paper(options.paper);
  if (paper && options.rank) return usage_error("score", "--rank and --paper contradict each other");
  if (paper && !options.gpus.empty()) return usage_error("score", "--paper brings its machine: leave out --gpu");
  if (!paper && !options.captured.empty()) return usage_error("score", "--captured goes with --paper");
  if (paper) take_from_paper(*paper, options);
  if (options.gpus.empty()) options.gpus = {"h200"};
  std::vector<ScoredMachine> machines;
  std::deque<ir::Machine> made;
  for (const std::string& name : options.gpus) {
    const MachineChoice choice = find_machine("score", name, session);
    if (choice.code != exit_ok) return choice.code;
    const uint32_t slice = options.slice;
    if (slice > choice.machine->sms)
      return usage_error("score", "--slice: " + std::string(choice.machine->name) + " has " +
                                      std::to_string(choice.machine->sms) + " SMs");
    if (paper && paper->sliced) {
      machines.push_back({choice.machine, 1, false, &made});
      machines.push_back({choice.machine, 1, true, &made});
    } else {
      const ir::Machine* machine =
          slice > 1 ? &made.emplace_back(timing::slice_of(*choice.machine, slice)) : choice.machine;
      machines.push_back({machine, slice, false, &made});
    }
  }
  int code = exit_ok;
  std::vector<ScoredFile> scored, originals;
  nlohmann::ordered_json files = nlohmann::ordered_json::array();
  Progress progress(options.files.size() * machines.size());
  size_t done = 0;
  for (const std::string& path : options.files) {
    if (!options.captured.empty())
      code = std::max(code, score_captured(options, path, machines.front(), session, originals));
    for (const ScoredMachine& machine : machines) {
      progress.show(done++, path);
      const size_t before = scored.size();
      code = std::max(code, score_file(options, path, machine, session, scored));
      progress.clear();
      if (scored.size() == before) continue;
      if (options.json)
        files.push_back(score_json(scored.back(), options.report));
      else if (!paper && !options.rank)
        std::printf("%s%s", before ? "\n" : "", score_text(scored.back(), options.report).c_str());
      std::fflush(stdout);
    }
  }
  show_all(options, paper, scored, originals, std::move(files));
  if (!options.html.empty() && !scored.empty())
    if (Status status = write_file(options.html, score_html(scored)); !status) {
      show(status.error());
      return exit_diagnostics;
    }
  return code;
}

Action set_up(Options& command, const Session& session) {
  auto options = std::make_shared<ScoreOptions>();
  command.add_option("FILE", options->files, "launch files, or PTX files with --grid, --block and --arg");
  add_launch_input_options(command, options->input);
  add_limit_options(command);
  add_direct_launch_options(command, options->input.direct);
  command.add_option("-k,--kernel", options->input.kernels, "only launches of such kernels").type_name("GLOB");
  command.add_option("--gpu", options->gpus, "the machines: h200 (default), titanv, gtx480, sm_80, FILE.toml ...")
      .type_name("GPU,...")
      .delimiter(',')
      .one_each();
  command
      .add_option("-p,--passes", options->passes,
                  "passes whose result is set beside the original; once for each version")
      .type_name("PASSES")
      .one_each();
  command.add_option("--form", options->form, "of the rewritings: legal (default) or hardware")
      .one_of({"legal", "hardware"})
      .type_name("FORM");
  command.add_flag("--darsie", options->darsie, "one more version: the original on DARSIE's machine");
  command.add_flag("--regless", options->regless,
                   "more versions: the original on RegLess's machine, with a register file by RFV and by RFH");
  std::vector<std::string> comparators;
  for (const ComparatorInfo& info : comparator_infos())
    if (!info.of_darsie) comparators.emplace_back(info.option);
  command
      .add_option("--with", options->comparators,
                  "versions more, by machines that execute the same otherwise: cae, mta, dac-ideal, scalar, sliced, "
                  "scalar+sliced")
      .one_of(comparators)
      .type_name("NAME,...")
      .delimiter(',')
      .one_each();
  command.add_flag("--terms", options->report.terms, "show every term of the model");
  command.add_flag("--sensitivity", options->report.sensitivity,
                   "show the time's sensitivity to each figure of the machine that is a guess");
  command.add_flag("--estimators", options->report.estimators,
                   "show the estimates of instruction counting, roofline and MWP-CWP");
  std::vector<std::string> papers;
  for (const Paper& paper : papers_of_score())
    papers.emplace_back(paper.name);
  command
      .add_option("--paper", options->paper,
                  "set a paper's figures beside ours, on its machine: r2d2, dac, darsie, regless or composite")
      .one_of(papers)
      .type_name("NAME");
  command
      .add_option("--captured", options->captured,
                  "with --paper: DIR/SAMPLE holds captures (exec --capture) of the benchmark that SAMPLE stands for; "
                  "score them beside")
      .type_name("DIR");
  command.add_option("--html", options->html, "write one page with pictures to FILE").type_name("FILE");
  command.add_flag("--time", options->report.cost, "run without the model, too, and show its cost");
  command
      .add_option("--slice", options->slice,
                  "on one of N slices of the machine, with its share of SMs, L2 and bandwidth: for small grids")
      .range(1, 1024)
      .type_name("N");
  command.add_flag("--exact", options->exact, "observe all blocks and instructions, not a sample");
  command.add_flag("--sample", options->sampled, "run only sampled blocks, and print error bounds: for large launches");
  command.add_flag("--cold", options->cold, "L2 is empty before every launch, as profilers make it");
  command.add_flag("--rank", options->rank,
                   "list all files and versions, variants of one kernel, by their times, with the bottleneck and the "
                   "regret of each");
  command.add_flag("--json", options->json, "print JSON");
  return [options, &session] { return run_score(*options, session); };
}

const RegisterCommand registration(
    {.name = "score",
     .about = "estimate time on a GPU, of kernels and of their rewritings",
     .example = "ptxrewrite score samples/backprop/backprop.toml --gpu titanv\n"
                "  ptxrewrite score samples/vecadd/vecadd.toml -p r2d2 --gpu h200,a100 --json\n"
                "Kernels run on the emulator; an interval model turns its counts into clocks. docs/score.md "
                "has its terms.",
     .place = 90,
     .set_up = set_up});

} // namespace

} // namespace ptxrewrite::cli::score_command
