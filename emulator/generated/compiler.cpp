#include "emulator/generated/compiler.h"

#include "emulator/generated/emitter.h"
#include "support/log.h"
#include "support/mix.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <pthread.h>
#include <thread>
#include <unistd.h>
#include <utility>

namespace ptxrewrite::emulator::generated {
namespace {

// Promotes stack slots to SSA values, removes common subexpressions, hoists loop invariants.
constexpr const char* passes = "function(sroa,early-cse,simplifycfg,loop-mssa(licm),early-cse)";
constexpr LLVMCodeGenOptLevel selection = LLVMCodeGenLevelDefault; // of instruction selection
constexpr uint64_t most_stored_bytes = uint64_t{256} << 20;
// Functions that stay in memory for kernels that are loaded again.
constexpr size_t most_recent = 512;

std::string text_of(const Llvm& llvm, LLVMErrorRef error) {
  char* message = llvm.GetErrorMessage(error);
  std::string text = message;
  llvm.DisposeErrorMessage(message);
  return text;
}

// 32 hexadecimal digits.
std::string hash_of(std::string_view bytes) {
  uint64_t halves[2] = {bytes.size(), ~bytes.size()};
  for (size_t at = 0; at < bytes.size(); at += 8) {
    uint64_t part = 0;
    std::memcpy(&part, bytes.data() + at, std::min<size_t>(8, bytes.size() - at));
    halves[0] = mixed_bits(halves[0] ^ part);
    halves[1] = mixed_bits(halves[1] + part * 0x9e3779b97f4a7c15);
  }
  return fmt::format("{:016x}{:016x}", halves[0], halves[1]);
}
constexpr size_t hash_digits = 32;

} // namespace

LoadedCode::~LoadedCode() {
  if (!tracker_) return;
  Compiler& compiler = *Compiler::get();
  std::lock_guard lock(compiler.mutex_);
  if (LLVMErrorRef error = compiler.llvm_.OrcResourceTrackerRemove(tracker_)) (void)text_of(compiler.llvm_, error);
  compiler.llvm_.OrcReleaseResourceTracker(tracker_);
}

Compiler::Module::Module(Module&& other) noexcept
    : llvm_(other.llvm_), context_(std::exchange(other.context_, nullptr)),
      module_(std::exchange(other.module_, nullptr)), function_(other.function_), about_(std::move(other.about_)) {}

Compiler::Module::~Module() {
  if (module_) llvm_->DisposeModule(module_);
  if (context_) llvm_->ContextDispose(context_);
}

LLVMTargetMachineRef Compiler::make_machine() {
  char* triple = llvm_.GetDefaultTargetTriple();
  char* cpu = llvm_.GetHostCPUName();
  char* features = llvm_.GetHostCPUFeatures();
  char* message = nullptr;
  LLVMTargetRef target = nullptr;
  LLVMTargetMachineRef machine = nullptr;
  unsigned version[3] = {};
  llvm_.GetVersion(&version[0], &version[1], &version[2]);
  if (!store_)
    store_.emplace(cache_folder("code"),
                   fmt::format("ptxrewrite code 1\nLLVM {}.{}.{} {} {} {} {} {}\n", version[0], version[1], version[2],
                               triple, cpu, features, passes, static_cast<int>(selection)),
                   most_stored_bytes);
  if (llvm_.GetTargetFromTriple(triple, &target, &message) == 0)
    machine =
        llvm_.CreateTargetMachine(target, triple, cpu, features, selection, LLVMRelocPIC, LLVMCodeModelJITDefault);
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

Compiler::Module Compiler::write(Plan& plan, bool full_warp) {
  Module result;
  result.llvm_ = &llvm_;
  result.context_ = llvm_.ContextCreate();
  result.module_ = llvm_.ModuleCreateWithNameInContext("code", result.context_);
  llvm_.SetDataLayout(result.module_, llvm_.OrcLLJITGetDataLayoutStr(jit_));
  llvm_.SetTarget(result.module_, llvm_.OrcLLJITGetTripleString(jit_));
  result.about_ = fmt::format("{} micro-operations ({} called) of {}", plan.size(), plan.called,
                              full_warp ? "a full warp" : "some lanes");
  const char* wrong = nullptr;
  {
    Ir ir(llvm_, result.context_, result.module_);
    Emitter emitter(ir, plan, full_warp);
    if (!emitter.emit("code"))
      wrong = "the plan does not hold";
    else if (llvm_.VerifyFunction(ir.function, LLVMReturnStatusAction))
      wrong = "invalid IR";
    result.function_ = ir.function;
  }
  if (!wrong) return result;
  log(LogLevel::debug, fmt::format("generated code: {}: {}", result.about_, wrong));
  return {};
}

LLVMMemoryBufferRef Compiler::make_object(Module& module) {
  LLVMPassBuilderOptionsRef options = llvm_.CreatePassBuilderOptions();
  LLVMErrorRef error = llvm_.RunPasses(module.module_, passes, machine_, options);
  llvm_.DisposePassBuilderOptions(options);
  if (error) {
    log(LogLevel::debug, fmt::format("generated code: {}", text_of(llvm_, error)));
    return nullptr;
  }
  LLVMMemoryBufferRef object = nullptr;
  char* message = nullptr;
  if (llvm_.TargetMachineEmitToMemoryBuffer(machine_, module.module_, LLVMObjectFile, &message, &object)) {
    log(LogLevel::debug, fmt::format("generated code: {}", message));
    llvm_.DisposeMessage(message);
    return nullptr;
  }
  return object;
}

// An answer begins with the hash of the object file: a damaged one is none.
LLVMMemoryBufferRef Compiler::stored_object(const std::string& ir) const {
  const std::optional<std::string> answer = store_->find(ir);
  if (!answer || answer->size() <= hash_digits) return nullptr;
  const std::string_view object = std::string_view(*answer).substr(hash_digits);
  if (!answer->starts_with(hash_of(object))) return nullptr;
  return llvm_.CreateMemoryBufferWithMemoryRangeCopy(object.data(), object.size(), "code");
}

void Compiler::store_object(const std::string& ir, LLVMMemoryBufferRef object) {
  const std::string_view bytes(llvm_.GetBufferStart(object), llvm_.GetBufferSize(object));
  store_->keep(ir, hash_of(bytes) + std::string(bytes));
}

std::shared_ptr<const LoadedCode> Compiler::load(const std::string& name, LLVMMemoryBufferRef object) {
  auto loaded = std::make_shared<LoadedCode>();
  loaded->tracker_ = llvm_.OrcJITDylibCreateResourceTracker(llvm_.OrcLLJITGetMainJITDylib(jit_));
  LLVMOrcExecutorAddress address = 0;
  LLVMErrorRef error = llvm_.OrcLLJITAddObjectFileWithRT(jit_, loaded->tracker_, object);
  if (!error) error = llvm_.OrcLLJITLookup(jit_, &address, name.c_str());
  if (error) log(LogLevel::debug, fmt::format("generated code: {}", text_of(llvm_, error)));
  loaded->code = reinterpret_cast<Code>(static_cast<uintptr_t>(address));
  return loaded;
}

std::shared_ptr<const LoadedCode> Compiler::compile(Module module) {
  const auto start = std::chrono::steady_clock::now();
  std::shared_ptr<const LoadedCode> loaded, dropped; // outlive the lock
  std::lock_guard lock(mutex_);
  LLVMMemoryBufferRef bitcode = llvm_.WriteBitcodeToMemoryBuffer(module.module_);
  const std::string ir(llvm_.GetBufferStart(bitcode), llvm_.GetBufferSize(bitcode));
  llvm_.DisposeMemoryBuffer(bitcode);
  std::weak_ptr<const LoadedCode>& known = loaded_[ir];
  loaded = known.lock();
  if (loaded) return loaded;
  const std::string name = "code_" + hash_of(ir);
  LLVMMemoryBufferRef object = stored_object(ir);
  const bool was_stored = object != nullptr;
  if (!object) {
    llvm_.SetValueName2(module.function_, name.c_str(), name.size());
    object = make_object(module);
    if (!object) return nullptr;
    store_object(ir, object);
  }
  loaded = load(name, object);
  if (!loaded->code) return nullptr;
  known = loaded;
  recent_.push_back(loaded);
  if (recent_.size() > most_recent) {
    dropped = std::move(recent_.front());
    recent_.pop_front();
    std::erase_if(loaded_, [](const auto& entry) { return entry.second.expired(); });
  }
  const std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - start;
  log(LogLevel::debug, fmt::format("generated code: {} {} in {:.1f} ms", module.about_,
                                   was_stored ? "from disk" : "compiled", taken.count()));
  return loaded;
}

// The thread ends before LLVM's library is torn down at the end of the process, whose exit handlers were registered
// before.
void Compiler::do_later(const void* owner, std::function<void()> body) {
  std::lock_guard lock(work_mutex_);
  if (stops_) return;
  if (process_ == 0) {
    process_ = getpid();
    std::thread([this] { work(); }).detach();
    std::atexit([] { get()->stop(); });
    pthread_atfork([] { get()->mutex_.lock(), get()->work_mutex_.lock(); },
                   [] { get()->work_mutex_.unlock(), get()->mutex_.unlock(); },
                   [] { get()->work_mutex_.unlock(), get()->mutex_.unlock(); });
  }
  if (process_ != getpid()) return; // a child has no such thread
  waiting_.push_back({owner, std::move(body)});
  work_changed_.notify_all();
}

void Compiler::work() {
  std::unique_lock lock(work_mutex_);
  for (;;) {
    work_changed_.wait(lock, [&] { return stops_ || !waiting_.empty(); });
    if (stops_) break;
    const Work next = std::move(waiting_.front());
    waiting_.pop_front();
    working_for_ = next.owner;
    lock.unlock();
    next.body();
    lock.lock();
    working_for_ = nullptr;
    work_changed_.notify_all();
  }
  stopped_ = true;
  work_changed_.notify_all();
}

void Compiler::stop() {
  std::unique_lock lock(work_mutex_);
  if (process_ != getpid()) return;
  stops_ = true;
  waiting_.clear();
  work_changed_.notify_all();
  work_changed_.wait(lock, [&] { return stopped_; });
}

void Compiler::forget(const void* owner) {
  std::unique_lock lock(work_mutex_);
  if (process_ != getpid()) return;
  std::erase_if(waiting_, [&](const Work& work) { return work.owner == owner; });
  work_changed_.wait(lock, [&] { return working_for_ != owner; });
}

} // namespace ptxrewrite::emulator::generated
