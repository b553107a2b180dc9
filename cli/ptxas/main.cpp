// ptxrewrite-ptxas [ptxas] OPTION... FILE.ptx: replaces ptxas. Rewrites its inputs if requested
// (--ptxrewrite-passes=PIPELINE, PTXREWRITE_PASSES), then runs the real ptxas with the same arguments. Without a real
// ptxas, or with --emulated (PTXREWRITE_EMULATED=1), it writes a cubin that carries the PTX, for the libcuda of
// `ptxrewrite exec`.
#include "cli/ptxas/command_line.h"
#include "cli/ptxas/rewrite_input.h"
#include "cuda/context/image.h"
#include "cuda/fatbin/elf_image.h"
#include "cuda/fatbin/link_ptx.h"
#include "ir/machine/figures/machine.h"
#include "support/file_io.h"
#include "support/process.h"
#include "support/ptxas.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <unistd.h>

namespace {

using namespace ptxrewrite;
using namespace ptxrewrite::cli;

// The exit code of ptxas for an input that it rejects.
constexpr int exit_refused = 255;
// Set in the environment of child processes, to detect that one of them calls this program again instead of ptxas.
constexpr const char* inside = "PTXREWRITE_INSIDE_PTXAS";
constexpr const char* own_program = "/proc/self/exe";

int refuse(const std::string& message) {
  std::fprintf(stderr, "ptxas fatal   : %s (ptxrewrite-ptxas)\n", message.c_str());
  return exit_refused;
}

Result<std::string> real_ptxas(const PtxasCommandLine& line) {
  if (line.program.find('/') == std::string::npos || std::getenv("PTXREWRITE_PTXAS")) return find_ptxas(own_program);
  std::string path = find_program(line.program);
  if (path.empty()) return Error{line.program + " is not an executable", {}};
  return path;
}

// Replaces this process by the real ptxas, and so returns its output and exit code.
int become(const std::string& ptxas, const PtxasCommandLine& line) {
  std::vector<char*> words = {const_cast<char*>(ptxas.c_str())};
  for (const std::string& argument : line.arguments)
    words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);
  std::fflush(nullptr);
  execv(ptxas.c_str(), words.data());
  return refuse("cannot run " + ptxas);
}

// Caches (such as Triton's) use this output as the identity of the assembler, so it must describe the rewriting, too.
int show_version(const std::optional<std::string>& ptxas, const PtxasCommandLine& line) {
  ProcessResult real;
  if (ptxas) {
    Result<ProcessResult> child = run_process({.arguments = {*ptxas, "--version"}});
    if (!child) return refuse(child.error().message);
    real = *std::move(child);
  } else {
    real.out = "ptxas: Ptx optimizing assembler\nCuda compilation tools, release 13.0, V13.0.0\n";
  }
  std::fputs(real.out.c_str(), stdout);
  std::fputs(real.err.c_str(), stderr);
  if (line.emulated || !ptxas) std::puts("ptxrewrite-ptxas: no machine code, PTX for the emulator");
  if (!line.passes.empty()) std::printf("ptxrewrite-ptxas: passes %s\n", line.passes.c_str());
  return real.exit_code;
}

// A rewritten copy of an input, and the original name for messages.
struct Replaced {
  std::string original, path;
};

std::string with_original_names(std::string text, const std::vector<Replaced>& replaced) {
  for (const Replaced& file : replaced)
    for (size_t at = 0; (at = text.find(file.path, at)) != std::string::npos; at += file.original.size())
      text.replace(at, file.path.size(), file.original);
  return text;
}

