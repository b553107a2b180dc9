// RegLess's machine as a MachineModel of the emulator: one SM, and the blocks that it holds.
#include "emulator/core/machine.h"
#include "emulator/machines/regless/staging_machine.h"

#include <algorithm>

namespace ptxrewrite::emulator {
namespace {

using PlanPointer = std::shared_ptr<const StagingPlan>; // in KernelImage::machines, from the first launch that needs it

class StagingRun final : public MachineRun {
public:
  StagingRun(PlanPointer plan, const StagingSettings& settings) : plan_(std::move(plan)), settings_(settings) {}

  bool runs_side_by_side() const override { return true; }
  // Runs the blocks that share one SM.
  void run(BlockSource& blocks) override {
    const LaunchState& launch = blocks.launch();
    StagingMachine machine(*plan_, settings_, counters_);
    const uint64_t share = (blocks.count() + settings_.multiprocessors - 1) / settings_.multiprocessors;
    const uint64_t most = std::min<uint64_t>(machine.resident_blocks(*plan_, launch.warps, launch.shared_bytes),
                                             std::max<uint64_t>(share, 1));
    std::vector<std::unique_ptr<Block>> resident, spare;
    uint64_t next = 0;
    for (;;) {
      while (resident.size() < most && next < blocks.count() && !blocks.has_failed()) {
        std::unique_ptr<Block> block;
        if (spare.empty()) {
          block = blocks.make_block(resident.empty());
          if (!block) break; // fewer blocks at a time; or none, and the launch ends
        } else {
          block = std::move(spare.back());
          spare.pop_back();
        }
        if (!blocks.has_fuel_for(next, 1)) break;
        resident.push_back(std::move(block));
        blocks.start(*resident.back(), blocks.number(next++));
        machine.add(*resident.back());
        if (resident.back()->failure) blocks.fail(*resident.back());
      }
      Block* over = resident.empty() || blocks.has_failed() ? nullptr : machine.run();
      if (!over) break;
      if (over->failure) {
        blocks.fail(*over);
        break;
      }
      blocks.finish(*over);
      auto place = std::ranges::find(resident, over, &std::unique_ptr<Block>::get);
      spare.push_back(std::move(*place));
      resident.erase(place);
    }
  }

  void finish(LaunchResult& result) override { result.machines.set(std::move(counters_)); }

private:
  PlanPointer plan_;
  StagingSettings settings_;
  StagingCounters counters_;
};

class RegLessModel final : public MachineModel {
public:
  std::string_view name() const override { return "regless"; }
  std::string_view title() const override { return "RegLess's machine"; }
  bool takes(const KernelImage&, const LaunchRequest& request) const override {
    return request.machines.find<StagingSettings>() != nullptr;
  }

  // Returns an error if an annotation is invalid, or if a region needs more entries than there are.
  Result<std::unique_ptr<MachineRun>> begin(KernelImage& image, const LaunchRequest& request) const override {
    if (!image.machines.find<PlanPointer>()) {
      Result<std::unique_ptr<StagingPlan>> made = StagingPlan::make(image);
      if (!made) return made.error();
      image.machines.set<PlanPointer>(std::move(*made));
    }
    const PlanPointer& plan = image.machines.get<PlanPointer>();
    const StagingSettings& settings = request.machines.get<StagingSettings>();
    constexpr uint32_t granularity = staging_shards * banks_of_staging;
    const uint32_t lines = settings.entries / granularity, needed = plan->largest_bank();
    if (lines < std::max(1u, needed))
      return Error{"a region needs " + std::to_string(needed) + " entries of a bank: RegLess's unit has to have " +
                       std::to_string(needed * granularity) + " entries at least",
                   image.functions.front()->source->header_range};
    return std::unique_ptr<MachineRun>(std::make_unique<StagingRun>(plan, settings));
  }
};

} // namespace

const MachineModel& regless_machine() {
  static const RegLessModel model;
  return model;
}

} // namespace ptxrewrite::emulator
