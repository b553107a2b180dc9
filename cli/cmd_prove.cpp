// `ptxrewrite prove`: proves a rewrite's address and value expressions equal to the original's, for all launches.
#include "cli/command.h"
#include "cli/pipeline_options.h"
#include "evaluate/common/module_input.h"
#include "evaluate/prove/proof_report.h"
#include "support/text/json_text.h"
#include "support/text/table.h"

#include <nlohmann/json.hpp>

#include <memory>

namespace ptxrewrite::cli::prove_command {

namespace {

struct ProveOptions {
  std::vector<std::string> files;
  PipelineOptions pipeline;
  unsigned effort = 20; // millions
  bool json = false;
};

void show_problems(const prove::KernelProof& proof, const SourceFile& source, const Session& session) {
  constexpr size_t most = 5;
  for (size_t i = 0; i < std::min(most, proof.problems.size()); ++i) {
    const prove::Problem& problem = proof.problems[i];
    std::string text = proof.kernel + ": " + prove::word(problem.outcome) + ": " + problem.text;
    if (!problem.detail.empty()) text += " (" + problem.detail + ')';
    show(Error{std::move(text), problem.range}, source, session);
  }
}

int run_prove(const ProveOptions& options, const Session& session) {
  if (options.files.empty()) return usage_error("prove", "FILE is missing (- is standard input)");
  std::optional<transforms::Pipeline> pipeline = make_pipeline(options.pipeline, session);
  if (!pipeline) return exit_usage;
  prove::ProofSettings settings{make_run_options(options.pipeline), options.effort * 1'000'000};
  TextTable table{{{"file"},
                   {"kernel"},
                   {"verdict"},
                   {"identical", true},
                   {"proved", true},
                   {"open", true},
                   {"assumptions", true},
                   {"seconds", true}},
                  {}};
  nlohmann::ordered_json report = nlohmann::ordered_json::array();
  int code = exit_ok;
  size_t unchanged = 0;
  std::map<prove::Outcome, size_t> rewritten; // kernels, by verdict
  for (const std::string& path : options.files) {
    std::unique_ptr<ir::Module> module = read_input(path, session);
    if (!module || !check_selection(*module, options.pipeline.kernels, session)) return exit_diagnostics;
    Result<std::vector<prove::KernelProof>> proofs = prove::prove_module(module->source, *pipeline, settings);
    if (!proofs) {
      show(proofs.error(), module->source, session);
      return exit_diagnostics;
    }
    for (const prove::KernelProof& proof : *proofs) {
      report.push_back(prove::proof_json(path, proof));
      ++(proof.changed ? rewritten[proof.outcome()] : unchanged);
      if (!proof.holds()) {
        code = exit_differs;
        if (!options.json) show_problems(proof, module->source, session);
      }
      if (!proof.changed) continue;
      char seconds[32];
      std::snprintf(seconds, sizeof seconds, "%.2f", proof.seconds);
      table.rows.push_back({path, proof.kernel, prove::word(proof.outcome()), std::to_string(proof.identical),
                            std::to_string(proof.proved), std::to_string(proof.problems.size()),
                            std::to_string(proof.assumptions), seconds});
    }
  }
  if (options.json)
    std::printf("%s\n", json_text(report).c_str());
  else
    std::printf("%s\n%zu kernels proved, %zu not equal, %zu not proved; %zu unchanged\n", table.text().c_str(),
                rewritten[prove::Outcome::proved], rewritten[prove::Outcome::refuted],
                rewritten[prove::Outcome::unknown], unchanged);
  return code;
}

Action set_up(Options& command, const Session& session) {
  auto options = std::make_shared<ProveOptions>();
  command.add_option("FILE", options->files, "PTX files; - is standard input");
  add_pipeline_options(command, options->pipeline);
  command.add_option("--effort", options->effort, "million steps of the solver for one expression (20)")
      .type_name("N")
      .range(1u, 4000u);
  command.add_flag("--json", options->json, "print JSON");
  return [options, &session] { return run_prove(*options, session); };
}

const RegisterCommand registration({.name = "prove",
                                    .about = "prove that a rewrite takes the same addresses and values",
                                    .example = "ptxrewrite prove samples/backprop/backprop.ptx -p r2d2",
                                    .place = 100,
                                    .set_up = set_up});

} // namespace

} // namespace ptxrewrite::cli::prove_command
