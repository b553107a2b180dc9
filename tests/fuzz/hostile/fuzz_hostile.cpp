// Runs hostile kernels through the whole program: each must end in a result or in a diagnostic. A crash, a sanitizer's
// report, an internal error, output that is not read back, or a rewriting that changes the results of a defined kernel
// is a failure. Meant to be built with sanitizers.
//
//   fuzz_hostile [--count N] [--first SEED] [--only SEED [--show]] [--steps N | --all-steps] [--write FOLDER]
//   [--skip FEATURE] STATEMENTS.tsv FILE.ptx...
//
// Kernels run in this process; a crash ends a worker, and the next one continues after it. Each kernel takes the steps
// chosen by its seed; with --steps N, N steps besides the plain run, all steps equally often over the seeds; with
// --all-steps all of them, as the first failing kernel always does. --write keeps the text of failures. Launches are
// bounded by fuel; a kernel that takes five minutes of processor time for the other steps counts as hanging.
#include "tests/fuzz/hostile/hostile_steps.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

namespace {

using namespace ptxrewrite;

constexpr long hang_seconds = 300; // of processor time
constexpr unsigned slow_seconds = 60;

struct Options {
  uint64_t count = 1000;
  uint64_t first = 1;
  bool show = false;
  fuzz::StepChoice steps;
  std::string folder;            // of failures; "": not kept
  std::set<std::string> skipped; // features: kernels with one of them are skipped
  std::vector<std::string> files;
};

constexpr size_t most_steps = 64;
constexpr const char* origins[] = {"defined", "attack", "mutated attack", "mutated sound", "mutated file"};

// Data left by the workers, also by those that crash.
struct Ledger {
  uint64_t next = 0; // seed
  char step[1024] = "";
  uint64_t kernels = 0, refused = 0, failures = 0, crashes = 0;
  uint64_t by_origin[std::size(origins)] = {};
  fuzz::StepCounts steps[most_steps];
};

Ledger* ledger = nullptr;
int real_errors = STDERR_FILENO;
int captured_errors = -1; // of the worker's commands, and UBSan's reports, which can go to no other file

void write_all(int file, const char* bytes, size_t size) {
  while (size > 0) {
    const ssize_t done = write(file, bytes, size);
    if (done <= 0) return;
    bytes += done;
    size -= static_cast<size_t>(done);
  }
}

void report_death() {
  char line[1200];
  const int length = std::snprintf(line, sizeof line, "seed %llu died in: %s\n",
                                   static_cast<unsigned long long>(ledger->next), ledger->step);
  write_all(real_errors, line, static_cast<size_t>(length));
}

void on_signal(int signal_number) {
  report_death();
  std::signal(signal_number, SIG_DFL);
  std::raise(signal_number);
}

void install_handlers() {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_set_death_callback(report_death);
  __sanitizer_set_report_fd(reinterpret_cast<void*>(static_cast<intptr_t>(real_errors)));
#else
  std::signal(SIGSEGV, on_signal);
  std::signal(SIGFPE, on_signal);
  std::signal(SIGBUS, on_signal);
#endif
  std::signal(SIGABRT, on_signal);
  std::signal(SIGPROF, on_signal);
}

void start_watch() {
  const itimerval limit{{0, 0}, {hang_seconds, 0}};
  setitimer(ITIMER_PROF, &limit, nullptr);
}

void keep(const Options& options, const fuzz::HostileKernel& kernel, const std::string& note) {
  if (options.folder.empty()) return;
  std::ofstream file(options.folder + "/" + std::to_string(kernel.seed) + ".ptx", std::ios::binary);
  file << kernel.text << "// " << note << '\n';
}

// "k.ptx:12:3: no such register '%r7'" without the parts that differ between kernels.
std::string shortened(const std::string& text) {
  std::string out;
  for (const char c : text.substr(0, 160))
    if (std::isdigit(static_cast<unsigned char>(c)) == 0)
      out += c;
    else if (out.empty() || out.back() != '#')
      out += '#';
  return out;
}

// Processes kernels from ledger->next on, until all are done or the process dies.
void work(const Options& options, const fuzz::HostileMaterial& material, const std::string& scratch) {
  fuzz::CommandRunner runner(captured_errors);
  real_errors = runner.errors();
  install_handlers();
  fuzz::HostileKernelTest tester(runner, scratch);
  std::map<std::string, uint64_t> seen;
  fuzz::HostileKernel kernel;
  bool failed = false;
  tester.announce = [](const std::string& step) {
    std::snprintf(ledger->step, sizeof ledger->step, "%s", step.c_str());
  };
  tester.count = [](size_t step, int code) {
    ++ledger->steps[step].by_code[code >= 0 && code < 5 ? static_cast<size_t>(code) : 5];
  };
  tester.fail = [&](const std::string& step, const std::string& what) {
    failed = true;
    if (++seen[shortened(what)] > 3 && options.count > 1) return;
    const std::string line =
        "seed " + std::to_string(kernel.seed) + " (" + kernel.origin + "): " + what + "\n    " + step + '\n';
    write_all(real_errors, line.data(), line.size());
    keep(options, kernel, step + ": " + what);
  };
  for (const uint64_t end = options.first + options.count; ledger->next < end; ++ledger->next) {
    start_watch();
    kernel = fuzz::generate_hostile_kernel(ledger->next, material);
    if (options.show) write_all(runner.output(), kernel.text.data(), kernel.text.size());
    ++ledger->kernels;
    for (size_t i = 0; i < std::size(origins); ++i)
      ledger->by_origin[i] += kernel.origin == origins[i];
    if (std::ranges::any_of(kernel.features, [&](const std::string& name) { return options.skipped.contains(name); }))
      continue;
    failed = false;
    const uint64_t modules = tester.text.modules;
    tester.test(kernel, options.steps);
    if (failed && ledger->failures + ledger->crashes == 0 && !options.steps.all) tester.test(kernel, {.all = true});
    ledger->refused += tester.text.modules == modules;
    ledger->failures += failed;
    if (ledger->kernels % 1000 == 0) {
      const std::string line = std::to_string(ledger->kernels) + " kernels, " + std::to_string(ledger->failures) +
                               " failed, " + std::to_string(ledger->crashes) + " crashed\n";
      write_all(real_errors, line.data(), line.size());
    }
  }
}

// Waits for the worker; reports a kernel that takes long, without stopping it.
int wait_for(pid_t worker) {
  int status = 0;
  uint64_t seen = ledger->next;
  for (unsigned ticks = 0; waitpid(worker, &status, WNOHANG) == 0; usleep(100'000)) {
    if (seen != ledger->next) {
      seen = ledger->next;
      ticks = 0;
    }
    if (++ticks % (10 * slow_seconds) == 0)
      std::fprintf(stderr, "seed %llu has been for %u s in: %s\n", static_cast<unsigned long long>(seen), ticks / 10,
                   ledger->step);
  }
  return status;
}

// Shows the end of the worker's standard error: a sanitizer's report.
void show_last_words() {
  char bytes[6000];
  const off_t size = lseek(captured_errors, 0, SEEK_END), begin = std::max<off_t>(size - off_t(sizeof bytes), 0);
  const ssize_t length = pread(captured_errors, bytes, sizeof bytes, begin);
  if (length > 0) write_all(STDERR_FILENO, bytes, static_cast<size_t>(length));
}

// Runs workers one after the other, each replacing one that died.
void run_workers(const Options& options, const fuzz::HostileMaterial& material, const std::string& scratch) {
  while (ledger->next < options.first + options.count) {
    const pid_t worker = fork();
    if (worker == 0) {
      work(options, material, scratch);
      _exit(0);
    }
    const int status = wait_for(worker);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) continue;
    ++ledger->crashes;
    std::fprintf(stderr, "seed %llu: the worker died (%s %d) in: %s\n", static_cast<unsigned long long>(ledger->next),
                 WIFSIGNALED(status) ? "signal" : "exit code",
                 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), ledger->step);
    show_last_words();
    keep(options, fuzz::generate_hostile_kernel(ledger->next, material), std::string("died in ") + ledger->step);
    ++ledger->next;
  }
}

