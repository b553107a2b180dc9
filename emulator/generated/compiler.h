// From a plan to native code: LLVM IR, a few passes, an object file, LLVM's loader. Code contains no address of the
// process, so equal IR has equal code: it is shared between kernels while one of them lives, and kept on disk.
#pragma once

#include "emulator/core/engine.h"
#include "emulator/generated/context.h"
#include "emulator/generated/llvm.h"
#include "emulator/generated/plan.h"
#include "emulator/generated/x86/code_memory.h"
#include "support/content_store.h"

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace ptxrewrite::emulator::generated {

class Compiler;

// One function in memory, until the last kernel that uses it has gone.
class LoadedCode {
public:
  LoadedCode() = default;
  explicit LoadedCode(CodeMemory memory) : memory_(std::move(memory)) {
    code = reinterpret_cast<Code>(reinterpret_cast<uintptr_t>(memory_.start()));
  }
  LoadedCode(const LoadedCode&) = delete;
  LoadedCode& operator=(const LoadedCode&) = delete;
  ~LoadedCode();
  Code code = nullptr;
  CodeTier tier = CodeTier::full;
  std::string full_key; // of quick code: by which full code of the same plan is known

private:
  friend class Compiler;
  LLVMOrcResourceTrackerRef tracker_ = nullptr; // of LLVM's code
  CodeMemory memory_;                           // of other code
};

class Compiler {
public:
  // Returns nullptr if this machine has no compiler; why_none() has the reason.
  static Compiler* get();
  static const std::string& why_none();

  // LLVM IR of a plan.
  class Module {
  public:
    Module() = default;
    Module(Module&& other) noexcept;
    Module& operator=(Module&&) = delete;
    ~Module();
    explicit operator bool() const { return module_ != nullptr; }

  private:
    friend class Compiler;
    const Llvm* llvm_ = nullptr;
    LLVMContextRef context_ = nullptr;
    LLVMModuleRef module_ = nullptr;
    LLVMValueRef function_ = nullptr;
    CodeTier tier_ = CodeTier::full;
    size_t size_ = 0;   // of the plan
    std::string about_; // for the log
  };
  // Quick code without LLVM, where has_direct_code(); or, if wanted, full code of the plan that is at hand already.
  // Null: the system allows no executable memory.
  std::shared_ptr<const LoadedCode> make_direct(Plan& plan, bool full_warp, bool wants_full);
  // False: nothing can be made of the plan. Takes little time, and looks at the plan and its function.
  Module write(Plan& plan, bool full_warp, CodeTier tier);
  // For a quick module, full code of the same plan if that is at hand already. `key`: LoadedCode::full_key, to make it.
  // Null: LLVM reports an error, which is logged. Takes milliseconds to seconds.
  std::shared_ptr<const LoadedCode> compile(Module module, std::string key = {});
  // Compiles the module, adds the time of each step to `cost`, and discards the code.
  void measure(Module module, CompileCost& cost);

  // Warp instructions that quick code has executed for kernels that are gone, by LoadedCode::full_key; on disk, too, if
  // they are a good part of `worth`, after which full code is made.
  uint64_t executed_before(const std::string& full_key);
  void note_executed(const std::string& full_key, uint64_t executed, uint64_t worth);

  // In another thread, one after the other.
  void do_later(const void* owner, std::function<void()> work);
  // Work of this owner is dropped; if it is being done, waits for its end.
  void forget(const void* owner);

private:
  friend class LoadedCode;
  struct Instance {
    Compiler* compiler = nullptr;
    std::string reason;
  };
  struct Work {
    const void* owner = nullptr;
    std::function<void()> body;
  };
  static Instance& instance();
  explicit Compiler(const Llvm& llvm) : llvm_(llvm) {}
  bool start(std::string& reason);
  LLVMTargetMachineRef make_machine(CodeTier tier);
  bool run_passes(Module& module);
  LLVMMemoryBufferRef make_object(Module& module);
  LLVMMemoryBufferRef stored_object(const std::string& key) const;
  void store_object(const std::string& key, LLVMMemoryBufferRef object);
  std::shared_ptr<LoadedCode> load(const std::string& key, LLVMMemoryBufferRef object);
  std::shared_ptr<const LoadedCode> find(const std::string& key, CodeTier tier);
  std::shared_ptr<const LoadedCode> keep(const std::string& key, CodeTier tier, std::shared_ptr<LoadedCode> loaded);
  void work();
  void stop();

  const Llvm& llvm_;
  std::mutex mutex_; // of LLVM's objects
  LLVMOrcLLJITRef jit_ = nullptr;
  LLVMTargetMachineRef machines_[2] = {};                         // by CodeTier
  std::optional<ContentStore> store_;                             // object files by key
  std::map<std::string, std::weak_ptr<const LoadedCode>> loaded_; // by key: IR, or full_key
  std::deque<std::shared_ptr<const LoadedCode>> recent_;          // of kernels that may come again

  struct Executed {
    uint64_t sum = 0, kept = 0; // kept on disk
  };
  Executed& executed_by(const std::string& full_key);
  std::mutex executed_mutex_;
  std::map<std::string, Executed> executed_; // by full_key
  std::optional<ContentStore> executed_store_;

  std::mutex work_mutex_;
  std::condition_variable work_changed_;
  std::deque<Work> waiting_;
  const void* working_for_ = nullptr;
  int process_ = 0; // that has the thread; 0: there is none yet
  bool stops_ = false, stopped_ = false;
};

} // namespace ptxrewrite::emulator::generated
