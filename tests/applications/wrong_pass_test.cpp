// `exec` with incorrect passes. With --verify the difference is found, the program gets the original's results, and
// exec exits with 1; with --passes a pass that throws or leaves a broken function has no effect on the program. The
// program is this one, forked, on the context that the emulated libraries use.
#include "cuda/context/context.h"
#include "ir/core/function.h"
#include "transforms/manager/pass.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using namespace ptxrewrite;

// Removes the first instruction of this kind.
template <ir::Opcode opcode> transforms::Change lose(ir::Function& function, transforms::PassContext&) {
  for (ir::BlockId block : function.layout)
    for (ir::InstructionId instruction : function.instructions_in(block))
      if (function.is_opcode(instruction, opcode)) {
        function.remove(instruction);
        return transforms::Change::changed;
      }
  return transforms::Change::unchanged;
}
transforms::Change throw_always(ir::Function&, transforms::PassContext&) {
  throw std::runtime_error("thrown on purpose");
}
const transforms::RegisterPass lose_stores({"lose-stores", "wrong on purpose", lose<ir::Opcode::st>});
const transforms::RegisterPass lose_sums({"lose-sums", "leaves values that nothing defines", lose<ir::Opcode::add>});
const transforms::RegisterPass throws({"throws", "throws", throw_always});

constexpr const char* kernel_text = R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry fill(.param .u64 out)
{
  .reg .b64 %rd<4>;
  .reg .b32 %r<3>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x;
  add.u32 %r2, %r1, 7;
  mul.wide.u32 %rd2, %r1, 4;
  add.s64 %rd3, %rd1, %rd2;
  st.global.u32 [%rd3], %r2;
  ret;
}
)";

// The program: returns 0 if it finds the values that the original stores.
int run_program() {
  cuda::Context& context = cuda::Context::get();
  cuda::Module& module = context.add_module("test", std::string(kernel_text));
  cuda::Kernel* kernel = module.find_kernel("fill");
  uint64_t address = 0;
  if (!kernel || context.allocate(32 * 4, address) != cuda::Code::success) return 2;
  std::vector<std::byte> arguments(8);
  std::memcpy(arguments.data(), &address, 8);
  if (context.launch(*kernel, {{1}, {32}}, arguments) != cuda::Code::success) return 3;
  uint32_t values[32];
  if (!context.memory().read(address, std::as_writable_bytes(std::span(values)))) return 4;
  for (uint32_t i = 0; i < 32; ++i)
    if (values[i] != i + 7) return 5;
  return 0;
}

// Runs a child of this program; returns its exit code and its standard error.
int run_child(const char* option, const char* passes, std::string& errors) {
  int ends[2];
  if (pipe(ends) != 0) return -1;
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    setenv(option, passes, 1);
    std::exit(run_program());
  }
  close(ends[1]);
  char piece[4096];
  for (ssize_t count = 0; (count = read(ends[0], piece, sizeof piece)) > 0;)
    errors.append(piece, static_cast<size_t>(count));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

bool check(bool holds, const char* what, const std::string& errors) {
  if (!holds) std::printf("FAILED: %s\n%s", what, errors.c_str());
  return holds;
}

} // namespace

int main() {
  constexpr const char* verify = "PTXREWRITE_EXEC_VERIFY";
  constexpr const char* rewrite = "PTXREWRITE_EXEC_PASSES";
  std::string errors;
  bool good = check(run_child(verify, "lose-stores", errors) == 1, "a wrong pass ends exec with 1", errors);
  // 32 stores of 4 bytes: the lowest bytes are 7 .. 38, the others stay 0.
  good &= check(errors.find("DIFFERS: launch 1, 0x") != errors.npos, "the first difference is named", errors);
  good &= check(errors.find("       32         32 ") != errors.npos, "32 bytes changed and differ", errors);
  good &= check(run_child(verify, "dce", errors = "") == 0, "a right pass does not", errors);
  for (const char* pass : {"lose-sums", "throws"}) {
    good &= check(run_child(rewrite, pass, errors = "") == 0, "the program runs as it is", errors);
    good &= check(errors.find("warning: test ") != errors.npos, "what went wrong is said", errors);
  }
  return good ? 0 : 1;
}
