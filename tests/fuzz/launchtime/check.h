// Holds rewritten kernels against their originals, and the choice between them against what is true of each launch.
#pragma once

#include "tests/fuzz/launchtime/oracle.h"
#include "tests/fuzz/launchtime/program.h"

#include <algorithm>
#include <string>
#include <vector>

namespace ptxrewrite::fuzz::launchtime {

// What the emulator makes of one launch.
struct Emulation {
  std::string failed; // refused, or a fault
  bool is_original = true;
  std::vector<uint8_t> arena;
  ByteSet loads, stores;
  ByteSet constant_loads; // through ld.global.nc and the like: must be bytes that nothing stores
};

enum class Wrong : uint8_t {
  not_read,         // the text does not read back
  fails,            // a fault where the original has none: a misaligned vector among them
  results,          // other bytes in memory
  other_bytes,      // reads or writes bytes that the original does not
  stored_constants, // reads as constant what the launch stores
  predicate,        // holds although a fact that the rewrite needs does not
};
const char* name_of(Wrong wrong);

struct Finding {
  Wrong wrong = Wrong::results;
  size_t launch = 0;
  std::string what;
};

struct Verdict {
  bool has_variant = false;
  std::vector<bool> chosen;         // by launch: a variant ran
  std::vector<std::string> reasons; // by launch: why none did
  std::vector<Finding> findings;
};

// One kernel, its launches carried out by the oracle and its original on the emulator.
class Subject {
public:
  explicit Subject(const Kernel& kernel);
  // The same with another text as the original, for reducing.
  Subject(const Kernel& kernel, std::string text);

  const std::string& text() const { return text_; }
  // What the original does wrong: then a defect of generator, oracle or emulator is found.
  const std::vector<std::string>& defects() const { return defects_; }
  const Outcome& outcome(size_t launch) const { return outcomes_[launch]; }
  // Does it run at all, in the launches in which it can?
  bool runs() const {
    return !originals_.empty() &&
           std::ranges::any_of(originals_, [](const Emulation& one) { return one.failed.empty(); });
  }
  // Are results determined, so that they can be compared?
  bool is_comparable(size_t launch) const;

  // `families`: those whose rewrites the text may hold.
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

// Does the variant's text show that sites of this kind were rewritten?
bool shows(Evidence evidence, const std::string& original, const std::string& variant);

} // namespace ptxrewrite::fuzz::launchtime
