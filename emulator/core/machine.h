// Where a machine of a paper plugs into the emulator. The core names none of them: each lives in a folder of its own
// below emulator/machines/, and a row of emulator/machines/registry.def makes it known.
//
//   class SkipModel final : public MachineModel { ... };                      // emulator/machines/darsie/
//   const MachineModel& darsie_machine() { static const SkipModel model; return model; }
//   MACHINE(darsie)                                                           // the row
//
// Three interfaces, from the longest-lived to the shortest: MachineModel is one for the process, MachineRun one for a
// launch, BlockMachine one for a block. A hardware form may bring a FormDecoder, one for each function that is decoded.
#pragma once

#include "emulator/core/block.h"
#include "emulator/core/emulator.h"
#include "emulator/core/program.h"

#include <memory>
#include <optional>
#include <span>
#include <string_view>

namespace ptxrewrite::emulator {

class Decoder;
class MachineModel;
class OperationTable;

// What a hardware form adds to the decoding of one function, beside the operations of its instructions.
class FormDecoder {
public:
  virtual ~FormDecoder() = default;
  // In front of the operation of each instruction: Decoder::instruction() is to come.
  virtual void before_instruction(Decoder& decoder) { (void)decoder; }
  // A line of the body that is no instruction (ir::InstructionKind): Decoder::instruction() is it.
  virtual void line(Decoder& decoder) { (void)decoder; }
  // The lanes of a special register that only the machine has. `bits`: 32 at first. Not valid: it is none of its.
  virtual LaneRef special_register(Decoder& decoder, ir::SpecialRegister which, unsigned& bits) {
    (void)decoder, (void)which, (void)bits;
    return {};
  }
};

// A machine's part in a block, from the block's making on. The blocks of several host threads have one each.
class BlockMachine {
public:
  explicit BlockMachine(const MachineModel& model) : model_(&model) {}
  virtual ~BlockMachine() = default;
  const MachineModel& model() const { return *model_; }
  // The block has become another one of the grid (Block::start).
  virtual void start_block() {}
  // Until the block is finished or failed, or all its warps spin.
  virtual BlockState run(Block& block) { return block.run_warps(); }
  // These warps go on behind a barrier; the warp has told others at one that it was there, and goes on.
  virtual void barrier_completed(uint32_t warps) { (void)warps; }
  virtual void barrier_arrived(const Warp& warp) { (void)warp; }
  // Must lanes part and meet as branches say even in loops that look as if they waited for others?
  virtual bool keeps_order() const { return false; }

private:
  const MachineModel* model_;
};

// The blocks of a launch, for a machine that runs several of them side by side (MachineRun::run).
class BlockSource {
public:
  virtual ~BlockSource() = default;
  virtual LaunchState& launch() = 0;
  virtual uint64_t count() const = 0; // in the grid
  // Number of the n-th block in the order in which they are to start.
  virtual uint64_t number(uint64_t n) const = 0;
  // With its memory, to be started. Null: there is none left; if the block `is_needed`, the launch is refused for it.
  virtual std::unique_ptr<Block> make_block(bool is_needed) = 0;
  // Before blocks start, `first` before the others: false: the launch has no fuel for so many, and has failed there.
  virtual bool has_fuel_for(uint64_t first, uint32_t blocks) = 0;
  // What a block has executed, off the launch's fuel: the next one to start will notice.
  virtual void take_fuel(uint64_t warp_instructions) = 0;
  // Makes it block `number` of the grid; its observer looks on where it wants to.
  virtual void start(Block& block, uint64_t number) = 0;
  // What the block printed and what was found in it are the launch's.
  virtual void take_output(Block& block) = 0;
  // The block has ended; its output is taken.
  virtual void finish(Block& block) = 0;
  // The block has failed, and the launch with it; its output is taken.
  virtual void fail(Block& block) = 0;
  // The launch fails; what other blocks print counts.
  virtual void fail(Failure failure) = 0;
  virtual bool has_failed() const = 0;
};

// A launch on a machine. It has one host thread.
class MachineRun {
public:
  virtual ~MachineRun() = default;
  // Part of each block that is made. Null: the machine has none in it.
  virtual std::unique_ptr<BlockMachine> attach(Block& block) { return (void)block, nullptr; }
  // Are blocks run by run() below, several of them side by side? Else one after the other, by BlockMachine::run.
  virtual bool runs_side_by_side() const { return false; }
  virtual void run(BlockSource& blocks) { (void)blocks; }
  // Rows of a function whose instructions the machine itself has counted. False: they are counted as ever.
  virtual bool count(const DecodedFunction& function, FunctionCounters& rows) {
    return (void)function, (void)rows, false;
  }
  // The launch is over and counted: the machine's results go into LaunchResult::machines.
  virtual void finish(LaunchResult& result) { (void)result; }
};

// The program, for a machine that makes one launch of several (MachineModel::launch).
class LaunchHost {
public:
  virtual ~LaunchHost() = default;
  virtual Result<KernelImage*> image_of(std::string_view kernel) = 0;
  // `machine`: null: none.
  virtual Result<LaunchResult> run(KernelImage& image, const LaunchRequest& request, MachineRun* machine) = 0;
  virtual DeviceMemory& memory() = 0;
};

// How often a machine executes an instruction of one of its sections, in warps and in lanes.
struct SectionExecutions {
  uint64_t warps = 0;
  uint64_t lanes = 0;
};
struct LaunchFacts {
  uint64_t blocks = 0;
  uint64_t warps = 0;   // of a block
  uint64_t threads = 0; // of a block
  uint64_t multiprocessors = 0;
};

class MachineModel {
public:
  virtual ~MachineModel() = default;
  virtual std::string_view name() const = 0;  // in the registry: "darsie"
  virtual std::string_view title() const = 0; // in messages: "DARSIE's machine"

