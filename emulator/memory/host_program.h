// The program whose kernels are emulated may go on while one of them runs, and write what the kernel waits for.
#pragma once

namespace ptxrewrite::emulator {

class DeviceMemory;

// Called once by the code that runs kernels beside their program.
void let_program_run_beside_kernels();
// For a kernel all of whose blocks spin: could the program end that, through memory that both can access?
bool may_be_ended_by_program(const DeviceMemory& memory);

} // namespace ptxrewrite::emulator
