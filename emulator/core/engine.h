// Interface between the emulator and a generator of native code. The core knows no generator: emulator/generated
// defines these functions, or reports that there is no generator.
#pragma once

#include "emulator/core/emulator.h"

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ptxrewrite::emulator {

struct KernelImage;
struct MicroOp;

// Executor of kernels; the results are the same. automatic: generated code if a kernel runs long enough to be worth its
// compilation. Launches that are watched (check, observers, count_memory, machines) are always interpreted.
enum class Engine : uint8_t { automatic, interpreter, generated };

// How code is compiled. quick: in little time; full: to run as fast as it can.
enum class CodeTier : uint8_t { quick, full };

// In LaunchRequest::machines; if absent: the process's default_engine().
struct EngineSetting {
  std::optional<Engine> engine;
  // automatic: warp instructions that are interpreted before code is made of what follows them; nothing: as many as
  // compiling is worth. Tests set a small number.
  std::optional<uint64_t> worth{};
  // All code is of this tier; nothing: quick code first, full code instead of it when that has executed as much as
  // compiling is worth.
  std::optional<CodeTier> tier{};
  // Quick code is made by LLVM, as for processors that the generator has no encoder for. Tests set it.
  bool portable = false;
};

// The code of one kernel for one launch: while this object exists, region entries of the
// image look for code before they interpret.
class GeneratedLaunch {
public:
  virtual ~GeneratedLaunch() = default;
};

// Returns nullptr if the launch is interpreted: it is watched in a way that generated code does not support, requests
// the interpreter, or there is no generator.
std::unique_ptr<GeneratedLaunch> generated_launch(KernelImage& image, const LaunchRequest& request);
// The engine of requests that name none: the interpreter, unless --engine has been given before the first
// launch.
Engine& default_engine();
// Likewise of requests that choose no tier: nothing, unless a benchmark has chosen one.
std::optional<CodeTier>& default_tier();
// Warp instructions that generated code has executed in this process, by all launches that have ended. Tests of the
// generator want to know that it did something.
std::atomic<uint64_t>& warp_instructions_by_code();
// The generator's work in this process, by tier. Tests of the decisions and of their cost want to know.
struct CodeWork {
  std::atomic<uint64_t> requests = 0;         // plans for which code has been requested
  std::atomic<uint64_t> modules = 0;          // compiled by LLVM
  std::atomic<uint64_t> micro_operations = 0; // of plans that code has been written for
  std::atomic<uint64_t> code_bytes = 0;       // of machine code, or of LLVM's object files
};
CodeWork& code_work(CodeTier tier);
// By its word: auto, interpreter, generated. Nothing: it is none of them.
std::optional<Engine> engine_of(std::string_view word);
std::string word_of(Engine engine);
// Returns an empty string if this machine has a generator, else the reason why not.
std::string why_no_generator();

// Is quick code made without LLVM on this machine?
bool has_own_encoder();

// What making code of a whole kernel costs: processor milliseconds by step.
struct CompileCost {
  uint64_t instructions = 0, micro_operations = 0, functions = 0, code_bytes = 0;
  double plan = 0, write = 0, passes = 0, selection = 0; // without LLVM, `selection` makes the memory executable
  void add(const CompileCost& other) {
    instructions += other.instructions, micro_operations += other.micro_operations, functions += other.functions;
    code_bytes += other.code_bytes;
    plan += other.plan, write += other.write, passes += other.passes, selection += other.selection;
  }
  double total() const { return plan + write + passes + selection; }
};
// Makes, and drops, code for full warps of all that can be compiled, whatever is on disk. For benchmarks; nothing:
// there is no generator.
std::optional<CompileCost> compile_cost(KernelImage& image, CodeTier tier, bool portable = false);

// Patterns of the generator's rows that name no operation, or several with different numbers of sources. A test wants
// none.
std::vector<std::string> unknown_generator_rows();

// --- what a generator asks the decoder (core/decode.h) ---
// A region entry where lanes may meet (Meeting::at).
bool is_meeting_place(const MicroOp& op);
// Is this the sum of 64-bit lanes source[0] + source[1] + immediate (Decoder::emit_sum)?
bool is_lane_sum(const MicroOp& op);

} // namespace ptxrewrite::emulator
