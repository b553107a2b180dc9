// A value or the reason why there is none. Errors are values: no function of ours throws across a header.
#pragma once

#include "support/diagnostic.h"

#include <cassert>
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace ptxrewrite {

// Why something failed. `range` points into the file being read, when there is one.
struct Error {
  std::string message;
  SourceRange range;

  Diagnostic to_diagnostic() const { return {Severity::error, range, message, {}}; }
};

template <class T> class [[nodiscard]] Result {
public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  T& value() & {
    assert(ok());
    return *std::get_if<0>(&state_);
  }
  const T& value() const& {
    assert(ok());
    return *std::get_if<0>(&state_);
  }
  T&& value() && {
    assert(ok());
    return std::move(*std::get_if<0>(&state_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  const Error& error() const {
    assert(!ok());
    return *std::get_if<1>(&state_);
  }

private:
  std::variant<T, Error> state_;
};

// Success without a value, or the reason of failure.
class [[nodiscard]] Status {
public:
  Status() = default;
  Status(Error error) : error_(std::move(error)) {}
  bool ok() const { return !error_; }
  explicit operator bool() const { return ok(); }
  const Error& error() const {
    assert(error_);
    return *error_;
  }

private:
  std::optional<Error> error_;
};

} // namespace ptxrewrite
