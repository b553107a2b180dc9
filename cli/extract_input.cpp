#include "cli/extract_input.h"

#include "cuda/fatbin/elf_image.h"
#include "cuda/fatbin/fatbinary.h"
#include "support/file_io.h"

#include <fmt/format.h>

#include <cstring>

namespace ptxrewrite::cli {

namespace {

std::span<const std::byte> as_bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// Adds the PTX texts in a machine code image.
void take_from_image(std::span<const std::byte> bytes, std::vector<EmbeddedPtx>& found) {
  Result<cuda::ElfImage> image = cuda::read_elf_image(bytes);
  if (!image) return;
  for (std::string& text : image->ptx)
    found.push_back({image->architecture, std::move(text)});
}

// Adds the newest PTX of one fat binary; without PTX entries, the PTX that its cubins carry as line information.
void take_from_fat_binary(std::span<const cuda::FatEntry> entries, std::vector<EmbeddedPtx>& found) {
  if (const cuda::FatEntry* best = cuda::best_ptx(entries, UINT32_MAX)) {
    if (Result<std::string> text = cuda::ptx_of(*best)) found.push_back({best->architecture, *std::move(text)});
    return;
  }
  for (const cuda::FatEntry& entry : entries) {
    if (entry.kind != cuda::FatEntryKind::machine_code) continue;
    const size_t before = found.size();
    if (Result<std::string> image = cuda::contents_of(entry)) take_from_image(as_bytes(*image), found);
    if (found.size() > before) return; // the other cubins contain the same text for other GPUs
  }
}

} // namespace

Result<std::vector<EmbeddedPtx>> ptx_inside(std::string_view bytes) {
  std::vector<EmbeddedPtx> found;
  take_from_image(as_bytes(bytes), found);
  if (!found.empty()) return found;
  // Searches the whole file: they may be in sections of programs, or in members of libraries.
  char magic[sizeof cuda::fat_header_magic];
  std::memcpy(magic, &cuda::fat_header_magic, sizeof magic);
  const std::string_view wanted(magic, sizeof magic);
  bool has_fat_binary = false;
  for (size_t at = bytes.find(wanted); at != bytes.npos; at = bytes.find(wanted, at + 1)) {
    Result<std::vector<cuda::FatEntry>> entries = cuda::read_fat_binary(as_bytes(bytes.substr(at)));
    if (!entries) continue;
    has_fat_binary = true;
    take_from_fat_binary(*entries, found);
  }
  if (!found.empty()) return found;
  return Error{has_fat_binary ? "there is machine code in it, and no PTX: compile with -gencode "
                                "arch=compute_80,code=compute_80, or with -lineinfo"
                              : "there is no PTX in it: no cubin with line information, and no fat binary",
               {}};
}

std::unique_ptr<ir::Module> extract_input(const std::string& path, uint32_t number, const Console& console) {
  Result<std::string> bytes = read_file(path);
  if (!bytes) {
    show(bytes.error(), console);
    return nullptr;
  }
  const SourceFile file(path == "-" ? "<stdin>" : path, "");
  Result<std::vector<EmbeddedPtx>> found = ptx_inside(*bytes);
  if (!found) {
    show(found.error(), file, console);
    return nullptr;
  }
  if ((number == 0 && found->size() > 1) || number > found->size()) {
    std::string list;
    for (size_t i = 0; i < found->size(); ++i)
      list += fmt::format("{}--extract={} (sm_{}, {} bytes)", i ? ", " : "", i + 1, (*found)[i].architecture,
                          (*found)[i].text.size());
    show(Error{"which module: " + list, {}}, file, console);
    return nullptr;
  }
  EmbeddedPtx& chosen = (*found)[number == 0 ? 0 : number - 1];
  return read_module_text(SourceFile(file.name() + " (its PTX)", std::move(chosen.text)), console);
}

} // namespace ptxrewrite::cli