void print_table() {
  std::printf("%llu kernels:", static_cast<unsigned long long>(ledger->kernels));
  for (size_t i = 0; i < std::size(origins); ++i)
    std::printf("%s %llu %s", i ? "," : "", static_cast<unsigned long long>(ledger->by_origin[i]), origins[i]);
  std::printf("\n%llu refused by the reader, %llu failed, %llu crashed\n%8s %8s %8s %8s %8s\n",
              static_cast<unsigned long long>(ledger->refused), static_cast<unsigned long long>(ledger->failures),
              static_cast<unsigned long long>(ledger->crashes), "done", "refused", "usage", "fault", "differs");
  const auto steps = fuzz::hostile_steps();
  for (size_t i = 0; i < steps.size(); ++i) {
    for (size_t code = 0; code < 5; ++code)
      std::printf("%8llu ", static_cast<unsigned long long>(ledger->steps[i].by_code[code]));
    std::printf(" %s\n", steps[i].words);
  }
}

bool parse_options(int argc, char** argv, Options& options) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const bool has_value = i + 1 < argc;
    if (word == "--count" && has_value) {
      options.count = std::strtoull(argv[++i], nullptr, 10);
    } else if (word == "--first" && has_value) {
      options.first = std::strtoull(argv[++i], nullptr, 10);
    } else if (word == "--only" && has_value) {
      options.first = std::strtoull(argv[++i], nullptr, 10);
      options.count = 1;
      options.steps.all = true;
    } else if (word == "--steps" && has_value) {
      options.steps.few = static_cast<unsigned>(std::strtoul(argv[++i], nullptr, 10));
    } else if (word == "--write" && has_value) {
      options.folder = argv[++i];
    } else if (word == "--skip" && has_value) {
      options.skipped.insert(argv[++i]);
    } else if (word == "--show") {
      options.show = true;
    } else if (word == "--all-steps") {
      options.steps.all = true;
    } else if (word.starts_with("--")) {
      return false;
    } else {
      options.files.push_back(word);
    }
  }
  return !options.files.empty();
}

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

} // namespace

