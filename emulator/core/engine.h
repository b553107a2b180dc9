// Where generated code plugs into the emulator. The core knows no generator: emulator/generated defines these
// functions, or says that there is none.
#pragma once

#include "emulator/core/emulator.h"

#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace ptxrewrite::emulator {

struct KernelImage;
struct MicroOp;

// Who executes a kernel; the results are the same. automatic: generated code where the kernel runs long enough for it
// to be worth its making. Launches that are watched (check, observers, count_memory, machines) are interpreted anyway.
enum class Engine : uint8_t { automatic, interpreter, generated };

// In LaunchRequest::machines; nothing there: the process's default_engine().
struct EngineSetting {
  std::optional<Engine> engine;
};

// The code of one kernel for one launch, from its making to its destruction: while it exists, region entries of the
// image look for code before they interpret.
class GeneratedLaunch {
public:
  virtual ~GeneratedLaunch() = default;
};

// Null: the launch is interpreted, because it is watched in a way that generated code does not serve, asks for the
// interpreter, or there is no generator.
std::unique_ptr<GeneratedLaunch> generated_launch(KernelImage& image, const LaunchRequest& request);
// What requests get that ask for no engine: the interpreter, unless --engine has said otherwise before the first
// launch.
Engine& default_engine();
// By its word: auto, interpreter, generated. Nothing: it is none of them.
std::optional<Engine> engine_of(std::string_view word);
std::string word_of(Engine engine);
// Empty: there is a generator on this machine; else why not.
std::string why_no_generator();

// --- what a generator asks the decoder (core/decode.h) ---
// A region entry where lanes may meet (Meeting::at).
bool is_meeting_place(const MicroOp& op);
// 64-bit lanes source[0] + source[1] + immediate (Decoder::emit_sum).
bool is_lane_sum(const MicroOp& op);

} // namespace ptxrewrite::emulator
