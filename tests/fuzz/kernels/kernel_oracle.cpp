#include "tests/fuzz/kernels/kernel_oracle.h"

#include "tests/fuzz/kernels/kernel_operations.h"
#include "tests/fuzz/kernels/operations/operation_rows.h"
#include "tests/fuzz/kernels/oracle_memory.h"

#include <algorithm>
#include <bit>

namespace ptxrewrite::fuzz {

namespace {

using Threads = std::vector<uint32_t>; // of the block, ascending

constexpr uint64_t step_limit = 20'000'000;
constexpr unsigned warp_size = 32;

// Addresses of objects and buffers: disjoint, and those of shared memory within 32 bits.
uint64_t object_address(size_t index) {
  return 0x1000000 + 0x100000 * index;
}
uint64_t buffer_address(size_t index) {
  return 0x7f0000000000 + 0x100000000 * index;
}

class Machine {
public:
  Machine(const Kernel& kernel, const Shape& shape) : kernel_(kernel), shape_(shape), threads_(shape.block_threads()) {
    values_.resize(kernel.variables.size() * threads_);
    defined_.resize(values_.size());
    place_memory();
  }

  OracleResult run() {
    for (block_[2] = 0; block_[2] < shape_.grid[2]; ++block_[2])
      for (block_[1] = 0; block_[1] < shape_.grid[1]; ++block_[1])
        for (block_[0] = 0; block_[0] < shape_.grid[0]; ++block_[0])
          run_block();
    OracleResult result;
    for (size_t i = 0; i < kernel_.buffers.size(); ++i)
      result.buffers.push_back(memory_.contents(buffer_address(i)));
    result.problem = !problem_.empty() ? problem_ : memory_.problem();
    result.steps = steps_;
    result.wrapped = wrapped_;
    return result;
  }

private:
  void place_memory() {
    using Sharing = OracleMemory::Sharing;
    std::vector<uint64_t> addresses;
    for (size_t i = 0; i < kernel_.buffers.size(); ++i) {
      addresses.push_back(buffer_address(i));
      memory_.add_region(addresses.back(), kernel_.buffer_contents(i, shape_), Sharing::grid, true);
    }
    const std::vector<uint8_t> parameters = kernel_.parameter_block(shape_, addresses);
    size_t at = 0;
    for (size_t i = 0; i < kernel_.objects.size(); ++i) {
      const MemoryObject& object = kernel_.objects[i];
      std::vector<uint8_t> contents = object.initial;
      if (object.space == Space::parameter) {
        at = (at + object.alignment - 1) / object.alignment * object.alignment;
        contents.assign(parameters.begin() + static_cast<std::ptrdiff_t>(at),
                        parameters.begin() + static_cast<std::ptrdiff_t>(at + object.size));
        at += object.size;
      }
      contents.resize(object.size);
      const Sharing sharing = object.space == Space::local                                          ? Sharing::thread
                              : object.space == Space::constant || object.space == Space::parameter ? Sharing::constant
                              : object.space == Space::global                                       ? Sharing::grid
                                                                                                    : Sharing::block;
      const bool has_contents = sharing == Sharing::constant || sharing == Sharing::grid;
      memory_.add_region(object_address(i), std::move(contents), sharing, has_contents,
                         sharing == Sharing::thread ? threads_ : 1);
    }
  }

  void run_block() {
    memory_.begin_block();
    std::fill(defined_.begin(), defined_.end(), false);
    exited_.assign(threads_, false);
    Threads all(threads_);
    for (uint32_t i = 0; i < threads_; ++i)
      all[i] = i;
    run(kernel_.body, all);
  }

  void complain(const std::string& what) {
    if (problem_.empty()) problem_ = what;
  }
  uint32_t grid_number(uint32_t thread) const {
    return ((block_[2] * shape_.grid[1] + block_[1]) * shape_.grid[0] + block_[0]) * threads_ + thread;
  }
  size_t place(uint32_t variable, uint32_t thread) const { return size_t(variable) * threads_ + thread; }

