// `ptxrewrite analyze`: shows the analyses of each kernel: classes and linear forms of its values, its control flow.
#include "cli/command.h"
#include "evaluate/common/module_input.h"
#include "evaluate/diff/flow_graph.h"
#include "ir/analysis/linear/report.h"
#include "ir/ssa/ssa.h"
#include "support/file_io.h"
#include "support/text/json_text.h"
#include "transforms/manager/pipeline.h"

#include <nlohmann/json.hpp>

#include <memory>

namespace ptxrewrite::cli::analyze_command {

namespace {

struct AnalyzeOptions {
  std::vector<std::string> files;
  std::string kernels = "*";
  bool json = false;
  bool control_flow = false;
};

// Prints one function to `out`, or to `document` for JSON.
void analyze(const AnalyzeOptions& options, ir::Function& function, const Session& session, std::string& out,
             nlohmann::ordered_json& document) {
  if (Status status = ir::construct_ssa(function); !status) {
    show(Diagnostic{Severity::warning,
                    status.error().range,
                    "not analysed: " + status.error().message,
                    {"in " + std::string(function.module().text(function.name))}},
         function.module().source, session);
    return;
  }
  if (options.json) {
    // Parsed without exceptions: a report that is not valid JSON is kept as text.
    std::string report = ir::analyze_report_json(function);
    nlohmann::ordered_json parsed = nlohmann::ordered_json::parse(report, nullptr, false);
    document.push_back(parsed.is_discarded() ? nlohmann::ordered_json(report) : std::move(parsed));
    return;
  }
  if (!out.empty()) out += '\n';
  out += ir::analyze_report(function);
  if (!out.empty() && out.back() != '\n') out += '\n';
}

// Explains the components of a linear form, below listings that show some.
constexpr const char* legend =
    "{constant, tid.x, tid.y, tid.z, ctaid.x, ctaid.y, ctaid.z}: the increment of the value by each; P0: the "
    "kernel's first parameter\n";

int run_analyze(const AnalyzeOptions& options, const Session& session) {
  if (options.files.empty()) return usage_error("analyze", "FILE is missing (- is standard input)");
  int code = exit_ok;
  std::string out;
  nlohmann::ordered_json document = nlohmann::ordered_json::array();
  std::vector<std::unique_ptr<ir::Module>> modules;
  std::vector<const ir::Function*> graphs;
  for (const std::string& path : options.files) {
    std::unique_ptr<ir::Module> module = read_input(path, session);
    if (!module || !check_selection(*module, options.kernels, session)) {
      code = exit_diagnostics;
      continue;
    }
    for (const auto& function : module->functions)
      if (function->has_body && transforms::matches_glob(options.kernels, module->text(function->name))) {
        if (!options.control_flow)
          analyze(options, *function, session, out, document);
        else if (options.json)
          document.push_back(flow_graph_json(*function));
        else
          graphs.push_back(function.get());
      }
    modules.push_back(std::move(module));
  }
  if (options.control_flow && !options.json) out = flow_graph_dot(graphs);
  if (!options.control_flow && out.find('{') != std::string::npos) out += std::string("\n") + legend;
  if (options.json) out = json_text(document) + '\n';
  if (Status status = write_file("-", out); !status) {
    show(status.error());
    return exit_diagnostics;
  }
  return code;
}

Action set_up(Options& command, const Session& session) {
  auto options = std::make_shared<AnalyzeOptions>();
  command.add_option("FILE", options->files, "PTX files; - is standard input");
  command.add_option("-k,--kernel", options->kernels, "only kernels and functions with such a name").type_name("GLOB");
  command.add_flag("--json", options->json, "print JSON");
  command.add_flag("--cfg", options->control_flow, "print the control-flow graphs as one graph in DOT");
  return [options, &session] { return run_analyze(*options, session); };
}

const RegisterCommand registration({.name = "analyze",
                                    .about = "show classes and linear forms of a kernel's values",
                                    .example = "ptxrewrite analyze kernel.ptx --kernel 'bp_*'\n"
                                               "  ptxrewrite analyze kernel.ptx --cfg | dot -Tsvg -o flow.svg",
                                    .place = 30,
                                    .set_up = set_up});

} // namespace

} // namespace ptxrewrite::cli::analyze_command
