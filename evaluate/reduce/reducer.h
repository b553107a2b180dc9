// Shrinks a PTX text while something stays true of it: chunks of opportunities are tried from large to small, kind by
// kind, until nothing more can be taken away (delta debugging). Every text that is tried reads, verifies, and reads no
// register that was never written unless the first one does. The same text and test give the same result.
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
  std::string_view kind; // what is being tried
};

struct ReducerOptions {
  std::function<bool(const std::string& text)> is_interesting;
  std::function<void(const ReductionProgress&)> progress; // before each test; may be empty
  uint64_t test_limit = UINT64_MAX;
};

struct Reduction {
  std::string text;
  uint64_t tests = 0;
  bool limit_reached = false;
};

// Errors: `text` does not read (the message is a rendered diagnostic), or is not interesting to begin with.
Result<Reduction> reduce(const std::string& text, const std::string& name, const ReducerOptions& options);

} // namespace ptxrewrite::evaluate
