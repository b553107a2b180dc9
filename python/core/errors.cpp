#include "python/core/errors.h"

#include "evaluate/common/module_input.h"

#include <pybind11/pybind11.h>

namespace ptxrewrite::python {

namespace py = pybind11;

namespace {

// Owned by the interpreter until it exits.
PyObject* error_type = nullptr;
PyObject* fault_type = nullptr;

const char* word(Severity severity) {
  switch (severity) {
  case Severity::note:
    return "note";
  case Severity::warning:
    return "warning";
  case Severity::error:
    break;
  }
  return "error";
}

std::string line_of(const CollectedDiagnostic& one) {
  std::string text = one.file;
  if (one.place) text += ':' + std::to_string(one.place->line) + ':' + std::to_string(one.place->column);
  if (!text.empty()) text += ": ";
  text += std::string(word(one.diagnostic.severity)) + ": " + one.diagnostic.message;
  for (const std::string& note : one.diagnostic.notes)
    text += "\n  note: " + note;
  return text;
}

void translate(std::exception_ptr thrown) {
  try {
    if (thrown) std::rethrow_exception(thrown);
  } catch (const Failure& failure) {
    const auto type = py::reinterpret_borrow<py::object>(failure.trouble() == Trouble::fault ? fault_type : error_type);
    py::object exception = type(failure.what());
    exception.attr("diagnostics") = to_python(failure.diagnostics());
    PyErr_SetObject(type.ptr(), exception.ptr());
  }
}

} // namespace

Failure::Failure(Trouble trouble, std::vector<CollectedDiagnostic> diagnostics)
    : trouble_(trouble), diagnostics_(std::move(diagnostics)) {
  for (const CollectedDiagnostic& one : diagnostics_)
    text_ += (text_.empty() ? "" : "\n") + line_of(one);
}

void raise(const Error& error, const SourceFile& source) {
  const Collected collected;
  evaluate::show(error, source, collected.console());
  collected.raise();
}

void raise(const std::string& message) {
  throw Failure(Trouble::input, {{"", Error{message, {}}.to_diagnostic(), std::nullopt}});
}

void raise_fault(const Diagnostic& diagnostic, const SourceFile& source) {
  const Collected collected;
  evaluate::show(diagnostic, source, collected.console());
  collected.raise(Trouble::fault);
}

py::object to_python(const std::vector<CollectedDiagnostic>& diagnostics) {
  const py::object type = py::module_::import("ptxrewrite.diagnostics").attr("Diagnostic");
  py::list list;
  for (const CollectedDiagnostic& one : diagnostics) {
    const py::object line = one.place ? py::object(py::int_(one.place->line)) : py::none();
    const py::object column = one.place ? py::object(py::int_(one.place->column)) : py::none();
    py::list notes;
    for (const std::string& note : one.diagnostic.notes)
      notes.append(note);
    list.append(type(word(one.diagnostic.severity), one.file, line, column, one.diagnostic.message, py::tuple(notes)));
  }
  return py::tuple(list);
}

void bind_errors(py::module_& core) {
  const py::module_ types = py::module_::import("ptxrewrite.diagnostics");
  error_type = py::object(types.attr("PtxError")).release().ptr();
  fault_type = py::object(types.attr("KernelFault")).release().ptr();
  core.attr("PtxError") = py::reinterpret_borrow<py::object>(error_type);
  core.attr("KernelFault") = py::reinterpret_borrow<py::object>(fault_type);
  py::register_exception_translator(&translate);
}

} // namespace ptxrewrite::python