int rewrite_and_assemble(const std::string& ptxas, PtxasCommandLine line) {
  setenv("PTXREWRITE_PTXAS", ptxas.c_str(), 1); // also used by passes
  Result<TempDirectory> folder = TempDirectory::create();
  if (!folder) return refuse(folder.error().message);
  std::vector<Replaced> replaced;
  for (size_t input : line.inputs) {
    std::string& argument = line.arguments[input];
    Result<std::string> original = read_file(argument);
    if (!original) return refuse(original.error().message);
    Result<std::string> rewritten = rewrite_input(argument, *original, line.passes, true);
    if (!rewritten) return refuse(rewritten.error().message);
    if (rewritten->empty() && std::filesystem::is_regular_file(argument)) continue;
    const std::string path = folder->file(fmt::format("{}.ptx", replaced.size()));
    const std::string& text = rewritten->empty() ? *original : *rewritten; // a pipe cannot be read a second time
    if (Status written = write_file(path, text); !written) return refuse(written.error().message);
    replaced.push_back({std::exchange(argument, path), path});
  }
  if (replaced.empty()) return become(ptxas, line);
  ProcessOptions command{.arguments = line.arguments};
  command.arguments.insert(command.arguments.begin(), ptxas);
  Result<ProcessResult> child = run_process(command);
  if (!child) return refuse(child.error().message);
  std::fputs(with_original_names(child->out, replaced).c_str(), stdout);
  std::fputs(with_original_names(child->err, replaced).c_str(), stderr);
  return child->signal ? 128 + child->signal : child->exit_code;
}

int write_carrier(const PtxasCommandLine& line) {
  if (line.has_text) return refuse("PTX in the command line and option files are not read without ptxas");
  if (line.relocatable) return refuse("-c: relocatable code is linked by nvlink, which needs machine code");
  std::vector<std::string> texts;
  for (size_t input : line.inputs) {
    const std::string& path = line.arguments[input];
    Result<std::string> text = read_file(path);
    if (!text) return refuse(text.error().message);
    if (std::string wrong = cuda::what_is_wrong_with(*text, path); !wrong.empty()) {
      std::fputs(wrong.c_str(), stderr);
      return refuse("Ptx assembly aborted due to errors");
    }
    Result<std::string> rewritten = rewrite_input(path, *text, line.passes, false);
    if (!rewritten) return refuse(rewritten.error().message);
    texts.push_back(rewritten->empty() ? *std::move(text) : *std::move(rewritten));
  }
  const std::string linked = cuda::link_ptx(texts);
  const uint32_t target = ir::compute_capability_of(target_architecture(linked));
  const uint32_t wanted = line.architecture.empty() ? target : ir::compute_capability_of(line.architecture);
  if (wanted == 0) return refuse(fmt::format("Value '{}' is not defined for option 'gpu-name'", line.architecture));
  if (target > wanted) return refuse("SM version specified by .target is higher than default SM version assumed");
  if (Status written = write_file(line.output, cuda::write_elf_image(linked, wanted)); !written)
    return refuse(written.error().message);
  return 0;
}

int run(const PtxasCommandLine& line) {
  if (std::getenv(inside)) return refuse("the ptxas that it calls is itself");
  std::optional<std::string> ptxas;
  if (Result<std::string> found = real_ptxas(line))
    ptxas = *std::move(found);
  else if (std::getenv("PTXREWRITE_PTXAS") && !line.emulated)
    return refuse(found.error().message);
  setenv(inside, "1", 1);
  if (line.asks_version) return show_version(ptxas, line);
  if (line.only_asks && ptxas) return become(*ptxas, line);
  if (line.asks_help || line.only_asks) {
    std::puts("Usage  : ptxrewrite-ptxas [--ptxrewrite-passes=PIPELINE] [--emulated] [options] <ptx file>,...");
    return line.asks_help ? 0 : refuse("No input files specified");
  }
  if (line.emulated || !ptxas) return write_carrier(line);
  if (line.passes.empty()) return become(*ptxas, line);
  if (line.has_text) std::fputs("ptxas warning : PTX in options is not rewritten (ptxrewrite-ptxas)\n", stderr);
  return rewrite_and_assemble(*ptxas, line);
}

} // namespace

int main(int count, char** arguments) {
  try {
    return run(read_ptxas_command_line({arguments + 1, arguments + count}));
  } catch (const std::exception& error) {
    return refuse(error.what());
  }
}
