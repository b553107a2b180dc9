// optimize, diff, analyze and prove. Reports are passed to Python as JSON text; the GIL is released while engines work.
#include "python/core/calls.h"

#include "evaluate/common/machine_input.h"
#include "evaluate/common/module_input.h"
#include "evaluate/common/optimise.h"
#include "evaluate/common/report.h"
#include "evaluate/diff/compare.h"
#include "evaluate/diff/flow_graph.h"
#include "evaluate/machines/machine_figures.h"
#include "evaluate/prove/proof_report.h"
#include "grammar/reader.h"
#include "ir/analysis/linear/report.h"
#include "ir/core/print.h"
#include "ir/ssa/ssa.h"
#include "support/text/json_text.h"

#include <nlohmann/json.hpp>
#include <pybind11/stl.h>

namespace ptxrewrite::python {

namespace py = pybind11;

transforms::OutputForm form_named(const std::string& word) {
  if (word == "legal") return transforms::OutputForm::legal;
  if (word == "annotated") return transforms::OutputForm::annotated;
  if (word == "hardware") return transforms::OutputForm::hardware;
  raise("there is no form '" + word + "': legal, annotated or hardware");
}

namespace {

using json = nlohmann::ordered_json;

struct RewriteOptions {
  std::string passes; // "-O": the best combination for existing GPUs
  std::string form = "legal";
  std::string gpu;
  std::string kernels = "*";
  std::vector<std::string> assumptions;
  bool run_ptxas = true;
  bool verify_each = false;
};

transforms::Pipeline pipeline_of(const RewriteOptions& options) {
  const std::string text = options.passes == "-O" ? evaluate::optimising_pipeline : options.passes;
  Result<transforms::Pipeline> pipeline = transforms::parse_pipeline(text);
  if (!pipeline) raise(pipeline.error(), SourceFile("passes", text));
  return *std::move(pipeline);
}

transforms::RunOptions run_options(const RewriteOptions& options) {
  transforms::RunOptions run;
  run.form = form_named(options.form);
  run.functions = options.kernels;
  run.assumptions = options.assumptions;
  run.run_ptxas = options.run_ptxas;
  run.verify_each = options.verify_each;
  return run;
}

// Returns "sm_90" or the like for a machine's name; "" is returned unchanged.
std::string architecture_of(const std::string& gpu) {
  if (gpu.empty() || ir::compute_capability_of(gpu) != 0) return gpu;
  const Collected collected;
  const Result<const ir::Machine*> machine = evaluate::machine_named(gpu, collected.console());
  if (!machine) raise(machine.error().message);
  if (!*machine) collected.raise();
  return "sm_" + std::to_string((*machine)->compute_capability);
}

std::unique_ptr<ir::Module> read(const std::string& text, const std::string& name, const std::string& kernels) {
  const Collected collected;
  const SourceFile source(name, text);
  Diagnostics diagnostics;
  std::unique_ptr<ir::Module> module = grammar::read_module(source, diagnostics);
  for (const Diagnostic& diagnostic : diagnostics.list())
    evaluate::show(diagnostic, source, collected.console());
  if (!module || !evaluate::check_selection(*module, kernels, collected.console())) collected.raise();
  return module;
}

// (PTX, side file or "", report, warnings)
py::tuple optimize(const std::string& text, const std::string& name, const RewriteOptions& options) {
  const Collected warnings;
  const auto [result, report] = call_engine([&] {
    const transforms::Pipeline pipeline = pipeline_of(options);
    const evaluate::OptimiseSettings settings{.run = run_options(options),
                                              .gives_back = options.passes == "-O",
                                              .wants_figures = !options.gpu.empty(),
                                              .may_run_ptxas = options.run_ptxas,
                                              .architecture = architecture_of(options.gpu)};
    std::unique_ptr<ir::Module> module = read(text, name, options.kernels);
    const SourceFile source = module->source;
    Result<evaluate::Optimised> optimised = evaluate::optimise(std::move(module), pipeline, settings);
    if (!optimised) raise(optimised.error(), source);
    json document =
        evaluate::report_json(optimised->report, source, {.explain = true, .statistics = true, .times = true});
    if (!options.gpu.empty())
      document["figures"] = optimised->no_figures.empty() ? evaluate::figures_json(optimised->before, optimised->after)
                                                          : json(optimised->no_figures);
    for (const Diagnostic& one : optimised->warnings)
      evaluate::show(one, source, warnings.console());
    return std::pair(*std::move(optimised), json_text(document));
  });
  return py::make_tuple(result.text, result.side_file, report, to_python(warnings.list()));
}

// Runs passes over a module that Python holds; returns the report.
std::string apply(ModuleBox& box, const RewriteOptions& options) {
  const transforms::Pipeline pipeline = pipeline_of(options);
  const transforms::RunOptions run = run_options(options);
  std::shared_ptr<ir::Module> module = box.take();
  std::optional<Result<transforms::PipelineReport>> report;
  {
    const py::gil_scoped_release release;
    report = run_pipeline(*module, pipeline, run);
  }
  const SourceFile source = module->source;
  if (PyErr_Occurred()) throw py::error_already_set();
  if (!*report) {
    raise_error_of_pass();
    raise(report->error(), source); // the module must not be used any more
  }
  box.put_back(std::move(module));
  raise_error_of_pass();
  return json_text(evaluate::report_json(**report, source, {.explain = true, .statistics = true, .times = true}));
}

// (JSON, HTML page, text, summary)
std::tuple<std::string, std::string, std::string, std::string> texts_of(const evaluate::DifferenceReport& report) {
  const Palette plain(false);
  return {json_text(evaluate::difference_json(report)), evaluate::difference_html(report),
          evaluate::unified_text(report, 3, plain), evaluate::summary_text(report, plain)};
}

auto diff_passes(const std::string& text, const std::string& name, const RewriteOptions& options) {
  return call_engine([&] {
    const transforms::Pipeline pipeline = pipeline_of(options);
    const std::unique_ptr<ir::Module> module = read(text, name, options.kernels);
    evaluate::ModuleListing left = evaluate::list_module(*module, "*");
    const Result<transforms::PipelineReport> run = run_pipeline(*module, pipeline, run_options(options));
    if (!run) raise(run.error(), module->source);
    evaluate::DifferenceReport report =
        evaluate::compare_rewritten(std::move(left), evaluate::list_module(*module, "*"), options.kernels);
    report.left_name = name;
    report.right_name = name + " after " + (options.passes.empty() ? "SSA form" : options.passes);
    return texts_of(report);
  });
}

auto diff_texts(const std::string& left, const std::string& left_name, const std::string& right,
                const std::string& right_name) {
  const std::unique_ptr<ir::Module> before = read(left, left_name, "*"), after = read(right, right_name, "*");
  evaluate::DifferenceReport report =
      evaluate::compare_files(evaluate::list_module(*before, "*"), evaluate::list_module(*after, "*"));
  report.left_name = left_name;
  report.right_name = right_name;
  return texts_of(report);
}

// [{"function", "instructions", "obligations"}] for the functions that have an SSA form.
std::string analyze(const std::string& text, const std::string& name, const std::string& kernels) {
  const std::unique_ptr<ir::Module> module = read(text, name, kernels);
  json document = json::array();
  for (const auto& function : module->functions) {
    if (!function->has_body || !transforms::matches_glob(kernels, module->text(function->name))) continue;
    json flow = evaluate::flow_graph_json(*function);
    if (!ir::construct_ssa(*function)) continue;
    json one = json::parse(ir::analyze_report_json(*function), nullptr, false);
    if (one.is_discarded()) continue;
    one["blocks"] = std::move(flow["blocks"]);
    document.push_back(std::move(one));
  }
  return json_text(document);
}

std::string prove(const std::string& text, const std::string& name, const RewriteOptions& options, unsigned effort) {
  const std::vector<prove::KernelProof> proofs = call_engine([&] {
    const transforms::Pipeline pipeline = pipeline_of(options);
    const std::unique_ptr<ir::Module> module = read(text, name, options.kernels);
    Result<std::vector<prove::KernelProof>> proved =
        prove::prove_module(module->source, pipeline, {run_options(options), effort * 1'000'000});
    if (!proved) raise(proved.error(), module->source);
    return *std::move(proved);
  });
  json document = json::array();
  for (const prove::KernelProof& proof : proofs)
    document.push_back(prove::proof_json(name, proof));
  return json_text(document);
}

std::string passes_json() {
  json document = json::array();
  for (const transforms::PassDescription& pass : transforms::all_passes()) {
    json options = json::array();
    for (const transforms::PassOptionDescription& option : pass.options)
      options.push_back({{"name", option.name}, {"doc", option.doc}});
    document.push_back({{"name", pass.name}, {"doc", pass.doc}, {"options", std::move(options)}});
  }
  return json_text(document);
}

} // namespace

void bind_rewrite(py::module_& core) {
  py::class_<RewriteOptions>(core, "RewriteOptions")
      .def(py::init([](std::string passes, std::string form, std::string gpu, std::string kernels,
                       std::vector<std::string> assume, bool run_ptxas, bool verify_each) {
             (void)form_named(form);
             return RewriteOptions{std::move(passes), std::move(form), std::move(gpu), std::move(kernels),
                                   std::move(assume), run_ptxas,       verify_each};
           }),
           py::kw_only(), py::arg("passes"), py::arg("form"), py::arg("gpu"), py::arg("kernels"), py::arg("assume"),
           py::arg("run_ptxas"), py::arg("verify_each"));
  core.def("optimize", &optimize, py::arg("text"), py::arg("name"), py::arg("options"));
  core.def("apply", &apply, py::arg("module"), py::arg("options"));
  core.def("diff_passes", &diff_passes, py::arg("text"), py::arg("name"), py::arg("options"));
  core.def("diff_texts", &diff_texts, py::arg("left"), py::arg("left_name"), py::arg("right"), py::arg("right_name"),
           py::call_guard<py::gil_scoped_release>());
  core.def("analyze", &analyze, py::arg("text"), py::arg("name"), py::arg("kernels"),
           py::call_guard<py::gil_scoped_release>());
  core.def("prove", &prove, py::arg("text"), py::arg("name"), py::arg("options"), py::arg("effort"));
  core.def("passes", &passes_json);
}

} // namespace ptxrewrite::python
