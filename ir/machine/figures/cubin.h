// Reads a kernel's machine code figures from a cubin without NVIDIA's tools: instruction counts, registers, spills,
// shared memory, and the bytes by which two results are compared.
//
// A cubin is an ELF64 file; every kernel (and every function of a relocatable object) has a section `.text.NAME`, its
// attributes are in `.nv.info` and `.nv.info.NAME`. Layouts were found by comparing with `ptxas -v` (12.4 and 13.0,
// sm_75 to sm_120; 11.8, sm_35 to sm_60).
#pragma once

#include "support/result.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ptxrewrite::ir {

// Sizes in bytes; counts are static. Views point into the cubin's image.
struct CubinFunction {
  std::string_view name; // mangled
  bool is_entry = false;
  // Machine instructions, including internal subroutines but not the padding that ptxas appends to the section: one
  // branch to itself and no-operations. No-operations inside the code are counted, except before sm_70, where they fill
  // up groups of instructions that share one control word.
  uint32_t instructions = 0;
  uint32_t padding_instructions = 0;
  uint32_t registers = 0; // per thread
  uint32_t barriers = 0;
  uint32_t stack_frame = 0; // of the function itself
  uint32_t shared = 0;      // static; without the 1024 bytes the system reserves from sm_90 on
  // As `ptxas -v` counts them: bytes moved by all spill instructions, except those of internal subroutines. The file
  // records them from CUDA 13 on.
  std::optional<uint32_t> spill_stores;
  std::optional<uint32_t> spill_loads;
  std::string_view code; // .text.NAME
  std::string_view info; // .nv.info.NAME
};

struct CubinSection {
  std::string_view name;
  std::string_view bytes; // empty for sections without content in the file
  uint32_t type = 0;      // ELF sh_type
  uint32_t info = 0;      // ELF sh_info
  uint64_t flags = 0;     // ELF sh_flags
  uint64_t size = 0;      // bytes in memory
};

struct Cubin {
  uint32_t architecture = 0;            // 80 for sm_80; 90 for sm_90 and sm_90a
  std::vector<CubinFunction> functions; // in file order
  std::vector<CubinSection> sections;
  std::shared_ptr<const std::string> image; // storage of the views above

  // Returns nullptr if there is none.
  const CubinFunction* find(std::string_view name) const;
  const CubinSection* section(std::string_view name) const;
};

// Returns an error for any byte sequence that is not a valid cubin, whatever its headers claim.
Result<Cubin> read_cubin(std::string image);

// The name of the first section of `.text.*` and `.nv.info*` that differs or is missing in one of the two; empty if
// they agree. Debug sections, which contain file names or the PTX text, are ignored.
std::string first_code_difference(const Cubin& a, const Cubin& b);

} // namespace ptxrewrite::ir
