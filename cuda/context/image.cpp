#include "cuda/context/image.h"

#include "cuda/fatbin/elf_image.h"
#include "cuda/fatbin/fatbinary.h"
#include "cuda/fatbin/link_ptx.h"
#include "grammar/reader.h"
#include "support/file_io.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>

namespace ptxrewrite::cuda {
namespace {

uint32_t magic_of(std::span<const std::byte> bytes) {
  uint32_t magic = 0;
  std::memcpy(&magic, bytes.data(), std::min(sizeof magic, bytes.size()));
  return magic;
}

// Machine code runs on GPUs of the same generation with an equal or higher capability.
bool runs_on(uint32_t architecture, uint32_t capability) {
  return architecture / 10 == capability / 10 && architecture <= capability;
}

std::string architectures(std::span<const FatEntry> entries, FatEntryKind kind) {
  std::set<uint32_t> known;
  for (const FatEntry& entry : entries)
    if (entry.kind == kind) known.insert(entry.architecture);
  std::string text;
  for (uint32_t architecture : known)
    text += (text.empty() ? "" : ", ") + std::to_string(architecture);
  return text;
}

std::string how_to_bring_ptx(uint32_t capability) {
  return fmt::format(
      "machine code is not emulated: compile with -gencode arch=compute_{0},code=compute_{0} or with "
      "-lineinfo, which bring PTX, or assemble with ptxrewrite-ptxas; relocatable code (nvcc -rdc=true) is "
      "machine code in any case",
      capability);
}

ImageText refused(const Error& error) {
  return {Code::invalid_image, {}, error.message};
}

struct Cubin {
  ElfImage image;
  ImageText text;
};

// Among the cubins that the GPU could run, returns one with PTX.
Cubin cubin_with_ptx(std::span<const FatEntry> entries, uint32_t capability) {
  for (const FatEntry& entry : entries) {
    if (entry.kind != FatEntryKind::machine_code || !runs_on(entry.architecture, capability)) continue;
    Result<std::string> bytes = contents_of(entry);
    if (!bytes) continue;
    Result<ElfImage> image = read_elf_image(std::as_bytes(std::span(*bytes)));
    if (image && !image->ptx.empty()) return {*image, {Code::success, link_ptx(image->ptx), {}}};
  }
  return {};
}

ImageText without_ptx(std::span<const FatEntry> entries, uint32_t capability) {
  const std::string newer = architectures(entries, FatEntryKind::ptx);
  const std::string machine_code = architectures(entries, FatEntryKind::machine_code);
  if (newer.empty() && machine_code.empty())
    return {
        Code::no_binary_for_gpu,
        {},
        "neither PTX nor machine code is in it: relocatable code (nvcc -rdc=true, -dc) becomes machine code when it is "
        "linked, which is not emulated"};
  const std::string there =
      newer.empty() ? "machine code for sm_" + machine_code + " alone" : "PTX for compute_" + newer;
  return {Code::no_binary_for_gpu,
          {},
          fmt::format("no PTX for sm_{} ({}); {}", capability, there, how_to_bring_ptx(capability))};
}

} // namespace

std::string what_is_wrong_with(const std::string& ptx, const std::string& name) {
  const SourceFile source(name, ptx);
  Diagnostics diagnostics;
  if (grammar::read_module(source, diagnostics)) return {};
  std::string text;
  for (const Diagnostic& diagnostic : diagnostics.list())
    text += render(diagnostic, source, false);
  return text.empty() ? "not readable" : text;
}

ImageText ptx_of_fat_binary(std::span<const std::byte> bytes, uint32_t capability) {
  Result<std::vector<FatEntry>> entries = read_fat_binary(bytes);
  if (!entries) return refused(entries.error());
  Cubin cubin = cubin_with_ptx(*entries, capability);
  if (cubin.image.has_code || cubin.text.ptx.empty())
    if (const FatEntry* best = best_ptx(*entries, capability)) {
      Result<std::string> text = ptx_of(*best);
      return text ? ImageText{Code::success, *std::move(text), {}} : refused(text.error());
    }
  return cubin.text.ptx.empty() ? without_ptx(*entries, capability) : std::move(cubin.text);
}

ImageText ptx_of_cubin(std::span<const std::byte> bytes, uint32_t capability) {
  Result<ElfImage> image = read_elf_image(bytes);
  if (!image) return refused(image.error());
  if (!runs_on(image->architecture, capability))
    return {Code::no_binary_for_gpu,
            {},
            fmt::format("a cubin for sm_{}, which sm_{} does not run", image->architecture, capability)};
  if (image->ptx.empty())
    return {Code::no_binary_for_gpu,
            {},
            fmt::format("a cubin with machine code for sm_{} alone; {}", image->architecture,
                        how_to_bring_ptx(capability))};
  return {Code::success, link_ptx(image->ptx), {}};
}

Result<std::string> read_image(const std::string& path) {
  return read_file(path);
}

Result<std::span<const std::byte>> image_at(const void* image) {
  if (!image) return Error{"no module: a null pointer", {}};
  const auto* bytes = static_cast<const std::byte*>(image);
  const auto* text = static_cast<const char*>(image);
  if (!*text) return Error{"no module: an empty text", {}};
  // At least four bytes are readable: a text includes its terminating zero.
  const uint32_t magic = magic_of({bytes, strnlen(text, sizeof(uint32_t))});
  if (magic == fat_wrapper_magic) return fat_binary_at(static_cast<const FatWrapper*>(image)->header);
  if (magic == fat_header_magic) return fat_binary_at(bytes);
  if (is_elf({bytes, strnlen(text, sizeof(uint32_t))})) return elf_image_at(bytes);
  return std::span(bytes, std::strlen(text));
}

ImageText ptx_of_image(std::span<const std::byte> bytes, uint32_t capability) {
  if (bytes.empty()) return refused(Error{"no module: nothing there", {}});
  if (magic_of(bytes) == fat_header_magic) return ptx_of_fat_binary(bytes, capability);
  if (is_elf(bytes)) return ptx_of_cubin(bytes, capability);
  std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  text.resize(std::min(text.size(), text.find('\0'))); // programs that pass a text with its length often include the
                                                       // terminating zero
  return {Code::success, std::move(text), {}};
}

} // namespace ptxrewrite::cuda
