// NVIDIA's disassembler: finds nvdisasm, runs it on a cubin, and reads which machine instruction stands for which line
// of the PTX that it was assembled from. Optional everywhere, as ptxas is.
#pragma once

#include "support/result.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ptxrewrite {

struct SassInstruction {
  uint32_t offset = 0;   // bytes from the start of the function
  uint32_t ptx_line = 0; // of the assembled text, 1-based; 0: the disassembler names none
  std::string text;      // "IMAD.WIDE R2, R9, 0x4, R2", without the semicolon
};

// One .text section: a function with the subroutines that the assembler put behind it.
struct SassFunction {
  std::string name; // mangled
  std::vector<SassInstruction> instructions;
};

// Path of nvdisasm: $PTXREWRITE_NVDISASM if set (and then nothing else), else where ptxas is looked for
// (support/cuda_programs.h). The error says where to get it.
Result<std::string> find_nvdisasm();

// Disassembles a cubin. Lines of PTX are known if it was assembled with -lineinfo. Errors: no nvdisasm, or it refuses
// the file (it knows only the architectures of its own release).
Result<std::vector<SassFunction>> disassemble(std::string_view cubin);

// The functions in the output of `nvdisasm -gp -c`. Lines that are not understood are skipped.
std::vector<SassFunction> parse_disassembly(std::string_view text);

} // namespace ptxrewrite
