// The extension module ptxrewrite._core: Python bindings of the libraries. The public interface is in
// python/ptxrewrite.
#include "python/core/errors.h"
#include "python/core/handles.h"

#include <pybind11/pybind11.h>

PYBIND11_MODULE(_core, core) {
  using namespace ptxrewrite::python;
  core.attr("version") = PTXREWRITE_VERSION;
  bind_errors(core);
  bind_module(core);
  bind_builder(core);
  bind_passes(core);
  bind_rewrite(core);
  bind_launch(core);
}
