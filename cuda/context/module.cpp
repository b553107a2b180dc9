#include "cuda/context/module.h"

#include "cuda/context/context.h"
#include "cuda/context/image.h"
#include "cuda/context/log.h"
#include "grammar/reader.h"
#include "ir/machine/figures/target.h"
#include "ir/machine/registers/registers.h"

#include "support/sizes.h"

#include <algorithm>

namespace ptxrewrite::cuda {
namespace {

// Shared memory of a block without opt-in (cudaFuncAttributeMaxDynamicSharedMemorySize).
constexpr uint64_t default_shared_limit = 48 << 10;

// The number in .maxntid or .reqntid; without these, the limit for every block.
uint32_t most_threads_of(const ir::Module& module, const ir::Function& function) {
  uint32_t most = 1024;
  for (const ir::FunctionDirective& directive : function.directives) {
    const std::string_view name = module.text(directive.name);
    if ((name != ".maxntid" && name != ".reqntid") || directive.count == 0) continue;
    uint64_t threads = 1;
    for (unsigned i = 0; i < directive.count && i < 3; ++i)
      threads = saturating_multiply(threads, directive.numbers[i]);
    most = static_cast<uint32_t>(std::min<uint64_t>(most, threads));
  }
  return most;
}

// .reqnctapercluster, .explicitcluster, .maxclusterrank, .blocksareclusters (PTX ISA 11.7 and 11.8).
bool declares_clusters(const ir::Module& module, const ir::Function& function) {
  return std::ranges::any_of(function.directives, [&](const ir::FunctionDirective& directive) {
    return module.text(directive.name).find("cluster") != std::string_view::npos;
  });
}

} // namespace

uint32_t Kernel::registers() const {
  std::call_once(has_registers_, [&] {
    const ir::Machine& machine = *module->context().settings().machine;
    registers_ = std::min(ir::register_need(*function, machine.compute_capability).registers,
                          machine.occupancy.max_registers_per_thread);
  });
  return registers_;
}

Code Module::choose_ptx() {
  ImageText text = ptx_of_image(image_, context_.settings().machine->compute_capability);
  if (text.code != Code::success) complain(text.problem);
  ptx_ = std::move(text.ptx);
  return text.code;
}

void Module::complain(const std::string& text) {
  complaints_ += text + '\n';
  log(LogLevel::error, "{}: {}", label_, text);
}

Code Module::read() {
  if (ptx_.empty())
    if (const Code code = choose_ptx(); code != Code::success) return code;
  SourceFile source(label_, std::move(ptx_));
  Diagnostics diagnostics;
  original_ = grammar::read_module(source, diagnostics);
  for (const Diagnostic& diagnostic : diagnostics.list()) {
    if (diagnostic.severity == Severity::error || is_logged(LogLevel::info)) show(diagnostic, source);
    complaints_ += render(diagnostic, source, false);
  }
  if (!original_) return Code::invalid_ptx;
  replacement_ = context_.replacement_of(*original_);
  Code code = place();
  if (code != Code::success && replacement_) {
    replacement_.reset();
    code = place();
  }
  if (code == Code::success) log(LogLevel::info, "{}: {} functions", label_, ir().functions.size());
  return code;
}

// Allocates the variables of the module that runs.
Code Module::place() {
  Result<std::unique_ptr<emulator::Program>> program = emulator::Program::load(ir(), context_.memory());
  if (!program) {
    show(program.error().to_diagnostic(), ir().source);
    return Code::out_of_memory;
  }
  program_ = *std::move(program);
  return Code::success;
}

Code Module::load() {
  if (!loaded_) {
    loaded_ = true;
    code_ = read();
  }
  return code_;
}

Kernel* Module::describe(const ir::Function& function) {
  auto kernel = std::make_unique<Kernel>();
  kernel->module = this;
  kernel->name = ir().text(function.name);
  kernel->function = &function;
  kernel->signature = launch::signature_of(function);
  const ir::Machine& machine = *context_.settings().machine;
  if (Result<uint64_t> shared = program_->static_shared(kernel->name)) kernel->static_shared = *shared;
  kernel->dynamic_shared_limit = default_shared_limit - std::min(default_shared_limit, kernel->static_shared);
  kernel->declares_clusters = declares_clusters(ir(), function);
  kernel->ptx_target = ir::target_capability(ir(), machine.compute_capability);
  kernel->most_threads = std::min(machine.occupancy.max_threads_per_block, most_threads_of(ir(), function));
  Kernel* made = kernel.get();
  kernels_.emplace(kernel->name, std::move(kernel));
  return made;
}

Kernel* Module::find_kernel(std::string_view name) {
  if (load() != Code::success) return nullptr;
  if (auto known = kernels_.find(name); known != kernels_.end()) return known->second.get();
  const ir::Function* function = launch::find_kernel(ir(), name);
  return function ? describe(*function) : nullptr;
}

std::vector<Kernel*> Module::all_kernels() {
  std::vector<Kernel*> all;
  for (const auto& [name, kernel] : kernels_)
    all.push_back(kernel.get());
  return all;
}

std::vector<Kernel*> Module::every_kernel() {
  std::vector<Kernel*> all;
  if (load() != Code::success) return all;
  for (const auto& function : original_->functions)
    if (function->is_entry && function->has_body) all.push_back(find_kernel(original_->text(function->name)));
  return all;
}

Symbol Module::find_symbol(std::string_view name) {
  if (load() != Code::success) return {};
  return {program_->variable_address(name), program_->variable(name)};
}

} // namespace ptxrewrite::cuda
