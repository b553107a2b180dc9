// Scores RegLess, RFV and RFH against a baseline: RegLess's machine runs the launches first; its counters and the
// register information of the text become techniques of the timing model (regless_technique.h), so that one recording
// of the baseline serves to time all of them.
#pragma once

#include "emulator/machines/regless/staging_counters.h"
#include "evaluate/launches/launch_input.h"
#include "evaluate/launches/machine_weights.h"
#include "evaluate/score/regless_technique.h"
#include "evaluate/score/score.h"
#include "evaluate/score/score_derived.h"
#include "transforms/regless/regless_text.h"

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace ptxrewrite::evaluate {

// Options for the pass: a region may use a quarter of a scheduler's unit, and all of any one bank.
transforms::RegLessOptions regless_options(const ir::Machine& machine, uint32_t entries);

inline constexpr std::string_view rfv_name = "RFV", rfh_name = "RFH", no_file_name = "no register file";

class RegLessScorer final : public DerivedVersions {
public:
  // Runs the launches on RegLess's machine in each configuration. Fails like run_plan, or for kernels that cannot be
  // annotated or run on that machine.
  static Result<std::unique_ptr<RegLessScorer>> make(const LaunchInput& input, const ir::Machine& machine,
                                                     std::vector<StagingConfiguration> configurations,
                                                     cuda::ErrorPlace& place);

  // Its versions: the configurations, then the three others.
  std::vector<std::string> names() const override;
  // The techniques for one launch of the plan, in the order of names(). `input`: of the baseline.
  std::vector<timing::Technique> techniques(size_t launch, const ir::Function& kernel,
                                            const timing::ModelInput& input) override;

  // Sum over all launches on the machine in one configuration; a failure of a kernel ends them.
  emulator::StagingCounters total(size_t configuration) const;
  const std::optional<emulator::Failure>& failure() const { return failure_; }
  // The input of the timing model for one launch.
  timing::StagingRun staging_run(size_t configuration, size_t launch, const ir::Function& kernel,
                                 const timing::Recording& recording);
  // Accesses of the comparators' files, over the launches for which techniques() was called.
  const ComparatorCounts& comparators() const { return comparators_; }

private:
  RegLessScorer(const ir::Machine& machine, std::vector<StagingConfiguration> configurations)
      : machine_(machine), configurations_(std::move(configurations)), weights_(machine) {}
  Status run(const LaunchInput& input, cuda::ErrorPlace& place);
  const transforms::RegLessPlan* plan_of(const ir::Function& kernel, uint32_t entries);
  // `is_new`: count the launch's accesses.
  timing::RenamedFile renamed_file(const ir::Function& kernel, const timing::ModelInput& input, bool is_new);
  timing::HierarchicalFile hierarchical_file(const ir::Function& kernel, const timing::ModelInput& input, bool is_new);

  const ir::Machine& machine_;
  std::vector<StagingConfiguration> configurations_;
  MachineWeights weights_;
  std::vector<std::vector<emulator::StagingCounters>> runs_; // by configuration and launch
  std::optional<emulator::Failure> failure_;
  ComparatorCounts comparators_;
  std::set<size_t> counted_;                                                   // launches already counted
  std::map<std::pair<const ir::Machine*, size_t>, timing::CacheState> caches_; // by configuration, after its launches
  std::map<std::pair<const ir::Function*, uint32_t>, std::optional<transforms::RegLessPlan>> plans_;
};

} // namespace ptxrewrite::evaluate
