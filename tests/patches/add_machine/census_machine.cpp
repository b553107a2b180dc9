// A machine that counts the threads that reach a `//@ census`. Without it, the mark has no effect.
#include "emulator/core/decode.h"
#include "emulator/core/machine.h"
#include "tests/patches/add_machine/census.h"

#include <bit>

namespace ptxrewrite::emulator {

const MachineModel& census_machine();

namespace {

class CensusBlock final : public BlockMachine {
public:
  explicit CensusBlock(CensusCounters& counters) : BlockMachine(census_machine()), counters_(counters) {}
  void start_block() override { ++counters_.blocks; }
  void count(uint32_t lanes) { counters_.threads += static_cast<unsigned>(std::popcount(lanes)); }

private:
  CensusCounters& counters_;
};

const MicroOp* count_lanes(Warp& warp, const MicroOp& op) {
  BlockMachine* machine = warp.block->machine.get();
  if (machine && &machine->model() == &census_machine()) static_cast<CensusBlock*>(machine)->count(warp.mask);
  return &op + 1;
}

class CensusDecoder final : public FormDecoder {
public:
  void line(Decoder& decoder) override {
    const ir::Function& function = decoder.function();
    if (function.instructions[decoder.instruction()].kind != ir::InstructionKind::annotation) return;
    for (const ir::Operand& operand : function.operands_of(decoder.instruction()))
      if (operand.is(ir::OperandKind::text) && function.module().text(Symbol(operand.id)) == "@ census")
        decoder.emit_further(&count_lanes, false);
  }
};

class CensusRun final : public MachineRun {
public:
  std::unique_ptr<BlockMachine> attach(Block&) override { return std::make_unique<CensusBlock>(counters_); }
  void finish(LaunchResult& result) override { result.machines.set(counters_); }

private:
  CensusCounters counters_;
};

class CensusModel final : public MachineModel {
public:
  std::string_view name() const override { return "census"; }
  std::string_view title() const override { return "the census machine"; }
  std::unique_ptr<FormDecoder> form_decoder() const override { return std::make_unique<CensusDecoder>(); }
  bool takes(const KernelImage&, const LaunchRequest& request) const override {
    return request.machines.find<CensusSettings>() != nullptr;
  }
  bool allows_observer() const override { return true; }
  Result<std::unique_ptr<MachineRun>> begin(KernelImage&, const LaunchRequest&) const override {
    return std::unique_ptr<MachineRun>(std::make_unique<CensusRun>());
  }
};

} // namespace

const MachineModel& census_machine() {
  static const CensusModel model;
  return model;
}

} // namespace ptxrewrite::emulator
