#include "cuda/context/operation_queue.h"

#include "cuda/context/log.h"
#include "emulator/memory/host_program.h"

#include <chrono>
#include <csignal>
#include <exception>
#include <pthread.h>
#include <utility>

namespace ptxrewrite::cuda {
namespace {

thread_local bool inside = false;

// The process has begun to exit: no kernel is started any more while its static objects are destroyed, except by a
// thread that waits for it.
std::atomic<bool> is_ending = false;

Code execute(const Action& action) {
  inside = true;
  Code code = Code::unknown;
  try {
    code = action();
  } catch (const std::exception& error) {
    log_text(LogLevel::error, error.what());
    code = Code::out_of_memory;
  }
  inside = false;
  return code;
}

} // namespace

bool OperationQueue::is_inside() {
  return inside;
}

// The program's signals are for its own threads. The thread ends with the process.
void OperationQueue::start_thread() {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread([this] { work(); }).detach();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  has_thread_ = true;
}

uint64_t OperationQueue::submit(Action action) {
  bool wakes = false;
  uint64_t number = 0;
  {
    std::lock_guard lock(mutex_);
    waiting_.push_back({std::move(action), std::this_thread::get_id()});
    number = submitted_.load(std::memory_order_relaxed) + 1;
    submitted_.store(number, std::memory_order_release);
    if (!has_thread_) start_thread();
    wakes = std::exchange(thread_sleeps_, false);
  }
  if (wakes) has_work_.notify_one();
  return number;
}

// Called with the lock held and something waiting; other threads may submit meanwhile.
void OperationQueue::execute_next(std::unique_lock<std::mutex>& lock) {
  Operation operation = std::move(waiting_.front());
  waiting_.pop_front();
  is_executing_ = true;
  executed_submitter_ = operation.submitter;
  lock.unlock();
  const Code code = execute(operation.action);
  operation.action = {}; // may own memory
  lock.lock();
  is_executing_ = false;
  if (code != Code::success && error_ == Code::success) error_ = code;
  const uint64_t done = done_.load(std::memory_order_relaxed) + 1;
  done_.store(done, std::memory_order_release);
  if (!awaited_.empty() && *awaited_.begin() <= done) is_finished_.notify_all();
}

// Most programs wait for a launch soon, and then execute it themselves, without a switch of threads: the thread takes
// only what has been waiting from one look to the next.
void OperationQueue::work() {
  using namespace std::chrono_literals;
  constexpr auto between_looks = 1ms;
  constexpr int patience = 100;
  std::unique_lock lock(mutex_);
  uint64_t seen = 0; // the operation that was waiting at the last look
  for (int idle_looks = 0;;) {
    const bool has_work = !waiting_.empty() && !is_executing_;
    const uint64_t next = done_.load(std::memory_order_relaxed) + 1;
    if (has_work && seen == next) {
      while (!waiting_.empty() && !is_executing_ && !is_ending)
        execute_next(lock);
      idle_looks = 0;
    }
    seen = has_work ? next : 0;
    idle_looks = has_work ? 0 : idle_looks + 1;
    if (idle_looks < patience) {
      has_work_.wait_for(lock, between_looks);
      continue;
    }
    thread_sleeps_ = true;
    has_work_.wait(lock, [&] { return !thread_sleeps_; });
    idle_looks = 0;
  }
}

void OperationQueue::wait(uint64_t operation) {
  if (is_done(operation)) return;
  std::unique_lock lock(mutex_);
  while (!is_done(operation)) {
    if (!is_executing_) {
      execute_next(lock);
      continue;
    }
    const auto awaited = awaited_.insert(operation);
    is_finished_.wait(lock, [&] { return is_done(operation) || !is_executing_; });
    awaited_.erase(awaited);
  }
  // Operations behind this one, or another thread that waits for them.
  if (waiting_.empty() || is_executing_) return;
  is_finished_.notify_all();
  if (std::exchange(thread_sleeps_, false)) has_work_.notify_one();
}

bool OperationQueue::finish_own() {
  is_ending = true;
  if (inside) return false; // a host function ends the program
  const std::thread::id self = std::this_thread::get_id();
  uint64_t last = 0;
  {
    std::lock_guard lock(mutex_);
    if (is_executing_ && executed_submitter_ != self) return false;
    for (const Operation& operation : waiting_)
      if (operation.submitter != self) return false;
    last = submitted_.load(std::memory_order_relaxed);
  }
  emulator::program_ends();
  wait(last);
  return true;
}

Code OperationQueue::take_error() {
  if (error_ == Code::success) return Code::success;
  std::lock_guard lock(mutex_);
  return error_.exchange(Code::success);
}

} // namespace ptxrewrite::cuda
