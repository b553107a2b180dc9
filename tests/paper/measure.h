// The data of the R2D2 tables about one sample. All counts are of machine instructions, by ir/machine's table for one
// machine, the same for the original and the rewritten kernel.
#pragma once

#include "emulator/machines/r2d2/section_counts.h"
#include "evaluate/launches/launch_input.h"
#include "ir/machine/figures/machine.h"
#include "support/result.h"

#include <memory>
#include <string>
#include <vector>

namespace ptxrewrite::tests {

// A launch file, its plan for a size (if it has no such size, for its default), and the module.
Result<evaluate::LaunchInput> read_sample(const std::string& launch_file, const std::string& size);

// Thread instructions of the original, and those executed by each ideal machine of r2d2 §2.2. Instructions without
// results (stores, branches, barriers) are executed unchanged by all of them.
struct IdealCounts {
  uint64_t baseline = 0;
  uint64_t within_warps = 0;  // WP
  uint64_t within_blocks = 0; // TB
  uint64_t linear = 0;        // LN
  uint64_t not_linear = 0;    // of the baseline: not reduced by LN
  // Warp instructions whose results are block-uniform by the analysis: for a scalar pipeline, as in the paper's
  // baseline.
  uint64_t scalar_warps = 0;
  IdealCounts& operator+=(const IdealCounts& other);
};

struct HardwareMeasurement {
  std::string sample, size;
  uint64_t baseline_warps = 0;      // warp instructions of the original
  uint64_t baseline_threads = 0;    // thread instructions
  uint64_t baseline_ptx_warps = 0;  // in PTX instructions
  emulator::SectionCounts hardware; // of executed kernels: originals if conditions or registers were missing
  emulator::SectionCounts hardware_ptx;
  // In the body: moves of linear registers into others, which are instructions; and those that are none, because the
  // paper's machine reads linear registers as operands of any instruction (§4.3, ir/machine/select/linear_operands.h),
  // counted as instructions. The other figures do not include the latter.
  uint64_t moves = 0, moves_ptx = 0;
  uint64_t operands = 0, operands_ptx = 0;
  uint64_t copies_ptx = 0;      // of the body: instructions that the paper lacks (paper_operands.h), without `operands`
  IdealCounts ideal, ideal_ptx; // ..._ptx: of PTX instructions
  bool rewritten = false;       // the pass changed something
  size_t launches = 0, launches_rewritten = 0;
  std::vector<std::string> reasons;   // reasons why originals ran, without repetitions
  std::vector<std::string> registers; // register file use of linear registers, without repetitions

  double reduction() const;    // of warp instructions, 0 .. 1
  double linear_share() const; // of the hardware form's warp instructions
};
// Runs the original, under the observers if `ideal`, and its hardware form, on the emulator.
Result<HardwareMeasurement> measure_hardware(const evaluate::LaunchInput& input, const std::string& name,
                                             const ir::Machine& machine, bool ideal);

// One kernel's figures by ptxas, before and after.
struct LegalKernel {
  std::string kernel;
  struct Figures {
    uint32_t instructions = 0, registers = 0, spilled_bytes = 0;
    uint32_t resident_warps = 0; // per SM, with the first launch's block
    bool operator==(const Figures&) const = default;
  };
  Figures before, after;
  bool changed = false;
};
struct LegalMeasurement {
  std::string sample;
  std::vector<LegalKernel> kernels; // launched by the plan
  // Warp instructions of all launches on the emulator, by ir/machine's weights for the architecture.
  uint64_t dynamic_before = 0, dynamic_after = 0;
  size_t launches = 0, launches_rewritten = 0; // all, and those that ran a variant

  bool changed() const;
  double ratio() const; // static machine instructions, after to before, of all kernels
  double dynamic_ratio() const;
};
// Returns an error if there is no ptxas, or if it refuses a text. `passes`: a pipeline.
Result<LegalMeasurement> measure_legal(const evaluate::LaunchInput& input, const std::string& name,
                                       const std::string& passes, const std::string& architecture);

} // namespace ptxrewrite::tests
