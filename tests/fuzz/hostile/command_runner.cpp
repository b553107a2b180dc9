#include "tests/fuzz/hostile/command_runner.h"

#include "cli/command.h"
#include "support/log.h"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <sys/mman.h>
#include <unistd.h>

namespace ptxrewrite::fuzz {

namespace {

int carry_out(const std::vector<std::string>& words) {
  cli::Application application("a command");
  cli::Session session;
  if (const cli::Command* command = cli::find_command(words.front())) cli::add_command(application, session, *command);
  if (std::optional<int> code = application.parse(words)) return *code;
  return session.action ? session.action() : static_cast<int>(cli::exit_usage);
}

// The first million bytes: some kernels print endlessly.
std::string contents(int file) {
  std::string bytes(1 << 20, '\0');
  const ssize_t size = pread(file, bytes.data(), bytes.size(), 0);
  bytes.resize(static_cast<size_t>(std::max<ssize_t>(size, 0)));
  return bytes;
}

} // namespace

CommandRunner::CommandRunner(int errors) : captured_errors_(errors) {
  std::fflush(stdout);
  std::fflush(stderr);
  saved_output_ = dup(STDOUT_FILENO);
  saved_errors_ = dup(STDERR_FILENO);
  captured_output_ = memfd_create("output", 0);
  dup2(captured_output_, STDOUT_FILENO);
  dup2(captured_errors_, STDERR_FILENO);
  start_logging("warn"); // shared by all commands of the process
}

CommandRunner::~CommandRunner() {
  std::fflush(stdout);
  std::fflush(stderr);
  dup2(saved_output_, STDOUT_FILENO);
  dup2(saved_errors_, STDERR_FILENO);
  for (const int file : {saved_output_, saved_errors_, captured_output_})
    close(file);
}

CommandOutcome CommandRunner::run(const std::vector<std::string>& words) {
  CommandOutcome outcome;
  for (const int file : {captured_output_, captured_errors_}) {
    if (ftruncate(file, 0) != 0) outcome.exception = "standard output cannot be emptied";
    lseek(file, 0, SEEK_SET);
  }
  try {
    outcome.code = carry_out(words);
  } catch (const std::exception& error) {
    outcome.exception = error.what();
  } catch (...) {
    outcome.exception = "of an unknown type";
  }
  std::fflush(stdout);
  std::fflush(stderr);
  outcome.output = contents(captured_output_);
  outcome.errors = contents(captured_errors_);
  return outcome;
}

} // namespace ptxrewrite::fuzz
