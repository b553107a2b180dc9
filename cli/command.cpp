#include "cli/command.h"

#include <CLI/CLI.hpp>

#include <cstdio>
#include <map>

namespace ptxrewrite::cli {

CLI::App* add_command(CLI::App& application, Session& session, const std::string& name, const std::string& what,
                      const std::string& example) {
  CLI::App* command = application.add_subcommand(name, what);
  command->footer("\nExample:\n  " + example);
  static const std::map<std::string, ColourMode> colour_words = {
      {"auto", ColourMode::automatic}, {"always", ColourMode::always}, {"never", ColourMode::never}};
  command
      ->add_option_function<std::string>(
          "--color", [&session](const std::string& word) { session.colour = colour_words.at(word); },
          "auto (on a terminal, unless NO_COLOR is set), always, never")
      ->check(CLI::IsMember({"auto", "always", "never"}))
      ->type_name("WHEN");
  command->add_option("--log-level", session.log_level, "what to log to standard error")
      ->check(CLI::IsMember({"trace", "debug", "info", "warn", "error", "off"}))
      ->type_name("LEVEL");
  return command;
}

int usage_error(const std::string& command, const std::string& message) {
  std::fprintf(stderr, "ptxrewrite %s: %s\nRun 'ptxrewrite %s --help' for its options.\n", command.c_str(),
               message.c_str(), command.c_str());
  return exit_usage;
}

} // namespace ptxrewrite::cli
