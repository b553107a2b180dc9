// Runs another program, capturing its output and limiting its resources. Everything that happens to the child,
// including a crash, is reported in the result.
#pragma once

#include "support/result.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ptxrewrite {

struct ProcessOptions {
  std::vector<std::string> arguments; // [0] is the program: a path, or a name looked up in $PATH
  std::string_view input;             // standard input of the child
  std::string working_directory;      // empty: that of this process
  double timeout_seconds = 0;         // wall clock; 0: none
  uint64_t address_space_bytes = 0;   // RLIMIT_AS; 0: none
  uint64_t cpu_seconds = 0;           // RLIMIT_CPU; 0: none
  size_t output_limit = 64 << 20;     // bytes kept per output stream; further output is read and discarded
};

struct ProcessResult {
  int exit_code = 0; // meaningful when `signal` is 0
  int signal = 0;    // the signal that ended the child
  bool timed_out = false;
  bool output_truncated = false;
  std::string out;
  std::string err;
  double wall_seconds = 0;
  double user_seconds = 0;
  double system_seconds = 0;
  // Peak resident memory in KiB; 0 if unknown. The kernel initialises a child's peak with its parent's size, so the
  // peak of a child smaller than this process cannot be measured.
  uint64_t peak_memory_kib = 0;

  bool succeeded() const { return signal == 0 && !timed_out && exit_code == 0; }
};

// Runs a program to its end. It gets its own process group, which is killed as a whole on a time-out and after the
// child has ended, so that no process survives. Returns an error if the program is missing or cannot be started.
Result<ProcessResult> run_process(const ProcessOptions& options);

// Absolute path of an executable called `name` (searched in $PATH unless it contains a slash); empty if there is none.
std::string find_program(const std::string& name);

} // namespace ptxrewrite
