#include "emulator/generated/llvm.h"

#include <dlfcn.h>

#include <mutex>

namespace ptxrewrite::emulator::generated {
namespace {

// LLVM's build settings would declare the functions of the native target; they are not available here.
#if defined(__x86_64__)
#define PTXREWRITE_LLVM_TARGET "X86"
#elif defined(__aarch64__)
#define PTXREWRITE_LLVM_TARGET "AArch64"
#else
#define PTXREWRITE_LLVM_TARGET ""
#endif

struct Loaded {
  Llvm functions;
  std::string reason; // empty: all functions were found
};

Loaded load() {
  Loaded loaded;
  void* library = nullptr;
  // RTLD_LOCAL because programs under `exec` may have their own LLVM.
  for (const char* name : {"libLLVM.so.19.1", "libLLVM-19.so.1", "libLLVM-19.so"})
    if (!library) library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    loaded.reason = "LLVM 19 is not installed (Debian: libllvm19)";
    return loaded;
  }
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    if (!function && loaded.reason.empty()) loaded.reason = std::string("LLVM's library lacks ") + name;
  };
#define FUNCTION(name) find(loaded.functions.name, "LLVM" #name);
  PTXREWRITE_LLVM_FUNCTIONS(FUNCTION)
#undef FUNCTION
  for (const char* part : {"TargetInfo", "Target", "TargetMC", "AsmPrinter"}) {
    void (*initialize)() = nullptr;
    find(initialize, (std::string("LLVMInitialize" PTXREWRITE_LLVM_TARGET) + part).c_str());
    if (initialize) initialize();
  }
  return loaded;
}

} // namespace

const Llvm* load_llvm(std::string& reason) {
  static const Loaded loaded = load();
  reason = loaded.reason;
  return reason.empty() ? &loaded.functions : nullptr;
}

} // namespace ptxrewrite::emulator::generated
