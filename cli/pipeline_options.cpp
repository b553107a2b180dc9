#include "cli/pipeline_options.h"

#include "cli/cmd_passes.h"
#include "evaluate/common/module_input.h"
#include "evaluate/common/optimise.h"
#include "support/text/near_names.h"
#include "transforms/common/attempt.h"
#include "transforms/dac/run_ahead_memory.h"
#include "transforms/darsie/darsie_specialise.h"

#include <algorithm>
#include <charconv>

namespace ptxrewrite::cli {

namespace {
// Sets the option in every pass that has it; returns false if none does.
bool set_everywhere(transforms::Pipeline& pipeline, std::string_view name, const std::string& value) {
  bool found = false;
  for (transforms::PipelineStep& step : pipeline.steps)
    for (const transforms::PassOptionDescription& option : step.pass.options)
      if (option.name == name) {
        step.options.set(std::string(name), value);
        found = true;
      }
  return found;
}

// Parses "6" or "1.5s"; returns nothing for other texts.
std::optional<transforms::Effort> effort_of(const std::string& text) {
  transforms::Effort effort;
  const char* const end = text.data() + text.size();
  if (text.ends_with('s')) {
    effort.assemblies = UINT32_MAX / 2; // limited only by time
    const auto [stop, error] = std::from_chars(text.data(), end - 1, effort.seconds);
    if (error == std::errc() && stop == end - 1 && effort.seconds > 0) return effort;
    return std::nullopt;
  }
  const auto [stop, error] = std::from_chars(text.data(), end, effort.assemblies);
  if (error != std::errc() || stop != end || effort.assemblies > UINT32_MAX / 2) return std::nullopt;
  return effort;
}
} // namespace

void add_pipeline_options(Options& command, PipelineOptions& options) {
  const Option passes =
      command.add_option("-p,--passes", options.passes, "passes in their order, with options: r2d2(limit=8),dce")
          .type_name("PIPELINE")
          .sets(options.passes_given);
  command.add_flag("-O", options.optimise, "the best combination of passes for today's GPUs").excludes(passes);
  command
      .add_option("--form", options.form,
                  "legal: PTX for any driver; annotated: with hints in comments; hardware: for the proposed units")
      .one_of({"legal", "annotated", "hardware"})
      .type_name("FORM");
  command.add_option("-k,--kernel", options.kernels, "only kernels and functions with such a name").type_name("GLOB");
  command.add_option("--assume", options.assumptions, "assume a condition that cannot be proved (repeatable)")
      .type_name("WORD")
      .delimiter(',')
      .one_each();
  command.add_flag("--persistent", options.persistent,
                   "one resident wave of blocks loops over the grid (legal form of r2d2)");
  command
      .add_option("--specialise", options.specialise,
                  "a variant for one launch: block=16x16[,grid=64x64][,param.2=1024] (legal form of darsie)")
      .type_name("LAUNCH");
  command.add_option("--carrier", options.carrier, "marks of annotated forms in a comment or a pragma (darsie)")
      .one_of({"comment", "pragma"})
      .type_name("CARRIER");
  command.add_option("--load-pass", options.libraries, "load passes from a shared library (repeatable)")
      .type_name("LIB.so")
      .one_each();
  command.add_flag("--verify-each", options.verify_each, "check the IR's rules after every pass");
  command.add_flag(
      "--no-ptxas", options.no_ptxas,
      "never run ptxas: passes choose by the static machine model, so that the result is the same everywhere");
}

void add_effort_option(Options& command, PipelineOptions& options) {
  command
      .add_option(
          "--effort", options.effort,
          "runs of ptxas for each kernel, over all GPUs asked for (default 6; 0: passes choose by the model); or "
          "seconds, as 1.5s: once ptxas has taken as long, a kernel gets no further run")
      .type_name("N|SECONDSs");
}

// A word of --assume that no pass reads; passes of pass libraries may read others.
std::string unknown_assumption(const PipelineOptions& options) {
  const std::vector<std::string> known = {std::string(transforms::legal::no_index_overflow),
                                          std::string(transforms::legal::noalias_parameters)};
  if (!options.libraries.empty()) return {};
  for (const std::string& word : options.assumptions)
    if (std::ranges::find(known, word) == known.end())
      return "--assume: no pass reads '" + word + "'" + near_names(word, known);
  return {};
}

std::optional<transforms::Pipeline> make_pipeline(const PipelineOptions& options, const Session& session) {
  if (!load_pass_libraries(options.libraries)) return std::nullopt;
  std::string text = options.optimise ? optimising_pipeline : options.passes;
  if (options.optimise && !options.specialise.empty()) text = "darsie," + text;
  Result<transforms::Pipeline> pipeline = transforms::parse_pipeline(text);
  if (!pipeline) {
    show(pipeline.error(), SourceFile("--passes", text), session);
    return std::nullopt;
  }
  if (std::string unknown = unknown_assumption(options); !unknown.empty()) {
    show(Error{std::move(unknown), {}});
    return std::nullopt;
  }
  if (!options.effort.empty() && !effort_of(options.effort)) {
    show(Error{"--effort: '" + options.effort + "' is neither a number of assemblies nor seconds such as 1.5s", {}});
    return std::nullopt;
  }
  if (options.persistent && !set_everywhere(*pipeline, "persistent", "")) {
    show(Error{"--persistent: no pass of the pipeline has persistent blocks (r2d2 has)", {}});
    return std::nullopt;
  }
  if (!options.specialise.empty() && !set_everywhere(*pipeline, "specialise", options.specialise)) {
    show(Error{"--specialise: no pass of the pipeline makes kernels for one launch (darsie does)", {}});
    return std::nullopt;
  }
  for (const transforms::PipelineStep& step : pipeline->steps) {
    const std::string shape(step.options.text("specialise", ""));
    if (shape.empty()) continue;
    if (std::string wrong = transforms::what_is_wrong_with_launch(shape); !wrong.empty()) {
      show(Error{"--specialise: " + wrong, {}});
      return std::nullopt;
    }
  }
  if (!options.carrier.empty() && !set_everywhere(*pipeline, "carrier", options.carrier)) {
    show(Error{"--carrier: no pass of the pipeline writes marks (darsie does)", {}});
    return std::nullopt;
  }
  return *std::move(pipeline);
}

transforms::RunOptions make_run_options(const PipelineOptions& options) {
  transforms::RunOptions run;
  run.form = options.form == "hardware"    ? transforms::OutputForm::hardware
             : options.form == "annotated" ? transforms::OutputForm::annotated
                                           : transforms::OutputForm::legal;
  run.functions = options.kernels;
  run.assumptions = options.assumptions;
  run.verify_each = options.verify_each;
  run.run_ptxas = !options.no_ptxas;
  if (!options.effort.empty()) run.effort = effort_of(options.effort).value_or(run.effort);
  return run;
}

} // namespace ptxrewrite::cli
