// `ptxrewrite reduce`: shrinks a PTX file while a given command fails on it.
#include "cli/command.h"
#include "evaluate/common/module_input.h"
#include "evaluate/common/progress.h"
#include "evaluate/reduce/reducer.h"
#include "support/file_io.h"
#include "support/process.h"

#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>

namespace ptxrewrite::cli::reduce_command {

namespace {

struct ReduceOptions {
  std::string file;
  std::string test;
  std::string output = "-";
  uint64_t limit = 10000;
  double timeout_seconds = 60;
  std::optional<int> status;
};

constexpr std::string_view placeholder = "{}";

// Quotes a path for a shell, in single quotes.
std::string quoted(const std::string& path) {
  std::string result = "'";
  for (char c : path)
    result += c == '\'' ? "'\\''" : std::string(1, c);
  return result + "'";
}

std::string command_for(const std::string& test, const std::string& path) {
  std::string command = test;
  const std::string name = quoted(path);
  for (size_t at = command.find(placeholder); at != std::string::npos; at = command.find(placeholder, at + name.size()))
    command.replace(at, placeholder.size(), name);
  return command;
}

// Does the command fail within the time limit, with the given exit status if there is one? A signal counts as a failure
// with unspecified status.
class Test {
public:
  Test(const ReduceOptions& options, std::string path)
      : options_(options), path_(std::move(path)), command_(command_for(options.test, path_)) {}

  bool fails_on(const std::string& text) {
    if (!error_.ok()) return false;
    error_ = write_file(path_, text);
    if (!error_.ok()) return false;
    ProcessOptions process;
    process.arguments = {"/bin/sh", "-c", command_};
    process.timeout_seconds = options_.timeout_seconds;
    process.output_limit = 0;
    const Result<ProcessResult> result = run_process(process);
    if (!result) {
      error_ = result.error();
      return false;
    }
    if (result->timed_out) return false;
    if (options_.status) return result->signal == 0 && result->exit_code == *options_.status;
    return !result->succeeded();
  }
  // The error if the command could not be run at all.
  const Status& error() const { return error_; }

private:
  const ReduceOptions& options_;
  std::string path_;
  std::string command_;
  Status error_;
};

int run_reduce(const ReduceOptions& options) {
  if (options.test.find(placeholder) == std::string::npos)
    return usage_error("reduce", "--test must say with {} where the file's name goes");
  const auto fail = [](const Error& error) {
    show(error);
    return static_cast<int>(exit_diagnostics);
  };
  Result<std::string> text = read_file(options.file);
  if (!text) return fail(text.error());
  Result<TempDirectory> folder = TempDirectory::create();
  if (!folder) return fail(folder.error());
  // The copy keeps the file's name, because the command may depend on it.
  const std::string name = options.file == "-" ? "input.ptx" : std::filesystem::path(options.file).filename().string();
  Test test(options, folder->file(name));
  Result<Reduction> reduction = Reduction();
  {
    Progress line(options.limit);
    ReducerOptions reducer;
    reducer.test_limit = options.limit;
    reducer.is_interesting = [&](const std::string& candidate) { return test.fails_on(candidate); };
    reducer.progress = [&](const ReductionProgress& progress) {
      line.show(progress.tests, std::to_string(progress.bytes_before) + " -> " + std::to_string(progress.bytes_now) +
                                    " bytes, now " + std::string(progress.kind));
    };
    reduction = reduce(*text, options.file, reducer);
  }
  if (!test.error().ok()) return fail(test.error().error());
  if (!reduction) {
    if (!reduction.error().message.ends_with('\n')) return fail(reduction.error());
    std::fputs(reduction.error().message.c_str(), stderr); // the message already consists of rendered diagnostics
    return exit_diagnostics;
  }
  if (Status status = write_file(options.output, reduction->text); !status) return fail(status.error());
  std::fprintf(stderr, "%s: %zu -> %zu bytes after %llu tests%s\n", options.file.c_str(), text->size(),
               reduction->text.size(), static_cast<unsigned long long>(reduction->tests),
               reduction->limit_reached ? ", the limit: there may be more to take away" : "");
  return exit_ok;
}

Action set_up(Options& command, const Session&) {
  auto options = std::make_shared<ReduceOptions>();
  command.add_option("FILE", options->file, "the PTX file; - is standard input").required();
  command.add_option("--test", options->test, "a command that fails (exit status not 0) on inputs to keep")
      .required()
      .type_name("COMMAND");
  command.add_option("-o,--output", options->output, "where to write; standard output if not given").type_name("FILE");
  command.add_option("--status", options->status, "only this exit status of the command counts as failing");
  command.add_option("--limit", options->limit, "run the command at most so often").show_default();
  command.add_option("--timeout", options->timeout_seconds, "seconds; a command that takes longer does not fail")
      .show_default()
      .range(0.001, 86400.0);
  return [options] { return run_reduce(*options); };
}

const RegisterCommand registration(
    {.name = "reduce",
     .about = "shrink a PTX file while a command keeps failing on it",
     .example =
         "ptxrewrite reduce big.ptx --test '! ptxas -arch=sm_80 {} -o /dev/null 2>&1 | grep -q error' -o small.ptx\n"
         "  ptxrewrite reduce big.ptx --test 'ptxrewrite opt -p r2d2 --verify-each {} -o /dev/null' -o small.ptx\n"
         "The command is given to /bin/sh, with the name of a file in the place of {}. Every file that is tried can be "
         "read\nand verifies, and reads no register that was never written unless FILE does.",
     .place = 130,
     .set_up = set_up});

} // namespace

} // namespace ptxrewrite::cli::reduce_command
