#include "support/process.h"

#include "support/interruption.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace ptxrewrite {

namespace {

using Clock = std::chrono::steady_clock;

class Descriptor {
public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { reset(); }
  int get() const { return number_; }
  bool open() const { return number_ >= 0; }
  void reset(int number = -1) {
    if (number_ >= 0) ::close(number_);
    number_ = number;
  }

private:
  int number_ = -1;
};

struct Pipe {
  Descriptor read_end;
  Descriptor write_end;
  bool create() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return false;
    read_end.reset(ends[0]);
    write_end.reset(ends[1]);
    return true;
  }
};

Error start_error(const std::string& program, int code) {
  return {"cannot run " + program + ": " + std::strerror(code), {}};
}

// Standard input is an anonymous file, not a pipe: no deadlock and no SIGPIPE if the child does not read it.
int open_input(std::string_view input) {
  if (input.empty()) return ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  int file = ::memfd_create("input", MFD_CLOEXEC);
  if (file < 0) return -1;
  while (!input.empty()) {
    ssize_t count = ::write(file, input.data(), input.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      int code = errno;
      ::close(file);
      errno = code;
      return -1;
    }
    input.remove_prefix(static_cast<size_t>(count));
  }
  ::lseek(file, 0, SEEK_SET);
  return file;
}

uint64_t own_memory_kib() {
  std::ifstream statm("/proc/self/statm");
  uint64_t total = 0, resident = 0;
  statm >> total >> resident;
  return resident * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE)) / 1024;
}

// A lower limit of this process stays.
void limit(int resource, uint64_t amount) {
  const auto kind = static_cast<__rlimit_resource>(resource);
  struct rlimit bounds {};
  if (::getrlimit(kind, &bounds) == 0) amount = std::min<uint64_t>(amount, bounds.rlim_cur);
  bounds = {amount, amount};
  ::setrlimit(kind, &bounds);
}

// Runs in the child between fork and exec, where nothing may allocate or take a lock.
[[noreturn]] void become(const char* program, char* const* arguments, const ProcessOptions& options, int input, int out,
                         int err, int failure_pipe) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::dup2(input, STDIN_FILENO);
  ::dup2(out, STDOUT_FILENO);
  ::dup2(err, STDERR_FILENO);
  if (options.address_space_bytes != 0) limit(RLIMIT_AS, options.address_space_bytes);
  if (options.cpu_seconds != 0) limit(RLIMIT_CPU, options.cpu_seconds);
  limit(RLIMIT_CORE, 0);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
  if (options.working_directory.empty() || ::chdir(options.working_directory.c_str()) == 0) ::execv(program, arguments);
  int code = errno;
  [[maybe_unused]] ssize_t ignored = ::write(failure_pipe, &code, sizeof code);
  ::_exit(127);
}

// Collects the child's output and waits for its end.
class Supervisor {
public:
  Supervisor(pid_t child, Descriptor& out, Descriptor& err, const ProcessOptions& options, ProcessResult& result)
      : child_(child),
        end_(static_cast<int>(::syscall(SYS_pidfd_open, child, 0))), streams_{{&out, &result.out}, {&err, &result.err}},
        options_(options), result_(result) {}

  // Returns the child's wait status and fills in its resource use.
  int run(struct rusage& usage) {
    started_ = Clock::now();
    int status = 0;
    while (!reap(status, usage)) {
      if (options_.timeout_seconds > 0 && elapsed() > options_.timeout_seconds && !result_.timed_out) {
        result_.timed_out = true;
        ::kill(-child_, SIGKILL);
      }
      // Output and the child's end wake this loop; the timeout bounds the delay until a time-out is noticed, or the
      // child's end on a kernel without pidfd.
      collect(end_.open() ? 20 : 2);
    }
    result_.wall_seconds = elapsed();
    ::kill(-child_, SIGKILL); // kill descendants of the child, which would keep the pipes open
    drain();
    return status;
  }

private:
  struct Stream {
    Descriptor* end;
    std::string* text;
  };

  double elapsed() const { return std::chrono::duration<double>(Clock::now() - started_).count(); }

  bool reap(int& status, struct rusage& usage) {
    pid_t ended = ::wait4(child_, &status, WNOHANG, &usage);
    return ended == child_ || (ended < 0 && errno != EINTR);
  }

