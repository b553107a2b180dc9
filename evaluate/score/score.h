// Predicted times of the launches of one file on a machine, by the timing model: `ptxrewrite score`. The original and
// each rewritten version run on the emulator, which provides counters and recordings to the model.
#pragma once

#include "emulator/machines/regless/register_hierarchy.h"
#include "emulator/machines/regless/renamed_registers.h"
#include "emulator/machines/regless/staging_counters.h"
#include "emulator/timing/energy.h"
#include "emulator/timing/estimators.h"
#include "emulator/timing/guesses.h"
#include "evaluate/launches/launch_input.h"
#include "ir/machine/figures/machine.h"
#include "transforms/manager/pass.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace ptxrewrite::evaluate {

// All launches of one kernel.
struct ScoredKernel {
  std::string kernel;
  launch::Dim3 grid, block; // of the first launch
  uint64_t launches = 0;
  uint64_t rewritten_launches = 0; // launches that ran another entry than the original
  uint32_t registers = 0;          // per thread
  bool registers_by_ptxas = false; // otherwise estimated
  uint32_t shared_bytes = 0;       // per block
  double clocks = 0, seconds = 0;
  double powered_seconds = 0; // time for which the whole machine draws static power: for a slice, its share of the time
  double instructions = 0;    // machine instructions, by warps
  uint64_t ptx_warp_instructions = 0, ptx_thread_instructions = 0;
  double dram_bytes = 0, l2_bytes = 0;
  timing::CauseClocks stack{};
  ir::EventCounts events{};
  timing::Estimates estimates;         // by simpler estimators
  std::vector<double> clocks_if;       // by changed machine: ScoreSettings::changes
  uint64_t blocks = 0, blocks_run = 0; // over all launches; blocks_run is smaller for sampled launches
  // Of sampled launches: the relative uncertainty of counts (BlockSample::bound), the maximum over all launches.
  double instruction_bound = 0, sector_bound = 0;
  timing::KernelTime first; // of the first launch, with its terms
};

struct ScoredVersion {
  std::string name;   // "baseline", or the passes
  std::string remark; // why this version equals the baseline; empty if it differs
  std::vector<ScoredKernel> kernels;
  emulator::StagingCounters staging; // of RegLess's machine, over all launches; no regions if it was not used
  double functional_seconds = 0;     // processor time of the run, including the recording for the model
  double model_seconds = 0;          // and of the model
  double plain_seconds = 0;          // of the run without recording; 0 if not measured
};

struct ScoredFile {
  std::string file;
  std::string size;
  const ir::Machine* machine = nullptr;
  uint32_t slice = 1;                  // the machine is 1/slice of the whole (emulator/timing/slice.h)
  bool as_dense = false;               // the slice makes grids as dense as the benchmark's (benchmark_slice.h)
  std::vector<ScoredVersion> versions; // the first one is the baseline
  bool has_perfect_memory = false;     // the last entry of ScoredKernel::clocks_if is for a machine with perfect memory
};

// RegLess's machine as an additional version (score_regless.h).
struct StagingConfiguration {
  std::string name;
  uint32_t entries = 512;         // per SM
  uint32_t compressor_lines = 12; // per scheduler
};
// The paper's configurations (§6): 512 entries, with and without compressor.
std::vector<StagingConfiguration> paper_configurations();

// Accesses of the register files it is compared with: RFV's, and RFH's by level.
struct ComparatorCounts {
  emulator::RenamingCounts renaming;
  emulator::HierarchyCounts hierarchy;
};

// Deviations from the model, to measure the effect of one cause (tests/paper/cause_figures.cpp).
struct ScoreExperiment {
  timing::CodeIs code = timing::CodeIs::lowered;
  uint32_t assembler = 0; // machine instructions are those of this compute capability; 0: the machine's own
  std::function<void(timing::Recording&)> recording; // modifies the recording
  // Modifies the technique of each version, including the baseline; `input` is without it.
  std::function<void(timing::Technique&, const timing::ModelInput& input)> technique;
};

// State shared by the scores of one program's launches, of which each is a separate plan: cache contents between
// launches, machine code, rewritten modules. Modules must outlive it.
class ScoreSession;
std::shared_ptr<ScoreSession> make_score_session();

struct ScoreSettings {
  const ir::Machine& machine;
  uint32_t slice = 1;                             // `machine` is 1/slice of the whole
  std::vector<std::string> passes;                // one version for each
  bool darsie = false;                            // an additional version: the original on DARSIE's machine
  bool paper_marks = false;                       // with marks by the paper's own rules
  std::vector<StagingConfiguration> regless = {}; // RegLess in these configurations, and RFV and RFH; empty if not
                                                  // wanted
  std::vector<std::string> comparators = {};      // from the options in comparator_infos()
  transforms::OutputForm form = transforms::OutputForm::legal;
  bool measure_cost = false;
  bool run_ptxas = true;           // to count registers; otherwise they are estimated
  ScoreSession* session = nullptr; // nullptr: sharing is limited to the launches of this plan
  // Only the sampled blocks run, and represent all blocks. Not possible with techniques that need a separate machine,
  // or if blocks wait for others, or if later launches need the results of all blocks.
  bool sampled = false;
  bool cold = false;                         // L2 is emptied before every launch, as profilers do
  bool exact = false;                        // examine all blocks and instructions, regardless of the duration
  std::vector<timing::TimedMachine> changes; // also predict times for these machines, which differ in one figure
  ScoreExperiment experiment = {};
};

// The relative change of a machine's guessed figures in the changed machines, which come in pairs: less and more.
inline constexpr double guess_margin = 0.3;
std::vector<timing::TimedMachine> changed_machines(const ir::Machine& machine);

struct ScoreRun {
  ScoredFile scored;
  ComparatorCounts comparators;             // if ScoreSettings::regless is not empty
  std::optional<emulator::Failure> failure; // of a kernel that did not finish
};

// Fails like run_plan, or if a pass fails.
Result<ScoreRun> score(const LaunchInput& input, const ScoreSettings& settings, cuda::ErrorPlace& place);

} // namespace ptxrewrite::evaluate
