// Study of the scalar unit and the sliced datapath of composite-hpca13 in a launch: the share of machine instructions
// that they execute, and the register files that are accessed (its Figs. 1, 9, Table 4).
//
//   DatapathStudy datapath({.resident_blocks = ..., .instruction = ...});
//   ValueStudy values({.listener = &datapath});
//
// Registers are those of the kernel; instructions of device functions count as work of the SIMT pipeline without
// register accesses. A PTX instruction accesses its registers once, however many machine instructions it stands for;
// one fused into another (weight 0) accesses none, and a register written only by fused instructions is not in a
// register file. 64-bit registers are two words, which are halves only if the whole value fits 16 bits.
#pragma once

#include "emulator/machines/datapath/register_numbers.h"
#include "emulator/machines/datapath/scalar_unit.h"
#include "emulator/machines/datapath/sliced_datapath.h"
#include "emulator/observe/value_study.h"

#include <functional>
#include <memory>
#include <vector>

namespace ptxrewrite::emulator {

// The execution units of an instruction of the kernel.
struct DatapathInstruction {
  uint64_t weight = 0;  // machine instructions
  bool is_fma = false;  // on units that the scalar pipeline has, too: no memory, control, special functions, doubles
  bool integer = false; // in the slices
};

struct DatapathOptions {
  uint32_t scalar_entries = 512;
  std::function<uint64_t(uint64_t)> resident_blocks; // as ValueStudyOptions has it
  std::function<DatapathInstruction(const ir::Function&, ir::InstructionId)> instruction;
  const RegisterNumbers* numbers = nullptr; // of the kernel, by number_registers; nullptr: computed by the study
};

// Register accesses of whole warps, in 32-bit words.
struct RegisterAccesses {
  uint64_t full = 0;   // to the main register file, all 32 bits
  uint64_t half = 0;   // to one slice of it
  uint64_t scalar = 0; // to the scalar register file
  RegisterAccesses& operator+=(const RegisterAccesses& other);
};

struct DatapathCounts {
  uint64_t instructions = 0; // executed by warps, in the kernel itself
  uint64_t redundant = 0;    // of them, those with the same result in all lanes
  uint64_t scalar = 0;       // executed on the scalar pipeline
  uint64_t narrow = 0, stalls = 0, paired = 0;
  double paired_by_chance = 0, paired_by_search = 0;
  uint64_t reads = 0, writes = 0, half_reads = 0, half_writes = 0; // of registers, by value: Fig. 1
  RegisterAccesses with_scalar, with_slices, with_both;
  uint64_t accesses() const { return reads + writes; } // without either unit
  DatapathCounts& operator+=(const DatapathCounts& other);
};

class DatapathStudy final : public ExecutionListener {
public:
  explicit DatapathStudy(DatapathOptions options) : options_(std::move(options)) {}

  void prepare(const Block& block) override;
  void executed(const StudiedExecution& execution) override;
  // Call it after the launch.
  DatapathCounts counts();
  // Executions of instruction `number` on the scalar pipeline and their lanes, not scaled to all trips.
  SampledCount scalar_executions(uint32_t number) const {
    return number < scalar_executions_.size() ? scalar_executions_[number] : SampledCount();
  }

  // The same for 16-bit instructions: all, and those that are not on the scalar pipeline.
  struct NarrowExecutions {
    SampledCount all, not_scalar;
  };
  NarrowExecutions narrow_executions(uint32_t number) const {
    return number < narrow_executions_.size() ? narrow_executions_[number] : NarrowExecutions();
  }

private:
  struct DatapathSite {
    DatapathInstruction instruction;
    uint32_t first_use = 0, first_definition = 0; // in registers_
    uint16_t uses = 0, definitions = 0;
    bool scalar = false; // non-register operands are the same in all lanes, and the scalar pipeline has the unit
    bool narrow = false; // non-register operands fit 16 bits, and the slices have the unit
  };
  void prepare_site(const ir::Function& function, const DecodedFunction& decoded, ir::InstructionId id);
  void start_block(uint64_t block);
  uint64_t& file_with_both(uint32_t slot, const HardwareRegister& of);
  void write(uint32_t slot, const DatapathSite& site, const StudiedExecution& execution, bool is_narrow,
             uint64_t times);

  DatapathOptions options_;
  uint32_t block_warps_ = 0, resident_blocks_ = 1;
  uint32_t first_slot_ = 0; // of the block's first warp on the SM
  RegisterNumbers numbers_;
  std::vector<DatapathSite> sites_; // of the entry, by number
  std::vector<HardwareRegister> registers_;
  std::unique_ptr<ScalarUnit> scalar_;
  std::unique_ptr<SlicedDatapath> sliced_;
  uint64_t current_block_ = UINT64_MAX, current_batch_ = UINT64_MAX;
  std::vector<WrittenValue> written_;
  std::vector<SampledCount> scalar_executions_;
  std::vector<NarrowExecutions> narrow_executions_;
  DatapathCounts counts_;
};

} // namespace ptxrewrite::emulator
