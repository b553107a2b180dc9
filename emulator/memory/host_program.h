// The program whose kernels are emulated may go on while one of them runs, and write what the kernel waits for.
#pragma once

#include <cstdint>

namespace ptxrewrite::emulator {

class DeviceMemory;

// Called once by the code that runs kernels beside their program.
void let_program_run_beside_kernels();
// For a kernel all of whose blocks spin: could the program end that, through memory that both can access?
bool may_be_ended_by_program(const DeviceMemory& memory);

// Called when the program exits. A GPU's driver stops kernels that still run; here, kernels that can end do so, those
// that wait for the program fail, and others may execute no more than a limited number of warp instructions.
void program_ends();
bool has_program_ended();
// After program_ends(): returns false if the limit is exceeded, which is common to all kernels.
bool take_fuel_after_end(uint64_t warp_instructions);

} // namespace ptxrewrite::emulator
