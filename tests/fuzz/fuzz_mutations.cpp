// Feeds mutated PTX to the reader and the steps after it: every input must end in a diagnostic or in a module, never in
// a crash or an endless loop, and a module must be consistent: verified, printed, read again to the same text, through
// SSA and back. Meant to be built with sanitizers.
//
//   fuzz_mutations [--count N] [--seed S] [--only NUMBER [--show] [--explain]] [--write FOLDER] FILE.ptx...
//
// --write keeps the inputs for against_ptxas.py. Input NUMBER of seed S is always the same: failures are repeated with
// --only. Exit code 1 if a check failed.
#include "grammar/reader.h"
#include "support/diagnostic.h"
#include "tests/fuzz/mutate.h"
#include "tests/fuzz/text_checks.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

namespace {

using namespace ptxrewrite;

constexpr unsigned hang_seconds = 60;

// Reported by the signal handlers if the process dies during an input.
volatile uint64_t current_number = 0;
uint64_t current_seed = 0;

void report_death() {
  char line[160];
  const int length =
      std::snprintf(line, sizeof line, "fuzz_mutations: died; repeat with --seed %llu --only %llu\n",
                    static_cast<unsigned long long>(current_seed), static_cast<unsigned long long>(current_number));
  if (write(STDERR_FILENO, line, static_cast<size_t>(length)) < 0) return;
}

void on_signal(int signal_number) {
  report_death();
  std::signal(signal_number, SIG_DFL);
  std::raise(signal_number);
}

void install_handlers() {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_set_death_callback(report_death);
#else
  std::signal(SIGSEGV, on_signal);
#endif
  std::signal(SIGABRT, on_signal);
  std::signal(SIGALRM, on_signal);
}

struct Tally : fuzz::TextTally {
  std::map<std::string, uint64_t> failures;
};

void explain(const std::string& text) {
  Diagnostics diagnostics;
  const SourceFile source("mutation.ptx", text);
  grammar::read_module(source, diagnostics);
  for (const Diagnostic& diagnostic : diagnostics.list())
    std::fputs(render(diagnostic, source).c_str(), stderr);
}

struct Options {
  uint64_t count = 10000;
  uint64_t seed = 1;
  uint64_t first = 0;
  bool show = false;
  bool explain = false; // print the diagnostics
  std::string folder;   // where to write every input, with its outcome in the name
  std::vector<std::string> seeds;
};

bool parse_options(int argc, char** argv, Options& options) {
  for (int i = 1; i < argc; ++i) {
    const bool has_value = i + 1 < argc;
    if (std::strcmp(argv[i], "--count") == 0 && has_value) {
      options.count = std::strtoull(argv[++i], nullptr, 10);
    } else if (std::strcmp(argv[i], "--seed") == 0 && has_value) {
      options.seed = std::strtoull(argv[++i], nullptr, 10);
    } else if (std::strcmp(argv[i], "--only") == 0 && has_value) {
      options.first = std::strtoull(argv[++i], nullptr, 10);
      options.count = 1;
    } else if (std::strcmp(argv[i], "--write") == 0 && has_value) {
      options.folder = argv[++i];
    } else if (std::strcmp(argv[i], "--explain") == 0) {
      options.explain = true;
    } else if (std::strcmp(argv[i], "--show") == 0) {
      options.show = true;
    } else {
      std::ifstream file(argv[i], std::ios::binary);
      if (!file) {
        std::fprintf(stderr, "fuzz_mutations: cannot read %s\n", argv[i]);
        return false;
      }
      options.seeds.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    }
  }
  if (options.seeds.empty())
    std::fprintf(stderr, "usage: fuzz_mutations [--count N] [--seed S] [--only N] FILE.ptx...\n");
  return !options.seeds.empty();
}

} // namespace

int main(int argc, char** argv) {
  Options options;
  if (!parse_options(argc, argv, options)) return 2;
  install_handlers();
  current_seed = options.seed;
  Tally tally;
  for (const std::string& text : options.seeds)
    if (const std::string failure = fuzz::check_text(text, tally); !failure.empty()) {
      std::fprintf(stderr, "an input that is not mutated fails: %s\n", failure.c_str());
      return 1;
    }

  tally = Tally();
  uint64_t failed = 0;
  for (uint64_t number = options.first; number < options.first + options.count; ++number) {
    current_number = number;
    const fuzz::Mutation mutation = fuzz::mutate(options.seeds, options.seed, number);
    if (options.show) std::fwrite(mutation.text.data(), 1, mutation.text.size(), stdout);
    if (options.explain) explain(mutation.text);
    alarm(hang_seconds);
    const uint64_t read_before = tally.modules;
    const std::string failure = fuzz::check_text(mutation.text, tally);
    alarm(0);
    if (!options.folder.empty()) {
      const char* outcome = tally.modules != read_before ? "read" : "refused";
      std::ofstream(options.folder + "/" + std::to_string(number) + "." + outcome + ".ptx", std::ios::binary)
          << mutation.text;
    }
    if (failure.empty()) continue;
    ++failed;
    if (++tally.failures[failure] <= 3)
      std::fprintf(stderr, "input %llu (%s): %s\n", static_cast<unsigned long long>(number), mutation.name.c_str(),
                   failure.c_str());
  }
  std::printf(
      "%llu inputs: %llu refused with a diagnostic, %llu read, %llu functions through SSA, %llu checks failed\n",
      static_cast<unsigned long long>(options.count), static_cast<unsigned long long>(tally.diagnostics),
      static_cast<unsigned long long>(tally.modules), static_cast<unsigned long long>(tally.ssa_functions),
      static_cast<unsigned long long>(failed));
  for (const auto& [reason, count] : tally.failures)
    std::printf("  %llu x %s\n", static_cast<unsigned long long>(count), reason.c_str());
  return failed == 0 ? 0 : 1;
}
