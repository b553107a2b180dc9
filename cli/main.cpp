// ptxrewrite COMMAND [options] FILE...
#include "cli/command.h"
#include "support/interruption.h"
#include "support/log.h"
#include "support/ptxas.h"
#include "support/text/near_names.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>
#include <optional>
#include <string>
#include <vector>

namespace {

using namespace ptxrewrite::cli;

// Describes the commands that a build without the emulator lacks.
#ifdef PTXREWRITE_TEXT_ONLY
constexpr const char* of_this_build =
    "\nThis program has the commands on text; './bootstrap build' makes the one with all of them.";
#else
constexpr const char* of_this_build = "";
#endif

int unknown_command(const char* word) {
  std::vector<std::string> names;
  for (const Command* command : all_commands())
    names.push_back(command->name);
  std::fprintf(stderr, "ptxrewrite: there is no command '%s'%s\nRun 'ptxrewrite --help' for all of them.%s\n", word,
               ptxrewrite::near_names(word, names).c_str(), of_this_build);
  return exit_usage;
}

// `ptxrewrite help [COMMAND]`.
int show_help(Application& application, const char* command) {
  if (!command) {
    std::fputs(application.help().c_str(), stdout);
    return exit_ok;
  }
  if (!find_command(command)) return unknown_command(command);
  return application.parse({command, "--help"}).value_or(exit_ok);
}

int run(int argument_count, char** arguments) {
  Application application(
      {.name = "ptxrewrite",
       .about = "Reads PTX, rewrites it, and shows the changes and their reasons.",
       .footer = "\nExample:\n  ptxrewrite opt kernel.ptx -p r2d2 -o rewritten.ptx\n\n"
                 "'ptxrewrite COMMAND --help' shows the options of a command. A file named - is standard input "
                 "or output.\nExit codes: 0 done, 1 wrong input, 2 wrong usage, 3 a kernel faulted, 4 a verification "
                 "failed, 77 no GPU.",
       .version = [] { return "ptxrewrite " PTXREWRITE_VERSION "\n" + ptxrewrite::describe_ptxas(); }});
  Session session;
  // The options of one command are a small part of all: describing all takes a sixth of a short command's time.
  const Command* named = argument_count > 1 ? find_command(arguments[1]) : nullptr;
  for (const Command* command : all_commands())
    if (!named || command == named) add_command(application, session, *command);

  if (argument_count > 1 && std::strcmp(arguments[1], "help") == 0)
    return show_help(application, argument_count > 2 ? arguments[2] : nullptr);
  if (argument_count > 1 && arguments[1][0] != '-' && !find_command(arguments[1])) return unknown_command(arguments[1]);
  if (std::optional<int> code = application.parse(argument_count, arguments)) return *code;
  if (!session.action) {
    std::fputs(application.help().c_str(), stderr);
    return exit_usage;
  }
  ptxrewrite::start_logging(session.log_level);
  return session.action();
}

// Turns success into failure if output was lost.
int checked_output(int code) {
  errno = 0;
  const bool flushed = std::fflush(stdout) == 0;
  if (flushed && std::ferror(stdout) == 0) return code;
  // The stream does not store the reason of an earlier failure.
  std::fprintf(stderr, "ptxrewrite: error: <stdout>: cannot write%s%s\n", errno ? ": " : "",
               errno ? std::strerror(errno) : "");
  return code == exit_ok ? int{exit_diagnostics} : code;
}

} // namespace

int main(int argument_count, char** arguments) {
  // The libraries return errors as values; exceptions here mean out of memory, or a defect.
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
