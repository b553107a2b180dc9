// NVIDIA's assembler: finds it, runs it on PTX text with limits, and parses the figures that it prints.
#pragma once

#include "support/result.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace ptxrewrite {

// Output of `ptxas -v` about one kernel or device function. Sizes are in bytes.
struct PtxasFigures {
  std::string function; // mangled name
  bool is_entry = false;
  uint32_t registers = 0; // per thread, including those reserved by the ABI
  uint32_t barriers = 0;
  uint32_t stack_frame = 0;
  uint32_t spill_stores = 0;
  uint32_t spill_loads = 0;
  uint32_t shared = 0; // static
};

struct PtxasOptions {
  std::string arch; // "sm_80"; empty: the text's own .target
  int optimization_level = 3;
  std::vector<std::string> extra_flags;
  double timeout_seconds = 3600;
  uint64_t address_space_bytes = 0; // 0: three quarters of the machine's memory
  std::string program;              // path of the assembler; empty: find_ptxas()'s
};

struct PtxasRun {
  bool ok = false;      // assembled
  bool crashed = false; // ended by a signal: some inputs crash ptxas
  bool timed_out = false;
  std::string messages;              // its whole output
  std::string cubin;                 // the ELF image if ok
  std::vector<PtxasFigures> figures; // in the order printed
  double user_seconds = 0;
  uint64_t peak_memory_kib = 0; // 0: unknown, see ProcessResult

  // Returns nullptr if ptxas printed nothing about `function`.
  const PtxasFigures* find(std::string_view function) const;
};

// Path of ptxas: $PTXREWRITE_PTXAS or $PTXAS if set (then only that one), else searched in $PATH, $CUDA_HOME,
// $CUDA_PATH, the usual installation folders of toolkits, and NVIDIA's wheel (nvidia-cuda-nvcc) in $VIRTUAL_ENV or
// where `./bootstrap ptxas` installs it: the folder `ptxas` beside the program's build folder. `other_than`: a program
// to be skipped, under any name. The error message says what to set.
Result<std::string> find_ptxas(const std::filesystem::path& other_than = {});

// All assemblers in these locations, each once, in that order. The environment's choice does not hide the others.
std::vector<std::string> all_ptxas();

// The toolkit release that an assembler reports: "13.5" (which supports PTX up to 9.5). Empty if it reports none.
std::string ptxas_release(const std::string& program);

// For people: "ptxas 13.0 (/usr/local/cuda/bin/ptxas)", or a message that there is none.
std::string describe_ptxas();

// Assembles PTX text. A rejection, a crash and a time-out are results; a missing ptxas or a file system failure is an
// error.
Result<PtxasRun> assemble(std::string_view ptx, const PtxasOptions& options = {});
// The same for a file on disk.
Result<PtxasRun> assemble_file(const std::string& path, const PtxasOptions& options = {});

// Parses the figures in the output of `ptxas -v`. Unknown lines are skipped.
std::vector<PtxasFigures> parse_ptxas_figures(std::string_view messages);

// The architecture in the .target directive of a PTX text ("sm_90a"); empty if there is none.
std::string target_architecture(std::string_view ptx);

} // namespace ptxrewrite
