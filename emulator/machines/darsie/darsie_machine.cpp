// DARSIE's machine as a MachineModel of the emulator.
#include "emulator/machines/darsie/skip_machine.h"

namespace ptxrewrite::emulator {
namespace {

// In KernelImage::machines: the entry's marks, computed at the first launch that needs them.
struct SkipMarks {
  ir::MarkRules rules = ir::MarkRules::all;
  std::vector<ir::DarsieMark> marks;
};

class SkipRun final : public MachineRun {
public:
  SkipRun(const KernelImage& image, std::span<const ir::DarsieMark> marks, const LaunchRequest& request)
      : launch_(image, marks, request) {}

  std::unique_ptr<BlockMachine> attach(Block& block) override { return std::make_unique<SkipMachine>(block, launch_); }
  void finish(LaunchResult& result) override {
    launch_.counters.executed = result.counters.warp_instructions - launch_.counters.all_skipped();
    result.machines.set(std::move(launch_.counters));
  }

private:
  SkipLaunch launch_;
};

class DarsieModel final : public MachineModel {
public:
  std::string_view name() const override { return "darsie"; }
  std::string_view title() const override { return "DARSIE's machine"; }
  bool takes(const KernelImage&, const LaunchRequest& request) const override {
    return request.machines.find<SkipSettings>() != nullptr;
  }
  Result<std::unique_ptr<MachineRun>> begin(KernelImage& image, const LaunchRequest& request) const override {
    const bool as_paper = request.machines.get<SkipSettings>().variant == SkipVariant::paper_marks;
    const ir::MarkRules rules = as_paper ? ir::MarkRules::paper : ir::MarkRules::all;
    const SkipMarks* marks = image.machines.find<SkipMarks>();
    if (!marks || marks->rules != rules)
      marks = &image.machines.set(SkipMarks{rules, ir::marks_of(*image.functions.front()->source, rules)});
    return std::unique_ptr<MachineRun>(std::make_unique<SkipRun>(image, marks->marks, request));
  }
};

} // namespace

const MachineModel& darsie_machine() {
  static const DarsieModel model;
  return model;
}

} // namespace ptxrewrite::emulator