  uint64_t read(uint32_t variable, uint32_t thread) {
    if (!defined_[place(variable, thread)]) complain("register " + std::to_string(variable) + " has no value");
    return values_[place(variable, thread)];
  }
  uint64_t read(const Operand& operand, uint32_t thread) {
    const uint64_t value = operand.is_variable ? read(operand.variable, thread) : operand.bits;
    return operand.negated ? value ^ 1 : value;
  }
  void write(uint32_t variable, uint32_t thread, uint64_t value) {
    values_[place(variable, thread)] = cut(value, width_of(kernel_.variables[variable].kind));
    defined_[place(variable, thread)] = true;
  }
  bool passes(const Guard& guard, uint32_t thread) {
    return !guard.present || (read(guard.variable, thread) != 0) != guard.negated;
  }
  Threads passing(const Guard& guard, const Threads& threads) {
    Threads result;
    for (uint32_t thread : threads)
      if (passes(guard, thread)) result.push_back(thread);
    return result;
  }
  static Threads without(const Threads& all, const Threads& some) {
    Threads result;
    std::set_difference(all.begin(), all.end(), some.begin(), some.end(), std::back_inserter(result));
    return result;
  }
  static void join(Threads& threads, const Threads& more) {
    threads.insert(threads.end(), more.begin(), more.end());
    std::sort(threads.begin(), threads.end());
  }

  // Threads that leave the list (break, continue, ret, exit) are removed from `active`.
  void run(const std::vector<Statement>& statements, Threads& active) {
    for (const Statement& statement : statements) {
      if (active.empty() || !problem_.empty()) return;
      steps_ += active.size();
      if (steps_ > step_limit) return complain("too many steps");
      run(statement, active);
    }
  }

  void run(const Statement& statement, Threads& active) {
    switch (statement.kind) {
    case StatementKind::operation:
      return each(statement, active, [&](uint32_t thread) { operate(statement, thread); });
    case StatementKind::special_register:
      return each(statement, active,
                  [&](uint32_t thread) { write(statement.results[0], thread, special(statement.special, thread)); });
    case StatementKind::address_of:
      return each(statement, active, [&](uint32_t thread) {
        write(statement.results[0], thread, object_address(static_cast<size_t>(statement.memory.object)));
      });
    case StatementKind::load_or_store:
      return each(statement, active, [&](uint32_t thread) { access(statement, thread); });
    case StatementKind::atomic:
      return each(statement, active, [&](uint32_t thread) { do_atomic(statement, thread); });
    case StatementKind::warp:
      return run_warps(statement, active);
    case StatementKind::barrier:
      return run_barrier(statement, active);
    case StatementKind::no_effect:
      return;
    case StatementKind::branch:
      return run_branch(statement, active);
    case StatementKind::loop:
      return run_loop(statement, active);
    case StatementKind::choose:
      return run_choice(statement, active);
    case StatementKind::break_loop:
      return leave_to(statement, active, loop_of(statement).broken);
    case StatementKind::continue_loop:
      return leave_to(statement, active, loop_of(statement).continued);
    case StatementKind::leave: {
      Threads left;
      leave_to(statement, active, left);
      if (calls_ == 0)
        for (uint32_t thread : left)
          exited_[thread] = true;
      return;
    }
    case StatementKind::call:
      return run_call(statement, active);
    case StatementKind::scope:
      return run(statement.bodies[0], active);
    }
  }

  template <class Action> void each(const Statement& statement, const Threads& active, Action&& action) {
    for (uint32_t thread : active)
      if (passes(statement.guard, thread)) action(thread);
  }

  void operate(const Statement& statement, uint32_t thread) {
    const Operation& operation = operations()[statement.operation];
    uint64_t in[6] = {}, out[4] = {};
    for (size_t i = 0; i < statement.sources.size(); ++i)
      in[i] = read(statement.sources[i], thread);
    if (operation.evaluate) operation.evaluate(in, out);
    if (operation.wraps && operation.wraps(in)) ++wrapped_;
    for (size_t i = 0; i < statement.results.size(); ++i)
      write(statement.results[i], thread, out[i]);
  }

