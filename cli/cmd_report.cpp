// `ptxrewrite report`: writes a page with all results for each kernel.
#include "cli/command.h"
#include "cli/device_options.h"
#include "cli/launch_options.h"
#include "cli/pipeline_options.h"
#include "evaluate/common/machine_input.h"
#include "evaluate/common/module_input.h"
#include "evaluate/common/optimise.h"
#include "evaluate/common/progress.h"
#include "evaluate/launches/launch_input.h"
#include "evaluate/report/report_page.h"
#include "support/file_io.h"

#include <deque>
#include <filesystem>
#include <memory>
#include <set>

namespace ptxrewrite::cli::report_command {
namespace {

struct ReportOptions {
  std::vector<std::string> files;
  LaunchInputOptions input;
  std::string gpu = "h200";
  std::vector<std::string> passes;
  bool no_ptxas = false;
  std::vector<std::string> sources;
  std::string output = "report";
};

// Adds the file's data to `all`; returns the exit code.
int collect(const ReportOptions& options, const std::string& path, const ir::Machine& machine, const Session& session,
            std::deque<FileFacts>& all) {
  std::optional<LaunchInput> input = read_launch_input(path, options.input, session);
  if (!input) return exit_diagnostics;
  if (Status status = cuda::check_memory(input->plan, 1); !status) {
    show(status.error(), input->plan.source, session);
    return exit_diagnostics;
  }
  const ReportSettings settings{machine, options.passes, !options.no_ptxas, options.sources};
  cuda::ErrorPlace place = cuda::ErrorPlace::launch_file;
  Result<ReportRun> run = collect_facts(*input, settings, place);
  if (!run) {
    show_session_error(run.error(), place, *input, session);
    return exit_diagnostics;
  }
  if (run->failure) {
    show(run->failure->to_diagnostic(), input->module->source, session);
    return exit_fault;
  }
  run->facts.scored.file = path;
  run->facts.scored.size = input->plan.size;
  all.push_back(std::move(run->facts));
  return exit_ok;
}

// Writes all pages, and an index page.
Status write_pages(const std::string& folder, const std::deque<FileFacts>& all) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return Error{"cannot make the folder '" + folder + "': " + error.message(), {}};
  std::vector<ReportLink> links;
  std::string written; // names of the pages, for standard output
  std::set<std::string> taken{"index.html"};
  for (const FileFacts& file : all)
    for (size_t kernel = 0; kernel < file.kernels.size(); ++kernel) {
      const std::string wanted = report_file_name(file.scored.file, file.kernels[kernel].kernel);
      std::string name = wanted;
      for (unsigned number = 2; !taken.insert(name).second; ++number)
        name = std::filesystem::path(wanted).stem().string() + "-" + std::to_string(number) + ".html";
      const std::string path = (std::filesystem::path(folder) / name).string();
      if (Status status = write_file(path, report_page(file, kernel)); !status) return status;
      written += path + '\n';
      links.push_back({name, &file, kernel});
    }
  const std::string index = (std::filesystem::path(folder) / "index.html").string();
  if (Status status = write_file(index, report_index(links)); !status) return status;
  return write_file("-", written + index + '\n');
}

int run_report(ReportOptions& options, const Session& session) {
  if (std::string wrong = contradiction_of_files(options.files, options.input); !wrong.empty())
    return usage_error("report", wrong);
  if (options.passes.empty()) options.passes = {optimising_pipeline};
  for (const std::string& text : options.passes) {
    PipelineOptions pipeline;
    pipeline.passes = text;
    if (!make_pipeline(pipeline, session)) return exit_usage;
  }
  const MachineChoice choice = find_machine("report", options.gpu, session);
  if (choice.code != exit_ok) return choice.code;
  int code = exit_ok;
  std::deque<FileFacts> all;
  Progress progress(options.files.size());
  for (size_t i = 0; i < options.files.size(); ++i) {
    progress.show(i, options.files[i]);
    code = std::max(code, collect(options, options.files[i], *choice.machine, session, all));
    progress.clear();
  }
  if (all.empty()) return code;
  if (Status status = write_pages(options.output, all); !status) {
    show(status.error());
    return exit_diagnostics;
  }
  return code;
}

Action set_up(Options& command, const Session& session) {
  auto options = std::make_shared<ReportOptions>();
  command.add_option("FILE", options->files, "launch files, or PTX files with --grid, --block and --arg");
  add_launch_input_options(command, options->input);
  add_limit_options(command);
  add_direct_launch_options(command, options->input.direct);
  command.add_option("-k,--kernel", options->input.kernels, "only launches of such kernels").type_name("GLOB");
  command.add_option("--gpu", options->gpu, "the machine: h200 (default), titanv, gtx480, sm_80, FILE.toml ...")
      .type_name("GPU");
  command
      .add_option("-p,--passes", options->passes,
                  "passes whose result is set beside the original, once for each version; remarks and the difference "
                  "are of the first (default: those of -O)")
      .type_name("PASSES")
      .one_each();
  command.add_flag("--no-ptxas", options->no_ptxas,
                   "never run ptxas: registers are estimated, passes choose by the model");
  command
      .add_option("--source", options->sources,
                  "a folder with the CUDA files that the PTX's line information names (nvcc -lineinfo), where they are "
                  "neither there nor beside the PTX")
      .type_name("DIR")
      .one_each();
  command.add_option("-o,--output", options->output, "the folder that gets a page a kernel, and index.html (report)")
      .type_name("DIR");
  return [options, &session] { return run_report(*options, session); };
}

const RegisterCommand
    registration({.name = "report",
                  .about = "write a page for each kernel: its bottleneck, counts by line, registers, energy",
                  .example = "ptxrewrite report samples/backprop/backprop.toml --gpu titanv -o report\n"
                             "  ptxrewrite report samples/b*/*.toml -p r2d2 -p memory,narrow\n"
                             "Pages need no network and nothing beside them; index.html leads to them.",
                  .place = 92,
                  .set_up = set_up});

} // namespace

} // namespace ptxrewrite::cli::report_command
