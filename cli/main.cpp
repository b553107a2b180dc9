// ptxrewrite COMMAND [options] FILE...
#include "cli/command.h"
#include "support/interruption.h"
#include "support/log.h"
#include "support/text/near_names.h"

#include <CLI/CLI.hpp>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>

namespace {

using namespace ptxrewrite::cli;

bool has_command(const CLI::App& application, const std::string& word) {
  for (const CLI::App* command : application.get_subcommands({}))
    if (command->get_name() == word) return true;
  return false;
}

int unknown_command(const CLI::App& application, const char* word) {
  std::vector<std::string> names;
  for (const CLI::App* command : application.get_subcommands({}))
    names.push_back(command->get_name());
  std::fprintf(stderr, "ptxrewrite: there is no command '%s'%s\nRun 'ptxrewrite --help' for all of them.\n", word,
               ptxrewrite::near_names(word, names).c_str());
  return exit_usage;
}

int run(int argument_count, char** arguments) {
  CLI::App application{"Reads PTX, rewrites it, and shows what was done and why."};
  application.footer(
      "\nExample:\n  ptxrewrite opt kernel.ptx -p r2d2 -o rewritten.ptx\n\n"
      "'ptxrewrite COMMAND --help' shows the options of a command. A file named - is standard input "
      "or output.\nExit codes: 0 done, 1 wrong input, 2 wrong usage, 3 a kernel faulted, 4 a verification "
      "failed, 77 no GPU.");
  application.set_version_flag("--version", "ptxrewrite " PTXREWRITE_VERSION);
  application.set_help_flag("-h,--help", "this text");
  application.name("ptxrewrite");
  application.require_subcommand(0, 1);
  application.failure_message([](const CLI::App*, const CLI::Error& error) {
    return "ptxrewrite: " + std::string(error.what()) + "\nRun 'ptxrewrite --help' or 'ptxrewrite COMMAND --help'.\n";
  });
  application.get_formatter()->column_width(34);
  Session session;
  add_opt_command(application, session);
  add_diff_command(application, session);
  add_analyze_command(application, session);
  add_run_command(application, session);
  add_exec_command(application, session);
  add_verify_command(application, session);
  add_bench_command(application, session);
  add_record_command(application, session);
  add_study_command(application, session);
  add_score_command(application, session);
  add_prove_command(application, session);
  add_mark_command(application, session);
  add_launch_template_command(application, session);
  add_reduce_command(application, session);
  add_passes_command(application, session);
  add_machines_command(application, session);
  add_isa_command(application, session);

  if (argument_count > 1 && arguments[1][0] != '-' && !has_command(application, arguments[1]))
    return unknown_command(application, arguments[1]);
  try {
    application.parse(argument_count, arguments);
  } catch (const CLI::ParseError& error) {
    // CLI11's own codes lie above 100; ours says "usage". Requests for help are not errors.
    return application.exit(error) == 0 ? exit_ok : exit_usage;
  }
  if (!session.action) {
    std::fputs(application.help().c_str(), stderr);
    return exit_usage;
  }
  ptxrewrite::start_logging(session.log_level);
  return session.action();
}

// Output that was lost makes a run that went well a failed one.
int checked_output(int code) {
  errno = 0;
  const bool flushed = std::fflush(stdout) == 0;
  if (flushed && std::ferror(stdout) == 0) return code;
  // The reason of an earlier failure is not kept by the stream.
  std::fprintf(stderr, "ptxrewrite: error: <stdout>: cannot write%s%s\n", errno ? ": " : "",
               errno ? std::strerror(errno) : "");
  return code == exit_ok ? int{exit_diagnostics} : code;
}

} // namespace

int main(int argument_count, char** arguments) {
  // The libraries report errors as values; what still arrives here is the end of memory, or a defect.
  try {
    ptxrewrite::clean_up_on_signals();
    return checked_output(run(argument_count, arguments));
  } catch (const std::bad_alloc&) {
    std::fputs("ptxrewrite: error: out of memory\n", stderr);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ptxrewrite: internal error: %s\n", error.what());
  } catch (...) {
    std::fputs("ptxrewrite: internal error\n", stderr);
  }
  return exit_diagnostics;
}
