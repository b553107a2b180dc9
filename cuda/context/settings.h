// Settings that `ptxrewrite exec` passes to the emulated CUDA libraries in the program's environment.
#pragma once

#include "ir/machine/figures/machine.h"

#include <cstdint>
#include <string>
#include <vector>

namespace ptxrewrite::cuda {

enum class LogLevel : uint8_t { error, warn, info, debug };

struct Settings {
  const ir::Machine* machine = nullptr; // not null after the settings are read
  LogLevel log_level = LogLevel::warn;
  bool check = false;
  bool counters = false;
  std::string json;                   // path of the report; "" if none
  std::string passes;                 // pipeline that rewrites modules when they are loaded; "" if none
  uint64_t specialise = 0;            // number of equal launches by which a kernel is specialised for them; 0: never
  std::string verify;                 // passes whose result is compared with the original's in each launch; "" if none
  std::string capture;                // folder for launch files; "" if none
  uint64_t captures = 1;              // number of launches to capture per kernel, from the first one; 0: the one that
                                      // executes the most instructions
  bool study = false;                 // run the studies on each launch
  const ir::Machine* score = nullptr; // machine on which each launch is timed; nullptr if none
  std::string html;                   // path of an HTML page on the timing; "" if none
  uint64_t fuel = 0;                  // 0: the emulator's default
  uint64_t memory = 0;                // 0: the emulator's default
  unsigned host_threads = 0;          // 0: all
  std::string engine;                 // emulator::engine_of; "": automatic
  std::string matrix_sums;            // emulator::matrix_sums_of; "": sequential
};

// Parses a level such as "debug"; returns LogLevel::warn for unknown names.
LogLevel log_level_of(const std::string& text);
// The settings as NAME=VALUE, for settings_from_environment.
std::vector<std::string> environment_of(const Settings& settings);
// The machine that is emulated by default.
const ir::Machine& default_machine();
Settings settings_from_environment();

} // namespace ptxrewrite::cuda
