// One launch by one engine, and how the launches of two engines differ: memory, counters, failures, what was printed.
#pragma once

#include "emulator/core/emulator.h"
#include "emulator/core/engine.h"

#include <cstddef>
#include <string>
#include <vector>

namespace ptxrewrite::test {

struct EngineRun {
  std::string refused; // the launch is an error: nothing ran
  std::string failure; // message and place; empty: none
  std::string printed;
  emulator::Counters counters;
  std::vector<std::vector<std::byte>> memory; // contents of the compared buffers
  uint64_t generated = 0;                     // warp instructions that generated code executed
};

// Takes over the result of a launch.
void take_result(Result<emulator::LaunchResult> result, EngineRun& run);

// Between its making and its end, launches that ask for no engine run on this one.
class UsesEngine {
public:
  explicit UsesEngine(emulator::Engine engine);
  ~UsesEngine();
  UsesEngine(const UsesEngine&) = delete;
  UsesEngine& operator=(const UsesEngine&) = delete;
  // Warp instructions that generated code has executed since.
  uint64_t generated() const { return emulator::warp_instructions_by_code() - before_; }

private:
  emulator::Engine usual_;
  uint64_t before_;
};

// False: there is no generator on this machine, and a line says so.
bool has_generator();

// "" if they agree.
std::string difference(const EngineRun& interpreted, const EngineRun& generated);

// Totals of a differential test over one kind of input.
struct EngineTally {
  uint64_t kernels = 0, launches = 0, failed_launches = 0, refused = 0, differences = 0;
  uint64_t warp_instructions = 0, generated = 0;

  // Counts the pair; prints what differs, the first few times. Returns whether they agree.
  bool add(const std::string& what, const EngineRun& interpreted, const EngineRun& generated);
  // Prints the sums. Returns the exit code: 1 if there was a difference, or generated code executed too little for the
  // test to be one.
  int finish(const char* name) const;
};

} // namespace ptxrewrite::test
