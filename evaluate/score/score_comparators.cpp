#include "evaluate/score/score_comparators.h"

#include "emulator/machines/dac/compact_affine.h"
#include "evaluate/launches/machine_weights.h"
#include "evaluate/study/study_launches.h"
#include "ir/machine/figures/occupancy.h"
#include "ir/machine/registers/registers.h"
#include "launch/signature.h"

#include <algorithm>
#include <unordered_set>

namespace ptxrewrite::evaluate {
namespace {

constexpr std::string_view cae = "cae", mta = "mta", dac_ideal = "dac-ideal", scalar = "scalar", sliced = "sliced",
                           both = "scalar+sliced", darsie_scalar = "darsie-scalar";
constexpr ComparatorInfo infos[] = {
    {cae, "CAE", "affine units (dac-isca17 5.1.1)"},
    {mta, "MTA", "stride prefetcher (dac-isca17 5.1.1)"},
    {dac_ideal, "DAC-IDEAL", "affine instructions once per batch of blocks, without any overhead (r2d2-isca23 5)"},
    {scalar, "scalar unit", "composite-hpca13 4", true},
    {sliced, "sliced datapath", "composite-hpca13 5", true},
    {both, "scalar unit and sliced datapath", "both", true},
    {darsie_scalar, "DARSIE+Scalar", "what DARSIE leaves, on a scalar pipeline (r2d2-isca23 5)", false, true},
};

double share(double part, double whole) {
  return whole > 0 ? part / whole : 0;
}

timing::DatapathAccesses accesses_of(const emulator::DatapathCounts& counts, const emulator::RegisterAccesses& with) {
  return {static_cast<double>(counts.accesses()), static_cast<double>(with.full), static_cast<double>(with.half),
          static_cast<double>(with.scalar)};
}

} // namespace

std::span<const ComparatorInfo> comparator_infos() {
  return infos;
}

// All observers of one launch; only those that are needed.
class ComparatorScorer::Looking final : public emulator::Observer {
public:
  Looking(const ComparatorScorer& owner, MachineWeights& weights, const emulator::LaunchRequest& request)
      : weights_(weights), machine_(owner.machine_) {
    if (owner.wants(cae)) affine_ = std::make_unique<emulator::CompactAffine>();
    if (owner.wants(mta)) prefetcher_ = std::make_unique<emulator::PrefetchStudy>(machine_.sms);
    const ir::Function* kernel = launch::find_kernel(owner.module_, request.kernel);
    const bool has_datapath =
        owner.wants(darsie_scalar) || owner.wants(scalar) || owner.wants(sliced) || owner.wants(both);
    if (!kernel || (!has_datapath && !owner.wants(dac_ideal))) return;
    const auto threads = static_cast<uint32_t>(request.block.count());
    const uint32_t registers = ir::register_need(*kernel, machine_.compute_capability).registers;
    auto resident = [this, threads, registers](uint64_t shared_bytes) -> uint64_t {
      return ir::occupancy(machine_, {threads, registers, static_cast<uint32_t>(shared_bytes)}).blocks;
    };
    auto instruction = [this](const ir::Function& function, ir::InstructionId id) {
      return datapath_instruction(function, id, weights_.lowering(function).cost(id));
    };
    if (has_datapath)
      datapath_ = std::make_unique<emulator::DatapathStudy>(
          emulator::DatapathOptions{.resident_blocks = resident, .instruction = instruction});
    emulator::ValueStudyOptions options = emulator::adaptive_sample();
    options.resident_blocks = resident;
    options.listener = datapath_.get();
    values_ = std::make_unique<emulator::ValueStudy>(std::move(options));
  }

  // The value study may sample blocks; the other observers need all.
  bool wants(const emulator::Block& block) override {
    const bool has_values = values_ && values_->wants(block);
    if (has_values) blocks_.insert(block.linear);
    return has_values || affine_ || prefetcher_;
  }
  void before(emulator::Block& block, emulator::Warp& warp, const emulator::MicroOp& op) override {
    if (affine_) affine_->before(block, warp, op);
    if (prefetcher_) prefetcher_->before(block, warp, op);
    if (has_values(block)) values_->before(block, warp, op);
  }
  void after(emulator::Block& block, emulator::Warp& warp, const emulator::MicroOp& op, uint32_t mask) override {
    if (affine_) affine_->after(block, warp, op, mask);
    if (has_values(block)) values_->after(block, warp, op, mask);
  }
  void passed(emulator::Block& block, emulator::Warp& warp, const emulator::MicroOp& op) override {
    if (has_values(block)) values_->passed(block, warp, op);
  }
  void block_ended(emulator::Block& block) override {
    if (affine_) affine_->block_ended(block);
    if (has_values(block)) values_->block_ended(block);
  }

  Seen finish() {
    Seen seen;
    if (affine_)
      for (const auto& [number, row] : affine_->rows())
        seen.affine[number] = share(static_cast<double>(row.affine), static_cast<double>(row.executions));
    if (prefetcher_) {
      seen.loads = prefetcher_->by_load();
      seen.prefetcher = prefetcher_->counts();
    }
    if (datapath_) look_at_datapath(seen);
    if (values_) look_at_values(seen);
    return seen;
  }

private:
  bool has_values(const emulator::Block& block) const {
    return values_ && ((!affine_ && !prefetcher_) || blocks_.contains(block.linear));
  }

