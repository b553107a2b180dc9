// Launches on the emulator: run, score, study and verify. A launch comes from a launch file, or from Python arrays.
#include "python/core/calls.h"

#include "evaluate/common/machine_input.h"
#include "evaluate/common/module_input.h"
#include "evaluate/common/rewrite.h"
#include "evaluate/launches/launch_input.h"
#include "evaluate/run/run_report.h"
#include "evaluate/score/score_html.h"
#include "evaluate/score/score_report.h"
#include "evaluate/study/study_report.h"
#include "evaluate/verify/verify_report.h"
#include "launch/signature.h"
#include "support/text/json_text.h"

#include <nlohmann/json.hpp>
#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <cstring>
#include <mutex>

namespace ptxrewrite::python {

namespace py = pybind11;

namespace {

using json = nlohmann::ordered_json;

// An array that is passed as a buffer.
using BufferArgument = std::tuple<std::string, std::string, py::buffer>; // name, type, contents
// Kind ("buffer", "bytes" or "struct"), index of the buffer, offset into it or 0, type of a scalar, its bytes.
using KernelArgument = std::tuple<std::string, uint32_t, uint64_t, std::string, py::bytes>;
using Dimensions = std::tuple<uint32_t, uint32_t, uint32_t>;

// A module with its launches. Calls are serialized.
struct LaunchBox {
  evaluate::LaunchInput input;
  std::mutex mutex;
};

const ir::Machine& machine_of(const std::string& gpu) {
  const Collected collected;
  const Result<const ir::Machine*> machine = evaluate::machine_named(gpu, collected.console());
  if (!machine) raise(machine.error().message);
  if (!*machine) collected.raise();
  return **machine;
}

[[noreturn]] void raise_session_error(const Error& error, cuda::ErrorPlace place, const evaluate::LaunchInput& input) {
  const Collected collected;
  evaluate::show_session_error(error, place, input, collected.console());
  collected.raise();
}

void check_plan_memory(const LaunchBox& box) {
  if (Status status = cuda::check_memory(box.input.plan, 1); !status) raise(status.error(), box.input.plan.source);
}

std::unique_ptr<LaunchBox> from_file(const std::string& path, const std::string& size, const std::string& target,
                                     const std::string& ptx, const std::string& kernels) {
  const Collected collected;
  evaluate::LaunchInputOptions options;
  options.size = size;
  options.target = target;
  options.ptx = ptx;
  options.kernels = kernels;
  std::optional<evaluate::LaunchInput> input = evaluate::read_launch_input(path, options, collected.console());
  if (!input) collected.raise();
  auto box = std::make_unique<LaunchBox>();
  box->input = *std::move(input);
  return box;
}

// `side_file`: "" if there is none.
std::unique_ptr<LaunchBox> from_text(const std::string& text, const std::string& name, const std::string& side_file) {
  const Collected collected;
  auto box = std::make_unique<LaunchBox>();
  box->input.module = evaluate::read_module_text(SourceFile(name, text), collected.console());
  if (!box->input.module) collected.raise();
  if (side_file.empty()) return box;
  Diagnostics diagnostics;
  const SourceFile source(launch::side_file_path(name), side_file);
  box->input.side_file = launch::read_side_file(source, diagnostics);
  for (const Diagnostic& one : diagnostics.list())
    evaluate::show(one, source, collected.console());
  if (!box->input.side_file) collected.raise();
  return box;
}

std::vector<std::string> files_of(const LaunchBox& box) {
  std::vector<std::string> files;
  const auto add = [&](const std::string& path) {
    if (!path.empty()) files.push_back(path);
  };
  for (const launch::Buffer& buffer : box.input.plan.buffers) {
    add(buffer.contents.file);
    add(buffer.expected);
  }
  for (const launch::ModuleVariable& variable : box.input.plan.variables)
    add(variable.data.contents.file);
  if (box.input.side_file) add(box.input.side_file->source.name());
  return files;
}

ir::ScalarType type_named(const std::string& name) {
  const std::optional<ir::ScalarType> type = ir::parse_type(name);
  if (!type) raise("there is no type '" + name + "'");
  return *type;
}

launch::Buffer buffer_of(const BufferArgument& given) {
  const auto& [name, type, contents] = given;
  const py::buffer_info info = contents.request();
  launch::Buffer buffer;
  buffer.name = name;
  buffer.type = type_named(type);
  const uint64_t bytes = static_cast<uint64_t>(info.size) * static_cast<uint64_t>(info.itemsize);
  buffer.count = bytes / buffer.element_bytes();
  buffer.output = true;
  if (bytes % buffer.element_bytes() != 0) raise("'" + name + "': not a whole number of elements");
  if (bytes > launch::max_buffer_bytes) raise("'" + name + "': too large");
  const auto* begin = static_cast<const std::byte*>(info.ptr);
  buffer.contents.bytes = std::make_shared<const std::vector<std::byte>>(begin, begin + bytes);
  return buffer;
}

launch::Argument argument_of(const KernelArgument& given) {
  const auto& [kind, index, offset, type, bytes] = given;
  launch::Argument argument;
  if (kind == "buffer") {
    argument.kind = launch::Argument::Kind::buffer;
    argument.index = index;
    argument.offset = offset;
    return argument;
  }
  const std::string_view view = bytes;
  const auto* begin = reinterpret_cast<const std::byte*>(view.data());
  argument.bytes.assign(begin, begin + view.size());
  if (!type.empty()) argument.type = type_named(type);
  return argument;
}

launch::Dim3 dimensions_of(const Dimensions& given) {
  const auto& [x, y, z] = given;
  return {x, y, z};
}

void set_launch(LaunchBox& box, const std::string& kernel, const Dimensions& grid, const Dimensions& block,
                uint32_t shared, bool cooperative, const std::vector<BufferArgument>& buffers,
                const std::vector<KernelArgument>& arguments) {
  launch::LaunchPlan plan;
  plan.source = SourceFile(box.input.module->source.name() + " launch", "");
  for (const BufferArgument& buffer : buffers)
    plan.buffers.push_back(buffer_of(buffer));
  launch::Launch launch;
  launch.kernel = kernel;
  launch.grid = dimensions_of(grid);
  launch.block = dimensions_of(block);
  launch.dynamic_shared = shared;
  launch.cooperative = cooperative;
  for (const KernelArgument& argument : arguments) {
    launch.arguments.push_back(argument_of(argument));
    const launch::Argument& made = launch.arguments.back();
    if (made.kind == launch::Argument::Kind::buffer &&
        (made.index >= plan.buffers.size() || made.offset > plan.buffers[made.index].bytes()))
      raise("an argument points outside its buffer");
  }
  const emulator::Dimensions wide_grid{launch.grid.x, launch.grid.y, launch.grid.z};
  if (Status status = emulator::check_dimensions(wide_grid, {launch.block.x, launch.block.y, launch.block.z}); !status)
    raise(status.error().message);
  plan.launches.push_back(std::move(launch));
  const Collected collected;
  Diagnostics diagnostics;
  if (!launch::check_arguments(*box.input.module, plan, diagnostics)) {
    for (const Diagnostic& one : diagnostics.list())
      evaluate::show(one, plan.source, collected.console());
    collected.raise();
  }
  const std::scoped_lock lock(box.mutex);
  box.input.plan = std::move(plan);
}

// The results of `run`, until they are converted to Python objects.
struct RunOutcome {
  std::string report;
  std::vector<CollectedDiagnostic> findings;
  std::vector<std::vector<std::byte>> buffers;
};

RunOutcome run_plan(LaunchBox& box, const cuda::EmulatorOptions& emulator_options, bool counters) {
  const std::scoped_lock lock(box.mutex);
  evaluate::LaunchInput& input = box.input;
  check_plan_memory(box);
  Result<launch::Variants> variants =
      launch::Variants::of(*input.module, input.side_file ? &*input.side_file : nullptr);
  if (!variants) raise(variants.error().message);
  const std::unique_ptr<cuda::Device> device = cuda::make_emulator_device(emulator_options);
  cuda::ErrorPlace place = cuda::ErrorPlace::launch_file;
  cuda::SessionOptions options;
  options.variants = &*variants;
  options.error_place = &place;
  Result<cuda::SessionResult> result = cuda::run_plan(input.plan, *input.module, *device, options);
  if (!result) raise_session_error(result.error(), place, input);
  RunOutcome outcome;
  const Collected found;
  std::string printed;
  for (const cuda::SessionRun& run : result->runs) {
    if (run.failure) raise_fault(run.failure->to_diagnostic(), input.module->source);
    for (const emulator::Finding& finding : run.findings)
      evaluate::show(finding.to_diagnostic(input.module->source), input.module->source, found.console());
    printed += run.printed;
  }
  json document = evaluate::run_json(input.plan.source.name(), input, *result, {.counters = counters, .head = 0});
  document["printed"] = printed;
  outcome.report = json_text(document);
  outcome.findings = found.list();
  outcome.buffers = std::move(result->buffers);
  return outcome;
}

// (report, findings, [(name, type, array of bytes)])
py::tuple run(LaunchBox& box, bool check, bool counters, unsigned host_threads, uint64_t fuel, const std::string& gpu) {
  RunOutcome outcome;
  {
    const py::gil_scoped_release release;
    outcome = run_plan(box,
                       {.check = check,
                        .count_memory = counters,
                        .host_threads = host_threads,
                        .fuel = fuel == 0 ? cuda::emulator_limits().fuel : fuel,
                        .machine = gpu.empty() ? nullptr : &machine_of(gpu)},
                       counters);
  }
  py::list buffers;
  for (size_t i = 0; i < outcome.buffers.size(); ++i) {
    const launch::Buffer& buffer = box.input.plan.buffers[i];
    if (!buffer.output) continue;
    auto* bytes = new std::vector<std::byte>(std::move(outcome.buffers[i]));
    const py::capsule owner(bytes, [](void* memory) { delete static_cast<std::vector<std::byte>*>(memory); });
    // The stride of one byte is stated explicitly: pybind11 3.1 takes the element size of NumPy 2.4 to be 0.
    const py::array_t<uint8_t> array(std::vector<py::ssize_t>{static_cast<py::ssize_t>(bytes->size())},
                                     std::vector<py::ssize_t>{1}, reinterpret_cast<const uint8_t*>(bytes->data()),
                                     owner);
    buffers.append(py::make_tuple(buffer.name, ir::spelling(buffer.type), array));
  }
  return py::make_tuple(outcome.report, to_python(outcome.findings), buffers);
}

// (JSON, HTML page, text)
std::tuple<std::string, std::string, std::string> score(LaunchBox& box, const std::string& name, const std::string& gpu,
                                                        const std::vector<std::string>& passes, const std::string& form,
                                                        bool darsie, bool regless, bool exact, bool run_ptxas) {
  const std::scoped_lock lock(box.mutex);
  const ir::Machine& machine = machine_of(gpu);
  for (const std::string& text : passes)
    if (Result<transforms::Pipeline> pipeline = transforms::parse_pipeline(text); !pipeline)
      raise(pipeline.error(), SourceFile("passes", text));
  if (form != "legal" && form != "hardware") raise("scores are of the legal or the hardware form");
  check_plan_memory(box);
  const evaluate::ScoreSettings settings{
      .machine = machine,
      .passes = passes,
      .darsie = darsie,
      .regless = regless ? evaluate::paper_configurations() : std::vector<evaluate::StagingConfiguration>(),
      .form = form == "hardware" ? transforms::OutputForm::hardware : transforms::OutputForm::legal,
      .run_ptxas = run_ptxas,
      .exact = exact,
      .changes = {}};
  cuda::ErrorPlace place = cuda::ErrorPlace::launch_file;
  Result<evaluate::ScoreRun> scored = evaluate::score(box.input, settings, place);
  if (!scored) raise_session_error(scored.error(), place, box.input);
  if (scored->failure) raise_fault(scored->failure->to_diagnostic(), box.input.module->source);
  scored->scored.file = name;
  scored->scored.size = box.input.plan.size;
  const evaluate::ScoreReportOptions report;
  return {json_text(evaluate::score_json(scored->scored, report)), evaluate::score_html({&scored->scored, 1}),
          evaluate::score_text(scored->scored, report)};
}

std::string study(LaunchBox& box, const std::string& name, const std::string& gpu, const std::vector<std::string>& only,
                  std::optional<uint64_t> sample) {
  const std::scoped_lock lock(box.mutex);
  const ir::Machine& machine = machine_of(gpu);
  std::vector<evaluate::Technique> techniques;
  for (const std::string& row : only) {
    const std::optional<evaluate::Technique> technique = evaluate::find_technique(row);
    if (!technique) raise("there is no row '" + row + "' in a study");
    techniques.push_back(*technique);
  }
  std::ranges::sort(techniques);
  check_plan_memory(box);
  cuda::ErrorPlace place = cuda::ErrorPlace::launch_file;
  Result<evaluate::StudyRun> run = evaluate::study(box.input, {machine, sample, false, techniques}, place);
  if (!run) raise_session_error(run.error(), place, box.input);
  if (run->failure) raise_fault(run->failure->to_diagnostic(), box.input.module->source);
  evaluate::StudyReportOptions options;
  options.only = techniques;
  return json_text(evaluate::study_json({name, box.input.plan.size, run->result}, machine, options));
}

std::string verify(LaunchBox& box, const std::vector<std::pair<std::string, std::string>>& cases, bool given_shapes) {
  const std::scoped_lock lock(box.mutex);
  evaluate::VerifySettings settings;
  settings.host_threads = 1; // in derived shapes, blocks may write the same location
  settings.derived_shapes = !given_shapes;
  settings.run.run_ptxas = false;
  evaluate::Verifier verifier(box.input, settings);
  cuda::ErrorPlace place = cuda::ErrorPlace::launch_file;
  if (Status status = verifier.run_original(place); !status) raise_session_error(status.error(), place, box.input);
  if (verifier.original_failure()) raise_fault(verifier.original_failure()->to_diagnostic(), box.input.module->source);
  std::vector<evaluate::CaseResult> results;
  for (const auto& [passes, form] : cases) {
    if (Result<transforms::Pipeline> pipeline = transforms::parse_pipeline(passes); !pipeline)
      raise(pipeline.error(), SourceFile("passes", passes));
    results.push_back(verifier.verify({passes, form_named(form)}));
  }
  return json_text(json{{"cases", evaluate::cases_json(results)},
                        {"skipped_shapes", evaluate::skipped_json(verifier.skipped())},
                        {"original", evaluate::original_json(verifier)},
                        {"original_findings", verifier.original_findings()}});
}

// The engine as a function to bind, called by call_engine.
template <class Answer, class... Arguments> auto as_call(Answer (*engine)(Arguments...)) {
  return [engine](Arguments... arguments) { return call_engine([&] { return engine(arguments...); }); };
}

} // namespace

void bind_launch(py::module_& core) {
  using release = py::call_guard<py::gil_scoped_release>;
  py::class_<LaunchBox>(core, "LaunchInput")
      .def_static("from_file", &from_file, py::arg("path"), py::arg("size"), py::arg("target"), py::arg("ptx"),
                  py::arg("kernels"), release())
      .def_static("from_text", &from_text, py::arg("text"), py::arg("name"), py::arg("side_file"), release())
      .def_property_readonly("ptx_text",
                             [](const LaunchBox& box) { return std::string(box.input.module->source.text()); })
      .def_property_readonly("files", &files_of, "Files that the plan reads.")
      .def_property_readonly("ptx_name", [](const LaunchBox& box) { return box.input.module->source.name(); })
      .def("set_launch", &set_launch, py::arg("kernel"), py::arg("grid"), py::arg("block"), py::arg("shared"),
           py::arg("cooperative"), py::arg("buffers"), py::arg("arguments"))
      .def("run", &run, py::arg("check"), py::arg("counters"), py::arg("host_threads"), py::arg("fuel"), py::arg("gpu"))
      .def("score", as_call(&score), py::arg("name"), py::arg("gpu"), py::arg("passes"), py::arg("form"),
           py::arg("darsie"), py::arg("regless"), py::arg("exact"), py::arg("run_ptxas"))
      .def("study", &study, py::arg("name"), py::arg("gpu"), py::arg("only"), py::arg("sample"), release())
      .def("verify", as_call(&verify), py::arg("cases"), py::arg("given_shapes"));
  core.def("machines", [] {
    std::vector<std::string> names;
    for (const ir::Machine& machine : ir::all_machines())
      names.emplace_back(machine.name);
    return names;
  });
}

} // namespace ptxrewrite::python
