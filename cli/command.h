// What every command of the program shares: exit codes, common options, how a command is added.
#pragma once

#include "support/text/console.h"

#include <functional>
#include <string>

namespace CLI {
class App;
}

namespace ptxrewrite::cli {

enum ExitCode : int {
  exit_ok = 0,
  exit_diagnostics = 1, // the input is wrong, or something could not be read, written or loaded
  exit_usage = 2,
  exit_fault = 3,   // an emulated kernel faulted, hung or ran out of fuel, or a check found something
  exit_differs = 4, // a verification failed
  exit_no_gpu = 77, // a GPU is wanted, and there is none
};

// One run of the program. `action` is set by the command that the user named.
struct Session : Console {
  std::string log_level = "warn";
  std::function<int()> action;
};

// Each adds one command; its options live as long as the application's.
void add_opt_command(CLI::App& application, Session& session);
void add_diff_command(CLI::App& application, Session& session);
void add_analyze_command(CLI::App& application, Session& session);
void add_reduce_command(CLI::App& application, Session& session);
void add_passes_command(CLI::App& application, Session& session);
void add_run_command(CLI::App& application, Session& session);
void add_verify_command(CLI::App& application, Session& session);
void add_bench_command(CLI::App& application, Session& session);
void add_exec_command(CLI::App& application, Session& session);
void add_record_command(CLI::App& application, Session& session);
void add_study_command(CLI::App& application, Session& session);
void add_score_command(CLI::App& application, Session& session);
void add_prove_command(CLI::App& application, Session& session);
void add_launch_template_command(CLI::App& application, Session& session);
void add_mark_command(CLI::App& application, Session& session);
void add_machines_command(CLI::App& application, Session& session);
void add_isa_command(CLI::App& application, Session& session);

// A command with --color and --log-level; `example` is shown below the options.
CLI::App* add_command(CLI::App& application, Session& session, const std::string& name, const std::string& what,
                      const std::string& example);

// Prints `message` as a usage error of `command`; returns the exit code.
int usage_error(const std::string& command, const std::string& message);

} // namespace ptxrewrite::cli
