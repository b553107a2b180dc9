#include "cli/command.h"

#include <algorithm>
#include <cstdio>
#include <deque>
#include <map>
#include <tuple>

namespace ptxrewrite::cli {

namespace {

// A local static variable, because commands of other files are registered before this file's variables are initialized.
std::deque<Command>& registered_commands() {
  static std::deque<Command> commands;
  return commands;
}

void add_common_options(Options& options, Session& session) {
  static const std::map<std::string, ColourMode> colour_words = {
      {"auto", ColourMode::automatic}, {"always", ColourMode::always}, {"never", ColourMode::never}};
  options
      .add_option(
          "--color", [&session](const std::string& word) { session.colour = colour_words.at(word); },
          "auto (on a terminal, unless NO_COLOR is set), always, never")
      .one_of({"auto", "always", "never"})
      .type_name("WHEN");
  options.add_option("--log-level", session.log_level, "least severe messages on standard error")
      .one_of({"trace", "debug", "info", "warn", "error", "off"})
      .type_name("LEVEL");
}

} // namespace

RegisterCommand::RegisterCommand(Command command) {
  registered_commands().push_back(std::move(command));
}

std::vector<const Command*> all_commands() {
  std::vector<const Command*> commands;
  for (const Command& command : registered_commands())
    commands.push_back(&command);
  // Also by name, so that the result does not depend on the link order.
  std::ranges::sort(commands, {}, [](const Command* command) { return std::tie(command->place, command->name); });
  return commands;
}

const Command* find_command(const std::string& name) {
  const auto found = std::ranges::find(registered_commands(), name, &Command::name);
  return found == registered_commands().end() ? nullptr : &*found;
}

void add_command(Application& application, Session& session, const Command& command) {
  Options options = application.add_command(command.name, command.about, "\nExample:\n  " + command.example);
  add_common_options(options, session);
  const Action action = command.set_up(options, session);
  options.when_named([action, &session] { session.action = action; });
}

int usage_error(const std::string& command, const std::string& message) {
  std::fprintf(stderr, "ptxrewrite %s: %s\nRun 'ptxrewrite %s --help' for its options.\n", command.c_str(),
               message.c_str(), command.c_str());
  return exit_usage;
}

} // namespace ptxrewrite::cli
