// Common prologue and epilogue of the runtime API's entry points.
#pragma once

#include "cuda/context/entry.h"
#include "cuda/context/stream_calls.h"

#include <utility>

// An exported entry point, with the symbol version that programs link against.
#define RUNTIME_API extern "C" __attribute__((visibility("default")))
// NAME_ptsz and NAME_ptds are the names for programs with per-thread default streams.
#define RUNTIME_ALIAS(NAME, TARGET) RUNTIME_API int NAME(...) __attribute__((alias(#TARGET)));

namespace ptxrewrite::cuda::runtime {

// Per thread: the result of cudaGetLastError.
inline thread_local Code last_error = Code::success;

int finish(Code code);

struct Api {
  static Code prepare(Context& context) {
    context.initialise();
    if (Context::current().empty()) Context::current().push_back(&context); // the primary context
    return Code::success;
  }
  static int finish(Code code) { return runtime::finish(code); }
};
using Entry = EntryPoint<Api>;

template <class Body> int entry(const char* name, Body&& body) {
  return Entry(name).when_idle(std::forward<Body>(body));
}

// Returns the kernel for a host function or a kernel handle; nullptr, and the error in `code`, if there is none.
Kernel* kernel_of(const void* function, Code& code);
// The inverse of kernel_of. nullptr: the kernel was found by the driver API and has no host function.
void* host_function_of(const Kernel& kernel);
// Whether kernel_of has found it before.
bool is_known_kernel(const void* function);
// Finds a variable by the address of its host shadow.
Code symbol_of(const void* symbol, Symbol& found);
#if PTXREWRITE_CUDART_MAJOR < 12
// Does the texture reference of this host variable return integers as numbers in 0 .. 1 or -1 .. 1?
bool reads_normalised_floats(const void* reference);
#endif
// Packs the bytes of a .param space from pointers to the arguments.
std::vector<std::byte> pack_arguments(const Kernel& kernel, void** arguments);

} // namespace ptxrewrite::cuda::runtime