  void collect(int timeout_ms) {
    struct pollfd watched[3];
    for (int i = 0; i < 2; ++i)
      watched[i] = {streams_[i].end->get(), POLLIN, 0}; // a closed one is -1 and ignored
    watched[2] = {end_.get(), POLLIN, 0};
    if (::poll(watched, 3, timeout_ms) <= 0) return;
    for (int i = 0; i < 2; ++i)
      if (watched[i].revents != 0) read_some(streams_[i]);
  }

  // Returns false if nothing more can be read at the moment.
  bool read_some(Stream& stream) {
    char buffer[65536];
    ssize_t count = ::read(stream.end->get(), buffer, sizeof buffer);
    if (count < 0) return errno == EINTR;
    if (count == 0) {
      stream.end->reset();
      return false;
    }
    size_t room = options_.output_limit - std::min(options_.output_limit, stream.text->size());
    size_t kept = std::min(room, static_cast<size_t>(count));
    stream.text->append(buffer, kept);
    if (kept < static_cast<size_t>(count)) result_.output_truncated = true;
    return true;
  }

  void drain() {
    for (Stream& stream : streams_)
      while (stream.end->open() && read_some(stream)) {
      }
  }

  pid_t child_;
  Descriptor end_; // readable when the child has ended
  Stream streams_[2];
  const ProcessOptions& options_;
  ProcessResult& result_;
  Clock::time_point started_;
};

double seconds(const struct timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

void record(ProcessResult& result, int status, const struct rusage& usage, uint64_t our_memory_kib) {
  if (WIFSIGNALED(status))
    result.signal = WTERMSIG(status);
  else
    result.exit_code = WEXITSTATUS(status);
  result.user_seconds = seconds(usage.ru_utime);
  result.system_seconds = seconds(usage.ru_stime);
  auto peak = static_cast<uint64_t>(usage.ru_maxrss);
  constexpr uint64_t slack_kib = 1024;
  result.peak_memory_kib = peak > our_memory_kib + slack_kib ? peak : 0;
}

} // namespace

std::string find_program(const std::string& name) {
  auto executable = [](const std::string& path) {
    struct stat info {};
    return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && ::access(path.c_str(), X_OK) == 0;
  };
  std::error_code failure;
  auto absolute = [&](const std::string& path) { return std::filesystem::absolute(path, failure).string(); };
  if (name.empty()) return {};
  if (name.find('/') != std::string::npos) return executable(name) ? absolute(name) : std::string();
  const char* search = std::getenv("PATH");
  std::string_view rest = search != nullptr ? search : "/usr/local/bin:/usr/bin:/bin";
  while (!rest.empty()) {
    size_t colon = rest.find(':');
    std::string candidate = std::string(rest.substr(0, colon)) + '/' + name;
    if (colon != 0 && executable(candidate)) return absolute(candidate);
    rest = colon == std::string_view::npos ? std::string_view() : rest.substr(colon + 1);
  }
  return {};
}

Result<ProcessResult> run_process(const ProcessOptions& options) {
  if (options.arguments.empty()) return Error{"no program to run", {}};
  const std::string& name = options.arguments[0];
  std::string program = find_program(name);
  if (program.empty()) return start_error(name, ENOENT);
  std::vector<char*> arguments;
  for (const std::string& argument : options.arguments)
    arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);

  Descriptor input(open_input(options.input));
  Pipe out, err, failure;
  if (!input.open() || !out.create() || !err.create() || !failure.create()) return start_error(name, errno);
  uint64_t our_memory_kib = own_memory_kib();
  pid_t child = interruption::fork_child();
  if (child < 0) return start_error(name, errno);
  if (child == 0)
    become(program.c_str(), arguments.data(), options, input.get(), out.write_end.get(), err.write_end.get(),
           failure.write_end.get());
  ::setpgid(child, child); // the child does the same: in either order, the group exists before it may be killed
  for (Pipe* pipe : {&out, &err, &failure})
    pipe->write_end.reset();

  int start_failure = 0;
  ssize_t count = 0;
  while ((count = ::read(failure.read_end.get(), &start_failure, sizeof start_failure)) < 0 && errno == EINTR) {
  }
  ::fcntl(out.read_end.get(), F_SETFL, O_NONBLOCK);
  ::fcntl(err.read_end.get(), F_SETFL, O_NONBLOCK);
  ProcessResult result;
  struct rusage usage {};
  int status = Supervisor(child, out.read_end, err.read_end, options, result).run(usage);
  interruption::child_ended(child);
  if (count == sizeof start_failure) return start_error(name, start_failure);
  record(result, status, usage, our_memory_kib);
  return result;
}

} // namespace ptxrewrite