  uint64_t special(SpecialRegister which, uint32_t thread) const {
    const auto number = static_cast<size_t>(which);
    const std::array<uint32_t, 3> tid = {thread % shape_.block[0], thread / shape_.block[0] % shape_.block[1],
                                         thread / shape_.block[0] / shape_.block[1]};
    const uint64_t lane = thread % warp_size;
    const uint64_t below = (uint64_t(1) << lane) - 1;
    switch (number / 3) {
    case 0:
      return tid[number % 3];
    case 1:
      return shape_.block[number % 3];
    case 2:
      return block_[number % 3];
    case 3:
      return shape_.grid[number % 3];
    default:
      break;
    }
    switch (which) {
    case SpecialRegister::laneid:
      return lane;
    case SpecialRegister::lanemask_eq:
      return below + 1;
    case SpecialRegister::lanemask_lt:
      return below;
    case SpecialRegister::lanemask_le:
      return 2 * below + 1;
    case SpecialRegister::lanemask_gt:
      return ~(2 * below + 1) & 0xffffffff;
    default:
      return ~below & 0xffffffff;
    }
  }

  uint64_t address(const MemoryAccess& access, uint32_t thread) {
    const uint64_t base =
        access.object >= 0 ? object_address(static_cast<size_t>(access.object)) : read(access.base, thread);
    return base + static_cast<uint64_t>(access.offset);
  }

  void access(const Statement& statement, uint32_t thread) {
    const MemoryAccess& where = statement.memory;
    const unsigned bytes = where.element_bits / 8;
    const uint64_t start = address(where, thread);
    const size_t count = where.is_store ? statement.sources.size() : statement.results.size();
    if (start % (bytes * count) != 0) complain("misaligned vector");
    for (size_t i = 0; i < count; ++i) {
      const uint64_t at = start + i * bytes;
      if (where.is_store) {
        memory_.store(at, bytes, read(statement.sources[i], thread), grid_number(thread), thread);
      } else {
        const uint64_t value = memory_.load(at, bytes, grid_number(thread), thread);
        write(statement.results[i], thread,
              where.is_signed ? static_cast<uint64_t>(sign_extend(value, where.element_bits)) : value);
      }
    }
  }

  static uint64_t new_value(AtomicFunction function, uint64_t old, uint64_t a, uint64_t b, unsigned bits) {
    const int64_t signed_old = sign_extend(old, bits), signed_a = sign_extend(a, bits);
    switch (function) {
    case AtomicFunction::add:
      return old + a;
    case AtomicFunction::min_signed:
      return signed_old < signed_a ? old : a;
    case AtomicFunction::max_signed:
      return signed_old > signed_a ? old : a;
    case AtomicFunction::min_unsigned:
      return std::min(old, a);
    case AtomicFunction::max_unsigned:
      return std::max(old, a);
    case AtomicFunction::and_:
      return old & a;
    case AtomicFunction::or_:
      return old | a;
    case AtomicFunction::xor_:
      return old ^ a;
    case AtomicFunction::increment:
      return old >= a ? 0 : old + 1;
    case AtomicFunction::decrement:
      return old == 0 || old > a ? a : old - 1;
    case AtomicFunction::exchange:
      return a;
    default:
      return old == a ? b : old;
    }
  }

  void do_atomic(const Statement& statement, uint32_t thread) {
    const unsigned bits = statement.memory.element_bits;
    const uint64_t at = address(statement.memory, thread);
    const uint64_t old = memory_.load(at, bits / 8, grid_number(thread), thread, true);
    const uint64_t a = read(statement.sources[0], thread);
    const uint64_t b = statement.sources.size() > 1 ? read(statement.sources[1], thread) : 0;
    memory_.store(at, bits / 8, cut(new_value(statement.atomic_function, old, a, b, bits), bits), grid_number(thread),
                  thread, true);
    if (!statement.results.empty()) write(statement.results[0], thread, old);
  }

