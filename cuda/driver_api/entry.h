// Common prologue and epilogue of the driver API's entry points.
#pragma once

#include "cuda/context/context.h"
#include "cuda/context/log.h"
#include "cuda/context/stream_calls.h"

#include <exception>
#include <utility>

#define DRIVER_API extern "C" __attribute__((visibility("default")))
// Another name of the same function: a newer or older version, or the one for per-thread default streams.
#define DRIVER_ALIAS(NAME, TARGET) DRIVER_API int NAME(...) __attribute__((alias(#TARGET)));

namespace ptxrewrite::cuda::driver {

using DevicePointer = uint64_t;

// Converts codes that only the runtime API has to those of the driver.
int finish(Code code);

// Runs `body` (Context&) -> Code with the context locked. If a kernel has faulted in the context, returns that error
// again.
template <class Body> int entry(const char* name, Body&& body) {
  Context& context = Context::get();
  if (is_logged(LogLevel::debug)) log_text(LogLevel::debug, name);
  std::lock_guard lock(context.mutex());
  if (!context.is_initialised()) return finish(Code::not_initialised);
  if (context.fault() != Code::success) return finish(context.fault());
  try {
    return finish(std::forward<Body>(body)(context));
  } catch (const std::exception& error) { // C++ exceptions must not reach a C program
    log_text(LogLevel::error, error.what());
    return finish(Code::out_of_memory);
  }
}

// Returns nullptr if there is no such function.
void* find_entry_point(std::string_view name);

} // namespace ptxrewrite::cuda::driver
