// Running another program with its output captured and its resources bounded. Whatever happens to the child, a crash
// included, is a value in the result.
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
  std::string working_directory;      // empty: ours
  double timeout_seconds = 0;         // wall clock; 0: none
  uint64_t address_space_bytes = 0;   // RLIMIT_AS; 0: none
  uint64_t cpu_seconds = 0;           // RLIMIT_CPU; 0: none
  size_t output_limit = 64 << 20;     // bytes kept of each output stream; the rest is read and dropped
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
  // Peak resident memory in KiB; 0 when unknown. The kernel starts a child's peak at its parent's size, so a child
  // smaller than we are cannot be measured.
  uint64_t peak_memory_kib = 0;

  bool succeeded() const { return signal == 0 && !timed_out && exit_code == 0; }
};

// Runs a program to its end. It gets a process group of its own, which is killed as a whole when time is up and swept
// when the child has ended, so nothing survives the call. Errors: the program is missing or cannot be started.
Result<ProcessResult> run_process(const ProcessOptions& options);

// Absolute path of an executable named `name` (looked up in $PATH unless it contains a slash); empty if there is none.
std::string find_program(const std::string& name);

} // namespace ptxrewrite
