#include "emulator/generated/compiler.h"
#include <cstdio>
#include <cstdlib>

#include "emulator/generated/emitter.h"
#include "support/log.h"

#include <fmt/format.h>

#include <chrono>

namespace ptxrewrite::emulator::generated {
namespace {

// Promotes stack slots to SSA values, removes common subexpressions, hoists loop invariants.
constexpr const char* passes = "function(sroa,early-cse,simplifycfg,loop-mssa(licm),early-cse)";

std::string text_of(const Llvm& llvm, LLVMErrorRef error) {
  char* message = llvm.GetErrorMessage(error);
  std::string text = message;
  llvm.DisposeErrorMessage(message);
  return text;
}

} // namespace

CodeMemory::~CodeMemory() {
  if (!tracker_) return;
  Compiler& compiler = *Compiler::get();
  std::lock_guard lock(compiler.mutex_);
  if (LLVMErrorRef error = compiler.llvm_.OrcResourceTrackerRemove(tracker_)) (void)text_of(compiler.llvm_, error);
  compiler.llvm_.OrcReleaseResourceTracker(tracker_);
}

LLVMTargetMachineRef Compiler::make_machine() {
  char* triple = llvm_.GetDefaultTargetTriple();
  char* cpu = llvm_.GetHostCPUName();
  char* features = llvm_.GetHostCPUFeatures();
  char* message = nullptr;
  LLVMTargetRef target = nullptr;
  LLVMTargetMachineRef machine = nullptr;
  if (llvm_.GetTargetFromTriple(triple, &target, &message) == 0)
    machine = llvm_.CreateTargetMachine(target, triple, cpu, features, LLVMCodeGenLevelDefault, LLVMRelocPIC,
                                        LLVMCodeModelJITDefault);
  for (char* text : {triple, cpu, features, message})
    if (text) llvm_.DisposeMessage(text);
  return machine;
}

bool Compiler::start(std::string& reason) {
  machine_ = make_machine();
  LLVMTargetMachineRef of_jit = make_machine();
  if (!machine_ || !of_jit) {
    reason = "LLVM has no code generator for this machine";
    return false;
  }
  LLVMOrcLLJITBuilderRef builder = llvm_.OrcCreateLLJITBuilder();
  llvm_.OrcLLJITBuilderSetJITTargetMachineBuilder(builder,
                                                  llvm_.OrcJITTargetMachineBuilderCreateFromTargetMachine(of_jit));
  if (LLVMErrorRef error = llvm_.OrcCreateLLJIT(&jit_, builder)) {
    reason = text_of(llvm_, error);
    return false;
  }
  return true;
}

// Never destroyed: kernels with code may live as long as the process.
Compiler::Instance& Compiler::instance() {
  static Instance made = [] {
    Instance result;
    const Llvm* llvm = load_llvm(result.reason);
    if (!llvm) return result;
    auto* compiler = new Compiler(*llvm);
    if (compiler->start(result.reason))
      result.compiler = compiler;
    else
      delete compiler;
    return result;
  }();
  return made;
}

Compiler* Compiler::get() {
  return instance().compiler;
}
const std::string& Compiler::why_none() {
  return instance().reason;
}

Code Compiler::compile(Plan& plan, bool full_warp, CodeMemory& memory) {
  std::lock_guard lock(mutex_);
  const auto start = std::chrono::steady_clock::now();
  const std::string name = fmt::format("code{}", functions_++);
  LLVMOrcThreadSafeContextRef shared_context = llvm_.OrcCreateNewThreadSafeContext();
  LLVMContextRef context = llvm_.OrcThreadSafeContextGetContext(shared_context);
  LLVMModuleRef module = llvm_.ModuleCreateWithNameInContext(name.c_str(), context);
  llvm_.SetDataLayout(module, llvm_.OrcLLJITGetDataLayoutStr(jit_));
  llvm_.SetTarget(module, llvm_.OrcLLJITGetTripleString(jit_));
  const auto give_up = [&](std::string_view why) -> Code {
    log(LogLevel::debug,
        fmt::format("generated code: {} of {}: {}", name, full_warp ? "a full warp" : "some lanes", why));
    llvm_.DisposeModule(module);
    llvm_.OrcDisposeThreadSafeContext(shared_context);
    return nullptr;
  };
  {
    Ir ir(llvm_, context, module);
    Emitter emitter(ir, plan, full_warp);
    if (!emitter.emit(name)) return give_up("the plan does not hold");
    if (llvm_.VerifyFunction(ir.function, LLVMReturnStatusAction)) return give_up("invalid IR");
  }
  if (const char* to = getenv("DUMPIR")) {
    char* t = llvm_.PrintModuleToString(module);
    FILE* f = fopen((std::string(to) + "/" + name + ".ll").c_str(), "w");
    fputs(t, f);
    fclose(f);
  }
  LLVMPassBuilderOptionsRef options = llvm_.CreatePassBuilderOptions();
  LLVMErrorRef error = llvm_.RunPasses(module, passes, machine_, options);
  llvm_.DisposePassBuilderOptions(options);
  if (error) return give_up(text_of(llvm_, error));
  LLVMOrcThreadSafeModuleRef shared_module = llvm_.OrcCreateNewThreadSafeModule(module, shared_context);
  llvm_.OrcDisposeThreadSafeContext(shared_context); // the module keeps it alive
  if (!memory.tracker_) memory.tracker_ = llvm_.OrcJITDylibCreateResourceTracker(llvm_.OrcLLJITGetMainJITDylib(jit_));
  LLVMOrcExecutorAddress address = 0;
  error = llvm_.OrcLLJITAddLLVMIRModuleWithRT(jit_, memory.tracker_, shared_module);
  if (!error) error = llvm_.OrcLLJITLookup(jit_, &address, name.c_str());
  if (error) {
    log(LogLevel::debug, fmt::format("generated code: {}", text_of(llvm_, error)));
    return nullptr;
  }
  const std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - start;
  log(LogLevel::debug, fmt::format("generated code: {} of {}: {} micro-operations ({} called) in {:.1f} ms", name,
                                   full_warp ? "a full warp" : "some lanes", plan.size(), plan.called, taken.count()));
  return reinterpret_cast<Code>(static_cast<uintptr_t>(address));
}

} // namespace ptxrewrite::emulator::generated
