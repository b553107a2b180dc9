// Passes written in Python, registered like those of the libraries.
//
// The registry takes plain function pointers without user data: so there is a fixed number of functions, one for each
// entry in a table of callables.
#include "python/core/errors.h"
#include "python/core/handles.h"

#include "evaluate/common/rewrite.h"
#include "ir/verify/verify.h"
#include "transforms/manager/pass.h"

#include <pybind11/stl.h>

#include <array>
#include <deque>
#include <utility>

namespace ptxrewrite::python {

namespace py = pybind11;

namespace {

constexpr size_t most_passes = 64;

struct PythonPass {
  std::string name, doc;
  std::vector<std::string> options;
  PyObject* run = nullptr; // kept for the lifetime of the process
};

// A deque, because descriptions hold pointers to the elements.
std::deque<PythonPass>& passes() {
  static std::deque<PythonPass> all;
  return all;
}

// The exception that a pass raised on this thread.
thread_local PyObject* raised = nullptr;

// The context as the pass sees it, valid while the pass runs.
class ContextHandle {
public:
  ContextHandle(transforms::PassContext& context, std::shared_ptr<Lease> lease)
      : context_(&context), lease_(std::move(lease)) {}

  std::string form() const { return evaluate::form_word(get().form); }
  std::map<std::string, std::string> options() const {
    const auto& all = get().options.all();
    return {all.begin(), all.end()};
  }
  void remark(const std::string& text, const InstructionHandle* instruction) const {
    get().remarks.emplace_back(text, instruction ? instruction->get().range : SourceRange());
  }
  void count(const std::string& name, int64_t number) const { get().statistics[name] += number; }
  bool assumes(const std::string& word) const { return get().assumes(word); }

private:
  transforms::PassContext& get() const {
    if (!lease_->alive) raise("the pass has ended");
    return *context_;
  }
  transforms::PassContext* context_;
  std::shared_ptr<Lease> lease_;
};

void check_rules(const ir::Function& function, const PythonPass& pass) {
  const std::vector<ir::VerifierFinding> findings = ir::verify(function);
  if (!findings.empty())
    raise("pass '" + pass.name + "' leaves a function that breaks a rule: " + findings[0].rule + ": " +
          findings[0].message);
}

// An exception is kept until the pipeline ends; subsequent Python passes do nothing.
transforms::Change run_pass(size_t place, ir::Function& function, transforms::PassContext& context) {
  const py::gil_scoped_acquire acquire;
  if (raised) return transforms::Change::unchanged;
  const PythonPass& pass = passes()[place];
  const auto lease = std::make_shared<Lease>();
  const uint64_t before = function.version();
  try {
    py::handle(pass.run)(FunctionHandle{lease, &function}, ContextHandle(context, lease));
    lease->alive = false;
    if (function.version() != before) check_rules(function, pass);
  } catch (py::error_already_set& error) {
    lease->alive = false;
    raised = error.value().inc_ref().ptr();
  } catch (const Failure& failure) {
    lease->alive = false;
    raised = py::module_::import("ptxrewrite.diagnostics").attr("PtxError")(failure.what()).release().ptr();
  }
  return function.version() == before ? transforms::Change::unchanged : transforms::Change::changed;
}

using Run = transforms::Change (*)(ir::Function&, transforms::PassContext&);

template <size_t... places> constexpr std::array<Run, sizeof...(places)> trampolines(std::index_sequence<places...>) {
  return {
      [](ir::Function& function, transforms::PassContext& context) { return run_pass(places, function, context); }...};
}

void register_pass(const std::string& name, const std::string& doc, const py::function& run,
                   const std::vector<std::string>& options) {
  static constexpr auto runs = trampolines(std::make_index_sequence<most_passes>());
  for (PythonPass& known : passes())
    if (known.name == name) { // a notebook cell that was run again
      if (known.options != options) raise("pass '" + name + "' has other options already");
      known.run = run.inc_ref().ptr();
      return;
    }
  if (transforms::find_pass(name)) raise("there is a pass '" + name + "' already");
  if (passes().size() == most_passes) raise("there are " + std::to_string(most_passes) + " passes already");
  PythonPass& pass = passes().emplace_back(PythonPass{name, doc, options, run.inc_ref().ptr()});
  transforms::PassDescription description{pass.name, pass.doc, runs[passes().size() - 1]};
  for (const std::string& option : pass.options)
    description.options.push_back({option, "", transforms::PassOptionKind::text});
  const transforms::RegisterPass registration(description);
}

} // namespace

void raise_error_of_pass() {
  if (PyObject* error = std::exchange(raised, nullptr)) {
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error)), error);
    Py_DECREF(error);
    throw py::error_already_set();
  }
}

void bind_passes(py::module_& core) {
  py::class_<ContextHandle>(core, "PassContext", "Options, remarks and statistics of a running pass.")
      .def_property_readonly("form", &ContextHandle::form, "legal, annotated or hardware.")
      .def_property_readonly("options", &ContextHandle::options, "Options of the pass in the pipeline, as text.")
      .def("remark", &ContextHandle::remark, py::arg("text"), py::arg("instruction") = nullptr,
           "Adds a remark, which Result.remarks returns.")
      .def("count", &ContextHandle::count, py::arg("name"), py::arg("number") = 1, "Adds to a statistic.")
      .def("assumes", &ContextHandle::assumes, py::arg("word"), "True if --assume has this word.");
  core.def("register_pass", &register_pass, py::arg("name"), py::arg("doc"), py::arg("run"), py::arg("options"));
}

} // namespace ptxrewrite::python
