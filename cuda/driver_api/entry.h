// Common prologue and epilogue of the driver API's entry points.
#pragma once

#include "cuda/context/entry.h"
#include "cuda/context/stream_calls.h"

#include <utility>

#define DRIVER_API extern "C" __attribute__((visibility("default")))
// Another name of the same function: a newer or older version, or the one for per-thread default streams.
#define DRIVER_ALIAS(NAME, TARGET) DRIVER_API int NAME(...) __attribute__((alias(#TARGET)));

namespace ptxrewrite::cuda::driver {

using DevicePointer = uint64_t;

// Converts codes that only the runtime API has to those of the driver.
int finish(Code code);

struct Api {
  static Code prepare(Context& context) { return context.is_initialised() ? Code::success : Code::not_initialised; }
  static int finish(Code code) { return driver::finish(code); }
};
using Entry = EntryPoint<Api>;

template <class Body> int entry(const char* name, Body&& body) {
  return Entry(name).when_idle(std::forward<Body>(body));
}

// Returns nullptr if there is no such function.
void* find_entry_point(std::string_view name);

} // namespace ptxrewrite::cuda::driver
