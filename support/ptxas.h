// NVIDIA's assembler as a judge: finds it, runs it on PTX text under limits, and reads the figures it prints.
#pragma once

#include "support/result.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace ptxrewrite {

// What `ptxas -v` says about one kernel or device function. Sizes are bytes.
struct PtxasFigures {
  std::string function; // mangled name
  bool is_entry = false;
  uint32_t registers = 0; // per thread, with the ones the ABI reserves
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
  uint64_t address_space_bytes = 0; // 0: no limit
  std::string program;              // path of the assembler; empty: find_ptxas()'s
};

struct PtxasRun {
  bool ok = false;      // assembled
  bool crashed = false; // ended by a signal: some inputs bring ptxas down
  bool timed_out = false;
  std::string messages;              // everything it printed
  std::string cubin;                 // the ELF image when ok
  std::vector<PtxasFigures> figures; // in the order printed
  double user_seconds = 0;
  uint64_t peak_memory_kib = 0; // 0: unknown, see ProcessResult

  // nullptr if ptxas printed nothing about `function`.
  const PtxasFigures* find(std::string_view function) const;
};

// Path of ptxas: $PTXREWRITE_PTXAS or $PTXAS if set (and then nothing else), else $PATH, $CUDA_HOME, $CUDA_PATH, the
// places where toolkits are usually installed, and NVIDIA's wheel (nvidia-cuda-nvcc) in $VIRTUAL_ENV or where
// `./bootstrap ptxas` puts it: the folder `ptxas` beside the build folder that the program runs from. `other_than`: a
// program that is passed over, under whatever name it is found. The error says what to set.
Result<std::string> find_ptxas(const std::filesystem::path& other_than = {});

// All assemblers in those places, each once, in that order. The environment's choice does not hide the others here.
std::vector<std::string> all_ptxas();

// The toolkit release that an assembler says it is of: "13.5" (which knows PTX up to 9.5). Empty if it says none.
std::string ptxas_release(const std::string& program);

// For people: "ptxas 13.0 (/usr/local/cuda/bin/ptxas)", or that there is none.
std::string describe_ptxas();

// Assembles PTX text. A refusal, a crash and a time-out are results; errors are a missing ptxas or a failing file
// system.
Result<PtxasRun> assemble(std::string_view ptx, const PtxasOptions& options = {});
// The same for a file on disk.
Result<PtxasRun> assemble_file(const std::string& path, const PtxasOptions& options = {});

// The figures in the output of `ptxas -v`. Lines that are not understood are skipped.
std::vector<PtxasFigures> parse_ptxas_figures(std::string_view messages);

// The architecture a PTX text names in its .target directive ("sm_90a"); empty if there is none.
std::string target_architecture(std::string_view ptx);

} // namespace ptxrewrite
