// Operations of streams that the program has submitted: executed in that order, one at a time, on a thread of their
// own, or on one that waits for them. CUDA allows this for any streams (programming guide, Concurrent Kernel Execution:
// may, not must), as with CUDA_DEVICE_MAX_CONNECTIONS=1.
#pragma once

#include "cuda/context/graph.h"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <set>
#include <thread>

namespace ptxrewrite::cuda {

class OperationQueue {
public:
  // Returns the operation's number, counted from 1.
  uint64_t submit(Action action);
  // Number of the last operation; 0 before the first.
  uint64_t last() const { return submitted_.load(std::memory_order_acquire); }
  bool is_done(uint64_t operation) const { return done_.load(std::memory_order_acquire) >= operation; }
  bool is_idle() const { return is_done(last()); }
  // Returns when the operation, and so all before it, are done. Executes operations if no other thread does.
  void wait(uint64_t operation);
  // Like wait() for all; returns false at once if there are operations that another thread submitted.
  bool finish_own();
  // The first error of an operation since the last call, of those that leave the context usable.
  Code take_error();
  // Whether the calling thread is executing an operation.
  static bool is_inside();

private:
  struct Operation {
    Action action;
    std::thread::id submitter;
  };
  void start_thread();
  void work();
  void execute_next(std::unique_lock<std::mutex>& lock);

  std::mutex mutex_;
  std::condition_variable has_work_, is_finished_;
  std::deque<Operation> waiting_;
  bool is_executing_ = false;
  std::thread::id executed_submitter_;
  bool has_thread_ = false;
  bool thread_sleeps_ = false;
  std::multiset<uint64_t> awaited_;         // by sleeping threads
  std::atomic<Code> error_ = Code::success; // written with the lock held
  std::atomic<uint64_t> submitted_ = 0, done_ = 0;
};

} // namespace ptxrewrite::cuda
