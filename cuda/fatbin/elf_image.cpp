#include "cuda/fatbin/elf_image.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <elf.h>
#include <optional>

namespace ptxrewrite::cuda {
namespace {

constexpr uint16_t machine_cuda = 190;
// In e_ident. From this ABI version on, the architecture is in the second byte of e_flags, before that in the first.
constexpr uint8_t os_abi_cuda = 0x41;
constexpr uint8_t abi_version = 8;
constexpr std::string_view ptx_section = ".nv_debug_ptx_txt";

template <class T> bool read_at(std::span<const std::byte> bytes, uint64_t offset, T& value) {
  if (offset > bytes.size() || sizeof value > bytes.size() - offset) return false;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return true;
}

Error too_short(size_t bytes) {
  return Error{fmt::format("cubin: {} bytes, fewer than its section table says", bytes), {}};
}

Result<Elf64_Ehdr> header_of(std::span<const std::byte> bytes) {
  Elf64_Ehdr header;
  if (!is_elf(bytes) || !read_at(bytes, 0, header)) return Error{"no cubin: it does not start as an ELF file", {}};
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB)
    return Error{"no cubin: an ELF file, but not one of 64 bits and little-endian", {}};
  if (header.e_machine != machine_cuda)
    return Error{fmt::format("no cubin: an ELF file for machine {}, not for GPUs ({})", header.e_machine, machine_cuda),
                 {}};
  return header;
}

Result<std::vector<Elf64_Shdr>> sections_of(std::span<const std::byte> bytes, const Elf64_Ehdr& header) {
  std::vector<Elf64_Shdr> sections(header.e_shnum);
  for (size_t i = 0; i < sections.size(); ++i)
    if (header.e_shentsize < sizeof(Elf64_Shdr) ||
        !read_at(bytes, header.e_shoff + i * uint64_t(header.e_shentsize), sections[i]))
      return too_short(bytes.size());
  return sections;
}

// Returns an empty span if the file does not contain the section.
std::span<const std::byte> contents(std::span<const std::byte> bytes, const Elf64_Shdr& section) {
  if (section.sh_type == SHT_NOBITS || section.sh_offset > bytes.size() ||
      section.sh_size > bytes.size() - section.sh_offset)
    return {};
  return bytes.subspan(section.sh_offset, section.sh_size);
}

std::string_view text_at(std::span<const std::byte> strings, uint64_t offset) {
  if (offset >= strings.size()) return {};
  const auto* begin = reinterpret_cast<const char*>(strings.data()) + offset;
  return {begin, strnlen(begin, strings.size() - offset)};
}

// The section has zero bytes as line ends and no comments, but as many lines as the source.
std::string lines_of(std::span<const std::byte> section) {
  std::string text(reinterpret_cast<const char*>(section.data()), section.size());
  std::ranges::replace(text, '\0', '\n');
  return text;
}

// Returns offset + bytes, as stated in a header; nothing if it exceeds the limit for an image.
std::optional<uint64_t> end_of(uint64_t offset, uint64_t bytes) {
  constexpr uint64_t most = uint64_t(1) << 31;
  return offset <= most && bytes <= most - offset ? std::optional(offset + bytes) : std::nullopt;
}

} // namespace

bool is_elf(std::span<const std::byte> bytes) {
  return bytes.size() >= SELFMAG && std::memcmp(bytes.data(), ELFMAG, SELFMAG) == 0;
}

Result<std::span<const std::byte>> elf_image_at(const std::byte* begin) {
  if (!begin) return Error{"no cubin: a null pointer", {}};
  Result<Elf64_Ehdr> header = header_of({begin, sizeof(Elf64_Ehdr)});
  if (!header) return header.error();
  // Tables and contents may be in any order.
  const Error too_large{"a cubin whose headers describe more than 2 GiB", {}};
  const auto sections_end = end_of(header->e_shoff, uint64_t(header->e_shnum) * header->e_shentsize);
  const auto segments_end = end_of(header->e_phoff, uint64_t(header->e_phnum) * header->e_phentsize);
  if (!sections_end || !segments_end) return too_large;
  uint64_t end = std::max({uint64_t(sizeof(Elf64_Ehdr)), *sections_end, *segments_end});
  Result<std::vector<Elf64_Shdr>> sections = sections_of({begin, end}, *header);
  if (!sections) return sections.error();
  for (const Elf64_Shdr& section : *sections) {
    if (section.sh_type == SHT_NOBITS) continue;
    const auto section_end = end_of(section.sh_offset, section.sh_size);
    if (!section_end) return too_large;
    end = std::max(end, *section_end);
  }
  return std::span(begin, end);
}

Result<ElfImage> read_elf_image(std::span<const std::byte> bytes) {
  Result<Elf64_Ehdr> header = header_of(bytes);
  if (!header) return header.error();
  Result<std::vector<Elf64_Shdr>> sections = sections_of(bytes, *header);
  if (!sections) return sections.error();
  ElfImage image;
  image.architecture =
      header->e_ident[EI_ABIVERSION] >= abi_version ? header->e_flags >> 8 & 0xff : header->e_flags & 0xff;
  if (header->e_shstrndx >= sections->size()) return image;
  const std::span<const std::byte> names = contents(bytes, (*sections)[header->e_shstrndx]);
  for (const Elf64_Shdr& section : *sections) {
    image.has_code |= (section.sh_flags & SHF_EXECINSTR) != 0;
    if (text_at(names, section.sh_name).starts_with(ptx_section))
      if (const std::span<const std::byte> text = contents(bytes, section); !text.empty())
        image.ptx.push_back(lines_of(text));
  }
  return image;
}

std::string write_elf_image(std::string_view ptx, uint32_t architecture) {
  // A string table: the empty name, its own name, the section's name.
  std::string names(1, '\0');
  const auto name = [&](std::string_view text) {
    const auto at = static_cast<uint32_t>(names.size());
    names.append(text).push_back('\0');
    return at;
  };
  std::array<Elf64_Shdr, 3> sections{};
  sections[1].sh_name = name(".shstrtab");
  sections[2].sh_name = name(ptx_section);
  sections[1].sh_type = SHT_STRTAB;
  sections[1].sh_offset = sizeof(Elf64_Ehdr);
  sections[1].sh_size = names.size();
  sections[2].sh_type = SHT_PROGBITS;
  sections[2].sh_offset = sections[1].sh_offset + names.size();
  sections[2].sh_size = ptx.size();
  for (Elf64_Shdr& section : sections)
    section.sh_addralign = 1;
  sections[0] = {};

  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_ident[EI_OSABI] = os_abi_cuda;
  header.e_ident[EI_ABIVERSION] = abi_version;
  header.e_type = ET_EXEC;
  header.e_machine = machine_cuda;
  header.e_version = EV_CURRENT;
  const uint64_t unaligned = sections[2].sh_offset + ptx.size();
  header.e_shoff = (unaligned + 7) / 8 * 8;
  header.e_flags = (architecture & 0xff) << 8;
  header.e_ehsize = sizeof header;
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = sections.size();
  header.e_shstrndx = 1;

  std::string image(reinterpret_cast<const char*>(&header), sizeof header);
  image.append(names).append(ptx).append(header.e_shoff - unaligned, '\0');
  return image.append(reinterpret_cast<const char*>(sections.data()), sizeof sections);
}

} // namespace ptxrewrite::cuda
