// Numbers registers of a kernel as an assembler does, for units that are indexed by them: PTX has as many registers as
// it likes, a machine gives those that are not needed at the same time one place.
#pragma once

#include "emulator/machines/datapath/scalar_unit.h"
#include "ir/core/function.h"

#include <functional>
#include <vector>

namespace ptxrewrite::emulator {

struct RegisterNumbers {
  std::vector<HardwareRegister> of; // by ValueId
  uint32_t registers = 0;           // of 32 bits
  uint32_t others = 0;              // predicates, and what is not in the register file
};

// By live ranges in the order of the code, each register the lowest number that is free for all of its range. Of 64
// bits and more: neighbours, aligned. `in_file`: which instructions write the register file; a register that none of
// them writes is not in it. The function must not be in SSA form: numbers are those of its registers.
RegisterNumbers number_registers(const ir::Function& function, const std::function<bool(ir::InstructionId)>& in_file);

} // namespace ptxrewrite::emulator
