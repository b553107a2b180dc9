#include "tests/fuzz/hostile/command_runner.h"

#include "cli/command.h"
#include "support/log.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <sys/mman.h>
#include <unistd.h>

namespace ptxrewrite::fuzz {

namespace {

using AddCommand = void (*)(CLI::App&, cli::Session&);
struct NamedCommand {
  const char* name;
  AddCommand add;
};
constexpr std::array commands = {NamedCommand{"opt", cli::add_opt_command},
                                 NamedCommand{"diff", cli::add_diff_command},
                                 NamedCommand{"analyze", cli::add_analyze_command},
                                 NamedCommand{"run", cli::add_run_command},
                                 NamedCommand{"verify", cli::add_verify_command},
                                 NamedCommand{"study", cli::add_study_command},
                                 NamedCommand{"score", cli::add_score_command},
                                 NamedCommand{"prove", cli::add_prove_command},
                                 NamedCommand{"mark", cli::add_mark_command},
                                 NamedCommand{"launch-template", cli::add_launch_template_command}};

int carry_out(const std::vector<std::string>& words) {
  CLI::App application;
  application.require_subcommand(0, 1);
  cli::Session session;
  for (const NamedCommand& command : commands)
    if (words.front() == command.name) command.add(application, session);
  try {
    application.parse(std::vector<std::string>(words.rbegin(), words.rend()));
  } catch (const CLI::ParseError& error) {
    return application.exit(error) == 0 ? cli::exit_ok : cli::exit_usage;
  }
  return session.action ? session.action() : static_cast<int>(cli::exit_usage);
}

// Its first million bytes: some kernels print without end.
std::string contents(int file) {
  std::string bytes(1 << 20, '\0');
  const ssize_t size = pread(file, bytes.data(), bytes.size(), 0);
  bytes.resize(static_cast<size_t>(std::max<ssize_t>(size, 0)));
  return bytes;
}

} // namespace

CommandRunner::CommandRunner() {
  std::fflush(stdout);
  std::fflush(stderr);
  saved_output_ = dup(STDOUT_FILENO);
  saved_errors_ = dup(STDERR_FILENO);
  captured_output_ = memfd_create("output", 0);
  captured_errors_ = memfd_create("errors", 0);
  dup2(captured_output_, STDOUT_FILENO);
  dup2(captured_errors_, STDERR_FILENO);
  start_logging("warn"); // shared by all commands of the process
}

CommandRunner::~CommandRunner() {
  std::fflush(stdout);
  std::fflush(stderr);
  dup2(saved_output_, STDOUT_FILENO);
  dup2(saved_errors_, STDERR_FILENO);
  for (const int file : {saved_output_, saved_errors_, captured_output_, captured_errors_})
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