  // Instructions that an affine warp executes for a batch of blocks are not executed by the other warps.
  void look_at_values(Seen& seen) {
    const std::vector<emulator::ValueRow>& rows = values_->rows();
    for (uint32_t number = 0; number < rows.size(); ++number) {
      const auto all = static_cast<double>(rows[number].executed.warps + rows[number].guarded_off);
      const emulator::Redundant& affine = rows[number].consecutive;
      seen.skipped[number] = share(static_cast<double>(affine.all.warps - affine.once.warps), all);
    }
  }

  void look_at_datapath(Seen& seen) {
    seen.datapath = datapath_->counts();
    const emulator::DatapathCounts& counts = seen.datapath;
    const double met = share(counts.paired_by_search, static_cast<double>(counts.narrow));
    const double stalls = share(static_cast<double>(counts.stalls), static_cast<double>(counts.narrow));
    const std::vector<emulator::ValueRow>& rows = values_->rows();
    for (uint32_t number = 0; number < rows.size(); ++number) {
      const auto all = static_cast<double>(rows[number].executed.warps + rows[number].guarded_off);
      if (!rows[number].function || all <= 0) continue;
      auto of_all = [&](const emulator::SampledCount& count) {
        return std::min(share(static_cast<double>(values_->of_all_trips(number, count).warps), all), 1.0);
      };
      const emulator::DatapathStudy::NarrowExecutions narrow = datapath_->narrow_executions(number);
      const double on_scalar = of_all(datapath_->scalar_executions(number));
      const double halves = of_all(narrow.all), others = of_all(narrow.not_scalar);
      seen.scalar[number] = {.scalar = on_scalar};
      seen.sliced[number] = {.paired = halves * met, .stalled = halves * stalls};
      seen.both[number] = {.scalar = on_scalar, .paired = others * met, .stalled = others * stalls};
    }
  }

  MachineWeights& weights_;
  const ir::Machine& machine_;
  std::unique_ptr<emulator::CompactAffine> affine_;
  std::unique_ptr<emulator::PrefetchStudy> prefetcher_;
  std::unique_ptr<emulator::DatapathStudy> datapath_;
  std::unique_ptr<emulator::ValueStudy> values_;
  std::unordered_set<uint64_t> blocks_; // sampled by the value study
};

ComparatorScorer::ComparatorScorer(const ir::Module& module, const ir::Machine& machine,
                                   std::vector<ComparatorInfo> wanted)
    : module_(module), machine_(machine), wanted_(std::move(wanted)) {}
ComparatorScorer::~ComparatorScorer() = default;

bool ComparatorScorer::wants(std::string_view option) const {
  return std::ranges::find(wanted_, option, &ComparatorInfo::option) != wanted_.end();
}

Result<std::unique_ptr<ComparatorScorer>>
ComparatorScorer::make(const LaunchInput& input, const ir::Module& module, const launch::Variants* variants,
                       const ir::Machine& machine, std::vector<ComparatorInfo> wanted, cuda::ErrorPlace& place) {
  std::unique_ptr<ComparatorScorer> scorer(new ComparatorScorer(module, machine, std::move(wanted)));
  MachineWeights weights(machine);
  cuda::EmulatorOptions options;
  options.host_threads = 1;
  options.resident_blocks = 0;
  options.machine = &machine;
  options.observer = [&](const emulator::LaunchRequest& request) {
    scorer->looking_ = std::make_unique<Looking>(*scorer, weights, request);
    return scorer->looking_.get();
  };
  Result<LaunchPass> pass = run_launches(
      input, module, options, place,
      [&](const cuda::SessionRun& run) {
        scorer->seen_.resize(std::max(scorer->seen_.size(), run.launch + 1));
        if (scorer->looking_) scorer->seen_[run.launch] = scorer->looking_->finish();
        scorer->looking_.reset();
      },
      variants);
  if (!pass) return pass.error();
  scorer->failure_ = std::move(pass->failure);
  return scorer;
}

std::vector<std::string> ComparatorScorer::names() const {
  std::vector<std::string> names;
  for (const ComparatorInfo& comparator : wanted_)
    names.emplace_back(comparator.name);
  return names;
}

timing::Technique ComparatorScorer::technique(const ComparatorInfo& comparator, const Seen& seen,
                                              const timing::ModelInput& input) {
  if (comparator.option == cae) return timing::affine_unit_technique(input, seen.affine);
  if (comparator.option == mta) return timing::prefetch_technique(input, seen.loads, seen.prefetcher);
  if (comparator.option == dac_ideal) return timing::ideal_technique(input, seen.skipped);
  const emulator::DatapathCounts& counts = seen.datapath;
  if (comparator.option == darsie_scalar)
    return timing::left_to_scalar_technique(input, seen.scalar, accesses_of(counts, counts.with_scalar));
  if (comparator.option == scalar)
    return timing::datapath_technique(input, seen.scalar, accesses_of(counts, counts.with_scalar));
  if (comparator.option == sliced)
    return timing::datapath_technique(input, seen.sliced, accesses_of(counts, counts.with_slices));
  return timing::datapath_technique(input, seen.both, accesses_of(counts, counts.with_both));
}

std::vector<timing::Technique> ComparatorScorer::techniques(size_t launch, const ir::Function&,
                                                            const timing::ModelInput& input) {
  static const Seen nothing;
  std::vector<timing::Technique> made;
  for (const ComparatorInfo& comparator : wanted_) {
    made.push_back(technique(comparator, launch < seen_.size() ? seen_[launch] : nothing, input));
    timing::add_composite_energy(input.counters, made.back());
  }
  return made;
}

} // namespace ptxrewrite::evaluate
