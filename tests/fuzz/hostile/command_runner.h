// Runs commands of the program in this process: the same code from the words of the command line on, without a process
// per command.
#pragma once

#include <string>
#include <vector>

namespace ptxrewrite::fuzz {

struct CommandOutcome {
  int code = 0;          // cli::ExitCode
  std::string output;    // standard output, up to a limit
  std::string errors;    // standard error, up to a limit
  std::string exception; // that left the command; "" for none
};

// Redirects standard output and standard error of the process during its lifetime.
class CommandRunner {
public:
  // `errors`: an open file for standard error, which is emptied before each command.
  explicit CommandRunner(int errors);
  ~CommandRunner();
  CommandRunner(const CommandRunner&) = delete;
  CommandRunner& operator=(const CommandRunner&) = delete;

  // `words`: the command and its arguments.
  CommandOutcome run(const std::vector<std::string>& words);
  // The original standard output, for the caller's own messages.
  int output() const { return saved_output_; }
  int errors() const { return saved_errors_; }

private:
  int saved_output_ = -1, saved_errors_ = -1;
  int captured_output_ = -1, captured_errors_ = -1; // files in memory that replace them
};

} // namespace ptxrewrite::fuzz
