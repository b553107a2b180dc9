// ptxas's command line as far as a program in its place must understand it: which words are inputs, where the result
// goes, for which GPU. All other words are ptxas's business.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace ptxrewrite::cli {

struct PtxasCommandLine {
  std::string program;                // nvcc --ptxas-prefix puts the name of ptxas first; "": it was not there
  std::vector<std::string> arguments; // for ptxas
  std::vector<size_t> inputs;         // which of them are files with PTX
  std::string output = "elf.o";
  std::string architecture;  // "sm_90"; "": not given
  bool asks_version = false; // --version
  bool asks_help = false;
  bool only_asks = false;   // no input, and nothing that needs one
  bool relocatable = false; // -c
  bool has_text = false;    // PTX in the command line, or options in a file: left to ptxas

  // Ours: --ptxrewrite-passes=, --emulated, or the environment (PTXREWRITE_PASSES, PTXREWRITE_EMULATED). In a program
  // that runs under `exec` modules are rewritten when they are loaded, and emulated is what there is without a word.
  std::string passes;
  bool emulated = false;
};

// `arguments`: without the program's own name.
PtxasCommandLine read_ptxas_command_line(const std::vector<std::string>& arguments);

} // namespace ptxrewrite::cli
