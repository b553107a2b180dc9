// Definitions common to all commands: exit codes, common options, registration of commands.
#pragma once

#include "cli/options.h"
#include "support/text/console.h"

#include <functional>
#include <string>
#include <vector>

namespace ptxrewrite::evaluate {}

namespace ptxrewrite::cli {

using namespace evaluate; // commands only add options to its engines

enum ExitCode : int {
  exit_ok = 0,
  exit_diagnostics = 1, // the input is invalid, or a file could not be read, written or loaded
  exit_usage = 2,
  exit_fault = 3,   // an emulated kernel faulted, hung or ran out of fuel, or check mode found an error
  exit_differs = 4, // a verification failed
  exit_no_gpu = 77, // a GPU is required, but there is none
};

using Action = std::function<int()>;

// One run of the program. `action` is set by the command that the user named.
struct Session : Console {
  std::string log_level = "warn";
  Action action;
};

// A command, as its file cmd_NAME.cpp registers it.
struct Command {
  std::string name;
  std::string about;
  std::string example; // shown below the options
  unsigned place = 0;  // sort key of its line in `ptxrewrite --help`
  // Adds the options and returns the action, which owns the options' variables and is called after parsing.
  Action (*set_up)(Options& options, const Session& session) = nullptr;
};

// Commands register themselves with a static object of this type.
class RegisterCommand {
public:
  explicit RegisterCommand(Command command);
};

// Sorted by place.
std::vector<const Command*> all_commands();
const Command* find_command(const std::string& name); // nullptr if there is none

// Adds the command with its options, including --color and --log-level.
void add_command(Application& application, Session& session, const Command& command);

// Prints `message` as a usage error of `command`; returns the exit code.
int usage_error(const std::string& command, const std::string& message);

} // namespace ptxrewrite::cli
