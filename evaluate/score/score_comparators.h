// Comparators for a scored version (evaluate/score/comparator_techniques.h): CAE's affine units, MTA's prefetcher,
// DAC-IDEAL, the scalar unit and the sliced datapath of composite-hpca13. They observe a separate run; then one
// recording serves to time all of them.
#pragma once

#include "emulator/observe/datapath_study.h"
#include "evaluate/score/comparator_techniques.h"
#include "evaluate/score/score_derived.h"
#include "ir/machine/figures/machine.h"

#include <memory>
#include <optional>
#include <string_view>

namespace ptxrewrite::evaluate {

struct ComparatorInfo {
  std::string_view option, name, about;
  bool of_composites = false; // also available for a version with composite instructions
  bool of_darsie = false;     // only available for DARSIE's machine
};
std::span<const ComparatorInfo> comparator_infos();

class ComparatorScorer final : public DerivedVersions {
public:
  // Runs the launches of `module`, observed by the selected comparators. Fails like run_plan.
  static Result<std::unique_ptr<ComparatorScorer>> make(const LaunchInput& input, const ir::Module& module,
                                                        const launch::Variants* variants, const ir::Machine& machine,
                                                        std::vector<ComparatorInfo> wanted, cuda::ErrorPlace& place);
  ~ComparatorScorer() override;

  std::vector<std::string> names() const override;
  std::vector<timing::Technique> techniques(size_t launch, const ir::Function& kernel,
                                            const timing::ModelInput& input) override;
  const std::optional<emulator::Failure>& failure() const { return failure_; }

private:
  // Observations of one launch.
  struct Seen {
    std::map<uint32_t, double> affine;  // share of executions, by instruction number
    std::map<uint32_t, double> skipped; // of DAC-IDEAL, likewise
    std::map<uint32_t, emulator::LoadPrefetches> loads;
    emulator::PrefetchCounts prefetcher;
    std::map<uint32_t, timing::DatapathShares> scalar, sliced, both;
    emulator::DatapathCounts datapath;
  };
  class Looking;

  ComparatorScorer(const ir::Module& module, const ir::Machine& machine, std::vector<ComparatorInfo> wanted);
  bool wants(std::string_view option) const;
  timing::Technique technique(const ComparatorInfo& comparator, const Seen& seen, const timing::ModelInput& input);

  const ir::Module& module_;
  const ir::Machine& machine_;
  std::vector<ComparatorInfo> wanted_;
  std::vector<Seen> seen_; // by launch
  std::unique_ptr<Looking> looking_;
  std::optional<emulator::Failure> failure_;
};

} // namespace ptxrewrite::evaluate
