// Compares rewritten kernels with their originals, and the choice between them with the facts of each launch.
#pragma once

#include "tests/fuzz/launchtime/oracle.h"
#include "tests/fuzz/launchtime/program.h"

#include <algorithm>
#include <string>
#include <vector>

namespace ptxrewrite::fuzz::launchtime {

// The result of one launch on the emulator.
struct Emulation {
  std::string failed; // refused, or a fault
  std::string entry;  // that ran
  bool is_original = true;
  std::vector<uint8_t> arena;
  ByteSet loads, stores;
  ByteSet constant_loads; // through ld.global.nc and similar: must be bytes that are never stored
};

enum class Wrong : uint8_t {
  not_read,         // the text is not read back
  fails,            // a fault that the original does not have, including misaligned vectors
  results,          // other bytes in memory
  other_bytes,      // reads or writes bytes that the original does not access
  stored_constants, // reads bytes as constant that the launch stores
  predicate,        // the predicate holds although a necessary fact does not
};
const char* name_of(Wrong wrong);

struct Finding {
  Wrong wrong = Wrong::results;
  size_t launch = 0;
  std::string what;
};

struct Verdict {
  bool has_variant = false;
  std::vector<bool> chosen;         // by launch: whether a variant ran
  std::vector<std::string> reasons; // by launch: why no variant ran
  std::vector<Finding> findings;
};

// One kernel, its launches executed by the oracle and its original on the emulator.
class Subject {
public:
  explicit Subject(const Kernel& kernel);
  // The same with another text as the original, for reductions.
  Subject(const Kernel& kernel, std::string text);

  const std::string& text() const { return text_; }
  // Errors of the original, which are defects of generator, oracle or emulator.
  const std::vector<std::string>& defects() const { return defects_; }
  const Outcome& outcome(size_t launch) const { return outcomes_[launch]; }
  // Whether it runs at all, in the launches in which it can.
  bool runs() const {
    return !originals_.empty() &&
           std::ranges::any_of(originals_, [](const Emulation& one) { return one.failed.empty(); });
  }
  // Whether the results are determined, so that they can be compared.
  bool is_comparable(size_t launch) const;

  // `families`: those that may have rewritten the text.
  Verdict check(const std::string& rewritten, const std::vector<std::string>& families) const;

private:
  void check_launch(const std::string& rewritten, size_t launch, const std::vector<std::string>& families,
                    const Emulation& emulation, Verdict& verdict) const;

  const Kernel& kernel_;
  std::string text_;
  std::vector<Outcome> outcomes_;
  std::vector<Emulation> originals_;
  std::vector<std::string> defects_;
};

// Whether the variant's text shows that sites of this kind were rewritten.
bool shows(Evidence evidence, const std::string& original, const std::string& variant);

} // namespace ptxrewrite::fuzz::launchtime
