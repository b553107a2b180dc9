#include "cuda/context/context.h"

#include "cuda/context/log.h"
#include "emulator/core/emulator.h"
#include "emulator/memory/host_program.h"
#include "grammar/reader.h"
#include "ir/machine/registers/registers.h"

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

namespace ptxrewrite::cuda {
namespace {

// The process that created the context: a forked child does not write a report.
pid_t owner = 0;

constexpr int heap_limit = 2;
// Limits that programs see before they set any.
const std::map<int, uint64_t> default_limits = {
    {0, 1024},              // stack per thread
    {1, uint64_t(1) << 20}, // printf buffer
    {heap_limit, emulator::default_heap_bytes},
    {3, 2},    // nesting depth and
    {4, 2048}, // pending launches of kernels that launch kernels
    {5, 64},   // L2 fetch granularity in bytes
    {6, 0},    // L2 bytes set aside
};

// A process that was forked from one with an initialised context, whose memory it only has a copy of.
std::atomic<bool> is_forked = false;

// Another thread may have locked the context when the process forked.
void after_fork() {
  Context& context = Context::get();
  context.replace_mutex();
  is_forked = is_forked || context.is_initialised();
}

void at_exit(int status, void*) {
  if (getpid() == owner) Context::get().report(status);
}

// Tables that readers and decoders build on first use are destroyed at exit before handlers that were registered
// earlier run. Built before at_exit() is registered, they live while it waits for another thread that uses them.
void build_tables() {
  Diagnostics diagnostics;
  const auto module = grammar::read_module(
      SourceFile("", ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k() { ret; }\n"), diagnostics);
  emulator::DeviceMemory memory;
  if (const auto program = emulator::Program::load(*module, memory)) (void)(*program)->check_supported("k");
  (void)ir::register_need(*module->functions.front(), 70);
}

} // namespace

Context& Context::get() {
  static Context* const context = [] {
    auto* made = new Context;
    owner = getpid();
    build_tables();
    on_exit(at_exit, nullptr);
    pthread_atfork(nullptr, nullptr, after_fork);
    return made;
  }();
  if (is_forked) [[unlikely]] {
    context->fault_ = context->seen_fault_ = Code::not_initialised;
    log_once(LogLevel::warn, "a process was forked after its first CUDA call: calls in the child fail, as on a GPU");
  }
  return *context;
}

std::vector<void*>& Context::current() {
  static thread_local std::vector<void*> pushed;
  return pushed;
}

Context::Context()
    : settings_(settings_from_environment()), hooks_(make_launch_hooks(settings_)),
      memory_(settings_.memory ? settings_.memory : emulator::default_memory_limit()), limits_(default_limits) {
  set_log_level(settings_.log_level);
  emulator::let_program_run_beside_kernels();
  reserve_addresses();
}

// Keeps the host from mapping memory at device addresses or in the windows of generic addressing.
void Context::reserve_addresses() {
  const auto reserve = [](uint64_t begin, uint64_t bytes) {
    void* wanted = reinterpret_cast<void*>(begin);
    void* got =
        mmap(wanted, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (got != MAP_FAILED && got != wanted) munmap(got, bytes); // an old kernel that ignores the flag
    return got == wanted;
  };
  addresses_are_reserved_ = reserve(emulator::shared_window, emulator::texture_handle_window - emulator::shared_window +
                                                                 emulator::window_size) &&
                            reserve(emulator::global_base, memory_.budget().limit());
  if (!addresses_are_reserved_) log(LogLevel::info, "the host has mapped something at addresses that the device uses");
}

std::unique_ptr<ir::Module> Context::replacement_of(const ir::Module& original) {
  for (const auto& hook : hooks_) {
    try {
      if (std::unique_ptr<ir::Module> made = hook->replacement(original)) return made;
    } catch (const std::exception& error) {
      log(LogLevel::warn, "{} stays as it is: {}", original.source.name(), error.what());
    }
  }
  return nullptr;
}

Module& Context::add_module(std::string label, std::span<const std::byte> image) {
  return *modules_.emplace_back(std::make_unique<Module>(*this, std::move(label), image));
}

Module& Context::add_module(std::string label, std::string ptx) {
  return *modules_.emplace_back(std::make_unique<Module>(*this, std::move(label), std::move(ptx)));
}

void Context::remove_module(Module& module) {
  (void)module; // its statistics are still reported, and pointers into its variables may be in use
}

Code Context::set_limit(int number, uint64_t value) {
  if (!limits_.contains(number)) return Code::unsupported_limit;
  limits_[number] = value;
  if (number == heap_limit) memory_.set_heap_bytes(value);
  return Code::success;
}

Code Context::limit(int number, uint64_t& value) const {
  auto found = limits_.find(number);
  if (found == limits_.end()) return Code::unsupported_limit;
  value = found->second;
  return Code::success;
}

uint64_t Context::add_texture(const emulator::TextureBinding& binding) {
  const uint64_t handle = emulator::texture_handle_window + 16 * next_texture_++;
  textures_[handle] = binding;
  return handle;
}

Code Context::remove_texture(uint64_t handle) {
  return textures_.erase(handle) ? Code::success : Code::invalid_value;
}

Context::Lock Context::lock_idle() {
  // Other threads may submit operations as soon as one has waited for all.
  constexpr int patience = 16;
  for (int i = 0; !is_forked; ++i) {
    operations_.wait(operations_.last());
    Lock lock(mutex_);
    if (operations_.is_idle()) return lock;
    if (i < patience) continue;
    operations_.wait(operations_.last());
    return lock;
  }
  return lock();
}

Code Context::see_errors() {
  if (is_forked) return fault_;
  const Code fault = fault_;
  if (fault == Code::success) return operations_.take_error();
  seen_fault_ = fault;
  flush_printed();
  return fault;
}

void Context::flush_printed() {
  if (is_forked || !has_printed_) return;
  std::string printed;
  {
    std::lock_guard lock(printed_mutex_);
    printed.swap(printed_);
    has_printed_ = false;
  }
  std::fwrite(printed.data(), 1, printed.size(), stdout);
}

void Context::reset() {
  flush_printed();
  fault_ = seen_fault_ = Code::success;
  // Modules are kept: their variables return to their initial values only if the program reloads them.
  for (const auto& [address, info] : std::map(allocations_))
    if (info.kind != MemoryKind::host) (void)release(address);
}

} // namespace ptxrewrite::cuda
