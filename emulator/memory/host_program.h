// The program whose kernels are emulated may go on while one of them runs, and write what the kernel waits for.
#pragma once

#include <cstdint>

namespace ptxrewrite::emulator {

class DeviceMemory;

// Called once by the code that runs kernels beside their program.
void let_program_run_beside_kernels();
// Whether the program may access a kernel's memory while it runs: then the kernel's atomic operations have to be atomic
// for the program, too, and the program may end a kernel all of whose blocks spin.
bool shares_memory_with_program(const DeviceMemory& memory);

// Called when the program exits. A GPU's driver stops kernels that still run; here, kernels that can end do so, those
// that wait for the program fail, and others may execute no more than a limited number of warp instructions.
void program_ends();
bool has_program_ended();
// After program_ends(): returns false if the limit is exceeded, which is common to all kernels.
bool take_fuel_after_end(uint64_t warp_instructions);

} // namespace ptxrewrite::emulator
