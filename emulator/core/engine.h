// Interface between the emulator and a generator of native code. The core knows no generator: emulator/generated
// defines these functions, or reports that there is no generator.
#pragma once

#include "emulator/core/emulator.h"

#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace ptxrewrite::emulator {

struct KernelImage;
struct MicroOp;

// Executor of kernels; the results are the same. automatic: generated code if a kernel runs long enough to be worth its
// compilation. Launches that are watched (check, observers, count_memory, machines) are always interpreted.
enum class Engine : uint8_t { automatic, interpreter, generated };

// In LaunchRequest::machines; if absent: the process's default_engine().
struct EngineSetting {
  std::optional<Engine> engine;
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
// Converts from auto, interpreter, generated; returns nullopt for other words.
std::optional<Engine> engine_of(std::string_view word);
std::string word_of(Engine engine);
// Returns an empty string if this machine has a generator, else the reason why not.
std::string why_no_generator();

// --- functions that a generator calls in the decoder (core/decode.h) ---
// Is this a region entry where lanes may reconverge (Meeting::at)?
bool is_meeting_place(const MicroOp& op);
// Is this the sum of 64-bit lanes source[0] + source[1] + immediate (Decoder::emit_sum)?
bool is_lane_sum(const MicroOp& op);

} // namespace ptxrewrite::emulator