  // Whole warps only: all threads that have not exited.
  void run_warps(const Statement& statement, const Threads& active) {
    for (size_t begin = 0; begin < active.size();) {
      const uint32_t warp = active[begin] / warp_size;
      Threads lanes;
      for (; begin < active.size() && active[begin] / warp_size == warp; ++begin)
        lanes.push_back(active[begin]);
      size_t alive = 0;
      for (uint32_t thread = warp * warp_size; thread < std::min((warp + 1) * warp_size, threads_); ++thread)
        alive += exited_[thread] ? 0 : 1;
      if (lanes.size() != alive) complain("warp function in divergent code");
      uint64_t mask = 0;
      for (uint32_t thread : lanes)
        mask |= uint64_t(1) << (thread % warp_size);
      for (uint32_t thread : lanes)
        if ((mask & ~read(statement.sources.back(), thread)) != 0) complain("a lane is missing in the member mask");
      run_warp(statement, lanes);
    }
  }

  void run_warp(const Statement& statement, const Threads& lanes) {
    if (statement.warp_function == WarpFunction::sync) return;
    std::vector<uint64_t> sources;
    for (uint32_t thread : lanes)
      sources.push_back(read(statement.sources[0], thread));
    for (size_t i = 0; i < lanes.size(); ++i) {
      bool flag = false;
      const uint64_t value = statement.warp_function <= WarpFunction::shfl_bfly
                                 ? shuffled(statement, lanes, sources, i, flag)
                                 : combined(statement.warp_function, lanes, sources, i, flag);
      write(statement.results[0], lanes[i], value);
      if (statement.results.size() > 1) write(statement.results[1], lanes[i], flag);
    }
  }

  uint64_t shuffled(const Statement& statement, const Threads& lanes, const std::vector<uint64_t>& sources, size_t own,
                    bool& in_range) {
    const auto lane = static_cast<int64_t>(lanes[own] % warp_size);
    const auto b = static_cast<int64_t>(read(statement.sources[1], lanes[own]) & 31);
    const uint64_t c = read(statement.sources[2], lanes[own]);
    const auto clamp = static_cast<int64_t>(c & 31), segment = static_cast<int64_t>(c >> 8 & 31);
    const int64_t last = (lane & segment) | (clamp & ~segment);
    const int64_t first = lane & segment;
    int64_t from = 0;
    switch (statement.warp_function) {
    case WarpFunction::shfl_up:
      from = lane - b;
      in_range = from >= last;
      break;
    case WarpFunction::shfl_down:
      from = lane + b;
      in_range = from <= last;
      break;
    case WarpFunction::shfl_bfly:
      from = lane ^ b;
      in_range = from <= last;
      break;
    default:
      from = first | (b & ~segment);
      in_range = from <= last;
      break;
    }
    if (!in_range) from = lane;
    for (size_t i = 0; i < lanes.size(); ++i)
      if (lanes[i] % warp_size == from) return sources[i];
    complain("shuffle from a lane that is not there");
    return 0;
  }

  static uint64_t combined(WarpFunction function, const Threads& lanes, const std::vector<uint64_t>& sources,
                           size_t own, bool& flag) {
    uint64_t equal = 0, set = 0, all = 0, sum = 0, bits_and = ~uint64_t(0), bits_or = 0, bits_xor = 0;
    int64_t least = INT32_MAX, most = INT32_MIN;
    for (size_t i = 0; i < lanes.size(); ++i) {
      const uint64_t bit = uint64_t(1) << (lanes[i] % warp_size);
      all |= bit;
      if (sources[i] == sources[own]) equal |= bit;
      if (sources[i] != 0) set |= bit;
      sum += sources[i];
      bits_and &= sources[i];
      bits_or |= sources[i];
      bits_xor ^= sources[i];
      least = std::min(least, sign_extend(sources[i], 32));
      most = std::max(most, sign_extend(sources[i], 32));
    }
    flag = equal == all;
    switch (function) {
    case WarpFunction::vote_all:
      return set == all;
    case WarpFunction::vote_any:
      return set != 0;
    case WarpFunction::vote_uni:
      return set == all || set == 0;
    case WarpFunction::ballot:
      return set;
    case WarpFunction::match_any:
      return equal;
    case WarpFunction::match_all:
      return equal == all ? all : 0;
    case WarpFunction::redux_add:
      return sum;
    case WarpFunction::redux_min_s32:
      return static_cast<uint64_t>(least);
    case WarpFunction::redux_max_s32:
      return static_cast<uint64_t>(most);
    case WarpFunction::redux_min_u32:
      return *std::min_element(sources.begin(), sources.end());
    case WarpFunction::redux_max_u32:
      return *std::max_element(sources.begin(), sources.end());
    case WarpFunction::redux_and:
      return bits_and;
    case WarpFunction::redux_or:
      return bits_or;
    default:
      return bits_xor;
    }
  }

