// Assigns register numbers like an assembler, for units that are indexed by them: PTX has unlimited registers, while a
// machine gives registers that are not live at the same time the same number.
#pragma once

#include "emulator/machines/datapath/scalar_unit.h"
#include "ir/core/function.h"

#include <functional>
#include <vector>

namespace ptxrewrite::emulator {

struct RegisterNumbers {
  std::vector<HardwareRegister> of; // by ValueId
  uint32_t registers = 0;           // of 32 bits
  uint32_t others = 0;              // predicates, and values that are not in the register file
};

// Allocates live ranges in code order: each register gets the lowest number that is free for its whole range; 64 bits
// and more take aligned neighbours. `in_file`: whether an instruction writes the register file; a register that none of
// them writes is not in it. The function must not be in SSA form: numbers are by its registers.
RegisterNumbers number_registers(const ir::Function& function, const std::function<bool(ir::InstructionId)>& in_file);

} // namespace ptxrewrite::emulator
