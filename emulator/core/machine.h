// The interfaces by which a paper's machine plugs into the emulator. The core names no machine: each has its own folder
// in emulator/machines/, and is registered by a row of emulator/machines/registry.def.
//
//   class SkipModel final : public MachineModel { ... };                      // emulator/machines/darsie/
//   const MachineModel& darsie_machine() { static const SkipModel model; return model; }
//   MACHINE(darsie)                                                           // the row
//
// Three interfaces, by lifetime: one MachineModel per process, one MachineRun per launch, one BlockMachine per block. A
// hardware form may have a FormDecoder, one per decoded function.
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

// Additions of a hardware form to the decoding of a function, besides the operations of its instructions.
class FormDecoder {
public:
  virtual ~FormDecoder() = default;
  // Called before the operation of each instruction, Decoder::instruction().
  virtual void before_instruction(Decoder& decoder) { (void)decoder; }
  // Called for a line of the body that is no instruction (ir::InstructionKind), Decoder::instruction().
  virtual void line(Decoder& decoder) { (void)decoder; }
  // The lanes of a special register of this machine. `bits`: initially 32. Returns an invalid LaneRef for others.
  virtual LaneRef special_register(Decoder& decoder, ir::SpecialRegister which, unsigned& bits) {
    (void)decoder, (void)which, (void)bits;
    return {};
  }
};

// A machine's part in a block, created with the block. Each block of each host thread has its own.
class BlockMachine {
public:
  explicit BlockMachine(const MachineModel& model) : model_(&model) {}
  virtual ~BlockMachine() = default;
  const MachineModel& model() const { return *model_; }
  // The block was reused for another block of the grid (Block::start).
  virtual void start_block() {}
  // Runs until the block is finished or has failed, or all its warps spin.
  virtual BlockState run(Block& block) { return block.run_warps(); }
  // These warps continue after a barrier; the warp has arrived at a barrier without waiting.
  virtual void barrier_completed(uint32_t warps) { (void)warps; }
  virtual void barrier_arrived(const Warp& warp) { (void)warp; }
  // Whether lanes must diverge and reconverge strictly at branches, even in loops that seem to wait for others.
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
  // Number of the n-th block in the order of start.
  virtual uint64_t number(uint64_t n) const = 0;
  // A prepared block. Returns nullptr if no memory is left; the launch is refused then if the block `is_needed`.
  virtual std::unique_ptr<Block> make_block(bool is_needed) = 0;
  // Call it before `blocks` blocks start, from `first` on. Returns false, and fails the launch, if no fuel is left.
  virtual bool has_fuel_for(uint64_t first, uint32_t blocks) = 0;
  // Charges the instructions of a block to the launch's fuel, which is checked when the next block starts.
  virtual void take_fuel(uint64_t warp_instructions) = 0;
  // Makes it block `number` of the grid, with the observer if that wants the block.
  virtual void start(Block& block, uint64_t number) = 0;
  // Moves the block's printed text and findings to the launch.
  virtual void take_output(Block& block) = 0;
  // Ends the block, and takes its output.
  virtual void finish(Block& block) = 0;
  // Fails the launch with the block's failure, and takes its output.
  virtual void fail(Block& block) = 0;
  // Fails the launch; the output of other blocks counts.
  virtual void fail(Failure failure) = 0;
  virtual bool has_failed() const = 0;
};

// A launch on a machine. It uses one host thread.
class MachineRun {
public:
  virtual ~MachineRun() = default;
  // The machine's part of a new block; nullptr: none.
  virtual std::unique_ptr<BlockMachine> attach(Block& block) { return (void)block, nullptr; }
  // Whether run() below executes the blocks, several side by side. Otherwise BlockMachine::run executes one by one.
  virtual bool runs_side_by_side() const { return false; }
  virtual void run(BlockSource& blocks) { (void)blocks; }
  // Fills in the rows of a function whose instructions the machine has counted. Returns false if it has not.
  virtual bool count(const DecodedFunction& function, FunctionCounters& rows) {
    return (void)function, (void)rows, false;
  }
  // The launch has ended and is counted: adds the machine's results to LaunchResult::machines.
  virtual void finish(LaunchResult& result) { (void)result; }
};

// The program, for a machine that implements a launch by several (MachineModel::launch).
class LaunchHost {
public:
  virtual ~LaunchHost() = default;
  virtual Result<KernelImage*> image_of(std::string_view kernel) = 0;
  // `machine`: nullptr: none.
  virtual Result<LaunchResult> run(KernelImage& image, const LaunchRequest& request, MachineRun* machine) = 0;
  virtual DeviceMemory& memory() = 0;
};

// Executions of an instruction of a section by a machine, in warps and in lanes.
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
  // Returns nullptr if there is nothing to decode besides operations.
  virtual std::unique_ptr<FormDecoder> form_decoder() const { return nullptr; }
  // A second function of the kernel that the machine executes, which names the kernel's variables by the kernel's
  // handles. nullptr: none.
  virtual const ir::Function* stream_of(const ir::Function& kernel) const { return (void)kernel, nullptr; }
  // Called after the kernel is decoded: adds the data for all its launches to KernelImage::machines. Returns an error
  // if the machine cannot execute the kernel.
  virtual Status prepare(KernelImage& image) const { return (void)image, Status(); }
  // Executions of the instruction, in a section of the form, on whichever machine the body ran. Returns nullopt if the
  // section is another machine's.
  virtual std::optional<SectionExecutions> section_executions(const DecodedFunction& function,
                                                              ir::InstructionId instruction, ir::SectionKind section,
                                                              const LaunchFacts& launch) const {
    (void)function, (void)instruction, (void)section, (void)launch;
    return std::nullopt;
  }

  // --- launches on it ---
  // Whether the launch runs on it, by its settings or the kernel's form. At most one machine may return true.
  virtual bool takes(const KernelImage& image, const LaunchRequest& request) const {
    return (void)image, (void)request, false;
  }
  virtual bool allows_observer() const { return false; }
  // Returns an error if the launch is not possible on the machine.
  virtual Result<std::unique_ptr<MachineRun>> begin(KernelImage& image, const LaunchRequest& request) const;
  // Runs a launch on the machine, by default begin() and a run.
  virtual Result<LaunchResult> launch(LaunchHost& host, KernelImage& image, const LaunchRequest& request) const;
};

// All machines, in the order of emulator/machines/registry.def.
std::span<const MachineModel* const> machines();
// Returns nullptr if no machine has that name.
const MachineModel* find_machine(std::string_view name);

} // namespace ptxrewrite::emulator
