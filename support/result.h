// A value or the reason for its absence. Errors are values: no function throws across a header.
#pragma once

#include "support/diagnostic.h"

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <source_location>
#include <string>
#include <utility>
#include <variant>

namespace ptxrewrite {

// The reason for a failure. `range` refers to the file that is being read, if there is one.
struct Error {
  std::string message;
  SourceRange range;

  Diagnostic to_diagnostic() const { return {Severity::error, range, message, {}}; }
};

// Ends the process, in every build, because the caller at `where` accessed the value of a failure (`error`) or the
// error of a success (null). This is always a defect of the program, never of the input.
[[noreturn, gnu::cold]] inline void result_misused(const Error* error, const std::source_location& where) {
  std::fprintf(stderr, "%s:%u: internal error: %s%s\n", where.file_name(), where.line(),
               error ? "the value of a failed result was taken; it failed with: "
                     : "the error of a result that succeeded was taken",
               error ? error->message.c_str() : "");
  std::abort();
}

template <class T> class [[nodiscard]] Result {
public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  T& value(const std::source_location& where = std::source_location::current()) & {
    require_value(where);
    return *std::get_if<0>(&state_);
  }
  const T& value(const std::source_location& where = std::source_location::current()) const& {
    require_value(where);
    return *std::get_if<0>(&state_);
  }
  T&& value(const std::source_location& where = std::source_location::current()) && {
    require_value(where);
    return std::move(*std::get_if<0>(&state_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  const Error& error(const std::source_location& where = std::source_location::current()) const {
    if (ok()) result_misused(nullptr, where);
    return *std::get_if<1>(&state_);
  }

private:
  void require_value(const std::source_location& where) const {
    if (!ok()) result_misused(std::get_if<1>(&state_), where);
  }

  std::variant<T, Error> state_;
};

// Success without a value, or the reason for a failure.
class [[nodiscard]] Status {
public:
  Status() = default;
  Status(Error error) : error_(std::move(error)) {}
  bool ok() const { return !error_; }
  explicit operator bool() const { return ok(); }
  const Error& error(const std::source_location& where = std::source_location::current()) const {
    if (!error_) result_misused(nullptr, where);
    return *error_;
  }

private:
  std::optional<Error> error_;
};

} // namespace ptxrewrite
