// Launches kernels on the emulator and maps their faults to CUDA error codes.
#include "cuda/context/context.h"
#include "cuda/context/log.h"

#include "ir/machine/figures/occupancy.h"

#include <chrono>

namespace ptxrewrite::cuda {
namespace {

// Workspace of cooperative groups for a grid: a size and a barrier, with space to spare.
constexpr uint64_t workspace_bytes = 4096;

} // namespace

Code code_of(const emulator::Failure& failure) {
  switch (failure.kind) {
  case emulator::FailureKind::deadlock:
  case emulator::FailureKind::out_of_fuel:
    return Code::launch_timeout;
  case emulator::FailureKind::program_fault:
  case emulator::FailureKind::not_emulated:
    break;
  }
  switch (failure.fault) {
  case emulator::FaultKind::launch_failure:
  case emulator::FaultKind::trap:
    return Code::launch_failure;
  case emulator::FaultKind::illegal_address:
    return Code::illegal_address;
  case emulator::FaultKind::misaligned_address:
    return Code::misaligned_address;
  case emulator::FaultKind::assertion:
    return Code::assertion;
  }
  return Code::launch_failure;
}

uint32_t Context::resident_blocks(const Kernel& kernel, uint32_t threads, uint64_t dynamic_shared) const {
  if (threads == 0) return 0;
  const uint64_t shared = kernel.static_shared + dynamic_shared;
  if (shared > UINT32_MAX) return 0;
  return ir::occupancy(*settings_.machine, {threads, kernel.registers(), static_cast<uint32_t>(shared)}).blocks;
}

Code Context::active_clusters(const Kernel& kernel, const LaunchShape& shape, int* clusters) const {
  const Result<emulator::ClusterShape> clustered =
      emulator::cluster_shape(kernel.module->ir(), *kernel.function, shape.grid, shape.cluster);
  if (!clustered) return Code::invalid_cluster_size;
  const uint64_t size = clustered->cluster ? clustered->cluster->count() : 1;
  const uint64_t blocks =
      uint64_t(resident_blocks(kernel, static_cast<uint32_t>(shape.block.count()), shape.dynamic_shared)) *
      settings_.machine->sms;
  *clusters = static_cast<int>(blocks / size);
  return Code::success;
}

Code Context::allow_dynamic_shared(Kernel& kernel, int bytes) const {
  const uint64_t most = settings_.machine->occupancy.max_shared_bytes_per_block;
  if (bytes < 0 || kernel.static_shared + static_cast<uint64_t>(bytes) > most) return Code::invalid_value;
  kernel.dynamic_shared_limit = static_cast<uint64_t>(bytes);
  return Code::success;
}

Code Context::check_launch(const Kernel& kernel, const LaunchShape& shape) {
  if (Status status = emulator::check_dimensions(shape.grid, shape.block); !status) {
    log(LogLevel::warn, "launch of {}: {}", kernel.name, status.error().message);
    return Code::invalid_configuration;
  }
  if (kernel.declares_clusters || shape.cluster) {
    const Result<emulator::ClusterShape> clusters =
        emulator::cluster_shape(kernel.module->ir(), *kernel.function, shape.grid, shape.cluster);
    if (!clusters) {
      log(LogLevel::warn, "launch of {}: {}", kernel.name, clusters.error().message);
      return Code::invalid_cluster_size;
    }
  }
  const uint64_t threads = shape.block.count();
  if (threads > kernel.most_threads) {
    log(LogLevel::warn, "launch of {}: {} threads in a block, which may have {}", kernel.name, threads,
        kernel.most_threads);
    return Code::invalid_value;
  }
  if (shape.dynamic_shared > kernel.dynamic_shared_limit) {
    log(LogLevel::warn,
        "launch of {}: {} bytes of dynamic shared memory, where {} are allowed "
        "(cudaFuncAttributeMaxDynamicSharedMemorySize)",
        kernel.name, shape.dynamic_shared, kernel.dynamic_shared_limit);
    return Code::invalid_value;
  }
  if (shape.cooperative) {
    const uint64_t resident = uint64_t(resident_blocks(kernel, static_cast<uint32_t>(threads), shape.dynamic_shared)) *
                              settings_.machine->sms;
    if (shape.grid.count() > resident) {
      log(LogLevel::warn, "cooperative launch of {}: {} blocks, of which {} are resident on the {}", kernel.name,
          shape.grid.count(), resident, settings_.machine->name);
      return Code::cooperative_launch_too_large;
    }
  }
  return Code::success;
}

Code Context::grid_workspace(uint64_t& address) {
  if (!workspace_) {
    Result<uint64_t> made = memory_.allocate(workspace_bytes, "workspace of cooperative launches");
    if (!made) return Code::out_of_memory;
    workspace_ = *made;
  }
  address = workspace_;
  const uint32_t head[2] = {8, 0}; // bytes, barrier
  return memory_.write(address, std::as_bytes(std::span(head))) ? Code::success : Code::unknown;
}

void Context::show_launch_failure(const LaunchCall& call, const emulator::LaunchResult& result) {
  const SourceFile& source = call.code->source;
  for (const emulator::Finding& finding : result.findings)
    show(finding.to_diagnostic(source), source);
  if (result.failure) {
    Diagnostic diagnostic = result.failure->to_diagnostic();
    diagnostic.notes.push_back(fmt::format("in launch {} of this kernel", call.kernel.statistics.launches));
    show(diagnostic, source);
  }
}

void Context::run_hooks_before(LaunchCall& call) {
  for (const auto& hook : hooks_) {
    LaunchCall unchanged = call;
    try {
      hook->before(call);
    } catch (const std::exception& error) {
      log(LogLevel::warn, "launch of {}: {}", call.kernel.name, error.what());
      call.request = std::move(unchanged.request);
      call.program = unchanged.program;
      call.code = unchanged.code;
      call.rewritten = unchanged.rewritten;
      call.reason = error.what();
    }
  }
}

void Context::run_hooks_after(const LaunchCall& call, const emulator::LaunchResult& result) {
  for (const auto& hook : hooks_) {
    try {
      hook->after(call, result);
    } catch (const std::exception& error) {
      log(LogLevel::warn, "launch of {}: {}", call.kernel.name, error.what());
    }
  }
}

std::optional<double> Context::modelled_seconds() const {
  for (const auto& hook : hooks_)
    if (std::optional<double> seconds = hook->modelled_seconds()) return seconds;
  return std::nullopt;
}

Result<emulator::LaunchResult> Context::carry_out(LaunchCall& call) {
  const auto launch = [&] {
    call.program->set_textures(textures_);
    const auto start = std::chrono::steady_clock::now();
    Result<emulator::LaunchResult> result = call.program->launch(call.request);
    call.kernel.statistics.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return result;
  };
  if (hooks_.empty()) return launch();
  const emulator::LaunchRequest asked_for = call.request;
  run_hooks_before(call);
  Result<emulator::LaunchResult> result = launch();
  if (!result && call.rewritten) { // refused before execution
    call.reason = result.error().message;
    call.rewritten = false;
    call.request = asked_for;
    call.program = &call.kernel.module->program();
    call.code = &call.kernel.module->ir();
    result = launch();
  }
  if (result) run_hooks_after(call, *result);
  return result;
}

Code Context::launch(Kernel& kernel, const LaunchShape& shape, std::span<const std::byte> arguments) {
  if (fault_ != Code::success) return Code::success; // of an earlier node of the same graph
  if (const Code code = check_launch(kernel, shape); code != Code::success) return code;
  emulator::LaunchRequest fresh;
  fresh.kernel = std::move(kernel_buffer_);
  fresh.parameters = std::move(parameter_buffer_);
  LaunchCall call{
      *this, kernel, std::move(fresh), &kernel.module->program(), &kernel.module->ir(), shape.cooperative, ++launches_};
  emulator::LaunchRequest& request = call.request;
  request.kernel = kernel.name;
  request.grid = shape.grid;
  request.block = shape.block;
  if (shape.cluster) request.cluster = shape.cluster;
  request.shared_bytes = static_cast<uint32_t>(shape.dynamic_shared);
  request.parameters.assign(arguments.begin(), arguments.end());
  request.host_threads = settings_.host_threads;
  request.check = settings_.check;
  if (settings_.fuel) request.fuel = settings_.fuel;
  if (shape.cooperative)
    if (const Code code = grid_workspace(request.grid_workspace); code != Code::success) return code;
  log(LogLevel::debug, "launch of {}: grid ({}, {}, {}), block ({}, {}, {})", kernel.name, shape.grid.x, shape.grid.y,
      shape.grid.z, shape.block.x, shape.block.y, shape.block.z);
  ++kernel.statistics.launches;
  Result<emulator::LaunchResult> result = carry_out(call);
  if (!result) {
    show(result.error().to_diagnostic(), kernel.module->ir().source);
    return Code::not_supported;
  }
  kernel.statistics.blocks += result->counters.blocks;
  kernel.statistics.warp_instructions += result->counters.warp_instructions;
  kernel.statistics.thread_instructions += result->counters.thread_instructions;
  kernel.statistics.findings += result->findings.size();
  if (!result->printed.empty()) {
    std::lock_guard lock(printed_mutex_);
    printed_ += result->printed;
    has_printed_ = true;
  }
  show_launch_failure(call, *result);
  if (result->failure) fault_ = code_of(*result->failure);
  kernel_buffer_ = std::move(request.kernel);
  parameter_buffer_ = std::move(request.parameters);
  return Code::success;
}

} // namespace ptxrewrite::cuda
