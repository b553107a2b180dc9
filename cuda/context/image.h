// Module images that programs pass (PTX text, fat binaries with or without wrapper, cubins), and the PTX in them.
#pragma once

#include "cuda/context/codes.h"
#include "support/result.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace ptxrewrite::cuda {

// `code` is the driver's error code for an image that cannot be used; `problem` explains it.
struct ImageText {
  Code code = Code::success;
  std::string ptx;
  std::string problem;
};

// The PTX that the driver would choose for a GPU of `capability` (90 for 9.0): from a cubin that was written to carry
// PTX, else the newest PTX, else the PTX that a cubin has for debuggers.
ImageText ptx_of_fat_binary(std::span<const std::byte> bytes, uint32_t capability);
// The PTX that a cubin carries, if a GPU of this capability could run the cubin.
ImageText ptx_of_cubin(std::span<const std::byte> bytes, uint32_t capability);
// The bytes of an image that is passed as a pointer without a size; the image's own headers determine the size. Fails
// if it is not an image.
Result<std::span<const std::byte>> image_at(const void* image);
// Reads a file that a program loads as a module. Fails if it cannot be read.
Result<std::string> read_image(const std::string& path);
// For an image of any kind, recognised by its first bytes.
ImageText ptx_of_image(std::span<const std::byte> bytes, uint32_t capability);

// Returns the diagnostics of the PTX reader; empty if the text is a valid module.
std::string what_is_wrong_with(const std::string& ptx, const std::string& name);

} // namespace ptxrewrite::cuda
