// Compares original and rewritten kernels of one file; the reports are separate.
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

// One rewriting to verify.
struct VerifyCase {
  std::string passes; // a pipeline; "": convert to SSA form and back
  transforms::OutputForm form = transforms::OutputForm::legal;
};

enum class Verdict : uint8_t {
  identical,
  unchanged, // the passes changed nothing, so nothing was run
  not_run,   // the device does not support the rewritten form
  differs,
};

struct ShapeDifference {
  std::string shape;
  std::vector<cuda::BufferComparison> buffers; // the differing ones
  std::optional<emulator::Failure> failure;    // of the rewritten kernel
  std::vector<emulator::Finding> findings;     // of check mode, if the original has none
};

struct CaseResult {
  VerifyCase what;
  Verdict verdict = Verdict::identical;
  std::string reason;               // if not_run; if differs: why no rewritten module could run
  size_t shapes = 0;                // number of shapes that ran
  size_t launches = 0;              // over all shapes
  size_t fallbacks = 0;             // launches that ran the original although there was a variant
  std::vector<std::string> reasons; // reasons for fallbacks, without duplicates
  // A module with DARSIE's marks also runs on its machine, in all variants: warp instructions over all shapes, and the
  // number of shapes whose result depends on the order of warps, which differs there.
  uint64_t executed = 0, skipped = 0;
  size_t ordered_shapes = 0;
  // A module with RegLess's annotations also runs on its machine: entries of the smallest unit used.
  uint32_t least_entries = 0;
  uint64_t regions = 0;            // executed on that machine
  emulator::AffineCounters affine; // of DAC's machine, over all shapes
  std::vector<ShapeDifference> differences;
  std::shared_ptr<ir::Module> module; // for the ranges of failures; nullptr if nothing was run
};

struct SkippedShape {
  std::string shape;
  std::string reason; // why the original does not run cleanly in this shape
};

struct VerifySettings {
  transforms::RunOptions run; // `form` is taken from the case
  unsigned host_threads = 0;
  const ir::Machine* machine = nullptr; // EmulatorOptions::machine
  bool derived_shapes = true;
  size_t most_differences = 10;
  // The GPU to run on, and the shapes to run there; nullptr: the emulator.
  cuda::Device* gpu = nullptr;
  std::vector<std::string> gpu_shapes;
};

// Runs the original in all shapes once, and then verifies any number of cases.
class Verifier {
public:
  Verifier(const LaunchInput& input, VerifySettings settings);

  // Fails if the original cannot be run (`place` tells which text the error's range refers to).
  Status run_original(cuda::ErrorPlace& place);
  // A fault of the original in the launch file's own shape; nothing can be compared then.
  const std::optional<emulator::Failure>& original_failure() const { return original_failure_; }
  const std::vector<SkippedShape>& skipped() const { return skipped_; }
  // Findings of check mode in the original, in its own shape.
  size_t original_findings() const { return original_findings_; }
  // The original's run in its own shape; nullptr if it failed.
  const cuda::SessionResult* original() const { return truths_.empty() ? nullptr : &truths_.front().result; }
  // Shapes in which the original runs cleanly.
  std::vector<std::string> clean_shapes() const;

  CaseResult verify(const VerifyCase& what);
  // Compares the original's results on two devices, emulator and GPU. Both verifiers must have run it.
  CaseResult compare_original(const Verifier& other) const;

private:
  struct Truth {
    launch::LaunchShape shape;
    launch::LaunchPlan plan;
    cuda::SessionResult result;
    bool clean = true;
    uint64_t fuel = 0;                      // for the rewritten kernels
    std::optional<bool> order_matters;      // of blocks; empty until determined
    std::optional<bool> warp_order_matters; // likewise
  };
  // Modes of the emulator; a GPU ignores them.
  struct RunMode {
    uint64_t fuel = 0;
    uint64_t resident_blocks = 0; // for persistent variants
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
  void compare_other_forms(const ir::Module& module, const launch::Variants& variants, CaseResult& result);
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
  launch::Variants own_variants_; // the input's existing variants
  std::vector<std::vector<std::byte>> contents_;
  std::vector<Truth> truths_;
  std::vector<SkippedShape> skipped_;
  std::optional<emulator::Failure> original_failure_;
  size_t original_findings_ = 0;
  std::map<std::string, CaseResult> known_; // by rewritten text, because different forms of a pass are often identical
};

} // namespace ptxrewrite::evaluate
