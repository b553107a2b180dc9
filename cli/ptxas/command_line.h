// Parses ptxas's command line as far as a replacement needs it: input files, output file, target. All other words are
// passed on to ptxas.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace ptxrewrite::cli {

struct PtxasCommandLine {
  std::string program;                // nvcc --ptxas-prefix inserts the name of ptxas as the first argument; "" if
                                      // absent
  std::vector<std::string> arguments; // for ptxas
  std::vector<size_t> inputs;         // indices of the PTX files in `arguments`
  std::string output = "elf.o";
  std::string architecture;  // "sm_90"; "" if not given
  bool asks_version = false; // --version
  bool asks_help = false;
  bool only_asks = false;   // no input, and no option that needs one
  bool relocatable = false; // -c
  bool has_text = false;    // PTX in the command line, or options in a file: not supported, passed to ptxas unchanged

  // Our own options: --ptxrewrite-passes=, --emulated, or the environment (PTXREWRITE_PASSES, PTXREWRITE_EMULATED). In
  // a program under `exec`, modules are rewritten when they are loaded, and --emulated is the default.
  std::string passes;
  bool emulated = false;
};

// `arguments`: without the program name.
PtxasCommandLine read_ptxas_command_line(const std::vector<std::string>& arguments);

} // namespace ptxrewrite::cli
