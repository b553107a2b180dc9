// The scalar unit and the sliced datapath of composite-hpca13 as they would do in a launch: what share of its machine
// instructions they take, and which register files are accessed (its Figs. 1, 9, Table 4).
//
//   DatapathStudy datapath({.resident_blocks = ..., .instruction = ...});
//   ValueStudy values({.listener = &datapath});
//
// Registers are those of the kernel; what device functions do counts as work of the SIMT pipeline without registers. A
// PTX instruction accesses its registers once, however many machine instructions it is; one that is part of another
// (weight 0) accesses none, and what only such instructions write is not in a register file. 64-bit registers are two
// words: halves only when all of the value fits 16 bits.
#pragma once

#include "emulator/machines/datapath/register_numbers.h"
#include "emulator/machines/datapath/scalar_unit.h"
#include "emulator/machines/datapath/sliced_datapath.h"
#include "emulator/observe/value_study.h"

#include <functional>
#include <memory>
#include <vector>

namespace ptxrewrite::emulator {

// How an instruction of the kernel runs.
struct DatapathInstruction {
  uint64_t weight = 0; // machine instructions
  bool is_fma = false; // in the units that the scalar pipeline has, too: no memory, control, special functions, doubles
  bool integer = false; // in the slices
};

struct DatapathOptions {
  uint32_t scalar_entries = 512;
  std::function<uint64_t(uint64_t)> resident_blocks; // as ValueStudyOptions has it
  std::function<DatapathInstruction(const ir::Function&, ir::InstructionId)> instruction;
  const RegisterNumbers* numbers = nullptr; // of the kernel, as number_registers makes them; null: make them
};

// Words of whole warps, read and written.
struct RegisterAccesses {
  uint64_t full = 0;   // in the main register file, all 32 bits
  uint64_t half = 0;   // in one slice of it
  uint64_t scalar = 0; // in the scalar register file
  RegisterAccesses& operator+=(const RegisterAccesses& other);
};

struct DatapathCounts {
  uint64_t instructions = 0; // machine instructions by warps, those of the kernel itself
  uint64_t redundant = 0;    // of them: the same result in all lanes
  uint64_t scalar = 0;       // on the scalar pipeline
  uint64_t narrow = 0, stalls = 0, paired = 0;
  double paired_by_chance = 0, paired_by_search = 0;
  uint64_t reads = 0, writes = 0, half_reads = 0, half_writes = 0; // of registers, by value: Fig. 1
  RegisterAccesses with_scalar, with_slices, with_both;
  uint64_t accesses() const { return reads + writes; } // without either
  DatapathCounts& operator+=(const DatapathCounts& other);
};

class DatapathStudy final : public ExecutionListener {
public:
  explicit DatapathStudy(DatapathOptions options) : options_(std::move(options)) {}

  void prepare(const Block& block) override;
  void executed(const StudiedExecution& execution) override;
  // When the launch is over.
  DatapathCounts counts();
  // Executions on the scalar pipeline, and the lanes that they stand for, of instruction `number`: as they were seen.
  SampledCount scalar_executions(uint32_t number) const {
    return number < scalar_executions_.size() ? scalar_executions_[number] : SampledCount();
  }

  // 16-bit instructions likewise; of them, those that are not on the scalar pipeline.
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
    bool scalar = false; // all but registers is the same in all lanes, and there is a pipeline
    bool narrow = false; // likewise, for the slices
  };
  void prepare_site(const ir::Function& function, const DecodedFunction& decoded, ir::InstructionId id);
  void start_block(uint64_t block);
  uint64_t& file_with_both(uint32_t slot, const HardwareRegister& of);
  void write(uint32_t slot, const DatapathSite& site, const StudiedExecution& execution, bool is_narrow,
             uint64_t times);

  DatapathOptions options_;
  uint32_t block_warps_ = 0, resident_blocks_ = 1;
  uint32_t first_slot_ = 0; // of the block's warps on the SM
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