  // --- its hardware form, if it has one ---
  virtual void add_operations(OperationTable& table) const { (void)table; }
  // Null: operations are all that there is to decode.
  virtual std::unique_ptr<FormDecoder> form_decoder() const { return nullptr; }
  // A second function of the kernel that the machine executes, which names the kernel's variables by the kernel's
  // handles. Null: none.
  virtual const ir::Function* stream_of(const ir::Function& kernel) const { return (void)kernel, nullptr; }
  // The kernel is decoded: what all its launches need goes into KernelImage::machines. Error: the machine cannot
  // execute the kernel.
  virtual Status prepare(KernelImage& image) const { return (void)image, Status(); }
  // How often the instruction of a section of the form is executed, on whatever machine the body ran. Nothing: the
  // section is another machine's.
  virtual std::optional<SectionExecutions> section_executions(const DecodedFunction& function,
                                                              ir::InstructionId instruction, ir::SectionKind section,
                                                              const LaunchFacts& launch) const {
    (void)function, (void)instruction, (void)section, (void)launch;
    return std::nullopt;
  }

  // --- launches on it ---
  // Does the launch ask for the machine, by its settings or by the kernel's form? At most one machine may say so.
  virtual bool takes(const KernelImage& image, const LaunchRequest& request) const {
    return (void)image, (void)request, false;
  }
  virtual bool allows_observer() const { return false; }
  // Error: what the launch asks for is not possible.
  virtual Result<std::unique_ptr<MachineRun>> begin(KernelImage& image, const LaunchRequest& request) const;
  // A launch that the machine takes: begin() and a run on what it gives.
  virtual Result<LaunchResult> launch(LaunchHost& host, KernelImage& image, const LaunchRequest& request) const;
};

// All machines, in the order of emulator/machines/registry.def.
std::span<const MachineModel* const> machines();
// Null: no machine has that name.
const MachineModel* find_machine(std::string_view name);

} // namespace ptxrewrite::emulator
