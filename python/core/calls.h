// Calls of engines from Python: names in requests, and exceptions of passes that are written in Python.
#pragma once

#include "python/core/errors.h"
#include "python/core/handles.h"

#include "transforms/manager/pass.h"

#include <exception>
#include <optional>
#include <string>
#include <utility>

namespace ptxrewrite::python {

// Accepts legal, annotated and hardware; raises otherwise.
transforms::OutputForm form_named(const std::string& word);

// Calls `engine` without the GIL and returns its result. An exception that a Python pass raised during the call takes
// precedence over the engine's result and over its error, because passes behind the failed one have not run.
template <class Engine> auto call_engine(Engine&& engine) {
  std::optional<decltype(engine())> result;
  std::exception_ptr failure;
  {
    const pybind11::gil_scoped_release release;
    try {
      result.emplace(engine());
    } catch (const Failure&) {
      failure = std::current_exception();
    }
  }
  raise_error_of_pass();
  if (failure) std::rethrow_exception(failure);
  return *std::move(result);
}

} // namespace ptxrewrite::python