int main(int argc, char** argv) {
  Options options;
  if (!parse_options(argc, argv, options)) {
    std::fprintf(stderr,
                 "usage: fuzz_hostile [--count N] [--first SEED] [--only SEED [--show]] [--steps N | --all-steps] "
                 "[--write FOLDER] [--skip FEATURE] STATEMENTS.tsv FILE.ptx...\n");
    return 2;
  }
  // The assembler would take most of the time, and has its own crashes.
  setenv("PTXREWRITE_PTXAS", "/nowhere/ptxas", 1);
  if (!options.folder.empty()) std::filesystem::create_directories(options.folder);
  std::vector<std::string> modules;
  for (size_t i = 1; i < options.files.size(); ++i)
    modules.push_back(contents(options.files[i]));
  const fuzz::HostileMaterial material = fuzz::make_material(contents(options.files.front()), modules);
  std::printf("seeds %llu to %llu; material: %zu statements, %zu of them run, %zu are pure; %zu modules\n",
              static_cast<unsigned long long>(options.first),
              static_cast<unsigned long long>(options.first + options.count - 1), material.statements.size(),
              material.runnable.size(), material.pure.size(), material.modules.size());
  std::fflush(stdout);
  void* shared = mmap(nullptr, sizeof(Ledger), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return 2;
  ledger = new (shared) Ledger;
  ledger->next = options.first;
  captured_errors = memfd_create("errors", 0);
  char scratch[] = "/tmp/fuzz_hostile.XXXXXX";
  if (mkdtemp(scratch) == nullptr) return 2;
  run_workers(options, material, scratch);
  std::error_code ignored;
  std::filesystem::remove_all(scratch, ignored);
  print_table();
  return ledger->failures + ledger->crashes == 0 ? 0 : 1;
}
