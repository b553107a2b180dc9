// Machine code files (cubins): ELF images for NVIDIA GPUs. Their code is not emulated, but some carry PTX: those that
// ptxas wrote under -lineinfo or -g hold the whole text in .nv_debug_ptx_txt, a zero byte at the end of each line, and
// those that ptxrewrite-ptxas writes in place of an assembler hold nothing else.
#pragma once

#include "support/result.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ptxrewrite::cuda {

struct ElfImage {
  uint32_t architecture = 0;    // 90 for sm_90
  std::vector<std::string> ptx; // one text per module that was linked into it; none: machine code alone
  bool has_code = false;
};

bool is_elf(std::span<const std::byte> bytes);
// The image in memory that begins at `header`, as long as its own tables say. Error: no ELF image for a GPU.
Result<std::span<const std::byte>> elf_image_at(const std::byte* header);
// Error: bytes that are no ELF image for a GPU, or one that ends too early.
Result<ElfImage> read_elf_image(std::span<const std::byte> bytes);
// An image that carries PTX and no machine code. `architecture`: 90 for sm_90.
std::string write_elf_image(std::string_view ptx, uint32_t architecture);

} // namespace ptxrewrite::cuda
