// Original against rewritten: one file's verification, apart from how it is shown.
#pragma once

#include "cuda/compare.h"
#include "cuda/device.h"
#include "emulator/machines/dac/affine_counters.h"
#include "emulator/machines/darsie/skip_counters.h"
#include "emulator/machines/regless/staging_counters.h"
#include "evaluate/launches/launch_input.h"
#include "launch/shapes.h"
#include "launch/variants.h"
#include "transforms/manager/pipeline.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace ptxrewrite::evaluate {

// One way to rewrite.
struct VerifyCase {
  std::string passes; // a pipeline; "": into SSA form and out of it
  transforms::OutputForm form = transforms::OutputForm::legal;
};

enum class Verdict : uint8_t {
  identical,
  unchanged, // the passes did nothing, so nothing ran
  not_run,   // the device does not know the rewritten form
  differs,
};

struct ShapeDifference {
  std::string shape;
  std::vector<cuda::BufferComparison> buffers; // those that differ
  std::optional<emulator::Failure> failure;    // the rewritten kernel's own
  std::vector<emulator::Finding> findings;     // of check mode, where the original has none
};

struct CaseResult {
  VerifyCase what;
  Verdict verdict = Verdict::identical;
  std::string reason;               // not_run; differs: when there is no rewritten module that could run
  size_t shapes = 0;                // that ran
  size_t launches = 0;              // in all shapes
  size_t fallbacks = 0;             // of them: a variant was there, and the original ran
  std::vector<std::string> reasons; // why, each once
  // A module with DARSIE's marks runs on its machine, too, in all variants: warp instructions in all shapes, and shapes
  // whose result depends on the order of warps, which is another one there.
  uint64_t executed = 0, skipped = 0;
  size_t ordered_shapes = 0;
  // A module with RegLess's annotations runs on its machine, too: entries of the smallest unit that it ran on.
  uint32_t least_entries = 0;
  uint64_t regions = 0;            // that ran there
  emulator::AffineCounters affine; // of DAC's machine, in all shapes
  std::vector<ShapeDifference> differences;
  std::shared_ptr<ir::Module> module; // what failures point into; nullptr where nothing ran
};

struct SkippedShape {
  std::string shape;
  std::string reason; // why the original does not run clean with it
};

struct VerifySettings {
  transforms::RunOptions run; // form is the case's
  unsigned host_threads = 0;
  const ir::Machine* machine = nullptr; // EmulatorOptions::machine
  bool derived_shapes = true;
  size_t most_differences = 10;
  // Runs on this GPU, in these shapes; nullptr: on the emulator.
  cuda::Device* gpu = nullptr;
  std::vector<std::string> gpu_shapes;
};

// Runs the original in all shapes, once; then any number of cases.
class Verifier {
public:
  Verifier(const LaunchInput& input, VerifySettings settings);

  // Errors: the original cannot be run (`place` says what the error's range points into).
  Status run_original(cuda::ErrorPlace& place);
  // A fault of the original as the launch file gives it; nothing can be compared then.
  const std::optional<emulator::Failure>& original_failure() const { return original_failure_; }
  const std::vector<SkippedShape>& skipped() const { return skipped_; }
  // Findings of check mode in the original as given.
  size_t original_findings() const { return original_findings_; }
  // Shapes with which the original runs clean.
  std::vector<std::string> clean_shapes() const;

  CaseResult verify(const VerifyCase& what);
  // What the original left here against what it left there: emulator and GPU. Both have run it.
  CaseResult compare_original(const Verifier& other) const;

private:
  struct Truth {
    launch::LaunchShape shape;
    launch::LaunchPlan plan;
    cuda::SessionResult result;
    bool clean = true;
    uint64_t fuel = 0;                      // for the rewritten kernels
    std::optional<bool> order_matters;      // of blocks; once it is known
    std::optional<bool> warp_order_matters; // likewise
  };
  // How the emulator runs; a GPU does as it does.
  struct RunMode {
    uint64_t fuel = 0;
    uint64_t resident_blocks = 0; // of persistent variants
    bool reversed = false;
    std::optional<emulator::SkipSettings> skipping = {};
    bool late_copies = false; // LaunchRequest::late_copies
    std::optional<emulator::StagingSettings> staging = {};
    uint32_t affine_entries = 0; // AffineSettings::entries_per_warp
    bool ignores_data = false;   // AffineSettings::check_data
    bool ignores_queues = false; // AffineSettings::check
  };

  Status make_contents();
  emulator::MachineData machine_settings(const RunMode& mode) const;
  Result<cuda::SessionResult> run(const launch::LaunchPlan& plan, const ir::Module& module,
                                  const launch::Variants& variants, const RunMode& mode, cuda::ErrorPlace& place);
  void compare_all(CaseResult& result);
  std::vector<cuda::BufferComparison> compare_buffers(const Truth& truth, const cuda::SessionResult& other) const;
  bool compare_shape(Truth& truth, const ir::Module& module, const launch::Variants& variants, CaseResult& result);
  ShapeDifference difference_of(const Truth& truth, const cuda::SessionResult& rewritten,
                                uint64_t resident_blocks) const;
  bool order_matters(Truth& truth);
  bool warp_order_matters(Truth& truth);
  void compare_queues(Truth& truth, const ir::Module& module, const launch::Variants& variants, CaseResult& result);
  void compare_short_queues(Truth& truth, const ir::Module& module, const launch::Variants& variants,
                            CaseResult& result);
  void compare_late_copies(const Truth& truth, const ir::Module& module, const launch::Variants& variants,
                           CaseResult& result);
  void compare_skipping(const Truth& truth, const ir::Module& module, const launch::Variants& variants,
                        CaseResult& result);
  void compare_staging(const Truth& truth, const ir::Module& module, const launch::Variants& variants,
                       CaseResult& result);

  const LaunchInput& input_;
  VerifySettings settings_;
  launch::Variants own_variants_; // that the input has already
  std::vector<std::vector<std::byte>> contents_;
  std::vector<Truth> truths_;
  std::vector<SkippedShape> skipped_;
  std::optional<emulator::Failure> original_failure_;
  size_t original_findings_ = 0;
  std::map<std::string, CaseResult> known_; // by the rewritten text: forms of a pass are often the same
};

} // namespace ptxrewrite::evaluate
