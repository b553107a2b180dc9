#include "support/interruption.h"

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <mutex>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace ptxrewrite {

namespace {

struct Registry {
  std::mutex mutex;
  std::vector<pid_t> children;
  std::vector<std::string> paths; // temporary files and folders
};

// Never destroyed: the waiting thread may still use it while static objects are destroyed.
Registry& registry() {
  static Registry& everything = *new Registry;
  return everything;
}

// The signals that clean_up_on_signals() handles.
sigset_t& waited_for() {
  static sigset_t signals = [] {
    sigset_t none;
    ::sigemptyset(&none);
    return none;
  }();
  return signals;
}

void wait_and_clean_up(const sigset_t& signals) {
  int number = 0;
  while (::sigwait(&signals, &number) != 0) {
  }
  Registry& everything = registry();
  everything.mutex.lock(); // never unlocked: other threads block where they would register something or use a result
  for (pid_t child : everything.children) {
    if (::kill(-child, SIGKILL) != 0 && ::kill(child, SIGKILL) != 0) continue; // it may not lead its group yet
    siginfo_t ended{}; // not reaped: the thread that started it waits for it
    while (::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT) != 0 && errno == EINTR) {
    }
  }
  std::error_code ignored;
  for (const std::string& path : everything.paths)
    std::filesystem::remove_all(path, ignored);
  std::signal(number, SIG_DFL);
  ::pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
  ::kill(::getpid(), number);
}

} // namespace

void leave_signals_to_next_program() {
  ::pthread_sigmask(SIG_UNBLOCK, &waited_for(), nullptr);
}

void clean_up_on_signals() {
  sigset_t& signals = waited_for();
  bool any = false;
  for (int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction now {};
    if (::sigaction(number, nullptr, &now) != 0 || now.sa_handler == SIG_IGN) continue;
    ::sigaddset(&signals, number);
    any = true;
  }
  if (!any) return;
  registry();
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr); // inherited by all threads: only the waiting thread receives them
  std::thread(wait_and_clean_up, signals).detach();
}

namespace interruption {

pid_t fork_child() {
  const std::lock_guard guard(registry().mutex);
  const pid_t child = ::fork();
  if (child > 0) registry().children.push_back(child);
  return child;
}

void child_ended(pid_t child) {
  const std::lock_guard guard(registry().mutex);
  std::erase(registry().children, child);
}

bool make_folder(std::string& name_template) {
  const std::lock_guard guard(registry().mutex);
  if (::mkdtemp(name_template.data()) == nullptr) return false;
  registry().paths.push_back(name_template);
  return true;
}

int make_file(std::string& path, mode_t mode) {
  const std::lock_guard guard(registry().mutex);
  for (int attempt = 0; attempt < 100; ++attempt) {
    uint32_t number = 0;
    if (::getentropy(&number, sizeof number) != 0) return -1;
    const std::string candidate = path + "." + std::to_string(number);
    const int descriptor = ::open(candidate.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    if (descriptor < 0 && errno == EEXIST) continue;
    if (descriptor < 0) return -1;
    path = candidate;
    registry().paths.push_back(path);
    return descriptor;
  }
  return -1;
}

void remove_folder(const std::string& folder) {
  const std::lock_guard guard(registry().mutex);
  std::error_code ignored; // an error is ignored: leftovers in the temporary directory are harmless
  std::filesystem::remove_all(folder, ignored);
  std::erase(registry().paths, folder);
}

void file_finished(const std::string& file) {
  const std::lock_guard guard(registry().mutex);
  std::erase(registry().paths, file);
}

} // namespace interruption

} // namespace ptxrewrite
