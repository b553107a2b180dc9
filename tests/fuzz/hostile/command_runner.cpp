#include "tests/fuzz/hostile/command_runner.h"

#include "cli/command.h"

#include <CLI/CLI.hpp>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <array>
#include <cstdio>
#include <fcntl.h>
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

} // namespace

CommandRunner::CommandRunner() {
  std::fflush(stdout);
  std::fflush(stderr);
  saved_output_ = dup(STDOUT_FILENO);
  saved_errors_ = dup(STDERR_FILENO);
  captured_ = memfd_create("errors", 0);
  const int nowhere = open("/dev/null", O_WRONLY);
  dup2(nowhere, STDOUT_FILENO);
  close(nowhere);
  dup2(captured_, STDERR_FILENO);
  // Shared by all commands of the process; the program makes its own at its start.
  if (!spdlog::get("ptxrewrite")) spdlog::set_default_logger(spdlog::stderr_color_mt("ptxrewrite"));
}

CommandRunner::~CommandRunner() {
  std::fflush(stdout);
  std::fflush(stderr);
  dup2(saved_output_, STDOUT_FILENO);
  dup2(saved_errors_, STDERR_FILENO);
  for (const int file : {saved_output_, saved_errors_, captured_})
    close(file);
}

CommandOutcome CommandRunner::run(const std::vector<std::string>& words) {
  CommandOutcome outcome;
  std::fflush(stderr);
  if (ftruncate(captured_, 0) != 0) outcome.exception = "standard error cannot be emptied";
  lseek(captured_, 0, SEEK_SET);
  try {
    outcome.code = carry_out(words);
  } catch (const std::exception& error) {
    outcome.exception = error.what();
  } catch (...) {
    outcome.exception = "of an unknown type";
  }
  std::fflush(stdout);
  std::fflush(stderr);
  std::array<char, 4096> piece{};
  off_t at = 0;
  for (ssize_t got = 0; (got = pread(captured_, piece.data(), piece.size(), at)) > 0; at += got)
    outcome.errors.append(piece.data(), static_cast<size_t>(got));
  return outcome;
}

} // namespace ptxrewrite::fuzz
