#include "emulator/generated/compiler.h"

#include "emulator/generated/direct_emitter.h"
#include "emulator/generated/emitter.h"
#include "emulator/generated/plan_key.h"
#include "support/log.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <pthread.h>
#include <string>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <utility>

namespace ptxrewrite::emulator::generated {
namespace {

// How a tier is compiled. Full code: stack slots become SSA values, common subexpressions are removed, loop invariants
// hoisted.
struct Steps {
  const char* passes;
  LLVMCodeGenOptLevel selection; // of instructions
};
constexpr Steps steps[] = {{"function(early-cse)", LLVMCodeGenLevelNone},
                           {"function(sroa,early-cse,simplifycfg,loop-mssa(licm),early-cse)", LLVMCodeGenLevelDefault}};
const Steps& steps_of(CodeTier tier) {
  return steps[static_cast<size_t>(tier)];
}
constexpr uint64_t most_stored_bytes = uint64_t{256} << 20;
constexpr uint64_t most_stored_counts = uint64_t{1} << 20; // bytes
constexpr size_t most_counts = 1 << 16;
// Functions that stay in memory for kernels that are loaded again.
constexpr size_t most_recent = 512;

std::string text_of(const Llvm& llvm, LLVMErrorRef error) {
  char* message = llvm.GetErrorMessage(error);
  std::string text = message;
  llvm.DisposeErrorMessage(message);
  return text;
}

double processor_milliseconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

std::string name_of(const std::string& key) {
  return "code_" + hash_of(key);
}
std::string full_key_of(const std::string& key_of_quick) {
  return "full code of " + hash_of(key_of_quick);
}

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
      module_(std::exchange(other.module_, nullptr)), function_(other.function_), tier_(other.tier_),
      size_(other.size_), about_(std::move(other.about_)) {}

Compiler::Module::~Module() {
  if (module_) llvm_->DisposeModule(module_);
  if (context_) llvm_->ContextDispose(context_);
}

LLVMTargetMachineRef Compiler::make_machine(CodeTier tier) {
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
                   fmt::format("ptxrewrite code 2\nLLVM {}.{}.{} {} {} {} {} {}\n", version[0], version[1], version[2],
                               triple, cpu, features, steps[0].passes, steps[1].passes),
                   most_stored_bytes);
  if (llvm_.GetTargetFromTriple(triple, &target, &message) == 0)
    machine = llvm_.CreateTargetMachine(target, triple, cpu, features, steps_of(tier).selection, LLVMRelocPIC,
                                        LLVMCodeModelJITDefault);
  for (char* text : {triple, cpu, features, message})
    if (text) llvm_.DisposeMessage(text);
  return machine;
}

bool Compiler::start(std::string& reason) {
  // Its cost grows with a power of the number of counters in a loop, of which there is one for each region.
  const char* options[] = {"ptxrewrite", "-disable-lsr"};
  llvm_.ParseCommandLineOptions(2, options, nullptr);
  for (const CodeTier tier : {CodeTier::quick, CodeTier::full})
    machines_[static_cast<size_t>(tier)] = make_machine(tier);
  LLVMTargetMachineRef of_jit = make_machine(CodeTier::full);
  if (!machines_[0] || !machines_[1] || !of_jit) {
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

std::shared_ptr<const LoadedCode> Compiler::make_direct(Plan& plan, bool full_warp, bool wants_full) {
  const std::string key = wants_full ? key_of(plan, full_warp) : std::string();
  if (!key.empty()) {
    std::lock_guard lock(mutex_);
    if (auto full = find(full_key_of(key), CodeTier::full)) return full;
  }
  const std::vector<uint8_t> bytes = DirectEmitter(plan, full_warp).emit();
  auto loaded = std::make_shared<LoadedCode>(CodeMemory(bytes));
  if (!loaded->code) return nullptr;
  loaded->tier = CodeTier::quick;
  if (!key.empty()) loaded->full_key = full_key_of(key);
  CodeWork& work = code_work(CodeTier::quick);
  work.micro_operations += plan.size();
  work.code_bytes += bytes.size();
  log(LogLevel::debug, fmt::format("generated code: {} micro-operations ({} called), quick, in {} bytes", plan.size(),
                                   plan.called, bytes.size()));
  return loaded;
}

Compiler::Module Compiler::write(Plan& plan, bool full_warp, CodeTier tier) {
  Module result;
  result.tier_ = tier;
  result.size_ = plan.size();
  result.llvm_ = &llvm_;
  result.context_ = llvm_.ContextCreate();
  result.module_ = llvm_.ModuleCreateWithNameInContext("code", result.context_);
  llvm_.SetDataLayout(result.module_, llvm_.OrcLLJITGetDataLayoutStr(jit_));
  llvm_.SetTarget(result.module_, llvm_.OrcLLJITGetTripleString(jit_));
  result.about_ = fmt::format("{} micro-operations ({} called) of {}, {}", plan.size(), plan.called,
                              full_warp ? "a full warp" : "some lanes", tier == CodeTier::full ? "full" : "quick");
  const char* wrong = nullptr;
  {
    Ir ir(llvm_, result.context_, result.module_);
    Emitter emitter(ir, plan, full_warp, tier);
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

bool Compiler::run_passes(Module& module) {
  LLVMPassBuilderOptionsRef options = llvm_.CreatePassBuilderOptions();
  LLVMErrorRef error = llvm_.RunPasses(module.module_, steps_of(module.tier_).passes,
                                       machines_[static_cast<size_t>(module.tier_)], options);
  llvm_.DisposePassBuilderOptions(options);
  if (error) log(LogLevel::debug, fmt::format("generated code: {}", text_of(llvm_, error)));
  return !error;
}

LLVMMemoryBufferRef Compiler::make_object(Module& module) {
  LLVMMemoryBufferRef object = nullptr;
  char* message = nullptr;
  if (llvm_.TargetMachineEmitToMemoryBuffer(machines_[static_cast<size_t>(module.tier_)], module.module_,
                                            LLVMObjectFile, &message, &object)) {
    log(LogLevel::debug, fmt::format("generated code: {}", message));
    llvm_.DisposeMessage(message);
    return nullptr;
  }
  return object;
}

// An answer begins with the hash of the object file: a damaged one is none.
LLVMMemoryBufferRef Compiler::stored_object(const std::string& key) const {
  const std::optional<std::string> answer = store_->find(key);
  if (!answer || answer->size() <= hash_digits) return nullptr;
  const std::string_view object = std::string_view(*answer).substr(hash_digits);
  if (!answer->starts_with(hash_of(object))) return nullptr;
  return llvm_.CreateMemoryBufferWithMemoryRangeCopy(object.data(), object.size(), "code");
}

void Compiler::store_object(const std::string& key, LLVMMemoryBufferRef object) {
  const std::string_view bytes(llvm_.GetBufferStart(object), llvm_.GetBufferSize(object));
  store_->keep(key, hash_of(bytes) + std::string(bytes));
}

// Null: LLVM gives an error, which is logged.
std::shared_ptr<LoadedCode> Compiler::load(const std::string& key, LLVMMemoryBufferRef object) {
  auto loaded = std::make_shared<LoadedCode>();
  loaded->tracker_ = llvm_.OrcJITDylibCreateResourceTracker(llvm_.OrcLLJITGetMainJITDylib(jit_));
  LLVMOrcExecutorAddress address = 0;
  LLVMErrorRef error = llvm_.OrcLLJITAddObjectFileWithRT(jit_, loaded->tracker_, object);
  if (!error) error = llvm_.OrcLLJITLookup(jit_, &address, name_of(key).c_str());
  if (error) log(LogLevel::debug, fmt::format("generated code: {}", text_of(llvm_, error)));
  loaded->code = reinterpret_cast<Code>(static_cast<uintptr_t>(address));
  return loaded->code ? loaded : nullptr;
}

// In memory, or on disk. Null: neither.
std::shared_ptr<const LoadedCode> Compiler::find(const std::string& key, CodeTier tier) {
  if (const auto known = loaded_.find(key); known != loaded_.end())
    if (std::shared_ptr<const LoadedCode> loaded = known->second.lock()) return loaded;
  LLVMMemoryBufferRef object = stored_object(key);
  return object ? keep(key, tier, load(key, object)) : nullptr;
}

std::shared_ptr<const LoadedCode> Compiler::keep(const std::string& key, CodeTier tier,
                                                 std::shared_ptr<LoadedCode> loaded) {
  if (!loaded) return nullptr;
  loaded->tier = tier;
  if (tier == CodeTier::quick) loaded->full_key = full_key_of(key);
  loaded_[key] = loaded;
  recent_.push_back(loaded);
  return loaded;
}

std::shared_ptr<const LoadedCode> Compiler::compile(Module module, std::string key) {
  const double start = processor_milliseconds();
  std::vector<std::shared_ptr<const LoadedCode>> dropped; // outlives the lock
  std::lock_guard lock(mutex_);
  if (key.empty()) {
    LLVMMemoryBufferRef bitcode = llvm_.WriteBitcodeToMemoryBuffer(module.module_);
    key.assign(llvm_.GetBufferStart(bitcode), llvm_.GetBufferSize(bitcode));
    llvm_.DisposeMemoryBuffer(bitcode);
  }
  for (; recent_.size() > most_recent; recent_.pop_front())
    dropped.push_back(std::move(recent_.front()));
  if (!dropped.empty()) std::erase_if(loaded_, [](const auto& entry) { return entry.second.expired(); });
  std::shared_ptr<const LoadedCode> loaded;
  if (module.tier_ == CodeTier::quick) loaded = find(full_key_of(key), CodeTier::full);
  if (!loaded) loaded = find(key, module.tier_);
  const bool was_known = loaded != nullptr;
  if (!was_known) {
    const std::string name = name_of(key);
    llvm_.SetValueName2(module.function_, name.c_str(), name.size());
    LLVMMemoryBufferRef object = run_passes(module) ? make_object(module) : nullptr;
    if (!object) return nullptr;
    ++code_work(module.tier_).modules;
    code_work(module.tier_).micro_operations += module.size_;
    code_work(module.tier_).code_bytes += llvm_.GetBufferSize(object);
    store_object(key, object);
    loaded = keep(key, module.tier_, load(key, object));
  }
  log(LogLevel::debug, fmt::format("generated code: {} {} in {:.1f} ms", module.about_,
                                   was_known ? "was known" : "compiled", processor_milliseconds() - start));
  return loaded;
}

Compiler::Executed& Compiler::executed_by(const std::string& full_key) {
  if (!executed_store_)
    executed_store_.emplace(cache_folder("executed"), "ptxrewrite executed warp instructions 1\n", most_stored_counts);
  if (executed_.size() > most_counts) executed_.clear();
  const auto [known, is_new] = executed_.try_emplace(full_key);
  if (!is_new) return known->second;
  const std::string text = executed_store_->find(full_key).value_or("");
  uint64_t sum = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), sum);
  if (error == std::errc() && end == text.data() + text.size()) known->second = {sum, sum};
  return known->second;
}

uint64_t Compiler::executed_before(const std::string& full_key) {
  std::lock_guard lock(executed_mutex_);
  return full_key.empty() ? 0 : executed_by(full_key).sum;
}

void Compiler::note_executed(const std::string& full_key, uint64_t executed, uint64_t worth) {
  constexpr uint64_t most_writes = 8; // until full code is made
  std::lock_guard lock(executed_mutex_);
  if (full_key.empty() || executed == 0) return;
  Executed& known = executed_by(full_key);
  known.sum = std::max(known.sum, known.sum + executed); // a number on disk may be any
  if (known.sum - known.kept < worth / most_writes) return;
  executed_store_->keep(full_key, std::to_string(known.sum));
  known.kept = known.sum;
}

void Compiler::measure(Module module, CompileCost& cost) {
  std::lock_guard lock(mutex_);
  double now = processor_milliseconds();
  const auto since = [&] {
    const double before = now;
    now = processor_milliseconds();
    return now - before;
  };
  const bool good = run_passes(module);
  cost.passes += since();
  LLVMMemoryBufferRef object = good ? make_object(module) : nullptr;
  cost.selection += since();
  if (!object) return;
  ++cost.functions;
  cost.code_bytes += llvm_.GetBufferSize(object);
  llvm_.DisposeMemoryBuffer(object);
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
