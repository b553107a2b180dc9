// Results of families of launch-time rewrites on the kernels of one PTX file, each family alone and all together.
#pragma once

#include "support/result.h"

#include <cstdint>
#include <string>
#include <vector>

namespace ptxrewrite::tests {

// A pipeline that is measured.
struct Candidate {
  std::string name;   // "memory"
  std::string passes; // "memory", or "memory(cost=model)" where passes choose by the model
};
// The registered families, all together, and -O. `wanted`: only these; empty: all.
std::vector<Candidate> candidates(const std::vector<std::string>& wanted, bool by_model);

// One kernel in one pipeline. If there is a variant beside the original, `after` is the variant.
struct KernelRow {
  std::string candidate, file, kernel;
  bool changed = false, is_variant = false;
  uint32_t instructions_before = 0, instructions_after = 0; // static, of the machine code
  uint32_t registers_before = 0, registers_after = 0;
  uint32_t spills_before = 0, spills_after = 0;   // bytes
  double weighted_before = 0, weighted_after = 0; // by the model, times 10 per loop level
};

// One file in one pipeline.
struct FileRow {
  std::string candidate, file;
  std::string failure;      // "crash", "refused by ptxas: ...", "not read back: ..."; empty: none
  double pass_seconds = 0;  // user time of the passes, choosing by the model
  double ptxas_seconds = 0; // user time of ptxas -O3 for the original
  uint32_t assemblies = 0;  // runs of ptxas by the passes; 0 if the model chooses
};

struct FamilyRows {
  std::vector<KernelRow> kernels;
  std::vector<FileRow> files;
};

struct MeasureSettings {
  std::string architecture = "sm_80";
  bool by_model = true;
  unsigned jobs = 1;
  unsigned seconds = 600; // of processor time for one file
};

// Appends the rows of all files to `rows_file`, except those that it has. Each file is measured in its own
// process, so that a crash becomes a row. Errors: no ptxas, `rows_file` cannot be written.
Status measure_files(const std::vector<std::string>& files, const std::vector<Candidate>& candidates,
                     const MeasureSettings& settings, const std::string& rows_file);

Result<FamilyRows> read_rows(const std::string& rows_file);

// Is the file in the half that was not used to make rules? Decided by its name alone.
bool is_held_out(const std::string& file);

} // namespace ptxrewrite::tests
