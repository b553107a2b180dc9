// What `ptxrewrite exec` asks of the emulated CUDA libraries, by way of the program's environment.
#pragma once

#include "ir/machine/figures/machine.h"

#include <cstdint>
#include <string>
#include <vector>

namespace ptxrewrite::cuda {

enum class LogLevel : uint8_t { error, warn, info, debug };

struct Settings {
  const ir::Machine* machine = nullptr; // never null once it is read
  LogLevel log_level = LogLevel::warn;
  bool check = false;
  bool counters = false;
  std::string json;                   // file of the report; "": none
  std::string passes;                 // that rewrite modules when they are loaded, as a pipeline; "": none
  std::string verify;                 // passes whose work is compared with the original's in each launch; "": none
  std::string capture;                // folder for launch files; "": none
  uint64_t captures = 1;              // launches of each kernel, the first ones; 0: the one that executes most
  bool study = false;                 // each launch under the studies
  const ir::Machine* score = nullptr; // each launch timed on it; nullptr: none
  std::string html;                   // file of a page about that; "": none
  uint64_t fuel = 0;                  // 0: the emulator's own limit
  uint64_t memory = 0;                // the same
  unsigned host_threads = 0;          // 0: all
};

// Parses a level such as "debug"; unknown names give LogLevel::warn.
LogLevel log_level_of(const std::string& text);
// NAME=VALUE, what settings_from_environment reads.
std::vector<std::string> environment_of(const Settings& settings);
// The machine that is emulated where nobody names one.
const ir::Machine& default_machine();
Settings settings_from_environment();

} // namespace ptxrewrite::cuda
