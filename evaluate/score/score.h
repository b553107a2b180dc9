// What the launches of one file take on a machine, by the timing model: `ptxrewrite score`. The original and each
// rewriting of it run on the emulator; the model sees what the run counted and recorded.
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
  uint64_t rewritten_launches = 0; // of them, by another entry than the original
  uint32_t registers = 0;          // per thread
  bool registers_by_ptxas = false; // else estimated
  uint32_t shared_bytes = 0;       // per block
  double clocks = 0, seconds = 0;
  double powered_seconds = 0; // as long the whole machine draws static power: on a slice its share of the time
  double instructions = 0;    // of the machine, by warps
  double dram_bytes = 0, l2_bytes = 0;
  timing::CauseClocks stack{};
  ir::EventCounts events{};
  timing::Estimates estimates;         // by simpler ways
  std::vector<double> clocks_if;       // by changed machine: ScoreSettings::changes
  uint64_t blocks = 0, blocks_run = 0; // of all launches; fewer ran of sampled ones
  // Of sampled launches: how far counts may be off, relative (BlockSample::bound); the largest of all launches.
  double instruction_bound = 0, sector_bound = 0;
  timing::KernelTime first; // of the first launch, with its terms
};

struct ScoredVersion {
  std::string name;   // "baseline", or its passes
  std::string remark; // why this version equals the baseline; empty if it differs
  std::vector<ScoredKernel> kernels;
  emulator::StagingCounters staging; // of RegLess's machine, all launches; no regions: it did not run
  double functional_seconds = 0;     // of the processor: the run, with what the model records
  double model_seconds = 0;          // and the model
  double plain_seconds = 0;          // the run without; 0: not measured
};

struct ScoredFile {
  std::string file;
  std::string size;
  const ir::Machine* machine = nullptr;
  uint32_t slice = 1;                  // the machine is one of so many slices (emulator/timing/slice.h)
  bool as_dense = false;               // so many as make grids as dense as the benchmark's (benchmark_slice.h)
  std::vector<ScoredVersion> versions; // the first is the baseline
  bool has_perfect_memory = false;     // the last of ScoredKernel::clocks_if is on a machine with such
};

// RegLess's machine as one more version (score_regless.h).
struct StagingConfiguration {
  std::string name;
  uint32_t entries = 512;         // of an SM
  uint32_t compressor_lines = 12; // of a scheduler
};
// As the paper compares them (§6): 512 entries, with and without compressor.
std::vector<StagingConfiguration> paper_configurations();

// Accesses of the register files that it is compared with: RFV's, and by levels RFH's.
struct ComparatorCounts {
  emulator::RenamingCounts renaming;
  emulator::HierarchyCounts hierarchy;
};

// What is otherwise than the model has it, to see what a cause is worth (tests/paper/cause_figures.cpp).
struct ScoreExperiment {
  timing::CodeIs code = timing::CodeIs::lowered;
  uint32_t assembler = 0; // machine instructions are those of this compute capability; 0: of the machine's
  std::function<void(timing::Recording&)> recording; // changes what was recorded
  // Changes each version's, the baseline's as well; `input` is without it.
  std::function<void(timing::Technique&, const timing::ModelInput& input)> technique;
};

// What scores of the launches of one program share, where each launch is a plan of its own: caches as launches leave
// them, machine code, what passes make of a module. Modules must outlive it.
class ScoreSession;
std::shared_ptr<ScoreSession> make_score_session();

struct ScoreSettings {
  const ir::Machine& machine;
  uint32_t slice = 1;                             // that it is one of
  std::vector<std::string> passes;                // a version each
  bool darsie = false;                            // one more: the original on DARSIE's machine
  bool paper_marks = false;                       // which goes by the marks of the paper's own rules
  std::vector<StagingConfiguration> regless = {}; // RegLess so, and RFV and RFH; none: not wanted
  std::vector<std::string> comparators = {};      // options of comparator_infos()
  transforms::OutputForm form = transforms::OutputForm::legal;
  bool measure_cost = false;
  bool run_ptxas = true;           // to count registers; else they are estimated
  ScoreSession* session = nullptr; // none: what launches of this plan share
  // Only the blocks that are looked at run, and stand for all. Not with what needs a machine of its own, nor where
  // blocks wait for others or later launches for what all blocks wrote.
  bool sampled = false;
  bool cold = false;                         // L2 is empty before every launch, as profilers make it
  bool exact = false;                        // all blocks and instructions are looked at, however long it takes
  std::vector<timing::TimedMachine> changes; // times on these are wanted, too: machines that differ in one figure
  ScoreExperiment experiment = {};
};

// A machine's guesses, each less and more by so much: the changed machines in pairs.
inline constexpr double guess_margin = 0.3;
std::vector<timing::TimedMachine> changed_machines(const ir::Machine& machine);

struct ScoreRun {
  ScoredFile scored;
  ComparatorCounts comparators;             // where ScoreSettings::regless has any
  std::optional<emulator::Failure> failure; // of a kernel: it is not over
};

// Errors: as run_plan; passes that fail.
Result<ScoreRun> score(const LaunchInput& input, const ScoreSettings& settings, cuda::ErrorPlace& place);

} // namespace ptxrewrite::evaluate
