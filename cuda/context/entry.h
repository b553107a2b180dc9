// Prologue and epilogue of the entry points of both APIs. `Api` has
//   static Code prepare(Context&)   with the context locked, before all else
//   static int finish(Code)         the number that the program gets
#pragma once

#include "cuda/context/context.h"
#include "cuda/context/log.h"

#include <exception>
#include <string_view>
#include <utility>

namespace ptxrewrite::cuda {

template <class Api> class EntryPoint {
public:
  explicit EntryPoint(const char* name) : name_(name) {}

  // Runs `body` (Context&) -> Code when all operations of streams are done.
  template <class Body> int when_idle(Body&& body) const { return run(true, std::forward<Body>(body)); }
  // Beside operations of streams, which `body` must not disturb: it reads, or submits operations.
  template <class Body> int at_once(Body&& body) const { return run(false, std::forward<Body>(body)); }
  // At once if `may_be` (Context&) says so; it is called with the context locked.
  template <class Condition, class Body> int at_once_if(Condition&& may_be, Body&& body) const {
    Context& context = Context::get();
    Context::Lock lock = context.lock(); // recursive: one lock for the question and the call
    if (may_be(context)) return run(false, std::forward<Body>(body));
    lock.unlock();
    return run(true, std::forward<Body>(body));
  }
  // Waits for the operation that `find` (Context&, uint64_t& operation) -> Code sets.
  template <class Find> int wait_for(Find&& find) const {
    uint64_t operation = 0;
    if (const int code = at_once([&](Context& context) { return find(context, operation); })) return code;
    Context& context = Context::get();
    context.operations().wait(operation);
    context.flush_printed();
    return Api::finish(context.see_errors());
  }

private:
  // If a kernel has faulted in the context, returns that error again.
  template <class Body> int run(bool waits, Body&& body) const {
    Context& context = Context::get();
    if (is_logged(LogLevel::debug)) log_text(LogLevel::debug, name_);
    if (OperationQueue::is_inside()) return Api::finish(Code::not_permitted); // a host function of a stream
    const Context::Lock lock = waits ? context.lock_idle() : context.lock();
    if (context.has_ended_for_others()) return Api::finish(Code::deinitialised);
    if (const Code code = Api::prepare(context); code != Code::success) return Api::finish(code);
    if (const Code error = waits ? context.see_errors() : context.seen_fault(); error != Code::success)
      return Api::finish(error);
    try {
      return Api::finish(std::forward<Body>(body)(context));
    } catch (const std::exception& error) { // C++ exceptions must not reach a C program
      log_text(LogLevel::error, error.what());
      return Api::finish(Code::out_of_memory);
    }
  }

  const char* name_;
};

} // namespace ptxrewrite::cuda
