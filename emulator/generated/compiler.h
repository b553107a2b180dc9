// From a plan to native code: LLVM IR, a few passes, LLVM's ORC.
#pragma once

#include "emulator/generated/context.h"
#include "emulator/generated/llvm.h"
#include "emulator/generated/plan.h"

#include <mutex>
#include <string>

namespace ptxrewrite::emulator::generated {

// Code of one kernel: it is released with this.
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
  // Null: there is none on this machine; why_none() says why.
  static Compiler* get();
  static const std::string& why_none();

  // Null: nothing could be made of the plan.
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
