// The extension module ptxrewrite._core: Python bindings of the libraries. The public interface is in
// python/ptxrewrite.
#include "python/core/errors.h"
#include "python/core/handles.h"
#include "support/cuda_programs.h"
#include "support/ptxas.h"

#include <pybind11/pybind11.h>

PYBIND11_MODULE(_core, core) {
  using namespace ptxrewrite::python;
  core.attr("version") = PTXREWRITE_VERSION;
  // An interpreter that is started by its path (a notebook's) has no VIRTUAL_ENV in its environment.
  ptxrewrite::add_python_environment(pybind11::module_::import("sys").attr("prefix").cast<std::string>());
  core.def(
      "ptxas", [] { return ptxrewrite::describe_ptxas(); }, pybind11::call_guard<pybind11::gil_scoped_release>());
  bind_errors(core);
  bind_module(core);
  bind_builder(core);
  bind_passes(core);
  bind_rewrite(core);
  bind_launch(core);
}