  void run_barrier(const Statement& statement, const Threads& active) {
    if (active.size() != threads_) complain("barrier in divergent code");
    memory_.barrier();
    if (statement.results.empty()) return;
    uint64_t holding = 0;
    for (uint32_t thread : active)
      holding += read(statement.sources[1], thread);
    const uint64_t result = statement.barrier_function == BarrierFunction::count ? holding
                            : statement.barrier_function == BarrierFunction::all ? holding == active.size()
                                                                                 : holding != 0;
    for (uint32_t thread : active)
      write(statement.results[0], thread, result);
  }

  void run_branch(const Statement& statement, Threads& active) {
    Threads taken = passing(statement.guard, active);
    Threads rest = without(active, taken);
    run(statement.bodies[0], taken);
    if (statement.bodies.size() > 1) run(statement.bodies[1], rest);
    active = std::move(taken);
    join(active, rest);
  }

  void run_choice(const Statement& statement, Threads& active) {
    Threads joined;
    for (size_t i = 0; i < statement.bodies.size(); ++i) {
      Threads taken;
      for (uint32_t thread : active)
        if (read(statement.sources[0], thread) == i) taken.push_back(thread);
      run(statement.bodies[i], taken);
      join(joined, taken);
    }
    active = std::move(joined);
  }

  void run_loop(const Statement& statement, Threads& active) {
    Threads running = active, finished;
    loops_.emplace_back();
    bool first = true;
    while (!running.empty() && problem_.empty()) {
      if (!first || !statement.bottom_tested) {
        run(statement.bodies[2], running);
        const Threads again = passing(statement.guard, running);
        join(finished, without(running, again));
        running = again;
      }
      first = false;
      run(statement.bodies[0], running);
      join(running, loops_.back().continued);
      join(finished, loops_.back().broken);
      loops_.back() = {};
      run(statement.bodies[1], running);
    }
    loops_.pop_back();
    active = std::move(finished);
  }

  void leave_to(const Statement& statement, Threads& active, Threads& where) {
    const Threads leaving = passing(statement.guard, active);
    active = without(active, leaving);
    join(where, leaving);
  }

  // Functions are not recursive: each has one set of registers.
  void run_call(const Statement& statement, const Threads& active) {
    const Function& callee = kernel_.functions[statement.callee];
    for (uint32_t thread : active)
      for (size_t i = 0; i < statement.sources.size(); ++i)
        write(callee.parameters[i], thread, read(statement.sources[i], thread));
    Threads inside = active;
    ++calls_;
    run(callee.body, inside);
    --calls_;
    for (uint32_t thread : active)
      write(statement.results[0], thread, read(callee.result, thread));
  }

  struct LoopExits {
    Threads broken, continued;
  };

  LoopExits& loop_of(const Statement& statement) { return loops_[loops_.size() - 1 - statement.outer_loops]; }

  const Kernel& kernel_;
  const Shape& shape_;
  uint32_t threads_;
  OracleMemory memory_;
  std::vector<uint64_t> values_;
  std::vector<bool> defined_;
  std::vector<bool> exited_;
  std::vector<LoopExits> loops_;
  std::array<uint32_t, 3> block_{};
  unsigned calls_ = 0;
  uint64_t steps_ = 0;
  uint64_t wrapped_ = 0;
  std::string problem_;
};

} // namespace

OracleResult run_oracle(const Kernel& kernel, const Shape& shape) {
  return Machine(kernel, shape).run();
}

} // namespace ptxrewrite::fuzz
