// Machine code files (cubins): ELF images for NVIDIA GPUs. Their code is not emulated, but some carry PTX: those that
// ptxas wrote with -lineinfo or -g contain the whole text in .nv_debug_ptx_txt, with a zero byte at the end of each
// line, and those that ptxrewrite-ptxas writes instead of an assembler contain nothing else.
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
  std::vector<std::string> ptx; // one text for each linked module; empty if there is only machine code
  bool has_code = false;
};

bool is_elf(std::span<const std::byte> bytes);
// The bytes of the image that begins at `header`; its own tables determine the size. Fails if it is not an ELF image
// for a GPU.
Result<std::span<const std::byte>> elf_image_at(const std::byte* header);
// Fails if the bytes are not an ELF image for a GPU, or are truncated.
Result<ElfImage> read_elf_image(std::span<const std::byte> bytes);
// Returns an image that carries PTX but no machine code. `architecture`: 90 for sm_90.
std::string write_elf_image(std::string_view ptx, uint32_t architecture);

} // namespace ptxrewrite::cuda
