// What programs hand over as modules (PTX text, fat binaries with or without their wrapper, cubins) and the PTX in
// them.
#pragma once

#include "cuda/context/codes.h"
#include "support/result.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace ptxrewrite::cuda {

// `code` is what the driver answers to an image that cannot be used; `problem` says more.
struct ImageText {
  Code code = Code::success;
  std::string ptx;
  std::string problem;
};

// What the driver would take for a GPU of `capability` (90 for 9.0), as far as it is there as PTX: a cubin that was
// written to carry PTX, else the newest PTX, else the PTX that a cubin has for debuggers.
ImageText ptx_of_fat_binary(std::span<const std::byte> bytes, uint32_t capability);
// The PTX that a cubin carries, if a GPU of this capability would run the cubin.
ImageText ptx_of_cubin(std::span<const std::byte> bytes, uint32_t capability);
// The bytes of an image that programs give as a pointer alone, as long as the image itself says. Error: no such image.
Result<std::span<const std::byte>> image_at(const void* image);
// A file that a program loads as a module. Error: it cannot be read.
Result<std::string> read_image(const std::string& path);
// Of any kind, as the first bytes say.
ImageText ptx_of_image(std::span<const std::byte> bytes, uint32_t capability);

// Diagnostics of the reader; empty: the text is a module.
std::string what_is_wrong_with(const std::string& ptx, const std::string& name);

} // namespace ptxrewrite::cuda
