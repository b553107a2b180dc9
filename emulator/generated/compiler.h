// Compiles a plan to native code: LLVM IR, a few passes, LLVM's ORC.
#pragma once

#include "emulator/generated/context.h"
#include "emulator/generated/llvm.h"
#include "emulator/generated/plan.h"

#include <mutex>
#include <string>

namespace ptxrewrite::emulator::generated {

// The code of one kernel, which is freed with this object.
class CodeMemory {
public:
  CodeMemory() = default;
  CodeMemory(const CodeMemory&) = delete;
  CodeMemory& operator=(const CodeMemory&) = delete;
  ~CodeMemory();

private:
  friend class Compiler;
  LLVMOrcResourceTrackerRef tracker_ = nullptr;
};

class Compiler {
public:
  // Returns nullptr if this machine has no compiler; why_none() has the reason.
  static Compiler* get();
  static const std::string& why_none();

  // Returns nullptr if the plan cannot be compiled.
  Code compile(Plan& plan, bool full_warp, CodeMemory& memory);

private:
  friend class CodeMemory;
  struct Instance {
    Compiler* compiler = nullptr;
    std::string reason;
  };
  static Instance& instance();
  explicit Compiler(const Llvm& llvm) : llvm_(llvm) {}
  bool start(std::string& reason);
  LLVMTargetMachineRef make_machine();

  const Llvm& llvm_;
  std::mutex mutex_;
  LLVMOrcLLJITRef jit_ = nullptr;
  LLVMTargetMachineRef machine_ = nullptr;
  uint64_t functions_ = 0;
};

} // namespace ptxrewrite::emulator::generated
