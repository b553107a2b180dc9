// Shrinks a PTX text while a property of it holds: tries to remove chunks of opportunities, from large to small, kind
// by kind, until nothing more can be removed (delta debugging). Every text that is tested can be parsed and verified,
// and reads no register that was never written unless the original does. Deterministic: the same text and test give the
// same result.
#pragma once

#include "support/result.h"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace ptxrewrite::evaluate {

struct ReductionProgress {
  uint64_t tests = 0;
  size_t bytes_before = 0, bytes_now = 0;
  std::string_view kind; // the kind being tried
};

struct ReducerOptions {
  std::function<bool(const std::string& text)> is_interesting;
  std::function<void(const ReductionProgress&)> progress; // called before each test; may be empty
  uint64_t test_limit = UINT64_MAX;
};

struct Reduction {
  std::string text;
  uint64_t tests = 0;
  bool limit_reached = false;
};

// Fails if `text` cannot be parsed (the message is a rendered diagnostic), or if the property does not hold for it.
Result<Reduction> reduce(const std::string& text, const std::string& name, const ReducerOptions& options);

} // namespace ptxrewrite::evaluate
