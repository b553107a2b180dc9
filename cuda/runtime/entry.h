// What every entry point of the runtime API begins and ends with.
#pragma once

#include "cuda/context/context.h"
#include "cuda/context/log.h"
#include "cuda/context/stream_calls.h"

#include <exception>
#include <utility>

// An entry point: seen from outside, with the version that the program was linked against.
#define RUNTIME_API extern "C" __attribute__((visibility("default")))
// NAME_ptsz and NAME_ptds are what programs call whose default stream is each thread's own.
#define RUNTIME_ALIAS(NAME, TARGET) RUNTIME_API int NAME(...) __attribute__((alias(#TARGET)));

namespace ptxrewrite::cuda::runtime {

// Of the calling thread: what cudaGetLastError returns.
inline thread_local Code last_error = Code::success;

int finish(Code code);

// Runs `body` (Context&) -> Code with the context locked. A context whose kernel has faulted gives that error again.
template <class Body> int entry(const char* name, Body&& body) {
  Context& context = Context::get();
  if (is_logged(LogLevel::debug)) log_text(LogLevel::debug, name);
  std::lock_guard lock(context.mutex());
  context.initialise();
  if (Context::current().empty()) Context::current().push_back(&context); // the primary one
  if (context.fault() != Code::success) return finish(context.fault());
  try {
    return finish(std::forward<Body>(body)(context));
  } catch (const std::exception& error) { // no exception of ours crosses into a C program
    log_text(LogLevel::error, error.what());
    return finish(Code::out_of_memory);
  }
}

// The kernel that a host function stands for, or a kernel handle; null: none, `code` says why.
Kernel* kernel_of(const void* function, Code& code);
// A variable by the host's stand-in for it.
Code symbol_of(const void* symbol, Symbol& found);
// The bytes of a .param space from pointers to the arguments.
std::vector<std::byte> pack_arguments(const Kernel& kernel, void** arguments);

} // namespace ptxrewrite::cuda::runtime
